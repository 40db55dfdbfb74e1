# SPDX-License-Identifier: Apache-2.0
"""The engine's table of cases through a live lens: the kernel gives the answers the decision function gives."""
import itertools

import pytest

from support import CASES

OPTION = {"rw": "--rw", "ro": "--ro", "deny": "--deny"}


def split(field):
    return [] if field == "-" else field.split(";")


def table():
    """(rules, [(op, path, allowed)]) for each policy of the table, in batches in which no path lies below another."""
    lines = (CASES / "policy.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    batches = []
    for (grants, protect, mode), group in itertools.groupby(rows, key=lambda row: row[:3]):
        rules = [part for grant in split(grants) for part in (OPTION[grant.split(":", 1)[0]], grant.split(":", 1)[1])]
        rules += [part for path in split(protect) for part in ("--protect", path)]
        rules += ["--permissive"] if mode == "permissive" else []
        questions = sorted({(op, "" if path == "-" else path, verdict != "deny") for _, _, _, op, path, verdict, _ in group})
        while questions:
            batch = [q for q in questions if not any(q[1] != p and (p + "/").startswith(q[1] + "/") for _, p, _ in questions)]
            batches.append((rules, batch))
            questions = [q for q in questions if q not in batch]
    return batches


BATCHES = table()
PARTS = 8


def test_the_table_is_there():
    assert len(BATCHES) > 60 and sum(len(questions) for _, questions in BATCHES) > 120
    assert {allowed for _, questions in BATCHES for _, _, allowed in questions} == {True, False}


@pytest.mark.limit(240)
@pytest.mark.parametrize("part", range(PARTS))
def test_the_lens_answers_as_the_engine_does(lens, part):
    wrong = []
    for number, (rules, questions) in enumerate(BATCHES[part::PARTS]):
        root = lens.root
        lens.root = lens.box.mkdir(f"root-{number}")
        questions = [q for q in questions if q[1]]
        for _, path, _ in questions:
            lens.box.write(f"root-{number}/{path}", "content")
        out = lens.python(
            f"""
            for op, path, _ in {questions!r}:
                if op == "read":
                    out[op + " " + path] = answer(read, path)
                    out["list " + path] = os.path.basename(path) in (answer(os.listdir, os.path.dirname(path) or "."))
                else:
                    out[op + " " + path] = answer(write, path, "changed", 0)
            """,
            rules=(*rules, "--no-temps"),
        )
        for op, path, allowed in questions:
            got = out[f"{op} {path}"]
            right = got in ("content", "changed", "ok") if allowed else got in ("EACCES", "EROFS")
            if not right or (op == "read" and out[f"list {path}"] != allowed):
                wrong.append((rules, op, path, allowed, got, out.get(f"list {path}")))
            if op == "write" and ((lens.root / path).read_text() == "changed") != allowed:
                wrong.append((rules, op, path, "on the host"))
        # What does not exist yet is judged by the same names.
        missing = [(path, allowed) for op, path, allowed in questions if op == "write"]
        for path, _ in missing:
            (lens.root / path).unlink()
        out = lens.python(f"out.update((path, answer(write, path)) for path, _ in {missing!r})", rules=(*rules, "--no-temps"))
        for path, allowed in missing:
            if (out[path] == "ok") != allowed or (lens.root / path).exists() != allowed:
                wrong.append((rules, "create", path, allowed, out[path]))
        lens.root = root
    assert not wrong, "\n".join(map(str, wrong))
