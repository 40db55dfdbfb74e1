# SPDX-License-Identifier: Apache-2.0
"""Copy-on-write views: what the start costs by the size of the tree, `git status` and a build in a view beside the same natively, and
eight views beside eight `git worktree add`, in time and on the disk."""
import os
import pathlib
import subprocess
import tempfile
import time

from rows import Row, median, microseconds, run

SMALL, LARGE, TRACKED = 10, 20000, 1000000
ROUNDS = 21
WORK_VIEWS, WORK_ROUNDS = 5, 3  # so many views, and rounds in each
START_BAR = 2000  # microseconds that a view may add
GROWTH_BAR = 1.10
WORK_BAR = 1.15
VIEWS = 8
MEMORY = pathlib.Path("/dev/shm")
SOURCES = 12
GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]


def make_tree(top, files):
    """A repository with so many small files, 100 in each directory, and a C program."""
    for i in range(0, files, 100):
        (top / f"files/d{i // 100}").mkdir(parents=True)
        for k in range(i, min(i + 100, files)):
            (top / f"files/d{i // 100}/f{k}").write_text(f"{k}\n")
    (top / "c").mkdir()
    for i in range(SOURCES):
        (top / f"c/s{i}.c").write_text(f"#include <stdio.h>\n#include <stdlib.h>\nint f{i}(int x) {{ return printf(\"%d\", x + {i}); }}\n")
    (top / "c/main.c").write_text("int main(void) { return 0; }\n")
    objects = " ".join(f"s{i}.o" for i in range(SOURCES))
    (top / "c/Makefile").write_text(f"program: main.o {objects}\n\tcc -o $@ $^\n%.o: %.c\n\tcc -O2 -c -o $@ $<\nclean:\n\trm -f *.o program\n")
    run([*GIT, "init", "-q", "."], cwd=top)
    run([*GIT, "add", "-A"], cwd=top)
    run([*GIT, "commit", "-q", "-m", "first"], cwd=top)
    return top


def make_tracked(top, files):
    """A repository whose index has so many files. They need not be there: a start looks at none of them."""
    run([*GIT, "init", "-q", "."], cwd=top)
    blob = run([*GIT, "hash-object", "-w", "--stdin"], cwd=top, input=b"x\n").stdout.decode().strip()
    run([*GIT, "update-index", "--index-info"], cwd=top, input="".join(f"100644 {blob}\td{i // 1000}/f{i}\n" for i in range(files)).encode())
    return top


def timed(command, **options):
    began = time.perf_counter()
    run(command, **options)
    return (time.perf_counter() - began) * 1e6


def alternate(rounds, *functions):
    """The times of each, called in turns: in each round all of them are a neighbour of the others."""
    times = [[] for _ in functions]
    for _ in range(rounds):
        for function, list_of in zip(functions, times):
            list_of.append(function())
    return times


def added(times, base):
    """What one takes more than another: the median of the differences within the rounds."""
    return median(one - other for one, other in zip(times, base))


def disk(path):
    return int(run(["du", "-s", "-B1", str(path)]).stdout.split()[0])


def starts(context, trees, where):
    """What a view adds to a start, in a small and in a large tree, and for a repository with many tracked files."""
    def start(tree, *options):
        return lambda: timed([context.cordon, "run", "--no-summary", *options, "--", "true"], cwd=tree)

    view = ("--cow", "--git", "none")  # a git directory of its own costs extra, and is shown by itself
    plain, small, large, git, tracked = alternate(ROUNDS, start(trees[LARGE], "--git", "none"), start(trees[SMALL], *view), start(trees[LARGE], *view),
                                                  start(trees[SMALL], "--cow"), start(trees[TRACKED], "--cow"))
    bar = where == "in memory"
    yield Row(f"start in a view, {LARGE} files, {where}", microseconds(median(large)), f"+{microseconds(added(large, plain))} to {microseconds(median(plain))}",
              median(large) / median(plain), f"<= +{START_BAR // 1000} ms" if bar else "", added(large, plain) <= START_BAR if bar else None)
    growth = 1 + added(large, small) / median(small)
    yield Row(f"  by size, {LARGE} files to {SMALL}", microseconds(median(large)), f"{microseconds(median(small))} with {SMALL} files", growth,
              f"<= {GROWTH_BAR} x" if bar else "", growth <= GROWTH_BAR if bar else None)
    yield Row("  with a git directory of its own", microseconds(median(git)), f"+{microseconds(added(git, plain))} to {microseconds(median(plain))}",
              median(git) / median(plain), f"<= +{START_BAR // 1000} ms" if bar else "", added(git, plain) <= START_BAR if bar else None)
    growth = 1 + added(tracked, git) / median(git)
    yield Row(f"  by size, {TRACKED:,} tracked files", microseconds(median(tracked)), f"{microseconds(median(git))} with {SMALL} files", growth,
              f"<= {GROWTH_BAR} x" if bar else "", growth <= GROWTH_BAR if bar else None)


def inside(context, tree, script, rounds):
    """Microseconds of a script, timed inside one view by the shell's clock."""
    loop = f"for i in $(seq {rounds}); do s=$(date +%s%N); {{ {script}; }} >/dev/null 2>&1; echo $(( $(date +%s%N) - s )); done"
    done = run([context.cordon, "run", "--no-summary", "--cow", "--", "sh", "-c", loop], cwd=tree)
    return [int(line) / 1000 for line in done.stdout.split()]


def natively(tree, script, rounds):
    loop = f"for i in $(seq {rounds}); do s=$(date +%s%N); {{ {script}; }} >/dev/null 2>&1; echo $(( $(date +%s%N) - s )); done"
    return [int(line) / 1000 for line in run(["sh", "-c", loop], cwd=tree).stdout.split()]


def empty_caches():
    """Makes the kernel forget the names and files that it has seen; returns whether it could."""
    try:
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("2")
    except OSError:
        return False
    return True


def work(context, tree):
    """Ordinary work in a view beside the same natively, in turns. The first round in a view fills the kernel's caches of the view, and git's; a
    user meets it once in each run. It is shown by itself, beside a first round natively, and all later ones count for the bar."""
    for what, script in (("git status in a view", "git status --short"), ("a build in a view", "make -C c clean; make -C c")):
        first, later, theirs, their_first, ratios = [], [], [], [], []
        for _ in range(WORK_VIEWS):
            natives = natively(tree, script, WORK_ROUNDS)
            one, *others = inside(context, tree, script, 1 + WORK_ROUNDS)
            first.append(one)
            later += others
            theirs += natives
            ratios.append(median(others) / median(natives))
        for _ in range(WORK_VIEWS):
            if empty_caches():
                their_first += natively(tree, script, 1)
        run(["make", "-C", "c", "clean"], cwd=tree)
        ratio = median(ratios)
        yield Row(what, microseconds(median(later)), f"{microseconds(median(theirs))} natively", ratio, f"<= {WORK_BAR} x", ratio <= WORK_BAR)
        if their_first:
            yield Row("  the first time", microseconds(median(first)), f"{microseconds(median(their_first))} natively, caches empty", median(first) / median(their_first))


def copies(context, tree, home):
    """Eight copies in which somebody changes one file, made one after the other."""
    before = disk(home)
    began = time.perf_counter()
    for i in range(VIEWS):
        run([context.cordon, "run", "--no-summary", "--cow", "--git", "none", "--", "sh", "-c", f"echo {i} >files/d0/f0"], cwd=tree)
    ours, our_disk = (time.perf_counter() - began) * 1e6, disk(home) - before
    places = [home.parent / f"worktree{i}" for i in range(VIEWS)]
    began = time.perf_counter()
    for i, place in enumerate(places):
        run([*GIT, "worktree", "add", "-q", "--detach", str(place)], cwd=tree)
        (place / "files/d0/f0").write_text(f"{i}\n")
    theirs, their_disk = (time.perf_counter() - began) * 1e6, sum(disk(place) for place in places)
    yield Row(f"{VIEWS} views, {LARGE} files, one changed", microseconds(ours), f"{microseconds(theirs)} git worktree add", ours / theirs)
    yield Row("the same on the disk", f"{our_disk // 1024} KiB", f"{their_disk // 1024} KiB", our_disk / their_disk)


def place(base):
    """A home and the trees in a directory."""
    home = base / "home"
    home.mkdir(mode=0o700, parents=True)
    os.environ["CORDON_HOME"] = str(home)
    trees = {}
    for files in (SMALL, LARGE, TRACKED):
        trees[files] = base / str(files)
        trees[files].mkdir()
        (make_tracked if files == TRACKED else make_tree)(trees[files], files)
    return home, trees


def rows(context):
    # A start makes about twenty files and removes them. What a file costs depends on the disk and on what others just removed from it, so the bars
    # are for memory, and the disk is shown beside them.
    if MEMORY.is_dir():
        with tempfile.TemporaryDirectory(prefix="cordon-bench-", dir=MEMORY) as temp:
            _, trees = place(pathlib.Path(temp))
            yield from starts(context, trees, "in memory")
    home, trees = place(context.temp / "views")
    subprocess.run(["sync"], check=False)
    yield from starts(context, trees, "on the disk")
    yield from work(context, trees[LARGE])
    yield from copies(context, trees[LARGE], home)
