# SPDX-License-Identifier: Apache-2.0
"""The judge of all messages can say no: each of these is wrong in its revision, and the same message put right is not."""
import json

import pytest

from .conftest import CAPABILITIES, VERSION, Wire

META = {VERSION: "2026-07-28", CAPABILITIES: {}}
SERVER = {"_meta": {"io.modelcontextprotocol/serverInfo": {"name": "cordon", "version": "1"}}}
HINTS = {"ttlMs": 0, "cacheScope": "private"}
TEXT = {"type": "text", "text": "x"}
TOOL = {"name": "t", "inputSchema": {"type": "object"}}


def judged(judge, *messages):
    """The verdict about a conversation of (side, message)."""
    wire = Wire(judge)
    for side, message in messages:
        wire.saw(side, message if isinstance(message, str) else json.dumps({"jsonrpc": "2.0", **message}))
    wire.over = True
    return judge.verdict(wire.number)


def asked(method, params, modern):
    params = {**params, **({"_meta": {**META, **params.get("_meta", {})}} if modern else {})}
    return "client", {"id": 1, "method": method, "params": params}


GOOD = {
    "modern list": (asked("tools/list", {}, True), ("server", {"id": 1, "result": {"resultType": "complete", "tools": [TOOL], **HINTS, **SERVER}})),
    "legacy list": (asked("tools/list", {}, False), ("server", {"id": 1, "result": {"tools": [TOOL]}})),
    "modern call": (asked("tools/call", {"name": "t"}, True), ("server", {"id": 1, "result": {"resultType": "complete", "content": [TEXT], **SERVER}})),
    "legacy call": (asked("tools/call", {"name": "t"}, False), ("server", {"id": 1, "result": {"content": [TEXT]}})),
    "refused": (asked("tools/call", {"name": 5}, True), ("server", {"id": 1, "error": {"code": -32602, "message": "no"}})),
    "progress": (asked("tools/call", {"name": "t", "_meta": {"progressToken": "p"}}, True), ("server", {"method": "notifications/progress", "params": {"progressToken": "p", "progress": 1}})),
    "cancelled": (asked("tools/call", {"name": "t"}, True), ("client", {"method": "notifications/cancelled", "params": {"requestId": 1}})),
    "elicitation": (
        ("server", {"id": "q", "method": "elicitation/create", "params": {"message": "m", "requestedSchema": {"type": "object", "properties": {"a": {"type": "boolean"}}}}}),
        ("client", {"id": "q", "result": {"action": "accept", "content": {"a": True}}}),
    ),
}  # fmt: skip

modern_list, legacy_list, modern_call, legacy_call = (GOOD[name] for name in ("modern list", "legacy list", "modern call", "legacy call"))


def result(conversation, **changes):
    """The same conversation with another result; None takes a field away."""
    made = {**conversation[1][1]["result"], **changes}
    return conversation[0], ("server", {"id": 1, "result": {key: value for key, value in made.items() if value is not None}})


BAD = {
    "no JSON": (("server", "nonsense"),),
    "not JSON-RPC": (("server", {"jsonrpc": "1.0", "id": 1, "result": {}}),),
    "an answer to nothing": (("server", {"id": 7, "result": {}}),),
    "a second answer": (*modern_call, modern_call[1]),
    "no resultType": result(modern_call, resultType=None),
    "an unknown resultType": result(modern_call, resultType="whatever"),
    "no server's name": result(modern_call, _meta=None),
    "no caching hints": result(modern_list, ttlMs=None),
    "a negative ttlMs": result(modern_list, ttlMs=-1),
    "an unknown cacheScope": result(modern_list, cacheScope="everybody"),
    "caching hints where none belong": result(modern_call, **HINTS),
    "caching hints in the legacy era": result(legacy_list, **HINTS),
    "a resultType in the legacy era": result(legacy_call, resultType="complete"),
    "a tool without a schema": result(legacy_list, tools=[{"name": "t"}]),
    "a tool whose schema is no object": result(modern_list, tools=[{"name": "t", "inputSchema": {"type": "string"}}]),
    "a field of a tool that is unknown": result(modern_list, tools=[{**TOOL, "colour": "red"}]),
    "content of an unknown type": result(modern_call, content=[{"type": "smell", "text": "x"}]),
    "no content": result(modern_call, content=None),
    "structure that is no object in the legacy era": result(legacy_call, structuredContent=[1]),
    "an image without data": result(modern_call, content=[{"type": "image", "mimeType": "image/png"}]),
    "an empty input_required": result(modern_call, resultType="input_required", content=None),
    "an input request of an unknown kind": result(modern_call, resultType="input_required", content=None, inputRequests={"a": {"method": "fly", "params": {}}}),
    "a form that is no object": result(modern_call, resultType="input_required", content=None, inputRequests={"a": {"method": "elicitation/create", "params": {"mode": "form", "message": "m", "requestedSchema": {"type": "string"}}}}),
    "an error of the legacy era": (modern_call[0], ("server", {"id": 1, "error": {"code": -32002, "message": "no"}})),
    "an error without a message": (modern_call[0], ("server", {"id": 1, "error": {"code": -32602}})),
    "a version error without data": (modern_call[0], ("server", {"id": 1, "error": {"code": -32022, "message": "no"}})),
    "a code that is forbidden": (modern_call[0], ("server", {"id": 1, "error": {"code": -32005, "message": "no"}})),
    "a bad request that was served": (asked("tools/call", {"name": 5}, True), modern_call[1]),
    "a bad request that was not answered": (asked("tools/call", {"name": 5}, False),),
    "a request without capabilities": (("client", {"id": 1, "method": "tools/call", "params": {"name": "t", "_meta": {VERSION: "2026-07-28"}}}), modern_call[1]),
    "a method of the other era": (asked("ping", {}, True), ("server", {"id": 1, "result": {"resultType": "complete", **SERVER}})),
    "a request of the server in the modern way": (("server", {"id": 1, "method": "subscriptions/listen", "params": {"notifications": {}}}),),
    "progress that nobody asked for": (("server", {"method": "notifications/progress", "params": {"progressToken": "q", "progress": 1}}),),
    "progress that stands still": (*GOOD["progress"], GOOD["progress"][1]),
    "a notification nobody knows": (("server", {"method": "notifications/lunch"}),),
    "an update without a uri": (("server", {"method": "notifications/resources/updated", "params": {}}),),
    "a subscription nobody made": (("server", {"method": "notifications/resources/updated", "params": {"uri": "a:b", "_meta": {"io.modelcontextprotocol/subscriptionId": 9}}}),),
    "a cancellation of nothing in the modern era": (("client", {"method": "notifications/cancelled", "params": {"requestId": {}}}),),
    "an answer of a person that is none": (GOOD["elicitation"][0], ("client", {"id": "q", "result": {"action": "maybe"}})),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_the_judge_passes_what_is_right(judge, name):
    verdict = judged(judge, *GOOD[name])
    assert verdict["bad"] == [] and sum(verdict["seen"].values()) == len(GOOD[name])


@pytest.mark.parametrize("name", BAD)
def test_the_judge_finds_what_is_wrong(judge, name):
    assert judged(judge, *BAD[name])["bad"]


@pytest.mark.parametrize("who", ["root"], indirect=True)
@pytest.mark.parametrize("kind", ["v1", "v2", "v2-legacy", "raw"])
def test_the_judge_hears_both_sides(connect, raw, judge, kind):
    if kind == "raw":
        client = raw()
        client.ask(1, "tools/list")
        least = {"client": 1, "server": 1}
    else:
        client = connect(kind)
        client.ask("tools")
        least = {"client": 2, "server": 2}  # the handshake, or the discovery, and the list
    client.close()
    client.thread.join(30)
    seen = client.wire.end()
    assert all(seen[side] >= least[side] for side in least), seen
