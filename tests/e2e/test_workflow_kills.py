# SPDX-License-Identifier: Apache-2.0
"""A workflow that is killed again and again, at random instants and with all its processes, ends as if nothing had happened."""
import random
import time

import pytest

from flows import Desk, step
from support import callers, descendants, kill_quietly, poll, read_stat

POINTS = 200
# Each step counts what it finds and leaves one line more: a step that was done twice, or not at all, shows in the file and in the outputs.
COUNT = 'echo {{workflow.step_id}} >> "$RUN/log"; n=$(wc -l < "$RUN/log"); '
WANTED = ["plan", "check", "plan", "check", "build"]
PATIENT = {"max_retries": 100}  # an agent that is killed is an attempt that failed


@pytest.fixture
def who():
    """Who runs the engine makes no difference to its journal."""
    return callers().get("root") or callers()["user"]


def define(desk):
    desk.define(
        step("plan", COUNT + 'sleep 0.0$((n % 3)); echo "plan $n" > {{workflow.output_paths.doc}}; echo $n >> "$RUN/log2"', workspace_mode="run_workspace",
             outputs=["doc"], output_files={"doc": "plan/plan.md"}, next="check", limits=PATIENT),
        step("check", COUNT + """case "{{steps.plan.outputs.doc}}" in "plan 3"*) result '"decision":"approve"';; *) result '"decision":"reject","feedback":"again"';; esac""",
             type="agent_review", workspace_mode="run_workspace", outputs=["feedback?"], on_approve="build", on_reject="plan", limits=PATIENT),
        step("build", COUNT + """test $n = 5 || exit 1; echo "$n" >> built-{{workflow.run_id}}; sleep 0.02; result "\\"artifact\\":\\"$n {{state.check_decision}}\\"" """, outputs=["artifact"], limits=PATIENT), limits={"max_total_iterations": 1000})


def processes(engine):
    """The engine, the supervisors of its agents, and everything in their sandboxes."""
    found, parents = [engine], {engine}
    for pid in sorted(descendants()):
        if (read_stat(pid) or (0, 0))[1] in parents:
            found.append(pid)
            parents.add(pid)
    return found


def finished(desk, run):
    return desk.status(run)["state"] == "succeeded"


@pytest.mark.soak
@pytest.mark.limit(300)
def test_a_workflow_killed_at_200_random_points_has_the_same_result_and_no_effect_twice(box, cordon):
    desk = Desk(box, cordon)
    define(desk)
    dice = random.Random(7)
    expected = desk.run()
    results, killed, runs = [], 0, 0
    assert (desk.directory(expected) / "log").read_text().split() == WANTED
    while killed < POINTS:
        run = desk.begin()
        runs += 1
        for round_ in range(8):
            time.sleep(dice.uniform(0, 0.25))
            engine = desk.status(run)["engine"]
            if not engine:
                break
            targets = processes(engine)
            # The engine alone, one of its processes, or all of them in any order.
            chosen = dice.choice([[engine], [dice.choice(targets)], dice.sample(targets, len(targets))])
            for pid in chosen:
                kill_quietly(pid)
            killed += 1
            if engine in chosen:
                poll(lambda: desk.status(run)["engine"] is None, 60)
                if finished(desk, run):
                    break
                assert cordon("workflow", "resume", run).returncode == 0
        done = cordon("workflow", "resume", run, "--wait") if not desk.status(run)["engine"] and not finished(desk, run) else None
        poll(lambda: desk.status(run)["engine"] is None, 60)
        status = desk.status(run)
        assert status["state"] == "succeeded", (done, status, desk.journal(run))
        made = desk.directory(run)
        assert (made / "log").read_text().split() == WANTED and (made / "log2").read_text() == "1\n3\n", desk.journal(run)
        assert (made / "plan/plan.md").read_text() == "plan 3\n" and status["outputs"] == expected["outputs"] == {"artifact": "5 approve"}
        assert len([e for e in desk.journal(run) if e["event"] == "end" and e["result"] == "complete"]) == 5 and sorted(p.name for p in made.iterdir()) == ["context.md", "log", "log2", "plan"]
        assert (desk.private / f"built-{run}").read_text() == "5\n", "what the step did to the private workspace is there once"
        assert [p.name for p in made.parent.iterdir() if p.name.startswith(".")] == [], "no copy is left"
        results.append(len([e for e in desk.journal(run) if e["event"] == "attempt"]))
    assert cordon("changes", "list", "--json").json()["changes"] == [], "no view is left"
    assert runs > 10 and max(results) > 5, f"{killed} kills in {runs} runs hit nothing: {results}"
