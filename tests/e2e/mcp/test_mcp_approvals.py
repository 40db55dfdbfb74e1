# SPDX-License-Identifier: Apache-2.0
"""Approvals: a call that needs a person is answered in the client or in the terminal, whichever comes first, over both
transports and in both eras. The call of these tests makes a project whose agents would get a variable, so that the number of
projects shows what went on."""
import itertools
import json
import re
import signal
import subprocess

import pytest

from serving import PATIENT, Serve
from support import poll
from terminals import Terminal

from .conftest import Raw, Wire

FORMS = {"elicitation": {}}
YES = {"action": "accept", "content": {"approve": True}}
NO = {"action": "decline"}
ARGS = {"name": "p", "init_git": False, "env_pass": ["SECRET"]}


def projects(cordon):
    return cordon("project", "list", "--json").json()["total"]


def approvals(cordon, *options):
    return cordon("approvals", "list", "--json", *options).json()


def waiting(cordon):
    (one,) = approvals(cordon)
    return one


def age(box, id, **fields):
    """Changes the record of an approval, as if time had passed."""
    path = box.state / "state" / "approvals" / f"{id}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


class Stdio:
    """Calls on stdio. A call is begun; then its question is answered, or it goes on by itself."""

    def __init__(self, cordon, judge, modern, options=()):
        self.cordon, self.judge, self.modern, self.options = cordon, judge, modern, options
        self.ids = itertools.count(1)
        self.servers = []
        self.start()

    def start(self):
        self.server = Raw(self.cordon.start("mcp", *self.options, stdin=subprocess.PIPE), Wire(self.judge))
        self.servers.append(self.server)
        if not self.modern:
            self.server.initialize(capabilities=FORMS)

    def kill(self):
        self.server.process.kill()
        self.server.process.wait()
        self.start()

    def close(self):
        for server in self.servers:
            server.close()
            server.thread.join(30)
            server.wire.end()

    def send(self, args, **more):
        id = next(self.ids)
        self.server.request(id, "tools/call", {"name": "project_create", "arguments": args, **more}, modern=self.modern, capabilities=FORMS)
        return id

    def receive(self, wanted):
        while True:
            message = self.server.receive()
            if wanted(message):
                return message

    def answer(self, id, result):
        self.server.send({"jsonrpc": "2.0", "id": id, "result": result})


class Http(Stdio):
    """The same over HTTP."""

    def start(self):
        self.server = Serve(self.cordon, *self.options)
        self.servers.append(self.server)
        self.server.token = self.server.make_token("--scope", "admin")
        poll(lambda: self.server.modern("tools/list").status == 200, PATIENT, "the token to be known")
        self.session = None if self.modern else self.server.initialize(FORMS)
        self.stream = None

    def kill(self):
        self.server.restart(signal.SIGKILL)
        self.session = None if self.modern else self.server.initialize(FORMS)

    def close(self):
        for server in self.servers:
            server.stop()

    def send(self, args, **more):
        id = next(self.ids)
        params = {"name": "project_create", "arguments": args, **more}
        if self.modern:
            self.answered = self.server.modern("tools/call", params, id=id, capabilities=FORMS).json()
        else:
            self.stream = self.server.open(self.server.post_bytes({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}, self.session))
        return id

    def receive(self, wanted):
        if self.modern:
            return self.answered
        if self.stream.head().headers["content-type"] == "application/json":
            return self.stream.ended().json()
        return self.stream.wait(wanted)

    def answer(self, id, result):
        assert self.server.post({"jsonrpc": "2.0", "id": id, "result": result}, self.session).status == 202


class Call:
    """One call that a person is asked about."""

    def __init__(self, client, args=ARGS):
        self.client, self.args = client, args
        self.id = client.send(args)
        if client.modern:
            self.asked = client.receive(lambda m: m.get("id") == self.id)["result"]
            assert self.asked["resultType"] == "input_required", self.asked
            self.message = self.asked["inputRequests"]["approve"]["params"]["message"]
        else:
            self.asked = client.receive(lambda m: m.get("method") == "elicitation/create")
            self.message = self.asked["params"]["message"]

    def answer(self, said):
        """The result after the client's answer."""
        if not self.client.modern:
            self.client.answer(self.asked["id"], said)
            return self.result()
        self.id = self.client.send(self.args, requestState=self.asked["requestState"], inputResponses={"approve": said})
        return self.result()

    def go_on(self):
        """The result, when the question was answered elsewhere."""
        if self.client.modern:
            self.id = self.client.send(self.args, requestState=self.asked["requestState"])
        else:
            cancelled = self.client.receive(lambda m: m.get("method") == "notifications/cancelled")
            assert cancelled["params"]["requestId"] == self.asked["id"]
        return self.result()

    def result(self):
        return self.client.receive(lambda m: m.get("id") == self.id and "method" not in m)["result"]


@pytest.fixture(params=["stdio-modern", "stdio-legacy", "http-modern", "http-legacy"])
def caller(request, cordon, judge):
    kind, era = request.param.split("-")
    made = (Stdio if kind == "stdio" else Http)(cordon, judge, era == "modern")
    yield made
    made.close()


def test_the_first_answer_counts_wherever_it_is_given(caller, cordon):
    first = Call(caller)
    assert waiting(cordon)["question"] == first.message and "variables" in waiting(cordon)["widens"]
    # The client says yes, then no; the terminal comes too late.
    for said, made in ((YES, 1), (NO, 1)):
        call = first if said is YES else Call(caller)
        id = waiting(cordon)["id"]
        result = call.answer(said)
        assert bool(result.get("isError")) == (said is NO) and projects(cordon) == made
        late = cordon("approvals", *(["deny"] if said is YES else ["approve", "--yes"]), id, "--json")
        assert late.returncode == 1 and late.json("stderr")["kind"] == "conflict" and "(client)" in late.json("stderr")["message"]
    # The terminal says yes, then no; the client comes too late.
    for verb, made in (("approve", 2), ("deny", 2)):
        call = Call(caller)
        answered = cordon("approvals", verb, *(["--yes"] if verb == "approve" else []), waiting(cordon)["id"], "--json")
        assert answered.returncode == 0 and answered.json()["answered_on"] == "terminal"
        result = call.go_on()
        assert bool(result.get("isError")) == (verb == "deny") and projects(cordon) == made
        if caller.modern:  # In either direction: what the client says now changes nothing.
            again = call.answer(YES if verb == "deny" else NO)
            assert again["isError"] and projects(cordon) == made
    assert [one["state"] for one in approvals(cordon, "--all")] == ["done", "denied", "done", "denied"]
    log = [json.loads(line) for line in cordon("audit", "--json").stdout.splitlines()]
    said = [(e["op"], e["detail"].get("on")) for e in log if e["event"] == "approval"]
    assert said == [
        ("ask", None), ("approve", "client"), ("use", "client"), ("ask", None), ("deny", "client"),
        ("ask", None), ("approve", "terminal"), ("use", "terminal"), ("ask", None), ("deny", "terminal"),
    ]  # fmt: skip


def test_a_form_that_is_closed_is_no_answer(caller, cordon):
    call = Call(caller)
    result = call.answer({"action": "cancel"})
    id = waiting(cordon)["id"][:8]
    assert result["isError"] and f"approvals approve {id}" in result["content"][0]["text"] and projects(cordon) == 0
    assert cordon("approvals", "approve", "--yes", id).returncode == 0
    assert not calls(caller)["isError"] and projects(cordon) == 1


def calls(client, args=ARGS):
    """The same call once more, which must not ask."""
    id = client.send(args)
    return {"isError": False} | client.receive(lambda m: m.get("id") == id or m.get("method") == "elicitation/create")["result"]


def test_a_kill_between_question_and_answer_loses_nothing(caller, cordon):
    call = Call(caller)
    id = waiting(cordon)["id"]
    caller.kill()
    assert waiting(cordon)["id"] == id
    again = Call(caller)
    assert waiting(cordon)["id"] == id and again.message == call.message, "it is the same question"
    caller.kill()
    assert cordon("approvals", "approve", "--yes", id).returncode == 0
    if isinstance(caller, Http) and caller.modern:  # The state of the first call is good for the server's next life, too.
        assert not call.go_on().get("isError") and projects(cordon) == 1
    else:
        assert not calls(caller)["isError"] and projects(cordon) == 1


def test_an_approval_is_for_one_call_of_one_client_and_expires(caller, cordon, box):
    call = Call(caller)
    id = waiting(cordon)["id"]
    age(box, id, expires_at="2020-01-01T00:00:00.000Z")
    late = cordon("approvals", "approve", "--yes", id, "--json")
    assert late.returncode == 1 and late.json("stderr")["kind"] == "conflict" and "expired" in late.json("stderr")["message"]
    result = call.answer(YES)
    assert result["isError"] and "expired" in result["content"][0]["text"] and projects(cordon) == 0
    call = Call(caller)
    id = waiting(cordon)["id"]
    # Another call with its own question, which waits beside it; the approval of the first does not count for it.
    other = ARGS | {"name": "q"}
    if caller.modern:
        other_call = Call(caller, other)
        assert cordon("approvals", "approve", "--yes", id).returncode == 0
        other_call.asked["requestState"] = call.asked["requestState"]
        wrong = caller.send(other, requestState=call.asked["requestState"])
        assert caller.receive(lambda m: m.get("id") == wrong)["error"]["code"] == -32602
    else:
        assert cordon("approvals", "approve", "--yes", id).returncode == 0
        assert not call.go_on().get("isError") and projects(cordon) == 1
        Call(caller, other)
    if caller.modern:
        # Approved and not used in time: the question is put again.
        age(box, id, expires_at="2020-01-01T00:00:00.000Z")
        assert call.go_on()["isError"] and projects(cordon) == 0
    assert [one["question"].count('project "q"?') for one in approvals(cordon)] == [1]


def test_a_client_that_cannot_ask_calls_again_after_the_approval(cordon, raw):
    server = raw()
    params = {"name": "project_create", "arguments": ARGS}

    def call(arguments=ARGS):
        return server.ask("c", "tools/call", {"name": "project_create", "arguments": arguments})

    for _ in range(2):
        refused = call()["error"]
        assert refused["code"] == -32021 and refused["data"] == {"requiredCapabilities": {"elicitation": {}}}
        assert f"cordon approvals approve {waiting(cordon)['id'][:8]}" in refused["message"]
    id = waiting(cordon)["id"]
    shown = cordon("approvals", "show", id[:8]).stdout
    assert "state: waiting" in shown and "principal: local" in shown and "tool: project_create" in shown
    assert cordon("approvals", "approve", "--yes", id[:8]).returncode == 0
    assert call(ARGS | {"name": "q"})["error"]["code"] == -32021 and projects(cordon) == 0, "other arguments"
    assert call()["result"]["structuredContent"]["name"] == "p" and projects(cordon) == 1
    assert call()["error"]["code"] == -32021 and projects(cordon) == 1, "once"
    # A denial stands for the same call.
    (id,) = [one["id"] for one in approvals(cordon) if 'project "p"?' in one["question"]]
    assert cordon("approvals", "deny", id).returncode == 0
    for _ in range(2):
        denied = call()["result"]["structuredContent"]["error"]
        assert denied["kind"] == "policy_denied" and "denied this" in denied["message"]
    server.close()
    # Legacy: the same, as the result of the tool; and another process of the same user goes on.
    old = raw()
    old.initialize()
    arguments = ARGS | {"name": "old"}
    refused = old.ask(1, "tools/call", {**params, "arguments": arguments}, modern=False)["result"]
    (id,) = [one["id"] for one in approvals(cordon) if 'project "old"?' in one["question"]]
    assert refused["isError"] and f"cordon approvals approve {id[:8]}" in refused["content"][0]["text"]
    assert cordon("approvals", "approve", "--yes", id).returncode == 0
    done = old.ask(2, "tools/call", {**params, "arguments": arguments}, modern=False)["result"]
    assert not done.get("isError") and projects(cordon) == 2


def test_an_approval_counts_for_one_principal(cordon):
    server = Serve(cordon)
    try:
        tokens = [server.make_token("--scope", "admin", "--name", name) for name in "ab"]
        params = {"name": "project_create", "arguments": ARGS}
        for token in tokens:
            poll(lambda: server.modern("tools/list", token=token).status == 200, PATIENT, "the token to be known")
        asked = server.modern("tools/call", params, token=tokens[0]).json()
        assert asked["error"]["code"] == -32021
        one = waiting(cordon)
        assert re.fullmatch("token:[0-9a-f]{8}", one["principal"])
        assert cordon("approvals", "approve", "--yes", one["id"]).returncode == 0
        assert server.modern("tools/call", params, token=tokens[1]).json()["error"]["code"] == -32021 and projects(cordon) == 0
        assert waiting(cordon)["principal"] != one["principal"]
        assert server.modern("tools/call", params, token=tokens[0]).json()["result"] and projects(cordon) == 1
    finally:
        assert server.stop() == 0


def test_a_revoked_token_takes_what_it_asked_along(cordon, box):
    server = Serve(cordon)
    try:
        victims = [cordon("project", "create", name, "--no-git", "--json").json()["id"] for name in ("there", "gone", "modern", "approved")]
        token = server.make_token("--scope", "admin", "--name", "leaver")
        poll(lambda: server.modern("tools/list", token=token).status == 200, PATIENT, "the token to be known")
        session = server.initialize(FORMS, token=token)

        def params(victim):
            return {"name": "project_delete", "arguments": {"project_id": victim}}

        # Calls of the older era wait. The client of the second has gone meanwhile, which cancels nothing.
        there, gone = (
            server.open(server.post_bytes({"jsonrpc": "2.0", "id": victim, "method": "tools/call", "params": params(victim)}, session, token=token))
            for victim in victims[:2]
        )
        for stream in (there, gone):
            stream.wait(lambda m: m.get("method") == "elicitation/create")
        gone.close()
        for victim, capabilities in ((victims[2], FORMS), (victims[3], {})):
            server.modern("tools/call", params(victim), token=token, capabilities=capabilities)
        asked = approvals(cordon)
        assert len(asked) == 4
        assert cordon("approvals", "approve", "--yes", asked[3]["id"]).returncode == 0
        assert cordon("token", "revoke", "leaver").returncode == 0
        poll(lambda: server.modern("tools/list", token=token).status == 401, PATIENT, "the token to be gone")
        there.ended()
        for one in asked[:3]:
            late = cordon("approvals", "approve", "--yes", one["id"], "--json")
            assert late.returncode == 1 and "expired" in late.json("stderr")["message"], late
        assert approvals(cordon) == [] and {one["state"] for one in approvals(cordon, "--all")} == {"expired"}
        # A token that has expired, or whose file is gone, has nobody who withdraws its questions. The calls have ended all the same.
        token = server.make_token("--scope", "admin", "--name", "other")
        poll(lambda: server.modern("tools/list", token=token).status == 200, PATIENT, "the token to be known")
        session = server.initialize(FORMS, token=token)
        streams = [
            server.open(server.post_bytes({"jsonrpc": "2.0", "id": victim, "method": "tools/call", "params": params(victim)}, session, token=token))
            for victim in victims[:2]
        ]
        for stream in streams:
            stream.wait(lambda m: m.get("method") == "elicitation/create")
        streams[1].close()
        for file in (box.state / "state/tokens").glob("*.json"):
            file.unlink()
        poll(lambda: server.modern("tools/list", token=token).status == 401, PATIENT, "the token to be gone")
        streams[0].ended()
        for one in approvals(cordon):
            assert cordon("approvals", "approve", "--yes", one["id"]).returncode == 0
        for _ in range(10):
            assert server.modern("tools/list", token=token).status == 401
        assert server.process.poll() is None and projects(cordon) == 4
        log = [json.loads(line) for line in cordon("audit", "--json").stdout.splitlines()]
        assert [e["op"] for e in log if e["event"] == "approval"].count("withdraw") == 4
        assert not [e for e in log if e["event"] == "approval" and e["op"] == "use"]
    finally:
        assert server.stop() == 0


def test_the_question_shows_hostile_names_as_text(cordon, raw):
    server = raw()
    name = "<b>\u202e\x1b[31m\x07 $(id) \\ `id`"
    meta = {"io.modelcontextprotocol/clientInfo": {"name": "cl\u2066ient\x1b]0;x\x07", "version": "1"}}
    made = server.ask(1, "tools/call", {"name": "project_create", "arguments": {"name": "x" * 300, "env_pass": ["S"]}})
    assert made["result"]["isError"] and not approvals(cordon), "what can't be is not asked"
    server.ask(2, "tools/call", {"name": "workspace_delete", "arguments": {"project_id": "../x", "workspace_id": "y"}})
    assert not approvals(cordon)
    cordon("project", "create", "plain", "--no-git")
    project = cordon("project", "list", "--json").json()["projects"][0]["id"]
    server.ask(3, "tools/call", {"name": "project_update", "arguments": {"project_id": project, "shares": ["/usr/share:/a\u202e\x1b[31m:ro"]}, "_meta": meta})
    server.ask(4, "tools/call", {"name": "project_create", "arguments": {"name": name.replace("\x1b", "").replace("\x07", ""), "env_pass": ["S"]}, "_meta": meta})
    for output in (cordon("approvals", "list"), cordon("approvals", "list", "--json"), cordon("approvals", "show", "latest"), cordon("audit", "--json")):
        assert output.returncode == 0 and not re.search("[\x00-\x08\x0b-\x1f\u202e\u2066\x7f]", output.stdout), output.stdout
    assert len(approvals(cordon)) >= 1 and all(one["client"] == "cl\\u{2066}ient\\e]0;x\\x07" for one in approvals(cordon))


def test_what_one_client_can_leave_is_bounded(cordon, raw, box):
    ask_often(cordon, raw, box, 100)


@pytest.mark.soak
def test_ten_thousand_questions_of_one_client_are_bounded(cordon, raw, box):
    ask_often(cordon, raw, box, 10000)


def ask_often(cordon, raw, box, often):
    server = raw()
    for number in range(often):
        server.request(number, "tools/call", {"name": "project_create", "arguments": ARGS | {"name": f"p{number}"}})
    answers = [server.receive() for _ in range(often)]
    asked = [a for a in answers if a.get("error", {}).get("code") == -32021]
    limited = [a for a in answers if a.get("result", {}).get("structuredContent", {}).get("error", {}).get("kind") == "limit"]
    assert len(asked) == 32 and len(limited) == often - 32 and projects(cordon) == 0
    assert len(list((box.state / "state" / "approvals").glob("*.json"))) == 32
    # Another client is not hindered, and an answer makes room.
    assert cordon("approvals", "deny", approvals(cordon)[0]["id"]).returncode == 0
    assert len(approvals(cordon)) == 31


def test_the_command_line_takes_beginnings_and_shows_what_latest_is(cordon, raw, box):
    server = raw()
    for name in "ab":
        server.ask(name, "tools/call", {"name": "project_create", "arguments": ARGS | {"name": name}})
    one, two = approvals(cordon)
    assert cordon("approvals", "list", "-q").stdout.split() == [one["id"][:8], two["id"][:8]]
    for wrong, status in (("zzzzzzzz", 1), ("abc", 2), ("../../tokens", 1), (one["id"][:6], 2), (one["id"].replace(one["id"][9], "z"), 1)):
        assert cordon("approvals", "approve", "--yes", wrong).returncode == status, wrong
    assert cordon("approvals", "approve", "--yes", one["id"][:8], "--for", "policy").returncode == 2
    assert cordon("approvals", "approve", "latest").returncode == 2, "not without a terminal"
    assert cordon("approvals", "show", "latest", "--json").json()["id"] == two["id"]
    assert cordon("completion", "--ids", "approvals", "--", one["id"][:3]).stdout.startswith(one["id"][:8] + "\tproject_create")
    for typed, status, state in ((b"n\n", 1, "waiting"), (b"y\n", 0, "approved")):
        tty = Terminal(box, cordon.path, "approvals", "approve", "latest", cwd=box.path)
        assert b'project "b"?' in tty.expect(b"Approve this? [y/N] ")
        tty.type(typed)
        assert tty.process.wait(PATIENT) == status
        tty.close()
        assert cordon("approvals", "show", two["id"], "--json").json()["state"] == state
    assert cordon("approvals", "deny", "latest", "--json").json()["id"][:8] == one["id"][:8]
    assert cordon("approvals", "deny", "latest").returncode == 1 and approvals(cordon) == []


def test_list_follow_prints_what_begins_to_wait(cordon, raw):
    following = cordon.start("approvals", "list", "--follow", "--json")
    server = raw()
    for name in "ab":
        server.ask(name, "tools/call", {"name": "project_create", "arguments": ARGS | {"name": name}})
        assert f'project "{name}"?' in json.loads(following.stdout.readline())["question"]
    following.terminate()
    following.wait(PATIENT)


class Desktop:
    """A stand-in for notify-send on the PATH: an executable that records its arguments."""

    def __init__(self, box, extra=""):
        self.seen = box.mkdir("notices")
        script = f"#!/bin/sh\nfile=$(mktemp -p {self.seen} .XXXXXX)\nprintf '%s\\0' \"$@\" >\"$file\"\nmv \"$file\" {self.seen}/$(date +%s%N)\n{extra}\n"
        box.write("desktop/notify-send", script, 0o755)
        self.env = {"PATH": f"{box.path}/desktop:/usr/bin:/bin", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent"}

    def notices(self, n=0):
        """At least so many, as lists of arguments."""
        poll(lambda: len([path for path in self.seen.iterdir() if path.name[0] != "."]) >= n, 20, f"{n} notices")
        return [path.read_bytes().decode().split("\0")[:-1] for path in sorted(self.seen.iterdir()) if path.name[0] != "."]


def ask_once(server, name):
    return server.ask(name, "tools/call", {"name": "project_create", "arguments": ARGS | {"name": name}})


def test_a_notice_says_what_begins_to_wait_and_nobody_waits_for_it(cordon, raw, box):
    # This one takes its time, and the server goes on.
    desktop = Desktop(box, extra="exec sleep 30")
    server = raw(env=desktop.env)
    name = "--<b>&amp;\u202e'$(id)" + "x" * 200
    ask_once(server, name)
    (arguments,) = desktop.notices(1)
    id = waiting(cordon)["id"]
    assert arguments[:2] == ["--", "cordon: a person is asked"] and len(arguments) == 3
    body, shown = arguments[2].split("\n")
    assert shown == f"cordon approvals show {id[:8]}" and body.endswith("...") and len(body) < 300
    assert "--&lt;b&gt;&amp;amp;\\u{202e}'$(id)xxx" in body and not re.search("[<>\u202e]", body)
    # The same question again is no news; many at once are counted, once a second.
    ask_once(server, name)
    for number in range(20):
        ask_once(server, f"p{number}")
    second = desktop.notices(2)[1]
    assert re.fullmatch(r"\d+ approvals wait: cordon approvals list", second[2])
    poll(lambda: desktop.notices()[-1][2].startswith("21 approvals wait"), 20, "all of them")
    assert len(desktop.notices()) <= 4
    zombies = [line for line in subprocess.run(["ps", "-o", "stat=", "--ppid", str(server.process.pid)], capture_output=True, text=True).stdout.split() if line.startswith("Z")]
    assert not zombies


def test_without_a_desktop_there_is_no_notice(cordon, raw, box):
    desktop = Desktop(box)
    for name, without in (
        ("bus", {"DBUS_SESSION_BUS_ADDRESS": "", "XDG_RUNTIME_DIR": str(box.mkdir("empty"))}),
        ("program", {"PATH": "/usr/bin:/bin"}),
        ("relative", {"PATH": "desktop:/usr/bin:/bin"}),
    ):
        server = raw(env=desktop.env | without, cwd=box.path)
        assert ask_once(server, name)["error"]["code"] == -32021
    # The one that has a desktop comes later, and is the only one that is shown.
    ask_once(raw(env=desktop.env), "shown")
    (arguments,) = desktop.notices(1)
    assert "project shown?" in arguments[2] or arguments[2].startswith("4 approvals wait")
