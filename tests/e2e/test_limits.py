# SPDX-License-Identifier: Apache-2.0
"""Limits: what they count, what they say, and that they end the run and nothing else."""
import json
import os
import pathlib
import subprocess

import pytest

from support import descendants, poll

# Memory that a run takes and keeps: 100 MiB, however it is spread. `hold` shows it from the inside until the run is ended.
TAKE = r"""
import ctypes, mmap, os, sys, time
MB = 1 << 20
libc = ctypes.CDLL(None, use_errno=True)
def touch(size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, fd=-1):
    m = mmap.mmap(fd, size, flags)
    for i in range(0, size, 4096): m[i] = 1
    return m
def fill(path):
    with open(path, 'wb') as f:
        for i in range(100): f.write(b'x' * MB)
def one(): return touch(100 * MB)
def many():
    for i in range(5):
        if os.fork() == 0: return touch(20 * MB)
def bomb():
    for i in range(6):
        keep = touch(4 * MB)
        os.fork()
    return keep
def shared(): return touch(100 * MB, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
def memfd_open():
    fd = os.memfd_create('m')
    for i in range(100): os.write(fd, b'x' * MB)
    return fd
def memfd_mapped():
    fd = os.memfd_create('m'); os.ftruncate(fd, 100 * MB)
    m = touch(100 * MB, mmap.MAP_SHARED, fd); os.close(fd); return m
def system_v():
    libc.shmat.restype = ctypes.c_void_p
    n = libc.shmget(0, 100 * MB, 0o1600)
    at = libc.shmat(n, None, 0); ctypes.memset(at, 1, 100 * MB); libc.shmdt(ctypes.c_void_p(at))
def dev_shm(): fill('/dev/shm/f')
def tmp(): fill('/tmp/f')
def home(): fill(os.environ['HOME'] + '/f')
kept = globals()[sys.argv[1]]()
print('taken', flush=True)
time.sleep(60)
"""
TAKEN_BY = ["one", "many", "bomb", "shared", "memfd_open", "memfd_mapped", "system_v", "dev_shm", "tmp", "home"]

# Memory that looks like much more than it is: each of the three 30 MiB is had by four processes. And addresses that nobody uses,
# a file of the disk, and a parent of many children that have its memory until their exec.
SEEMS = r"""
import mmap, os, subprocess, sys, time
MB = 1 << 20
exec(sys.argv[1])
private = touch(30 * MB)
shared = touch(30 * MB, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
fd = os.memfd_create('m'); os.ftruncate(fd, 30 * MB)
memfd = touch(30 * MB, mmap.MAP_SHARED, fd)
with open('/tmp/f', 'w+b') as f:
    f.truncate(30 * MB); file = touch(30 * MB, mmap.MAP_SHARED, f.fileno())
disk = open('big', 'rb'); cache = mmap.mmap(disk.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ)
reserved = mmap.mmap(-1, 64 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, mmap.PROT_READ)
for i in range(3):
    if os.fork() == 0:
        for m in (private, shared, memfd, file, cache):
            sum(m[k] for k in range(0, len(m), 4096))
        time.sleep(2); os._exit(0)
for i in range(100): subprocess.run(['true'], check=True)
for i in range(3): os.wait()
print('fine')
"""
TOUCH = "def touch(size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, fd=-1):\n    m = mmap.mmap(fd, size, flags)\n    for i in range(0, size, 4096): m[i] = 1\n    return m"

WITHOUT_CGROUPS = ["unshare", "--mount", "sh", "-c", 'umount -a -t cgroup,cgroup2 && exec "$@"', "sh"]


def ways(who, cordon):
    """Each way in which memory is limited here: by what the machine offers, and by the watcher, which needs nothing."""
    yield [cordon.path], ("watcher", "cgroup1", "cgroup2")
    if who.is_root:
        yield [*WITHOUT_CGROUPS, cordon.path], ("watcher",)


def test_a_run_that_takes_more_memory_than_it_may_is_ended_and_says_so(box, cordon, who):
    repo = box.mkdir("repo")
    for way, mechanisms in ways(who, cordon):
        started = {}
        for kind in TAKEN_BY:
            result = box.path / f"{kind}.json"
            started[kind] = box.start(*way, "run", "--memory", "64M", "--timeout", "50s", "--grace", "1s", "--result", str(result),
                                      "--", "python3", "-c", TAKE, kind, cwd=repo)
        for kind, process in started.items():
            out, err = process.communicate(timeout=60)
            value = json.loads((box.path / f"{kind}.json").read_text())
            assert value["limit"] == "memory" and value["limits_hit"]["memory"] and not value["limits_hit"]["timeout"], (kind, value, err)
            assert (process.returncode, value["state"], value["exit_code"], value["signal"]) == (137, "failed", None, 9), (kind, value)
            assert value["limits"]["memory"]["mechanism"] in mechanisms, (kind, value["limits"])
            assert err == b"[LIMIT] the run used more memory than 64 MiB (--memory), and was ended\n", (kind, err)
    poll(lambda: not descendants(), seconds=10, what="the end of every process")


def test_memory_that_processes_share_counts_once_and_addresses_and_files_do_not(box, cordon, who):
    repo = box.mkdir("repo")
    box.write("repo/big", b"x" * (150 << 20))
    for way, _ in ways(who, cordon):
        result = box.run(*way, "run", "--memory", "180M", "--", "python3", "-c", SEEMS, TOUCH, cwd=repo)
        assert (result.returncode, result.stdout, result.stderr) == (0, "fine\n", ""), result


def test_node_with_webassembly_runs_under_a_memory_limit(box, cordon, who):
    repo = box.mkdir("repo")
    script = "const m = new WebAssembly.Memory({initial: 16, maximum: 30000}); m.grow(100); console.log(m.buffer.byteLength)"
    for way, _ in ways(who, cordon):
        result = box.run(*way, "run", "--memory", "400M", "--", "node", "-e", script, cwd=repo)
        assert (result.returncode, result.stdout, result.stderr) == (0, f"{116 * 65536}\n", ""), result
        hog = "const kept = []; setInterval(() => kept.push(Buffer.alloc(8 << 20, 1)), 5)"
        result = box.run(*way, "run", "--memory", "400M", "--", "node", "-e", hog, cwd=repo)
        assert result.returncode == 137 and "[LIMIT]" in result.stderr, result


def test_the_audit_log_and_the_summary_say_which_limit_it_was(box, cordon):
    repo = box.mkdir("repo")
    result = cordon("run", "--memory", "64M", "--summary", "--", "python3", "-c", TAKE, "one", cwd=repo)
    assert "[SUMMARY] limit: memory ended the run\n" in result.stderr, result
    records = [json.loads(line) for line in cordon("audit", "--json").stdout.splitlines()]
    limit = [record for record in records if record["event"] == "limit"]
    assert [(r["op"], r["detail"]["limit"]) for r in limit] == [("memory", 64 << 20)], limit
    assert [r["detail"]["limit"] for r in records if r["event"] == "end"] == ["memory"], records
    result = cordon("run", "--timeout", "200ms", "--grace", "100ms", "--", "sleep", "60", cwd=repo)
    assert result.stderr == "[LIMIT] the run took longer than 200 ms (--timeout), and was ended\n", result


def test_a_session_that_takes_too_much_memory_fails_and_says_why(sessions):
    sessions.create("--memory", "64M", command=["python3", "-c", TAKE, "many"])
    session = sessions.start()["session_id"]
    sessions.cordon("session", "wait", session)
    record = sessions.get(session)
    assert (record["status"], record["state"], record["signal"], record["error"]["kind"]) == ("failed", "failed", 9, "limit"), record
    assert "limit: memory" in json.dumps(sessions.ask("session", "output", session)), record


def test_a_full_private_file_system_is_said_and_one_that_is_not_full_is_not(box, cordon):
    repo = box.mkdir("repo")
    for place in ("/tmp", "/dev/shm", "$HOME"):
        result = cordon("run", "--tmp-size", "8M", "--", "sh", "-c", f"head -c 20M /dev/zero >{place}/fill", cwd=repo)
        assert result.returncode == 1 and "No space left" in result.stderr, result
        assert result.stderr.endswith("[LIMIT] the private /tmp, /dev/shm and home were full (8 MiB together); --tmp-size\n"), result
    result = cordon("run", "--tmp-size", "8M", "--result", "result.json", "--", "sh", "-c",
                    "i=0; while true >/tmp/$i; do i=$((i + 1)); done 2>/dev/null", cwd=repo)
    assert "[LIMIT] the private /tmp, /dev/shm and home had room for no more files" in result.stderr, result
    assert json.loads((repo / "result.json").read_text())["limits_hit"]["tmp"], result
    home = box.mkdir("other-home")
    result = cordon("run", "--tmp-size", "8M", "--home", str(home), "--", "sh", "-c", "head -c 20M /dev/zero >/tmp/fill", cwd=repo)
    assert "[LIMIT] the private" in result.stderr, result
    # What was almost full, and what was full and is not, is not said.
    for script in ("head -c 7M /dev/zero >/tmp/fill", "head -c 20M /dev/zero >/tmp/fill 2>/dev/null; rm /tmp/fill", "head -c 20M /dev/zero >fill"):
        result = cordon("run", "--tmp-size", "8M", "--", "sh", "-c", script, cwd=repo)
        assert (result.returncode, result.stderr) == (0, ""), result


@pytest.fixture
def around(who):
    """A control group with 100 MiB, in which the caller may make others. It is made by root, as a container's is."""
    if os.getuid() != 0:
        pytest.skip("the tests run as an ordinary user, who cannot make a control group")
    v1 = pathlib.Path("/sys/fs/cgroup/memory")
    group = (v1 if v1.is_dir() else pathlib.Path("/sys/fs/cgroup")) / f"cordon-outer-{os.getpid()}-{who.name}"
    if not v1.is_dir():
        (group.parent / "cgroup.subtree_control").write_text("+memory")
    group.mkdir()
    for path in (group, *group.iterdir()):
        os.chown(path, who.uid, who.gid)
    limits = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes") if v1.is_dir() else ("memory.max", "memory.swap.max")
    for name, value in zip(limits, (100 << 20, 100 << 20 if v1.is_dir() else 0)):
        if (group / name).exists():
            (group / name).write_text(str(value))
    yield group
    for path in (*[p for p in group.iterdir() if p.is_dir()], group):
        poll(lambda: not (path / "cgroup.procs").read_text(), what="an empty group")
        path.rmdir()


def run_in(group, box, *command, cwd):
    """Runs it as the caller. Only root may move a process of its own into the group."""
    join = 'echo $$ >"$0/cgroup.procs" && u=$1 g=$2 && shift 2 && exec setpriv --reuid="$u" --regid="$g" --clear-groups -- "$@"'
    return subprocess.run(["sh", "-c", join, str(group), str(box.who.uid), str(box.who.gid), *command], cwd=cwd, env=box.environment(), capture_output=True,
                          text=True, timeout=60, check=False)


TAKE_200 = "import mmap\nm = mmap.mmap(-1, 200 << 20)\nfor i in range(0, len(m), 4096): m[i] = 1\nprint('had it')"


def test_a_kill_by_a_group_around_is_not_blamed_on_the_limit_of_the_run(box, cordon, around):
    repo = box.mkdir("repo")
    result = run_in(around, box, cordon.path, "run", "--memory", "400M", "--summary", "--result", str(box.path / "result"), "--", "python3", "-c", TAKE_200, cwd=repo)
    value = json.loads((box.path / "result").read_text())
    assert value["limits"]["memory"]["mechanism"] in ("cgroup1", "cgroup2") and result.returncode == 137 and value["signal"] == 9, (value, result)
    assert value["limits_hit"]["outer_memory"] and not value["limits_hit"]["memory"] and value["limit"] == "outer_memory", value
    assert "had not reached its own limit of 400 MiB (--memory)" in result.stderr and "used more memory than" not in result.stderr, result
    events = [json.loads(line) for line in cordon("audit", "--json").stdout.splitlines()]
    assert [event["op"] for event in events if event["event"] == "limit"] == ["outer_memory"], events


def test_inside_a_group_with_room_the_limit_of_the_run_is_still_its_own(box, cordon, around):
    repo = box.mkdir("repo")
    result = run_in(around, box, cordon.path, "run", "--memory", "32M", "--result", str(box.path / "result"), "--", "python3", "-c", TAKE_200, cwd=repo)
    value = json.loads((box.path / "result").read_text())
    assert result.returncode == 137 and value["limit"] == "memory" and value["limits_hit"]["memory"] and not value["limits_hit"]["outer_memory"], (value, result)
    result = run_in(around, box, cordon.path, "run", "--memory", "80M", "--", "python3", "-c", "print('fine')", cwd=repo)
    assert (result.returncode, result.stdout, result.stderr) == (0, "fine\n", ""), result
