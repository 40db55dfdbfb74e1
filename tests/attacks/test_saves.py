# SPDX-License-Identifier: Apache-2.0
"""Files that the host saves beside a boundary while an agent runs (threats.md L5): what the host made is the host's, whatever the agent holds."""
import os
import shutil
import subprocess
import threading

import pytest

from arena import PRELUDE, answers
from modes import WIDE
from support import poll

WHY = "the host made it during the run, beside a boundary"
# In a view the agent may have what the host makes, as a copy; the lens judges by other means (test_lens_saves.py). Races are run in these, too.
HOLDING = [mode for mode in WIDE if mode not in ("view", "lens")]
every_run = pytest.mark.parametrize("run", HOLDING)
FEW, MANY, MOST = 100, 1000, 10000
in_races = pytest.mark.parametrize("run, rounds", [(mode, FEW) for mode in WIDE] + [pytest.param(mode, MOST if mode == "plain" else MANY, marks=[pytest.mark.long, pytest.mark.limit(300)])
                                                                              for mode in WIDE])

# Runs the lines that the test sends, one Python statement each, and answers each one.
LISTEN = PRELUDE + r"""
import fcntl, mmap, socket, stat, threading
kept = {}
def ren(a, b, flags):
    r = syscall(316, -100, a.encode(), -100, b.encode(), flags)
    if r < 0: raise OSError(-r, 'x')
def link(fd, b):
    r = syscall(265, -100, b'/proc/self/fd/%d' % fd, -100, b.encode(), 0x400)  # linkat with AT_SYMLINK_FOLLOW
    if r < 0: raise OSError(-r, 'x')
def link_empty(fd, b):
    r = syscall(265, fd, b'', -100, b.encode(), 0x1000)
    if r < 0: raise OSError(-r, 'x')
print('up', flush=True)
for line in sys.stdin:
    try:
        exec(line)
        print('done', flush=True)
    except OSError as error:
        print(errno.errorcode.get(error.errno, error.errno), flush=True)
    except Exception as error:
        print(type(error).__name__, flush=True)
"""


class Live:
    """An agent that does what the test says, in a root where the host works, too."""

    def __init__(self, arena, mode="plain"):
        self.arena = arena.enter(mode)
        self.process = arena.begin("/usr/bin/python3", "-c", LISTEN, stdin=subprocess.PIPE)
        assert self.process.stdout.readline() == b"up\n", self.process.stderr.read()

    def say(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().decode().strip()

    def host(self, name, text="the host's\n"):
        """The host makes a file, as the caller of the run does."""
        return self.arena.box.write((self.arena.root / name).relative_to(self.arena.box.path), text)

    def end(self):
        _, err = self.process.communicate(timeout=30)
        return err.decode()


@pytest.fixture
def live(arena, run):
    return Live(arena, run)


# Everything that would keep a hold on a file of the host's.
HOLDS = {
    "write": "kept['fd'] = os.open(P, os.O_WRONLY)", "both": "kept['fd'] = os.open(P, os.O_RDWR)", "append": "kept['fd'] = os.open(P, os.O_WRONLY | os.O_APPEND)",
    "make": "kept['fd'] = os.open(P, os.O_CREAT | os.O_WRONLY)", "trunc": "kept['fd'] = os.open(P, os.O_RDONLY | os.O_TRUNC)", "truncate": "os.truncate(P, 0)",
    "nofollow": "kept['fd'] = os.open(P, os.O_WRONLY | os.O_NOFOLLOW)", "link beside": "os.link(P, 'second')", "link free": "os.link(P, 'src/second')",
    "link deep": "os.link(P, 'deep/er/second')", "link by fd": "link(os.open(P, os.O_RDONLY), 'src/third')", "link by fd beside": "link(os.open(P, os.O_RDONLY), 'third')",
    "link by bare fd": "link_empty(os.open(P, os.O_RDONLY), 'fourth')", "link by path fd": "link(os.open(P, os.O_PATH), 'fifth')",
    "reopen": "kept['fd'] = os.open('/proc/self/fd/%d' % os.open(P, os.O_RDONLY), os.O_RDWR)", "reopen dev": "kept['fd'] = os.open('/dev/fd/%d' % os.open(P, os.O_RDONLY), os.O_WRONLY)",
    "reopen thread": "kept['fd'] = os.open('/proc/thread-self/fd/%d' % os.open(P, os.O_RDONLY), os.O_WRONLY)",
    "reopen task": "kept['fd'] = os.open('/proc/self/task/%d/fd/%d' % (threading.get_native_id(), os.open(P, os.O_RDONLY)), os.O_WRONLY)",
    "reopen pid": "kept['fd'] = os.open('/proc/%d/fd/%d' % (os.getpid(), os.open(P, os.O_RDONLY)), os.O_WRONLY)",
    "by a link": "os.path.lexists('src/to') or os.symlink(os.path.abspath(P), 'src/to'); kept['fd'] = os.open('src/to', os.O_WRONLY)",
    "stdout": "os.path.lexists('src/so') or os.symlink('/proc/self/fd/7', 'src/so'); os.dup2(os.open(P, os.O_RDONLY), 7); kept['fd'] = os.open('src/so', os.O_RDWR)",
    "cwd": "kept['fd'] = os.open('/proc/self/cwd/' + P, os.O_WRONLY)", "root": "kept['fd'] = os.open('/proc/self/root' + os.path.abspath(P), os.O_WRONLY)",
    "mapping": "kept['m'] = mmap.mmap(os.open(P, os.O_RDONLY), 4, mmap.MAP_SHARED, mmap.PROT_WRITE)",
    "rename": "os.rename(P, 'mine')", "rename free": "os.rename(P, 'src/mine')", "unlink": "os.unlink(P)", "over": "(open('src/own', 'w').close(), os.rename('src/own', P))",
    "exchange": "(open('own', 'w').close(), ren('own', P, 2))", "exchange back": "(open('own', 'w').close(), ren(P, 'own', 2))",
    "noreplace": "ren(P, 'mine', 1)",
}


@every_run
@pytest.mark.parametrize("name", ["sedAb12Cd", ".git/sedAb12Cd", "deep/er/sedAb12Cd", ".git/config.lock", "AGENTS.md.tmp1", ".AGENTS.md.swp", "AGENTS.md~"])
def test_l5_what_the_host_makes_beside_a_boundary_cannot_be_kept(arena, live, name):
    """Before the host renames it over the protected file, and after."""
    target = {"deep/er/sedAb12Cd": "deep/er/held.txt"}.get(name, ".git/config" if name.startswith(".git") else "AGENTS.md")
    temp = live.host(name)
    inode = os.stat(temp).st_ino
    got = {hold: live.say(f"P = {name!r}; {code}") for hold, code in HOLDS.items()}
    assert "done" not in got.values(), got
    st = os.stat(temp)
    assert st.st_ino == inode and st.st_nlink == 1 and temp.read_text() == "the host's\n"
    os.rename(temp, arena.root / target)
    for code in ("os.write(kept['fd'], b'evil')", "kept['m'][:4] = b'evil'"):
        live.process.stdin.write(f"'fd' in kept and {code}\n".encode() if "fd" in code else f"'m' in kept and exec({code!r})\n".encode())
        live.process.stdin.flush()
        live.process.stdout.readline()
    assert live.say("P = %r; kept['fd'] = os.open(P, os.O_WRONLY)" % target) in ("EROFS", "EACCES")
    assert (arena.root / target).read_text() == "the host's\n" and os.stat(arena.root / target).st_ino == inode
    err = live.end()
    arena.assert_told(err, "protected" if "protected" in err else WHY)


@every_run
def test_l5_the_report_names_why_and_the_run_counts_it(arena, live):
    live.host("README.md", "one\n")
    assert live.say("os.unlink('README.md')") == "EACCES" and live.say("os.open('README.md', os.O_WRONLY)") == "EACCES"
    err = live.end()
    assert arena.session or err.count(WHY) >= 2, err
    arena.assert_told(err, WHY, str(arena.root / "README.md"))
    assert (arena.root / "README.md").read_text() == "one\n"
    assert WHY in arena.cordon("audit", "--json").stdout


@every_run
def test_l5_a_host_file_that_replaces_one_of_the_start_is_free_under_that_name_and_not_under_its_own(arena, run):
    """Else the agent's git would stop at the host's next commit, which replaces .git/index."""
    arena.box.write("repo/README.md", "old\n")
    live = Live(arena, run)
    assert live.say("open('README.md', 'a').write('by the run\\n')") == "done"
    new = live.host("saved-by-an-editor", "new\n")
    assert live.say("open('saved-by-an-editor', 'a').write('evil')") == "EACCES"
    os.rename(new, arena.root / "README.md")
    assert live.say("open('README.md', 'a').write('by the run\\n')") == "done"
    assert (arena.root / "README.md").read_text() == "new\nby the run\n"
    arena.assert_told(live.end(), WHY)


@every_run
@pytest.mark.parametrize("name,made", [("AGENTS.md.lock", False), ("AGENTS.md~", False), (".AGENTS.md.swp", False), ("AGENTS.md.tmp", False), (".git/config.lock", False),
                                       ("deep/er/held.txt.lock", False), ("other.lock", True), ("src/AGENTS.md.lock", True), ("notes~", True)])
def test_l5_a_predictable_temporary_name_of_a_boundary_cannot_be_made_first(arena, live, name, made):
    for code in ("os.close(os.open(P, os.O_CREAT | os.O_WRONLY))", "os.mkfifo(P)", "os.symlink('src/x', P)", "os.mkdir(P)", "os.link('src/main.c', P)",
                 "(open('src/own', 'w').close(), os.rename('src/own', P))", "socket.socket(socket.AF_UNIX).bind(P)"):
        answer = live.say(f"P = {name!r}; {code}")
        assert answer == "done" if made else answer != "done", (code, answer)
        assert os.path.lexists(arena.root / name) == made, code
        if made:
            assert live.say(f"P = {name!r}; os.rmdir(P) if os.path.isdir(P) and not os.path.islink(P) else os.unlink(P)") == "done"
    live.end()
    arena.assert_unharmed()


@every_run
def test_l5_a_temporary_file_that_comes_again_is_no_more_the_runs_than_the_first(arena, live):
    """The host removes its temporary file and makes it again; the number of the inode may be one that the run's own file had."""
    for i in range(30):
        assert live.say("open('mine', 'w').write('x'); kept['ino'] = os.stat('mine').st_ino; os.unlink('mine')") == "done"
        temp = live.host("mine" if i % 2 else "sedXy34Zz")
        assert live.say(f"P = {temp.name!r}; os.open(P, os.O_WRONLY)") == "EACCES"
        assert live.say(f"P = {temp.name!r}; os.link(P, 'src/held')") == "EACCES"
        temp.unlink()
    live.end()


@pytest.fixture
def other_disk(box, request):
    """The root on a file system of its own, which uses numbers of inodes again."""
    if os.getuid() != 0:
        pytest.skip("only root mounts")
    place = box.mkdir("repo")
    if request.param == "tmpfs":
        subprocess.run(["mount", "-t", "tmpfs", "none", str(place)], check=True)
    else:
        image = box.path / "disk"
        with open(image, "wb") as file:
            file.truncate(16 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
        subprocess.run(["mount", "-o", "loop", str(image), str(place)], check=True)
        shutil.rmtree(place / "lost+found")
    box.own(place)
    yield request.param
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("other_disk", ["ext4", "tmpfs"], indirect=True)
def test_l5_a_number_that_was_used_before_makes_nothing_the_runs(other_disk, arena):
    arena.box.write("repo/there-at-the-start", "x\n")
    live = Live(arena)
    again = 0
    os.unlink(arena.root / "there-at-the-start")
    for i in range(40):
        assert live.say("open('mine', 'w').write('x'); print(os.stat('mine').st_ino, flush=True)").isdigit()
        live.process.stdout.readline()
        number = os.stat(arena.root / "mine").st_ino
        assert live.say("os.unlink('mine')") == "done"
        temp = live.host("sedXy34Zz")
        again += os.stat(temp).st_ino == number
        assert live.say("os.open('sedXy34Zz', os.O_WRONLY)") == "EACCES"
        assert live.say("os.rename('sedXy34Zz', 'away')") == "EACCES"
        assert live.say("os.unlink('sedXy34Zz')") == "EACCES"
        temp.unlink()
    live.end()
    assert again or other_disk == "tmpfs", "the file system did not use a number again"


@every_run
@pytest.mark.parametrize("where", [".", ".git", "deep/er"])
def test_l5_a_number_that_comes_back_within_one_tick_of_the_clock_makes_nothing_the_runs(arena, probes, run, where):
    """Both the number and the time of birth of the host's file are then those of a file that the run made. From Linux 6.13 on times are
    finer where somebody asked for them, before they are not."""
    place, free = arena.root / where, arena.root / (".git/objects" if where == ".git" else "src")
    arena.box.own(shutil.copy(probes / "again", arena.root / "src/again"))
    process = arena.cordon.start("run", "--root", str(arena.root), *arena.protect(), *WIDE[run], "--", str(arena.root / "src/again"), "mine",
                                 str(free / "second"), "sedXy34Zz", cwd=place, stdin=subprocess.PIPE)
    told, says = process.stdout.fileno(), process.stdin.fileno()
    for _ in range(300):
        assert os.read(told, 1) == b"g", process.stderr.read()
        fd = os.open(place / "sedXy34Zz", os.O_CREAT | os.O_EXCL | os.O_RDWR)
        os.write(says, b"x")
        answer = os.read(told, 1)
        content = os.pread(fd, 10, 0)
        os.close(fd)
        os.unlink(place / "sedXy34Zz")
        assert (answer, content) == (b"n", b"")
        os.write(says, b"x")
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    arena.assert_unharmed()


LINKS = r"""
n = 0
for i in range(%d):
    for d in ('', 'src/'):
        try:
            link(kept['r'], d + 'hold%%d' %% i)
            n += 1
        except OSError: pass
print(n, flush=True)
"""


def racing_links(arena, live, rounds):
    """The host gives its file one name after the other while the agent links what it has open for reading; in a held directory each link would
    count as made by the run."""
    temp = live.host("sedXy34Zz")
    inode, stop = os.stat(temp).st_ino, threading.Event()

    def rename():
        names = [arena.root / "sedXy34Zz", arena.root / "sedOther"]
        while not stop.is_set():
            os.rename(*names)
            names.reverse()

    renamer = threading.Thread(target=rename)
    assert live.say("kept['r'] = os.open('sedXy34Zz', os.O_RDONLY)") == "done"
    renamer.start()
    try:
        answer = live.say(f"exec({LINKS % rounds!r})")
    finally:
        stop.set()
        renamer.join()
    live.process.stdout.readline()
    return inode, answer


@in_races
def test_l5_no_link_is_made_of_a_file_that_the_host_renames_meanwhile(arena, live, run, rounds):
    inode, answer = racing_links(arena, live, rounds)
    assert answer == "0" or run == "view", f"{answer} links were made"
    live.end()
    assert [p.name for p in arena.root.rglob("*") if p.lstat().st_ino == inode] in (["sedXy34Zz"], ["sedOther"])


RACER = r"""
import select
held = []
while not select.select([0], [], [], 0)[0]:  # until the test says more
    for name in os.listdir('.'):
        if not name.startswith(('sed', '.git-re')): continue
        for act in (lambda: held.append(os.open(name, os.O_RDWR)), lambda: os.link(name, 'src/l%d' % len(held)), lambda: os.rename(name, 'src/r'), lambda: os.unlink(name)):
            try:
                act()
                held.append(-1)
            except OSError: pass
    for fd in held:
        try: os.pwrite(fd, b'evil', 0)
        except OSError: pass
print(len(held), flush=True)
"""


@in_races
def test_l5_no_race_gets_hold_of_what_the_host_saves(arena, live, run, rounds):
    live.process.stdin.write(f"exec({RACER!r})\n".encode())
    live.process.stdin.flush()
    target = arena.root / "AGENTS.md"
    for i in range(rounds):
        temp = arena.root / f"sed{i:06d}"
        temp.write_text(f"save {i}\n")
        arena.box.own(temp)
        os.rename(temp, target)
        assert target.read_text() == f"save {i}\n"
    assert live.say("pass") == "0" or run == "view"
    live.process.stdout.readline()
    live.end()
    assert target.read_text() == f"save {rounds - 1}\n"


def test_l5_control_natively_the_race_is_won(arena):
    process = arena.box.start("/usr/bin/python3", "-c", LISTEN, cwd=arena.root, stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    arena.box.write("repo/sed000001", "the host's\n")
    process.stdin.write(b"kept['fd'] = os.open('sed000001', os.O_WRONLY)\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"done\n"
    os.rename(arena.root / "sed000001", arena.root / "AGENTS.md")
    process.communicate(b"os.write(kept['fd'], b'evil')\n", timeout=20)
    assert (arena.root / "AGENTS.md").read_text().startswith("evil")


# ---- the other side: what was there at the start, and what the run makes, is the run's ----

WORK = r"""
import fcntl, json, mmap, socket, stat, subprocess, tempfile
where = sys.argv[1]
p = lambda name: os.path.join(where, name)
def rewrite(): 
    with open(p('old.txt'), 'w') as f: f.write('new')
    assert open(p('old.txt')).read() == 'new'
def atomic():
    fd, name = tempfile.mkstemp(dir=where); os.write(fd, b'{}'); os.fsync(fd); os.close(fd); os.rename(name, p('package.json')); os.rename(p('package.json'), p('package-lock.json'))
def nameless():
    fd = os.open(where, os.O_TMPFILE | os.O_RDWR, 0o644); os.write(fd, b'x'); assert syscall(265, -100, b'/proc/self/fd/%d' % fd, -100, p('named').encode(), 0x400) == 0; os.close(fd)
    with open(p('named'), 'a') as f: f.write('y')
    assert open(p('named')).read() == 'xy'; os.unlink(p('named'))
def mapping():
    with open(p('mapped'), 'w+b') as f:
        f.write(b'0' * 4096); f.flush(); m = mmap.mmap(f.fileno(), 4096); m[:4] = b'abcd'; m.close()
    assert open(p('mapped')).read(4) == 'abcd'
def sockets():
    s = socket.socket(socket.AF_UNIX); s.bind(p('sock')); s.listen(); c = socket.socket(socket.AF_UNIX); c.connect(p('sock')); os.unlink(p('sock'))
def fifo():
    os.mkfifo(p('fifo')); child = subprocess.Popen(['sh', '-c', 'sleep 0.2; cat "$0"', p('fifo')], stdout=subprocess.PIPE)
    with open(p('fifo'), 'w') as f: f.write('through')
    assert child.communicate()[0] == b'through'; os.unlink(p('fifo'))
def execute():
    for i in range(300):
        name = p('run-%d' % (i % 3)); fd = os.open(name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o755); os.write(fd, b'#!/bin/true\n'); os.close(fd); os.chmod(name, 0o755)
        subprocess.run([name], check=True)
def binary():
    data = open('/bin/true', 'rb').read()
    for i in range(100):
        name = p('bin-%d' % (i % 3))
        if os.path.exists(name): os.unlink(name)
        with open(name, 'wb') as f: f.write(data)
        os.chmod(name, 0o755); subprocess.run([name], check=True)
def tree():
    os.makedirs(p('a/b/c'))
    for i in range(50): open(p('a/b/c/%d' % i), 'w').close()
    os.rename(p('a'), p('z')); subprocess.run(['rm', '-rf', p('z')], check=True)
def sh(text): return lambda: subprocess.run(['sh', '-euc', 'cd "$0"; ' + text, where], check=True)
WORKS = dict(rewrite=rewrite, append=lambda: open(p('old.txt'), 'a').write('more'), truncate=lambda: os.truncate(p('old.txt'), 1), atomic=atomic, nameless=nameless, mapping=mapping,
    replace=sh('echo x >t; mv t old.txt; test "$(cat old.txt)" = x'), link=sh('ln old.txt hard; echo y >>hard; rm hard'), sed=sh('echo abc >s; sed -i s/b/x/ s old.txt; test "$(cat s)" = axc'),
    sockets=sockets, fifo=fifo, execute=execute, binary=binary, tree=tree, remove=sh('rm gone.txt'), exchange=sh('mv --exchange 2>/dev/null old.txt s || true'),
    editor=sh('cp old.txt .old.txt.swp; cp old.txt old.txt~; echo new >old.txt.new; mv old.txt.new old.txt; rm .old.txt.swp old.txt~'), tar=sh('tar cf t.tar old.txt; rm old.txt; tar xf t.tar'),
    patch=sh('echo one >q; printf -- "--- q\n+++ q\n@@ -1 +1 @@\n-one\n+two\n" | patch -s; test "$(cat q)" = two'), mode=sh('chmod 600 old.txt; touch -d 2001-01-01 old.txt'))
for name, work in WORKS.items():
    try:
        work(); print(name, 'done', flush=True)
    except Exception as error:
        print(name, repr(error).replace(' ', '_'))
"""


@pytest.mark.parametrize("where", [".", "deep/er"])
@pytest.mark.parametrize("run", WIDE)
def test_l5_l26_what_was_there_and_what_the_run_makes_can_be_worked_with_at_once(arena, run, where):
    for name in ("old.txt", "gone.txt"):
        arena.box.write(f"repo/{where}/{name}", "old\n")
    arena.enter(run)
    result = arena.inside("/usr/bin/python3", "-c", PRELUDE + WORK, where, timeout=100)
    found = answers(result)
    if run == "lens":
        assert "not_supported" in found.pop("nameless")  # FUSE has no files without a name
    assert len(found) >= 19 and set(found.values()) == {"done"}, result
    assert WHY not in result.stderr
    if run != "view":
        assert not (arena.root / where / "gone.txt").exists()
    arena.assert_unharmed()


@every_run
def test_l5_the_open_of_a_fifo_waits_for_its_reader_and_a_killed_writer_leaves_nobody(arena, live):
    """Both in the agent's own time: other calls go on meanwhile."""
    assert live.say("os.mkfifo('fifo'); kept['child'] = os.fork(); kept['child'] or (os.open('fifo', os.O_WRONLY), os._exit(0))") == "done"
    for i in range(20):
        assert live.say(f"open('file{i}', 'w').write('x')") == "done"
    assert live.say("import time; time.sleep(0.3); print(os.waitpid(kept['child'], os.WNOHANG)[0], flush=True)") == "0"
    live.process.stdout.readline()
    # A process may end between the listing and the look.
    assert live.say("exec('def comm(p):\\n  try: return open(\"/proc/%s/comm\" % p).read()\\n  except OSError: return \"\"', globals()); kept['comm'] = comm") == "done"
    waiting = lambda: live.say("print(sum(kept['comm'](p) == 'cordon-hand\\n' for p in os.listdir('/proc') if p.isdigit()), flush=True)")
    assert waiting() == "2"
    live.process.stdout.readline()
    assert live.say("os.kill(kept['child'], 9); os.waitpid(kept['child'], 0)") == "done"

    def alone():
        n = waiting()
        live.process.stdout.readline()
        return n == "1"

    poll(alone, 5, "the child of the hand ends with its caller")
    live.end()


def test_l5_in_a_view_nothing_that_the_agent_does_comes_to_the_host(arena):
    """In a view the agent may have what the host makes: as a copy."""
    live = Live(arena, "view")
    for name in ("sedAb12Cd", ".git/config.lock", "deep/er/sedAb12Cd"):
        temp = live.host(name)
        inode = os.stat(temp).st_ino
        for code in HOLDS.values():
            assert live.say(f"P = {name!r}; {code}")
            live.say("'fd' in kept and os.pwrite(kept['fd'], b'evil', 0)")
        target = arena.root / ("AGENTS.md" if "/" not in name else ".git/config" if name.startswith(".git") else "deep/er/held.txt")
        st = os.stat(temp)
        assert st.st_ino == inode and st.st_nlink == 1 and temp.read_text() == "the host's\n"
        os.rename(temp, target)
        live.say("os.pwrite(kept['fd'], b'evil', 0)")
        assert target.read_text() == "the host's\n"
    live.end()
    assert not os.path.lexists(arena.root / "mine") and not os.path.lexists(arena.root / "src/second")
