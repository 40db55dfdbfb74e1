# SPDX-License-Identifier: Apache-2.0
"""Audit: the filter, the time line, the records, the export, and whether the log is whole."""
import concurrent.futures
import html
import json
import os
import pathlib
import re
import time
import urllib.parse

import pytest

from support import PATIENCE, built_executable, command_line, descendants

HOSTILE = b"docs/<script>alert(1)\"'\x1b[31m\xe2\x80\xae\nevil"


class Log:
    """Writes to the log as runs do, with a program of the tests."""

    def __init__(self, box):
        self.box = box
        self.dir = box.state / "state" / "audit"
        self.program = box.write("audit_writer", (built_executable().parent / "tests" / "audit_writer").read_bytes(), mode=0o755)

    def write(self, run, event, path=None, count=1, rotate=0):
        extra = (["--path", path] if path else []) + (["--rotate", str(rotate), "--keep", "50"] if rotate else [])
        done = self.box.run(str(self.program), "--run", run, "--event", event, "--count", str(count), *extra, timeout=600)
        assert done.returncode == 0, done


@pytest.fixture
def log(box):
    return Log(box)


def numbers(text):
    """The numbers of the records that a page shows."""
    return [int(n) for n in re.findall(r'<td data-label="Number" class="number">(\d+)</td>', text)]


def plain(text):
    return html.unescape(re.sub(r"<[^>]*>", "", text))


def exported(page, query=""):
    answer = page.raw("GET", "/audit/export" + query)
    assert answer.status == 200 and answer.headers["content-type"] == "application/x-ndjson", answer
    assert "cordon-audit.jsonl" in answer.headers["content-disposition"]
    return [json.loads(line) for line in answer.body.splitlines()]


def test_calls_of_clients_have_a_log_of_their_own(box, cordon, page, log):
    log.write("run-1", "grant", "x")
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    calls = [{"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "project_list", "arguments": {}, "_meta": meta}} for number in range(3)]
    assert cordon("mcp", input="".join(json.dumps(call) + "\n" for call in calls)).stdout.count('"total":0') == 3
    text = page.get("/audit?log=calls")
    assert numbers(text) == [3, 2, 1] and plain(text).count("project_list") >= 3
    assert "project_list" not in plain(page.get("/audit?event=call")) and 'value="calls"' in text
    assert [record["detail"]["tool"] for record in exported(page, "?log=calls")] == ["project_list"] * 3
    assert "were checked" in plain(page.get("/audit/check?log=calls"))


def test_records_of_real_runs_are_those_of_the_command(box, cordon, page):
    repo = box.repo(files={"lib/a": "", "docs/b": ""})
    evil = os.fsdecode(HOSTILE)
    done = cordon("run", "--root", str(repo), "--workspace", "lib", "--workspace-mode", "strict", "--", "sh", "-c", 'cat docs/b; touch lib/c "$1"; true', "sh", evil)
    assert done.returncode == 0, str(done)
    text = page.get("/audit")
    assert "<script>alert" not in text and "\x1b" not in text and "\u202e" not in text
    assert "&lt;script&gt;alert(1)" in text and "\\u{202e}" in text and "\\e[31m" in text
    told = [json.loads(line) for line in cordon("audit", "--json").stdout.splitlines()]
    assert numbers(text) == [record["seq"] for record in reversed(told)] and len(told) > 3
    assert exported(page) == told[::-1]
    for query, options in (
        ("event=violation", ["--kind", "violation"]),
        ("decision=deny", ["--decision", "deny"]),
        ("path=docs%2Fb", ["--path", "docs/b"]),
        ("path=" + urllib.parse.quote("'\x1b[31m\u202e"), ["--path", "'\x1b[31m\u202e"]),
        ("run=" + told[0]["session_id"][:8], ["--run", told[0]["session_id"][:8]]),
        ("since=1h&until=0s", ["--since", "1h", "--until", "0s"]),
        ("until=1h", ["--until", "1h"]),
        ("since=" + told[2]["time"], ["--since", told[2]["time"]]),
        ("agent=nobody", ["--agent", "nobody"]),
    ):
        want = [json.loads(line) for line in cordon("audit", "--json", *options).stdout.splitlines()]
        got = page.get("/audit?" + query)
        assert numbers(got) == [record["seq"] for record in reversed(want)], query
        assert exported(page, "?" + query) == want[::-1], query
        refused = sum(record.get("decision") == "deny" for record in want)
        assert f"{len(want)} record" in plain(got) and f"of which {refused} w" in plain(got), query
    # Each record has all that the log has of it, and the time line the same numbers as its table.
    violation = next(record for record in told if record["event"] == "violation")
    shown = re.search(rf"Details of record {violation['seq']}</summary><dl>(.*?)</dl>", text, re.S)[1]
    assert all(f"<dt>{key}</dt>" in shown for key in violation if key != "detail") and violation["prev"] in shown
    assert sum(map(int, re.findall(r'</th><td class="number">(\d+)</td>', text))) == len(told)
    assert "<svg" in text and "<desc>" in text and 'style="' not in text
    assert re.search(r'class="state good">whole</span> \d+ records were checked, number 1 to', text)
    for query in ("run=abc", "decision=never", "event=nothing", "since=tomorrow", "before=x", "until=%3Cb%3E"):
        bad = page.get("/audit?" + query, 400)
        assert 'role="alert"' in bad and "<b>" not in bad and "<h2>Records</h2>" not in bad
        assert page.raw("GET", "/audit/export?" + query).status == 400


def test_pages_lead_to_all_records_and_each_is_shown_once(log, page):
    log.write("aaaa-1", "grant", count=120, rotate=8000)
    log.write("bbbb-2", "refusal", path="x", count=7)
    seen, path = [], "/audit?run=aaaa"
    while path:
        text = page.get(path)
        seen += numbers(text)
        following = re.search(r'<a rel="next" href="([^"]*)">Older records', text)
        path = html.unescape(following[1]) if following else None
        assert not path or "Newest records" in page.get(path)
    assert len(seen) == 120 and seen == sorted(set(seen), reverse=True)
    only = page.get("/audit?event=refusal")
    assert "7 records match, of which 7 were refused" in plain(only)
    # A bar of the time line leads to its records.
    leads = [html.unescape(found) for found in re.findall(r'<th scope="row"><a href="(/audit\?[^"]*)">', only)]
    assert leads and sum(len(numbers(page.get(lead))) for lead in leads) == 7


def test_a_log_that_is_not_whole_is_called_broken(log, page):
    log.write("aaaa-1", "grant", path="a", count=5)
    current = log.dir / "audit.jsonl"
    lines = current.read_bytes().splitlines(keepends=True)
    current.write_bytes(b"".join([lines[0], lines[1].replace(b'"a"', b'"b"'), b"<script>alert(1)</script>\n", *lines[2:]]))
    for path in ("/audit", "/audit/check", "/audit/check?files=3"):
        text = page.get(path)
        assert 'class="state bad">broken</span>' in text and "<script>alert" not in text and "audit.jsonl:" in text, path
    assert [record["seq"] for record in exported(page)] == [5, 4, 3, 2, 1]
    assert [record["seq"] for record in exported(page, "?before=4")] == [3, 2, 1]
    assert page.raw("GET", "/audit/check?files=no").status == 400


def test_a_log_that_is_large_is_checked_when_somebody_asks(log, page):
    log.write("aaaa-1", "grant", path="x" * 3000, count=900, rotate=1 << 20)
    text = page.get("/audit")
    assert "Is the log whole?" in text and "were checked" not in text and "/audit/check?files=2" in text
    newest, every = page.get("/audit/check?files=2"), page.get("/audit/check")
    assert "whole as far as checked" in newest and "What is older was not checked" in newest and "number 1 to" not in newest
    assert re.search(r'class="state good">whole</span> 90\d records were checked, number 1 to 90\d', every)
    assert len(exported(page)) > 900


def memory_of_pages(pid, ask):
    """What the largest process that made a page had in memory while somebody asked, in bytes; and the answer."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        answer, most = pool.submit(ask), 0
        while not answer.done():
            for child in descendants(pid):
                try:
                    most = max(most, int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{child}/status").read_text())[1]) * 1024)
                except (FileNotFoundError, ProcessLookupError, TypeError):
                    pass  # it has ended
            time.sleep(0.005)
    return most, answer.result()


@pytest.mark.soak
@pytest.mark.limit(900)
def test_a_log_of_its_full_size_is_searched_in_bounded_time_and_memory(log, page):
    """Fifteen files of 64 MiB and the current one: a page answers within its bounds, says so, and goes on from there."""
    log.write("aaaa-1", "refusal", path="needle")
    log.write("bbbb-2", "grant", path="x" * 3500, count=270000)
    assert len(list(log.dir.glob("*.jsonl"))) >= 14
    server = next(pid for pid in descendants() if "cordon-serve" in command_line(pid))
    path, pages = "/audit?path=needle", 0
    while True:
        began = time.monotonic()
        most, text = memory_of_pages(server, lambda: page.get(path))
        assert time.monotonic() - began < 15 * PATIENCE and most < 32 << 20, most
        if numbers(text):
            break
        assert "what is older was not counted" in plain(text) and "None was found so far" in text
        path = html.unescape(re.search(r'<a rel="next" href="([^"]*)">Go on', text)[1])
        pages += 1
        assert pages < 100
    assert numbers(text) == [1]
    assert numbers(page.get("/audit"))[0] > 270000
    most, text = memory_of_pages(server, lambda: page.get("/audit/check?files=2"))
    assert "was not checked" in text and most < 32 << 20
    answer = page.raw("GET", "/audit/export?run=aaaa")
    assert [json.loads(line)["seq"] for line in answer.body.splitlines()] == [1]
