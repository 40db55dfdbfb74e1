# SPDX-License-Identifier: Apache-2.0
"""The official SDK clients over HTTP, in both eras: tools, progress, questions, resources and what changes, across a restart."""
import signal

import pytest

from serving import PATIENT, Serve
from support import callers, poll

from .conftest import Client, Wire, finish, node

KINDS = ["v1", "v2", "v2-legacy"]


class HttpClient(Client):
    """The SDK says that its stream broke when the server was killed, and opens another one."""

    def took(self, line):
        if b"SSE stream disconnected" not in line:
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
