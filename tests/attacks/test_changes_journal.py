# SPDX-License-Identifier: Apache-2.0
"""Attacks from a live run on an apply or undo in the same tree: what an agent holds must not travel into the store (K1).

The root of the agent's run contains the store, which is masked. `..` of a directory that was moved into the store would lead
past the mask.
"""
import os
import subprocess
import time

import pytest

from support import poll
from views import View

# Says that it stands in a directory, waits for a line, and then writes to whatever `..` leads to: of the store, and of its own tree.
CLIMB = r"""
import ctypes, os, sys, time
os.chdir(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
if len(sys.argv) > 2:  # the name of a file that this directory changes places with
    here, file = os.path.basename(sys.argv[1]), sys.argv[2]
    top = os.open("..", os.O_PATH)
    print("swapped", ctypes.CDLL(None).renameat2(top, here.encode(), top, file.encode(), 2), flush=True)
until = time.monotonic() + float(sys.argv[3] if len(sys.argv) > 3 else 0.5)
while time.monotonic() < until:
    for depth in range(1, 12):
        for name in ("policy", "record.json", "audit/audit.jsonl", "stage/0", "inside"):
            try:
                with open("../" * depth + name, "a") as file:
                    file.write("EVIL")
            except OSError:
                pass
    time.sleep(0.01)
print("done", flush=True)
"""


class Climber:
    """An agent in a sandbox whose root is the box, with the store in it."""

    def __init__(self, cordon, box, *args):
        self.process = cordon.start("run", "--root", str(box.path), "--no-summary", "--", "python3", "-c", CLIMB, *args, cwd=box.path,
                                    stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self.process.stdout.readline() == b"ready\n"

    def go(self):
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    def end(self):
        lines = self.process.communicate(timeout=60)[0].split(b"\n")
        assert b"done" in lines
        return lines


def find_evil(box):
    """The files of the store that an agent wrote to."""
    found = []
    for top, _, names in os.walk(box.state):
        for name in names:
            path = os.path.join(top, name)
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    if b"EVIL" in file.read():
                        found.append(path)
    return found


@pytest.fixture
def tree(box):
    box.mkdir("proj/held")
    box.write("proj/held/one", "1\n")
    box.write("proj/file", "old\n")
    box.write("proj/inside", "")
    return box.path / "proj"


def test_a_directory_that_an_agent_stands_in_is_removed_and_never_moved_into_the_store(box, cordon, tree):
    view = View(box, tree).work("rm -r held; echo new > file; mkdir -p made/deep; echo x > made/deep/x")
    agent = Climber(cordon, box, "proj/held")
    applied = cordon("changes", "apply", view.id, cwd=tree)
    assert applied.returncode == 0 and not (tree / "held").exists(), str(applied)
    agent.go()
    agent.end()
    assert find_evil(box) == [], "the store was reached from a directory that apply removed"
    assert "EVIL" in (tree / "inside").read_text(), "what the agent may write it can write from there"
    agent = Climber(cordon, box, "proj/made/deep")
    undone = cordon("changes", "undo", view.id, cwd=tree)
    assert undone.returncode == 0 and not (tree / "made").exists() and (tree / "held/one").read_text() == "1\n", str(undone)
    agent.go()
    agent.end()
    assert find_evil(box) == [], "the store was reached from a directory that undo removed"


def slowly(cordon, tree, *args):
    """Runs cordon with pauses before and after every rename: half a second, and one second."""
    inject = ("-e", "trace=renameat,renameat2", "-e", "inject=renameat,renameat2:delay_enter=500000:delay_exit=1000000")
    return cordon.box.start("strace", "-f", "-qq", "-o", "/dev/null", *inject, cordon.path, *args, cwd=tree, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.parametrize("work", ["echo new > file", "rm file"], ids=["replaced", "removed"])
def test_a_directory_in_the_place_of_a_file_in_the_last_moment_stays_where_it_is(box, cordon, tree, work):
    view = View(box, tree).work(work)
    agent = Climber(cordon, box, "proj/held", "file", "3")
    apply = slowly(cordon, tree, "changes", "apply", view.id)
    poll(lambda: (view.dir / "journal/1/intent").exists(), 20, "the intent")
    time.sleep(1.2)  # the step has looked at the file, and is about to move it
    agent.go()
    assert b"swapped 0" in agent.end()
    assert apply.wait(60) == 1
    assert find_evil(box) == [], "the agent got into the store with its directory"
    assert (tree / "file/one").read_text() == "1\n" and (tree / "held").read_text() == "old\n", "it is as the agent left it"
    assert cordon("changes", "discard", view.id, cwd=tree).returncode == 0
