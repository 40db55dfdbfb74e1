# SPDX-License-Identifier: Apache-2.0
"""Applying a view with 10,000 changed files beside `rsync -a` of the same files, and undoing it.

A run in a view makes the changes. Both tools copy the same layer onto the same tree; rsync neither judges nor keeps what it replaces, and waits for no
disk, which apply does. So they are compared in memory. The two take turns, and the median of the rounds' ratios counts."""
import pathlib
import shutil
import tempfile
import time

from rows import Row, median, run

FILES = 10000
DIRS = 100
ROUNDS = 5
BAR = 1.5
MEMORY = pathlib.Path("/dev/shm")
MAKE = 'for d in $(seq %d); do mkdir -p "$1$d"; for f in $(seq %d); do seq $d "$2" > "$1$d/$f"; done; done' % (DIRS, FILES // DIRS)


def timed(command, **options):
    began = time.monotonic()
    run(command, **options)
    return time.monotonic() - began


class Place:
    """A root with a view of it, and a second tree for rsync, on one file system."""

    def __init__(self, context, temp, prefix):
        self.cordon, self.root, self.other, self.pristine = context.cordon, temp / "root", temp / "other", temp / "pristine"
        self.env = {"PATH": "/usr/bin:/bin", "CORDON_HOME": str(temp / "state"), "HOME": str(temp)}
        self.root.mkdir()
        run(["sh", "-euc", MAKE, "sh", "d", "500"], cwd=self.root)
        for tree in (self.other, self.pristine):
            run(["cp", "-a", str(self.root), str(tree)])
        run([self.cordon, "run", "--cow", "--root", str(self.root), "--", "sh", "-euc", MAKE, "sh", prefix, "600"], cwd=self.root, env=self.env)
        self.upper = next((temp / "state/state/views").glob("*/upper"))

    def change(self, verb):
        return timed([self.cordon, "changes", verb, "--quiet", "--root", str(self.root)], env=self.env)

    def rsync(self):
        took = timed(["rsync", "-a", f"{self.upper}/", f"{self.other}/"])
        run(["rsync", "-a", "--delete", f"{self.pristine}/", f"{self.other}/"])
        return took


def measure(context, base, what, prefix):
    with tempfile.TemporaryDirectory(prefix="cordon-bench-", dir=base) as temp:
        place = Place(context, pathlib.Path(temp), prefix)
        times = {"apply": [], "undo": [], "rsync": []}
        for _ in range(ROUNDS):
            times["rsync"].append(place.rsync())
            times["apply"].append(place.change("apply"))
            times["undo"].append(place.change("undo"))
        ratio = median(mine / peer for mine, peer in zip(times["apply"], times["rsync"]))
        yield Row(f"apply: {FILES:,} files {what}", f"{median(times['apply']) * 1000:.0f} ms",
                  f"{median(times['rsync']) * 1000:.0f} ms rsync -a", ratio, f"<= {BAR}", ratio <= BAR)
        yield Row("  undo", f"{median(times['undo']) * 1000:.0f} ms")


def rows(context):
    if not shutil.which("rsync"):
        yield Row("apply beside rsync", "no rsync here")
        return
    base = MEMORY if MEMORY.is_dir() else context.temp
    yield from measure(context, base, "changed", "d")
    yield from measure(context, base, "new", "new")
