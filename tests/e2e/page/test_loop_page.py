# SPDX-License-Identifier: Apache-2.0
"""Loops on the page: the board says what the journal says, output is text, and stop and retry do what they say."""
import html
import json
import re

import pytest

from loops import Loop, story
from support import poll

# Whatever an agent writes is text: markup, colours, a title of the terminal, an override of the direction, bytes that are no UTF-8.
HOSTILE = r"printf '<script>alert(1)</script>\n\033[31mred\033[0m \033]0;title\007end\n\342\200\256evil\n\377\n'"
SCRIPT = f"""case $id in
OK) echo fine > lib/OK;;
BAD*) {HOSTILE}; cat docs/guide.md; printf '%s' "$p" | grep -q '### Attempt 3' || exit 7;;
SLOW) echo begun > lib/SLOW; echo first line; n=1
  while ! test -e /signal/go; do test -e /signal/$n && {{ echo "line $n <b>"; n=$((n+1)); }}; sleep 0.05; done;;
esac"""
BAD = 'BAD<b>"\''
RAW = ("<script>alert", "\x1b", "\u202e", "BAD<b>", "line 1 <b>")


@pytest.fixture
def loop(cordon, box):
    box.mkdir("repo/lib")
    box.mkdir("signal")
    box.write("repo/docs/guide.md", "guide\n")
    return Loop(cordon, box, box.path / "repo")


def counts(board):
    return {name: int(n) for name, n in re.findall(r'<section id="(\w+)" class="live" data-count="(\d+)"', board)}


def events(loop):
    return [json.loads(line) for line in next((loop.box.state / "state/loops").glob("*/journal")).read_text().splitlines()]


def shown(text):
    """What a reader sees of a page, or of a part of it."""
    assert not [raw for raw in RAW if raw in text], text
    assert not re.search(r"&lt;/?(ul|li|p|code|span|section)\b", text), "markup of ours that was escaped"
    return html.unescape(re.sub(r"<[^>]*>", "", text))


def test_a_loop_that_runs_is_a_board_with_live_output_and_can_be_stopped(loop, page, box):
    loop.prd(story("OK"), story(BAD), story("AFTER", dependencies=[BAD]), story("SLOW", title="<script>alert(2)</script>"), story("DONE", passes=True),
             story("CHECKED"))
    verify = 'test "$CORDON_STORY" != CHECKED || until test -e /signal/checked; do sleep 0.05; done'
    process = loop.cordon.start(*loop.args(SCRIPT, "--max-workers", "3", "--workspace", "lib", "--workspace-mode", "strict", "--verify", verify,
                                           "--share", f"{box.path}/signal:/signal:ro"), cwd=loop.top)
    poll(lambda: list((box.state / "state/loops").glob("*/journal")) and "parked" in [event["event"] for event in events(loop)], 60)
    id = events(loop)[0]["loop"]
    assert f'href="/loop/{id}"' in page.get("/loop") and f'data-live="loops/{id}"' in page.get("/loop") and "1 of 6 passed, 1 parked" in page.get("/loop")

    # The board says what the journal says.
    board = poll(lambda: (text := page.get(f"/loop/{id}")) and "first line" in text and counts(text)["checking"] and text, 60)
    assert counts(board) == {"waiting": 1, "working": 1, "checking": 1, "accepted": 1, "passed": 1, "parked": 1}
    text = shown(board)
    assert "The agent ended with exit code 7." in text and f"after {BAD}" in text and "2 of 3 run" in text
    assert "3 attempts" in text and re.search(r"3 attempts · \S+ m?s · \d+ refusals", text) and "Time leftabout" in text
    assert text.count("Try again") == 1 and "<script>alert(2)" in text

    # The story, its calls, and the log of each as text.
    link = html.unescape(re.search(r'href="(/loop/\w+/story\?prd=0&amp;id=BAD[^"]*)"', board)[1])
    one = page.get(link)
    assert [int(n) for n in re.findall(r">Attempt (\d)</a>", one)] == [3, 2, 1] and "Failures3 of 3" in shown(one)
    first = html.unescape(re.findall(r'href="(/loop/\w+/call\?n=\d+)"', one)[-1])
    call = shown(page.get(first))
    assert "<script>alert(1)</script>\nred end\n" in call and "\\u{202e}evil" in call and "docs/guide.md" in call and "What the next attempt is told" in call
    for log, words in (("output", "<script>alert(1)"), ("error", "Permission denied"), ("prompt", f"# Story {BAD}")):
        assert words in shown(page.get(f"{first}&log={log}")), log

    # Output grows, and the page hears of it.
    slow = next(event for event in events(loop) if event["event"] == "call" and event["story"] == "SLOW")
    call = page.get(f"/loop/{id}/call?n={slow['n']}")
    assert "first line" in shown(call) and f'data-more="/loop/{id}/output?n={slow["n"]}&amp;log=combined"' in call
    topics = re.search(r'data-live="([^"]*)"', call)[1].split()
    assert topics == ["approvals", f"loops/{id}", f"loops/{id}/logs/SLOW%2E{slow['n']}"], topics
    stream = page.listen(*topics)
    stream.head()
    since = re.search(r'data-since="(-?\d+)"', call)[1]
    box.write("signal/1", "")
    while b"event: change" not in stream.data:
        assert stream.more()
    more = poll(lambda: (text := page.get(f"/loop/{id}/output?n={slow['n']}&since={since}")) and "line 1" in text and text, 60)
    assert shown(more) == "line 1 <b>\n" and int(re.search(r'data-since="(\d+)"', more)[1]) > int(since)

    # What can't be done is said and changes nothing.
    for fields, status, words in (
        ({"action": "retry", "story": "DONE"}, 409, "has passed"),
        ({"action": "retry", "story": "OK"}, 409, "has been accepted"),
        ({"action": "retry", "story": "SLOW"}, 409, "has all its attempts"),
        ({"action": "retry", "story": "<i>"}, 404, "the loop has no story &lt;i&gt;"),
        ({"action": "retry"}, 400, "can be stopped"),
        ({"action": "explode"}, 400, "can be stopped"),
    ):
        assert words in page.post(f"/loop/{id}", status=status, **fields), fields
    assert page.raw("POST", f"/loop/{id}", None, b"token=" + b"0" * 64 + b"&action=stop").status == 403
    for path, status in ((f"/loop/{'0' * 32}", 404), ("/loop/xyz", 400), (f"/loop/{id}/none", 404), (f"/loop/{id}/call?n=99", 404),
                         (f"/loop/{id}/call?n=-1", 404), (f"/loop/{id}/story?prd=7&id=OK", 404), (f"/loop/{id}/output", 404)):
        page.get(path, status=status)

    # A parked story is tried again, and the loop stops.
    assert page.post(f"/loop/{id}", action="retry", prd=str(loop.top / "prd.json"), story=BAD) == f"/loop/{id}?done=story-retried"
    poll(lambda: any(event["event"] == "call" and event["story"] == "AFTER" for event in events(loop)), 60)
    assert page.post(f"/loop/{id}", action="stop") == f"/loop/{id}?done=loop-stopped" and process.wait(60) == 143
    text = page.get(f"/loop/{id}?done=loop-stopped")
    assert "The loop ends now" in text and "Stop this loop" not in text and counts(text)["working"] == 0
    assert "stopped" in shown(text) and re.search(r'href="/changes/[0-9a-f-]{36}">What the agent of SLOW had changed', text)
    done = loop.cordon("audit", "--json").stdout
    assert '"tool":"loop_stop"' in done and '"tool":"loop_retry"' in done and f'"about":"{id}"' in done


def test_a_loop_that_has_ended_goes_on_with_the_story_that_a_person_picked(loop, page):
    loop.prd(story(BAD), story("BAD2"))
    loop(SCRIPT, status=1)
    id = events(loop)[0]["loop"]
    assert counts(page.get(f"/loop/{id}"))["parked"] == 2 and "Stop this loop" not in page.get(f"/loop/{id}")
    assert page.post(f"/loop/{id}", action="retry", story=BAD).endswith("done=story-retried-later")
    text = page.get(f"/loop/{id}?done=story-retried-later")
    assert counts(text) | {"waiting": 1, "parked": 1} == counts(text) and "goes on when it is started again" in text
    assert "has all its attempts" in page.post(f"/loop/{id}", status=409, action="retry", story=BAD)
    loop(SCRIPT, status=1)
    assert loop.passed() == [BAD] and counts(page.get(f"/loop/{id}")) | {"passed": 1, "parked": 1} == counts(page.get(f"/loop/{id}"))
    assert [event["story"] for event in events(loop) if event["event"] == "call"][-1] == BAD
    assert page.post(f"/loop/{id}", action="stop").endswith("loop-stopped"), "to stop what has ended does nothing"
