# SPDX-License-Identifier: Apache-2.0
"""A `.git` file leads a run to a git directory outside of its root. What git executes there is held, and no file that an agent of an
earlier run could write makes a run show another place of the host."""
import os
import stat

import pytest


def sh(cordon, script, *options, **kw):
    return cordon("run", "--no-summary", *options, "--", "/bin/sh", "-c", script, **kw)


def snapshot(top):
    """Everything below a directory that git executes or obeys: type, mode, inode and content."""
    found = {}
    for path in sorted(top.rglob("*")):
        st = os.lstat(path)
        if not any(part in ("objects", "logs", "refs", "index", "HEAD") for part in path.relative_to(top).parts):
            found[str(path)] = (st.st_mode, st.st_ino, path.read_bytes() if stat.S_ISREG(st.st_mode) else None)
    return found


@pytest.fixture
def linked(box):
    box.write("home/.gitconfig", "[user]\n\tname = A\n\temail = a@example.com\n")
    done = box.run("sh", "-ec", """
        git init -q -b main main && cd main && mkdir .githooks && echo a >a && git add a && git commit -qm first
        git worktree add -q ../wt && git worktree add -q ../other
        printf '[core]\\n\\thooksPath = .githooks\\n' >extra && mv extra .git/extra
        git config include.path extra && git config filter.x.clean ./tools/clean
        mkdir -p ../wt/tools ../wt/.githooks && touch ../wt/tools/clean""", cwd=box.path)
    assert done.returncode == 0, done
    return box.path


ATTACKS = """
import os, shutil
common, own, other = "{common}", "{common}/worktrees/wt", "{common}/worktrees/other"
names = [common + "/" + name for name in ("config", "config.worktree", "commondir", "hooks", "hooks/pre-commit", "info/attributes", "extra")]
names += [own + "/" + name for name in ("commondir", "gitdir", "config.worktree")] + [other, other + "/HEAD", other + "/index", other + "/gitdir"]
names += [".git", ".githooks", ".githooks/pre-commit", "tools/clean"]
open("evil", "w").write("#!/bin/sh\\n")
done = []
def attempt(what, name, *args):
    try:
        what(*args)
        done.append((what.__name__, name))
    except OSError:
        pass
def write(name): open(name, "w").write("evil")
for name in names:
    attempt(write, name, name)
    attempt(os.link, name, "evil", name)
    attempt(os.symlink, name, "/tmp", name)
    attempt(os.mkdir, name, name)
    attempt(os.unlink, name, name)
    attempt(os.rename, name, name, name + ".moved")
    attempt(os.rename, name, "evil", name)
    attempt(os.chmod, name, name, 0o777)
    attempt(os.utime, name, name, (1, 1))
for directory in (own, common + "/worktrees", common + "/info", common, os.path.dirname(common), "tools"):
    attempt(os.rename, directory, directory, directory + ".moved")
    attempt(os.rename, directory, directory, "/tmp/moved")
for directory in (common + "/hooks", other, common + "/worktrees/other/logs"):
    attempt(shutil.rmtree, directory, directory)
print(done)
"""


def test_what_git_executes_for_a_worktree_is_held(linked, box, cordon):
    common = linked / "main/.git"
    before = snapshot(common), snapshot(linked / "wt")
    result = cordon("run", "--no-summary", "--", "/usr/bin/python3", "-c", ATTACKS.format(common=common), cwd=linked / "wt")
    (linked / "wt/evil").unlink(missing_ok=True)
    assert result.stdout == "[]\n", result
    assert (snapshot(common), snapshot(linked / "wt")) == before
    work = sh(cordon, "echo b >b && git add b && git commit -qm inside && git log --format=%s", cwd=linked / "wt")
    assert work.returncode == 0 and work.stdout == "inside\nfirst\n", work


def test_what_git_executes_for_a_submodule_is_held(linked, box, cordon):
    done = box.run("sh", "-ec", "git -c protocol.file.allow=always submodule --quiet add ../other libs/sub", cwd=linked / "main")
    assert done.returncode == 0, done
    git = linked / "main/.git/modules/libs/sub"
    before = snapshot(git)
    result = sh(cordon, f"for n in config hooks/pre-commit info/attributes commondir config.worktree; do echo evil >{git}/$n; ln -s /tmp {git}/$n; rm -f {git}/$n; "
                f"done; mv {git} {git}.x; mv {git}/hooks {git}/h; ls -A {linked}/main/.git", cwd=linked / "main/libs/sub")
    assert result.stdout == "modules\n", result
    assert snapshot(git) == before


def forge(box, name, *, git="fake.git", back=None, common="../..", secret="secret", **_):
    """A directory with a `.git` file, and a git directory elsewhere, all of it written by an agent of an earlier run."""
    root = box.mkdir(f"{name}/root")
    box.write(f"{name}/{git}/HEAD", "ref: refs/heads/main\n")
    for part in ("objects", "refs"):
        box.mkdir(f"{name}/{git}/{part}")
    box.write(f"{name}/{git}/{secret}", "secret\n")
    own = box.mkdir(f"{name}/{git}/worktrees/e")
    box.write(f"{name}/{git}/worktrees/e/HEAD", "ref: refs/heads/main\n")
    box.write(f"{name}/{git}/worktrees/e/commondir", f"{common}\n")
    box.write(f"{name}/{git}/worktrees/e/gitdir", f"{back or root / '.git'}\n")
    box.write(f"{name}/root/.git", f"gitdir: {own}\n")
    return root, box.path / name / git


def shows(cordon, root, place, *options):
    result = sh(cordon, f"cat {place}/secret {place}/../secret 2>/dev/null; echo evil >{place}/made; ls -A {place}; echo ran", *options, cwd=root)
    assert "ran" in result.stdout, result
    return "secret" in result.stdout


def test_a_forged_git_file_shows_no_other_place_of_the_host(box, cordon, linked):
    # The control: where both sides agree, the directory comes along. Who could write it, could write it before.
    assert shows(cordon, *forge(box, "control"))
    cases = {
        "the git directory is not called like one": {"git": "home"},
        "the git directory names another root": {"back": box.path / "elsewhere/.git"},
        "the git directory names nothing": {"back": "\n"},
        "the common directory is another one": {"common": str(linked / "main/.git")},
        "the common directory is above": {"common": "../../.."},
        "the common directory is itself": {"common": "."},
    }
    for number, (case, how) in enumerate(cases.items()):
        root, git = forge(box, f"c{number}", **how)
        assert not shows(cordon, root, git), case
        assert not (git / "made").exists(), case
        other = sh(cordon, f"ls {linked}/main/.git", cwd=root)
        assert other.stdout == "", (case, other)
    # The git directory around the root would widen it.
    root, git = forge(box, "around.git", git=".")
    assert not shows(cordon, root, git)


def test_a_git_file_does_not_bring_along_the_repository_of_another(box, cordon, linked):
    common = linked / "main/.git"
    plain = box.mkdir("plain")
    texts = [f"gitdir: {common}", f"gitdir: {common}/worktrees/wt", f"gitdir: {common}/worktrees", f"gitdir: {linked}/main", "gitdir: /", "gitdir: ",
             f"gitdir: {linked}/main/../main/.git/worktrees/other\n\n", "gitdir: " + "x/" * 5000, "no git file", f"gitdir: {common}/worktrees/wt\0/x"]
    box.link("link", common / "worktrees/wt")
    for text in [*texts, f"gitdir: {linked}/link"]:
        box.write("plain/.git", text)
        assert not shows(cordon, plain, common), text
    (plain / ".git").unlink()
    box.link("plain/.git", linked / "wt/.git")
    assert not shows(cordon, plain, common)
    (plain / ".git").unlink()
    os.mkfifo(plain / ".git")
    refused = sh(cordon, "echo ran", cwd=plain)
    assert refused.returncode == 125 and "ran" not in refused.stdout, refused
    assert not (common / "made").exists()


def test_a_submodule_is_believed_only_if_its_git_directory_names_it(box, cordon, linked):
    done = box.run("sh", "-ec", "git -c protocol.file.allow=always submodule --quiet add ../other libs/sub", cwd=linked / "main")
    assert done.returncode == 0, done
    git = linked / "main/.git/modules/libs/sub"
    box.write("main/.git/modules/libs/sub/secret", "secret")
    assert shows(cordon, linked / "main/libs/sub", git)
    plain = box.mkdir("plain")
    box.write("plain/.git", f"gitdir: {git}\n")
    assert not shows(cordon, plain, git)
    # The same place with a core.worktree that leads to the root, but not in the modules of a repository.
    box.run("cp", "-r", str(git), str(linked / "loose.git"))
    box.write("loose.git/config", f"[core]\n\tworktree = {plain}\n")
    box.write("plain/.git", f"gitdir: {linked}/loose.git\n")
    assert not shows(cordon, plain, linked / "loose.git")


def test_files_of_another_user_are_not_believed(box, cordon, linked):
    if os.getuid() != 0:
        pytest.skip("only root can give files to another user")
    somebody = 1 if box.who.is_root else 0
    for number, name in enumerate(("root/.git", "fake.git", "fake.git/worktrees/e", "fake.git/worktrees/e/gitdir", "fake.git/worktrees/e/commondir")):
        root, git = forge(box, f"o{number}")
        os.chown(git.parent / name, somebody, somebody)
        os.chmod(git.parent / name, 0o755)
        assert not shows(cordon, root, git), name


def test_a_git_directory_that_is_a_fifo_or_too_large_stops_no_run(box, cordon):
    for number, name in enumerate(("gitdir", "commondir")):
        root, git = forge(box, f"f{number}")
        (git / "worktrees/e" / name).unlink()
        os.mkfifo(git / "worktrees/e" / name)
        assert not shows(cordon, root, git)
    root, git = forge(box, "large")
    box.write("large/fake.git/worktrees/e/commondir", "../.." + "/." * 100000)
    assert not shows(cordon, root, git)
