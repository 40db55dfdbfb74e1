# SPDX-License-Identifier: Apache-2.0
"""Every scenario of the workspace isolation specification, named after it, through the command line and both official MCP clients.

Each looks at the file system from the host and from inside a live sandbox.
"""
import json

import pytest

MOUNTS = r"""awk '{print $5, $4, $6}' /proc/self/mountinfo"""


class CommandLine:
    """The interface as a person at the machine has it."""

    def __init__(self, cordon):
        self.cordon = cordon

    def ask(self, *args):
        done = self.cordon(*args[:2], "--json", *args[2:])
        assert done.returncode == 0, done
        return done.json()

    def project_create(self, name, **settings):
        options = []
        if settings.get("workspace_isolation"):
            options.append("--isolation")
        for path in settings.get("protected_paths", []):
            options += ["--protect", path]
        return self.ask("project", "create", name, "--no-git", *options)

    def project_get(self, project):
        return self.ask("project", "get", project)

    def workspace_create(self, project, workspace):
        return self.ask("workspace", "create", project, "--id", workspace)

    def run(self, project, workspace, script):
        """Runs a script in a session to its end: (exit code, stdout, stderr, record)."""
        done = self.cordon("session", "start", project, "--workspace", workspace, "--new-session", "--", "sh", "-c", script)
        session = self.ask("session", "list", project)["sessions"][-1]
        assert session["exit_code"] == done.returncode, done
        return done.returncode, done.stdout, done.stderr, session

    def start(self, project, workspace, script):
        answer = self.ask("session", "start", project, "--workspace", workspace, "--detach", "--new-session", "--", "sh", "-c", script)
        return answer["session_id"]

    def send(self, session, message):
        return self.ask("session", "send", session, message)

    def output(self, session):
        return self.ask("session", "output", session)

    def stop(self, session):
        return self.ask("session", "stop", session)


class Protocol:
    """The interface as an MCP client has it."""

    def __init__(self, client):
        self.client = client

    def project_create(self, name, **settings):
        return self.client.tool("project_create", name=name, init_git=False, **settings)

    def project_get(self, project):
        return self.client.tool("project_get", project_id=project)

    def workspace_create(self, project, workspace):
        return self.client.tool("workspace_create", project_id=project, workspace_id=workspace)

    def run(self, project, workspace, script):
        answer = self.client.tool(
            "session_start", project_id=project, workspace_id=workspace, command=["sh", "-c", script], new_session=True, wait_seconds=60
        )
        record = self.client.tool("session_get", session_id=answer["session_id"])
        assert record["status"] != "active"
        text = {"stdout": "", "stderr": ""}
        for event in self.output(answer["session_id"])["events"]:
            if event["type"] in text:
                text[event["type"]] += event["text"]
        return record["exit_code"], text["stdout"], text["stderr"], record

    def start(self, project, workspace, script):
        answer = self.client.tool("session_start", project_id=project, workspace_id=workspace, command=["sh", "-c", script], new_session=True)
        assert answer["spawned"] is True
        return answer["session_id"]

    def send(self, session, message):
        return self.client.tool("session_send", session_id=session, message=message)

    def output(self, session):
        return self.client.tool("session_output", session_id=session)

    def stop(self, session):
        return self.client.tool("session_stop", session_id=session)


@pytest.fixture(params=["cli", "mcp-v1", "mcp-v2"])
def api(request, cordon, connect):
    if request.param == "cli":
        return CommandLine(cordon)
    return Protocol(connect(request.param.removeprefix("mcp-")))


@pytest.fixture
def top(box):
    """`top(project, *below)`: a path in the project's directory, on the host."""
    return lambda project, *below: box.state.joinpath("projects", project["id"], *below)


def published(top, project):
    return json.loads(top(project, "metadata.json").read_text())


# ---- Requirement: Project-level workspace isolation setting ----


def test_create_project_with_isolation_enabled(api, top):
    project = api.project_create("p", workspace_isolation=True)
    assert project["workspace_isolation"] is True
    assert published(top, project)["workspace_isolation"] is True
    api.workspace_create(project["id"], "abc-123")
    code, out, _, record = api.run(project["id"], "abc-123", "pwd; ls -A")
    assert (code, out) == (0, "/workspace\n")
    assert record["workspace_isolation"] is True


def test_create_project_with_isolation_disabled_default(api, top):
    project = api.project_create("p")
    assert project["workspace_isolation"] is False
    assert published(top, project)["workspace_isolation"] is False and published(top, project)["protected_paths"] == []
    api.workspace_create(project["id"], "abc-123")
    code, out, _, _ = api.run(project["id"], "abc-123", "pwd; ls /workspace")
    assert (code, out) == (0, "/workspace/workspaces/abc-123\nmetadata.json\nsessions\nworkspaces\n")


def test_query_project_isolation_setting(api):
    project = api.project_create("p", workspace_isolation=True)
    assert api.project_get(project["id"])["workspace_isolation"] is True


# ---- Requirement: Isolated workspace mounts ----


def test_container_mount_in_isolated_mode(api, box, top):
    project = api.project_create("p", workspace_isolation=True)
    api.workspace_create(project["id"], "abc-123")
    box.write(top(project, "workspaces", "abc-123", "from-host"), "host\n")
    box.write("secret", "secret")
    script = f"pwd; cat /workspace/from-host; echo inside > /workspace/from-inside; cat {box.path}/secret; ls {box.state}; {MOUNTS}"
    code, out, err, _ = api.run(project["id"], "abc-123", script)
    assert code == 0
    assert out.startswith("/workspace\nhost\n")
    # Exactly this directory is mounted there, on the host's own file system, for writing.
    assert top(project, "workspaces", "abc-123", "from-inside").read_text() == "inside\n"
    mount = [line for line in out.splitlines() if line.startswith("/workspace ")]
    assert len(mount) == 1 and mount[0].split()[1].endswith(f"/{project['id']}/workspaces/abc-123") and "rw" in mount[0]
    # The agent can't access paths outside /workspace.
    assert "secret" not in out and err.count("No such file or directory") == 2
    assert project["default_workspace_id"] not in out


def test_container_mount_in_non_isolated_mode(api, box, top):
    project = api.project_create("p")
    api.workspace_create(project["id"], "abc-123")
    box.write(top(project, "shared.txt"), "shared\n")
    other = top(project, "workspaces", project["default_workspace_id"])
    box.write(other / "neighbour", "seen\n")
    script = f"pwd; cat /workspace/shared.txt ../{project['default_workspace_id']}/neighbour; echo w > /workspace/written; cat /workspace/metadata.json"
    code, out, err, _ = api.run(project["id"], "abc-123", script)
    assert code == 0, err
    assert out.startswith("/workspace/workspaces/abc-123\nshared\nseen\n")
    assert f'"id": "{project["id"]}"' in out
    assert top(project, "written").read_text() == "w\n"


# ---- Requirement: AGENTS.md copying for isolated workspaces ----


def test_workspace_creation_with_project_agents_md(api, box, top):
    project = api.project_create("p", workspace_isolation=True)
    box.write(top(project, "AGENTS.md"), "rules\n")
    api.workspace_create(project["id"], "abc-123")
    assert top(project, "workspaces", "abc-123", "AGENTS.md").read_text() == "rules\n"
    assert api.run(project["id"], "abc-123", "cat /workspace/AGENTS.md")[:2] == (0, "rules\n")


def test_workspace_creation_without_project_agents_md(api, top):
    project = api.project_create("p", workspace_isolation=True)
    api.workspace_create(project["id"], "abc-123")
    assert not top(project, "workspaces", "abc-123", "AGENTS.md").exists()
    assert api.run(project["id"], "abc-123", "ls -A /workspace")[:2] == (0, "")


def test_workspace_already_has_agents_md(api, box, top):
    project = api.project_create("p", workspace_isolation=True)
    api.workspace_create(project["id"], "abc-123")
    mine = box.write(top(project, "workspaces", "abc-123", "AGENTS.md"), "mine\n")
    box.write(top(project, "AGENTS.md"), "rules\n")
    api.workspace_create(project["id"], "abc-123")
    assert mine.read_text() == "mine\n"
    assert api.run(project["id"], "abc-123", "cat AGENTS.md")[:2] == (0, "mine\n")
    assert mine.read_text() == "mine\n"
    # A workspace that is older than the file gets it when a session starts.
    mine.unlink()
    assert api.run(project["id"], "abc-123", "cat AGENTS.md")[:2] == (0, "rules\n")


# ---- Requirement: Isolation prevents cross-workspace access ----


def test_agent_attempts_to_access_parent_directory(api, box, top):
    project = api.project_create("p", workspace_isolation=True)
    api.workspace_create(project["id"], "abc-123")
    api.workspace_create(project["id"], "neighbour")
    box.write(top(project, "workspaces", "neighbour", "diary"), "private")
    session = api.start(project["id"], "abc-123", "while read -r line; do eval \"$line\"; done")
    for line in (
        "cd ..; pwd; ls",
        "ls /workspace/../",
        "cd /workspace/..; cd ..; ls -A",
        "cat /workspace/../metadata.json /metadata.json ../sessions/* || true",
        "find / -name diary -o -name metadata.json -o -name neighbour 2>/dev/null",
        "grep -l diary -r /proc/1/root /proc/self/root/workspace 2>/dev/null; cat /proc/self/mountinfo",
        "echo over",
    ):
        api.send(session, line)
    text = ""
    while "over\n" not in text:
        text = "".join(event["text"] for event in api.output(session)["events"] if event["type"] in ("stdout", "stderr"))
    api.stop(session)
    assert "/\n" in text  # cd .. leads to the sandbox's own root
    for trace in ("neighbour\n", "diary", "private", "default_workspace_id", project["default_workspace_id"]):
        assert trace not in text
    assert "neighbour" not in text.replace("-name neighbour", "")


# ---- Requirement: Protected paths are read-only ----


@pytest.fixture
def furnished(api, box, top):
    """`furnished(protected_paths, isolation)`: a project and workspace abc-123 with AGENTS.md and .factory/ in it."""

    def make(protected, isolation=True):
        project = api.project_create("p", workspace_isolation=isolation, protected_paths=protected)
        box.write(top(project, "AGENTS.md"), "rules\n")
        box.write(top(project, ".factory", "settings.json"), "{}\n")
        api.workspace_create(project["id"], "abc-123")
        if not isolation:
            box.write(top(project, "workspaces", "abc-123", "AGENTS.md"), "rules\n")
        return project

    return make


def asked_for(record):
    """{path: state} of what the project protects; the built-in list holds beside it."""
    return {entry["path"]: entry["state"] for entry in record["protected"] if not entry["by_default"]}


def test_protect_agents_md_and_factory_directory(api, furnished, top):
    project = furnished(["AGENTS.md", ".factory/"])
    script = (
        "echo x >> /workspace/AGENTS.md; echo x > /workspace/.factory/settings.json; echo x > /workspace/.factory/new; "
        "rm -rf /workspace/.factory; mv AGENTS.md other; echo fine > /workspace/other.txt; cat AGENTS.md .factory/settings.json; " + MOUNTS
    )
    code, out, err, record = api.run(project["id"], "abc-123", script)
    assert code == 0
    assert out.startswith("rules\n{}\n")
    assert err.count("Read-only file system") >= 3 and "Device or resource busy" in err
    flags = {line.split()[0]: line.split()[2].split(",") for line in out.splitlines()[2:]}
    assert "ro" in flags["/workspace/AGENTS.md"] and "ro" in flags["/workspace/.factory"] and "rw" in flags["/workspace"]
    inside = top(project, "workspaces", "abc-123")
    assert sorted(p.name for p in inside.iterdir()) == [".factory", "AGENTS.md", "other.txt"]
    assert inside.joinpath("AGENTS.md").read_text() == "rules\n"
    assert [p.name for p in inside.joinpath(".factory").iterdir()] == ["settings.json"]
    assert asked_for(record) == {"AGENTS.md": "present", ".factory": "present"}


def test_agent_attempts_to_modify_protected_file(api, furnished, top):
    project = furnished(["AGENTS.md"])
    before = top(project, "workspaces", "abc-123", "AGENTS.md").stat()
    code, _, err, _ = api.run(project["id"], "abc-123", "echo evil > /workspace/AGENTS.md")
    assert code != 0 and "Read-only file system" in err
    after = top(project, "workspaces", "abc-123", "AGENTS.md").stat()
    assert (before.st_ino, before.st_mtime_ns, before.st_mode) == (after.st_ino, after.st_mtime_ns, after.st_mode)
    assert top(project, "workspaces", "abc-123", "AGENTS.md").read_text() == "rules\n"


def test_protected_path_does_not_exist(api, furnished, top):
    project = furnished(["AGENTS.md", "nonexistent.md"])
    code, out, err, record = api.run(project["id"], "abc-123", "cat AGENTS.md; echo x > AGENTS.md; echo x > nonexistent.md; ls")
    assert out == "rules\nAGENTS.md\n" and code == 0
    assert "Read-only file system" in err and "Permission denied" in err
    assert not top(project, "workspaces", "abc-123", "nonexistent.md").exists()
    assert asked_for(record) == {"AGENTS.md": "present", "nonexistent.md": "absent"}


def test_protected_paths_only_apply_with_isolation_enabled(api, furnished, top):
    project = furnished(["AGENTS.md"], isolation=False)
    code, _, err, record = api.run(project["id"], "abc-123", "echo changed > AGENTS.md; echo changed > /workspace/AGENTS.md")
    assert (code, err) == (0, "")
    assert top(project, "AGENTS.md").read_text() == "changed\n"
    assert top(project, "workspaces", "abc-123", "AGENTS.md").read_text() == "changed\n"
    assert record["protected_paths"] == ["AGENTS.md"] and "ignored" in record["notes"][0]
