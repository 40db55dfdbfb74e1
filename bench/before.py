# SPDX-License-Identifier: Apache-2.0
"""Starting a run and a session beside an earlier build of cordon, in turns: CORDON_BEFORE names its executable. Root measures runs
as an ordinary user, too. Beside the medians stand the ratios of the tenth percentile and of the processor time, which other
work on the machine changes less; `chrt -f 1` before scripts/bench keeps most of it away.

A start is measured to the first byte that the command prints. Beside it stands the time to the end, without a bar: earlier builds
returned while PID 1 was still unmounting, and now `cordon run` ends last.

Sessions were not protected by default in the first version. Such a build knows no option that turns it off, so both are compared without,
and the row with the protection has no bar: it does more than before.
"""
import json
import os

from rows import Row, microseconds, run
from run_start import COMMAND, figures, make_root

ROUNDS = 300
USER = 1234  # who else measures; the number means nothing
BAR = 1.03  # what two equal builds may differ by on a busy machine
PRINTS = ["/bin/echo", "up"]


def with_home(home, *command):
    """A command line for spawn_bench, which sets the variable itself: another program in between would be measured, too."""
    return [f"CORDON_HOME={home}", *map(str, command)]


def compared(context, what, commands, bar=BAR, wrapper=(), first=False):
    found = figures(context, commands, ROUNDS, wrapper, first)
    ratio = {key: found["now"][key] / found["before"][key] for key in found["now"]}
    peer = f"{microseconds(found['before']['median'])}; p10 {ratio['tenth']:.2f}, cpu {ratio['cpu']:.2f}"
    return Row(what, microseconds(found["now"]["median"]), peer, ratio["median"], f"<= {bar}" if bar else "",
               ratio["median"] <= bar if bar else None)


def as_user():
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if os.getuid() == 0 else None


def make_roots(top):
    """An empty directory, a git repository, and a tree with 19 directories."""
    top.mkdir(parents=True)
    empty, git, tree = top / "empty", top / "git", top / "tree"
    empty.mkdir()
    git.mkdir()
    run(["git", "init", "-q", str(git)])
    make_root(tree, 19000)
    return {"an empty directory": empty, "a git repository": git, "a tree with 19 directories": tree}


def run_rows(context, programs, who, wrapper=()):
    """Runs of both builds in each kind of root, by root or by another user."""
    top = context.temp / f"before-{who}"
    roots = make_roots(top)
    homes = {name: top / f"home-{name}" for name in programs}
    for home in homes.values():
        home.mkdir(mode=0o700)
    if wrapper:
        os.chmod(context.temp, 0o711)
        run(["chown", "-R", f"{USER}:{USER}", str(top)])
    for what, root in roots.items():
        starts = {
            name: with_home(homes[name], "HOME=" + str(top), program, "run", "--root", root, "--net", "none", "--")
            for name, program in programs.items()
        }
        yield compared(context, f"start in {what}, {who}", {name: [*words, *PRINTS] for name, words in starts.items()}, wrapper=wrapper, first=True)
        yield compared(context, "  to the end of a run of true", {name: [*words, COMMAND] for name, words in starts.items()}, None, wrapper)


def knows(program, option):
    return option in run([program, "project", "create", "--help"]).stdout.decode()


def session_start(home, program, *options):
    made = json.loads(run(["/usr/bin/env", *with_home(home, program, "project", "create", "--json", "--isolation", *options, "bench")]).stdout)
    return with_home(home, program, "session", "start", "--new-session", made["id"], "--", COMMAND)


def rows(context):
    before = os.environ.get("CORDON_BEFORE")
    if not before:
        yield Row("beside an earlier build", "", "CORDON_BEFORE names none")
        return
    programs = {"now": context.cordon, "before": before}
    yield from run_rows(context, programs, "as root" if os.getuid() == 0 else "as a user")
    if as_user():
        yield from run_rows(context, programs, "as a user", as_user())
    root = context.temp / "before-root"
    make_root(root, 10)
    bare_runs, sessions, bare = {}, {}, {}
    off = "--no-default-protect"
    for name, program in programs.items():
        home = context.temp / f"home-{name}"
        home.mkdir(mode=0o700)
        bare_runs[name] = with_home(home, program, "run", "--root", root, "--net", "none", off, "--", *PRINTS)
        sessions[name] = session_start(home, program)
        bare[name] = session_start(home, program, off) if knows(program, off) else sessions[name]
    yield compared(context, "start without default protection", bare_runs, first=True)
    protected_before = knows(before, off)
    yield compared(context, "cordon session start -- true", sessions, BAR if protected_before else None)
    yield compared(context, "  without default protection", bare)
