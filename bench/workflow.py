# SPDX-License-Identifier: Apache-2.0
"""What the engine of workflows adds to a step. Its own time is what passes between the end of one agent and the moment at which the
next is about to start, by the journal: outputs, a sealed copy that becomes the run directory, settings, the next copy, prompt, policy and
two journal entries. The whole step stands beside `cordon orchestrator run` of the same program in the same sandbox."""
import contextlib
import datetime
import json
import os
import pathlib
import tempfile
import time

from rows import Row, median, microseconds, run

STEPS = 20
ROUNDS = 7
BAR_US = 10_000
PROGRAM = "/bin/true"


def timed(command):
    begin = time.monotonic()
    run(command)
    return (time.monotonic() - begin) * 1e6


def define(private, n, mode):
    steps = [{"id": f"s{i}", "type": "agent_task", "agent": "a", "prompt": "x", "workspace_mode": mode, **({"next": f"s{i + 1}"} if i + 1 < n else {})} for i in range(n)]
    file = {"id": "desk", "selector_agent": "a", "default_workflow": "flow", "selection_max_retries": 1,
            "agents": {"a": {"provider": "none", "model": "m", "can_orchestrate_workflows": True}},
            "workflows": [{"id": "flow", "version": 1, "limits": {"max_total_iterations": n}, "steps": steps}]}
    (private / "orchestrator.yaml").write_text(json.dumps(file))


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1e6


def own_time(home):
    """Between the end of an agent and the entry that the next one is about to start, over all runs."""
    gaps = []
    for journal in (home / "state/flow").glob("*/journal"):
        events = [json.loads(line) for line in journal.read_text().splitlines()]
        gaps += [moment(then["time"]) - moment(end["ended_at"]) for end, then in zip(events, events[1:]) if end["event"] == "end" and then["event"] == "attempt"]
    return median(gaps)


def measure(context, base, mode="run_workspace"):
    """Medians of a step, of a bare run and of the engine's own time in a step, in microseconds."""
    home, private = base / f"flow-state-{mode}", base / f"flow-private-{mode}"
    for path in (home, private):
        path.mkdir(mode=0o700)
    os.environ["CORDON_HOME"] = str(home)
    settings = {"orchestrators": {"desk": {"private_workspace": str(private)}}, "defaults": {"providers": {"none": {"command": [PROGRAM]}}}}
    (home / "config.yaml").write_text(json.dumps(settings))
    times = {"one": [], "many": [], "bare": []}
    for _ in range(ROUNDS):
        for name, n in (("one", 1), ("many", STEPS + 1)):
            define(private, n, mode)
            times[name].append(timed([context.cordon, "workflow", "run", "desk", "flow", "--wait", "--quiet"]))
        times["bare"] += [timed([context.cordon, "orchestrator", "run", "desk", "--", PROGRAM]) for _ in range(STEPS)]
    return (median(times["many"]) - median(times["one"])) / STEPS, median(times["bare"]), own_time(home)


@contextlib.contextmanager
def memory():
    """A directory in memory. Every run has a /dev/shm of its own, so no private workspace can lie there."""
    with tempfile.TemporaryDirectory() as place:
        run(["mount", "-t", "tmpfs", "-o", "mode=0700", "tmpfs", place])
        try:
            yield pathlib.Path(place)
        finally:
            run(["umount", place])


def rows(context):
    if "workflow" not in context.commands():
        yield Row("cordon workflow", "not built")
        return
    results = {}
    if os.geteuid():
        yield Row("a step of a workflow, in memory", "only root can mount a tmpfs")
    else:
        with memory() as place:
            results = {mode: measure(context, place, mode) for mode in ("run_workspace", "orchestrator_workspace")}
    for mode, (step, bare, own) in results.items():
        yield Row(f"a step of a workflow that does nothing, in memory, {mode}", microseconds(step), f"{microseconds(bare)} orchestrator run", step / bare)
        yield Row("  of it the engine's own time", microseconds(own), "", own / BAR_US, f"<= {BAR_US // 1000} ms", own <= BAR_US)
    step, bare, own = measure(context, context.temp)
    yield Row("a step on the disk, with every sync", microseconds(step), f"{microseconds(bare)} orchestrator run", step / bare)
    yield Row("  of it the engine's own time", microseconds(own))
