# SPDX-License-Identifier: Apache-2.0
"""L5 behind the lens: the host saves a file that the agent may not write, and the agent wants the file that it saves by.

The agent asks and acts inside; what came of it is looked up on the host."""
import json
import os
import shutil
import subprocess
import time

import pytest

from support import poll

SCOPES = pytest.mark.parametrize("scope", [["--lens", "always"], ["--rw", "**", "--deny", "**/*.key"]], ids=["always", "pattern"])
SERVER = r"""
import ctypes, errno, json, mmap, os, socket, stat, sys
libc = ctypes.CDLL(None, use_errno=True)
def answer(call, *args):
    try:
        value = call(*args)
    except OSError as error:
        return errno.errorcode[error.errno]
    return value if isinstance(value, (str, list)) else "ok"
def write(path, text="EVIL\n", flags=os.O_WRONLY):
    fd = os.open(path, flags, 0o644)
    os.write(fd, text.encode())
    os.close(fd)
def read(path):
    with open(path) as stream:
        return stream.read()
def keep(path):
    globals()["fd"] = os.open(path, os.O_RDWR)
def share(path):
    with open(path, "r+b") as stream:
        globals()["area"] = mmap.mmap(stream.fileno(), 0)
def make(path, text="mine\n"):
    write(path, text, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
def exchange(a, b):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), 2) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")
def bind(path):
    socket.socket(socket.AF_UNIX).bind(path)
print("ready", flush=True)
for line in sys.stdin:
    print(json.dumps(eval(line)), flush=True)
"""
# Every way to make a name; "mine" is a file of the run's.
MAKES = ["make({0!r})", "os.mkdir({0!r})", "os.mkfifo({0!r})", "os.mknod({0!r}, stat.S_IFREG | 0o644)", "os.symlink('mine', {0!r})",
         "os.link('mine', {0!r})", "os.rename('mine', {0!r})", "bind({0!r})"]
# Every way to get hold of a file that is there, or to take it away.
TAKES = ["write({0!r})", "keep({0!r})", "share({0!r})", "os.truncate({0!r}, 0)", "os.chmod({0!r}, 0o666)", "os.utime({0!r}, (1, 1))",
         "os.setxattr({0!r}, 'user.x', b'x')", "os.link({0!r}, 'second')", "os.rename({0!r}, 'moved')", "os.rename('mine', {0!r})",
         "exchange('mine', {0!r})", "exchange({0!r}, 'mine')", "os.unlink({0!r})"]
TEMPS = ["AGENTS.md.lock", ".AGENTS.md.swp", "AGENTS.md~", "AGENTS.md.tmp1", ".AGENTS.md.tmp", "#AGENTS.md#", ".#AGENTS.md", "AGENTS.md.4711",
         "AGENTS.md___jb_tmp___", ".git/config.lock", "deep/er/held.txt.lock"]


class Agent:
    """Questions to code that runs in a sandbox behind the lens."""

    def __init__(self, arena, scope):
        self.root = arena.root
        self.process = arena.cordon.start("run", "--root", str(arena.root), *arena.protect(), *scope, "--", "/usr/bin/python3", "-c", SERVER,
                                          cwd=arena.root, stdin=subprocess.PIPE)
        assert self.process.stdout.readline() == b"ready\n", self.process.stderr.read()

    def __call__(self, expression):
        self.process.stdin.write(expression.encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return json.loads(line)

    def tries(self, calls, name):
        return {call: self(f"answer(lambda: {call.format(name)})") for call in calls}

    def end(self):
        return self.process.communicate(timeout=30)[1].decode()


def names(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


@SCOPES
def test_no_call_makes_a_name_that_a_save_of_a_boundary_would_use(arena, scope):
    arena.box.write("repo/x.key", "key\n")
    ask = Agent(arena, scope)
    assert ask("answer(make, 'mine')") == "ok"
    before = names(arena.root)
    for name in [*TEMPS, *(["x.key.lock", "deep/y.key~"] if "--deny" in scope else [])]:
        found = ask.tries(MAKES, name)
        assert set(found.values()) == {"EACCES"}, (name, found)
    assert names(arena.root) == before
    told = ask.end()
    assert "File: " + str(arena.root / "AGENTS.md.lock") in told and "Operation: create" in told
    arena.assert_unharmed()


@SCOPES
@pytest.mark.parametrize("place, temp", [("AGENTS.md", "sedAb3dE9"), ("AGENTS.md", "AGENTS.md.lock"), ("AGENTS.md", "any-name-at-all"),
                                         (".git/config", ".git/config.lock"), ("deep/er/held.txt", "deep/er/held.txt.Xy12zQ")])
def test_the_file_that_the_host_saves_by_is_out_of_reach(arena, scope, place, temp):
    ask = Agent(arena, scope)
    assert ask("answer(make, 'mine')") == "ok"
    path = arena.box.write(f"repo/{temp}", "saved\n", mode=0o644)
    assert poll(lambda: ask(f"os.path.exists({temp!r})"), what="the host's file inside")
    before = path.stat()
    found = ask.tries(TAKES, temp)
    assert set(found.values()) == {"EACCES"}, found
    after = path.stat()
    assert (after.st_ino, after.st_nlink, after.st_mode, after.st_mtime_ns) == (before.st_ino, 1, before.st_mode, before.st_mtime_ns)
    assert path.read_text() == "saved\n" and not os.listxattr(path)
    path.rename(arena.root / place)
    assert (arena.root / place).read_text() == "saved\n" and (arena.root / place).stat().st_nlink == 1
    told = ask.end()
    assert f"File: {path}\n" in told and "Operation: rename" in told, told
    assert "lock" in temp or ("the host made it during the run" in told and "To allow it: change it in the next run" in told), told


@SCOPES
def test_what_is_removed_and_made_again_or_moved_in_is_the_hosts(arena, scope):
    """The number of a file that the run made is used again for one of the host's."""
    ask = Agent(arena, scope)
    reused = 0
    for i in range(60):
        name = f"a{i}"
        assert ask(f"answer(make, {name!r})") == "ok"
        number = (arena.root / name).stat().st_ino
        (arena.root / name).unlink()
        path = arena.box.write(f"repo/{name}", "host\n", mode=0o644)
        reused += path.stat().st_ino == number
        found = ask.tries(["write({0!r})", "os.link({0!r}, 'second')", "os.unlink({0!r})"], name)
        assert "ok" not in found.values(), found
        assert path.read_text() == "host\n"
    print(f"numbers used again: {reused} of 60")
    ask.end()


@SCOPES
def test_what_the_run_made_or_found_is_its_own(arena, scope):
    arena.box.write("repo/there.txt", "there\n")
    arena.box.write("repo/AGENTS.md.tmpl", "template\n")
    ask = Agent(arena, scope)
    found = ask.tries(["make('own')", "write('own', 'two')", "os.link('own', 'own2')", "os.rename('own', 'own3')", "write('own3', 'three')",
                       "os.rename('own3', 'own2')", "os.unlink('own2')", "write('there.txt', 'THERE')", "os.link('there.txt', 'link')",
                       "os.rename('there.txt', 'there2.txt')", "os.rename('there2.txt', 'link')", "os.unlink('link')",
                       "write('AGENTS.md.tmpl', 'TEMPLATE')", "make('src/new.c')", "os.rename('src/new.c', 'new.c')", "write('new.c', 'moved in')",
                       "exchange('new.c', 'src/main.c')", "write('new.c')", "os.mkdir('d')", "make('d/f')", "os.rename('d', 'e')",
                       "write('e/f')", "os.unlink('e/f')", "os.rmdir('e')", "make('deep/er/own')", "os.unlink('deep/er/own')"], "")
    assert set(found.values()) == {"ok"}, found
    assert (arena.root / "AGENTS.md.tmpl").read_text() == "TEMPLATE\n"[:8] + "\n"
    refused = ask.tries(["os.unlink('AGENTS.md.tmpl')", "os.link('AGENTS.md.tmpl', 'second')", "os.rename('AGENTS.md.tmpl', 'second')",
                         "os.rename('new.c', 'AGENTS.md.tmpl')"], "")
    assert set(refused.values()) == {"EACCES"}, refused
    ask.end()
    arena.assert_unharmed()


def replaced(arena, name, text):
    """The host saves a file as an editor does: by another one, which it renames."""
    temp = arena.box.write(f"outside-{os.path.basename(name)}", text, mode=0o644)
    number = temp.stat().st_ino
    temp.rename(arena.root / name)
    assert (arena.root / name).stat().st_ino == number
    return arena.root / name


@SCOPES
@pytest.mark.parametrize("place", ["README.md", ".git/description", "deep/er/free.txt"])
def test_what_the_host_puts_at_a_name_that_was_there_is_free(arena, scope, place):
    arena.box.write(f"repo/{place}", "old\n")
    texts = []
    ask = Agent(arena, scope)
    for call, expected in {"write({0!r}, 'ours')": "oursd 0", "os.link({0!r}, {0!r} + '2')": "saved 1", "os.truncate({0!r}, 2)": "sa",
                           "os.rename('mine', {0!r})": "mine", "os.unlink({0!r})": None}.items():
        text = f"saved {len(texts)}"
        texts.append(text)
        path = replaced(arena, place, text)
        assert ask("answer(write, 'mine', 'mine', os.O_WRONLY | os.O_CREAT)") == "ok"
        assert poll(lambda: ask(f"answer(read, {place!r})") == texts[-1], what="the host's file inside")
        assert ask(f"answer(lambda: {call.format(place)})") == "ok", call
        assert (path.read_text() if path.exists() else None) == expected, call
    ask.end()
    arena.assert_unharmed()


@SCOPES
def test_a_name_that_was_there_frees_no_temporary_and_no_new_name(arena, scope):
    """A temporary name of a boundary stays the host's; so does a name that was there in another directory."""
    arena.box.write("repo/AGENTS.md.tmpl", "template\n")
    arena.box.write("repo/README.md", "old\n")
    ask = Agent(arena, scope)
    assert ask("answer(make, 'mine')") == "ok"
    for name in ("AGENTS.md.tmpl", "new.txt", ".git/README.md", "deep/er/README.md"):
        path = replaced(arena, name, "saved\n")
        assert poll(lambda: ask(f"answer(read, {name!r})") == "saved\n", what="the host's file inside")
        found = ask.tries(TAKES, name)
        assert set(found.values()) == {"EACCES"}, (name, found)
        assert path.read_text() == "saved\n" and path.stat().st_nlink == 1
    ask.end()
    arena.assert_unharmed()


def test_in_a_directory_that_the_host_replaced_no_name_was_there(arena):
    ask = Agent(arena, ["--lens", "always"])
    arena.box.write("repo/deep/new/held.txt", "held\n")
    path = arena.box.write("repo/deep/new/free.txt", "host\n", mode=0o644)
    (arena.root / "deep/er").rename(arena.root / "deep/old")
    (arena.root / "deep/new").rename(arena.root / "deep/er")
    path = arena.root / "deep/er/free.txt"
    assert poll(lambda: ask("answer(read, 'deep/er/free.txt')") == "host\n", what="the host's file inside")
    found = ask.tries(TAKES[:9], "deep/er/free.txt")
    assert set(found.values()) == {"EACCES"} and path.read_text() == "host\n" and path.stat().st_nlink == 1, found
    ask.end()


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
@SCOPES
def test_the_agent_goes_on_with_git_after_a_commit_of_the_host(arena, scope):
    """A commit replaces .git/index, which stands beside .git/config and .git/hooks. It replaces the branch, too: there a denial by a pattern can stand."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.hooksPath=/dev/null"]
    first = f"{' '.join(git)} init -q && {' '.join(git)} add src && {' '.join(git)} commit -qm one"
    done = arena.box.run("sh", "-c", first, cwd=arena.root)
    assert done.returncode == 0, str(done)
    arena.box.write("repo/src/two.c", "two\n")
    ask = Agent(arena, scope)
    number = (arena.root / ".git/index").stat().st_ino
    done = arena.box.run("sh", "-c", f"{' '.join(git)} add src && {' '.join(git)} commit -qm two", cwd=arena.root)
    assert done.returncode == 0, str(done)
    assert (arena.root / ".git/index").stat().st_ino != number
    assert ask("answer(make, 'src/three.c')") == "ok"
    run = "(lambda done: [done.returncode, done.stderr])(__import__('subprocess').run({!r}, capture_output=True, text=True))"
    assert ask(run.format([*git, "add", "src"])) == [0, ""]
    done = arena.box.run("git", "status", "--porcelain", "src", cwd=arena.root)
    assert done.returncode == 0 and done.stdout == "A  src/three.c\n", str(done)
    code, told = ask(run.format([*git, "commit", "-qm", "three"]))
    done = arena.box.run("git", "log", "--format=%s", cwd=arena.root)
    if "--deny" in scope:
        assert code == 128 and "refs/heads/" in told and done.stdout.split() == ["two", "one"], (told, str(done))
    else:
        assert [code, told] == [0, ""] and done.stdout.split() == ["three", "two", "one"], (told, str(done))
    ask.end()


@SCOPES
def test_elsewhere_what_the_host_makes_can_be_changed(arena, scope):
    """Where no boundary can stand, files that exist and files made later are judged alike. A denial by a pattern can stand anywhere."""
    ask = Agent(arena, scope)
    arena.box.write("repo/src/later.c", "host\n", mode=0o644)
    assert poll(lambda: ask("os.path.exists('src/later.c')"), what="the host's file inside")
    assert ask("answer(write, 'src/later.c')") == ("EACCES" if "--deny" in scope else "ok")
    ask.end()


def test_a_scope_by_names_holds_what_looks_like_a_save(arena):
    """`src/s*` grants sed's temporary name and not the file that sed saves."""
    ask = Agent(arena, ["--rw", "src/s*"])
    assert ask("answer(make, 'src/some')") == "ok"
    path = arena.box.write("repo/src/sedAb3dE9", "saved\n", mode=0o644)
    other = arena.box.write("repo/src/story", "host\n", mode=0o644)
    assert poll(lambda: ask("os.path.exists('src/sedAb3dE9') and os.path.exists('src/story')"), what="the host's files inside")
    found = ask.tries(["write({0!r})", "os.link({0!r}, 'src/second')", "os.rename({0!r}, 'src/second')", "os.unlink({0!r})",
                       "os.rename('src/some', {0!r})"], "src/sedAb3dE9")
    assert set(found.values()) == {"EACCES"} and path.read_text() == "saved\n", found
    assert ask("answer(write, 'src/story')") == "ok" and other.read_text() == "EVIL\n"
    assert ask("[answer(make, 'src/sedXy12zQ'), answer(write, 'src/sedXy12zQ'), answer(os.rename, 'src/sedXy12zQ', 'src/some')]") == ["ok"] * 3
    ask.end()


# ---- programs of the host save while the agent races ----

RACER = r"""
import os, threading
end = False
def seize(path):
    for call in (lambda: os.link(path, "second-" + os.path.basename(path)), lambda: os.rename("bait", path), lambda: os.unlink(path)):
        try: call()
        except OSError: pass
    try: fd = os.open(path, os.O_RDWR)
    except OSError: return
    kept.append(fd)
kept = []
print("ready", flush=True)
while not os.path.exists("enough"):
    for top in (".", ".git"):
        try: found = os.listdir(top)
        except OSError: continue
        for name in found:
            if name.startswith("sed") or name.endswith(".lock"):
                seize(os.path.join(top, name))
    if not os.path.exists("bait"):
        open("bait", "w").write("EVIL\n")
    for name in ("AGENTS.md.lock", ".git/config.lock"):
        try: kept.append(os.open(name, os.O_CREAT | os.O_RDWR, 0o666))
        except OSError: pass
    for fd in kept:
        try: os.pwrite(fd, b"EVIL\n", 0)
        except OSError: pass
    if len(kept) > 200:
        for fd in kept: os.close(fd)
        kept.clear()
print(len(kept), flush=True)
"""


def race(arena, scope, rounds):
    process = arena.cordon.start("run", "--root", str(arena.root), *arena.protect(), *scope, "--", "/usr/bin/python3", "-c", RACER, cwd=arena.root)
    assert process.stdout.readline() == b"ready\n", process.stderr.read()
    agents, config = arena.root / "AGENTS.md", arena.root / ".git/config"
    for i in range(rounds):
        done = arena.box.run("sh", "-c", f"sed -i 's/.*/rules {i}/' AGENTS.md && git config --file .git/config a.b {i}", cwd=arena.root)
        assert done.returncode == 0, str(done)
        time.sleep(0.001)
        assert agents.read_text() == f"rules {i}\n" and agents.stat().st_nlink == 1
        assert f"b = {i}\n" in config.read_text() and "EVIL" not in config.read_text() and config.stat().st_nlink == 1
    arena.box.write("repo/enough", "")
    process.communicate(timeout=60)
    assert agents.read_text() == f"rules {rounds - 1}\n" and "EVIL" not in config.read_text()


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
@SCOPES
def test_sed_and_git_on_the_host_save_while_the_agent_races(arena, scope):
    race(arena, scope, 100)


@pytest.mark.long
@pytest.mark.limit(600)
@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
@SCOPES
def test_a_thousand_saves_while_the_agent_races(arena, scope):
    race(arena, scope, 1000)


# ---- the other side: programs inside save as ever ----


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
@SCOPES
def test_programs_inside_save_as_ever(arena, scope):
    arena.box.write("repo/a.txt", "one\n")
    arena.box.run("git", "init", "-q", cwd=arena.root)
    result = arena.sh(r"""
        set -e
        sed -i s/one/two/ a.txt
        printf three >a.txt.1234567 && mv a.txt.1234567 a.txt                                          # npm
        : >.a.txt.swp; : >4913; rm 4913; mv a.txt a.txt~; printf four >a.txt; rm a.txt~ .a.txt.swp    # vim
        printf '{}' >package-lock.json.tmp && mv package-lock.json.tmp package-lock.json
        perl -pi -e s/four/five/ a.txt
        git -c user.name=a -c user.email=a@b add a.txt src
        git -c user.name=a -c user.email=a@b commit -qm one
        git checkout -qb side && printf six >a.txt && git -c user.name=a -c user.email=a@b commit -qam two && git checkout -q - && git merge -q side
        git gc -q && git log --oneline | wc -l
        """, *scope)
    assert result.returncode == 0 and result.stdout.split()[-1] == "2", result
    assert (arena.root / "a.txt").read_text() == "six"
