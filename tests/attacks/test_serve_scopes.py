# SPDX-License-Identifier: Apache-2.0
"""Every tool of the HTTP server with every scope, and with the ids of other tenants. Both are generated from the list of tools: a new
tool, or a new argument that names something, needs a line here."""
import json

import pytest

from flows import Desk, human, step
from serving import META, PATIENT, Serve
from support import callers, poll

FORMS = {"elicitation": {}}
MISSING = "00000000-0000-4000-8000-000000000000"
SCOPES = ("read", "run", "admin")
# The least scope that each tool needs.
NEEDS = {
    "read": "project_list project_get workspace_list workspace_get session_output session_get session_list policy_check agent_list agent_status orchestrator_list"
            " workflow_list workflow_status workflow_logs changes_list changes_diff loop_status",
    "run": "run workspace_create session_start session_send session_exec session_stop agent_execute agent_cancel workflow_run workflow_cancel workflow_resume"
           " workflow_answer loop_stop grant_request",
    "admin": "project_create project_update project_delete workspace_delete orchestrator_add orchestrator_remove shared_add shared_remove shared_grant"
             " shared_revoke changes_apply changes_discard loop_start",
}  # fmt: skip
LEAST = {tool: scope for scope, tools in NEEDS.items() for tool in tools.split()}
# What a token that is bound to projects is offered, by how its projects are found: in the arguments, or as those that a list is limited to.
BOUND = {
    "project_get", "project_update", "project_delete", "workspace_create", "workspace_list", "workspace_get", "workspace_delete", "session_start",
    "run", "session_send", "session_output", "session_get", "session_exec", "session_stop", "policy_check", "project_list", "session_list", "grant_request",
}  # fmt: skip
# Arguments that name a thing of a project; a workspace has its name within one.
NAMES = {"project_id": "project", "session_id": "session", "parent_session_id": "session"}
NO_NAMES = {"workspace_id", "external_id"}


@pytest.fixture
def who():
    """What reaches the server over a port does not depend on who runs it."""
    return callers().get("user") or callers()["root"]


@pytest.fixture
def server(cordon):
    made = Serve(cordon, "--toolset", "manage,run")
    made.token = made.make_token("--scope", "admin")
    poll(lambda: made.modern("tools/list").status == 200, PATIENT, "the token to be known")
    yield made
    assert made.stop() == 0, made.process.stderr.read().decode()


def token_of(server, *options):
    token = server.make_token(*options)
    poll(lambda: server.modern("tools/list", token=token).status == 200, PATIENT, "the token to be known")
    return token


def tools_of(server, token=None):
    return {tool["name"]: tool["inputSchema"] for tool in server.result("tools/list", token=token)["tools"]}


def arguments_of(schema, **given):
    """Arguments that fit a schema and name nothing that exists."""
    values = {"string": MISSING, "array": ["x"], "integer": 1, "boolean": True, "object": {}}
    chosen = dict(given)
    for name in schema.get("required", ()):
        kind = schema["properties"][name]
        chosen.setdefault(name, kind["enum"][0] if "enum" in kind else values[kind["type"] if isinstance(kind["type"], str) else kind["type"][0]])
    return chosen


def test_each_tool_with_each_scope(cordon, server):
    # Without HTTP there is no token, so no usual tool hides from this list.
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
    usual = {tool["name"] for tool in cordon("mcp", input=json.dumps(request) + "\n").json()["result"]["tools"]}
    tools = tools_of(server)
    assert usual | {"run"} == tools.keys() == LEAST.keys()
    for scope in SCOPES:
        token = token_of(server, "--scope", scope)
        allowed = {tool for tool, least in LEAST.items() if SCOPES.index(least) <= SCOPES.index(scope)}
        assert tools_of(server, token).keys() == allowed, scope
        for tool, schema in tools.items():
            params = {"name": tool, "arguments": arguments_of(schema)}
            answer = server.modern("tools/call", params, token=token, capabilities=FORMS).json()
            text = json.dumps(answer)
            refused = f"{tool} needs a token with the scope {LEAST[tool]}" in text
            assert refused == (tool not in allowed), (scope, tool, text)


def test_the_older_era_has_the_same_scopes(server):
    token = token_of(server, "--scope", "read")
    session = server.initialize(FORMS, token=token)
    listed = server.legacy(session, "tools/list", token=token).json()["result"]["tools"]
    assert {tool["name"] for tool in listed} == set(NEEDS["read"].split())
    for tool in ("session_start", "project_delete"):
        params = {"name": tool, "arguments": {"project_id": MISSING}}
        result = server.legacy(session, "tools/call", params, token=token).json()["result"]
        assert result["isError"] and "needs a token with the scope" in result["content"][0]["text"]


def test_the_ids_of_others_in_every_argument_are_ids_of_nothing(cordon, server):
    mine, theirs = (cordon("project", "create", name, "--no-git", "--json").json()["id"] for name in ("mine", "theirs"))
    token = token_of(server, "--scope", "admin", "--project", mine)
    own, foreign = (server.did("session_start", project_id=project, command=["cat"])["session_id"] for project in (mine, theirs))
    ids = {"project": (mine, theirs), "session": (own, foreign)}
    tools = tools_of(server, token)
    assert tools.keys() == BOUND
    tried = set()
    before = [cordon("project", "get", theirs, "--json").json(), server.did("session_get", session_id=foreign), server.did("workspace_list", project_id=theirs)]
    for tool, schema in tools.items():
        unknown = {name for name in schema["properties"] if name.endswith("_id")} - NAMES.keys() - NO_NAMES
        assert not unknown, (tool, unknown)
        named = [name for name in NAMES if name in schema["properties"]]
        for name in named:
            # All other arguments are right, and what they name is the client's.
            good = {other: ids[NAMES[other]][0] for other in named if other in schema.get("required", ()) and other != name}
            extra = {"command": ["true"]} if "command" in schema["properties"] else {}
            answers = []
            for value in (ids[NAMES[name]][1], ids[NAMES[name]][1].upper(), MISSING):
                args = arguments_of(schema, **good, **extra, **{name: value})
                answer = server.modern("tools/call", {"name": tool, "arguments": args}, token=token, capabilities=FORMS).json()["result"]
                answers.append(json.dumps(answer).replace(value.lower(), MISSING).replace(value, MISSING))
                assert answer["isError"] and answer["structuredContent"]["error"]["kind"] == "not_found", (tool, name, value, answer)
            assert len(set(answers)) == 1, (tool, name, answers)
            tried.add((tool, name))
    assert {name for _, name in tried} == NAMES.keys() and len(tried) > 15
    # Lists without a name have only what is the client's, and tools for the whole machine are not there at all.
    assert [entry["id"] for entry in server.did("project_list", token=token)["projects"]] == [mine]
    assert [entry["session_id"] for entry in server.did("session_list", token=token)["sessions"]] == [own]
    for tool in LEAST.keys() - BOUND:
        result = server.result("tools/call", {"name": tool, "arguments": arguments_of(tools_of(server)[tool])}, token=token, capabilities=FORMS)
        assert result["isError"] and "bound to projects" in result["content"][0]["text"], (tool, result)
    after = [cordon("project", "get", theirs, "--json").json(), server.did("session_get", session_id=foreign), server.did("workspace_list", project_id=theirs)]
    assert before == after
    for session in (own, foreign):
        server.did("session_stop", session_id=session)


def test_a_token_without_admin_answers_no_question_itself(box, cordon, server):
    """Its client says that it can ask a person, and answers as soon as it is asked. Only what the host's records say counts."""
    desk = Desk(box, cordon)
    desk.define(human("check", on_approve="ship"), step("ship", "true"))
    project = cordon("project", "create", "p", "--no-git", "--json").json()["id"]
    session = server.did("session_start", project_id=project, command=["cat"])["session_id"]
    yes = {"approve": {"action": "accept", "content": {"approve": True}}}
    token, admin = (token_of(server, "--scope", scope) for scope in ("run", "admin"))

    def answer(token, tool, arguments):
        """What the client gets, in both eras, when it approves whatever it is asked."""
        params = {"name": tool, "arguments": arguments}
        first = server.modern("tools/call", params, token=token, capabilities=FORMS).json()["result"]
        if first.get("resultType") == "input_required":
            params |= {"requestState": first["requestState"], "inputResponses": yes}
            return server.modern("tools/call", params, token=token, capabilities=FORMS).json()["result"]
        legacy = server.open(server.post_bytes({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}, server.initialize(FORMS, token=token), token=token))
        message = legacy.wait(lambda m: True) if legacy.head().headers["content-type"] == "text/event-stream" else legacy.ended().json()
        assert message.get("method") != "elicitation/create", message
        return first

    for run in (desk.begin() for _ in range(2)):
        poll(lambda: desk.status(run)["state"] == "waiting", PATIENT)
        for arguments in ({"run_id": run, "step": "check", "decision": "approve"}, {"run_id": run, "step": "check", "decision": "reject", "note": "n"}):
            result = answer(token, "workflow_answer", arguments)
            assert result["isError"] and "whom this client can't speak for" in result["content"][0]["text"]
        assert desk.status(run)["state"] == "waiting" and not [event for event in desk.journal(run) if event["event"] == "answer"]
        assert answer(token, "grant_request", {"session_id": session, "path": str(box.mkdir("data")), "reason": "r"})["isError"]
    assert {one["state"] for one in cordon("approvals", "list", "--all", "--json").json()} == {"waiting"}
    assert not answer(admin, "workflow_answer", {"run_id": run, "step": "check", "decision": "approve"}).get("isError")
    assert [event["step"] for event in desk.journal(run) if event["event"] == "answer"] == ["check"]
    server.did("session_stop", session_id=session)
