# SPDX-License-Identifier: Apache-2.0
"""The official SDK clients over HTTP, in both eras: tools, progress, questions, resources and what changes, across a restart."""
import json
import random
import signal
import threading
import time

import pytest

from serving import PATIENT, Serve
from support import callers, poll

from .conftest import Client, Wire, finish, node

KINDS = ["v1", "v2", "v2-legacy"]


class HttpClient(Client):
    """The SDK says that its stream broke when the server was killed, or that there is no server for a moment, and goes on."""

    AWAY = ("SSE stream", "reconnection attempts", "fetch failed", "terminated")

    def __init__(self, process, wire):
        self.handshakes = 0
        super().__init__(process, wire)

    def took(self, line):
        message = json.loads(line)
        self.handshakes += message.get("wire") == "client" and message["message"].get("method") == "initialize"
        if not any(words in message.get("trouble", "") for words in self.AWAY):
            super().took(line)


@pytest.fixture
def who():
    return callers().get("user") or callers()["root"]


@pytest.fixture
def server(cordon):
    made = Serve(cordon)
    made.token = made.make_token("--scope", "admin")
    poll(lambda: made.modern("tools/list").status == 200, PATIENT, "the token to be known")
    yield made
    assert made.stop() == 0


@pytest.fixture
def connect(box, sdk, judge, server):
    clients = []

    def start(kind):
        env = {"BRIDGE_TOKEN": server.token, "BRIDGE_APPROVE": "yes"}
        process = box.start(node(sdk), sdk / "bridge.mjs", kind, f"http://127.0.0.1:{server.port}/mcp", stdin=-1, env=env)
        client = HttpClient(process, Wire(judge))
        clients.append(client)
        return client

    yield start
    finish(clients)


@pytest.mark.parametrize("kind", KINDS)
def test_an_sdk_client_works_over_http(server, connect, kind, cordon):
    client = connect(kind)
    made = client.tool("project_create", name="p", init_git=False)["id"]
    answer = client.ask("tool", name="session_start", args={"project_id": made, "command": ["sh", "-c", "echo one; sleep 1; echo two"], "wait_seconds": 60}, progress=True, timeout=PATIENT)
    assert answer["structuredContent"]["status"] == "completed"
    assert any("progress" in note for note in client.notes)
    uri = f"cordon://project/{made}"
    client.ask("subscribe", uris=[uri], lists=True)
    cordon("project", "update", made, "--description", "new")
    client.wait_note(lambda note: note.get("notification", {}).get("method") == "notifications/resources/updated", PATIENT)
    client.ask("unsubscribe", uris=[uri])
    # Nobody begins anew: the same client goes on with the server that comes after a killed one.
    server.restart(signal.SIGKILL)
    assert client.tool("project_get", project_id=made)["id"] == made
    client.tool("project_delete", project_id=made)
    assert any("asked" in note for note in client.notes)
    assert client.tool("project_list")["projects"] == []


# ---- killed and restarted under load ----

COMMAND = ["cat"]
SENT_MAX = 200  # lines to one session, of which the last thousand events are kept
STARTED_MAX = 12  # sessions of one client


class Sdk:
    """A client of an official SDK, as one of those that work while the server is killed."""

    def __init__(self, client):
        self.client = client

    def call(self, tool, args):
        answer = self.client.finish(self.client.start("tool", name=tool, args=args, timeout=20000), PATIENT)
        return answer.get("value")


class Bytes:
    """The same without an SDK, in either era."""

    def __init__(self, server, session):
        self.server, self.session = server, session

    def call(self, tool, args):
        params = {"name": tool, "arguments": args}
        try:
            answer = self.server.legacy(self.session, "tools/call", params) if self.session else self.server.modern("tools/call", params)
        except OSError:
            return None
        if answer.status is None or not answer.body or (answer.headers.get("content-length") and len(answer.body) < int(answer.headers["content-length"])):
            return None
        assert answer.status == 200, answer
        return answer.json().get("result")


class Worker(threading.Thread):
    """Makes projects, workspaces and sessions and sends lines, and remembers what was acknowledged."""

    def __init__(self, number, client, seed):
        super().__init__()
        self.number, self.client, self.chance = number, client, random.Random(seed)
        self.stopping, self.fault, self.counter = threading.Event(), None, 0
        self.projects, self.workspaces, self.sessions = [], [], {}

    def acknowledged(self):
        return len(self.projects) + len(self.workspaces) + len(self.sessions) + sum(map(len, self.sessions.values()))

    def did(self, tool, **args):
        """What the tool said, or None when the server was away. Nothing that is asked for here may be refused."""
        result = self.client.call(tool, args)
        assert result is None or not result.get("isError"), result
        return result and result["structuredContent"]

    def act(self):
        self.counter += 1
        name = f"n{self.number}-{self.counter}"
        open_sessions = [session for session, lines in self.sessions.items() if len(lines) < SENT_MAX]
        deed = self.chance.choice(["project", "workspace", "session", "send", "send", "send"])
        if deed == "project" or not self.projects:
            if made := self.did("project_create", name=name, init_git=False):
                self.projects.append(made["id"])
        elif deed == "workspace":
            project = self.chance.choice(self.projects)
            if self.did("workspace_create", project_id=project, workspace_id=name):
                self.workspaces.append((project, name))
        elif deed == "session" and len(self.sessions) < STARTED_MAX:
            if made := self.did("session_start", project_id=self.chance.choice(self.projects), command=COMMAND, new_session=True):
                self.sessions[made["session_id"]] = []
        elif open_sessions:
            session = self.chance.choice(open_sessions)
            if self.did("session_send", session_id=session, message=f"line {name}."):
                self.sessions[session].append(f"line {name}.")

    def run(self):
        try:
            while not self.stopping.is_set():
                self.act()
        except Exception as fault:  # the test fails with it
            self.fault = fault


def check(server, worker):
    """Everything that this one was told to exist does, and its sessions run."""
    for project in worker.projects:
        listed = {entry["id"] for entry in server.did("workspace_list", project_id=project, limit=1000)["workspaces"]}
        assert {name for where, name in worker.workspaces if where == project} <= listed
    for session, lines in worker.sessions.items():
        assert server.did("session_get", session_id=session)["status"] == "active"
        seen = "".join(event["text"] for event in server.did("session_output", session_id=session)["events"] if event["type"] == "stdout")
        assert [line for line in lines if line not in seen] == []


@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=[pytest.mark.soak, pytest.mark.limit(900)])])
def test_kills_under_load_lose_nothing_that_was_acknowledged(server, connect, kills):
    """SDK clients of both eras and bare ones work while the server is killed at random instants. What was answered is there, sessions run
    on, and each client goes on with what it has: nobody makes a second handshake."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    sdks = [Sdk(connect(kind)) for kind in KINDS]
    workers = [Worker(i, client, seed + i) for i, client in enumerate([*sdks, Bytes(server, None), Bytes(server, server.initialize())])]
    for worker in workers:
        worker.start()
    try:
        for _ in range(kills):
            before = [worker.acknowledged() for worker in workers]
            poll(lambda: all(worker.fault or worker.acknowledged() > was for worker, was in zip(workers, before)), PATIENT, "work of each client")
            time.sleep(chance.random() * 0.5)
            server.restart(signal.SIGKILL)
    finally:
        for worker in workers:
            worker.stopping.set()
        for worker in workers:
            worker.join(PATIENT)
    assert not [worker.fault for worker in workers if worker.fault]
    for worker in workers:
        check(server, worker)
        assert worker.did("project_get", project_id=worker.projects[0])
    assert [client.client.handshakes for client in sdks] == [1, 0, 1]
    for worker in workers:
        for session in worker.sessions:
            assert server.did("session_stop", session_id=session)["status"] != "active"
