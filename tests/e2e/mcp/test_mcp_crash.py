# SPDX-License-Identifier: Apache-2.0
"""Servers, starters and supervisors killed at random instants: what was acknowledged is there, nothing is half made."""
import collections
import json
import os
import pathlib
import random
import signal
import subprocess
import time

import pytest

from support import descendants, kill_quietly, poll

MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
ROUNDS = 26  # of each kind, as each user: 208 kills at least
MOST_ROUNDS = 4 * ROUNDS
GOLDEN = 0.618034  # whose multiples, without their whole parts, spread evenly between 0 and 1


def whole(box, cordon):
    """A clean store after what anybody would do next: look, and collect the garbage."""
    assert cordon("gc").returncode == 0
    state = box.state / "state"

    def settled():
        """What a call began is ended by its own process, which outlives the server."""
        listed = cordon("project", "list", "--json").json()["projects"]
        return listed if sorted(p["id"] for p in listed) == sorted(p.name for p in (box.state / "projects").iterdir()) else None

    # Supervisors that live may be at something just now.
    poll(lambda: not list((state / "staging").iterdir()), what="an empty staging directory")
    projects = poll(lambda: (found := settled()) is not None and [found], what="a record for each directory")[0]
    for project in projects:
        assert json.loads((box.state / "projects" / project["id"] / "metadata.json").read_text())["name"] == project["name"]
        workspaces = cordon("workspace", "list", project["id"], "--json").json()["workspaces"]
        assert sorted(w["id"] for w in workspaces) == sorted(p.name for p in (box.state / "projects" / project["id"] / "workspaces").iterdir())
    poll(lambda: not [p for p in box.state.rglob("*") if p.name.endswith(".tmp")], what="a store without temporary files")
    return projects


def quiet(box, cordon):
    """No session runs, and none is left behind by a dead one."""
    for session in cordon("session", "list", "--status", "active", "--json").json()["sessions"]:
        cordon("session", "stop", session["session_id"], "--grace", "50ms")
    poll(lambda: not [pid for pid in descendants() if b"cordon-job" in command_bytes(pid)], 10, "the end of all sessions")
    assert cordon("gc").returncode == 0
    assert cordon("session", "list", "--status", "active", "--json").json()["total"] == 0
    runs = box.state / "state" / "runs"
    assert not runs.exists() or list(runs.iterdir()) == []


def rounds_until(enough, met):
    """Numbers of rounds: ROUNDS at least, and more until `enough()` of what was `met`, which a machine of any speed comes to."""
    for number in range(MOST_ROUNDS):
        if number >= ROUNDS and enough():
            return
        yield number
    assert enough(), f"{MOST_ROUNDS} kills were not spread over all that can be hit: {met}"


def read_proc(path):
    """What a file says of a process that may be gone."""
    try:
        return pathlib.Path("/proc", path).read_bytes()
    except OSError:
        return b""


def command_bytes(pid):
    return read_proc(f"{pid}/cmdline")


KINDS = ["project", "workspace", "update", "session"]
CALLS = 12


@pytest.mark.soak
@pytest.mark.limit(900)
def test_a_server_killed_at_random_instants_keeps_what_it_acknowledged(box, cordon, raw):
    generator = random.Random(5)
    top = cordon("project", "create", "top", "--isolation", "--max-sessions", "100", "--json").json()["id"]
    box.write(box.state / "projects" / top / "AGENTS.md", "rules")
    kept = {"project": set(), "workspace": set()}
    acknowledged = collections.Counter()  # by kind
    answered = collections.Counter()  # servers by how many of their calls were answered
    one_call = 0.01  # how long a call takes here

    def enough():
        """Of every kind some were acknowledged, and kills came after different numbers of answers, before the last one."""
        return all(acknowledged[kind] > ROUNDS / 4 for kind in KINDS) and len(set(answered) - {CALLS}) > 3

    for round_number in rounds_until(enough, (acknowledged, answered)):
        server = raw("--approved")
        calls = {}
        for number in range(CALLS):
            kind = generator.choice(KINDS)
            name = f"{round_number}-{number}"
            args = {
                "project": ("project_create", {"name": name}),
                "workspace": ("workspace_create", {"project_id": top, "workspace_id": f"w{name}", "external_id": name}),
                "update": ("project_update", {"project_id": top, "description": name}),
                "session": ("session_start", {"project_id": top, "command": ["sleep", "1000"], "new_session": True}),
            }[kind]
            calls[number] = (kind, name)
            server.request(number, "tools/call", {"name": args[0], "arguments": args[1]})
        # After a few answers, and somewhere within the next call. Those to the starts come last.
        began = time.monotonic()
        lines = [server.queue.get(timeout=30) for _ in range(generator.randrange(CALLS))]
        if lines:
            one_call = (time.monotonic() - began) / len(lines)
        time.sleep(generator.random() * one_call)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        latest, sessions, answers = None, set(), 0
        while (line := lines.pop(0) if lines else server.queue.get(timeout=10)) is not None:
            if not line.endswith(b"\n"):
                continue
            message = json.loads(line)
            kind, name = calls[message["id"]]
            result = message["result"]["structuredContent"]
            acknowledged[kind] += 1
            answers += 1
            if kind == "project":
                kept[kind].add(result["id"])
            elif kind == "workspace":
                kept[kind].add(f"w{name}")
            elif kind == "update":
                latest = message["id"]
            else:
                sessions.add(result["session_id"])
        answered[answers] += 1
        if latest is not None:
            # A later update may have been made and not been acknowledged.
            now = cordon("project", "get", top, "--json").json()["description"]
            assert now in [name for number, (kind, name) in calls.items() if kind == "update" and number >= latest]
        projects = whole(box, cordon)
        assert kept["project"] <= {p["id"] for p in projects}
        workspaces = {w["id"] for w in cordon("workspace", "list", top, "--json").json()["workspaces"]}
        assert kept["workspace"] <= workspaces
        for name in workspaces:
            if name.startswith("w"):
                assert (box.state / "projects" / top / "workspaces" / name / "AGENTS.md").read_text() == "rules"
        active = {s["session_id"] for s in cordon("session", "list", top, "--status", "active", "--json").json()["sessions"]}
        assert sessions <= active
        for session in active:
            cordon("session", "stop", session, "--grace", "0")
    quiet(box, cordon)


# What kills must have met: whether the start was answered, and the state of the session it left.
MET = {
    "starter": {(False, None), (False, "starting"), (True, "running")},
    "supervisor": {(False, "refused"), (True, "lost")},
    "both": {(False, None), (False, "lost")},
}


def supervisors(also=b"cordon-job"):
    return [pid for pid in descendants() if any(word in command_bytes(pid) for word in (b"cordon-job", also))]


def children():
    """Of this process and of theirs, who a supervisor is one of; faster than looking at all there are."""
    tasks = list(pathlib.Path("/proc/self/task").glob("*/children"))
    own = [pid for task in tasks for pid in task.read_text().split()]
    return own + [pid for child in own for pid in read_proc(f"{child}/task/{child}/children").decode().split()]


@pytest.mark.soak
@pytest.mark.limit(900)
@pytest.mark.parametrize("victim", MET)
def test_starts_killed_at_random_instants_leave_nothing(box, cordon, leftovers, victim):
    project = cordon("project", "create", "p", "--isolation", "--protect", "missing", "--max-sessions", "100", "--json").json()["id"]
    known = set()
    met = collections.Counter()
    began = time.monotonic()
    for _ in range(3):
        assert cordon("session", "start", project, "--detach", "--new-session", "--", "true").returncode == 0
    span = (time.monotonic() - began) / 3  # how long a start takes on this machine, now
    for number in rounds_until(lambda: MET[victim] <= set(met), met):
        if victim == "supervisor":
            # One that still ends after the last round would be taken for the next one.
            poll(lambda: not supervisors(), 60, "the end of the last supervisor")
        process = cordon.start("session", "start", project, "--detach", "--json", "--new-session", "--", "sleep", "1000")
        if victim == "supervisor":
            os.setpriority(os.PRIO_PROCESS, process.pid, 10)  # or who waits for it would sleep through its start on a busy machine
            while not any(b"cordon-job" in command_bytes(pid) for pid in children()) and process.poll() is None:
                pass  # every moment counts
        time.sleep(number * GOLDEN % 1 * span)
        if victim in ("starter", "both"):
            process.kill()
        if victim in ("supervisor", "both"):
            for pid in supervisors(b"session\0start" if victim == "both" else b"cordon-job"):
                kill_quietly(pid)
        out, _ = process.communicate(timeout=30)
        answer = json.loads(out) if out.endswith(b"\n") else None
        sessions = [s for s in cordon("session", "list", project, "--json").json()["sessions"] if s["command"] != ["true"]]
        left = [session["state"] for session in sessions if session["session_id"] not in known]
        known |= {session["session_id"] for session in sessions}
        assert len(left) <= 1, left
        met[(bool(answer and "session_id" in answer), left[0] if left else None)] += 1
        # Nearer to the middle of a start, which takes longer when others are at work.
        span *= 0.9 if answer else 1.1
        if answer and victim == "starter":
            assert answer["session_id"] in {s["session_id"] for s in sessions if s["status"] == "active"}
        for session in sessions:
            assert session["status"] == "active" or session["state"] in ("lost", "refused", "cancelled"), session
            cordon("session", "stop", session["session_id"], "--grace", "0")
    whole(box, cordon)
    quiet(box, cordon)
    leftovers.assert_none()
    # And everything works as before.
    done = cordon("session", "start", project, "--new-session", "--", "echo", "fine")
    assert (done.returncode, done.stdout) == (0, "fine\n")
    assert cordon("project", "delete", project).returncode == 0
