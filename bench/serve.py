# SPDX-License-Identifier: Apache-2.0
"""`cordon serve` beside the official TypeScript servers: trivial calls per second, the processor's time for each, and the memory of idle
streams; and how long its page takes. All get the same requests from the same program (serve_bench.c), in turns. The peers keep their connections open; cordon takes a
new one for each request, and also checks Host, Origin and a token, and writes an audit record for each call."""
import fcntl
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import time
import uuid

from rows import Row, median, microseconds, rate, run

HERE = pathlib.Path(__file__).resolve().parent
MODERN, LEGACY = "2026-07-28", "2025-11-25"
META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
TURNS = 7
SECONDS = 1
CONNECTIONS = 16
TOKENS = 64  # one token may make 1,000 calls in a second
CALLS_BAR = 3.0
STREAMS = 1000
STREAMS_BAR = 8 << 20
SESSIONS = 1000
PAGES = 15
PAGE_BAR = 10000
TICKS = os.sysconf("SC_CLK_TCK")


class Server:
    """A server process, its port, and how to ask it."""

    def __init__(self, command, port, tool, env=None, tokens=(None,)):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        self.port = port(self.process)
        self.tool = tool
        self.tokens = tokens
        self.sessions = None

    def request(self, method, params, token, session=None, modern=True):
        headers = {"Host": f"127.0.0.1:{self.port}", "Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if modern:
            params = params | {"_meta": META}
            headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": method} | ({"Mcp-Name": params["name"]} if "name" in params else {})
        elif session:
            headers |= {"MCP-Protocol-Version": LEGACY, "Mcp-Session-Id": session}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"POST /mcp HTTP/1.1\r\n{lines}Content-Length: {len(body)}\r\n\r\n{body}".encode()

    def initialize(self, token):
        """The id of a session, which the older revision needs."""
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        with socket.create_connection(("127.0.0.1", self.port), 30) as sock:
            sock.sendall(self.request("initialize", params, token, modern=False))
            head = b""
            while b"\r\n\r\n" not in head:
                head += sock.recv(65536)
            return re.search(rb"(?i)\r\nmcp-session-id: (\S+)", head)[1].decode()

    def requests(self, what):
        """One request for each token: (method, revision)."""
        method, revision = what
        params = {"name": self.tool, "arguments": {}} if method == "tools/call" else {}
        if revision == MODERN:
            return [self.request(method, params, token) for token in self.tokens]
        if self.sessions is None:
            self.sessions = [self.initialize(token) for token in self.tokens]
        return [self.request(method, params, token, session, False) for token, session in zip(self.tokens, self.sessions)]

    def spent(self):
        """Seconds of the processor that all threads of it used."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory(self):
        """(resident, proportional) bytes: with everything that is shared, and with its part of that."""
        text = pathlib.Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        return tuple(int(re.search(rf"^{name}:\s+(\d+)", text, re.MULTILINE)[1]) * 1024 for name in ("Rss", "Pss"))

    def stop(self):
        self.process.kill()
        self.process.communicate()


def our_server(context, home):
    env = dict(os.environ, CORDON_HOME=str(home))
    tokens = [run([context.cordon, "token", "create", "--scope", "admin"], env=env).stdout.decode().strip() for _ in range(TOKENS)]

    def port(process):
        return int(re.search(rb":(\d+)/", process.stderr.readline())[1])

    return Server([context.cordon, "serve", "--listen", "127.0.0.1:0"], port, "project_list", env, tokens)


def peer(modules, which):
    node = next((modules / "node_modules").glob("node-linux-*/bin/node"))
    return Server([str(node), str(modules / "serve_peer.mjs"), which], lambda process: int(process.stdout.readline()), "trivial")


def measure(program, servers):
    """{(server, what): [(calls in a second, microseconds of the processor for each)]}, a pair for each turn; the first is for the compiler
    of the peers and does not count."""
    found = {}
    for turn in range(TURNS + 1):
        for name, (server, questions) in servers.items():
            for what in questions:
                data = b"".join(request + b"\0" for request in server.requests(what))
                before = server.spent()
                calls = float(run([program, str(server.port), str(CONNECTIONS), str(SECONDS)], input=data).stdout.split()[0])
                if turn:
                    found.setdefault((name, what), []).append((calls, (server.spent() - before) * 1e6 / (calls * SECONDS)))
    return found


def beside(found, what, ours, theirs, bar=None):
    """A row for the rate; the ratio is the median of those of the turns."""
    mine, others = found["cordon", ours], found[theirs]
    ratio = median([one[0] / other[0] for one, other in zip(mine, others)])
    text = f"{rate(median([value for value, _ in others]))} {theirs[0]}"
    return Row(what, rate(median([value for value, _ in mine])), text, ratio, f">= {bar:.0f}" if bar else "", ratio >= bar if bar else None)


def call_rows(found):
    call, old = ("tools/call", MODERN), ("tools/call", LEGACY)
    peers = {"SDK 1.x": ("SDK 1.x", old), "SDK 2.x": ("SDK 2.x", call)}
    better = max(peers.values(), key=lambda key: median([value for value, _ in found[key]]))
    for what, ours in (("tools/call, 2026-07-28", call), ("tools/call, 2025-11-25", old)):
        yield beside(found, f"{what}, beside the better", ours, better, CALLS_BAR)
    spent = median([value for _, value in found["cordon", call]])
    others = median([value for _, value in found[better]])
    yield Row("  the processor's time for one", microseconds(spent), f"{microseconds(others)} {better[0]}", others / spent)
    yield beside(found, "  tools/call, 2026-07-28", call, peers["SDK 2.x"])
    yield beside(found, "  server/discover", ("server/discover", MODERN), ("SDK 2.x", ("server/discover", MODERN)))
    yield beside(found, "  ping", ("ping", LEGACY), ("SDK 1.x", ("ping", LEGACY)))


def listen(server, n):
    """So many streams on which nothing happens, each of them acknowledged."""
    streams = []
    for i in range(n):
        sock = socket.create_connection(("127.0.0.1", server.port), 30)
        streams.append(sock)
        sock.sendall(server.request("subscriptions/listen", {"notifications": {"resourcesListChanged": True}}, server.tokens[i % len(server.tokens)]))
        data = b""
        while b"acknowledged" not in data:
            chunk = sock.recv(65536)
            if not chunk:
                raise RuntimeError(f"no stream: {data[:300]!r}")
            data += chunk
    return streams


def stream_rows(ours, theirs):
    sizes = {}
    for name, server in (("cordon", ours), ("SDK 2.x", theirs)):
        streams = listen(server, 1)
        before = server.memory()
        streams += listen(server, STREAMS - 1)
        time.sleep(1)
        sizes[name] = (before, server.memory())
        for sock in streams:
            sock.close()

    def mebibytes(value):
        return f"{value / (1 << 20):.1f} MiB"

    for i, what in enumerate(("all memory of the process", "its part of what is shared")):
        (before, after), peers = (pair[i] for pair in sizes["cordon"]), sizes["SDK 2.x"][1][i]
        yield Row(f"{STREAMS:,} idle streams, {what}", mebibytes(after), f"{mebibytes(peers)} SDK 2.x", after / peers, "< 8 MiB", after < STREAMS_BAR)
        if i == 0:
            yield Row("  more than with one", mebibytes(after - before), f"{mebibytes(before)} with one")


def make_sessions(context, env, home):
    """So many sessions that run, as far as one can see: one does, and the others are copies of it whose locks we hold."""
    project = json.loads(run([context.cordon, "project", "create", "p", "--no-git", "--json"], env=env).stdout)["id"]
    first = json.loads(run([context.cordon, "session", "start", "--detach", "--json", project, "--", "sleep", "1000"], env=env).stdout)["session_id"]
    folder = home / "state" / "sessions"
    text = (folder / first / "record.json").read_text()
    held = []
    for _ in range(SESSIONS - 1):
        name = str(uuid.uuid4())
        (folder / name).mkdir(mode=0o700)
        (folder / name / "record.json").write_text(text.replace(first, name))
        (folder / name / "events").write_bytes(b"")
        held.append((folder / name / "alive").open("w"))
        fcntl.flock(held[-1], fcntl.LOCK_EX)
    return first, held


def page_times(host, cookie, path):
    """Microseconds to the first byte and to the last one, from connect on."""
    address, _, port = host.partition(":")
    began = time.perf_counter()
    with socket.create_connection((address, int(port)), 30) as sock:
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n".encode())
        data = sock.recv(65536)
        first = time.perf_counter() - began
        while chunk := sock.recv(1 << 20):
            data += chunk
    if not data.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"no page: {data[:200]!r}")
    return first * 1e6, (time.perf_counter() - began) * 1e6, data


def page_rows(context):
    home = pathlib.Path(tempfile.mkdtemp(prefix="cordon-bench-page-", dir=context.temp))
    env = dict(os.environ, CORDON_HOME=str(home))
    session, held = make_sessions(context, env, home)
    link = run([context.cordon, "open", "--no-browser"], env=env).stdout.decode().strip()
    try:
        host, path = re.fullmatch(r"http://([^/]+)(/.*)", link).groups()
        cookie = re.search(rb"(?i)\r\nset-cookie: ([^;]+)", page_times(host, "", path)[2])[1].decode()
        whole = re.sub(rb"\r\n[0-9A-Fa-f]+\r\n", b"", page_times(host, cookie, "/")[2])  # without the lengths of chunks
        listed = whole.count(b'href="/session/')
        if listed != SESSIONS:
            raise RuntimeError(f"the page lists {listed} sessions")
        for what, path in (("the page with 1,000 sessions that run", "/"), ("  the list of all sessions", "/sessions")):
            times = [page_times(host, cookie, path)[:2] for _ in range(PAGES)]
            first, last = (median([pair[i] for pair in times]) for i in range(2))
            yield Row(f"{what}, first byte", microseconds(first), f"{microseconds(last)} to the last", None, "<= 10.00 ms", first <= PAGE_BAR)
    finally:
        run([context.cordon, "open", "--stop"], env=env)
        run([context.cordon, "session", "stop", session], env=env)
        for file in held:
            file.close()


def rows(context):
    program = context.program("serve_bench")
    modules = context.node_modules(HERE)
    shutil.copy(HERE / "serve_peer.mjs", modules)
    home = pathlib.Path(tempfile.mkdtemp(prefix="cordon-bench-serve-", dir=context.temp))
    started = []
    try:
        for make in (lambda: our_server(context, home), lambda: peer(modules, "v1"), lambda: peer(modules, "v2")):
            started.append(make())
        ours, old, new = started
        found = measure(program, {
            "cordon": (ours, [("tools/call", MODERN), ("tools/call", LEGACY), ("server/discover", MODERN), ("ping", LEGACY)]),
            "SDK 1.x": (old, [("tools/call", LEGACY), ("ping", LEGACY)]),
            "SDK 2.x": (new, [("tools/call", MODERN), ("server/discover", MODERN)]),
        })  # fmt: skip
        yield from call_rows(found)
    finally:
        for server in started:
            server.stop()
    # Memory of fresh processes: those above have served many thousand calls.
    started = []
    try:
        started += [our_server(context, pathlib.Path(tempfile.mkdtemp(dir=context.temp))), peer(modules, "v2")]
        yield from stream_rows(*started)
    finally:
        for server in started:
            server.stop()
    yield from page_rows(context)
