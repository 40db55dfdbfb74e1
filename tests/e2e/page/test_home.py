# SPDX-License-Identifier: Apache-2.0
"""The first page: what waits for a person, what runs, what was refused last, and how the machine stands; however much there is."""
import json
import re
import socket
import time
import uuid

import pytest

from flows import Desk, human, step
from loops import Loop, story
from serving import META
from support import poll

from .test_session import HOSTILE, assert_harmless


def section(html, id):
    return re.search(rf'<section id="{id}".*?</section>', html, re.S)[0]


def ask_for_approval(cordon):
    """A call that a person must approve, whose client does not wait."""
    call = {"name": "project_create", "arguments": {"name": "<script>alert(1)</script>", "env_pass": ["SECRET"]}, "_meta": META}
    cordon("mcp", input=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}) + "\n")
    (one,) = cordon("approvals", "list", "--json").json()
    return one


def test_home_shows_what_waits_what_runs_and_what_was_refused(sessions, page, box, cordon):
    empty = page.get("/")
    assert "Nothing waits." in empty and "Nothing runs." in empty and "Nothing was refused." in empty and "This machine" in empty
    sessions.create("--isolation", "--protect", "kept")
    running, ended = sessions.shell(), sessions.start("--new-session", command=["true"])["session_id"]
    sessions.say(running, "echo x > kept")
    assert cordon("session", "wait", ended).returncode == 0
    # A view whose changes wait; its command is hostile.
    repo = box.repo(files={"prd.json": ""})
    assert cordon("run", "--cow", "--no-summary", "--", "sh", "-c", f"echo y > new # {HOSTILE}", cwd=repo).returncode == 0
    view = next(path.name for path in (box.state / "state/views").iterdir())
    desk = Desk(box, cordon)
    desk.define(human("check", next=None), step("after", "true"))
    flow = desk.begin()
    poll(lambda: desk.status(flow)["state"] == "waiting", what="the step that waits")
    approval = ask_for_approval(cordon)
    loop = Loop(cordon, box, repo)
    loop.prd(story("s1"))
    process = cordon.start(*loop.args("sleep 600", "prd.json"), cwd=repo)
    try:
        poll(lambda: "s1" in json.dumps([json.loads(line) for path in (box.state / "state/loops").glob("*/journal") for line in path.read_text().splitlines()]), what="the loop")
        html = page.get("/")
    finally:
        process.terminate()
        process.wait()
    assert_harmless(html)
    waits, runs, refused = (section(html, id) for id in ("waiting", "running", "refusals"))
    assert 'data-said="3 things wait for you"' in waits
    assert f'href="/changes/{view}"' in waits and "&lt;script&gt;alert(1)" in waits
    assert f'href="/workflow/{flow}"' in waits and "at step check" in waits and f'href="/approvals#a-{approval["id"]}"' in waits
    assert f'href="/session/{running}"' in runs and f'href="/session/{ended}"' not in runs and 'href="/loop/' in runs
    assert "/kept</code>" in refused and f'href="/session/{running}"' in refused
    assert "Runs have all their layers" in section(html, "machine") and 'id="machine"' not in page.get("/?refresh=1")
    assert f'href="/session/{ended}"' in page.get("/sessions")


def test_the_machine_is_shown_as_doctor_says(page, cordon):
    html, said = page.get("/doctor"), cordon("doctor", "--json").json()
    assert said["ok"] and "Runs have all their layers." in html
    for probe in said["probes"]:
        assert f'<td data-label="Feature">{probe["name"]}</td>' in html
    for promise in said["self_test"]["promises"]:
        assert promise["ok"] and promise["name"].replace("'", "&#39;") in html


def first_byte(page, path):
    """Seconds until the first byte of the body, and until the last."""
    with socket.create_connection((page.address, page.port)) as sock:
        began = time.monotonic()
        sock.sendall(page.bytes("GET", path))
        data = b""
        while b"<!DOCTYPE" not in data:
            data += sock.recv(65536)
        first = time.monotonic() - began
        while b"</html>" not in data:
            data += sock.recv(65536)
        return first, time.monotonic() - began


@pytest.mark.parametrize("who", ["user"], indirect=True)
def test_a_thousand_sessions_are_listed_in_pages_and_the_first_byte_comes_at_once(sessions, page, box):
    sessions.create()
    ids = [sessions.start("--new-session", command=["true"])["session_id"]]
    assert sessions.cordon("session", "wait", ids[0]).returncode == 0
    text = sessions.state(ids[0], "record.json").read_text()
    made = json.loads(text)["created_at"]
    for i in range(999):
        ids.append(str(uuid.uuid4()))
        target = sessions.state(ids[-1])
        target.mkdir(mode=0o700)
        later = f"2130-01-01T00:{i // 60:02}:{i % 60:02}.000Z"
        (target / "record.json").write_text(text.replace(ids[0], ids[-1]).replace(f'"created_at": "{made}"', f'"created_at": "{later}"'))
        box.own(target)
    for offset in (0, 50, 950):
        html = page.get(f"/sessions?offset={offset}")
        assert re.findall(r'href="/session/([0-9a-f-]{36})"', html) == ids[::-1][offset:offset + 50]
        assert (f'href="/sessions?offset={offset + 50}">Older' in html) == (offset < 950) and (">Newer<" in html) == (offset > 0)
    for path in ("/", "/sessions"):
        times = [first_byte(page, path) for _ in range(10)]
        assert min(first for first, _ in times) < 0.010, times
        assert min(whole for _, whole in times) < 0.5, times
