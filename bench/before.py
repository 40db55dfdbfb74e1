# SPDX-License-Identifier: Apache-2.0
"""Starting a run and a session beside an earlier build of cordon, in turns: CORDON_BEFORE names its executable."""
import json
import os

from rows import Row, microseconds, run
from run_start import COMMAND, make_root, medians

ROUNDS = 200
BAR = 1.03  # what two equal builds may differ by on a busy machine


def with_home(home, *command):
    return ["/usr/bin/env", f"CORDON_HOME={home}", *map(str, command)]


def compared(context, what, commands):
    us = medians(context, commands, ROUNDS)
    ratio = us["now"] / us["before"]
    return Row(what, microseconds(us["now"]), f"{microseconds(us['before'])} before", ratio, f"<= {BAR}", ratio <= BAR)


def rows(context):
    before = os.environ.get("CORDON_BEFORE")
    if not before:
        yield Row("beside an earlier build", "", "CORDON_BEFORE names none")
        return
    root = context.temp / "before-root"
    make_root(root, 10)
    programs = {"now": context.cordon, "before": before}
    runs, sessions = {}, {}
    for name, program in programs.items():
        home = context.temp / f"home-{name}"
        home.mkdir(mode=0o700)
        runs[name] = with_home(home, program, "run", "--root", root, "--net", "none", "--", COMMAND)
        made = json.loads(run(with_home(home, program, "project", "create", "--json", "--isolation", "bench")).stdout)
        sessions[name] = with_home(home, program, "session", "start", "--new-session", made["id"], "--", COMMAND)
    yield compared(context, "cordon run --net none -- true", runs)
    unprotected = {name: [*command[:-2], "--no-default-protect", *command[-2:]] for name, command in runs.items()}
    yield compared(context, "  without default protection", unprotected)
    yield compared(context, "cordon session start -- true", sessions)
