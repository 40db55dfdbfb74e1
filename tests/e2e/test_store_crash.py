# SPDX-License-Identifier: Apache-2.0
"""Kills cordon at every kind of instant while it changes the store: nothing acknowledged is lost, nothing half made stays."""
import json
import random
import re

import pytest

POINTS = 200


class Killer:
    """Runs cordon under strace, which kills it at the n-th call of one system call."""

    def __init__(self, box, cordon):
        self.box = box
        self.cordon = cordon
        self.log = box.path / "strace.log"

    def calls(self, *args):
        """The system calls of one run, in their order, as (name, how many-th)."""
        done = self.box.run("strace", "-qq", "-o", str(self.log), self.cordon.path, *args)
        assert done.returncode == 0, done
        seen, counts = [], {}
        for name in re.findall(r"^(\w+)\(", self.log.read_text(errors="replace"), re.MULTILINE):
            counts[name] = counts.get(name, 0) + 1
            seen.append((name, counts[name]))
        return seen

    def run(self, point, *args):
        """The answer of the run, or None when it was killed before it gave one."""
        name, count = point
        done = self.box.run(
            "strace", "-qq", "-o", "/dev/null", "-e", f"trace={name}", "-e", f"inject={name}:signal=SIGKILL:when={count}",
            self.cordon.path, *args, "--json",
        )  # fmt: skip
        return json.loads(done.stdout) if done.stdout.endswith("\n") else None


def check_whole(box, cordon):
    """The next start has repaired everything: each record has its tree, each tree its record, no stage is left."""
    projects = cordon("project", "list", "--json").json()["projects"]
    assert list((box.state / "state" / "staging").iterdir()) == []
    assert sorted(p["id"] for p in projects) == sorted(p.name for p in (box.state / "projects").iterdir())
    for project in projects:
        top = box.state / "projects" / project["id"]
        published = json.loads((top / "metadata.json").read_text())
        assert published == {key: project[key] for key in published}
        workspaces = cordon("workspace", "list", project["id"], "--json").json()["workspaces"]
        assert sorted(w["id"] for w in workspaces) == sorted(p.name for p in (top / "workspaces").iterdir())
        assert project["default_workspace_id"] in {w["id"] for w in workspaces}
    assert [p for p in box.state.rglob("*") if ".cordon" in p.name] == []
    return projects


def whole_workspace(box, project, name):
    where = box.state / "projects" / project / "workspaces" / name
    return (where / "AGENTS.md").read_text() == "rules" and (where / ".factory" / "a" / "b").read_text() == "deep"


@pytest.fixture
def killer(box, cordon):
    return Killer(box, cordon)


def chosen(points, seed, count):
    """Points spread over the whole run, the first and last included."""
    generator = random.Random(seed)
    return sorted(generator.sample(range(len(points)), min(count, len(points))))


@pytest.mark.soak
@pytest.mark.limit(600)
def test_killed_at_200_points_nothing_is_lost_or_half_made(box, cordon, killer):
    top = cordon("project", "create", "p", "--isolation", "--json").json()["id"]
    box.write(box.state / "projects" / top / "AGENTS.md", "rules")
    box.write(box.state / "projects" / top / ".factory" / "a" / "b", "deep")
    create = lambda n: ("workspace", "create", top, "--id", f"w{n}", "--external-id", f"e{n}")  # noqa: E731
    runs = [
        ("project", POINTS // 4, lambda n: ("project", "create", f"p{n}")),
        ("workspace", POINTS // 4, create),
        ("update", POINTS // 4, lambda n: ("project", "update", top, "--description", f"d{n}")),
        ("delete", POINTS // 4, lambda n: ("workspace", "delete", top, f"w{n}")),
    ]
    killed = 0
    for kind, count, command in runs:
        if kind == "delete":
            cordon(*create("calls"))
        points = killer.calls(*command("calls"))
        acknowledged = set()
        for at in chosen(points, kind, count):
            if kind == "delete":
                cordon(*create(at))
            answer = killer.run(points[at], *command(at))
            killed += answer is None
            projects = check_whole(box, cordon)
            if kind == "project" and answer:
                acknowledged.add(answer["id"])
            if kind == "project":
                assert acknowledged <= {p["id"] for p in projects}
            here = next(p for p in projects if p["id"] == top)
            names = {w["id"] for w in cordon("workspace", "list", top, "--json").json()["workspaces"]}
            if kind == "workspace":
                assert not answer or f"w{at}" in names
                # Asked again, it is there whole, once, under its external id too.
                again = cordon(*command(at), "--json").json()
                assert again["id"] == f"w{at}" and whole_workspace(box, top, f"w{at}")
                by_external = cordon("workspace", "create", top, "--external-id", f"e{at}", "--json").json()
                assert by_external["id"] == f"w{at}" and by_external["created"] is False
            if kind == "update" and answer:
                assert here["description"] == f"d{at}"
            if kind == "delete" and answer:
                assert f"w{at}" not in names
    assert killed > POINTS * 0.8, killed
