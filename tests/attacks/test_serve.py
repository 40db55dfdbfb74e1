# SPDX-License-Identifier: Apache-2.0
"""Attacks on the HTTP server: tokens, rebinding, pages of other sites, smuggling, clients that drip, vanish or come in thousands."""
import json
import os
import pathlib
import random
import re
import resource
import select
import socket
import time

import pytest

from serving import PATIENT, Answer, Page, Serve, read_all
from support import callers, poll

GUESSES = ["", " ", "Bearer", "Bearer ", "Bearer  ", "Basic {token}", "bearer{token}", "Bearer {token}x", "Bearer {half}", "Bearer cordon_", "Token {token}", "Bearer {token}, Bearer {token}", "{token}", "Bearer \"{token}\""]


@pytest.fixture
def who():
    """What reaches the server over a port does not depend on who runs it."""
    return callers().get("user") or callers()["root"]


@pytest.fixture
def server(cordon):
    made = Serve(cordon)
    made.token = made.make_token("--scope", "admin")
    poll(lambda: made.modern("tools/list").status == 200, PATIENT, "the token to be known")
    yield made
    assert made.stop() == 0, made.process.stderr.read().decode()


def answers(answer):
    return len(re.findall(rb"HTTP/1\.1 \d", answer.raw))


def is_well(server):
    return server.modern("tools/list").status == 200


def test_no_guess_is_a_token(server, cordon, box):
    hashes = [json.loads(path.read_text())["hash"] for path in (box.state / "state" / "tokens").glob("*.json")]
    for guess in [*GUESSES, *(f"Bearer {value}" for value in hashes)]:
        given = guess.format(token=server.token, half=server.token[:-1])
        answer = server.request(headers={"Authorization": given}, body=b"not json")
        assert answer.status == 401 and b"json" not in answer.body.lower(), (guess, answer)
    # Twice is not once.
    head = server.head(headers={"Authorization": "Bearer wrong\r\nAuthorization: Bearer " + server.token}, body=b"{}")
    assert server.bytes(head).status == 401
    # A token in the path, or in a cookie, is none.
    for path, headers in ((f"/mcp?token={server.token}", {}), ("/mcp", {"Cookie": f"token={server.token}"})):
        assert server.request(path=path, headers=headers | {"Authorization": None}, body=b"{}").status == 401
    assert is_well(server)


def test_pages_of_other_sites_and_names_that_lead_here_are_refused(server):
    port = server.port
    for host in ("evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}", f"localhost:{port + 1}", "127.0.0.1", f"127.0.0.1:{port}.", f"127.1:{port}", f"[::ffff:127.0.0.1]:{port}", f"user@127.0.0.1:{port}", ""):
        assert server.modern("tools/list", headers={"Host": host}).status in (400, 403), host
        assert server.request("GET", "/health", {"Host": host}).status in (400, 403), host
    for origin in ("http://evil.example", "null", "", f"http://127.0.0.1:{port}.evil.example", f"http://localhost:{port + 1}", f"http://evil@127.0.0.1:{port}", "file://", f"https://127.0.0.1:{port}", f"http://127.0.0.1:{port}/mcp"):
        assert server.modern("tools/list", headers={"Origin": origin}).status == 403, origin
    # A form of another site can send these types without asking first; and nobody is told that it may ask.
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None, "application/jsonp", "text/plain; application/json"):
        assert server.modern("tools/list", headers={"Content-Type": kind}).status == 415, kind
    asked = server.request("OPTIONS", headers={"Origin": f"http://127.0.0.1:{port}", "Access-Control-Request-Method": "POST"})
    assert asked.status == 405 and not any(name.startswith("access-control") for name in asked.headers)
    assert is_well(server)


def test_a_request_hides_no_other_one(server):
    """Heads that two readers could read differently, and a second request behind the first: at most one answer, and never a good one
    for what was hidden."""
    inner = server.modern_bytes("tools/list")
    base = server.head("POST", body=b"").replace(b"Content-Length: 0\r\n", b"")[:-2]
    for framing in (
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", b"Content-Length: 4\r\nContent-Length: 0\r\n",
        b"Content-Length: 0, 4\r\n", b"Content-Length: +0\r\n", b"Content-Length: 0x0\r\n", b"Content-Length:\x0b0\r\n", b"Content-Length : 0\r\n",
        b"Transfer-Encoding: xchunked\r\n", b"Transfer-Encoding: chunked, identity\r\n", b"Transfer-Encoding:\tchunked\x00\r\n", b"Transfer-Encoding : chunked\r\n",
        b"X: y\r\n Content-Length: 0\r\n", b"X: y\nContent-Length: 0\r\n", b"Host: evil\r\nContent-Length: 0\r\n", b"X: a\x00b\r\nContent-Length: 0\r\n",
    ):  # fmt: skip
        answer = server.bytes(base + framing + b"\r\n0\r\n\r\n" + inner)
        assert answer.status in (400, 501), (framing, answer)
        assert answers(answer) == 1 and b'"tools"' not in answer.raw, framing
    # A good request, and another behind it: a connection has one.
    answer = server.bytes(server.modern_bytes("server/discover") + inner)
    assert answer.status == 200 and answers(answer) == 1 and b"inputSchema" not in answer.raw
    # Chunks that lie about their length.
    for chunks in (b"fffffffffffffffff\r\n{}", b"-1\r\n{}\r\n0\r\n\r\n", b"2;x\n{}\r\n0\r\n\r\n", b"zz\r\n{}\r\n0\r\n\r\n"):
        answer = server.bytes(base + b"Transfer-Encoding: chunked\r\n\r\n" + chunks, half_close=True)
        assert answer.status != 200 and answers(answer) <= 1, (chunks, answer)
    assert is_well(server)


def test_random_bytes_do_no_harm(server):
    chance = random.Random(17)
    good = server.modern_bytes("tools/list")
    for _ in range(300):
        data = bytearray(good)
        for _ in range(chance.randint(1, 8)):
            data[chance.randrange(len(data))] = chance.choice(b"\x00\r\n \t:/%{}\"AZaz09\xff")
        answer = server.bytes(bytes(data), half_close=True)
        assert answers(answer) <= 1
    assert is_well(server)


def test_bodies_are_bounded_and_judged(server):
    deep = b"[" * 100000
    for body, status in ((b"", 400), (b"null", 400), (b"[]", 400), (b"{}", 400), (b"\xff\xfe", 400), (deep, 400), (b'{"jsonrpc":"2.0","jsonrpc":"2.0"}', 400), (b"{" + b" " * (4 << 20) + b"}", 413)):
        assert server.request(body=body).status == status, body[:40]
    # A chunked body has no length in its head; it is counted.
    head = server.head(headers={"Content-Length": None, "Transfer-Encoding": "chunked"})
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    with server.connect() as sock:
        sock.sendall(head)
        for _ in range(80):
            sock.sendall(chunk)
        sock.sendall(b"0\r\n\r\n")
        assert b" 413 " in sock.recv(4096)
    before = server.memory()[0]
    assert before < 64 << 20 and is_well(server)


@pytest.mark.long
def test_clients_that_drip_or_vanish_cost_nothing(server):
    good = server.modern_bytes("tools/list")
    # Half a head, half a body, nothing at all, and the end of the client's side in each state.
    for cut in (0, 1, 10, len(good) - 20):
        with server.connect() as sock:
            sock.sendall(good[:cut])
            sock.shutdown(socket.SHUT_WR)
            sock.settimeout(PATIENT)
            try:
                assert b"200 OK" not in sock.recv(65536)
            except ConnectionResetError:
                pass
        with server.connect() as sock:
            sock.sendall(good[:cut])
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    # Byte by byte is slow and allowed.
    with server.connect() as sock:
        for at in range(len(good)):
            sock.sendall(good[at : at + 1])
        assert b"200 OK" in sock.recv(65536)
    # A head that never ends is ended, whatever drips.
    with server.connect() as sock:
        sock.settimeout(0.2)
        sock.sendall(good[:10])
        began, said = time.monotonic(), None
        while said is None and time.monotonic() - began < PATIENT:
            try:
                said = sock.recv(4096)
            except TimeoutError:
                try:
                    sock.sendall(b"a")
                except (BrokenPipeError, ConnectionResetError):
                    said = b" 408 "
            except ConnectionResetError:
                said = b" 408 "
        assert said and b" 408 " in said
    assert is_well(server)


def test_a_client_that_does_not_read_blocks_nobody(server):
    stuck = []
    for _ in range(20):
        sock = server.connect()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        sock.sendall(server.modern_bytes("tools/list"))
        stuck.append(sock)
    assert is_well(server)
    for sock in stuck:
        sock.close()
    assert is_well(server)


@pytest.mark.long
def test_thousands_of_connections(server):
    """Idle connections fill no more than their bound, and those who speak are served meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 10000 if hard == resource.RLIM_INFINITY or hard > 12000 else max(500, hard - 500)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, wanted + 400) if hard != resource.RLIM_INFINITY else wanted + 400, hard))
    idle = []
    try:
        for _ in range(wanted - 50):
            idle.append(server.connect())
        assert is_well(server)
        assert len(os.listdir(f"/proc/{server.process.pid}/fd")) <= 10000 + 256
        # Beyond the bound one is told so, or waits until the others are ended for their silence.
        for _ in range(60):
            idle.append(server.connect())
        assert server.memory()[0] < 64 << 20
        poll(lambda: is_well(server), PATIENT, "the silent ones to be ended")
    finally:
        for sock in idle:
            sock.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    poll(lambda: is_well(server), PATIENT, "the server to go on")


def known(server, *options):
    token = server.make_token(*options)
    poll(lambda: server.modern("tools/list", token=token).status == 200, PATIENT, "the token to be known")
    return token


def test_a_client_has_no_more_memory_than_its_share(server):
    """Bodies that stop before their end: one client can hold 64 MiB of them, and others do not notice."""
    other = known(server)
    base = server.memory()[0]
    body = b"x" * (4 << 20)
    stuck = [server.connect() for _ in range(40)]
    for sock in stuck:
        sock.sendall(server.head(body=body)[:-1])
    assert server.modern("tools/list", token=other).status == 200
    assert server.memory()[0] - base < 100 << 20
    said = set()
    for sock in stuck:
        sock.sendall(b"x")
        said.add(Answer(read_all(sock)).status)
        sock.close()
    assert said == {400, 429}
    poll(lambda: is_well(server), PATIENT, "room for the client")


def test_subscriptions_that_nobody_listens_to_are_bounded(server, cordon):
    project = cordon("project", "create", "p", "--no-git", "--json").json()["id"]
    other = known(server)
    uri = {"uri": f"cordon://project/{project}"}
    statuses = []
    for _ in range(201):
        session = server.initialize()
        statuses.append(server.legacy(session, "resources/subscribe", uri).status)
    assert statuses == [200] * 200 + [429]
    assert server.legacy(server.initialize(token=other), "resources/subscribe", uri, token=other).status == 200
    # A session that has one may have more, and its end makes room.
    assert server.legacy(session, "ping").status == 200 and is_well(server)


def test_ended_sessions_of_one_client_do_not_keep_others_from_ending_theirs(server, box):
    """A client may end as many as it likes. Here it has done so before the server starts."""
    server.stop()
    later = int(time.time() * 1000) + 3600000
    path = box.state / "state" / "serve" / "ended"
    path.write_text("".join(f"{number:032x} {later + number}\n" for number in range(20000)))
    box.own(path)
    server.start()
    session = server.initialize()
    assert server.request("DELETE", headers={"Mcp-Session-Id": session}).status == 200
    assert server.legacy(session, "ping").status == 404
    server.restart()
    assert server.legacy(session, "ping").status == 404 and len(path.read_text().splitlines()) < 20000


def test_without_descriptors_the_server_waits_instead_of_spinning(server):
    def spent():
        fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    assert server.box.run("prlimit", "--pid", str(server.process.pid), "--nofile=60:").returncode == 0
    idle = [server.connect() for _ in range(80)]
    poll(lambda: len(os.listdir(f"/proc/{server.process.pid}/fd")) >= 60, PATIENT, "the descriptors to be used up")
    before = spent()
    time.sleep(1)
    assert spent() - before < 0.4
    for sock in idle:
        sock.close()
    assert is_well(server)


def test_connections_that_say_nothing_keep_neither_the_page_nor_a_socket_out(cordon, box):
    runtime = box.mkdir("runtime", 0o700)
    unix = runtime / "s.sock"
    process = box.start("sh", "-c", 'ulimit -n 600; exec "$0" "$@"', cordon.path, "serve", "--listen", "127.0.0.1:0", "--listen", f"unix:{unix}")
    port = int(re.search(rb"127.0.0.1:(\d+)/", process.stderr.readline())[1])
    page = Page(cordon)
    silent = [socket.create_connection(("127.0.0.1", port), PATIENT) for _ in range(400)]
    poll(lambda: refusals(silent), PATIENT, "the places to be taken")
    assert cordon("open", "--no-browser").returncode == 0
    assert "What runs now" in page.get("/")
    assert box.run("curl", "-s", "--unix-socket", str(unix), "http://localhost/health").stdout == "ok\n"
    # Nor do those who come to the page keep a socket out.
    silent += [socket.create_connection((page.address, page.port), PATIENT) for _ in range(200)]
    assert cordon("open", "--no-browser").returncode == 0
    for sock in silent:
        sock.close()
    process.terminate()
    assert process.wait(PATIENT) == 0


def refusals(socks):
    """How many of them were refused."""
    poller = select.poll()
    for sock in socks:
        poller.register(sock, select.POLLIN)
    return len(poller.poll(0))


def test_ids_of_sessions_can_not_be_made_or_moved(server):
    session = server.initialize()
    payload, _, mac = session.partition(".")
    other = server.initialize()
    for forged in (payload, payload + ".", "." + mac, f"{other.partition('.')[0]}.{mac}", session[:-1] + ("A" if session[-1] != "A" else "B"), session * 8, "../../etc/passwd", "a.b.c"):
        assert server.legacy(forged, "ping").status == 404, forged
    assert server.legacy(session, "ping").status == 200
    # A modern request ignores it.
    assert server.modern("tools/list", headers={"Mcp-Session-Id": "x", "Last-Event-ID": "y"}).status == 200
