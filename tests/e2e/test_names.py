# SPDX-License-Identifier: Apache-2.0
"""Names and first characters, wherever a command asks for an id."""
import json
import os
import uuid

import pytest


@pytest.fixture
def store(sessions):
    """Projects `shop`, `api` and two of the name `twin`; `shop` is the one that sessions start in."""
    sessions.of = {name: sessions.ask("project", "create", name, "--no-git")["id"] for name in ("api", "twin")}
    sessions.twin = sessions.ask("project", "create", "twin", "--no-git")["id"]
    sessions.project = sessions.ask("project", "create", "shop", "--no-git", "--isolation")
    return sessions


def copies(box, store, kind, beginning):
    """Two more records of the kind whose ids begin so."""
    made = []
    for _ in range(2):
        new = beginning + str(uuid.uuid4())[len(beginning):]
        source = store.project["id"] if kind == "projects" else store.session
        top = box.state / "state" / kind
        box.run("cp", "-a", str(top / source), str(top / new))
        for record in (top / new).glob("*.json"):
            box.write(record, record.read_text().replace(source, new))
        made.append(new)
    return sorted(made)


def test_a_project_is_found_by_its_name_and_by_first_characters(store):
    project = store.project["id"]
    for said in ("shop", project, project[:8], project[:13].upper()):
        assert store.ask("project", "get", said)["id"] == project
        assert store.ask("workspace", "list", said)["workspaces"][0]["project_id"] == project
    assert store.ask("project", "update", "shop", "--description", "sells")["id"] == project
    assert store.ask("workspace", "create", "shop", "--id", "w1")["project_id"] == project
    started = store.ask("session", "start", "shop", "--detach", "--workspace", "w1", "--", "true")
    assert store.get(started["session_id"])["project_id"] == project
    assert store.ask("session", "list", "shop", "--workspace", "w1")["total"] == 1


def test_what_nobody_has_is_not_found_and_the_nearest_name_is_said(store):
    error = store.refused("project", "get", "shpo")
    assert error["kind"] == "not_found" and "shpo" in error["message"] and error["hint"] == "did you mean shop?"
    assert "project list" in store.refused("project", "get", "entirely different")["hint"]
    assert store.refused("session", "get", "00000000")["kind"] == "not_found"
    # Too few characters of an id are no beginning.
    assert store.refused("project", "get", store.project["id"][:3])["kind"] == "not_found"


def test_an_ambiguous_name_is_answered_with_the_candidates(box, store):
    error = store.refused("project", "get", "twin", status=2)
    assert error["kind"] == "usage" and store.twin in error["message"] and store.of["twin"] in error["message"]
    assert store.project["id"] not in error["message"]
    same = copies(box, store, "projects", store.project["id"][:6])
    error = store.refused("project", "get", store.project["id"][:6], status=2)
    assert all(f"{id} (shop)" in error["message"] for id in [*same, store.project["id"]])
    assert "3 projects" in error["message"]


def test_a_name_comes_before_first_characters(box, store):
    beginning = store.project["id"][:6]
    named = store.ask("project", "create", beginning, "--no-git")["id"]
    assert store.ask("project", "get", beginning)["id"] == named


def test_sessions_are_found_by_first_characters(box, store):
    store.session = store.ask("session", "start", "shop", "--detach", "--", "sh", "-c", "echo hello")["session_id"]
    beginning = store.session[:8]
    assert store.cordon("session", "wait", beginning).returncode == 0
    assert store.ask("session", "get", beginning)["session_id"] == store.session
    assert store.cordon("session", "output", beginning.upper()).stdout == "hello\n"
    copies(box, store, "sessions", beginning)
    error = store.refused("session", "get", beginning, status=2)
    assert error["kind"] == "usage" and f"{store.session} (completed)" in error["message"] and "3 sessions" in error["message"]
    assert store.refused("session", "exec", beginning, "--", "true", status=2)["kind"] == "usage"


def test_workspaces_are_found_by_external_id_and_first_characters(store):
    made = store.ask("workspace", "create", "shop", "--external-id", "U123", "--source", "slack")["id"]
    assert store.ask("workspace", "get", "shop", "U123")["id"] == made
    assert store.ask("workspace", "get", "shop", made[:8])["id"] == made
    other = store.ask("workspace", "create", "shop", "--external-id", "U123", "--source", "web")["id"]
    error = store.refused("workspace", "get", "shop", "U123", status=2)
    assert f"{made} (slack)" in error["message"] + " " and f"{other} (web)" in error["message"]
    assert store.refused("workspace", "get", "shop", "nobody")["kind"] == "not_found"
    # The workspace that is to be made has the id that was said, though another one's begins with it.
    started = store.ask("session", "start", "shop", "--detach", "--workspace", made[:8], "--create-workspace", "--", "true")
    assert started["workspace_id"] == made[:8] and started["workspace_created"]


def test_a_deletion_never_takes_another_thing_for_the_one_that_is_gone(store):
    """An id that somebody chose is never an abbreviation, and a deletion needs eight characters of one that nobody did."""
    for name in ("job-1", "job-10"):
        store.ask("workspace", "create", "shop", "--id", name)
    assert store.ask("workspace", "delete", "shop", "job-1")["deleted"] is True
    assert store.ask("workspace", "delete", "shop", "job-1")["deleted"] is False
    assert store.ask("workspace", "get", "shop", "job-10")["id"] == "job-10"
    made = store.ask("workspace", "create", "shop")["id"]
    assert store.ask("workspace", "delete", "shop", made[:6])["deleted"] is False
    assert store.ask("workspace", "delete", "shop", made[:8])["deleted"] is True
    assert store.refused("project", "delete", store.of["api"][:6])["kind"] == "not_found"
    assert store.ask("project", "delete", "api") == {"project_id": store.of["api"], "deleted": True}
    assert store.refused("project", "delete", "api")["kind"] == "not_found"
    assert store.ask("project", "delete", store.of["api"])["deleted"] is False
    assert store.refused("project", "delete", "twin", status=2)["kind"] == "usage"


def test_one_damaged_record_hides_no_other_project(box, store):
    box.write(box.state / "state" / "projects" / store.of["api"] / "project.json", "{")
    assert store.ask("project", "get", "shop")["id"] == store.project["id"]


def test_first_characters_that_several_runs_have_are_answered_with_the_runs(box, cordon):
    repo = box.repo(files={"a": ""})
    for _ in range(2):
        assert cordon("run", "--", "true", cwd=repo).returncode == 0
    runs = list({json.loads(line)["session_id"]: None for line in cordon("audit", "--json").stdout.splitlines()})
    assert len(runs) == 2
    assert f" {runs[0][:8]} " in cordon("audit", "--run", runs[0][:8]).stdout
    # The log is ours to write in a test: two runs with ids that begin alike.
    log = max((box.state / "state" / "audit").glob("*.jsonl"), key=os.path.getmtime)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    alike = {run: "abcdef00" + run[8:] for run in runs}
    box.write(log, "".join(json.dumps({**line, "session_id": alike.get(line.get("session_id"), line.get("session_id"))}) + "\n" for line in lines))
    done = cordon("audit", "--run", "abcdef")
    assert done.returncode == 2 and all(run in done.stderr for run in alike.values()) and done.stdout == ""
