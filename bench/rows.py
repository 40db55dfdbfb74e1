# SPDX-License-Identifier: Apache-2.0
"""Rows of the benchmark table, and what the parts share."""
import statistics
import subprocess
from dataclasses import dataclass

COLUMNS = ("what", "cordon", "peer", "ratio", "bar", "")
WIDTHS = (46, 18, 34, 8, 14, 4)


@dataclass
class Row:
    """One line: what was measured, our figure, the peer's, the ratio, the bar and whether it was met (None: no bar)."""

    what: str
    cordon: str
    peer: str = ""
    ratio: float = None
    bar: str = ""
    ok: bool = None

    def cells(self):
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        return (self.what, self.cordon, self.peer, ratio, self.bar, {None: "", True: "ok", False: "miss"}[self.ok])


def line(cells):
    return " ".join(f"{cell:<{width}}" for cell, width in zip(cells, WIDTHS)).rstrip()


def rate(value):
    """1234567 -> "1.23 M/s"."""
    for factor, unit in ((1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.2f} {unit}/s"
    return f"{value:.0f}/s"


def microseconds(value):
    return f"{value / 1000:.2f} ms" if value >= 1000 else f"{value:.0f} us"


def run(command, **options):
    """Runs a command to its end and returns it; a failure ends the benchmark with what it said."""
    options.setdefault("timeout", 600)
    done = subprocess.run(command, capture_output=True, check=False, **options)
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr.decode(errors='replace').strip()}")
    return done


median = statistics.median
