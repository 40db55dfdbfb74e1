# SPDX-License-Identifier: Apache-2.0
"""A loop over many stories with agents of one line: what cordon itself costs for each, and how much memory the loop needs. In a git
repository beside an earlier build, which CORDON_BEFORE may name."""
import json
import os
import resource
import shutil

from rows import Row, median, run

STORIES = 1000
BAR_MS = 30.0
MEMORY_BAR = 64 << 20
GIT_STORIES = 50
GIT_ROUNDS = 5
GIT_BAR_MS = 40.0
GIT_BAR = 3  # processes
AGENT = ["sh", "-c", "read -r a b id rest; echo x > lib/$id"]


def make_root(root, n=STORIES):
    (root / "lib").mkdir(parents=True)
    stories = [{"id": f"S{i}", "title": f"Story {i}"} for i in range(n)]
    (root / "prd.json").write_text(json.dumps({"project": "bench", "userStories": stories}, indent=1))


def git_loop(cordon, top, **env):
    """Runs the loop in a fresh repository; returns what it told."""
    root, metrics = top / "root", top / "loop.json"
    make_root(root, GIT_STORIES)
    (root / ".gitignore").write_text("*.o\nnode_modules/\n")
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    for command in (["init", "-q", "-b", "main"], ["add", ".gitignore"], [*who, "commit", "-qm", "init"]):
        run(["git", *command], cwd=root)
    command = [cordon, "loop", "--root", str(root), "--prd", str(root / "prd.json"), "--quiet", "--max-iterations", str(GIT_STORIES)]
    run([*command, "--metrics", str(metrics), "--", *AGENT], cwd=root, env={**os.environ, "CORDON_HOME": str(top / "state"), **env})
    told = json.loads(metrics.read_text())
    made = int(run(["git", "rev-list", "--count", "main"], cwd=root).stdout)
    assert told["passed"] == GIT_STORIES and made == GIT_STORIES + 1, (told, made)
    return told


def count_git(cordon, top):
    """How many git processes a story takes: git writes a line for each, where the loop lets it write."""
    wrapper = top / "bin" / "git"
    wrapper.parent.mkdir(parents=True)
    wrapper.write_text(f'#!/bin/sh\nGIT_TRACE2_EVENT="${{GIT_DIR%/*}}/trace" exec {shutil.which("git")} "$@"\n')
    wrapper.chmod(0o755)
    git_loop(cordon, top, PATH=f"{wrapper.parent}:{os.environ['PATH']}")
    lines = [line for path in (top / "state/state/loops").glob("*/trace") for line in path.read_text().splitlines()]
    return sum(json.loads(line)["event"] == "start" for line in lines) / GIT_STORIES


def git_rows(context):
    before = os.environ.get("CORDON_BEFORE")
    own = {cordon: [] for cordon in (context.cordon, before) if cordon}
    for i in range(GIT_ROUNDS):
        for k, cordon in enumerate(own):
            own[cordon].append(git_loop(cordon, context.temp / f"loop-git-{i}-{k}")["overhead_ms"] / GIT_STORIES)
    ours, peer = median(own[context.cordon]), median(own[before]) if before else None
    yield Row(f"one of {GIT_STORIES} stories in a git repository", f"{ours:.1f} ms", f"{peer:.1f} ms before" if peer else "", ours / peer if peer else None,
              f"<= {GIT_BAR_MS} ms", ours <= GIT_BAR_MS)
    n = {cordon: count_git(cordon, context.temp / f"loop-count-{k}") for k, cordon in enumerate(own)}
    ours, peer = n[context.cordon], n[before] if before else None
    yield Row("  git processes for each", f"{ours:.1f}", f"{peer:.1f} before" if peer else "", ours / peer if peer else None, f"<= {GIT_BAR}", ours <= GIT_BAR)


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
    yield from git_rows(context)
