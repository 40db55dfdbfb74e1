# SPDX-License-Identifier: Apache-2.0
"""Attacks on boundaries that succeeded against an earlier version. The proof is what the host sees afterwards."""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import threading
import time

import pytest

from arena import answers, hear
from support import landlock_scopes, poll

ROUNDS = 10000
FEWER = 2000
HOGS = 24
AT_ONCE = {"never": 40, "always": 10}  # sandboxes that race in the same directory while the hogs are there
WAYS = ("open", "mkdir", "symlink", "link", "mknod", "rename", "bind", "magic", "idle")


in_rounds = pytest.mark.parametrize("rounds", [FEWER, pytest.param(ROUNDS, marks=pytest.mark.long)])


def plant(arena, probes, way, *options, rounds=ROUNDS, **kw):
    (arena.root / "source").write_text("source\n")
    arena.box.own(arena.root / "source")
    return arena.cordon("run", "--root", str(arena.root), "--share", f"{probes}:/probes:ro", *options, "--", "/probes/plant", way,
                        str(rounds), ".claude", cwd=arena.root, timeout=300, **kw)


def assert_all_rounds_were_lost(arena, *results, of=ROUNDS):
    """All rounds were run to their end, some of them made the harmless name, and none the forbidden one."""
    rounds = made = 0
    for result in results:
        assert result.returncode == 0 and "planted" not in result.stdout, result
        words = result.stdout.split()
        assert words[0::2] == ["rounds", "made"], result
        rounds += int(words[1])
        made += int(words[3])
    assert rounds == of and made > of // 100, results
    assert not os.path.lexists(arena.root / ".claude")


@pytest.mark.limit(400)
@in_rounds
@pytest.mark.parametrize("way", WAYS)
def test_k2_no_race_plants_a_missing_name(arena, probes, way, rounds):
    """The name in memory flips while the call is judged; an idle process acts long after; a magic link hides the way."""
    assert_all_rounds_were_lost(arena, plant(arena, probes, way, rounds=rounds), of=rounds)


def processor_seconds(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


@pytest.mark.limit(400)
@pytest.mark.soak
@pytest.mark.serial
@pytest.mark.parametrize("lens", ["never", "always"])
def test_k2_nor_with_24_hogs_on_the_processors(arena, probes, lens):
    """Each round goes from the agent to the supervisor, to the hand and back. On its way it waits for the turns of the hogs four
    times, some 10 to 30 ms in all. So several sandboxes race at once, each with a supervisor and a hand of its own."""
    hogs = [arena.box.start("sh", "-c", "while :; do :; done") for _ in range(HOGS)]
    try:
        began, before = time.monotonic(), [processor_seconds(hog) for hog in hogs]
        at_once = AT_ONCE[lens]
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            races = [pool.submit(plant, arena, probes, "open", "--lens", lens, rounds=ROUNDS // at_once) for _ in range(at_once)]
            results = [race.result() for race in races]
        took, hogged = time.monotonic() - began, [processor_seconds(hog) - used for hog, used in zip(hogs, before)]
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    assert_all_rounds_were_lost(arena, *results)
    # The hogs did hog: each had the processor again and again, and all together had it for a good part of the time.
    assert min(hogged) > 0.1 and sum(hogged) > took / 2, (took, hogged)


@pytest.mark.limit(400)
@in_rounds
@pytest.mark.parametrize("way", ("open", "mkdir", "rename", "magic", "idle"))
def test_k2_nor_through_the_lens(arena, probes, way, rounds):
    assert_all_rounds_were_lost(arena, plant(arena, probes, way, "--lens", "always", rounds=rounds), of=rounds)


def test_k2_control_without_protection_the_race_is_won(arena, probes):
    result = plant(arena, probes, "open", "--no-default-protect")
    assert result.returncode == 1 and "planted" in result.stdout, result


def test_k2_git_does_not_execute_what_an_agent_planted(arena):
    arena.py("""
for path in ('/proc/self/cwd/.git/commondir', '.git/commondir', '/proc/self/root' + os.getcwd() + '/.git/commondir',
             '/proc/thread-self/cwd/.git/commondir', '/dev/fd/%d/.git/commondir' % os.open('.', os.O_RDONLY)):
    attempt(path, lambda: open(path, 'w').write('/tmp/evil'))
""", protect=False)
    assert not os.path.lexists(arena.root / ".git/commondir")


def test_k1_nothing_an_agent_holds_is_moved_into_the_records(arena, box):
    """The root is above $CORDON_HOME. A directory that is made, held open and tried as a guarded name stays where it is."""
    home = arena.root / "data"
    result = arena.cordon("run", "--root", str(arena.root), "--protect", "guarded", "--", "/usr/bin/python3", "-c", """
import os
os.mkdir('made'); fd = os.open('made', os.O_RDONLY)
try: os.rename('made', 'guarded')
except OSError as e: print('rename', e.errno)
try: os.mkdir('guarded')
except OSError as e: print('mkdir', e.errno)
print('up', os.listdir(os.open('..', os.O_RDONLY, dir_fd=fd)).count('made'))
for base in ('data', 'data/state', 'data/state/audit'):
    try: print(base, sorted(os.listdir(base)))
    except OSError as e: print(base, 'errno', e.errno)
""", cwd=arena.root, env={"CORDON_HOME": str(home)})
    assert result.stdout.splitlines()[:3] == ["rename 13", "mkdir 13", "up 1"], result
    assert "data errno 13" in result.stdout and "data/state errno 13" in result.stdout, result
    assert not (home / "state/taken").exists() and (arena.root / "made").is_dir()


def host_by_editor(root, name):
    (root / "tmp-save").write_text("the host's own\n")
    os.rename(root / "tmp-save", root / name)


def host_by_write(root, name):
    (root / name).write_text("the host's own\n")


def host_by_mkdir(root, name):
    (root / name).mkdir()
    (root / name / "file").write_text("the host's own\n")


def host_by_checkout(root, name):
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "safe.directory=*"]
    subprocess.run([*git, "checkout", "-q", "with", "--", name], check=True)


@pytest.mark.parametrize("make", [host_by_editor, host_by_write, host_by_mkdir, host_by_checkout])
def test_k3_what_the_host_makes_stays_byte_for_byte(arena, make):
    root = arena.root
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "safe.directory=*", "-c", "core.hooksPath=/none"]
    (root / "LATE.md").write_text("the host's own\n")
    for words in (["add", "LATE.md", "src"], ["commit", "-q", "-m", "with"], ["branch", "with"], ["rm", "-q", "--cached", "LATE.md"],
                  ["commit", "-q", "-m", "without"]):
        subprocess.run([*git, *words], check=True)
    (root / "LATE.md").unlink()
    arena.box.own(*[path for path in root.rglob("*")])
    process = arena.cordon.start("run", "--root", str(root), "--protect", "LATE.md", "--", "/usr/bin/python3", "-c", """
import os, time
print('up', flush=True)
end = time.time() + 40
while time.time() < end:
    if os.path.exists('LATE.md'): end = min(end, time.time() + 1)
    for call in (lambda: os.mkdir('LATE.md'), lambda: os.close(os.open('LATE.md', os.O_CREAT | os.O_WRONLY | os.O_EXCL)),
                 lambda: os.symlink('x', 'LATE.md'), lambda: os.rename('src', 'LATE.md')):
        try: call()
        except OSError: pass
print(os.path.exists('LATE.md'))
""", cwd=root)
    assert process.stdout.readline() == b"up\n"
    time.sleep(0.3)
    make(root, "LATE.md")
    out, err = process.communicate(timeout=60)
    late = root / "LATE.md"
    assert (late / "file" if late.is_dir() else late).read_text() == "the host's own\n", err
    assert out == b"True\n" and b"the host made a protected path" in err and (root / "src").is_dir(), (out, err)
    assert not any((arena.box.state / "state").glob("taken*"))


@pytest.mark.parametrize("options, target", [(("--deny", "conf/deep/secret.key"), "conf/deep/secret.key"), (("--ro", "conf/deep"), "conf/deep"),
                                             (("--ro", "conf/deep/secret.key"), "conf/deep/secret.key")])
@pytest.mark.parametrize("lens", ["never", "always"])
def test_k4_a_boundary_cannot_be_renamed_away_for_the_next_run(arena, options, target, lens):
    arena.box.write("repo/conf/deep/secret.key", "secret\n")
    result = arena.py("""
open('conf/new', 'w').write('free')
for old, new in (('conf', 'c2'), ('conf/deep', 'c3'), ('conf', 'src/c4'), ('conf/deep/secret.key', 'k'), ('src', 'conf')):
    attempt(old + ' to ' + new, lambda: os.rename(old, new))
attempt('rmdir', lambda: os.rmdir('conf/deep'))
""", "--rw", "**", *options, "--lens", lens, protect=False)
    found = answers(result)
    assert len(found) == 6 and "done" not in found.values(), result
    assert (arena.root / "conf/deep/secret.key").read_text() == "secret\n" and (arena.root / "conf/new").read_text() == "free", result
    again = arena.sh(f"echo evil >{target}/x 2>/dev/null || echo evil >{target}", "--rw", "**", *options, "--lens", lens, protect=False)
    assert (arena.root / "conf/deep/secret.key").read_text() == "secret\n" and again.returncode != 0, again


def test_k4_the_target_of_a_share_cannot_be_renamed_away(arena, box):
    shared = box.mkdir("shared")
    box.write("shared/file", "shared\n")
    box.mkdir("repo/mnt/point")
    result = arena.cordon("run", "--root", str(arena.root), "--share", f"{shared}:{arena.root}/mnt/point", "--", "sh", "-c",
                          "mv mnt m2; mv mnt/point p2; rmdir mnt/point; cat mnt/point/file; echo more >mnt/point/new", cwd=arena.root)
    assert result.returncode == 0 and result.stdout == "shared\n", result
    assert (shared / "new").read_text() == "more\n" and sorted(os.listdir(arena.root / "mnt")) == ["point"]


@pytest.mark.parametrize("lens", ["never", "always"])
def test_a_share_that_a_protected_directory_would_cover_is_refused(arena, box, lens):
    """It was not there inside, or the sandbox could not be set up, and nothing said why."""
    shared = box.mkdir("shared")
    box.write("shared/file", "shared\n")
    box.mkdir("repo/mnt/point")
    for path in ("mnt", "mnt/point"):
        result = arena.sh("cat mnt/point/file", "--share", f"{shared}:{arena.root}/mnt/point", "--lens", lens, "--protect", path, protect=False)
        assert result.returncode == 125 and f"protected path {path} is where a share is shown" in result.stderr, result
    result = arena.sh("cat mnt/point/file", "--share", f"{shared}:{arena.root}/mnt/point", "--lens", lens)
    assert result.returncode == 0 and result.stdout == "shared\n", result


def host_save(path, text):
    """As sed -i and editors do it."""
    twin = path.with_name("tmp-save")
    twin.write_text(text)
    os.rename(twin, path)


@pytest.mark.parametrize("option, tried", [("--deny", "cat .env; echo evil >.env"), ("--ro", "echo evil >.env; mv .env x; rm -f .env")])
def test_k5_a_host_save_dissolves_no_boundary(arena, option, tried):
    env = arena.root / ".env"
    env.write_text("SECRET=0\n")
    arena.box.own(env)
    process = arena.cordon.start("run", "--root", str(arena.root), "--rw", "**", option, ".env", "--lens", "never", "--", "sh", "-c",
                                 f"echo up; while read x; do {tried}; echo tried; done", cwd=arena.root, stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    word = b"hidden again" if option == "--deny" else b"protected again"
    for i in range(1, 6):
        host_save(env, f"SECRET={i}\n")
        arena.box.own(env)
        hear(process, word, i)
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"tried\n"
        assert env.read_text() == f"SECRET={i}\n"
    out, err = process.communicate(timeout=20)
    assert b"SECRET" not in out + process.heard + err


@pytest.mark.parametrize("name", ["secret.key", "vault/secret.key"])
def test_k6_a_denied_name_that_the_host_makes_is_masked(arena, name):
    process = arena.cordon.start("run", "--root", str(arena.root), "--rw", "**", "--deny", name, "--lens", "never", "--", "sh", "-c",
                                 f"echo up; read x; cat {name}; echo evil >{name}; echo own >mine; cat mine", cwd=arena.root,
                                 stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    arena.box.write(f"repo/{name}", "the secret\n")
    hear(process, b"hidden from now on")
    out, err = process.communicate(b"\n", timeout=20)
    assert out == b"own\n" and b"the secret" not in process.heard + err, (out, err)
    assert (arena.root / name).read_text() == "the secret\n"


def test_k16_a_whiteout_is_refused(arena):
    result = arena.py("""
os.mkdir('src/d'); open('src/d/a', 'w').close()
print('whiteout', errno.errorcode.get(-syscall(316, -100, b'src/d/a', -100, b'src/d/b', 4), 'done'))
print('plain', syscall(316, -100, b'src/d/a', -100, b'src/d/b', 0))
""")
    assert answers(result) == {"whiteout": "EINVAL", "plain": "0"}, result
    assert sorted(os.listdir(arena.root / "src/d")) == ["b"]


# One line for each way to make an entry, and what can be seen of it. The same program runs where the kernel serves the agent
# itself and where the hand does: nothing must differ.
MAKE = r"""
import fcntl, socket, stat
def show(path):
    st = os.lstat(path)
    return oct(st.st_mode), st.st_nlink if not stat.S_ISDIR(st.st_mode) else 0, st.st_uid, st.st_gid, st.st_size
def tell(name, call):
    try: got = call()
    except OSError as e: got = errno.errorcode.get(e.errno, e.errno)
    print(name, got)
def opened(path, flags, mode=0o666, **kw):
    fd = os.open(path, flags, mode, **kw)
    try: return show(path) if not kw else None, hex(fcntl.fcntl(fd, fcntl.F_GETFL)), fcntl.fcntl(fd, fcntl.F_GETFD), os.readlink('/proc/self/fd/%d' % fd).split('/')[-1]
    finally: os.close(fd)
C, W, X = os.O_CREAT, os.O_WRONLY, os.O_EXCL
umask = os.umask(0)
for mask in (0o022, 0o077, 0o000, 0o777):
    os.umask(mask)
    tell('open %o' % mask, lambda: opened('f%o' % mask, C | W))
    tell('mkdir %o' % mask, lambda: (os.mkdir('d%o' % mask), show('d%o' % mask))[1])
    tell('fifo %o' % mask, lambda: (os.mkfifo('p%o' % mask), show('p%o' % mask))[1])
    tell('bind %o' % mask, lambda: (socket.socket(socket.AF_UNIX).bind('s%o' % mask), show('s%o' % mask))[1])
os.umask(0o022)
for i, flags in enumerate((C | os.O_RDWR, C | W | os.O_APPEND, C | W | os.O_TRUNC, C | W | X, C | os.O_RDONLY, C | W | os.O_NONBLOCK,
                           C | W | os.O_SYNC, C | W | os.O_CLOEXEC, C | W | os.O_NOFOLLOW, C | W | os.O_DSYNC, C | W | os.O_NOATIME,
                           C | W | os.O_DIRECTORY, C | os.O_PATH, W, 0o3)):
    tell('flags %d' % i, lambda: opened('g%d' % i, flags, 0o751))
    tell('again %d' % i, lambda: opened('g%d' % i, flags, 0o751))
tell('creat', lambda: os.close(syscall(85, b'creat', 0o640)) or show('creat'))
tell('dir fd', lambda: opened('by-fd', C | W, dir_fd=os.open('.', os.O_RDONLY)))
tell('dir slash', lambda: os.mkdir('slash/') or show('slash'))
tell('file slash', lambda: opened('file/', C | W))
tell('no dir', lambda: opened('none/x', C | W))
tell('not a dir', lambda: opened('creat/x', C | W))
tell('dot', lambda: os.mkdir('.'))
tell('dotdot', lambda: opened('..', C | W))
tell('empty', lambda: opened('', C | W))
tell('long', lambda: opened('n' * 255, C | W)[1:3])
tell('too long', lambda: opened('n' * 256, C | W))
tell('odd name', lambda: opened(b'\xff\n\x1b[1m', C | W)[1:3])
os.symlink('new-by-link', 'dangling'); os.symlink('creat', 'leading'); os.symlink('loop', 'loop')
tell('through a link', lambda: opened('leading', C | W)[1:])
tell('dangling', lambda: (opened('dangling', C | W)[1:], os.path.exists('new-by-link')))
tell('dangling excl', lambda: opened('dangling', C | W | X))
tell('nofollow', lambda: opened('leading', C | W | os.O_NOFOLLOW))
tell('loop', lambda: opened('loop', C | W))
tell('mknod file', lambda: os.mknod('node', 0o100640) or show('node'))
tell('mknod socket', lambda: os.mknod('sock', 0o140640) or show('sock'))
tell('mknod device', lambda: os.mknod('dev', 0o020640, os.makedev(1, 3)))
tell('symlink', lambda: (os.symlink('x' * 4000, 'long-link'), os.readlink('long-link') == 'x' * 4000))
tell('symlink empty', lambda: os.symlink('', 'no-link'))
tell('link', lambda: (os.link('creat', 'hard'), show('hard')))
tell('link over', lambda: os.link('creat', 'hard'))
tell('link dir', lambda: os.link('slash', 'hard-dir'))
tell('link of a link', lambda: (os.link('leading', 'hard-link', follow_symlinks=False), os.readlink('hard-link')))
def tmpfile(flags, at):
    fd = os.open('.', os.O_TMPFILE | os.O_RDWR | flags, 0o640); os.write(fd, b'content')
    r = syscall(265, -100 if at else fd, ('/proc/self/fd/%d' % fd).encode() if at else b'', -100, b'tmp-%d' % (flags | at), 0x400 if at else 0x1000)
    if r < 0: raise OSError(-r, '')
    return show('tmp-%d' % (flags | at))
tell('tmpfile', lambda: tmpfile(0, 1))
tell('tmpfile excl', lambda: tmpfile(X, 1))
if EMPTY_PATH: tell('tmpfile empty path', lambda: tmpfile(0, 0))
tell('rename', lambda: (os.rename('f22', 'f-renamed'), show('f-renamed')))
tell('rename over', lambda: (os.rename('f-renamed', 'hard'), show('hard')))
tell('rename dir', lambda: (os.rename('slash', 'slash2/'), show('slash2')))
tell('rename missing', lambda: os.rename('missing', 'x'))
tell('rename file over dir', lambda: os.rename('hard', 'slash2'))
tell('rename dir into itself', lambda: os.rename('slash2', 'slash2/x'))
def exchange(a, b, flags):
    r = syscall(316, -100, a, -100, b, flags)
    if r < 0: raise OSError(-r, '')
tell('exchange', lambda: (exchange(b'hard', b'slash2', 2), show('hard')[0], show('slash2')[0]))
tell('noreplace', lambda: exchange(b'hard', b'slash2', 1))
tell('both flags', lambda: exchange(b'hard', b'slash2', 3))
tell('across', lambda: (os.rename('g0', 'hard/inner'), os.rename('hard/inner', 'outer'), show('outer')))
tell('new dir', lambda: (os.makedirs('deep/er/est'), opened('deep/er/est/f', C | W)[0], os.rename('deep/er', 'er'), os.path.exists('er/est/f')))
tell('bind again', lambda: socket.socket(socket.AF_UNIX).bind('s22'))
def serve():
    s = socket.socket(socket.AF_UNIX); s.bind('serving'); s.listen(1)
    c = socket.socket(socket.AF_UNIX); c.connect('serving'); c.send(b'hello')
    return s.accept()[0].recv(5), s.getsockname()
tell('serve', serve)
os.chmod('deep', 0o555); tell('closed dir', lambda: opened('deep/x', C | W) if os.getuid() else 'EACCES'); os.chmod('deep', 0o755)
tell('sorted', lambda: sorted(os.listdir('.')))
"""


def made_in(arena, where, *options):
    arena.box.mkdir("repo/free")
    # Before Linux 6.10 the kernel wants a capability for a link from a descriptor alone; the hand makes it as /proc/self/fd would.
    result = arena.py(f"EMPTY_PATH = {landlock_scopes()}; os.makedirs({where!r}, exist_ok=True); os.chdir({where!r})\n" + MAKE, *options, "--net", "none", protect=False)
    assert result.returncode == 0 and len(result.stdout.splitlines()) > 80, result
    return result.stdout.splitlines()


@pytest.mark.parametrize("where", ["fresh", "held"])
def test_the_hand_makes_entries_as_the_kernel_would(arena, where):
    arena.box.write("repo/held/boundary", "")
    kernel = made_in(arena, "free")
    for entry in os.scandir(arena.root / "free"):
        if entry.is_dir(follow_symlinks=False):
            os.chmod(entry.path, 0o755)  # a run does not begin beside a directory that it can't look into
    hand = made_in(arena, where, "--protect", "held/boundary", "--protect", "held/missing")
    if where == "held":
        hand[-1] = hand[-1].replace("'boundary', ", "")
    assert {pair for pair in zip(hand, kernel) if pair[0] != pair[1]} == set()


def test_the_hand_serves_the_root_itself(arena):
    result = arena.sh("echo a >a; mkdir d; ln -s a l; ln a h; mkfifo f; mv a b; cat b h; ls", protect=False)
    assert result.returncode == 0 and result.stdout.split()[:2] == ["a", "a"], result
    assert sorted(set(os.listdir(arena.root)) - {".git", ".factory", "AGENTS.md", "deep", "src"}) == ["b", "d", "f", "h", "l"]


@pytest.mark.parametrize("way", ["landlock", "seccomp", "both", "landlock-child", "seccomp-child", "both-child", "landlock-exec",
                                 "seccomp-exec", "both-exec"])
def test_a_program_that_gave_up_rights_gets_none_back_through_the_hand(arena, probes, way):
    def run(how, name):
        return arena.cordon("run", "--root", str(arena.root), "--share", f"{probes}:/probes:ro", "--", "/probes/restrict", how, name,
                            cwd=arena.root)
    assert run("none", "free-of-it").stdout == "made\n" and (arena.root / "free-of-it").exists()
    result = run(way, "kept-out")
    assert result.stdout == "EACCES\n", result
    assert not (arena.root / "kept-out").exists()
    # What it did not give up it still has.
    inside = run(way, "src/beside")
    assert inside.stdout == ("made\n" if "seccomp" in way else "EACCES\n"), inside


def test_each_creation_under_a_storm_of_signals_is_done_once(arena, probes):
    result = arena.cordon("run", "--root", str(arena.root), "--share", f"{probes}:/probes:ro", "--", "sh", "-c",
                          "mkdir fresh; /probes/signals 1000 fresh", cwd=arena.root, timeout=120)
    assert result.stdout == "made 1000 existed 0 other 0 signals 1\n", result
    assert len(os.listdir(arena.root / "fresh")) == 1000


def test_what_the_hand_cannot_make_it_says_as_the_kernel_does(arena):
    """No descriptor left, a full directory of links, a name that is taken: the caller hears its own limits."""
    result = arena.py("""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
attempt('no descriptor', lambda: os.open('x', os.O_CREAT | os.O_WRONLY))
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
attempt('mkdir', lambda: os.mkdir('d'))
""", protect=False)
    assert answers(result) == {"no descriptor": "EMFILE", "mkdir": "done"}, result


def test_the_hand_can_be_neither_signalled_nor_looked_into_and_one_that_is_starved_is_replaced(arena):
    scopes = landlock_scopes()  # without them it can be signalled; test_older_kernels.py has what follows
    result = arena.py(f"SCOPES = {scopes}" + """
import resource
open('first', 'w').close()
hand = [int(p) for p in os.listdir('/proc') if p.isdigit() and open('/proc/%s/comm' % p).read() == 'cordon-hand\\n'][0]
signals = dict(kill=lambda: os.kill(hand, 9), stop=lambda: os.kill(hand, 19)) if SCOPES else {}
for name, call in dict(signals, memory=lambda: open('/proc/%d/mem' % hand, 'rb'),
                       files=lambda: os.open('/proc/%d/fd/3' % hand, os.O_RDONLY), getfd=lambda: (_ for _ in ()).throw(OSError(-syscall(438, os.pidfd_open(hand), 3, 0), '')),
                       trace=lambda: (_ for _ in ()).throw(OSError(-syscall(101, 16, hand, 0, 0), ''))).items():
    attempt(name, call)
open('second', 'w').close()
resource.prlimit(hand, resource.RLIMIT_NOFILE, (1, 1))
attempt('starved', lambda: open('third', 'w'))
attempt('after that', lambda: open('.claude', 'w'))
""", protect=False)
    found = answers(result)
    assert found.pop("after that") == "EACCES" and found.pop("starved") in ("done", "EACCES", "EMFILE", "EINVAL"), result
    assert set(found.values()) <= {"EPERM", "EACCES", "ENOENT"} and len(found) == (6 if scopes else 4), found
    assert (arena.root / "first").exists() and (arena.root / "second").exists() and not os.path.lexists(arena.root / ".claude")


def test_a_held_directory_that_the_host_replaces_stays_held_and_usable(arena):
    process = arena.cordon.start("run", "--root", str(arena.root), *arena.protect(), "--", "sh", "-c",
                                 "echo up; read x; echo n >src/new; mkdir src/sub; echo n >src/sub/new; echo n >deep/new; echo e >deep/er/held.txt; true",
                                 cwd=arena.root, stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    for name in ("src", "deep"):
        os.rename(arena.root / name, arena.root / f"old-{name}")
        arena.box.mkdir(f"repo/{name}")
    time.sleep(0.3)
    _, err = process.communicate(b"\n", timeout=20)
    assert (arena.root / "src/new").exists() and (arena.root / "src/sub/new").exists() and (arena.root / "deep/new").exists(), err
    assert not (arena.root / "deep/er").exists()


UNREADABLE = r"""
# The kernel's own page of clock data is mapped into every process: a system call reads a name from it, another process can't.
def name_in_kernel_page():
    for line in open('/proc/self/maps'):
        if not line.rstrip().endswith(('[vvar]', '[vvar_vclock]')) or not line.split()[1].startswith('r'):
            continue
        start = int(line.split('-')[0], 16)
        page = ctypes.string_at(start, 4096)
        for i in range(4094):
            if page[i] not in b'\0/.' and page[i + 1] == 0 and (i == 0 or page[i - 1] == 0):
                return start + i
    raise SystemExit('no name in the kernel page')
address = name_in_kernel_page()
def call(*args):
    r = syscall(*args)
    if r < 0: raise OSError(-r, '')
    return r
os.mkdir('src/place'); os.mkdir('src/staged')
for place in ('.', 'deep/er', '.git', 'src/place'):
    d = os.open(place, os.O_RDONLY)
    for name, make in (('open', lambda: os.close(call(257, d, address, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o644))),
                       ('mkdir', lambda: call(258, d, address, 0o755)), ('symlink', lambda: call(266, b'x', d, address)),
                       ('rename', lambda: call(316, -100, b'src/staged', d, address, 0))):
        attempt(name + ' ' + place, make)
        for made in os.listdir('src/place'): (os.rmdir if os.path.isdir('src/place/' + made) else os.unlink)('src/place/' + made)
"""


@pytest.mark.parametrize("options", [(), ("--workspace", ".", "--workspace-mode", "strict"), ("--at", "/workspace")])
def test_the_kernel_refuses_by_itself_what_the_watch_cannot_read(arena, options):
    """Nothing rests on the watch: a name that it can't read goes on, and no entry comes to be in a held directory."""
    before = {place: sorted(os.listdir(arena.root / place)) for place in (".", "deep/er", ".git")}
    result = arena.py(UNREADABLE, *options)
    found = answers(result)
    assert len(found) == 16, result
    assert {name for name, what in found.items() if what == "done"} == {f"{name} src/place" for name in ("open", "mkdir", "symlink", "rename")}, found
    assert {place: sorted(os.listdir(arena.root / place)) for place in before} == before


WAY = r"""
os.makedirs('src/stage'); open('src/stage/tasks.json', 'w').write('evil'); open('evil', 'w').write('evil')
attempt('staged', lambda: os.rename('src/stage', '.vscode'))
attempt('link', lambda: os.symlink('src/stage', '.vscode'))
attempt('file', lambda: os.open('.vscode', os.O_CREAT | os.O_WRONLY))
attempt('mkdir', lambda: os.mkdir('.vscode'))
attempt('other', lambda: open('.vscode/notes.txt', 'w').write('fine'))
attempt('leaf', lambda: open('.vscode/tasks.json', 'w'))
attempt('rename', lambda: os.rename('evil', '.vscode/tasks.json'))
attempt('away', lambda: os.rename('.vscode', 'away'))
attempt('exchange', lambda: (_ for _ in ()).throw(OSError(-syscall(316, -100, b'src/stage', -100, b'.vscode', 2), '')))
print('up', 'up', flush=True)
sys.stdin.readline()
attempt('late', lambda: open('.vscode/tasks.json', 'w'))
"""


def test_a_directory_on_the_way_to_what_is_protected_by_default_can_be_made_and_filled_with_the_rest(arena):
    from arena import PRELUDE
    process = arena.cordon.start("run", "--root", str(arena.root), "--", "/usr/bin/python3", "-c", PRELUDE + WAY, cwd=arena.root,
                                 stdin=subprocess.PIPE)
    lines = []
    while not lines or not lines[-1].startswith(b"up"):
        lines.append(process.stdout.readline())
    arena.box.write("repo/.vscode/tasks.json", "the host's\n")
    hear(process, b"protected from now on")
    out, err = process.communicate(b"\n", timeout=20)
    found = dict(line.decode().rsplit(" ", 1) for line in b"".join(lines + [out]).splitlines())
    assert found == {"staged": "EACCES", "link": "EACCES", "file": "EACCES", "mkdir": "done", "other": "done", "leaf": "EACCES",
                     "rename": "EACCES", "away": "EBUSY", "exchange": "EBUSY", "up": "up", "late": "EROFS"}, (found, err)
    assert (arena.root / ".vscode/tasks.json").read_text() == "the host's\n"
    assert (arena.root / ".vscode/notes.txt").read_text() == "fine"


def test_the_plan_says_which_directories_are_held(arena):
    plan = json.loads(arena.cordon("run", "--root", str(arena.root), "--json", "--dry-run", "--no-default-protect", "--protect",
                                   "deep/er/held.txt", "--", "true", cwd=arena.root).stdout)
    held = [str(arena.root), f"{arena.root}/deep", f"{arena.root}/deep/er"]
    # The private /tmp around them is held as well: Landlock's rules reach across mounts.
    assert sorted(set(plan["held"]) - {"/tmp"}) == held and ("/tmp" in plan["held"]) == held[0].startswith("/tmp/")


def converse(arena, script, host, told, *options):
    """Runs a program that says "up", then lets the host act until so many reports of that have come, then lets the program go on; returns
    (answers, stderr)."""
    from arena import PRELUDE
    process = arena.cordon.start("run", "--root", str(arena.root), *options, "--", "/usr/bin/python3", "-c", PRELUDE + "import time\n" + script,
                                 cwd=arena.root, stdin=subprocess.PIPE)
    lines = []
    while not lines or not lines[-1].startswith(b"up"):
        lines.append(process.stdout.readline())
        assert lines[-1], process.communicate()
    host()
    hear(process, b"the host made", told)
    out, err = process.communicate(b"\n", timeout=30)
    return dict(line.decode().rsplit(" ", 1) for line in b"".join(lines + [out]).splitlines()), process.heard + err


CLOSED = """
os.chmod('conf', 0o300); os.mkdir('.github'); time.sleep(0.3); os.rmdir('.github'); os.mkdir('x'); time.sleep(0.3); os.chmod('conf', 0o755)
os.mkdir('.vscode', 0); time.sleep(0.3); os.chmod('.vscode', 0o755)
print('up', 'up', flush=True); sys.stdin.readline()
attempt('read', lambda: open('conf/secret').read())
attempt('write', lambda: open('conf/AGENTS.md', 'a').write('evil'))
attempt('task', lambda: open('.vscode/tasks.json', 'a').write('evil'))
attempt('delete', lambda: os.unlink('conf/AGENTS.md'))
"""


def test_directories_that_the_agent_closes_do_not_blind_pid_1(arena):
    arena.box.mkdir("repo/conf")
    made = {"conf/secret": "key\n", "conf/AGENTS.md": "host\n", ".vscode/tasks.json": "host\n"}
    found, err = converse(arena, CLOSED, lambda: [arena.box.write(f"repo/{name}", text) for name, text in made.items()], len(made), "--deny", "conf/secret",
                          "--protect", "conf/AGENTS.md")
    assert found == {"up": "up", "read": "EACCES", "write": "EROFS", "task": "EROFS", "delete": "EBUSY"}, (found, err)
    assert {name: (arena.root / name).read_text() for name in made} == made
    assert err.count(b"the host made") == 3, err


def test_what_an_agent_makes_and_removes_costs_no_mounts(arena):
    result = arena.py("""
import time
count = lambda: len(open('/proc/self/mountinfo').readlines())
before = count()
for i in range(40):
    os.mkdir('.github'); time.sleep(0.005); os.rmdir('.github'); open('x%d' % i, 'w').close()
time.sleep(0.3)
print('grown', count() - before)
""")
    assert answers(result) == {"grown": "0"}, result


def test_the_hand_passes_no_directory_that_the_agent_cannot(arena):
    """As root, who walks everywhere on the host: the agent is root without that."""
    arena.box.write("repo/db/pub/secret", "key\n", mode=0o666)
    os.chmod(arena.root / "db/pub", 0o777)
    os.chmod(arena.root / "db", 0o700)
    os.chown(arena.root / "db", 12345, 12345)
    result = arena.py("""
attempt('rename', lambda: os.rename('db', 'z'))
for name in ('db', 'z'):
    attempt('open ' + name, lambda: os.open(name + '/pub/secret', os.O_RDONLY | os.O_CREAT))
    attempt('link ' + name, lambda: os.link(name + '/pub/secret', 'copy'))
    attempt('mkdir ' + name, lambda: os.mkdir(name + '/pub/d'))
    attempt('out ' + name, lambda: os.rename(name + '/pub/secret', 'out'))
""")
    found = answers(result)
    found.pop("rename")
    assert len(found) == 8 and "done" not in found.values(), found
    assert not (arena.root / "copy").exists() and not (arena.root / "out").exists()


def test_a_protected_link_into_a_writable_share_protects_what_it_leads_to(arena, box):
    shared = box.mkdir("shared")
    box.write("shared/sub/settings.json", "{}\n")
    box.link("repo/.claude", str(shared / "sub"))
    box.link("repo/.husky", str(shared / "hk"))
    result = arena.sh(f"echo evil >.claude/settings.json; mkdir {shared}/hk && echo evil >.husky/pre-commit; echo fine >{shared}/other", "--share",
                      str(shared), protect=False)
    assert (shared / "sub/settings.json").read_text() == "{}\n" and not (shared / "hk").exists(), result
    assert (shared / "other").read_text() == "fine\n"


def test_a_link_to_the_root_itself_does_not_close_the_workspace(arena):
    arena.box.link("repo/.claude", ".")
    arena.box.link("repo/.husky", "src/..")
    result = arena.sh("echo fine >plain && echo fine >src/plain; ln -sfn x .claude; true", protect=False)
    assert (arena.root / "plain").exists() and (arena.root / "src/plain").exists(), result
    assert os.readlink(arena.root / ".claude") == "."


def test_reports_from_a_directory_that_was_removed_and_none_for_a_lock(arena):
    arena.box.write("repo/.npmrc", "x=1\n")
    result = arena.sh("mkdir d; cd d; rmdir ../d; echo evil >../.npmrc; echo evil >../.envrc; echo fine >../plain; true", "--fail-on-violation",
                      protect=False)
    assert result.returncode == 3 and result.stderr.count("BLOCKED") == 2 and (arena.root / "plain").exists(), result
    locked = arena.sh("flock -s .npmrc true", "--fail-on-violation", protect=False)
    assert locked.returncode == 0 and "BLOCKED" not in locked.stderr, locked
    assert (arena.root / ".npmrc").read_text() == "x=1\n"


def test_removing_what_leads_to_a_boundary_is_reported_and_removing_the_agents_own_directories_is_not(arena):
    (arena.root / ".vscode").mkdir()
    arena.box.own(arena.root / ".vscode")
    result = arena.sh("rmdir .vscode; mv .vscode moved; mkdir .github && rmdir .github; mkdir q; mv q/nothing .envrc; "
                      "ln -s /proc/self/cwd here; echo fine >here/made; true", protect=False)
    blocked = [line.split("File: ")[1] for line in result.stderr.splitlines() if "  File: " in line]
    assert blocked == [f"{arena.root}/.vscode"] * 2, result
    assert (arena.root / ".vscode").is_dir() and (arena.root / "made").read_text() == "fine\n"
    assert not (arena.root / ".github").exists() and not (arena.root / ".envrc").exists()
