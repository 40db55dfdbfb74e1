# SPDX-License-Identifier: Apache-2.0
"""What a person can do on the page and test_browser.py does not: in a real browser, with script by keyboard alone, and without script by clicks.
The proof is taken from the host."""
import json
import os
import signal

import pytest

from flows import Desk, human, step
from loops import READ, Loop, story
from support import callers, poll
from views import View

from .test_approvals_page import Client

WAIT = "while ! test -e shared/docs/go; do sleep 0.05; done"


# Both ways and both callers are tried, and not each pair: a page is the same whoever runs the server.
@pytest.fixture(params=["script", "plain"] if len(callers()) == 1 else ["each"])
def person(tab, who, request):
    return tab(javaScriptEnabled=request.param == "script" or (request.param == "each" and who.name == "user"))


def access(cordon):
    return cordon("access", "--json").json()["access"]


def test_a_session_is_allowed_a_host_and_a_path(sessions, person, box, cordon):
    sessions.create("--isolation", "--net", "a.example.com")
    data = box.mkdir("data")
    box.write("data/file", "text of the data\n")
    session = sessions.shell()

    def hosts():
        return cordon("session", "net", session, "--json").stdout

    person.goto(f"/session/{session}")
    person.use("link", "Allow it a host or a path")
    person.write("Host, as example.org", "b.example.com:443")
    person.choose("For how long", "one run of this session")
    person.use("button", "Allow it")
    person.see("The session has it now.")
    assert "b.example.com:443" in hosts()
    person.goto(f"/session/{session}/allow")
    person.write("Or a path of this machine", str(data))
    person.choose("Access to the path", "read and write")
    person.choose("For how long", "this session, also when it is resumed")
    person.use("button", "Allow it")
    person.see("It is allowed from the next start of the session on")
    assert "No such file" in sessions.say(session, f"cat {data}/file")
    sessions.ask("session", "stop", session)
    assert cordon("session", "wait", session).returncode == 143 and sessions.start()["session_id"] == session
    assert "text of the data" in sessions.say(session, f"cat {data}/file; echo changed >{data}/file") and (data / "file").read_text() == "changed\n"


def test_questions_are_approved_once_for_the_session_and_in_the_policy(sessions, person, box, cordon):
    project = sessions.create("--isolation", "--net", "a.example.com")
    session = sessions.start(command=["sleep", "600"])["session_id"]
    places = {name: box.mkdir(name) for name in ("mine", "ours")}
    client = Client(cordon)

    def answer(label, **wanted):
        client.call("grant_request", ("--session", session), reason="to work", **wanted)
        (waits,) = client.waiting()
        person.goto("/approvals")
        person.use("radio", label)
        person.use("button", "Answer")
        person.see("Approved")
        assert client.state(waits["id"])["answered_on"] == "page" and not client.waiting()
        return sessions.state(session, "record.json").read_text(), cordon("project", "get", project, "--json").stdout

    record, settings = answer("Approve for one run", host="b.example.com:443")
    assert "b.example.com:443" in cordon("session", "net", session, "--json").stdout and "b.example.com" not in settings
    record, settings = answer("Approve for this session", path=str(places["mine"]))
    assert str(places["mine"]) in record and str(places["mine"]) not in settings
    record, settings = answer("Approve, and write it into the settings", path=str(places["ours"]))
    assert str(places["ours"]) in settings


def test_one_file_of_a_view_is_applied_and_the_rest_discarded(person, box, cordon):
    tree = box.mkdir("root")
    view = View(box, tree).work("echo one >one; echo two >two")
    person.goto("/changes")
    person.use("link", view.id[:8])
    person.use("checkbox", "Choose one")
    person.use("button", "Apply the chosen files and hunks")
    person.see("The changes are in the host's tree")
    assert (tree / "one").read_text() == "one\n" and not (tree / "two").exists()
    person.goto(f"/changes/{view.id}")
    assert "+two" in person.download("link", "All of it as a patch for git")["text"]
    person.use("link", "Discard these changes")
    person.use("button", "Discard these changes")
    person.see("The view and its changes are gone.")
    assert not (box.state / "state" / "views" / view.id).exists() and sorted(os.listdir(tree)) == ["one"]


def test_an_agents_job_and_a_whole_run_are_cancelled(person, box, cordon):
    agents = [{"name": name, "scope": ["src/**"]} for name in ("a", "b")]
    repo = box.repo(files={"src/x": "", "agents.json": json.dumps({"agents": agents})})
    process = cordon.start("execute", "--agents", "a,b", "--command", "echo begun; sleep 600", cwd=repo)
    home = box.state / "state" / "crew"
    run = poll(lambda: home.exists() and [one.name for one in home.iterdir() if not one.name.startswith(".")], what="the run")[0]

    def state(job):
        path = home / run / str(job) / "result.json"
        return path.exists() and json.loads(path.read_text())["state"]

    poll(lambda: all((home / run / job / "events").exists() and "begun" in (home / run / job / "events").read_text() for job in "01"), what="the agents")
    person.goto("/runs")
    person.use("link", run[:8])
    person.use("link", "b", exact=True)
    person.see("begun")
    person.use("checkbox", "Yes, ")
    person.use("button", "Cancel this job")
    person.see("What was cancelled ends now.")
    assert poll(lambda: state(1), what="the end") == "cancelled" and not state(0)
    person.goto(f"/run/{run}")
    person.use("checkbox", "Yes, ")
    person.use("button", "Cancel all jobs")
    person.see("What was cancelled ends now.")
    assert poll(lambda: state(0), what="the end") == "cancelled"
    process.wait(60)


def test_a_loop_is_stopped(person, box, cordon):
    box.mkdir("repo/lib")
    loop = Loop(cordon, box, box.path / "repo")
    loop.prd(story("SLOW"), story("LATER", dependencies=["SLOW"]))
    process = cordon.start("loop", "--", "sh", "-c", READ + "echo begun; sleep 600", cwd=loop.top)
    poll(lambda: any("begun" in path.read_text() for path in (box.state / "state/loops").glob("*/logs/*/combined.log")), 60, "the story")
    person.goto("/loop")
    person.use("link", next((box.state / "state/loops").glob("*/journal")).parent.name[:8])
    person.use("button", "Stop this loop")
    person.see("The loop ends now")
    assert process.wait(60) == 143 and loop.passed() == []


def test_a_step_is_rejected_and_the_run_canceled(person, box, cordon):
    desk = Desk(box, cordon, grants=("docs",), areas=("docs",))
    desk.define(step("plan", "echo planned", next="check"), human("check", on_approve="build", on_reject="plan"), step("build", "echo built"))
    run = desk.begin()
    poll(lambda: desk.status(run)["state"] == "waiting", 60, "the question")
    person.goto("/workflow")
    person.use("link", run)
    person.write("Note for later steps", "not yet")
    person.use("button", "Reject this step")
    person.see("The step is rejected")
    poll(lambda: (now := desk.status(run)) and now["state"] == "waiting" and now["currentAttempt"] == 1, 60, "the question again")
    assert {one["id"]: one["attempts"] for one in desk.status(run)["steps"]}["plan"] == 2
    person.goto(f"/workflow/{run}")
    person.see("not yet")
    person.use("checkbox", "End it for good")
    person.use("button", "Cancel this run")
    person.see("The run is canceled")
    poll(lambda: (now := desk.status(run)) and now["state"] == "canceled" and not now["engine"], 60, "the end")


def test_a_killed_run_is_resumed(person, box, cordon):
    desk = Desk(box, cordon, grants=("docs",), areas=("docs",))
    desk.define(step("build", WAIT))
    run = desk.begin()
    engine = poll(lambda: (now := desk.status(run)) and now["currentStepId"] == "build" and now["currentAttempt"] == 1 and now["engine"], 60, "the step")
    os.kill(engine, signal.SIGKILL)
    poll(lambda: not desk.status(run)["engine"], 60, "its end")
    person.goto(f"/workflow/{run}")
    person.use("button", "Resume this run")
    person.see("The run goes on.")
    (desk.areas["docs"] / "go").write_text("")
    poll(lambda: desk.status(run)["state"] == "succeeded", 60, "the end")


def test_access_is_granted_revoked_and_explained(person, box, cordon):
    Desk(box, cordon, grants=("docs",))
    person.goto("/access")
    person.use("link", "Change specs of desk")
    person.use("button", "Let it read the area")
    person.see("The access is granted")
    assert access(cordon)["desk"]["specs"] == "ro"
    person.goto("/access/change?orchestrator=desk&area=specs")
    person.use("button", "Let it write as well")
    person.see("The access is granted")
    assert access(cordon)["desk"]["specs"] == "rw"
    person.goto("/access/change?orchestrator=desk&area=docs")
    person.use("radio", "goes on until it ends")
    person.use("button", "Revoke docs from desk")
    person.see("The access is revoked")
    assert access(cordon)["desk"] == {"docs": "none", "specs": "rw"}
    # A policy: its tree, a search in it, and why.
    agents = {"agents": [{"name": "qa", "scope": {"read": ["src/**"], "write": ["tests/**"]}, "net": ["a.example.com"]}]}
    repo = box.repo(files={"src/deep/a.ts": "", "tests/t.py": "", "agents.json": json.dumps(agents)})
    person.goto("/access/policy")
    person.write("Repository", str(repo))
    person.write("Agent", "qa")
    person.element(("getByLabel", "Agent"), ("first",), call="press", args=["Enter"])
    person.see("tests/")
    person.write("Names with", "A.TS")
    person.use("button", "Search")
    person.see("src/deep/a.ts")
    for asked, decision in (("src/deep/a.ts", "deny"), ("tests/new", "allow"), ("a.example.com:443", "allow"), ("b.example.com:443", "deny")):
        person.write("Path, or host and port", asked)
        person.use("button", "Ask")
        answer = ("locator", "#answer")  # of this question, which comes in the place of the one before
        said = poll(lambda: (text := person.element(answer, call="textContent")) and asked in text and text, 20, f"the answer about {asked}")
        assert said.strip().startswith(decision), said


def test_the_audit_log_is_seen_to_be_whole_filtered_and_exported(person, box, cordon):
    repo = box.repo(files={"lib/a": "", "docs/b": ""})
    for folder in ("lib", "docs"):
        assert cordon("run", "--root", str(repo), "--workspace", folder, "--workspace-mode", "strict", "--", "sh", "-c", "cat lib/a docs/b || true").returncode == 0
    person.goto("/audit")
    person.see("each follows from the one before it")
    person.write("Path or host", "docs/b")
    person.choose("Decision", "deny")
    person.use("button", "Show", exact=True)
    person.see("docs/b")
    given = person.download("link", "Export what the filter selects")
    want = [json.loads(line) for line in cordon("audit", "--json", "--path", "docs/b", "--decision", "deny").stdout.splitlines()]
    assert given["name"] == "cordon-audit.jsonl" and [json.loads(line) for line in given["text"].splitlines()] == want[::-1] and len(want) == 1
