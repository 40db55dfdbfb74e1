# SPDX-License-Identifier: Apache-2.0
"""Starting a run and a session beside an earlier build of cordon, in turns: CORDON_BEFORE names its executable.

Sessions were not protected by default in the first version. Such a build knows no option that turns it off, so both are compared without,
and the row with the protection has no bar: it does more than before.
"""
import json
import os

from rows import Row, microseconds, run
from run_start import COMMAND, make_root, medians

ROUNDS = 200
BAR = 1.03  # what two equal builds may differ by on a busy machine


def with_home(home, *command):
    return ["/usr/bin/env", f"CORDON_HOME={home}", *map(str, command)]


def compared(context, what, commands, bar=BAR):
    us = medians(context, commands, ROUNDS)
    ratio = us["now"] / us["before"]
    return Row(what, microseconds(us["now"]), f"{microseconds(us['before'])} before", ratio, f"<= {bar}" if bar else "",
               ratio <= bar if bar else None)


def knows(program, option):
    return option in run([program, "project", "create", "--help"]).stdout.decode()


def session_start(home, program, *options):
    made = json.loads(run(with_home(home, program, "project", "create", "--json", "--isolation", *options, "bench")).stdout)
    return with_home(home, program, "session", "start", "--new-session", made["id"], "--", COMMAND)


def rows(context):
    before = os.environ.get("CORDON_BEFORE")
    if not before:
        yield Row("beside an earlier build", "", "CORDON_BEFORE names none")
        return
    root = context.temp / "before-root"
    make_root(root, 10)
    programs = {"now": context.cordon, "before": before}
    runs, sessions, bare = {}, {}, {}
    off = "--no-default-protect"
    for name, program in programs.items():
        home = context.temp / f"home-{name}"
        home.mkdir(mode=0o700)
        runs[name] = with_home(home, program, "run", "--root", root, "--net", "none", "--", COMMAND)
        sessions[name] = session_start(home, program)
        bare[name] = session_start(home, program, off) if knows(program, off) else sessions[name]
    yield compared(context, "cordon run --net none -- true", runs)
    unprotected = {name: [*command[:-2], off, *command[-2:]] for name, command in runs.items()}
    yield compared(context, "  without default protection", unprotected)
    protected_before = knows(before, off)
    yield compared(context, "cordon session start -- true", sessions, BAR if protected_before else None)
    yield compared(context, "  without default protection", bare)
