# SPDX-License-Identifier: Apache-2.0
"""The server scenarios of the official conformance suite (@modelcontextprotocol/conformance 0.2.0-alpha.12) on stdio, which the
suite does not speak, against the program in tests/conformance that has the tools, resources and prompts which the suite
expects. Each test bears its scenario's name, and the judge of conftest.py looks at every message besides. Scenarios of
both eras run in both. test_conformance_http.py runs the suite itself over HTTP.

What is not here, and why:

    logging-set-level, tools-call-with-logging      Logging is deprecated and not adopted: no `logging` capability, and the
                                                    method is unknown, which test_deprecated_features_are_not_there checks.
    tools-call-sampling                             Sampling is deprecated and cordon asks for none; over HTTP the suite itself tries
                                                    the program's tool for it.
    server-stateless: tools and prompts             Neither list changes while a server runs, and `listChanged` is not declared,
      list-changed-on-subscription                  so the suite itself leaves these checks out.
    tasks-*, skills-*                               Extensions that are not offered.
"""
import shutil
import subprocess

import pytest

from support import built_executable, callers

from .conftest import CAPABILITIES, VERSION, Raw, Wire, finish

MODERN, LEGACY = "2026-07-28", "2025-11-25"
FORMS = {"elicitation": {}}


class Server(Raw):
    """The fixture in one era; a client that can be asked."""

    era = MODERN
    counter = 0

    def call(self, method, params=None, capabilities=None, **more):
        """(answer, the notifications that came before it)"""
        self.counter += 1
        self.request(self.counter, method, params, modern=self.era == MODERN, capabilities=capabilities or FORMS, **more)
        notes = []
        while True:
            message = self.receive()
            if message.get("id") == self.counter and "method" not in message:
                return message, notes
            notes.append(message)

    def result(self, method, params=None, **more):
        answer, _ = self.call(method, params, **more)
        assert "result" in answer, answer
        return answer["result"]

    def tool(self, tool, **more):
        return self.result("tools/call", {"name": tool, "arguments": {}, **more})

    def code(self, method, params=None, **more):
        answer, _ = self.call(method, params, **more)
        assert "error" in answer, answer
        return answer["error"]["code"]


@pytest.fixture
def start(box, judge):
    servers = []
    program = box.bin / "mcp_fixture"
    if not program.exists():
        shutil.copy(built_executable().parent / "tests" / "mcp_fixture", program)
        program.chmod(0o755)

    def make(era):
        server = Server(box.start(program, stdin=subprocess.PIPE), Wire(judge))
        server.era = era
        servers.append(server)
        if era == LEGACY:
            server.initialized = server.initialize(capabilities=FORMS)
        return server

    yield make
    finish(servers)


@pytest.fixture
def who():
    """The protocol does not know who runs it."""
    return callers().get("root") or callers()["user"]


@pytest.fixture(params=[MODERN, LEGACY])
def server(request, start):
    return start(request.param)


@pytest.fixture
def modern(start):
    return start(MODERN)


@pytest.fixture
def legacy(start):
    return start(LEGACY)


def accept(**content):
    return {"action": "accept", "content": content}


def test_server_initialize(legacy):
    answer = legacy.initialized
    assert answer["protocolVersion"] == LEGACY and answer["serverInfo"]["name"] and answer["serverInfo"]["version"]
    assert isinstance(answer["capabilities"], dict)


def test_ping(legacy):
    assert legacy.result("ping") == {}


def test_completion_complete(server):
    values = server.result("completion/complete", {"ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"}, "argument": {"name": "arg1", "value": "test"}})
    assert values["completion"]["values"] == ["testing"]


def test_tools_list(server):
    lists = [server.result("tools/list")["tools"] for _ in range(3)]
    assert lists[0] == lists[1] == lists[2]
    for tool in lists[0]:
        assert tool["name"] and tool["description"] and tool["inputSchema"]
        assert len(tool["name"]) <= 64 and tool["name"].replace("_", "").isalnum()


def test_tools_call_simple_text(server):
    assert server.tool("test_simple_text")["content"] == [{"type": "text", "text": "This is a simple text response for testing."}]
    assert server.result("tools/call", {"name": "test_simple_text"})["content"]


def test_tools_call_image(server):
    (image,) = server.tool("test_image_content")["content"]
    assert image["type"] == "image" and image["data"] and image["mimeType"] == "image/png"


def test_tools_call_audio(server):
    (audio,) = server.tool("test_audio_content")["content"]
    assert audio["type"] == "audio" and audio["data"] and audio["mimeType"] == "audio/wav"


def test_tools_call_embedded_resource(server):
    (content,) = server.tool("test_embedded_resource")["content"]
    assert content["type"] == "resource" and set(content["resource"]) == {"uri", "mimeType", "text"}


def test_tools_call_mixed_content(server):
    assert [content["type"] for content in server.tool("test_multiple_content_types")["content"]] == ["text", "image", "resource"]


def test_tools_call_error(server):
    result = server.tool("test_error_handling")
    assert result["isError"] is True and "intentionally" in result["content"][0]["text"]


def test_tools_call_with_progress(server):
    answer, notes = server.call("tools/call", {"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": "progress-test-1"}})
    values = [note["params"]["progress"] for note in notes if note["method"] == "notifications/progress" and note["params"]["progressToken"] == "progress-test-1"]
    assert len(values) >= 3 and values == sorted(values) and answer["result"]["content"]
    # Without a token there is none.
    answer, notes = server.call("tools/call", {"name": "test_tool_with_progress", "arguments": {}})
    assert answer["result"]["content"] and notes == []


def test_server_sse_multiple_streams(server):
    """Here: requests that are served side by side."""
    for number in (1001, 1002, 1003):
        server.request(number, "tools/call", {"name": "test_tool_with_progress", "arguments": {}}, modern=server.era == MODERN)
    server.request(1004, "tools/list", modern=server.era == MODERN)
    order = [server.receive()["id"] for _ in range(4)]
    assert order[0] == 1004 and sorted(order[1:]) == [1001, 1002, 1003]


def test_cancelled_calls_are_not_answered(server):
    server.request(2001, "tools/call", {"name": "test_tool_with_progress", "arguments": {}}, modern=server.era == MODERN)
    server.notify("notifications/cancelled", {"requestId": 2001, "reason": "enough"})
    answer, notes = server.call("tools/call", {"name": "test_tool_with_progress", "arguments": {}})
    assert answer["result"] and notes == []


def test_resources_list(server):
    for resource in server.result("resources/list")["resources"]:
        assert resource["uri"] and resource["name"]


def test_resources_read_text(server):
    (content,) = server.result("resources/read", {"uri": "test://static-text"})["contents"]
    assert content == {"uri": "test://static-text", "mimeType": "text/plain", "text": "This is the content of the static text resource."}


def test_resources_read_binary(server):
    (content,) = server.result("resources/read", {"uri": "test://static-binary"})["contents"]
    assert content["mimeType"] == "image/png" and content["blob"]


def test_resources_templates_read(server):
    assert server.result("resources/templates/list")["resourceTemplates"][0]["uriTemplate"] == "test://template/{id}/data"
    (content,) = server.result("resources/read", {"uri": "test://template/123/data"})["contents"]
    assert content["uri"] == "test://template/123/data" and "123" in content["text"]


def test_resources_subscribe(legacy):
    assert legacy.result("resources/subscribe", {"uri": "test://watched-resource"}) == {}
    legacy.tool("test_simple_text")  # leaves a record in what is watched
    note = legacy.receive()
    assert note["method"] == "notifications/resources/updated" and note["params"] == {"uri": "test://watched-resource"}


def test_resources_unsubscribe(legacy):
    legacy.result("resources/subscribe", {"uri": "test://watched-resource"})
    assert legacy.result("resources/unsubscribe", {"uri": "test://watched-resource"}) == {}
    legacy.tool("test_simple_text")
    _, notes = legacy.call("tools/call", {"name": "test_tool_with_progress", "arguments": {}})
    assert notes == []


def test_sep_2164_resource_not_found(server):
    uri = "test://nonexistent-resource-for-conformance-testing"
    error = server.call("resources/read", {"uri": uri})[0]["error"]
    assert error["code"] == (-32602 if server.era == MODERN else -32002) and error["data"]["uri"] == uri


def test_prompts_list(server):
    prompts = server.result("prompts/list")["prompts"]
    assert all(prompt["name"] and prompt["description"] for prompt in prompts)
    assert {"test_simple_prompt", "test_prompt_with_arguments"} <= {prompt["name"] for prompt in prompts}


def test_prompts_get_simple(server):
    (message,) = server.result("prompts/get", {"name": "test_simple_prompt"})["messages"]
    assert message["role"] == "user" and message["content"]["text"]


def test_prompts_get_with_args(server):
    (message,) = server.result("prompts/get", {"name": "test_prompt_with_arguments", "arguments": {"arg1": "testValue1", "arg2": "testValue2"}})["messages"]
    assert "testValue1" in message["content"]["text"] and "testValue2" in message["content"]["text"]


def test_prompts_get_embedded_resource(server):
    messages = server.result("prompts/get", {"name": "test_prompt_with_embedded_resource", "arguments": {"resourceUri": "test://example-resource"}})["messages"]
    assert messages[0]["content"]["resource"]["uri"] == "test://example-resource"


def test_prompts_get_with_image(server):
    messages = server.result("prompts/get", {"name": "test_prompt_with_image"})["messages"]
    assert messages[0]["content"]["type"] == "image" and messages[0]["content"]["mimeType"] == "image/png"


def test_caching(modern):
    for method, params in (("server/discover", {}), ("tools/list", {}), ("prompts/list", {}), ("resources/list", {}), ("resources/templates/list", {}), ("resources/read", {"uri": "test://static-text"})):
        result = modern.result(method, params)
        assert isinstance(result["ttlMs"], int) and result["ttlMs"] >= 0 and result["cacheScope"] in ("public", "private"), method
    assert "ttlMs" not in modern.tool("test_simple_text") and "ttlMs" not in modern.tool("test_input_required_result_elicitation")


@pytest.mark.parametrize("tool, content", [
    ("test_elicitation", {"username": "u", "email": "u@example.com"}),
    ("test_elicitation_sep1034_defaults", {"name": "Jane Smith", "age": 25, "score": 88, "status": "inactive", "verified": False}),
    ("test_elicitation_sep1330_enums", {"untitledSingle": "option1", "titledSingle": "value1", "legacyEnum": "opt1", "untitledMulti": ["option1"], "titledMulti": ["value1"]}),
], ids=["tools-call-elicitation", "elicitation-sep1034-defaults", "elicitation-sep1330-enums"])  # fmt: skip
def test_elicitation(legacy, tool, content):
    legacy.request("e", "tools/call", {"name": tool, "arguments": {"message": "Please"} if tool == "test_elicitation" else {}}, modern=False)
    question = legacy.receive()
    assert question["method"] == "elicitation/create" and question["params"]["message"]
    fields = question["params"]["requestedSchema"]["properties"]
    if "sep1034" in tool:
        assert {name: field["default"] for name, field in fields.items()} == {"name": "John Doe", "age": 30, "score": 95.5, "status": "active", "verified": True}
        assert [field["type"] for field in fields.values()] == ["string", "integer", "number", "string", "boolean"]
    if "sep1330" in tool:
        assert "enum" in fields["untitledSingle"] and "oneOf" in fields["titledSingle"]
        assert len(fields["legacyEnum"]["enum"]) == len(fields["legacyEnum"]["enumNames"])
        assert "enum" in fields["untitledMulti"]["items"] and "anyOf" in fields["titledMulti"]["items"]
    legacy.send({"jsonrpc": "2.0", "id": question["id"], "result": accept(**content)})
    answer = legacy.receive()
    assert answer["id"] == "e" and "action=accept" in answer["result"]["content"][0]["text"]


def test_elicitation_without_the_capability(start):
    server = start(MODERN)
    server.era = LEGACY
    server.initialize()
    assert server.result("tools/call", {"name": "test_elicitation", "arguments": {"message": "m"}})["isError"] is True


def test_json_schema_2020_12(server):
    (schema,) = [tool["inputSchema"] for tool in server.result("tools/list")["tools"] if tool["name"] == "json_schema_2020_12_tool"]
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema" and schema["additionalProperties"] is False
    assert schema["$defs"]["address"]["$anchor"] == "addressDef" and schema["allOf"][0]["anyOf"]
    assert {"if", "then", "else"} <= set(schema) and schema["properties"]["address"] == {"$ref": "#/$defs/address"}


def test_input_required_result_basic_elicitation(modern):
    asked = modern.tool("test_input_required_result_elicitation")
    assert asked["resultType"] == "input_required" and asked["inputRequests"]["user_name"]["method"] == "elicitation/create"
    done = modern.tool("test_input_required_result_elicitation", inputResponses={"user_name": accept(name="Alice")})
    assert done["resultType"] == "complete" and done["content"][0]["text"] == "Hello, Alice!"


def test_input_required_result_request_state(modern):
    asked = modern.tool("test_input_required_result_request_state")
    done = modern.tool("test_input_required_result_request_state", inputResponses={"confirm": accept(ok=True)}, requestState=asked["requestState"])
    assert done["resultType"] == "complete" and "state-ok" in done["content"][0]["text"]


def test_input_required_result_multiple_input_requests(modern):
    tool = "test_input_required_result_multiple_inputs"
    asked = modern.tool(tool)
    assert len(asked["inputRequests"]) == 3 and asked["requestState"]
    said = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}}
    answers = {"user_name": accept(name="Alice"), "greeting": said, "roots": {"roots": []}}
    assert modern.tool(tool, inputResponses={"user_name": answers["user_name"]}, requestState=asked["requestState"])["resultType"] == "input_required"
    assert modern.tool(tool, inputResponses=answers, requestState=asked["requestState"])["resultType"] == "complete"


def test_input_required_result_multi_round(modern):
    tool = "test_input_required_result_multi_round"
    first = modern.tool(tool)
    second = modern.tool(tool, inputResponses={"step1": accept(name="Alice")}, requestState=first["requestState"])
    assert second["resultType"] == "input_required" and list(second["inputRequests"]) == ["step2"]
    assert second["requestState"] != first["requestState"]
    # A state is good for its own step only.
    assert modern.tool(tool, inputResponses={"step2": accept(color="blue")}, requestState=first["requestState"])["resultType"] == "input_required"
    assert modern.tool(tool, inputResponses={"step2": accept(color="blue")}, requestState=second["requestState"])["resultType"] == "complete"


def test_input_required_result_missing_input_response(modern):
    for answers in ({}, {"wrong_key": accept(name="Alice")}):
        again = modern.tool("test_input_required_result_elicitation", inputResponses=answers)
        assert again["resultType"] == "input_required" and "user_name" in again["inputRequests"]


def test_input_required_result_non_tool_request(modern):
    name = "test_input_required_result_prompt"
    asked = modern.result("prompts/get", {"name": name})
    assert asked["resultType"] == "input_required" and "user_context" in asked["inputRequests"]
    done = modern.result("prompts/get", {"name": name, "inputResponses": {"user_context": accept(context="test context")}})
    assert done["resultType"] == "complete" and "test context" in done["messages"][0]["content"]["text"]


def test_input_required_result_result_type(modern):
    assert modern.tool("test_input_required_result_elicitation")["resultType"] == "input_required"
    assert modern.tool("test_simple_text")["resultType"] == "complete"


def test_input_required_result_unsupported_methods(modern):
    for method in ("tools/list", "prompts/list", "resources/list", "server/discover"):
        assert modern.result(method)["resultType"] == "complete"


def test_input_required_result_tampered_state(modern):
    tool = "test_input_required_result_tampered_state"
    state = modern.tool(tool)["requestState"]
    params = {"name": tool, "arguments": {}, "inputResponses": {"confirm": accept(ok=True)}}
    assert modern.code("tools/call", {**params, "requestState": state + "-TAMPERED"}) == -32602
    # One tool's state is not another's.
    assert modern.code("tools/call", {**params, "name": "test_input_required_result_request_state", "requestState": state}) == -32602
    assert modern.tool(tool, inputResponses=params["inputResponses"], requestState=state)["resultType"] == "complete"


def test_input_required_result_capability_check(modern):
    params = {"name": "test_input_required_result_capabilities", "arguments": {}}
    assert "inputRequests" not in modern.result("tools/call", params, capabilities={"roots": {}})
    asked = modern.result("tools/call", params, capabilities={"sampling": {}})["inputRequests"]
    assert [question["method"] for question in asked.values()] == ["sampling/createMessage"]
    assert modern.result("tools/call", params)["resultType"] == "input_required"


def test_input_required_result_ignore_extra_params(modern):
    answers = {"user_name": accept(name="Alice"), "unknown_extra_key": accept(foo="bar"), "another_unexpected": accept(baz=123)}
    assert modern.tool("test_input_required_result_elicitation", inputResponses=answers)["resultType"] == "complete"


@pytest.mark.parametrize("answers", [{"user_name": 12345}, None, [], {"user_name": "Alice"}])
def test_input_required_result_validate_input(modern, answers):
    assert modern.code("tools/call", {"name": "test_input_required_result_elicitation", "arguments": {}, "inputResponses": answers}) == -32602


def test_server_stateless(modern):
    """Everything in the scenario that is not a status code of HTTP."""
    meta = {VERSION: MODERN, CAPABILITIES: {}}
    ask = lambda id, method, params: modern.ask(id, method, params, modern=False)  # noqa: E731
    # request-meta-invalid, request-meta-client-info-optional, error ids
    for number, broken in enumerate(({}, {VERSION: MODERN}, {CAPABILITIES: {}}), 300):
        answer = ask(number, "tools/list", {"_meta": broken} if broken else {})
        assert answer["error"]["code"] == -32602 and answer["id"] == number
    assert "result" in ask(310, "tools/list", {"_meta": meta})
    # discover, capabilities match handlers, identifies itself
    found = ask(311, "server/discover", {"_meta": meta})["result"]
    assert MODERN in found["supportedVersions"] and found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"]
    for capability, method in (("tools", "tools/list"), ("prompts", "prompts/list"), ("resources", "resources/list")):
        assert capability in found["capabilities"] and "result" in ask(312, method, {"_meta": meta})
    # unsupported version
    error = ask(320, "tools/list", {"_meta": {**meta, VERSION: "1900-01-01"}})["error"]
    assert error["code"] == -32022 and set(error["data"]["supported"]) <= set(found["supportedVersions"])
    # methods of the other era, and of none
    for number, method in enumerate(("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "nothing"), 330):
        assert ask(number, method, {"_meta": meta})["error"]["code"] == -32601
    # undeclared capability
    error = ask(401, "tools/call", {"name": "test_missing_capability", "arguments": {}, "_meta": meta})["error"]
    assert error["code"] == -32021 and error["data"]["requiredCapabilities"] == {"sampling": {}}
    # subscription: acknowledged first, tagged, filtered; no requests of the server's own
    modern.request("listen", "subscriptions/listen", {"notifications": {"promptsListChanged": True, "resourceSubscriptions": ["test://watched-resource", "test://other"]}})
    first = modern.receive()
    assert first["method"] == "notifications/subscriptions/acknowledged"
    assert first["params"]["notifications"] == {"resourceSubscriptions": ["test://watched-resource"]}
    modern.tool("test_simple_text")
    note = modern.receive()
    assert note["method"] == "notifications/resources/updated"
    assert {message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] for message in (first, note)} == {"listen"}
    modern.notify("notifications/cancelled", {"requestId": "listen"})


def test_deprecated_features_are_not_there(server):
    declared = server.result("server/discover")["capabilities"] if server.era == MODERN else server.initialized["capabilities"]
    assert not {"logging", "sampling", "roots"} & set(declared)
    assert server.code("logging/setLevel", {"level": "debug"}) == -32601
