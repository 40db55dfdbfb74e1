# SPDX-License-Identifier: Apache-2.0
"""Settings of other sandboxes as a policy: every line of theirs is accounted for, and the policy answers as they would."""
import json
import random

import pytest

SRT = {
    "network": {"allowedDomains": ["api.example.com", "*.cdn.example.com", "*.bad.example"], "deniedDomains": ["evil.bad.example"],
                "allowUnixSockets": ["/var/run/docker.sock"], "allowLocalBinding": False},
    "filesystem": {"denyRead": ["~/.ssh", ".env", "secrets/"], "allowWrite": [".", "/tmp"], "denyWrite": ["config", "**/*.lock"]},
    "ignoreViolations": {"*": ["/usr/bin"]},
    "enableWeakerNestedSandbox": False,
}
CODEX = """# Codex
model = "some-model"
approval_policy = "on-request"
sandbox_mode = "workspace-write"

[sandbox_workspace_write]
writable_roots = ["/srv/cache",   # another place
                  'generated']
network_access = false
exclude_slash_tmp = true

[shell_environment_policy]
include_only = ["PATH", "HOME"]
set = { CI = "1" }

[mcp_servers."my server"]
command = "npx"
args = ["-y", \"\"\"
some-server\"\"\"]
"""
CLAUDE = {
    "model": "some-model",
    "permissions": {
        "allow": ["Edit(src/**)", "Edit(docs/*.md)", "Read(~/.zshrc)", "Bash(npm run test:*)", "WebFetch(domain:docs.example.com)"],
        "ask": ["Edit(Makefile)"],
        "deny": ["Read(.env)", "Read(./secrets/**)", "Edit(src/generated.ts)", "Bash(curl:*)", "WebFetch(domain:evil.example)"],
        "additionalDirectories": ["../elsewhere"],
        "defaultMode": "default",
    },
    "sandbox": {"enabled": True, "excludedCommands": ["docker"], "network": {"allowedDomains": ["registry.example.org"]}},
    "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}]},
}
FILES = ["a.txt", ".env", "lib/.env", "secrets/key", "config/x", "lib/b.lock", "src/a.ts", "src/generated.ts", "docs/a.md", "docs/sub/b.md", "Makefile", "generated/g"]
# {tool: [(operation, what, allowed)]}: what the documents of the tools say.
QUESTIONS = {
    "srt": [("read", "a.txt", True), ("write", "a.txt", True), ("read", ".env", False), ("read", "secrets/key", False), ("write", "secrets/new", False),
            ("read", "config/x", True), ("write", "config/x", False), ("write", "lib/b.lock", False), ("connect", "api.example.com", True),
            ("connect", "x.cdn.example.com", True), ("connect", "evil.bad.example", False), ("connect", "other.example", False)],
    "codex": [("read", "a.txt", True), ("write", "a.txt", True), ("write", "new/x", True), ("read", ".env", True), ("write", "src/a.ts", True),
              ("write", "generated/g", True), ("write", ".codex/config.toml", False), ("write", ".git/hooks/pre-commit", False),
              ("connect", "api.example.com", False), ("write", "Makefile", True)],
    "claude": [("read", "a.txt", True), ("write", "a.txt", False), ("write", "src/a.ts", True), ("write", "src/generated.ts", False),
               ("read", ".env", False), ("read", "lib/.env", False), ("read", "secrets/key", False), ("write", "docs/a.md", True),
               ("write", "docs/sub/b.md", False), ("write", "Makefile", False), ("connect", "docs.example.com", True),
               ("connect", "registry.example.org", True), ("connect", "evil.example", False)],
}
TEXTS = {"srt": ("srt.json", json.dumps(SRT, indent=2)), "codex": ("config.toml", CODEX), "claude": ("settings.json", json.dumps(CLAUDE, indent=2))}


def leaves(value):
    if isinstance(value, dict) and value:
        return [leaf for item in value.values() for leaf in leaves(item)]
    if isinstance(value, list) and value:
        return [leaf for item in value for leaf in leaves(item)]
    return [{True: "true", False: "false"}.get(value, value) if isinstance(value, bool) else str(value)]


@pytest.fixture
def place(box):
    box.mkdir("theirs")
    for name, text in TEXTS.values():
        box.write(f"theirs/{name}", text)
    return box.repo("repo", {name: "x\n" for name in FILES})


def imported(box, cordon, place, tool):
    done = cordon("policy", "import", tool, "--json", "-o", str(box.path / "policy.yaml"), str(box.path / "theirs" / TEXTS[tool][0]), cwd=place)
    assert done.returncode == 0, str(done)
    return done.json()["report"]


@pytest.mark.parametrize("tool", QUESTIONS)
def test_every_line_of_theirs_is_accounted_for(box, cordon, place, tool):
    report = imported(box, cordon, place, tool)
    written = [row for row in report if row["line"]]
    wanted = leaves(json.loads(TEXTS[tool][1])) if tool != "codex" else [
        "some-model", "on-request", "workspace-write", "/srv/cache", "generated", "false", "true", "PATH", "HOME", "1", "npx", "-y", "some-server"]
    assert [row["value"] for row in written] == wanted
    lines = TEXTS[tool][1].splitlines()
    for row in written:
        assert row["verdict"] in ("same", "stricter", "weaker", "not enforceable") and (row["why"] or row["verdict"] == "same")
        assert row["value"].split("\n")[0] in lines[row["line"] - 1] or row["value"] == "some-server"
    said = cordon("policy", "import", tool, str(box.path / "theirs" / TEXTS[tool][0]), cwd=place)
    assert len(said.stderr.splitlines()) == len(report) and said.stdout == (box.path / "policy.yaml").read_text()
    assert cordon("policy", "import", tool, "-o", str(box.path / "policy.yaml"), str(box.path / "theirs" / TEXTS[tool][0]), cwd=place).returncode == 1


@pytest.mark.parametrize("tool", QUESTIONS)
def test_questions_are_answered_as_they_would_by_the_policy_and_in_a_live_sandbox(box, cordon, place, tool):
    imported(box, cordon, place, tool)
    policy = str(box.path / "policy.yaml")
    for op, what, allowed in QUESTIONS[tool]:
        answer = cordon("check", "--policy", policy, "--op", op, what, cwd=place)
        assert answer.stdout.startswith("allow" if allowed else "deny"), (op, what, str(answer))
    asked = [(op, what, allowed) for op, what, allowed in QUESTIONS[tool] if op != "connect"]
    tries = {"read": "cat {0} >/dev/null", "write": "mkdir -p $(dirname {0}) && echo agent >>{0}"}
    script = "".join("if (" + tries[op].format(what) + ") 2>/dev/null; then echo yes; else echo no; fi; " for op, what, _ in asked)
    done = cordon("run", "--policy", policy, "--reports", "end", "--", "sh", "-c", script, cwd=place)
    assert done.stdout.split() == ["yes" if allowed else "no" for _, _, allowed in asked], str(done)
    for op, what, allowed in asked:
        if op == "write":
            there = (place / what).is_file() and "agent" in (place / what).read_text()
            assert there is allowed, what


@pytest.mark.parametrize("settings, expected", [
    ({"filesystem": {"denyRead": ["/"], "allowWrite": ["."]}}, {"deny": ["**"]}),
    ({"filesystem": {"denyRead": ["/"], "allowRead": ["."], "allowWrite": ["src"]}}, {"rw": ["src"], "ro": ["**"]}),
    ({"filesystem": {"denyWrite": ["/"], "allowWrite": ["."]}}, {"read_only": True}),
    ({"filesystem": {"allowWrite": ["/"]}}, {"rw": ["**"]}),
    ({"network": {"allowedDomains": []}}, {"net": "none"}),
    ({"network": {"allowedDomains": ["*"]}}, {"net": "none"}),
    ({}, {"net": "none", "ro": ["**"]}),
])
def test_what_lies_around_the_root_counts_for_it(box, cordon, place, settings, expected):
    box.write("theirs/s.json", json.dumps(settings))
    policy = cordon("policy", "import", "srt", "--json", str(box.path / "theirs/s.json"), cwd=place).json()["policy"]
    assert expected.items() <= policy.items()


def test_a_denial_that_can_not_be_followed_is_named_as_weaker(box, cordon, place):
    box.write("theirs/s.json", json.dumps({"filesystem": {"denyRead": ["/ho*/x", "a/../.env"]}}))
    report = cordon("policy", "import", "srt", "--json", str(box.path / "theirs/s.json"), cwd=place).json()["report"]
    assert [row["verdict"] for row in report if row["line"]] == ["weaker", "weaker"]


@pytest.mark.parametrize("tool, text, place_of_error", [
    ("srt", "{", "x:1:"), ("srt", "[]", "x:1:1"), ("claude", '{"a": 1, "a": 2}', "x:1:10"), ("codex", "a = ", "x:1:5"), ("codex", "a = 1\na = 2", "x:2:"),
    ("codex", "x = \"no end", "x:1:"), ("codex", "[t\n", "x:1:"), ("codex", "a = [1 2]", "x:1:8"), ("codex", "a" * 3000 + " = 1", "x:1:"),
    ("codex", "a = " + "[" * 100, "x:1:"), ("srt", "[" * 5000, "x:1:"), ("codex", "a = \"\\q\"", "x:1:"), ("codex", "a = 1 b = 2", "x:1:7"),
])
def test_what_is_wrong_is_refused_with_its_place(box, cordon, place, tool, text, place_of_error):
    box.write("theirs/x", text)
    done = cordon("policy", "import", tool, "x", cwd=box.path / "theirs")
    assert done.returncode == 1 and place_of_error in done.stderr and done.stdout == "", str(done)


def test_random_bytes_never_crash_it(box, cordon, place):
    chance = random.Random(31)
    for number in range(30):
        tool = chance.choice(list(TEXTS))
        text = bytearray(TEXTS[tool][1].encode())
        for _ in range(chance.randrange(1, 8)):
            text[chance.randrange(len(text))] = chance.randrange(256)
        box.write("theirs/x", bytes(text))
        assert cordon("policy", "import", tool, "theirs/x", cwd=box.path).returncode in (0, 1), (number, tool, bytes(text))
