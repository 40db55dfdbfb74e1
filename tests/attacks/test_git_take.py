# SPDX-License-Identifier: Apache-2.0
"""Attacks on taking over commits (classes H and K of the threats): what a run leaves in its git directory harms no host.

Each attack runs inside a live sandbox with `--git commit`; the proof is what the host's repository has afterwards.
"""
import os
import pathlib
import stat
import threading

import pytest

from support import poll

# Tools for the scripts inside: raw objects that git's own commands would not make.
TOOLS = r"""
set -eu
raw() { git hash-object -t "$1" -w --literally --stdin; }
blob=$(echo evil | raw blob)
bin() { python3 -c 'import sys; sys.stdout.buffer.write(bytes.fromhex(sys.argv[1]))' "$1"; }
tree() { { printf '%s %s\0' "$1" "$2"; bin "$3"; } | raw tree; }           # a tree with one entry: mode, name, id
commit() { git update-ref HEAD $(git commit-tree -p HEAD -m evil "$1"); }  # the tree of the next commit
staged() { git update-index --add --cacheinfo "$1,$2,$3"; git commit -q -m evil; }
"""


@pytest.fixture
def repo(box):
    top = box.mkdir("repo")
    box.write("repo/lib/a.txt", "a\n")
    box.write("repo/docs/b.txt", "b\n")
    box.write("repo/AGENTS.md", "rules\n")
    script = "git init -q -b main; git config user.name Host; git config user.email host@example.org; git add .; git commit -q -m one"
    assert box.run("sh", "-ec", script, cwd=top).returncode == 0
    return top


@pytest.fixture
def git(box, repo):
    def run(*args):
        done = box.run("git", *args, cwd=repo)
        assert done.returncode == 0, str(done)
        return done.stdout.strip()

    return run


@pytest.fixture
def attack(cordon, repo):
    def run(script, *options, **more):
        return cordon("run", "--git", "commit", *options, "--", "sh", "-c", TOOLS + script, cwd=repo, **more)

    return run


def everything(repo):
    """What the host's repository has, but for what git itself notes about files."""
    found = {}
    for directory, _, names in os.walk(repo / ".git"):
        for name in names:
            path = os.path.join(directory, name)
            if name != "index":
                found[os.path.relpath(path, repo)] = os.readlink(path) if os.path.islink(path) else open(path, "rb").read()
    return found


# name: (script, options, what is said)
COMMITS = {
    "an entry .git": ("commit $(tree 40000 .git $(tree 100644 config $blob))", (), "hasDotgit"),
    "a twin of .git": ("commit $(tree 40000 .GIT $(tree 100644 config $blob))", (), "hasDotgit"),
    "a twin that HFS+ folds": ("commit $(tree 40000 $(printf '.g\\342\\200\\214it') $(tree 100644 config $blob))", (), "hasDotgit"),
    "a short name of NTFS": ("commit $(tree 40000 GIT~1 $(tree 100644 config $blob))", (), "hasDotgit"),
    "an entry ..": ("commit $(tree 40000 .. $(tree 100644 x $blob))", (), "hasDotdot"),
    "an entry with a slash": ("commit $(tree 100644 ../x $blob)", (), "fullPathname"),
    "a gitlink": ("staged 160000 $(git rev-parse HEAD) sub", (), "a submodule (gitlink) is never taken over"),
    "a submodule that executes": (
        "staged 100644 $(printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = -u./payload\\n' | raw blob) .gitmodules",
        ("--unprotect", ".gitmodules"),
        "gitmodulesUrl",
    ),
    ".gitmodules": ("staged 100644 $(printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = ext::sh\\n' | raw blob) .gitmodules", (), ".gitmodules"),
    "attributes further down": ("staged 100644 $blob lib/.gitattributes", (), "lib/.gitattributes"),
    "what the host executes": ("staged 100644 $blob .vscode/tasks.json", (), ".vscode/tasks.json"),
    "a link above what the host executes": ("staged 120000 $(printf lib | raw blob) .vscode", (), ".vscode/tasks.json"),
    "a link above a protected path": ("staged 120000 $(printf lib | raw blob) conf", ("--protect", "conf/deep/rules"), "conf/deep/rules"),
    "a link above a denied path": ("staged 120000 $(printf lib | raw blob) secrets", ("--deny", "secrets/key"), "secrets/key"),
    "a file in the place of a directory with a protected path": ("staged 100644 $blob conf", ("--protect", "conf/rules"), "conf/rules"),
    "a protected path": ("staged 100644 $blob AGENTS.md", ("--protect", "AGENTS.md"), "AGENTS.md"),
    "a denied path": ("staged 100644 $blob secrets/key", ("--deny", "secrets"), "secrets/key"),
    "a protected path in permissive mode": ("staged 100644 $blob AGENTS.md", ("--workspace", "lib", "--protect", "AGENTS.md"), "AGENTS.md"),
    "a path outside a strict scope": (
        "staged 100644 $blob docs/evil",
        ("--workspace", "lib", "--workspace-mode", "strict"),
        "docs/evil",
    ),
    "a change that the next commit takes back": (
        "staged 100644 $blob AGENTS.md; git commit-tree HEAD~1^{tree} -p HEAD -m clean >x; git update-ref HEAD $(cat x)",
        ("--protect", "AGENTS.md"),
        "AGENTS.md",
    ),
    "a merge that hides a change": (
        "git checkout -q -b side; echo s >lib/s; git add lib; git commit -q -m s; git checkout -q main; echo m >lib/m; git add lib; git commit -q -m m;"
        " git merge -q --no-commit side; git update-index --add --cacheinfo 100644,$blob,AGENTS.md; git commit -q -m merged",
        ("--protect", "AGENTS.md"),
        "AGENTS.md",
    ),
    "a branch without what the host committed": (
        "git checkout -q --detach; git update-ref refs/heads/main old; git checkout -q main",
        ("--protect", "AGENTS.md"),
        "AGENTS.md",
    ),
    "a tree of ten thousand million files": (
        "t=$(tree 100644 f $blob); for i in 1 2 3 4 5 6 7 8 9 10; do"
        " t=$(for n in 0 1 2 3 4 5 6 7 8 9; do printf '40000 %s\\0' $n; bin $t; done | raw tree); done; commit $t",
        (),
        "git could not list the files of the new commit",
    ),
    "the same on another branch": (
        "t=$(tree 100644 f $blob); for i in 1 2 3 4 5 6 7 8 9 10; do"
        " t=$(for n in 0 1 2 3 4 5 6 7 8 9; do printf '40000 %s\\0' $n; bin $t; done | raw tree); done; git branch bomb $(git commit-tree -m x $t)",
        (),
        "git could not compare the new commits",
    ),
    "an object under the name of another": (
        "o=.git/objects; printf 'x' >lib/x; git add lib/x; git commit -q -m x; id=$(git rev-parse HEAD:lib/x); other=$(echo other | raw blob);"
        " chmod -R u+w $o; cp $o/$(echo $other | sed 's,^..,&/,') $o/$(echo $id | sed 's,^..,&/,')",
        (),
        "git could not",
    ),
    "a HEAD that is a tag": (
        "echo n >lib/new; git add lib; git commit -q -m n; git tag -a -m t v1; x=$(git rev-parse v1); echo $x >.git/HEAD",
        (),
        "git could not find the commits of all refs",
    ),
    "a tag of a tree": ("git tag secret $(tree 100644 AGENTS.md $blob)", ("--protect", "AGENTS.md"), "git could not find the commits of all refs"),
    "a staged file that is missing": (
        "id=$(echo z is staged | raw blob); git update-index --add --cacheinfo 100644,$id,z; printf '100644 %s\\tn\\n:1 2 3 ^%s\\0' $blob $id |"
        " git update-index -z --index-info; rm -f .git/objects/$(echo $id | sed 's,^..,&/,')",
        (),
        "git could not",
    ),
    "a staged tree": ("git update-index --add --cacheinfo 100644,$(tree 100644 f $blob),z", (), "git could not find all that is staged"),
    "a commit that is not there": ("mkdir -p .git/refs/heads; printf '%040d\\n' 1 >.git/refs/heads/main", (), "git could not"),
}


# Bombs take seconds until they meet a bound.
LONG = {"a tree of ten thousand million files", "the same on another branch"}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long) if name in LONG else name for name in COMMITS])
def test_a_hostile_commit_stays_away_from_the_host(box, repo, git, attack, cordon, name):
    script, options, said = COMMITS[name]
    if "old" in script:
        git("branch", "old")
        box.write("repo/AGENTS.md", "newer rules\n")
        git("commit", "-q", "-a", "-m", "rules")
    before = everything(repo)
    done = attack(script, *options)
    assert said in done.stderr and "Nothing was taken over" in done.stderr, str(done)
    assert everything(repo) == before
    assert len(cordon("git", "list", "--json", cwd=repo).json()) == 1


# name: (arguments of packs.py, what is said). The commit's tree has what they print.
BOMBS = {
    "a delta that makes 3 GiB of 8 MiB": (("growing", "384"), "git could not"),
    "a pack that says it has 4 thousand million objects": (("counted", "4294967295"), "git could not"),
    "9 GiB of zeros in 9 MiB": (("expanding", "9"), "git could not measure the new objects: the new objects have 96"),
    "the same that says it has 100 bytes": (("lying", "9"), "git could not pack the new objects: "),
}


@pytest.mark.limit(600)
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.soak if "9 GiB" in name else pytest.mark.long) for name in BOMBS])
def test_a_pack_that_is_a_bomb_meets_a_bound(box, repo, attack, name):
    arguments, said = BOMBS[name]
    before = everything(repo)
    box.write("repo/packs.py", (pathlib.Path(__file__).parents[1] / "packs.py").read_text())
    script = f"mkdir -p .git/objects/pack; id=$(python3 packs.py {' '.join(arguments)}); commit $(tree 100644 bomb $id)"
    done = attack(script, timeout=300)
    assert said in done.stderr and "Nothing was taken over" in done.stderr, str(done)
    assert everything(repo) == before


@pytest.mark.long
def test_a_long_chain_of_deltas_is_taken_over_like_any_other_pack(box, repo, git, cordon, attack):
    box.write("repo/lib/packs.py", (pathlib.Path(__file__).parents[1] / "packs.py").read_text())
    script = (
        "mkdir -p .git/objects/pack; python3 lib/packs.py chain 1000 >ids;"
        " commit $(awk '{ printf \"100644 blob %s\\t%05d\\n\", $1, NR }' ids | git mktree); rm ids; git reset -q --hard"
    )
    done = attack(script)
    assert "[GIT] main: " in done.stderr and git("log", "--format=%s").split() == ["evil", "one"], str(done)
    assert git("fsck", "--strict", "--no-dangling") == "" and git("cat-file", "-p", "HEAD:01000").endswith("00000999")


def test_a_host_that_commits_all_the_time_loses_no_commit(box, repo, git, attack):
    """The host's commits and those of runs race for one branch. Whoever loses is told, and nothing that won is gone."""
    made, stop = [], threading.Event()

    def host():
        while not stop.is_set():
            if box.run("git", "commit", "-q", "--allow-empty", "-m", "host", cwd=repo).returncode == 0:
                made.append(git("rev-parse", "HEAD"))

    worker = threading.Thread(target=host)
    worker.start()
    try:
        ends = [attack("git commit -q --allow-empty -m mine").stderr for _ in range(6)]
    finally:
        stop.set()
        worker.join()
    history = git("rev-list", "main").split()
    assert made and set(made) <= set(history) and git("fsck", "--strict", "--no-dangling") == ""
    assert all("[GIT] main: " in said or "on the host" in said or "have moved" in said or "exists" in said for said in ends), ends


def test_a_worktree_that_a_run_adds_stays_in_the_run_and_its_branch_is_taken_over(repo, git, attack):
    done = attack("git worktree add -q wt -b side; echo w >wt/w; git -C wt add w; git -C wt commit -q -m side; git worktree list")
    assert str(repo / "wt") in done.stdout and "[GIT] side: new branch" in done.stderr, str(done)
    assert git("log", "--format=%s", "side").split() == ["side", "one"] and len(git("worktree", "list").splitlines()) == 1
    assert not (repo / ".git/worktrees").exists() and (repo / "wt/w").read_text() == "w\n"


def test_the_same_commands_without_malice_are_taken_over(git, attack):
    done = attack("staged 100644 $blob lib/new.txt; commit $(git rev-parse HEAD^{tree})")
    assert done.returncode == 0 and git("log", "--format=%s").split() == ["evil", "evil", "one"], str(done)


PLANTED = {
    "fsmonitor": "git config core.fsmonitor $canary",
    "hooks": "mkdir -p .git/hooks; for h in pre-commit reference-transaction post-index-change; do cp $canary .git/hooks/$h; done",
    "hooksPath": "mkdir -p .git/own; cp $canary .git/own/reference-transaction; git config core.hooksPath $PWD/.git/own",
    "a filter": "printf '* filter=x\\n' >.git/info/attributes; git config filter.x.clean $canary; git config filter.x.smudge $canary",
    "programs": "for k in core.sshCommand core.pager core.editor diff.external gpg.program uploadpack.packObjectsHook; do git config $k $canary; done",
    "an alternate": "mkdir -p .git/objects/info; echo /etc >>.git/objects/info/alternates",
    "replaced objects": "c=$(git commit-tree -p HEAD -m other HEAD^{tree}); git replace HEAD $c || true; mkdir -p .git/info; echo $c >.git/info/grafts",
}


def test_what_is_planted_in_the_git_directory_runs_nothing_and_stays_away(box, repo, git, attack):
    proof = box.path / "home/proof"
    canary = box.write("repo/lib/canary", f"#!/bin/sh\ntouch {proof}\n", mode=0o755)
    config = (repo / ".git/config").read_bytes()
    planted = "; ".join(PLANTED.values())
    done = attack(f"canary={canary}; echo x >lib/x; git add lib; git commit -q -m two; {planted}; true")
    assert git("log", "-1", "--format=%s") == "two" and done.returncode == 0, str(done)
    assert git("status", "--porcelain") == "" and not proof.exists()
    assert (repo / ".git/config").read_bytes() == config and not (repo / ".git/hooks/reference-transaction").exists()
    assert not (repo / ".git/info/grafts").exists() and "replace" not in git("for-each-ref")


def test_git_on_the_host_obeys_nothing_that_an_earlier_run_left(box, repo, git, attack, cordon):
    proof = box.path / "home/proof"
    canary = box.write("canary", f"#!/bin/sh\ntouch {proof}\ncat\n", mode=0o755)
    box.write("repo/.gitattributes", "* filter=x diff=x\n")
    git("add", ".")
    git("commit", "-q", "-m", "attributes")
    box.write("repo/.git/hooks/reference-transaction", f"#!/bin/sh\ntouch {proof}\n", mode=0o755)
    box.write("repo/.git/hooks/post-index-change", f"#!/bin/sh\ntouch {proof}\n", mode=0o755)
    for key in ("core.fsmonitor", "filter.x.clean", "filter.x.smudge", "filter.x.process", "diff.x.textconv", "diff.external", "core.sshCommand"):
        box.run("git", "-c", "core.fsmonitor=false", "config", key, canary, cwd=repo)
    proof.unlink(missing_ok=True)
    done = attack("echo x >lib/x; git add lib; git commit -q -m two")
    checked = cordon("git", "check", "HEAD", cwd=repo)
    assert not proof.exists() and checked.returncode == 0 and "[GIT] main: " in done.stderr, f"{done} {checked}"
    box.run("git", "status", cwd=repo)
    assert proof.exists(), "the control: git itself obeys"


FILES = {
    "a ref is a link": "rm -f .git/packed-refs; mkdir -p .git/refs/heads; ln -sf /etc/passwd .git/refs/heads/main",
    "HEAD is a link": "rm .git/HEAD; ln -s /etc/passwd .git/HEAD",
    "HEAD leads out": "echo 'ref: ../../../../etc/passwd' >.git/HEAD",
    "packed refs are a FIFO": "rm .git/packed-refs; mkfifo .git/packed-refs",
    "the index is a FIFO": "rm .git/index; mkfifo .git/index; git update-ref refs/heads/x HEAD",
    "the index is no index": "echo x >.git/index; git update-ref refs/heads/x HEAD",
    "objects are a link": "git update-ref refs/heads/x $(git commit-tree -p HEAD -m x HEAD^{tree}); mv .git/objects .git/o; ln -s /etc .git/objects",
    "names of refs": "mkdir -p '.git/refs/heads/-x' .git/refs/heads/a..b; git rev-parse HEAD >.git/refs/heads/-x/y;"
    " git rev-parse HEAD >.git/refs/heads/a..b/c; git rev-parse HEAD >'.git/refs/heads/new\nline'; git rev-parse HEAD >.git/refs/heads/x.lock; git rev-parse HEAD >.git/refs/heads/HEAD",
    "there is nothing": "find .git -mindepth 1 -delete",
}


@pytest.fixture
def attack_and_take(cordon, repo, attack):
    """Runs a script with a git directory of its own and takes over what it left: in a view, whose git directory is an overlay, or without one."""

    def run(script, view):
        if not view:
            return attack(script).stderr
        done = attack(script, "--cow", "--no-summary")
        taken = cordon("changes", "apply", "latest", cwd=repo)
        cordon("changes", "discard", "latest", cwd=repo)
        return done.stderr + taken.stderr

    return run


@pytest.mark.parametrize("view", [False, True], ids=["plain", "view"])
def test_files_of_a_hostile_git_directory_are_not_followed(repo, git, attack_and_take, view):
    before = (git("for-each-ref"), (repo / ".git/HEAD").read_text())
    for name, script in FILES.items():
        attack_and_take(script, view)
        refs = [line for line in git("for-each-ref").splitlines() if not line.endswith("refs/heads/x")]
        assert ("\n".join(refs), (repo / ".git/HEAD").read_text()) == before, name
    assert all(stat.S_ISREG(os.lstat(repo / ".git" / name).st_mode) for name in ("HEAD", "index", "config"))


@pytest.mark.parametrize("view", [False, True], ids=["plain", "view"])
def test_objects_of_another_repository_do_not_come_along_by_a_link(box, repo, git, attack_and_take, view):
    other = box.mkdir("other")
    for command in (["init", "-q"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "secret"]):
        assert box.run("git", *command, cwd=other).returncode == 0
    secret = box.run("git", "rev-parse", "HEAD", cwd=other).stdout.strip()
    for link in (f"mv .git/objects .git/o; ln -s {other}/.git/objects .git/objects", f"echo {other}/.git/objects >>.git/objects/info/alternates",
                 f"mv .git/objects/info .git/o; ln -s {other}/.git/objects/info .git/objects/info; ln -s {other}/.git/objects/{secret[:2]} .git/objects/{secret[:2]}"):
        said = attack_and_take(f"mkdir -p .git/refs/heads; echo {secret} >.git/refs/heads/x; {link}", view)
        assert ("[GIT] Nothing was taken over" in said or "can't be taken over" in said) and "refs/heads/x" not in git("for-each-ref"), said
    assert box.run("git", "cat-file", "-e", secret, cwd=repo).returncode != 0


def test_a_race_that_is_lost_is_named_and_leaves_everything(box, repo, git, cordon, attack):
    def during(script, host):
        """Runs the script inside, and does something on the host before the run ends."""
        run = cordon.start("run", "--git", "commit", "--", "sh", "-euc", f"{script}; touch lib/ready; while [ ! -e lib/go ]; do sleep 0.05; done", cwd=repo)
        poll((repo / "lib/ready").exists)
        host()
        box.write("repo/lib/go", "")
        _, errors = run.communicate(timeout=100)
        for name in ("ready", "go"):
            (repo / "lib" / name).unlink()
        return errors if isinstance(errors, str) else errors.decode()

    mine = "echo x >lib/x; git add lib/x; git commit -q -m mine"
    said = during(mine, lambda: git("commit", "-q", "--allow-empty", "-m", "host"))
    assert "refs/heads/main: it moved on the host" in said and git("log", "--format=%s").split() == ["host", "one"], said
    said = during("git commit -q --allow-empty -m mine", lambda: git("checkout", "-q", "-b", "other"))
    assert "HEAD: the host changed to another branch" in said and git("log", "--format=%s", "main").split() == ["host", "one"], said
    git("checkout", "-q", "main")
    box.write("repo/.git/refs/heads/main.lock", "")
    done = attack("git commit -q --allow-empty -m mine")
    assert "none was changed" in done.stderr and git("log", "--format=%s").split() == ["host", "one"], str(done)
    (repo / ".git/refs/heads/main.lock").unlink()
    box.write("repo/.git/index.lock", "")
    done = attack("git commit -q --allow-empty -m mine")
    assert "index.lock exists" in done.stderr and git("log", "--format=%s").split() == ["host", "one"], str(done)
    (repo / ".git/index.lock").unlink()
    # Nothing is lost: the last one can still be taken over.
    taken = cordon("git", "take", cwd=repo)
    assert taken.returncode == 0 and git("log", "--format=%s").split() == ["mine", "host", "one"], str(taken)


def test_a_view_takes_its_commits_over_when_it_is_applied(box, repo, git, cordon):
    script = "echo v >lib/v; git rm -q docs/b.txt; git add lib; git commit -q -m view; git tag v1"
    done = cordon("run", "--cow", "--", "sh", "-euc", script, cwd=repo)
    assert done.returncode == 0 and git("log", "--format=%s") == "one" and git("status", "--porcelain") == "", str(done)
    part = cordon("changes", "apply", "latest", "lib/v", cwd=repo)
    assert part.returncode == 0 and git("log", "--format=%s") == "one", str(part)
    done = cordon("changes", "apply", "latest", cwd=repo)
    assert done.returncode == 0 and git("log", "--format=%s").split() == ["view", "one"] and git("status", "--porcelain") == "", str(done)
    assert git("rev-parse", "v1") == git("rev-parse", "main")
    # Commits that are refused keep the files away, too.
    bad = TOOLS + "echo w >lib/w; staged 160000 $(git rev-parse HEAD) sub"
    cordon("run", "--cow", "--", "sh", "-c", bad, cwd=repo)
    done = cordon("changes", "apply", "latest", cwd=repo)
    assert done.returncode == 1 and "never taken over" in done.stderr and not (repo / "lib/w").exists(), str(done)
    assert git("log", "--format=%s").split() == ["view", "one"] and git("status", "--porcelain") == ""


# What a run without `--git` leaves in the git directory, and what the next one does.
LINKS = {
    "the log of the stash": ("logs/refs/stash", "echo q >>lib/a.txt; git stash push -q -m ';touch x;#'"),
    "the log of a branch": ("logs/refs/heads/main", "echo q >>lib/a.txt; git commit -q -a -m ';touch x;#'"),
    "the log of HEAD": ("logs/HEAD", "git checkout -q -b ';touch'; echo q >>lib/a.txt; git commit -q -a -m ';touch x;#'"),
    "all logs": ("logs", "echo q >>lib/a.txt; git commit -q -a -m ';touch x;#'"),
    "a new branch": ("refs/heads/new", "echo q >>lib/a.txt; git commit -q -a -m x; git branch new"),
    "packed refs": ("packed-refs", "echo q >>lib/a.txt; git commit -q -a -m x; git branch 'x;touch'"),
}


@pytest.mark.parametrize("target", ["outside", "inside"])
@pytest.mark.parametrize("name", LINKS)
def test_git_of_cordons_own_writes_through_no_link(box, repo, attack, name, target):
    path, script = LINKS[name]
    leads = (repo / ".git" / "commondir") if target == "inside" else repo.parent / "home-of-the-host"
    if path == "logs" and target == "outside":
        box.mkdir(leads.name)
    place = repo / ".git" / path
    plant = f"rm -rf {place}; mkdir -p {place.parent}; ln -s {leads} {place}"
    assert box.run("sh", "-c", plant, cwd=repo).returncode == 0
    attack(script)
    if leads.is_dir():
        assert not list(leads.iterdir()), "nothing came to be where the link leads"
    else:
        assert not leads.exists(), "nothing came to be where the link leads"
    assert place.is_symlink() or name == "a new branch", "the link is the host's, and stays for it to see"


@pytest.mark.parametrize("script", ["chmod 0 .git/refs/heads", "chmod 0 .git/refs", "chmod 0 .git/refs/heads/main", "chmod 0 .git/packed-refs"])
def test_commits_that_a_run_hides_are_not_lost_without_a_word(box, repo, git, attack, cordon, script):
    done = attack(f"echo q >>lib/a.txt; git commit -q -a -m q; git pack-refs --no-prune; {script}")
    if box.who.uid == 0:
        assert git("log", "-1", "--format=%s") == "q", str(done)
        return
    assert "can't be read" in done.stderr and "Nothing was taken over" in done.stderr, str(done)
    assert len(cordon("git", "list", "--json", cwd=repo).json()) == 1


@pytest.mark.parametrize("view", [False, True], ids=["plain", "view"])
def test_a_git_directory_without_rights_is_taken_over(repo, git, attack_and_take, view):
    attack_and_take("echo q >>lib/a.txt; git commit -q -a -m q; chmod 0 .git", view)
    assert git("log", "-1", "--format=%s") == "q"


def test_a_path_with_a_newline_hides_no_staged_file(box, repo, git, attack):
    """The list of staged files is not one of lines: a second path names the object of the first as one that the host has."""
    script = "id=$(echo z is staged | raw blob); git update-index --add --cacheinfo 100644,$id,z; printf '100644 %s\\tn\\n:1 2 3 ^%s\\0' $blob $id | git update-index -z --index-info"
    done = attack(script)
    assert done.returncode == 0, str(done)
    assert git("show", ":z") == "z is staged"
    assert "missing" not in box.run("git", "fsck", cwd=repo).stdout


def test_a_branch_that_stands_for_another_is_not_moved(repo, git, attack):
    git("symbolic-ref", "refs/heads/alias", "refs/heads/main")
    before = git("rev-parse", "main")
    done = attack("c=$(git commit-tree -p HEAD -m x HEAD^{tree}); mkdir -p .git/refs/heads; echo $c >.git/refs/heads/alias")
    assert "refs/heads/alias: on the host it stands for another branch" in done.stderr, str(done)
    assert git("rev-parse", "main") == before and git("symbolic-ref", "refs/heads/alias") == "refs/heads/main"


def test_applying_a_view_tells_of_repositories_that_execute_something(box, repo, cordon):
    inside = (
        "git init -q sub; mkdir data; printf '[core]\\n\\tfsmonitor = ./x\\n' >data/config; rm sub/.git/config; echo ../../data >sub/.git/commondir;"
        " git init -q --bare tests.data; git -C tests.data config core.bare false; git -C tests.data config core.fsmonitor ./x; mkdir fresh; echo gitdir: ../tests.data >fresh/.git"
    )
    done = cordon("run", "--cow", "--no-summary", "--", "sh", "-euc", inside, cwd=repo)
    assert done.returncode == 0, str(done)
    shown = cordon("changes", "diff", "latest", "--json", cwd=repo).json()
    marked = {change["path"] for change in shown["changes"] if change.get("executed_by")}
    assert {"sub/.git/commondir", "fresh/.git"} <= marked, shown
    done = cordon("changes", "apply", "latest", cwd=repo)
    for path in ("sub/.git", "tests.data", "fresh/.git"):
        assert f"WARNING: {path} was made or changed, and has git execute: core.fsmonitor" in done.stderr, str(done)
