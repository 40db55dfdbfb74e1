# SPDX-License-Identifier: Apache-2.0
"""Hostile input: mutated messages by the thousand, ids and paths as weapons. A proper error each, and nothing touched."""
import json
import os
import random
import select

import pytest

MESSAGES = [5_000, pytest.param(50_000, marks=pytest.mark.soak)]  # as root, and as many others as an ordinary user
MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
SEEDS = [
    {"method": "server/discover"},
    {"method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "f", "version": "1"}}},
    {"method": "ping"},
    {"method": "tools/list", "params": {"cursor": "c1-1"}},
    {"method": "tools/call", "params": {"name": "project_get", "arguments": {"project_id": "x"}}},
    {"method": "tools/call", "params": {"name": "project_update", "arguments": {"project_id": "x", "limits": {"pids": 1}, "protected_paths": ["a"]}}},
    {"method": "tools/call", "params": {"name": "workspace_list", "arguments": {"project_id": "PROJECT", "limit": 3}}},
    {"method": "tools/call", "params": {"name": "policy_check", "arguments": {"project_id": "PROJECT", "path": "a/../b"}}},
    {"method": "tools/call", "params": {"name": "project_delete", "arguments": {"project_id": "PROJECT"}, "requestState": "1.2", "inputResponses": {"approve": {"action": "accept"}}}},
    {"method": "tools/call", "params": {"name": "project", "arguments": {"action": "list"}}},
    {"method": "tools/call", "params": {"name": "workspace_create", "arguments": {"project_id": "x", "workspace_id": "y", "external_id": "z", "source": "s"}}},
    {"method": "tools/call", "params": {"name": "session_start", "arguments": {"project_id": "PROJECT", "workspace_id": "missing", "create_workspace": False, "command": ["/bin/true"], "message": "m", "attachments": [{"filename": "f", "data": "eA=="}], "context": {"a": "b"}}}},
    {"method": "tools/call", "params": {"name": "session_send", "arguments": {"session_id": "SESSION", "message": "m"}}},
    {"method": "tools/call", "params": {"name": "session_output", "arguments": {"session_id": "SESSION", "since_index": 3, "max_events": 2}}},
    {"method": "tools/call", "params": {"name": "session_get", "arguments": {"session_id": "SESSION"}}},
    {"method": "tools/call", "params": {"name": "session_list", "arguments": {"project_id": "PROJECT", "status": "active", "limit": 3}}},
    {"method": "tools/call", "params": {"name": "session_stop", "arguments": {"session_id": "x", "grace_seconds": 0}}},
    {"method": "tools/call", "params": {"name": "session", "arguments": {"action": "events", "session_id": "SESSION"}}},
    {"method": "resources/list"},
    {"method": "resources/read", "params": {"uri": "cordon://project/PROJECT/workspace/abc"}},
    {"method": "resources/read", "params": {"uri": "cordon://session/SESSION/log"}},
    {"method": "resources/templates/list"},
    {"method": "resources/subscribe", "params": {"uri": "cordon://projects"}},
    {"method": "prompts/get", "params": {"name": "explain_denial", "arguments": {"project_id": "x", "path": "y"}}},
    {"method": "completion/complete", "params": {"ref": {"type": "ref/prompt", "name": "explain_denial"}, "argument": {"name": "path", "value": "x"}}},
    {"method": "notifications/cancelled", "params": {"requestId": 1}},
]  # fmt: skip
VALUES = [None, True, 0, -1, 1.5, 2**62, "", "x", "..", "../../etc/passwd", "/etc/shadow", "a\u0000b", "\x1b[2J", "%2e%2e%2f", "x" * 3000, [], {}, [[]], {"a": {}}, [1] * 50]


def mutate(value, generator, depth=0):
    """Changes a random part of a JSON value."""
    if isinstance(value, dict) and value and generator.random() < 0.8:
        key = generator.choice(sorted(value))
        copy = dict(value)
        roll = generator.random()
        if roll < 0.1:
            del copy[key]
        elif roll < 0.2:
            copy[generator.choice(["x", "..", "id", "_meta", key + "_"])] = generator.choice(VALUES)
        else:
            copy[key] = mutate(value[key], generator, depth + 1)
        return copy
    if isinstance(value, list) and value and generator.random() < 0.7:
        copy = list(value)
        at = generator.randrange(len(copy))
        copy[at] = mutate(copy[at], generator, depth + 1)
        return copy
    return generator.choice(VALUES)


def fuzzed(generator, number, project, session):
    """One line: mutated as JSON, and every third time as bytes too."""
    seed = json.loads(json.dumps(generator.choice(SEEDS)).replace("PROJECT", project).replace("SESSION", session))
    message = {"jsonrpc": "2.0", "id": number, **seed}
    if generator.random() < 0.6:
        message.setdefault("params", {})["_meta"] = dict(MODERN)
    for _ in range(generator.randrange(3)):
        message = mutate(message, generator)
    data = bytearray(json.dumps(message).encode())
    if number % 3 == 0:
        for _ in range(generator.randrange(1, 4)):
            at = generator.randrange(len(data) + 1)
            kind = generator.random()
            if kind < 0.4 and at < len(data):
                data[at] = generator.randrange(256)
            elif kind < 0.7:
                data[at:at] = bytes(generator.randrange(256) for _ in range(generator.randrange(1, 8)))
            else:
                del data[at : at + generator.randrange(1, 8)]
    return bytes(data).replace(b"\n", b" ").replace(b"\r", b" ") + b"\n"


def snapshot(box):
    """Everything in the caller's directory except the store itself."""
    found = {}
    for top, names, files in os.walk(box.path):
        if str(box.state).startswith(top) or not top.startswith(str(box.state)):
            for name in files:
                path = os.path.join(top, name)
                if not path.startswith(str(box.state)):
                    found[path] = os.stat(path).st_mtime_ns
    return found


@pytest.mark.limit(600)
@pytest.mark.parametrize("messages", MESSAGES)
def test_fuzzed_messages_crash_nothing(raw, box, cordon, leftovers, messages):
    generator = random.Random(f"20261115 {box.who.name}")
    project = cordon("project", "create", "p", "--json").json()["id"]
    session = cordon("session", "start", project, "--detach", "--json", "--", "/bin/cat").json()["session_id"]
    box.write("outside/file", "x")
    before = snapshot(box)
    server = raw()
    process = server.process
    os.set_blocking(process.stdin.fileno(), False)
    pending, sent, answers, expected = b"", 0, 0, 0
    while sent < messages or pending:
        if not pending and sent < messages:
            lines = [fuzzed(generator, number, project, session) for number in range(sent, min(sent + 500, messages))]
            sent += len(lines)
            for line in lines:
                server.wire.saw("client", line, malformed=True)
            pending = b"".join(lines)
        _, writable, _ = select.select([], [process.stdin], [], 30)
        assert writable, "the server takes no more input"
        try:
            pending = pending[os.write(process.stdin.fileno(), pending) :]
        except BlockingIOError:
            pass
        while not server.queue.empty():
            answers += check(server.queue.get())
        assert process.poll() is None, "the server ended"
    server.send({"jsonrpc": "2.0", "id": "last", "method": "server/discover", "params": {"_meta": MODERN}})
    while True:
        line = server.queue.get(timeout=60)
        answers += check(line)
        if json.loads(line).get("id") == "last":
            break
    assert answers > messages * 0.7
    assert server.close() == 0
    assert snapshot(box) == before
    got = cordon("project", "get", project, "--json").json()
    assert got["name"] and cordon("project", "list", "--json").returncode == 0
    # The session was written to and asked about, and goes on; what else was started is known, and can be stopped.
    assert cordon("session", "get", session, "--json").json()["status"] == "active"
    for active in cordon("session", "list", "--status", "active", "--json").json()["sessions"]:
        assert cordon("session", "stop", active["session_id"]).returncode == 0
    leftovers.assert_none(30)
    assert snapshot(box) == before


def check(line):
    """One line of the server: valid JSON-RPC with a result, or an error that the specifications define."""
    assert line is not None, "the server ended"
    message = json.loads(line)
    assert message["jsonrpc"] == "2.0"
    if "method" in message:
        return 0
    assert ("result" in message) != ("error" in message)
    if "error" in message:
        assert message["error"]["code"] in (-32700, -32600, -32601, -32602, -32603, -32002, -32021, -32022), message
        assert "internal" not in message["error"]["message"].lower()
    return 1


WEAPONS = ["..", "../../etc/passwd", "/etc", "/", ".", "", "a/b", "a\\b", "-o x", "--help=", "x" * 1_000_000, "%2e%2e%2f", "\x1b[2J", "a\nb", "ü", "\u202e", "$(id)", "`id`", "'; rm -rf /"]


@pytest.mark.parametrize("weapon", WEAPONS, ids=lambda text: repr(text[:12]))
def test_ids_and_paths_as_weapons_are_refused(raw, box, cordon, weapon):
    server = raw("--approved")
    made = server.ask(1, "tools/call", {"name": "project_create", "arguments": {"name": "p"}})["result"]["structuredContent"]
    before = sorted(str(p) for p in box.state.rglob("*") if not {"audit", "lock", "locks"} & set(p.parts))
    for name, args in (
        ("project_get", {"project_id": weapon}),
        ("project_update", {"project_id": weapon, "name": "x"}),
        ("project_delete", {"project_id": weapon}),
        ("workspace_create", {"project_id": weapon}),
        ("workspace_create", {"project_id": made["id"], "workspace_id": weapon}),
        ("workspace_get", {"project_id": made["id"], "workspace_id": weapon}),
        ("workspace_delete", {"project_id": made["id"], "workspace_id": weapon}),
        ("workspace_list", {"project_id": weapon}),
        ("session_start", {"project_id": weapon, "command": ["/bin/true"]}),
        ("session_start", {"project_id": made["id"], "workspace_id": weapon, "create_workspace": True, "command": ["/bin/true"]}),
        ("session_start", {"project_id": made["id"], "command": ["/bin/true"], "parent_session_id": weapon}),
        ("session_start", {"project_id": made["id"], "command": ["/bin/true"], "attachments": [{"filename": weapon, "data": "not base64"}]}),
        ("session_get", {"session_id": weapon}),
        ("session_output", {"session_id": weapon}),
        ("session_send", {"session_id": weapon, "message": "m"}),
        ("session_stop", {"session_id": weapon}),
        ("session_list", {"project_id": weapon}),
        ("policy_check", {"project_id": weapon, "path": "x"}),
        ("policy_check", {"project_id": made["id"], "workspace_id": weapon, "path": "x"}),
    ):
        answer = server.ask(2, "tools/call", {"name": name, "arguments": args})["result"]
        assert answer.get("isError"), (name, answer)
        assert answer["structuredContent"]["error"]["kind"] in ("usage", "limit")
        text = json.dumps(answer)
        assert str(box.state) not in text and len(text) < 8000
        assert "\x1b" not in answer["content"][0]["text"] and "\u202e" not in answer["content"][0]["text"]
    assert server.ask(3, "resources/read", {"uri": f"cordon://project/{weapon}"})["error"]["code"] == -32602
    after = sorted(str(p) for p in box.state.rglob("*") if not {"audit", "lock", "locks"} & set(p.parts))
    assert [path for path in after if path not in before] == [] and len(after) == len(before)


def test_no_string_with_nul_is_a_message(raw):
    server = raw()
    server.write(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"project_get","arguments":{"project_id":"a\\u0000b"}}}\n')
    assert server.receive()["error"]["code"] == -32700
