# SPDX-License-Identifier: Apache-2.0
"""Many runs at once: the bound, the order, results that survive, cancel from anywhere, deaths of every process, and what is left."""
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import stat
import subprocess
import threading
import time
import uuid

import pytest

from support import built_executable, command_line, descendants, kill_quietly, poll, read_stat

ENDED = {"completed", "failed", "timeout", "cancelled", "refused", "lost"}
EIGHT_DAYS = 8 * 24 * 3600


class Owner:
    """A running driver: the lines it printed so far, and orders for it."""

    def __init__(self, process):
        self.process = process
        self.pid = process.pid
        self.lines = []
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(json.loads(line))

    def order(self, text):
        self.process.stdin.write(f"{text}\n".encode())
        self.process.stdin.flush()

    @property
    def id(self):
        return poll(lambda: next((line["crew"] for line in self.lines if "crew" in line), None), 20, "the crew")

    def states(self, name):
        return [line["state"] for line in self.lines if line.get("name") == name and "state" in line]

    def job(self, name):
        """What was last heard of a job."""
        return [line for line in self.lines if line.get("name") == name and "state" in line][-1]

    def until(self, name, *states, seconds=60):
        poll(lambda: set(self.states(name)) & set(states), seconds, f"{name} {states}")

    def text(self, name, stream=1):
        index = self.job(name)["job"]
        return "".join(line["text"] for line in list(self.lines) if line.get("job") == index and line.get("stream") == stream)

    def end(self, seconds=100):
        """The last line, after the driver has ended by itself."""
        self.process.stdin.close()
        self.process.stdin = None
        status = self.process.wait(seconds)
        self.thread.join(10)
        assert status == 0 and self.lines[-1].get("done"), (status, self.lines[-5:])
        return self.lines[-1]


class Crews:
    def __init__(self, box):
        self.box = box
        self.program = box.bin / "crew_driver"
        self.dir = box.state / "state" / "crew"
        if not self.program.exists():
            temporary = box.bin / f"crew_driver.{os.getpid()}"
            shutil.copyfile(built_executable().parent / "tests" / "crew_driver", temporary)
            temporary.chmod(0o755)
            temporary.rename(self.program)

    def job(self, name, *argv, **more):
        """A job with a root of its own; one argument is a shell script."""
        root = more.pop("root", None) or self.box.mkdir(f"work/{name}")
        command = ["sh", "-c", argv[0], name] if len(argv) == 1 else list(argv)
        return {"name": name, "root": str(root), "argv": command, **more}

    def start(self, *jobs, max=8, **more):
        process = self.box.start(str(self.program), "run", stdin=subprocess.PIPE)
        owner = Owner(process)
        owner.order(json.dumps({"max": max, "jobs": jobs, **more}))
        return owner

    def run(self, *jobs, **more):
        owner = self.start(*jobs, **more)
        owner.end()
        return owner

    def ask(self, *args, status=0):
        done = self.box.run(str(self.program), *args)
        assert done.returncode == status, done
        return [json.loads(line) for line in done.stdout.splitlines()]

    def show(self, crew):
        return self.ask("show", crew)[0]

    def jobs(self, crew):
        return {job["name"]: job for job in self.show(crew)["jobs"]}

    def log(self, crew, index):
        return self.ask("log", crew, str(index))[0]

    def supervisors(self, owner):
        """{pid} of the live children of an owner."""
        try:
            pids = pathlib.Path(f"/proc/{owner.pid}/task/{owner.pid}/children").read_text().split()
        except (FileNotFoundError, ProcessLookupError):
            return set()
        return {int(pid) for pid in pids if (found := read_stat(pid)) and found[0] not in "ZX"}

    def supervisor(self, owner, index):
        """The pid of the process that holds the lock of a job."""
        lock = str(self.dir / owner.id / str(index) / "alive")
        for pid in self.supervisors(owner):
            if lock in [os.readlink(path) for path in pathlib.Path(f"/proc/{pid}/fd").iterdir()]:
                return pid
        return None


@pytest.fixture
def crews(box):
    return Crews(box)


def nothing_lives(leftovers):
    poll(lambda: not descendants(), 20, "the end of every process")
    leftovers.assert_none()


# ---- many at once ----


@pytest.mark.limit(300)
def test_200_jobs_run_8_at_a_time_in_order_and_every_result_is_right(crews, box, cordon, leftovers):
    total, bound = 200, 8
    script = "echo mine > own; echo stolen > ../j{other}/stolen; cat ../j{other}/own; echo out-$0; exit {code}"
    jobs = [crews.job(f"j{i}", script.format(other=(i + 1) % total, code=i % 5)) for i in range(total)]
    owner = crews.start(*jobs, max=bound)
    seen = []
    while owner.process.poll() is None and not any("done" in line for line in owner.lines):
        seen.append(len(crews.supervisors(owner)))
        time.sleep(0.005)
    done = owner.end()
    # From the host, and by what the owner heard.
    assert max(seen) == bound and len(seen) > 50
    active = most = 0
    for line in owner.lines:
        active += (line.get("state") == "starting") - (line.get("state") in ENDED)
        most = max(most, active)
    assert most == bound and active == 0
    assert [line["name"] for line in owner.lines if line.get("state") == "starting"] == [job["name"] for job in jobs]
    on_disk = crews.jobs(owner.id)
    for i in range(total):
        name = f"j{i}"
        job = owner.job(name)
        assert (job["state"], job["exit_code"], job["own_exit"]) == ("failed" if i % 5 else "completed", i % 5, i % 5), job
        assert on_disk[name] == job
        assert owner.states(name) == ["starting", "running", job["state"]]
        assert owner.text(name) == f"out-{name}\n"
        assert os.listdir(box.path / "work" / name) == ["own"], "the sibling could write here"
        assert (box.path / "work" / name / "own").read_text() == "mine\n"
        assert 0 < job["started"] <= job["ended"]
    assert done["max_rss_kb"] < 64 << 10
    assert len({job["run_id"] for job in on_disk.values()}) == total
    nothing_lives(leftovers)
    assert os.listdir(box.state / "state/runs") == []
    assert cordon("audit", "verify").returncode == 0


def test_a_mixture_ends_as_each_job_must(crews, box, leftovers):
    owner = crews.run(
        crews.job("good", "cat; echo fine"),
        crews.job("bad", "exit 7"),
        crews.job("late", "sleep 60", timeout_ms=400),
        crews.job("killed", "kill -9 $$"),
        crews.job("missing", "no-such-program", "x"),
        crews.job("nowhere", "true", vanish=True),
        crews.job("fed", "cat", "-", input=str(box.write("question", "answer 42\n"))),
        crews.job("torn", r"printf '\303'; sleep 0.2; printf '\251\377\n'; echo err >&2"),
        max=3,
        label="a mixture of äöü",
    )
    states = {name: (owner.job(name)["state"], owner.job(name)["own_exit"]) for name in ("good", "bad", "late", "killed", "missing", "nowhere")}
    assert states == {
        "good": ("completed", 0), "bad": ("failed", 7), "late": ("timeout", 124), "killed": ("failed", 137),
        "missing": ("refused", 127), "nowhere": ("refused", 125),
    }  # fmt: skip
    assert owner.text("good") == "fine\n", "the standard input is empty"
    assert owner.text("fed") == "answer 42\n"
    assert owner.text("torn", 2) == "err\n"
    assert "no-such-program" in owner.job("missing")["message"] and owner.job("nowhere")["message"]
    record = crews.show(owner.id)
    assert record["label"] == "a mixture of äöü" and record["owned"] is False and record["max"] == 3
    for job in record["jobs"]:
        assert job == owner.job(job["name"])
    events = crews.log(owner.id, owner.job("torn")["job"])["events"]
    assert "".join(event["text"] for event in events if event["type"] == "stdout") == "é\\xff\n"
    assert events[0]["type"] == "started" and (events[-1]["type"], events[-1]["text"]) == ("ended", "completed: exit code 0")
    assert crews.ask("list")[0]["id"] == owner.id
    for path in (crews.dir, *crews.dir.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    nothing_lives(leftovers)


def test_violations_are_heard_counted_and_logged(crews):
    owner = crews.run(crews.job("curious", "mkdir NEVER.md; echo x > src/a.py; echo x > src/a.ts; exit 0", protect=["NEVER.md"]),
                      crews.job("lens", "mkdir src; echo x > src/a.ts; echo x > src/a.py; ls src; exit 0", rw=["src/**/*.ts"]))  # fmt: skip
    for name in ("curious", "lens"):
        job = owner.job(name)
        heard = [line for line in owner.lines if line.get("job") == job["job"] and "event" in line]
        assert job["state"] == "completed" and job["violations"] == sum(line["count"] for line in heard) > 0, (job, heard)
        assert any(event["type"] == "violation" for event in crews.log(owner.id, job["job"])["events"])
    assert owner.text("lens") == "a.ts\n"


def test_names_and_bounds_are_judged_before_anything_is_made(crews, leftovers):
    hostile = ["", "a/b", "../../x", "a\nb", " a", "a ", "ä", "x" * 65, "a\x1b[2J", "%s"]
    owner = crews.run(*[crews.job("x", "true") | {"name": name} for name in hostile], crews.job("good", "true"), crews.job("good", "true"),
                      crews.job("x" * 64, "true"), crews.job("terminal", "true", terminal=True), crews.job("empty", "true") | {"argv": []})  # fmt: skip
    errors = [line["error"] for line in owner.lines if "error" in line]
    assert [error["kind"] for error in errors] == ["usage"] * len(hostile) + ["conflict", "usage", "usage"]
    assert all("\n" not in error["message"] and "\x1b" not in error["message"] for error in errors)
    assert list(crews.jobs(owner.id)) == ["good", "x" * 64]
    for wrong in ({"max": 0}, {"max": 65}, {"label": "a\x1b[2J"}, {"label": "x" * 257}):
        refused = crews.start(**wrong)
        assert refused.process.wait(20) == 1
        refused.thread.join(10)
        assert refused.lines[0]["error"]["kind"] in ("usage", "limit")
    assert len(crews.ask("list")) == 1
    for args in (["show", "../x"], ["show", "x"], ["cancel", "..", "good"]):
        assert crews.ask(*args, status=1)[0]["error"]["kind"] == "usage"
    assert crews.ask("show", str(uuid.uuid4()), status=1)[0]["error"]["kind"] == "not_found"
    assert crews.ask("cancel", owner.id, "nobody", status=1)[0]["error"]["kind"] == "not_found"
    nothing_lives(leftovers)


# ---- cancel ----


@pytest.mark.parametrize("where", ["owner", "elsewhere"])
def test_one_of_five_is_cancelled_and_four_are_unharmed(crews, box, leftovers, where):
    script = "trap 'echo bye; exit 0' TERM; echo ready; while [ ! -e go ]; do sleep 0.05; done; echo done; exit 4"
    names = [f"agent-{i}" for i in range(5)]
    owner = crews.start(*[crews.job(name, script) for name in names])
    for name in names:
        owner.until(name, "running")
    poll(lambda: all("ready" in owner.text(name) for name in names), 20, "five agents")
    for _ in range(2):  # asking again changes nothing
        owner.order("cancel agent-2") if where == "owner" else crews.ask("cancel", owner.id, "agent-2")
    owner.until("agent-2", "cancelled")
    assert owner.text("agent-2") == "ready\nbye\n" and owner.job("agent-2")["own_exit"] == 143
    assert len(crews.supervisors(owner)) == 4
    crews.ask("cancel", owner.id, "agent-2")
    for name in names:
        box.write(f"work/{name}/go")
    owner.end()
    for name in names:
        if name != "agent-2":
            assert (owner.job(name)["state"], owner.job(name)["exit_code"]) == ("failed", 4)
            assert owner.text(name) == "ready\ndone\n"
    assert crews.jobs(owner.id)["agent-2"]["state"] == "cancelled"
    crews.ask("cancel", owner.id, "agent-0")
    assert crews.jobs(owner.id)["agent-0"]["state"] == "failed", "what has ended keeps its result"
    nothing_lives(leftovers)


@pytest.mark.parametrize("where", ["owner", "elsewhere"])
def test_cancelling_all_starts_nothing_that_was_queued_or_comes_later(crews, box, leftovers, where):
    jobs = [crews.job(f"j{i}", "echo started > mark; exec sleep 60") for i in range(8)]
    owner = crews.start(*jobs, max=2, stay=True)
    owner.until("j1", "running")
    # One that is queued goes alone, and at once.
    owner.order("cancel j5") if where == "owner" else crews.ask("cancel", owner.id, "j5")
    owner.until("j5", "cancelled")
    assert crews.jobs(owner.id)["j5"]["state"] == "cancelled" and crews.jobs(owner.id)["j4"]["state"] == "queued"
    owner.order("cancel-all") if where == "owner" else crews.ask("cancel", owner.id)
    for job in jobs:
        owner.until(job["name"], "cancelled")
    owner.order("add " + json.dumps(crews.job("later", "echo started > mark")))
    owner.until("later", "cancelled")
    owner.end()
    assert {job["state"] for job in crews.show(owner.id)["jobs"]} == {"cancelled"}
    assert [owner.states(job["name"]) for job in jobs[2:]] == [["cancelled"]] * 6
    for job in [*jobs[2:], {"name": "later"}]:
        assert os.listdir(box.path / "work" / job["name"]) == []
    nothing_lives(leftovers)


def test_an_owner_that_waits_cancels_at_the_first_signal_and_kills_at_the_second(crews, leftovers):
    stubborn = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
    owner = crews.start(crews.job("polite", "echo ready; exec sleep 60"), crews.job("stubborn", stubborn, grace_ms=60000), crews.job("third", "true"),
                        max=2, wait=True)  # fmt: skip
    poll(lambda: len(owner.lines) > 4 and all("ready" in owner.text(name) for name in ("polite", "stubborn")), 30, "both")
    os.kill(owner.pid, signal.SIGINT)
    owner.until("polite", "cancelled")
    owner.until("third", "cancelled")
    assert owner.states("stubborn")[-1] == "running"
    began = time.monotonic()
    os.kill(owner.pid, signal.SIGINT)
    assert owner.end()["signal"] == signal.SIGINT
    assert time.monotonic() - began < 30 and owner.job("stubborn")["state"] == "cancelled" and owner.states("third") == ["cancelled"]
    nothing_lives(leftovers)


def test_a_cancel_from_elsewhere_holds_at_any_instant_of_a_start(crews, leftovers):
    rng = random.Random(seed := random.randrange(10**9))
    owner = crews.start(stay=True, max=2)
    crew = owner.id
    for i in range(20):
        name = f"j{i}"
        owner.order("add " + json.dumps(crews.job(name, "sleep 60", grace_ms=200)))
        poll(lambda name=name: name in (crews.dir / crew / "jobs").read_text().split(), 10, "the job")
        time.sleep(rng.uniform(0, 0.01))
        crews.ask("cancel", crew, name)
        owner.until(name, *ENDED, seconds=20)
        assert crews.jobs(crew)[name]["state"] == "cancelled", seed
    owner.end()
    nothing_lives(leftovers)


def test_a_queue_of_10000_is_full_and_is_cancelled_at_once(crews, leftovers):
    """The jobs share one policy, which the contract allows."""
    first = crews.job("j0", "sleep 60")
    owner = crews.start(first, *[{**first, "name": f"j{i}", "shares_policy": True} for i in range(1, 10001)], max=2)
    owner.until("j1", "running")
    assert [line["error"] for line in owner.lines if "error" in line] == [{"kind": "limit", "message": "a crew has at most 10000 jobs", "name": "j10000"}]
    began = time.monotonic()
    crews.ask("cancel", owner.id)
    done = owner.end()
    assert time.monotonic() - began < 30 and done["max_rss_kb"] < 64 << 10
    found = crews.show(owner.id)["jobs"]
    assert len(found) == 10000 and {job["state"] for job in found} == {"cancelled"}
    nothing_lives(leftovers)


# ---- deaths ----


def test_the_death_of_the_owner_ends_its_jobs_and_their_results_say_so(crews, box, leftovers):
    stubborn = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
    jobs = [crews.job("polite", "trap 'echo bye > bye; exit 0' TERM; while :; do sleep 0.1; done"), crews.job("stubborn", stubborn, grace_ms=300)]
    owner = crews.start(*jobs, crews.job("queued", "echo x > started"), max=2)
    for job in jobs:
        owner.until(job["name"], "running")
    poll(lambda: "ready" in owner.text("stubborn"), 20, "the trap")
    time.sleep(0.3)
    crew = owner.id
    owner.process.kill()
    owner.process.wait()
    poll(lambda: not descendants(), 30, "the end of everything")
    found = crews.jobs(crew)
    assert {name: job["state"] for name, job in found.items()} == {"polite": "cancelled", "stubborn": "cancelled", "queued": "lost"}
    assert (box.path / "work/polite/bye").exists() and os.listdir(box.path / "work/queued") == []
    assert crews.show(crew)["owned"] is False
    nothing_lives(leftovers)
    assert os.listdir(box.state / "state/runs") == []


@pytest.mark.parametrize("how", ["killed", "leaves"])
def test_detached_jobs_outlive_their_owner(crews, box, leftovers, how):
    script = "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo ended; exit 6"
    names = [f"d{i}" for i in range(4)]
    owner = crews.start(*[crews.job(name, script) for name in names], crews.job("queued", "true"), max=4, detached=True)
    for name in names:
        owner.until(name, "running")
    crew = owner.id
    if how == "killed":
        owner.process.kill()
        owner.process.wait()
    else:
        owner.order("leave")
        owner.process.wait(20)
    poll(lambda: not crews.show(crew)["owned"], 10, "the lock of the owner")
    assert {name: job["state"] for name, job in crews.jobs(crew).items()} == {**dict.fromkeys(names, "running"), "queued": "lost"}
    crews.ask("cancel", crew, "d3")
    poll(lambda: crews.jobs(crew)["d3"]["state"] == "cancelled", 20, "a cancel without an owner")
    for name in names:
        box.write(f"work/{name}/go")
    poll(lambda: all(crews.jobs(crew)[name]["state"] == "failed" for name in names[:3]), 30, "their ends")
    for i in range(3):
        job = crews.jobs(crew)[f"d{i}"]
        assert (job["exit_code"], job["own_exit"]) == (6, 6)
        text = "".join(event["text"] for event in crews.log(crew, i)["events"] if event["type"] == "stdout")
        assert text == "begun\nended\n"
    assert owner.text("d0") == "", "the output of a detached job is in its log only"
    nothing_lives(leftovers)


@pytest.mark.parametrize("scope", [{}, {"rw": ["src/**/*.ts"]}], ids=["folder", "lens"])
def test_a_killed_supervisor_takes_its_sandbox_with_it_and_the_job_is_lost(crews, cordon, box, leftovers, scope):
    script = "echo ready; while [ ! -e go ]; do sleep 0.05; done"
    owner = crews.start(crews.job("victim", "echo ready; exec sleep 3600", **scope), crews.job("other", script))
    poll(lambda: len(owner.lines) > 4 and all("ready" in owner.text(name) for name in ("victim", "other")), 30, "both")
    victim = crews.supervisor(owner, 0)
    os.kill(victim, signal.SIGKILL)
    owner.until("victim", "lost")
    assert owner.job("victim")["own_exit"] == 125 and crews.jobs(owner.id)["victim"]["state"] == "lost"
    poll(lambda: not [pid for pid in descendants() if "sleep 3600" in command_line(pid)], 10, "the end of its sandbox")
    crews.ask("cancel", owner.id, "victim")
    assert owner.states("other")[-1] == "running"
    box.write("work/other/go")
    owner.end()
    assert owner.job("other")["state"] == "completed"
    assert cordon("gc").returncode == 0
    nothing_lives(leftovers)


@pytest.mark.limit(200)
def test_killing_owner_and_supervisors_at_random_instants_leaves_nothing_that_runs(crews, cordon, box, leftovers):
    seed = random.randrange(10**9)
    rng = random.Random(seed)
    began = time.monotonic()
    crews.run(*[crews.job(f"j{i}", "sleep 0.05") for i in range(6)], max=3)
    whole = time.monotonic() - began
    for turn in range(12):
        detached = turn % 2 == 0
        owner = crews.start(*[crews.job(f"j{i}", "sleep 0.05", grace_ms=500) for i in range(6)], max=3, detached=detached)
        time.sleep(rng.uniform(0, 1.2 * whole))
        for pid in crews.supervisors(owner):
            if rng.random() < 0.3:
                kill_quietly(pid)
        owner.process.kill()
        owner.process.wait()
    poll(lambda: not descendants(), 30, f"the end of every process (seed {seed})")
    assert cordon("gc").returncode == 0
    assert os.listdir(box.state / "state/runs") == []
    for crew in crews.ask("list"):
        found = crews.show(crew["id"])
        assert not found["owned"] and {job["state"] for job in found["jobs"]} <= ENDED, (seed, found)
    assert crews.ask("gc", "0")[0]["live"] == 0 and [path for path in crews.dir.iterdir() if path.name[0] != "."] == []
    assert cordon("audit", "verify").returncode == 0
    leftovers.assert_none()


@pytest.mark.limit(200)
def test_sigterm_to_a_supervisor_is_a_cancel_at_any_instant(crews, leftovers):
    rng = random.Random(seed := random.randrange(10**9))
    owner = crews.start(crews.job("first", "true"), max=2, stay=True)
    owner.until("first", "completed")
    for i in range(25):
        owner.order("add " + json.dumps(crews.job(f"j{i}", "sleep 0.02", grace_ms=200)))
        poll(lambda i=i: owner.states(f"j{i}"), 20, "the start")
        time.sleep(rng.uniform(0, 0.06))
        for pid in crews.supervisors(owner):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        owner.until(f"j{i}", *ENDED)
    owner.end()
    found = {name: job["state"] for name, job in crews.jobs(owner.id).items()}
    assert set(found.values()) <= {"completed", "cancelled"}, (seed, found)
    nothing_lives(leftovers)


# ---- output ----


@pytest.mark.limit(200)
def test_a_flood_of_output_blocks_nobody_and_needs_no_memory(crews, leftovers):
    owner = crews.start(crews.job("text", "yes | head -c 100M"), crews.job("binary", "head -c 2M /dev/zero >&2"),
                        *[crews.job(f"quiet{i}", "echo x; sleep 0.1") for i in range(10)], max=3, counts=True)  # fmt: skip
    done = owner.end(180)
    counted = {line["job"]: line["bytes"] for line in owner.lines if "bytes" in line}
    assert counted == {0: 100 << 20, 1: 2 << 20, **{i: 2 for i in range(2, 12)}}
    ends = [line["name"] for line in owner.lines if line.get("state") in ENDED]
    assert ends.index("text") >= 2, "others went on beside it"
    assert done["max_rss_kb"] < 64 << 10
    log = sum(path.stat().st_size for path in (crews.dir / owner.id / "0").glob("events*"))
    assert 0 < log < 100 << 20
    assert crews.log(owner.id, 0)["dropped"] > 0
    nothing_lives(leftovers)


def test_an_owner_that_does_not_read_stops_no_timeout_and_no_cancel(crews, leftovers):
    owner = crews.start(crews.job("late", "yes", timeout_ms=1500, grace_ms=300), crews.job("unwanted", "yes", grace_ms=300), counts=True)
    owner.until("late", "running")
    owner.until("unwanted", "running")
    crew = owner.id
    os.kill(owner.pid, signal.SIGSTOP)
    try:
        poll(lambda: crews.jobs(crew)["late"]["state"] == "timeout", 20, "the time-out")
        crews.ask("cancel", crew, "unwanted")
        poll(lambda: crews.jobs(crew)["unwanted"]["state"] == "cancelled", 20, "the cancel")
    finally:
        os.kill(owner.pid, signal.SIGCONT)
    owner.end()
    assert owner.job("late")["state"] == "timeout" and owner.job("unwanted")["state"] == "cancelled"
    nothing_lives(leftovers)


# ---- what an agent can reach, and what stays ----


def test_no_agent_reaches_the_directory_of_its_crew(crews, box):
    """Not even one whose workspace holds $CORDON_HOME."""
    script = f'''
        for place in {crews.dir} {crews.dir}/*/owner {crews.dir}/*/*/alive; do ls -d $place 2>&1; echo x > $place; done
        mkdir -p {crews.dir}/../crew/$0/cancel; find / -name crew.json -o -name result.json 2>/dev/null | grep state/crew
        kill -TERM 1; ls /proc/self/fd; echo end'''
    owner = crews.run(crews.job("inside", script, root=box.path), crews.job("beside", script))
    for name in ("inside", "beside"):
        assert owner.job(name)["state"] == "completed", owner.lines
        lines = owner.text(name).splitlines()
        assert lines[-1] == "end" and not [line for line in lines[:-1] if line.startswith(str(crews.dir)) or "crew.json" in line], lines
        assert [line for line in lines if line.isdigit()] == ["0", "1", "2", "3"], "3 is the directory that ls reads"
    assert sorted(os.listdir(crews.dir)) == [owner.id]
    assert sorted(os.listdir(crews.dir / owner.id)) == ["0", "1", "cancel", "crew.json", "jobs", "owner"]


def make_old(path):
    then = time.time() - EIGHT_DAYS
    for found in (path, *path.rglob("*")):
        os.utime(found, (then, then), follow_symlinks=False)


def test_gc_removes_what_ended_long_ago_and_nothing_that_lives(crews, box, cordon, leftovers):
    script = "while [ ! -e go ]; do sleep 0.05; done"
    ended, recent = crews.run(crews.job("a", "true")).id, crews.run(crews.job("a", "true")).id
    owner = crews.start(crews.job("live", script))
    orphan = crews.start(crews.job("orphan", script), detached=True)
    owner.until("live", "running")
    orphan.until("orphan", "running")
    orphan.process.kill()
    orphan.process.wait()
    for crew in (ended, owner.id, orphan.id):
        make_old(crews.dir / crew)
    half = crews.dir / f".new-{ended}"
    half.mkdir(mode=0o700)
    make_old(half)
    (crews.dir / f".gone-{ended}").mkdir(mode=0o700)
    box.own(crews.dir)
    collected = cordon("gc", "--json").json()
    assert collected["crews"] == 1
    assert sorted(os.listdir(crews.dir)) == sorted([recent, owner.id, orphan.id])
    assert crews.ask("gc", "0") == [{"removed": 1, "live": 2}]
    assert sorted(os.listdir(crews.dir)) == sorted([owner.id, orphan.id])
    assert crews.jobs(orphan.id)["orphan"]["state"] == "running"
    for name in ("live", "orphan"):
        box.write(f"work/{name}/go")
    owner.end()
    poll(lambda: crews.jobs(orphan.id)["orphan"]["state"] == "completed", 20, "the orphan")
    poll(lambda: crews.ask("gc", "0")[0]["live"] == 0, 20, "the last locks")
    assert os.listdir(crews.dir) == []
    nothing_lives(leftovers)
