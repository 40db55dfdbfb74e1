# SPDX-License-Identifier: Apache-2.0
"""Links in the git directory of a run without `--git` (class H): git on the host follows those at packed-refs, COMMIT_EDITMSG and in
logs, and would write where they lead. The proof is that there is none afterwards, and that what git does every day works."""
import os
import subprocess

import pytest

WAYS = {
    "a link": "ln -s {far} .git/{name}",
    "a link from elsewhere": "ln -s {far} src/l; mv src/l .git/{name}",
    "a link from the top": "ln -s {far} l; mv l .git/{name}",
    "a second name of a link": "ln -s {far} l; ln -P l .git/{name}",
    "a second name of a link from elsewhere": "ln -s {far} src/l; ln -P src/l .git/{name}",
    "an exchange": "ln -s {far} src/l; echo x >.git/{name}; python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b\"src/l\", -100, b\".git/{name}\", 2)'",
    "an exchange the other way": "ln -s {far} l; echo x >.git/{name}; python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b\".git/{name}\", -100, b\"l\", 2)'",
    "a directory with a link": "mkdir -p src/d; ln -s {far} src/d/l; mkdir -p $(dirname .git/{name}); python3 -c 'import os; os.rename(\"src/d\", \".git/{name}.d\")'",
    "a directory from the top": "mkdir d; ln -s {far} d/l; python3 -c 'import os; os.rename(\"d\", \".git/{name}.d\")'",
    "a directory that leaves and comes back": "mkdir .git/{name}.d; mv .git/{name}.d src/d; ln -s {far} src/d/l; python3 -c 'import os; os.rename(\"src/d\", \".git/{name}.d\")'",
    "in a new directory": "mkdir -p .git/new/deep; ln -s {far} .git/new/deep/l",
    "by a descriptor": "ln -s {far} l; python3 -c 'import ctypes, os; fd = os.open(\"l\", os.O_PATH | os.O_NOFOLLOW); ctypes.CDLL(None).linkat(fd, b\"\", -100, b\".git/{name}\", 0x1000)'",
}


@pytest.fixture
def repo(box):
    top = box.mkdir("repo")
    box.write("repo/src/s.txt", "s\n")
    script = "git init -q -b main; git config user.name Host; git config user.email host@example.org; git add .; git commit -q -m one; git branch gone"
    assert box.run("sh", "-ec", script, cwd=top).returncode == 0
    return top


def links(top):
    found = []
    for directory, dirs, files in os.walk(top):
        found += [os.path.join(directory, name) for name in dirs + files if os.path.islink(os.path.join(directory, name))]
    return found


@pytest.mark.parametrize("options", [(), ("--lens", "always")], ids=["held", "lens"])
@pytest.mark.parametrize("name", ["packed-refs", "logs/refs/stash"])
@pytest.mark.parametrize("way", WAYS)
def test_no_link_comes_into_a_git_directory_of_the_host(cordon, repo, way, name, options):
    far = repo.parent / "far"
    done = cordon("run", *options, "--", "sh", "-c", WAYS[way].format(far=far, name=name), cwd=repo)
    assert links(repo / ".git") == [], str(done)
    assert links(repo / "src") or (repo / "l").is_symlink() or links(repo) or way in ("a link", "in a new directory"), "elsewhere links are made as ever"
    assert not far.exists()


@pytest.mark.parametrize("options", [(), ("--lens", "always")], ids=["held", "lens"])
def test_what_git_does_every_day_needs_no_links(box, cordon, repo, options):
    script = (
        "echo 1 >>src/s.txt; git commit -q -a -m two; git gc -q; git pack-refs --all; git checkout -q -b y; echo 2 >src/t.txt; git add src; git stash -q; git stash pop -q;"
        " git commit -q -a -m three; git rebase -q --onto main~1 main y; git checkout -q main; git merge -q --no-edit y; git tag -a -m t v1; git branch -d gone -q;"
        " git reflog expire --expire=now --all; git repack -a -d -q; git worktree add -q ../repo/wt; git worktree remove wt; ln -s s.txt src/link; git add src; git commit -q -m link"
    )
    done = cordon("run", *options, "--", "sh", "-euc", script, cwd=repo)
    assert done.returncode == 0, str(done)
    assert box.run("git", "fsck", "--strict", cwd=repo).returncode == 0
    assert box.run("git", "status", "--porcelain", cwd=repo).stdout == ""
    assert subprocess.run(["readlink", repo / "src/link"], capture_output=True, check=True).stdout == b"s.txt\n"


def test_the_refusal_is_told(cordon, repo):
    done = cordon("run", "--", "sh", "-c", "ln -s /x .git/packed-refs", cwd=repo)
    assert ".git/packed-refs" in done.stderr and "link in a git directory" in done.stderr, str(done)
