# SPDX-License-Identifier: Apache-2.0
"""One client of the server against all others: it can't stall it by what it reads, take its memory by what it sends, wash the audit log away by
calling, or learn values of variables with a token that only reads."""
import contextlib
import json
import os
import signal
import time

import pytest

from serving import PATIENT, Serve
from support import poll

SECRET = "s3cr3t-value"


@pytest.fixture
def server(cordon):
    made = Serve(cordon)
    made.token = made.make_token("--scope", "admin")
    poll(lambda: made.modern("tools/list").status == 200, PATIENT, "the token to be known")
    yield made
    assert made.stop() == 0, made.process.stderr.read().decode()


def token_of(server, *options):
    token = server.make_token(*options)
    poll(lambda: server.modern("tools/list", token=token).status == 200, PATIENT, "the token to be known")
    return token


def children(server):
    with open(f"/proc/{server.process.pid}/task/{server.process.pid}/children", encoding="ascii") as file:
        return [int(pid) for pid in file.read().split()]


@contextlib.contextmanager
def stopped(server, method, params, token, wanted=1):
    """Makes calls until so many children of the server that work for them are stopped: they take as long as we like."""
    pids, streams, end = set(), [], time.monotonic() + 60
    try:
        while sum(state(pid) == "T" for pid in pids) < wanted:
            assert time.monotonic() < end, "nobody but the server itself does the work"
            streams.append(server.open(server.modern_bytes(method, params, token=token)))
            again = time.monotonic() + 0.05
            while time.monotonic() < again and sum(state(pid) == "T" for pid in pids) < wanted:
                for pid in children(server):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGSTOP)
                        pids.add(pid)
        yield streams
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        for stream in streams:
            assert stream.ended().status == 200


def state(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(") ")[2][0]
    except OSError:
        return None


def session_of(server, cordon):
    project = cordon("project", "create", "p", "--no-git", "--json").json()["id"]
    started = server.did("session_start", project_id=project, command=["sh", "-c", "echo hello"], wait_seconds=30)
    assert started["exit_code"] == 0
    return project, started["session_id"]


def test_what_one_client_reads_stalls_nobody(server, cordon):
    project, session = session_of(server, cordon)
    day = time.strftime("%Y-%m-%d", time.gmtime())
    reader = token_of(server, "--scope", "read")
    output = {"name": "session_output", "arguments": {"session_id": session}}
    for method, params in (("tools/call", output), ("resources/read", {"uri": f"cordon://session/{session}/log"}), ("resources/read", {"uri": f"cordon://audit/{day}"}),
                           ("resources/read", {"uri": "cordon://projects"})):
        with stopped(server, method, params, reader):
            for _ in range(5):
                began = time.monotonic()
                assert server.did("project_get", project_id=project)["id"] == project and server.request("GET", "/health").status == 200
                assert time.monotonic() - began < 5
            # Another client gets the same thing meanwhile.
            assert "error" not in server.modern(method, params).json()
    text = server.result("resources/read", {"uri": f"cordon://session/{session}/log"}, token=reader)["contents"][0]["text"]
    assert "| hello" in text and server.did("session_output", session_id=session, token=reader)["events"][1]["text"] == "hello\n"


def test_a_client_that_waits_for_output_gets_it_and_stalls_nobody(server, cordon, box):
    project = cordon("project", "create", "p", "--no-git", "--json").json()["id"]
    session = server.did("session_start", project_id=project, command=["cat"])["session_id"]
    last = server.did("session_output", session_id=session)["last_index"]
    stream = server.open(server.modern_bytes("tools/call", {"name": "session_output", "arguments": {"session_id": session, "since_index": last, "wait_seconds": 60}}))
    time.sleep(0.3)
    server.did("session_send", session_id=session, message="ping")
    answer = stream.ended().json()["result"]["structuredContent"]
    assert "ping" in "".join(event["text"] for event in answer["events"])
    over = server.did("session_output", session_id=session, since_index=answer["last_index"] + 100, wait_seconds=1)
    assert over["events"] == [] and over["status"] == "active"
    server.did("session_stop", session_id=session)


def test_the_places_of_one_client_are_not_all_places(server, cordon):
    _, session = session_of(server, cordon)
    greedy, other = token_of(server, "--scope", "read"), token_of(server, "--scope", "read")
    output = {"name": "session_output", "arguments": {"session_id": session}}
    with stopped(server, "tools/call", output, greedy, wanted=16):
        streams = [server.open(server.modern_bytes("tools/call", output, token=greedy)) for _ in range(20)]
        for _ in range(3):
            assert server.did("session_output", session_id=session, token=other)["events"]
        assert len([pid for pid in children(server) if state(pid) == "T"]) == 16
    for stream in streams:
        assert stream.ended().json()["result"]["structuredContent"]["events"]


def test_a_token_that_reads_learns_the_names_of_variables_only(server, cordon):
    servers = {"s": {"command": "x", "env": {"INNER": SECRET}, "headers": {"Authorization": SECRET}}}
    project = server.did("project_create", name="p", init_git=False, env={"TOKEN": SECRET, "EMPTY": ""}, mcp_servers=servers)["id"]
    assert server.did("project_get", project_id=project)["env"] == {"TOKEN": SECRET, "EMPTY": ""}, "who may change settings sees them"
    for options in (("--scope", "read"), ("--scope", "run"), ("--scope", "read", "--project", project)):
        token = token_of(server, *options)
        shown = [server.did("project_get", project_id=project, token=token), server.did("project_list", token=token)["projects"][0]]
        for uri in (f"cordon://project/{project}", "cordon://projects"):
            read = json.loads(server.result("resources/read", {"uri": uri}, token=token)["contents"][0]["text"])
            shown.append(read["projects"][0] if "projects" in read else read)
        for one in shown:
            assert one["env"] == {"TOKEN": None, "EMPTY": None} and one["name"] == "p" and SECRET not in json.dumps(one), options


def peak(server):
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:")) << 10


BOMBS = {
    "an array": b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":[' + b"0," * 2_000_000 + b"0]}}",
    "objects": b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":[' + b"{}," * 1_300_000 + b"0]}}",
    "members": b'{"jsonrpc":"2.0","id":1,"method":"x","params":{' + b",".join(b'"%x":0' % number for number in range(400_000)) + b"}}",
    "depth": b'{"jsonrpc":"2.0","id":1,"method":"x","params":' + b"[" * 2_000_000,
    "strings": b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":[' + b'"",' * 1_300_000 + b"0]}}",
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_body_of_many_values_takes_no_memory(server, kind):
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "x"}
    assert len(BOMBS[kind]) < 4 << 20
    before = peak(server)
    answer = server.request("POST", "/mcp", headers, BOMBS[kind])
    assert answer.json()["error"]["code"] == -32700 and "values" in answer.json()["error"]["message"]
    assert peak(server) - before < 24 << 20
    # What is long and not many is taken: brackets in a string are no brackets.
    assert server.did("project_list", name_contains='[{,"\\' * 200_000)["total"] == 0


def test_calls_of_a_token_that_reads_wash_nothing_out_of_the_audit_log(server, cordon, box):
    project = cordon("project", "create", "p", "--no-git", "--json").json()["id"]
    greedy, modest = token_of(server, "--scope", "read"), token_of(server, "--scope", "read")
    log = box.state / "state/audit/audit.jsonl"
    before = log.read_bytes() if log.exists() else b""
    served = 0
    for _ in range(30):
        streams = [server.open(server.modern_bytes("tools/call", {"name": "project_get", "arguments": {"project_id": project}}, token=greedy)) for _ in range(100)]
        statuses = [stream.ended().status for stream in streams]
        assert set(statuses) <= {200, 429}
        served += statuses.count(200)
    server.did("project_get", project_id=project, token=modest)
    assert (log.read_bytes() if log.exists() else b"") == before, "what is no call has a log of its own"
    server.restart(signal.SIGTERM)
    calls = [json.loads(line) for line in (box.state / "state/audit/calls/audit.jsonl").read_text().splitlines()]
    by = {}
    for record in calls:
        if record["event"] == "call":
            by[record["detail"]["principal"]] = by.get(record["detail"]["principal"], 0) + 1
    dropped = [record["detail"] for record in calls if record["event"] == "dropped"]
    assert 1000 <= max(by.values()) < served and sum(one["count"] for one in dropped) + max(by.values()) == served, (by, dropped)
    assert [name for one in dropped for name in one["principals"]] == [max(by, key=by.get)] * len(dropped) and dropped and 1 in by.values()
    # Who asks for the log gets all of it, and both chains are checked.
    shown = [json.loads(line) for line in cordon("audit", "--json", "--kind", "call").stdout.splitlines()]
    assert len([record for record in shown if record["detail"]["tool"] == "project_get"]) == sum(record["event"] == "call" for record in calls)
    whole = cordon("audit", "verify", "--json").json()
    assert whole["ok"] and whole["calls"]["ok"] and whole["calls"]["records"] == len(calls)
    path = box.state / "state/audit/calls/audit.jsonl"
    path.write_text(path.read_text().replace("project_get", "project_gut", 1))
    broken = cordon("audit", "verify", "--json")
    assert broken.returncode == 1 and not broken.json()["ok"] and broken.json()["breaks"] == 0 and broken.json()["calls"]["breaks"] == 1
