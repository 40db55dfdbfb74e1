# SPDX-License-Identifier: Apache-2.0
"""How a run begins and ends: exit codes, time-outs, signals, the death of the supervisor, many at once."""
import json
import os
import random
import resource
import secrets
import signal
import subprocess
import time

import pytest

from support import descendants, poll


def sh(cordon, script, *options, **kw):
    return cordon("run", *options, "--", "/bin/sh", "-c", script, **kw)


@pytest.fixture
def repo(box):
    return box.repo(files={"a": "a\n"})


def new_marker():
    """Seconds to sleep that nobody else sleeps. Not from `random`: workers that seeded it alike would share them."""
    return str(10**8 + secrets.randbelow(10**8))


def processes_with(marker):
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and marker in read_cmdline(pid)]


def read_cmdline(pid):
    try:
        return open(f"/proc/{pid}/cmdline", "rb").read()
    except OSError:
        return b""


@pytest.mark.parametrize("script, code", [("exit 0", 0), ("exit 1", 1), ("exit 77", 77), ("kill -9 $$", 137), ("kill -15 $$", 143)])
def test_the_agents_own_status_passes_through(cordon, repo, script, code):
    assert sh(cordon, script, cwd=repo).returncode == code


def test_program_not_found_is_127_and_not_executable_126(cordon, box, repo):
    missing = cordon("run", "--", "no-such-program", cwd=repo)
    assert missing.returncode == 127 and "no-such-program" in missing.stderr and len(missing.stderr.splitlines()) == 1
    box.write("repo/data", "not a program", mode=0o644)
    assert cordon("run", "--", "./data", cwd=repo).returncode == 126


@pytest.mark.parametrize("args", [["--root", "/no/such/dir"], ["--root", "/"], ["--root", "/usr"], ["--share", "/no/such"],
                                  ["--policy", "/no/such.yaml"], ["--at", "/proc/x"], ["--home", "/no/such"]])
def test_a_refusal_is_125_in_one_clear_line(cordon, repo, args):
    result = cordon("run", *args, "--", "true", cwd=repo)
    assert result.returncode == 125 and len(result.stderr.splitlines()) == 1 and result.stderr.startswith("cordon: "), result
    as_json = cordon("run", "--json", *args, "--", "true", cwd=repo)
    value = as_json.json("stderr")
    assert as_json.returncode == 125 and (value.get("error") or value)["kind"], as_json


@pytest.mark.parametrize("args", [["--net", "some host"], ["--timeout", "soon"], ["--env", "=x"], ["--at", "relative"], ["--no-such"], []])
def test_wrong_usage_is_2(cordon, repo, args):
    assert cordon("run", *args, *(["--", "true"] if args else []), cwd=repo).returncode == 2


def test_timeout_sends_term_then_kills_the_whole_tree(cordon, box, repo):
    marker = new_marker()
    result = sh(cordon, f"trap 'echo got-term; exit 0' TERM; (trap '' TERM; setsid sleep {marker}) & sleep {marker} & wait",
                "--timeout", "500ms", "--grace", "300ms", "--result", str(box.path / "r.json"), cwd=repo)
    assert result.returncode == 124 and "got-term" in result.stdout and result.seconds < 10
    assert not processes_with(marker.encode())
    value = json.loads((box.path / "r.json").read_text())
    assert value["state"] == "timeout" and value["limits_hit"]["timeout"]


def test_an_agent_that_ignores_term_is_killed_after_the_grace(cordon, repo):
    marker = new_marker()
    result = sh(cordon, f"trap '' TERM; setsid sh -c \"trap '' TERM; sleep {marker}\" & while :; do sleep 0.05; done",
                "--timeout", "300ms", "--grace", "300ms", cwd=repo)
    assert result.returncode == 124 and result.seconds < 10 and not processes_with(marker.encode())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_cordon_ends_the_tree(cordon, repo, number):
    marker = new_marker()
    process = cordon.start("run", "--", "sh", "-c", f"echo up; setsid sleep {marker} & sleep {marker}", cwd=repo)
    assert process.stdout.readline() == b"up\n"
    process.send_signal(number)
    assert process.wait(15) == 128 + number
    assert not processes_with(marker.encode())


def test_background_processes_end_with_the_agent(cordon, repo):
    marker = new_marker()
    assert sh(cordon, f"setsid sleep {marker} >/dev/null 2>&1 & nohup sleep {marker} >/dev/null 2>&1 & exit 0", cwd=repo).returncode == 0
    assert not processes_with(marker.encode())


def own_children():
    """All children of the tests, zombies too: they adopt whatever a run leaves, because they are a subreaper."""
    return {int(pid) for task in os.listdir("/proc/self/task") for pid in open(f"/proc/self/task/{task}/children", encoding="ascii").read().split()}


@pytest.mark.parametrize("options", [[], ["--net", "none"], ["--net", "localhost:9"], ["--cow"], ["--lens", "always"], ["--pids", "50"]],
                         ids=["plain", "own network", "list of hosts", "view", "lens", "limit"])
def test_no_process_of_a_run_exists_when_cordon_run_has_returned(cordon, repo, options):
    """PID 1, the hand, the lens and the network: none lives, and none waits to be reaped."""
    before = own_children()
    for _ in range(10):
        assert sh(cordon, "echo made >made; rm made; (sleep 1000 &); true", *options, cwd=repo).returncode == 0
        assert own_children() <= before
    assert cordon("run", *options, "--", "no-such-program", cwd=repo).returncode == 127
    assert own_children() <= before


def test_the_death_of_the_supervisor_ends_everything(cordon, repo, leftovers):
    marker = new_marker()
    process = cordon.start("run", "--pids", "50", "--", "sh", "-c", f"setsid sleep {marker} & echo up; sleep {marker}", cwd=repo)
    assert process.stdout.readline() == b"up\n"
    process.kill()
    process.wait(10)
    poll(lambda: not processes_with(marker.encode()), what="the end of the sandbox")
    gc = cordon("gc", "--json")
    assert gc.returncode == 0 and gc.json()["records"] == 1
    leftovers.assert_none()


def test_gc_leaves_live_runs_alone(cordon, repo):
    process = cordon.start("run", "--pids", "50", "--", "sh", "-c", "echo up; read x; echo still here", cwd=repo, stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    assert cordon("gc", "--json").json()["live"] == 1
    out, _ = process.communicate(b"go\n", timeout=10)
    assert out == b"still here\n" and process.returncode == 0


def test_result_object_says_what_happened(cordon, box, repo):
    result = sh(cordon, "exit 3", "--json", cwd=repo)
    value = result.json("stderr")
    assert value["state"] == "failed" and value["exit_code"] == 3 and value["signal"] is None and value["violations"] == 0
    assert value["enforcement"]["tier"] == "full" and value["enforcement"]["missing"] == []
    assert value["started_at"] <= value["ended_at"] and value["duration_ms"] >= 0
    killed = sh(cordon, "kill -9 $$", "--json", cwd=repo).json("stderr")
    assert killed["state"] == "failed" and killed["signal"] == 9 and killed["exit_code"] is None


@pytest.mark.serial
@pytest.mark.limit(300)
def test_500_concurrent_runs_leave_nothing_behind(cordon, box, repo, leftovers, who):
    count = 500
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit[1], 8192), limit[1]))
    try:
        runs = [cordon.start("run", "--", "sh", "-c", "echo up; read x", cwd=repo, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
                for _ in range(count)]
        for run in runs:
            assert run.stdout.readline() == b"up\n"
        assert all(run.poll() is None for run in runs)
        for run in runs:
            run.stdin.close()
        codes = [run.wait(60) for run in runs]
        assert all(code in (0, 1) for code in codes)
        for run in runs:
            run.stdout.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    poll(lambda: not descendants(), seconds=20, what="the end of every process")
    assert os.listdir(box.state / "state/runs") == []
    leftovers.assert_none()


@pytest.mark.serial
@pytest.mark.limit(200)
def test_killing_the_supervisor_at_50_random_instants_leaves_nothing_that_gc_does_not_clean(cordon, box, repo, leftovers):
    marker = new_marker()
    seed = random.randrange(10**9)
    rng = random.Random(seed)
    began = time.monotonic()
    assert sh(cordon, "true", "--pids", "20", "--protect", "new/name", cwd=repo).returncode == 0
    whole = time.monotonic() - began
    for _ in range(50):
        process = cordon.start("run", "--pids", "20", "--memory", "200M", "--protect", "new/name", "--", "sleep", marker, cwd=repo)
        time.sleep(rng.uniform(0, 1.5 * whole))
        process.kill()
        process.communicate()
    poll(lambda: not processes_with(marker.encode()), seconds=20, what=f"the end of every sandbox (seed {seed})")
    poll(lambda: not descendants(), seconds=20, what="the end of every process")
    assert cordon("gc").returncode == 0
    assert os.listdir(box.state / "state/runs") == []
    assert sorted(os.listdir(repo)) == [".git", "a"]
    leftovers.assert_none()
    assert cordon("audit", "verify").returncode == 0
