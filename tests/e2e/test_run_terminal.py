# SPDX-License-Identifier: Apache-2.0
"""On a terminal the agent gets one of its own: job control, resize and Ctrl-C work; the user's is left as it was."""
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import termios
import time

import pytest

from support import poll
from terminals import Terminal


@pytest.fixture
def terminal(box, cordon):
    opened = []

    def start(*args, cwd):
        opened.append(Terminal(box, cordon.path, *args, cwd=cwd))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


@pytest.fixture
def repo(box):
    return box.repo(files={"a": "a\n"})


def test_the_agent_has_a_terminal_of_its_own(terminal, repo):
    t = terminal("run", "--", "sh", "-c", "tty; test -t 0 && test -t 1 && test -t 2 && echo all; echo via >/dev/tty", cwd=repo)
    t.expect(b"/dev/pts/0")
    t.expect(b"all")
    t.expect(b"via")
    assert t.process.wait(15) == 0
    assert termios.tcgetattr(t.slave) == t.before


def test_ctrl_c_interrupts_the_agent_and_not_cordon(terminal, repo):
    t = terminal("run", "--", "sh", "-c", "n=; trap 'echo interrupted; n=1' INT; echo ready; while [ -z $n ]; do sleep 0.1; done; echo after", cwd=repo)
    t.expect(b"ready")
    t.type(b"\x03")
    t.expect(b"interrupted")
    t.expect(b"after")
    assert t.process.wait(15) == 0


def test_job_control_works(terminal, repo):
    t = terminal("run", "--", "bash", "--norc", "-i", cwd=repo)
    t.type(b"sleep 100\n")
    time.sleep(1)
    t.type(b"\x1a")
    t.expect(b"Stopped")
    t.type(b"bg; kill %1; wait; echo job-is-$?-over\n")
    t.expect(b"-over")
    t.type(b"exit 7\n")
    assert t.process.wait(15) == 7


def test_the_size_is_passed_on_and_follows(terminal, repo):
    t = terminal("run", "--", "sh", "-c", "trap 'stty size' WINCH; stty size; echo ready; while :; do sleep 0.1; done", cwd=repo)
    t.expect(b"30 90")
    t.expect(b"ready")
    fcntl.ioctl(t.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    t.expect(b"40 100")
    os.kill(t.process.pid, signal.SIGTERM)
    assert t.process.wait(15) == 143
    assert termios.tcgetattr(t.slave) == t.before


def test_streams_that_are_no_terminal_stay_what_they_are(box, cordon, repo):
    master, slave = pty.openpty()
    process = box.start(cordon.path, "run", "--", "sh", "-c", "test -t 0 && echo in; test -t 1 || echo out-is-a-pipe", cwd=repo, stdin=slave)
    out, _ = process.communicate(timeout=15)
    os.close(master)
    os.close(slave)
    assert out == b"in\nout-is-a-pipe\n"


def test_much_output_arrives_whole(terminal, repo):
    t = terminal("run", "--", "sh", "-c", "seq 1 20000; echo the-end", cwd=repo)
    text = t.expect(b"the-end", seconds=60)
    assert text.replace(b"\r", b"").split() == [str(i).encode() for i in range(1, 20001)]
    assert t.process.wait(15) == 0


def test_reports_begin_in_the_first_column_while_the_terminal_is_raw(box, terminal):
    repo = box.repo("repo", files={"lib/a": "a\n", "other/o": "o\n"})
    t = terminal("run", "--workspace", "lib", "--no-summary", "--reports", "now", "--", "sh", "-c", "cat other/o; echo x > other/n; echo the-end", cwd=repo)
    said = t.expect(b"the-end")
    assert said.count(b"[WORKSPACE]") == 6 and said.count(b"\n") == said.count(b"\r\n") > 6, said
    assert t.process.wait(15) == 0


def test_output_on_a_terminal_that_nobody_reads_does_not_hold_up_the_time_limit(box, cordon, repo):
    master, slave = pty.openpty()
    os.fchown(slave, box.who.uid, box.who.gid)
    run = cordon.start("run", "--timeout", "2s", "--grace", "1s", "--no-summary", "--result", str(box.path / "result"), "--", "yes",
                       cwd=repo, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    poll((box.path / "result").exists, 60, "the end of the run")
    assert json.loads((box.path / "result").read_text())["state"] == "timeout"
    os.close(master)
    assert run.wait(30) == 124


@pytest.mark.parametrize("streams", [{}, {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}])
def test_reports_on_a_terminal_that_nobody_reads_do_not_hold_up_the_time_limit(box, cordon, streams):
    repo = box.repo("repo", files={"lib/a": "a\n"})
    master, slave = pty.openpty()
    os.fchown(slave, box.who.uid, box.who.gid)  # as login does
    run = cordon.start("run", "--workspace", "lib", "--workspace-mode", "strict", "--no-summary", "--timeout", "3s", "--grace", "1s",
                       "--result", str(box.path / "result"), "--", "sh", "-c", "i=0; while :; do i=$((i+1)); (: <other$i) 2>/dev/null; done",
                       cwd=repo, stdin=streams.get("stdin", slave), stdout=streams.get("stdout", slave), stderr=slave)
    os.close(slave)
    poll((box.path / "result").exists, 60, "the end of the run")
    assert json.loads((box.path / "result").read_text())["state"] == "timeout"
    os.close(master)
    assert run.wait(30) == 124
