# SPDX-License-Identifier: Apache-2.0
"""session_exec: a further command in a session, through the tools."""
import json
import random

from support import poll


def start(client, **settings):
    project = client.tool("project_create", name="p", init_git=False, **settings)["id"]
    return client.tool("session_start", project_id=project, command=["sleep", "1000"])["session_id"]


def commands(box):
    """The command lines of all processes."""
    return box.run("ps", "-eo", "args").stdout


def test_a_command_runs_in_the_session_and_its_output_comes_back(client, cordon):
    session = start(client, workspace_isolation=True, protected_paths=["AGENTS.md"], env={"KEY": "of-the-project"})
    done = client.tool("session_exec", session_id=session, command=["sh", "-c", "pwd; echo $KEY; cat; echo oops >&2; exit 7"], input="typed\n")
    assert done == {"session_id": session, "timed_out": False, "stdout": "/workspace\nof-the-project\ntyped\n", "stderr": "oops\n", "exit_code": 7}
    killed = client.tool("session_exec", session_id=session, command=["sh", "-c", "kill -TERM $$"])
    assert killed["signal"] == 15 and "exit_code" not in killed
    # The layers of the session hold it: the protected path, and what is not there.
    held = client.tool("session_exec", session_id=session, command=["sh", "-c", "echo x > AGENTS.md; unshare -U true; ls /home /root; grep Seccomp: /proc/self/status"])
    assert "AGENTS.md" in held["stderr"] and "not permitted" in held["stderr"] and "Seccomp:\t2" in held["stdout"]
    odd = client.tool("session_exec", session_id=session, command=["printf", r"\377\000a"])
    assert "\x00" not in odd["stdout"] and odd["stdout"].endswith("a") and "ff" in odd["stdout"]
    for command, word in ((["no-such-program"], "no-such-program"), ([], "command"), ([""], "command")):
        assert word in client.refused("session_exec", session_id=session, command=command)["message"]
    audit = [json.loads(line) for line in cordon("audit", "--json", "--kind", "call").stdout.splitlines()]
    assert any(record.get("op") == "execute" and record["session_id"] == session for record in audit)
    assert any(record["detail"].get("tool") == "session_exec" for record in audit if "detail" in record)
    client.tool("session_stop", session_id=session, grace_seconds=0)
    assert client.refused("session_exec", session_id=session, command=["true"])["kind"] == "conflict"


def test_long_output_is_bounded_and_keeps_beginning_and_end(connect):
    client = connect("v1")
    session = start(client)
    done = client.tool("session_exec", session_id=session, command=["seq", "1000000"])
    assert done["exit_code"] == 0 and len(done["stdout"]) < 200_000
    assert done["stdout"].startswith("1\n2\n") and done["stdout"].endswith("\n999999\n1000000\n") and "bytes are left out here]" in done["stdout"]
    exact = client.tool("session_exec", session_id=session, command=["seq", "20000"])
    assert exact["stdout"] == "".join(f"{n}\n" for n in range(1, 20001))
    big = client.tool("session_exec", session_id=session, command=["wc", "-c"], input="x" * 1_000_000)
    assert big["stdout"] == "1000000\n"
    assert client.refused("session_exec", session_id=session, command=["wc"], input="x" * 1_048_577)["kind"] == "usage"
    client.tool("session_stop", session_id=session, grace_seconds=0)


def test_a_time_out_and_a_cancel_end_the_command_and_not_the_session(connect, box):
    client = connect("v2")
    session = start(client)
    first, second = random.sample(range(70_000, 80_000), 2)  # others run this test at the same time
    over = client.tool("session_exec", session_id=session, command=["sh", "-c", f"echo before; exec sleep {first}"], timeout_seconds=1)
    assert over["timed_out"] is True and over["stdout"] == "before\n" and "exit_code" not in over
    poll(lambda: f"sleep {first}" not in commands(box), 20, "the end of the command whose time was over")
    number = client.start("tool", name="session_exec", args={"session_id": session, "command": ["sleep", str(second)], "timeout_seconds": 600}, key="k", timeout=300000)
    poll(lambda: f"sleep {second}" in commands(box), 20, "the command")
    client.ask("cancel", key="k")
    assert "error" in client.finish(number)
    poll(lambda: f"sleep {second}" not in commands(box), 20, "the end of the command that was cancelled")
    assert client.tool("session_get", session_id=session)["status"] == "active"
    client.tool("session_stop", session_id=session, grace_seconds=0)


def test_the_server_goes_on_meanwhile(raw):
    """Also while a command writes without end, and while one leaves a child behind that does."""
    server = raw()
    call = lambda id, tool, **args: server.request(id, "tools/call", {"name": tool, "arguments": args})  # noqa: E731

    def answer(id):
        while True:
            message = server.receive(60)
            if message.get("id") == id:
                return message["result"]["structuredContent"]
            kept[message.get("id")] = message

    kept = {}
    call("p", "project_create", name="p", init_git=False)
    project = answer("p")["id"]
    call("s", "session_start", project_id=project, command=["sleep", "1000"])
    session = answer("s")["session_id"]
    call("flood", "session_exec", session_id=session, command=["yes"], timeout_seconds=5)
    call("idle", "session_exec", session_id=session, command=["sleep", "1000"], timeout_seconds=600)
    call("get", "session_get", session_id=session)
    assert answer("get")["status"] == "active" and not kept
    call("child", "session_exec", session_id=session, command=["sh", "-c", "yes & echo done"])
    assert answer("child")["exit_code"] == 0
    flood = kept["flood"]["result"]["structuredContent"] if "flood" in kept else answer("flood")
    assert flood["timed_out"] is True and len(flood["stdout"]) < 200_000 and "idle" not in kept
    call("stop", "session_stop", session_id=session, grace_seconds=0)
    assert answer("stop")["status"] in ("completed", "failed")


def test_the_agent_of_a_session_runs_commands_where_it_may_send(connect):
    owner = connect("v1", options=["--approved"])
    project = owner.tool("project_create", name="p", init_git=False, workspace_isolation=True)["id"]
    for workspace in ("mine", "theirs"):
        owner.tool("workspace_create", project_id=project, workspace_id=workspace)
    own, foreign = (owner.tool("session_start", project_id=project, workspace_id=name, command=["sleep", "1000"])["session_id"] for name in ("mine", "theirs"))
    agent = connect("v2", options=["--session", own])
    assert agent.tool("session_exec", session_id=own, command=["pwd"])["stdout"] == "/workspace\n"
    assert agent.refused("session_exec", session_id=foreign, command=["true"])["kind"] == "policy_denied"
    for session in (own, foreign):
        owner.tool("session_stop", session_id=session, grace_seconds=0)
