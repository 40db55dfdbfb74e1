# SPDX-License-Identifier: Apache-2.0
"""Examples in the documents are run, and print what the documents say.

In README.md and docs/*.md a fenced block is run when its first line is ```console (lines after "$ " are commands, the
lines below them what they print; a line "..." stands for any lines) or ```sh test (must succeed). The blocks of one
document share one copy of the sample repository of scripts/demo, at /home/you/project as far as they can see.
"""
import os
import pty
import re

import pytest

from support import TOP, poll

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


def test_the_readme_is_one_screen_with_three_commands():
    text = (TOP / "README.md").read_text()
    assert text.count("\n") <= 90
    assert all(f"make {target}" in text for target in ("demo", "test", "install"))


def test_links_between_documents_lead_somewhere():
    for path in (TOP / "README.md", TOP / "CONTRIBUTING.md", TOP / "CHANGELOG.md", *(TOP / "docs").glob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_changelog_begins_with_this_version():
    version = re.search(r"version: '([^']+)'", (TOP / "meson.build").read_text()).group(1)
    first = re.search(r"^## \[?([0-9.]+)", (TOP / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first and first.group(1) == version


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
