# SPDX-License-Identifier: Apache-2.0
"""The scenarios of workspace isolation and of scopes for each agent, as far as one run goes: mounts, protected paths, parent access,
read-only scope, environment, processes, temporary directory. Each test is named after its scenario and is judged by what the host sees."""
import os
import re
import signal

import pytest

from support import poll

READ_ONLY = "Read-only file system"
DENIED = "Permission denied"


def sh(cordon, script, *options, **kw):
    return cordon("run", *options, "--", "/bin/sh", "-c", script, **kw)


@pytest.fixture
def workspaces(box):
    """A project with two tenants, as the chat service lays them out."""
    base = box.mkdir("projects/p")
    box.write("projects/p/metadata.json", '{"secret": "metadata"}')
    box.write("projects/p/sessions/old.json", "history")
    for name in ("abc-123", "def-456"):
        box.write(f"projects/p/workspaces/{name}/AGENTS.md", f"prompt of {name}\n")
        box.write(f"projects/p/workspaces/{name}/.factory/mcp.json", "{}\n")
        box.write(f"projects/p/workspaces/{name}/notes.txt", f"notes of {name}\n")
    return base / "workspaces"


def isolated(cordon, workspaces, script, *options):
    return sh(cordon, script, "--root", str(workspaces / "abc-123"), "--at", "/workspace", "--no-default-protect", *options)


# ---- workspace isolation ----


def test_container_mount_in_isolated_mode(cordon, workspaces):
    result = isolated(cordon, workspaces, "pwd; cat notes.txt; echo new >made; ls /; ls -d /home/* 2>/dev/null")
    assert result.returncode in (0, 2), result
    assert result.stdout.splitlines()[:2] == ["/workspace", "notes of abc-123"]
    assert (workspaces / "abc-123" / "made").read_text() == "new\n"
    outside = isolated(cordon, workspaces, f"cat {workspaces}/abc-123/notes.txt; ls {workspaces}; ls /workspaces")
    assert outside.returncode != 0 and "notes of" not in outside.stdout


def test_agent_attempts_to_access_parent_directory(cordon, workspaces):
    result = isolated(cordon, workspaces, "cd ..; pwd; ls -a; ls -a /workspace/..; cat /workspace/../metadata.json; "
                      "cat ../metadata.json; find / -name metadata.json -o -name 'def-456' -o -name sessions 2>/dev/null "
                      "| grep -v ^/usr | grep -v ^/proc/sys")
    assert result.stdout.splitlines()[0] == "/"
    for trace in ("def-456", "metadata.json", "sessions", "secret"):
        assert trace not in result.stdout, result
    mounts = isolated(cordon, workspaces, "cat /proc/self/mountinfo /proc/mounts")
    assert "def-456" not in mounts.stdout


def test_protect_agents_md_and_factory_directory(cordon, workspaces):
    result = isolated(cordon, workspaces,
                      "cat AGENTS.md .factory/mcp.json; echo x >AGENTS.md; echo x >.factory/mcp.json; echo x >.factory/new; "
                      "echo x >other; echo x >>notes.txt",
                      "--protect", "AGENTS.md", "--protect", ".factory/")
    assert result.stdout == "prompt of abc-123\n{}\n"
    assert result.stderr.count(READ_ONLY) == 3, result
    own = workspaces / "abc-123"
    assert (own / "AGENTS.md").read_text() == "prompt of abc-123\n"
    assert os.listdir(own / ".factory") == ["mcp.json"] and (own / ".factory/mcp.json").read_text() == "{}\n"
    assert (own / "other").read_text() == "x\n" and (own / "notes.txt").read_text().endswith("x\n")


def test_agent_attempts_to_modify_protected_file(cordon, workspaces):
    before = os.stat(workspaces / "abc-123/AGENTS.md")
    result = isolated(cordon, workspaces, "echo evil >/workspace/AGENTS.md", "--protect", "AGENTS.md")
    assert result.returncode != 0 and READ_ONLY in result.stderr
    after = os.stat(workspaces / "abc-123/AGENTS.md")
    assert (before.st_ino, before.st_mtime_ns, before.st_size) == (after.st_ino, after.st_mtime_ns, after.st_size)


def test_protected_path_does_not_exist(cordon, workspaces):
    result = isolated(cordon, workspaces, "echo started; echo x >AGENTS.md; echo x >nonexistent.md; ls -a",
                      "--protect", "AGENTS.md", "--protect", "nonexistent.md")
    assert "started" in result.stdout and READ_ONLY in result.stderr
    assert "nonexistent.md" not in result.stdout.split()
    assert not (workspaces / "abc-123/nonexistent.md").exists()
    assert (workspaces / "abc-123/AGENTS.md").read_text() == "prompt of abc-123\n"


# ---- scopes for each agent ----


@pytest.fixture
def repo(box):
    return box.repo(files={"src/a.ts": "a\n", "src/sub/b.ts": "b\n", "tests/t.ts": "t\n", "secret.txt": "secret\n"})


def test_agent_can_access_files_in_scope(cordon, repo):
    result = sh(cordon, "cat src/a.ts; echo more >>src/a.ts; mkdir src/new; echo n >src/new/n", "--rw", "src", cwd=repo)
    assert result.returncode == 0, result
    assert result.stdout == "a\n" and (repo / "src/a.ts").read_text() == "a\nmore\n" and (repo / "src/new/n").exists()


def test_agent_cannot_access_files_outside_scope(cordon, repo):
    result = sh(cordon, "cat secret.txt; cat tests/t.ts; echo x >secret.txt; echo x >tests/t.ts; echo x >new; mkdir dir; "
                "rm -f secret.txt; mv tests gone; ln secret.txt src/alias; chmod 777 tests", "--rw", "src", cwd=repo)
    assert "secret" not in result.stdout
    assert result.stderr.count(DENIED) >= 6, result
    assert READ_ONLY not in result.stderr
    assert (repo / "secret.txt").read_text() == "secret\n" and (repo / "tests/t.ts").read_text() == "t\n"
    assert sorted(os.listdir(repo)) == [".git", "secret.txt", "src", "tests"]
    assert os.stat(repo / "tests").st_mode & 0o777 == 0o755


def test_read_only_scope_prevents_modifications(cordon, repo):
    result = sh(cordon, "cat src/a.ts; echo x >src/a.ts; echo x >src/new; rm -f src/a.ts; mv src/a.ts src/c; mkdir src/d; "
                "chmod 600 src/a.ts; touch src/a.ts; ln src/a.ts src/e", "--ro", "src", cwd=repo)
    assert result.stdout == "a\n" and result.stderr.count(READ_ONLY) >= 7, result
    assert sorted(os.listdir(repo / "src")) == ["a.ts", "sub"] and (repo / "src/a.ts").read_text() == "a\n"


def test_read_only_option_makes_the_whole_root_read_only(cordon, repo):
    result = sh(cordon, "cat secret.txt; echo x >secret.txt; echo x >new", "--read-only", cwd=repo)
    assert result.stdout == "secret\n" and result.stderr.count(READ_ONLY) == 2
    assert (repo / "secret.txt").read_text() == "secret\n" and not (repo / "new").exists()


def test_a_narrower_grant_wins_in_both_directions(cordon, repo):
    result = sh(cordon, "echo x >src/sub/b.ts; echo x >src/a.ts; cat secret.txt", "--rw", "src", "--ro", "src/sub", cwd=repo)
    assert (repo / "src/a.ts").read_text() == "x\n" and (repo / "src/sub/b.ts").read_text() == "b\n"
    assert READ_ONLY in result.stderr and DENIED in result.stderr
    result = sh(cordon, "echo y >src/sub/b.ts; echo y >src/a.ts", "--ro", "src", "--rw", "src/sub", cwd=repo)
    assert (repo / "src/a.ts").read_text() == "x\n" and (repo / "src/sub/b.ts").read_text() == "y\n"


def test_deny_hides_the_content_of_what_lies_in_a_grant(cordon, repo):
    result = sh(cordon, "cat secret.txt; echo x >secret.txt; ls src/sub; cat src/sub/b.ts; chmod 777 secret.txt src/sub; "
                "mv secret.txt moved; echo x >src/a.ts", "--deny", "secret.txt", "--deny", "src/sub", cwd=repo)
    assert result.stdout == "" and DENIED in result.stderr, result
    assert (repo / "secret.txt").read_text() == "secret\n" and (repo / "src/sub/b.ts").read_text() == "b\n"
    assert (repo / "src/a.ts").read_text() == "x\n"


def test_agent_receives_defined_environment_variables(cordon, repo):
    result = sh(cordon, "env", "--env", "GREETING=hello world", "--keep-env", "KEPT", "--keep-env", "UNSET", cwd=repo,
                env={"KEPT": "kept", "SECRET_TOKEN": "hunter2", "TERM": "xterm"})
    env = dict(line.split("=", 1) for line in result.stdout.splitlines())
    env.pop("PWD", None), env.pop("_", None), env.pop("SHLVL", None), env.pop("OLDPWD", None)
    assert set(env) == {"PATH", "HOME", "USER", "SHELL", "TERM", "LANG", "TMPDIR", "TEMP_DIR", "GREETING", "KEPT"}
    assert env["GREETING"] == "hello world" and env["KEPT"] == "kept" and env["TMPDIR"] == env["TEMP_DIR"]


def test_agent_cannot_access_parent_environment(cordon, repo):
    secret = {"SECRET_TOKEN": "hunter2-from-the-parent"}
    result = sh(cordon, "env; for p in /proc/[0-9]*; do cat $p/environ $p/cmdline $p/task/*/environ; done 2>/dev/null | tr '\\0' '\\n'; "
                "cat /proc/1/environ; strings /proc/1/mem; ps axe", cwd=repo, env=secret)
    assert "hunter2" not in result.stdout + result.stderr


def test_agent_specific_variables_are_set(cordon, repo):
    assert sh(cordon, 'echo "$A:$B"', "--env", "A=1", "--env", "B=", "--env", "A=2", cwd=repo).stdout == "2:\n"


def test_agent_runs_in_separate_process(cordon, repo):
    result = sh(cordon, "echo $$; readlink /proc/self/ns/pid /proc/self/ns/user /proc/self/ns/mnt; ls -d /proc/[0-9]* | wc -l", cwd=repo)
    lines = result.stdout.splitlines()
    assert int(lines[0]) < 10 and int(lines[4]) < 10
    for name, inside in zip(("pid", "user", "mnt"), lines[1:4]):
        assert inside != os.readlink(f"/proc/self/ns/{name}")


def test_agent_process_has_isolated_memory(cordon, repo):
    first = cordon.start("run", "--", "sleep", "60", cwd=repo)
    poll(lambda: b"\n" in open(f"/proc/{first.pid}/status", "rb").read())
    result = sh(cordon, f"kill -0 {first.pid}; ls /proc/{first.pid}/mem; for p in /proc/[0-9]*; do cat $p/cmdline; done | tr '\\0' ' '; "
                "ipcs -m; ls /dev/shm /tmp", cwd=repo)
    assert "sleep" not in result.stdout and first.poll() is None


def test_agent_process_can_be_terminated_independently(cordon, repo):
    keep = cordon.start("run", "--", "sleep", "60", cwd=repo)
    end = cordon.start("run", "--", "sh", "-c", "echo up; sleep 60", cwd=repo)
    assert end.stdout.readline() == b"up\n"
    end.send_signal(signal.SIGTERM)
    assert end.wait(10) == 128 + signal.SIGTERM
    assert keep.poll() is None


def test_agent_gets_isolated_temp_directory(cordon, box, repo):
    marker = box.write("tmp/host-file", "host")
    result = sh(cordon, "echo $TEMP_DIR; ls -A $TEMP_DIR; echo x >$TEMP_DIR/mine; ls $TEMP_DIR; sleep 0.2", cwd=repo)
    assert result.stdout.splitlines()[0] == "/run/tmp" and "mine" in result.stdout and "host-file" not in result.stdout
    again = sh(cordon, "ls -A $TMPDIR", cwd=repo)
    assert "mine" not in again.stdout and marker.exists()


@pytest.mark.parametrize("end", ["exit 0", "exit 3", "kill -9 $$", "sleep 30"])
def test_temp_directory_is_cleaned_up(cordon, repo, leftovers, end):
    before = set(os.listdir("/tmp")) | set(os.listdir("/dev/shm"))
    result = sh(cordon, f"echo data >$TEMP_DIR/file-of-the-run; echo data >/dev/shm/file-of-the-run; {end}", "--timeout", "1s",
                "--grace", "100ms", cwd=repo)
    assert result.returncode in (0, 3, 137, 124)
    left = (set(os.listdir("/tmp")) | set(os.listdir("/dev/shm"))) - before
    assert not [name for name in left if "file-of-the-run" in name or re.match(r"cordon-[0-9a-f]{8}-", name)]
    leftovers.assert_none()


def test_a_pattern_that_judges_names_is_refused_without_the_lens(cordon, repo):
    result = sh(cordon, "cat src/a.ts", "--rw", "src/**/*.ts", "--lens", "never", cwd=repo)
    assert result.returncode == 125 and "src/**/*.ts" in result.stderr and "lens" in result.stderr
    assert len(result.stderr.splitlines()) == 1
