# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the MCP tests: Node with the official SDKs, clients that drive the server through them, and bare streams."""
import itertools
import json
import os
import pathlib
import queue
import subprocess
import threading

import pytest

from support import node_packages, session_helpers

HERE = pathlib.Path(__file__).resolve().parent
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


@pytest.fixture(scope="session")
def sdk(base_dir):
    """A directory with the SDKs and Node, and our programs beside them."""
    return node_packages(HERE, base_dir, "mcp-node", ("bridge.mjs", "schemas.mjs", "validate.mjs"))


def node(sdk):
    # Debian's npm makes no link in .bin, where two optional packages have a program of this name.
    return str(next((sdk / "node_modules").glob("node-linux-*/bin/node")))


class Judge:
    """validate.mjs, which judges every message of every connection by the official schemas of its revision."""

    def __init__(self, sdk):
        self.process = subprocess.Popen(
            [node(sdk), str(sdk / "validate.mjs")], cwd=sdk, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        session_helpers.add(self.process.pid)
        self.lock = threading.Lock()
        self.numbers = itertools.count(1)

    def tell(self, **entry):
        with self.lock:
            self.process.stdin.write(json.dumps(entry).encode() + b"\n")

    def verdict(self, connection):
        """{"seen": {"client", "server"}, "bad": [...]} of a connection that is over."""
        self.tell(c=connection, end=True)
        self.process.stdin.flush()
        verdict = json.loads(self.process.stdout.readline())
        assert verdict.pop("c") == connection
        return verdict

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(30) == 0


class Wire:
    """One connection under the judge's eyes."""

    def __init__(self, judge):
        self.judge = judge
        self.number = next(judge.numbers)
        self.over = False

    def saw(self, side, text, malformed=False):
        text = text.decode(errors="replace") if isinstance(text, bytes) else text
        if not self.over:
            self.judge.tell(c=self.number, **{"from": side}, text=text, **({"malformed": True} if malformed else {}))

    def end(self):
        """Says how many messages there were; an AssertionError names those that no schema allows."""
        self.over = True
        verdict = self.judge.verdict(self.number)
        assert not verdict["bad"], "\n".join(verdict["bad"][:10])
        return verdict["seen"]


class Lines:
    """A process that speaks JSON lines; a thread reads them, so that nobody waits for ever."""

    def __init__(self, process):
        self.process = process
        self.queue = queue.Queue()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            self.took(line)
        self.queue.put(None)

    def took(self, line):
        self.queue.put(line)

    def send(self, value):
        self.write(json.dumps(value).encode() + b"\n")

    def why(self):
        """What the process said before it ended."""
        return f"{self.process.poll()}: " + (self.process.stderr.read().decode(errors="replace") if self.process.stderr else "")

    def write(self, data):
        try:
            self.process.stdin.write(data)
            self.process.stdin.flush()
        except BrokenPipeError:
            raise EOFError(self.why()) from None

    def receive(self, timeout=30):
        line = self.queue.get(timeout=timeout)
        if line is None:
            raise EOFError(self.why())
        return json.loads(line)

    def close(self):
        if not self.process.stdin.closed:
            self.process.stdin.close()
        return self.process.wait(10)


class Client(Lines):
    """`cordon mcp` behind an official SDK client; `notes` holds what came unasked."""

    def __init__(self, process, wire):
        self.wire = wire
        super().__init__(process)
        self.notes = []
        self.counter = 0
        assert "ready" in self.receive()

    def took(self, line):
        message = json.loads(line)
        if "wire" in message:
            self.wire.saw(message["wire"], json.dumps(message["message"]))
        else:
            self.queue.put(line)

    def start(self, op, **params):
        self.counter += 1
        self.send({"id": self.counter, "op": op, **params})
        return self.counter

    def finish(self, number, timeout=30):
        for message in self.notes:
            if message.get("id") == number:
                self.notes.remove(message)
                return message
        while True:
            message = self.receive(timeout)
            assert "trouble" not in message, message
            if message.get("id") == number:
                return message
            self.notes.append(message)

    def ask(self, op, timeout=30, **params):
        """The value, or an AssertionError with what the SDK or the server said."""
        message = self.finish(self.start(op, **params), timeout)
        assert "error" not in message, message
        return message["value"]

    def fault(self, op, **params):
        message = self.finish(self.start(op, **params))
        assert "error" in message, message
        return message["error"]

    def tool(self, tool, /, **args):
        result = self.ask("tool", name=tool, args=args)
        assert not result.get("isError"), result
        assert result["content"][0]["type"] == "text" and result["content"][0]["text"]
        return result["structuredContent"]

    def refused(self, tool, /, **args):
        result = self.ask("tool", name=tool, args=args)
        assert result.get("isError") is True, result
        error = result["structuredContent"]["error"]
        assert error["message"] in result["content"][0]["text"]
        return error

    def wait_note(self, wanted, timeout=10):
        """The first notification that fits, those before it included."""
        while True:
            for note in self.notes:
                if wanted(note):
                    self.notes.remove(note)
                    return note
            self.notes.append(self.receive(timeout))


@pytest.fixture(scope="session")
def judge(sdk):
    made = Judge(sdk)
    yield made
    made.close()


def finish(connections):
    """Ends connections; each must have been without fault, whether or not its test looked at all of it."""
    for connection in connections:
        connection.close()
        connection.thread.join(30)
    for connection in connections:
        connection.wire.end()


@pytest.fixture
def connect(box, sdk, cordon, judge):
    """`connect(kind, approve=, options=, env=, cwd=)` starts a client: v1, v2 (2026-07-28), or v2-legacy."""
    clients = []

    def start(kind, approve=None, options=(), env=None, cwd=None):
        extra = dict(env or {})
        if approve is not None:
            extra["BRIDGE_APPROVE"] = "yes" if approve else "no"
        process = box.start(
            node(sdk), str(sdk / "bridge.mjs"), kind, cordon.path, "mcp", *options, stdin=subprocess.PIPE, env=extra, cwd=cwd
        )
        client = Client(process, Wire(judge))
        clients.append(client)
        return client

    yield start
    finish(clients)


# Who calls and which dialect a client speaks have nothing to do with each other: each of both is tried, not each pair.
PAIRS = {
    ("root", "v1"), ("user", "v2"), ("root", "v2-legacy"),
    ("root", "stdio-modern"), ("user", "stdio-legacy"), ("user", "http-modern"), ("root", "http-legacy"),
}  # fmt: skip


def is_a_pair(item):
    params = item.callspec.params if hasattr(item, "callspec") else {}
    client = params.get("client", params.get("caller"))
    return not client or "who" not in params or (params["who"], client) in PAIRS


def pytest_collection_modifyitems(config, items):
    left = [item for item in items if not is_a_pair(item)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if is_a_pair(item)]


@pytest.fixture(params=["v1", "v2", "v2-legacy"])
def client(request, connect):
    made = connect(request.param)
    made.kind = request.param
    return made


class Raw(Lines):
    """The bare server. What is sent as bytes is taken for malformed on purpose; everything else must be valid, unless the
    server refuses it."""

    def __init__(self, process, wire):
        self.wire = wire
        super().__init__(process)

    def took(self, line):
        if line.endswith(b"\n"):  # half a line is what a killed server leaves, and no message
            self.wire.saw("server", line)
        self.queue.put(line)

    def write(self, data, malformed=True):
        for line in data.splitlines():
            self.wire.saw("client", line, malformed)
        super().write(data)

    def send(self, value, malformed=False):
        self.write(json.dumps(value).encode() + b"\n", malformed)

    def request(self, id, method, params=None, modern=True, capabilities=None, malformed=False, **extra):
        params = dict(params or {})
        if modern:
            params["_meta"] = {VERSION: "2026-07-28", CAPABILITIES: capabilities or {}, **params.get("_meta", {})}
        message = {"jsonrpc": "2.0", "id": id, "method": method, **extra}
        if params:
            message["params"] = params
        self.send(message, malformed)

    def notify(self, method, params=None, malformed=False):
        self.send({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}, malformed)

    def ask(self, *args, **options):
        """The answer to one request; notifications in between are dropped."""
        self.request(*args, **options)
        while True:
            message = self.receive()
            if "id" in message and "method" not in message:
                return message

    def initialize(self, version="2025-11-25", capabilities=None):
        params = {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": {"name": "raw", "version": "1"}}
        answer = self.ask("init", "initialize", params, modern=False)
        self.notify("notifications/initialized")
        return answer["result"]


@pytest.fixture
def raw(cordon, judge):
    """`raw(*options)` starts a bare server."""
    servers = []

    def start(*options, **more):
        server = Raw(cordon.start("mcp", *options, stdin=subprocess.PIPE, **more), Wire(judge))
        servers.append(server)
        return server

    yield start
    finish(servers)
