# SPDX-License-Identifier: Apache-2.0
"""Sessions through MCP: long calls with progress and cancellation, servers that come and go, and a server for one agent."""
import json
import os
import signal
import time

import pytest

from support import descendants, poll


def project_of(client, **settings):
    return client.tool("project_create", name="p", init_git=False, **settings)["id"]


def sleeping():
    found = 0
    for pid in descendants():
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as stream:
                found += stream.read().startswith(b"sleep\0")
        except OSError:
            pass
    return found


def test_a_conversation_with_a_session(client):
    project = project_of(client, agent_command=["cat"])
    started = client.tool("session_start", project_id=project, message="one")
    assert started["spawned"] is True and started["status"] == "active"
    session = started["session_id"]
    said = client.tool("session_output", session_id=session, since_index=started["last_event_index"], wait_seconds=20)
    while "one\n" not in "".join(event["text"] for event in said["events"]):
        said = client.tool("session_output", session_id=session, wait_seconds=5)
    sent = client.tool("session_send", project_id=project, message="two")
    assert sent["session_id"] == session and sent["spawned"] is False
    more = client.ask("tool", name="session_output", args={"session_id": session, "since_index": sent["last_event_index"], "wait_seconds": 20})
    assert "two\n" in more["content"][0]["text"] and f"[session {session} is active" in more["content"][0]["text"]
    assert client.tool("session_list", project_id=project, status="active")["total"] == 1
    assert [turn["message"] for turn in client.tool("session_get", session_id=session)["turns"]] == ["one", "two"]
    stopped = client.tool("session_stop", session_id=session)
    assert (stopped["status"], stopped["state"]) == ("completed", "cancelled")
    assert client.refused("session_send", session_id=session, message="late")["kind"] == "conflict"
    # The original's names, and its `prompt`.
    again = client.tool("session_spawn", project_id=project, prompt="three", new_session=True)
    assert again["session_id"] != session
    poll(lambda: "three\n" in json.dumps(client.tool("session_events", session_id=again["session_id"])).replace("\\n", "\n"), what="the echo")
    assert client.tool("session_end", session_id=again["session_id"])["status"] == "completed"
    assert client.tool("session", action="get", session_id=session)["status"] == "completed"


LINES = 360
LONG = ["sh", "-c", f"i=0; while [ $i -lt {LINES} ]; do head -c 6000 /dev/zero | tr '\\0' a; echo $i; i=$((i+1)); done"]
ALL = "".join("a" * 6000 + f"{i}\n" for i in range(LINES))


def collect(tool, first, last, **arguments):
    """What the events say, page after page from the index that each of them names."""
    text, pages = "".join(event["text"] for event in first["events"] if event["type"] == "stdout"), 1
    while first.get("more"):
        assert first["events"] and first["events"][-1]["index"] == first[last], "the rest begins after what is there"
        first, last, pages = tool("session_output", since_index=first[last], **arguments), "last_index", pages + 1
        text += "".join(event["text"] for event in first["events"] if event["type"] == "stdout")
    return text, pages


def ask(server, name, /, **arguments):
    result = server.ask(name, "tools/call", {"name": name, "arguments": arguments})["result"]
    assert not result.get("isError"), result
    return result


@pytest.fixture
def tool(raw):
    """Calls tools of a bare server, because the official clients judge long answers for a long time."""

    def call(name, /, **arguments):
        return ask(call.server, name, **arguments)["structuredContent"]

    call.server = raw()
    return call


def test_output_that_is_cut_says_so_and_can_be_read_on(tool):
    project = tool("project_create", name="p", init_git=False)["id"]
    started = tool("session_start", project_id=project, command=LONG, wait_seconds=60)
    session = started["session_id"]
    assert "dropped_events" not in started
    text, pages = collect(tool, started, "last_event_index", session_id=session)
    assert text == ALL and pages > 5
    # The text says the same, for those who read nothing else.
    shown = ask(tool.server, "session_output", session_id=session)
    *_, cut, last = shown["content"][0]["text"].split("\n")
    index = shown["structuredContent"]["last_index"]
    assert cut == f"[cut: session_output with since_index {index} goes on]" and last == f"[session {session} is completed, last_index {index}]"
    text, pages = collect(tool, shown["structuredContent"], "last_index", session_id=session)
    assert text == ALL and pages > 5
    few = tool("session_output", session_id=session, max_events=40)
    assert len(few["events"]) == 40 and few["more"] is True
    text, pages = collect(tool, few, "last_index", session_id=session, max_events=40)
    assert text == ALL and pages > 3
    # The log as a resource, which has one page.
    log = tool.server.ask("log", "resources/read", {"uri": f"cordon://session/{session}/log"})["result"]["contents"][0]["text"]
    *lines, cut, last = log.split("\n")
    assert cut.startswith("[cut: session_output with since_index ") and last.startswith(f"[session {session} is completed, last_index ")
    rest = tool("session_output", session_id=session, since_index=int(last.split()[-1].rstrip("]")))
    text, _ = collect(tool, rest, "last_index", session_id=session)
    before = "".join(line.removeprefix("| ") + "\n" for line in lines if line.startswith("| "))
    assert ALL.endswith(text) and before.rstrip("\n") == ALL[: len(ALL) - len(text)].rstrip("\n")


def test_the_output_of_children_that_is_cut_can_be_read_on(tool):
    project = tool("project_create", name="p", init_git=False)["id"]
    parent = tool("session_start", project_id=project, command=["cat"])["session_id"]
    child = tool("session_start", project_id=project, command=LONG, parent_session_id=parent, new_session=True, wait_seconds=60)["session_id"]
    shown = tool("session_output", session_id=parent, include_children=True)
    mine = [event for event in shown["events"] if event["session_id"] == child]
    assert shown["more"] is True and shown["children_since"] == {child: mine[-1]["index"]}
    rest = tool("session_output", session_id=child, since_index=mine[-1]["index"])
    text, _ = collect(tool, rest, "last_index", session_id=child)
    assert "".join(event["text"] for event in mine if event["type"] == "stdout") + text == ALL
    tool("session_stop", session_id=parent)


def test_a_long_call_tells_how_far_it_is(client):
    project = project_of(client)
    script = "for i in 1 2 3 4 5 6; do echo step $i; sleep 0.3; done; exit 3"
    number = client.start("tool", name="session_start", args={"project_id": project, "command": ["sh", "-c", script], "wait_seconds": 30}, progress=True)
    result = client.finish(number)["value"]["structuredContent"]
    assert (result["status"], result["state"], result["exit_code"]) == ("failed", "failed", 3)
    told = [note["progress"] for note in client.notes if "progress" in note]
    assert len(told) >= 3 and [p["progress"] for p in told] == sorted({p["progress"] for p in told})
    assert any(p["message"].startswith("| step ") for p in told)


def test_a_session_can_fail_on_a_violation(client):
    project = project_of(client, workspace_isolation=True, protected_paths=["NEVER.md"])
    args = {"project_id": project, "command": ["sh", "-c", "mkdir NEVER.md 2>/dev/null; :"], "new_session": True, "wait_seconds": 30}
    result = client.tool("session_start", **args)
    assert (result["status"], result["state"], result["exit_code"]) == ("completed", "completed", 0) and result["violations"] > 0
    result = client.tool("session_start", **args, fail_on_violation=True)
    assert (result["status"], result["state"], result["exit_code"], result["failed_on_violation"]) == ("failed", "failed", 0, True)


def test_cancelling_a_long_call_ends_the_session_and_nothing_more_is_said(client):
    project = project_of(client)
    number = client.start("tool", name="session_start", args={"project_id": project, "command": ["sleep", "1000"], "wait_seconds": 300}, key="k", timeout=300000)
    poll(lambda: sleeping() == 1, what="the session")
    client.ask("cancel", key="k")
    answer = client.finish(number)
    assert "error" in answer
    poll(lambda: sleeping() == 0, 15, "the end of the session")
    poll(lambda: client.tool("session_list", project_id=project)["sessions"][0]["state"] == "cancelled", what="its record")


def test_cancelling_a_wait_ends_no_session(client):
    project = project_of(client)
    session = client.tool("session_start", project_id=project, command=["sleep", "1000"])["session_id"]
    last = client.tool("session_output", session_id=session)["last_index"]
    client.start("tool", name="session_output", args={"session_id": session, "since_index": last, "wait_seconds": 300}, key="k", timeout=300000)
    time.sleep(0.3)
    client.ask("cancel", key="k")
    time.sleep(0.3)
    assert client.tool("session_get", session_id=session)["status"] == "active"
    client.tool("session_stop", session_id=session, grace_seconds=0)


def test_a_server_that_dies_loses_no_session(connect, raw, cordon):
    server = raw()
    call = lambda id, name, **args: server.ask(id, "tools/call", {"name": name, "arguments": args})["result"]["structuredContent"]  # noqa: E731
    project = server.ask(1, "tools/call", {"name": "project_create", "arguments": {"name": "p"}})["result"]["structuredContent"]["id"]
    session = call(2, "session_start", project_id=project, command=["cat"], message="before")["session_id"]
    server.request(3, "tools/call", {"name": "session_output", "arguments": {"session_id": session, "since_index": 1000, "wait_seconds": 100}})
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    client = connect("v2")
    assert client.tool("session_get", session_id=session)["status"] == "active"
    client.tool("session_send", session_id=session, message="after")
    poll(lambda: "after\n" in "".join(e["text"] for e in client.tool("session_output", session_id=session)["events"] if e["type"] == "stdout"), what="the echo")
    # The end of the input ends a server too, and no session.
    client.close()
    assert cordon("session", "get", session, "--json").json()["status"] == "active"
    assert cordon("session", "stop", session).returncode == 0


def test_a_session_that_waits_does_not_hold_up_the_server(raw):
    server = raw()
    project = server.ask(1, "tools/call", {"name": "project_create", "arguments": {"name": "p"}})["result"]["structuredContent"]["id"]
    server.request("slow", "tools/call", {"name": "session_start", "arguments": {"project_id": project, "command": ["sleep", "2"], "wait_seconds": 30}})
    began = time.monotonic()
    for number in range(20):
        assert "result" in server.ask(f"q{number}", "tools/call", {"name": "project_get", "arguments": {"project_id": project}})
    assert time.monotonic() - began < 2
    while (message := server.receive()).get("id") != "slow":
        pass
    assert message["result"]["structuredContent"]["status"] == "completed"
    server.request("x", "tools/call", {"name": "session_start", "arguments": {"project_id": project, "command": ["sleep", "30"], "wait_seconds": 30}})
    time.sleep(0.3)
    assert server.ask("x", "tools/list")["error"]["code"] == -32600
    server.notify("notifications/cancelled", {"requestId": "x"})


def test_logs_are_resources_with_updates(client):
    project = project_of(client, agent_command=["cat"])
    session = client.tool("session_start", project_id=project)["session_id"]
    uri = f"cordon://session/{session}/log"
    client.ask("subscribe", uris=[uri], lists=False)
    client.tool("session_send", session_id=session, message="watch this \x1b[31m")
    client.wait_note(lambda note: note.get("notification", {}).get("params", {}).get("uri") == uri)
    poll(lambda: "watch this" in client.ask("read", uri=uri)["contents"][0]["text"], what="the log")
    text = client.ask("read", uri=uri)["contents"][0]["text"]
    assert "\x1b" not in text and "\\e[31m" in text
    assert json.loads(client.ask("read", uri=f"cordon://session/{session}")["contents"][0]["text"])["status"] == "active"
    assert json.loads(client.ask("read", uri="cordon://sessions")["contents"][0]["text"])["total"] == 1
    found = client.ask("complete", ref={"type": "ref/resource", "uri": "cordon://session/{session_id}/log"}, argument={"name": "session_id", "value": session[:3]})
    assert found["completion"]["values"] == [session]
    client.tool("session_stop", session_id=session)


def test_refusals_say_why(client, box):
    project = project_of(client, workspace_isolation=True, protected_paths=["pipe"])
    assert client.refused("session_start", project_id=project)["kind"] == "usage"
    assert client.refused("session_start", project_id=project, command=[])["kind"] == "usage"
    assert client.refused("session_start", project_id=project, command=["no-such-program"])["kind"] == "not_found"
    default = client.tool("project_get", project_id=project)["default_workspace_id"]
    os.mkfifo(box.state / "projects" / project / "workspaces" / default / "pipe")
    box.own(box.state / "projects" / project / "workspaces" / default / "pipe")
    refused = client.refused("session_start", project_id=project, command=["true"])
    assert "pipe" in refused["message"]
    assert client.refused("session_send", message="x")["kind"] == "usage"
    assert client.refused("session_get", session_id="..")["kind"] == "usage"


@pytest.mark.parametrize("kind", ["v1", "v2"])
def test_the_agent_of_a_session_gets_only_what_is_as_strict(connect, kind):
    """cordon mcp --session: whoever is at the other end speaks for an agent inside a sandbox."""
    owner = connect("v1", options=["--approved"])
    project = project_of(owner, workspace_isolation=True, protected_paths=["AGENTS.md"], net="none")
    other = project_of(owner)
    owner.tool("workspace_create", project_id=project, workspace_id="mine")
    owner.tool("workspace_create", project_id=project, workspace_id="theirs")
    own = owner.tool("session_start", project_id=project, workspace_id="mine", command=["sleep", "1000"])["session_id"]
    foreign = owner.tool("session_start", project_id=project, workspace_id="theirs", command=["sleep", "1000"])["session_id"]
    agent = connect(kind, options=["--session", own])
    started = agent.tool("session_start", project_id=project, workspace_id="mine", command=["sh", "-c", "echo x > AGENTS.md; ls /sys/class/net"], wait_seconds=20)
    record = agent.tool("session_get", session_id=started["session_id"])
    assert record["parent_session_id"] == own and record["depth"] == 1 and record["net"] == "none"
    for tool, args in (
        ("session_start", {"project_id": other, "command": ["true"]}),
        ("session_start", {"project_id": project, "workspace_id": "theirs", "command": ["true"]}),
        ("session_start", {"project_id": project, "command": ["true"]}),
        ("session_start", {"project_id": project, "workspace_id": "new", "create_workspace": True, "command": ["true"]}),
        ("session_send", {"session_id": foreign, "message": "x"}),
        ("session_send", {"project_id": project, "workspace_id": "theirs", "message": "x"}),
        ("session_exec", {"session_id": foreign, "command": ["true"]}),
        ("session_output", {"session_id": foreign}),
        ("session_get", {"session_id": foreign}),
        ("session_stop", {"session_id": foreign}),
        ("session_list", {}),
        ("project_list", {}),
        ("project_get", {"project_id": other}),
        ("project_create", {"name": "x"}),
        ("project_update", {"project_id": project, "workspace_isolation": False}),
        ("project_delete", {"project_id": project}),
        ("workspace_list", {"project_id": project}),
        ("workspace_create", {"project_id": project}),
        ("workspace_delete", {"project_id": project, "workspace_id": "theirs"}),
        ("policy_check", {"project_id": project, "workspace_id": "theirs", "path": "x"}),
    ):
        error = agent.refused(tool, **args)
        assert error["kind"] == "policy_denied", (tool, args, error)
        assert "theirs" not in error["message"] and foreign not in error["message"]
    assert [r["uri"] for r in agent.ask("resources")["resources"]] == [f"cordon://session/{own}/log"]
    for uri in ("cordon://projects", f"cordon://project/{project}", f"cordon://session/{foreign}/log", "cordon://sessions", f"cordon://audit/{time.strftime('%Y-%m-%d', time.gmtime())}"):
        assert agent.fault("read", uri=uri)["code"] in (-32602, -32002)
    found = agent.ask("complete", ref={"type": "ref/resource", "uri": "cordon://session/{session_id}/log"}, argument={"name": "session_id", "value": ""})
    assert found["completion"]["values"] == []
    # Settings that were loosened since are not its to use.
    owner.tool("project_update", project_id=project, net="host")
    assert agent.refused("session_start", project_id=project, workspace_id="mine", command=["true"])["kind"] == "policy_denied"
    for session in (own, foreign):
        owner.tool("session_stop", session_id=session, grace_seconds=0)
