# SPDX-License-Identifier: Apache-2.0
"""Starts that take their time: the server serves others meanwhile, and a start can be taken back, fail late, or outlive its client."""
import os
import shlex
import signal
import subprocess
import time

import pytest

from support import command_line, descendants, poll

from .conftest import Raw, Wire, finish


@pytest.fixture
def slow(box, judge):
    """`slow()` starts a bare server whose sessions' processes stop before they have done anything, until somebody lets them go on."""
    bin_dir = box.mkdir("slow")
    for name in ("cordon", "cordon-lens"):
        (bin_dir / name).write_bytes((box.bin / name).read_bytes())
        (bin_dir / name).chmod(0o755)
    script = f'#!/bin/sh\nkill -STOP $$\nexec {shlex.quote(str(box.bin / "cordon-job"))} "$@"\n'
    (bin_dir / "cordon-job").write_text(script)
    (bin_dir / "cordon-job").chmod(0o755)
    servers = []

    def start():
        server = Raw(box.start(str(bin_dir / "cordon"), "mcp", "--approved", stdin=subprocess.PIPE), Wire(judge))
        servers.append(server)
        return server

    yield start
    for pid in stopped():
        os.kill(pid, signal.SIGCONT)
    finish(servers)


def is_stopped(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stream:
            return stream.read().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False


def stopped():
    return [pid for pid in descendants() if "cordon-job" in command_line(pid) and is_stopped(pid)]


def wait_stopped(n=1):
    poll(lambda: len(stopped()) == n, what=f"{n} starts that are held up")
    return stopped()


def sleeping():
    return [pid for pid in descendants() if command_line(pid).startswith("sleep ")]


def tool(server, id, name, /, **args):
    server.request(id, "tools/call", {"name": name, "arguments": args})


def call(server, id, name, /, **args):
    return server.ask(id, "tools/call", {"name": name, "arguments": args})["result"]["structuredContent"]


def project_of(server, **settings):
    return call(server, "p", "project_create", name="p", init_git=False, **settings)["id"]


def sessions_of(server, project):
    return call(server, f"l{time.monotonic()}", "session_list", project_id=project)["sessions"]


def test_others_are_served_while_a_session_starts(slow):
    server = slow()
    project = project_of(server)
    tools = server.ask("before", "tools/list")["result"]["tools"]
    tool(server, "start", "session_start", project_id=project, command=["cat"], message="hello")
    pid = wait_stopped()[0]
    assert len(tools) > 21 and server.ask("tools", "tools/list")["result"]["tools"] == tools
    assert server.ask("ping", "ping", modern=False)["result"] == {}
    (session,) = sessions_of(server, project)
    assert (session["status"], session["state"]) == ("active", "starting")
    # What needs the project is done or refused at once, and waits for nobody.
    began = time.monotonic()
    assert call(server, "update", "project_update", project_id=project, description="new")["description"] == "new"
    assert call(server, "delete", "project_delete", project_id=project)["error"]["kind"] == "conflict"
    assert call(server, "away", "workspace_delete", project_id=project, workspace_id=session["workspace_id"])["error"]["kind"] == "conflict"
    assert time.monotonic() - began < 5
    os.kill(pid, signal.SIGCONT)
    answer = server.receive()
    assert answer["id"] == "start" and answer["result"]["structuredContent"]["session_id"] == session["session_id"]
    assert (answer["result"]["structuredContent"]["spawned"], answer["result"]["structuredContent"]["status"]) == (True, "active")
    said = lambda: call(server, f"o{time.monotonic()}", "session_output", session_id=session["session_id"])["events"]  # noqa: E731
    poll(lambda: "hello\n" in [event["text"] for event in said() if event["type"] == "stdout"], what="the echo")
    call(server, "stop", "session_stop", session_id=session["session_id"])


def test_a_workspace_that_a_session_starts_in_is_not_deleted(slow, cordon):
    server = slow()
    project = project_of(server)
    call(server, "w", "workspace_create", project_id=project, workspace_id="w")
    tool(server, "start", "session_start", project_id=project, workspace_id="w", command=["true"])
    pid = wait_stopped()[0]
    began = time.monotonic()
    done = cordon("workspace", "delete", project, "w")
    assert done.returncode != 0 and "running session" in done.stderr and time.monotonic() - began < 5
    os.kill(pid, signal.SIGCONT)
    assert server.receive()["id"] == "start"


def test_several_start_at_once_and_each_gets_its_own_answer(slow):
    server = slow()
    project = project_of(server)
    for name in ("a", "b", "c"):
        tool(server, name, "session_start", project_id=project, workspace_id=name, create_workspace=True, command=["sleep", "1000"])
    pids = wait_stopped(3)
    answers = {}
    for pid in reversed(pids):
        os.kill(pid, signal.SIGCONT)
        message = server.receive()
        answers[message["id"]] = message["result"]["structuredContent"]
    assert {name: answer["workspace_id"] for name, answer in answers.items()} == {"a": "a", "b": "b", "c": "c"}
    assert all(answer["spawned"] and answer["workspace_created"] for answer in answers.values())
    for name, answer in answers.items():
        call(server, f"stop-{name}", "session_stop", session_id=answer["session_id"], grace_seconds=0)


def test_two_starts_in_one_workspace_reach_one_session(slow):
    server = slow()
    project = project_of(server, agent_command=["cat"])
    tool(server, "first", "session_start", project_id=project, message="one")
    pid = wait_stopped()[0]
    tool(server, "second", "session_send", project_id=project, message="two")
    assert server.ask("ping", "ping", modern=False)["result"] == {}
    time.sleep(0.3)
    assert len(stopped()) == 1, "the second waits for the first"
    os.kill(pid, signal.SIGCONT)
    answers = {message["id"]: message["result"]["structuredContent"] for message in (server.receive(), server.receive())}
    first, second = answers["first"], answers["second"]  # in whatever order: the session runs before both are answered
    assert first["session_id"] == second["session_id"] and (first["spawned"], second["spawned"]) == (True, False)
    turns = call(server, "get", "session_get", session_id=first["session_id"])["turns"]
    assert [turn["message"] for turn in turns] == ["one", "two"]
    call(server, "stop", "session_stop", session_id=first["session_id"])


def test_a_start_that_is_cancelled_runs_no_program(slow):
    server = slow()
    project = project_of(server)
    tool(server, "start", "session_start", project_id=project, command=["sleep", "1000"])
    pid = wait_stopped()[0]
    server.notify("notifications/cancelled", {"requestId": "start"})
    assert server.ask("ping", "ping", modern=False)["result"] == {}
    os.kill(pid, signal.SIGCONT)
    poll(lambda: [s["state"] for s in sessions_of(server, project)] == ["refused"], 15, "the end of the session")
    (session,) = sessions_of(server, project)
    assert session["status"] == "failed" and "taken back" in session["error"]["message"] and not sleeping()
    # Not a word more is said about it, and the workspace is free again.
    tool(server, "again", "session_start", project_id=project, command=["true"])
    os.kill(wait_stopped()[0], signal.SIGCONT)
    assert server.receive()["id"] == "again"


def test_a_start_whose_process_dies_says_so(slow):
    server = slow()
    project = project_of(server)
    tool(server, "start", "session_start", project_id=project, command=["sleep", "1000"], wait_seconds=30)
    os.kill(wait_stopped()[0], signal.SIGKILL)
    result = server.receive()["result"]
    error = result["structuredContent"]["error"]
    assert result["isError"] and error["kind"] == "internal" and "before the session began" in error["message"]
    (session,) = sessions_of(server, project)
    assert (session["status"], session["state"], session["error"]["kind"]) == ("failed", "refused", "internal")
    # Another one starts in its place.
    tool(server, "next", "session_start", project_id=project, command=["true"], new_session=True, wait_seconds=30)
    os.kill(wait_stopped()[0], signal.SIGCONT)
    assert server.receive()["result"]["structuredContent"]["state"] == "completed"


def test_the_end_of_the_input_waits_for_the_answer_to_a_start(slow, cordon):
    server = slow()
    project = project_of(server)
    tool(server, "start", "session_start", project_id=project, command=["sleep", "1000"])
    pid = wait_stopped()[0]
    server.process.stdin.close()
    time.sleep(0.3)
    assert server.process.poll() is None
    os.kill(pid, signal.SIGCONT)
    answer = server.receive()
    session = answer["result"]["structuredContent"]["session_id"]
    assert answer["id"] == "start" and server.process.wait(10) == 0
    assert cordon("session", "get", session, "--json").json()["status"] == "active"
    assert cordon("session", "stop", session, "--grace", "50ms").returncode == 0


def test_a_server_that_is_killed_while_a_session_starts_loses_no_session(slow, cordon):
    server = slow()
    project = project_of(server)
    tool(server, "start", "session_start", project_id=project, command=["sleep", "1000"])
    pid = wait_stopped()[0]
    server.process.kill()
    server.process.wait()
    os.kill(pid, signal.SIGCONT)
    running = lambda: cordon("session", "list", project, "--json").json()["sessions"]  # noqa: E731
    poll(lambda: [s["state"] for s in running()] == ["running"], 15, "the session")
    assert cordon("session", "stop", running()[0]["session_id"], "--grace", "50ms").returncode == 0


def test_a_signal_ends_the_server_whatever_starts(slow, cordon):
    server = slow()
    project = project_of(server)
    tool(server, "start", "session_start", project_id=project, command=["sleep", "1000"])
    pid = wait_stopped()[0]
    server.process.terminate()
    assert server.process.wait(10) == 0
    os.kill(pid, signal.SIGCONT)
    running = lambda: cordon("session", "list", project, "--json").json()["sessions"]  # noqa: E731
    poll(lambda: [s["state"] for s in running()] == ["running"], 15, "the session")
    assert cordon("session", "stop", running()[0]["session_id"], "--grace", "50ms").returncode == 0
