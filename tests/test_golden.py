# SPDX-License-Identifier: Apache-2.0
"""What the front ends make of their options stays as it was recorded: plans, answers and refusals, for every set of golden_sets.py.

`CORDON_GOLDEN=record pytest-3 tests/test_golden.py` records the answers anew in tests/golden; `git diff` shows then what has changed. Paths of the
world, ids, times and names of the account are replaced, and what the machine's own directories bring into a plan is left out, so root and an
ordinary user have the same answers. The file has each answer as its difference from an earlier one: `=N` lines are the same, `-N` are missing,
`+` begins a further line.
"""
import difflib
import hashlib
import json
import os
import re
import shlex

from golden_sets import make_world, placed, sets
from support import TESTS

GOLDEN = TESTS / "golden" / "answers.txt"
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/etc", "/var", "/opt", "/tmp", "/home")
RECORD = os.environ.get("CORDON_GOLDEN") == "record"
VOLATILE = [
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "ID"),
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\b", "TIME"),
]


def is_usual(entry):
    """Whether a name is protected that is not there: there are many, and they are the same nearly everywhere."""
    return entry["state"] == "absent" and entry["by_default"] and not entry["hard_links"]


def fold(names):
    return f"{len(names)} absent names, {hashlib.sha256(json.dumps(names).encode()).hexdigest()[:8]}"


class Normal:
    """Makes lines of answers that are the same on every machine."""

    def __init__(self, box):
        self.box = str(box.path)
        self.above = {str(path) for path in box.path.parents}

    def text(self, text):
        text = text.replace(self.box, "BOX")
        for pattern, word in VOLATILE:
            text = re.sub(pattern, word, text)
        return text

    def is_machine(self, entry, home):
        """Whether an entry of a plan comes from the machine, or from where the world or the home happens to be."""
        path = entry.get("path") if isinstance(entry, dict) else entry
        if not isinstance(path, str) or path.startswith((self.box, home)):
            return False
        return path in self.above - {"/"} or path.startswith(SYSTEM)

    def plan(self, plan):
        """The lines of a plan, with the account's own names replaced."""
        own = dict(line.split("=", 1) for line in plan["env"])
        home = own["HOME"]
        for key, value in plan.items():
            if key in ("uid", "gid"):
                continue
            if key == "env":
                value = [line for line in value if not line.startswith(("USER=", "SHELL=", "PATH="))]
            if key == "protected":
                value = [entry for entry in value if not is_usual(entry)] + [fold([self.text(entry["path"]) for entry in value if is_usual(entry)])]
            if key in ("steps", "held"):
                value = [entry for entry in value if not self.is_machine(entry, home)]
            for entry in value if isinstance(value, list) else [value]:
                line = self.text(json.dumps(entry, sort_keys=True))
                yield f"{key}: " + re.sub(rf"(?<![\w/]){re.escape(home)}(?![\w-])", "HOME", line)

    def json(self, value):
        if isinstance(value, dict) and "steps" in value and "env" in value:
            yield from self.plan(value)
        elif isinstance(value, dict) and not any(isinstance(entry, (dict, list)) for entry in value.values()):
            yield self.text(json.dumps(value))
        elif isinstance(value, dict):
            for key, entry in value.items():
                inner = list(self.json(entry)) if isinstance(entry, (dict, list)) else [self.text(json.dumps(entry))]
                yield from (f"{key}: {line}" for line in inner)
        elif isinstance(value, list):
            for entry in value:
                yield from self.json(entry)
        else:
            yield self.text(json.dumps(value))

    def lines(self, status, out, err):
        yield f"exit {status}"
        for line in out.splitlines():
            try:
                yield from self.json(json.loads(line))
            except ValueError:
                yield self.text(line)
        yield from (f"err {self.text(line)}" for line in err.splitlines())


def ask_all(box):
    """{name of the set: [(kind, lines of the answer)]}. One shell asks everything, which is much faster than a process each from here."""
    asked = list(sets())
    script = ["i=0", f"cd {shlex.quote(str(box.path / 'repo'))}",
              "ask() { i=$((i + 1)); \"$@\" >../out/$i 2>../out/$i.err; echo $? >../out/$i.status; }"]
    for _, calls, env in asked:
        words = [f"{key}={value}" for key, value in env.items()]
        script += ["ask " + shlex.join(["env", *words, str(box.bin / "cordon"), *(placed(word, box) for word in call)]) for _, call in calls]
    box.mkdir("out")
    path = box.write("ask", "\n".join(script) + "\n")
    tools = {"PATH": f"{box.path}/tools:/usr/bin:/bin", "GOLDEN_X": "1", "TOOL_X": "2"}
    done = box.run("/bin/sh", str(path), env=tools, timeout=100)
    assert done.returncode == 0, done
    normal, answers, i = Normal(box), {}, 0
    for name, calls, _ in asked:
        answers[name] = []
        for kind, _ in calls:
            i += 1
            out, err, status = ((box.path / "out" / f"{i}{end}").read_text() for end in ("", ".err", ".status"))
            answers[name].append((kind, list(normal.lines(status.strip(), out, err))))
    return answers


# ---- the file ----


def shorten(base, lines):
    """Lines as their difference from those of the base."""
    for what, i, j, k, m in difflib.SequenceMatcher(None, base, lines, autojunk=False).get_opcodes():
        if what == "equal":
            yield f"={j - i}"
        elif j > i:
            yield f"-{j - i}"
        if what != "equal":
            yield from (f"+{line}" for line in lines[k:m])


def restore(base, short):
    at, lines = 0, []
    for line in short:
        if line[0] == "+":
            lines.append(line[1:])
            continue
        count = int(line[1:])
        lines += base[at : at + count] if line[0] == "=" else []
        at += count
    return lines


def written(answers):
    """The text of the file. A call is written as `-- KIND NUMBER`, with the number of the earlier answer that it is most like."""
    earlier, text = {}, []
    for name, calls in answers.items():
        text.append(f"== {name}")
        for kind, lines in calls:
            known = earlier.setdefault(kind, [[]])
            like = max(range(len(known)), key=lambda i: (len(set(known[i]) & set(lines)) - len(set(known[i]) ^ set(lines)) / 4, -i))
            text += [f"-- {kind} {like}", *([] if known[like] == lines else shorten(known[like], lines))]
            if lines not in known:
                known.append(lines)
    return "\n".join(text) + "\n"


def parsed(text):
    answers, earlier = {}, {}
    for part in text.removeprefix("== ").split("\n== "):
        head, *calls = part.rstrip("\n").split("\n-- ")
        answers[head] = []
        for call in calls:
            first, *short = call.split("\n")
            kind, like = first.rsplit(" ", 1)
            known = earlier.setdefault(kind, [[]])
            lines = restore(known[int(like)], short) if short else known[int(like)]
            answers[head].append((kind, lines))
            if lines not in known:
                known.append(lines)
    return answers


def differences(expected, answers):
    for name in [*expected, *(name for name in answers if name not in expected)]:
        old, new = expected.get(name, []), answers.get(name, [])
        if old != new:
            texts = [[line for kind, lines in calls for line in (f"-- {kind}", *lines)] for calls in (old, new)]
            yield "\n".join(difflib.unified_diff(*texts, f"{name}, as recorded", f"{name}, now", "", "", 1, ""))


def test_there_are_three_hundred_sets_and_each_has_a_name_of_its_own():
    names = [name for name, _, _ in sets()]
    assert len(names) >= 300 and len(set(names)) == len(names)
    assert {name.split(":")[0] for name in names} == {"run", "agent", "orchestrator", "workflow", "project", "loop"}


def test_what_is_shortened_can_be_restored_and_a_change_is_seen():
    base, lines = ["a", "b", "c", "d"], ["b", "x", "=2", "d", "-", "+"]
    answers = {"one": [("run", base), ("tree", lines)], "two": [("run", lines), ("run", base), ("why", [])]}
    assert parsed(written(answers)) == answers
    assert list(differences({"n": [("run", base)]}, {"n": [("run", base)]})) == []
    assert "-b\n+x" in next(differences({"n": [("run", base)]}, {"n": [("run", ["a", "x", "c", "d"])]}))
    assert len(list(differences({"n": [("run", base)]}, {}))) == 1 and len(list(differences({}, {"n": [("run", base)]}))) == 1


def test_front_ends_make_of_their_options_what_was_recorded(box):
    make_world(box)
    answers = ask_all(box)
    if RECORD:
        GOLDEN.write_text(written(answers))
    found = list(differences(parsed(GOLDEN.read_text()), answers))
    assert not found, f"{len(found)} sets differ; CORDON_GOLDEN=record records them anew\n" + "\n".join(found[:20])
