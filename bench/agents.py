# SPDX-License-Identifier: Apache-2.0
"""Many agents at once: what one costs through `cordon execute`, beside `xargs -P` with bubblewrap and beside `xargs -P` with
`cordon run`. The table of agents, their logs, results and states on disk are a part of the first."""
import json
import os
import shlex

from rows import Row, median, microseconds, run
from run_start import COMMAND, bwrap_arguments, make_root

AGENTS = 50
AT_ONCE = 4
ROUNDS = 7
BAR = 1.0


def timed(command, **options):
    begin = os.times().elapsed
    run(command, **options)
    return (os.times().elapsed - begin) * 1e6 / AGENTS


def xargs(command):
    """Runs the same command AGENTS times, AT_ONCE at a time."""
    words = " ".join(shlex.quote(str(word)) for word in command)
    return ["sh", "-c", f"seq {AGENTS} | xargs -P {AT_ONCE} -I N sh -c {shlex.quote(f'exec {words}')}"]


def rows(context):
    if "execute" not in context.commands():
        yield Row("cordon execute", "not built")
        return
    os.environ["CORDON_HOME"] = str(context.temp / "agents-state")
    root = context.temp / "agents-root"
    make_root(root, 10)
    (root / "src").mkdir()
    agents = [{"name": f"a{i}", "scope": ["src/**"], "net": "none", "command": [COMMAND]} for i in range(AGENTS)]
    (root / "agents.json").write_text(json.dumps({"agents": agents}))
    one = [context.cordon, "execute", "--root", str(root), "--agent", "a0", "--json", "--dry-run"]
    plan = json.loads(run(one, cwd=root).stdout)[0]["plan"]
    commands = {
        "execute": [context.cordon, "execute", "--root", str(root), "--all", "--json", "--max-concurrent", str(AT_ONCE)],
        "bwrap": xargs(bwrap_arguments(plan)),
        "run": xargs([context.cordon, "run", "--root", root, "--rw", "src", "--net", "none", "--", COMMAND]),
    }
    times = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            times[name].append(timed(command, cwd=root))
    us = {name: median(values) for name, values in times.items()}
    ratio = us["execute"] / us["bwrap"]
    what = f"one of {AGENTS} agents, {AT_ONCE} at a time"
    yield Row(what, microseconds(us["execute"]), f"{microseconds(us['bwrap'])} xargs -P, bubblewrap", ratio, f"<= {BAR}", ratio <= BAR)
    yield Row("  beside xargs -P with cordon run", microseconds(us["execute"]), microseconds(us["run"]), us["execute"] / us["run"])
