# SPDX-License-Identifier: Apache-2.0
"""The pages of agent runs: crews of `cordon execute`, and each of their jobs."""
import json
import re

import pytest

from support import poll

from .test_session import HOSTILE, UNKNOWN, assert_harmless

AGENTS = {"agents": [{"name": "quick one", "scope": ["src/**"]}, {"name": "slow", "scope": ["out/**"]}]}
SCRIPT = "cat src/hostile out/hostile; echo x > denied; case $AGENT_NAME in slow) echo begun; sleep 600;; *) exit 3;; esac"


@pytest.fixture
def crew(box, cordon):
    """A run of two agents, one of which goes on."""
    repo = box.repo(files={"src/hostile": HOSTILE + "\n", "out/hostile": HOSTILE + "\n", "agents.json": json.dumps(AGENTS)})
    process = cordon.start("execute", "--agents", "quick one,slow", "--net", "example.org", "--command", SCRIPT, cwd=repo)
    home = box.state / "state" / "crew"
    run = poll(lambda: home.exists() and [one.name for one in home.iterdir() if not one.name.startswith(".")], what="the run")[0]
    poll(lambda: (home / run / "0" / "result.json").exists() and "begun" in (home / run / "1" / "events").read_text(), what="the agents")
    yield run
    cordon("status", "--cancel", run)
    process.kill()
    process.wait()


def job(cordon, run, index):
    return cordon("status", run, "--json").json()[0]["agents"][index]


def test_a_run_and_its_jobs_show_what_the_command_line_says(crew, page, cordon):
    assert f'href="/run/{crew}"' in page.get("/runs") and f'href="/run/{crew}"' in page.get("/")
    html = page.get(f"/run/{crew}")
    assert "1 of 2 jobs have ended" in html and f'href="/run/{crew}/0">quick one</a>' in html and f'href="/run/{crew}/1">slow</a>' in html
    assert '<span class="state bad">failed</span>' in html and '<span class="state busy">running</span>' in html
    ended, running = page.get(f"/run/{crew}/0"), page.get(f"/run/{crew}/1")
    for one in (ended, running):
        assert_harmless(one)
        assert "&lt;script&gt;alert(1)&lt;/script&gt;&lt;/pre&gt;" in one and '<span class="a f2">red</span>' in one
        assert "<code>example.org:443</code>" in one and re.search(r'id="refusals">.*?/denied</code>', one, re.S)
    assert "<dt>Exit code</dt><dd>3</dd>" in ended and "Cancel this job" not in ended
    # The tree: each agent may change its own folder and no other.
    for one, mine, other in ((ended, "src", "out"), (running, "out", "src")):
        marks = {name: mark for mark, name in re.findall(r'<span class="state [a-z]+">([a-z]+)</span> (?:<a [^>]*>)?<code>(\w+)/', one)}
        assert marks[mine] == "rw" and marks.get(other) != "rw", marks
    since = re.search(r'data-more="([^"]+)" data-since="(\d+)"', running)
    assert since[1] == f"/run/{crew}/1?part=output"
    assert f'data-since="{since[2]}"' in page.get(f"{since[1]}&since={since[2]}") and "begun" not in page.get(f"{since[1]}&since={since[2]}")
    assert "begun" in page.get(f"{since[1]}&since=-1") and HOSTILE.encode() in page.raw("GET", f"/run/{crew}/1?part=log").body
    for wrong in (f"/run/{UNKNOWN}", f"/run/{crew}/2", f"/run/{crew}/x", f"/run/{crew}/-1"):
        assert page.raw("GET", wrong).status == 404, wrong
    assert page.raw("GET", "/run/none").status == 400


def test_a_job_is_cancelled(crew, page, cordon, box):
    path = f"/run/{crew}/1"
    assert "not ticked" in page.post(path, 400, action="cancel")
    assert "no such action" in page.post(path, 400, action="stop", sure="yes")
    assert page.post(path, 403, action="cancel", sure="yes", token="0" * 64)
    assert page.post(f"/run/{crew}/7", 404, action="cancel", sure="yes")
    assert 'state busy">running' in page.get(path)
    assert page.post(path, action="cancel", sure="yes") == f"{path}?done=cancelled"
    result = box.state / "state" / "crew" / crew / "1" / "result.json"
    assert json.loads(poll(lambda: result.exists() and result.read_text(), what="the end"))["state"] == "cancelled"
    assert '<span class="state quiet">cancelled</span>' in page.get(path)
    # A whole run can be cancelled too; what has ended keeps its result.
    assert page.post(f"/run/{crew}", action="cancel", sure="yes") == f"/run/{crew}?done=cancelled"
    assert "2 of 2 jobs have ended" in page.get(f"/run/{crew}") and "state bad\">failed" in page.get(f"/run/{crew}/0")
    records = [json.loads(line) for line in cordon("audit", "--json", "--kind", "call").stdout.splitlines()]
    assert [(one["detail"]["tool"], one["detail"]["about"], one["success"]) for one in records] == [
        ("run_cancel", crew, False), ("run_cancel", crew, False), ("run_cancel", crew, True), ("run_cancel", crew, True)]
