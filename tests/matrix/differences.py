# SPDX-License-Identifier: Apache-2.0
"""Compares results inside with native ones. What may differ is a table in docs/matrix.md, and nothing else is."""
import errno
import fnmatch
from dataclasses import dataclass

from support import TOP

DOCUMENT = TOP / "docs" / "matrix.md"
HEADING = "## Where results differ from native ones"
KINDS = {"f": "file", "d": "directory", "n": "missing"}


@dataclass(frozen=True)
class Row:
    """One row of the table; each of the first four is a pattern, or several, separated by commas that no parenthesis holds."""

    call: str
    spelling: str
    target: str
    mode: str
    native: str
    inside: str
    why: str

    def covers(self, difference):
        pairs = ((self.call, 0), (self.spelling, 1), (self.target, 2), (self.mode, 3), (self.native, 4), (self.inside, 5))
        return all(any(fnmatch.fnmatchcase(difference[at], word.replace("[", "[[]")) for word in split(pattern)) for pattern, at in pairs)


def split(text):
    """The words of a cell: "a, b(c, d)" is "a" and "b(c, d)"."""
    words, depth, word = [], 0, ""
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            words.append(word.strip())
            word = ""
        else:
            word += letter
    return [*words, word.strip()]


def rows(text=None):
    """The table below the heading."""
    text = DOCUMENT.read_text() if text is None else text
    found = []
    for line in text.partition(HEADING)[2].partition("\n## ")[0].splitlines():
        cells = [cell.strip().replace("`", "") for cell in line.replace("\\|", "\0").strip("|").split("|")]
        if line.startswith("|") and len(cells) == 7 and cells[0] != "call" and not set(cells[0]) <= {"-", ":"}:
            found.append(Row(*(cell.replace("\0", "|") for cell in cells)))
    return found


def outcome(result, other):
    """ "ok", the name of an error, or with both the same, what became of the target."""
    if result is None:
        return "does not apply"
    number, effect = result
    name = errno.errorcode.get(number, str(number)) if number else "ok"
    return f"{name} {effect}" if other is not None and other[0] == number else name


def compare(native, inside, mode, names):
    """Differences as (call, spelling, target, mode, native, inside)."""
    spellings, calls = names
    found = []
    for key in sorted(native.keys() | inside.keys()):
        one, two = native.get(key), inside.get(key)
        if one == two:
            continue
        target, spelling, call = key
        name = calls[call][1]
        # Whether the answer was in the kernel's cache is nobody's promise.
        if "CACHED" in name and errno.EAGAIN in ((one or [0])[0], (two or [0])[0]):
            continue
        place = f"{KINDS[target[0]]} in {target[2:].rpartition('/')[0]}"
        found.append((name, spellings[spelling], place, mode, outcome(one, two), outcome(two, one)))
    return found


def judge(differences, table):
    """(differences that no row covers, rows that were used)"""
    used, unexpected = set(), []
    for difference in differences:
        covering = [row for row in table if row.covers(difference)]
        used.update(covering)
        if not covering:
            unexpected.append(difference)
    return unexpected, used
