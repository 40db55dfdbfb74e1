# SPDX-License-Identifier: Apache-2.0
"""Evading the system call filter and the watch."""
import json
import os
import shutil
import signal
import stat
import struct
import subprocess

import pytest

from arena import answers
from support import poll

KILLED = 128 + signal.SIGSYS
STRICT = ["--workspace", "src,.git,deep", "--workspace-mode", "strict"]
PERMISSIVE = ["--workspace", "src,.git,deep", "--workspace-mode", "permissive"]


@pytest.fixture
def tools(arena, probes):
    """The probes inside the workspace."""
    directory = arena.box.mkdir("repo/src/tools")
    for probe in probes.iterdir():
        shutil.copy(probe, directory / probe.name)
        arena.box.own(directory / probe.name)
    return directory


# ---- other ABIs ----

# What the filter refuses, and calls that the watch looks at: name, x32 number, i386 number, arguments.
OTHER_ABIS = [
    ("mkdir", 83, 39, ["{root}/src/made", "0755"]), ("unlink", 87, 10, ["{root}/src/main.c"]), ("open", 2, 5, ["{root}/absent.md", "0101", "0644"]),
    ("rename", 82, 38, ["{root}/src/main.c", "{root}/absent.md"]), ("symlink", 88, 83, ["x", "{root}/absent.md"]),
    ("unshare", 272, 310, ["0x10000000"]), ("mount", 165, 21, ["none", "/tmp", "tmpfs", "0", "0"]), ("umount", 166, 52, ["{root}/AGENTS.md", "2"]),
    ("setns", 308, 346, ["0", "0"]), ("chroot", 161, 61, ["/tmp"]), ("clone", 56, 120, ["0x10000011"]), ("clone3", 435, 435, ["0", "0"]),
    ("keyctl", 250, 288, ["0", "0"]), ("bpf", 321, 357, ["0", "0"]), ("io_uring_setup", 425, 425, ["4", "0"]), ("ptrace", 521, 26, ["0"]),
    ("ioctl", 514, 54, ["0", "0x5412", "{root}"]), ("socket", 41, 359, ["38", "5", "0"]), ("execve", 520, 11, ["/bin/true", "0", "0"]),
    ("getpid", 39, 20, []), ("unknown", 900, 900, []),
]


@pytest.mark.parametrize("name, x32, i386, args", OTHER_ABIS, ids=[row[0] for row in OTHER_ABIS])
def test_f1_every_call_by_another_abi_kills(arena, tools, name, x32, i386, args):
    words = [arg.format(root=arena.root) for arg in args]
    for abi, number in (("x32", x32), ("i386", i386)):
        result = arena.sh(f"src/tools/abi {abi} {number} {' '.join(words)}; echo status $?", "--protect", "absent.md")
        assert f"status {KILLED}\n" in result.stdout and "returned" not in result.stdout, (abi, result)
    assert not (arena.root / "src/made").exists() and (arena.root / "src/main.c").exists() and not os.path.lexists(arena.root / "absent.md")
    arena.assert_unharmed()


def test_f1_control_without_the_filter_the_i386_entry_works(arena, tools):
    result = arena.bwrap(f"src/tools/abi i386 39 {arena.root}/src/made 0755")
    assert result.stdout == "returned 0\n" and (arena.root / "src/made").is_dir(), result


def elf32(path):
    """A program for i386 that makes a directory and ends with 42."""
    code = (b"\xbb" + struct.pack("<I", 0x08048000 + 0x54 + 27) + b"\xb9\xed\x01\x00\x00" + b"\xb8\x27\x00\x00\x00" + b"\xcd\x80"
            + b"\xbb\x2a\x00\x00\x00" + b"\xb0\x01" + b"\xcd\x80" + b"\x90")
    body = code + path.encode() + b"\0"
    size = 0x54 + len(body)
    header = b"\x7fELF\x01\x01\x01" + bytes(9) + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, 0x08048054, 0x34, 0, 0, 0x34, 0x20, 1, 0, 0, 0)
    return header + struct.pack("<IIIIIIII", 1, 0, 0x08048000, 0x08048000, size, size, 5, 0x1000) + body


def test_f1_a_program_for_i386_is_killed_at_its_first_call(arena):
    arena.box.write("repo/src/old", elf32(f"{arena.root}/src/made"), mode=0o755)
    result = arena.sh("src/old; echo status $?")
    assert f"status {KILLED}\n" in result.stdout and not (arena.root / "src/made").exists(), result
    control = arena.bwrap("src/old; echo status $?")
    # A kernel without the i386 entry has nothing to defend; where it runs, it works.
    assert (arena.root / "src/made").is_dir() == ("status 42\n" in control.stdout)


def test_f4_clone3_does_not_exist_so_that_programs_fall_back(arena):
    result = arena.py(r"""
import threading, subprocess
for flags in (0x10000000, 0x10000000 | 0x20000, 0x20000, 0x40000000, 0x80, 0):
    args = (ctypes.c_uint64 * 11)(); args[0] = flags; args[4] = 17
    for size in (88, 64, 4096):
        r = syscall(435, ctypes.byref(args), size)
        if r == 0: os._exit(9)
        print('clone3 %x %d' % (flags, size), errno.errorcode.get(-r, 'done'))
done = []
t = threading.Thread(target=lambda: done.append(1)); t.start(); t.join()
print('thread', 'works' if done else 'fails')
print('child', subprocess.run(['echo', 'works'], capture_output=True, text=True).stdout.strip())
""")
    found = answers(result)
    assert found.pop("thread") == "works" and found.pop("child") == "works" and len(found) == 18 and set(found.values()) == {"ENOSYS"}, result


# ---- io_uring ----


def test_f6_io_uring_is_no_second_door(arena, tools):
    found = answers(arena.sh("src/tools/uring absent.md; src/tools/uring src/made", "--protect", "absent.md"))
    assert found == {"setup": "EPERM", "enter": "EPERM", "register": "EPERM"}
    assert not os.path.lexists(arena.root / "absent.md") and not (arena.root / "src/made").exists()


def test_f6_control_a_filter_of_mkdir_alone_is_gone_around_by_io_uring(arena, tools):
    from test_start import REFUSE
    mkdirs = "83=1,258=1"
    for words, made in ((["/bin/mkdir", "made-by-mkdir"], False), ([str(tools / "uring"), "made-by-uring"], True)):
        arena.box.run("/usr/bin/python3", "-c", REFUSE, mkdirs, *words, cwd=arena.root)
        assert (arena.root / words[-1]).is_dir() == made


# ---- the path flips after the check ----


def look_at(path):
    st = os.lstat(path)
    return path.read_bytes(), st.st_ino, st.st_mode, st.st_mtime_ns, st.st_ctime_ns, os.listxattr(path)


@pytest.mark.limit(180)
@pytest.mark.parametrize("options, bad, seconds", [
    (STRICT, "outer.txt", 10), (STRICT, "AGENTS.md", 3), (PERMISSIVE, "deep/er/held.txt", 3),
    (["--rw", "src", "--ro", "deep"], "deep/er/free.txt", 3), (["--protect", "absent.md"], "AGENTS.md", 3),
    (["--rw", "src/*.c", "--ro", "src/tools", "--ro", "deep/**/*.txt"], "deep/er/free.txt", 3)])
def test_f7_no_permission_rests_on_a_path_that_can_change(arena, tools, options, bad, seconds):
    arena.box.write("repo/outer.txt", "outside the scope\n")
    before = look_at(arena.root / bad)
    result = arena.sh(f"src/tools/flip 150000 {seconds} src/main.c {bad} {before[1]}", *options, timeout=120)
    found = answers(result)
    assert found["reached"] == "0" and int(found["rounds"]) > 1000, result
    assert look_at(arena.root / bad) == before
    arena.assert_unharmed()


def test_f7_control_a_watch_that_allows_by_what_it_read_is_passed(arena, tools):
    """Without the kernel's own rules behind it, the flip wins: both files lie in a tree that may be written."""
    other = arena.box.write("repo/src/other.c", "x" * 100)
    found = answers(arena.box.run(str(tools / "flip"), "150000", "5", "src/main.c", "src/other.c", str(os.stat(other).st_ino),
                                  cwd=arena.root))
    assert int(found["reached"]) > 0 and other.read_text().startswith("evil"), found


# ---- the sibling call nobody trapped ----

# Each row is one mutating call; d is a directory, f a file in it, fd and dfd are descriptors opened for reading.
MUTATIONS = r"""
import fcntl, socket, struct
def call(*args):
    r = syscall(*args)
    if r < 0: raise OSError(-r, 'x')
    return r
def b(s): return s.encode()
how = lambda flags: (ctypes.c_uint64 * 3)(flags, 0o644 if flags & os.O_CREAT else 0, 0)
times = (ctypes.c_long * 4)(1, 0, 1, 0)
xattr = (ctypes.c_uint64 * 2)(ctypes.addressof(ctypes.create_string_buffer(b'1')), 1)
C, N = -100, 'new-%d' % os.getpid()
def rows(d, f):
    try: fd = os.open(f, os.O_RDONLY)
    except OSError: fd = os.open('/dev/null', os.O_RDONLY)
    try: dfd = os.open(d, os.O_RDONLY)
    except OSError: dfd = os.open('/dev/null', os.O_RDONLY)
    mine = os.open(SCRATCH + '/mine', os.O_RDWR | os.O_CREAT); os.write(mine, b'evil' * 2000)
    other = lambda: SCRATCH + '/mine'
    n = d + '/' + N
    leaf = os.path.basename(f)
    yield 'open wronly', lambda: os.close(call(2, b(f), os.O_WRONLY, 0))
    yield 'open rdwr', lambda: os.close(call(2, b(f), os.O_RDWR, 0))
    yield 'open trunc', lambda: os.close(call(2, b(f), os.O_TRUNC, 0))
    yield 'open creat', lambda: os.close(call(2, b(n), os.O_CREAT | os.O_WRONLY, 0o644))
    yield 'open excl', lambda: os.close(call(2, b(n), os.O_CREAT | os.O_EXCL, 0o644))
    yield 'open tmpfile', lambda: os.close(call(2, b(d), os.O_TMPFILE | os.O_RDWR, 0o644))
    yield 'creat', lambda: os.close(call(85, b(n), 0o644))
    yield 'creat over', lambda: os.close(call(85, b(f), 0o644))
    yield 'openat', lambda: os.close(call(257, C, b(f), os.O_WRONLY, 0))
    yield 'openat dir', lambda: os.close(call(257, dfd, b(leaf), os.O_WRONLY, 0))
    yield 'openat dir creat', lambda: os.close(call(257, dfd, b(N), os.O_WRONLY | os.O_CREAT, 0o644))
    yield 'openat2', lambda: os.close(call(437, C, b(f), how(os.O_WRONLY), 24))
    yield 'openat2 creat', lambda: os.close(call(437, dfd, b(N), how(os.O_WRONLY | os.O_CREAT), 24))
    yield 'reopen', lambda: os.close(os.open('/proc/self/fd/%d' % fd, os.O_WRONLY)) if fd >= 0 and f in os.readlink('/proc/self/fd/%d' % fd) else call(2, b(f), 1, 0)
    yield 'truncate', lambda: call(76, b(f), 0)
    yield 'ftruncate', lambda: call(77, fd, 0)
    yield 'fallocate', lambda: call(285, fd, 0, 0, 4096)
    yield 'fallocate punch', lambda: call(285, fd, 3, 0, 4096)
    yield 'write', lambda: os.write(fd, b'evil')
    yield 'pwritev2', lambda: os.pwritev(fd, [b'evil'], 0)
    yield 'copy_file_range', lambda: os.copy_file_range(mine, fd, 10, 0, 0)
    yield 'sendfile', lambda: os.sendfile(fd, mine, 0, 10)
    yield 'ficlone', lambda: fcntl.ioctl(fd, 0x40049409, mine)
    yield 'ficlonerange', lambda: fcntl.ioctl(fd, 0x4020940d, struct.pack('qQQQ', mine, 0, 0, 0))
    yield 'setflags', lambda: fcntl.ioctl(fd, 0x40086602, struct.pack('q', 0x40))
    yield 'fssetxattr', lambda: fcntl.ioctl(fd, 0x401c5820, bytes(28))
    yield 'mmap', lambda: call(9, 0, 4096, 3, 1, fd, 0)
    yield 'rename away', lambda: call(82, b(f), b(SCRATCH + '/stolen'))
    yield 'rename in place', lambda: call(82, b(f), b(n))
    yield 'rename over', lambda: call(82, b(other()), b(f))
    yield 'rename into', lambda: call(82, b(other()), b(n))
    yield 'renameat', lambda: call(264, dfd, b(leaf), dfd, b(N))
    yield 'renameat2', lambda: call(316, C, b(f), C, b(SCRATCH + '/stolen'), 1)
    yield 'exchange', lambda: call(316, C, b(other()), C, b(f), 2)
    yield 'whiteout', lambda: call(316, C, b(f), C, b(n), 4)
    yield 'rename directory', lambda: call(82, b(d), b(SCRATCH + '/stolen'))
    yield 'link', lambda: call(86, b(f), b(SCRATCH + '/second'))
    yield 'link into', lambda: call(86, b(other()), b(n))
    yield 'linkat', lambda: call(265, C, b(f), C, b(n), 0)
    yield 'linkat follow', lambda: call(265, C, b('/proc/self/fd/%d' % fd), C, b(SCRATCH + '/second'), 0x400) if f in os.readlink('/proc/self/fd/%d' % fd) else call(86, b(f), b(n))
    yield 'linkat empty', lambda: call(265, fd, b'', C, b(SCRATCH + '/second'), 0x1000) if f in os.readlink('/proc/self/fd/%d' % fd) else call(86, b(f), b(n))
    yield 'symlink', lambda: call(88, b'x', b(n))
    yield 'symlinkat', lambda: call(266, b'x', dfd, b(N))
    yield 'unlink', lambda: call(87, b(f))
    yield 'unlinkat', lambda: call(263, dfd, b(leaf), 0)
    yield 'rmdir', lambda: call(84, b(d + '/empty'))
    yield 'unlinkat dir', lambda: call(263, dfd, b'empty', 0x200)
    yield 'mkdir', lambda: call(83, b(n), 0o755)
    yield 'mkdirat', lambda: call(258, dfd, b(N), 0o755)
    yield 'mknod', lambda: call(133, b(n), 0o10644, 0)
    yield 'mknod file', lambda: call(133, b(n), 0o100644, 0)
    yield 'mknod whiteout', lambda: call(133, b(n), 0o20644, 0)
    yield 'mknodat', lambda: call(259, dfd, b(N), 0o10644, 0)
    yield 'bind', lambda: socket.socket(socket.AF_UNIX).bind(os.path.relpath(n) if len(n) > 100 else n)
    yield 'chmod', lambda: call(90, b(f), 0o666)
    yield 'chmod directory', lambda: call(90, b(d), 0o777)
    yield 'fchmod', lambda: call(91, fd, 0o666)
    yield 'fchmod directory', lambda: call(91, dfd, 0o777)
    yield 'fchmodat', lambda: call(268, C, b(f), 0o666)
    yield 'fchmodat2', lambda: call(452, C, b(f), 0o666, 0)
    yield 'fchmodat2 empty', lambda: call(452, fd, b'', 0o666, 0x1000)
    yield 'chown', lambda: call(92, b(f), os.getuid(), os.getgid())
    yield 'fchown', lambda: call(93, fd, os.getuid(), os.getgid())
    yield 'lchown', lambda: call(94, b(f), os.getuid(), os.getgid())
    yield 'fchownat', lambda: call(260, C, b(f), os.getuid(), os.getgid(), 0)
    yield 'utime', lambda: call(132, b(f), times)
    yield 'utimes', lambda: call(235, b(f), times)
    yield 'futimesat', lambda: call(261, C, b(f), times)
    yield 'utimensat', lambda: call(280, C, b(f), times, 0)
    yield 'utimensat fd', lambda: call(280, fd, 0, times, 0)
    yield 'setxattr', lambda: call(188, b(f), b'user.evil', b'1', 1, 0)
    yield 'lsetxattr', lambda: call(189, b(f), b'user.evil', b'1', 1, 0)
    yield 'fsetxattr', lambda: call(190, fd, b'user.evil', b'1', 1, 0)
    yield 'setxattrat', lambda: call(463, C, b(f), 0, b'user.evil', xattr, 16)
    yield 'removexattr', lambda: call(197, b(f), b'user.kept')
    yield 'lremovexattr', lambda: call(198, b(f), b'user.kept')
    yield 'fremovexattr', lambda: call(199, fd, b'user.kept')
    yield 'removexattrat', lambda: call(466, C, b(f), 0, b'user.kept')
    yield 'open_by_handle_at', lambda: call(304, dfd, (ctypes.c_uint32 * 40)(8, 1), os.O_WRONLY)
    yield 'name_to_handle_at', lambda: call(303, C, b(f), (ctypes.c_uint32 * 40)(128, 0), (ctypes.c_int * 1)(), 0)
    yield 'mount over', lambda: call(165, b(SCRATCH), b(d), 0, 4096, 0)
    yield 'umount', lambda: call(166, b(d), 2)
    yield 'open_tree', lambda: call(428, C, b(d), 1)
    yield 'swapon', lambda: call(167, b(f), 0)
    yield 'acct', lambda: call(163, b(f))
    yield 'quotactl', lambda: call(179, 0, b(f), 0, 0)
def quietly(do, *args):
    try: do(*args)
    except OSError: pass
def fresh(d, f):
    # Where it is allowed, each row finds the same state; where it is not, these are attacks as well.
    n, stolen = d + '/' + N, SCRATCH + '/stolen'
    if os.path.isdir(stolen): quietly(os.rename, stolen, d)
    quietly(os.chmod, d, 0o755)
    for p in (n, stolen, SCRATCH + '/second'): quietly(os.unlink, p); quietly(os.rmdir, p)
    quietly(lambda: open(f, 'w').write('some text'))
    quietly(os.setxattr, f, 'user.kept', b'1')
    quietly(os.mkdir, d + '/empty')
    os.closerange(3, 200)
SCRATCH = 'src/scratch'
for kind, d, f in TARGETS:
    for i in range(len(list(rows(d, f)))):
        fresh(d, f)
        name, do = list(rows(d, f))[i]
        attempt(kind + ' ' + name, do)
"""


def mutation_targets(arena):
    arena.box.write("repo/docs/page.md", "read-only\n")
    arena.box.mkdir("repo/docs/empty")
    arena.box.write("repo/outer/file.txt", "outside the scope\n")
    arena.box.mkdir("repo/outer/empty")
    arena.box.mkdir("repo/.factory/empty")
    arena.box.mkdir("repo/src/scratch")
    for name in ("docs/page.md", "outer/file.txt", ".factory/settings.json"):
        os.setxattr(arena.root / name, "user.kept", b"1")
    return {"ro": ("docs", "docs/page.md"), "protected": (".factory", ".factory/settings.json"), "outside": ("outer", "outer/file.txt")}


def tree_state(*tops):
    found = {}
    for top in tops:
        for path in [top, *sorted(top.rglob("*"))]:
            st = os.lstat(path)
            found[str(path)] = (st.st_ino, st.st_mode, st.st_uid, st.st_nlink, st.st_mtime_ns, st.st_ctime_ns,
                                path.read_bytes() if stat.S_ISREG(st.st_mode) else None, os.listxattr(path, follow_symlinks=False))
    return found


MODES = {
    "folders strict": ["--rw", "src", "--ro", "docs", "--ro", ".factory"],
    "workspace strict": ["--workspace", "src", "--workspace-mode", "strict", "--ro", "docs", "--rw", ".factory"],
    "workspace permissive": ["--workspace", "src", "--workspace-mode", "permissive", "--ro", "docs"],
    "whole root": ["--rw", ".", "--ro", "docs", "--deny", "outer"],
    "lens": ["--lens", "always", "--rw", ".", "--ro", "docs", "--deny", "outer"],
}


@pytest.mark.parametrize("mode", MODES)
def test_f8_no_mutating_call_gets_through_in_any_mode(arena, mode):
    targets = mutation_targets(arena)
    held = ["ro", "protected"] + ([] if "permissive" in mode else ["outside"])
    rows = [(kind, *targets[kind]) for kind in held]
    before = tree_state(*(arena.root / targets[kind][0] for kind in held))
    result = arena.py("TARGETS = %r\n" % (rows,) + MUTATIONS, *MODES[mode], "--protect", ".factory",
                      protect=False, timeout=90)
    after = tree_state(*(arena.root / targets[kind][0] for kind in held))
    assert after == before, ({p: (before.get(p), after.get(p)) for p in set(before) | set(after) if before.get(p) != after.get(p)}, result.stdout)
    found = answers(result)
    assert len(found) == 86 * len(held), (len(found), result)
    done = {name for name, answer in found.items() if answer == "done"}
    if mode in ("workspace permissive", "whole root"):
        assert not done, done


def test_f8_permissive_mode_lets_it_through_and_says_so(arena):
    targets = mutation_targets(arena)
    result = arena.py("TARGETS = %r\n" % ([("outside", *targets["outside"])],) + MUTATIONS,
                      *MODES["workspace permissive"], protect=False, timeout=90)
    assert "outside chmod done" in result.stdout and "WARNING: File access outside workspace" in result.stderr
    events = [json.loads(line) for line in arena.cordon("audit", "--kind", "violation", "--json").stdout.splitlines()]
    told = {(e["op"], os.path.relpath(e["path"], arena.root)) for e in events}
    for op in ("write", "rename", "delete", "create", "read"):
        assert any(o == op and p.startswith("outer") for o, p in told), (op, told)


def test_f8_control_without_protection_the_rows_do_what_they_say(arena):
    """A table whose rows do nothing would prove nothing."""
    targets = mutation_targets(arena)
    script = "TARGETS = %r\n" % ([("outside", *targets["outside"])],) + MUTATIONS
    from arena import PRELUDE
    result = arena.box.run("/usr/bin/python3", "-c", PRELUDE + script, cwd=arena.root)
    done = [line for line in result.stdout.splitlines() if line.endswith(" done")]
    assert len(done) >= 55, result.stdout


# ---- making the supervisor's read fail ----

UNREADABLE = r"""
import mmap, threading, time, signal
PAGE = 4096
space = libc.mmap; space.restype = ctypes.c_void_p; space.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
base = space(None, 3 * PAGE, 3, 0x22, -1, 0)
libc.munmap(ctypes.c_void_p(base + 2 * PAGE), PAGE)
def place(text, end):
    # `text` so that its last byte is the one before address `end`
    ctypes.memmove(end - len(text), text, len(text)); return end - len(text)
def answer(r): return 'done' if r >= 0 else errno.errorcode[-r]
name = b'src/main.c\0'
print('at the end of a page', answer(syscall(257, -100, place(name, base + 2 * PAGE), 0, 0)))
print('across two pages', answer(syscall(257, -100, place(name, base + PAGE + 5), 0, 0)))
print('runs into nothing', answer(syscall(257, -100, place(b'src/main.c', base + 2 * PAGE), 0, 0)))
long = (b'./' * 2042) + b'src/main.c\0'
print('as long as it may be', answer(syscall(257, -100, ctypes.create_string_buffer(long), 0, 0)))
print('longer', answer(syscall(257, -100, ctypes.create_string_buffer(b'./' * 9000 + b'src/main.c'), 0, 0)))
how = (ctypes.c_uint64 * 3)(0x41, 0o644, 0)
for address in (1, 8, 4095, base + 2 * PAGE, base + 2 * PAGE - 1, 1 << 47, (1 << 64) - 1, 0x7fffffffffff, 0xffff888000000000):
    a = ctypes.c_ulong(address)
    for nr, args in ((2, (a, 0x41, 0o644)), (257, (-100, a, 0x41, 0o644)), (437, (-100, a, how, 24)), (437, (-100, b'src/x', a, 24)), (83, (a, 0o755)),
                     (258, (-100, a, 0o755)), (133, (a, 0o100644, 0)), (88, (b'x', a)), (86, (a, a)), (82, (a, b'src/main.c')), (82, (b'src/main.c', a)),
                     (316, (-100, b'src/main.c', -100, a, 0)), (87, (a,)), (84, (a,)), (76, (a, 0)), (90, (a, 0o644)), (188, (a, a, a, 1, 0)),
                     (280, (-100, a, 0, 0)), (49, (0, a, 110)), (59, (a, 0, 0)), (322, (-100, a, 0, 0, 0))):
        r = syscall(nr, *args)
        if r >= 0: print('through', hex(address), nr)
for dirfd in (-1, 77, 99999, 0x7fffffff, -101):
    print('directory %d' % dirfd, answer(syscall(257, dirfd, b'absent.md', 0x41, 0o644)), flush=True)
"""


@pytest.mark.parametrize("options", [STRICT, PERMISSIVE, []])
def test_f9_what_cannot_be_read_is_told_as_such_and_nothing_is_let_through_for_it(arena, options):
    before = tree_state(arena.root)
    result = arena.py(UNREADABLE, "--protect", "absent.md", *options, timeout=90)
    found = answers(result)
    assert result.returncode == 0 and "through" not in result.stdout, result
    assert found.pop("at the end of a page") == "done" and found.pop("across two pages") == "done" and found.pop("as long as it may be") == "done"
    assert found.pop("runs into nothing") in ("EFAULT", "EACCES") and found.pop("longer") in ("ENAMETOOLONG", "EACCES")
    assert set(found.values()) <= {"EBADF", "EACCES", "ENOTDIR"}, found
    if options:
        assert "(unreadable)" in result.stderr, result
    assert tree_state(arena.root) == before


DYING = r"""
import random, signal, time
open('src/left', 'w').close()
deadline = time.time() + 3
n = 0
while time.time() < deadline:
    pids = []
    for _ in range(20):
        pid = os.fork()
        if pid == 0:
            while True:
                try: os.open('absent.md', os.O_CREAT | os.O_WRONLY)
                except OSError: pass
                try: os.rename('src/left', 'gone')
                except OSError: pass
                try: open('outer', 'w')
                except OSError: pass
        pids.append(pid)
    time.sleep(random.random() / 50)
    for pid in pids: os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0); n += 1
print('died', n)
"""


@pytest.mark.parametrize("options", [STRICT, []])
def test_f9_processes_that_die_between_the_notice_and_the_look_change_nothing(arena, options):
    result = arena.py(DYING, "--protect", "absent.md", "--protect", "gone", *options, timeout=90)
    found = answers(result)
    assert result.returncode == 0 and int(found["died"]) > 50, result
    assert not os.path.lexists(arena.root / "absent.md") and not os.path.lexists(arena.root / "gone")
    assert "unreadable" not in result.stderr or len(result.stderr.splitlines()) < 100
    arena.assert_unharmed()


# ---- starving the supervisor ----


@pytest.mark.limit(180)
@pytest.mark.parametrize("options", [STRICT, PERMISSIVE])
def test_f10_five_hundred_threads_in_a_rain_of_signals_are_all_served(arena, tools, options):
    result = arena.sh("src/tools/storm 500 10 src/main.c", *options, "--timeout", "90s", timeout=150)
    found = answers(result)
    assert found["worked"] == "5000" and found["interrupted"] == "0" and found["failed"] == "0" and int(found["signals"]) > 0, result
    assert result.returncode == 0


STOPPED = r"""
import signal, time
pids = []
for _ in range(30):
    pid = os.fork()
    if pid == 0:
        while True:
            try: os.open('absent.md', os.O_CREAT | os.O_WRONLY)
            except OSError: pass
            try: open('src/main.c').close()
            except OSError: pass
    pids.append(pid)
for _ in range(200):
    for pid in pids: os.kill(pid, signal.SIGSTOP)
    for pid in pids: os.kill(pid, signal.SIGCONT)
for pid in pids: os.kill(pid, signal.SIGSTOP)
print('stopped', flush=True)
open('src/main.c').close()
print('served', flush=True)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(600)
"""


def test_f10_stopped_processes_with_notices_pending_stop_neither_the_others_nor_the_end(arena, leftovers):
    result = arena.py(STOPPED, *STRICT, "--protect", "absent.md", "--timeout", "6s", "--grace", "300ms", timeout=60)
    assert result.stdout == "stopped\nserved\n" and result.returncode == 124 and result.seconds < 30, result
    assert not os.path.lexists(arena.root / "absent.md")
    leftovers.assert_none()
    arena.assert_unharmed()


def test_f10_an_agent_that_stops_itself_as_a_whole_ends_at_the_time_limit(arena, leftovers):
    result = arena.sh("for i in 1 2 3; do (while :; do echo >>src/x; done) & done; kill -STOP -1; kill -STOP $$", *STRICT,
                      "--timeout", "1s", "--grace", "300ms", timeout=60)
    assert result.returncode == 124 and result.seconds < 20
    leftovers.assert_none()


def test_f10_a_supervisor_that_is_gone_lets_nothing_through(arena):
    """It fails closed: with its listener gone a watched call is refused, and everything inside ends."""
    process = arena.cordon.start("run", "--root", str(arena.root), "--protect", "absent.md", "--", "sh", "-c",
                                 "echo up; while :; do echo evil >absent.md; done 2>/dev/null", cwd=arena.root)
    assert process.stdout.readline() == b"up\n"
    os.kill(process.pid, signal.SIGSTOP)
    assert not os.path.lexists(arena.root / "absent.md")
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    assert process.stdout.read() == b""  # the last process that held it is gone
    assert not os.path.lexists(arena.root / "absent.md")


# ---- set-user-id and file capabilities ----


def test_f12_neither_set_user_id_nor_file_capabilities_give_anything(arena):
    if os.getuid() != 0:
        pytest.skip("only root can plant such programs")
    other = 54322 if arena.box.who.is_root else 0  # whom a planted program would make of us
    for name, mode in (("suid", 0o6755), ("capable", 0o755)):
        shutil.copy("/usr/bin/python3", arena.root / f"src/{name}")
        os.chown(arena.root / f"src/{name}", other, other)
        os.chmod(arena.root / f"src/{name}", mode)
    # cap_sys_admin, cap_dac_override and cap_setuid, permitted and effective.
    os.setxattr(arena.root / "src/capable", "security.capability", struct.pack("<IIIII", 0x02000001, 1 << 21 | 1 << 1 | 1 << 7, 0, 0, 0))
    look = ("-c", "import os; print(os.geteuid(), os.getegid(), [l.split()[1] for l in open('/proc/self/status') if l.startswith('CapEff')][0])")
    for name in ("suid", "capable"):
        result = arena.cordon("run", "--root", str(arena.root), "--", f"src/{name}", *look, cwd=arena.root)
        uid = arena.box.who.uid
        assert result.stdout == f"{uid} {uid} {'0' * 16}\n", result
    control = arena.box.run(str(arena.root / "src/suid"), *look)
    assert control.stdout.split()[0] == str(other), control
    if not arena.box.who.is_root:
        assert arena.box.run(str(arena.root / "src/capable"), *look).stdout.split()[2] != "0" * 16


def test_f12_set_user_id_programs_of_the_system_give_nothing(arena):
    result = arena.sh("find /usr -xdev -perm /6000 -type f; grep -E ' / | /usr | /tmp | %s ' /proc/self/mounts; grep NoNewPrivs /proc/self/status" % arena.root)
    lines = result.stdout.splitlines()
    assert [line for line in lines if line.startswith("/usr/")], "the system has such programs"
    mounts = [line for line in lines if len(line.split()) == 6]
    assert len(mounts) >= 4 and all("nosuid" in line.split()[3].split(",") for line in mounts), result
    assert "NoNewPrivs:\t1" in lines
    everywhere = arena.sh("grep -v nosuid /proc/self/mounts")
    assert [line.split()[1] for line in everywhere.stdout.splitlines() if not line.split()[1].startswith("/proc/pins")] == [], everywhere
