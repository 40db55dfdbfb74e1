# SPDX-License-Identifier: Apache-2.0
"""A loop of twelve stories, four at a time, whose agent is hostile: what is on the host in the end is exactly what was allowed. The same end
comes of it when the loop is killed at random instants and started again."""
import json
import os
import random
import signal
import subprocess

import pytest

from loops import Loop, story

STORIES = [
    story("GOOD"),
    story("OUTSIDE"),  # writes outside its folder, and goes on
    story("PRD"),  # marks all stories as passed
    story("IDLE"),  # says that it is done and has done nothing
    story("COMMIT"),  # commits outside its folder, and moves branches
    story("LEFT"),  # conflicts with RIGHT
    story("RIGHT"),
    story("HANG"),  # never ends
    story("FORK"),  # leaves processes behind
    story("TESTS"),  # changes the tests instead of doing its work
    story("AFTER", dependencies=["GOOD", "LEFT"]),
    story("NEVER", dependencies=["HANG"]),
]

AGENT = """
made() { echo $id > lib/$id; }
case $id in
GOOD|AFTER) made;;
OUTSIDE) echo x > docs/out; echo x > /etc/out; ln -s /etc lib/etc; echo x > lib/etc/out2; rm lib/etc; made;;
PRD) sed -i 's/"title"/"passes": true, "title"/' prd.json; echo '{}' > prd.json; made;;
IDLE) echo "I am done";;
COMMIT) echo x > docs/in-commit; made; git add -f . ; git -c user.name=E -c user.email=e@example.org commit -qm evil; git branch -f main HEAD~0; git tag evil;;
LEFT|RIGHT) echo $id >> lib/shared.txt; made;;
HANG) echo x > lib/hang; sleep 1000;;
FORK) for i in 1 2 3 4 5; do (setsid sleep 1000 &) ; done; made;;
TESTS) echo "exit 0" > tests/check.sh 2>/dev/null; chmod 777 tests 2>/dev/null;;
esac
exit 0
"""
DONE = ["GOOD", "OUTSIDE", "PRD", "COMMIT", "LEFT", "RIGHT", "FORK", "AFTER"]


@pytest.fixture
def loop(cordon, box):
    top = box.mkdir("repo")
    for name, text in {"lib/shared.txt": "base\n", "docs/guide": "", "tests/check.sh": "test -e lib/$1\n"}.items():
        box.write(f"repo/{name}", text)
    made = Loop(cordon, box, top)
    made.prd(*STORIES)
    commands = "git init -q -b main; git config user.name Ann; git config user.email ann@example.org; git add .; git commit -qm init"
    assert box.run("sh", "-ec", commands, cwd=top).returncode == 0
    return made


ARGS = ["--workspace", "lib", "--workspace-mode", "strict", "--max-workers", "4", "--max-iterations", "60", "--timeout", "3s", "--grace", "100ms",
        "--verify", 'sh tests/check.sh "$CORDON_STORY"']


def git(loop, *args):
    return loop.box.run("git", *args, cwd=loop.top).stdout


def check_end(loop):
    assert sorted(loop.passed()) == sorted(DONE)
    assert sorted(os.listdir(loop.top / "lib")) == sorted([*DONE, "shared.txt"])
    assert sorted((loop.top / "lib/shared.txt").read_text().split()) == ["LEFT", "RIGHT", "base"]
    assert os.listdir(loop.top / "docs") == ["guide"] and (loop.top / "tests/check.sh").read_text() == "test -e lib/$1\n"
    assert sorted(git(loop, "log", "--format=%s", "main").splitlines()) == sorted(["init", *[f"{name}: Title of {name}" for name in DONE]])
    assert git(loop, "for-each-ref", "--format=%(refname)") == "refs/heads/main\n"
    assert git(loop, "status", "--porcelain") == " M prd.json\n" and not os.path.exists("/etc/out")
    titles = [one["title"] for one in json.loads((loop.top / "prd.json").read_text())["userStories"]]
    assert titles == [f"Title of {one['id']}" for one in STORIES]
    assert not (loop.top / ".git/index.lock").exists()


def test_a_hostile_agent_gets_exactly_what_is_allowed(loop):
    events = loop.events(AGENT, *ARGS, status=1)
    check_end(loop)
    states = {one["id"]: one["state"] for one in events[-1]["stories"]}
    assert {id for id, state in states.items() if state == "parked"} == {"IDLE", "HANG", "TESTS"} and states["NEVER"] == "waiting", states
    seen = {(event["story"], os.path.basename(event["path"])) for event in events if event["event"] == "violation"}
    assert {("OUTSIDE", "out"), ("PRD", "prd.json")} <= seen, seen
    assert [event for event in events if event["event"] == "failed" and event["story"] == "HANG"][0]["result"]["exit_code"] == 124


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_kills_at_random_instants_lead_to_the_same_end(loop, seed):
    chance = random.Random(seed)
    for _ in range(60):
        process = loop.cordon.start(*loop.args(AGENT, *ARGS), cwd=loop.top, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            process.wait(chance.uniform(0.05, 2.0) if _ < 8 else 120)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait(10)
            continue
        assert process.returncode == 1, process.stderr.read()
        break
    check_end(loop)
