# SPDX-License-Identifier: Apache-2.0
"""Random rounds: an agent changes a tree in a live view, the host edits, deletes and renames beside it, and apply and undo are killed at random calls.

What must come of it is worked out here once more, path by path, from what both sides began with and what each of them made of it. Texts are merged by git."""
import os
import random
import subprocess

import pytest

from support import Cordon
from views import Killer

DIRS, FILES, LINES = 4, 4, 24
REGIONS = (3, 12, 21)  # lines that are far enough from each other to be merged
NEW = [f"d{d}/new{n}" for d in range(DIRS) for n in range(2)] + ["made/x", "made/deep/y"]
ALL = [f"d{d}/f{f}" for d in range(DIRS) for f in range(FILES)]


def tree_of(root):
    """{path: what is there}, without git's directory."""
    found = {}
    for path in root.rglob("*"):
        name = str(path.relative_to(root))
        if name.split("/")[0] == ".git":
            continue
        mode = path.lstat().st_mode & 0o777
        found[name] = ("link", os.readlink(path)) if path.is_symlink() else ("dir",) if path.is_dir() else ("file", mode, path.read_bytes())
    return found


class Side:
    """One who changes the tree: a script of random lines, none of which fails."""

    def __init__(self, random_, name):
        self.random, self.name = random_, name
        self.made = 0

    def path(self):
        return self.random.choice(ALL)

    def edit(self):
        path, region = self.path(), self.random.choice(REGIONS)
        return f"test ! -f {path} -o -L {path} || sed -i '{region}s/.*/{self.name} wrote {region}/' {path}"

    def rewrite(self):
        path = self.path()  # in place: the file stays the same one
        return f"test ! -f {path} -o -L {path} || {{ text=$(sed '12s/$/ and {self.name}/' {path}); printf '%s\\n' \"$text\" >{path}; }}"

    def append(self):
        path = self.path()
        return f"test ! -f {path} -o -L {path} || echo {self.name} >>{path}"

    def remove(self):
        return f"rm -f {self.path()}"

    def make(self):
        path = self.random.choice(NEW)
        return f"test -e {path} || {{ mkdir -p {os.path.dirname(path)} && echo {self.name} >{path}; }}"

    def move(self):
        self.made += 1
        return f"test ! -e {(path := self.path())} || mv {path} {self.name}-{self.made}"

    def mode(self):
        return f"test ! -f {(path := self.path())} -o -L {path} || chmod 755 {path}"

    def link(self):
        return f"test ! -f {(path := self.path())} || ln -sfn {self.name} {path}"

    def move_dir(self):
        self.made += 1
        d = self.random.randrange(DIRS)
        return f"test ! -d d{d} || mv d{d} {self.name}-dir-{self.made}"

    def remove_dir(self):
        return f"rm -rf d{self.random.randrange(DIRS)}"

    def script(self):
        often = [self.edit, self.edit, self.edit, self.rewrite, self.append, self.make, self.move, self.mode, self.remove]
        rarely = [self.link, self.move_dir, self.remove_dir]
        count = self.random.choice((1, 1, 2, 3, 6))
        return "\n".join(self.random.choice(often if self.random.random() < 0.93 else rarely)() for _ in range(count))


def merged(box, old, ours, theirs):
    """The text that git makes of the three, or None."""
    paths = [box.write(f"merge/{n}", text) for n, text in enumerate((ours, old, theirs))]
    done = subprocess.run(["git", "merge-file", "-p", *map(str, paths)], capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None


def wanted(box, before, agent, host):
    """What apply must make of the tree, or None where it must refuse."""
    want = {}
    for path in sorted({*before, *agent, *host}):
        old, mine, theirs = before.get(path), agent.get(path), host.get(path)
        if mine == old or mine == theirs:
            now = theirs
        elif theirs == old:
            now = mine
        elif old and mine and theirs and old[0] == mine[0] == theirs[0] == "file":
            mode = theirs[1] if mine[1] == old[1] else mine[1]
            text = merged(box, old[2], theirs[2], mine[2])
            if text is None:
                return None
            now = ("file", mode, text)
        else:
            return None
        if now:
            want[path] = now
    if any(os.path.dirname(path) and want.get(os.path.dirname(path)) != ("dir",) for path in want):
        return None  # something new in a directory that the other side removed
    return want


def below(tree, path):
    return {name: what for name, what in tree.items() if name.startswith(path + "/")}


def is_doubtful(before, agent, host):
    """Where apply may refuse although it could do it, because nobody noted what was there when the view began: a mode, with the file changed
    by both; a file that the agent changed in place and then moved; one that both moved, or that one moved and the other changed; a directory that one
    side removed and in which the other worked."""
    texts = {what[-1] for what in before.values()}
    for path in {*before, *agent}:
        old, mine, theirs = before.get(path), agent.get(path), host.get(path)
        if old and mine and theirs and old != theirs and old != mine and mine[0] == theirs[0] == "file" and mine[1] != theirs[1]:
            return True
        if old == ("dir",) and not {*below(before, path)} & {*below(agent, path)} and below(before, path) != below(host, path):
            return True
        if old == ("dir",) and theirs != old and below(before, path) != below(agent, path):
            return True
        if path.startswith("agent-") and mine[-1] not in texts:
            return True
        if mine and not old and any(what[-1] == mine[-1] and host.get(name) != what for name, what in before.items()):
            return True
    return False


class Place:
    """A root in memory, and rounds in it."""

    def __init__(self, box, seed):
        self.box, self.cordon = box, Cordon(box)
        self.root = box.path / "root"
        self.random = random.Random(seed)
        self.calls = {}
        self.counts = {"applied": 0, "merged": 0, "refused": 0, "doubtful": 0, "killed": 0}

    def shell(self, script, cwd, check=True):
        done = self.box.run("sh", "-uc", script, cwd=cwd)
        assert not check or done.returncode == 0, str(done)

    def begin(self):
        subprocess.run(["rm", "-rf", str(self.root), str(self.box.path / "copy"), str(self.box.state)], check=True)
        self.box.mkdir("root")
        text = "".join(f"line {n}\n" for n in range(1, LINES + 1))
        for path in ALL:
            self.box.write(f"root/{path}", f"{path}\n{text}")
        self.shell("git init -q . && git add . && git -c user.name=n -c user.email=e@x commit -qm first && git status >/dev/null", self.root)

    def work(self, agent, host):
        """The agent works in a view, and while it is live the host works in the tree."""
        process = self.cordon.start("run", "--cow", "--no-summary", "--", "sh", "-uc", f"{agent}\necho ready; read line", cwd=self.root, stdin=subprocess.PIPE)
        assert process.stdout.readline() == b"ready\n", process.stderr.read()
        self.shell(host, self.root)
        process.communicate(b"\n", timeout=60)
        assert process.returncode == 0

    def killed(self, verb, *states):
        """Runs a verb that is killed at a random call; the tree is then one of the states, and the one that is told. Returns which."""
        if verb not in self.calls:  # of which it is not known yet when it can be killed
            return 0, None
        status = Killer(self.cordon, self.root).kill(*self.random.choice(self.calls[verb]), "changes", verb, "latest")
        self.counts["killed"] += status not in (0, 1)
        listed = self.cordon("changes", "list", "--json", cwd=self.root)
        assert listed.returncode == 0, str(listed)
        now = tree_of(self.root)
        assert now in states, f"{verb} was done by half"
        told = listed.json()["changes"]
        assert not [name for name in os.listdir(self.root) if name.startswith(".cordon")]
        return states.index(now), told[-1]["state"] if told else None

    def learn(self, verb):
        """Counts the calls of a verb that is not killed, and does it."""
        self.calls[verb] = Killer(self.cordon, self.root).count("changes", verb, "latest")

    def round(self):
        agent, host = Side(self.random, "agent").script(), Side(self.random, "host").script()
        self.begin()
        before = tree_of(self.root)
        subprocess.run(["cp", "-a", str(self.root), str(self.box.path / "copy")], check=True)
        self.shell(agent, self.box.path / "copy")
        mine = tree_of(self.box.path / "copy")
        self.work(agent, host)
        theirs = tree_of(self.root)
        want = wanted(self.box, before, mine, theirs)
        if mine == before:
            assert not self.cordon("changes", "list", "--json", cwd=self.root).json()["changes"]
            return
        if want is None:
            done = self.cordon("changes", "apply", "--json", cwd=self.root)
            assert done.returncode == 1 and done.json()["conflicts"], str(done)
            assert tree_of(self.root) == theirs, "nothing is written"
            self.counts["refused"] += 1
            return
        if is_doubtful(before, mine, theirs):
            done = self.cordon("changes", "apply", "--json", cwd=self.root)
            if not done.stdout:  # nothing is left to be applied
                assert want == theirs, str(done)
                return
            assert done.returncode == (0 if done.json()["done"] else 1) and bool(done.json()["conflicts"]) != done.json()["done"], str(done)
            assert tree_of(self.root) == (want if done.json()["done"] else theirs)
            self.counts["doubtful"] += 1
            return
        same = want == theirs
        applied, state = self.killed("apply", theirs, want)
        assert same or state in (None, "applied" if applied else "ended")
        if not applied:
            self.learn("apply")
        assert tree_of(self.root) == want
        if same:
            return
        undone, state = self.killed("undo", want, theirs)
        assert state in (None, "ended" if undone else "applied")
        if not undone:
            self.learn("undo")
        assert tree_of(self.root) == theirs
        again = self.cordon("changes", "apply", cwd=self.root)
        assert again.returncode == 0 and tree_of(self.root) == want, f"once more: {again}"
        self.counts["applied"] += 1
        self.counts["merged"] += any(want[path] not in (mine.get(path), theirs.get(path)) for path in want)


@pytest.mark.parametrize("rounds", [20, pytest.param(500, marks=[pytest.mark.soak, pytest.mark.limit(1800)])])
def test_whatever_both_sides_do_nothing_is_lost_or_done_by_half(memory_box, rounds):
    place = Place(memory_box, rounds)
    for number in range(rounds):
        try:
            place.round()
        except AssertionError as error:
            raise AssertionError(f"round {number}: {error}") from error
    counts = place.counts
    assert min(counts.values()) > rounds / 100 if rounds > 100 else counts["applied"] and counts["refused"] and counts["killed"], counts
