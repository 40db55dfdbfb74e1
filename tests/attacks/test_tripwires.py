# SPDX-License-Identifier: Apache-2.0
"""Tripwires (src/sandbox/plan/tripwire.h) against an agent that wants to read what they stand for, to wear them out, to get them out of the
way, or to have something hang on them. What is hidden is a file, a directory and, in a scope, everything beside it."""
import json
import os
import signal
import subprocess

import pytest

from support import descendants, poll

PYTHON = ("/usr/bin/python3", "-I", "-S", "-B", "-c")
SECRET = "the secret text"
DENIED = ("--deny", "key", "--deny", "vault", "--no-default-protect")
SCOPE = ("--rw", "lib")
BOTH = pytest.mark.parametrize("options", [DENIED, SCOPE], ids=["denied", "scope"])


@pytest.fixture
def repo(box):
    return box.repo(files={"lib/a": "a\n", "key": SECRET, "vault/deep/key": SECRET})


@pytest.fixture
def attack(box, cordon, repo):
    """`attack(options, code)` runs Python code inside; gives the process's result and the run's."""

    def run(options, code, *more, **kw):
        done = cordon("run", "--result", str(box.path / "result.json"), *more, *options, "--", *PYTHON, code, cwd=repo, **kw)
        assert SECRET not in done.stdout + done.stderr, done
        assert (repo / "key").read_text() == (repo / "vault/deep/key").read_text() == SECRET, done
        return done, json.loads((box.path / "result.json").read_text())

    return run


def status_of(pid, name):
    with open(f"/proc/{pid}/status", encoding="ascii") as lines:
        return int(next(line.split()[1] for line in lines if line.startswith(name)))


@BOTH
def test_no_report_is_lost_or_doubled_when_many_open_at_once(attack, options, repo):
    done, value = attack(options, """
import os, threading
def tries():
    for i in range(400):
        for path in ("key", "vault/deep/key", "vault/none"):
            try: os.open(path, os.O_RDONLY); print("opened")
            except PermissionError: pass
        os.path.exists("key"); os.access("vault", os.R_OK); os.path.exists("vault/deep/key")
for _ in range(3):
    if os.fork() == 0:
        threads = [threading.Thread(target=tries) for _ in range(2)]
        [t.start() for t in threads]; [t.join() for t in threads]
        os._exit(0)
for _ in range(3): os.wait()
""")
    assert done.returncode == 0 and "opened" not in done.stdout, done
    assert value["violations"] == 3 * 2 * 400 * 3, (value["violations"], done)
    assert done.stderr.count("BLOCKED") == 3, done
    for path in ("key", "vault/deep/key", "vault/none"):
        assert f"(2400 times: read {repo / path})" in done.stderr, done


@BOTH
def test_an_agent_that_never_stops_costs_a_bounded_amount_of_memory(box, cordon, repo, options):
    agent = cordon.start("run", "--result", str(box.path / "result.json"), *options, "--", *PYTHON, """
import os, sys
def tries(n):
    for i in range(n):
        try: os.open(f"vault/name{i % 5000}", os.O_RDONLY)
        except PermissionError: pass
tries(600); print("some", flush=True); sys.stdin.readline(); tries(12000); print("all", flush=True); sys.stdin.readline()
""", cwd=repo, stdin=subprocess.PIPE)
    assert agent.stdout.readline() == b"some\n"
    before = status_of(agent.pid, "VmRSS:")
    agent.stdin.write(b"\n")
    agent.stdin.flush()
    assert agent.stdout.readline() == b"all\n"
    assert status_of(agent.pid, "VmRSS:") - before < 2048, "KiB"
    _, err = agent.communicate(b"\n", timeout=60)
    assert agent.returncode == 0 and err.count(b"BLOCKED") == 512, err
    assert json.loads((box.path / "result.json").read_text())["violations"] == 12600


CHANGES = """
import ctypes, errno, mmap, os, select, socket
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, call, *args, **kw):
    try: call(*args, **kw)
    except (OSError, ValueError) as error: print(name, errno.errorcode[getattr(error, 'errno', errno.EBADF)])
    else: print(name, "DONE")
def mount(flags):
    if libc.mount(b"lib", b"vault", None, flags, None) < 0: raise OSError(ctypes.get_errno(), "mount")
def look():
    print("key" in os.listdir("."), oct(os.stat("key").st_mode), oct(os.stat("vault").st_mode), os.stat("key").st_size)
look()
attempt("unlink", os.unlink, "key"); attempt("rmdir", os.rmdir, "vault"); attempt("rename", os.rename, "key", "lib/key")
attempt("rename directory", os.rename, "vault", "lib/vault"); attempt("rename over", os.rename, "lib/a", "key"); attempt("link", os.link, "key", "lib/hard")
attempt("symlink", os.symlink, "x", "key/x"); attempt("chmod", os.chmod, "key", 0o777); attempt("chmod directory", os.chmod, "vault", 0o777)
attempt("utime", os.utime, "key"); attempt("truncate", os.truncate, "key", 0); attempt("setxattr", os.setxattr, "key", "user.x", b"1")
attempt("mkdir", os.mkdir, "vault/made"); attempt("mknod", os.mknod, "vault/node"); attempt("chdir", os.chdir, "vault"); attempt("bind", mount, 4096)
attempt("move", mount, 8192); attempt("unmount", lambda: libc.umount2(b"vault", 2) and (_ for _ in ()).throw(OSError(ctypes.get_errno(), "")))
there = os.open("key", os.O_PATH); inner = os.open("vault", os.O_PATH)
attempt("again", os.open, f"/proc/self/fd/{there}", os.O_RDONLY); attempt("again to write", os.open, f"/proc/self/fd/{there}", os.O_RDWR)
attempt("below", os.open, "deep/key", os.O_RDONLY, dir_fd=inner); attempt("fchdir", os.fchdir, inner); attempt("map", mmap.mmap, there, 4096, prot=mmap.PROT_READ)
attempt("read", os.read, there, 10); attempt("list", os.listdir, f"/proc/self/fd/{inner}")
attempt("unix socket", socket.socket(socket.AF_UNIX).connect, "key")
watch = libc.inotify_init1(os.O_NONBLOCK); libc.inotify_add_watch(watch, b"key", 0xfff)
print("events", len(select.select([watch], [], [], 0)[0]))
look()
"""


@BOTH
def test_a_tripwire_can_be_neither_changed_moved_nor_opened_in_another_way(attack, options):
    done, _ = attack(options, CHANGES)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[0] == lines[-1] and "DONE" not in done.stdout, done
    assert lines[0].startswith("True 0o100000 0o40000 0"), done
    answers = dict(line.rsplit(" ", 1) for line in lines[1:-2])
    assert {answers["bind"], answers["move"], answers["unmount"]} == {"EPERM"}, done
    for name in ("chmod", "chmod directory", "truncate", "chdir", "again", "again to write", "below", "fchdir", "list"):
        assert answers[name] == "EACCES", (name, done)
    assert set(answers.values()) <= {"EACCES", "EPERM", "EBUSY", "EXDEV", "EBADF", "ENOTDIR", "ECONNREFUSED"}, done
    assert lines[-2] == "events 0", done


@BOTH
def test_the_device_is_in_no_process_inside(box, cordon, repo, options):
    agent = cordon.start("run", *options, "--", *PYTHON, "import sys; print('up', flush=True); sys.stdin.readline()", cwd=repo, stdin=subprocess.PIPE)
    assert agent.stdout.readline() == b"up\n"
    holders = set()
    for pid in descendants():
        try:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                if os.stat(f"/proc/{pid}/fd/{fd}").st_rdev == os.makedev(10, 229):
                    holders.add(pid)
        except OSError:
            continue
    assert agent.communicate(b"\n", timeout=30) and agent.returncode == 0
    assert holders in ({agent.pid}, set()), holders  # an ordinary caller's PID 1 is not dumpable, so only root can look
    assert holders or os.geteuid() != 0


LOOP = """
import os
for _ in range(3): os.fork()
print("up", flush=True)
while True:
    for path in ("key", "vault/deep/key"):
        try: os.open(path, os.O_RDONLY)
        except PermissionError: pass
"""


@BOTH
def test_a_run_in_which_all_wait_for_a_tripwire_ends_in_time(attack, leftovers, options):
    done, value = attack(options, LOOP, "--timeout", "3s", "--grace", "200ms")
    assert done.returncode == 124 and value["state"] == "timeout" and "up" in done.stdout, done
    leftovers.assert_none()


@BOTH
@pytest.mark.parametrize("stopped", [False, True], ids=["while it answers", "while nobody answers"])
def test_a_killed_supervisor_leaves_nobody_waiting_and_no_mount(cordon, repo, leftovers, options, stopped):
    run = cordon.start("run", *options, "--", *PYTHON, LOOP, cwd=repo, stderr=subprocess.DEVNULL)
    assert run.stdout.readline() == b"up\n"
    if stopped:
        os.kill(run.pid, signal.SIGSTOP)

        def waits():
            """Somebody inside sleeps in the kernel for an answer."""
            for pid in descendants():
                try:
                    with open(f"/proc/{pid}/syscall", encoding="ascii") as call:
                        if pid != run.pid and call.read().split()[0] == "257":
                            return True
                except (OSError, IndexError):
                    continue
            return False

        if os.geteuid() == 0 and os.uname().machine == "x86_64":
            poll(waits, what="an open that waits")
    os.kill(run.pid, signal.SIGKILL)
    run.wait(30)
    leftovers.assert_none()


def test_what_the_host_saves_is_hidden_again_and_reading_it_is_reported(box, cordon, repo):
    """A denied file that the host replaces, and a denied name that it makes during the run."""
    result = box.path / "result.json"
    agent = cordon.start("run", "--result", str(result), *DENIED, "--deny", "late", "--deny", "latedir", "--", *PYTHON, """
import sys
for line in sys.stdin:
    try: print("read", open(line.strip()).read(), flush=True)
    except OSError as error: print(error.errno, flush=True)
""", cwd=repo, stdin=subprocess.PIPE, stderr=subprocess.PIPE)

    def ask(name):
        agent.stdin.write(name.encode() + b"\n")
        agent.stdin.flush()
        return agent.stdout.readline()

    assert ask("key") == b"13\n" and ask("late") == b"2\n"
    for name in ("key", "late"):
        (repo / "new").write_text(SECRET)
        os.rename(repo / "new", repo / name)
    (repo / "latedir").mkdir()
    (repo / "latedir/f").write_text(SECRET)
    for name in ("key", "late", "latedir/f"):
        poll(lambda name=name: ask(name) == b"13\n", what=f"{name} is hidden")
    _, err = agent.communicate(timeout=30)
    assert agent.returncode == 0 and b"BLOCKED" in err, err
    for name in ("key", "late", "latedir/f"):
        assert f"File: {repo / name}\n[WORKSPACE]   Operation: read\n".encode() in err, err


def test_a_scope_of_many_names_starts_and_reports_all_of_them(box, cordon):
    """Placeholders are no mounts of their own, and a name beyond those that are shown is reported, too."""
    repo = box.repo(files={"lib/a": "a\n", **{f"f{i}": SECRET for i in range(300)}})
    done = cordon("run", *SCOPE, "--result", str(box.path / "result.json"), "--", *PYTHON, """
import os
print(len(os.listdir(".")), len(open("/proc/self/mounts").readlines()) < 80)
for i in range(300):
    try: os.open(f"f{i}", os.O_RDONLY); print("opened")
    except OSError: pass
""", cwd=repo)
    shown, few = done.stdout.split()
    assert done.returncode == 0 and 200 < int(shown) < 300 and few == "True", done
    assert json.loads((box.path / "result.json").read_text())["violations"] == 300, done


def test_more_masks_than_tripwires_are_reported_by_the_trap(box, cordon):
    repo = box.repo(files={f"f{i}": SECRET for i in range(70)})
    denied = [word for i in range(70) for word in ("--deny", f"f{i}")]
    done = cordon("run", *denied, "--result", str(box.path / "result.json"), "--", "sh", "-c", "cat f*; true", cwd=repo)
    value = json.loads((box.path / "result.json").read_text())
    assert SECRET not in done.stdout and value["violations"] == 70 and value["enforcement"]["layers"]["watch"] == "all accesses", (value, done)
