# SPDX-License-Identifier: Apache-2.0
"""No program that lends its owner's rights stays on the host, and no lease stops the host."""
import os
import stat
import subprocess
import time

import pytest

from arena import PRELUDE, answers
from modes import NARROW, WIDE

RUNS = {**NARROW, "bare": ("--no-default-protect", "--rw", ".")}

# Every call that takes a mode, by every spelling: path, descriptor, magic link, rubbish in the upper half, other bits beside.
CALLS = r"""
import itertools, stat, sys
os.umask(0)
where = sys.argv[1] if len(sys.argv) > 1 else 'src'
C, RUBBISH = -100, 0xdeadbeef00000000
names = itertools.count()
def new(): return ('%s/made-%d' % (where, next(names))).encode()
def there():
    name = new()
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o755))
    return name
def call(*args):
    r = syscall(*[ctypes.c_ulong(a) if isinstance(a, int) and a > 1 << 62 else a for a in args])
    if r < 0: raise OSError(-r, 'x')
    return r
how = lambda flags, mode, resolve=0: (ctypes.c_uint64 * 3)(flags, mode, resolve)
dfd = os.open(where, os.O_RDONLY)
W = os.O_CREAT | os.O_WRONLY
for mode in (0o4755, 0o2755, 0o6755, 0o7777, 0o4000, 0o2000, 0o104755, RUBBISH | 0o6755):
    low = mode & 0xffff
    def both(name, act): attempt('%x %s' % (mode, name), act)
    both('open', lambda: os.close(call(2, new(), W, mode)))
    both('open flags', lambda: os.close(call(2, new(), RUBBISH | W, mode)))
    both('open excl', lambda: os.close(call(2, new(), W | os.O_EXCL, mode)))
    both('open read', lambda: os.close(call(2, new(), os.O_CREAT, mode)))
    both('openat', lambda: os.close(call(257, dfd, os.path.basename(new()), W, mode)))
    both('openat absolute', lambda: os.close(call(257, 0, os.path.abspath(new()), W, mode)))
    both('openat magic', lambda: os.close(call(257, C, b'/proc/self/cwd/' + new(), W, mode)))
    both('creat', lambda: os.close(call(85, new(), mode)))
    def temporary(flags):
        fd = call(257, C, where.encode(), os.O_TMPFILE | os.O_RDWR | flags, mode)
        try: call(265, C, b'/proc/self/fd/%d' % fd, C, new(), 0x400)
        finally: os.close(fd)
    both('tmpfile', lambda: temporary(0))
    both('openat2', lambda: os.close(call(437, C, new(), how(W, low & 0o7777), 24)))
    both('openat2 resolve', lambda: os.close(call(437, dfd, os.path.basename(new()), how(W, low & 0o7777, 8), 24)))
    both('openat2 longer', lambda: os.close(call(437, C, new(), (ctypes.c_uint64 * 8)(W, low & 0o7777), 64)))
    both('mknod', lambda: call(133, new(), (mode & ~0o170000) | stat.S_IFREG, 0))
    both('mknod type 0', lambda: call(133, new(), mode & ~0o170000, 0))
    both('mknod fifo', lambda: call(133, new(), (mode & ~0o170000) | stat.S_IFIFO, 0))
    both('mknodat', lambda: call(259, dfd, os.path.basename(new()), (mode & ~0o170000) | stat.S_IFREG, 0))
    both('chmod', lambda: call(90, there(), mode))
    both('chmod directory', lambda: (os.mkdir(d := new()), call(90, d, mode)))
    both('fchmod', lambda: call(91, os.open(there(), os.O_RDONLY), mode))
    both('fchmodat', lambda: call(268, C, there(), mode))
    both('fchmodat magic', lambda: call(268, C, b'/proc/self/fd/%d' % os.open(there(), os.O_RDONLY), mode))
    both('fchmodat2', lambda: call(452, C, there(), mode, 0))
    both('fchmodat2 empty', lambda: call(452, os.open(there(), os.O_PATH), b'', mode, 0x1000))
    both('mkdir', lambda: call(83, new(), mode))
    both('mkdirat', lambda: call(258, dfd, os.path.basename(new()), mode))
"""
ALLOWED = r"""
os.umask(0)
for mode in (0, 0o644, 0o1777, 0o755):
    os.close(os.open('src/plain-%o' % mode, os.O_CREAT | os.O_WRONLY, mode))
    os.chmod('src/plain-%o' % mode, mode)
    os.mkdir('src/dir-%o' % mode, mode)
print('garbage', syscall(2, b'src/main.c', 0, 0o7777) >= 0)  # no file is made, so nobody reads the mode
os.mkdir('shared/sub')
print('inherited', oct(os.stat('shared/sub').st_mode & 0o7000))
"""


def with_the_bits(top):
    """Everything below a directory that has a set-user-id or set-group-id bit."""
    out = subprocess.run(["find", str(top), "-perm", "/6000", "-printf", "%P %m\n"], capture_output=True, text=True, check=True).stdout
    return sorted(out.splitlines())


@pytest.mark.parametrize("where", ["src", "."], ids=["free", "held"])
@pytest.mark.parametrize("run", RUNS)
def test_l10_no_call_leaves_a_file_that_lends_its_owners_rights(arena, run, where):
    result = arena.enter(run, protect=False, modes=RUNS).inside("/usr/bin/python3", "-c", PRELUDE + CALLS, where)
    found = answers(result)
    assert len(found) == 8 * 25, result
    assert with_the_bits(arena.box.path) == []  # also where a view is kept
    done = {name.split(" ", 1)[1] for name, answer in found.items() if answer == "done"}
    assert done <= {"mkdir", "mkdirat"}, done  # of which the kernel ignores the bits
    refused = {answer for name, answer in found.items() if name.split(" ", 1)[1] not in ("mkdir", "mkdirat")}
    assert refused <= {"EPERM", "ENOSYS", "EACCES"}, found


def test_l10_control_natively_they_do(arena):
    found = answers(arena.box.run("/usr/bin/python3", "-c", PRELUDE + CALLS, "src", cwd=arena.root))
    assert sum(answer == "done" for answer in found.values()) > 150 and len(with_the_bits(arena.root)) > 120, found


def test_l10_other_modes_are_set_and_a_directory_inherits_its_group(arena):
    shared = arena.box.mkdir("repo/shared")
    shared.chmod(0o2775)
    found = answers(arena.py(ALLOWED))
    assert found == {"garbage": "True", "inherited": "0o2000"}
    for mode in (0, 0o644, 0o1777, 0o755):
        assert stat.S_IMODE(os.stat(arena.root / f"src/plain-{mode:o}").st_mode) == stat.S_IMODE(os.stat(arena.root / f"src/dir-{mode:o}").st_mode) == mode
    assert with_the_bits(arena.root) == ["shared 2775", "shared/sub 2777"]


# The mode of openat2 lies in memory: one thread changes it while others call. No run has that call, so there is nothing to win.
FLIP = r"""
import threading
how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, 0o755, 0)
stop = False
def flip():
    while not stop:
        how[1] = 0o755; how[1] = 0o4755
        how[0] = os.O_RDONLY; how[0] = os.O_CREAT | os.O_WRONLY
threads = [threading.Thread(target=flip) for _ in range(2)]
for t in threads: t.start()
sys.setswitchinterval(1e-5)
done = 0
for i in range(ROUNDS):
    how2 = how if i % 2 else ctypes.byref(how)
    for name in (b'src/flip-%d', b'flip-%d'):
        r = syscall(437, -100, name % i, how2, 24)
        if r >= 0: os.close(r); done += 1
stop = True
for t in threads: t.join()
print('made', done)
"""


@pytest.mark.parametrize("run", RUNS)
def test_l10_a_mode_in_memory_that_changes_during_the_call_sets_no_bit(arena, run):
    result = arena.enter(run, modes=RUNS).inside("/usr/bin/python3", "-c", PRELUDE + "ROUNDS = 1000\n" + FLIP, timeout=100)
    assert result.stdout == "made 0\n" and with_the_bits(arena.box.path) == [], result


def test_l10_control_natively_the_changing_mode_sets_the_bit(arena):
    arena.box.run("/usr/bin/python3", "-c", PRELUDE + "ROUNDS = 300\n" + FLIP, cwd=arena.root, timeout=100)
    assert with_the_bits(arena.root)


# ---- leases ----

LEASE = r"""
import fcntl, signal, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
held = []
for name in ('AGENTS.md', '.git/config', 'src/main.c', '/usr/bin/env'):
    fd = os.open(name, os.O_RDONLY); held.append(fd)
    for kind, number in (('write', fcntl.F_WRLCK), ('read', fcntl.F_RDLCK)):
        attempt('%s %s' % (name, kind), lambda: fcntl.fcntl(fd, fcntl.F_SETLEASE, number))
        r = syscall(72, fd, ctypes.c_ulong(0xdead00000000 | 1024), number)
        print('%s %s rubbish' % (name, kind), errno.errorcode.get(-r, 'done'))
print('asked', fcntl.fcntl(held[0], fcntl.F_GETLEASE) == fcntl.F_UNLCK)
r = syscall(72, held[0], 1040, (ctypes.c_uint32 * 4)(0, 1, 0, 0))
print('delegation', errno.errorcode.get(-r, 'done'))
fcntl.fcntl(os.open('.', os.O_RDONLY), fcntl.F_NOTIFY, fcntl.DN_CREATE)
print('ready', 'now', flush=True)
time.sleep(TIME)
"""


@pytest.mark.parametrize("run", WIDE)
def test_l25_no_lease_stops_the_host(arena, run):
    arena.enter(run)
    found = answers(arena.inside("/usr/bin/python3", "-c", PRELUDE + "TIME = 0\n" + LEASE))
    assert found.pop("ready") == "now" and found.pop("asked") == "True" and found.pop("delegation") == "EINVAL"
    assert len(found) == 16 and set(found.values()) == {"EPERM"}, found
    process = arena.begin("/usr/bin/python3", "-c", PRELUDE + "TIME = 60\n" + LEASE)
    try:
        while b"ready" not in process.stdout.readline():
            pass
        began = time.monotonic()
        for name in ("AGENTS.md", ".git/config", "src/main.c"):
            with open(arena.root / name, "ab"):
                pass
        assert time.monotonic() - began < 5
    finally:
        process.kill()
        process.wait(20)


def test_l25_control_natively_a_lease_is_had(arena):
    found = answers(arena.box.run("/usr/bin/python3", "-c", PRELUDE + "TIME = 0\n" + LEASE, cwd=arena.root))
    assert found["src/main.c write"] == "done" and found["AGENTS.md write"] == "done", found
