# SPDX-License-Identifier: Apache-2.0
"""The fixtures keep their word: who runs, where, with which environment, and nothing is left behind unseen."""
import os

import pytest

from support import USER_ID, descendants, poll


def test_commands_run_as_the_named_caller_without_groups(box, who):
    ids = box.run("sh", "-c", "id -u; id -g; id -G").stdout.split()
    assert ids == [str(who.uid), str(who.gid), str(who.gid)] or os.getuid() != 0
    if os.getuid() == 0 and not who.is_root:
        assert who.uid == USER_ID


def test_the_environment_is_built_from_nothing(box, monkeypatch):
    monkeypatch.setenv("WORKSPACE_FOLDERS", "leak")
    names = {line.split("=")[0] for line in box.run("env").stdout.splitlines()}
    assert names - {"PWD", "SHLVL", "_"} == {"PATH", "HOME", "LANG", "TMPDIR", "CORDON_HOME"}


def test_the_caller_owns_its_files(box, who):
    repo = box.repo(files={"lib/a.ts": "x", "src/deep/b.ts": "y"})
    for path in (repo, repo / "lib", repo / "src/deep/b.ts", repo / ".git/HEAD", box.home, box.state):
        assert path.stat().st_uid == who.uid
    assert box.run("touch", "src/new", cwd=repo).returncode == 0


def test_the_executable_can_be_reached_by_the_caller(cordon):
    result = cordon("--version")
    assert result.returncode == 0 and result.stdout.startswith("cordon "), result


def test_a_command_that_does_not_end_is_a_failure(box):
    with pytest.raises(AssertionError, match="no end after"):
        box.run("sleep", "60", timeout=0.2)


def test_orphans_do_not_escape_the_look_for_leftovers(box, leftovers):
    box.run("sh", "-c", "setsid sleep 61 >/dev/null 2>&1 & exit 0")
    with pytest.raises(AssertionError, match="sleep 61"):
        leftovers.assert_none(seconds=0.2)
    for pid in descendants():
        os.kill(pid, 9)
    leftovers.assert_none()


def test_files_left_in_the_temporary_directory_are_seen(box, leftovers):
    box.run("sh", "-c", "echo x >$TMPDIR/forgotten")
    with pytest.raises(AssertionError, match="forgotten"):
        leftovers.assert_none(seconds=0.1)


def test_poll_gives_up(box):
    with pytest.raises(AssertionError, match="not within"):
        poll(lambda: False, seconds=0.1)
