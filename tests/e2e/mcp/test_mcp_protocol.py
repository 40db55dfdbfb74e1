# SPDX-License-Identifier: Apache-2.0
"""Both protocol eras on one process: who is served how, in which order bad requests are rejected, and what is never sent."""
import json
import signal
import time

import pytest

from support import poll

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
MISSING = "00000000-0000-4000-8000-000000000000"


def code(answer):
    assert "error" in answer, answer
    return answer["error"]["code"]


def test_discover_does_not_close_the_door_to_initialize(raw):
    server = raw()
    found = server.ask(1, "server/discover")["result"]
    assert found["supportedVersions"][0] == "2026-07-28"
    assert found["capabilities"] == {"tools": {}, "resources": {"subscribe": True, "listChanged": True}, "prompts": {}, "completions": {}}
    assert server.initialize()["protocolVersion"] == "2025-11-25"
    assert "tools" in server.ask(2, "tools/list", modern=False)["result"]
    assert "tools" in server.ask(3, "tools/list")["result"]
    assert server.ask(4, "ping", modern=False)["result"] == {}


def test_eras_interleave_on_one_process(raw):
    server = raw()
    server.initialize()
    for number in range(20):
        answer = server.ask(f"a{number}", "tools/list", modern=number % 2 == 0)
        assert ("resultType" in answer["result"]) == (number % 2 == 0)
        assert ("ttlMs" in answer["result"]) == (number % 2 == 0)


@pytest.mark.parametrize("asked, agreed", [("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25")])
def test_initialize_agrees_on_a_version_it_has(raw, asked, agreed):
    assert raw().initialize(asked)["protocolVersion"] == agreed


def test_legacy_requests_before_initialize_are_told_what_to_do(raw):
    server = raw()
    answer = server.ask(1, "tools/list", modern=False)
    assert code(answer) == -32602 and "initialize" in answer["error"]["message"]
    assert code(server.ask(2, "initialize", {"protocolVersion": "2025-11-25"}, modern=False)) == -32602


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "nothing/at-all"])
def test_methods_of_the_other_era_are_unknown(raw, method):
    server = raw()
    assert code(server.ask(1, method)) == -32601
    server.initialize()
    assert code(server.ask(2, "subscriptions/listen", {"notifications": {}}, modern=False)) == -32601


def test_modern_requests_are_rejected_in_order(raw):
    server = raw()
    meta = lambda **fields: {"_meta": fields}  # noqa: E731
    # An unsupported version comes before everything else that is wrong.
    answer = server.ask(1, "nothing/at-all", meta(**{VERSION: "1900-01-01"}), modern=False)
    assert code(answer) == -32022
    assert answer["error"]["data"]["requested"] == "1900-01-01"
    assert set(answer["error"]["data"]["supported"]) <= set(server.ask(2, "server/discover")["result"]["supportedVersions"])
    # Then what _meta lacks, then the method.
    assert code(server.ask(3, "nothing/at-all", meta(**{VERSION: "2026-07-28"}), modern=False)) == -32602
    assert code(server.ask(4, "server/discover", modern=False)) == -32602
    assert code(server.ask(5, "nothing/at-all")) == -32601
    assert code(server.ask(6, "tools/list", meta(**{VERSION: "2026-07-28", CAPABILITIES: {}, "io.modelcontextprotocol/logLevel": "loud"}), modern=False)) == -32602
    assert code(server.ask(7, "tools/list", meta(**{VERSION: 5, CAPABILITIES: {}}), modern=False)) == -32602
    # clientInfo is optional, and so are traces; unknown keys are nobody's business.
    assert "result" in server.ask(8, "tools/list", meta(traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", other=1))


def test_ids_come_back_as_they_were(raw):
    server = raw()
    for number in (0, -1, 7, 2**53 - 1, "", "x", "ü\n", "1"):
        assert server.ask(number, "server/discover")["id"] == number


def test_malformed_messages_get_a_proper_error(raw):
    server = raw()
    for line, want, id in (
        (b"nonsense", -32700, None),
        (b"{", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"\\u0000"}', -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700, None),
        (b'{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}', -32700, None),
        (b'"text"', -32700, None),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
        (b"{}", -32600, None),
        (b'{"jsonrpc":"1.0","id":4,"method":"ping"}', -32600, 4),
        (b'{"jsonrpc":"2.0","id":5}', -32600, 5),
        (b'{"jsonrpc":"2.0","id":6,"method":7}', -32600, 6),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":8,"method":"tools/list","params":[]}', -32602, 8),
        (b'{"jsonrpc":"2.0","id":9,"method":"tools/list","params":{"_meta":3}}', -32602, 9),
        (b"[" * 100_000, -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 3000 + b"1" + b"}" * 3000 + b"}", -32700, None),
    ):  # fmt: skip
        server.write(line + b"\n")
        answer = server.receive()
        assert code(answer) == want, (line[:80], answer)
        assert answer.get("id") == id and ("id" in answer) == (id is not None)
    # Blank lines and carriage returns are nothing.
    server.write(b"\n\r\n" + json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode() + b"\r\n")
    assert server.receive()["result"] == {}


def test_a_message_may_have_four_mebibytes_and_no_more(raw):
    server = raw()
    server.initialize()
    fits = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": ""}})
    pad = "a" * (4 * 1024 * 1024 - len(fits))
    server.write(fits.replace('""', f'"{pad}"').encode() + b"\n")
    assert server.receive()["result"] == {}
    server.write(fits.replace('""', f'"{pad}a"').encode() + b"\n")
    assert code(server.receive()) == -32700
    server.write(b"x" * 20_000_000 + b"\n")
    assert code(server.receive()) == -32700
    assert server.ask(2, "ping", modern=False)["result"] == {}


def test_notifications_are_never_answered(raw):
    server = raw()
    server.notify("notifications/initialized")
    server.notify("nothing/at-all", malformed=True)
    server.notify("notifications/cancelled", {"requestId": 99})
    server.notify("notifications/cancelled", {"requestId": {}}, malformed=True)
    server.notify("notifications/cancelled", malformed=True)
    server.notify("tools/call", {"name": "project_create", "arguments": {"name": "x"}}, malformed=True)
    server.send({"jsonrpc": "2.0", "id": 5, "result": {}}, malformed=True)
    server.send({"jsonrpc": "2.0", "id": 5, "error": {"code": 1, "message": "x"}}, malformed=True)
    assert server.ask(1, "tools/call", {"name": "project_list", "arguments": {}})["result"]["structuredContent"]["projects"] == []


def test_the_end_of_input_ends_the_server_with_all_answers_given(raw):
    server = raw()
    for number in range(50):
        server.request(number, "tools/list")
    server.process.stdin.close()
    assert {server.receive()["id"] for _ in range(50)} == set(range(50))
    assert server.process.wait(5) == 0


@pytest.mark.parametrize("state", ["nothing", "discovered", "initialized", "half a line", "listening"])
def test_the_end_of_input_ends_the_server_in_every_state(raw, state):
    server = raw()
    if state == "discovered":
        server.ask(1, "server/discover")
    if state == "initialized":
        server.initialize()
    if state == "half a line":
        server.write(b'{"jsonrpc":"2.0","id":1,')
    if state == "listening":
        server.request("l", "subscriptions/listen", {"notifications": {"resourcesListChanged": True}})
        assert server.receive()["method"] == "notifications/subscriptions/acknowledged"
    began = time.monotonic()
    server.process.stdin.close()
    assert server.process.wait(5) == 0
    assert time.monotonic() - began < 2


def test_a_signal_ends_the_server_and_its_listens_gracefully(raw):
    server = raw()
    server.request("l", "subscriptions/listen", {"notifications": {"resourcesListChanged": True, "toolsListChanged": True}})
    acknowledged = server.receive()
    assert acknowledged["params"]["notifications"] == {"resourcesListChanged": True}
    assert acknowledged["params"]["_meta"][SUBSCRIPTION] == "l"
    server.process.send_signal(signal.SIGTERM)
    messages = [server.receive(), server.receive()]
    assert messages[0]["method"] == "notifications/cancelled" and messages[0]["params"]["requestId"] == "l"
    assert messages[1]["id"] == "l" and messages[1]["result"]["resultType"] == "complete"
    assert messages[1]["result"]["_meta"][SUBSCRIPTION] == "l"
    assert server.process.wait(5) == 0


def test_a_client_that_does_not_read_is_not_waited_for(raw):
    server = raw()
    for number in range(2000):
        server.request(number, "tools/list")  # some 15 kB of answer each
    time.sleep(0.2)
    assert server.process.poll() is None
    assert {server.receive()["id"] for _ in range(2000)} == set(range(2000))


def test_listens_tell_what_was_asked_for_and_nothing_else(raw):
    server = raw("--approved")
    made = server.ask(1, "tools/call", {"name": "project_create", "arguments": {"name": "p"}})
    project = made["result"]["structuredContent"]["id"]
    uri = f"cordon://project/{project}"
    server.request("one", "subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri, f"{uri}/workspaces", f"cordon://project/{MISSING}", "file:///etc/passwd", "cordon://project/../x"]}})
    assert server.receive()["params"]["notifications"] == {"resourceSubscriptions": [uri, f"{uri}/workspaces"]}
    server.request("two", "subscriptions/listen", {"notifications": {"resourcesListChanged": True}})
    assert server.receive()["params"]["_meta"][SUBSCRIPTION] == "two"
    server.request("two", "subscriptions/listen", {"notifications": {}})
    assert code(server.receive()) == -32600

    def told(change, want):
        server.request("c", "tools/call", {"name": change[0], "arguments": change[1]})
        seen, answered = set(), False
        deadline = time.monotonic() + 5
        while (not answered or not want <= seen) and time.monotonic() < deadline:
            message = server.receive()
            answered = answered or message.get("id") == "c"
            if "method" in message:
                seen.add((message["params"]["_meta"][SUBSCRIPTION], message["method"].removeprefix("notifications/resources/"), message["params"].get("uri")))
        return seen

    lists = ("two", "list_changed", None)
    assert told(("workspace_create", {"project_id": project}), {("one", "updated", f"{uri}/workspaces")}) == {("one", "updated", f"{uri}/workspaces")}
    assert told(("project_update", {"project_id": project, "description": "x"}), {("one", "updated", uri), lists}) == {("one", "updated", uri), lists}
    server.notify("notifications/cancelled", {"requestId": "one"})
    time.sleep(0.3)
    assert told(("project_create", {"name": "q"}), {lists}) == {lists}


def test_a_thousand_listens_are_held(raw):
    server = raw()
    for number in range(1000):
        server.request(number, "subscriptions/listen", {"notifications": {"resourcesListChanged": True}})
    assert {server.receive()["params"]["_meta"][SUBSCRIPTION] for _ in range(1000)} == set(range(1000))
    server.request("x", "tools/call", {"name": "project_create", "arguments": {"name": "p"}})
    told = set()
    while len(told) < 1000:
        message = server.receive()
        if message.get("method") == "notifications/resources/list_changed":
            told.add(message["params"]["_meta"][SUBSCRIPTION])
    assert server.close() == 0


def test_bad_listens_are_invalid_params(raw):
    server = raw()
    for bad in ({}, {"notifications": 1}, {"notifications": {"toolsListChanged": 1}}, {"notifications": {"resourceSubscriptions": "x"}}, {"notifications": {"resourceSubscriptions": [1]}}, {"notifications": {"resourceSubscriptions": ["x"] * 300}}):
        assert code(server.ask(1, "subscriptions/listen", bad)) == -32602


def test_a_missing_resource_has_the_code_of_its_era(raw):
    server = raw()
    server.initialize()
    for uri in (f"cordon://project/{MISSING}", "cordon://project/../../etc", "cordon://nothing", "file:///etc/passwd", "cordon://projects/", "CORDON://projects", f"cordon://project/{MISSING.upper()}", "cordon://audit/yesterday", ""):
        modern = server.ask(1, "resources/read", {"uri": uri})
        assert code(modern) == -32602 and modern["error"]["data"] == {"uri": uri}
        assert code(server.ask(2, "resources/read", {"uri": uri}, modern=False)) == -32002
    assert code(server.ask(3, "resources/read", {})) == -32602


def test_bad_cursors_are_invalid_params(raw):
    server = raw()
    for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
        for cursor in ("x", "", "c1-0", "c1-", "c1--1", "c1-99999999999999999999", 5, None):
            assert code(server.ask(1, method, {"cursor": cursor})) == -32602, (method, cursor)


def test_resources_are_listed_page_by_page(raw):
    server = raw()
    for number in range(130):
        server.request(number, "tools/call", {"name": "project_create", "arguments": {"name": f"p{number}", "init_git": False}})
    for _ in range(130):
        server.receive()
    first = server.ask("a", "resources/list")["result"]
    second = server.ask("b", "resources/list", {"cursor": first["nextCursor"]})["result"]
    assert "nextCursor" not in second
    uris = [r["uri"] for r in first["resources"] + second["resources"]]
    assert len(uris) == len(set(uris)) == 3 + 2 * 130


def test_a_question_is_answered_for_exactly_the_call_it_was_about(raw):
    server = raw()
    ask = {"elicitation": {}}

    def create(name):
        return server.ask("c", "tools/call", {"name": "project_create", "arguments": {"name": name}})["result"]["structuredContent"]["id"]

    def delete(project, **more):
        return server.ask("d", "tools/call", {"name": "project_delete", "arguments": {"project_id": project}, **more}, capabilities=ask)

    one, two = create("one"), create("two")
    refused = server.ask(1, "tools/call", {"name": "project_delete", "arguments": {"project_id": one}})
    assert code(refused) == -32021 and refused["error"]["data"] == {"requiredCapabilities": {"elicitation": {}}}
    question = delete(one)["result"]
    assert question["resultType"] == "input_required"
    request = question["inputRequests"]["approve"]
    assert request["method"] == "elicitation/create" and request["params"]["mode"] == "form" and "one" in request["params"]["message"]
    state, yes = question["requestState"], {"approve": {"action": "accept", "content": {"approve": True}}}
    # Forged, for another call, or without the state: never an approval.
    assert code(delete(two, requestState=state, inputResponses=yes)) == -32602
    assert code(delete(one, requestState=state[:-1] + "0" * (state[-1] != "0") + "1" * (state[-1] == "0"), inputResponses=yes)) == -32602
    assert code(delete(one, requestState="9" * 15 + state[state.index(".") :], inputResponses=yes)) == -32602
    assert code(delete(one, requestState=5, inputResponses=yes)) == -32602
    assert delete(one, inputResponses=yes)["result"]["resultType"] == "input_required"
    # Not answered: asked again. Answered with no: refused. Extra answers are ignored.
    assert delete(one, requestState=state)["result"]["resultType"] == "input_required"
    assert delete(one, requestState=state, inputResponses={"other": {"action": "accept"}})["result"]["resultType"] == "input_required"
    for no in ({"action": "decline"}, {"action": "cancel"}, {"action": "accept"}, {"action": "accept", "content": {"approve": False}}, {"action": "accept", "content": {"approve": "true"}}):
        answer = delete(one, requestState=state, inputResponses={"approve": no})["result"]
        assert answer["isError"] and answer["structuredContent"]["error"]["kind"] == "policy_denied"
        # The first answer counts; a form that was closed is none. A new call is a new question.
        late = delete(one, requestState=state, inputResponses={"approve": {"action": "decline"}})["result"]
        assert late["isError"] and "denied this" in late["structuredContent"]["error"]["message"]
        state = delete(one)["result"]["requestState"]
    assert len(server.ask(9, "tools/call", {"name": "project_list"})["result"]["structuredContent"]["projects"]) == 2
    done = delete(one, requestState=state, inputResponses={**yes, "other": {"action": "cancel"}})["result"]
    assert done["structuredContent"] == {"project_id": one, "deleted": True}


def test_every_call_is_in_the_audit_log(raw, cordon):
    server = raw()
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    server.ask("the\x1bid", "tools/call", {"name": "project_create", "arguments": {"name": "p"}, "_meta": {"traceparent": trace, "io.modelcontextprotocol/clientInfo": {"name": "me\u202e", "version": "1"}}})
    server.ask(2, "tools/call", {"name": "project_get", "arguments": {"project_id": MISSING}})
    lines = [json.loads(line) for line in poll(lambda: cordon("audit", "--json").stdout.splitlines(), what="the audit log")]
    calls = [line for line in lines if line["event"] == "call"]
    assert [(c["detail"]["tool"], c["success"], c.get("kind")) for c in calls] == [("project_create", True, None), ("project_get", False, "not_found")]
    assert calls[0]["detail"]["trace"] == trace and calls[0]["detail"]["client"] == "me\\u{202e}"
    assert calls[0]["detail"]["duration_ms"] >= 0
    assert "\x1b" not in cordon("audit", "--json").stdout
    day = time.strftime("%Y-%m-%d", time.gmtime())
    text = server.ask(3, "resources/read", {"uri": f"cordon://audit/{day}"})["result"]["contents"][0]["text"]
    assert [json.loads(line)["event"] for line in text.splitlines()] == ["call", "call"]


def test_the_log_of_a_day_is_read_in_bounded_time_and_says_what_is_not_there(raw, cordon, box):
    """A day that is long, and one that is long ago: everybody waits for whoever reads it."""
    server = raw()

    def read(day):
        began = time.monotonic()
        text = server.ask(day, "resources/read", {"uri": f"cordon://audit/{day}"})["result"]["contents"][0]["text"]
        return text.splitlines(), time.monotonic() - began

    server.ask(1, "tools/call", {"name": "project_get", "arguments": {"project_id": MISSING}})
    (file,) = poll(lambda: list((box.state / "state/audit/calls").glob("*.jsonl")), what="the audit log")
    today = time.strftime("%Y-%m-%d", time.gmtime())
    assert read("2001-01-01")[0] == [] and len(read(today)[0]) == 1
    line = file.read_text().splitlines()[-1]
    seq, when = json.loads(line)["seq"], json.loads(line)["time"]

    def records(first, day, n):
        return [line.replace(f'"seq":{seq},', f'"seq":{first + i},').replace(when, day + when[10:]) for i in range(n)]

    file.write_text("\n".join(records(1, "2001-01-01", 3) + records(4, "2001-01-02", 150000) + records(150004, "2001-01-03", 2)) + "\n")
    early, seconds = read("2001-01-01")
    assert [json.loads(one)["seq"] for one in early] == [1, 2, 3]
    assert seconds < 0.6, "what came later is not parsed"
    assert [json.loads(one)["seq"] for one in read("2001-01-03")[0]] == [150004, 150005]
    cut, *long = read("2001-01-02")[0]
    assert "earlier records of this day" in json.loads(cut)["cut"]
    assert [json.loads(one)["seq"] for one in long] == list(range(150004 - len(long), 150004)) and 1000 < len(long) < 150000
    assert sum(len(one) + 1 for one in long) <= 1 << 20


def test_self_test_prints_the_discovery(cordon):
    shown = cordon("mcp", "--self-test")
    assert shown.returncode == 0 and shown.json()["supportedVersions"][0] == "2026-07-28"
