# SPDX-License-Identifier: Apache-2.0
"""Profiles: a client from the user's npm directory runs with its state, and its settings can't be changed."""
import os

import pytest

SCRIPT = """#!/usr/bin/env node
const r = require("child_process").spawnSync("sh", ["-c", process.argv[2] || "true"], {stdio: "inherit"});
process.exit(r.status);
"""
PACKAGE = ".npm-global/lib/node_modules/@anthropic-ai/claude-code"


@pytest.fixture
def client(box):
    """A stand-in for Claude Code as npm installs it: a link to a script of node in a package. Returns how to run it."""
    box.write(f"home/{PACKAGE}/cli.js", SCRIPT, mode=0o755)
    box.write("home/.npm-global/lib/node_modules/other/secret.js", "other")
    (box.home / ".npm-global/bin").mkdir()
    os.symlink("../lib/node_modules/@anthropic-ai/claude-code/cli.js", box.home / ".npm-global/bin/claude")
    os.symlink("../lib/node_modules/other/secret.js", box.home / ".npm-global/bin/other")
    box.write("home/.ssh/id_rsa", "a key")
    box.write("ws/file", "a file")
    box.own(box.home)
    return {"PATH": f"{box.home}/.npm-global/bin:/usr/local/bin:/usr/bin:/bin"}


@pytest.fixture
def claude(box, cordon, client):
    def run(script, *options, **variables):
        return cordon("run", "--profile", "claude", *options, "--", "claude", script, cwd=box.path / "ws", env=client | variables)

    return run


def test_a_client_of_the_users_npm_directory_starts(box, claude):
    done = claude("echo ran > made; which claude; ls -a ~", ANTHROPIC_API_KEY="k")
    assert done.returncode == 0 and (box.path / "ws/made").read_text() == "ran\n", str(done)
    assert f"{box.home}/.npm-global/bin/claude\n" in done.stdout and ".claude" in done.stdout
    assert (box.home / ".claude").stat().st_mode & 0o777 == 0o700  # it was missing and was made


def test_the_variables_of_the_profile_arrive_and_no_others(claude):
    done = claude("env", ANTHROPIC_API_KEY="k", CLAUDE_CODE_X="y", AWS_SECRET_ACCESS_KEY="no")
    assert {"ANTHROPIC_API_KEY=k", "CLAUDE_CODE_X=y"} <= set(done.stdout.splitlines()), str(done)
    assert "AWS_SECRET" not in done.stdout and "CLAUDE_CONFIG_DIR=/" in done.stdout


def test_state_stays_and_settings_hooks_and_instructions_are_held(box, claude):
    box.write("home/.claude/settings.json", "{}")
    names = ["settings.json", "settings.local.json", "hooks", "CLAUDE.md", ".mcp.json", ".config.json", "plugins/x", "commands/evil.md"]
    script = "cd ~/.claude; mkdir -p projects && echo s > projects/session; echo c > .claude.json.tmp && mv .claude.json.tmp .claude.json\n"
    script += "\n".join(f"echo evil > {n}; mkdir -p {n}; mv projects {n}; ln -s /tmp {n}" for n in names)
    done = claude(script)
    state = box.home / ".claude"
    assert (state / "projects/session").read_text() == "s\n" and (state / ".claude.json").read_text() == "c\n", str(done)
    assert (state / "settings.json").read_text() == "{}"
    assert {p.name for p in state.iterdir()} == {"settings.json", "projects", ".claude.json", "shell-snapshots", "session-env"}
    assert f"File: {state}/hooks" in done.stderr and "profile claude" in done.stderr
    again = claude("cat ~/.claude/projects/session")
    assert again.stdout == "s\n", str(again)


def test_what_a_client_would_run_from_its_state_is_discarded(box, claude):
    box.write("home/.claude/shell-snapshots/old.sh", "old")
    done = claude("cd ~/.claude/shell-snapshots && cat old.sh && echo evil > old.sh && echo evil > new.sh && cat new.sh; "
                  "mv ~/.claude/shell-snapshots ~/.claude/away; rm -rf ~/.claude/shell-snapshots")
    assert done.stdout == "oldevil\n", str(done)
    assert [p.name for p in (box.home / ".claude/shell-snapshots").iterdir()] == ["old.sh"]
    assert (box.home / ".claude/shell-snapshots/old.sh").read_text() == "old"


def test_nothing_else_of_the_npm_directory_or_the_home_is_there(box, claude):
    done = claude(f"cd {box.home}; find . -type f; cat .ssh/id_rsa; ls .npm-global/bin; echo x >> {PACKAGE}/cli.js; rm {PACKAGE}/cli.js")
    assert "other" not in done.stdout and "a key" not in done.stdout and f"./{PACKAGE}/cli.js" in done.stdout, str(done)
    assert (box.home / PACKAGE / "cli.js").read_text() == SCRIPT
    assert f"File: {box.home}/.ssh/id_rsa" in done.stderr  # a profile reports refused reads


def test_a_program_or_link_in_the_workspace_decides_nothing(box, cordon, client):
    """Who may write the workspace could otherwise choose what the next run is shown."""
    box.write("ws/bin/claude", "#!/bin/sh\necho hostile\n", mode=0o755)
    hostile = {"PATH": f"{box.path}/ws/bin:{client['PATH']}"}
    done = cordon("run", "--profile", "claude", "--", "claude", "echo real", cwd=box.path / "ws", env=hostile)
    assert done.stdout == "real\n", str(done)
    (box.path / "ws/bin/claude").unlink()
    os.symlink(box.home / ".ssh/id_rsa", box.path / "ws/bin/claude")
    os.chmod(box.home / ".ssh/id_rsa", 0o755)
    os.unlink(box.home / ".npm-global/bin/claude")
    os.symlink(box.path / "ws/bin/claude", box.home / ".npm-global/bin/claude")
    done = cordon("run", "--profile", "claude", "--", "cat", str(box.home / ".ssh/id_rsa"), cwd=box.path / "ws", env=hostile)
    assert done.returncode == 1 and "a key" not in done.stdout, str(done)


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", ".", "a/b", "", "UPPER", "x" * 65])
def test_the_name_of_a_profile_is_no_path(box, cordon, name):
    box.write("ws/x.yaml", "version: 1\n")
    done = cordon("run", "--profile", name, "--", "true", cwd=box.path / "ws")
    assert done.returncode == 2 and "is not the name of a profile" in done.stderr, str(done)


def test_an_unknown_profile_suggests_the_nearest(box, cordon):
    done = cordon("run", "--profile", "cluade", "--", "true", cwd=box.path)
    assert done.returncode == 125 and "did you mean 'claude'?" in done.stderr, str(done)


def test_with_a_home_of_its_own_the_client_keeps_its_state_there(box, claude):
    box.write("agent-home/.claude/settings.json", "{}")
    done = claude("echo s > ~/.claude/s; echo evil > ~/.claude/settings.json; mkdir ~/.claude/hooks; echo x > ~/free; "
                  "echo evil > ~/.claude/session-env/x; cat ~/.claude/session-env/x", "--home", str(box.path / "agent-home"))
    state = box.path / "agent-home/.claude"
    assert done.stdout == "evil\n" and (state / "s").read_text() == "s\n", str(done)
    assert (state / "settings.json").read_text() == "{}" and not (state / "hooks").exists() and not list((state / "session-env").iterdir())
    assert (box.path / "agent-home/free").exists() and not (box.home / ".claude").exists()


def test_a_state_directory_that_a_variable_names_is_used_and_held(box, claude):
    (box.home / "moved").mkdir()
    box.own(box.home)
    done = claude("echo s > $CLAUDE_CONFIG_DIR/s; echo evil > $CLAUDE_CONFIG_DIR/.claude.json; echo evil > $CLAUDE_CONFIG_DIR/settings.json",
                  CLAUDE_CONFIG_DIR=str(box.home / "moved"))
    assert {p.name for p in (box.home / "moved").iterdir()} == {"s", "shell-snapshots", "session-env"}, str(done)
    assert not (box.home / ".claude").exists()


def test_a_dry_run_makes_no_state_directory(box, cordon, client):
    done = cordon("run", "--dry-run", "--profile", "claude", "--", "claude", cwd=box.path / "ws", env=client)
    assert done.returncode == 0 and not (box.home / ".claude").exists(), str(done)


def test_a_program_of_the_home_is_there_when_the_run_has_another_home(box, cordon, client):
    """What lies in the user's home can't be mounted in the run's, which is a directory of the host."""
    (box.path / "agent-home").mkdir()
    box.own(box.path / "agent-home")
    done = cordon("run", "--home", box.path / "agent-home", "--program", "claude", "--", "claude", "command -v claude; ls -a ~",
                  cwd=box.path / "ws", env=client)
    assert done.stdout == "/opt/cordon/.npm-global/bin/claude\n.\n..\n", str(done)
    assert list((box.path / "agent-home").iterdir()) == []
