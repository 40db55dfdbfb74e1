# SPDX-License-Identifier: Apache-2.0
"""Approvals on the page: what waits, the answer with its effect, and what was answered; the first answer counts."""
import html
import json
import os
import re
import time

import pytest

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
META |= {"io.modelcontextprotocol/clientInfo": {"name": "<script>alert(2)</script>\x1b[1m", "version": "1"}}
NAME = "<script>alert(1)</script>\u202e\" 'x'"  # what a project may be called
HOSTILE = NAME + "\x1b[31m\n"


class Client:
    """A client of MCP that can't ask its person: it makes one call in a process of its own."""

    def __init__(self, cordon):
        self.cordon = cordon

    def call(self, tool, options=(), **arguments):
        params = {"name": tool, "arguments": arguments, "_meta": META}
        done = self.cordon("mcp", *options, input=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}) + "\n")
        return json.loads(done.stdout)

    def create(self, name):
        """Goes on only when a person has approved it."""
        answer = self.call("project_create", name=name, init_git=False, env_pass=["SECRET"])
        return "result" in answer and not answer["result"].get("isError")

    def ask(self, name):
        assert not self.create(name)
        return self.waiting()[-1]["id"]

    def waiting(self):
        return self.cordon("approvals", "list", "--json").json()

    def state(self, id):
        return self.cordon("approvals", "show", id, "--json").json()


@pytest.fixture
def client(cordon):
    return Client(cordon)


def card(text, id):
    return re.search(rf'<article class="card" id="a-{id}">.*?</article>', text, re.S)[0]


def count(page, path="/"):
    return re.search(r'<span id="count"[^>]*>([^<]*)</span>', page.get(path))[1]


def test_a_question_is_answered_on_the_page_and_the_call_goes_on_once(box, cordon, page, client):
    assert count(page) == "" and "Nothing waits for a person." in page.get("/approvals")
    stream = page.listen("approvals")
    stream.head()
    first, second = client.ask("one"), client.ask(NAME)
    while b"event: change" not in stream.data:
        assert stream.more()
    stream.close()
    text = page.get("/approvals")
    assert count(page) == count(page, "/changes") == "2 waiting" and 'data-said="2 questions wait for an answer."' in text and 'data-live="approvals"' in text
    assert 'data-live="approvals views audit"' in page.get("/changes"), "every page hears of it"
    shown, said = html.unescape(card(text, first)), client.state(first)
    assert said["question"] in shown and said["widens"] in shown and said["principal"] in shown and said["expires_at"] in shown and "project_create" in shown
    assert 'value="once"' in shown and 'value="session"' not in shown and 'value="policy"' not in shown, "as the approval offers"
    assert "<script>alert" not in text and "\x1b" not in text and "\u202e" not in text and "\\u{202e}" in text

    assert page.post("/approvals", id=first, answer="once") == "/approvals?done=approved"
    answered = client.state(first)
    assert (answered["state"], answered["answered_on"], answered["answered_by"]) == ("approved", "page", f"uid:{box.who.uid}")
    # Nothing has happened yet: this client does not wait, and the page does not say otherwise.
    told = page.get("/approvals?done=approved")
    assert "the call may be made, once" in told and "another has to call again" in told and cordon("project", "list", "--json").json()["total"] == 0
    assert client.create("one") and not client.create("one"), "once"
    assert page.post("/approvals", id=second, answer="deny") == "/approvals?done=denied"
    assert not client.create(NAME) and cordon("project", "list", "--json").json()["total"] == 1
    text = page.get("/approvals")
    below = html.unescape(text[text.index('id="answered"') :])
    assert f"uid:{box.who.uid} (page)" in below and "denied" in below and "done" in below and answered["answered_at"] in below
    assert "<script>alert" not in text and "\x1b" not in text and "\u202e" not in text

    # The first answer counts, wherever it comes from.
    third = client.waiting()[0]["id"]
    assert cordon("approvals", "deny", third).returncode == 0
    late = page.post("/approvals", 409, id=third, answer="once")
    assert "was denied already" in late and "(terminal)" in late and client.state(third)["state"] == "denied" and count(page) == ""
    log = [json.loads(line) for line in cordon("audit", "--json", "--kind", "approval").stdout.splitlines()]
    assert [(record["op"], record["detail"]["on"]) for record in log if record["op"] in ("approve", "deny")] == [("approve", "page"), ("deny", "page"), ("deny", "terminal")]


def test_answers_that_the_page_does_not_offer_change_nothing(box, page, client):
    one = client.ask("one")
    for fields, status in (
        ({"id": one}, 400),
        ({"answer": "once"}, 400),
        ({"id": one, "answer": "session"}, 400),
        ({"id": one, "answer": "policy"}, 400),
        ({"id": one, "answer": "forever"}, 400),
        ({"id": one[:8], "answer": "once"}, 404),
        ({"id": "0" * 32, "answer": "once"}, 404),
        ({"id": "../serve/control", "answer": "once"}, 404),
        ({"id": HOSTILE, "answer": "deny"}, 404),
    ):
        answer = page.post("/approvals", status, **fields)
        assert "<script>alert" not in answer and "\x1b" not in answer, fields
    assert page.raw("POST", "/approvals", None, f"id={one}&answer=once&token={'0' * 64}".encode()).status == 403
    assert page.raw("GET", f"/approvals?id={one}&answer=once").status == 200, "and only shows"
    assert client.state(one)["state"] == "waiting"
    # The count on every page reads no more than a hundred records.
    path = box.state / "state" / "approvals" / f"{one}.json"
    others = [path.with_name(f"{n:08x}{one[8:]}.json") for n in range(100)]
    for other in others:
        other.write_text(path.read_text().replace(one, other.stem))
        box.own(other)
    assert re.fullmatch(r"(99|100)\+ waiting", count(page)) and page.get("/approvals").count("<article") == 101
    for other in others:
        other.unlink()
    assert count(page) == "1 waiting"
    # What nobody answered in time can't be answered any more, and is not counted.
    path.write_text(json.dumps(json.loads(path.read_text()) | {"expires_at": "2020-01-01T00:00:00.000Z"}))
    assert count(page) == "" and "expired" in page.post("/approvals", 409, id=one, answer="once")
    os.utime(path, (time.time() - 7200,) * 2)
    assert count(page) == "" and "expired" in page.get("/approvals")


def test_what_an_agent_asks_for_is_allowed_for_a_run_the_session_or_the_project(box, cordon, page, client):
    project = cordon("project", "create", "p", "--no-git", "--isolation", "--net", "a.example.com", "--json").json()["id"]
    session = cordon("session", "start", project, "--detach", "--json", "--", "sleep", "600").json()["session_id"]
    data = box.mkdir("data")
    box.write(data / "file", "mine\n")

    def ask(**wanted):
        client.call("grant_request", ("--session", session), reason=HOSTILE, **wanted)
        (one,) = client.waiting()
        return one["id"]

    def can_read():
        return cordon("session", "exec", session, "--", "cat", str(data / "file")).returncode == 0

    host = ask(host="b.example.com:443")
    text = card(page.get("/approvals"), host)
    assert all(f'value="{answer}"' in text for answer in ("once", "session", "policy", "deny")) and f'href="/session/{session}"' in text
    assert "<script>alert" not in text and "\x1b" not in text and "\u202e" not in text and "b.example.com:443" in text
    assert page.post("/approvals", id=host, answer="once") == "/approvals?done=allowed"
    assert client.state(host)["state"] == "done" and "b.example.com:443" in cordon("session", "net", session, "--json").stdout
    assert "b.example.com" not in cordon("project", "get", project, "--json").stdout, "only for this run"

    path = ask(path=str(data))
    assert not can_read() and page.post("/approvals", id=path, answer="policy") == "/approvals?done=allowed-later"
    assert "it has to end first" in html.unescape(page.get("/approvals?done=allowed-later"))
    assert str(data) in cordon("project", "get", project, "--json").stdout and not can_read(), "a running sandbox is not widened"
    assert cordon("session", "stop", session, "--grace", "100ms").returncode == 0
    assert cordon("session", "start", project, "--detach", "--json", "--", "sleep", "600").json()["session_id"] == session and can_read()
    cordon("session", "stop", session, "--grace", "100ms")
