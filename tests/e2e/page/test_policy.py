# SPDX-License-Identifier: Apache-2.0
"""What a policy says: why for paths and hosts, a search for names, and the tree, of projects, sessions, recorded runs and agents."""
import html
import json
import re
import urllib.parse

import pytest

from .test_session import UNKNOWN, assert_harmless

HOSTILE = "src/<script>alert(1) \"'\x1b[31m\u202eevil\nname"
AGENTS = {"agents": [{"name": "qa", "role": "qa", "scope": {"read": ["src/**"], "write": ["tests/**", "src/[a-b].ts"]}, "net": ["a.example.com"]}]}


def query(**fields):
    return "/access/policy?" + urllib.parse.urlencode(fields)


def answer(text):
    """The decision and the facts of an answer, as text."""
    found = re.search(r'<div id="answer".*?</div>', text, re.S)[0]
    facts = {label: html.unescape(re.sub(r"<[^>]*>", "", value)) for label, value in re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", found, re.S)}
    return re.search(r'<span class="state \w+">(\w+)</span> (\w+) ', found).groups(), facts


def nowhere(text):
    """A sentence without the place where the rule stands: the file has another one than an option."""
    return re.sub(r" \((--\w+|/[^()]*:\d+:\d+)\)", "", text)


def found(text):
    """What a search found: {path as it is shown: mark}."""
    section = re.search(r'<section id="find">.*?</section>', text, re.S)[0]
    return {html.unescape(name): mark for mark, name in re.findall(r'<li><span class="state \w+">(\w+)</span> <a [^>]*><code>(.*?)</code>', section, re.S)}


@pytest.fixture
def repo(box):
    made = box.repo(files={"src/a.ts": "", "src/deep/A.ts": "", "src/c.ts": "", "tests/t.py": "", "secret/key": "", "agents.json": json.dumps(AGENTS), HOSTILE: ""})
    box.link("repo/src/away", "/etc/passwd")
    return made


def test_why_and_search_say_what_the_command_line_says(repo, cordon, page):
    rules = ["--root", str(repo), "--rw", "tests/**", "--rw", "src/[a-b].ts", "--ro", "src/**", "--net", "a.example.com"]
    agent = {"repository": str(repo), "agent": "QA"}
    for asked, op in (("src/a.ts", None), ("src/c.ts", "write"), ("src/c.ts", "read"), ("secret/key", "read"), ("tests/new/x", None), ("agents.json", "write"),
                      (str(repo / "src/c.ts"), None), ("src/away", "read"), ("/etc", "write"), ("../x", "read"), ("a.example.com:443", None),
                      ("b.example.com:443", None), ("a.example.com", "connect"), (HOSTILE, "write"), ("<script>alert(1)</script>", "read")):
        text = page.get(query(**agent, ask=asked, **({"op": op} if op else {})))
        assert_harmless(text)
        told = cordon("why", *rules, *(["--op", op] if op else []), "--json", asked).json()
        (decision, how), facts = answer(text)
        assert (decision, how) == (told["decision"], told["op"]), (asked, told)
        assert facts.get("Rule", None) == told["rule"] or asked == "agents.json", (asked, facts)
        assert nowhere(facts["Because"]) == nowhere(told["because"]) or asked == "agents.json", (asked, facts)
    wrong = page.get(query(**agent, ask="not a host", op="connect"))
    assert 'role="alert"' in wrong and 'id="answer"' not in wrong
    # The search: everywhere, whatever case, and each name with what the agent may do there.
    text = page.get(query(**agent, find="a.TS"))
    assert found(text) == {"src/a.ts": "rw", "src/deep/A.ts": "ro"} and "2 found" in text
    assert found(page.get(query(**agent, find="secret/"))) == {"secret/key": "denied"}
    (name, mark), = found(page.get(query(**agent, find="evil"))).items()
    assert "\\e[31m\\u{202e}evil\\nname" in name and mark == "ro"
    assert "0 found" in page.get(query(**agent, find="nowhere")) and "/etc/passwd" in page.get(query(**agent, find="away"))
    for i in range(250):
        (repo / "src" / f"many{i}").touch()
    many = page.get(query(**agent, find="many"))
    assert len(found(many)) == 200 and "there are more names that were not looked at" in many
    lead = html.unescape(re.search(r'<a href="([^"]*ask=src%2Fdeep[^"]*)"', text)[1]).partition("#")[0]
    assert answer(page.get(lead))[0] == ("deny", "write")
    # The tree, and a directory of it.
    tree = page.get(query(**agent))
    assert_harmless(tree)
    assert re.search(r'<span class="state \w+">denied</span> <code>secret/', tree) and "<code>a.example.com:443</code>" in tree
    assert "not trusted" in tree
    opened = html.unescape(re.search(r'<a href="(/access/policy\?[^"]*path=tests[^"]*)"', tree)[1]).partition("#")[0]
    assert "<code>t.py</code>" in page.get(opened)


def test_policies_of_projects_sessions_views_and_jobs_are_asked(sessions, box, cordon, page, repo):
    sessions.create("--isolation", "--protect", "kept", "--net", "example.org")
    session = sessions.start("--new-session", command=["true"])["session_id"]
    sessions.ask("project", "update", sessions.project["id"], "--net", "other.example.org")
    project = {"project": sessions.project["id"]}
    for fields, allowed, denied in ((project, "other.example.org:443", "example.org:443"), ({"session": session}, "example.org:443", "other.example.org:443")):
        assert answer(page.get(query(**fields, ask="/workspace/kept/x")))[0] == ("deny", "write")
        assert answer(page.get(query(**fields, ask="/workspace/new")))[0] == ("allow", "write")
        assert answer(page.get(query(**fields, ask=allowed)))[0] == ("allow", "connect")
        assert answer(page.get(query(**fields, ask=denied)))[0] == ("deny", "connect"), "a session keeps what it started with"
    assert query(session=session).replace("&", "&amp;") in page.get(f"/session/{session}")
    # What a run in a view could do is recorded, apart from its hosts: about them nothing is said.
    assert cordon("run", "--cow", "--workspace", "src", "--workspace-mode", "strict", "--no-summary", "--net", "none", "--", "touch", "src/new", cwd=repo).returncode == 0
    view = next(path.name for path in (box.state / "state/views").iterdir())
    assert answer(page.get(query(view=view, ask="src/x")))[0] == ("allow", "write") and answer(page.get(query(view=view, ask="secret/key")))[0] == ("deny", "write")
    refused = page.get(query(view=view, ask="example.org:443"))
    assert "does not say which hosts" in refused and 'id="answer"' not in refused
    assert cordon("execute", "--agents", "qa", "--command", "true", cwd=repo).returncode == 0
    run = next(path.name for path in (box.state / "state/crew").iterdir() if not path.name.startswith("."))
    assert answer(page.get(query(run=run, job=0, ask="tests/x")))[0] == ("allow", "write") and answer(page.get(query(run=run, job=0, ask="secret/key")))[0] == ("deny", "write")
    assert answer(page.get(query(run=run, job=0, ask="a.example.com:443")))[0] == ("allow", "connect")
    assert answer(page.get(query(run=run, job=0, ask="b.example.com:443")))[0] == ("deny", "connect")
    # All of them can be chosen.
    chooser = page.get("/access/policy")
    for value in (sessions.project["id"], session, view):
        assert f'<option value="{value}">' in chooser
    for status, fields in ((404, {"project": UNKNOWN}), (404, {"session": UNKNOWN}), (404, {"view": UNKNOWN}), (404, {"run": UNKNOWN, "job": 0}), (404, {"run": run, "job": 7}),
                           (400, {"repository": "repo", "agent": "qa"}), (400, {"repository": str(repo)}), (404, {"repository": str(repo), "agent": "<script>alert(1)</script>"}),
                           (400, {"view": "../../x"}), (400, {"session": "<script>alert(1)</script>"}), (404, {"repository": str(box.path), "agent": "qa"})):
        assert_harmless(page.get(query(**fields), status))
