#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A state directory that an older version made: how it was made, and how a test gets it.

    tests/state_before.py EXECUTABLE >tests/cases/state-before.json

runs an older cordon once for each kind of state: a run, a session, a loop with its crew, two views, a workflow, a token and an approval. The file
has the tree below CORDON_HOME as {path: [type and mode, text]}, without the audit log, whose chain nobody can move; @BOX@ is where it was.
"""
import calendar
import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
FILE = HERE / "cases/state-before.json"
BOX = "@BOX@"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
LEFT_OUT = ("state/audit", "state/hands", "state/spare-run")
AGENT = """#!/bin/sh
token=$(sed -n 's/^\\[workflow_result\\]{"token": "\\([0-9a-f]*\\)".*/\\1/p' | tail -n 1)
printf '[workflow_result]{"token":"%s","outputs":{}}[/workflow_result]\\n' "$token"
"""
MEETING = [
    {"method": "initialize", "id": 1, "params": {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "fixture", "version": "1"}}},
    {"method": "notifications/initialized"},
    {"method": "tools/call", "id": 2, "params": {"name": "project_delete"}},
]


def pack(home, box):
    tree = {}
    for path in sorted(home.rglob("*")):
        name, st = str(path.relative_to(home)), path.lstat()
        if name.startswith(LEFT_OUT) or stat.S_ISSOCK(st.st_mode):
            continue
        text = path.read_text() if stat.S_ISREG(st.st_mode) else os.readlink(path) if stat.S_ISLNK(st.st_mode) else ""
        tree[name.replace(str(box), BOX)] = [oct(st.st_mode), text.replace(str(box), BOX)]
    return tree


def later(text, by):
    """The same text with all times in it moved by so many seconds."""
    def moved(found):
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds(found[0]) + by))

    return re.sub(r'(?<="sec": )\d{10}', lambda found: str(int(found[0]) + by), TIME.sub(moved, text))


def seconds(text):
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))


def unpack(home, box, days=0):
    """Puts the tree into a home, as if it had been made that many days ago."""
    made, tree = [], json.loads(FILE.read_text())
    then = int(time.time()) - days * 86400
    by = then - max(seconds(found) for name, (_, text) in tree.items() if name.endswith("/journal") for found in TIME.findall(text))
    for name, (mode, text) in tree.items():
        text = later(text, by)
        path, mode = home / name, int(mode, 8)
        if stat.S_ISDIR(mode):
            path.mkdir()
        elif stat.S_ISFIFO(mode):
            os.mkfifo(path)
        elif stat.S_ISLNK(mode):
            path.symlink_to(text.replace(BOX, str(box)))
            continue
        else:
            path.write_text(text.replace(BOX, str(box)))
        path.chmod(stat.S_IMODE(mode))
        made.append(path)
    for path in reversed(made):
        os.utime(path, (then, then))


def make(cordon, box):
    home = box / "state"
    environ = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(box / "home"), "CORDON_HOME": str(home), "LANG": "C.UTF-8"}

    def run(*args, cwd=box / "repo", text=None, codes=(0,)):
        done = subprocess.run([cordon, *args], cwd=cwd, env=environ, input=text, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode in codes, (args, done)
        return done.stdout

    for name in ("home", "state", "repo", "ws/desk", "bin"):
        (box / name).mkdir(parents=True)
    for name in ("state", "ws/desk"):
        (box / name).chmod(0o700)
    (box / "repo/file").write_text("one\n")
    run("run", "--", "true")
    run("run", "--cow", "--", "sh", "-c", "echo two >file")
    run("changes", "apply", "latest")
    run("run", "--cow", "--", "sh", "-c", "echo three >file")
    (box / "repo/prd.json").write_text(json.dumps({"project": "shop", "userStories": [{"id": "ONE", "title": "One"}]}))
    run("loop", "--", "sh", "-c", "cat >/dev/null; echo done >one")
    project = json.loads(run("project", "create", "shop", "--json", "--", "true"))["id"]
    session = json.loads(run("session", "start", "shop", "--json", "--message", "hello"))["session_id"]
    run("session", "wait", session)
    run("token", "create", "--name", "laptop")
    meeting = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in MEETING)
    meeting = meeting.replace('"name": "project_delete"', f'"name": "project_delete", "arguments": {{"project_id": "{project}"}}')
    run("mcp", text=meeting)
    agent = box / "bin/agent"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    settings = {
        "workspaces_path": str(box / "ws"), "orchestrators": {"desk": {"shared_access": []}},
        "defaults": {"providers": {"scripted": {"command": [str(agent)]}}},
    }
    workflow = {"id": "flow", "version": 1, "inputs": [], "steps": [{"id": "a", "type": "agent_task", "agent": "worker", "prompt": "do it"}]}
    file = {
        "id": "desk", "selector_agent": "worker", "default_workflow": "flow", "selection_max_retries": 1,
        "agents": {"worker": {"provider": "scripted", "model": "m", "can_orchestrate_workflows": True}}, "workflows": [workflow],
    }
    (home / "config.yaml").write_text(json.dumps(settings))
    (home / "config.yaml").chmod(0o600)
    (box / "ws/desk/orchestrator.yaml").write_text(json.dumps(file))
    run("workflow", "run", "desk", "flow", "--wait", "--json")
    return pack(home, box)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="cordon-state-") as place:
        json.dump(make(sys.argv[1], pathlib.Path(place)), sys.stdout, indent=1)
        print()
