# SPDX-License-Identifier: Apache-2.0
"""The whole surface at once: every tool with its schemas, hints and texts, every resource with completion and updates, every prompt."""
import json
import os
import queue
import signal
import subprocess

import pytest

from flows import Desk, human, step
from support import callers, poll
from views import View

from .conftest import node

MISSING = "00000000-0000-4000-8000-000000000000"
# read only, destructive, idempotent, open world
HINTS = {
    "project_create": (False, False, False, False),
    "project_list": (True, False, True, False),
    "project_get": (True, False, True, False),
    "project_update": (False, True, True, False),
    "project_delete": (False, True, True, False),
    "workspace_create": (False, False, True, False),
    "workspace_list": (True, False, True, False),
    "workspace_get": (True, False, True, False),
    "workspace_delete": (False, True, True, False),
    "session_start": (False, False, False, True),
    "session_send": (False, False, False, True),
    "session_output": (True, False, True, False),
    "session_get": (True, False, True, False),
    "session_list": (True, False, True, False),
    "session_exec": (False, False, False, True),
    "session_stop": (False, True, True, False),
    "policy_check": (True, False, True, False),
    "agent_list": (True, False, True, False),
    "agent_execute": (False, False, False, True),
    "agent_status": (True, False, True, False),
    "agent_cancel": (False, True, True, False),
    "orchestrator_list": (True, False, True, False),
    "orchestrator_add": (False, False, True, False),
    "orchestrator_remove": (False, True, True, False),
    "shared_add": (False, False, True, False),
    "shared_remove": (False, True, True, False),
    "shared_grant": (False, False, True, False),
    "shared_revoke": (False, True, True, False),
    "workflow_list": (True, False, True, False),
    "workflow_run": (False, False, False, True),
    "workflow_status": (True, False, True, False),
    "workflow_logs": (True, False, True, False),
    "workflow_cancel": (False, True, True, False),
    "workflow_resume": (False, False, False, True),
    "workflow_answer": (False, True, False, True),
    "changes_list": (True, False, True, False),
    "changes_diff": (True, False, True, False),
    "changes_apply": (False, True, False, False),
    "changes_discard": (False, True, False, False),
    "loop_start": (False, True, False, True),
    "loop_status": (True, False, True, False),
    "loop_stop": (False, True, True, False),
    "grant_request": (False, False, True, True),
}


@pytest.fixture
def who():
    """What a server says about itself does not depend on who runs it."""
    return callers().get("root") or callers()["user"]


def ask(server, method, **params):
    answer = server.ask(f"{method} {len(params)}", method, params)
    assert "result" in answer, answer
    return answer["result"]


def call(server, tool, **arguments):
    return ask(server, "tools/call", name=tool, arguments=arguments)


def judge_schemas(sdk, entries):
    """[(schema, values)] by Ajv's reading of 2020-12."""
    text = "".join(json.dumps({"schema": schema, "values": values}) + "\n" for schema, values in entries)
    done = subprocess.run([node(sdk), str(sdk / "schemas.mjs")], cwd=sdk, input=text.encode(), capture_output=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_tool_has_all_four_hints(raw):
    tools = {tool["name"]: tool["annotations"] for tool in ask(raw(), "tools/list")["tools"]}
    keys = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
    assert {name: tuple(hints[key] for key in keys) for name, hints in tools.items()} == HINTS


def test_the_judge_of_schemas_can_say_no(sdk):
    wrong, right, misfit = judge_schemas(sdk, [({"type": "thing"}, []), ({"type": "object", "required": ["a"]}, [{"a": 1}]), ({"type": "object", "required": ["a"]}, [{}])])
    assert wrong["schema"] and right == {"schema": None, "values": [None]} and misfit["values"][0]


def test_every_tool_answers_as_its_schema_says_and_its_text_is_the_whole_answer(raw, sdk, box, cordon):
    repo = box.repo(files={"agents.json": json.dumps({"agents": [{"name": "a", "scope": ["src"], "description": "d", "command": ["echo", "hi"]}]})})
    server = raw("--approved", cwd=repo)
    tools = {tool["name"]: tool for tool in ask(server, "tools/list")["tools"]}
    answers = {name: [] for name in tools}

    def use(tool, **arguments):
        answer = call(server, tool, **arguments)
        assert not answer.get("isError"), answer
        answers[tool].append((arguments, answer))
        return answer["structuredContent"]

    project = use("project_create", name="p", workspace_isolation=True, protected_paths=["AGENTS.md"], agent_command=["/bin/cat"], limits={"pids": 50}, description="d")["id"]
    use("project_list", name_contains="P")
    use("project_get", project_id=project)
    use("project_update", project_id=project, description="new")
    use("workspace_create", project_id=project, workspace_id="w", external_id="e", source="s")
    use("workspace_list", project_id=project)
    use("workspace_get", project_id=project, workspace_id="w")
    use("policy_check", project_id=project, path="AGENTS.md", operation="write")
    ended = use("session_start", project_id=project, workspace_id="w", command=["/bin/echo", "hello there"], wait_seconds=30)
    session = use("session_start", project_id=project)["session_id"]
    use("session_send", session_id=session, message="one more thing")
    use("session_output", session_id=session, since_index=-1, wait_seconds=10)
    use("session_output", session_id=ended["session_id"])
    use("session_get", session_id=session)
    use("session_list", project_id=project)
    use("session_exec", session_id=session, command=["cat"], input="typed", timeout_seconds=30)
    assert use("grant_request", session_id=session, host="example.org", reason="r")["effective"] == "now"
    assert use("grant_request", session_id=session, path="/usr/share", reason="r")["effective"] == "next_start"
    use("session_stop", session_id=session, grace_seconds=0)
    use("agent_list")
    run = use("agent_execute", agents=["a"], wait_seconds=30)["run_id"]
    use("agent_status", run_id=run)
    use("agent_status", limit=1)
    use("agent_cancel", run_id=run[:8], agent="A")
    use("orchestrator_add", orchestrator_id="o")
    use("shared_add", key="docs", path=str(box.mkdir("docs")), description="d", domain="x")
    use("shared_grant", orchestrator_id="o", key="docs", read_only=True)
    use("orchestrator_list")
    use("shared_revoke", orchestrator_id="o", key="docs")
    use("shared_remove", key="docs")
    use("orchestrator_remove", orchestrator_id="o")
    desk = Desk(box, cordon)
    desk.define(human("look", on_reject="look"))
    use("workflow_list", orchestrator_id="desk")
    flow = use("workflow_run", orchestrator_id="desk", workflow_id="flow", inputs={}, wait_seconds=30)["runId"]
    use("workflow_status", run_id=flow)
    use("workflow_status", orchestrator_id="desk")
    use("workflow_logs", run_id=flow)
    use("workflow_answer", run_id=flow, step="look", decision="reject", note="again")
    use("workflow_cancel", run_id=flow)
    desk.define(step("wait", "test -e go || sleep 600"))
    flow = use("workflow_run", orchestrator_id="desk")["runId"]
    os.kill(poll(lambda: use("workflow_status", run_id=flow)["runs"][0]["engine"], 60), signal.SIGKILL)
    box.write("ws/desk/go")
    poll(lambda: use("workflow_status", run_id=flow)["runs"][0]["nextExpectedAction"] == "resume", 60)
    assert use("workflow_resume", run_id=flow, wait_seconds=60)["state"] == "succeeded"
    view = View(box, repo).work("echo new > new").id
    use("changes_list", root=str(repo))
    use("changes_diff", view_id=view)
    use("changes_apply", view_id=view, paths=["new"])
    use("changes_discard", view_id=view[:8])
    box.write(repo / "prd.json", json.dumps({"project": "p", "userStories": [{"id": "S", "title": "t"}]}))
    loop = use("loop_start", command=["sh", "-c", "echo done > done"], wait_seconds=60)["loop_id"]
    use("loop_status", loop_id=loop)
    use("loop_status")
    use("loop_stop", loop_id=loop)
    use("workspace_delete", project_id=project, workspace_id="w")
    use("project_delete", project_id=project)
    failures = {}
    for name in tools:
        needs = {"project_create": {"name": ""}, "policy_check": {"project_id": MISSING, "path": "x"}, "session_send": {"session_id": MISSING, "message": "m"}, "session_exec": {"session_id": MISSING, "command": ["true"]}, "project_list": {"limit": -1}, "session_list": {"project_id": "x"}, "workflow_answer": {"run_id": "run-none", "step": "s", "decision": "approve"}}
        arguments = needs.get(name, {"session_id": MISSING} if name.startswith("session_") and name != "session_start" else {"project_id": "x"})
        failures[name] = call(server, name, **arguments)
        assert failures[name]["isError"] is True and failures[name]["structuredContent"]["error"]["kind"], name
    assert all(answers.values())
    entries = [(tool["inputSchema"], [arguments for arguments, _ in answers[name]]) for name, tool in tools.items()]
    entries += [(tool["outputSchema"], [answer["structuredContent"] for _, answer in answers[name]] + [failures[name]["structuredContent"]]) for name, tool in tools.items()]
    for (schema, values), verdict in zip(entries, judge_schemas(sdk, entries)):
        assert verdict == {"schema": None, "values": [None] * len(values)}, (schema, verdict)
    for name, used in answers.items():
        for _, answer in used:
            text, data = answer["content"][0]["text"], answer["structuredContent"]
            if "events" in data:
                assert all(event["text"].strip() in text for event in data["events"]) and data["session_id"] in text and data["status"] in text
            else:
                assert json.loads(text) == data, name
    for name, answer in failures.items():
        error = answer["structuredContent"]["error"]
        assert error["kind"] in answer["content"][0]["text"] and error["message"] in answer["content"][0]["text"], name


def test_other_spellings_are_accepted_and_not_advertised(raw):
    server = raw("--approved")
    listed = {tool["name"] for tool in ask(server, "tools/list")["tools"]}
    assert listed == set(HINTS)
    project = call(server, "project", action="create", name="p", agent_command=["/bin/cat"])["structuredContent"]["id"]
    began = call(server, "session_spawn", project_id=project, prompt="hello")["structuredContent"]
    session = began["session_id"]
    assert call(server, "session_message", session_id=session, prompt="again")["structuredContent"]["spawned"] is False
    shown = call(server, "session_events", session_id=session, wait_seconds=10)["structuredContent"]
    assert shown["session_id"] == session
    assert call(server, "session", action="get", session_id=session)["structuredContent"]["status"] == "active"
    assert call(server, "session", action="list", project_id=project)["structuredContent"]["total"] == 1
    assert call(server, "workspace", action="list", project_id=project)["structuredContent"]["total"] == 1
    assert call(server, "session_end", session_id=session, grace_seconds=0)["structuredContent"]["status"] != "active"
    wrong = call(server, "session", action="fly")
    assert wrong["isError"] and all(action in wrong["content"][0]["text"] for action in ("start", "send", "output", "get", "list", "stop"))
    assert listed == {tool["name"] for tool in ask(server, "tools/list")["tools"]}


def test_every_resource_is_read_completed_and_listened_to(raw):
    server = raw("--approved")
    project = call(server, "project_create", name="p", agent_command=["/bin/cat"])["structuredContent"]
    session = call(server, "session_start", project_id=project["id"])["structuredContent"]["session_id"]
    values = {"project_id": project["id"], "workspace_id": project["default_workspace_id"], "session_id": session}
    listed = [resource["uri"] for resource in ask(server, "resources/list")["resources"]]
    templates = [template["uriTemplate"] for template in ask(server, "resources/templates/list")["resourceTemplates"]]
    day = next(uri for uri in listed if "/audit/" in uri).rpartition("/")[2]
    values["day"] = day
    uris = listed + [template.format(**values) for template in templates]
    assert {uri.split("/")[2] for uri in uris} == {"projects", "project", "sessions", "session", "audit"}
    for uri in uris:
        (content,) = ask(server, "resources/read", uri=uri)["contents"]
        assert content["uri"] == uri and content["mimeType"] and "text" in content
        if content["mimeType"] == "application/json":
            json.loads(content["text"])
    for template in templates:
        for name in [part.partition("}")[0] for part in template.split("{")[1:]]:
            got = ask(server, "completion/complete", ref={"type": "ref/resource", "uri": template}, argument={"name": name, "value": values[name][:4]}, context={"arguments": {"project_id": project["id"]}})
            assert values[name] in got["completion"]["values"], (template, name)
    # Each of them changes, and that is told.
    wanted = set(uris)
    server.request("l", "subscriptions/listen", {"notifications": {"resourceSubscriptions": sorted(wanted)}})
    assert set(server.receive()["params"]["notifications"]["resourceSubscriptions"]) == wanted
    call_later = [
        ("session_send", {"session_id": session, "message": "hello"}),
        ("project_update", {"project_id": project["id"], "description": "new"}),
        ("workspace_create", {"project_id": project["id"]}),
        ("session_stop", {"session_id": session, "grace_seconds": 0}),
        ("session_start", {"project_id": project["id"], "command": ["/bin/true"], "wait_seconds": 30}),
        ("project_create", {"name": "q"}),
    ]
    calls = iter(enumerate(call_later))  # one after the other: those of one client may run side by side

    def call_next():
        for number, (tool, arguments) in calls:
            server.request(number, "tools/call", {"name": tool, "arguments": arguments})
            return

    call_next()
    told, answered = set(), 0
    while told != wanted or answered < len(call_later):
        try:
            message = server.receive(10)
        except queue.Empty:
            pytest.fail(f"not told of {wanted - told}")
        if "method" in message:
            told.add(message["params"]["uri"])
        else:
            answered += 1
            assert not message["result"].get("isError"), message
            call_next()


def test_calls_about_one_thing_are_carried_out_in_their_order(raw):
    """Also when a client does not wait for the answers."""
    server = raw()
    project = call(server, "project_create", name="p")["structuredContent"]["id"]
    session = call(server, "session_start", project_id=project, command=["/bin/cat"])["structuredContent"]["session_id"]
    for number in range(30):
        server.request(100 + number, "tools/call", {"name": "session_send", "arguments": {"session_id": session, "message": f"line {number}"}})
        server.request(200 + number, "tools/call", {"name": "project_update", "arguments": {"project_id": project, "description": f"text {number}"}})
    answered = set()
    while len(answered) < 60:
        message = server.receive(30)
        assert not message["result"].get("isError"), message
        answered.add(message["id"])
    assert call(server, "project_get", project_id=project)["structuredContent"]["description"] == "text 29"
    wanted = "".join(f"line {number}\n" for number in range(30))

    def output():
        events = call(server, "session_output", session_id=session)["structuredContent"]["events"]
        return "".join(event["text"] for event in events if event["type"] == "stdout")

    assert poll(lambda: len(output()) >= len(wanted) and output(), 30, "the lines") == wanted


def test_every_prompt_says_what_to_do_and_completes(raw):
    server = raw()
    project = call(server, "project_create", name="p")["structuredContent"]["id"]
    prompts = ask(server, "prompts/list")["prompts"]
    assert {prompt["name"] for prompt in prompts} == {"explain_denial", "propose_policy"}
    for prompt in prompts:
        assert prompt["title"] and prompt["description"] and all(argument["description"] for argument in prompt["arguments"])
        given = {argument["name"]: f"value of {argument['name']}" for argument in prompt["arguments"]}
        text = ask(server, "prompts/get", name=prompt["name"], arguments=given)["messages"][0]["content"]["text"]
        assert all(f"- {name}: {value}" in text for name, value in given.items()) and "policy" in prompt["name"] + text
        got = ask(server, "completion/complete", ref={"type": "ref/prompt", "name": prompt["name"]}, argument={"name": "project_id", "value": ""})
        assert got["completion"]["values"] == [project]


def test_the_instructions_name_what_there_is(raw):
    server = raw()
    text = ask(server, "server/discover")["instructions"]
    assert text == server.initialize()["instructions"] and len(text.splitlines()) == 5
    for word in ("project", "workspace", "session", "/workspace", "protected_paths", "approval", "policy_check"):
        assert word in text
