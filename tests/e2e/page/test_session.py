# SPDX-License-Identifier: Apache-2.0
"""The page of a session: it shows what the command line says, what the agent writes is text, and its forms do what they say."""
import json
import re
import time
import urllib.parse

import pytest

from support import poll

UNKNOWN = "01234567-89ab-4cde-8f01-23456789abcd"
# What a program may write to make a page lie: markup, an end of our element, colours, an escape to the terminal, a bidi control.
HOSTILE = "<script>alert(1)</script></pre><b>\x1b[31mred\x1b[0m \x1b]0;title\x07\u202eevil\u202c &amp; \"quoted\" 'single'"


def assert_harmless(html):
    for raw in ("<script>alert", "</pre><b>", "\x1b", "\x07", "\u202e", "\x00"):
        assert raw not in html, raw


def audit(cordon, session, event="call"):
    return [record for record in map(json.loads, cordon("audit", "--json", "--run", session).stdout.splitlines()) if record["event"] == event]


def test_a_session_shows_what_it_is_writes_and_was_refused(sessions, page, box, cordon):
    sessions.create("--isolation", "--protect", "kept", "--net", "example.org")
    top = sessions.top("workspaces", sessions.project["default_workspace_id"])
    box.write(top / "kept", "old")
    box.write(top / "hostile", HOSTILE + "\n")
    session = sessions.shell()
    said = sessions.say(session, "cat hostile; echo x > kept; mkdir -p sub; echo y > 'sub/<i>name'; touch \"sub/$(printf 'a\\nb')\"")
    assert (top / "kept").read_text() == "old"
    html = page.get(f"/session/{session}")
    assert_harmless(html)
    record = sessions.get(session)
    assert f'<span class="state busy">{record["state"]}</span>' in html and "while read -r line; do eval &quot;$line&quot;" in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&lt;/pre&gt;" in html and '<span class="a f2">red</span>' in html and "\\u{202e}evil" in html
    assert said.splitlines()[-1] in html.replace("&#39;", "'"), said  # what the shell said about the protected file
    # What was refused, with the rule; and the tree with the marks that `cordon tree` would give.
    refused = re.search(r'<section id="refusals">.*?</section>', html, re.S)[0]
    assert "/kept</code>" in refused and "by the rule <code>kept</code>" in refused and '<span class="state bad">deny</span>' in refused
    tree = re.search(r'<section id="policy">.*?</section>', html, re.S)[0]
    assert re.search(r'<span class="state wait">protected</span> <code>kept', tree) and re.search(r'<span class="state good">rw</span> <a href="[^"]*path=sub#policy"><code>sub/', tree), tree
    assert "<code>example.org:443</code>" in tree
    opened = page.get(f"/session/{session}?path=sub")
    assert_harmless(opened)
    assert "<code>&lt;i&gt;name</code>" in opened and "<code>a\\nb</code>" in opened
    # What grows: only what came after the event that the page has.
    since = re.search(r'data-more="/session/[0-9a-f-]+/output" data-since="(\d+)"', html)[1]
    sessions.say(session, "echo and-more")
    more = page.get(f"/session/{session}/output?since={since}")
    assert "and-more" in more and "alert(1)" not in more and int(re.search(r'data-since="(\d+)"', more)[1]) > int(since)
    refresh = page.get(f"/session/{session}?refresh=1")
    assert "alert(1)" not in refresh and 'id="state"' in refresh
    answer = page.raw("GET", f"/session/{session}/log")
    assert answer.headers["content-disposition"].startswith("attachment") and HOSTILE.encode() in answer.body and b"and-more" in answer.body


def test_lines_are_sent_and_a_session_is_stopped(sessions, page, cordon):
    sessions.create()
    session = sessions.shell()
    path = f"/session/{session}"
    assert page.post(path, action="send", line="echo 'to you' > sent") == f"{path}?done=sent"
    assert "The line was sent." in page.get(f"{path}?done=sent")
    poll(lambda: sessions.top("workspaces", sessions.project["default_workspace_id"], "sent").exists(), what="the line")
    # Not without the box, with another token, with an action that is none, or for a session that is none.
    assert "was not stopped" in page.post(path, 400, action="stop", grace="0")
    assert "does not belong" in page.post(path, 403, action="stop", sure="yes", token="0" * 64)
    assert "no such action" in page.post(path, 400, action="explode")
    assert "seconds" in page.post(path, 400, action="stop", sure="yes", grace="x")
    assert "does not exist" in page.post(f"/session/{UNKNOWN}", 404, action="stop", sure="yes")
    assert sessions.get(session)["state"] == "running"
    assert page.post(path, action="stop", sure="yes", grace="10") == f"{path}?done=stopped"
    assert cordon("session", "wait", session).returncode == 143
    assert sessions.get(session)["state"] == "cancelled"
    html = page.get(f"{path}?done=stopped")
    assert "The session ends now." in html and '<span class="state quiet">cancelled</span>' in html and "Stop this session" not in html
    assert "does not run" in page.post(path, 409, action="send", line="late")
    calls = [(record["detail"]["tool"], record["success"]) for record in audit(cordon, session) if record["detail"].get("client") == "page"]
    assert calls == [("session_send", True), ("session_stop", False), ("session_stop", False), ("session_stop", True), ("session_send", False)], calls
    for wrong in (f"/session/{UNKNOWN}", f"/session/{session}/none", "/session/no-id"):
        assert page.raw("GET", wrong).status in (400, 404), wrong
    # Nobody gets there with a GET.
    assert sessions.get(session)["state"] == "cancelled" and page.raw("GET", f"{path}?action=send&line=x").status == 200


def test_a_host_is_allowed_now_and_a_path_from_the_next_start_on(sessions, page, box, cordon):
    sessions.create("--isolation", "--net", "example.org")
    data = box.mkdir("data")
    box.write("data/file", "text of the data\n")
    session = sessions.shell()
    path = f"/session/{session}"
    page_asks = page.get(f"{path}/allow?host=other.example:443&path=")
    assert 'value="other.example:443"' in page_asks and "widens" in page_asks
    assert 'value="&quot;&gt;&lt;script&gt;"' in page.get(f"{path}/allow?path=" + urllib.parse.quote('"><script>'))
    assert page.post(path, action="allow", host="other.example:443", path="", access="read", span="once") == f"{path}?done=session-allowed"
    assert "<code>other.example:443</code>" in page.get(path) and "other.example:443" in json.dumps(sessions.get(session))
    assert page.post(path, action="allow", host="other.example:443", span="once") == f"{path}?done=allowed-before"
    # A sandbox that runs does not get the path; the resumed one has it, and only for reading.
    assert page.post(path, action="allow", path=str(data), access="read", span="session") == f"{path}?done=session-allowed-later"
    assert "No such file" in sessions.say(session, f"cat {data}/file") and f"<code>{data}:ro</code>, whenever it is started" in page.get(path)
    sessions.ask("session", "stop", session)
    assert cordon("session", "wait", session).returncode == 143
    assert sessions.start()["session_id"] == session
    assert "text of the data" in sessions.say(session, f"cat {data}/file; echo z > {data}/file") and (data / "file").read_text() == "text of the data\n"
    assert f"shows <code>{data}</code>, read only" in page.get(path)
    # What can't be had this way, and forms that say nothing clear.
    workspace = sessions.top("workspaces", sessions.project["default_workspace_id"])
    for fields, status in (
        ({"path": str(box.state / "state")}, 403), ({"path": "relative"}, 400), ({"host": "a b"}, 400), ({"host": ""}, 400),
        ({"host": "a.example", "path": "/data"}, 400), ({"host": "a.example", "span": "ever"}, 400), ({"path": str(workspace)}, 403),
    ):
        assert 'role="alert"' in page.post(path, status, **({"action": "allow", "span": "once"} | fields)), fields
    grants = [record["detail"] for record in audit(cordon, session, "grant") if "for" in record.get("detail", {})]
    assert [(one.get("host") or one.get("share"), one["for"]) for one in grants] == [("other.example:443", "once"), (f"{data}:ro", "session")]


def test_a_session_in_a_view_and_its_children_are_linked(sessions, page):
    sessions.create("--cow", "--isolation")
    parent = sessions.shell()
    sessions.say(parent, "echo x > made")
    child = sessions.start("--parent", parent, command=["true"])["session_id"]
    html = page.get(f"/session/{parent}")
    assert f'href="/session/{child}"' in html and f'href="/session/{parent}"' in page.get(f"/session/{child}")
    view = json.loads(sessions.state(parent, "record.json").read_text())["view_id"]
    assert view and f'href="/changes/{view}"' in html


@pytest.mark.parametrize("size, filter", [(20_000_000, "| fold -w 99"), pytest.param(100_000_000, "", marks=pytest.mark.long)])
def test_a_flood_of_output_is_bounded(sessions, page, size, filter):
    sessions.create()
    fill = f"head -c {size} /dev/zero | tr '\\0' '<' {filter}"
    session = sessions.start(command=["sh", "-c", f"{fill}; echo; echo the-end"])["session_id"]
    page.get(f"/session/{session}")  # while it writes
    assert sessions.cordon("session", "wait", session, timeout=120).returncode == 0
    began = time.monotonic()
    html = page.get(f"/session/{session}")
    assert "the-end" in html and "The beginning is left out." in html and len(html) < 2_000_000 and "<<" not in html
    assert len(page.get(f"/session/{session}/output?since=3")) < 2_000_000
    assert time.monotonic() - began < 5
