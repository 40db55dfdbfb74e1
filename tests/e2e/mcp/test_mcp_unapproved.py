# SPDX-License-Identifier: Apache-2.0
"""What a person must approve is never done otherwise, whatever changes while it is decided. Here the client can't ask, so that only the terminal
approves; what was done is read from the host's own files."""
import contextlib
import fcntl
import json
import os
import sys
import time

import pytest

from flows import Desk, human, step
from loops import Loop, story
from support import poll
from views import View

# One process that makes $1 come and go until it is ended, as a directory or as another name of what is there.
DIRECTORY = "import os, sys\nwhile True:\n os.mkdir(sys.argv[1])\n os.rmdir(sys.argv[1])\n"
NAME = "import os, sys\nwhile True:\n os.rename(sys.argv[1], sys.argv[1] + '.off')\n os.rename(sys.argv[1] + '.off', sys.argv[1])\n"
TRIES = 3000


def call(server, tool, /, **arguments):
    return server.ask(tool, "tools/call", {"name": tool, "arguments": arguments})


def kind(answer):
    """`asked`, the kind of an error, or `done`."""
    if "error" in answer:
        assert answer["error"]["code"] == -32021, answer
        return "asked"
    return answer["result"]["structuredContent"]["error"]["kind"] if answer["result"].get("isError") else "done"


def waiting(cordon):
    return cordon("approvals", "list", "--json").json()


def approve(cordon):
    (one,) = waiting(cordon)
    assert cordon("approvals", "approve", "--yes", one["id"]).returncode == 0
    return one["question"]


@contextlib.contextmanager
def flipping(box, script, path):
    process = box.start(sys.executable, "-c", script, str(path))
    try:
        yield
    finally:
        process.kill()
        process.wait()
        off = path.with_name(path.name + ".off")
        if off.exists():
            off.rename(path)


@contextlib.contextmanager
def held(path):
    """Has a lock of the store meanwhile: whoever needs it has looked at the world already, and waits."""
    with path.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        inode = f":{os.fstat(lock.fileno()).st_ino} "

        def until_somebody_waits():
            end = time.monotonic() + 5
            while time.monotonic() < end and not any("->" in line and inode in line for line in open("/proc/locks", encoding="ascii")):
                time.sleep(0.005)

        yield until_somebody_waits


class Between:
    """A call that a person has approved; the world changes after the look at it, and before the deed."""

    def __init__(self, server, cordon, box):
        self.server, self.cordon, self.lock = server, cordon, box.state / "state/approvals/lock"

    def __call__(self, change, tool, /, **arguments):
        assert kind(call(self.server, tool, **arguments)) == "asked"
        approve(self.cordon)
        with held(self.lock) as until_somebody_waits:
            self.server.request(tool, "tools/call", {"name": tool, "arguments": arguments})
            until_somebody_waits()
            change()
        while (answer := self.server.receive()).get("id") != tool:
            pass
        return answer


def settings(cordon, project):
    shown = cordon("project", "get", project, "--json").json()
    return {key: shown[key] for key in ("workspace_isolation", "net", "default_protection", "shares")}


def test_settings_that_widen_are_asked_about_when_a_share_comes_and_goes(cordon, raw, box):
    server = raw()
    project = call(server, "project_create", name="p", init_git=False, workspace_isolation=True, net="none")["result"]["structuredContent"]["id"]
    before = settings(cordon, project)
    assert before["workspace_isolation"] is True and before["net"] == "none"
    flip = box.path / "flip"
    arguments = {"workspace_isolation": False, "net": "host", "default_protection": False, "shares": [str(flip)]}
    with flipping(box, DIRECTORY, flip):
        seen = {kind(call(server, "project_update", project_id=project, **arguments)) for _ in range(TRIES)}
    assert "done" not in seen and settings(cordon, project) == before
    assert {"asked"} < seen, "both happened: it was there, and it was not"
    with flipping(box, DIRECTORY, flip):
        seen = {kind(call(server, "project_create", name="q", init_git=False, shares=[str(flip)])) for _ in range(TRIES // 3)}
    assert "done" not in seen and cordon("project", "list", "--json").json()["total"] == 1


def test_settings_are_judged_under_the_lock_with_which_they_are_changed(cordon, raw, box):
    """The look finds nothing that widens; then somebody narrows the settings."""
    server = raw()
    project = cordon("project", "create", "p", "--no-git", "--json").json()["id"]
    state = box.state / "state/projects" / project
    assert kind(call(server, "project_update", project_id=project, net="host")) == "done"
    narrow = json.loads((state / "project.json").read_text())
    assert cordon("project", "update", project, "--net", "none").returncode == 0
    closed = (state / "project.json").read_text()
    (state / "project.json").write_text(json.dumps(narrow))
    with held(state / "lock") as until_somebody_waits:
        server.request("u", "tools/call", {"name": "project_update", "arguments": {"project_id": project, "net": "host", "description": "wider"}})
        until_somebody_waits()
        (state / "project.json").write_text(closed)
    assert kind(server.receive()) != "done"
    shown = cordon("project", "get", project, "--json").json()
    assert shown["net"] == "none" and not shown.get("description")


def test_no_loop_starts_unasked_when_its_prd_comes_and_goes(cordon, raw, box):
    loop = Loop(cordon, box, box.mkdir("repo"))
    prd = loop.prd(story("A"))
    server = raw(cwd=loop.top)
    arguments = {"command": ["sh", "-c", f"touch {loop.top}/ran"], "max_iterations": 1}
    with flipping(box, NAME, prd):
        seen = {kind(call(server, "loop_start", **arguments)) for _ in range(TRIES)}
    assert "done" not in seen and "asked" in seen
    assert kind(call(server, "loop_status")) == "done" and not list((box.state / "state").glob("loops/*/log*")) and not (loop.top / "ran").exists()


def test_a_loop_starts_with_the_files_that_a_person_read(cordon, raw, box):
    loop = Loop(cordon, box, box.mkdir("repo"))
    first, second = loop.prd(story("A"), name="first.json"), loop.prd(story("B"), name="second.json")
    link = loop.top / "prd.json"
    link.symlink_to(first)
    server = raw(cwd=loop.top)
    between = Between(server, cordon, box)

    def change():
        link.unlink()
        link.symlink_to(second)

    answer = between(change, "loop_start", command=["true"], verify="true", wait_seconds=60)
    assert kind(answer) != "done" or answer["result"]["structuredContent"]["prds"] == [str(first)], answer
    assert loop.passed("second.json") == []


def test_only_the_view_that_a_person_read_of_is_applied_or_discarded(cordon, raw, box):
    tree = box.mkdir("root")
    between = Between(raw(), cordon, box)
    first = View(box, tree).work("echo first > file")
    made = []

    def change():
        made.append(View(box, tree).work("echo second > file; echo evil > Makefile"))
        record = json.loads((made[-1].dir / "record.json").read_text())
        made[-1].write("record.json", json.dumps(record | {"created_at": f"2026-01-02T00:00:0{len(made)}.000Z"}).encode())

    answer = between(change, "changes_apply", view_id="latest", root=str(tree))
    assert kind(answer) != "done" or answer["result"]["structuredContent"]["view_id"] == first.id
    assert not (tree / "Makefile").exists() and (not (tree / "file").exists() or (tree / "file").read_text() == "first\n")
    answer = between(change, "changes_discard", view_id="latest", root=str(tree))
    assert made[1].dir.exists() and made[0].dir.exists() == (kind(answer) != "done")


def test_an_approval_to_apply_is_for_these_changes_of_these_files(cordon, raw, box):
    tree = box.mkdir("root")
    box.write("root/file", "host\n")
    server = raw()
    view = View(box, tree).work("echo good > new; echo run > file")
    arguments = {"view_id": view.id}
    assert kind(call(server, "changes_apply", **arguments)) == "asked"
    question = approve(cordon)
    # As many files under the same names, and others.
    (view.upper / "new").write_text("other and longer\n")
    assert kind(call(server, "changes_apply", **arguments)) == "asked" and not (tree / "new").exists()
    assert approve(cordon) == question

    def change():
        (view.upper / "new").write_text("and once more, and longer still\n")

    assert kind(Between(server, cordon, box)(change, "changes_apply", **arguments | {"paths": ["new"]})) != "done" and not (tree / "new").exists()
    assert kind(call(server, "changes_apply", **arguments)) == "asked"
    approve(cordon)
    assert kind(call(server, "changes_apply", **arguments)) == "done" and (tree / "new").read_text() == "and once more, and longer still\n"


def test_an_answer_is_for_the_step_that_a_person_read_of(cordon, raw, box):
    desk = Desk(box, cordon)
    desk.define(human("draft", on_approve="production"), human("production", on_approve="ship"), step("ship", "true"))
    run = desk.begin()
    poll(lambda: desk.status(run)["state"] == "waiting", 60)
    server = raw()
    arguments = {"run_id": run, "step": "draft", "decision": "approve"}

    def answers():
        return [event["step"] for event in desk.journal(run) if event["event"] == "answer"]

    assert kind(call(server, "workflow_answer", **arguments)) == "asked"
    question = approve(cordon)
    assert "the step draft of" in question and "look at it" in question
    # Somebody else answers the step; what was approved is not for the next one.
    assert cordon("workflow", "approve", run, "--step", "draft").returncode == 0
    poll(lambda: desk.status(run)["state"] == "waiting" and desk.status(run)["currentStepId"] == "production", 60)
    assert kind(call(server, "workflow_answer", **arguments)) == "conflict" and answers() == ["draft"] and waiting(cordon) == []
    for wrong in ({"step": "draft"}, {"step": "production", "attempt": 1}, {"step": "ship"}):
        assert kind(call(server, "workflow_answer", **arguments | wrong)) == "conflict"
    assert kind(call(server, "workflow_answer", **arguments | {"step": "production"})) == "asked" and answers() == ["draft"]
    (two,) = waiting(cordon)
    assert "the step production of" in two["question"]
    assert cordon("approvals", "deny", two["id"]).returncode == 0
    # The same in the moment between the look and the answer.
    other = desk.begin()
    poll(lambda: desk.status(other)["state"] == "waiting", 60)

    def change():
        assert cordon("workflow", "approve", other, "--step", "draft").returncode == 0
        poll(lambda: desk.status(other)["state"] == "waiting" and desk.status(other)["currentStepId"] == "production", 60)

    assert kind(Between(server, cordon, box)(change, "workflow_answer", run_id=other, step="draft", decision="approve")) == "conflict"
    assert [event["step"] for event in desk.journal(other) if event["event"] == "answer"] == ["draft"]
    for one in (run, other):
        assert cordon("workflow", "cancel", one).returncode == 0


def test_a_grant_is_for_the_directory_that_a_person_read(cordon, raw, box):
    desk = Desk(box, cordon)
    between = Between(raw(), cordon, box)
    text = box.state / "config.yaml"

    def change():
        now = text.read_text()
        text.write_text(now.replace(str(desk.areas["docs"]), str(box.mkdir("areas/secret"))))

    assert kind(between(change, "shared_grant", orchestrator_id="desk", key="docs")) == "conflict"
    assert json.loads(text.read_text())["orchestrators"]["desk"]["shared_access"] == []
    # When nobody can tell which directory it is, nobody is asked, and it is not granted.
    text.write_text("shared_workspaces: [")
    assert kind(call(between.server, "shared_grant", orchestrator_id="desk", key="docs")) == "config" and not waiting(cordon)


@pytest.mark.parametrize("tool", ["project_delete", "workspace_delete"])
def test_what_cannot_be_read_is_not_deleted_unasked(cordon, raw, box, tool):
    project = cordon("project", "create", "p", "--no-git", "--json").json()["id"]
    assert cordon("workspace", "create", project, "--id", "w").returncode == 0
    record = box.state / "state/projects" / project / "project.json"
    server = raw()
    arguments = {"project_id": project} | ({"workspace_id": "w"} if tool == "workspace_delete" else {})
    with flipping(box, NAME, record):
        seen = {kind(call(server, tool, **arguments)) for _ in range(TRIES // 3)}
    assert "asked" in seen
    left = cordon("workspace", "list", project, "--json").json()
    assert "w" in [one["id"] for one in left["workspaces"]]
