# SPDX-License-Identifier: Apache-2.0
"""Names that an agent chose (threats.md L1, L3, L22): whatever they look like, they are used where the agent stands. Races are in test_races.py."""
import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from arena import PRELUDE, answers
from modes import NARROW, WIDE, open_session
from repositories import Repository
from support import TOP, built_executable, descendants, poll, read_stat

every_run = pytest.mark.parametrize("run", NARROW)
in_wide = pytest.mark.parametrize("run", WIDE)

# Every spelling of a name, and every call that could make, change, move or remove what it means.
SPELLINGS = r"""
import json, socket, threading
root, state = sys.argv[1:3]
names = [root + '/' + name for name in sys.argv[3].split()] + [state + '/state/planted', state + '/config.yaml']
os.makedirs('src/stage', exist_ok=True)
os.symlink(root, 'src/stage/to-root')
os.symlink('/proc/self/cwd', 'src/stage/to-cwd')
os.symlink('/proc/self/root', 'src/stage/to-slash')
top, here, tid = os.open('/', os.O_PATH), os.open('.', os.O_RDONLY), threading.get_native_id()
def spellings(path):
    inside = os.path.relpath(path, root)
    yield 'plain', path
    yield 'doubled', path.replace('/', '//')
    yield 'dots', os.path.dirname(path) + '/./x/../' + os.path.basename(path)
    yield 'up', '/usr/..' + path
    for base in ('self', 'thread-self', '%d' % os.getpid(), 'self/task/%d' % tid, '1', 'self/task/../../self'):
        yield base + ' root', '/proc/%s/root%s' % (base, path)
        yield base + ' cwd', '/proc/%s/cwd/%s' % (base, inside)
        yield base + ' fd', '/proc/%s/fd/%d/%s' % (base, here, inside)
        yield base + ' top', '/proc/%s/fd/%d%s' % (base, top, path)
    yield 'dev fd', '/dev/fd/%d/%s' % (here, inside)
    yield 'dev fd top', '/dev/fd/%d%s' % (top, path)
    yield 'link', 'src/stage/to-root/' + inside
    yield 'link to cwd', 'src/stage/to-cwd/' + inside
    yield 'link to root', 'src/stage/to-slash' + path
    yield 'twice', '/proc/self/root/proc/self/root' + path
def own():
    open('src/stage/mine', 'w').close()
    return 'src/stage/mine'
def how(flags, resolve): return (ctypes.c_uint64 * 3)(flags, 0o644 if flags & os.O_CREAT else 0, resolve)
def opens(path, flags, resolve):
    r = syscall(437, -100, path.encode(), how(flags, resolve), 24)
    if r < 0: raise OSError(-r, 'x')
    os.close(r)
CALLS = dict(
    write=lambda p: os.close(os.open(p, os.O_WRONLY)), make=lambda p: os.close(os.open(p, os.O_CREAT | os.O_WRONLY)), trunc=lambda p: os.close(os.open(p, os.O_TRUNC)),
    excl=lambda p: os.close(os.open(p, os.O_CREAT | os.O_EXCL | os.O_RDWR)), truncate=lambda p: os.truncate(p, 0), mkdir=os.mkdir, mknod=lambda p: os.mknod(p),
    symlink=lambda p: os.symlink('/etc/passwd', p), link=lambda p: os.link(own(), p), take=lambda p: os.link(p, 'src/stage/taken'), over=lambda p: os.rename(own(), p),
    away=lambda p: os.rename(p, 'src/stage/away'), unlink=os.unlink, rmdir=os.rmdir, chmod=lambda p: os.chmod(p, 0o777), attribute=lambda p: os.setxattr(p, 'user.x', b'1'),
    bind=lambda p: socket.socket(socket.AF_UNIX).bind(p), openat2=lambda p: opens(p, os.O_CREAT | os.O_RDWR, 4), openat2_root=lambda p: opens(p, os.O_CREAT | os.O_RDWR, 16))
got, read = [], []
for path in names:
    for spelling, text in spellings(path):
        # What can be read is read before anything is tried.
        try: read.append(open(text, 'rb').read().decode(errors='replace'))
        except OSError: pass
        for name, call in CALLS.items():
            try:
                call(text)
                got.append((path, spelling, name))
            except OSError as error:
                if error.errno not in (1, 2, 13, 16, 17, 18, 20, 21, 22, 30, 36, 38, 39, 40, 98, 107): got.append((path, spelling, name, error.errno))
print('tried', sum(1 for p in names for _ in spellings(p)) * len(CALLS))
print('GOT ' + json.dumps(got))
print('READ ' + json.dumps(read))
"""
HELD = (".git/hooks/pre-commit", ".git/hooks/planted", ".git/config", ".git/config.lock", ".git/config.worktree", "AGENTS.md", "absent.md", "secret.key", "deep/er/held.txt")

TEMPORARY = (".git/config.lock",)  # the lens lets it be made, and judges what is open by the name that it has by then (test_saves.py)


def tree(top):
    """Every name below a directory, its type, and what it says."""
    found = {}
    for path in sorted(top.rglob("*")):
        found[str(path.relative_to(top))] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else oct(path.stat().st_mode)
    return found


@every_run
@pytest.mark.limit(240)
def test_l1_no_spelling_of_a_name_reaches_what_is_held(arena, box, run):
    box.write("repo/secret.key", "the secret\n")
    git, secret = tree(arena.root / ".git"), os.stat(arena.root / "secret.key")
    # A project has no denials.
    held = [name for name in HELD if name != "secret.key" or run != "session"]
    arena.enter(run, "--protect", "absent.md", *(["--deny", "secret.key"] if run != "session" else []), modes=NARROW)
    result = arena.inside("/usr/bin/python3", "-c", PRELUDE + SPELLINGS, arena.inner, str(box.state), " ".join(held), timeout=200)
    assert result.returncode == 0 and "tried " in result.stdout, result
    said = {line.split(" ", 1)[0]: line.split(" ", 1)[1] for line in result.stdout.splitlines()}
    assert int(said["tried"]) > 6000
    assert "the secret" not in said["READ"] and "held\\n" in said["READ"]
    # A view is the run's own; so are, in a strict run, the placeholders of what lies outside the workspace. The host's side follows.
    own = {"view": HELD, "strict": ("AGENTS.md", "absent.md", "secret.key"), "lens": TEMPORARY}.get(run, ())
    got = [way for way in json.loads(said["GOT"]) if os.path.relpath(way[0], arena.inner) not in own]
    assert got == [], got[:20]
    arena.assert_unharmed()
    kept = {name: what for name, what in tree(arena.root / ".git").items() if run != "lens" or f".git/{name}" not in TEMPORARY}
    assert kept == git
    assert not os.path.lexists(arena.root / "absent.md") and (arena.root / "secret.key").read_text() == "the secret\n"
    after = os.stat(arena.root / "secret.key")
    assert (after.st_mode, after.st_ino, after.st_mtime_ns, after.st_nlink) == (secret.st_mode, secret.st_ino, secret.st_mtime_ns, 1)
    assert not os.path.lexists(box.state / "state/planted") and not os.path.lexists(box.state / "config.yaml")


def test_l1_control_natively_the_spellings_reach_it(arena, box):
    """What the list of spellings is worth: without a sandbox nearly all of them reach the hook."""
    box.write("repo/secret.key", "the secret\n")
    result = arena.box.run("/usr/bin/python3", "-c", PRELUDE + SPELLINGS, str(arena.root), str(box.state), " ".join(HELD), cwd=arena.root)
    assert result.stdout.count('"make"') > 150 and "the secret" in result.stdout, result.stdout[-2000:]


ORDINARY = r"""
import threading
root = sys.argv[1]
here, tid = os.open('.', os.O_RDONLY), threading.get_native_id()
bases = [root, '.', '//' + root, '/proc/self/root' + root, '/proc/self/cwd', '/proc/thread-self/cwd', '/proc/%d/cwd' % os.getpid(), '/proc/self/task/%d/cwd' % tid,
         '/proc/thread-self/root' + root, '/proc/self/fd/%d' % here, '/dev/fd/%d' % here, root + '/src/..', 'src/../deep/../.']
os.symlink('/proc/self/cwd', 'to-cwd'); os.symlink(root, 'to-root'); bases += ['to-cwd', 'to-root']
for n, base in enumerate(bases):
    def all_of_it():
        for folder in ('', '/deep/er', '/src'):
            p = '%s%s/new-%d' % (base, folder, n)
            with open(p, 'w') as f: f.write('one')
            with open(p, 'a') as f: f.write('two')
            os.link(p, p + '-second'); os.rename(p + '-second', p + '-third'); os.truncate(p + '-third', 3); os.unlink(p + '-third')
            os.mkdir(p + '-dir'); os.symlink('x', p + '-dir/link'); open(p + '-dir/file', 'w').close(); os.unlink(p + '-dir/file'); os.unlink(p + '-dir/link'); os.rmdir(p + '-dir')
            os.mkfifo(p + '-fifo'); os.unlink(p + '-fifo')
            assert open(p).read() == 'one'
    attempt(base, all_of_it)
def by_stream():
    fd = os.open('stream', os.O_CREAT | os.O_RDWR); os.dup2(fd, 9); os.symlink('/dev/fd/9', 'to-stream')
    for p in ('/dev/fd/9', '/proc/self/fd/9', '/proc/thread-self/fd/9', '/proc/self/task/%d/fd/9' % tid, 'to-stream'):
        with open(p, 'a') as f: f.write('x')
    saved = os.dup(1); os.dup2(9, 1)
    with open('/dev/stdout', 'a') as f: f.write('y')
    os.dup2(saved, 1)
    assert open('stream').read() == 'xxxxxy', open('stream').read()
attempt('stream', by_stream)
"""


@in_wide
def test_l1_what_may_be_written_can_be_by_every_spelling(arena, run):
    arena.enter(run)
    result = arena.inside("/usr/bin/python3", "-c", PRELUDE + ORDINARY, arena.inner)
    found = answers(result)
    assert len(found) == 16 and set(found.values()) == {"done"}, result
    assert run == "view" or (arena.root / "deep/er/new-7").read_text() == "one"
    arena.assert_unharmed()


# ---- L3: what is harmless here is not moved there ----

LINKS = r"""
import subprocess
victim = sys.argv[1]
def ren(a, b, flags):
    r = syscall(316, -100, a.encode(), -100, b.encode(), flags)
    if r < 0: raise OSError(-r, 'x')
def fill(d, depth):
    path = d + '/x' * depth
    os.makedirs(path, exist_ok=True)
    return path
# Links made deep below .git, and in a directory that then moves there.
for depth in (1, 3, 12, 20, 130):
    attempt('deep symlink %d' % depth, lambda: os.symlink(victim, fill('.git/d%d' % depth, depth) + '/HEAD'))
    attempt('deep symlinkat %d' % depth, lambda: os.symlink(victim, 'HEAD', dir_fd=os.open(fill('.git/e%d' % depth, depth), os.O_RDONLY)))
    attempt('rename in %d' % depth, lambda: (os.symlink(victim, 'l%d' % depth), os.rename('l%d' % depth, fill('.git/f%d' % depth, depth) + '/HEAD')))
    attempt('hard link of a link %d' % depth, lambda: (os.symlink(victim, 'h%d' % depth), os.link('h%d' % depth, fill('.git/g%d' % depth, depth) + '/HEAD', follow_symlinks=False)))
    attempt('exchange %d' % depth, lambda: (os.symlink(victim, 'x%d' % depth), open(fill('.git/i%d' % depth, depth) + '/HEAD', 'w').close(),
                                            ren('x%d' % depth, fill('.git/i%d' % depth, depth) + '/HEAD', 2)))
    staged = fill('stage%d' % depth, depth)
    os.symlink(victim, staged + '/HEAD')
    attempt('directory %d' % depth, lambda: os.rename('stage%d' % depth, '.git/moved%d' % depth))
    attempt('directory exchange %d' % depth, lambda: (os.mkdir('.git/swap%d' % depth), ren('stage%d' % depth, '.git/swap%d' % depth, 2)))
    attempt('into a new one %d' % depth, lambda: (os.mkdir('.git/new%d' % depth), os.rename('stage%d' % depth, '.git/new%d/d' % depth)))
attempt('into refs', lambda: os.symlink(victim, '.git/refs/heads/evil'))
attempt('into objects', lambda: os.symlink(victim, '.git/objects/evil'))
attempt('logs away', lambda: os.rename('.git/logs', '.git/logs-old'))
for d in sorted(os.listdir('.git')):
    for inner in ('', '/x', '/d', '/d/x'):
        for target in ('.git/logs', '.git/logs/HEAD', '.git/index', '.git/COMMIT_EDITMSG', '.git/refs/heads/main'):
            try: os.rename('.git/' + d + inner, target)
            except OSError: pass
            try: ren('.git/' + d + inner, target, 2)
            except OSError: pass
"""


@in_wide
def test_l3_no_link_comes_into_a_git_directory_and_the_hosts_commit_writes_nowhere_else(box, cordon, run):
    repo = Repository(box)
    victim = box.write("home/.bashrc", "# mine\n")
    entry = ["run", *WIDE[run], "--"]
    if run == "session":
        session, root = open_session(box, cordon, lambda top: shutil.copytree(repo.path, top, symlinks=True, dirs_exist_ok=True))
        entry, repo.path = ["session", "exec", session, "--"], root
        box.own(root)
    result = cordon(*entry, "/usr/bin/python3", "-c", PRELUDE + LINKS, str(victim), cwd=repo.path, timeout=100)
    assert result.returncode == 0 and len(answers(result)) > 40, result
    if run != "view":
        assert not any(path.is_symlink() for path in (repo.path / ".git").rglob("*")), [p for p in (repo.path / ".git").rglob("*") if p.is_symlink()]
    for _ in range(2):
        (repo.path / "lib/a.txt").write_text(f"{time.monotonic_ns()}\n")
        repo.git("commit", "-q", "-a", "-m", "host", ok=False)
        repo.git("branch", "-f", "other", ok=False)
    assert victim.read_text() == "# mine\n"


def test_l3_directories_without_links_move_within_a_git_directory_and_commits_work(box, cordon):
    repo = Repository(box)
    result = cordon("run", "--git", "commit", "--", "sh", "-euc",
                    "mkdir .git/mine; echo x >.git/mine/file; mv .git/mine .git/other; mv .git/other/file .git/file; rm -r .git/other .git/file; "
                    "echo more >>lib/a.txt; git commit -q -a -m inside; git gc -q; git log --format=%s | head -1", cwd=repo.path)
    assert result.returncode == 0 and result.stdout == "inside\n", result


# ---- L22: attributes that mean something to the next view ----

ATTRIBUTES = r"""
import struct
here = os.open('.', os.O_RDONLY)
def at(fd, path, name, value, flags=0):
    held = ctypes.create_string_buffer(value, len(value) or 1)
    args = struct.pack('QII', ctypes.addressof(held), len(value), 0)
    r = syscall(463, fd, path, flags, name, args, len(args))
    if r < 0: raise OSError(-r, 'x')
def raw(nr, what, name):
    r = syscall(nr, what, name, b'y', 1, 0)
    if r < 0: raise OSError(-r, 'x')
for where in ('src', 'src/main.c', '.', 'deep'):
    for name in (b'user.overlay.opaque', b'user.overlay.whiteout', b'user.overlay.x', b'trusted.overlay.opaque', b'user.plain', b'user.overlayed', b'user.Overlay.opaque'):
        word = where + ' ' + name.decode() + ' '
        attempt(word + 'set', lambda: raw(188, where.encode(), name))
        attempt(word + 'lset', lambda: raw(189, where.encode(), name))
        attempt(word + 'fset', lambda: raw(190, os.open(where, os.O_RDONLY), name))
        attempt(word + 'magic', lambda: raw(188, b'/proc/self/fd/%d' % os.open(where, os.O_RDONLY), name))
        attempt(word + 'setat', lambda: at(-100, where.encode(), name, b'y'))
        attempt(word + 'setat-empty', lambda: at(os.open(where, os.O_RDONLY), b'', name, b'y', 0x1000))
for name, call in dict(long=lambda: os.setxattr('src', 'user.' + 'n' * 251, b'1'), big=lambda: os.setxattr('src', 'user.b', b'v' * 65537), none=lambda: os.setxattr('gone', 'user.b', b'1'),
                       create=lambda: os.setxattr('src', 'user.plain', b'1', os.XATTR_CREATE), replace=lambda: os.setxattr('src', 'user.nothere', b'1', os.XATTR_REPLACE),
                       flags=lambda: os.setxattr('src', 'user.b', b'1', 99), empty=lambda: os.setxattr('src', 'user.e', b''), name=lambda: os.setxattr('src', 'plain', b'1'),
                       path=lambda: os.setxattr(os.open('src', os.O_PATH), 'user.b', b'1'), noname=lambda: raw(188, b'src', b''), null=lambda: raw(188, b'src', 0)).items():
    attempt('odd ' + name, call)
"""


def overlay_marks(top):
    return [(str(p), name) for p in [top, *top.rglob("*")] for name in os.listxattr(p, follow_symlinks=False) if "overlay." in name and "Overlay" not in name]


@pytest.mark.parametrize("run", ["plain", "strict", "permissive", "lens", "session"])
def test_l22_no_call_sets_an_attribute_of_overlayfs_and_others_are_set_as_natively(arena, run):
    native = answers(arena.box.run("/usr/bin/python3", "-c", PRELUDE + ATTRIBUTES, cwd=arena.root))
    assert overlay_marks(arena.root), native
    for path in [arena.root, *arena.root.rglob("*")]:
        for name in os.listxattr(path):
            os.removexattr(path, name)
    arena.enter(run, protect=False)
    result = arena.inside("/usr/bin/python3", "-c", PRELUDE + ATTRIBUTES)
    found = answers(result)
    assert overlay_marks(arena.root) == []
    marks = {name: answer for name, answer in found.items() if "overlay." in name}
    assert len(marks) == 4 * 4 * 6 and set(marks.values()) <= {"EPERM", "EOPNOTSUPP"}, marks
    assert {name: answer for name, answer in found.items() if name not in marks} == {name: answer for name, answer in native.items() if name not in marks}, result
    if run in ("plain", "session"):
        arena.assert_told(result.stderr, "no attributes of overlayfs", str(arena.root / "src/main.c"))


def test_l22_control_natively_the_changing_name_is_set(arena, probes):
    assert arena.box.run(str(probes / "attribute"), "path", "100000", "src", cwd=arena.root).returncode == 0
    assert overlay_marks(arena.root)


# ---- hands that die ----


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def parent_of(pid):
    return (read_stat(pid) or ("X", 0))[1]


def hands_of(process):
    """The pids on the host of the hands of a run."""
    return [pid for pid in descendants(process.pid) if comm(pid) == "cordon-hand"]


KILLED = r"""
import time
print('up', flush=True)
made, refused = [], []
i = 0
end = time.time() + 60
while not os.path.exists('src/enough') and time.time() < end:
    name = 'file%d' % i
    i += 1
    try:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        made.append(name)
    except OSError as error:
        if error.errno != 13: print('odd', name, error.errno, flush=True)
        refused.append(name)
        try: os.close(os.open(name + '-next', os.O_CREAT | os.O_WRONLY))
        except OSError as error: print('twice', name, error.errno, flush=True)
print('made', len(made), 'refused', len(refused), flush=True)
attempt('boundary', lambda: open('absent.md', 'w'))
"""


@pytest.mark.parametrize("fifo", [False, True], ids=["alone", "fifo"])
def test_a_hand_that_is_killed_refuses_one_call_at_most_and_is_replaced(arena, fifo):
    """With a program that waits for a reader of a FIFO, too: a child of the hand that was killed waits for it."""
    waits = "os.mkfifo('fifo')\nif os.fork() == 0: os.open('fifo', os.O_WRONLY); os._exit(0)\n" if fifo else ""
    process = arena.cordon.start("run", "--root", str(arena.root), "--protect", "absent.md", "--", "/usr/bin/python3", "-c", PRELUDE + waits + KILLED, cwd=arena.root)
    assert process.stdout.readline() == b"up\n"
    kills, before = 0, set()
    while kills < 50:
        # The hand is a child of PID 1 of the run; who waits for a FIFO is a child of a hand, or was.
        hand = poll(lambda: [pid for pid in hands_of(process) if pid not in before and comm(parent_of(pid)) == "cordon-init"], 10, f"a hand after {kills} kills")[0]
        before.add(hand)
        at_first = len(os.listdir(arena.root))
        poll(lambda: len(os.listdir(arena.root)) > at_first + 3, 10, f"work after {kills} kills")
        os.kill(hand, signal.SIGKILL)
        kills += 1
    arena.box.write("repo/src/enough", "")
    out, err = process.communicate(timeout=30)
    out = out.decode()
    assert "odd" not in out and "twice" not in out and "boundary EACCES" in out, out
    made, refused = map(int, re.search(r"made (\d+) refused (\d+)", out).groups())
    assert made > 50 and refused <= kills, (out, err)
    files = [p.name for p in arena.root.glob("file*")]
    # A call that was refused may have made its file, once; the one after it was done.
    assert sum(name.endswith("-next") for name in files) == refused and made <= len(files) - refused <= made + refused
    assert not os.path.lexists(arena.root / "absent.md")


def test_a_hand_that_stands_still_does_not_outlast_the_time_of_its_run(arena, leftovers):
    process = arena.cordon.start("run", "--root", str(arena.root), "--protect", "absent.md", "--timeout", "3", "--", "sh", "-c", "echo x >one; echo up; sleep 1; echo x >two; echo never",
                                 cwd=arena.root)
    assert process.stdout.readline() == b"up\n"
    hands = hands_of(process)
    assert hands
    for pid in hands:
        os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    out, err = process.communicate(timeout=20)
    assert time.monotonic() - began < 12 and process.returncode == 124 and b"never" not in out, (process.returncode, err)
    leftovers.assert_none()


# ---- the supervisor is blind ----

# Functions of libc and of ours that take a path. Those of ours are defined in rooms below.
TAKES_PATH = re.compile(r"^_*(open|openat|openat2|fopen|freopen|opendir|stat|lstat|fstatat|newfstatat|statx|access|faccessat|euidaccess|readlink|readlinkat|realpath|canonicalize_file_name|"
                        r"mkdir|mkdirat|mknod|mknodat|mkfifo|mkfifoat|symlink|symlinkat|link|linkat|rename|renameat|renameat2|unlink|unlinkat|rmdir|remove|chdir|fchdir|chroot|truncate|"
                        r"chmod|fchmodat|chown|lchown|fchownat|utime|utimes|utimensat|futimesat|l?setxattr|l?getxattr|l?listxattr|l?removexattr|statfs|statvfs|mount|umount2?|open_tree|"
                        r"move_mount|fsopen|name_to_handle_at|open_by_handle_at|execve?|execveat|posix_spawnp?|system|popen|syscall|process_vm_readv|ptrace|pidfd_open|pidfd_getfd|"
                        r"nftw|ftw|scandir|glob|inotify_add_watch|fanotify_mark|bind|connect|tmpfile|mkstemp|mkostemp|acct|swapon|quotactl)(64)?(@.*)?$")
OURS = re.compile(r"^cordon_(sys_open|open|read_file|resolve|spot|calls_read|proc_path|caller|listing|fd_path|where_find|move_dir)")


def test_the_watch_imports_no_call_that_takes_a_path_but_statx():
    """The proof is in its object files: what they do not import they can't call."""
    objects = sorted((built_executable().parent / "libcordon-core.a.p").glob("src_sandbox_watch_*.o"))
    assert {o.name for o in objects} == {"src_sandbox_watch_" + p.name + ".o" for p in (TOP / "src/sandbox/watch").glob("*.c")} and len(objects) >= 3
    found = {}
    for path in objects:
        wanted = {line.split()[-1] for line in subprocess.run(["nm", "-u", str(path)], capture_output=True, text=True, check=True).stdout.splitlines()}
        assert wanted, path
        bad = {name for name in wanted if TAKES_PATH.match(name) or OURS.match(name)}
        if bad:
            found[path.name] = bad
    assert found == {"src_sandbox_watch_outside.c.o": {"statx"}}, found


ODD = r"""
names = ['/etc/odd-%d', '/proc/1/root/odd-%d', '/proc/self/root/home/odd-%d', '../../odd-%d', '/root/.ssh/odd-%d', 'src/../../odd-%d', '/dev/shm/../../odd-%d', '.git/odd-%d', 'odd-%d']
for i in range(12):
    for name in names:
        for call in (lambda p: os.close(os.open(p, os.O_CREAT | os.O_WRONLY)), lambda p: open(p).close(), os.mkdir, os.unlink, lambda p: os.rename('src/main.c', p), os.listdir,
                     lambda p: os.symlink('/odd-target', p), lambda p: os.link('src/main.c', p)):
            try: call(name % i)
            except OSError: pass
"""


@pytest.mark.parametrize("run", ["plain", "strict", "permissive"])
def test_the_supervisors_own_process_opens_nothing_that_the_agent_names(arena, box, run):
    trace = box.path / "trace"
    box.own(box.mkdir("trace"))
    words = [str(box.bin / "cordon"), "run", "--root", str(arena.root), *arena.protect(), *WIDE[run], "--", "/usr/bin/python3", "-c", PRELUDE + ODD]
    # -ff: a file per process. Threads of the supervisor have files of their own; whose they are the name of their process says.
    result = box.run("strace", "-ff", "-e", "trace=file,clone,clone3,fork,vfork,pidfd_getfd,process_vm_readv", "-o", str(trace / "t"), *words, cwd=arena.root, timeout=100)
    assert result.returncode == 0, result
    files = {path.name.rpartition(".")[2]: path.read_text(errors="replace") for path in trace.iterdir()}
    first = next(pid for pid, text in files.items() if f'execve("{box.bin}/cordon"' in text)
    supervisor, todo = set(), [first]
    while todo:
        pid = todo.pop()
        supervisor.add(pid)
        for line in files[pid].splitlines():
            made = re.search(r"CLONE_THREAD.*= (\d+)$", line)
            if made and made[1] in files:
                todo.append(made[1])
    lines = [line for pid in supervisor for line in files[pid].splitlines() if "odd-" in line]
    assert any("odd-" in files[pid] for pid in files if pid not in supervisor), "the agent named nothing"
    assert [line for line in lines if not line.startswith("statx(") and "execve(" not in line] == [], lines[:10]
    for pid in supervisor:
        assert not re.search(r"process_vm_readv|pidfd_getfd|\"/proc/\d+/(root|cwd|fd/)", files[pid]), pid
    assert not list(box.path.rglob("odd-target"))
