# SPDX-License-Identifier: Apache-2.0
"""The races of class L in every mode (threats.md L1 to L3, L22, L23): one sandbox, in which one race is run after the other.

In a view the agent may have what it likes, as a copy: the host's side is the proof. The mode of L10 lies in memory for openat2 alone, which
no run has (test_set_ids.py). The races of L5, where the host takes part, are in test_saves.py."""
import os
import re

import pytest

from modes import WIDE
from test_names import overlay_marks, tree

FEW, MANY, MOST = 60, 1000, 10000
in_modes = pytest.mark.parametrize("mode", WIDE)
# What is raced, what the probe is told, and what it says when its calls succeed where they may.
RACES = {
    "l1": ("plant absolute {rounds} {held}/planted", r"rounds {rounds} made [1-9]"),
    "l2 descriptor": ("deep descriptor {rounds} {held} .git", r"{rounds} rounds, [1-9]\d* made"),
    "l2 directory": ("deep directory {rounds} {held} .git", r"{rounds} rounds, [1-9]\d* made"),
    "l3": ("carry {rounds} .git", r"{rounds} rounds, \d+ came, 0 links"),
    "l22 path": ("attribute path {rounds} src/main.c", r"{rounds} rounds, [1-9]\d* set"),
    "l22 descriptor": ("attribute descriptor {rounds} src/main.c", r"{rounds} rounds, [1-9]\d* set"),
    "l23": ("dots {rounds}", r"{rounds} rounds, 0 failed"),
}


def all_races(rounds, held, probes="/probes"):
    # What is too deep for the host's look goes away after each race.
    return "; ".join(f"echo '{name}:' $({probes}/{words.format(rounds=rounds, held=held)}; echo $?); rm -rf src/ddd*" for name, (words, _) in RACES.items())


def said(result):
    found = dict(line.split(": ", 1) for line in result.stdout.splitlines())
    assert set(found) == set(RACES), result
    return found


def race_all(arena, mode, probes, rounds):
    arena.enter(mode, "--share", f"{probes}:/probes:ro")
    git = tree(arena.root / ".git")
    # A view has a git directory of its own, without hooks.
    result = arena.inside("sh", "-c", all_races(rounds, ".factory" if mode == "view" else ".git/hooks"), timeout=500)
    for name, answer in said(result).items():
        if mode == "view" and name == "l3":
            answer = re.sub(r"\d+ links", "0 links", answer)  # in the copy of the git directory
        assert re.search(RACES[name][1].format(rounds=rounds), answer) and answer.endswith(" 0"), (name, answer, result)
    arena.assert_unharmed()
    after = tree(arena.root / ".git")
    # A name that was read while it changed is a mixture of both: in .git itself some letters and the number, never below a boundary.
    new = {name for name in after if name not in git and not re.fullmatch(r"harmless|[a-z]{0,8}[-\d]+", name)}
    assert not new and all(after[name] == git[name] for name in git), new
    assert overlay_marks(arena.root) == []
    assert os.listxattr(arena.root / "src/main.c") == (["user.overlaz.opaque"] if mode != "view" else [])


@in_modes
def test_no_race_of_class_l_is_won(arena, mode, probes):
    race_all(arena, mode, probes, FEW)


@pytest.mark.long
@pytest.mark.limit(600)
@in_modes
def test_no_race_of_class_l_is_won_in_many_rounds(arena, mode, probes):
    race_all(arena, mode, probes, MOST if mode == "plain" else MANY)


def test_control_natively_the_races_are_won(arena, probes):
    # Who wins a race is a matter of chance, on a busy machine most of all.
    for _ in range(5):
        result = arena.box.run("sh", "-c", all_races(3 * MANY, ".git/hooks", probes), cwd=arena.root, timeout=100)
        found = said(result)
        # The last: what of the kernel's own answers the hand has to hide from the agent.
        if "planted" in found["l1"] and re.search(r" [1-9]\d* links", found["l3"]) and re.search(r" [1-9]\d* again", found["l23"]):
            break
    else:
        assert False, result
    assert arena.look() != arena.before, result
