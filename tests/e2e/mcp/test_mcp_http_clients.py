# SPDX-License-Identifier: Apache-2.0
"""Clients as people have them, over HTTP with a token: the CLI of the MCP Inspector, and Claude Code."""
import json

import pytest

from clients.four import CLIENTS, Person, install
from clients.model import Deed, Model
from serving import PATIENT, Serve
from support import callers, node_packages, poll

from .conftest import HERE, node

# Installing them from the registry takes a minute.
pytestmark = [pytest.mark.limit(600), pytest.mark.long]


@pytest.fixture
def who():
    """Claude Code does not like root."""
    return callers()["user"]


@pytest.fixture
def server(cordon):
    made = Serve(cordon)
    made.token = made.make_token("--scope", "run")
    poll(lambda: made.modern("tools/list").status == 200, PATIENT, "the token to be known")
    yield made
    assert made.stop() == 0


def test_the_inspector_lists_tools_and_calls_one(base_dir, box, sdk, server, cordon):
    program = node_packages(HERE.parent.parent / "conformance" / "inspector", base_dir, "mcp-inspector") / "node_modules/.bin/mcp-inspector"
    made = cordon("project", "create", "p", "--no-git", "--json").json()["id"]

    def ask(*words, token=server.token):
        header = ("--header", f"Authorization: Bearer {token}")
        return box.run(node(sdk), program, "--cli", f"http://127.0.0.1:{server.port}/mcp", "--transport", "http", *header, "--method", *words)

    listed = ask("tools/list", "--strict")
    assert {tool["name"] for tool in listed.json()["tools"]} == {tool["name"] for tool in server.result("tools/list")["tools"]}
    assert listed.returncode == 0, listed.stderr
    called = ask("tools/call", "--tool-name", "workspace_create", "--tool-arg", f"project_id={made}", "workspace_id=w").json()
    assert called["structuredContent"]["id"] == "w"
    assert ask("resources/read", "--uri", f"cordon://project/{made}").json()["contents"][0]["uri"] == f"cordon://project/{made}"
    # Both sides: a tool beyond the token's scope, and no token of ours.
    assert ask("tools/call", "--tool-name", "project_delete", "--tool-arg", f"project_id={made}").returncode != 0
    assert cordon("project", "get", made).returncode == 0
    assert ask("tools/list", token="wrong").returncode != 0


def test_claude_code_connects_and_its_model_calls_a_tool(base_dir, box, server, cordon):
    made = cordon("project", "create", "p", "--no-git", "--json").json()["id"]
    wanted = Deed("made", "tool", "mcp__cordon__workspace_create", json.dumps({"project_id": made, "workspace_id": "w"}))
    model = Model({"make a workspace": [wanted]})
    person = Person(box, install(base_dir), next(client for client in CLIENTS if client.name == "claude"), model)
    url = f"http://127.0.0.1:{server.port}/mcp"
    for name, token in (("cordon", server.token), ("stranger", "wrong")):
        added = person.headless(["claude", "mcp", "add", "--transport", "http", name, url, "--header", f"Authorization: Bearer {token}"])
        assert added.returncode == 0, added
    listed = {line.partition(":")[0]: line for line in person.headless(["claude", "mcp", "list"]).stdout.splitlines()}
    assert "Connected" in listed["cordon"] and "Connected" not in listed["stranger"], listed
    assert "Connected" in person.headless(["claude", "mcp", "get", "cordon"]).stdout
    done = person.headless(["claude", "--dangerously-skip-permissions", "-p", "make a workspace"])
    assert done.returncode == 0, done
    assert "w" in {entry["id"] for entry in server.did("workspace_list", project_id=made)["workspaces"]}, model.answers
    model.close()
