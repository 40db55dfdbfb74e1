# SPDX-License-Identifier: Apache-2.0
"""Runs cells of the matrix: in a sandbox of a mode, or natively, with a look at the host after each batch."""
import itertools
import os
import pathlib
import subprocess

from modes import open_session
from support import kill_session
from cell_worlds import CONTROL, DENY, MODES, PROTECT, changes, digest, made_by_host, populate, targets

# How many guilty cells of one target, and in all, are looked for before the rest is left: each costs a new sandbox.
GUILTY_LIMIT = int(os.environ.get("CORDON_MATRIX_GUILTY", "5"))
GUILTY_TARGETS = int(os.environ.get("CORDON_MATRIX_TARGETS", "3"))
FEW = 20  # cells
counter = itertools.count()


class Attack:
    """One sandbox (or none) with the attacker in it, and the world that it attacks."""

    def __init__(self, box, cordon, attacker, mode):
        self.box, self.cordon, self.attacker, self.mode = box, cordon, attacker, mode
        self.targets = targets("plain" if mode == "native" else mode)
        self.process = self.session = None
        self.around = box.mkdir(f"world-{next(counter)}")
        self.log = open(self.around / "log", "wb")
        self.start()
        said = self.process.stdout.readline()
        assert said == b"ready\n", self.broken(f"the attacker did not start: {said}")
        made_by_host(self.top, box)
        self.before = self.look()

    def start(self):
        if self.mode == "session":
            self.start_session()
            return
        self.top = self.around / "root"
        populate(self.top, self.around, self.attacker, self.box)
        serve = [str(self.top / "scratch/attacker"), "native" if self.mode == "native" else "serve", str(self.top), *self.targets]
        if self.mode == "native":
            self.process = self.box.start(*serve, cwd=self.top, stdin=subprocess.PIPE, stderr=self.log)
            return
        options = [word for name in PROTECT for word in ("--protect", name)] + [word for name in DENY for word in ("--deny", name)]
        options += ["--ro", "ro", "--share", f"{self.around}/shared:{self.top}/mnt:ro", *MODES[self.mode]]
        home = self.around / "home" if self.mode == "view" else self.top / CONTROL
        self.views = home / "state/views"
        self.process = self.cordon.start("run", "--root", str(self.top), *options, "--", *serve, cwd=self.top, stdin=subprocess.PIPE,
                                         stderr=self.log, env={"CORDON_HOME": str(home)})

    def start_session(self):
        """A session of a project, and the attacker as a command that enters it."""
        self.box.mkdir(f"{self.around.name}/shared")
        protect = [word for name in PROTECT for word in ("--protect", name)]
        self.session, self.top = open_session(self.box, self.cordon, lambda top: populate(top, self.around, self.attacker, self.box), "--net", "none", *protect,
                                              "--share", f"{self.around}/shared:/workspace/mnt:ro")
        self.process = self.cordon.start("session", "exec", self.session, "--", "/workspace/scratch/attacker", "serve", "/workspace", *self.targets,
                                         stdin=subprocess.PIPE, stderr=self.log)

    def broken(self, what):
        self.log.flush()
        return f"{self.mode}: {what}: {pathlib.Path(self.log.name).read_bytes()[-2000:].decode(errors='replace')}"

    def look(self):
        """The host's side: the root and what lies around it, and of a view also the layer with its changes."""
        found = {**digest(self.top), **{f"../{name}": how for side in ("outside", "shared") for name, how in self.side(side)}}
        if self.mode == "view":
            found.update(self.in_view())
        return found

    def side(self, name):
        return [(f"{name}/{short}", how) for short, how in digest(self.around / name).items()]

    def in_view(self):
        """What a view holds of boundaries: nothing at all."""
        held = {target[2:] for target in self.targets if target[0] == "b" and not target[2:].startswith("../")} - {"conf", ".git"}
        found = {}
        for upper in self.views.glob("*/upper"):
            for base, directories, files in os.walk(upper):
                for name in [*directories, *files]:
                    short = os.path.relpath(os.path.join(base, name), upper)
                    path = os.path.join(base, name)
                    # A link that is as it was may have been copied up for the sake of its times.
                    if short in held and not (os.path.islink(path) and os.readlink(path) == os.readlink(self.top / short)):
                        found[f"view: {short}"] = "is there"
        return found

    def run(self, first, last, sixth=1, seed=0):
        """Lines that the attacker told while it tried these cells."""
        self.process.stdin.write(f"{first} {last} {sixth} {seed}\n".encode())
        self.process.stdin.flush()
        lines = []
        while True:
            line = self.process.stdout.readline().decode()
            if not line:
                raise AssertionError(self.broken(f"no answer to the cells {first} to {last}"))
            if line == "done\n":
                return lines
            lines.append(line.rstrip("\n"))

    def close(self):
        self.process.stdin.close()
        if self.process.poll() is None and self.mode != "session":
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                kill_session(self.process)
                self.process.wait(10)
        if self.session:
            self.cordon("session", "stop", self.session, "--grace", "100ms")
        if self.mode == "session":
            self.process.wait(10)
        self.process.stdout.close()
        self.log.close()
        subprocess.run(["chmod", "-R", "u+rwX", str(self.around)], check=False, capture_output=True)
        subprocess.run(["rm", "-rf", str(self.around)], check=False)


class Matrix:
    """The product for one mode and one caller."""

    def __init__(self, box, cordon, attacker, mode, sixth, seed):
        self.box, self.cordon, self.attacker, self.mode, self.sixth, self.seed = box, cordon, attacker, mode, sixth, seed
        self.targets = targets("plain" if mode == "native" else mode)
        words = self.say("cells", "/", *self.targets).splitlines()
        count, self.spellings, self.calls = map(int, words[0].split())
        assert count == len(self.targets)
        self.guilty = []
        self.found_by_host = 0
        self.attack = None

    def say(self, *words):
        return subprocess.run([str(self.attacker), *words], check=True, capture_output=True, text=True).stdout

    def name(self, cell):
        return f"cell {cell}: " + self.say("name", str(cell), "/", *self.targets).strip()

    def fresh(self):
        if self.attack:
            self.attack.close()
        self.attack = Attack(self.box, self.cordon, self.attacker, self.mode)
        return self.attack

    def blame(self, cell, what):
        self.guilty.append(f"{self.name(cell)}: {what}")

    def told(self, lines):
        """What the attacker itself found wrong."""
        for line in lines:
            kind, _, rest = line.partition(" ")
            if kind in ("TOLD", "DIED"):
                cell, _, what = rest.partition(" ")
                self.blame(int(cell), what if kind == "TOLD" else f"the attacker ended ({what})")
            elif kind == "BROKEN":
                raise AssertionError(self.attack.broken(line))

    def boundaries(self):
        """Tries every cell of every boundary; what the host then sees is told cell by cell."""
        self.fresh()
        group = self.spellings * self.calls
        for target in range(sum(word[0] in "bg" for word in self.targets)):
            lines = self.attack.run(target * group, (target + 1) * group, self.sixth, self.seed)
            self.told(lines)
            if self.attack.look() != self.attack.before:
                self.fresh()
                self.one_by_one(target)
            if self.found_by_host >= GUILTY_LIMIT * GUILTY_TARGETS:
                break
        return self.guilty

    def is_clean(self, first, last):
        """Runs cells in the world as it is; where they change something, the next ones get a new one."""
        self.attack.run(first, last, self.sixth, self.seed)
        self.seen = self.attack.look()
        if self.seen == self.attack.before:
            return True
        self.difference = changes(self.attack.before, self.seen)
        self.fresh()
        return False

    def one_by_one(self, target):
        """Finds the cells of a target after which the host sees a change: first the spelling, then a few calls, then the one."""
        found = 0
        for spelling in range(self.spellings):
            first = (target * self.spellings + spelling) * self.calls
            if self.is_clean(first, first + self.calls):
                continue
            for few in range(first, first + self.calls, FEW):
                if self.is_clean(few, min(few + FEW, first + self.calls)):
                    continue
                for cell in range(few, min(few + FEW, first + self.calls)):
                    if self.is_clean(cell, cell + 1):
                        continue
                    self.blame(cell, "; ".join(self.difference))
                    self.found_by_host += 1
                    found += 1
                    if found == GUILTY_LIMIT:
                        return

    def allowed(self):
        """{(target, spelling, call): (errno, what became of the target)} of every cell on a path that may be used."""
        if not self.attack:
            self.fresh()
        group = self.spellings * self.calls
        found = {}
        first = next(i for i, word in enumerate(self.targets) if word[0] in "fdn")
        for target in range(first, len(self.targets)):
            lines = self.attack.run(target * group, (target + 1) * group, self.sixth, self.seed)
            self.told(lines)
            for line in lines:
                words = line.split(" ")
                if words[0].isdigit():
                    cell = int(words[0])
                    found[self.targets[target], cell // self.calls % self.spellings, cell % self.calls] = (int(words[1]), words[2])
        return found

    def close(self):
        if self.attack:
            self.attack.close()


def names(attacker):
    """Names of spellings and of calls, by their numbers."""
    spellings = subprocess.run([str(attacker), "cells", "/"], check=True, capture_output=True, text=True).stdout.splitlines()[1:]
    calls = subprocess.run([str(attacker), "calls"], check=True, capture_output=True, text=True).stdout.splitlines()
    return spellings, [(int(line.split(" ", 1)[0]), line.split(" ", 1)[1]) for line in calls]
