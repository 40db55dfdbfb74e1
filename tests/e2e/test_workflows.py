# SPDX-License-Identifier: Apache-2.0
"""Workflows of orchestrators: what a step sees and leaves, how runs go on, end, wait and are judged before they begin (seed 004)."""
import json
import os
import signal

import pytest

from flows import Desk, human, step
from support import poll


@pytest.fixture
def desk(box, cordon):
    return Desk(box, cordon)


def records(cordon, event):
    return [json.loads(line) for line in cordon("audit", "--json", "--kind", event).stdout.splitlines()]


# ---- the seed's rules ----


def test_agents_execute_from_the_private_workspace_root_in_both_modes(desk):
    desk.define(step("one", 'pwd > "$RUN/one"', workspace_mode="run_workspace", next="two"), step("two", 'pwd > "$RUN/two"'))
    done = desk.run()
    for name in ("one", "two"):
        assert (desk.directory(done) / name).read_text() == f"{desk.private}\n"


def test_run_workspace_resolves_under_work_runs_and_only_it_can_be_written(desk):
    desk.box.write("ws/desk/notes", "mine")
    desk.define(step("one", """
        echo "$RUN" > "$RUN/where"; cat notes > "$RUN/read"
        for place in . work work/runs; do ! echo x > $place/new || echo $place >> "$RUN/wrong"; done
        ! echo x > notes || echo notes >> "$RUN/wrong"
    """, workspace_mode="run_workspace"))
    done = desk.run()
    made = desk.directory(done)
    assert (made / "where").read_text() == f"{desk.private}/work/runs/{done['runId']}\n" and (made / "read").read_text() == "mine"
    assert not (made / "wrong").exists() and (desk.private / "notes").read_text() == "mine"
    assert sorted(p.name for p in desk.private.iterdir()) == ["notes", "orchestrator.yaml", "shared", "work"]


def test_orchestrator_workspace_is_writable_except_what_defines_workflows(desk):
    desk.box.write("ws/desk/prompts/a.prompt.md", "old")
    desk.box.write("ws/desk/workflows/a.md", "old")
    desk.define(step("one", """
        echo made > made
        for file in orchestrator.yaml prompts/a.prompt.md workflows/a.md prompts/new workflows/new shared/new; do
            ! echo new > $file || echo $file >> wrong
        done
        ! mv prompts gone || echo mv >> wrong
    """))
    desk.run()
    assert (desk.private / "made").read_text() == "made\n" and not (desk.private / "wrong").exists()
    assert (desk.private / "prompts/a.prompt.md").read_text() == "old"


def test_an_orchestrator_without_grants_sees_only_its_private_workspace(desk):
    areas = desk.box.path / "areas"
    desk.define(step("one", f'ls shared > "$RUN/shared"; ls -d {areas} {areas}/* > "$RUN/host" 2>&1; printenv CORDON_SHARED > "$RUN/env"'))
    made = desk.directory(desk.run())
    assert (made / "shared").read_text() == "" and (made / "env").read_text() == "[]\n"
    assert (made / "host").read_text().count("No such file or directory") == 2, "neither the areas nor their names are there"


def test_an_orchestrator_with_grants_sees_exactly_the_allowlisted_paths(desk, cordon):
    desk.areas["third"] = desk.box.mkdir("areas/third")
    desk.grant("docs", {"name": "specs", "access": "read-only"})
    areas = desk.box.path / "areas"
    desk.define(step("one", f"""
        ls {areas} > "$RUN/names"; cat {areas}/docs/file shared/specs/file > "$RUN/read"
        echo new > shared/docs/new; ! echo new > shared/specs/new || echo wrong > wrong; ! echo x > {areas}/specs/new || echo wrong > wrong
        printenv CORDON_SHARED > "$RUN/env"
    """))
    made = desk.directory(desk.run())
    assert (made / "names").read_text().split() == ["docs", "specs"] and (made / "read").read_text() == "text of docs\ntext of specs\n"
    assert (areas / "docs/new").read_text() == "new\n" and not (areas / "specs/new").exists() and not (desk.private / "wrong").exists()
    told = {grant["name"]: grant for grant in json.loads((made / "env").read_text())}
    assert told["docs"]["access"] == "read-write" and told["specs"]["access"] == "read-only" and told["specs"]["path"] == str(areas / "specs")
    assert "`specs` (read-only)" in (made / "context.md").read_text()


def test_access_checks_run_before_any_provider_and_a_refusal_is_named_and_recorded(desk, cordon):
    desk.define(step("one", "touch ran", next="two"), step("two", f"cat {desk.areas['docs']}/file", next="three"), step("three", "cat shared/specs/file"))
    done = cordon("workflow", "run", "desk", "flow")
    assert done.returncode == 125 and "the step two names" in done.stderr and "docs is not granted to desk" in done.stderr and "specs is not granted" in done.stderr, done
    assert not (desk.private / "ran").exists() and cordon("workflow", "runs").stdout == ""
    refused = [r for r in records(cordon, "refusal") if r.get("orchestrator_id") == "desk"]
    assert [r["detail"]["step"] for r in refused] == ["two", "three"] and all(r["decision"] == "deny" for r in refused)
    desk.grant("docs", "specs")
    assert cordon("workflow", "run", "desk", "flow", "--check").returncode == 0 and not (desk.private / "ran").exists()


def test_a_runtime_attempt_at_an_ungranted_area_is_refused_and_logged(desk, cordon):
    area = desk.areas["docs"]
    desk.define(step("one", f"cd {area.parent}/do''cs; cat {area.parent}/do''cs/file; echo x > {area.parent}/do''cs/new; true"))
    done = desk.run()
    assert not (area / "new").exists() and "violation" in cordon("workflow", "logs", done["runId"]).stdout
    paths = [r["path"] for r in records(cordon, "violation")]
    assert any(path.startswith(str(area)) for path in paths), paths


def test_agent_workspace_fails_validation_with_its_place(desk, cordon):
    file = desk.define(step("one", "true", workspace_mode="agent_workspace"))
    line = next(i for i, text in enumerate(file.read_text().splitlines(), 1) if "agent_workspace" in text)
    for args in (["validate", "desk"], ["run", "desk", "flow"]):
        done = cordon("workflow", *args)
        assert done.returncode == (1 if args[0] == "validate" else 125) and f"orchestrator.yaml:{line}:" in done.stderr and "agent_workspace" in done.stderr, done


# ---- definitions ----


def test_all_errors_of_a_definition_are_reported_in_one_pass(desk, cordon):
    desk.box.write("ws/desk/prompts/p.prompt.md", "line\n  {{inputs.gone}}\n")
    desk.define(
        step("one", "{{inputs.topic}} {{steps.two.outputs.x}} {{nonsense}} {{workflow.attempt", nxt="two", next="done"),
        step("two", "x", type="agent_review", next="one", on_approve="gone", agent="nobody"),
        step("two", "x", outputs=["a", "a", "b"], output_files={"a": "../a", "b": "{{inputs.x}}", "c": "c"}, limits={"max_retries": -1}),
        step("4", "x", needs=["4", "zzz"], prompt_type="file_output", outputs=["q"], final_output_priority=["nope"]),
        human("six", outputs=["x"]), inputs=["a", "a"])
    done = cordon("workflow", "validate", "desk")
    wanted = ["no value {{inputs.topic}}", "no value {{steps.two.outputs.x}}", "{{nonsense}}", "{{ without }}", "no key 'nxt'; did you mean 'next'", "there is no step done; to end",
              "a review has no 'next'", "there is no step gone", "has no agent nobody", "a step two already", "outputs has a twice", "'../a'", "no value {{inputs.x}}",
              "outputs has no key 'c'", "max_retries must be", "can't need itself", "no step zzz", "q has no file", "which is not in 'outputs'", "inputs names a twice", "no outputs of its own"]
    assert done.returncode == 1 and [text for text in wanted if text not in done.stderr] == [], done
    assert all("orchestrator.yaml:" in line for line in done.stderr.splitlines()), done
    desk.define(step("one", "x") | {"prompt": "prompts/p.prompt.md"})
    done = cordon("workflow", "validate", "desk")
    assert done.returncode == 1 and "prompts/p.prompt.md:2:3: the prompt of one has no value {{inputs.gone}}" in done.stderr, done


def test_the_original_examples_are_read_unchanged(desk, cordon):
    """Every key of a definition of the original, and its templates; `next: done` is its known mistake."""
    text = """
id: desk
selector_agent: workflow_router
default_workflow: code
selection_max_retries: 2
agents:
  workflow_router: {provider: anthropic, model: opus, can_orchestrate_workflows: true}
  builder: {provider: openai, model: gpt-5.3-codex, can_orchestrate_workflows: false}
workflows:
  - id: code
    version: 1
    description: Multi-step delivery
    tags: [engineering, code]
    inputs: [user_prompt, base_branch]
    limits: {max_total_iterations: 12, run_timeout_seconds: 14400}
    steps:
      - id: plan_create
        type: agent_task
        agent: builder
        workspace_mode: run_workspace
        prompt: |
          {{inputs.user_prompt}} {{state.plan_review_feedback}} {{workflow.run_workspace}} {{workflow.output_schema_json}}
          {{workflow.output_paths_json}} plan -> {{workflow.output_paths.plan_doc}} {{workflow.channel}} {{workflow.sender_id}}
        prompt_type: file_output
        outputs: [summary, plan_doc]
        output_files:
          summary: plan/summary__{{workflow.run_id}}__{{workflow.step_id}}__a{{workflow.attempt}}.txt
          plan_doc: plan/plan_doc__{{workflow.run_id}}__{{workflow.step_id}}__a{{workflow.attempt}}.md
        final_output_priority: [plan_doc, summary]
        next: plan_review
      - id: plan_review
        type: agent_review
        agent: workflow_router
        prompt: "{{steps.plan_create.outputs.plan_doc}}"
        outputs: [decision, summary, feedback]
        output_files: {decision: "review/d", summary: "review/s", feedback: "review/f"}
        on_approve: last
        on_reject: plan_create
        limits: {max_retries: 3}
      - {id: last, type: agent_task, agent: builder, prompt: x, outputs: [], output_files: {}NEXT}
workflow_orchestration: {max_total_iterations: 12, default_run_timeout_seconds: 14400, default_step_timeout_seconds: 7200, max_step_timeout_seconds: 10800}
"""
    desk.box.write("ws/desk/orchestrator.yaml", text.replace("NEXT", ""), mode=0o600)
    done = cordon("workflow", "show", "desk", "code", "--json")
    assert done.returncode == 0 and len(done.json()["steps"]) == 3, done
    desk.box.write("ws/desk/orchestrator.yaml", text.replace("NEXT", ", next: done"), mode=0o600)
    done = cordon("workflow", "show", "desk", "code")
    assert done.returncode == 1 and "there is no step done; to end the workflow there, leave the key out" in done.stderr


# What a client would do: it writes what the prompt wants to the places that the prompt names, and reviews approve at the second look.
CLERK = r"""#!/bin/sh
prompt=$(cat)
printf '%s\n' "$prompt" | sed -n 's/^- \([a-z_]*\): \(.*\)$/\1 \2/p' | while read -r key path; do
    case $key in
    decision) if test -e "$CORDON_RUN_WORKSPACE/seen"; then echo approve; else echo Reject; touch "$CORDON_RUN_WORKSPACE/seen"; fi > "$path" ;;
    *) echo "$key by $0 $*, $(printf '%s' "$prompt" | head -n 2 | tr '\n' ' ')" > "$path" ;;
    esac
done
"""
RULES = "    tags: [a, b]\n    limits: {max_total_iterations: 12, run_timeout_seconds: 14400}\n"
ORCHESTRATION = "workflow_orchestration:\n  max_total_iterations: 12\n  default_run_timeout_seconds: 3600\n  default_step_timeout_seconds: 900\n  max_step_timeout_seconds: 1800\n"


def outputs_in(folder, *keys):
    """As the original's examples name their files."""
    lines = "".join(f"          {key}: {folder}/{key}__{{{{workflow.run_id}}}}__{{{{workflow.step_id}}}}__a{{{{workflow.attempt}}}}.txt\n" for key in keys)
    return f"        outputs: [{', '.join(keys)}]\n        output_files:\n{lines}"


def test_definitions_in_the_shape_of_the_originals_three_examples_run_to_their_end(desk, cordon):
    """One agent with a run workspace, one in the orchestrator's own, and a delivery with two reviews. Only the settings say that the providers are scripts."""
    clerk = str(desk.box.write("bin/clerk", CLERK, mode=0o755))
    settings = json.loads((desk.box.state / "config.yaml").read_text())
    settings["defaults"]["providers"] = {name: {"command": [clerk, name, "{model}"]} for name in ("anthropic", "openai")}
    settings["channel_profiles"] = {"engineering": {"channel": "slack", "slack_app_user_id": "U1", "orchestrator_id": "desk", "require_mention_in_channels": True}}
    settings["monitoring"], settings["channels"] = {"heartbeat_interval": 3600}, {"slack": {"enabled": False, "allowlisted_channels": []}}
    desk.box.write("state/config.yaml", json.dumps(settings), mode=0o600)
    head = "id: desk\nselector_agent: router\ndefault_workflow: flow\nselection_max_retries: 2\nagents:\n  router: {provider: anthropic, model: opus, can_orchestrate_workflows: true}\n"
    head += "  maker: {provider: openai, model: codex, can_orchestrate_workflows: false}\nworkflows:\n  - id: flow\n    version: 1\n    description: For a test\n"
    task = "      - id: {id}\n        type: {type}\n        agent: {agent}\n{mode}        prompt: |\n          {text}\n"
    own, run = "", "        workspace_mode: run_workspace\n"
    minimal = "    inputs: [user_prompt]\n    steps:\n" + task.format(id="generate", type="agent_task", agent="router", mode=run, text="Do {{inputs.user_prompt}}\n          to {{workflow.output_paths.result}} as {{workflow.output_schema_json}}") + outputs_in("output", "summary", "result")
    product = "    inputs: [user_message]\n    steps:\n" + task.format(id="answer", type="agent_task", agent="maker", mode=own, text="Answer {{inputs.user_message}}") + outputs_in("product", "summary", "artifact")
    engineering = RULES + "    inputs: [user_prompt, base_branch]\n    steps:\n" + "".join((
        task.format(id="plan", type="agent_task", agent="maker", mode=run, text="Plan {{inputs.user_prompt}} {{state.plan_review_feedback}}"), outputs_in("plan", "summary", "plan_doc"), "        next: plan_review\n",
        task.format(id="plan_review", type="agent_review", agent="router", mode=run, text="Review {{steps.plan.outputs.plan_doc}}"), outputs_in("review", "decision", "feedback", "approved_plan"),
        "        on_approve: build\n        on_reject: plan\n        limits:\n          max_retries: 3\n",
        task.format(id="build", type="agent_task", agent="maker", mode=run, text="Build {{steps.plan_review.outputs.approved_plan}} on {{inputs.base_branch}}"), outputs_in("build", "build_result"), "        next: build_review\n",
        task.format(id="build_review", type="agent_review", agent="router", mode=run, text="Review {{steps.build.outputs.build_result}}"), outputs_in("review", "decision", "feedback"),
        "        on_approve: deliver\n        on_reject: build\n",
        task.format(id="deliver", type="agent_task", agent="maker", mode=run, text="Deliver {{workflow.run_workspace}}"), outputs_in("pr", "pr_url")))
    for text, inputs, steps, last in ((minimal, ["user_prompt=tea"], 1, "result by"), (product, ["user_message=tea"], 1, "Answer tea"), (engineering, ["user_prompt=tea", "base_branch=main"], 7, "openai codex, Deliver")):
        desk.box.write("ws/desk/orchestrator.yaml", head + text + ORCHESTRATION, mode=0o600)
        assert cordon("config", "validate").returncode == 0 and cordon("workflow", "validate", "desk").returncode == 0
        done = desk.run(*(word for given in inputs for word in ("--input", given)))
        assert done["state"] == "succeeded" and done["totalIterations"] == steps and last in " ".join(done["outputs"].values()), done
    plans = sorted(p.name for p in (desk.directory(done) / "plan").iterdir() if p.name.startswith("plan_doc"))
    assert plans == [f"plan_doc__{done['runId']}__plan__a{n}.txt" for n in (1, 2)] and "feedback by" in (desk.directory(done) / "plan" / plans[1]).read_text()


def test_workflows_are_added_and_removed_in_the_file_and_every_other_byte_stays(desk, cordon):
    text = """# the desk
id: desk
selector_agent: worker # chooses
default_workflow: first
selection_max_retries: 1
agents:
  worker: {provider: scripted, model: m, can_orchestrate_workflows: true}
  other: {provider: scripted, model: m, can_orchestrate_workflows: false}
workflows: # all of them
  - {id: first, version: 1, steps: [{id: a, type: agent_task, agent: other, prompt: "true\\n#END\\n"}]} # kept
# the end
workflow_orchestration: {max_total_iterations: 5}
"""
    file = desk.box.write("ws/desk/orchestrator.yaml", text, mode=0o600)
    done = cordon("workflow.add", "desk", "flow", "--agent", "other", "--prompt", "result '\"summary\":\"{{inputs.user_prompt}}\"'\n#END", "--description", "says: # it")
    assert done.returncode == 0 and done.stdout == "workflow added\nworkflow=flow\norchestrator=desk\n", done
    added = file.read_text()
    at = added.index("  - id: flow")
    assert added[:at] + added[added.index("# the end"):] == text
    assert desk.run("--input", "user_prompt=hello")["outputs"] == {"summary": "hello"}
    again = cordon("workflow", "add", "desk", "flow", "--agent", "other", "--prompt", "result '\"summary\":\"{{inputs.user_prompt}}\"'\n#END", "--description", "says: # it", "--json")
    assert again.returncode == 0 and again.json() == {"workflow": "flow", "orchestrator": "desk"} and file.read_text() == added
    for words, why in ((["add", "desk", "flow"], "another workflow flow already"), (["add", "desk", "x y"], "the id of a workflow"), (["add", "desk", "new", "--agent", "wroker"], "did you mean 'worker'"),
                       (["add", "desk", "new", "--prompt", "{{nonsense}}"], "no value {{nonsense}}"), (["remove", "desk", "first"], "the default workflow"), (["remove", "dsk", "first"], "did you mean")):
        done = cordon("workflow", *words)
        assert done.returncode in (1, 2) and why in done.stderr and file.read_text() == added, done
    assert cordon("workflow.remove", "desk", "flow").stdout.startswith("workflow removed\n") and file.read_text() == text
    assert cordon("workflow", "remove", "desk", "flow").stdout.startswith("workflow was not there\n")
    cordon("orchestrator", "add", "fresh")
    assert cordon("workflow", "add", "fresh", "more").returncode == 0 and cordon("workflow", "validate", "fresh").returncode == 0


def test_a_workflow_and_its_run_can_be_drawn(desk, cordon):
    desk.define(step("plan", "true", next="check"), human("check", on_approve="build", on_reject="plan"), step("build", "true"))
    drawn = cordon("workflow", "show", "desk", "flow", "--graph", env={"LC_ALL": "C.UTF-8"}).stdout
    assert "├─ approve → build" in drawn and "└─ reject → plan (again)" in drawn
    run = desk.begin()
    poll(lambda: desk.status(run)["state"] == "waiting", 60)
    drawn = cordon("workflow", "show", "--run", run, "--graph", env={"LC_ALL": "C"}).stdout
    assert "[x] plan" in drawn and "[?] check" in drawn and "[ ] build" in drawn
    picture = cordon("workflow", "show", "desk", "flow", "--run", run, "--svg").stdout
    assert picture.startswith("<svg ") and "human_review, waiting" in picture and picture.rstrip().endswith("</svg>")
    assert desk.box.run("python3", "-c", "import sys, xml.dom.minidom as m; m.parse(sys.stdin)", input=picture).returncode == 0


# ---- outputs, reviews, retries, limits ----


def test_review_rejection_and_retry_lead_to_the_end_with_values_in_prompts(desk):
    desk.define(
        step("plan", """n=$(ls "$RUN" | grep -c '^plan'); echo "plan $n for {{inputs.topic}}, {{state.check_feedback}}" > {{workflow.output_paths.doc}}""",
             workspace_mode="run_workspace", outputs=["doc"], output_files={"doc": "plan-{{workflow.attempt}}"}, next="check"),
        step("check", """
            case "{{steps.plan.outputs.doc}}" in *"plan 1"*) result '"decision":"approve"';; *) result '"decision":"REJECT ","feedback":"more"';; esac
            """, type="agent_review", outputs=["feedback?"], on_approve="build", on_reject="plan", workspace_mode="run_workspace"),
        step("build", """case {{workflow.attempt}} in 1) exit 3;; 2) result '"status":"failed","summary":"no luck"';; 3) ;; 4) result '"artifact":{"a":1},"summary":"s"';; esac""",
             outputs=["artifact", "summary"], final_output_priority=["summary"], limits={"max_retries": 3}, workspace_mode="run_workspace"),
        inputs=["topic"])
    done = desk.run("--input", "topic=a=b")
    assert done["state"] == "succeeded" and done["totalIterations"] == 8 and done["outputs"] == {"summary": "s", "artifact": '{"a":1}'}
    assert (desk.directory(done) / "plan-2").read_text() == "plan 1 for a=b, more\n"
    ends = [(e["result"], e.get("message", "")) for e in desk.journal(done["runId"]) if e["event"] == "end"][4:]
    assert ends == [("failed", "the agent ended with exit code 3"), ("failed", "the agent says that it failed: no luck"), ("failed", "the agent's answer has no result"), ("complete", "")]


@pytest.mark.parametrize("script, outputs, why", [
    ("true", {"doc": "f"}, "there is no file f"),
    (': > "$RUN/f"', {"doc": "f"}, "is empty"),
    (r"printf '\377' > \"$RUN/f\"".replace('\\"', '"'), {"doc": "f"}, "not text in UTF-8"),
    ("result '\"x\":1'; result '\"doc\":2'", None, "more than one result"),
    ("result '\"other\":1'", None, "the output doc is missing in the agent's result"),
])
def test_a_wrong_output_fails_the_attempt_and_leaves_nothing(desk, script, outputs, why):
    desk.define(step("one", script + '; echo left > "$RUN/left"', outputs=["doc"], output_files=outputs, limits={"max_retries": 1}))
    done = desk.run(status=1)
    assert done["state"] == "failed" and why in done["terminalReason"] and done["totalIterations"] == 2, done
    assert list(desk.directory(done).iterdir()) == [], "what a failed attempt wrote is not taken over"


def test_limits_end_a_run(desk, cordon):
    desk.define(step("one", "true", next="one"), limits={"max_total_iterations": 3})
    done = desk.run(status=1)
    assert done["terminalReason"] == "max_total_iterations" and done["totalIterations"] == 3
    desk.define(step("one", "sleep 60", limits={"timeout_seconds": 1}))
    assert desk.run(status=124)["terminalReason"] == "timeout"
    desk.define(step("one", "sleep 60"), orchestration={"max_step_timeout_seconds": 1, "default_step_timeout_seconds": 90})
    assert desk.run(status=124)["steps"][0]["error"] == "timeout"
    desk.define(step("one", "true", next="two"), step("two", "true", needs=["three"], next="three"), step("three", "true"))
    assert desk.run(status=1)["terminalReason"] == "needs"
    desk.define(step("one", "true"), inputs=["topic"])
    done = cordon("workflow", "run", "desk", "flow", "--input", "other=1")
    assert done.returncode == 2 and "the input topic is missing" in done.stderr and "no input other" in done.stderr


def test_a_person_approves_or_rejects_a_waiting_step(desk, cordon):
    desk.define(step("plan", "echo x >> \"$RUN/plans\"", next="check"), human("check", on_approve="build", on_reject="plan"),
                step("build", 'echo "{{steps.check.outputs.decision}} {{state.check_feedback}}" > "$RUN/end"'))
    run = desk.begin()
    poll(lambda: desk.status(run)["state"] == "waiting", 60)
    assert desk.status(run)["pendingHumanInput"] and desk.status(run)["engine"] is None
    refused = cordon("workflow", "resume", run)
    assert refused.returncode == 1 and "waits for a person" in refused.stderr
    assert cordon("workflow", "reject", run, "--step", "check", "--note", "again").returncode == 0
    poll(lambda: desk.status(run)["state"] == "waiting" and desk.status(run)["steps"][0]["attempts"] == 2, 60)
    done = cordon("workflow", "approve", run, "--step", "check:1", "--note", "fine {{inputs.x}}", "--wait")
    assert done.returncode == 0 and "state=succeeded" in done.stdout, done
    assert (desk.directory(run) / "end").read_text() == "approve fine {{inputs.x}}\n" and (desk.directory(run) / "plans").read_text() == "x\nx\n"
    assert cordon("workflow", "approve", run, "--step", "check").returncode == 1


def test_a_rejection_without_a_way_on_fails_the_run(desk, cordon):
    desk.define(human("check"))
    run = desk.begin()
    poll(lambda: desk.status(run)["state"] == "waiting", 60)
    assert cordon("workflow", "reject", run, "--step", "check", "--wait").returncode == 1 and desk.status(run)["terminalReason"] == "rejected"


def test_a_prompt_file_its_context_and_a_command_with_prompt_file(box, cordon):
    agent = str(box.path / "bin/agent")
    desk = Desk(box, cordon, command=[agent, "{prompt_file}"])
    box.write("ws/desk/prompts/p.prompt.md", 'cat "$0" > /dev/null; cat ../desk/prompts/p.context.md > "$RUN/context"; echo "{{inputs.a}}" > "$RUN/a"\n#END\n')
    box.write("ws/desk/prompts/p.context.md", "Context of {{inputs.a}}\n")
    desk.define(step("one", "") | {"prompt": "prompts/p.prompt.md"}, inputs=["a"])
    made = desk.directory(desk.run("--input", "a=1 {{inputs.a}}"))
    assert (made / "a").read_text() == "1 {{inputs.a}}\n" and "Context of 1 {{inputs.a}}" in (made / "prompt.md").read_text()


# ---- ends ----


def test_cancel_ends_the_whole_process_tree(desk, cordon, leftovers):
    desk.define(step("one", 'trap "" TERM; (setsid sleep 600 &); sleep 601 & echo $$ > "$RUN/pid"; echo ready; wait; sleep 602'))
    run = desk.begin()
    poll(lambda: "ready" in cordon("workflow", "logs", run).stdout, 60)
    assert cordon("workflow", "cancel", run, "--wait").returncode == 1
    assert desk.status(run)["state"] == "canceled" and cordon("workflow", "cancel", run).returncode == 0
    leftovers.assert_none(60)
    assert list(desk.directory(run).iterdir()) == []


def test_a_killed_engine_is_resumed_and_nothing_is_repeated(desk, cordon):
    desk.define(step("one", 'echo one >> "$RUN/log"; echo one >> log', next="two"),
                step("two", 'echo two >> "$RUN/log"; echo ready; test -e go || sleep 600', workspace_mode="run_workspace"))
    run = desk.begin()
    poll(lambda: "ready" in cordon("workflow", "logs", run, "--step", "two").stdout, 60)
    refused = cordon("workflow", "resume", run)
    assert refused.returncode == 1 and "is under way" in refused.stderr
    os.kill(desk.status(run)["engine"], signal.SIGKILL)
    poll(lambda: desk.status(run)["engine"] is None, 60)
    assert desk.status(run)["state"] == "running" and "resume" in desk.status(run)["summary"]
    desk.box.write("ws/desk/go")
    assert cordon("workflow", "resume", run, "--wait").returncode == 0
    assert (desk.directory(run) / "log").read_text() == "one\ntwo\n" and (desk.private / "log").read_text() == "one\n"
    attempts = [(e["step"], e["attempt"]) for e in desk.journal(run) if e["event"] == "attempt"]
    assert attempts == [("one", 1), ("two", 1), ("two", 1)] and desk.status(run)["totalIterations"] == 2


def test_what_an_attempt_wrote_to_the_private_workspace_counts_when_it_has_finished_and_not_before(desk, cordon):
    """A failed attempt, a killed one and one that another run was faster than leave nothing, and the next one sees nothing of them."""
    desk.box.write("ws/desk/kept", "old")
    desk.define(step("one", """
        ls > "$RUN/seen"; echo {{workflow.attempt}} >> log; echo new > kept; mkdir sub && echo x > sub/f; rm -f gone
        case {{workflow.attempt}} in 1) exit 3;; 2) echo ready; test -e /tmp/never || sleep 600;; esac
        """, limits={"max_retries": 1}))
    desk.box.write("ws/desk/gone", "x")
    run = desk.begin()
    poll(lambda: "ready" in cordon("workflow", "logs", run).stdout, 60)
    assert (desk.private / "kept").read_text() == "old" and not (desk.private / "log").exists(), "nothing is there while it runs"
    os.kill(desk.status(run)["engine"], signal.SIGKILL)
    poll(lambda: desk.status(run)["engine"] is None, 60)
    assert cordon("workflow", "cancel", run, "--wait").returncode == 1, "a run without an engine is ended too"
    assert sorted(p.name for p in desk.private.iterdir()) == ["gone", "kept", "orchestrator.yaml", "shared", "work"] and (desk.private / "kept").read_text() == "old"
    assert cordon("changes", "list", "--json").json()["changes"] == [], "no view is left"
    desk.define(step("one", 'ls > "$RUN/seen"; echo {{workflow.attempt}} >> log; rm gone; ln -s kept link; mkdir -p sub/deep; echo x > sub/deep/f; test {{workflow.attempt}} = 2', limits={"max_retries": 1}))
    done = desk.run()
    assert "log" not in (desk.directory(done) / "seen").read_text().split(), "the second attempt sees nothing of the first"
    assert (desk.private / "log").read_text() == "2\n" and (desk.private / "sub/deep/f").read_text() == "x\n" and os.readlink(desk.private / "link") == "kept"
    assert not (desk.private / "gone").exists() and cordon("changes", "list", "--json").json()["changes"] == []


def test_two_runs_that_change_one_file_do_not_overwrite_each_other(desk, cordon):
    desk.box.write("ws/desk/board", "empty\n")
    desk.define(step("one", 'read -r was < board; echo "$was {{inputs.who}}{{workflow.attempt}}" > board; echo ready; test {{inputs.who}}{{workflow.attempt}} != c1 || until test -e shared/docs/go; do sleep 0.05; done', limits={"max_retries": 1}), inputs=["who"])
    desk.grant("docs")
    first = desk.begin("--input", "who=c")
    poll(lambda: "ready" in cordon("workflow", "logs", first).stdout, 60)
    assert desk.run("--input", "who=d")["state"] == "succeeded"
    (desk.areas["docs"] / "go").write_text("")
    poll(lambda: desk.status(first)["state"] == "succeeded", 60)
    ends = [e.get("message") for e in desk.journal(first) if e["event"] == "end"]
    assert len(ends) == 2 and "what the step did to board can't be taken over: the host changed it, too" in ends[0] and ends[1] is None, ends
    assert (desk.private / "board").read_text() == "empty d1 c2\n" and cordon("changes", "list", "--json").json()["changes"] == []


def test_views_of_steps_can_be_turned_off(desk, cordon):
    settings = json.loads((desk.box.state / "config.yaml").read_text())
    settings["defaults"]["step_views"] = False
    desk.box.write("state/config.yaml", json.dumps(settings), mode=0o600)
    desk.define(step("one", "echo {{workflow.attempt}} >> log; test {{workflow.attempt}} = 2", limits={"max_retries": 1}))
    desk.run()
    assert (desk.private / "log").read_text() == "1\n2\n"


def test_a_run_keeps_the_definition_that_it_began_with(desk, cordon):
    desk.define(human("check", on_approve="two"), step("two", 'echo old > "$RUN/x"'))
    run = desk.begin()
    poll(lambda: desk.status(run)["state"] == "waiting", 60)
    desk.define(human("check", on_approve="two"), step("two", 'echo new > "$RUN/x"'))
    assert cordon("workflow", "approve", run, "--step", "check", "--wait").returncode == 0 and (desk.directory(run) / "x").read_text() == "old\n"


def test_the_next_step_sees_grants_as_they_are_then(desk, cordon):
    desk.grant("docs")
    desk.define(step("one", "cat shared/docs/file > seen", next="check"), human("check", on_approve="two"), step("two", "ls shared > after; ls -d $(dirname $PWD)/../areas >> after 2>&1; true"))
    run = desk.begin()
    poll(lambda: desk.status(run)["state"] == "waiting", 60)
    desk.grant()
    assert cordon("workflow", "approve", run, "--step", "check", "--wait").returncode == 0
    assert (desk.private / "seen").read_text() == "text of docs\n" and "docs" not in (desk.private / "after").read_text()


def test_revoke_ends_running_steps_that_hold_the_grant_and_their_runs_fail(desk, cordon, leftovers):
    desk.grant("docs", "specs")
    desk.define(step("one", 'trap "exit 0" TERM; echo ready; while :; do echo x >> shared/docs/log; sleep 0.05; done', limits={"max_retries": 5}))
    run, other = desk.begin(), None
    poll(lambda: "ready" in cordon("workflow", "logs", run).stdout, 60)
    kept = cordon("orchestrator", "revoke-shared-access", "desk", "specs", "--keep-running", "--json")
    assert kept.returncode == 0 and kept.json()["kept_running"] == [{"run_id": run, "step": "one", "attempt": 1}] and desk.status(run)["state"] == "running", kept
    done = cordon("orchestrator", "revoke-shared-access", "desk", "docs", "--json")
    assert done.returncode == 0 and done.json()["ended"] == [{"run_id": run, "step": "one", "attempt": 1}], done
    poll(lambda: desk.status(run)["state"] == "failed", 60)
    assert desk.status(run)["terminalReason"] == "revoked" and desk.status(run)["totalIterations"] == 1, "it is not tried again"
    leftovers.assert_none(60)
    size = (desk.areas["docs"] / "log").stat().st_size
    assert cordon("workflow", "run", "desk", "flow").returncode == 125, "the step names an area that is not granted any more"
    assert (desk.areas["docs"] / "log").stat().st_size == size and cordon("workflow", "resume", run).returncode == 1


def test_removing_an_orchestrator_ends_its_steps_that_hold_areas(desk, cordon, leftovers):
    desk.grant("docs")
    desk.define(step("one", 'echo ready; while :; do echo x >> shared/docs/log; sleep 0.05; done', limits={"max_retries": 5}))
    run = desk.begin()
    poll(lambda: "ready" in cordon("workflow", "logs", run).stdout, 60)
    done = cordon("orchestrator", "remove", "desk", "--json")
    assert done.returncode == 0 and [ended["run_id"] for ended in done.json()["ended"]] == [run], done
    poll(lambda: desk.status(run)["state"] == "failed", 60)
    assert desk.status(run)["terminalReason"] == "revoked" and (desk.private / "orchestrator.yaml").exists()
    leftovers.assert_none(60)


def test_lists_logs_and_ids(desk, cordon):
    desk.define(step("one", r"printf 'a\033[2Jb\n'; echo err >&2"))
    run = desk.run()["runId"]
    assert cordon("workflow", "runs", "--quiet").stdout.strip() == run and cordon("workflow", "status", run[:-3], "--json").json()["runId"] == run
    assert r"| a\e[2Jb" in cordon("workflow", "logs", run).stdout and "| err" in cordon("workflow", "logs").stdout
    assert cordon("workflow", "status", "run-x").returncode == 1 and cordon("workflow", "status", "../x").returncode == 2
    assert "input_count=0\ninput_keys=\n" in cordon("workflow", "status", run).stdout
    for words in (["list", "desk"], ["show", "desk", "flow"], ["progress", run]):
        assert cordon("workflow", *words).returncode == 0
    assert "did you mean flow" in cordon("workflow", "show", "desk", "flwo").stderr
    for name in ("list desk", "show desk flow", f"status {run}", f"progress {run}"):
        assert cordon("workflow." + name.split()[0], *name.split()[1:]).returncode == 0, "the names of the original's functions"
    assert cordon("completion", "--ids", "workflow-runs", run[:6]).stdout == f"{run}\tsucceeded after 1 iterations\n"
