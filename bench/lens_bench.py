# SPDX-License-Identifier: Apache-2.0
"""Work through the lens beside the same work on the host: cold (a view nobody has looked at) and warm (looked at before).

Both sides run in the same namespaces, so that only the file system differs. Bars are those of the design: warm at most
1.5 times native, cold at most 8 times, for the build and `git status`.
"""
import os
import pathlib
import shutil
import subprocess

from rows import Row, median, run

SOURCES = 120
TRACKED = 5000
SMALL_FILES = 20000
COLD_ROUNDS = 3
WARM_ROUNDS = 7

# Runs a command so often and prints seconds; what comes after each run is not measured. Starts in the tree.
DRIVER = """
import subprocess, sys, time
rounds, command, after = int(sys.argv[1]), sys.argv[2], sys.argv[3]
for _ in range(rounds):
    began = time.perf_counter()
    subprocess.run(["sh", "-c", command], check=True, stdout=subprocess.DEVNULL)
    print(time.perf_counter() - began, flush=True)
    subprocess.run(["sh", "-c", after], check=True)
"""


def make_project(root):
    """C sources that include headers of each other, and a Makefile."""
    for name in ("include", "src"):
        (root / name).mkdir(parents=True)
    for i in range(SOURCES):
        (root / "include" / f"part{i}.h").write_text(f"#ifndef P{i}\n#define P{i}\nint part{i}(int);\n#endif\n")
        includes = "".join(f'#include "part{(i * 7 + k) % SOURCES}.h"\n' for k in range(12))
        body = "".join(f"\tx = x * {k + 3} + part{(i * 7 + k % 12) % SOURCES}(x - {k});\n" for k in range(40))
        (root / "src" / f"part{i}.c").write_text(
            f'#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include "part{i}.h"\n{includes}'
            f"int part{i}(int x)\n{{\n\tif (x <= 0) return x;\n{body}\treturn x;\n}}\n"
        )
    (root / "src" / "main.c").write_text("int part0(int); int main(void) { return part0(-1) + 1; }\n")
    (root / "Makefile").write_text(
        "O := $(patsubst src/%.c,out/%.o,$(wildcard src/*.c))\nout/all: $(O)\n\tcc -o $@ $^\n"
        "out/%.o: src/%.c | out\n\tcc -O1 -Iinclude -c -o $@ $<\nout:\n\tmkdir out\n"
    )


def make_repository(root):
    for i in range(TRACKED):
        path = root / f"dir{i % 83}" / f"sub{i % 7}" / f"file{i}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"line {i}\n" * 20)
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    for arguments in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all"]):
        run(["git", *arguments], cwd=root, env=env)


WORK = [
    # what, tree, command, afterwards, the bars (cold, warm) or None
    ("C build, 121 files", "project", "make -s -j2", "rm -rf out", (8.0, 1.5)),
    ("git status, 5,000 files", "repository", "git -c core.fsmonitor=false status --porcelain", ":", (8.0, 1.5)),
    ("grep -r, 5,000 files", "repository", "grep -r needle . || true", ":", None),
    (
        "20,000 small files made",
        "empty",
        "python3 -c 'import os\nos.mkdir(\"d\")\nfor i in range(%d):\n with open(f\"d/f{i}\", \"w\") as f: f.write(\"x\" * 100)'" % SMALL_FILES,
        "rm -rf d",
        None,
    ),
]


class Sides:
    """Runs the driver on the host's tree and on a view of it."""

    def __init__(self, context):
        self.context = context
        self.view = context.temp / "view"
        self.view.mkdir()

    def seconds(self, root, through, rounds, command, after):
        build = self.context.build
        driver = ["/usr/bin/python3", "-c", DRIVER, str(rounds), command, after]
        where = [] if through else ["env", "-C", str(root)]
        mount = [str(build / "tests" / "mount_lens"), "--lens", str(build / "cordon-lens"), "--root", str(root), "--at", str(self.view)]
        done = run([*mount, "--rw", "**", "--", *where, *driver])
        return [float(line) for line in done.stdout.split()]


def rows(context):
    sides = Sides(context)
    trees = {name: context.temp / f"lens-{name}" for name in ("project", "repository", "empty")}
    trees["empty"].mkdir()
    make_project(trees["project"])
    make_repository(trees["repository"])
    for what, tree, command, after, bars in WORK:
        root = trees[tree]
        native, cold, warm = [], [], []
        sides.seconds(root, False, 1, command, after)  # the host's caches are warm for both
        for _ in range(COLD_ROUNDS):
            times = sides.seconds(root, True, 1 + WARM_ROUNDS // COLD_ROUNDS + 1, command, after)
            cold.append(times[0])
            warm += times[1:]
            native += sides.seconds(root, False, WARM_ROUNDS // COLD_ROUNDS + 1, command, after)
        for state, values, bar in (("cold", cold, bars and bars[0]), ("warm", warm, bars and bars[1])):
            ratio = min(values) / min(native)
            yield Row(
                f"lens, {state}: {what}",
                f"{min(values) * 1000:.0f} ms",
                f"{min(native) * 1000:.0f} ms native",
                ratio,
                f"<= {bar}" if bar else "",
                None if bar is None else ratio <= bar,
            )
    for path in (*trees.values(), sides.view):
        shutil.rmtree(path)
