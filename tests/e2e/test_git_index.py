# SPDX-License-Identifier: Apache-2.0
"""What the host had staged when a run with commits began, what the run stages, and being killed while commits are taken over."""
import os
import signal
import time

import pytest

from repositories import Repository
from support import poll


@pytest.fixture
def repo(box):
    return Repository(box)


@pytest.fixture(params=["plain", "view"])
def work(request, cordon, repo):
    """Runs a script inside, and takes over what it did. Returns what cordon said."""

    def run(script, *options, apply=True):
        view = ("--cow", "--no-summary") if request.param == "view" else ()
        done = cordon("run", "--git", "commit", *view, *options, "--", "sh", "-euc", script, cwd=repo.path)
        assert done.returncode == 0, str(done)
        if view and apply:
            done = cordon("changes", "apply", "latest", cwd=repo.path)
            assert done.returncode == 0, str(done)
        return done

    return run


def whole(repo):
    """Index and refs name nothing that is missing."""
    done = repo.box.run("git", "fsck", "--connectivity-only", cwd=repo.path)
    assert done.returncode == 0 and "missing" not in done.stdout + done.stderr, str(done)
    repo.git("write-tree")


def test_small_files_that_are_staged_arrive(repo, work):
    work("mkdir p; touch p/__init__.py; printf x >p/x; git add p")
    assert repo.status() == "A  p/__init__.py\nA  p/x"
    whole(repo)
    repo.git("commit", "-q", "-m", "by the host")


def test_what_the_host_had_staged_stays_staged_and_is_not_judged(box, repo, work):
    box.write("repo/.envrc", "staged by the host\n")
    box.write("repo/lib/a.txt", "staged\n")
    repo.git("add", ".envrc", "lib/a.txt")
    box.write("repo/.envrc", "later\n")
    box.write("repo/lib/later", "later\n")
    repo.git("add", "-N", "lib/later")
    before = repo.status()
    work("echo x >docs/x; git add docs/x; git commit -q -m x docs/x")
    assert repo.subjects()[0] == "x" and repo.git("show", "--name-only", "--format=", "HEAD") == "docs/x"
    assert repo.status() == before and repo.git("show", ":.envrc") == "staged by the host"
    assert repo.git("diff", "--cached", "--name-only") == ".envrc\nlib/a.txt", "lib/later is only intended"
    whole(repo)


def test_what_the_host_had_staged_is_committed_changed_or_taken_back_by_the_run(box, repo, work):
    for name in "abc":
        box.write(f"repo/lib/{name}.txt", "staged\n")
    repo.git("add", "lib")
    work("git commit -q -m a lib/a.txt; echo more >>lib/b.txt; git add lib/b.txt; git reset -q lib/c.txt")
    assert repo.subjects()[0] == "a" and repo.git("show", "HEAD:lib/a.txt") == "staged"
    assert repo.status() == "A  lib/b.txt\n?? lib/c.txt" and repo.git("show", ":lib/b.txt") == "staged\nmore"


def test_a_file_that_the_host_only_intends_to_add_is_committed_by_the_run(box, repo, work):
    box.write("repo/lib/new", "new\n")
    repo.git("add", "-N", "lib/new")
    work("git add lib/new; git commit -q -m new")
    assert repo.subjects()[0] == "new" and repo.status() == ""


def test_a_protected_file_that_the_host_had_staged_is_not_changed_in_the_index(box, repo, work):
    box.write("repo/.envrc", "host\n")
    repo.git("add", ".envrc")
    work("id=$(echo agent | git hash-object -w --stdin); git update-index --cacheinfo 100644,$id,.envrc; echo x >docs/x; git add docs/x")
    assert repo.git("show", ":.envrc") == "host" and repo.git("show", ":docs/x") == "x"
    work("git rm -q --cached .envrc; echo y >docs/y; git add docs/y")
    assert repo.git("show", ":.envrc") == "host" and repo.git("show", ":docs/y") == "y"


def test_a_submodule_that_the_host_has_staged_is_no_obstacle(box, repo, work):
    repo.git("update-index", "--add", "--cacheinfo", "160000,1111111111111111111111111111111111111111,sub")
    work("echo x >docs/x; git add docs/x; git commit -q -m x docs/x")
    assert repo.subjects()[0] == "x"
    assert repo.git("ls-files", "-s", "sub").startswith("160000 1111")


def test_a_broken_ref_of_the_host_is_no_obstacle(box, repo, work):
    box.write("repo/.git/refs/heads/broken", "1" * 40 + "\n")
    work("echo x >docs/x; git add docs/x; git commit -q -m x")
    assert repo.subjects()[0] == "x"


def test_applying_a_view_again_changes_nothing_and_takes_over_what_the_host_took_back(box, cordon, repo):
    box.write("repo/host", "staged by the host\n")
    repo.git("add", "host")
    script = "echo n >new; git add new; git commit -q -m n; echo s >s; git add s"
    assert cordon("run", "--cow", "--no-summary", "--", "sh", "-euc", script, cwd=repo.path).returncode == 0
    for _ in range(2):
        done = cordon("changes", "apply", "latest", cwd=repo.path)
        assert done.returncode == 0 and repo.subjects() == ["n", "one"] and repo.status() == "A  s", str(done)
    repo.git("reset", "-q", "--soft", "HEAD~1")
    repo.git("reset", "-q", "new", "s")
    done = cordon("changes", "apply", "latest", cwd=repo.path)
    assert done.returncode == 0 and repo.subjects() == ["n", "one"] and repo.status() == "A  s", str(done)


# ---- while it is taken over ----


@pytest.fixture
def slow(box, cordon, repo):
    """Starts `cordon git take` or `changes apply` with a git that waits before or after a command, until a file is removed."""

    def start(when, command, *args):
        real = box.run("sh", "-c", "command -v git").stdout.strip()
        go = box.write("slow/wait")
        wait = f"touch {repo.path}/.git/refs/here; while [ -e {go} ]; do sleep 0.02; done; rm -f {repo.path}/.git/refs/here"
        wrap = f'#!/bin/sh\n[ "$1" = {command} ] || exec {real} "$@"\n'
        wrap += f"{wait}\nexec {real} \"$@\"\n" if when == "before" else f"{real} \"$@\" || exit\n{wait}\n"
        box.write("slow/git", wrap, mode=0o755)
        env = {"PATH": f"{box.path}/slow:{os.environ['PATH']}"}
        process = cordon.start(*args, cwd=repo.path, env=env)
        poll(lambda: (repo.path / ".git/refs/here").exists() or process.poll() is not None, 60, "git waits")
        assert process.poll() is None, process.communicate()
        return process, go

    return start


@pytest.fixture(params=["plain", "view"])
def left(request, cordon, repo, box):
    """A run whose commits wait; returns the command that takes them over."""

    def run(script):
        if request.param == "view":
            done = cordon("run", "--cow", "--no-summary", "--", "sh", "-euc", script, cwd=repo.path)
            assert done.returncode == 0, str(done)
            return ("changes", "apply", "latest")
        lock = box.write("repo/.git/index.lock")
        done = cordon("run", "--git", "commit", "--", "sh", "-euc", script, cwd=repo.path)
        assert "index.lock exists" in done.stderr, str(done)
        lock.unlink()
        return ("git", "take", "latest")

    return run


POINTS = [("before", "update-index"), ("before", "update-ref"), ("after", "update-ref"), ("after", "symbolic-ref")]


@pytest.mark.parametrize("when, command", POINTS, ids=[" ".join(point) for point in POINTS])
def test_killed_at_any_point_the_next_call_ends_what_was_begun(box, cordon, repo, left, slow, when, command):
    box.write("repo/host", "staged by the host\n")
    repo.git("add", "host")
    script = "echo n >new; git add new; git commit -q -m n new; echo x >>lib/a.txt; git commit -q -m a lib/a.txt; git switch -q -c other; echo s >s; git add s"
    args = left(script)
    process, go = slow(when, command, *args)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    busy = cordon(*args, cwd=repo.path)
    assert busy.returncode == 1 and "has not ended" in busy.stderr, "the git of the killed process still runs"
    go.unlink()
    poll(lambda: not (repo.path / ".git/refs/here").exists(), 20, "git ends")
    time.sleep(0.1)
    done = cordon(*args, cwd=repo.path)
    assert done.returncode == 0, str(done)
    assert repo.git("symbolic-ref", "HEAD") == "refs/heads/other" and repo.subjects() == ["a", "n", "one"]
    assert repo.status() == "A  host\nA  s"
    whole(repo)
    assert not list(repo.path.glob(".git/*lock*"))
    repo.git("commit", "-q", "-m", "by the host")


def test_what_the_host_stages_while_files_are_written_is_not_lost(box, cordon, repo):
    script = "mkdir many; for i in $(seq 3000); do echo $i >many/$i; done; git add many; git commit -q -m many"
    done = cordon("run", "--cow", "--no-summary", "--", "sh", "-euc", script, cwd=repo.path)
    assert done.returncode == 0, str(done)
    process = cordon.start("changes", "apply", "latest", cwd=repo.path)
    while not (repo.path / "many").exists() and process.poll() is None:
        pass
    os.kill(process.pid, signal.SIGSTOP)
    assert repo.subjects() == ["one"], "it is judged, and not taken over"
    box.write("repo/mine", "mine\n")
    repo.git("add", "mine")
    os.kill(process.pid, signal.SIGCONT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1 and b"the host staged changes" in os.fsencode(said), said
    assert repo.subjects() == ["one"] and repo.status().startswith("A  mine"), "nothing moved, and what the host staged is there"
    assert not list(repo.path.glob(".git/*lock*"))
