# SPDX-License-Identifier: Apache-2.0
"""The commits of a loop, which cordon writes itself: the same as git's own, with few processes, whatever the repository contains."""
import json
import os
import random
import shutil
import socket
import threading

import pytest

from loops import Loop, story


def make(cordon, box, *init, files=()):
    top = box.mkdir("repo")
    for name, text in {"lib/shared.txt": "base\n", **dict(files)}.items():
        box.write(f"repo/{name}", text)
    commands = f"git init -q -b main {' '.join(init)}; git config user.name Ann; git config user.email ann@example.org; git add -A -f; git commit -qm init"
    assert box.run("sh", "-ec", commands, cwd=top).returncode == 0
    return Loop(cordon, box, top)


def git(loop, *args, **options):
    done = loop.box.run("git", *args, cwd=loop.top, **options)
    assert done.returncode == 0, done
    return done.stdout


class Traced:
    """A git on PATH that tells us of each process that it is or starts. It may write nowhere, but it may speak."""

    def __init__(self, box):
        path = box.path / "trace"
        self.heard, self.socket = [], socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        os.chmod(path, 0o777)
        box.write("traced/git", f'#!/bin/sh\nGIT_TRACE2_EVENT=af_unix:dgram:{path} exec {shutil.which("git")} "$@"\n', mode=0o755)
        self.env = {"PATH": f"{box.path / 'traced'}:{os.environ['PATH']}"}
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        while (packet := self.socket.recv(1 << 16)) != b"end":
            self.heard += [json.loads(line) for line in packet.decode().splitlines()]

    def commands(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.sendto(b"end", self.socket.getsockname())
        self.thread.join(60)
        self.socket.close()
        return [event["argv"][1] for event in self.heard if event["event"] == "start"]


@pytest.mark.parametrize("branch", [{}, {"branchName": "feature/x"}], ids=["current_branch", "own_branch"])
@pytest.mark.parametrize("workers", ["1", "3"])
def test_a_story_takes_at_most_three_git_processes(cordon, box, workers, branch):
    """And one for the whole loop. A file that is ignored is among the results, so git is asked about that, too."""
    loop = make(cordon, box, files={".gitignore": "*.o\n"}.items())
    stories = [story(f"S{i}") for i in range(6)]
    loop.prd(*stories, **branch)
    traced = Traced(box)
    loop("echo $id > lib/$id; echo object > lib/$id.o", "--max-workers", workers, env=traced.env)
    commands = traced.commands()
    name = branch.get("branchName", "main")
    assert sorted(git(loop, "ls-tree", "--name-only", f"{name}:lib").split()) == sorted([*(one["id"] for one in stories), "shared.txt"])
    assert commands.count("cat-file") == 1 and "update-ref" in commands, commands
    assert len(commands) - 1 <= 3 * len(stories), commands


def test_nobody_is_asked_about_rules_that_cannot_be_about_a_result(cordon, box):
    rules = "\ufeff# lib/S0\n\n!lib/S0\nnode_modules/\r\n/build\n*.[oa]\ndocs\\*\n**/target/**   \n"
    loop = make(cordon, box, files={".gitignore": rules, "lib/.gitignore": "*.tmp\n"}.items())
    loop.prd(story("S0"), story("S1"))
    traced = Traced(box)
    loop("mkdir -p lib/deep/er; echo $id > lib/deep/er/$id", env=traced.env)
    assert sorted(traced.commands()) == ["cat-file", "update-index", "update-index", "update-ref", "update-ref"]
    assert git(loop, "ls-tree", "-r", "--name-only", "main:lib/deep") == "er/S0\ner/S1\n" and git(loop, "status", "--porcelain") == "?? prd.json\n"


RULES = ["*.o", "!keep.o", "LIB2/", "/a", "a/b", "**/c", "d/**", "e?", "[f-h]*", "\\!x", "sp ace", "*", "**/k/*.o", "\\#y", "l*/m"]


@pytest.mark.parametrize("seed", range(3))
def test_ignored_is_what_git_says(cordon, box, seed):
    """Whatever the rules: results are in the commit exactly if `git check-ignore` does not name them."""
    chance = random.Random(seed)
    names = ["a", "b", "c", "d", "e1", "f.o", "keep.o", "x.o", "lib2", "!x", "sp ace", "#y", "k", "m", "z"]
    files = {"/".join(chance.choices(names, k=chance.randint(1, 4))) for _ in range(40)}
    files = {path for path in files if not any(other.startswith(path + "/") for other in files)}
    rules = {".gitignore": "\n".join(chance.sample(RULES, 4)) + "\n", "k/.gitignore": "\n".join(chance.sample(RULES, 3))}
    loop = make(cordon, box, files=rules.items())
    loop.prd(story("S0"))
    lines = [f"mkdir -p './{os.path.dirname(path)}'; echo x > './{path}'" for path in sorted(files)]
    loop("\n".join(lines))
    done = box.run("git", "check-ignore", "--no-index", "-z", "--stdin", cwd=loop.top, input="\0".join(sorted(files)) + "\0")
    expected = files - set(done.stdout.split("\0"))
    made = set(git(loop, "-c", "core.quotePath=false", "diff-tree", "-r", "-z", "--name-only", "--no-commit-id", "main").split("\0")) - {""}
    assert made == (expected if expected else set()), rules


def work(chance, top):
    """Lines of shell that make, change, remove and replace files, links and directories below `top` by each other."""
    names = ["a", "a.b", "a-b", "a0", "b", "-f", "c d", "é", "new\nline"]
    lines = [f"mkdir -p {top}; cd {top}"]
    for _ in range(chance.randint(3, 12)):
        path = "./" + "/".join(chance.choices(names, k=chance.randint(1, 3)))
        quoted, parent = f"'{path}'", f"'{os.path.dirname(path)}'"
        lines += [f"mkdir -p -- {parent} 2>/dev/null || {{ rm -rf -- './{path.split('/')[1]}'; mkdir -p -- {parent}; }}"]
        lines += [chance.choice([
            f"rm -rf -- {quoted}; echo {chance.random()} > {quoted}",
            f"rm -rf -- {quoted}; echo {chance.random()} > {quoted}; chmod +x {quoted}",
            f"rm -rf -- {quoted}; ln -s '{chance.choice(names[:5])}' {quoted}",
            f"rm -rf -- {quoted}",
            f"rm -rf -- {quoted}; mkdir {quoted}; head -c {chance.choice([0, 1, 65535, 65536, 70000])} /dev/zero > {quoted}/zero",
            f"rm -rf -- {quoted}; mkdir {quoted}; echo x > {quoted}/x; echo y > {quoted}/y",
        ])]
    return "\n".join(lines)


@pytest.mark.parametrize("workers", ["1", "3"])
@pytest.mark.parametrize("format", ["sha1", "sha256"])
def test_commits_are_what_git_would_have_made_of_the_tree(cordon, box, format, workers):
    """Of one worker after the other in one directory, and of several beside each other, each in its own."""
    chance = random.Random(f"{format} {workers}")
    loop = make(cordon, box, f"--object-format={format}", files={"lib/a/b/old": "old\n", "lib/b": "b\n", "top": "top\n"}.items())
    stories = [story(f"S{i}") for i in range(6)]
    loop.prd(*stories)
    cases = "\n".join(f"{one['id']})\n{work(chance, 'lib' if workers == '1' else 'lib/' + one['id'])}\n;;" for one in stories)
    loop(f"case $id in\n{cases}\nesac; echo $id > $id", "--max-workers", workers)
    assert len(loop.passed()) == len(stories)
    # A fresh index of the tree has the same content, and our own knows all its files.
    (loop.top / "prd.json").unlink()
    assert git(loop, "diff-files", "--raw") == "" and git(loop, "status", "--porcelain") == ""
    git(loop, "add", "-A", env={"GIT_INDEX_FILE": str(box.path / "fresh-index")})
    assert git(loop, "write-tree", env={"GIT_INDEX_FILE": str(box.path / "fresh-index")}) == git(loop, "rev-parse", "main^{tree}")
    assert git(loop, "rev-list", "--count", "main") == "7\n"
    assert git(loop, "reflog", "-1", "--format=%gs", "main") == "cordon loop\n"
    done = box.run("git", "fsck", "--strict", "--no-dangling", cwd=loop.top)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done


def test_what_is_staged_and_dirty_stays(cordon, box):
    loop = make(cordon, box, files={"docs/dirty": "clean\n", "docs/staged": "clean\n"}.items())
    box.write("repo/docs/dirty", "dirt\n")
    box.write("repo/docs/staged", "staged\n")
    git(loop, "add", "docs/staged")
    loop.prd(story("S0"), story("S1"))
    loop("echo $id > lib/$id; rm -f lib/shared.txt")
    assert git(loop, "status", "--porcelain") == " M docs/dirty\nM  docs/staged\n?? prd.json\n"
    assert git(loop, "ls-tree", "-r", "--name-only", "main") == "docs/dirty\ndocs/staged\nlib/S0\nlib/S1\n"


def test_a_result_with_more_changes_than_fit_in_a_command(cordon, box):
    loop = make(cordon, box)
    loop.prd(story("S0"))
    loop(f"for i in $(seq 300); do echo $i > lib/{'x' * 220}-$i; done")
    (loop.top / "prd.json").unlink()
    assert git(loop, "status", "--porcelain") == "" and git(loop, "diff-files", "--raw") == ""
    assert len(git(loop, "ls-tree", "-r", "--name-only", "main").splitlines()) == 301


BROKEN = {
    "no_name": b"100644 \0" + b"\1" * 20,
    "no_mode": b" x\0" + b"\1" * 20,
    "slash": b"100644 a/b\0" + b"\1" * 20,
    "no_number": b"10x644 a\0" + b"\1" * 20,
    "short_id": b"100644 a\0" + b"\1" * 19,
    "no_end": b"100644 aaaaaaaaaaaaaaaaaaaaaaaaa",
    "long_mode": b"0" * 40 + b" a\0" + b"\1" * 20,
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_tree_is_an_error_and_nothing_is_committed(cordon, box, content):
    loop = make(cordon, box)
    (box.path / "content").write_bytes(content)
    made = git(loop, "hash-object", "-w", "-t", "tree", "--literally", str(box.path / "content")).strip()
    root = loop.box.run("git", "hash-object", "-w", "-t", "tree", "--literally", "--stdin", cwd=loop.top, input=b"40000 lib\0" + bytes.fromhex(made)).stdout.strip()
    commit = git(loop, "commit-tree", "-m", "broken", root).strip()
    git(loop, "update-ref", "refs/heads/main", commit)
    loop.prd(story("S0"))
    done = loop("echo $id > lib/$id", status=1)
    assert done.stderr.splitlines()[-1] == f"cordon: the commit of S0: cannot read the tree {made}: Bad message", done
    assert git(loop, "rev-parse", "main").strip() == commit and loop.passed() == [] and not (loop.top / ".git/index.lock").exists()


def test_links_among_the_objects_lead_nowhere(cordon, box):
    loop = make(cordon, box)
    outside = box.mkdir("outside")
    for i in range(256):
        path = loop.top / f".git/objects/{i:02x}"
        if not path.exists():
            path.symlink_to(outside)
    loop.prd(story("S0"))
    done = loop("echo $id > lib/$id", status=1)
    assert "cannot write to the objects of the repository" in done.stderr and os.listdir(outside) == []
    assert loop.passed() == [] and git(loop, "rev-list", "--count", "main") == "1\n"
