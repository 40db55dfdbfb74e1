# SPDX-License-Identifier: Apache-2.0
"""The policy engine by itself: decisions per second, the worst pattern on the worst path, and the slowest comparison of two policies."""
import subprocess

from rows import Row, rate

RATE_BAR = 1e6  # with 100 patterns
WORST_BAR = 50.0  # milliseconds, pattern and path of 4 KiB each
DIFF_BAR = 100.0  # milliseconds, policies of 10 to 40 rules


def measure(program):
    # It fails when a bar is missed; the rows say so better.
    done = subprocess.run([program], capture_output=True, check=False, timeout=600)
    values = {}
    for line in done.stdout.decode().splitlines():
        name, value, _ = line.split()
        values[name] = float(value)
    if done.returncode not in (0, 1) or "diff" not in values:
        raise RuntimeError(f"bench_policy ended with {done.returncode}: {done.stderr.decode(errors='replace').strip()}")
    return values


def rows(context):
    values = measure(context.program("bench_policy"))
    for patterns in (1, 10, 100):
        value = values[f"decisions_{patterns}"]
        bar, ok = (f">= {rate(RATE_BAR)}", value >= RATE_BAR) if patterns == 100 else ("", None)
        yield Row(f"decisions, {patterns} pattern{'s' if patterns > 1 else ''}", rate(value), bar=bar, ok=ok)
    families = {name: value for name, value in values.items() if name.startswith("worst_")}
    worst = max(families, key=families.get)
    yield Row(
        f"worst of {len(families)} nasty 4 KiB patterns",
        f"{families[worst]:.2f} ms",
        peer=f"({worst.removeprefix('worst_')})",
        bar=f"< {WORST_BAR:.0f} ms",
        ok=families[worst] < WORST_BAR,
    )
    yield Row(
        "slowest of 200 policy diffs",
        f"{values['diff']:.2f} ms",
        peer=f"({values['diff_states']:.0f} states)",
        bar=f"< {DIFF_BAR:.0f} ms",
        ok=values["diff"] < DIFF_BAR,
    )
