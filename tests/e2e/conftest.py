# SPDX-License-Identifier: Apache-2.0
"""A project with its sessions, for the tests that drive them through the command line; a box in memory."""
import json
import pathlib
import tempfile
import time

import pytest

from support import Box, poll


class Sessions:
    """A project to run sessions in, and the commands with their JSON."""

    def __init__(self, box, cordon):
        self.box = box
        self.cordon = cordon
        self.project = None

    def ask(self, *args, status=0, **options):
        done = self.cordon(*args[:2], "--json", *args[2:], **options)
        assert done.returncode == status, done
        return done.json()

    def refused(self, *args, status=1, **options):
        done = self.cordon(*args[:2], "--json", *args[2:], **options)
        assert done.returncode == status, done
        return done.json("stderr")

    def create(self, *options, command=()):
        self.project = self.ask("project", "create", "p", "--no-git", *options, *(["--", *command] if command else []))
        return self.project["id"]

    def start(self, *options, command=(), **more):
        """Detached; gives the answer."""
        return self.ask("session", "start", self.project["id"], "--detach", *options, *(["--", *command] if command else []), **more)

    def shell(self, *options):
        """A session that runs the lines it is sent."""
        return self.start("--new-session", *options, command=["sh", "-c", 'while read -r line; do eval "$line"; done 2>&1'])["session_id"]

    def say(self, session, line):
        """Sends a line and returns what came before it was done."""
        mark = f"done-{time.monotonic_ns()}"
        last = self.ask("session", "send", session, f"{line}\necho {mark}")["last_event_index"]
        return poll(lambda: self.text(session, last).partition(mark + "\n") if mark + "\n" in self.text(session, last) else None, 20, line)[0]

    def text(self, session, since=-1, kinds=("stdout", "stderr")):
        events = self.ask("session", "output", session, "--since", str(since))["events"]
        return "".join(event["text"] for event in events if event["type"] in kinds)

    def get(self, session):
        return self.ask("session", "get", session)

    def pid(self, session):
        return json.loads(self.state(session, "record.json").read_text())["pid"]

    def state(self, session, *below):
        return self.box.state.joinpath("state", "sessions", session, *below)

    def top(self, *below):
        return self.box.state.joinpath("projects", self.project["id"], *below)


@pytest.fixture
def sessions(box, cordon):
    made = Sessions(box, cordon)
    yield made
    for session in made.ask("session", "list", "--status", "active")["sessions"]:
        made.cordon("session", "stop", session["session_id"], "--grace", "100ms")


@pytest.fixture
def memory_box(bin_dir, who):
    """A box in memory: what is killed hundreds of times need not wait for a disk."""
    base = pathlib.Path(tempfile.mkdtemp(prefix="cordon-", dir="/dev/shm"))
    base.chmod(0o755)
    made = Box(base / "box", who, bin_dir)
    yield made
    made.close()
    base.rmdir()
