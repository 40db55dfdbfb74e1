# SPDX-License-Identifier: Apache-2.0
"""Servers, starters and supervisors killed at random instants: what was acknowledged is there, nothing is half made."""
import json
import os
import pathlib
import random
import signal
import subprocess
import time

import pytest

from support import descendants, poll

MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
ROUNDS = 26  # of each kind, as each user: 208 kills


def whole(box, cordon):
    """A clean store after what anybody would do next: look, and collect the garbage."""
    assert cordon("gc").returncode == 0
    projects = cordon("project", "list", "--json").json()["projects"]
    state = box.state / "state"
    # Supervisors that live may be at something just now.
    poll(lambda: not list((state / "staging").iterdir()), what="an empty staging directory")
    assert sorted(p["id"] for p in projects) == sorted(p.name for p in (box.state / "projects").iterdir())
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
    poll(lambda: not [pid for pid in descendants() if b"supervise" in command_bytes(pid)], 10, "the end of all supervisors")
    assert cordon("gc").returncode == 0
    assert cordon("session", "list", "--status", "active", "--json").json()["total"] == 0
    runs = box.state / "state" / "runs"
    assert not runs.exists() or list(runs.iterdir()) == []


def command_bytes(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.limit(600)
def test_a_server_killed_at_random_instants_keeps_what_it_acknowledged(box, cordon, raw):
    generator = random.Random(5)
    top = cordon("project", "create", "top", "--isolation", "--max-sessions", "100", "--json").json()["id"]
    box.write(box.state / "projects" / top / "AGENTS.md", "rules")
    acknowledged = {"projects": set(), "workspaces": set(), "description": None, "sessions": set()}
    for round_number in range(ROUNDS):
        server = raw("--approved")
        calls = {}
        for number in range(12):
            kind = generator.choice(["project", "workspace", "update", "session"])
            name = f"{round_number}-{number}"
            args = {
                "project": ("project_create", {"name": name}),
                "workspace": ("workspace_create", {"project_id": top, "workspace_id": f"w{name}", "external_id": name}),
                "update": ("project_update", {"project_id": top, "description": name}),
                "session": ("session_start", {"project_id": top, "command": ["sleep", "1000"], "new_session": True}),
            }[kind]
            calls[number] = (kind, name)
            server.request(number, "tools/call", {"name": args[0], "arguments": args[1]})
        # After a few answers, and somewhere within the next call.
        lines = [server.queue.get(timeout=30) for _ in range(generator.randrange(6))]
        time.sleep(generator.random() * 0.02)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        latest = None
        while (line := lines.pop(0) if lines else server.queue.get(timeout=10)) is not None:
            if not line.endswith(b"\n"):
                continue
            message = json.loads(line)
            kind, name = calls[message["id"]]
            result = message["result"]["structuredContent"]
            if kind == "project":
                acknowledged["projects"].add(result["id"])
            elif kind == "workspace":
                acknowledged["workspaces"].add(f"w{name}")
            elif kind == "update":
                latest = message["id"]
            else:
                acknowledged["sessions"].add(result["session_id"])
        if latest is not None:
            # A later update may have been made and not been acknowledged.
            now = cordon("project", "get", top, "--json").json()["description"]
            assert now in [name for number, (kind, name) in calls.items() if kind == "update" and number >= latest]
        projects = whole(box, cordon)
        assert acknowledged["projects"] <= {p["id"] for p in projects}
        workspaces = {w["id"] for w in cordon("workspace", "list", top, "--json").json()["workspaces"]}
        assert acknowledged["workspaces"] <= workspaces
        for name in workspaces:
            if name.startswith("w"):
                assert (box.state / "projects" / top / "workspaces" / name / "AGENTS.md").read_text() == "rules"
        active = {s["session_id"] for s in cordon("session", "list", top, "--status", "active", "--json").json()["sessions"]}
        assert acknowledged["sessions"] <= active
        for session in active:
            cordon("session", "stop", session, "--grace", "0")
        acknowledged["sessions"] = set()
    assert acknowledged["projects"] and acknowledged["workspaces"], "no server lived long enough to be asked anything"
    quiet(box, cordon)


@pytest.mark.limit(600)
@pytest.mark.parametrize("victim", ["starter", "supervisor", "both"])
def test_starts_killed_at_random_instants_leave_nothing(box, cordon, leftovers, victim):
    generator = random.Random(victim)
    project = cordon("project", "create", "p", "--isolation", "--protect", "missing", "--max-sessions", "100", "--json").json()["id"]
    outcomes = set()
    began = time.monotonic()
    for _ in range(3):
        assert cordon("session", "start", project, "--detach", "--new-session", "--", "true").returncode == 0
    usual = (time.monotonic() - began) / 3  # how long a start takes on this machine, now
    for _ in range(ROUNDS):
        process = cordon.start("session", "start", project, "--detach", "--json", "--new-session", "--", "sleep", "1000")
        time.sleep(generator.random() * usual * 1.2)
        if victim in ("starter", "both"):
            process.kill()
        if victim in ("supervisor", "both"):
            for pid in descendants():
                if b"supervise" in command_bytes(pid) or (victim == "both" and b"session\0start" in command_bytes(pid)):
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
        out, _ = process.communicate(timeout=30)
        answer = json.loads(out) if out.endswith(b"\n") else None
        sessions = [s for s in cordon("session", "list", project, "--json").json()["sessions"] if s["command"] != ["true"]]
        outcomes |= {session["state"] for session in sessions}
        if answer and victim == "starter":
            assert answer["session_id"] in {s["session_id"] for s in sessions if s["status"] == "active"}
        for session in sessions:
            assert session["status"] == "active" or session["state"] in ("lost", "refused", "cancelled"), session
            cordon("session", "stop", session["session_id"], "--grace", "0")
    whole(box, cordon)
    quiet(box, cordon)
    leftovers.assert_none()
    assert outcomes, "no start came far enough to leave anything"
    # And everything works as before.
    done = cordon("session", "start", project, "--new-session", "--", "echo", "fine")
    assert (done.returncode, done.stdout) == (0, "fine\n")
    assert cordon("project", "delete", project).returncode == 0
