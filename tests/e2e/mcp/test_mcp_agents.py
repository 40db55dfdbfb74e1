# SPDX-License-Identifier: Apache-2.0
"""Named agents through MCP: listed, executed with progress, looked at, cancelled; never with more rights than their file gives."""
import json
import time

import pytest

from support import poll

AGENTS = [
    {"name": "writer", "role": "spec", "scope": ["docs/**"], "description": "writes", "command": ["sh", "-c", "echo out; echo new >docs/new"]},
    {"name": "reader", "role": "reviewer", "scope": {"patterns": ["src/**"], "readOnly": True}, "env_pass": ["SECRET"], "net": "host",
     "command": "echo secret=$SECRET; cat docs/old; touch src/x"},
]


@pytest.fixture
def repo(box):
    return box.repo(files={"agents.json": json.dumps({"agents": AGENTS}), "docs/old": "old", "src/a": "a"})


@pytest.fixture
def server(raw, repo):
    return raw(cwd=repo, env={"SECRET": "s"})


def call(server, tool, /, **arguments):
    answer = server.ask(f"{tool} {time.monotonic()}", "tools/call", {"name": tool, "arguments": arguments})["result"]
    return answer["structuredContent"]


def test_agents_are_listed_with_their_scopes_and_what_has_no_effect(server, repo):
    listed = call(server, "agent_list")
    assert listed["file"] == str(repo / "agents.json") and listed["trusted"] is False
    assert [(a["name"], a["read"], a["write"]) for a in listed["agents"]] == [("writer", [], ["docs/**"]), ("reader", ["src/**"], [])]
    assert len(listed["notices"]) == 1 and "env_pass of reader has no effect" in listed["notices"][0]


def test_agents_are_executed_in_their_scopes(server, repo, leftovers):
    done = call(server, "agent_execute", wait_seconds=60)
    results = {agent["agentName"]: agent for agent in done["agents"]}
    assert done["ended"] is True and results["writer"]["state"] == "completed" and results["writer"]["stdout"] == "out\n"
    assert results["reader"]["state"] == "failed" and results["reader"]["stdout"] == "secret=\n" and results["reader"]["violations"] >= 2
    assert (repo / "docs/new").exists() and not (repo / "src/x").exists()
    shown = call(server, "agent_status", run_id=done["run_id"][:8])["runs"][0]
    assert shown["agents"] == done["agents"]
    one = call(server, "agent_execute", agents=["WRITER"], shell="cat src/a || exit 5")
    assert one["agents"][0]["exitCode"] == 5
    assert call(server, "agent_execute", agents=["writer"], command=["sleep", "60"], timeout_ms=300)["agents"][0]["state"] == "timeout"
    leftovers.assert_none()


def test_wrong_calls_are_refused_with_a_way_out(server):
    for tool, arguments, kind, text in (
        ("agent_execute", {"agents": ["writr"]}, "not_found", "did you mean 'writer'"),
        ("agent_execute", {"agents": ["writer", "Writer"]}, "usage", "named twice"),
        ("agent_execute", {"agents": ["writer"], "shell": "x", "command": ["y"]}, "usage", "exclude each other"),
        ("agent_execute", {"root": "/"}, "usage", "root"),
        ("agent_execute", {"max_concurrent": 65}, "usage", "max_concurrent"),
        ("agent_cancel", {"run_id": "00000000"}, "not_found", "no run"),
        ("agent_cancel", {"run_id": "../../x"}, "usage", "not the id"),
        ("agent_status", {"run_id": "abcdef"}, "not_found", "no run"),
    ):
        error = call(server, tool, **arguments)["error"]
        assert error["kind"] == kind and text in error["message"] + error.get("hint", ""), (tool, arguments, error)


def test_progress_comes_while_agents_run_and_others_are_served(server, repo, box):
    server.request("run", "tools/call", {"name": "agent_execute", "arguments": {"shell": "while ! test -e docs/go; do sleep 0.05; done", "agents": ["writer"]},
                                         "_meta": {"progressToken": "p"}})
    note = server.receive()
    while note.get("method") != "notifications/progress" or "1 run" not in note["params"]["message"]:
        note = server.receive()
    assert note["params"]["progressToken"] == "p" and note["params"]["message"] == "0 of 1 agents have ended, 1 run"
    assert call(server, "agent_status")["runs"][-1]["ended"] is False
    box.write("repo/docs/go")
    answer = server.receive()
    while answer.get("id") != "run":
        answer = server.receive()
    assert answer["result"]["structuredContent"]["agents"][0]["state"] == "completed"


def test_agents_are_cancelled_by_the_tool_and_with_the_request(server, leftovers):
    began = call(server, "agent_execute", shell="sleep 300", wait_seconds=0)
    assert began["ended"] is False
    run = began["run_id"]

    def states():
        return [agent["state"] for agent in call(server, "agent_status", run_id=run)["runs"][0]["agents"]]

    poll(lambda: states() == ["running", "running"], 30, "both agents")
    assert call(server, "agent_cancel", run_id=run, agent="reader") == {"run_id": run, "cancelled": True}
    poll(lambda: states() == ["running", "cancelled"], 30, "one of them")
    call(server, "agent_cancel", run_id=run)
    poll(lambda: states() == ["cancelled", "cancelled"], 30, "both")
    server.request("again", "tools/call", {"name": "agent_execute", "arguments": {"agents": ["writer"], "shell": "sleep 300"}})
    poll(lambda: len(call(server, "agent_status")["runs"]) == 2, 30, "the second run")
    run = call(server, "agent_status")["runs"][-1]["run_id"]
    poll(lambda: states() == ["running"], 30, "the agent")
    server.notify("notifications/cancelled", {"requestId": "again"})
    poll(lambda: states() == ["cancelled"], 30, "the end of the agent")
    leftovers.assert_none()


def test_agents_outlive_the_server(raw, repo, box, cordon):
    server = raw(cwd=repo)
    run = call(server, "agent_execute", agents=["writer"], shell="while ! test -e docs/go; do sleep 0.05; done; echo end", wait_seconds=0)["run_id"]
    server.close()
    assert cordon("status", run, "--json").json()[0]["agents"][0]["state"] in ("pending", "running")
    box.write("repo/docs/go")
    poll(lambda: cordon("status", run, "--json").json()[0]["agents"][0]["state"] == "completed", 30, "the end of the agent")
    assert cordon("logs", "--run", run).stdout == "end\n"


def test_the_agent_of_a_session_gets_none_of_it(raw, repo, cordon):
    project = cordon("project", "create", "p", "--no-git", "--json", "--", "cat").json()["id"]
    session = cordon("session", "start", project, "--detach", "--json").json()["session_id"]
    bound = raw("--session", session, cwd=repo)
    for tool, arguments in (("agent_list", {}), ("agent_execute", {}), ("agent_status", {}), ("agent_cancel", {"run_id": "abcdef"})):
        assert call(bound, tool, **arguments)["error"]["kind"] == "policy_denied", tool
    cordon("session", "stop", session, "--grace", "100ms")
