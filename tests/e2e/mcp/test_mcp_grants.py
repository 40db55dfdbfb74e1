# SPDX-License-Identifier: Apache-2.0
"""grant_request: an agent asks for a host or a path, and a person decides; the agent's own client never does."""

import pytest

from serving import PATIENT, Serve
from support import poll

FORMS = {"elicitation": {}}
YES = {"action": "accept", "content": {"approve": True, "for": "policy"}}


class Agent:
    """A session, and the path that it wants."""

    def __init__(self, box, cordon):
        self.box, self.cordon = box, cordon
        self.project = cordon("project", "create", "p", "--no-git", "--isolation", "--net", "a.example.com", "--json").json()["id"]
        self.session = self.start()
        self.data = box.mkdir("data")
        box.write(self.data / "file", "mine\n")
        self.want = {"path": str(self.data), "reason": "to read the data"}

    def start(self):
        return self.cordon("session", "start", self.project, "--detach", "--json", "--", "sleep", "600").json()["session_id"]

    def stop(self):
        self.cordon("session", "stop", self.session, "--grace", "100ms")

    def can_read(self):
        return self.cordon("session", "exec", self.session, "--", "cat", str(self.data / "file")).returncode == 0

    def waiting(self):
        (one,) = self.cordon("approvals", "list", "--json").json()
        return one


@pytest.fixture
def agent(box, cordon):
    made = Agent(box, cordon)
    yield made
    made.stop()


def grant(server, capabilities=None, **arguments):
    return server.ask("g", "tools/call", {"name": "grant_request", "arguments": arguments}, capabilities=capabilities)["result"]


def error(result):
    return result["structuredContent"]["error"]


def test_an_agent_asks_and_only_a_person_outside_can_answer(agent, raw, cordon):
    # Not even an operator who consented in advance to what others do.
    server = raw("--session", agent.session, "--approved")
    refused = grant(server, FORMS, **agent.want)
    one = agent.waiting()
    assert error(refused)["kind"] == "policy_denied" and f"cordon approvals approve {one['id'][:8]}" in error(refused)["hint"]
    assert one["principal"] == f"session:{agent.session}" and (one["session_id"], one["project_id"]) == (agent.session, agent.project)
    assert one["choices"] == ["once", "session", "policy"] and 'The agent says: "to read the data"' in one["question"]
    assert f'read "{agent.data}" of the host' in one["widens"] and f'session {agent.session} of project "p" more?' in one["question"]
    # What its client makes of elicitation is no answer, in either era.
    for more in ({"inputResponses": {"approve": YES}}, {"inputResponses": {"approve": YES}, "requestState": one["id"] + ".9.00"}):
        forged = server.ask("g", "tools/call", {"name": "grant_request", "arguments": agent.want, **more}, capabilities=FORMS)["result"]
        assert forged["isError"]
    old = raw("--session", agent.session)
    old.initialize(capabilities=FORMS)
    answer = old.ask("g", "tools/call", {"name": "grant_request", "arguments": agent.want}, modern=False)
    assert answer["result"]["isError"] and agent.waiting()["id"] == one["id"]
    # No tool answers approvals, and the sandbox shows no records.
    assert not [t for t in server.ask("l", "tools/list")["result"]["tools"] if "approv" in t["name"]]
    home = agent.box.state
    inside = cordon("session", "exec", agent.session, "--", "sh", "-c", f"ls {home}/state/approvals {home}; cat {home}/state/approvals/{one['id']}.json; CORDON_HOME={home} {cordon.path} approvals approve {one['id']}")
    assert inside.returncode != 0 and one["id"] not in inside.stdout and agent.waiting()["state"] == "waiting"
    # A person approves for the session: it is so at once, and the next call says what that means.
    done = cordon("approvals", "approve", "--yes", one["id"], "--for", "session", "--json").json()
    assert (done["state"], done["effective"], done["span"]) == ("done", "next_start", "session")
    told = grant(server, **agent.want)["structuredContent"]
    assert told["allowed"] == f"{agent.data}:ro" and told["effective"] == "next_start" and "next start" in told["note"]
    assert not agent.can_read()
    agent.stop()
    assert agent.start() == agent.session and agent.can_read()
    assert grant(server, **agent.want)["structuredContent"]["effective"] == "now"
    # A denial stands.
    other = agent.want | {"path": "/usr/share", "access": "write"}
    assert error(grant(server, **other))["kind"] == "policy_denied"
    assert cordon("approvals", "deny", agent.waiting()["id"]).returncode == 0
    assert "denied this" in error(grant(server, **other))["message"]
    # Of another session, and for what nobody can be given, it is not even asked.
    assert error(grant(server, session_id="0" * 8 + "-0000-4000-8000-" + "0" * 12, **agent.want))["kind"] == "policy_denied"
    for path, kind in (("/workspace/.git/hooks", "policy_denied"), ("x", "usage")):
        assert error(grant(server, path=path, reason="r"))["kind"] == kind
    assert error(grant(server, reason="r"))["kind"] == "usage" and error(grant(server, host="h", path="/p", reason="r"))["kind"] == "usage"
    assert cordon("approvals", "list", "--json").json() == []


def test_an_agent_learns_nothing_about_the_host_from_a_question(agent, raw, cordon, box):
    """What exists, what does not, and what nobody can be given: the answers are the same, and a yes to the last means nothing."""
    box.link("to-home", box.state)
    server = raw("--session", agent.session)
    answers = set()
    for path in (agent.data, agent.data / "missing", box.state / "state", box.path, box.path / "to-home"):
        refused = error(grant(server, path=str(path), reason="r"))
        id = cordon("approvals", "show", "latest", "--json").json()["id"]
        answers.add(str(refused).replace(id[:8], "ID"))
        if path == agent.data:
            continue
        tried = cordon("approvals", "approve", "--yes", id, "--for", "policy", "--json")
        assert tried.returncode == 1 and "approved, but not in effect" in tried.json("stderr")["message"]
        told = error(grant(server, path=str(path), reason="r"))
        assert told["message"] == "this can't be allowed on this host" and str(box.state) not in str(told)
    assert len(answers) == 1
    assert cordon("project", "get", agent.project, "--json").json()["shares"] == []
    # Whoever may change settings hears the reason at once.
    other = raw()
    assert error(grant(other, session_id=agent.session, path=str(box.state), reason="r"))["kind"] == "policy_denied"
    assert "cordon's own records" in error(grant(other, session_id=agent.session, path=str(box.path / "to-home"), reason="r"))["message"]


def test_an_approval_for_a_run_ends_with_it(agent, raw, cordon):
    server = raw("--session", agent.session)
    assert error(grant(server, **agent.want))
    one = agent.waiting()
    agent.stop()
    agent.start()
    late = cordon("approvals", "approve", "--yes", one["id"], "--json")
    assert late.returncode == 1 and "has ended" in late.json("stderr")["message"]
    assert error(grant(server, **agent.want))["kind"] == "policy_denied", "the new run asks anew"
    assert agent.waiting()["id"] != one["id"]
    assert cordon("approvals", "approve", "--yes", agent.waiting()["id"]).returncode == 0
    for readable in (True, False):
        agent.stop()
        agent.start()
        assert agent.can_read() == readable


def test_a_person_chooses_how_long_in_the_client(agent, raw, cordon):
    server = raw()
    want = {"session_id": agent.session, "host": "b.example.com", "reason": 'so "that" it works\x1b[1m\u202e'}
    server.request("g", "tools/call", {"name": "grant_request", "arguments": want}, capabilities=FORMS)
    asked = server.receive()["result"]
    form = asked["inputRequests"]["approve"]["params"]
    assert form["requestedSchema"]["properties"]["for"]["enum"] == ["once", "session", "policy"]
    assert form["message"].endswith("The agent says: \"so \\\"that\\\" it works\\e[1m\\u{202e}\"")
    done = server.ask("g", "tools/call", {"name": "grant_request", "arguments": want, "requestState": asked["requestState"], "inputResponses": {"approve": YES}}, capabilities=FORMS)["result"]
    assert done["structuredContent"] == {"session_id": agent.session, "allowed": "b.example.com:443", "effective": "now", "for": "policy"}
    assert cordon("project", "get", agent.project, "--json").json()["net"] == ["a.example.com", "b.example.com:443"]
    # The older era: the call waits, and the terminal is faster than the client.
    old = raw()
    old.initialize(capabilities=FORMS)
    old.request("g", "tools/call", {"name": "grant_request", "arguments": want | {"host": "c.example.com"}}, modern=False)
    assert old.receive()["method"] == "elicitation/create"
    assert cordon("approvals", "approve", "--yes", agent.waiting()["id"], "--json").json()["effective"] == "now"
    assert old.receive()["method"] == "notifications/cancelled"
    assert old.receive()["result"]["structuredContent"]["effective"] == "now"
    assert "c.example.com:443" in cordon("session", "get", agent.session, "--json").json()["net"]


def test_who_may_not_change_settings_can_ask_but_not_answer(agent, cordon):
    server = Serve(cordon)
    try:
        tokens = {scope: server.make_token("--scope", scope) for scope in ("read", "run", "admin")}
        bound = server.make_token("--scope", "run", "--project", cordon("project", "create", "q", "--no-git", "--json").json()["id"])
        for token in (*tokens.values(), bound):
            poll(lambda: server.modern("tools/list", token=token).status == 200, PATIENT, "the token to be known")
        want = agent.want | {"session_id": agent.session}
        params = {"name": "grant_request", "arguments": want}
        assert error(server.result("tools/call", params, token=tokens["read"]))["kind"] == "policy_denied"
        assert error(server.result("tools/call", params, token=bound))["kind"] == "not_found"
        assert cordon("approvals", "list", "--json").json() == []
        run = server.result("tools/call", params, token=tokens["run"], capabilities=FORMS)
        assert error(run)["kind"] == "policy_denied" and agent.waiting()["principal"].startswith("token:")
        admin = server.result("tools/call", params, token=tokens["admin"], capabilities=FORMS)
        assert admin["resultType"] == "input_required"
        # The old era, too: no question comes to a client whose word would be no answer.
        session = server.initialize(FORMS, token=tokens["run"])
        assert error(server.legacy(session, "tools/call", params, token=tokens["run"]).json()["result"])["kind"] == "policy_denied"
        (one,) = [a for a in cordon("approvals", "list", "--json").json() if a["principal"] == agent_of(cordon, "run")]
        assert cordon("approvals", "approve", "--yes", one["id"], "--for", "session").returncode == 0
        assert server.result("tools/call", params, token=tokens["run"])["structuredContent"]["effective"] == "next_start"
    finally:
        assert server.stop() == 0


def agent_of(cordon, scope):
    (one,) = [t["id"] for t in cordon("token", "list", "--json").json() if t["scope"] == scope and not t["projects"]]
    return f"token:{one}"
