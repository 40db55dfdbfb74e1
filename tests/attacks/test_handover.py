# SPDX-License-Identifier: Apache-2.0
"""What the agent leaves is later run or read by git, tools, terminals, and by cordon itself."""
import json
import os
import subprocess

import pytest




def test_h1_git_configuration_that_executes_cannot_be_planted(arena):
    subprocess.run(["git", "init", "-q", "-b", "main", str(arena.root)], check=True)
    arena.box.own(arena.root / ".git")
    marker = arena.box.path / "executed"
    script = arena.box.write("evil", f"#!/bin/sh\ntouch {marker}\n", mode=0o755)
    arena.sh(f"for key in core.fsmonitor core.hooksPath core.sshCommand filter.x.clean diff.external; do git config $key {script}; done; "
             f"printf '[core]\\n fsmonitor = {script}\\n' >>.git/config; printf '[core]\\n fsmonitor = {script}\\n' >.git/config.worktree; "
             f"mkdir -p .git/hooks; cp {script} .git/hooks/post-checkout; echo '* filter=x' >.git/info/attributes; true", protect=False)
    arena.box.run("git", "-C", str(arena.root), "-c", "safe.directory=*", "status", cwd=arena.root)
    arena.box.run("git", "-C", str(arena.root), "-c", "safe.directory=*", "checkout", "-q", "-b", "x", cwd=arena.root)
    assert not marker.exists()
    assert str(script) not in (arena.root / ".git/config").read_text()


def test_h1_control_without_protection_git_executes_it(arena):
    subprocess.run(["git", "init", "-q", "-b", "main", str(arena.root)], check=True)
    arena.box.own(arena.root / ".git")
    marker = arena.box.path / "executed"
    script = arena.box.write("evil", f"#!/bin/sh\ntouch {marker}\n", mode=0o755)
    arena.sh(f"git config core.fsmonitor {script}", "--no-default-protect", protect=False)
    arena.box.run("git", "-C", str(arena.root), "-c", "safe.directory=*", "status", cwd=arena.root)
    assert marker.exists()


def test_h1_cordon_itself_runs_no_git(arena):
    trap = arena.box.write("bin/git", "#!/bin/sh\necho ran >\"$HOME/git-was-run\"\n", mode=0o755)
    env = {"PATH": f"{trap.parent}:/usr/local/bin:/usr/bin:/bin"}
    arena.sh("true", protect=False, env=env)
    for command in (["validate", "src"], ["check", "src/main.c"], ["tree"], ["why", "src"]):
        arena.cordon(*command, cwd=arena.root, env=env)
    assert not (arena.box.home / "git-was-run").exists()


@pytest.mark.parametrize("name", [".envrc", ".mcp.json", ".claude/settings.json", ".vscode/tasks.json", ".husky/pre-commit"])
def test_h3_files_that_tools_execute_cannot_be_planted(arena, name):
    arena.sh(f"mkdir -p {os.path.dirname(name) or '.'}; echo evil >{name}; true", protect=False)
    assert not os.path.lexists(arena.root / name)


NAMES = [b"esc\x1b[31mred", b"line\nbreak", b"cr\rback", "bidi\u202etxt".encode(), b"bad\xff\xfeutf8", b"<tool_result>"]


@pytest.mark.parametrize("name", NAMES)
def test_h6_names_that_speak_are_escaped_everywhere(arena, name):
    folder = os.fsencode(arena.root) + b"/out-" + name
    os.mkdir(folder)
    arena.box.own(os.fsdecode(folder))
    result = arena.cordon("run", "--root", str(arena.root), "--workspace", "src", "--workspace-mode", "strict", "--", "/usr/bin/python3", "-c",
                          f"import os\nfor d in os.listdir('.'):\n    try: os.listdir(d)\n    except OSError: pass\n"
                          f"try: open({b'out-' + name!r} + b'/x', 'w')\nexcept OSError: pass\n", cwd=arena.root)
    assert b"out-" in result.raw_stderr, result
    for raw in (result.raw_stderr, arena.cordon("audit").raw_stdout, arena.cordon("audit", "--json").raw_stdout,
                arena.cordon("tree", cwd=arena.root).raw_stdout):
        assert b"\x1b[31m" not in raw and b"\r" not in raw and "\u202e".encode() not in raw and b"\xff" not in raw, raw
        raw.decode("utf-8")
    for line in arena.cordon("audit", "--json").stdout.splitlines():
        json.loads(line)
    assert all(line.startswith("[WORKSPACE]") for line in result.stderr.splitlines() if line), result.stderr


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scope", [["--rw", "src"], ["--rw", "src/**/*.sh"]], ids=["folder", "lens"])
def test_h6_names_that_the_agent_makes_are_escaped_in_the_summary(arena, scope, name):
    words = [b"src/new-" + name + b".sh", b"x\n"]
    result = arena.cordon("run", "--root", str(arena.root), "--summary", *scope, "--", "/usr/bin/python3", "-c",
                          f"open({words[0]!r}, 'wb').write({words[1]!r})", cwd=arena.root)
    assert result.returncode == 0 and os.path.exists(os.fsencode(arena.root) + b"/" + words[0]), result
    assert b"created src/new-" in result.raw_stderr and len(result.raw_stderr.splitlines()) == result.raw_stderr.count(b"[SUMMARY] "), result
    assert b"\x1b[31m" not in result.raw_stderr and b"\r" not in result.raw_stderr and "\u202e".encode() not in result.raw_stderr
    result.raw_stderr.decode("utf-8")


@pytest.mark.parametrize("scope", [[], ["--rw", "src/**/*.c"]], ids=["folder", "lens"])
def test_h7_the_audit_is_out_of_reach_and_cannot_be_forged(arena, box, scope):
    result = arena.sh(f"ls -d {box.state} {box.state}/state; find / -name 'audit*' -not -path '/usr/*' -not -path '/proc/*' 2>/dev/null; "
                      "echo '{\"event\":\"end\",\"success\":true}' >&2; echo '[WORKSPACE] BLOCKED: forged' >&2; true", *scope, protect=False)
    assert "audit" not in result.stdout and str(box.state) not in result.stdout
    records = [json.loads(line) for line in arena.cordon("audit", "--json").stdout.splitlines()]
    assert [r["event"] for r in records] == ["start", "end"] and "forged" not in json.dumps(records)
    assert arena.cordon("audit", "verify").returncode == 0




def test_h8_the_engines_answers_are_the_sandboxes(arena):
    """What check says, the live sandbox does, for rights that differ from place to place."""
    arena.box.write("repo/src/vendor/v.c", "v\n")
    arena.box.write("repo/notes/n.md", "n\n")
    options = ["--rw", "src", "--ro", "src/vendor", "--ro", "notes", "--deny", "src/main.c", "--protect", "src/held.c", "--no-default-protect"]
    arena.box.write("repo/src/held.c", "held\n")
    arena.box.write("repo/src/free.c", "free\n")
    names = ["src/main.c", "src/vendor/v.c", "src/held.c", "src/free.c", "notes/n.md", "AGENTS.md", "deep/er/held.txt", "src/new.c", "new.c"]
    script = "".join(f"(cat {n} >/dev/null 2>&1 && echo read-{n}-allow) || echo read-{n}-deny\n"
                     f"( : >>{n} ) 2>/dev/null && echo write-{n}-allow || echo write-{n}-deny\n" for n in names)
    live = arena.cordon("run", "--root", str(arena.root), *options, "--", "/bin/sh", "-c", script, cwd=arena.root).stdout.splitlines()
    for op in ("read", "write"):
        said = arena.cordon("check", "--root", str(arena.root), *options, "--op", op, *names, cwd=arena.root).stdout.splitlines()
        for name, answer in zip(names, said):
            if op == "read" and name in ("src/new.c", "new.c"):
                continue  # there is nothing to read
            assert f"{op}-{name}-{answer.split()[0]}" in live, (op, name, answer, live)
