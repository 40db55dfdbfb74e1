# SPDX-License-Identifier: Apache-2.0
"""The question that a person reads is the deed: all that would widen is in it, nothing of it is cut, and the approval dies with the settings
that it was asked about. The client can't ask, so that only the terminal approves."""
import json
import re

from flows import Desk, human, step
from serving import PATIENT
from support import poll
from terminals import Terminal

from .test_mcp_unapproved import Between, approve, call, kind, waiting

WIDER = {
    "protected_paths": ["kept"], "default_protection": False, "cow": False, "git": "read", "best_effort": True, "env_pass": ["ONE", "TWO", "THREE"],
    "net": ["a.example.com", "b.example.com:8443", "c.example.com:22/tcp"], "limits": {"pids": 900, "timeout_seconds": 600, "memory_bytes": 2000000000, "max_cost_usd": 7.5, "max_recursion_depth": 9}}
NARROW = {"name": "p", "init_git": False, "workspace_isolation": True, "protected_paths": ["kept", "gone one", "gone \"two\""], "net": [], "cow": True, "git": "none",
          "limits": {"pids": 100, "timeout_seconds": 60, "memory_bytes": 1000000000, "max_cost_usd": 2.5, "max_recursion_depth": 2}}


def make(server, **more):
    answer = call(server, "project_create", **NARROW | more)
    return answer["result"]["structuredContent"]["id"]


def settings(cordon, project):
    return cordon("project", "get", project, "--json").json()


def test_every_item_that_would_widen_is_in_the_question(cordon, raw, box):
    server = raw()
    project = make(server)
    shares = [str(box.mkdir("one")), f"{box.mkdir('two')}:/mnt/two:ro"]
    answer = call(server, "project_update", project_id=project, shares=shares, home=str(box.mkdir("home")), **WIDER)
    assert kind(answer) == "asked", answer
    (one,) = waiting(cordon)
    for part in ('paths that are protected now: "gone one", "gone \\"two\\""', "what the host executes later", '"a.example.com:443", "b.example.com:8443", "c.example.com:22/tcp"',
                 "the workspace itself", "read instead of none", "although a protection is missing", '"ONE", "TWO", "THREE"', "pids from 100 to 900", "timeout_seconds from 60 to 600",
                 "memory_bytes from 1000000000 to 2000000000", "max_cost_usd from 2.5 to 7.5", "max_recursion_depth from 2 to 9", f'one home, "{box.path}/home"',
                 f'read and change "{box.path}/one" of the host', f'read "{box.path}/two" of the host at "/mnt/two"'):
        assert part in one["question"] and part in one["widens"], part
    assert '"kept"' not in one["question"]
    assert re.search(r"The settings before have the SHA-256 [0-9a-f]{16}\.$", one["question"])
    # It is the deed: approved, all of it is done.
    approve(cordon)
    assert kind(call(server, "project_update", project_id=project, shares=shares, home=str(box.path / "home"), **WIDER)) == "done"
    assert settings(cordon, project)["env_pass"] == WIDER["env_pass"] and settings(cordon, project)["shares"] == shares


def test_a_change_that_adds_nothing_is_applied_without_a_question(cordon, raw, box):
    """The texts differ, and what they mean does not, or is less; beside each the change that is more."""
    server = raw()
    shared = str(box.mkdir("shared"))
    wide = {"protected_paths": ["kept/part", "kept", "other/"], "env_pass": ["ONE", "TWO"], "net": ["*.example.com", "b.example.org:8443"], "shares": [shared]}
    answer = call(server, "project_create", name="q", init_git=False, **wide)
    assert kind(answer) == "asked", answer
    approve(cordon)
    project = call(server, "project_create", name="q", init_git=False, **wide)["result"]["structuredContent"]["id"]
    same = [{"protected_paths": ["kept", "other"]}, {"env_pass": ["TWO"]}, {"net": ["a.example.com", "b.example.org:8443"]}, {"shares": [f"{shared}:ro"]}]
    for change in same:
        assert kind(call(server, "project_update", project_id=project, **change)) == "done", change
    assert waiting(cordon) == []
    # A name in a share may be a link that an agent made: it is asked about. So is what a narrower list lost.
    for change, part in (({"protected_paths": ["kept/part", "other"]}, '"kept"'), ({"env_pass": ["ONE"]}, '"ONE"'), ({"net": ["*.example.com"]}, '"*.example.com:443" (as in a.example.com)'),
                         ({"shares": [f"{shared}/sub:ro"]}, f'read "{shared}/sub"')):
        box.mkdir("shared/sub")
        assert kind(call(server, "project_update", project_id=project, **change)) == "asked", change
        assert any(part in one["widens"] for one in waiting(cordon)), (part, waiting(cordon))


def test_what_a_client_wrote_can_not_pass_for_our_words(cordon, raw):
    server = raw()
    lie = 'x"? agents would get nothing. The settings before have the SHA-256 0. "\u2060\u00ad\u3164\ufe0f\u206a\u2800'
    assert kind(call(server, "project_create", name=lie, init_git=False, env_pass=["SECRET"])) == "asked"
    (one,) = waiting(cordon)
    shown = r'Create project "x\"? agents would get nothing. The settings before have the SHA-256 0. \"\u{2060}\u{ad}\u{3164}\u{fe0f}\u{206a}\u{2800}"? agents would get more'
    assert one["question"].startswith(shown)
    for output in (cordon("approvals", "list"), cordon("approvals", "show", one["id"])):
        assert shown in output.stdout, "not escaped a second time, which would close the quotation"


def test_an_approval_dies_with_the_settings_that_it_was_asked_about(cordon, raw, box):
    server = raw()
    project = make(server)
    wider = {"project_id": project, "env_pass": ["SECRET"]}
    assert kind(call(server, "project_update", **wider)) == "asked"
    first = approve(cordon)
    # What changes makes nothing wider, and the deed would be the same; the settings are others all the same.
    assert cordon("project", "update", project, "--description", "other").returncode == 0
    assert kind(call(server, "project_update", **wider)) == "asked" and settings(cordon, project)["env_pass"] == []
    (again,) = waiting(cordon)
    assert again["question"] != first and again["question"].split(" The settings before")[0] == first.split(" The settings before")[0]
    # In the last moment, too: under the lock with which it is done.
    assert cordon("approvals", "deny", again["id"]).returncode == 0

    def change():
        assert cordon("project", "update", project, "--description", "another").returncode == 0

    assert kind(Between(server, cordon, box)(change, "project_update", **wider | {"env_pass": ["OTHER"]})) == "conflict"
    assert settings(cordon, project)["env_pass"] == []


def test_an_approval_dies_with_the_settings_file_that_it_was_asked_about(cordon, raw, box):
    server = raw()
    docs = box.mkdir("docs")
    assert cordon("orchestrator", "add", "o").returncode == 0 and cordon("shared", "add", "docs", str(docs), "--description", "d").returncode == 0
    grant = {"orchestrator_id": "o", "key": "docs", "read_only": True}
    assert kind(call(server, "shared_grant", **grant)) == "asked"
    approve(cordon)
    assert cordon("orchestrator", "add", "p").returncode == 0
    assert kind(call(server, "shared_grant", **grant)) == "asked"
    (again,) = waiting(cordon)
    assert cordon("approvals", "deny", again["id"]).returncode == 0

    def change():
        assert cordon("orchestrator", "add", "q").returncode == 0

    assert kind(Between(server, cordon, box)(change, "shared_grant", **grant | {"read_only": False})) == "conflict"
    assert cordon("orchestrator", "show", "o", "--json").json()["shared_access"] == []


def test_approve_shows_the_whole_question_and_asks(cordon, raw, box):
    server = raw()
    lie = "x" + " " * 120 + "agents would get nothing at all"
    assert kind(call(server, "project_create", name=lie, init_git=False, env_pass=["SECRET", "LAST"])) == "asked"
    (one,) = waiting(cordon)
    refused = cordon("approvals", "approve", one["id"])
    assert refused.returncode == 2 and "--yes" in refused.stderr and waiting(cordon) == [one]
    assert cordon("approvals", "approve", "--yes", "latest").returncode == 2 and waiting(cordon) == [one]
    for verbs, end in ((["approve", one["id"][:8]], b"Approve this? [y/N] "), (["list"], b"")):
        tty = Terminal(box, cordon.path, "approvals", *verbs, cwd=box.path)
        if end:
            shown = tty.expect(end)
            tty.type(b"\n")
        else:
            tty.expect(b"waiting")
            shown = tty.expect(b"SHA-256")
        assert tty.process.wait(PATIENT) == (1 if end else 0)
        tty.close()
        lines = shown.decode().replace("\r", "").splitlines()[1:]
        assert all(line == "" or line.startswith("    ") for line in lines), lines
        assert all(len(line) <= 90 for line in lines) and '"SECRET", "LAST"' in "".join(lines).replace("    ", " ").replace("  ", " ")
    assert waiting(cordon) == [one]


def test_an_answer_names_the_step_and_is_refused_when_another_waits(cordon, box):
    desk = Desk(box, cordon)
    desk.define(human("draft", on_approve="production"), human("production", on_approve="ship", on_reject="draft"), step("ship", 'echo x > "$RUN/shipped"'))
    run = desk.begin()

    def waits(name, attempt=0):
        poll(lambda: (desk.status(run)["state"], desk.status(run)["currentStepId"], desk.status(run)["currentAttempt"]) == ("waiting", name, attempt), 60)

    waits("draft")
    bare = cordon("workflow", "approve", run)
    assert bare.returncode == 2 and "--step draft" in bare.stderr
    for wrong in ("production", "draft:1"):
        assert cordon("workflow", "approve", run, "--step", wrong).returncode == 1
    for wrong in ("draft:", "draft:x", "../x", "draft:-1"):
        assert cordon("workflow", "approve", run, "--step", wrong).returncode == 2
    assert cordon("workflow", "approve", run, "--step", "draft").returncode == 0
    waits("production")
    # The same command a second time, by a person who looked a moment ago.
    late = cordon("workflow", "approve", run, "--step", "draft")
    assert late.returncode == 1 and "now step production waits" in late.stderr
    assert cordon("workflow", "reject", run, "--step", "production").returncode == 0
    waits("draft", 1)
    assert cordon("workflow", "approve", run, "--step", "draft").returncode == 1, "that was for the first time"
    assert cordon("workflow", "approve", run, "--step", "draft:1").returncode == 0
    waits("production", 1)
    for typed, status in ((b"n\n", 1), (b"y\n", 0)):
        tty = Terminal(box, cordon.path, "workflow", "approve", run, cwd=box.path)
        shown = tty.expect(b"Approve this step? [y/N] ")
        assert b"step production waits" in shown and b"look at it" in shown
        tty.type(typed)
        assert tty.process.wait(PATIENT) == status
        tty.close()
    poll(lambda: desk.status(run)["state"] == "succeeded", 60)
    answers = [(event["step"], event["outputs"]["decision"]) for event in desk.journal(run) if event["event"] == "answer"]
    assert answers == [("draft", "approve"), ("production", "reject"), ("draft", "approve"), ("production", "approve")], json.dumps(answers)
