# SPDX-License-Identifier: Apache-2.0
"""Making many small files in memory: natively, in bubblewrap as people call it every day, and in a plain run.

A workspace with default protection has held directories: its root, and `.git`. In a directory that was there when the run
started the kernel serves the agent, and each call is trapped and goes on; in one that the run itself made in the root, each entry is made by
the hand. The part that is not ours is the same work under the watch's filter with a listener that lets every call continue without a look at
it (bare_filter.c). CORDON_BEFORE names the executable of an earlier build, which does the same work beside it. Each sample is one command, timed inside; the variants take turns, and the median of the rounds' ratios counts."""
import os
import pathlib
import shutil
import subprocess
import tempfile

from rows import Row, median, run

FILES = 20000
ROUNDS = 9
MEMORY = pathlib.Path("/dev/shm")
BARS = {"existing": 3.0, "fresh": 12.0}
SCRIPT = f'now() {{ date +%s%N; }}; a=$(now); ./make_files "$1" {FILES} || exit 1; b=$(now); echo $((b - a))'


def commands(context, root):
    system = [word for path in ("/usr", "/etc") for word in ("--ro-bind", path, path)]
    system += [word for path in ("bin", "sbin", "lib", "lib64") for word in ("--symlink", f"usr/{path}", f"/{path}")]
    before = os.environ.get("CORDON_BEFORE")
    earlier = {"before": [before, "run", "--root", str(root), "--"]} if before else {}
    return {
        "native": [],
        "bubblewrap": ["bwrap", "--unshare-all", "--die-with-parent", *system, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind",
                       str(root), str(root), "--chdir", str(root)],
        "trap": [context.program("bare_filter"), "trap"],
        "cordon": [context.cordon, "run", "--root", str(root), "--"],
        **earlier,
    }


def sample(command, root, place, state):
    target = root / ("have/made" if place == "existing" else "made")
    done = subprocess.run([*command, "/bin/sh", "-c", SCRIPT, "sh", str(target.relative_to(root))], cwd=root, capture_output=True,
                          check=True, env={"PATH": "/usr/bin:/bin", "CORDON_HOME": str(state)})
    shutil.rmtree(target)
    return int(done.stdout)


def rows(context):
    base = MEMORY if MEMORY.is_dir() else context.temp
    with tempfile.TemporaryDirectory(prefix="cordon-bench-", dir=base) as temp:
        root = pathlib.Path(temp) / "root"
        (root / "have").mkdir(parents=True)
        run(["git", "init", "-q", str(root)])
        shutil.copy(context.program("make_files"), root / "make_files")
        for place, bar in BARS.items():
            times = {name: [] for name in commands(context, root)}
            for _ in range(ROUNDS):
                for name, command in commands(context, root).items():
                    times[name].append(sample(command, root, place, context.temp / f"state-{name}"))
            where = "in a directory that was there" if place == "existing" else "in a fresh directory of the root"
            what = {"cordon": f"{FILES:,} files {where}", "trap": "  a bare trap of each call", "bubblewrap": "  in bubblewrap",
                    "before": "  by the earlier build"}
            for name, met in (("cordon", bar), ("before", None), ("trap", None), ("bubblewrap", None)):
                if name not in times:
                    continue
                ratio = median(value / native for value, native in zip(times[name], times["native"]))
                yield Row(what[name], f"{median(times[name]) / 1e6:.1f} ms",
                          f"{median(times['native']) / 1e6:.1f} ms native", ratio, f"<= {met:.0f}" if met else "",
                          ratio <= met if met else None)
