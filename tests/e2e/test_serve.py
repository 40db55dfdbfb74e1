# SPDX-License-Identifier: Apache-2.0
"""MCP over HTTP: both eras on one endpoint, tokens and what they allow, streams, restarts."""
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading

import pytest

from serving import LEGACY, MODERN, PATIENT, Serve
from support import poll

FORMS = {"elicitation": {}}
YES = {"action": "accept", "content": {"approve": True}}


@pytest.fixture
def serve(cordon):
    """`serve(*options, unix=, env=)` starts a server; its token may do everything."""
    servers = []

    def start(*options, scope="admin", **more):
        server = Serve(cordon, *options, **more)
        servers.append(server)
        if not server.unix:
            server.token = server.make_token("--scope", scope)
            poll(lambda: server.modern("tools/list").status == 200, PATIENT, "the token to be known")
        return server

    yield start
    for server in servers:
        assert server.stop() == 0, server.process.stderr.read().decode()


@pytest.fixture
def server(serve):
    return serve()


def project(cordon, name="p", *options):
    return cordon("project", "create", name, "--no-git", "--json", *options).json()["id"]


def is_known(server, token):
    return poll(lambda: server.modern("tools/list", token=token).status == 200, PATIENT, "the token to be known")


def names(result):
    return {tool["name"] for tool in result["tools"]}


def test_the_default_is_a_socket_that_only_its_user_can_use(cordon, box):
    runtime = box.path / "run"
    runtime.mkdir(mode=0o700)
    box.own(runtime)
    process = cordon.start("serve", env={"XDG_RUNTIME_DIR": str(runtime)})
    line = process.stderr.readline().decode()
    path = runtime / "cordon" / "mcp.sock"
    assert f"unix:{path}" in line
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    again = cordon("serve", env={"XDG_RUNTIME_DIR": str(runtime)})
    assert again.returncode == 1 and "listens on" in again.stderr
    # A killed server leaves its socket, which is not in the way of the next one.
    process.kill()
    process.wait(PATIENT)
    process = cordon.start("serve", env={"XDG_RUNTIME_DIR": str(runtime)})
    assert "listening" in process.stderr.readline().decode()
    process.terminate()
    assert process.wait(PATIENT) == 0 and not path.exists()
    assert cordon("serve", env={"XDG_RUNTIME_DIR": ""}).returncode == 2


def test_a_socket_serves_its_user_without_a_token_and_nobody_else(serve, box, who):
    server = serve(unix=True)

    def curl(url, *options):
        return box.run("curl", "-s", "-w", "%{http_code}", "--unix-socket", server.unix, url, *options).stdout

    assert curl("http://localhost/health") == "ok\n200"
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}})
    assert curl("http://localhost/mcp", "-H", "Content-Type: application/json", "-d", body).endswith("}200")
    # The name of a socket's server is localhost; anything else is a page that was led here.
    assert curl("http://example.org/health").endswith("403")
    if os.getuid() != 0:
        return
    # The modes of a socket are one door, the peer's uid is another.
    os.chmod(server.unix, 0o666)
    other = "import os, socket, sys; os.setuid(int(sys.argv[2])); s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(999).split()[1].decode())"
    done = subprocess.run([sys.executable, "-c", other, server.unix, "4242" if who.uid == 0 else "0"], capture_output=True, check=False, timeout=PATIENT)
    assert done.stdout == b"403\n", done


@pytest.mark.parametrize("options, status, text", [
    (("--listen", "0.0.0.0:0"), 2, "--insecure-any"),
    (("--listen", "localhost:80"), 2, "127.0.0.1:PORT"),
    (("--listen", "unix:relative"), 2, "absolute"),
    (("--listen", "127.0.0.1:99999"), 2, "not an address"),
    (("--listen", "::1:80"), 2, "not an address"),
    (("--toolset", "nonsense", "--listen", "127.0.0.1:0"), 2, "nonsense"),
    (("--listen", "unix:/etc/passwd"), 1, "in the way"),
    (("now",), 2, "no argument"),
])  # fmt: skip
def test_bad_addresses_are_refused_with_a_reason(cordon, options, status, text):
    done = cordon("serve", *options)
    assert done.returncode == status and text in done.stderr, str(done)


def test_other_addresses_need_the_flag_and_say_what_they_need(cordon):
    process = cordon.start("serve", "--insecure-any", "0.0.0.0:0")
    assert "listening on http://0.0.0.0:" in process.stderr.readline().decode()
    assert "TLS" in process.stderr.readline().decode()
    process.terminate()
    assert process.wait(PATIENT) == 0


def test_systemd_passes_sockets(cordon, box):
    path = box.path / "passed.sock"
    with socket.socket() as listener, socket.socket(socket.AF_UNIX) as local:
        listener.bind(("127.0.0.1", 0))
        local.bind(str(path))
        box.own(path)
        for passed in (listener, local):
            passed.listen()
        port = listener.getsockname()[1]
        # The number of the process is known only to itself.
        script = 'export LISTEN_PID=$$ LISTEN_FDS=2; exec "$0" serve'
        process = box.start("sh", "-c", script, cordon.path, fds={3: listener.fileno(), 4: local.fileno()})
        assert f":{port}/" in process.stderr.readline().decode()
        assert f"unix:{path}" in process.stderr.readline().decode()
        with socket.create_connection(("127.0.0.1", port), PATIENT) as sock:
            sock.sendall(f"GET /health HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
            assert b"200 OK" in sock.recv(4096)
        assert box.run("curl", "-sf", "--unix-socket", path, "http://localhost/health").stdout == "ok\n"
        process.terminate()
        assert process.wait(PATIENT) == 0
        # They are systemd's: the name stays, and those who connect meanwhile wait for the next server.
        assert path.exists()
        with socket.create_connection(("127.0.0.1", port), PATIENT) as waiting:
            waiting.sendall(f"GET /health HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
            again = box.start("sh", "-c", script, cordon.path, fds={3: listener.fileno(), 4: local.fileno()})
            assert b"200 OK" in waiting.recv(4096)
        again.terminate()
        assert again.wait(PATIENT) == 0
    # What was passed to another process is not ours.
    other = box.run("sh", "-c", 'export LISTEN_PID=1 LISTEN_FDS=1; exec "$0" serve', cordon.path, env={"XDG_RUNTIME_DIR": None})
    assert other.returncode == 2 and "XDG_RUNTIME_DIR" in other.stderr


def test_the_checks_come_in_their_order(server):
    """Each request has the fault under test and all later ones; the first is answered."""
    bad = {"Host": "evil", "Origin": "http://evil", "Authorization": None, "Content-Type": "text/plain", "Content-Length": "99999999"}
    assert server.request("PUT", "/nothing", bad).status == 404
    answer = server.request("PUT", "/mcp", bad)
    assert answer.status == 405 and "POST" in answer.headers["allow"]
    assert server.request("POST", "/mcp", bad).status == 403
    bad["Host"] = server.host
    assert server.request("POST", "/mcp", bad).status == 403
    bad["Origin"] = f"http://{server.host}"
    answer = server.request("POST", "/mcp", bad)
    # No metadata: a client must not begin to register itself somewhere.
    assert answer.status == 401 and answer.headers["www-authenticate"] == "Bearer"
    bad["Authorization"] = f"Bearer {server.token}"
    assert server.request("POST", "/mcp", bad).status == 415
    bad["Content-Type"] = "application/json; charset=utf-8"
    assert server.request("POST", "/mcp", bad).status == 413
    bad["Content-Length"] = "5"
    assert server.request("POST", "/mcp", bad, body=b"{bad}").status == 400


def test_modern_requests_are_rejected_in_the_order_of_the_specification(server):
    good = server.modern("tools/list")
    assert good.status == 200 and good.json()["result"]["resultType"] == "complete" and good.headers["connection"] == "close"

    def code(answer):
        return answer.status, answer.json()["error"]["code"], answer.json()["id"]

    old = {"_meta": {"io.modelcontextprotocol/protocolVersion": "1999-01-01"}}
    for header in ("Mcp-Method", "MCP-Protocol-Version"):
        assert code(server.modern("tools/list", old, headers={header: "other"})) == (400, -32020, 1)
        assert code(server.modern("tools/list", headers={header: None})) == (400, -32020, 1)
    assert code(server.modern("tools/call", {"name": "a", "arguments": {}}, headers={"Mcp-Name": "b"})) == (400, -32020, 1)
    assert code(server.modern("tools/list", old, headers={"MCP-Protocol-Version": "1999-01-01"})) == (400, -32022, 1)
    assert code(server.modern("tools/list", {"_meta": {"io.modelcontextprotocol/clientCapabilities": 1}})) == (400, -32602, 1)
    for method in ("initialize", "ping", "resources/subscribe", "nothing"):
        assert code(server.modern(method)) == (404, -32601, 1)
    # A name that is not ASCII is encoded, and blanks around a value do not count.
    assert code(server.modern("tools/call", {"name": "ä", "arguments": {}}, headers={"Mcp-Name": " =?base64?w6Q=?= "})) == (200, -32602, 1)
    # GET and DELETE are of the other era.
    for method in ("GET", "DELETE"):
        assert server.request(method, headers={"MCP-Protocol-Version": MODERN}).status == 405
        assert server.request(method).status == 400


def test_a_session_of_the_older_era_survives_a_kill_and_ends_for_good(server, cordon):
    session = server.initialize()
    assert session.isascii() and session.isprintable() and len(session) < 1024
    assert server.legacy(session, "ping").json()["result"] == {}
    assert server.legacy(None, "ping").status == 400
    assert server.legacy(session + "x", "ping").status == 404
    assert server.legacy("nonsense", "ping").status == 404
    assert server.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, session, {"MCP-Protocol-Version": "1999-01-01"}).status == 400
    # Another client's session is no session.
    other = server.make_token()
    is_known(server, other)
    assert server.legacy(session, "ping", token=other).status == 404
    server.restart(signal.SIGKILL)
    assert server.legacy(session, "tools/list").json()["result"]["tools"]
    # Both eras, one endpoint, at the same time.
    assert server.modern("tools/list").status == 200
    assert server.request("DELETE", headers={"Mcp-Session-Id": session}).status == 200
    assert server.legacy(session, "ping").status == 404
    server.restart(signal.SIGKILL)
    assert server.legacy(session, "ping").status == 404
    assert server.request("DELETE", headers={"Mcp-Session-Id": session}).status == 404


def test_the_older_era_hears_of_changes_on_its_stream(server, cordon):
    session = server.initialize()
    stream = server.open(server.head("GET", headers={"Mcp-Session-Id": session, "MCP-Protocol-Version": LEGACY}))
    assert stream.head().headers["content-type"] == "text/event-stream"
    made = project(cordon)
    stream.wait(lambda event: event["method"] == "notifications/resources/list_changed")
    uri = f"cordon://project/{made}"
    assert server.legacy(session, "resources/subscribe", {"uri": uri}).json()["result"] == {}
    cordon("project", "update", made, "--description", "new")
    assert stream.wait(lambda event: event["method"] == "notifications/resources/updated")["params"] == {"uri": uri}
    # A second stream takes over, as after a lost connection; the first ends.
    second = server.open(server.head("GET", headers={"Mcp-Session-Id": session}))
    second.head()
    assert stream.ended().raw.endswith(b"0\r\n\r\n")
    server.request("DELETE", headers={"Mcp-Session-Id": session})
    second.ended()


def test_modern_listeners_are_told_and_are_answered_at_the_end(server, cordon):
    made = project(cordon)
    stream = server.listen(f"cordon://project/{made}")
    cordon("project", "update", made, "--description", "new")
    note = stream.wait(lambda event: event.get("method") == "notifications/resources/updated")
    assert note["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "l"
    server.stop()
    last = stream.ended().events()[-1]
    assert last["id"] == "l" and last["result"]["resultType"] == "complete"
    server.start()


def test_progress_makes_a_stream_and_an_answer_alone_does_not(server, cordon):
    made = project(cordon)
    args = {"project_id": made, "command": ["sh", "-c", "for i in 1 2; do echo $i; sleep 0.3; done"], "wait_seconds": 60}
    call = {"name": "session_start", "arguments": args, "_meta": {"progressToken": "t"}}
    answer = server.modern("tools/call", call)
    assert answer.headers["content-type"] == "text/event-stream" and answer.headers["x-accel-buffering"] == "no"
    values = [event["params"]["progress"] for event in answer.events()[:-1]]
    assert values and values == sorted(set(values)) and answer.json()["result"]["structuredContent"]["status"] == "completed"
    # A client that takes no stream gets the answer all the same.
    answer = server.modern("tools/call", call, headers={"Accept": "application/json"})
    assert answer.headers["content-type"] == "application/json" and answer.json()["result"]["structuredContent"]["status"] == "completed"


def test_closing_a_modern_call_ends_what_it_started_and_a_legacy_one_goes_on(server, cordon):
    made = project(cordon)
    args = {"project_id": made, "command": ["sleep", "1000"], "wait_seconds": 3600, "new_session": True}

    def active():
        return server.did("session_list", status="active")["sessions"]

    data = server.modern_bytes("tools/call", {"name": "session_start", "arguments": args})
    call = server.open(data)
    poll(active, PATIENT, "the session to run")
    call.close()
    poll(lambda: not active(), PATIENT, "the session to be stopped")
    session = server.initialize()
    message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "session_start", "arguments": args}}
    call = server.open(server.post_bytes(message, session))
    poll(lambda: [entry for entry in active() if entry["state"] == "running"], PATIENT, "the session to run")
    call.close()
    # In this era only a notification cancels.
    assert server.legacy(session, "ping").status == 200 and active()
    call = server.open(server.post_bytes({**message, "id": 8, "params": {"name": "session_output", "arguments": {"session_id": active()[0]["session_id"], "wait_seconds": 3600}}}, session))
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 8}}
    poll(lambda: server.post(cancel, session).status == 202 and select_ready(call.sock), PATIENT, "the end of the call")
    assert call.ended().events() == []
    assert server.did("session_stop", session_id=active()[0]["session_id"])["status"] != "active"


def select_ready(sock):
    sock.settimeout(0.05)
    try:
        return sock.recv(1, socket.MSG_PEEK) is not None
    except TimeoutError:
        return False
    finally:
        sock.settimeout(PATIENT)


def test_a_person_decides_in_both_eras(server, cordon):
    made = project(cordon)
    # Modern: a question instead of an answer; the state is good after a restart, for this call and this client only.
    params = {"name": "project_delete", "arguments": {"project_id": made}}
    assert server.modern("tools/call", params).json()["error"]["code"] == -32021
    asked = server.result("tools/call", params, capabilities=FORMS)
    assert asked["resultType"] == "input_required"
    server.restart(signal.SIGKILL)
    reply = {"inputResponses": {"approve": YES}, "requestState": asked["requestState"]}
    other = server.make_token("--scope", "admin")
    is_known(server, other)
    assert server.modern("tools/call", params | reply, capabilities=FORMS, token=other).json()["error"]["code"] == -32602
    # Legacy: the question comes on the stream of the call, the answer in another request.
    session = server.initialize(FORMS)
    message = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}
    call = server.open(server.post_bytes(message, session))
    question = call.wait(lambda event: event.get("method") == "elicitation/create")
    assert made in question["params"]["message"]
    # Another session, and another client, can't answer it.
    strange = server.initialize(FORMS)
    answer = {"jsonrpc": "2.0", "id": question["id"], "result": YES}
    assert server.post(answer, strange).status == 202
    assert server.result("tools/list") and cordon("project", "get", made).returncode == 0
    assert server.post({**answer, "result": {"action": "decline"}}, session).status == 202
    assert call.wait(lambda event: event.get("id") == 5)["result"]["isError"]
    # It was the same question, so the modern client's yes comes too late; a new call is a new question.
    late = server.result("tools/call", params | reply, capabilities=FORMS)
    assert late["isError"] and "denied this" in late["structuredContent"]["error"]["message"]
    assert cordon("project", "get", made).returncode == 0
    reply["requestState"] = server.result("tools/call", params, capabilities=FORMS)["requestState"]
    assert not server.result("tools/call", params | reply, capabilities=FORMS).get("isError")
    assert cordon("project", "get", made).returncode == 1


# ---- tokens ----


def test_a_token_is_shown_once_and_stored_as_a_hash(server, cordon, box):
    made = cordon("token", "create", "--name", "ci", "--scope", "read", "--expires", "1h", "--json").json()
    files = list((box.state / "state" / "tokens").glob("*.json"))
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    everything = b"".join(path.read_bytes() for path in box.state.rglob("*") if path.is_file())
    assert made["token"].encode() not in everything and made["token"][7:].encode() not in everything
    listed = cordon("token", "list", "--json").json()
    assert [token["name"] for token in listed if "name" in token] == ["ci"] and all("hash" not in token for token in listed)
    assert cordon("token", "create", "--name", "ci").returncode == 1
    for wrong in (("--scope", "all"), ("--expires", "soon"), ("--expires", "0"), ("--project", "missing")):
        assert cordon("token", "create", *wrong).returncode in (1, 2), wrong
    is_known(server, made["token"])
    stream = server.listen(token=made["token"])
    assert cordon("token", "revoke", "ci").returncode == 0
    stream.ended()
    assert server.modern("tools/list", token=made["token"]).status == 401
    assert cordon("token", "revoke", "ci").returncode == 1


def test_tokens_that_can_not_be_read_are_reported(server, cordon, box):
    damaged = box.write(box.state / "state" / "tokens" / "00000000-0000-4000-8000-000000000000.json", "{", mode=0o600)
    poll(lambda: server.modern("tools/list").status == 401, PATIENT, "the change to be seen")
    line = server.process.stderr.readline().decode()
    assert "no token is valid" in line and "00000000-0000" in line, line
    damaged.unlink()
    poll(lambda: server.modern("tools/list").status == 200, PATIENT, "the change to be seen")


def test_a_client_that_closes_its_side_is_answered_only_at_once(server, cordon):
    """Documented: in TCP a closed side can't be told from a closed connection."""
    assert server.bytes(server.modern_bytes("tools/list"), half_close=True).status == 200
    made = project(cordon)
    assert server.bytes(server.modern_bytes("tools/call", {"name": "workspace_create", "arguments": {"project_id": made}}), half_close=True).status is None
    assert is_known(server, server.token)


def test_an_expired_token_is_none(server, cordon):
    token = server.make_token("--expires", "1s")
    poll(lambda: server.modern("tools/list", token=token).status == 401, PATIENT, "the token to expire")


def test_a_token_for_a_project_sees_nothing_of_others(server, cordon):
    mine, theirs = project(cordon, "mine"), project(cordon, "theirs")
    token = server.make_token("--scope", "admin", "--project", "mine")
    is_known(server, token)
    foreign = server.did("session_start", project_id=theirs, command=["cat"])["session_id"]
    own = server.did("session_start", token=token, project_id=mine, command=["cat"])["session_id"]
    uris = {entry["uri"] for entry in server.result("resources/list", token=token)["resources"]}
    assert uris == {"cordon://projects", "cordon://sessions", f"cordon://project/{mine}", f"cordon://project/{mine}/workspaces"}
    for uri in (f"cordon://project/{theirs}", f"cordon://session/{foreign}", f"cordon://session/{foreign}/log", "cordon://audit/2026-01-01"):
        answer = server.modern("resources/read", {"uri": uri}, token=token).json()
        assert answer["error"]["code"] == -32602, uri
    for uri in ("cordon://projects", "cordon://sessions"):
        text = server.result("resources/read", {"uri": uri}, token=token)["contents"][0]["text"]
        assert theirs not in text and foreign not in text and mine in text
    ref = {"type": "ref/resource", "uri": "cordon://session/{session_id}"}
    values = server.result("completion/complete", {"ref": ref, "argument": {"name": "session_id", "value": ""}}, token=token)
    assert values["completion"]["values"] == [own]
    stream = server.listen(f"cordon://session/{foreign}", f"cordon://session/{own}", token=token)
    assert stream.wait(lambda event: True)["params"]["notifications"]["resourceSubscriptions"] == [f"cordon://session/{own}"]
    stream.close()
    assert server.did("session_get", token=token, session_id=own)["project_id"] == mine
    for session in (foreign, own):
        server.did("session_stop", session_id=session)
    # Calls are recorded with who made them.
    log = [json.loads(line) for line in cordon("audit", "--json").stdout.splitlines()]
    ids = {entry["id"] for entry in cordon("token", "list", "--json").json()}
    said = {entry["detail"].get("principal") for entry in log if entry["event"] == "call"}
    assert said == {f"token:{id}" for id in ids}


def test_a_server_may_offer_less(serve):
    server = serve("--toolset", "session,project_get", scope="admin")
    assert names(server.result("tools/list")) == {"project_get", "session_start", "session_send", "session_exec", "session_output", "session_get", "session_list", "session_stop"}
    assert server.modern("tools/call", {"name": "project_list", "arguments": {}}).json()["error"]["code"] == -32602
    # What is not usual must be named.
    usual = serve(port=0, scope="admin")
    assert names(serve("--toolset", "manage,run", scope="admin").result("tools/list")) == names(usual.result("tools/list")) | {"run"}
    assert usual.modern("tools/call", {"name": "run", "arguments": {"command": ["true"]}}).json()["error"]["code"] == -32602


def test_a_server_may_offer_a_tool_that_runs_a_command(serve, cordon):
    server = serve("--toolset", "manage,run", scope="run")
    made = project(cordon)
    script = "echo out; echo err >&2; cat; exit 3"
    ran = server.did("run", project_id=made, command=["sh", "-c", script], input="in")
    assert (ran["stdout"], ran["stderr"], ran["exit_code"], ran["timed_out"], ran["status"]) == ("out\nin\n", "err\n", 3, False, "failed")
    # It is a session like any other, and has ended.
    assert server.did("session_get", session_id=ran["session_id"])["status"] == "failed"
    late = server.did("run", project_id=made, command=["sh", "-c", "echo a; sleep 1000"], timeout_seconds=1)
    assert late["timed_out"] and late["stdout"] == "a\n" and late["signal"] == signal.SIGTERM
    long = server.did("run", project_id=made, command=["sh", "-c", "printf begin; head -c 400000 /dev/zero | tr '\\0' 'ä'; printf end"])["stdout"]
    assert long.startswith("begin") and long.endswith("end") and "bytes are left out" in long and len(long.encode()) < 140000
    # In a session that runs, beside its agent.
    session = server.did("session_start", project_id=made, command=["sleep", "1000"])["session_id"]
    assert server.did("run", session_id=session, command=["cat"], input="x")["stdout"] == "x"
    for wrong in ({}, {"session_id": session, "project_id": made}, {"session_id": session, "net": []}, {"project_id": made, "workspace_id": "nowhere"}):
        assert server.refused("run", command=["true"], **wrong)["kind"] in ("usage", "not_found"), wrong
    assert server.refused("run", project_id=made, command=[])["kind"] == "usage"
    server.did("session_stop", session_id=session)
    # Progress, and the end of the client's stream is the end of the tree.
    call = {"name": "run", "arguments": {"project_id": made, "command": ["sh", "-c", "echo one; sleep 1000"]}, "_meta": {"progressToken": "t"}}
    stream = server.open(server.modern_bytes("tools/call", call))
    assert "one" in stream.wait(lambda event: "one" in event.get("params", {}).get("message", ""))["params"]["message"]
    assert server.did("session_list", status="active")["sessions"]
    stream.close()
    poll(lambda: not server.did("session_list", status="active")["sessions"], PATIENT, "the command to be stopped")


def test_a_front_may_have_a_name(serve):
    server = serve("--allow-host", "agents.example.org")
    for headers, status in (
        ({"Host": "agents.example.org"}, 200), ({"Host": "Agents.Example.org", "Origin": "https://agents.example.org"}, 200),
        ({"Host": "agents.example.org:8080"}, 403), ({"Origin": "https://agents.example.org.evil"}, 403), ({"Origin": "null"}, 403),
        ({"Host": f"localhost:{server.port}", "Origin": f"http://localhost:{server.port}"}, 200), ({"Host": "localhost"}, 403),
        ({"Origin": f"https://{server.host}"}, 403), ({"Origin": f"http://{server.host}/"}, 403),
    ):  # fmt: skip
        assert server.modern("tools/list", headers=headers).status == status, headers


# ---- bounds ----


def test_too_many_calls_wait_a_moment(server):
    statuses = []
    data = server.modern_bytes("tools/list", headers={"Mcp-Method": "wrong"})

    def hammer():
        for _ in range(700):
            answer = server.bytes(data)
            statuses.append(answer.status)
            if answer.status == 429:
                assert int(answer.headers["retry-after"]) >= 1
                return

    while 429 not in statuses and len(statuses) < 20000:
        threads = [threading.Thread(target=hammer) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if not statuses.count(429) and len(statuses) > 2000:
            break  # this machine is too slow to make a thousand calls in a second
    assert set(statuses) <= {400, 429}
    poll(lambda: server.modern("tools/list").status == 200, PATIENT, "calls to be taken again")


def test_two_hundred_streams_of_one_token(server):
    streams = [server.listen(lists=False) for _ in range(200)]
    refused = server.modern("subscriptions/listen", {"notifications": {}})
    assert refused.status == 429 and refused.headers["retry-after"]
    other = server.make_token()
    is_known(server, other)
    server.listen(token=other).close()
    assert server.modern("tools/list").status == 200
    streams.pop().close()
    poll(lambda: server.listen(lists=False) if server.modern("tools/list").status == 200 else None, PATIENT, "room for a stream")
    for stream in streams:
        stream.close()


@pytest.mark.long
def test_a_thousand_idle_streams_fit_into_eight_mebibytes(server):
    """All memory of the process, with what it shares; `make bench` has the figures."""
    tokens = [server.make_token("--scope", "read") for _ in range(5)]
    is_known(server, tokens[-1])
    streams = [server.listen(token=token) for token in tokens for _ in range(200)]
    assert server.memory()[0] < 8 << 20
    for stream in streams:
        stream.close()
    poll(lambda: server.listen(token=tokens[0]), PATIENT, "room for a stream").close()
