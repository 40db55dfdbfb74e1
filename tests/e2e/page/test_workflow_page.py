# SPDX-License-Identifier: Apache-2.0
"""Workflows on the page: the picture and the list say what the status says, and an answer counts for the step that was shown."""
import html
import os
import re
import signal

import pytest

from flows import Desk, human, step
from support import poll

MARKUP = "<script>alert(1)</script>"
# The agent writes markup and colours, and puts out more than a page shows.
PLAN = rf"""printf '{MARKUP}\n\033[31mred\033[0m \342\200\256evil\n' >&2
big=$(head -c 40000 /dev/zero | tr '\0' x)
result "\"doc\":\"{MARKUP} $big\""
"""
SLOW = """echo first line; n=1
while ! test -e shared/docs/go; do test -e shared/docs/$n && { echo "line $n <b>"; n=$((n+1)); }; sleep 0.05; done"""


@pytest.fixture
def desk(box, cordon):
    desk = Desk(box, cordon, grants=("docs",), areas=("docs",))
    desk.define(step("plan", PLAN, outputs=["doc"], next="check"), human("check", on_approve="build", on_reject="plan"), step("build", SLOW),
                inputs=["topic"], description="a <b>plan</b>")
    return desk


def shown(text):
    """What a reader sees of a page, or of a part of it."""
    assert not [raw for raw in ("<script>alert", "\x1b", "\u202e", "<b>") if raw in text], text
    assert not re.search(r"&lt;/?(ul|li|p|code|span|section|text|rect)\b", text), "markup of ours that was escaped"
    return html.unescape(re.sub(r"<[^>]*>", "", text))


def part(text, id):
    return re.search(rf'<(\w+) [^>]*id="{id}".*?</\1>', text, re.S)[0]


def states(text):
    """The states of the steps in the list, and in the picture."""
    listed = {id: state for id, state in re.findall(r'id="step-([\w-]+)"><h3>[\w-]+ <span class="state \w+">(\w+)</span>', text)}
    drawn = dict(zip(re.findall(r'class="name">([\w-]+)<', text), re.findall(r'<g class="box (\w+)"', text)))
    return listed, {id: state for id, state in drawn.items() if id != "end"}


def wait_for(desk, run, **wanted):
    return poll(lambda: (now := desk.status(run)) and all(now[key] == value for key, value in wanted.items()) and now, 60)


def answer(page, run, status=303, **fields):
    """Sends the form that the page has now."""
    text = page.get(f"/workflow/{run}")
    hidden = dict(re.findall(r'<input type="hidden" name="(step|attempt)" value="([^"]*)">', text))
    return page.post(f"/workflow/{run}", status=status, **(hidden | fields)), hidden


def test_a_person_sees_what_waits_answers_it_and_cancels_the_run(desk, page, cordon):
    run = desk.begin("--input", f"topic={MARKUP}")
    wait_for(desk, run, state="waiting")
    listed = page.get("/workflow")
    assert f'href="/workflow/{run}"' in listed and f'data-live="flow/{run}"' in listed and "step check waits for a person" in listed and "a <b>plan</b>" in shown(listed)
    definition = page.get("/workflow/definition?orchestrator=desk&workflow=flow")
    assert states(definition)[1] == {"plan": "none", "check": "none", "build": "none"} and "reject: plan again" in shown(definition)

    # The picture, the list and the status agree; outputs are bounded text.
    text = page.get(f"/workflow/{run}")
    truth = {one["id"]: one["state"] for one in desk.status(run)["steps"]}
    assert states(text) == (truth, truth) and truth == {"plan": "finished", "check": "waiting", "build": "pending"}
    seen = shown(text)
    assert "Step check waits for your answer" in seen and "look at it" in seen and "human_review, waiting" in seen and f"topic{MARKUP}" in seen
    assert "doc (40026 bytes)" in seen and "38000 bytes more" not in seen and re.search(r"\d{5} bytes more; 'cordon workflow progress'", seen) and "x" * 20000 not in seen
    log = shown(page.get(f"/workflow/{run}/log?step=plan"))
    assert f"{MARKUP}\nred \\u{{202e}}evil\n" in log and "Attempt 1" in log

    # An answer is for the step that was shown: one about another step, or about an earlier time, changes nothing.
    for fields in ({"step": "plan"}, {"attempt": "7"}):
        said, _ = answer(page, run, status=409, action="approve", **fields)
        assert "has gone on since: now step check waits" in said
    assert "does not say which step" in page.post(f"/workflow/{run}", status=400, action="approve")
    place, old = answer(page, run, action="reject", note=f"again {MARKUP}")
    assert place == f"/workflow/{run}?done=step-rejected" and old == {"step": "check", "attempt": "0"}
    now = wait_for(desk, run, state="waiting", currentAttempt=1)
    assert {one["id"]: one["attempts"] for one in now["steps"]} == {"plan": 2, "check": 1, "build": 0}
    assert "has gone on since" in page.post(f"/workflow/{run}", status=409, action="approve", **old)
    assert f"again {MARKUP}" in shown(page.get(f"/workflow/{run}")) and wait_for(desk, run, state="waiting")
    long, _ = answer(page, run, status=400, action="approve", note="x" * 5000)
    assert "at most 4096 bytes" in long

    # Approved, the next step runs, and its output comes as it is written.
    assert answer(page, run, action="approve")[0].endswith("done=step-approved")
    wait_for(desk, run, currentStepId="build")
    log = poll(lambda: (text := page.get(f"/workflow/{run}/log?step=build")) and "first line" in text and text, 60)
    more = html.unescape(re.search(r'data-more="([^"]*)"', log)[1])
    topics = re.search(r'data-live="([^"]*)"', log)[1].split()
    assert topics[-3] == f"flow/{run}" and re.fullmatch(r"crew/[0-9a-f-]{36}/\d+", topics[-1]), topics
    stream = page.listen(*topics)
    stream.head()
    (desk.areas["docs"] / "1").write_text("")
    while b"event: change" not in stream.data:
        assert stream.more()
    since = re.search(r'data-since="(\d+)"', log)[1]
    grown = poll(lambda: (text := page.get(f"{more}&since={since}")) and "line 1" in text and text, 60)
    assert shown(grown) == "line 1 <b>\n"

    # The end is for good, so it wants a tick.
    assert "Tick the box" in page.post(f"/workflow/{run}", status=400, action="cancel") and desk.status(run)["state"] == "running"
    assert page.raw("POST", f"/workflow/{run}", None, b"token=" + b"0" * 64 + b"&action=cancel&sure=yes").status == 403
    assert page.post(f"/workflow/{run}", action="cancel", sure="yes").endswith("done=run-canceled")
    wait_for(desk, run, state="canceled", engine=None)
    text = page.get(f"/workflow/{run}?done=run-canceled")
    assert "The run is canceled" in text and "Cancel this run" not in text and "Approve" not in text
    assert "has ended: canceled" in page.post(f"/workflow/{run}", status=409, action="resume")
    audit = cordon("audit", "--json").stdout
    assert audit.count('"tool":"workflow_answer"') >= 5 and '"tool":"workflow_cancel"' in audit and f'"about":"{run}"' in audit


def test_a_killed_engine_is_resumed_and_addresses_that_nothing_has_are_not_found(desk, page, cordon):
    desk.define(step("build", SLOW))
    first = desk.begin()
    engine = wait_for(desk, first, currentStepId="build", currentAttempt=1)["engine"]
    assert "under way" in page.post(f"/workflow/{first}", status=409, action="resume")
    os.kill(engine, signal.SIGKILL)
    wait_for(desk, first, engine=None)
    text = page.get(f"/workflow/{first}")
    assert "Resume this run" in text and "interrupted at step build" in text
    assert page.post(f"/workflow/{first}", action="resume").endswith("done=run-resumed")
    (desk.areas["docs"] / "go").write_text("")
    wait_for(desk, first, state="succeeded")
    log = shown(page.get(f"/workflow/{first}/log?step=build"))
    assert log.count("Attempt 1") == 2 and "lost began" in log and "complete began" in log, log
    assert "Resume" not in page.get(f"/workflow/{first}")

    newest, oldest = sorted([first, desk.begin()], reverse=True)  # an id begins with the second
    assert re.findall(r'href="/workflow/(run-[\w-]+)"', page.get("/workflow")) == [newest, oldest]
    assert re.findall(r'href="/workflow/(run-[\w-]+)"', page.get(f"/workflow?before={newest}")) == [oldest]
    for path, status in (("/workflow/run-20260101T000000-000000000000", 404), ("/workflow/run-", 400), (f"/workflow/{first[:-1]}", 404), ("/workflow/a%22b", 400),
                         (f"/workflow/{first}/none", 404), (f"/workflow/{first}/log?step=none", 404), (f"/workflow/{first}/log", 404),
                         (f"/workflow/{first}/output?step=build&at=9", 404), ("/workflow/definition", 404),
                         ("/workflow/definition?orchestrator=desk&workflow=%3Cb%3E", 404), ("/workflow/definition?orchestrator=none&workflow=flow", 404)):
        shown(page.get(path, status=status))
    assert "can be answered" in page.post(f"/workflow/{first}", status=400, action="explode")
    # What can't be read is said, and hides nothing else.
    desk.box.write("ws/desk/orchestrator.yaml", "id: desk\n<b>: 1\n", mode=0o600)
    assert first in page.get("/workflow") and 'class="alert"' in page.get("/workflow") and shown(page.get("/workflow"))
