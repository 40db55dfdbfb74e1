# SPDX-License-Identifier: Apache-2.0
"""`cordon project import`: a repository becomes what every workspace begins with; a store of the original is taken over."""
import json
import os
import signal
import subprocess
import time

import pytest

PROJECT = "0d3f6f2e-5d8a-4c56-9c8e-4f5f0f1c2a3b"
SECOND = "1d3f6f2e-5d8a-4c56-9c8e-4f5f0f1c2a3b"
ANN, BOB = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"


@pytest.fixture
def repo(box):
    """A git repository with links, a hook, an executable and a file that looks like a secret."""
    top = box.mkdir("app")
    box.write("app/src/main.py", "print('hello')\n")
    box.write("app/run.sh", "#!/bin/sh\necho ran\n", mode=0o755)
    box.write("app/AGENTS.md", "rules\n")
    box.write("app/.env", "TOKEN=s3cret\n")
    box.link("app/link", "src/main.py")
    box.link("app/escape", "/etc/passwd")
    box.run("git", "init", "-q", cwd=top)
    box.run("git", "add", "src", "run.sh", "AGENTS.md", "link", "escape", cwd=top)
    box.run("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first", cwd=top)
    return top


def nothing_changed(sessions):
    assert sessions.ask("project", "list")["projects"] == []
    for place in ("projects", "state/projects", "state/staging"):
        assert list((sessions.box.state / place).iterdir()) == [], place


def test_every_workspace_of_an_imported_repository_begins_with_a_copy_of_it(sessions, box, repo):
    done = sessions.ask("project", "import", str(repo), "--isolation", "--protect", "AGENTS.md", "--", "sh", "-c",
                        "./run.sh; git log --format=%s; git status --short; echo x > AGENTS.md; echo mine > new; cat link escape | head -c 20; id -un >/dev/null")
    sessions.project, = done["projects"]
    assert sessions.project["name"] == "app" and any(".env is left out" in note for note in done["notices"])
    for name in ("ann", "bob"):
        sessions.ask("workspace", "create", "app", "--id", name)
        where = sessions.top("workspaces", name)
        assert os.readlink(where / "escape") == "/etc/passwd" and os.readlink(where / "link") == "src/main.py"
        assert (where / "run.sh").stat().st_mode & 0o777 == 0o755 and not (where / ".env").exists()
        assert int((where / "run.sh").stat().st_mtime) == int((repo / "run.sh").stat().st_mtime)
    session = sessions.start("--workspace", "ann")["session_id"]
    sessions.cordon("session", "wait", session)
    text = sessions.text(session)
    assert text.startswith("ran\nfirst\n") and "Read-only" in text, text
    # One tenant's change reaches neither the other, nor the template, nor the repository; and no agent sees the template.
    assert (sessions.top("workspaces", "ann") / "new").exists() and not (sessions.top("workspaces", "bob") / "new").exists()
    assert not (repo / "new").exists()
    sessions.ask("workspace", "create", "app", "--id", "eve")
    assert not (sessions.top("workspaces", "eve") / "new").exists()
    template = box.state / "state/projects" / sessions.project["id"] / "template"
    assert (template / "run.sh").exists()
    spy = sessions.start("--workspace", "eve", command=["ls", str(template)])["session_id"]
    sessions.cordon("session", "wait", spy)
    assert "No such file" in sessions.text(spy)
    # A later change of the repository stays there.
    box.write(repo / "later", "x")
    sessions.ask("workspace", "create", "app", "--id", "fay")
    assert not (sessions.top("workspaces", "fay") / "later").exists()


def test_an_import_that_cannot_be_done_changes_nothing(sessions, box, repo):
    box.mkdir("odd")
    for prepare, word in (
        (lambda: os.mkfifo(repo / "pipe"), "FIFO"),
        (lambda: box.run("git", "remote", "add", "origin", "https://me:tok@example.org/x.git", cwd=repo), "password or token"),
        (lambda: box.write(repo / ".git/objects/info/alternates", "/elsewhere\n"), "borrows objects"),
    ):
        prepare()
        assert word in sessions.refused("project", "import", str(repo))["message"]
        nothing_changed(sessions)
        for made in (repo / "pipe", repo / ".git/objects/info/alternates"):
            made.unlink(missing_ok=True)
        box.run("git", "remote", "remove", "origin", cwd=repo)
    box.write("odd/.git", f"gitdir: {repo}/.git/worktrees/odd\n")
    assert "lie elsewhere" in sessions.refused("project", "import", str(box.path / "odd"))["message"]
    assert "own records" in sessions.refused("project", "import", str(box.state))["message"]
    assert sessions.refused("project", "import", str(box.path / "missing"))["kind"] == "not_found"
    assert "limits.pids" in sessions.refused("project", "import", str(repo), "--pids", "0", status=2)["message"]
    nothing_changed(sessions)
    assert sessions.ask("project", "import", str(repo), "--name", "other")["projects"][0]["name"] == "other"


class Original:
    """A store as the original keeps it."""

    def __init__(self, box):
        self.box = box
        self.top = box.mkdir("original")

    def project(self, ident, **fields):
        record = {"id": ident, "name": f"project {ident[0]}", "description": "from before", "default_workspace_id": ANN,
                  "created_at": "2025-11-20T10:11:12.123456789-08:00", "image_name": "i:latest", "container_type": "dev",
                  "has_dockerfile": False, "workspace_isolation": True, "protected_paths": ["AGENTS.md"], "model": "m",
                  "recursion_config": {"max_depth": 2, "max_agents": 7, "max_cost_usd": 1.5}, "credential_refs": {"github": "work"},
                  "something_new": 1, **fields}
        self.box.write(f"original/projects/{ident}/metadata.json", json.dumps(record))
        self.box.write(f"original/projects/{ident}/AGENTS.md", "rules\n")
        self.box.write(f"original/projects/{ident}/ssh/id_rsa", "key\n")

    def workspace(self, project, ident, **fields):
        where = f"original/projects/{project}/workspaces/{ident}"
        self.box.write(f"{where}/work.txt", f"work of {ident}\n")
        self.box.write(f"{where}/metadata.json", json.dumps({"id": ident, "created_at": "2025-11-21T00:00:00Z", **fields}))
        return self.box.path / where


@pytest.fixture
def original(box):
    made = Original(box)
    made.project(PROJECT)
    ann = made.workspace(PROJECT, ANN, source="project_create")
    box.write(ann / ".env", "GH_TOKEN=ghp_secret\n")
    made.workspace(PROJECT, BOB, external_id="bob@example.org", source="slack")
    made.project(SECOND, workspace_isolation=False)
    made.workspace(SECOND, ANN)
    box.write("original/projects/.index.json", "{}")
    return made


def test_a_store_of_the_original_is_taken_over_with_its_workspaces(sessions, box, original):
    done = sessions.ask("project", "import", str(original.top), "--", "sh", "-c", "cat work.txt AGENTS.md; echo $CORDON_MAX_COST_USD; cat; ls -A")
    assert {project["id"] for project in done["projects"]} == {PROJECT, SECOND}
    sessions.project = sessions.ask("project", "get", PROJECT)
    assert sessions.project["name"] == "project 0" and sessions.project["workspace_isolation"] is True
    assert sessions.project["created_at"] == "2025-11-20T18:11:12.123Z" and sessions.project["agent"]["model"] == "m"
    limits = sessions.project["limits"]
    assert (limits["max_recursion_depth"], limits["max_agents_per_session"], limits["max_cost_usd"]) == (2, 7, 1.5)
    notices = "\n".join(done["notices"])
    for word in ("container_type", "image_name", "credential_refs", "env_pass", "something_new", ".env is left out", "ssh", "max_cost_usd", "external ids"):
        assert word in notices, (word, notices)
    # The person from before gets the workspace from before.
    session = sessions.start("--external-id", "bob@example.org", "--source", "slack", "--end-input")
    assert session["workspace_id"] == BOB
    sessions.cordon("session", "wait", session["session_id"])
    assert sessions.text(session["session_id"]) == f"work of {BOB}\nrules\n1.50\nAGENTS.md\nwork.txt\n"
    assert not (sessions.top("workspaces", ANN) / ".env").exists() and (original.top / "projects" / PROJECT / "workspaces" / ANN / ".env").exists()
    assert not sessions.top("ssh").exists()
    # A second import finds the projects there, and changes nothing.
    before = sessions.ask("project", "list")
    assert sessions.refused("project", "import", str(original.top))["kind"] == "conflict"
    assert sessions.ask("project", "list") == before and list((box.state / "state/staging").iterdir()) == []


def test_hostile_records_of_the_original_import_nothing(sessions, box, original):
    record = original.top / "projects" / PROJECT / "metadata.json"
    good = record.read_text()
    where = original.top / "projects" / PROJECT / "workspaces"

    def refused(word):
        error = sessions.refused("project", "import", str(original.top))
        assert word in error["message"], error
        nothing_changed(sessions)

    def change(**fields):
        record.write_text(json.dumps({**json.loads(good), **fields}))

    for fields, word in (({"id": SECOND}, "another id"), ({"default_workspace_id": "../../etc"}, "default_workspace_id"),
                         ({"protected_paths": ["../x"]}, "protected_paths[0]"), ({"name": ""}, "name"), ({"name": 5}, "name"),
                         ({"recursion_config": {"max_depth": 10**9}}, "max_recursion_depth"), ({"remote_url": "ext::sh -c evil"}, "remote_url")):
        change(**fields)
        refused(word)
    for text, word in (("{", "metadata.json:1"), ("[]", "an object"), ('{"name": "a", "name": "b"}', "duplicate"), ("{}" + " " * (2 << 20), "metadata.json")):
        record.write_text(text)
        refused(word)
    record.unlink()
    os.mkfifo(record)
    refused("metadata.json")
    record.unlink()
    record.write_text(good)
    # A record that leads elsewhere is not read; a settings file of another cordon does not widen anything.
    secret = box.write("secret.json", good)
    record.rename(record.with_suffix(".kept"))
    record.symlink_to(secret)
    refused("metadata.json")
    record.unlink()
    change(best_effort=True, default_protection=False, net="host", env_pass=["TOKEN"], shares=["/"], profile=["claude"])
    # Two workspaces claim one person: one of the records is forged.
    (where / ANN / "metadata.json").write_text(json.dumps({"external_id": "bob@example.org", "source": "slack"}))
    refused("external id of another")
    (where / ANN / "metadata.json").unlink()
    (where / ANN / "metadata.json").symlink_to("/etc/passwd")
    (where / "BAD NAME").mkdir()
    refused("BAD NAME")
    (where / "BAD NAME").rmdir()
    (where / BOB / "out").symlink_to("/etc")
    os.mkfifo(where / BOB / "pipe")
    refused("pipe is a FIFO")
    (where / BOB / "pipe").unlink()
    done = sessions.ask("project", "import", str(original.top / "projects" / PROJECT))
    made, = done["projects"]
    assert (made["best_effort"], made["default_protection"], made["env_pass"], made["shares"], made["profile"]) == (False, True, [], [], [])
    assert any("best_effort" in note for note in done["notices"]) and any("its record is not taken over" in note for note in done["notices"])
    copied = box.state / "projects" / PROJECT / "workspaces" / BOB / "out"
    assert copied.is_symlink() and not (box.state / "projects" / PROJECT / "workspaces" / ANN / "metadata.json").exists()


def test_a_killed_import_took_over_all_projects_or_none(sessions, box, original):
    for i in range(40):
        original.project(f"2d3f6f2e-5d8a-4c56-9c8e-4f5f0f1c2a{i:02x}")
    whole = 42
    for step in range(8):
        process = sessions.cordon.start("project", "import", str(original.top), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.004 * step * step)
        process.send_signal(signal.SIGKILL)
        process.wait()
        got = sessions.ask("project", "list")["total"]
        assert got in (0, whole), (step, got)
        if got:
            break
    if not got:
        assert len(sessions.ask("project", "import", str(original.top))["projects"]) == whole
    assert list((box.state / "state/staging").iterdir()) == []
