# SPDX-License-Identifier: Apache-2.0
"""`cordon serve` and clients of it, for the tests of HTTP: bytes on a socket, one request, streams of events, both eras."""
import json
import re
import signal
import socket
import urllib.parse

from support import poll

MODERN, LEGACY = "2026-07-28", "2025-11-25"
META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
PATIENT = 60


class Answer:
    """What came back: status, headers in lower case, and the body."""

    def __init__(self, raw):
        head, _, body = raw.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.raw = raw
        self.status = int(lines[0].split(" ")[1]) if lines[0].startswith("HTTP/") else None
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        self.body = unchunk(body) if self.headers.get("transfer-encoding") == "chunked" else body

    def json(self):
        """The answer, be it alone or the last event of a stream."""
        if self.headers.get("content-type") == "text/event-stream":
            return self.events()[-1]
        return json.loads(self.body)

    def events(self):
        return events_of(self.body.decode())

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body[:500]!r}"


def unchunk(data):
    out = b""
    while data:
        size, _, rest = data.partition(b"\r\n")
        if not size or not re.fullmatch(rb"[0-9a-fA-F]+", size) or int(size, 16) == 0:
            break
        out += rest[: int(size, 16)]
        data = rest[int(size, 16) + 2 :]
    return out


def events_of(text):
    return [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: ")]


def read_all(sock):
    data = b""
    try:
        while chunk := sock.recv(65536):
            data += chunk
    except ConnectionResetError:
        pass
    return data


class Stream:
    """An open response, read as it comes."""

    def __init__(self, sock):
        self.sock = sock
        self.data = b""

    def more(self):
        chunk = self.sock.recv(65536)
        self.data += chunk
        return chunk

    def head(self):
        while b"\r\n\r\n" not in self.data:
            assert self.more(), self.data
        return Answer(self.data)

    def wait(self, wanted):
        """The first event that fits."""
        while True:
            for event in Answer(self.data).events() if b"\r\n\r\n" in self.data else []:
                if wanted(event):
                    return event
            assert self.more(), self.data

    def ended(self):
        """Reads to the end, which must come."""
        while self.more():
            pass
        return Answer(self.data)

    def close(self):
        self.sock.close()


class Serve:
    """A running server, and one client of it with a token."""

    def __init__(self, cordon, *options, unix=False, env=None, port=0):
        self.cordon = cordon
        self.box = cordon.box
        self.options = options
        self.env = env
        self.unix = str(self.box.path / "s.sock" if unix is True else unix) if unix else None
        self.port = port
        self.token = None
        self.start()

    def start(self):
        listen = f"unix:{self.unix}" if self.unix else f"127.0.0.1:{self.port}"
        self.process = self.cordon.start("serve", "--listen", listen, *self.options, env=self.env)
        line = self.process.stderr.readline().decode()
        assert "listening on" in line, line + self.process.stderr.read().decode()
        if not self.unix:
            self.port = int(re.search(r":(\d+)/", line)[1])
        self.host = "localhost" if self.unix else f"127.0.0.1:{self.port}"

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(PATIENT)

    def restart(self, how=signal.SIGKILL):
        self.stop(how)
        self.start()

    def make_token(self, *options):
        done = self.cordon("token", "create", *options)
        assert done.returncode == 0, str(done)
        return done.stdout.strip()

    def connect(self):
        if self.unix:
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(PATIENT)
            sock.connect(self.unix)
            return sock
        return socket.create_connection(("127.0.0.1", self.port), PATIENT)

    def bytes(self, data, half_close=False):
        """What the server says to these bytes, up to the end of the connection."""
        with self.connect() as sock:
            try:
                sock.sendall(data)
                if half_close:
                    sock.shutdown(socket.SHUT_WR)
            except (BrokenPipeError, ConnectionResetError):
                pass
            return Answer(read_all(sock))

    def head(self, method="POST", path="/mcp", headers=None, body=b"", token=None):
        """The bytes of a request; a header that is None is left out."""
        token = token or self.token
        fields = {"Host": self.host, "Accept": "application/json, text/event-stream"}
        if token:
            fields["Authorization"] = f"Bearer {token}"
        if method == "POST":
            fields |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        fields |= headers or {}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value is not None)
        return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + body

    def request(self, method="POST", path="/mcp", headers=None, body=b"", token=None):
        return self.bytes(self.head(method, path, headers, body, token))

    def modern_bytes(self, method, params=None, headers=None, token=None, id=1, capabilities=None):
        params = dict(params or {})
        meta = META | {"io.modelcontextprotocol/clientCapabilities": capabilities or {}}
        params["_meta"] = meta | params.get("_meta", {})
        mirrored = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        if "name" in params or "uri" in params:
            mirrored["Mcp-Name"] = params.get("name") or params["uri"]
        body = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()
        return self.head(headers=mirrored | (headers or {}), body=body, token=token)

    def modern(self, method, params=None, **more):
        return self.bytes(self.modern_bytes(method, params, **more))

    def result(self, method, params=None, **more):
        answer = self.modern(method, params, **more)
        assert answer.status == 200, answer
        return answer.json()["result"]

    def tool(self, tool, /, token=None, **args):
        return self.result("tools/call", {"name": tool, "arguments": args}, token=token)

    def did(self, tool, /, token=None, **args):
        result = self.tool(tool, token=token, **args)
        assert not result.get("isError"), result
        return result["structuredContent"]

    def refused(self, tool, /, token=None, **args):
        result = self.tool(tool, token=token, **args)
        assert result.get("isError"), result
        return result["structuredContent"]["error"]

    def open(self, data):
        """A response that goes on."""
        sock = self.connect()
        sock.sendall(data)
        return Stream(sock)

    def listen(self, *uris, token=None, lists=True):
        filter = {"resourcesListChanged": lists, "resourceSubscriptions": list(uris)}
        stream = self.open(self.modern_bytes("subscriptions/listen", {"notifications": filter}, token=token, id="l"))
        stream.wait(lambda event: event.get("method") == "notifications/subscriptions/acknowledged")
        return stream

    # ---- the older era ----

    def initialize(self, capabilities=None, token=None, version=LEGACY):
        params = {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": {"name": "raw", "version": "1"}}
        answer = self.post({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": params}, token=token)
        assert answer.status == 200, answer
        session = answer.headers["mcp-session-id"]
        assert self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, session, token=token).status == 202
        return session

    def post_bytes(self, message, session=None, headers=None, token=None):
        extra = {"Mcp-Session-Id": session, "MCP-Protocol-Version": LEGACY if session else None}
        return self.head(headers=extra | (headers or {}), body=json.dumps(message).encode(), token=token)

    def post(self, message, session=None, headers=None, token=None):
        return self.bytes(self.post_bytes(message, session, headers, token))

    def legacy(self, session, method, params=None, id=1, token=None):
        return self.post({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}, session, token=token)

    def memory(self):
        """Resident bytes of the server: all, and what is its own."""
        text = open(f"/proc/{self.process.pid}/status").read()
        return tuple(int(re.search(rf"{name}:\s+(\d+)", text)[1]) * 1024 for name in ("VmRSS", "RssAnon"))


def wait_gone(process_alive):
    return poll(lambda: not process_alive(), PATIENT, "the end of a process")


class Page:
    """A person with a browser: logs in with `cordon open`, keeps the cookie, and sends forms as the page does."""

    def __init__(self, cordon, server=None):
        self.cordon = cordon
        done = cordon("open", "--no-browser")
        assert done.returncode == 0, str(done)
        self.link = done.stdout.strip()
        self.host = re.fullmatch(r"http://([^/]+)/login\?code=[0-9a-f]{64}", self.link)[1]
        self.address, self.port = self.host.rpartition(":")[0], int(self.host.rpartition(":")[2])
        answer = self.raw("GET", self.link.partition(self.host)[2])
        assert answer.status == 200, answer
        self.cookie = answer.headers["set-cookie"].partition(";")[0]

    def bytes(self, method, path, headers=None, body=b""):
        fields = {"Host": self.host}
        if getattr(self, "cookie", None):
            fields["Cookie"] = self.cookie
        if method == "POST":
            fields |= {"Origin": f"http://{self.host}", "Content-Type": "application/x-www-form-urlencoded", "Content-Length": str(len(body))}
        fields |= headers or {}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value is not None)
        return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + body

    def raw(self, method, path, headers=None, body=b""):
        with socket.create_connection((self.address, self.port), PATIENT) as sock:
            sock.sendall(self.bytes(method, path, headers, body))
            return Answer(read_all(sock))

    def get(self, path, status=200, headers=None):
        """The HTML of a page."""
        answer = self.raw("GET", path, headers)
        assert answer.status == status, answer
        return answer.body.decode()

    def token(self, path="/"):
        return re.search(r'name="token" value="([0-9a-f]{64})"', self.get(path))[1]

    def post(self, path, /, status=303, headers=None, **fields):
        """Sends a form; gives the place to go on, or the page about a failure."""
        body = urllib.parse.urlencode({"token": self.token()} | fields, doseq=True).encode()
        answer = self.raw("POST", path, headers, body)
        assert answer.status == status, answer
        return answer.headers["location"] if status == 303 else answer.body.decode()

    def listen(self, *topics):
        sock = socket.create_connection((self.address, self.port), PATIENT)
        sock.sendall(self.bytes("GET", "/events?on=" + urllib.parse.quote(" ".join(topics))))
        return Stream(sock)

    def stop(self):
        """Ends the server that `cordon open` started."""
        done = self.cordon("open", "--stop")
        assert done.returncode == 0, str(done)
