# SPDX-License-Identifier: Apache-2.0
"""Sessions through the command line: started, talked to, resumed, stopped, lost; what they share and what they don't."""
import base64
import json
import os
import pathlib
import pty
import select
import shutil
import signal
import subprocess
import threading
import time

import pytest

from support import command_line, descendants, poll


def test_a_message_reaches_the_standard_input_and_output_has_an_index(sessions):
    sessions.create(command=["cat"])
    first = sessions.start("--message", "hello")
    assert first["spawned"] is True and first["workspace_id"] == sessions.project["default_workspace_id"]
    session = first["session_id"]
    poll(lambda: sessions.text(session) == "hello\n", what="the echo")
    last = sessions.ask("session", "output", session)["last_index"]
    sent = sessions.ask("session", "send", session, "second")
    assert sent["last_event_index"] > last
    poll(lambda: sessions.text(session, last) == "second\n", what="the second echo")
    assert [turn["message"] for turn in sessions.get(session)["turns"]] == ["hello", "second"]
    # Starting again without a command means this session.
    again = sessions.start("--message", "third")
    assert again["spawned"] is False and again["session_id"] == session
    assert sessions.ask("session", "send", session, "--end-input")["session_id"] == session
    assert sessions.cordon("session", "wait", session).returncode == 0
    record = sessions.get(session)
    assert (record["status"], record["state"], record["exit_code"]) == ("completed", "completed", 0)
    assert sessions.refused("session", "send", session, "late")["kind"] == "conflict"
    output = sessions.ask("session", "output", session, "--since", "0", "--max-events", "2")
    assert [event["index"] for event in output["events"]] == [1, 2] and output["completed"] is True
    assert all(event["session_id"] == session for event in output["events"])


def test_a_list_that_is_too_long_for_a_line_is_not_said_to_be_empty(sessions):
    """What the host would execute is protected in the workspaces beside that of the session, too."""
    project = sessions.create(command=["true"])
    for i in range(8):
        sessions.ask("workspace", "create", project, "--id", f"w{i}")
    session = sessions.start("--workspace", "w0")["session_id"]
    assert sessions.cordon("session", "wait", session).returncode == 0
    assert len(json.dumps(sessions.get(session)["protected"])) > 65536
    assert "\nprotected: (too long for a line; --json prints it)\n" in sessions.cordon("session", "get", session).stdout


ASK = """
import os, socket, sys
os.chdir(sys.argv[1])
s = socket.socket(socket.AF_UNIX); s.connect('control')
try:
    s.sendall(b'{"op": "no such thing"}\\n')
    print('answer', bool(s.recv(100)))
except (ConnectionResetError, BrokenPipeError):
    print('answer', False)
"""


def test_k1_a_control_socket_wants_more_than_the_right_uid(sessions, box):
    """A process in another user namespace, as everything in a sandbox is, gets no answer, though the uid is the owner's."""
    sessions.create(command=["cat"])
    session = sessions.start("--message", "x")["session_id"]
    place = str(box.state / "state/sessions" / session)
    assert box.run("python3", "-c", ASK, place).stdout == "answer True\n"
    inside = box.run("unshare", "--user", "--map-current-user", "python3", "-c", ASK, place)
    assert inside.stdout == "answer False\n", inside
    sessions.cordon("session", "stop", session)


def test_an_ended_session_is_resumed_under_its_id_with_all_layers(sessions, box):
    sessions.create("--isolation", "--protect", "AGENTS.md", command=["sh", "-c", "read line; echo \"got $line in $PWD\"; echo x > AGENTS.md"])
    box.write(sessions.top("AGENTS.md"), "rules")
    one = sessions.start("--message", "one")["session_id"]
    sessions.cordon("session", "wait", one)
    before = sessions.ask("session", "output", one)["last_index"]
    again = sessions.start("--message", "two")
    assert again["session_id"] == one and again["spawned"] is True
    sessions.cordon("session", "wait", one)
    text = sessions.text(one, before)
    assert "got two in /workspace\n" in text and "Read-only file system" in text
    assert [turn["message"] for turn in sessions.get(one)["turns"]] == ["one", "two"]
    assert sessions.get(one)["enforcement"]["tier"] == "full"
    assert sessions.start("--new-session", "--message", "three")["session_id"] != one


def test_a_session_is_never_resumed_in_another_workspace(sessions):
    sessions.create(command=["cat"])
    first = sessions.start("--workspace", "a", "--create-workspace", "--message", "private")
    other = sessions.start("--workspace", "b", "--create-workspace", "--message", "x")
    assert first["workspace_created"] and other["workspace_created"] and other["session_id"] != first["session_id"]
    # Not even when a record says so.
    record = sessions.box.state / "state" / "projects" / sessions.project["id"] / "workspaces" / "b.json"
    forged = {**json.loads(record.read_text()), "last_session_id": first["session_id"]}
    sessions.box.write(record, json.dumps(forged))
    sessions.cordon("session", "stop", first["session_id"])
    third = sessions.start("--workspace", "b", "--message", "y")
    assert third["session_id"] != first["session_id"] and third["spawned"] is True
    assert "private" not in sessions.text(third["session_id"])


def test_the_workspace_is_found_as_the_table_says(sessions):
    project = sessions.create(command=["true"])
    refused = sessions.refused("session", "start", project, "--detach", "--workspace", "unknown", status=125)
    assert refused["kind"] == "not_found"
    made = sessions.start("--workspace", "Unknown", "--create-workspace")
    assert made["workspace_id"] == "unknown" and made["workspace_created"] is True
    assert sessions.refused("session", "start", project, "--detach", "--external-id", "me", "--source", "s", status=125)["kind"] == "not_found"
    mine = sessions.start("--external-id", "me", "--source", "s", "--create-workspace")
    again = sessions.start("--external-id", "me", "--source", "s")
    assert again["workspace_id"] == mine["workspace_id"] and again["workspace_created"] is False
    assert sessions.ask("workspace", "get", project, mine["workspace_id"])["last_session_at"]


def test_a_session_can_fail_on_a_violation(sessions):
    sessions.create("--isolation", "--protect", "NEVER.md")
    refused = ["sh", "-c", "mkdir NEVER.md 2>/dev/null; :"]
    before = sessions.start("--new-session", command=refused)["session_id"]
    poll(lambda: sessions.get(before)["status"] != "active", 20)
    record = sessions.get(before)
    assert (record["state"], record["exit_code"]) == ("completed", 0) and record["violations"] > 0, record
    failing = sessions.start("--new-session", "--fail-on-violation", command=refused)["session_id"]
    assert sessions.cordon("session", "wait", failing).returncode == 3
    record = sessions.get(failing)
    assert (record["status"], record["state"], record["exit_code"], record["failed_on_violation"]) == ("failed", "failed", 0, True)
    clean = sessions.start("--new-session", "--fail-on-violation", command=["true"])["session_id"]
    assert sessions.cordon("session", "wait", clean).returncode == 0 and sessions.get(clean)["status"] == "completed"


def test_exit_codes_are_those_of_a_run(sessions):
    project = sessions.create()
    run = lambda *args: sessions.cordon("session", "start", project, "--new-session", *args)  # noqa: E731
    assert run("--", "sh", "-c", "exit 7").returncode == 7
    assert run("--", "sh", "-c", "kill -9 $$").returncode == 137
    assert run("--timeout", "300ms", "--", "sleep", "60").returncode == 124
    missing = run("--", "no-such-program")
    assert missing.returncode == 127 and "cannot run no-such-program" in missing.stderr
    assert run("--", "/etc/passwd").returncode == 126
    assert run().returncode == 2
    states = [session["state"] for session in sessions.ask("session", "list", project)["sessions"]]
    assert states == ["failed", "failed", "timeout", "refused", "refused"]
    last = sessions.ask("session", "list", project)["sessions"][2]["session_id"]
    assert sessions.cordon("session", "wait", last).returncode == 124


def test_stopping_ends_the_whole_tree_and_touches_no_other(sessions):
    sessions.create()
    tree = "setsid sh -c 'trap \"\" TERM; sleep 1000 & sleep 1000' & sh -c 'sleep 1000' & trap '' TERM; while :; do sleep 1; done"
    doomed = sessions.start("--new-session", command=["sh", "-c", tree])["session_id"]
    kept = sessions.start("--new-session", command=["sleep", "1000"])["session_id"]
    poll(lambda: sum("sleep 1000" in line for line in processes()) >= 4, what="the tree")
    stopped = sessions.ask("session", "stop", doomed, "--grace", "200ms")
    assert (stopped["status"], stopped["state"], stopped["signal"]) == ("completed", "cancelled", 9)
    poll(lambda: sum("sleep 1000" in line for line in processes()) == 1, what="the end of the tree")
    assert sessions.get(kept)["status"] == "active"
    assert sessions.ask("session", "stop", doomed)["state"] == "cancelled"  # again: fine


def processes():
    found = []
    for pid in descendants():
        try:
            found.append(pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            pass
    return found


def test_a_killed_supervisor_takes_its_session_with_it_and_leaves_it_lost(sessions, leftovers):
    project = sessions.create()
    session = sessions.start(command=["sleep", "1000"])["session_id"]
    os.kill(sessions.pid(session), signal.SIGKILL)
    poll(lambda: not any("sleep 1000" in line for line in processes()), what="the end of the sandbox")
    record = sessions.get(session)
    assert (record["status"], record["state"], record["error"]["kind"]) == ("failed", "lost", "internal")
    assert sessions.ask("session", "output", session)["failed"] is True
    # Nothing stands in the way of the next one, nor of deleting the project.
    again = sessions.start(command=["sleep", "1000"])
    assert again["session_id"] == session and again["spawned"] is True
    sessions.cordon("session", "stop", session)
    assert sessions.ask("project", "delete", project)["deleted"] is True
    assert sessions.cordon("gc").returncode == 0
    leftovers.assert_none()


def test_what_a_reboot_leaves_is_lost_and_stands_in_nobodys_way(sessions, box):
    """After a reboot the files say that sessions run, and no process holds their locks."""
    project = sessions.create(command=["cat"])
    session = sessions.start("--message", "before")["session_id"]
    poll(lambda: sessions.text(session) == "before\n", what="the echo")
    files = {path: path.read_bytes() for path in sessions.state(session).iterdir() if path.is_file()}
    mark = box.state / "state" / "projects" / project / "active" / f"{sessions.project['default_workspace_id']}.{session}"
    assert mark.exists()
    sessions.cordon("session", "stop", session)
    for path, content in files.items():
        box.write(path, content.decode())
    box.write(mark, "")
    assert sessions.ask("session", "list", project, "--status", "active")["total"] == 0
    record = sessions.get(session)
    assert (record["status"], record["state"]) == ("failed", "lost") and "went down" in record["error"]["message"]
    assert sessions.cordon("session", "wait", session).returncode == 125
    assert sessions.text(session) == "before\n"  # what was logged is still there
    again = sessions.start("--message", "after")
    assert again["session_id"] == session and again["spawned"] is True
    poll(lambda: sessions.text(session).endswith("after\n"), what="the echo of the resumed session")
    sessions.cordon("session", "stop", session)
    assert sessions.ask("project", "delete", project)["deleted"] is True


def test_a_running_session_keeps_its_project_and_workspace(sessions):
    project = sessions.create()
    session = sessions.start("--workspace", "w", "--create-workspace", command=["sleep", "1000"])["session_id"]
    for args in (("workspace", "delete", project, "w"), ("project", "delete", project), ("workspace", "sync", project, "w")):
        error = sessions.refused(*args)
        assert error["kind"] == "conflict" and session in error["message"]
    sessions.cordon("session", "stop", session)
    assert sessions.ask("workspace", "delete", project, "w")["deleted"] is True


def test_changed_settings_are_for_the_next_session(sessions, box):
    project = sessions.create("--isolation")
    session = sessions.shell()
    changed = sessions.ask("project", "update", project, "--protect", "AGENTS.md", "--max-sessions", "20")
    assert changed["sessions_with_earlier_settings"] == [session]
    assert sessions.get(session)["protected_paths"] == []
    sessions.say(session, "echo mine > AGENTS.md")
    second = sessions.shell()
    assert "Read-only file system" in sessions.say(second, "echo theirs > AGENTS.md")
    assert sessions.top("workspaces", sessions.project["default_workspace_id"], "AGENTS.md").read_text() == "mine\n"
    assert sessions.get(session)["status"] == "active"


def test_a_second_session_of_a_workspace_protects_as_much(sessions):
    project = sessions.create("--isolation", "--protect", "AGENTS.md")
    first = sessions.shell()
    same = sessions.shell()
    sessions.ask("project", "update", project, "--no-protect")
    refused = sessions.refused("session", "start", project, "--detach", "--new-session", "--", "true", status=125)
    assert refused["kind"] == "conflict" and "AGENTS.md" in refused["message"]
    # Another workspace has nothing to do with it; the whole project has.
    assert sessions.start("--workspace", "w", "--create-workspace", "--new-session", command=["true"])["spawned"]
    sessions.ask("project", "update", project, "--no-isolation")
    assert sessions.refused("session", "start", project, "--detach", "--new-session", "--", "true", status=125)["kind"] == "conflict"
    for session in (first, same):
        sessions.cordon("session", "stop", session)
    assert sessions.start("--new-session", command=["true"])["spawned"]


def test_limits_of_the_project_hold(sessions):
    project = sessions.create("--max-sessions", "2", "--max-recursion-depth", "1", "--max-agents-per-session", "1", "--timeout", "1s")
    parent = sessions.start("--new-session", command=["sleep", "1000"])["session_id"]
    child = sessions.start("--parent", parent, command=["sleep", "1000"])["session_id"]
    assert sessions.get(child)["depth"] == 1 and sessions.get(child)["parent_session_id"] == parent
    assert sessions.get(parent)["child_sessions"] == [child]
    begin = ("session", "start", project, "--detach", "--new-session")
    assert "max_sessions" in sessions.refused(*begin, "--", "true", status=125)["message"]
    assert "max_recursion_depth" in sessions.refused(*begin, "--parent", child, "--", "true", status=125)["message"]
    assert "max_agents_per_session" in sessions.refused(*begin, "--parent", parent, "--", "true", status=125)["message"]
    poll(lambda: sessions.get(parent)["state"] == "timeout", 10, "the project's time limit")
    assert sessions.get(parent)["status"] == "failed"


def test_a_session_starts_none_that_is_freer_than_itself(sessions):
    project = sessions.create("--isolation", "--protect", "AGENTS.md", "--net", "none")
    sessions.ask("workspace", "create", project, "--id", "w")
    parent = sessions.start(command=["sleep", "1000"])["session_id"]
    begin = ("session", "start", project, "--detach", "--parent", parent)
    assert "another workspace" in sessions.refused(*begin, "--workspace", "w", "--", "true", status=125)["message"]
    for change, back, word in (
        (["--no-protect"], ["--protect", "AGENTS.md"], "it would write AGENTS.md"),
        (["--net", "host"], ["--net", "none"], "network"),
        (["--no-isolation"], ["--isolation"], "not be isolated"),
        (["--best-effort"], None, "fewer layers"),
    ):
        sessions.ask("project", "update", project, *change)
        error = sessions.refused(*begin, "--", "true", status=125)
        assert error["kind"] == "policy_denied" and word in error["message"], error
        if back:
            sessions.ask("project", "update", project, *back)
    other = sessions.ask("project", "create", "q", "--isolation")["id"]
    assert "another project" in sessions.refused("session", "start", other, "--detach", "--parent", parent, "--", "true", status=125)["message"]


@pytest.mark.parametrize("isolation", [["--isolation"], []], ids=["isolated", "shared"])
def test_what_the_host_would_execute_is_protected_unless_the_project_says_otherwise(sessions, box, isolation):
    plant = "mkdir -p .git/hooks; echo evil > .git/hooks/post-checkout; echo evil > .envrc; echo work > notes"
    project = sessions.create(*isolation)
    assert sessions.project["default_protection"] is True
    where = sessions.top("workspaces", sessions.project["default_workspace_id"])
    box.write(where / ".git/config", "[core]\n")
    box.mkdir(where / ".git/hooks")
    sessions.cordon("session", "wait", sessions.start(command=["sh", "-c", plant])["session_id"])
    assert not (where / ".git/hooks/post-checkout").exists() and not (where / ".envrc").exists()
    assert (where / "notes").read_text() == "work\n"
    parent = sessions.start("--new-session", command=["sleep", "1000"])["session_id"]
    sessions.ask("project", "update", project, "--no-default-protect")
    # Neither a session that one with the list starts, nor one beside it, does without it.
    begin = ("session", "start", project, "--detach", "--new-session")
    assert "it would write " in sessions.refused(*begin, "--parent", parent, "--", "true", status=125)["message"]
    assert "protects" in sessions.refused(*begin, "--", "true", status=125)["message"]
    sessions.ask("session", "stop", parent, "--grace", "100ms")
    sessions.cordon("session", "wait", sessions.start("--new-session", command=["sh", "-c", plant])["session_id"])
    assert (where / ".git/hooks/post-checkout").read_text() == (where / ".envrc").read_text() == "evil\n"


def test_l12_the_other_workspaces_of_a_shared_project_are_held_too(sessions, box):
    project = sessions.create()
    for i in range(12):
        sessions.ask("workspace", "create", project, "--id", f"w{i:02}")
    places = {f"w{i:02}": sessions.top("workspaces", f"w{i:02}") for i in range(12)}
    for place in places.values():
        box.write(place / ".git/config", "[core]\n")
        box.mkdir(place / ".git/hooks")
        box.write(place / ".envrc", "mine\n")
        box.write(place / "AGENTS.md", "ours\n")
    script = "for w in ../w*; do echo evil >$w/.git/hooks/pre-commit; echo evil >$w/.envrc; echo evil >$w/.mcp.json; echo work >$w/notes; echo more >>$w/AGENTS.md; done"
    session = sessions.start(command=["sh", "-c", script])["session_id"]
    sessions.cordon("session", "wait", session)
    for name, place in places.items():
        assert not list(place.glob(".git/hooks/*")) and (place / ".envrc").read_text() == "mine\n", name
        # Without isolation the files of the project itself stay writable.
        assert (place / "notes").read_text() == "work\n" and (place / "AGENTS.md").read_text() == "ours\nmore\n", name
    # Missing names are held in the first ones.
    assert [name for name, place in places.items() if (place / ".mcp.json").exists()] == ["w08", "w09", "w10", "w11"]
    # The status of the session names what is held.
    held = [item["path"] if isinstance(item, dict) else item for item in sessions.get(session)["protected"]]
    assert any("w00/.envrc" in path for path in held) and any("w11/.git/hooks" in path for path in held), held
    # Sessions in different workspaces run side by side, also those in which less is held.
    first = sessions.start("--new-session", "--workspace", "w00", command=["sleep", "1000"])["session_id"]
    second = sessions.start("--new-session", "--workspace", "w11", command=["true"])["session_id"]
    assert sessions.cordon("session", "wait", second).returncode == 0
    sessions.ask("session", "stop", first, "--grace", "100ms")
    sessions.ask("project", "update", project, "--no-default-protect")
    sessions.cordon("session", "wait", sessions.start("--new-session", command=["sh", "-c", script])["session_id"])
    assert (places["w00"] / ".git/hooks/pre-commit").read_text() == "evil\n"


def test_a_child_in_another_workspace_of_a_shared_project_keeps_the_parents_protection(sessions, box):
    project = sessions.create()
    sessions.ask("workspace", "create", project, "--id", "w")
    first, second = sessions.top("workspaces", sessions.project["default_workspace_id"]), sessions.top("workspaces", "w")
    for place in (first, second):
        box.write(place / ".git/config", "[core]\n")
        box.mkdir(place / ".git/hooks")
    parent = sessions.start(command=["sleep", "1000"])["session_id"]
    script = f"for w in {first.name} w; do echo evil > ../$w/.git/hooks/post-checkout; echo work > ../$w/notes; done"
    child = sessions.start("--parent", parent, "--workspace", "w", command=["sh", "-c", script])["session_id"]
    sessions.cordon("session", "wait", child)
    assert not list(first.glob(".git/hooks/*")) and not list(second.glob(".git/hooks/*"))
    assert (first / "notes").exists() and (second / "notes").exists()
    # One that nobody of them started stands on its own, and runs beside them.
    assert sessions.cordon("session", "wait", sessions.start("--new-session", "--workspace", "w", command=["true"])["session_id"]).returncode == 0


def test_two_tenants_share_nothing(sessions, box):
    project = sessions.create("--isolation", "--env", "KEY=of-the-project")
    tenants = {}
    for name in ("alice", "bob"):
        sessions.ask("workspace", "create", project, "--id", name)
        box.write(sessions.top("workspaces", name, "diary"), f"secret of {name}")
        tenants[name] = sessions.shell("--workspace", name)
    alice, bob = tenants["alice"], tenants["bob"]
    sessions.say(bob, "echo bobs > /tmp/shared; echo bobs > /dev/shm/shared; echo bobs > $HOME/.history; sleep 1000 & (nc -lU /tmp/s 2>/dev/null &) ; export SECRET=bobs")
    hunt = (
        "find / -path /proc -prune -o \\( -name 'bob*' -o -name diary -o -name metadata.json -o -name '*.jsonl' \\) -print 2>/dev/null",
        "ls -A /tmp /dev/shm /run $HOME ..",
        "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/[0-9]*/mountinfo 2>/dev/null | tr '\\0' '\\n'",
        "cat /workspace/../workspaces/bob/diary /workspace/../../bob/diary ../bob/diary /proc/1/root/workspace/../bob/diary",
        f"ls -R {box.state} {sessions.top()}",
        "for fd in /proc/self/fd/*; do readlink $fd; ls -A $fd/ 2>/dev/null; done",
        "env; hostname; ps ax 2>/dev/null",
    )
    seen = "".join(sessions.say(alice, line) for line in hunt)
    assert "/workspace/diary" in seen
    for trace in ("bob/", "bobs", "secret of bob", bob, sessions.project["default_workspace_id"], "metadata.json\n", str(box.home)):
        assert trace not in seen.replace("../bob/diary", "").replace("bob/diary: No such", ""), trace
    assert "KEY=of-the-project" in seen and "CORDON_WORKSPACE_ID=alice" in seen
    assert (sessions.top("workspaces", "bob", "diary")).read_text() == "secret of bob"
    assert "1000" in sessions.say(bob, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")


@pytest.mark.parametrize("isolation", [True, False])
def test_control_data_is_out_of_reach_in_both_modes(sessions, box, isolation):
    project = sessions.create(*(["--isolation"] if isolation else []), "--protect", "AGENTS.md")
    session = sessions.shell()
    record = box.state / "state" / "projects" / project / "project.json"
    before = record.read_text()
    seen = sessions.say(
        session,
        f"ls {box.state}/state {box.state}; cat {record}; find / -name project.json -o -name record.json -o -name alive -o -name control 2>/dev/null",
    )
    assert "workspace_isolation" not in seen and "record.json" not in seen and "/state/" not in seen.replace(str(record), "").replace(f"{box.state}/state", "")
    # A forged copy changes nothing.
    forged = json.dumps({"id": project, "workspace_isolation": not isolation, "protected_paths": [], "limits": {"max_sessions": 1000}})
    sessions.say(session, f"cd /workspace; echo '{forged}' > metadata.json; mkdir -p sessions; echo '{forged}' > sessions/x.json")
    assert record.read_text() == before
    assert sessions.ask("project", "get", project)["workspace_isolation"] is isolation
    sessions.cordon("session", "stop", session)
    again = sessions.shell()
    assert sessions.get(again)["workspace_isolation"] is isolation and sessions.get(again)["protected_paths"] == ["AGENTS.md"]


def test_a_hostile_agent_of_a_shared_project_breaks_nothing(sessions, box):
    """It owns everything below projects/<id>, and puts links, directories and FIFOs where cordon writes."""
    project = sessions.create()
    session = sessions.shell()
    victim = box.write("victim", "untouched")
    sessions.say(session, f"cd /workspace; rm -rf metadata.json sessions; ln -s {victim} metadata.json; ln -s {box.path} sessions; mkdir workspaces/w; mkfifo workspaces/w/AGENTS.md; ln -s {box.path} workspaces/out; mkfifo AGENTS.md; chmod 500 . ; cd workspaces; rm -rf *; ln -s {box.path} later")
    assert sessions.refused("workspace", "create", project, "--id", "later")["kind"] == "conflict"
    sessions.ask("project", "update", project, "--isolation")
    assert sessions.refused("workspace", "create", project, "--id", "new")["kind"] == "policy_denied"
    sessions.cordon("session", "stop", session)
    assert sessions.get(session)["status"] == "completed"
    assert victim.read_text() == "untouched"
    assert sorted(p.name for p in box.path.iterdir()) == ["home", "state", "tmp", "victim"]
    (sessions.top("AGENTS.md")).unlink()
    again = sessions.start("--new-session", command=["true"])["session_id"]  # its directory is made again
    assert sessions.cordon("session", "wait", again).returncode == 0
    assert sessions.ask("project", "delete", project)["deleted"] is True


def test_output_is_bounded_and_says_what_it_dropped(sessions):
    sessions.create()
    session = sessions.start(command=["seq", "4000000"])["session_id"]
    assert sessions.cordon("session", "wait", session, timeout=60).returncode == 0
    output = sessions.ask("session", "output", session)
    first, last = output["events"][0]["index"], output["last_index"]
    assert first > 0 and last - first + 1 == len(output["events"]) and output["dropped_events"] == first
    assert 1000 <= len(output["events"]) <= 2000
    assert output["events"][-1]["type"] == "ended" and output["events"][-2]["text"].endswith("\n4000000\n")
    assert sum(p.stat().st_size for p in sessions.state(session).iterdir()) < 40_000_000


def test_bytes_that_are_no_text_are_shown(sessions):
    sessions.create()
    session = sessions.start(command=["sh", "-c", "printf 'a\\377b\\0c\\303'; printf '\\251'; printf '\\342\\202'"])["session_id"]
    sessions.cordon("session", "wait", session)
    assert sessions.text(session) == "a\\xffb\\x00cé\\xe2\\x82"


def test_a_terminal_gets_no_control_characters_from_a_log(sessions, box, cordon):
    sessions.create()
    session = sessions.start(command=["printf", "\\033]0;evil\\007plain \\342\\200\\256\n"])["session_id"]
    sessions.cordon("session", "wait", session)
    main, other = pty.openpty()
    process = cordon.start("session", "output", session, stdout=other, stderr=other)
    process.wait(10)
    os.close(other)
    shown = os.read(main, 65536).decode()
    os.close(main)
    assert "plain" in shown and "\x1b" not in shown and "\x07" not in shown and "\u202e" not in shown
    assert b"\x1b]0;evil" in cordon("session", "output", session).raw_stdout  # a pipe gets what was written


def test_following_ends_with_the_session(sessions, cordon):
    sessions.create()
    session = sessions.start(command=["sh", "-c", "echo one; sleep 0.5; echo two >&2; sleep 0.5; echo three"])["session_id"]
    done = cordon("session", "output", session, "--follow")
    assert (done.stdout, done.stderr) == ("one\nthree\n", "two\n")
    lines = [json.loads(line) for line in cordon("session", "output", session, "--follow", "--json", "--since", "0").stdout.splitlines()]
    assert [event["index"] for event in lines] == list(range(1, 5)) and lines[-1]["type"] == "ended"


def test_an_interrupt_stops_a_session_in_the_foreground(sessions, cordon):
    project = sessions.create()
    process = cordon.start("session", "start", project, "--", "sleep", "1000")
    poll(lambda: sessions.ask("session", "list", project, "--status", "active")["sessions"], what="the session")
    process.send_signal(signal.SIGINT)
    assert process.wait(15) == 128 + 15
    assert sessions.ask("session", "list", project)["sessions"][0]["state"] == "cancelled"


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, cordon, *args):
        self.main, other = pty.openpty()
        self.process = cordon.start(*args, stdin=other, stdout=other, stderr=other)
        os.close(other)
        self.shown = b""

    def type(self, text):
        os.write(self.main, text.encode())

    def shows(self, text):
        """Whether it has come within a moment."""
        while text.encode() not in self.shown and select.select([self.main], [], [], 0.1)[0]:
            self.shown += os.read(self.main, 65536)
        return text.encode() in self.shown

    def wait_for(self, text, seconds=15):
        deadline = time.monotonic() + seconds
        while text.encode() not in self.shown:
            assert time.monotonic() < deadline, self.shown
            if select.select([self.main], [], [], 0.1)[0]:
                try:
                    self.shown += os.read(self.main, 65536)
                except OSError:
                    break
        assert text.encode() in self.shown, self.shown

    def close(self):
        os.close(self.main)


def test_a_terminal_can_be_attached_and_left(sessions, cordon):
    project = sessions.create()
    session = sessions.start("--terminal", command=["sh", "-c", "stty -echo; test -t 0 && echo is-a-terminal; while read line; do echo \"<$line>\"; stty size; done"])["session_id"]
    poll(lambda: "is-a-terminal" in sessions.text(session), what="the terminal")
    one = Terminal(cordon, "session", "attach", session)
    one.type("hello\n")
    one.wait_for("<hello>")
    subprocess.run(["stty", "rows", "33", "cols", "99"], stdin=one.main, check=True)
    one.process.send_signal(signal.SIGWINCH)
    poll(lambda: one.type("again\n") or one.shows("33 99"), what="the new size")
    one.type("\x1d")
    assert one.process.wait(10) == 0
    one.close()
    assert sessions.get(session)["status"] == "active"
    two = Terminal(cordon, "session", "attach", session)
    two.type("back\n")
    two.wait_for("<back>")
    two.type("\x03")  # Ctrl-C goes to the agent, whose shell ends
    assert two.process.wait(10) == 0
    two.close()
    assert sessions.cordon("session", "wait", session).returncode == 128 + 2
    plain = sessions.start("--new-session", command=["sleep", "1000"])["session_id"]
    assert sessions.refused("session", "attach", plain)["kind"] == "conflict"


def test_a_person_at_a_terminal_gets_one_inside(sessions, cordon):
    project = sessions.create()
    there = Terminal(cordon, "session", "start", project, "--", "sh", "-c", "test -t 0 && test -t 1 && echo yes-a-terminal; exit 4")
    there.wait_for("yes-a-terminal")
    assert there.process.wait(10) == 4
    there.close()


def test_the_environment_is_what_the_project_says(sessions, box):
    sessions.create("--env", "A=1", "--env-pass", "GIVEN", "--env-pass", "ABSENT", "--model", "m")
    env = {"GIVEN": "passed", "HIDDEN": "not for agents"}
    done = sessions.cordon("session", "start", sessions.project["id"], "--", "env", env=env)
    seen = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert seen["A"] == "1" and seen["GIVEN"] == "passed" and json.loads(seen["CORDON_AGENT"]) == {"model": "m"}
    assert "HIDDEN" not in seen and "ABSENT" not in seen and "CORDON_HOME" not in seen
    record = sessions.ask("session", "list", sessions.project["id"])["sessions"][0]
    assert "env" not in record and "passed" not in json.dumps(record)
    copies = [p.read_text() for p in sessions.top("sessions").iterdir()]
    assert len(copies) == 1 and json.loads(copies[0])["status"] == "completed" and '"A"' not in copies[0]


def test_network_and_limits_are_enforced(sessions):
    sessions.create("--net", "none", "--pids", "20")
    done = sessions.cordon("session", "start", sessions.project["id"], "--", "sh", "-c", "tail -n +3 /proc/net/dev | cut -d: -f1; for i in $(seq 100); do sleep 5 & done; wait")
    assert done.stdout.split() == ["lo"] and "fork" in done.stderr.lower()


def test_ended_sessions_are_cleaned_up_by_age(sessions):
    project = sessions.create()
    old = sessions.start(command=["true"])["session_id"]
    sessions.cordon("session", "wait", old)
    running = sessions.start("--new-session", command=["sleep", "1000"])["session_id"]
    assert sessions.ask("session", "cleanup")["removed"] == 0
    assert sessions.ask("session", "cleanup", "--max-age-hours", "0")["removed"] == 1
    assert not sessions.state(old).exists() and sessions.state(running).exists()
    assert [p.stem for p in sessions.top("sessions").iterdir()] == [running]
    assert sessions.refused("session", "get", old)["kind"] == "not_found"
    assert sessions.get(running)["status"] == "active"
    assert sessions.ask("session", "list", project)["total"] == 1


def test_ids_of_sessions_are_judged(sessions):
    for bad in ("", "..", "../../etc", "/etc", "x" * 1000, "-", "a\nb"):
        for verb in ("get", "send", "output", "attach", "wait", "stop"):
            done = sessions.cordon("session", verb, "--json", "--", bad, *(["x"] if verb == "send" else []))
            assert done.returncode == 2 and done.json("stderr")["kind"] == "usage", done
    assert sessions.refused("session", "get", "00000000-0000-4000-8000-000000000000")["kind"] == "not_found"


def test_many_start_at_once_in_one_workspace(sessions):
    project = sessions.create("--max-sessions", "50")
    results = []

    def start(number):
        results.append(sessions.cordon("session", "start", project, "--detach", "--json", "--new-session", "--", "sleep", "1000"))

    threads = [threading.Thread(target=start, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(done.returncode == 0 for done in results), [str(done) for done in results if done.returncode]
    assert sessions.ask("session", "list", project, "--status", "active")["total"] == 12


def test_the_process_of_a_session_is_not_to_be_had_by_hand(cordon, box):
    for arguments in (["00000000-0000-4000-8000-000000000000"], ["--help"], []):
        done = box.run(str(box.bin / "cordon-job"), *arguments)
        assert done.returncode == 2 and "session start" in done.stderr and not done.stdout
    assert cordon("session", "supervise", "00000000-0000-4000-8000-000000000000").returncode == 2
    assert "supervise" not in cordon("help", "all").stdout


def test_attachments_come_into_the_workspace(sessions, box):
    """Through the library's own request, which the MCP tool fills; here by its tool on the bare streams."""
    project = sessions.create("--isolation", command=["sh", "-c", "read a; read b; echo \"$a|$b\"; cat attachments/*; cat"])
    box.write(sessions.top("workspaces", sessions.project["default_workspace_id"], "attachments", "note.txt"), "mine")
    call = {
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": "session_send",
            "arguments": {
                "project_id": project, "message": "look",
                "attachments": [{"filename": "note.txt", "content_type": "text/plain", "data": base64.b64encode(b"theirs").decode()}],
            },
            "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}},
        },
    }  # fmt: skip
    answer = json.loads(sessions.cordon("mcp", input=json.dumps(call) + "\n").stdout)["result"]["structuredContent"]
    poll(lambda: "theirs" in sessions.text(answer["session_id"]), what="the attachment")
    assert "look|[attachment: attachments/1-note.txt]" in sessions.text(answer["session_id"])
    for name in ("../evil", ".hidden", "a/b", "", "x\ny"):
        call["params"]["arguments"]["attachments"][0]["filename"] = name
        refused = json.loads(sessions.cordon("mcp", input=json.dumps(call) + "\n").stdout)["result"]
        assert refused["isError"] and refused["structuredContent"]["error"]["kind"] == "usage"


@pytest.mark.soak
@pytest.mark.limit(300)
def test_a_start_that_hangs_holds_up_no_other_for_ever(sessions, box):
    """The process of the first session stops before it has done anything; the second start gives up, and says why."""
    slow = box.mkdir("slow")
    for name in ("cordon", "cordon-lens"):
        shutil.copy(box.bin / name, slow / name)
    box.write(slow / "cordon-job", f"#!/bin/sh\nkill -STOP $$\nexec {box.bin}/cordon-job \"$@\"\n", mode=0o755)
    sessions.create(command=["cat"])
    start = ["session", "start", sessions.project["id"], "--detach"]
    first = box.start(slow / "cordon", *start)
    hung = poll(lambda: [pid for pid in descendants() if "cordon-job" in command_line(pid)], what="the first start")
    second = sessions.cordon(*start, timeout=150)
    assert second.returncode == 125 and "another session is being started in the workspace" in second.stderr, second
    assert first.wait(60) == 125 and b"did not start in time" in first.stderr.read()
    for pid in hung:
        os.kill(pid, signal.SIGKILL)
    assert sessions.start()["spawned"] is True
