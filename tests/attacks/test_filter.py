# SPDX-License-Identifier: Apache-2.0
"""Class F: around the filter and the watch. The filter itself is tested call by call in tests/unit/test_seccomp.c."""
import os
import shutil

import pytest

from arena import answers

CALLS = """
for name, number, args in (('io_uring_setup', 425, (4, 0)), ('io_uring_enter', 426, (0, 0, 0, 0, 0)), ('io_uring_register', 427, (0, 0, 0, 0)),
                           ('keyctl', 250, (0, 0)), ('add_key', 248, (0, 0, 0, 0)), ('bpf', 321, (0, 0, 0)), ('perf_event_open', 298, (0, 0, 0, 0, 0)),
                           ('userfaultfd', 323, (0,)), ('kexec_load', 246, (0, 0, 0, 0)), ('init_module', 175, (0, 0, 0)),
                           ('open_by_handle_at', 304, (0, 0, 0)), ('name_to_handle_at', 303, (0, 0, 0, 0, 0)), ('setns', 308, (0, 0)),
                           ('mount', 165, (0, 0, 0, 0, 0)), ('fsopen', 430, (0, 0)), ('open_tree', 428, (0, 0, 0)), ('move_mount', 429, (0, 0, 0, 0, 0)),
                           ('pivot_root', 155, (0, 0)), ('swapon', 167, (0, 0)), ('reboot', 169, (0, 0, 0)), ('unknown', 1000, ()), ('clone3', 435, (0, 0))):
    print(name, errno.errorcode.get(-syscall(number, *args), 'done'))
def killed(name, number):
    pid = os.fork()
    if pid == 0:
        syscall(number, 0, 0, 0)
        os._exit(0)
    print(name, 'killed' if os.WIFSIGNALED(os.waitpid(pid, 0)[1]) else 'survived')
killed('x32', 0x40000000 | 39)
killed('x32-mount', 0x40000000 | 165)
killed('native', 39)
"""


def test_f1_f4_f6_refused_calls_stay_refused_in_a_live_sandbox(arena):
    found = answers(arena.py(CALLS))
    assert found.pop("x32") == found.pop("x32-mount") == "killed" and found.pop("native") == "survived", found
    assert found.pop("unknown") == found.pop("clone3") == "ENOSYS"
    assert len(found) == 20 and set(found.values()) == {"EPERM"}, found


def test_f6_control_bubblewrap_lets_io_uring_and_namespaces_through(arena):
    found = answers(arena.bwrap(CALLS.split("def killed")[0], program="/usr/bin/python3"))
    assert found["io_uring_setup"] != "EPERM" and found["clone3"] != "ENOSYS", found


FLIP = """
import threading, time
buf = ctypes.create_string_buffer(b'src/main.c', 64)
stop = False
def flip():
    while not stop:
        buf.raw = b'secret/key\\0' + bytes(53)
        buf.raw = b'src/main.c\\0' + bytes(53)
t = threading.Thread(target=flip); t.start()
sys.setswitchinterval(1e-5)
end = time.time() + 5
rounds = leaked = 0
while time.time() < end and rounds < 100000:
    fd = syscall(257, -100, buf, os.O_RDWR, 0)
    rounds += 1
    if fd >= 0:
        if b'secret' in os.pread(fd, 100, 0):
            leaked += 1
        os.pwrite(fd, b'/', 0)
        os.close(fd)
stop = True; t.join()
print('rounds', rounds); print('leaked', leaked)
"""


def test_f7_no_permission_rests_on_a_path_that_flips_after_the_check(arena):
    arena.box.write("repo/secret/key", "secret\n")
    result = arena.cordon("run", "--root", str(arena.root), "--workspace", "src", "--workspace-mode", "strict", "--", "/usr/bin/python3", "-c",
                          __import__("arena").PRELUDE + FLIP, cwd=arena.root, timeout=100)
    found = answers(result)
    assert int(found["rounds"]) > 500 and found["leaked"] == "0", result
    assert (arena.root / "secret/key").read_text() == "secret\n"


def test_f9_a_name_that_cannot_be_read_lets_nothing_through(arena):
    result = arena.py("""
import mmap
page = mmap.mmap(-1, 8192)
base = ctypes.addressof(ctypes.c_char.from_buffer(page))
libc.mprotect(ctypes.c_void_p(base + 4096), 4096, 0)
name = b'absent.md\\0'
ctypes.memmove(base + 4096 - len(name), name, len(name))
print('edge', errno.errorcode.get(-syscall(257, -100, ctypes.c_void_p(base + 4096 - len(name)), os.O_CREAT | os.O_WRONLY, 0o600), 'done'))
print('unmapped', errno.errorcode.get(-syscall(257, -100, ctypes.c_void_p(16), os.O_CREAT | os.O_WRONLY, 0o600), 'done'))
print('unended', errno.errorcode.get(-syscall(257, -100, ctypes.c_void_p(base + 4090), os.O_CREAT | os.O_WRONLY, 0o600), 'done'))
for i in range(50):
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), 9) if i % 2 else syscall(257, -100, b'x%d' % i, os.O_CREAT | os.O_WRONLY, 0o600)
        os._exit(0)
    os.waitpid(pid, 0)
print('alive yes')
""", "--protect", "absent.md")
    found = answers(result)
    assert found["edge"] == "EACCES" and found["unmapped"] == "EFAULT" and found["alive"] == "yes", result
    assert not os.path.lexists(arena.root / "absent.md")


def test_f10_many_threads_and_signal_storms_do_not_stop_the_supervisor(arena):
    result = arena.py("""
import signal, threading, time
signal.signal(signal.SIGALRM, lambda *a: None)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
failed = []
def work(n):
    for i in range(10):
        try:
            os.close(os.open('src/t%d-%d' % (n, i), os.O_CREAT | os.O_WRONLY))
        except OSError as e:
            failed.append(e.errno)
threads = [threading.Thread(target=work, args=(n,)) for n in range(200)]
[t.start() for t in threads]; [t.join() for t in threads]
print('failed', len(failed)); print('made', len([f for f in os.listdir('src') if f.startswith('t')]))
""", "--timeout", "60s", timeout=100)
    found = answers(result)
    assert found == {"failed": "0", "made": "2000"}, result


def test_f12_set_user_id_programs_give_nothing(arena, who):
    planted = arena.root / "src/suid-id"
    shutil.copy("/usr/bin/id", planted)
    if os.getuid() == 0:
        os.chown(planted, 0 if not who.is_root else 54321, 0)
    os.chmod(planted, 0o6755)
    result = arena.sh("src/suid-id -u; id -u; find /usr/bin -perm -4000 | head -1 | xargs -r ls -l >/dev/null; chmod 6755 src/main.c; true")
    assert result.stdout.splitlines() == [str(who.uid), str(who.uid)], result


@pytest.mark.parametrize("mode", ["strict", "permissive"])
def test_f8_no_sibling_call_changes_what_is_read_only_or_protected(arena, mode):
    arena.box.write("repo/docs/r.txt", "read only\n")
    calls = """
import fcntl
for p in ('AGENTS.md', 'docs/r.txt'):
    path = p.encode()
    rd = os.open(p, os.O_RDONLY)
    how = (ctypes.c_uint64 * 3)(os.O_WRONLY, 0, 0)
    for name, number, args in (('truncate', 76, (path, 0)), ('creat', 85, (path, 0o600)), ('openat2', 437, (-100, path, ctypes.byref(how), 24)),
            ('fchmodat2', 452, (-100, path, 0o777, 0)), ('chmod', 90, (path, 0o777)), ('setxattr', 188, (path, b'user.a', b'1', 1, 0)),
            ('lsetxattr', 189, (path, b'user.a', b'1', 1, 0)), ('unlink', 87, (path,)), ('unlinkat', 263, (-100, path, 0)),
            ('utimensat', 280, (-100, path, 0, 0)), ('utime', 132, (path, 0)), ('rename', 82, (path, b'src/stolen')),
            ('linkat', 265, (-100, path, -100, b'src/linked', 0)), ('linkat fd', 265, (rd, b'', -100, b'src/linked', 0x1000)),
            ('fallocate', 285, (rd, 0, 0, 100)), ('ftruncate', 77, (rd, 0)), ('fsetxattr', 190, (rd, b'user.a', b'1', 1, 0)),
            ('FICLONE', 16, (rd, 0x40049409, os.open('src/main.c', os.O_RDONLY))), ('mknodat', 259, (-100, path, 0o100600, 0)),
            ('mkdir', 83, (path, 0o700)), ('symlink', 88, (b'x', path)), ('removexattr', 197, (path, b'user.a'))):
        print(name, p, errno.errorcode.get(-syscall(number, *args), 'done'))
"""
    options = ["--rw", ".", "--ro", "docs", "--workspace-mode", mode]
    result = arena.py(calls, *options)
    lines = [line for line in result.stdout.splitlines() if " " in line]
    assert len(lines) == 44 and not [line for line in lines if line.endswith("done")], result
    assert (arena.root / "docs/r.txt").read_text() == "read only\n" and os.stat(arena.root / "docs/r.txt").st_mode & 0o777 == 0o644
    assert not os.path.lexists(arena.root / "src/stolen") and not os.path.lexists(arena.root / "src/linked")
    arena.assert_unharmed()
