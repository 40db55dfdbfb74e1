# SPDX-License-Identifier: Apache-2.0
"""What may take long is done beside the server: whoever has to wait waits alone, what was begun is finished, and every call is recorded."""
import contextlib
import fcntl
import json
import os
import signal
import time

import pytest

from serving import META, PATIENT, Serve
from support import poll
from views import View


@pytest.fixture
def server(cordon):
    made = Serve(cordon)
    made.token = made.make_token("--scope", "admin")
    poll(lambda: made.modern("tools/list").status == 200, PATIENT, "the token to be known")
    yield made
    assert made.stop() == 0, made.process.stderr.read().decode()


def project(cordon, *options):
    done = cordon("project", "create", "p", "--no-git", "--json", *options)
    assert done.returncode == 0, str(done)
    return done.json()["id"]


@contextlib.contextmanager
def locked(box, project):
    """Another process has the project, for long."""
    path = box.state / "state" / "projects" / project / "lock"
    if not path.exists():
        box.write(path, mode=0o600)
    with open(path) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
        fcntl.flock(file, fcntl.LOCK_UN)


def call(server, tool, **args):
    """A call whose answer is read later."""
    return server.open(server.modern_bytes("tools/call", {"name": tool, "arguments": args}))


def answer(stream):
    done = stream.ended()
    assert done.status == 200, done
    return done.json()["result"]


def children(server):
    with open(f"/proc/{server.process.pid}/task/{server.process.pid}/children") as file:
        return [int(pid) for pid in file.read().split()]


def is_quick(server):
    """How long the slowest of some trivial requests took."""
    slowest = 0
    for _ in range(10):
        began = time.monotonic()
        assert server.request("GET", "/health").status == 200
        server.did("project_list")
        slowest = max(slowest, time.monotonic() - began)
    return slowest < 0.5


def records(cordon, tool):
    assert cordon("audit", "verify").returncode == 0
    log = cordon.box.state / "state" / "audit" / "calls" / "audit.jsonl"
    lines = log.read_text().splitlines() if log.exists() else []
    return [record for record in map(json.loads, lines) if record["event"] == "call" and record.get("detail", {}).get("tool") == tool]


def test_a_lock_of_another_process_stops_only_who_needs_it(server, cordon, box):
    made = project(cordon)
    with locked(box, made):
        waiting = [
            call(server, "project_update", project_id=made, name="other"),
            call(server, "workspace_create", project_id=made, workspace_id="w"),
            call(server, "session_start", project_id=made, workspace_id="s", create_workspace=True, command=["true"], wait_seconds=60),
            call(server, "session_send", project_id=made, workspace_id="t", create_workspace=True, command=["cat"], message="x"),
        ]
        poll(lambda: len(children(server)) == len(waiting), PATIENT, "the calls to begin")
        assert is_quick(server)
    results = [answer(stream) for stream in waiting]
    assert not [result for result in results if result.get("isError")], results
    assert results[0]["structuredContent"]["name"] == "other" and results[1]["structuredContent"]["created"] is True
    assert results[2]["structuredContent"]["exit_code"] == 0 and results[2]["structuredContent"]["workspace_created"] is True
    server.did("session_stop", session_id=results[3]["structuredContent"]["session_id"])
    poll(lambda: not children(server), PATIENT, "the children to be gone")
    assert all(len(records(cordon, tool)) == 1 for tool in ("project_update", "workspace_create", "session_start", "session_send"))


def test_a_session_that_hangs_stops_only_who_talks_to_it(server, cordon):
    made = project(cordon)
    session = server.did("session_start", project_id=made, command=["cat"])["session_id"]
    supervisor = next(int(entry) for entry in os.listdir("/proc") if entry.isdigit() and is_session(entry, session))

    def meanwhile(*calls):
        os.kill(supervisor, signal.SIGSTOP)
        try:
            waiting = [call(server, tool, **arguments) for tool, arguments in calls]
            poll(lambda: len(children(server)) == len(waiting), PATIENT, "the calls to begin")
            assert is_quick(server)
        finally:
            os.kill(supervisor, signal.SIGCONT)
        return [answer(stream) for stream in waiting]

    # Not all three at once: a message to the workspace that comes after the stop starts its session again.
    sent = meanwhile(("session_send", {"session_id": session, "message": "x"}), ("session_send", {"project_id": made, "message": "y"}))
    assert not [result for result in sent if result.get("isError")], sent
    stopped = meanwhile(("session_stop", {"session_id": session}))
    assert stopped[0]["structuredContent"].get("status") not in (None, "active"), stopped


def is_session(pid, session):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read() == f"cordon-job\0{session}\0".encode()
    except OSError:
        return False


def test_a_client_that_goes_away_cuts_nothing_in_half(server, cordon, box):
    made = project(cordon)
    with locked(box, made):
        act, start = call(server, "workspace_create", project_id=made, workspace_id="w"), call(server, "session_start", project_id=made, command=["sleep", "1000"])
        poll(lambda: len(children(server)) == 2, PATIENT, "the calls to begin")
        act.close()
        start.close()
        assert is_quick(server) and len(children(server)) == 2
    poll(lambda: not children(server), PATIENT, "the children to end")
    assert [w for w in server.did("workspace_list", project_id=made)["workspaces"] if w["id"] == "w"]
    assert len(records(cordon, "workspace_create")) == 1
    # A start that was cancelled before its session ran leaves none that runs.
    poll(lambda: not server.did("session_list", status="active")["sessions"], PATIENT, "the session to be ended")


def test_a_kill_of_the_server_cuts_nothing_in_half(server, cordon, box):
    made = project(cordon)
    with locked(box, made):
        stream = call(server, "workspace_create", project_id=made, workspace_id="w")
        poll(lambda: children(server), PATIENT, "the call to begin")
        server.stop(signal.SIGKILL)
        stream.close()
        assert not records(cordon, "workspace_create")
    poll(lambda: records(cordon, "workspace_create"), PATIENT, "the end of the call")
    server.port = 0
    server.start()
    assert [w for w in server.did("workspace_list", project_id=made)["workspaces"] if w["id"] == "w"]


def test_who_only_reads_ends_with_its_client(server, cordon, box):
    view = View(box, box.repo())
    for number in range(3000):
        (view.upper / f"f{number}").write_text("x\n" * 2000)
    box.own(view.upper)
    stream = call(server, "changes_diff", view_id=view.id)
    poll(lambda: children(server), PATIENT, "the call to begin")
    assert is_quick(server)
    stream.close()
    poll(lambda: not children(server), 5, "the child to be ended")
    whole = call(server, "changes_diff", view_id=view.id)
    poll(lambda: children(server), PATIENT, "the call to begin")
    assert is_quick(server)
    assert not answer(whole).get("isError")


def test_a_question_is_put_and_its_answer_counts_while_others_are_served(server, cordon, box):
    """The question about a view is made beside the server as well, in both eras."""
    yes, forms = {"action": "accept", "content": {"approve": True}}, {"elicitation": {}}
    repo = box.repo()
    for era in ("modern", "legacy"):
        view = View(box, repo)
        view.work(f"echo {era} > {era}.txt")
        args = {"name": "changes_apply", "arguments": {"view_id": view.id}}
        if era == "modern":
            asked = server.modern("tools/call", args, capabilities=forms).json()["result"]
            assert asked["resultType"] == "input_required" and not (repo / f"{era}.txt").exists()
            again = args | {"inputResponses": {"approve": yes}, "requestState": asked["requestState"]}
            result = server.modern("tools/call", again, capabilities=forms).json()["result"]
        else:
            session = server.initialize(forms)
            stream = server.open(server.post_bytes({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": args}, session))
            asked = stream.wait(lambda event: event.get("method") == "elicitation/create")
            assert not (repo / f"{era}.txt").exists()
            assert server.post({"jsonrpc": "2.0", "id": asked["id"], "result": yes}, session).status == 202
            result = stream.wait(lambda event: event.get("id") == 5)["result"]
        assert not result.get("isError"), result
        assert (repo / f"{era}.txt").read_text() == f"{era}\n"
    assert len(records(cordon, "changes_apply")) == 2


def test_one_client_leaves_room_for_others(server, cordon, box):
    made = [project(cordon) for _ in range(20)]  # calls about one of them would wait for each other
    other = server.make_token("--scope", "admin")
    poll(lambda: server.modern("tools/list", token=other).status == 200, PATIENT, "the token to be known")
    free = cordon("project", "create", "q", "--no-git", "--json").json()["id"]
    with contextlib.ExitStack() as locks:
        for one in made:
            locks.enter_context(locked(box, one))
        waiting = [call(server, "project_update", project_id=made[number % 20], name=f"n{number}") for number in range(40)]
        poll(lambda: len(children(server)) >= 10, PATIENT, "the calls to begin")
        assert len(children(server)) < 40 and is_quick(server)
        assert server.did("project_update", token=other, project_id=free, name="r")["name"] == "r"
    assert not [stream for stream in waiting if answer(stream).get("isError")]


def test_over_standard_streams_a_ping_is_answered_meanwhile_and_the_call_at_the_end(cordon, box):
    made = project(cordon)
    process = cordon.start("mcp", stdin=-1)

    def send(id, method, params):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params | {"_meta": META}}).encode() + b"\n")
        process.stdin.flush()

    with locked(box, made):
        send(1, "tools/call", {"name": "project_update", "arguments": {"project_id": made, "name": "other"}})
        send(2, "tools/call", {"name": "project_list", "arguments": {}})
        assert json.loads(process.stdout.readline())["id"] == 2
        process.stdin.close()
        time.sleep(0.2)
        assert process.poll() is None, "the call is not answered yet"
    first = json.loads(process.stdout.readline())
    assert first["id"] == 1 and first["result"]["structuredContent"]["name"] == "other"
    assert process.stdout.read() == b"" and process.wait(PATIENT) == 0


def memory_has(pid, wanted):
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            place, mode = line.split()[:2]
            if "r" not in mode or "[v" in line:
                continue
            begin, end = (int(number, 16) for number in place.split("-"))
            with contextlib.suppress(OSError, OverflowError):
                memory.seek(begin)
                if wanted in memory.read(end - begin):
                    return True
    return False


def test_no_child_of_the_server_has_its_key(server, cordon, box):
    made = project(cordon)
    key = (box.state / "state" / "serve" / "key").read_bytes()
    assert memory_has(server.process.pid, key)
    with locked(box, made):
        waiting = call(server, "project_update", project_id=made, name="other")
        poll(lambda: children(server), PATIENT, "the call to begin")
        assert not memory_has(children(server)[0], key)
    assert not answer(waiting).get("isError")
