# SPDX-License-Identifier: Apache-2.0
"""PRD files: the commands that check them and answer questions, templates, and where their code comes from."""
import http.server
import json
import os
import re
import subprocess
import threading

import pytest

from support import TOP

PRD = {
    "project": "shop",
    "source_project": "../template",
    "userStories": [
        {"id": "US-001", "title": "Cart", "passes": True},
        {"id": "US-002", "title": "Pay\x1b[31m", "dependencies": ["US-001"], "priority": 2},
        {"id": "US-003", "title": "Ship", "dependencies": ["US-002"]},
        {"id": "US-004", "title": "Search", "priority": 1},
    ],
}


@pytest.fixture
def prd(box):
    box.write("work/prd.json", json.dumps(PRD))
    return box.path / "work"


def test_prd_validate_counts_stories_and_tells_of_mistyped_keys(cordon, box, prd):
    done = cordon("prd", "validate", cwd=prd)
    assert (done.returncode, done.stdout, done.stderr) == (0, "PRD valid (4 stories, 1 passed)\n", ""), done
    told = cordon("prd", "validate", "--json", "prd.json", cwd=prd)
    assert told.json() == {"valid": True, "project": "shop", "stories": 4, "passed": 1, "ready": 2, "notices": []}
    box.write("work/typo.json", '{"project": "p", "userStories": [], "branchname": "x", "own": 1}')
    done = cordon("prd", "validate", "typo.json", cwd=prd)
    assert done.returncode == 0 and done.stderr == (
        "[INFO] typo.json:1:37: 'branchname' is not a key of a PRD and has no effect; did you mean 'branchName'?\n"
    )


def test_prd_validate_reports_all_errors_at_once(cordon, box, prd):
    box.write(
        "work/bad.json",
        '{"project": "", "userStories": [\n {"id": "A", "title": "t", "dependencies": ["B"]},\n {"id": "A", "priority": 1.5}]}',
    )
    done = cordon("prd", "validate", "bad.json", cwd=prd)
    assert done.returncode == 1 and done.stdout == ""
    assert [line.split(" ")[1] for line in done.stderr.splitlines()] == [
        "bad.json:1:13:",
        "bad.json:2:45:",
        "bad.json:3:2:",
        "bad.json:3:9:",
        "bad.json:3:26:",
    ], done
    for name in ("missing.json", "."):
        assert cordon("prd", "validate", name, cwd=prd).returncode == 1
    box.link("work/link.json", "prd.json")
    assert "is a symbolic link" in cordon("prd", "validate", "link.json", cwd=prd).stderr
    assert cordon("prd", "validate", "a", "b", cwd=prd).returncode == 2


def test_prd_ready_is_ordered_and_safe_to_print(cordon, prd):
    done = cordon("prd", "ready", cwd=prd)
    assert (done.returncode, done.stdout) == (0, "US-004  Search\nUS-002  Pay\\e[31m\n"), done
    assert cordon("prd", "ready", "--quiet", cwd=prd).stdout == "US-004\nUS-002\n"
    assert [story["priority"] for story in cordon("prd", "ready", "--json", cwd=prd).json()] == [1, 2]


def test_prd_deps_names_what_a_story_needs(cordon, prd):
    done = cordon("prd", "deps", "US-003", cwd=prd)
    assert done.stdout == "US-001  passed  Cart\nUS-002  open    Pay\\e[31m\n", done
    assert cordon("prd", "deps", "US-002", "prd.json", "--json", cwd=prd).json() == {
        "id": "US-002",
        "dependencies": ["US-001"],
        "all": ["US-001"],
        "open": [],
        "dependents": ["US-003"],
    }
    done = cordon("prd", "deps", "US-03", cwd=prd)
    assert done.returncode == 1 and "did you mean US-003?" in done.stderr


def test_prd_check_cycles_prints_each_circle(cordon, box, prd):
    assert (lambda done: (done.returncode, done.stdout))(cordon("prd", "check-cycles", cwd=prd)) == (0, "")
    stories = [
        {"id": "A", "title": "t", "dependencies": ["B"]},
        {"id": "B", "title": "t", "dependencies": ["A"]},
        {"id": "C", "title": "t", "dependencies": ["C"]},
    ]
    box.write("work/circle.json", json.dumps({"project": "p", "userStories": stories}))
    done = cordon("prd", "check-cycles", "circle.json", cwd=prd)
    assert (done.returncode, done.stdout, done.stderr) == (1, "A -> B -> A\nC -> C\n", "")
    assert cordon("prd", "check-cycles", "--json", "circle.json", cwd=prd).json() == {"cycles": [["A", "B"], ["C"]]}
    assert "stories depend on each other: A -> B -> A" in cordon("prd", "validate", "circle.json", cwd=prd).stderr


def test_prd_schema_has_the_keys_that_the_reader_knows(cordon, box, prd):
    schema = cordon("prd", "schema", cwd=prd).json()
    story = schema["properties"]["userStories"]["items"]["properties"]
    source = (TOP / "src/config/prd_read.c").read_text()
    for key in (*schema["properties"], *story, *schema["properties"]["workspace"]["properties"]):
        assert f'{{ "{key}",' in source, key
    assert len(re.findall(r'\{ "\w+", (?:read_\w+|NULL), ', source)) == sum(
        len(part)
        for part in (
            schema["properties"],
            story,
            schema["properties"]["workspace"]["properties"],
            schema["properties"]["parallelization"]["properties"],
        )
    )


# ---- templates ----


def test_templates_fill_strings_and_nothing_else(cordon, box, prd):
    template = '{"project": "{{name}}", "own{{x}}": 1.50,\n  "userStories": [{"id": "US-1", "title": "Do {{ what }} in {{name}} {{ {{}}"}]}\n'
    box.write("state/templates/web.json", template)
    nasty = '","evil":"\\u0000\n\x1b ü'
    done = cordon("prd", "new", "--template", "web", "--set", f"name={nasty}", "--set", "what={{name}}", cwd=prd)
    # A control character is no name of a project, and what was made is checked like any other PRD.
    assert done.returncode == 1 and "must not have control characters" in done.stderr and done.stdout == ""
    done = cordon("prd", "new", "--template", "web", "--set", "name=a\",\"b\\", "--set", "what={{name}}\n=", cwd=prd)
    assert done.returncode == 0, done
    made = json.loads(done.stdout)
    assert made["project"] == 'a","b\\' and made["userStories"][0]["title"] == 'Do {{name}}\n= in a","b\\ {{ {{}}'
    assert done.stdout.startswith('{"project": "a\\",\\"b\\\\", "own{{x}}": 1.50,\n  "userStories"')


def test_templates_miss_no_variable(cordon, box, prd):
    box.write("state/templates/web.json", '{"project": "{{a}}{{b}}",\n "userStories": [], "x": "{{c}}"}')
    done = cordon("prd", "new", "--template", "web", "--set", "c=1", cwd=prd)
    assert done.returncode == 1 and done.stdout == ""
    assert [":1:13: the variable 'a'" in done.stderr, ":1:13: the variable 'b'" in done.stderr] == [True, True], done
    for arguments, words in (
        (["--set", "a=1", "--set", "b=1", "--set", "c=1", "--set", "d=1"], "has no variable 'd'"),
        (["--set", "a"], "is not NAME=VALUE"),
        (["--set", "a=1", "--set", "a=2"], "given twice"),
        (["--set", "1a=1"], "is not NAME=VALUE"),
    ):
        done = cordon("prd", "new", "--template", "web", *arguments, cwd=prd)
        assert done.returncode == 2 and words in done.stderr, done
    for name, words in (("nope", "there is no template 'nope'"), ("../x", "the name of a template"), ("", "the name of a template")):
        done = cordon("prd", "new", "--template", name, cwd=prd)
        assert done.returncode in (1, 2) and words in done.stderr, done
    box.link("state/templates/link.json", "web.json")
    assert cordon("prd", "new", "--template", "link", cwd=prd).returncode == 1


# ---- sources ----


def test_get_source_prints_source_project_or_nothing(cordon, box, prd):
    assert (lambda done: (done.returncode, done.stdout))(cordon("get-source", "prd.json", cwd=prd)) == (0, "../template\n")
    box.write("work/none.json", '{"project": "p", "userStories": [], "source_project": null}')
    assert (lambda done: (done.returncode, done.stdout))(cordon("get-source", "none.json", cwd=prd)) == (0, "")
    assert cordon("get-source", "none.json", "--json", cwd=prd).json() == {"source_project": None}
    box.write("work/bad.json", '{"project": "p", "userStories": [], "source_project": ""}')
    assert cordon("get-source", "bad.json", cwd=prd).returncode == 1


@pytest.fixture
def source(box):
    """A repository whose owner would like to execute something: hooks, filters, submodules, links."""
    repo = box.repo("source", files={"a.txt": "hello\n", "b.f": "x\n", ".gitattributes": "*.f filter=evil\n"})
    box.link("source/escape", "/etc")
    mark = box.path / "executed"
    script = box.write("source/.git/hooks/post-checkout", f"#!/bin/sh\ntouch {mark}\n", mode=0o755)
    box.write("source/.git/hooks/post-upload-pack", f"#!/bin/sh\ntouch {mark}\n", mode=0o755)
    for key, value in (
        ("filter.evil.smudge", str(script)),
        ("uploadpack.packObjectsHook", str(script)),
        ("core.fsmonitor", str(script)),
        ("core.hooksPath", str(script.parent)),
    ):
        box.run("git", "-C", repo, "config", key, value)
    box.write("source/.gitmodules", f'[submodule "s"]\n\tpath = s\n\turl = ext::touch {mark}\n')
    for command in (("add", "-A"), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one", "--no-verify")):
        done = box.run("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-C", repo, *command)
        assert done.returncode == 0, done
    if mark.exists():
        mark.unlink()
    return repo, mark


def test_clone_source_clones_and_executes_nothing_of_the_source(cordon, box, source):
    repo, mark = source
    done = cordon("clone-source", str(repo), "copy", cwd=box.path)
    assert done.returncode == 0, done
    copy = box.path / "copy"
    assert (copy / "a.txt").read_text() == "hello\n" and os.readlink(copy / "escape") == "/etc"
    assert not mark.exists() and not (copy / ".git" / "hooks").exists() and not (copy / "s" / ".git").exists()
    assert copy.stat().st_uid == box.who.uid
    url = subprocess.run(["git", "-c", "safe.directory=*", "-C", copy, "config", "remote.origin.url"], capture_output=True, text=True, check=True)
    assert url.stdout.strip() == str(repo)
    # An empty directory is filled; one that holds something, a file and a link are left alone.
    box.mkdir("empty")
    assert cordon("clone-source", f"file://{repo}", "empty/", cwd=box.path).returncode == 0
    assert (box.path / "empty" / "a.txt").exists()
    box.write("full/x", "mine")
    box.link("link", "full")
    for name in ("full", "full/x", "link", "copy", "."):
        done = cordon("clone-source", str(repo), name, cwd=box.path)
        assert done.returncode in (1, 2), done
    assert os.listdir(box.path / "full") == ["x"]
    assert not [name for name in os.listdir(box.path) if name.startswith(".cordon")]


def test_clone_source_borrows_no_objects_of_another_repository(cordon, box, source):
    """A source that an agent wrote may name the objects of any repository, which git in the clone would read on the host."""
    repo, _ = source
    secret = box.mkdir("secret")
    script = "git init -q; echo secret >s; git add s; git -c user.name=a -c user.email=a@b commit -q -m s"
    assert box.run("sh", "-ec", script, cwd=secret).returncode == 0
    box.write(repo / ".git/objects/info/alternates", f"{secret}/.git/objects\n")
    done = cordon("clone-source", str(repo), "copy", cwd=box.path)
    assert done.returncode == 0, done
    assert not (box.path / "copy/.git/objects/info/alternates").exists()
    assert (box.path / "copy" / "a.txt").read_text() == "hello\n"


HOSTILE = {
    "ext::sh -c 'touch executed'": 2,
    "fd::7": 2,
    "--upload-pack=touch executed": 2,
    "-x": 2,
    "": 2,
    "git@example.com:a/b": 2,
    "ssh://example.com/a": 2,
    "ftp://example.com/a": 2,
    "https://name:password@example.com/a": 2,
    "https:///a": 2,
    "https://-x/a": 2,
    "missing": 1,
    "a\nb": 2,
}


def test_clone_source_refuses_hostile_sources(cordon, box):
    before = sorted(os.listdir(box.path))
    for address, status in HOSTILE.items():
        done = cordon("clone-source", "--", address, "copy", cwd=box.path)
        assert done.returncode == status and done.stderr.count("\n") == 1, done
        assert sorted(os.listdir(box.path)) == before


def test_clone_source_fails_with_a_status_when_git_does(cordon, box):
    box.mkdir("plain")
    done = cordon("clone-source", "plain", "copy", cwd=box.path)
    assert done.returncode == 1 and "cannot clone plain: fatal:" in done.stderr, done
    assert not (box.path / "copy").exists()
    assert cordon("clone-source", "plain", "no/where/copy", cwd=box.path).returncode == 1


def test_clone_source_over_http_reaches_that_host_alone(cordon, box, source):
    """A server that sends a redirect to another one: git may not follow it."""
    repo, _ = source
    subprocess.run(["git", "-c", "safe.directory=*", "-C", repo, "update-server-info"], check=True)
    other_asked = []

    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            other_asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_):
            pass

    class Files(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(repo / ".git"))

        def do_GET(self):
            if self.path.startswith("/moved"):
                self.send_response(302)
                self.send_header("Location", f"http://127.0.0.1:{other.server_port}{self.path}")
                self.end_headers()
            else:
                super().do_GET()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files) as files, http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other) as other:
        for server in (files, other):
            threading.Thread(target=server.serve_forever, daemon=True).start()
        done = cordon("clone-source", f"http://127.0.0.1:{files.server_port}/", "copy", cwd=box.path)
        assert done.returncode == 0, done
        assert (box.path / "copy" / "a.txt").read_text() == "hello\n"
        done = cordon("clone-source", f"http://127.0.0.1:{files.server_port}/moved", "other", cwd=box.path)
        assert done.returncode == 1 and not other_asked and not (box.path / "other").exists(), done
        files.shutdown()
        other.shutdown()
