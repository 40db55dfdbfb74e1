# SPDX-License-Identifier: Apache-2.0
"""A project whose agent is a real client from the user's npm directory: two tenants, each with its own state."""
import pytest

from clients.four import CLIENTS, PLANTED, SECRET, Person, install
from clients.model import Deed, Model
from support import callers

# Installing four clients from the registry takes a minute.
pytestmark = [pytest.mark.limit(600), pytest.mark.long]


@pytest.fixture
def who():
    """Clients refuse to work without questions as root."""
    return callers()["user"]


def test_claude_serves_two_tenants_each_with_its_own_state(base_dir, box, sessions):
    model = Model({})
    person = Person(box, install(base_dir), next(client for client in CLIENTS if client.name == "claude"), model)
    for name in ("ann", "bob"):
        model.deeds[f"work for {name}"] = [Deed("inside", "write", f"/workspace/{name}.txt", PLANTED),
                                           Deed("secret", "shell", text=f"cat {person.home}/.ssh/id_ed25519 {person.home}/.claude.json")]
    sessions.create("--isolation", "--profile", "claude")
    homes = box.state / "state/projects" / sessions.project["id"] / "homes"
    for name in ("ann", "bob"):
        sessions.ask("workspace", "create", sessions.project["id"], "--id", name)
        session = sessions.start("--workspace", name, env=person.env, timeout=240,
                                 command=["claude", "--dangerously-skip-permissions", "-p", f"work for {name}"])["session_id"]
        done = sessions.cordon("session", "wait", session, timeout=240)
        text = sessions.text(session)
        assert done.returncode == 0 and (sessions.top("workspaces", name) / f"{name}.txt").read_text().strip() == PLANTED, text
        talks = [path.read_text() for path in (homes / name / "state/.claude/projects").rglob("*.jsonl")]
        assert any(f"work for {name}" in talk for talk in talks), text
    # Neither tenant's state has a word of the other's, the operator's is as it was, and the key was told to nobody.
    for name, other in (("ann", "bob"), ("bob", "ann")):
        for path in (path for path in (homes / name).rglob("*") if path.is_file()):
            assert f"work for {other}".encode() not in path.read_bytes(), path
    assert not list((person.home / ".claude").rglob("*.jsonl")) and not model.heard(SECRET)
    model.close()
