# SPDX-License-Identifier: Apache-2.0
"""Orchestrators with workflows for tests, and an agent that does what its prompt says.

The prompt of a step is a shell script up to the line `#END`. The agent runs it in the sandbox, with RUN (the run workspace), `token` and
`result JSON`, which prints an envelope. A list of patterns and answers for each kind of client is in tests/clients.
"""
import json

AGENT = r"""#!/bin/sh
prompt=$(cat ${1:+"$1"})
token=$(printf '%s\n' "$prompt" | sed -n 's/^\[workflow_result\]{"token": "\([0-9a-f]*\)".*/\1/p' | tail -n 1)
result() { printf '[workflow_result]{"token":"%s",%s}[/workflow_result]\n' "$token" "$1"; }
RUN=$CORDON_RUN_WORKSPACE
eval "${prompt%%
#END*}"
"""


def step(name, script="", **more):
    """A step as JSON, which is YAML too. Outputs come by envelope unless output_files says otherwise."""
    made = {"id": name, "type": "agent_task", "agent": "worker", "prompt": script + "\n#END\n", **more}
    return {key: value for key, value in made.items() if value is not None}


def human(name, **more):
    return step(name, type="human_review", agent=None, **more) | {"prompt": "look at it"}


class Desk:
    """One orchestrator, `desk`, in a box; `areas` of the host that may be granted."""

    def __init__(self, box, cordon, grants=(), areas=("docs", "specs"), command=None):
        self.box, self.cordon = box, cordon
        self.private = box.mkdir("ws/desk", mode=0o700)
        self.areas = {name: box.mkdir(f"areas/{name}") for name in areas}
        for name, path in self.areas.items():
            box.write(f"areas/{name}/file", f"text of {name}\n")
        self.agent = box.write("bin/agent", AGENT, mode=0o755)
        self.command = command or [str(self.agent)]
        self.grant(*grants)

    def grant(self, *grants):
        settings = {
            "workspaces_path": str(self.box.path / "ws"),
            "shared_workspaces": {name: {"path": str(path), "description": f"the {name}"} for name, path in self.areas.items()},
            "orchestrators": {"desk": {"shared_access": list(grants)}},
            "defaults": {"providers": {"scripted": {"command": self.command}}},
        }
        self.box.write("state/config.yaml", json.dumps(settings), mode=0o600)

    def define(self, *steps, inputs=(), limits=None, orchestration=None, **more):
        workflow = {"id": "flow", "version": 1, "inputs": list(inputs), "steps": list(steps), **more}
        if limits:
            workflow["limits"] = limits
        file = {
            "id": "desk", "selector_agent": "worker", "default_workflow": "flow", "selection_max_retries": 1,
            "agents": {"worker": {"provider": "scripted", "model": "m", "can_orchestrate_workflows": True}}, "workflows": [workflow],
        }
        if orchestration:
            file["workflow_orchestration"] = orchestration
        return self.box.write("ws/desk/orchestrator.yaml", json.dumps(file, indent=1), mode=0o600)

    def run(self, *args, status=0, **options):
        """Runs the workflow to its end and returns its status object."""
        done = self.cordon("workflow", "run", "desk", "flow", "--wait", "--json", *args, **options)
        assert done.returncode == status, done
        return done.json()

    def begin(self, *args):
        done = self.cordon("workflow", "run", "desk", "flow", "--json", *args)
        assert done.returncode == 0, done
        return done.json()["runId"]

    def status(self, run):
        return self.cordon("workflow", "status", run, "--json").json()

    def directory(self, run):
        return self.private / "work/runs" / (run if isinstance(run, str) else run["runId"])

    def journal(self, run):
        return [json.loads(line) for line in (self.box.state / "state/flow" / run / "journal").read_text().splitlines()]
