# SPDX-License-Identifier: Apache-2.0
"""A file system behaves in a run as it does natively for a process without capabilities: table.txt has cases of names, lengths, modes, times, renames, links
and so on, exerciser.py does random things to the contents of a file. What differs is a table in docs/posix.md, and nothing else is."""
import json
import pathlib
import re

import pytest

from support import TOP

HERE = pathlib.Path(__file__).parent
PYTHON = ("/usr/bin/python3", "-I", "-S", "-B")
MODES = {
    "plain": [],
    "strict": ["--workspace", "work", "--workspace-mode", "strict"],
    "view": ["--cow"],
    "lens": ["--lens", "always"],
}


def listed():
    """{(case, mode): (natively, inside)} of the first step that differs."""
    rows = re.findall(r"^\| ([^|]*) \| ([a-z, ]*) \| `(.*?)` \| `(.*?)` \| .+ \|$", (TOP / "docs/posix.md").read_text(), re.M)
    return {(case, mode): (native, inside) for case, modes, native, inside in rows for mode in modes.split(", ")}


@pytest.fixture
def places(box, cordon, who):
    """{mode: the beginning of a command line, and the directory in which it works}. Each mode has a tree of its own."""
    bare = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "--"] if who.is_root else []
    made = {"native": (bare, box.mkdir("native"))}
    for mode, options in MODES.items():
        root = box.mkdir(mode)
        # In the root itself, where files are made by the hand; a strict workspace is a folder of it.
        made[mode] = ([cordon.path, "run", "--root", str(root), "--no-summary", *options, "--"], box.mkdir(f"{mode}/work") if mode == "strict" else root)
    return made


@pytest.fixture
def in_all(box, places):
    """`in_all(*command)` does the same natively and in every mode, side by side, and gives what each printed."""

    def run(*command, stdin=None):
        started = {}
        for mode, (before, where) in places.items():
            with open(stdin or "/dev/null", "rb") as stream:
                started[mode] = box.start(*before, *PYTHON, *command, cwd=where, stdin=stream)
        answers = {}
        for mode, process in started.items():
            out, err = process.communicate(timeout=300)
            assert (process.returncode, err) == (0, b""), (mode, out, err)
            answers[mode] = out.decode()
        return answers

    return run


def test_a_table_of_edge_cases_gives_the_same_in_every_mode(in_all):
    answers = {mode: json.loads(text) for mode, text in in_all("-c", (HERE / "probe.py").read_text(), stdin=HERE / "table.txt").items()}
    native = answers.pop("native")
    assert len(native) > 90 and "died" not in native.values()
    found = {}
    for mode, given in answers.items():
        assert given.keys() == native.keys()
        for case, steps in native.items():
            if given[case] != steps:
                at = next(i for i, (a, b) in enumerate(zip(steps, given[case])) if a != b)
                found[case, mode] = (str(steps[at]), str(given[case][at]))
    assert found == listed(), {key: (found.get(key), listed().get(key)) for key in found.keys() | listed().keys() if found.get(key) != listed().get(key)}


def exercise(in_all, seed, operations):
    code = (HERE / "exerciser.py").read_text()
    for mode, text in in_all("-c", code, str(seed), str(operations)).items():
        assert text == f"seed {seed}: {operations} operations agree\n", (mode, text)


def test_the_contents_of_a_file_are_what_random_operations_made_them(in_all):
    exercise(in_all, 1, 400)


@pytest.mark.long
def test_more_random_operations(in_all):
    exercise(in_all, 2, 4000)


@pytest.mark.soak
@pytest.mark.limit(600)
@pytest.mark.parametrize("seed", range(3, 7))
def test_many_random_operations(in_all, seed):
    exercise(in_all, seed, 40_000)


def test_the_exerciser_finds_a_difference(box):
    """Its oracle is not what the file says: with a system that loses one write, it tells."""
    lossy = (HERE / "exerciser.py").read_text().replace("self.put(at, text)\n\n    def append", "pass\n\n    def append")
    done = box.run(*PYTHON, "-c", lossy, "1", "400", cwd=box.mkdir("work"))
    assert done.returncode == 1 and "seed 1, after" in done.stderr, done
