# SPDX-License-Identifier: Apache-2.0
"""nice: a setting of a run that exists only as a row of the table, by every way that leads to a run."""
import json
import os

import pytest

from loops import Loop, story

ASKED = 15
assert os.nice(0) < ASKED - 1, "the tests need a better nice value"


def nice_of(done):
    assert done.returncode == 0, done
    return int(done.stdout)


@pytest.fixture
def repo(box):
    return box.repo(files={"src/a": ""})


def test_the_processes_have_it_and_cannot_lower_it(cordon, box, repo):
    done = cordon("run", "--nice", str(ASKED), "--", "sh", "-c", "nice; nice -n 1 nice; nice -n -1 nice; cut -d' ' -f19 /proc/self/stat", cwd=repo)
    assert done.stdout.split() == [str(ASKED), str(ASKED + 1), str(ASKED), str(ASKED)] and "Permission denied" in done.stderr, done
    assert nice_of(cordon("run", "--", "nice", cwd=repo)) == os.nice(0)
    # That of cordon itself stays, if it is higher.
    higher = box.run("nice", "-n", str(ASKED + 2 - os.nice(0)), str(cordon.path), "run", "--nice", str(ASKED), "--", "nice", cwd=repo)
    assert nice_of(higher) == ASKED + 2
    plan = cordon("run", "--nice", str(ASKED), "--dry-run", "--json", "--", "nice", cwd=repo).json()
    assert plan["limits"]["nice"] == {"value": ASKED}


@pytest.mark.parametrize("text", ["20", "-1", "much", "1.5", ""])
def test_what_is_no_nice_value_is_refused(cordon, box, repo, text):
    done = cordon("run", f"--nice={text}", "--", "true", cwd=repo)
    assert done.returncode == 2 and f"--nice: '{text}' is not a whole number from 0 to 19" in done.stderr, done
    box.write("repo/cordon.yaml", f"version: 1\nnice: '{text}'\n")
    done = cordon("run", "--policy", "cordon.yaml", "--", "true", cwd=repo)
    assert done.returncode == 125 and "cordon.yaml:2:7: " in done.stderr, done


def test_a_policy_file_has_it_and_an_option_wins(cordon, box, repo):
    box.write("repo/cordon.yaml", f"version: 1\nnice: {ASKED}\n")
    assert nice_of(cordon("run", "--policy", "cordon.yaml", "--", "nice", cwd=repo)) == ASKED
    assert nice_of(cordon("run", "--policy", "cordon.yaml", "--nice", str(ASKED - 1), "--", "nice", cwd=repo)) == ASKED - 1


def test_learn_and_loop_have_it(cordon, box):
    top = box.mkdir("repo")
    box.mkdir("repo/lib")
    assert nice_of(cordon("learn", "--nice", str(ASKED), "-o", "learned.yaml", "--", "nice", cwd=top)) == ASKED
    loop = Loop(cordon, box, top)
    loop.prd(story("A"))
    loop("nice > lib/nice", "--rw", "**", "--nice", str(ASKED))
    assert (top / "lib/nice").read_text() == f"{ASKED}\n"


def test_agents_have_it_and_those_that_extend_them_never_less(cordon, box, repo):
    agents = [{"name": "a", "scope": ["**"], "nice": ASKED}, {"name": "b", "extends": "a"}, {"name": "c", "extends": "a", "nice": ASKED + 1}]
    box.write("repo/agents.json", json.dumps({"agents": agents}))
    for name, value in (("a", ASKED), ("b", ASKED), ("c", ASKED + 1)):
        assert nice_of(cordon("execute", "--agent", name, "--", "nice", cwd=repo)) == value
    assert nice_of(cordon("execute", "--agent", "a", "--nice", str(ASKED + 2), "--", "nice", cwd=repo)) == ASKED + 2
    assert cordon("agent", "show", "c", "--json", cwd=repo).json()["nice"] == ASKED + 1
    agents[2]["nice"] = ASKED - 1
    box.write("repo/agents.json", json.dumps({"agents": agents}))
    done = cordon("agent", "validate", cwd=repo)
    assert done.returncode == 1 and "nice is wider than that of a: the value is lower" in done.stderr, done


def test_sessions_of_a_project_have_it_and_further_commands_in_them(sessions, cordon):
    project = sessions.create("--nice", str(ASKED))
    assert sessions.project["nice"] == ASKED
    session = sessions.shell()
    assert sessions.say(session, "nice") == f"{ASKED}\n" and sessions.get(session)["nice"] == ASKED
    assert nice_of(cordon("session", "exec", session, "--", "nice")) == ASKED
    sessions.ask("session", "stop", session, "--grace", "100ms")
    assert "nice" not in sessions.ask("project", "update", project, "--nice", "0")
    assert "nice must be a number from 0 to 19" in sessions.refused("project", "update", project, "--nice", "20", status=2)["message"]
