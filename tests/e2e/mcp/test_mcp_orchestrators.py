# SPDX-License-Identifier: Apache-2.0
"""Orchestrators, shared areas and grants through MCP: a person decides who may use what."""
from flows import Desk, human, step
from support import poll


def test_no_grant_changes_without_a_persons_consent(connect, box):
    docs = box.mkdir("docs")
    settings = box.state / "config.yaml"
    calls = [
        ("shared_add", {"key": "docs", "path": str(docs), "description": "d"}),
        ("shared_grant", {"orchestrator_id": "o", "key": "docs", "read_only": True}),
        ("shared_revoke", {"orchestrator_id": "o", "key": "docs"}),
        ("shared_remove", {"key": "docs"}),
        ("orchestrator_remove", {"orchestrator_id": "o"}),
    ]
    for kind in ("v1", "v2"):
        client = connect(kind, approve=False)
        # A new orchestrator has nothing but its private workspace.
        made = client.tool("orchestrator_add", orchestrator_id="o")
        assert made["orchestrator"]["shared_access"] == [] and (box.state / "workspaces" / "o").is_dir()
        before = settings.read_bytes()
        for name, args in calls:
            assert client.refused(name, **args)["kind"] == "policy_denied", name
        assert settings.read_bytes() == before
        client.close()
    client = connect("v2", approve=None)
    assert client.fault("tool", name="shared_grant", args=calls[1][1])["code"] == -32021
    client.close()
    client = connect("v1", approve=True)
    for name, args in calls[:2]:
        assert client.tool(name, **args)["changed"] is True
    assert client.tool("shared_grant", **calls[1][1])["changed"] is False
    questions = "\n".join(str(note) for note in client.notes)
    assert f'Make "{docs}" of the host a shared area, "docs"' in questions and f'Let the agents of "o" read the shared area "docs" ("{docs}")?' in questions
    listed = client.tool("orchestrator_list")
    assert listed["orchestrators"][0]["shared_access"] == [{"name": "docs", "path": str(docs), "access": "read-only", "cross_domain": False}]
    assert client.refused("shared_remove", key="docs")["kind"] == "conflict"
    assert client.refused("shared_grant", orchestrator_id="o", key="dosc")["hint"] == "did you mean 'docs'?"
    assert client.refused("shared_add", key="home", path="/", description="d")["kind"] == "config"
    for name, args in calls[2:]:
        assert client.tool(name, **args)["changed"] is True
    assert client.tool("orchestrator_list") == {"orchestrators": [], "shared_areas": [], "crossings": []}


def test_no_step_that_waits_for_a_person_is_answered_without_one(connect, box, cordon):
    desk = Desk(box, cordon)
    desk.define(human("check", on_approve="two"), step("two", 'echo done > "$RUN/done"', workspace_mode="run_workspace"))
    client = connect("v1", approve=False)
    run = client.tool("workflow_run", orchestrator_id="desk", workflow_id="flow", inputs={}, wait_seconds=30)["runId"]
    assert client.refused("workflow_answer", run_id=run, step="check", decision="approve")["kind"] == "policy_denied"
    assert desk.status(run)["state"] == "waiting" and not (desk.directory(run) / "done").exists()
    client.close()
    client = connect("v1", approve=True)
    client.tool("workflow_answer", run_id=run, step="check", decision="approve")
    poll(lambda: desk.status(run)["state"] == "succeeded", 60)
    assert (desk.directory(run) / "done").read_text() == "done\n"
    client.close()
