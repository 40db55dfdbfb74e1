# SPDX-License-Identifier: Apache-2.0
"""Policy files that travel from machine to machine: ~, variables by their first letters, profiles, and learned policies."""
import os

import pytest

PATH = "/usr/local/bin:/usr/bin:/bin"


@pytest.fixture
def ws(box):
    box.write("ws/file", "a file\n")
    box.write("home/data/x", "of the home\n")
    box.write("home/bin/tool", "#!/bin/sh\ncat file; echo made > out\n", mode=0o755)
    return box.path / "ws"


def test_a_policy_file_of_mine_says_home_and_works_on_every_machine(box, cordon, ws):
    for home in ("~", "$HOME", "${HOME}"):
        policy = box.write("policy.yaml", f'version: 1\nshare: ["{home}/data:ro"]\nkeep_env: ["MY_*"]\n')
        done = cordon("run", "--policy", policy, "--", "sh", "-c", "cat ~/data/x; echo $MY_A$MY_B$YOURS; echo no > ~/data/x", cwd=ws,
                      env={"MY_A": "a", "MY_B": "b", "YOURS": "c"})
        assert done.stdout == "of the home\nab\n" and (box.home / "data/x").read_text() == "of the home\n", str(done)
    done = cordon("run", "--keep-env", "MY_*", "--", "sh", "-c", "echo $MY_A$YOURS", cwd=ws, env={"MY_A": "a", "YOURS": "c"})
    assert done.stdout == "a\n", str(done)
    done = cordon("run", "--keep-env", "*", "--", "true", cwd=ws)
    assert done.returncode == 2 and "at least one letter" in done.stderr, str(done)


@pytest.mark.parametrize("line", ['share: ["~/data"]', "home: ~/data", "profiles: [claude]", "program: tool", "state: [~/data]", "private: [~/data]"])
def test_a_file_in_the_workspace_can_not_speak_of_my_home(box, cordon, ws, line):
    box.write("ws/cordon.yaml", f"version: 1\n{line}\n")
    done = cordon("run", "--policy", "cordon.yaml", "--", "true", cwd=ws)
    assert done.returncode == 125 and "cordon.yaml:2:" in done.stderr and "inside the workspace" in done.stderr, str(done)
    # Nor through a link that stands there, or a file elsewhere that somebody can exchange.
    os.rename(ws / "cordon.yaml", box.path / "cordon.yaml")
    os.symlink("../cordon.yaml", ws / "cordon.yaml")
    done = cordon("run", "--policy", "cordon.yaml", "--", "true", cwd=ws)
    assert done.returncode == 125 and "inside the workspace" in done.stderr, str(done)
    os.chmod(box.path / "cordon.yaml", 0o666)
    done = cordon("run", "--policy", box.path / "cordon.yaml", "--", "true", cwd=ws)
    assert done.returncode == 125 and "do not own" in done.stderr, str(done)


@pytest.mark.parametrize("line, place", [
    ("state: [{path: /etc}]", "2:"), ("state: [~/../x]", "2:"), ("state: [~]", "2:"), ("state: [{hold: [x]}]", "2:"),
    ("state: [{path: ~/x, hold: [../y]}]", "2:"), ("private: [x]", "2:"), ("program: ../x", "2:"), ("keep_env: ['*']", "2:"),
    ("profiles: [git]", "2:"), ("prgram: x", "2:"), ("net: [a b]", "2:"),
])
def test_a_profile_of_mine_with_an_error_says_where(box, cordon, ws, line, place):
    path = box.write("state/profiles/mine.yaml", f"version: 1\n{line}\n")
    done = cordon("run", "--profile", "mine", "--", "true", cwd=ws)
    assert done.returncode == 125 and f"{path}:{place}" in done.stderr, str(done)
    assert cordon("profile", "show", "mine").returncode == 1


def test_my_own_profile_is_found_listed_and_used(box, cordon, ws):
    box.write("state/profiles/mine.yaml", "version: 1\ndescription: my tool\nprogram: tool\nstate: [{path: ~/.tool, hold: [rc]}]\n")
    env = {"PATH": f"{box.home}/bin:{PATH}"}
    assert "mine      my tool (your own)\n" in cordon("profile", "list").stdout
    assert f"# program tool: {box.home}/bin/tool\n" in cordon("profile", "show", "mine", env=env).stdout
    policy = box.write("policy.yaml", "version: 1\nprofiles: [mine, git]\n")
    done = cordon("run", "--policy", policy, "--", "sh", "-c", "tool; echo s > ~/.tool/s; echo evil > ~/.tool/rc", cwd=ws, env=env)
    assert done.stdout == "a file\n" and (ws / "out").read_text() == "made\n", str(done)
    assert [p.name for p in (box.home / ".tool").iterdir()] == ["s"]


def test_every_shipped_profile_is_valid_and_runs(box, cordon, ws):
    entries = cordon("profile", "list", "--json").json()
    names = [e["name"] for e in entries]
    assert {"claude", "codex", "gemini", "opencode", "node", "python", "rust", "go", "git"} <= set(names)
    assert all(e["valid"] and e["description"] and not e["own"] for e in entries), entries
    done = cordon("run", "--profile", ",".join(names), "--", "echo", "ran", cwd=ws)
    assert done.stdout == "ran\n", str(done)


def test_a_program_that_is_not_there_inside_is_named_with_the_line_that_works(box, cordon, ws):
    env = {"PATH": f"{box.home}/bin:{PATH}"}
    line = f"cannot run tool: no such program in the sandbox; on the host it is {box.home}/bin/tool: cordon run --program tool -- tool\n"
    for options in ((), ("--dry-run",)):
        done = cordon("run", *options, "--", "tool", cwd=ws, env=env)
        assert done.returncode == 127 and line in done.stderr, str(done)
    assert cordon("run", "--program", "tool", "--", "tool", cwd=ws, env=env).stdout == "a file\n"
    box.write("home/bin/claude", "#!/bin/sh\n", mode=0o755)
    done = cordon("run", "--", "claude", cwd=ws, env=env)
    assert done.returncode == 127 and "cordon run --profile claude -- claude" in done.stderr, str(done)
    assert cordon("run", "--dry-run", "--", "sh", cwd=ws).returncode == 0
    assert cordon("run", "--dry-run", "--", "./file", cwd=ws).returncode == 126
    assert "on the host" not in cordon("run", "--", "nowhere", cwd=ws, env=env).stderr


def test_a_learned_policy_runs_a_program_of_the_home_again(box, cordon, ws):
    env = {"PATH": f"{box.home}/bin:{PATH}"}
    box.write("home/.npm-global/lib/node_modules/js/cli.js", "#!/usr/bin/env node\nrequire('./lib'); console.log(require('fs').readFileSync('file', 'utf8'));\n",
              mode=0o755)
    box.write("home/.npm-global/lib/node_modules/js/lib.js", "")
    os.symlink("../.npm-global/lib/node_modules/js/cli.js", box.home / "bin/js")
    for command in (["tool"], ["js"], [f"{box.home}/bin/tool"], ["sh", "-c", "cat file"]):
        done = cordon("learn", "--force", "--output", "learned.yaml", "--", *command, cwd=ws, env=env)
        assert done.returncode == 0 and "a file" in done.stdout, str(done)
        done = cordon("run", "--policy", "learned.yaml", "--", *command, cwd=ws, env=env)
        assert done.returncode == 0 and "a file" in done.stdout, str(done) + (ws / "learned.yaml").read_text()


def test_questions_know_profiles_and_shares(box, cordon, ws):
    box.write("home/.claude/settings.json", "{}")
    held = cordon("why", "--profile", "claude", box.home / ".claude/settings.json", cwd=ws)
    assert held.stdout.startswith("deny: write") and "profile claude" in held.stdout, str(held)
    free = cordon("check", "--profile", "claude", box.home / ".claude/projects/x", box.home / ".claude/hooks/x", cwd=ws)
    assert free.stdout == f"allow {box.home}/.claude/projects/x\ndeny {box.home}/.claude/hooks/x\n", str(free)
    assert cordon("tree", "--profile", "claude", cwd=ws).returncode == 0


def test_the_prompt_section_describes_a_whole_policy(box, cordon, ws):
    policy = box.write("policy.yaml", 'version: 1\nmode: strict\nrw: [src, "*.md"]\nro: ["**"]\ndeny: [secret]\nprotect: [AGENTS.md]\nshare: ["~/data:ro"]\n')
    text = cordon("prompt-section", "--policy", policy, cwd=ws).stdout
    for line in ("**Mode**: strict", "- `src`", "- `*.md`", "- `secret`", "- `AGENTS.md`", "- `~/data`: may be read"):
        assert line in text.splitlines(), text
    done = cordon("prompt-section", "--policy", policy, "src", cwd=ws)
    assert done.returncode == 2, str(done)
