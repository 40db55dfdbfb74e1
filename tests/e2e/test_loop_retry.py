# SPDX-License-Identifier: Apache-2.0
"""cordon loop retry: a story gets its attempts back, in a loop that runs and in one that has ended, and no kill loses it."""
import datetime
import fcntl
import json
import signal

import pytest

from loops import Loop, story
from support import poll

# The agent of BAD fails three times, and that of HOPELESS always. SLOW waits for a person.
SCRIPT = """case $id in
BAD) printf '%s' "$p" | grep -q '### Attempt 3' && echo done > lib/BAD;;
HOPELESS) exit 1;;
SLOW) while ! test -e /signal/go; do sleep 0.05; done; echo done > lib/SLOW;;
esac"""


@pytest.fixture
def loop(cordon, box):
    box.mkdir("repo/lib")
    return Loop(cordon, box, box.path / "repo")


def retry(loop, *args, status=0):
    done = loop.cordon("loop", "retry", *args, cwd=loop.top)
    assert done.returncode == status, done
    return done


def directory(loop):
    return next((loop.box.state / "state/loops").glob("*/journal")).parent


def test_a_running_loop_takes_a_parked_story_up_again(loop, box):
    loop.prd(story("BAD"), story("AFTER", dependencies=["BAD"]), story("SLOW"))
    box.mkdir("signal")
    process = loop.cordon.start(*loop.args(SCRIPT, "--json", "--max-workers", "2", "--share", f"{box.path}/signal:/signal:ro"), cwd=loop.top)
    events = []

    def wait_for(what, id):
        while not any((event["event"], event.get("story")) == (what, id) for event in events):
            events.append(json.loads(process.stdout.readline()))

    wait_for("parked", "BAD")
    assert "is working, and has all its attempts" in retry(loop, "SLOW", status=1).stderr
    assert "is waiting, and has all its attempts" in retry(loop, "AFTER", status=1).stderr
    assert "has no story NONE" in retry(loop, "NONE", status=1).stderr
    said = retry(loop, "BAD", "--json")
    assert said.json()["running"] is True and said.json()["stories"] == ["BAD"]
    wait_for("call", "AFTER")
    given = [event for event in events if event["event"] == "retry"]
    assert [(event["story"], event["uid"]) for event in given] == [("BAD", box.who.uid)]
    assert [event["attempt"] for event in events if event["event"] == "call" and event["story"] == "BAD"] == [1, 2, 3, 4]
    assert not list(directory(loop).glob("retry.*"))
    box.write("signal/go", "")
    assert process.wait(60) == 0 and loop.passed() == ["BAD", "AFTER", "SLOW"]
    assert "has passed" in retry(loop, "BAD", status=1).stderr


def unlocked(loops):
    """Whether nobody has the lock of a PRD. The copy of a killed process may have it until it has closed what it does not need."""
    for path in loops.glob("*.prd"):
        with path.open() as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
    return True


def test_a_loop_that_has_ended_goes_on_with_that_story_and_no_other(loop, box):
    loop.prd(story("BAD"), story("HOPELESS"))
    loop(SCRIPT, status=1)
    said = retry(loop, "BAD")
    assert "the loop does not run" in said.stderr and not said.stdout
    assert "is waiting, and has all its attempts" in retry(loop, "BAD", status=1).stderr
    request = next(directory(loop).glob("retry.*"))
    text = request.read_bytes()

    # Killed between the line of the journal and the end of the request: it is taken twice, which is the same as once.
    process = loop.cordon.start(*loop.args("sleep 600", "--json"), cwd=loop.top)
    poll(lambda: '"event":"retry"' in (directory(loop) / "journal").read_text(), 60)
    process.send_signal(signal.SIGKILL)
    process.wait()
    poll(lambda: unlocked(directory(loop).parent), 60, "the end of a child that was just being made")
    box.write(request.relative_to(box.path), text.decode(), mode=0o600)

    events = loop.events(SCRIPT, status=1)
    assert [event["story"] for event in events if event["event"] == "retry"] == ["BAD"]
    assert [event["story"] for event in events if event["event"] == "call"] == ["BAD"]
    assert [(one["id"], one["state"]) for one in events[-1]["stories"]] == [("BAD", "passed"), ("HOPELESS", "parked")]
    assert not request.exists() and loop.passed() == ["BAD"]

    # Without a request the next loop begins anew, and tries what was parked.
    events = loop.events(SCRIPT, "--max-iterations", "1", status=1)
    assert [event["story"] for event in events if event["event"] == "call"] == ["HOPELESS"]


def test_the_loop_is_that_of_root_and_prds_and_a_story_that_two_have_needs_a_word_more(loop, box):
    loop.prd(story("HOPELESS"))
    loop.prd(story("HOPELESS"), name="second.json")
    assert "there is no loop" in retry(loop, "HOPELESS", status=1).stderr
    loop(SCRIPT, "--prd", "prd.json", "--prd", "second.json", status=1)
    prds = ("--prd", "second.json", "--prd", "prd.json")
    assert "there is no loop" in retry(loop, "HOPELESS", status=1).stderr, "one PRD is another loop"
    assert "both have a story" in retry(loop, *prds, "HOPELESS", status=2).stderr
    retry(loop, *prds, "--in", "second.json", "HOPELESS")
    events = loop.events(SCRIPT, *prds, "--max-iterations", "1", status=1)
    assert [event["prd"] for event in events if event["event"] == "call"] == [str(loop.top / "second.json")]
    assert retry(loop, status=2).stderr.count("STORY") and "there is no PRD" in retry(loop, "--prd", "none.json", "X", status=1).stderr


def age(directory, days):
    """Says that everything in the journal of a loop happened that many days earlier."""
    earlier = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=days)
    events = [json.loads(line) for line in (directory / "journal").read_text().splitlines()]
    text = "".join(json.dumps(event | {"time": f"{earlier:%Y-%m-%dT%H:%M:%S}.000Z"}) + "\n" for event in events)
    (directory / "journal").write_text(text)


def test_gc_removes_a_loop_a_week_after_its_end_and_none_that_can_go_on(loop, box, cordon):
    loops = box.state / "state/loops"
    made = {}
    for name, status, options in (("passes", 0, []), ("parked", 1, []), ("given-back", 1, []), ("stopped", 1, ["--max-iterations", "1"]), ("shared", 0, [])):
        before = set(loops.glob("*/")) if loops.exists() else set()
        stories = [story("HOPELESS")] if name in ("parked", "given-back") else [story("ONE"), story("TWO")]
        loop.prd(*stories, name=f"{name}.json")
        loop(SCRIPT, "--prd", f"{name}.json", *options, status=status)
        made[name] = (set(path for path in loops.glob("*/") if path.is_dir()) - before).pop()
    retry(loop, "--prd", "given-back.json", "HOPELESS")

    def removed():
        done = cordon("gc", "--json")
        assert done.returncode == 0, done
        return done.json()["loops"], {name for name, path in made.items() if not path.exists()}

    for path in made.values():
        age(path, 6)
    assert removed() == (0, set())
    for path in made.values():
        age(path, 8)
    (loop.top / "passes.json").unlink()  # what has ended goes, also when its PRD is gone
    # While another loop is about to begin with the PRD, which holds its lock, nothing of it goes.
    begins = {path: path.open() for path in loops.glob("*.prd")}
    for stream in begins.values():
        fcntl.flock(stream, fcntl.LOCK_EX)
    assert removed() == (0, set())
    for stream in begins.values():
        stream.close()
    assert removed() == (3, {"passes", "parked", "shared"}) and len(list(loops.glob("*.prd"))) == 2
    assert removed() == (0, {"passes", "parked", "shared"})
    # What stays goes on where it was, and what is gone begins anew.
    assert [event["story"] for event in loop.events(SCRIPT, "--prd", "given-back.json", status=1) if event["event"] == "retry"] == ["HOPELESS"]
    assert [event["story"] for event in loop.events(SCRIPT, "--prd", "stopped.json") if event["event"] == "call"] == ["TWO"]
    assert loop.events(SCRIPT, "--prd", "parked.json", status=1)[-1]["stories"][0]["state"] == "parked"
