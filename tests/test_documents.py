# SPDX-License-Identifier: Apache-2.0
"""Examples in the documents are run, and print what the documents say.

In README.md and docs/*.md a fenced block is run when its first line is ```console (lines after "$ " are commands, the
lines below them what they print; a line "..." stands for any lines) or ```sh test (must succeed). The blocks of one
document share one copy of the sample repository of scripts/demo, at /home/you/project as far as they can see.

The commands in the EXAMPLES of manual pages are run in another, which has a Makefile.
"""
import json
import os
import pty
import re

import pytest

from support import TOP, manual, poll

FENCE = re.compile(r"^```(\w+)[ \t]*(\w*)[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
SHOWN_HOME = "/home/you"


def runnable(path):
    """The blocks of a document that are to be run, as (kind, text, line)."""
    text = path.read_text()
    found = []
    for block in FENCE.finditer(text):
        kind, mark, body = block.groups()
        if kind == "console" or (kind == "sh" and mark == "test"):
            found.append((kind, body, text.count("\n", 0, block.start()) + 1))
    return found


DOCUMENTS = [path for path in (TOP / "README.md", *sorted((TOP / "docs").glob("*.md"))) if path.exists() and runnable(path)]


def exchanges(body):
    """(command, expected output) pairs of a console block; a command goes on in lines that begin with "> "."""
    pairs = []
    for line in body.splitlines():
        if line.startswith("$ "):
            pairs.append(([line[2:]], []))
        elif line.startswith("> ") and pairs and not pairs[-1][1]:
            pairs[-1][0].append(line[2:])
        else:
            assert pairs, f"output before the first command: {line}"
            pairs[-1][1].append(line)
    return [("\n".join(command), expected) for command, expected in pairs]


def matches(expected, printed):
    """Whether the printed lines are the expected ones, "..." standing for any number of lines."""
    pattern = "".join(r"(?:.*\n)*" if line == "..." else re.escape(line) + r"\n" for line in expected)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


@pytest.fixture
def demo(box):
    """The tour, where the caller can reach it."""
    return box.write("demo", (TOP / "scripts" / "demo").read_text(), mode=0o755)


@pytest.fixture
def project(box, demo):
    made = box.run(demo, "--sample", box.path / "project")
    assert made.returncode == 0, made
    return box.path / "project"


def test_there_are_examples():
    assert TOP / "README.md" in DOCUMENTS


def test_a_wrong_example_would_be_noticed():
    assert matches(["a", "...", "c"], ["a", "b", "b", "c"]) and not matches(["a", "...", "c"], ["a", "b"])
    assert not matches(["a"], ["a", "b"]) and matches([], []) and not matches([], ["x"])
    assert exchanges("$ one \\\n> two\nout\n$ three\n") == [("one \\\ntwo", ["out"]), ("three", [])]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_examples_print_what_the_document_says(document, box, project):
    env = {"PATH": f"{box.bin}:/usr/local/bin:/usr/bin:/bin", "NO_COLOR": "1"}
    for kind, body, line in runnable(document):
        place = f"{document.name}:{line}"
        if kind == "sh":
            done = box.run("sh", "-eu", "-c", body, cwd=project, env=env)
            assert done.returncode == 0, f"{place}: {done}"
            continue
        for command, expected in exchanges(body):
            done = box.run("sh", "-c", f"exec 2>&1\n{command}", cwd=project, env=env)
            printed = done.stdout.replace(str(box.path), SHOWN_HOME).splitlines()
            assert matches(expected, printed), f"{place}: $ {command}\n" + "\n".join(printed)


# What an example of a manual page ends with when that is not success.
STATUS = {
    "cordon check --rw src --ro docs src/new/file.c docs/guide.md": 1,
    "cordon check --workspace lib,src --deny '**/.env' lib/a.ts lib/.env": 1,
}
FOLLOWS = "cordon audit --follow --run 9d1c20aa"  # has no end


def manual_commands(page):
    """The commands among the examples of a page: lines after "$ ", and literal blocks that begin with cordon."""
    section = re.search(r"^\.Sh EXAMPLES\n(.*?)(?=^\.Sh )", page.read_text(), re.MULTILINE | re.DOTALL)
    if not section:
        return []
    found = re.findall(r"^\.Dl \$ (.*)$|^\.Bd -literal.*\n(cordon (?:.*\n)*?)\.Ed$", section.group(1), re.MULTILINE)
    return [(line or block.rstrip("\n")).replace(r"\-", "-").replace(r"\(dq", '"').replace(r"\e", "\\") for line, block in found]


MANUAL = {page.name: commands for page in sorted((TOP / "man").glob("*.[1-8]")) if (commands := manual_commands(page))}


@pytest.mark.parametrize("page", MANUAL)
def test_examples_of_the_manual_work(page, box, cordon, project):
    (project / "cordon.yaml").unlink()  # the examples make their own
    box.write("project/Makefile", "test:\n\t@cp lib/math.ts src/copy.ts && echo tested\n")
    cordon("run", "--workspace", "lib", "--workspace-mode", "strict", "--", "cat", "docs/notes.md", cwd=project)  # for the log
    if page == "cordon-git.1":
        commit = "git -c user.name=a -c user.email=a@example.org commit -q -m"
        made = box.run("sh", "-ec", f"git init -q; git add lib; {commit} one; echo >lib/new; git add lib; {commit} two", cwd=project)
        assert made.returncode == 0, str(made)
    made = cordon("project", "create", "examples", "--isolation", "--json", "--", "cat")
    env = {"PATH": f"{box.bin}:/usr/local/bin:/usr/bin:/bin", "NO_COLOR": "1", "PROJECT": made.json()["id"]}
    for command in MANUAL[page]:
        if command == FOLLOWS:
            done = box.run("timeout", "--preserve-status", "-s", "INT", "1", "bash", "-c", f"exec {command}", cwd=project, env=env)
            assert done.returncode == 0 and done.stderr == "", str(done)
            continue
        done = box.run("bash", "-c", command, cwd=project, env=env)
        assert done.returncode == STATUS.get(command, 0), str(done)
        assert "make test" not in command or done.stdout == "tested\n", str(done)


def test_the_manual_has_the_examples_that_are_waited_for():
    commands = [command for page in MANUAL.values() for command in page]
    assert len(commands) > 15 and {*STATUS, FOLLOWS} <= set(commands)


def test_the_example_of_a_policy_file_and_its_error_are_as_the_manual_says(box, cordon, project):
    text = manual("cordon.yaml.5").read_text()
    policy = re.search(r"^\.Bd -literal.*\n(version: 1\n(?:.*\n)*?)\.Ed$", text, re.MULTILINE).group(1)
    box.write("project/cordon.yaml", policy)
    box.mkdir("project/tests")
    asked = {"lib/new.ts": "allow", "docs/deep/a.md": "allow", "docs/a.txt": "deny", "lib/.env": "deny", "secrets/key": "deny", "AGENTS.md": "deny"}
    done = cordon("check", "--policy", "cordon.yaml", *asked, cwd=project)
    assert done.stdout == "".join(f"{verdict} {name}\n" for name, verdict in asked.items()), str(done)
    assert cordon("check", "--policy", "cordon.yaml", "--op", "read", "docs/a.txt", cwd=project).stdout == "allow docs/a.txt\n"
    error = re.search(r"^\.Dl (cordon\.yaml:5:13: .*)$", text, re.MULTILINE).group(1)
    box.write("project/cordon.yaml", "version: 1\n\n\n\nrw: [a, src/**.ts]\n")
    done = cordon("check", "--policy", "cordon.yaml", "a", cwd=project)
    assert done.returncode == 1 and done.stdout == "" and error in done.stderr, str(done)


def test_the_manual_knows_every_key_of_a_policy_file(box, cordon, project):
    page = manual("cordon.yaml.5").read_text()
    told = set(re.findall(r"^\.It Ic (\w+) :", page, re.MULTILINE))
    box.write("project/cordon.yaml", "version: 1\nqqqqqqqqqq: 1\n")
    known = re.search("known are ([a-z_, ]+)", cordon("check", "--policy", "cordon.yaml", "a", cwd=project).stderr)
    assert known and set(known.group(1).split(", ")) == told


def test_events_of_the_log_are_the_same_in_all_documents(cordon):
    listed = set(json.loads((TOP / "docs/audit-schema.json").read_text())["properties"]["event"]["enum"])
    page = (TOP / "man/cordon-audit.1").read_text()
    told = page[page.index(".It Fl -kind"):page.index(".It Fl -run")]
    assert set(re.findall(r"^\.Cm (\w+)", told, re.MULTILINE)) == listed
    section = (TOP / "docs/audit.md").read_text().split("## What is recorded", 1)[1].split("\n## ", 1)[0]
    assert {name for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)} == listed
    refused = cordon("audit", "--kind", "nothing")
    assert refused.returncode == 2 and set(refused.stderr.split("there are: ")[1].split()) == listed
    assert cordon("audit", "--kind", ",".join(sorted(listed))).returncode == 0


def test_the_readme_is_two_screens_with_three_commands():
    text = (TOP / "README.md").read_text()
    assert text.count("\n") <= 90
    sections = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert sections == ["See it in 30 seconds", "Run your agent in it", "Where to go on"]
    assert all(f"make {target}" in text for target in ("demo", "test", "install"))


LINKED = (*sorted(TOP.glob("*.md")), TOP / "tests/README.md", *sorted((TOP / "docs").glob("*.md")))


def test_links_between_documents_lead_somewhere():
    for path in LINKED:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_files_that_documents_name_exist():
    named = re.compile(r"`((?:src|tests|bench|scripts|include|examples|fuzz)/[\w./*-]+\.(?:c|h|py))`")
    for path in LINKED:
        text = FENCE.sub("", path.read_text())
        assert [file for file in named.findall(text) if not any(TOP.glob(file))] == [], path.name


def test_the_changelog_begins_with_this_version():
    version = re.search(r"version: '([^']+)'", (TOP / "meson.build").read_text()).group(1)
    first = re.search(r"^## \[?([0-9.]+)", (TOP / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first and first.group(1) == version
    assert (TOP / "debian/changelog").read_text().startswith(f"cordon ({version}) ")


def test_each_version_of_the_changelog_has_its_sections_in_order_and_nothing_beside_them():
    order = ["Added", "Changed", "Fixed", "Security"]
    for version in re.split(r"^## ", (TOP / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]:
        assert re.match(r"[0-9]+\.[0-9]+\.[0-9]+ \((unreleased|[0-9]{4}-[0-9]{2}-[0-9]{2})\)\n", version), version[:40]
        before, *sections = re.split(r"^### ", version, flags=re.MULTILINE)
        names = [section.split("\n", 1)[0] for section in sections]
        assert names == [name for name in order if name in names] and "\n- " not in before
        assert all(re.search(r"^- ", section, re.MULTILINE) for section in sections)


def test_the_tour_works_without_a_terminal_and_leaves_nothing(box, demo, leftovers):
    done = box.run(demo, box.bin / "cordon")
    assert done.returncode == 0, done
    assert "\033" not in done.stdout and "allow lib/math.ts" in done.stdout and "deny libsecret/key" in done.stdout
    leftovers.assert_none()


def test_the_tour_is_coloured_on_a_terminal(box, demo, leftovers):
    master, slave = pty.openpty()
    process = box.start(demo, box.bin / "cordon", stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    shown = bytearray()

    def ended():
        try:
            shown.extend(os.read(master, 65536))
        except OSError:  # the last writer has closed its end
            return True
        return False

    poll(ended, seconds=60, what="the end of the tour")
    os.close(master)
    assert process.wait(10) == 0, shown.decode(errors="replace")
    assert b"\033[1m" in shown
    leftovers.assert_none()
