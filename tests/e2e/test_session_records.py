# SPDX-License-Identifier: Apache-2.0
"""What the record of a session keeps on disk, and that answers show all of it; a record that an older version wrote."""
import json
import pathlib

import pytest

OLDER = pathlib.Path(__file__).parents[1] / "cases/session-record.json"
HIDDEN = {"schema", "profile", "shares", "home", "env", "env_pass", "own_command", "context", "allowances", "pid", "protected_table"}
RECORD_MAX = 4096


def size(sessions, session):
    return sessions.state(session, "record.json").stat().st_size


@pytest.mark.parametrize("options", [(), ("--isolation",)], ids=["shared", "isolated"])
def test_the_record_of_an_ordinary_session_is_small_and_its_answer_complete(sessions, box, options):
    sessions.project = sessions.ask("project", "create", "p", *options, "--", "sleep", "1000")
    workspace = sessions.top("workspaces", sessions.project["default_workspace_id"])
    box.write(workspace / ".envrc", "mine\n")
    box.write(workspace / ".git/hooks/pre-commit", "exit 0\n")
    session = sessions.start("--message", "hello")["session_id"]
    assert size(sessions, session) <= RECORD_MAX
    running = sessions.get(session)
    sessions.ask("session", "stop", session, "--grace", "100ms")
    assert size(sessions, session) <= RECORD_MAX
    ended = sessions.get(session)
    listed = sessions.ask("session", "list", sessions.project["id"])["sessions"]
    assert listed == [ended] and ended["protected"] == running["protected"] and not ended["notes"], ended
    prefix = "" if options else f"workspaces/{workspace.name}/"
    states = {entry["path"]: entry["state"] for entry in ended["protected"]}
    assert len(states) == len(ended["protected"]) and len(states) > (140 if options else 280)
    assert states[prefix + ".envrc"] == states[prefix + ".git/config"] == "present"
    assert states[prefix + ".mcp.json"] == states[prefix + ".vscode/tasks.json"] == "absent"
    if options:
        # A run in the same tree holds the same, in the same order.
        plan = sessions.cordon("run", "--dry-run", "--json", "--root", str(workspace), "--", "true").json()
        assert ended["protected"] == plan["protected"]


def test_the_record_is_small_beside_many_workspaces(sessions):
    """Names that are missing in the workspaces of others are held as well."""
    project = sessions.create()
    for _ in range(12):
        sessions.ask("workspace", "create", project)
    session = sessions.start(command=["sleep", "1000"])["session_id"]
    protected = {entry["path"] for entry in sessions.get(session)["protected"]}
    assert sum(path.endswith("/.vscode/tasks.json") for path in protected) > 8 and size(sessions, session) <= RECORD_MAX


def test_what_was_asked_for_stays_in_the_record(sessions, box):
    sessions.create("--isolation", "--protect", "AGENTS.md", "--protect", "NEVER.md")
    box.write(sessions.top("AGENTS.md"), "rules\n")
    session = sessions.start(command=["true"])["session_id"]
    sessions.cordon("session", "wait", session)
    kept = [item for item in json.loads(sessions.state(session, "record.json").read_text())["protected"] if isinstance(item, dict)]
    assert [(item["path"], item["state"], item["where"]) for item in kept] == [("AGENTS.md", "present", "protected_paths"), ("NEVER.md", "absent", "protected_paths")]
    assert [entry for entry in sessions.get(session)["protected"] if not entry["by_default"]] == kept


def test_a_list_of_another_version_is_said_to_be_incomplete_and_kept(sessions, box):
    sessions.create("--isolation")
    session = sessions.start(command=["true"])["session_id"]
    sessions.cordon("session", "wait", session)
    whole = sessions.get(session)
    place = sessions.state(session, "record.json")
    record = json.loads(place.read_text())
    box.write(place, json.dumps({**record, "protected_table": "0" * 16, "status": "active", "state": "running"}))
    # The process is gone, so the record is written once more.
    lost = sessions.get(session)
    assert lost["state"] == "lost" and len(lost["protected"]) < 20 < len(whole["protected"])
    missing = len(whole["protected"]) - len(lost["protected"])
    assert lost["notes"] == [f"{missing} missing names that are protected by default are not listed: another version of cordon started the session"]
    again = json.loads(place.read_text())
    assert again["protected"] == record["protected"] and again["notes"] == []
    box.write(place, json.dumps({**again, "protected_table": record["protected_table"]}))
    assert sessions.get(session)["protected"] == whole["protected"]


def older(sessions, session):
    """The record that an older version would have written for this session."""
    now = json.loads(sessions.state(session, "record.json").read_text())
    ids = {key: now[key] for key in ("session_id", "project_id", "workspace_id", "created_at", "pid")}
    return {**json.loads(OLDER.read_text()), **ids}


def test_a_record_of_an_older_version_is_read_listed_and_stopped(sessions, box):
    project = sessions.create("--isolation", command=["sleep", "1000"])
    running = sessions.start()["session_id"]
    ended = sessions.start("--new-session", command=["true"])["session_id"]
    sessions.cordon("session", "wait", ended)
    records = {session: older(sessions, session) for session in (running, ended)}
    for session, record in records.items():
        assert len(json.dumps(record)) > 20000
        box.write(sessions.state(session, "record.json"), json.dumps(record, indent=2))
    shown = {session: {key: value for key, value in record.items() if key not in HIDDEN} for session, record in records.items()}
    assert sessions.get(running) == shown[running]
    # The other one says that it runs and has no process.
    listed = {entry["session_id"]: entry for entry in sessions.ask("session", "list", project)["sessions"]}
    assert listed[running] == shown[running] and listed[ended]["state"] == "lost"
    assert listed[ended]["protected"] == shown[ended]["protected"] == sessions.get(ended)["protected"]
    assert running in sessions.cordon("session", "list", project).stdout
    stopped = sessions.ask("session", "stop", running, "--grace", "100ms")
    assert stopped["state"] == "cancelled" and size(sessions, running) <= RECORD_MAX
    assert sessions.ask("session", "stop", ended)["state"] == "lost"
    # It is resumed as before, and its record is small from then on.
    assert sessions.start("--message", "more")["session_id"] in (running, ended)
    sessions.ask("session", "stop", running, "--grace", "100ms")
    sessions.ask("session", "stop", ended, "--grace", "100ms")
    assert sessions.ask("session", "cleanup", "--max-age-hours", "0")["removed"] == 2
