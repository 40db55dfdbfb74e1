# SPDX-License-Identifier: Apache-2.0
"""cordon loop in a git repository: one commit for each story, on the current branch or on that of the PRD, and no hook of the repository."""
import json
import os
import signal

import pytest

from loops import Loop, story
from support import poll


@pytest.fixture
def loop(cordon, box):
    top = box.mkdir("repo")
    for name, text in {"lib/shared.txt": "base\n", "docs/dirty": "clean\n", ".gitignore": "*.o\n"}.items():
        box.write(f"repo/{name}", text)
    commands = "git init -q -b main; git config user.name Ann; git config user.email ann@example.org; git add .; git commit -qm init"
    assert box.run("sh", "-ec", commands, cwd=top).returncode == 0
    hook = "#!/bin/sh\ntouch ran-a-hook\n"
    for name in ("post-commit", "reference-transaction", "pre-commit", "post-index-change"):
        box.write(f"repo/.git/hooks/{name}", hook, mode=0o755)
    box.write("repo/docs/dirty", "dirt\n")
    return Loop(cordon, box, top)


def git(loop, *args):
    # The hooks are there to be noticed when cordon runs them, not when the test does.
    done = loop.box.run("git", "-c", "core.hooksPath=/dev/null", *args, cwd=loop.top)
    assert done.returncode == 0, done
    return done.stdout


WORK = """
echo $id > lib/$id; echo object > lib/$id.o
case $id in S2) rm lib/S0; chmod +x lib/S2; ln -s S2 lib/link;; S1) echo more >> lib/shared.txt;; esac
"""


def subjects(loop, branch):
    return git(loop, "log", "--reverse", "--format=%an <%ae> %s", branch).splitlines()


@pytest.mark.parametrize("workers", ["1", "3"])
def test_results_become_commits_and_head_and_tree_advance(loop, workers):
    loop.prd(story("S0"), story("S1"), story("S2", dependencies=["S0"]))
    loop(WORK, "--max-workers", workers)
    assert sorted(subjects(loop, "main")[1:]) == [f"Ann <ann@example.org> S{i}: Title of S{i}" for i in range(3)]
    assert git(loop, "status", "--porcelain") == " M docs/dirty\n?? prd.json\n", "only the stories' changes were committed"
    tree = {line.split("\t")[1]: line.split()[0] for line in git(loop, "ls-tree", "-r", "main").splitlines()}
    assert tree == {".gitignore": "100644", "docs/dirty": "100644", "lib/S1": "100644", "lib/S2": "100755", "lib/link": "120000", "lib/shared.txt": "100644"}
    assert git(loop, "show", "main:docs/dirty") == "clean\n" and (loop.top / "lib/S1.o").exists()
    assert not list(loop.top.rglob("ran-a-hook")) and not (loop.top / ".git/index.lock").exists()
    assert "error" not in git(loop, "fsck", "--strict") and git(loop, "for-each-ref", "--format=%(refname)") == "refs/heads/main\n"


def test_a_scope_of_a_person_fences_the_agent_in_a_repository_too(loop):
    loop.prd(story("S0", fileScope=["lib/*.ts"]))
    loop("git status --porcelain >lib/s.ts; (echo x >lib/s.css) || exit 0", "--workspace", "lib", "--workspace-mode", "strict")
    assert loop.passed() == ["S0"] and not (loop.top / "lib/s.css").exists()
    assert subjects(loop, "main")[1:] == ["Ann <ann@example.org> S0: Title of S0"] and "lib/s.ts" in git(loop, "ls-tree", "-r", "main")


def test_the_branch_of_the_prd_gets_the_commits_and_the_checkout_stays(loop):
    loop.prd(story("S0"), story("S1"), story("S2", dependencies=["S0"]), branchName="feature/x")
    before = {path: path.read_bytes() for path in loop.top.rglob("*") if path.is_file() and ".git" not in path.parts}
    loop(WORK, "--max-workers", "2", "--max-iterations", "2", status=1)
    assert git(loop, "branch", "--show-current") == "main\n" and subjects(loop, "main") == ["Ann <ann@example.org> init"]
    after = {path: path.read_bytes() for path in loop.top.rglob("*") if path.is_file() and ".git" not in path.parts}
    assert {p: t for p, t in after.items() if p.name != "prd.json"} == {p: t for p, t in before.items() if p.name != "prd.json"}
    # The next call sees what the branch has, though the checkout has not.
    loop("test -e lib/S0 && test -e lib/S1 || exit 1" + WORK)
    assert len(subjects(loop, "feature/x")) == 4 and loop.passed() == ["S0", "S1", "S2"]
    assert git(loop, "show", "feature/x:lib/shared.txt") == "base\nmore\n" and git(loop, "show", "feature/x:docs/dirty") == "clean\n"
    assert "lib/S0\n" not in git(loop, "ls-tree", "-r", "--name-only", "feature/x") and loop.views() == []


@pytest.mark.parametrize("branch", [{}, {"branchName": "feature/x"}], ids=["current_branch", "own_branch"])
def test_results_below_a_view_are_committed_there_so_that_git_takes_none_of_them_back(loop, branch):
    """S1 is live until S2 has ended, so the result of S0 waits in a layer when S2 begins."""
    loop.prd(story("S0"), story("S1"), story("S2", dependencies=["S0"]), **branch)
    gate = loop.box.mkdir("gate")
    script = """
    case $id in
    S0) echo S0 > lib/S0; echo more >> lib/shared.txt; echo object > lib/S0.o;;
    S1) while ! test -e /gate/go; do sleep 0.02; done; echo S1 > lib/S1;;
    S2) git status --porcelain > /gate/status; git log -2 --format=%s > /gate/log; git branch --show-current > /gate/branch
        echo gone > lib/wrong; echo gone >> lib/shared.txt; git stash -q -u; git reset -q --hard; git clean -fdq
        cat lib/S0 lib/S0.o lib/shared.txt > /gate/seen; echo S2 > lib/S2; git fsck --strict > /gate/fsck 2>&1; touch /gate/go;;
    esac
    """
    loop(script, "--max-workers", "2", "--share", f"{gate}:/gate")
    seen = {path.name: path.read_text() for path in gate.iterdir()}
    name = branch.get("branchName", "main")
    assert seen["branch"] == f"{name}\n" and seen["log"] == "S0: Title of S0\ninit\n", seen
    assert seen["seen"] == "S0\nobject\nbase\nmore\n" and "error" not in seen["fsck"], seen
    assert [line for line in seen["status"].splitlines() if "lib/" in line] == [], seen
    assert git(loop, "show", f"{name}:lib/S0") == "S0\n" and git(loop, "show", f"{name}:lib/shared.txt") == "base\nmore\n"
    assert sorted(subjects(loop, name)[1:]) == [f"Ann <ann@example.org> S{i}: Title of S{i}" for i in range(3)]
    assert git(loop, "count-objects").split()[0] != "0" and "refs/stash" not in git(loop, "for-each-ref")


def test_what_an_agent_does_to_its_git_directory_stays_there(loop):
    """It commits outside its folder, moves branches and plants hooks; the host gets one commit with what is allowed."""
    loop.prd(story("S0"))
    script = """
    git config user.name Eve; git config user.email eve@example.org; git config core.hooksPath /tmp/hooks
    echo x > docs/outside; echo y > lib/inside; git add -f docs lib; git commit -qm "mine" ; git branch -f evil; git tag evil
    mkdir -p .git/hooks; echo 'touch ran-a-hook' > .git/hooks/post-checkout; exit 0
    """
    loop(script, "--workspace", "lib", "--workspace-mode", "strict")
    assert subjects(loop, "main") == ["Ann <ann@example.org> init", "Ann <ann@example.org> S0: Title of S0"]
    assert git(loop, "show", "--name-only", "--format=", "main") == "lib/inside\n"
    assert git(loop, "for-each-ref", "--format=%(refname)") == "refs/heads/main\n" and not (loop.top / "docs/outside").exists()
    assert "Eve" not in (loop.top / ".git/config").read_text() and not (loop.top / ".git/hooks/post-checkout").exists()


def test_a_loop_that_is_killed_makes_each_commit_once(loop, cordon):
    loop.prd(story("S0"), story("S1"), story("S2", dependencies=["S0"]))
    gate = loop.box.mkdir("gate")
    script = "case $id in S1) while ! test -e /gate/go; do sleep 0.02; done;; esac" + WORK
    args = ["--max-workers", "2", "--share", f"{gate}:/gate"]
    process = cordon.start(*loop.args(script, *args), cwd=loop.top)
    journal = lambda: "".join(path.read_text() for path in (loop.box.state / "state/loops").glob("*/journal"))
    poll(lambda: journal().count('"accepted"') >= 2, 60, "accepted results")
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    loop.box.write("gate/go", "")
    loop(script, *args)
    assert sorted(subjects(loop, "main")[1:]) == [f"Ann <ann@example.org> S{i}: Title of S{i}" for i in range(3)]
    assert git(loop, "status", "--porcelain") == " M docs/dirty\n?? prd.json\n"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_commits_that_were_made_before_a_kill_are_used(loop, cordon, workers):
    """The loop is killed while it brings results over: the next one has their commits from the journal."""
    loop.prd(story("S0"), story("S1"), story("S2", dependencies=["S0", "S1"]))
    process = cordon.start(*loop.args(WORK, "--max-workers", workers), cwd=loop.top)
    journal = lambda: [line for path in (loop.box.state / "state/loops").glob("*/journal") for line in path.read_text().splitlines()]
    poll(lambda: any('"committed"' in line for line in journal()), 60, "commits")
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    lines = journal()
    made = json.loads(next(line for line in lines if '"committed"' in line))
    calls = [str(json.loads(line)["n"]) for line in lines if '"event":"accepted"' in line]
    assert set(made["commits"]) <= set(calls) and all(len(id) == 40 for id in made["commits"].values())
    loop(WORK, "--max-workers", workers)
    assert sorted(subjects(loop, "main")[1:]) == [f"Ann <ann@example.org> S{i}: Title of S{i}" for i in range(3)]
    assert git(loop, "status", "--porcelain") == " M docs/dirty\n?? prd.json\n"


def test_without_commits_results_are_only_applied(loop):
    loop.prd(story("S0"))
    loop(WORK, "--git", "read")
    assert subjects(loop, "main") == ["Ann <ann@example.org> init"] and "?? lib/S0" in git(loop, "status", "--porcelain")
    loop.prd(story("A"), name="a.json", branchName="one")
    loop.prd(story("B"), name="b.json", branchName="two")
    assert "different values of branchName" in loop("exit 0", "--prd", "a.json", "--prd", "b.json", status=1).stderr


def test_the_repository_can_be_read_where_the_scope_of_a_story_is_a_fence(loop):
    loop.prd(story("S0", fileScope=["lib/**/*.log"]))
    loop("git log --format=%s > lib/new.log; cat docs/dirty >> lib/new.log; ! echo x > .git/x; true", "--git", "read", "--workspace", "lib,docs",
         "--workspace-mode", "strict")
    assert (loop.top / "lib/new.log").read_text() == "init\n" and not (loop.top / ".git/x").exists()
