# SPDX-License-Identifier: Apache-2.0
"""Leaving the sandbox through /proc, descriptors, the working directory and mounts; reaching neighbours."""
import array
import hashlib
import os
import socket
import stat
import subprocess
import threading
import time

import pytest

from arena import answers
from support import cgroups, descendants, landlock_scopes, poll, read_stat

HIGH = (3, 9, 255, 900)  # descriptor numbers an agent might find something at


def finish(process, timeout=60):
    out, err = process.communicate(timeout=timeout)
    return process.returncode, os.fsdecode(out or b""), os.fsdecode(err or b"")


def script(arena, text, *options):
    """Words of a run whose program starts with the usual prelude."""
    from arena import PRELUDE
    return ["run", "--root", str(arena.root), *arena.protect(), *options, "--", "/usr/bin/python3", "-c", PRELUDE + text]


@pytest.fixture
def secret(box):
    """A file of the caller beside the workspace."""
    path = box.write("outside/secret.txt", "a secret\n", mode=0o600)
    box.write("outside/mode.txt", "x\n", mode=0o600)
    return path


@pytest.fixture
def inherited(box, secret):
    """What a careless caller leaves open: a directory, a place, a writable file, a socket."""
    ours, theirs = socket.socketpair()
    opened = [os.open(secret.parent, os.O_RDONLY | os.O_DIRECTORY), os.open(secret.parent, os.O_PATH),
              os.open(secret, os.O_RDWR), theirs.detach()]
    yield ours, dict(zip(HIGH, opened))
    for fd in opened:
        os.close(fd)
    ours.close()


LEAVE = r"""
print('descriptors', ','.join(sorted(n for n in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + n))))
for n in %r:
    attempt('file %%d' %% n, lambda: os.write(n, b'evil'))
    attempt('beneath %%d' %% n, lambda: os.open('secret.txt', os.O_RDONLY, dir_fd=n))
    attempt('above %%d' %% n, lambda: os.open('..', os.O_RDONLY, dir_fd=n))
    attempt('mode %%d' %% n, lambda: os.chmod('mode.txt', 0o666, dir_fd=n))
    attempt('enter %%d' %% n, lambda: os.fchdir(n))
""" % (HIGH,)


def test_d1_only_the_three_streams_arrive(arena, inherited, secret):
    ours, fds = inherited
    result = arena.py(LEAVE, fds=fds)
    found = answers(result)
    assert len(found) == 1 + 5 * len(HIGH), result
    assert "done" not in found.values(), result
    assert set(found.pop("descriptors").split(",")) == {"0", "1", "2"}
    assert set(found.values()) <= {"EBADF"}, found
    assert secret.read_text() == "a secret\n" and stat.S_IMODE(os.stat(secret.with_name("mode.txt")).st_mode) == 0o600
    ours.setblocking(False)
    with pytest.raises(BlockingIOError):
        ours.recv(10)


def test_d1_control_in_bubblewrap_they_do(arena, inherited, secret):
    ours, fds = inherited
    found = answers(arena.bwrap(LEAVE, program="/usr/bin/python3", fds=fds))
    assert found["file 255"] == "done" and found["above 3"] == "done" and found["mode 9"] == "done"
    assert secret.read_text() != "a secret\n" and ours.recv(10) == b"evil"


def test_d1_the_working_directory_was_entered_after_the_new_root(arena, secret):
    """The caller stands outside, in a directory that is not shown; one that was removed; the root itself."""
    for cwd in (secret.parent, "/"):
        result = arena.cordon("run", "--root", str(arena.root), "--", "/bin/sh", "-c", "pwd -P; cat secret.txt ../outside/secret.txt",
                              cwd=cwd)
        assert result.stdout == f"{arena.root}\n", result
    gone = arena.box.mkdir("outside/gone")
    result = arena.box.run("/bin/sh", "-c", f"rmdir {gone}; exec {arena.cordon.path} run --root {arena.root} -- /bin/sh -c 'pwd -P; ls ..'",
                           cwd=gone)
    assert result.stdout.splitlines()[:1] == [str(arena.root)] and "outside" not in result.stdout, result


REOPEN = r"""
for name, flags in dict(write=os.O_WRONLY, both=os.O_RDWR, trunc=os.O_WRONLY | os.O_TRUNC, append=os.O_WRONLY | os.O_APPEND).items():
    attempt('proc ' + name, lambda: os.write(os.open('/proc/self/fd/0', flags), b'evil'))
    attempt('dev ' + name, lambda: os.write(os.open('/dev/stdin', flags), b'evil'))
    attempt('thread ' + name, lambda: os.write(os.open('/proc/thread-self/fd/0', flags), b'evil'))
attempt('fchmod', lambda: os.fchmod(0, 0o777))
attempt('times', lambda: os.utime(0, (1, 1)))
attempt('xattr', lambda: os.setxattr(0, 'user.evil', b'1'))
attempt('truncate', lambda: os.ftruncate(0, 0))
attempt('chmod', lambda: os.chmod('/proc/self/fd/0', 0o777))
attempt('link', lambda: os.link('/proc/self/fd/0', 'second', follow_symlinks=True))
attempt('link empty', lambda: (_ for _ in ()).throw(OSError(-syscall(265, 0, b'', -100, b'second', 0x1000), '')))
print('content', os.read(0, 100).decode().strip())
"""


@pytest.mark.parametrize("name", ["repo/AGENTS.md", "repo/deep/er/held.txt", "outside/secret.txt"])
def test_a_file_given_as_standard_input_stays_as_it_is(arena, secret, name):
    path = arena.box.path / name
    before = (path.read_bytes(), os.stat(path).st_mode, os.stat(path).st_mtime_ns, os.stat(path).st_nlink)
    with open(path) as stream:
        code, out, err = finish(arena.cordon.start(*script(arena, REOPEN), cwd=arena.root, stdin=stream))
    found = dict(line.rsplit(" ", 1) for line in out.splitlines() if not line.startswith("content"))
    assert code == 0 and len(found) > 15 and "done" not in found.values(), (out, err)
    assert f"content {before[0].decode().strip()}\n" in out
    assert (path.read_bytes(), os.stat(path).st_mode, os.stat(path).st_mtime_ns, os.stat(path).st_nlink) == before
    assert os.listxattr(path) == [] and not os.path.lexists(arena.root / "second")
    arena.assert_unharmed()


def test_control_in_bubblewrap_a_protected_file_given_as_standard_input_is_overwritten(arena):
    words = ["bwrap", "--bind", "/", "/", "--ro-bind", str(arena.root / "AGENTS.md"), str(arena.root / "AGENTS.md"), "sh", "-c",
             "echo evil >/proc/self/fd/0"]
    with open(arena.root / "AGENTS.md") as stream:
        finish(arena.box.start(*words, cwd=arena.root, stdin=stream))
    assert (arena.root / "AGENTS.md").read_text() == "evil\n"


def test_reading_a_file_as_standard_input_goes_on_where_the_caller_stood(arena):
    path = arena.box.write("input", "first line\nsecond line\n")
    with open(path, "rb", buffering=0) as stream:
        stream.read(11)
        code, out, _ = finish(arena.cordon.start("run", "--root", str(arena.root), "--", "cat", cwd=arena.root, stdin=stream))
    assert code == 0 and out == "second line\n"


def test_standard_output_may_be_a_file_and_cannot_be_read_back_or_taken_back(arena):
    path = arena.box.write("outside/log", "older lines\n")
    with open(path, "a") as stream:
        process = arena.cordon.start(*script(arena, """
print('from the agent', flush=True)
attempt('read back', lambda: os.pread(1, 10, 0))
attempt('truncate', lambda: os.ftruncate(1, 0))
attempt('open again', lambda: os.close(os.open('/dev/stdout', os.O_WRONLY | os.O_TRUNC)))
print(os.readlink('/proc/self/fd/1').split(':')[0])
"""), cwd=arena.root, stdout=stream)
        process.communicate(timeout=60)
    # It is a pipe, which leads to no file.
    assert path.read_text() == "older lines\nfrom the agent\nread back ESPIPE\ntruncate EINVAL\nopen again done\npipe\n"


@pytest.mark.parametrize("flags", [os.O_RDONLY | os.O_DIRECTORY, os.O_PATH | os.O_DIRECTORY, os.O_PATH])
@pytest.mark.parametrize("number", [0, 2])
def test_a_stream_that_is_a_directory_or_a_place_is_refused(arena, secret, flags, number):
    fd = os.open(secret.parent if flags & os.O_DIRECTORY else secret, flags)
    try:
        streams = {"stdin": fd} if number == 0 else {"stderr": fd}
        process = arena.cordon.start("run", "--root", str(arena.root), "--", "echo", "started", cwd=arena.root, **streams)
        code, out, err = finish(process)
    finally:
        os.close(fd)
    assert code == 125 and out == "", (code, out, err)
    assert number == 2 or "standard input is" in err


def test_devices_given_as_streams_and_those_inside_keep_their_modes_and_times(arena):
    def look():
        return [(os.stat(f"/dev/{d}").st_mode, os.stat(f"/dev/{d}").st_uid) for d in ("null", "zero", "full", "random", "urandom", "tty")]

    before, times = look(), os.stat("/dev/full").st_mtime_ns
    with open("/dev/full") as stream:
        code, out, err = finish(arena.cordon.start(*script(arena, """
attempt('stream', lambda: os.fchmod(0, 0o600))
attempt('stream times', lambda: os.utime(0, (1, 1)))
for d in ('null', 'zero', 'full', 'random', 'urandom', 'tty'):
    attempt(d, lambda: os.chmod('/dev/' + d, 0o600))
    attempt(d + ' times', lambda: os.utime('/dev/' + d, (1, 1)))
    attempt(d + ' moved', lambda: os.rename('/dev/' + d, '/dev/x'))
attempt('made', lambda: os.mknod('/dev/shm/sda', 0o60666, os.makedev(254, 0)))
attempt('works', lambda: (open('/dev/null', 'w').write('x'), open('/dev/zero', 'rb').read(9), open('/dev/urandom', 'rb').read(9)))
"""), cwd=arena.root, stdin=stream))
    found = dict(line.rsplit(" ", 1) for line in out.splitlines())
    assert found.pop("works") == "done" and len(found) == 21 and "done" not in found.values(), (out, err)
    assert look() == before and os.stat("/dev/full").st_mtime_ns == times


def test_control_in_bubblewrap_root_changes_the_mode_of_a_device(arena):
    if not arena.box.who.is_root:
        return  # nobody else owns a device
    device = arena.box.path / "full"  # a node of its own: other tests look at those in /dev meanwhile
    os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 7))
    arena.box.run("bwrap", "--dev-bind", "/", "/", "chmod", "0606", str(device))
    assert stat.S_IMODE(os.stat(device).st_mode) == 0o606


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_filled_with_nothing_and_never_with_the_audit_log(arena, closed):
    result = arena.box.run("/bin/sh", "-c", f"{arena.cordon.path} run --root {arena.root} --protect absent.md -- /bin/sh -c "
                           f"'echo x >absent.md; echo text; echo text >&2; ls -l /proc/self/fd >fds' {closed}", cwd=arena.root)
    streams = [line for line in (arena.root / "fds").read_text().splitlines() if " -> " in line]
    assert [line.split()[-3] for line in streams[:3]] == ["0", "1", "2"] and "/state" not in "".join(streams), result
    verify = arena.cordon("audit", "verify")
    assert verify.returncode == 0, verify


D2 = r"""
seen = [p for p in os.listdir('/proc') if p.isdigit()]
print('seen', len(seen))
for pid in seen:
    if int(pid) == os.getpid():
        continue
    for what in ('root', 'cwd', 'exe'):
        attempt('%s %s' % (what, pid), lambda: os.listdir('/proc/%s/%s' % (pid, what)) if what != 'exe' else os.open('/proc/%s/exe' % pid, os.O_RDONLY))
    for what in ('fd', 'map_files', 'fdinfo'):
        attempt('%s %s' % (what, pid), lambda: [os.open('/proc/%s/%s/%s' % (pid, what, n), os.O_RDONLY) for n in os.listdir('/proc/%s/%s' % (pid, what))])
    for what in ('mem', 'environ', 'maps', 'auxv', 'syscall', 'stack', 'io', 'pagemap'):
        attempt('%s %s' % (what, pid), lambda: open('/proc/%s/%s' % (pid, what), 'rb').read(1))
    attempt('trace %s' % pid, lambda: (_ for _ in ()).throw(OSError(-syscall(101, 16, int(pid), 0, 0), '')))
    attempt('getfd %s' % pid, lambda: (_ for _ in ()).throw(OSError(-syscall(438, os.pidfd_open(int(pid)), 0, 0), '')))
    attempt('limits %s' % pid, lambda: (_ for _ in ()).throw(OSError(-syscall(302, int(pid), 7, (ctypes.c_uint64 * 2)(1, 1), 0), '')))
    attempt('score %s' % pid, lambda: open('/proc/%s/oom_score_adj' % pid, 'w').write('1000'))
    attempt('kill %s' % pid, lambda: os.kill(int(pid), 9))
print('root', sorted(os.listdir('/proc/self/root')) == sorted(os.listdir('/')))
print('alive', os.path.exists('/proc/1'))
"""


def test_d2_no_other_process_can_be_looked_into(arena, secret):
    beside = arena.box.start("sleep", "54327")
    found = answers(arena.py(D2))
    assert beside.poll() is None
    assert int(found.pop("seen")) == 2 and found.pop("root") == "True" and found.pop("alive") == "True", found
    if not landlock_scopes():
        assert found.pop("kill 1") == "done"  # which PID 1 of a namespace does not notice
        found["kill 1"] = "EPERM"
    assert len(found) == 19 and set(found.values()) <= {"EACCES", "EPERM", "EROFS", "ENOENT", "ESRCH"}, found
    arena.assert_unharmed()


STARVE = r"""
buf = (ctypes.c_uint64 * 16)(1, 1)
zero = (ctypes.c_uint64 * 16)()
idle = (ctypes.c_uint32 * 16)(48, 5)
def call(*args):
    r = syscall(*args)
    if r < 0: raise OSError(-r, 'x')
open('up', 'w').close()
while not os.path.exists('go'): pass
for n in range(16):
    attempt('prlimit %d' % n, lambda: call(302, 1, n, buf, 0))
    attempt('prlimit rubbish %d' % n, lambda: call(302, 0xdead00000001, n, buf, 0))
attempt('affinity', lambda: call(203, 1, 8, buf))
attempt('scheduler', lambda: call(144, 1, 5, zero))
attempt('attributes', lambda: call(314, 1, idle, 0))
attempt('priority', lambda: call(141, 0, 1, 19))
attempt('priority of the user', lambda: call(141, 2, 0, 19))
attempt('priority of the group', lambda: call(141, 1, 1, 19))
attempt('io priority', lambda: call(251, 1, 1, 3 << 13))
attempt('io priority of the user', lambda: call(251, 3, 0, 3 << 13))
attempt('own limits', lambda: call(302, 0, 4, zero, 0))
attempt('own limits by number', lambda: call(302, os.getpid(), 4, zero, 0))
calm = max(3, os.getpriority(os.PRIO_PROCESS, 0))  # who started the tests may be calmer
attempt('own priority', lambda: call(141, 0, 0, calm))
attempt('own group', lambda: call(141, 1, 0, calm))
attempt('own affinity', lambda: call(203, 0, 8, (ctypes.c_uint64 * 1)(1)))
print('end', flush=True)
os.read(0, 1)
"""


def test_pid_1_which_binds_protected_paths_again_cannot_be_limited_or_starved(arena):
    def state(pid):
        fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
        return open(f"/proc/{pid}/limits").read(), fields[15:17], os.sched_getaffinity(pid), os.sched_getscheduler(pid)

    process = arena.cordon.start(*script(arena, STARVE), cwd=arena.root, stdin=subprocess.PIPE)
    poll((arena.root / "up").exists, what="the agent runs", seconds=20)
    init = [pid for pid in descendants(process.pid) if read_stat(pid)[1] == process.pid][0]
    before = state(init)
    (arena.root / "go").write_text("")
    lines = []
    while not lines or lines[-1] != b"end\n":
        lines.append(process.stdout.readline())
        assert lines[-1], process.communicate()
    assert state(init) == before
    (arena.root / "deep/er/new").write_text("saved by the host\n")
    os.rename(arena.root / "deep/er/new", arena.root / "deep/er/held.txt")
    process.communicate(b"\n", timeout=20)
    found = dict(os.fsdecode(line).strip().rsplit(" ", 1) for line in lines[:-1])
    own = {name: found.pop(name) for name in list(found) if name.startswith("own ")}
    assert set(own.values()) == {"done"} and len(found) == 40 and set(found.values()) == {"EPERM"}, (own, found)


def test_d2_control_without_an_own_pid_namespace_other_processes_are_seen(arena):
    beside = arena.box.start("sleep", "54328")
    result = arena.bwrap(f"tr '\\0' ' ' </proc/{beside.pid}/cmdline")
    assert "sleep 54328" in result.stdout, result


@pytest.mark.parametrize("options", [[], ["--workspace", "src,deep", "--workspace-mode", "strict"],
                                     ["--workspace", "src,deep", "--workspace-mode", "permissive"]])
def test_d4_nothing_is_opened_on_the_agents_behalf(arena, options):
    """With the watch on every open is looked at by the supervisor: /proc/self and /dev/fd must stay the agent's own."""
    process = arena.cordon.start("run", "--root", str(arena.root), "--env", "MINE=agent", *options, "--", "/usr/bin/python3", "-c", """
import os
r, w = os.pipe(); os.write(w, b'own pipe'); os.dup2(r, 0)
print(os.read(os.open('/dev/fd/0', os.O_RDONLY), 20).decode())
print('MINE=agent' in open('/proc/self/environ').read(), 'PARENT_SECRET' in open('/proc/self/environ').read())
print(open('/proc/self/comm').read().strip(), open('/proc/thread-self/stat').read().split()[0] == str(os.getpid()))
print(os.path.basename(os.readlink('/proc/self/exe')))
""", cwd=arena.root, env={"PARENT_SECRET": "x"})
    code, out, err = finish(process)
    lines = out.splitlines()
    assert code == 0 and lines[:3] == ["own pipe", "True False", "python3 True"] and lines[3].startswith("python3"), (out, err)


def digest(path):
    return hashlib.sha256(open(path, "rb").read()).hexdigest(), os.stat(path).st_ino, os.stat(path).st_mode, os.stat(path).st_mtime_ns


def test_d6_our_program_cannot_be_overwritten(arena):
    before = digest(arena.cordon.path)
    result = arena.py(r"""
for name, flags in dict(read=os.O_RDONLY, path=os.O_PATH, write=os.O_WRONLY, trunc=os.O_RDWR | os.O_TRUNC).items():
    attempt('exe ' + name, lambda: os.open('/proc/1/exe', flags))
    attempt('task ' + name, lambda: os.open('/proc/1/task/1/exe', flags))
attempt('chmod', lambda: os.chmod('/proc/1/exe', 0o777))
attempt('run', lambda: os.execv('/proc/1/exe', ['cordon', '--version']))
# The last moment: somebody still looks when the first process of the sandbox goes.
if os.fork() == 0:
    os.setsid()
    while True:
        try:
            os.write(os.open('/proc/1/exe', os.O_WRONLY), b'#!/bin/sh')
        except OSError:
            pass
""")
    found = answers(result)
    assert len(found) == 10 and "done" not in found.values(), result
    assert digest(arena.cordon.path) == before


@pytest.mark.parametrize("command", [["/proc/self/exe", "--version"], ["./hashbang"], ["./link"], ["/proc/1/exe"], ["/proc/thread-self/exe"]])
def test_d6_the_command_cannot_be_our_program_under_another_name(arena, command):
    """What runs before the agent is our program: a command that leads back to it must not run it for the agent."""
    arena.box.write("repo/hashbang", "#!/proc/self/exe --version\n", mode=0o755)
    arena.box.link("repo/link", "/proc/self/exe")
    before = digest(arena.cordon.path)
    result = arena.cordon("run", "--root", str(arena.root), "--", *command, cwd=arena.root)
    assert result.returncode in (126, 127) and "cordon 0" not in result.stdout, result
    assert digest(arena.cordon.path) == before


CGROUPS = r"""
import subprocess
tables = open('/proc/self/mountinfo').read()
print('mounted', ' - cgroup' in tables)
found = subprocess.run(['find', '/', '-xdev', '-name', 'cgroup.procs', '-o', '-xdev', '-name', 'release_agent'], capture_output=True, text=True).stdout
for top, names, files in os.walk('/sys/fs/cgroup'):
    for f in files:
        if f in ('cgroup.procs', 'tasks', 'release_agent', 'notify_on_release', 'pids.max', 'memory.limit_in_bytes', 'memory.max', 'cgroup.subtree_control'):
            attempt('write ' + top + '/' + f, lambda: open(os.path.join(top, f), 'w').write('0'))
    attempt('make ' + top, lambda: os.mkdir(os.path.join(top, 'evil')))
    if top.count('/') > 5:
        names.clear()
print('found', len(found.split()))
os.makedirs('/tmp/cg', exist_ok=True)
for kind in (b'cgroup', b'cgroup2'):
    attempt('mount ' + kind.decode(), lambda: (_ for _ in ()).throw(OSError(-syscall(165, kind, b'/tmp/cg', kind, 0, b'pids'), '')))
print('namespace', open('/proc/self/cgroup').read().split(':')[-1].strip())
"""


@pytest.mark.parametrize("options", [[], ["--workspace", "src", "--workspace-mode", "permissive"]])
def test_d9_no_cgroup_can_be_made_left_or_changed(arena, options):
    limit = ["--pids", "64"]
    result = arena.py(CGROUPS, *limit, *options)
    lines = result.stdout.splitlines()
    assert lines and "done" not in [line.rsplit(" ", 1)[1] for line in lines], result
    found = dict(line.rsplit(" ", 1) for line in lines)
    assert found["mount cgroup"] == "EPERM" and found["mount cgroup2"] == "EPERM"
    if not options:
        assert found["mounted"] == "False" and found["found"] == "0" and len(lines) == 5, result
    poll(lambda: not [c for c in cgroups() if str(os.getpid()) in c or "evil" in c], what="no cgroup left")
    assert not [c for top, names, _ in os.walk("/sys/fs/cgroup") for c in names if c == "evil"]


def test_d9_control_in_bubblewrap_root_makes_cgroups(arena):
    hierarchies = [p for p in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup") if os.access(p, os.W_OK)]
    if not arena.box.who.is_root or not hierarchies:
        return  # an ordinary user may not anyway
    made = f"{hierarchies[0]}/attack-{os.getpid()}"
    arena.box.run("bwrap", "--bind", "/", "/", "mkdir", made)
    assert os.path.isdir(made)
    os.rmdir(made)


class Giver:
    """A process of the host that hands a descriptor to whoever connects."""

    def __init__(self, address, fd):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(address)
        self.socket.listen()
        self.met = 0
        self.fd = fd
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            self.met += 1
            peer.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [self.fd]))])
            peer.close()

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join(5)


TAKE = r"""
import socket, array
def take(address):
    s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect(address)
    data, control, _, _ = s.recvmsg(10, 100)
    fd = array.array('i', control[0][2][:4])[0]
    print('read', open(os.open('secret.txt', os.O_RDONLY, dir_fd=fd)).read().strip())
attempt('path', lambda: take(%r))
attempt('abstract', lambda: take(%r))
"""


def test_d11_no_peer_outside_can_pass_a_descriptor_in(arena, secret):
    fd = os.open(secret.parent, os.O_RDONLY)
    path, name = str(arena.box.path / "giver"), f"\0cordon-giver-{os.getpid()}-{arena.box.path.name}"
    givers = [Giver(path, fd), Giver(name, fd)]
    os.chmod(path, 0o777)
    try:
        found = answers(arena.py(TAKE % (path, name)))
        refusals = {"path": "ENOENT", "abstract": "EPERM"} if landlock_scopes() else {"path": "EACCES", "abstract": "EACCES"}
        assert found == refusals and [g.met for g in givers] == [0, 0], found
        control = arena.bwrap(TAKE % (path, name), "--bind", path, path, program="/usr/bin/python3")
        assert control.stdout.count("read a secret") == 2 and [g.met for g in givers] == [1, 1], control
    finally:
        for giver in givers:
            giver.close()
        os.close(fd)


@pytest.fixture
def neighbours(box):
    """Two tenants' workspaces below one project, as the session front end has them."""
    for name in ("one", "two"):
        box.write(f"projects/p1/workspaces/{name}-tenant/notes.txt", f"{name}'s notes\n")
    box.write("projects/p1/metadata.json", "{}\n")
    box.write("projects/p1/sessions/one-session.jsonl", "{}\n")
    return box.path / "projects/p1/workspaces"


J1 = r"""
cd ..; ls -a; cat metadata.json ../metadata.json ../two-tenant/notes.txt
cat /workspace/../metadata.json /workspace/../../metadata.json
cat {root}/two-tenant/notes.txt {root}/../metadata.json
for p in /proc/self/root /proc/self/cwd /proc/$$/root /proc/1/root /proc/1/cwd; do cat $p/../two-tenant/notes.txt $p{root}/two-tenant/notes.txt; done
ls / /home /tmp /var; find / -xdev \( -name 'two-tenant*' -o -name metadata.json -o -name 'one-session*' \)
"""


def test_j1_no_neighbour_is_there_and_neither_is_its_name(arena, neighbours):
    result = arena.cordon("run", "--root", str(neighbours / "one-tenant"), "--at", "/workspace", "--", "/bin/sh", "-c",
                          "pwd; cat notes.txt;" + J1.format(root=neighbours), cwd=neighbours / "one-tenant")
    assert result.stdout.startswith("/workspace\none's notes\n"), result
    for word in ("two's notes", "two-tenant", "metadata.json", "one-session"):
        assert word not in result.stdout, (word, result)


def test_j1_control_a_process_without_a_sandbox_sees_them(arena, neighbours):
    result = arena.box.run("/bin/sh", "-c", "cd ..; ls; cat two-tenant/notes.txt", cwd=neighbours / "one-tenant")
    assert "two's notes" in result.stdout


@pytest.mark.parametrize("table", ["mountinfo", "mounts", "mountstats"])
def test_j3_mount_tables_name_no_neighbour(arena, neighbours, table):
    first = arena.cordon.start("run", "--root", str(neighbours / "two-tenant"), "--", "sh", "-c", "echo up; read x",
                               cwd=neighbours / "two-tenant", stdin=subprocess.PIPE)
    assert first.stdout.readline() == b"up\n"
    result = arena.cordon("run", "--root", str(neighbours / "one-tenant"), "--at", "/workspace", "--", "/bin/sh", "-c",
                          f"cat /proc/self/{table}; cat /proc/[0-9]*/{table} 2>/dev/null; df -a 2>/dev/null", cwd=neighbours / "one-tenant")
    first.communicate(b"\n", timeout=20)
    assert "/workspace" in result.stdout, result
    for word in ("two-tenant", str(arena.box.state), str(arena.box.home), str(arena.box.tmp)):
        assert word not in result.stdout, (word, result)


def host_mount(*words):
    subprocess.run(["mount", *words], check=True)


@pytest.fixture
def shared_root(arena):
    """The workspace as a shared mount of the host, which would propagate both ways."""
    if os.getuid() != 0:
        pytest.skip("only root can mount something on the host")
    host_mount("--bind", str(arena.root), str(arena.root))
    host_mount("--make-shared", str(arena.root))
    for name in ("later", "free"):
        arena.box.mkdir(f"repo/{name}")
    yield arena.root
    subprocess.run(["umount", "-R", "-l", str(arena.root)], check=True)


WAIT_AND_LOOK = "echo up; read x; cat later/mark; grep -c later /proc/self/mountinfo; echo y >later/made; true"


def host_table(root):
    return [line.split(" - ")[0].split()[2:] for line in open("/proc/self/mountinfo") if str(root) in line]


def test_j4_mounts_do_not_propagate_into_or_out_of_the_sandbox(arena, shared_root):
    before = host_table(shared_root)
    process = arena.cordon.start("run", "--root", str(shared_root), *arena.protect(), "--", "sh", "-c", WAIT_AND_LOOK, cwd=shared_root,
                                 stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    assert host_table(shared_root) == before  # the many mounts of the sandbox are its own
    host_mount("-t", "tmpfs", "none", str(shared_root / "later"))
    (shared_root / "later/mark").write_text("made later by the host\n")
    os.chmod(shared_root / "later", 0o777)
    out, err = process.communicate(b"\n", timeout=20)
    assert b"made later" not in out and out.endswith(b"0\n"), (out, err)
    assert sorted(os.listdir(shared_root / "later")) == ["mark"]
    subprocess.run(["umount", str(shared_root / "later")], check=True)
    assert os.listdir(shared_root / "later") == ["made"]  # ordinary work below the place went on
    assert host_table(shared_root) == before


def test_j4_control_in_bubblewrap_a_later_mount_appears(arena, shared_root):
    process = arena.box.start("bwrap", "--bind", "/", "/", "sh", "-c", WAIT_AND_LOOK, cwd=shared_root, stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    host_mount("-t", "tmpfs", "none", str(shared_root / "later"))
    (shared_root / "later/mark").write_text("made later by the host\n")
    out, _ = process.communicate(b"\n", timeout=20)
    assert b"made later by the host" in out


def test_j4_what_was_mounted_before_the_start_is_shown_and_can_be_let_go_by_the_host(arena, shared_root):
    host_mount("-t", "tmpfs", "none", str(shared_root / "free"))
    (shared_root / "free/mark").write_text("made before\n")
    process = arena.cordon.start("run", "--root", str(shared_root), "--", "sh", "-c", "cat free/mark; echo up; read x; cat free/mark",
                                 cwd=shared_root, stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"made before\n" and process.stdout.readline() == b"up\n"
    subprocess.run(["umount", str(shared_root / "free")], check=True)
    time.sleep(0.1)
    out, _ = process.communicate(b"\n", timeout=20)
    assert out == b"made before\n" and process.returncode == 0
