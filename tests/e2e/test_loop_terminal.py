# SPDX-License-Identifier: Apache-2.0
"""cordon loop and a person: the table on a terminal, the question of --confirm, and the validation hooks of the settings."""
import json
import os
import re
import select
import termios
import time

import pytest

from loops import Loop, story
from terminals import Terminal

QUESTION = b"Take this result over? [y/N] "


@pytest.fixture
def loop(cordon, box):
    top = box.mkdir("repo")
    box.mkdir("repo/lib")
    box.write("repo/lib/shared.txt", "base\n")
    box.write("repo/docs/guide.md", "guide\n")
    return Loop(cordon, box, top)


@pytest.fixture
def terminal(loop, box, cordon):
    """Starts a loop on a terminal of 30 lines and 90 columns."""
    opened = []

    def start(script, *args, env=None):
        opened.append(Terminal(box, cordon.path, *loop.args(script, *args), cwd=loop.top, env=env))
        return opened[-1]

    yield start
    for each in opened:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()
        each.close()


def rest(t, status):
    """What comes until the end, which has this status and leaves the terminal as it was."""
    deadline = time.monotonic() + 60
    while t.process.poll() is None or select.select([t.master], [], [], 0)[0]:
        assert time.monotonic() < deadline, t.seen
        if select.select([t.master], [], [], 0.05)[0]:
            t.seen += os.read(t.master, 65536)
    assert t.process.returncode == status, t.seen
    assert termios.tcgetattr(t.slave) == t.before
    return t.seen.decode()


class Screen:
    """The lines that a terminal shows: text, wrapping, and the three sequences that the table uses."""

    def __init__(self, columns=90):
        self.columns, self.lines, self.row, self.column = columns, [""], 0, 0

    def put(self, char):
        width = 2 if ord(char) >= 0x1100 else 1
        if self.column + width > self.columns:
            self.down()
            self.column = 0
        line = self.lines[self.row]
        self.lines[self.row] = line[: self.column].ljust(self.column) + char + "\0" * (width - 1) + line[self.column + width :]
        self.column += width

    def down(self):
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append("")

    def feed(self, text):
        for part in re.findall(r"\033\[\d*[A-Za-z]|\033.|[^\033]", text, re.DOTALL):
            if part == "\n":
                self.down()
            elif part == "\r":
                self.column = 0
            elif part == "\t":
                self.column += 8 - self.column % 8
            elif re.fullmatch(r"\033\[\d+A", part):
                self.row -= int(part[2:-1])
                assert self.row >= 0
            elif part == "\033[J":
                self.lines[self.row :] = [self.lines[self.row][: self.column]]
            elif not re.fullmatch(r"\033\[\d+m", part):
                assert part.isprintable(), f"{part!r} is nothing that the table needs"
                self.put(part)
        return [line.replace("\0", "").rstrip() for line in self.lines]


# ---- the table ----

# The first story is done at once. The second shows something hostile until the test has seen it and makes a file on the host.
HOSTILE = r"""case $id in A) echo x > lib/A; cat docs/guide.md 2>/dev/null; exit 0;; esac
printf 'evil\033]0;title\007\033[2J\342\200\256bidi\r\033[9A%s\n' "$(printf '\346\274\242%.0s' $(seq 100))"
n=0; while ! test -e lib/go && [ $n -lt 600 ]; do sleep 0.1; n=$((n+1)); done; exit 0"""


def test_the_table_shows_the_work_and_hostile_output_does_no_harm(loop, terminal):
    loop.prd(story("A"), story("B", dependencies=["A"]), story("C", dependencies=["B"], title="C\033[31m\u202e"))
    t = terminal(HOSTILE, "--workspace", "lib", "--workspace-mode", "strict", "--no-views", "--max-iterations", "7")
    shown = t.expect(b"evil", 60)
    shown += b"evil" + t.expect(b"evil", 60) + b"evil" + t.expect(b"waiting", 60)  # drawn a second time: the first is taken away
    (loop.top / "lib/go").touch()
    text = shown.decode() + "waiting" + rest(t, 0)
    assert not re.search(r"\033(?!\[(\d+A|J|\d+m))", text) and "\u202e" not in text and "\a" not in text, "only sequences of the table"
    rows = [re.sub(r"\033\[\d*[a-zA-Z]|\r", "", row) for row in text.split("\n")]
    heads = [row for row in rows if re.match(r"\d/3 passed", row)]
    assert any(re.fullmatch(r"1/3 passed  iteration 2/7  workspace lib \(strict\)  1 violations  about [\d.]+s left", row) for row in heads), heads
    evil = r"working   B  \d+\.\ds  evil\\e\]0;title\\x07\\e\[2J\\u\{202e\}bidi\\r\\e\[9A\u6f22+"
    assert any(re.fullmatch(evil, row) for row in rows), rows
    assert "waiting   C  Title of C" not in text and r"waiting   C  C\e[31m\u{202e}" in text and "\033[36mworking" in text
    screen = Screen().feed(text)
    table = [row for row in screen if re.match(r"(passed|accepted|working|waiting) +[ABC]  |\d/3 passed", row)]
    assert [row.split("  ")[0] for row in table] == ["3/3 passed", "passed", "passed", "passed"], "one table is left\n" + "\n".join(screen)
    assert not any(row.startswith("\u6f22") for row in screen), "no line of the table wraps"
    assert screen[-4:] == ["A       passed", "B       passed", "C       passed", ""], screen


@pytest.mark.parametrize("env, table", [({"NO_COLOR": "1"}, True), ({"TERM": "dumb"}, False)])
def test_no_colour_and_no_table_where_nobody_wants_them(loop, terminal, env, table):
    loop.prd(story("A"))
    text = rest(terminal("echo x > lib/x", env=env), 0)
    assert not re.search(r"\033\[\d*m", text) and ("1/1 passed  iteration 1/10" in text) == table == ("passed    A  " in text), text
    assert table or "\033" not in text


# ---- asking ----


def test_the_person_sees_what_a_result_changes_and_says_yes_or_no(loop, terminal):
    loop.prd(story("A"), story("B"), story("C", dependencies=["B"]))
    t = terminal(r"""case $id in A) printf 'one\ntwo\n' > lib/shared.txt; echo x > "$(printf 'lib/n\033[2Jy')";; *) echo x > lib/$id;; esac""", "--confirm")
    asked = t.expect(QUESTION, 60).replace(b"\r", b"")
    assert asked.endswith(b"A changes 2 files:\n  added lib/n\\e[2Jy  +1 -0\n  modified lib/shared.txt  +2 -1\n"), asked
    assert not loop.passed() and (loop.top / "lib/shared.txt").read_text() == "base\n", "nothing happens before the answer"
    t.type(b"y\n")
    assert b"B changes 1 file:\n  added lib/B  +1 -0\n" in t.expect(QUESTION, 60).replace(b"\r", b"")
    # Only y and yes are yes, and a long line is one answer.
    t.type(b"no" + b"y" * 300 + b"\n")
    text = rest(t, 1).replace("\r", "")
    assert loop.passed() == ["A"] and (loop.top / "lib/shared.txt").read_text() == "one\ntwo\n" and not (loop.top / "lib/B").exists()
    assert "A\tpassed\nB\tparked\tThe result was not confirmed.\nC\twaiting\n" in text, text
    view = re.search(r"Changes wait in view (\w{8}): ", text)[1]
    assert "+++ b/lib/B" in loop.cordon("changes", "diff", view, cwd=loop.top).stdout, "the person can still have it"


def test_the_end_of_input_and_keys_before_the_question_apply_nothing(loop, terminal, box):
    loop.prd(story("A"), story("B"))
    signs = box.mkdir("signs")
    script = f"echo early; n=0; while ! test -e {signs}/typed && [ $n -lt 600 ]; do sleep 0.1; n=$((n+1)); done; echo x > lib/$id"
    t = terminal(script, "--confirm", "-v", "--share", f"{signs}:ro")
    t.expect(b"| early", 60)
    t.type(b"y\n")
    (signs / "typed").touch()
    t.expect(QUESTION, 60)
    t.type(b"\x04")
    t.expect(QUESTION, 60)
    t.type(b"\x04")
    rest(t, 1)
    assert loop.passed() == [] and os.listdir(loop.top / "lib") == ["shared.txt"] and len(loop.views()) == 2


def test_ctrl_c_at_the_question_stops_the_loop_and_keeps_the_result(loop, terminal):
    loop.prd(story("A"), story("B"))
    t = terminal("echo x > lib/$id", "--confirm")
    t.expect(QUESTION, 60)
    t.type(b"\x03")
    text = rest(t, 130).replace("\r", "")
    view, = loop.views()
    assert f"A was interrupted; its changes wait in view {view[:8]}" in text and "A\twaiting\nB\twaiting\n" in text, text
    assert loop.passed() == [] and not (loop.top / "lib/A").exists()
    # The same command goes on.
    t = terminal("echo x > lib/$id", "--confirm")
    for _ in "AB":
        t.expect(QUESTION, 60)
        t.type(b"Yes\n")
    rest(t, 0)
    assert loop.passed() == ["A", "B"] and (loop.top / "lib/B").exists()


# ---- validation hooks ----


@pytest.fixture
def hooked(box):
    """Writes a hook for some points of the loop, and the settings that name it."""

    def make(script, on):
        box.write("hooks/guard", f"#!/bin/sh\nread -r asked\n{script}\n", mode=0o755)
        hook = f"{{name: guard, run: [{box.path}/hooks/guard], on: {on}, timeout: 60}}"
        box.write("state/config.yaml", f"defaults:\n  validation_hooks:\n    - {hook}\n", mode=0o600)

    return make


SAY = r"""printf '%s\033[31m\nsecond\n' "$asked" | tr -d '"' >&2; echo x > lib/hooked; """


def test_a_hook_of_the_start_refuses_the_whole_loop(loop, hooked):
    hooked(SAY + "exit 3", "start")
    before = loop.prd(story("A", fileScope=["lib/*.c"])).read_bytes()
    done = loop("echo x > lib/x", "--workspace", "lib", status=1)
    assert done.stdout == "" and done.stderr.splitlines()[-1] == (
        r"cordon: the validation hook guard refuses: {event:start,folders:[lib],mode:permissive,paths:[lib/*.c]}\e[31m"), done
    assert (loop.top / "prd.json").read_bytes() == before and os.listdir(loop.top / "lib") == ["shared.txt"] and not loop.views()


def test_a_hook_of_stories_parks_those_that_it_refuses(loop, hooked):
    hooked("case $asked in *lib/bad*) " + SAY + "exit 1;; esac", "story")
    loop.prd(story("BAD", fileScope=["lib/bad"]), story("AFTER", dependencies=["BAD"]), story("GOOD"))
    done = loop("echo x > lib/$id", status=1)
    why = r"the validation hook guard refuses: {event:story,folders:[],mode:strict,paths:[lib/bad]}\e[31m"
    assert done.stdout == f"BAD\tparked\t{why}\nAFTER\twaiting\nGOOD\tpassed\n", done
    assert loop.passed() == ["GOOD"] and sorted(os.listdir(loop.top / "lib")) == ["GOOD", "shared.txt"] and "1 iterations" in done.stderr


def test_a_hook_of_apply_fails_the_call_and_its_line_is_in_the_next_prompt(loop, hooked):
    hooked("case $asked in *lib/BAD*) " + SAY + "exit 1;; esac", "apply")
    loop.prd(story("BAD"), story("FIXED"))
    script = """case $id in FIXED) case $p in *refuses*) echo x > lib/good;; *) echo x > lib/BAD;; esac;; *) echo x > lib/BAD;; esac"""
    events = loop.events(script, status=1)
    why = r"the validation hook guard refuses: {event:apply,folders:[],mode:strict,paths:[lib/BAD]}\e[31m"
    assert [(event["story"], event["note"]) for event in events if event["event"] == "failed"] == [("BAD", why)] * 3 + [("FIXED", why)], events
    assert [(one["id"], one["state"], one["reason"]) for one in events[-1]["stories"]] == [("BAD", "parked", why), ("FIXED", "passed", None)]
    assert loop.passed() == ["FIXED"] and sorted(os.listdir(loop.top / "lib")) == ["good", "shared.txt"] and len(loop.views()) == 1


def test_a_hook_of_apply_is_told_of_all_that_would_happen(loop, hooked):
    """A directory that is removed and made anew, or removed, or moved, is in the layer one name, or none."""
    for name in ("tests/a.py", "tests/b.py", "tests/deep/c.py", "old/d.py"):
        loop.box.write(f"repo/{name}", "x\n")
    hooked("printf '%s' \"$asked\" >&2; exit 1", "apply")
    loop.prd(story("A"))
    events = loop.events("rm -rf tests; mkdir tests; mv old new; mkdir empty", status=1)
    told = [event["note"] for event in events if event["event"] == "failed"][0]
    paths = json.loads(told[told.index("{"):])["paths"]
    assert sorted(paths) == ["empty/", "new/", "new/d.py", "old/", "old/d.py", "tests/a.py", "tests/b.py", "tests/deep/", "tests/deep/c.py"]
    # The results name the files, too; and what is not refused is done as it was told.
    hooked("exit 0", "apply")
    loop.prd(story("A"))
    done = loop.events("rm -rf tests; mkdir tests; mv old new; mkdir empty")
    (accepted,) = [event for event in done if event["event"] == "accepted"]
    assert sorted(accepted["result"]["files_changed"]) == ["new/d.py", "old/d.py", "tests/a.py", "tests/b.py", "tests/deep/c.py"]
    assert os.listdir(loop.top / "tests") == [] and os.listdir(loop.top / "new") == ["d.py"] and not (loop.top / "old").exists()


def test_no_hook_can_allow_anything(loop, hooked):
    hooked("echo allow; echo '{\"decision\":\"allow\"}' >&2; exit 0", "[start, story, apply]")
    loop.prd(story("A"), story("B"))
    args = ("--workspace", "lib", "--workspace-mode", "strict", "--verify", "test ! -e lib/B", "--max-iterations", "4")
    done = loop("echo x > docs/x; echo x > lib/$id; exit 0", *args, status=1)
    assert done.stdout.startswith("A\tpassed\nB\tparked\tThe check of the result ended with exit code 1.") and loop.passed() == ["A"], done
    assert os.listdir(loop.top / "docs") == ["guide.md"] and sorted(os.listdir(loop.top / "lib")) == ["A", "shared.txt"]
