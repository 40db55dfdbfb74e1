# SPDX-License-Identifier: Apache-2.0
"""Performance: what cordon itself cost in runs, as charts and as a table with the same numbers."""
import html
import json
import re


def rows(text):
    """The table: {first characters of a run: {column: text}}."""
    found = {}
    for run, cells in re.findall(r'<tr><th scope="row"><a href="/audit\?run=([^"]*)">.*?</th>(.*?)</tr>', text, re.S):
        found[run] = {label: html.unescape(re.sub(r"<[^>]*>", "", cell)) for label, cell in re.findall(r'<td data-label="([^"]*)">(.*?)</td>', cells, re.S)}
    return found


def test_charts_and_table_have_the_numbers_of_the_command(box, cordon, page):
    assert "No such run was measured yet" in page.get("/performance")
    repo = box.repo(files={"lib/a.ts": "x", "src/b.ts": "x"})
    for options in (["--workspace", "lib"], ["--rw", "lib/**/*.ts", "--ro", "**"], ["--net", "a.example.com"], None):
        arguments = ["--metrics", str(box.path / "m.json"), *options] if options else []
        done = cordon("run", "--root", str(repo), *arguments, "--", "sh", "-c", "cat lib/a.ts src/b.ts; (: >lib/x.sh) 2>/dev/null; true")
        assert done.returncode == 0, done
    records = [json.loads(line) for line in cordon("audit", "--json", "--kind", "end").stdout.splitlines()]
    assert len(records) == 4
    text = page.get("/performance")
    table = rows(text)
    assert list(table) == [record["session_id"] for record in reversed(records[:3])], "newest first, and only what was measured"
    measured = {record["session_id"]: record["detail"]["metrics"] for record in records[:3]}
    for run, cells in table.items():
        stats = cordon("stats", run, "--json").json()
        assert [stats[key] for key in ("startup_ms", "overhead_ms")] == [measured[run][key] for key in ("startup_ms", "overhead_ms")]
        assert cells["Start"] == f"{stats['startup_ms']:.1f} ms" and cells["Overhead"] == f"{stats['overhead_ms']:.1f} ms"
        assert cells["Boundary"] == f"{stats['mounts']} mounts, {stats['landlock_rules']} rules"
        assert cells["Watch"] == f"{stats['watch']['events']} calls, {stats['watch']['dropped']} only counted"
        assert cells["Decisions"].startswith(f"{stats['decide']['calls']} calls, {stats['decide']['ns_p50']} ns")
        assert cells["Memory"] == f"{stats['helper_rss_bytes'] / (1 << 20):.1f} MiB"
        assert cells["Lens"].startswith(f"{stats['lens']['lookups']} look-ups, {stats['lens']['denied']} refused" if stats["lens"] else "–")
        assert cells["Network"].startswith("0 connections, 0 refused" if stats["net"] else "–")
    # One chart for each kind of cost, drawn here and not by script, and the same in words.
    assert text.count("<svg") == 8 and text.count("<desc>") == 8 and 'style="' not in text
    start = sorted(cordon("stats", run, "--json").json()["startup_ms"] for run in table)
    chart = re.search(r"<h3>Start</h3>.*?</li>", text, re.S)[0]
    assert f"Median {start[1]:.1f} ms, highest {start[2]:.1f} ms, in 3 of 3 runs" in html.unescape(chart) and chart.count("<rect") == 3
    assert "in 1 of 3 runs" in re.search(r"<h3>Lens</h3>.*?</li>", text, re.S)[0]
    only = records[1]["session_id"]
    assert list(rows(page.get(f"/performance?run={only[:8]}"))) == [only]
    assert "No such run was measured yet" in page.get("/performance?since=0s")
    for query in ("run=%3Cscript%3E", "since=%3Cscript%3E"):
        assert "<script>" not in page.get("/performance?" + query, 400).replace("<script src", "")
