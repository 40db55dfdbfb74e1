# SPDX-License-Identifier: Apache-2.0
"""A loop over many stories with agents of one line: what cordon itself costs for each, and how much memory the loop needs."""
import json
import os
import resource

from rows import Row, run

STORIES = 1000
BAR_MS = 30.0
MEMORY_BAR = 64 << 20
AGENT = ["sh", "-c", "read -r a b id rest; echo x > lib/$id"]


def make_root(root):
    (root / "lib").mkdir(parents=True)
    stories = [{"id": f"S{i}", "title": f"Story {i}"} for i in range(STORIES)]
    (root / "prd.json").write_text(json.dumps({"project": "bench", "userStories": stories}, indent=1))


def rows(context):
    if "loop" not in context.commands():
        yield Row("cordon loop", "not built")
        return
    os.environ["CORDON_HOME"] = str(context.temp / "loop-state")
    root = context.temp / "loop-root"
    make_root(root)
    metrics = context.temp / "loop.json"
    command = [context.cordon, "loop", "--root", str(root), "--prd", str(root / "prd.json"), "--quiet", "--max-iterations", str(STORIES)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    run([*command, "--metrics", str(metrics), "--", *AGENT], cwd=root)
    peak = max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) * 1024
    told = json.loads(metrics.read_text())
    assert told["passed"] == STORIES and len(os.listdir(root / "lib")) == STORIES, told
    own = told["overhead_ms"] / STORIES
    yield Row(f"one of {STORIES} stories, cordon's own time", f"{own:.1f} ms", f"{told['agents_ms'] / STORIES:.1f} ms agent", None, f"<= {BAR_MS} ms", own <= BAR_MS)
    yield Row("  memory of the loop, at most", f"{peak >> 20} MiB", "", None, f"<= {MEMORY_BAR >> 20} MiB", peak <= MEMORY_BAR)
