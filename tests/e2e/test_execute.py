# SPDX-License-Identifier: Apache-2.0
"""cordon execute, status and logs: what is printed, how runs end and are cancelled, and that nothing is left behind."""
import fcntl
import json
import os
import pty
import re
import signal
import struct
import termios
import time

import pytest

from support import TOP, descendants, poll, read_stat

PLAIN = [{"name": name, "role": "developer", "scope": ["src/**"]} for name in ("one", "two", "three four")]


def many(n, **more):
    return {"agents": [{"name": f"a{i:02}", "scope": ["out/**"], **more} for i in range(n)]}


@pytest.fixture
def repo(box):
    made = box.repo(files={"src/a": "", "agents.json": json.dumps({"agents": PLAIN})})
    box.mkdir("repo/out")
    return made


@pytest.fixture
def execute(cordon, repo):
    def run(*args, status=0, **options):
        done = cordon("execute", *args, cwd=repo, **options)
        assert done.returncode == status, done
        return done

    return run


def run_of(done):
    return re.search(r"\[EXECUTE\] run ([0-9a-f-]{36})", done.stderr).group(1)


def result(cordon, run, name):
    return {agent["agentName"]: agent for agent in cordon("status", run, "--json").json()[0]["agents"]}[name]


def supervisors(owner):
    """The processes that keep one agent each: children of the one that runs the command."""
    return [pid for pid in descendants() if (read_stat(pid) or (0, 0))[1] == owner]


# ---- what is printed ----


def test_one_agent_passes_bytes_status_and_input_through(execute):
    done = execute("--agent", "one", "--", "sh", "-c", r"printf 'a\000\377b'; echo err >&2; exit 9", status=9)
    assert done.raw_stdout == b"a\0\xffb" and "err\n" in done.stderr
    assert execute("--agent", "ONE", "--", "tr", "a-z", "A-Z", input="typed").stdout == "TYPED"
    assert execute("--agent", "one", "--command", "kill -9 $$", status=137).stdout == ""
    assert execute("--agent", "one", "--", "no-such-program", status=127).stdout == ""
    assert execute("--agent", "one", "--cwd", "temp", "--command", 'test "$PWD" = "$TMPDIR" && pwd').stdout.startswith("/run/")


def test_lines_of_several_agents_have_their_names_and_stay_apart(execute):
    done = execute("--agents", "one, three four", "--command", r"printf 'x\033[2Jy\nno end'; echo e$AGENT_NAME >&2")
    assert sorted(done.stdout.splitlines()) == sorted([
        r"[one]        x\e[2Jy", "[one]        no end", r"[three four] x\e[2Jy", "[three four] no end"]), done
    assert "[one]        eone\n" in done.stderr and "[three four] ethree four\n" in done.stderr
    assert "2 completed" in done.stderr and "\033" not in done.stdout + done.stderr


def test_a_refused_name_cannot_pretend_to_be_a_line_of_ours(execute, cordon):
    script = r"""printf 'half a line' >&2; touch "$(printf 'x\n[EXECUTE] run forged')" 2>/dev/null; printf ' and its end\n' >&2"""
    for args in (["--agent", "one"], ["--agents", "one,two"]):
        done = execute(*args, "--command", script)
        lines = done.stderr.splitlines() + cordon("logs").stdout.splitlines()
        assert not [line for line in lines if line.startswith("[EXECUTE] run forged")] and any(r"x\n[EXECUTE] run forged" in line for line in lines), done
        assert "half a line and its end\n" in done.stderr, "no line of ours stands inside one of the agent's"


def test_all_run_to_the_end_and_one_failure_is_status_1(execute):
    done = execute("--all", "--json", "--command", 'sleep 0.$((RANDOM % 3)); echo "$AGENT_NAME"; test "$AGENT_NAME" != two', status=1)
    results = done.json()
    assert [r["agentName"] for r in results] == ["one", "two", "three four"] and [r["state"] for r in results] == ["completed", "failed", "completed"]
    assert [r["stdout"] for r in results] == ["one\n", "two\n", "three four\n"] and results[1]["exitCode"] == 1 and len({r["runId"] for r in results}) == 1
    assert json.loads(done.stderr) == {"kind": "notice", "message": f"run {results[0]['runId']}"}


def test_a_result_has_all_its_fields(execute, box):
    one = execute("--agent", "one", "--json", "--command", "echo out; echo err >&2; cat agents.json; exit 4", status=4).json()
    assert {"runId", "agentName", "state", "exitCode", "signal", "stdout", "stderr", "startTime", "endTime", "durationMs", "error", "violations",
            "sessionId", "log", "enforcement", "outputCut"} <= set(one)
    assert (one["state"], one["exitCode"], one["signal"], one["error"], one["violations"]) == ("failed", 4, None, "exit code 4", 1)
    assert one["stdout"] == "out\n" and one["stderr"].startswith("err\n") and one["enforcement"]["tier"] == "full" and one["enforcement"]["missing"] == []
    assert one["startTime"] <= one["endTime"] and one["durationMs"] >= 0 and os.path.exists(one["log"]) and one["log"].startswith(str(box.state))


def test_output_in_a_result_is_bounded(execute, cordon):
    one = execute("--agent", "one", "--json", "--command", "seq 200000; echo last").json()
    assert one["outputCut"] is True and len(one["stdout"]) <= 65536 and one["stdout"].endswith("200000\nlast\n")
    log = cordon("logs", "--run", one["runId"])
    assert log.stdout.endswith("200000\nlast\n")


def test_events_are_json_lines_with_one_end_for_each_agent(execute):
    def events(*args, status):
        return [json.loads(line) for line in execute("--events", *args, status=status).stdout.splitlines()]

    seen = events("--agent", "one", "--command", "echo hi; echo no >&2", status=0)
    assert [e["event"] for e in seen][0] == "execution:start" and [e["event"] for e in seen][-1] == "execution:end"
    assert [(e["stream"], e["data"]) for e in seen if e["event"] == "execution:output"] in (
        [("stdout", "hi\n"), ("stderr", "no\n")], [("stderr", "no\n"), ("stdout", "hi\n")])
    assert seen[-1]["state"] == "completed" and {e["agentName"] for e in seen} == {"one"} and len({e["runId"] for e in seen}) == 1
    seen = events("--agent", "one", "--timeout", "300", "--", "sleep", "60", status=124)
    assert [e["event"] for e in seen] == ["execution:start", "execution:timeout", "execution:end"] and seen[-1]["state"] == "timeout"
    seen = events("--all", "--max-concurrent", "1", "--command", "kill -9 $$", status=1)
    assert [e["event"] for e in seen] == ["execution:start", "execution:end"] * 3 and seen[-1]["signal"] == 9


def test_a_deadlock_is_a_timeout_with_a_clear_message(execute, leftovers):
    script = "mkfifo $TMPDIR/f; trap '' TERM; (cat $TMPDIR/f) & cat $TMPDIR/f"
    began = time.monotonic()
    done = execute("--agent", "one", "--json", "--timeout", "400", "--command", script, status=124).json()
    assert done["state"] == "timeout" and "did not end within its time" in done["error"] and done["exitCode"] is None
    assert time.monotonic() - began >= 5, "SIGTERM was ignored, so the grace time passed before SIGKILL"
    leftovers.assert_none()


def test_a_dry_run_prints_the_plans_and_starts_nothing(execute, cordon):
    plans = execute("--all", "--json", "--dry-run", "--command", "touch src/made").json()
    assert [plan["agentName"] for plan in plans] == ["one", "two", "three four"] and all(plan["plan"]["mode"] == "strict" for plan in plans)
    text = execute("--agent", "one", "--dry-run", "--", "true").stdout
    assert text.startswith("agent      one\n") and "AGENT_NAME" in json.dumps(plans)
    assert cordon("status", "--json").json() == []


def test_wrong_usage(cordon, repo):
    for args in ([], ["--agent", "one", "--all"], ["--agent", "one", "--command", "x", "--", "y"], ["--agent", "one", "--timeout", "0", "--", "x"],
                 ["--agents", "one,ONE", "--", "x"], ["--all", "--max-concurrent", "65", "--", "x"], ["--cancel", "abcd1234", "--all"],
                 ["--agent", "one", "--json", "--events", "--", "x"], ["--agent", "one"], ["--agent", "one", "--cwd", "home", "--", "x"]):
        done = cordon("execute", *args, cwd=repo)
        assert done.returncode == 2 and done.stderr.startswith(("cordon: ", "{")) and done.stdout == "", (args, done)
    for run in ("x", "abc", "../../etc", "00000000"):
        done = cordon("execute", "--cancel", run, cwd=repo)
        assert done.returncode in (1, 2) and "run" in done.stderr, (run, done)


def screen(box, cordon, repo, *args):
    """What a terminal of 60 columns and 12 lines got."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 60, 0, 0))
    process = cordon.start(*args, cwd=repo, env={"TERM": "xterm"}, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    shown = bytearray()

    def ended():
        try:
            shown.extend(os.read(master, 65536))
        except OSError:
            return True
        return False

    poll(ended, 60, "the end")
    os.close(master)
    process.wait(10)
    return shown.decode()


def test_on_a_terminal_a_table_stands_below_the_lines(box, cordon, repo):
    shown = screen(box, cordon, repo, "execute", "--all", "--command", r"echo hello; printf 'bad\033]0;title\007\n'; sleep 0.6; cat agents.json")
    assert "\033]0;" not in shown and r"bad\e]0;title\x07" in shown, "what an agent writes does not control the terminal"
    last = shown.rsplit("\033[J", 1)[1].replace("\r", "")
    plain = re.sub(r"\033\[[0-9;]*m", "", last).splitlines()
    rows = {line.split("  ")[0].strip(): line for line in plain if re.match(r"(one|two|three four) ", line)}
    assert set(rows) == {"one", "two", "three four"} and all("failed" in row and "1 refused" in row for row in rows.values()), plain
    assert all(len(line) < 60 for line in rows.values()), "no row is wider than the terminal"
    assert "running" in shown and re.search(r"\033\[3\dm\[one\]", shown), "names are coloured"
    drawn = next(part for part in shown.split("\033[J") if "hello" in part)
    assert drawn.index("hello") < drawn.rindex("one  "), "lines scroll above the table"


# ---- status and logs ----


def test_status_and_logs_show_what_ran(execute, cordon, repo, box):
    first = run_of(execute("--agents", "one,two", "--command", "echo from $AGENT_NAME; cat agents.json", status=1))
    time.sleep(0.01)
    second = run_of(execute("--agent", "one", "--", "echo", "later"))
    shown = cordon("status", cwd=box.path)
    assert [line.split("\t")[:3] for line in shown.stdout.splitlines()] == [
        [first[:8], "one", "failed"], [first[:8], "two", "failed"], [second[:8], "one", "completed"]], shown
    assert [row["runId"] for row in cordon("status", "--json", "--limit", "1").json()] == [second]
    assert cordon("status", first[:6], "--json").json()[0]["root"] == str(repo)
    assert cordon("logs").stdout == "later\n"
    both = cordon("logs", "--run", first[:8]).stdout
    assert "[one] from one\n" in both and "[two] from two\n" in both and "[one] ! deny read: " in both and "! failed: exit code 1" in both
    assert cordon("logs", "--run", first, "--agent", "TWO").stdout.startswith("from two\n")
    events = [json.loads(line) for line in cordon("logs", "--run", first, "--agent", "two", "--json").stdout.splitlines()]
    assert [e["type"] for e in events][0] == "started" and events[-1]["type"] == "ended" and {e["agentName"] for e in events} == {"two"}
    for args in (["logs", "--run", "abcdef"], ["logs", "--agent", "twos", "--run", first], ["status", "abcdef"]):
        assert cordon(*args).returncode == 1
    assert "did you mean 'two'" in cordon("logs", "--agent", "twos", "--run", first).stderr


def test_nothing_has_run_yet(cordon):
    assert cordon("status").stdout == "" and cordon("status", "--json").json() == []
    done = cordon("logs")
    assert done.returncode == 1 and "no agent has run yet" in done.stderr


def test_logs_follow_and_status_watch_end_with_the_agents(cordon, repo, box):
    go = repo / "src/go"
    done = cordon("execute", "--detach", "--agents", "one,two", "--command", "echo begin; while ! test -e src/go; do sleep 0.05; done; echo end", cwd=repo)
    run = done.stdout.strip()
    following = cordon.start("logs", "--run", run, "--follow")
    watching = cordon.start("status", run, "--watch")
    poll(lambda: cordon("logs", "--run", run).stdout.count("begin") == 2, 30, "both agents")
    assert following.poll() is None and watching.poll() is None
    box.write("repo/src/go")
    out, _ = following.communicate(timeout=30)
    assert sorted(re.findall(rb"\[(\w+)\] (begin|end)\n", out)) == [(b"one", b"begin"), (b"one", b"end"), (b"two", b"begin"), (b"two", b"end")]
    out, _ = watching.communicate(timeout=30)
    assert out.count(b"completed") >= 2 and watching.returncode == 0


def test_what_is_old_is_removed_by_age(execute, cordon, box):
    old = run_of(execute("--agent", "one", "--", "true"))
    crews = box.state / "state/crew"
    week = time.time() - 8 * 24 * 3600
    for path in [crews / old, *(crews / old).rglob("*")]:
        os.utime(path, (week, week), follow_symlinks=False)
    kept = run_of(execute("--agent", "one", "--", "true"))
    assert (crews / old).exists(), "looked for at most once an hour"
    os.utime(box.state / "state/crew-cleaned", (week, week))
    new = run_of(execute("--agent", "one", "--", "true"))
    assert sorted(path.name for path in crews.iterdir()) == sorted([kept, new])


# ---- ends ----


def test_a_detached_run_survives_its_terminal_and_can_be_cancelled_from_anywhere(cordon, repo, box, leftovers):
    """Also what is still queued runs, or is cancelled."""
    box.write("repo/agents.json", json.dumps(many(3)))
    done = cordon("execute", "--detach", "--json", "--all", "--max-concurrent", "1", "--command", "echo up; sleep 300", cwd=repo)
    assert done.returncode == 0 and done.json()["agents"] == ["a00", "a01", "a02"], done
    run = done.json()["runId"]
    poll(lambda: result(cordon, run, "a00")["state"] == "running", 30, "the first agent")
    assert result(cordon, run, "a01")["state"] == "pending"
    cordon("execute", "--cancel", run, "--agent", "a00", cwd=box.path)
    poll(lambda: result(cordon, run, "a01")["state"] == "running", 30, "the second agent")
    cordon("execute", "--cancel", run, cwd=box.path)
    poll(lambda: [result(cordon, run, f"a0{i}")["state"] for i in range(3)] == ["cancelled"] * 3, 30, "the end of all")
    assert "before it started" in result(cordon, run, "a02")["error"]
    leftovers.assert_none()


def test_the_end_of_the_caller_ends_the_agents(cordon, repo, box, leftovers):
    for number, status in ((signal.SIGKILL, -9), (signal.SIGINT, 130), (signal.SIGTERM, 143)):
        running = cordon.start("execute", "--agents", "one,two", "--command", "touch src/up$AGENT_NAME; sleep 300 & wait", cwd=repo)
        poll(lambda: (repo / "src/upone").exists() and (repo / "src/uptwo").exists(), 30, "two agents")
        running.send_signal(number)
        assert running.wait(30) == status
        run = cordon("status", "--json").json()[-1]["runId"]
        poll(lambda: [result(cordon, run, name)["state"] for name in ("one", "two")] == ["cancelled"] * 2, 30, "both cancelled")
        for name in ("one", "two"):
            (repo / f"src/up{name}").unlink()
    leftovers.assert_none()


def test_a_reader_that_leaves_does_not_end_the_agents(box, cordon, repo):
    done = box.run("sh", "-c", f"{cordon.path} execute --all --command 'seq 20000; touch \"src/$AGENT_NAME\"' | head -1", cwd=repo)
    assert done.stdout.count("\n") == 1
    assert {path.name for path in (repo / "src").iterdir()} == {"a", "one", "two", "three four"}


@pytest.mark.long
@pytest.mark.limit(240)
def test_fifty_agents_at_once_end_as_they_should(cordon, repo, box, leftovers):
    """Success, failure, time-out, cancel, a killed supervisor and then a killed caller: every result is right and nothing is left."""
    agents = many(50)["agents"]
    for i, agent in enumerate(agents):
        kind = i % 5
        wait = "touch out/up-$AGENT_NAME; sleep 600 & wait"
        agent["command"] = ["sh", "-c", {0: "seq 100; exit 0", 1: "exit 3", 2: "sleep 600", 3: wait, 4: wait}[kind]]
        if kind == 2:
            agent["timeout"] = 3000
    box.write("repo/agents.json", json.dumps({"agents": agents}))
    running = cordon.start("execute", "--all", "--max-concurrent", "50", "--json", cwd=repo)
    waiting = [agents[i]["name"] for i in range(50) if i % 5 > 2]
    poll(lambda: all((repo / f"out/up-{name}").exists() for name in waiting), 120, "the agents that wait")
    run = cordon("status", "--json").json()[-1]["runId"]
    cancelled, killed = waiting[::2], waiting[1::2]
    for name in cancelled:
        assert cordon("execute", "--cancel", run, "--agent", name).returncode == 0

    def states(names):
        known = {agent["agentName"]: agent["state"] for agent in cordon("status", run, "--json").json()[0]["agents"]}
        return [known[name] for name in names]

    poll(lambda: states(cancelled) == ["cancelled"] * len(cancelled), 60, "the cancelled agents")
    poll(lambda: states([a["name"] for a in agents[2::5]]) == ["timeout"] * 10, 60, "the agents that time out")
    for pid in supervisors(running.pid):
        os.kill(pid, signal.SIGKILL)
    out, err = running.communicate(timeout=60)
    results = {r["agentName"]: r for r in json.loads(out)}
    assert running.returncode == 1 and len(results) == 50
    expected = {0: ("completed", 0), 1: ("failed", 3), 2: ("timeout", None)}
    for i, agent in enumerate(agents):
        one = results[agent["name"]]
        want = expected.get(i % 5, ("cancelled", None) if agent["name"] in cancelled else ("failed", None))
        assert (one["state"], one["exitCode"]) == want, one
        assert agent["name"] not in killed or "supervisor was killed" in one["error"]
        assert i % 5 or one["stdout"].endswith("\n100\n")
    leftovers.assert_none(20)
    for path in (repo / "out").iterdir():
        path.unlink()
    again = cordon.start("execute", "--agents", ",".join(waiting), "--max-concurrent", "50", cwd=repo)
    poll(lambda: all((repo / f"out/up-{name}").exists() for name in waiting), 120, "the agents of the second run")
    again.kill()
    again.wait(10)
    run = cordon("status", "--json").json()[-1]["runId"]
    poll(lambda: states(waiting) == ["cancelled"] * len(waiting), 60, "the end of all after their caller was killed")
    leftovers.assert_none(20)


def test_the_examples_are_valid(cordon, box):
    files = sorted((TOP / "examples/agents").glob("*agents.*"))
    assert len(files) == 2
    for path in files:
        assert "Configuration valid" in cordon("agent", "validate", str(path), cwd=box.path).stdout, path


def test_the_node_agent_and_the_script_of_the_examples_work(cordon, box):
    repo = box.repo(files={"src/a.ts": "// NOTE: first\nlet x = 1;\n", "src/deep/b.ts": "// NOTE second\n", "docs/notes.md": "# Notes\n"})
    for path in (TOP / "examples/agents").iterdir():
        box.write(f"repo/{'agents.json' if path.name == 'agents.json' else 'tools/' + path.name}", path.read_text(), mode=0o755)
    done = cordon("execute", "--agents", "notes,count", cwd=repo)
    assert done.returncode == 0, done
    assert "[notes] 2 notes in docs/NOTES.md" in done.stdout and (repo / "docs/NOTES.md").read_text().count("- ") == 2
    assert "[count] 2 files" in done.stdout