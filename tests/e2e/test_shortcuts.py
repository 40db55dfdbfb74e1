# SPDX-License-Identifier: Apache-2.0
"""The front door: a client in one word, a shell in the same sandbox, help that a person can read."""
import json
import re

import pytest

CLIENTS = ("claude", "codex", "gemini", "opencode")
# Prints its arguments as JSON, and tries what a client must not get and what it must be able to do.
STAND_IN = """#!/bin/sh
printf 'argv'; for word; do printf ' [%s]' "$word"; done; echo
cat .env 2>/dev/null && echo 'read the secret'
echo changed >file.txt
git add file.txt && git -c user.name=n -c user.email=e@x commit -qm 'by the client' && echo committed
rm -rf .git/hooks .git/info 2>/dev/null
exit 7
"""


@pytest.fixture
def repo(box):
    for name in CLIENTS:
        box.write(f"bin/{name}", STAND_IN, mode=0o755)
    repo = box.mkdir("repo")
    assert box.run("git", "init", "-q", "-b", "main", cwd=repo).returncode == 0
    for path, content in {"file.txt": "before\n", ".gitignore": ".env\n", ".env": "TOKEN=1\n"}.items():
        box.write(f"repo/{path}", content)
    return repo


def start(cordon, box, repo, *words):
    return cordon(*words, cwd=repo, env={"PATH": f"{box.path}/bin:/usr/bin:/bin"})


def head(box, repo):
    return box.run("git", "log", "-1", "--format=%s", cwd=repo).stdout.strip()


@pytest.mark.parametrize("client", CLIENTS)
def test_one_word_runs_a_client_with_all_it_should_have(cordon, box, repo, client):
    result = start(cordon, box, repo, client, "--resume", "--net", "-h")
    assert result.returncode == 7, result
    words = re.findall(r"\[(.*?)\]", result.stdout)
    assert words[-3:] == ["--resume", "--net", "-h"], result  # all that follows is the client's
    assert "read the secret" not in result.stdout and "TOKEN" not in result.stdout
    assert ".env" in result.stderr and "a known secret" in result.stderr
    # Its commits are taken over, and what it did to its git directory is not.
    assert "committed" in result.stdout and head(box, repo) == "by the client", result
    assert (repo / ".git/hooks").is_dir() and (repo / ".git/info").is_dir()
    assert (repo / ".env").read_text() == "TOKEN=1\n"


def test_a_client_reaches_the_hosts_of_its_profile_and_what_is_added(cordon, box, repo):
    def hosts(*words):
        plan = start(cordon, box, repo, "--dry-run", "--json", *words)
        assert plan.returncode == 0, plan
        return plan.json()["net"], plan.json().get("hosts")

    listed = json.dumps(hosts("claude"))
    assert "api.anthropic.com" in listed and "registry.test" not in listed
    more = json.dumps(hosts("--net", "registry.test", "claude"))
    assert "api.anthropic.com" in more and "registry.test" in more
    assert "anthropic" not in json.dumps(hosts("--net", "none", "claude"))
    assert hosts("--net", "host", "claude") == hosts("--net", "host", "opencode")


def test_a_client_is_the_line_that_the_manual_says(cordon, box, repo):
    def plan(*words):
        text = start(cordon, box, repo, *words).stdout
        return json.loads(re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "ID", text))

    short = plan("--dry-run", "--json", "claude")
    whole = plan("run", "--profile", "claude", "--net", "profile", "--deny-secrets", "--git", "commit", "--dry-run", "--json", "--", "claude")
    assert short == whole


def test_options_stand_before_the_name(cordon, box, repo):
    result = start(cordon, box, repo, "--cow", "--no-summary", "claude", "x")
    assert result.returncode == 7 and (repo / "file.txt").read_text() == "before\n", result
    assert start(cordon, box, repo, "--git", "none", "claude").stdout.count("committed") == 0
    assert head(box, repo) != "by the client"


def test_codex_gets_what_it_needs_inside_and_nobody_is_asked_less(cordon, box, repo):
    words = {client: re.findall(r"\[(.*?)\]", start(cordon, box, repo, client).stdout) for client in CLIENTS}
    assert words == {"claude": [], "codex": ["-c", 'sandbox_mode="danger-full-access"'], "gemini": [], "opencode": []}


@pytest.mark.parametrize("words, line", [
    (["--cow", "make", "test"], "cordon run --cow -- make ..."),
    (["--net", "none", "why", "x"], "cordon why --net none ..."),
    (["--rw=lib", "run", "--", "true"], "cordon run --rw=lib ..."),
])
def test_options_before_anything_else_show_the_right_line(cordon, repo, words, line):
    result = cordon(*words, cwd=repo)
    assert result.returncode == 2 and result.stdout == "" and result.stderr.count("\n") == 1
    assert result.stderr.endswith(f"; write: {line}\n"), result


def test_a_client_that_is_not_installed_says_so(cordon, repo):
    result = cordon("opencode", cwd=repo, env={"PATH": "/usr/bin:/bin"})
    assert result.returncode in (125, 127) and "opencode" in result.stderr and result.stderr.count("\n") == 1, result


def test_a_shell_is_in_the_sandbox_of_such_a_run(cordon, box, repo):
    look = "cat .env; echo more >>.git/config; echo x >new; pwd; exit 5\n"
    result = cordon("shell", "--deny", ".env", "--net", "none", cwd=repo, input=look)
    assert result.returncode == 5 and result.stdout.strip().endswith(str(repo)), result
    assert "TOKEN" not in result.stdout and (repo / "new").exists() and "more" not in (repo / ".git/config").read_text()
    wrong = cordon("shell", "ls", cwd=repo)
    assert wrong.returncode == 2 and "cordon run -- ls" in wrong.stderr, wrong


def test_help_is_short_and_everything_is_one_word_away(cordon):
    short, everything = cordon("--help").stdout, cordon("help", "all").stdout
    assert len(short.splitlines()) <= 30 and "cordon help all" in short and short == cordon("help").stdout
    named = set(re.findall(r"^  ([a-z, ]+?)  ", short, re.MULTILINE))
    for word in {word.strip() for words in named for word in words.split(",")} - {""} - set(CLIENTS):
        assert cordon("help", word).returncode == 0, word
    headings = re.findall(r"^([A-Z].*):$", everything, re.MULTILINE)
    assert headings[0] == "Commands" and len(headings) > 8
    for example in re.findall(r"^  (cordon .*)$", short, re.MULTILINE):
        assert example.split(";")[0].split()[1] not in ("help",), example
    for client in CLIENTS:
        assert f"[OPTION]... {client} [ARGUMENT]..." in cordon("help", client).stdout


# ---- --write ----


@pytest.fixture
def tree(box, repo):
    for path in ("lib/sub/a", "lib/b", "src/c", "lib/.env"):
        box.write(f"repo/{path}", "old\n")
    return repo


ALL = ("lib/sub/a", "lib/b", "src/c", "lib/new", "lib/sub/new", ".env")


def test_write_is_relative_to_where_you_stand_and_everything_else_can_be_read(cordon, box, tree):
    script = "; ".join(f"echo new >{tree}/{path}; cat {tree}/{path}" for path in ALL)
    result = cordon("run", "--write", "sub", "--no-summary", "--", "sh", "-c", script, cwd=tree / "lib")
    changed = {path for path in ALL if (tree / path).exists() and (tree / path).read_text() == "new\n"}
    assert changed == {"lib/sub/a", "lib/sub/new"}, result
    assert result.stdout == "new\nold\nold\nnew\n", result  # not the secret
    assert result.stderr.count("BLOCKED") == 5 and "Read-only file system" in result.stderr, result


def test_a_question_about_write_is_answered_as_the_run_would(cordon, tree):
    for op, expected in (("read", {"lib/sub/a", "lib/b", "src/c", "lib/new", "lib/sub/new"}), ("write", {"lib/sub/a", "lib/sub/new"})):
        asked = cordon("check", "--write", "sub", "--op", op, *ALL, cwd=tree / "lib")
        assert {line.split()[1] for line in asked.stdout.splitlines() if line.startswith("allow")} == expected, asked
    assert "--write" in cordon("why", "--write", "sub", "lib/b", cwd=tree / "lib").stdout


def test_write_commits_only_what_it_may(cordon, box, tree):
    script = "echo new >lib/sub/a; git add lib/sub/a; git -c user.name=n -c user.email=e@x commit -qm one; rm -rf .git/hooks"
    result = cordon("run", "--write", "lib/sub", "--", "sh", "-c", script, cwd=tree)
    assert head(box, tree) == "one" and (tree / ".git/hooks").is_dir(), result


def test_with_a_client(cordon, box, tree):
    result = start(cordon, box, tree, "--write", "lib", "claude")
    assert result.returncode == 7 and (tree / "file.txt").read_text() == "before\n" and "Read-only" in result.stderr, result


@pytest.mark.parametrize("words, said", [
    (["--write", "nowhere"], "does not exist"),
    (["--write", "/etc"], "outside"),
    (["--write", "../.."], "outside"),
    (["--write", "lib", "--write", "src"], "given twice"),
    (["--write", "lib", "--workspace", "src"], "can't be used with --workspace"),
    (["--write", "lib", "--workspace-mode", "permissive"], "always strict"),
    (["--write", ""], "--write"),
])
def test_what_makes_no_sense_with_write_is_refused(cordon, tree, words, said):
    for command in (["check", *words, "x"], ["run", *words, "--", "touch", "lib/made"]):
        result = cordon(*command, cwd=tree)
        assert result.returncode not in (0, 3) and said in result.stderr and result.stderr.count("\n") == 1, result
    assert not (tree / "lib/made").exists()
