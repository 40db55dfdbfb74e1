# SPDX-License-Identifier: Apache-2.0
"""Ordinary work natively and in a sandbox: a C build, git status, grep -r, a Node test run, many small files.

Each sample is one run that does the work twice and takes the time inside, by the clock before and after each pass: the
start and the end of the sandbox do not count. The second pass is what is compared; the first one through the lens is
its cold figure (its own caches and the kernel's for it are empty; the files themselves are in the page cache, as they are
natively). Variants take turns in one tree, because copies differ by where the disk and the kernel's tables put them, each round begins
with another one, and the median of the rounds' ratios counts.

Beside the folder scope and the watch stands what the kernel alone takes for the filter and for trapping the same calls,
without a sandbox and without a look at them (bare_filter.c): the part of the figure that is not ours.

The bars are the design's. They bind builds and `git status`, and here the Node test run, too: work that people do all day.
Work that does nothing but open or make files has its distance from the same bars shown in brackets; docs/performance.md
says what it is made of."""
import pathlib
import shutil
import subprocess
import tempfile
import time

from rows import Row, median, run

ROUNDS = (5, 25)  # as many as fit into
BUDGET = 45  # seconds for each kind of work
REPO_FILES = 5000
SMALL_FILES = 20000
TEST_FILES = 12
NATIVE, FOLDER, WATCH, LENS = "native", "folder scope", "folder scope, watched", "lens"
OPTIONS = {
    FOLDER: ["--rw", "."],
    WATCH: ["--workspace", ".", "--workspace-mode", "strict"],
    LENS: ["--rw", ".", "--lens", "always"],
}
# What no sandbox of this kind can go below: the kernel's own part, without a sandbox.
FLOORS = {FOLDER: ("the filter alone, natively", "allow"), WATCH: ("trapped and never looked at, natively", "trap")}
VARIANTS = [NATIVE, *OPTIONS, *(name for name, _ in FLOORS.values())]
BARS = {FOLDER: 1.03, WATCH: 1.10, LENS: 1.5}
COLD_BAR = 8
TOP = pathlib.Path(__file__).resolve().parent.parent
MEMORY = pathlib.Path("/dev/shm")
CLOCK = ('now() { date +%s%N; }; pass() { PASS=$1; eval "$PREPARE"; a=$(now); eval "$WORK" >/dev/null || exit 1; b=$(now); '
         'echo $((b - a)); }; pass 1; pass 2')


def c_build(root):
    """The lower half of cordon itself, as it is built: real code with real headers."""
    for part in ("include", "src/base", "src/policy"):
        shutil.copytree(TOP / part, root / part)
    (root / "Makefile").write_text(
        "CFLAGS = -O2 -std=gnu17 -fPIE -fstack-protector-strong -Isrc -Iinclude -D_GNU_SOURCE -D_FORTIFY_SOURCE=3 "
        "-DCORDON_VERSION='\"0\"'\n"
        "OBJECTS = $(patsubst %.c,%.o,$(wildcard src/*/*.c))\nlibpart.a: $(OBJECTS)\n\tar rcs $@ $^\n%.o: %.c\n\tcc $(CFLAGS) -c -o $@ $<\n"
    )
    return "rm -f src/*/*.o libpart.a", "make -s -j2"


def tree(root, files, lines):
    for i in range(files):
        directory = root / f"dir{i % 50}" / f"sub{i % 7}"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"file{i}.txt").write_text(f"line {i} of a file\n" * lines)


def git_status(root):
    tree(root, REPO_FILES, 2)
    git = ["git", "-C", str(root), "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    for words in (["add", "-A"], ["commit", "-q", "-m", "files"]):
        run([*git, *words])
    # The first status in each place refreshes the index; only then is it what a person sees every day.
    return "git status >/dev/null", "for i in 1 2 3 4 5 6 7 8 9 10; do git status --porcelain; done"


def grep(root):
    tree(root, 4000, 100)
    return ":", "! grep -r 'no such words' . && ! grep -r 'no such words' ."


def node_test(root):
    for i in range(20):
        (root / f"module{i}.js").write_text(f"exports.add = (a, b) => a + b + {i};\n")
    for i in range(TEST_FILES):
        uses = "".join(f"const m{j} = require('./module{j}.js');\n" for j in range(20))
        checks = "".join(f"test('adds {j}', () => assert.strictEqual(m{j}.add(1, 2), {j + 3}));\n" for j in range(20))
        (root / f"t{i}.test.js").write_text(f"const test = require('node:test');\nconst assert = require('node:assert');\n{uses}{checks}")
    return ":", "node --test"


def small_files(root):
    shutil.copy(root.parent / "make_files", root / "make_files")
    return ":", f"./make_files made$PASS {SMALL_FILES}"


WORK = {  # how it is prepared, whether the bars bind, what it is made of
    "C build, cordon's own src/base and src/policy, make -j2": (c_build, True, "17,000 trapped calls, nearly all opens of headers and libraries"),
    f"git status, {REPO_FILES:,} files, 10 times": (git_status, True, "58,900 stats, 8,060 listings; 1,020 opens are trapped"),
    f"node --test, {TEST_FILES} files": (node_test, True, "15 programs started; 565 opens are trapped"),
    "grep -r, 4,000 files, twice": (grep, False, "8,070 opens are trapped, next to no work for each"),
    f"{SMALL_FILES:,} small files made": (small_files, False, "20,000 creations, 5 messages each through the lens"),
}


def measure(context, variant, root, prepare, work):
    """Nanoseconds of the first and the second pass of one run."""
    command = ["/bin/sh", "-c", CLOCK]
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "PREPARE": prepare, "WORK": work,
           "LANG": "C.UTF-8", "CORDON_HOME": str(context.temp / "state"), "GIT_CONFIG_NOSYSTEM": "1"}
    if variant in OPTIONS:
        given = [word for name in ("PREPARE", "WORK", "GIT_CONFIG_NOSYSTEM") for word in ("--keep-env", name)]
        command = [context.cordon, "run", "--root", str(root), *OPTIONS[variant], *given, "--", *command]
    for name, way in FLOORS.values():
        if variant == name:
            command = [context.program("bare_filter"), way, *command]
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, check=False, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{work} ended with {done.returncode}: {done.stderr.decode(errors='replace')[-500:]}")
    for made in root.glob("made*"):
        shutil.rmtree(made)
    return [int(line) for line in done.stdout.split()]


def inside(program):
    """Whether a program is where the sandbox has programs."""
    found = shutil.which(program, path="/usr/local/bin:/usr/bin:/bin")
    return found and pathlib.Path(found).resolve().is_relative_to("/usr")


def place(context, make):
    """Where the trees stand. Many new files in memory, where a disk's mood and what it does about the ones just removed do
    not count."""
    in_memory = make is small_files and any(line.split()[1:3] == [str(MEMORY), "tmpfs"] for line in open("/proc/mounts", encoding="utf-8"))
    return tempfile.TemporaryDirectory(prefix="cordon-bench-", dir=MEMORY if in_memory else context.temp)


def sample(context, base, make):
    """Nanoseconds of both passes of each round, by variant."""
    shutil.copy(context.program("make_files"), base / "make_files")
    template = base / "template"
    template.mkdir()
    run(["git", "init", "-q", "-b", "main", str(template)])
    prepare, work = make(template)
    times = {variant: [] for variant in VARIANTS}
    began = time.monotonic()
    for done in range(1, ROUNDS[1] + 1):
        first = done % len(VARIANTS)
        for variant in VARIANTS[first:] + VARIANTS[:first]:
            times[variant].append(measure(context, variant, template, prepare, work))
        if done >= ROUNDS[0] and (time.monotonic() - began) * (done + 1) / done > BUDGET:
            break
    return times


def workload_rows(context, make, bound):
    with place(context, make) as base:
        times = sample(context, pathlib.Path(base), make)
    native = [second for _, second in times[NATIVE]]
    for variant, bar in BARS.items():
        warm = [second for _, second in times[variant]]
        yield row(f"  {variant}, warm" if variant == LENS else f"  {variant}", warm, native, bar, bound)
        if variant in FLOORS:
            name, _ = FLOORS[variant]
            yield row(f"    {name}", [second for _, second in times[name]], native)
    yield row(f"  {LENS}, cold", [first for first, _ in times[LENS]], native, COLD_BAR, bound)


def row(what, values, native, bar=None, bound=False):
    """The ratio is taken in each round, within which the machine is as fast as it is, and the median of them counts."""
    ratio = median(value / peer for value, peer in zip(values, native))
    met = bar and ratio <= bar
    shown = "" if not bar else f"<= {bar:.2f}" if bound else f"(<= {bar:.2f}{'' if met else ': no'})"
    return Row(what, f"{median(values) / 1e6:.1f} ms", f"{median(native) / 1e6:.1f} ms native", ratio, shown, met if bound else None)


def rows(context):
    for name, (make, bound, made_of) in WORK.items():
        program = {c_build: "cc", git_status: "git", node_test: "node"}.get(make, "grep")
        yield Row(name, "" if inside(program) else f"no {program} in /usr", made_of if inside(program) else "")
        if inside(program):
            yield from workload_rows(context, make, bound)
