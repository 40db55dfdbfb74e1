# SPDX-License-Identifier: Apache-2.0
"""Loops through MCP: a person approves each start, they outlive the server, and a stop keeps what agents were doing."""
import json
import os
import signal

import pytest

from loops import READ, Loop, story
from support import poll

# The agent of B waits until somebody ends it, unless go is there.
SLOW = ["sh", "-c", READ + 'echo "$id" > "$id.txt"; test "$id" = A || test -e go || sleep 600']


@pytest.fixture
def loop(cordon, box):
    return Loop(cordon, box, box.mkdir("repo"))


def call(server, tool, **arguments):
    answer = server.ask(tool, "tools/call", {"name": tool, "arguments": arguments})
    return answer["result"]


def use(server, tool, **arguments):
    result = call(server, tool, **arguments)
    assert not result.get("isError"), result
    return result["structuredContent"]


def refused(server, tool, **arguments):
    result = call(server, tool, **arguments)
    assert result.get("isError"), result
    return result["structuredContent"]["error"]


def states(status):
    return {one["id"]: one["state"] for one in status["stories"]}


def status_of(server, loop):
    return use(server, "loop_status", loop_id=loop)["loops"][0]


def test_a_loop_outlives_its_server_and_a_stop_keeps_and_names_the_view(loop, raw, box):
    loop.prd(story("A"), story("B", dependencies=["A"]), story("C", dependencies=["B"]))
    server = raw("--approved", cwd=loop.top)
    begun = use(server, "loop_start", command=SLOW, verify='test -e "$CORDON_STORY.txt"')
    id = begun["loop_id"]
    assert begun["state"] == "running" and begun["total"] == 3 and begun["prds"] == [str(loop.top / "prd.json")], begun
    assert refused(server, "loop_start", command=SLOW)["kind"] == "conflict"
    assert server.close() == 0
    server = raw("--approved", cwd=loop.top)
    waits = poll(lambda: (now := status_of(server, id)) and states(now).get("B") == "working" and now, 60)
    assert states(waits) == {"A": "passed", "B": "working", "C": "waiting"} and loop.passed() == ["A"]
    assert [(one["story"], one["attempt"]) for one in waits["workers"]] == [("B", 1)] and os.kill(waits["pid"], 0) is None
    poll(lambda: (box.state / "state/views" / waits["workers"][0]["view"] / "upper/B.txt").exists(), 60)
    stopped = use(server, "loop_stop", loop_id=id)
    assert stopped["state"] == "stopped" and stopped["workers"] == [] and states(stopped)["B"] == "waiting"
    assert stopped["kept_views"] == [{"story": "B", "view": waits["workers"][0]["view"]}]
    kept = use(server, "changes_diff", view_id=stopped["kept_views"][0]["view"])
    assert "B.txt" in [one["path"] for one in kept["changes"]] and not (loop.top / "B.txt").exists()
    assert use(server, "loop_stop", loop_id=id)["state"] == "stopped", "a second time does nothing"
    box.write("repo/go", "")
    ended = use(server, "loop_start", command=SLOW, wait_seconds=120)
    assert (ended["loop_id"], ended["state"], ended["passed"], ended["kept_views"]) == (id, "done", 3, []), ended
    assert loop.passed() == ["A", "B", "C"] and (loop.top / "C.txt").read_text() == "C\n"
    assert [one["loop_id"] for one in use(server, "loop_status")["loops"]] == [id]


def test_a_loop_tells_violations_failures_and_parked_stories_and_a_killed_one_goes_on(loop, raw, box, cordon):
    loop.prd(story("A"), story("B"))
    box.write("repo/lib/x", "")
    box.write("repo/docs/guide.md", "guide")
    server = raw("--approved", cwd=loop.top)
    ended = use(server, "loop_start", command=["sh", "-c", READ + 'echo x > docs/guide.md; echo no; test "$id" = A'], workspace=["lib"], strict=True,
                wait_seconds=120, max_workers=2)
    shown = {one["id"]: one for one in ended["stories"]}
    assert states(ended) == {"A": "passed", "B": "parked"} and ended["state"] == "done" and ended["parked"] == 1
    assert shown["B"]["failures"] == 3 and shown["B"]["violations"] >= 3 and shown["A"]["violations"] >= 1 and "1" in shown["B"]["reason"]
    assert ended["violations"] == shown["A"]["violations"] + shown["B"]["violations"] and (loop.top / "docs/guide.md").read_text() == "guide"

    # A loop of the command line is seen too, and killed it is one that can go on.
    loop.prd(story("K"), name="other.json")
    process = cordon.start("loop", "--prd", "other.json", "--", "sleep", "600", cwd=loop.top)
    find = lambda: next((one for one in use(server, "loop_status")["loops"] if one["prds"] == [str(loop.top / "other.json")]), None)
    seen = poll(lambda: (one := find()) and one["workers"] and one, 60)
    assert seen["pid"] == process.pid and "stories" not in seen
    process.send_signal(signal.SIGKILL)
    process.wait()
    poll(lambda: find()["state"] == "stopped", 60)
    # What it fails with is told until it goes on.
    box.write("repo/other.json", "{")
    assert refused(server, "loop_start", prds=["other.json"], command=["true"])["where"].endswith("other.json:1:1")
    loop.prd(story("K"), name="other.json")
    assert "error" in find()
    done = use(server, "loop_start", prds=["other.json"], command=["sh", "-c", "echo k > k"], wait_seconds=120)
    assert (done["loop_id"], done["state"]) == (seen["loop_id"], "done") and "error" not in done and loop.passed("other.json") == ["K"]


def test_no_loop_starts_without_a_persons_consent(loop, raw, connect, box):
    loop.prd(story("A"))
    for kind in ("v1", "v2"):
        client = connect(kind, approve=False, cwd=loop.top)
        assert client.refused("loop_start", command=["sh", "-c", f"touch {loop.top}/ran"])["kind"] == "policy_denied"
        assert client.tool("loop_status") == {"loops": []} and not (loop.top / "ran").exists()
        client.close()
    client = connect("v1", approve=True, cwd=loop.top)
    loop.prd(story("Z"), name="second.json")
    done = client.tool("loop_start", prds=["prd.json", "second.json"], command=["sh", "-c", "echo \x1b[2J"], verify="true", wait_seconds=60)
    assert done["state"] == "done", done
    question = "\n".join(str(note) for note in client.notes)
    assert f'the stories of "{loop.top}/prd.json" and of "{loop.top}/second.json", and change and commit files in "{loop.top}"?' in question and 'chosen by the caller: "sh" "-c" "echo' in question
    assert 'check of results is: "true"' in question and "\x1b" not in question
    client.close()

    server = raw("--approved", cwd=loop.top)
    for arguments, words in (
        ({"prds": ["none.json"]}, "there is no PRD"),
        ({"prds": []}, "must not be empty"),
        ({"command": ["x" * 2000]}, "put them into a script"),
        ({"command": ["true"], "workspace": ["../.."]}, "outside"),
        ({"command": ["true"], "workspace": ["--no-default-protect"]}, "does not exist"),
        ({"no_views": True}, "no no_views"),
    ):
        assert words in refused(server, "loop_start", **arguments)["message"], arguments
    for id in ("../../../../../../../../../../etc", "x" * 32, "0" * 32):
        assert refused(server, "loop_stop", loop_id=id)["kind"] in ("usage", "not_found")
        assert refused(server, "loop_status", loop_id=id)["kind"] in ("usage", "not_found")
    loop.prd(story("A"), workspace={"folders": ["lib"], "mode": "strict"}, name="narrow.json")
    box.write("repo/lib/x", "")
    box.mkdir("repo/docs")
    assert "docs" in refused(server, "loop_start", prds=["narrow.json"], workspace=["docs"], command=["true"])["message"]

    # The agent of a session gets none of it.
    project = use(server, "project_create", name="p", agent_command=["/bin/cat"])["id"]
    session = use(server, "session_start", project_id=project)["session_id"]
    bound = raw("--approved", "--session", session, cwd=loop.top)
    for tool, arguments in (("loop_start", {}), ("loop_status", {}), ("loop_stop", {"loop_id": done["loop_id"]})):
        assert refused(bound, tool, **arguments)["kind"] == "policy_denied", tool
    use(server, "session_stop", session_id=session, grace_seconds=0)


def test_cancelling_the_start_stops_the_loop_and_progress_is_told(loop, raw, box):
    loop.prd(story("A"), story("B", dependencies=["A"]))
    server = raw("--approved", cwd=loop.top)
    server.request("start", "tools/call", {"name": "loop_start", "arguments": {"command": SLOW, "wait_seconds": 600}, "_meta": {"progressToken": "p"}})
    while "1 of 2 stories have passed" not in json.dumps(server.receive(60)):
        pass
    poll(lambda: list((box.state / "state/views").glob("*/upper/B.txt")), 60)  # a view without changes is not kept
    server.notify("notifications/cancelled", {"requestId": "start"})
    look = lambda: use(server, "loop_status")["loops"][0]
    ended = poll(lambda: (one := look()) and one["state"] == "stopped" and one, 60)
    assert [one["story"] for one in ended["kept_views"]] == ["B"] and loop.passed() == ["A"]
