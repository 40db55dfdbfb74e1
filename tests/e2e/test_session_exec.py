# SPDX-License-Identifier: Apache-2.0
"""cordon session exec: a further command in a session that runs, with every layer that holds the agent."""
import json
import signal

from support import landlock_scopes, poll


def test_a_further_command_sees_what_the_agent_sees(sessions, cordon, box):
    sessions.create("--isolation", "--env", "KEY=of-the-project")
    agent = sessions.shell()
    sessions.say(agent, "echo here > /tmp/from-the-agent; echo mine > file")
    done = cordon("session", "exec", agent, "--", "sh", "-c", "pwd; cat /tmp/from-the-agent file; echo $KEY $CORDON_SESSION_ID; cat; echo oops >&2; exit 7", input="typed\n")
    assert done.returncode == 7
    assert done.stdout == f"/workspace\nhere\nmine\nof-the-project {agent}\ntyped\n" and done.stderr == "oops\n"
    assert "here\n" == sessions.say(agent, "cat /tmp/from-the-agent")
    assert any(event["text"] == "exec: sh" for event in sessions.ask("session", "output", agent)["events"])
    log = cordon("audit", "--json").stdout
    assert any(record.get("op") == "execute" and record["session_id"] == agent for record in map(json.loads, log.splitlines()))


def test_every_layer_is_on(sessions, cordon):
    """The same questions to the agent and to the command that came later: the same answers."""
    sessions.create("--isolation", "--protect", "AGENTS.md", "--protect", "missing", "--net", "none")
    sessions.box.write(sessions.top("AGENTS.md"), "rules")
    agent = sessions.shell()
    questions = (
        "grep -E '^(Cap|NoNewPrivs|Seccomp:|Uid|Gid|Groups)' /proc/self/status; "
        "echo x > AGENTS.md; mv AGENTS.md b; echo x > missing; mkdir missing; unshare -U true; cat /proc/self/mountinfo | cut -d' ' -f5-; "
        "for ns in user mnt pid ipc uts cgroup net; do readlink /proc/self/ns/$ns; done; ls /proc/self/fd | grep -v '^[0123]$'; ulimit -a; umask; env | sort"
    )
    workspace = sessions.top("workspaces", sessions.project["default_workspace_id"])
    sessions.box.write(workspace / "questions", questions)
    of_the_agent = sessions.say(agent, "sh questions")
    done = cordon("session", "exec", agent, "--", "sh", "-c", "sh questions 2>&1")
    plain = lambda text: [line for line in text.splitlines() if not line.startswith(("PWD=", "OLDPWD=", "_=", "SHLVL="))]  # noqa: E731
    assert plain(done.stdout) == plain(of_the_agent)
    assert "CapBnd:\t0000000000000000" in done.stdout and "NoNewPrivs:\t1" in done.stdout and "Seccomp:\t2" in done.stdout
    assert "Read-only file system" in done.stdout and "Device or resource busy" in done.stdout
    assert (workspace / "AGENTS.md").read_text() == "rules" and sorted(p.name for p in workspace.iterdir()) == ["AGENTS.md", "questions"]


def test_neither_reaches_the_other(sessions, cordon):
    sessions.create()
    agent = sessions.shell()
    pid = sessions.say(agent, "echo $$").strip()
    scopes = landlock_scopes()
    kill = "kill -9" if scopes else "kill -0"  # before Linux 6.12 they can signal each other, and PID 1 does not notice
    done = cordon("session", "exec", agent, "--", "sh", "-c", f"{kill} {pid}; kill -9 1; cat /proc/{pid}/environ /proc/1/environ /proc/{pid}/fd/0; ls /proc/{pid}/root/")
    assert done.stdout == "" and done.stderr.count("not permitted") == (2 if scopes else 0) and done.stderr.count("ermission denied") >= 3
    later = cordon.start("session", "exec", agent, "--", "sleep", "1000")
    found = poll(lambda: sessions.say(agent, "for p in /proc/[0-9]*; do grep -qs '^sleep' $p/cmdline && echo ${p#/proc/}; done").split(), what="the command")
    assert ("not permitted" in sessions.say(agent, f"{kill} {found[0]}")) is scopes
    assert later.poll() is None
    later.kill()
    poll(lambda: "sleep" not in sessions.say(agent, "cat /proc/[0-9]*/comm"), what="the end of the command whose caller was killed")
    assert sessions.get(agent)["status"] == "active"


def test_how_a_further_command_ends(sessions, cordon):
    sessions.create()
    agent = sessions.shell()
    run = lambda *args, **more: cordon("session", "exec", agent, "--", *args, **more)  # noqa: E731
    assert run("sh", "-c", "kill -TERM $$").returncode == 128 + 15
    assert run("no-such-program").returncode == 127
    assert run("/etc/passwd").returncode == 126
    assert run("").returncode == 2
    assert run("seq", "200000").stdout == "".join(f"{n}\n" for n in range(1, 200001))
    assert run("sha256sum", input="x" * 3_000_000).stdout.startswith("e55b8bdf621ddaa8")
    assert run("true", input="nobody reads this" * 100000).returncode == 0
    # What it leaves in the background goes with the session; its own end is what counts.
    assert run("sh", "-c", "sleep 1000 & echo started").stdout == "started\n"
    process = cordon.start("session", "exec", agent, "--", "sleep", "1000")
    poll(lambda: "sleep" in sessions.say(agent, "cat /proc/[0-9]*/comm"), what="the command")
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 128 + 2
    last = cordon.start("session", "exec", agent, "--", "sh", "-c", "echo ready; sleep 1000")
    assert last.stdout.readline() == b"ready\n"
    sessions.cordon("session", "stop", agent, "--grace", "100ms")
    assert last.wait(10) in (125, 128 + 15, 128 + 9)
    assert sessions.refused("session", "exec", agent, "--", "true", status=125)["kind"] == "conflict"
    assert cordon("session", "exec", agent).returncode == 2


def test_at_most_so_many_at_once(sessions, cordon):
    sessions.create()
    agent = sessions.shell()
    running = [cordon.start("session", "exec", agent, "--", "sh", "-c", "echo up; sleep 1000") for _ in range(8)]
    assert all(process.stdout.readline() == b"up\n" for process in running)
    assert cordon("session", "exec", agent, "--", "true").returncode == 126
    running.pop().kill()
    poll(lambda: cordon("session", "exec", agent, "--", "true").returncode == 0, what="a free place")
    assert sessions.get(agent)["status"] == "active"
