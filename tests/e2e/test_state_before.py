# SPDX-License-Identifier: Apache-2.0
"""A state directory that an older version made (tests/state_before.py): it is read, and `cordon gc` removes of it what is due and nothing else."""
import re

import pytest

import state_before
from support import TOP


@pytest.fixture
def older(box):
    def unpack(days=0):
        state_before.unpack(box.state, box.path, days)
        box.own(box.state)
        return box.state / "state"
    return unpack


def ids(state, kind):
    return sorted(path.name for path in (state / kind).iterdir() if path.is_dir())


def test_what_an_older_version_left_is_read(cordon, box, older):
    state = older()

    def ask(*args):
        done = cordon(*args, "--json")
        assert done.returncode == 0, done
        return done.json()

    assert [project["name"] for project in ask("project", "list")["projects"]] == ["shop"]
    session, = ids(state, "sessions")
    record = ask("session", "get", session)
    assert (record["status"], record["state"], record["exit_code"]) == ("completed", "completed", 0) and len(record["protected"]) > 100
    assert {view["state"] for view in ask("changes", "list", "--all")["changes"]} == {"applied", "ended"}
    run, = ids(state, "flow")
    assert ask("workflow", "status", run)["state"] == "succeeded"
    assert [token["name"] for token in ask("token", "list")] == ["laptop"]
    approval, = ask("approvals", "list")
    assert (approval["state"], approval["tool"]) == ("waiting", "project_delete")
    assert cordon("approvals", "deny", approval["id"]).returncode == 0
    kinds = ("sessions", "views", "flow", "loops", "crew")
    before = {kind: ids(state, kind) for kind in kinds}
    assert [len(names) for names in before.values()] == [1, 3, 1, 1, 2]
    gone = ask("gc")
    assert [gone[key] for key in ("crews", "loops", "workflows", "approvals", "sessions")] == [0] * 5
    assert {kind: ids(state, kind) for kind in kinds} == before


KEPT = {"crews": 0, "loops": 0, "approvals": 0, "views": 0, "sessions": 0, "workflows": 0}
WEEK = KEPT | {"crews": 2, "loops": 1, "approvals": 1, "views": 2}


@pytest.mark.parametrize("days, removed", [(6, KEPT), (8, WEEK), (29, WEEK), (31, WEEK | {"sessions": 1, "workflows": 1})])
def test_gc_removes_what_ended_long_ago_and_no_project_token_or_waiting_view(cordon, older, days, removed):
    state = older(days)
    kept = {kind: ids(state, kind) for kind in ("projects",)} | {"tokens": sorted(path.name for path in (state / "tokens").iterdir())}
    found = cordon("gc", "--json").json()
    assert found | {"views": found["views"]["removed"]} | removed == found | {"views": removed["views"]}, found
    assert found["views"]["waiting"] == 1 and len(ids(state, "views")) == 3 - removed["views"]
    assert {"projects": ids(state, "projects"), "tokens": sorted(path.name for path in (state / "tokens").iterdir())} == kept
    assert len(ids(state, "sessions")) == 1 - removed["sessions"] and len(ids(state, "flow")) == 1 - removed["workflows"]
    again = cordon("gc", "--json").json()
    assert [again[key] for key in ("crews", "loops", "workflows", "approvals", "sessions")] == [0] * 5 and again["views"]["removed"] == 0


def test_gc_leaves_a_session_whose_record_it_cannot_read(cordon, box, older):
    state = older(31)
    session, = ids(state, "sessions")
    box.write(state / "sessions" / session / "record.json", '{"schema": 999}')
    done = cordon("gc", "--json")
    assert done.returncode == 0 and done.json()["sessions"] == 0 and ids(state, "sessions") == [session]
    assert cordon("session", "cleanup", "--max-age-hours", "0").returncode == 1


def test_gc_makes_no_store_where_there_is_none(cordon, box):
    assert cordon("gc").returncode == 0 and not (box.state / "state/sessions").exists() and not (box.state / "projects").exists()


def test_every_directory_of_state_has_a_row():
    """What the code opens below state/ is in the table that `cordon gc` goes through."""
    rows = re.findall(r'\[CORDON_STATE_KIND_\w+\] = \{ "([a-z-]+)"', (TOP / "src/state/kinds.c").read_text())
    texts = [path.read_text() for path in (TOP / "src").rglob("*.[ch]")]
    macros = {name: value for text in texts for name, value in re.findall(r'^#define (\w+) "([a-z-]+)"', text, re.MULTILINE)}
    opened = {name for text in texts for name in re.findall(r'cordon_home_subdir\([^,]+, "?([\w-]+)"?, ', text)}
    opened = {macros.get(name, name) for name in opened} - {"path", "name", "home"}
    assert len(rows) == len(set(rows)) and {"runs", "views", "confirmed", "serve"} <= opened
    assert opened <= set(rows)
    assert set(state_before_kinds()) <= set(rows)


def test_every_kind_that_is_not_kept_for_ever_is_collected():
    table = (TOP / "src/state/kinds.c").read_text()
    kinds = {name: keep for name, keep in re.findall(r'\[CORDON_STATE_KIND_(\w+)\] = \{ "[a-z-]+", [^,]+, (.+?) \}', table)}
    assert len(kinds) == table.count("[CORDON_STATE_KIND_") - 1  # of the declaration
    collected = set(re.findall(r"^\t\{ CORDON_STATE_KIND_(\w+),", (TOP / "src/cli/cmd_gc.c").read_text(), re.MULTILINE))
    # Those of workflows remove what covers their steps.
    assert collected | {"STEPS"} == {name for name, keep in kinds.items() if keep != "CORDON_STATE_FOREVER"}
    assert {"PROJECTS", "AUDIT", "TOKENS"} <= kinds.keys() - collected


def state_before_kinds():
    tree = state_before.json.loads(state_before.FILE.read_text())
    return {name.split("/")[1] for name, (mode, _) in tree.items() if re.fullmatch(r"state/[^/]+", name) and mode.startswith("0o4")}
