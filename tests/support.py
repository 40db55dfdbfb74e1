# SPDX-License-Identifier: Apache-2.0
"""What end-to-end tests and attacks share: who runs cordon, a directory of theirs, and looks from the host side."""
import ctypes
import fcntl
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from dataclasses import dataclass

TESTS = pathlib.Path(__file__).resolve().parent
TOP = TESTS.parent
CASES = TESTS / "cases"
# An id that no account of a usual machine has; nothing is created for it.
USER_ID = 54321
PR_SET_CHILD_SUBREAPER = 36
# How many times longer than usual to wait, on a machine that is slow: an emulated one.
PATIENCE = int(os.environ.get("CORDON_TEST_PATIENCE", "1"))
DEFAULT_TIMEOUT = 60


def landlock_scopes():
    """Whether this kernel's Landlock keeps signals and abstract sockets in (Linux 6.12)."""
    return ctypes.CDLL(None).syscall(444, None, 0, 1) >= 6


def built_executable():
    """The executable under test: $CORDON, else the one in build/ beside the tests."""
    path = pathlib.Path(os.environ.get("CORDON", TOP / "build" / "cordon"))
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not built; run make first or set CORDON")
    return path.resolve()


def manual(name):
    """A manual page: as the build made it, or the source of one that nothing is added to."""
    made = built_executable().parent / "man" / name
    return made if made.is_file() else TOP / "man" / name


@dataclass(frozen=True)
class Who:
    """One kind of caller: root, or an ordinary user without groups."""

    name: str
    uid: int
    gid: int

    @property
    def is_root(self):
        return self.uid == 0

    def popen_args(self):
        """Arguments of subprocess that change to this user; none when that is who we are."""
        if os.getuid() == self.uid:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


# Runs a program to which the kernel refuses a system call: [*REFUSING, number, error, program, ...].
REFUSING = ["/usr/bin/python3", "-c", """
import ctypes, errno, os, struct, sys
code = [struct.pack('HBBI', 0x20, 0, 0, 0), struct.pack('HBBI', 0x15, 0, 1, int(sys.argv[1])),
        struct.pack('HBBI', 0x06, 0, 0, 0x50000 | getattr(errno, sys.argv[2])), struct.pack('HBBI', 0x06, 0, 0, 0x7fff0000)]
text = ctypes.create_string_buffer(b''.join(code))
program = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', len(code), ctypes.addressof(text)))
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
if libc.prctl(22, 2, program, 0, 0) != 0:
    sys.exit('no filter')
os.execv(sys.argv[3], sys.argv[3:])
"""]
MOUNT_CALLS = {"open_tree": "428", "move_mount": "429", "fsopen": "430", "fsmount": "432", "mount_setattr": "442"}  # the same on every architecture
CLONE3 = "435"


def callers():
    """Who can be played by the account that runs the tests, by name."""
    if os.getuid() == 0:
        return {"root": Who("root", 0, 0), "user": Who("user", USER_ID, USER_ID)}
    return {"user": Who("user", os.getuid(), os.getgid())}


@dataclass(frozen=True)
class Result:
    """What one command did. Text is decoded so that no byte is lost."""

    args: tuple
    returncode: int
    raw_stdout: bytes
    raw_stderr: bytes
    seconds: float

    @property
    def stdout(self):
        return os.fsdecode(self.raw_stdout)

    @property
    def stderr(self):
        return os.fsdecode(self.raw_stderr)

    def json(self, stream="stdout"):
        """The stream as one JSON value; fails with the text when it is none."""
        text = getattr(self, f"raw_{stream}")
        try:
            return json.loads(text)
        except ValueError as error:
            raise AssertionError(f"{stream} is not JSON ({error}): {text!r}") from error

    def __str__(self):
        return f"{' '.join(map(str, self.args))}\n= {self.returncode}\nstdout: {self.stdout}\nstderr: {self.stderr}"


def to_bytes(data):
    return data.encode() if isinstance(data, str) else data


def world_traversable_base():
    """A directory below which every user can reach what is theirs; the caller removes it."""
    for parent in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        chain = [pathlib.Path(parent).resolve(), *pathlib.Path(parent).resolve().parents]
        if all(p.stat().st_mode & stat.S_IXOTH for p in chain):
            base = pathlib.Path(tempfile.mkdtemp(prefix="cordon-test-", dir=parent)).resolve()
            base.chmod(0o755)
            return base
    raise RuntimeError("no temporary directory that every user can reach")


def remove_tree(path):
    """Removes a tree whose directories may have lost their permissions."""

    def retry(function, name, _):
        try:
            os.chmod(os.path.dirname(name), 0o700)
            if os.path.isdir(name) and not os.path.islink(name):
                os.chmod(name, 0o700)
            function(name)
        except FileNotFoundError:
            pass

    if os.path.lexists(path):
        shutil.rmtree(path, onerror=retry)


MOVE_DESCRIPTORS = """
import os, sys
for move in sys.argv[1].split():
    fd, number = map(int, move.split(':'))
    os.dup2(fd, number)
    os.close(fd)
os.execvp(sys.argv[2], sys.argv[2:])
"""


class Box:
    """A directory that belongs to the caller, with a home, a CORDON_HOME and a TMPDIR in it, and commands run there."""

    def __init__(self, path, who, bin_dir):
        self.path = path
        self.who = who
        self.bin = bin_dir
        self.started = []
        self.path.mkdir(mode=0o755)
        self.home, self.state, self.tmp = (path / name for name in ("home", "state", "tmp"))
        for directory in (self.home, self.state, self.tmp):
            directory.mkdir(mode=0o700)
        self.own(self.path)

    # ---- files, made on the host as the caller's ----

    def own(self, *paths):
        """Gives paths, and everything below them, to the caller."""
        if os.getuid() != 0:
            return
        for path in paths:
            os.chown(path, self.who.uid, self.who.gid, follow_symlinks=False)
            if os.path.isdir(path) and not os.path.islink(path):
                self.own(*(os.path.join(path, name) for name in os.listdir(path)))

    def mkdir(self, name, mode=0o755):
        path = self.path / name
        missing = [p for p in (path, *path.parents) if not p.exists()]
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(mode)
        self.own(*missing)
        return path

    def write(self, name, data="", mode=0o644):
        path = self.path / name
        self.mkdir(path.parent, mode=stat.S_IMODE(path.parent.stat().st_mode) if path.parent.exists() else 0o755)
        path.write_bytes(to_bytes(data))
        path.chmod(mode)
        self.own(path)
        return path

    def link(self, name, target):
        path = self.path / name
        if not path.parent.exists():
            self.mkdir(path.parent)
        path.symlink_to(target)
        self.own(path)
        return path

    def repo(self, name="repo", files=None):
        """A directory that git would take for a repository, with files given as {path: content}."""
        top = self.mkdir(name)
        self.write(f"{name}/.git/HEAD", "ref: refs/heads/main\n")
        self.write(f"{name}/.git/config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
        self.mkdir(f"{name}/.git/objects")
        self.mkdir(f"{name}/.git/refs/heads")
        self.mkdir(f"{name}/.git/hooks")
        for path, content in (files or {}).items():
            self.write(f"{name}/{path}", content)
        return top

    # ---- commands, run as the caller in an environment made from nothing ----

    def environment(self, extra=None):
        env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TMPDIR": str(self.tmp),
            "CORDON_HOME": str(self.state),
        }
        for key, value in (extra or {}).items():
            env.pop(key, None)
            if value is not None:
                env[key] = value
        return env

    def popen_args(self):
        return self.who.popen_args()

    def start(self, *args, cwd=None, env=None, fds=None, **options):
        """Starts a command in a session of its own; whatever is left of it is killed when the test ends.

        `fds` are descriptors that it inherits, {its number: ours}. A process of its own moves them there: in this one, the numbers
        may belong to the test runner.
        """
        passed = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, max(fds) + 1) for fd in (fds or {}).values()]
        if fds:
            moves = " ".join(f"{fd}:{number}" for fd, number in zip(passed, fds))
            args = ("python3", "-c", MOVE_DESCRIPTORS, moves, *args)
            options["pass_fds"] = passed
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen(
            args,
            cwd=cwd or self.path,
            env=self.environment(env),
            start_new_session=True,
            **self.popen_args(),
            **options,
        )
        for fd in passed:
            os.close(fd)
        self.started.append(process)
        return process

    def run(self, *args, input=None, timeout=DEFAULT_TIMEOUT, **options):
        """Runs a command to its end; one that takes longer than `timeout` seconds is a failure with what it said."""
        began = time.monotonic()
        if input is not None:
            options["stdin"] = subprocess.PIPE
        process = self.start(*args, **options)
        try:
            out, err = process.communicate(to_bytes(input), timeout=timeout * PATIENCE)
        except subprocess.TimeoutExpired:
            kill_session(process)
            out, err = process.communicate()
            raise AssertionError(f"no end after {timeout} s: {args}\nstdout: {out!r}\nstderr: {err!r}") from None
        return Result(args, process.returncode, out or b"", err or b"", time.monotonic() - began)

    def close(self):
        for process in self.started:
            if process.poll() is None:
                kill_session(process)
                process.wait(10)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()
        if has_live_children():
            for pid in descendants():
                kill_quietly(pid)
        remove_tree(self.path)


class Cordon:
    """`cordon(*args)` runs the executable under test as the caller; `cordon.start` leaves it running."""

    def __init__(self, box):
        self.box = box
        self.path = str(box.bin / "cordon")

    def __call__(self, *args, **options):
        return self.box.run(self.path, *args, **options)

    def start(self, *args, **options):
        return self.box.start(self.path, *args, **options)


# ---- processes, mounts and cgroups, seen from the host ----


def become_subreaper():
    """Orphans of what a test starts become children of this process, so that none of them is lost from sight."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def kill_quietly(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def kill_session(process):
    """Kills a process of Box.start() and everything that is still in its session's process group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def read_stat(pid):
    """(state, parent) of a process, or None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return fields[0].decode(), int(fields[1])


# Helpers of the tests that live as long as the session, not started by the program under test.
session_helpers = set()


def has_live_children():
    """Whether a child of this process lives that is no helper of the session. It costs much less than to look at all processes."""
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children", "rb", buffering=0) as file:
                children = set(map(int, file.readall().split())) - session_helpers
        except FileNotFoundError:
            continue  # the thread has ended
        if any((found := read_stat(pid)) and found[0] not in "ZX" for pid in children):
            return True
    return False


def descendants(of=None):
    """Pids of all live descendants (zombies are not alive) of a process, of the tests themselves by default."""
    of = of or os.getpid()
    children = {}
    for name in os.listdir("/proc"):
        found = read_stat(name) if name.isdigit() else None
        if found:
            children.setdefault(found[1], []).append((int(name), found[0]))
    found, todo = [], [of]
    while todo:
        for pid, state in children.get(todo.pop(), []):
            if pid in session_helpers:
                continue
            todo.append(pid)
            if state not in "ZX":
                found.append(pid)
    return found


def command_line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def mounts():
    """Mount points and roots of the host's mount namespace that have to do with cordon or its tests."""
    lines = pathlib.Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    return [line for line in lines if "cordon" in line]


def cgroups():
    """Directories below the cgroup file systems that cordon made."""
    found = []
    for top, names, _ in os.walk("/sys/fs/cgroup"):
        found += [os.path.join(top, name) for name in names if "cordon" in name]
    return found


def is_empty_cgroup(path):
    try:
        return not pathlib.Path(path, "cgroup.procs").read_text()
    except OSError:
        return False


def poll(condition, seconds=5.0, what="the condition"):
    """Waits until `condition()` is true and returns its value; fails after `seconds`."""
    deadline = time.monotonic() + seconds * PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.01)


def link_or_copy(source, target):
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def install_packages(source):
    """A directory in the build tree with what package.json in `source` pins, installed once per lock file."""
    target = built_executable().parent / "packages" / "-".join(source.resolve().relative_to(TESTS).parts)
    target.parent.mkdir(exist_ok=True)
    lock = (source / "package-lock.json").read_text()
    stamp = target / "installed"
    with open(f"{target}.lock", "w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == lock:
            return target
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        for file in ("package.json", "package-lock.json"):
            shutil.copy(source / file, target)
        command = ["npm", "ci", "--prefix", str(target), "--no-audit", "--no-fund", "--ignore-scripts"]
        # npm leaves out an optional package that it could not fetch, and says nothing.
        wanted = [target / "node_modules" / package for package in json.loads((source / "package.json").read_text()).get("optionalDependencies", ())]
        for _ in range(3):
            done = subprocess.run(command, cwd=target, capture_output=True, check=False)
            if done.returncode == 0 and (not wanted or any(path.exists() for path in wanted)):
                break
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        assert not wanted or any(path.exists() for path in wanted), f"npm could fetch none of {wanted}"
        stamp.write_text(lock)
    return target


def node_packages(source, base_dir, name, programs=()):
    """The packages of `source`, and programs of ours beside them, copied to where every user can reach them, since the build tree may lie
    in a private directory."""
    target = install_packages(source)
    shared = base_dir / name
    if not shared.exists():
        partial = base_dir / f"{name}.{os.getpid()}"
        shutil.copytree(target, partial, symlinks=True, copy_function=link_or_copy)
        subprocess.run(["chmod", "-R", "a+rX", str(partial)], check=True)
        partial.rename(shared)
    # Another test may have made the directory with other programs.
    for file in programs:
        shutil.copyfile(source / file, shared / file)
    return shared


class Leftovers:
    """Remembers what was there before; `assert_none()` says what a run left behind: processes, mounts, cgroups, files."""

    def __init__(self, box):
        self.box = box
        self.before = self.look() | {("cgroup", path) for path in cgroups()}

    def look(self):
        found = {("process", pid) for pid in descendants()}
        found |= {("mount", line) for line in mounts()}
        # A cgroup with processes in it belongs to a run of somebody else: processes of ours are found above.
        found |= {("cgroup", path) for path in cgroups() if is_empty_cgroup(path)}
        found |= {("temporary file", str(path)) for path in self.box.tmp.rglob("*")}
        return found

    def difference(self):
        """Reaps orphans that have ended, then gives what is new."""
        own = {process.pid for process in self.box.started}
        for name in os.listdir("/proc"):
            found = read_stat(name) if name.isdigit() else None
            if found and found[0] == "Z" and found[1] == os.getpid() and int(name) not in own:
                try:
                    os.waitpid(int(name), os.WNOHANG)
                except ChildProcessError:
                    pass
        return self.look() - self.before

    def assert_none(self, seconds=5.0):
        """Left behind is what stays all the time; what comes and goes meanwhile belongs to tests that run beside this one."""
        deadline = time.monotonic() + seconds
        left = self.difference()
        while left and time.monotonic() < deadline:
            time.sleep(0.02)
            left &= self.difference()
        left = [(sort, f"{item} {command_line(item)}" if sort == "process" else item) for sort, item in left]
        assert not left, f"left behind: {left}"
