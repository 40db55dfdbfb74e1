# SPDX-License-Identifier: Apache-2.0
"""L22: attributes of overlayfs and whiteouts that lie in the root, whoever left them there, and what a view makes of them."""
import os
import stat

import pytest

from repositories import Repository

EMPTY = ("empty", "lib/__init__.py")


@pytest.fixture
def repo(box):
    made = Repository(box)
    for name, text in {**{name: "" for name in EMPTY}, "full": "full\n", "deep/er/file": "file\n", "moved/file": "other\n", "gone": ""}.items():
        box.write(f"repo/{name}", text)
    made.git("add", ".")
    made.git("commit", "-q", "-m", "two")
    return made


def plant(repo, hide=True):
    """What an earlier run, or somebody else, may have left."""
    for name in EMPTY if hide else ():
        os.setxattr(repo.path / name, "user.overlay.whiteout", b"y")
    for name in (".", "lib", "deep"):
        os.setxattr(repo.path / name, "user.overlay.opaque", b"x")
    os.setxattr(repo.path / "deep/er", "user.overlay.opaque", b"y")
    os.setxattr(repo.path / "moved", "user.overlay.redirect", b"/deep")
    os.setxattr(repo.path / "full", "user.overlay.whiteout", b"y")
    if os.getuid() == 0:
        for name, attribute in (("full", "whiteout"), ("deep", "opaque"), ("moved", "redirect"), ("full", "metacopy")):
            os.setxattr(repo.path / name, f"trusted.overlay.{attribute}", b"y")


def tracked(repo):
    return set(repo.git("ls-tree", "-r", "--name-only", "HEAD").splitlines())


VIEWS = pytest.mark.parametrize("lens", ["auto", "always"])


@VIEWS
def test_l22_a_view_shows_what_attributes_of_its_lower_layer_would_hide(cordon, repo, lens):
    plant(repo, hide=False)
    result = cordon("run", "--cow", "--no-summary", "--lens", lens, "--", "sh", "-euc", "cat full deep/er/file moved/file; ls deep deep/er moved lib; git status --porcelain",
                    cwd=repo.path)
    assert result.returncode == 0, result
    assert result.stdout.split() == ["full", "file", "other", "deep:", "er", "deep/er:", "file", "lib:", "__init__.py", "a.txt", "moved:", "file"], result


@VIEWS
def test_l22_an_honest_commit_deletes_nothing_that_an_attribute_hid(cordon, repo, lens):
    before = tracked(repo)
    plant(repo)
    result = cordon("run", "--cow", "--no-summary", "--git", "commit", "--lens", lens, "--", "sh", "-uc",
                    "test -e empty && echo shown; rm gone; echo more >>full; git add -A; git commit -q -m three; true", cwd=repo.path)
    taken = cordon("changes", "apply", "latest", cwd=repo.path)
    assert set(EMPTY) <= tracked(repo) and all(stat.S_ISREG((repo.path / name).stat().st_mode) for name in EMPTY), (result, taken)
    if "shown" in result.stdout:  # a kernel that knows no such attribute
        assert taken.returncode == 0 and tracked(repo) == before - {"gone"}
        return
    assert taken.returncode != 0 and "user.overlay.whiteout" in taken.stderr + taken.stdout and tracked(repo) == before, taken
    assert "empty" in taken.stderr + taken.stdout and repo.subjects() == ["two", "one"], taken
    for name in EMPTY:
        os.removexattr(repo.path / name, "user.overlay.whiteout")
    again = cordon("run", "--cow", "--no-summary", "--git", "commit", "--lens", lens, "--", "sh", "-euc",
                   "rm gone; rm lib/__init__.py; git add -A; git commit -q -m three", cwd=repo.path)
    assert again.returncode == 0 and cordon("changes", "apply", "latest", cwd=repo.path).returncode == 0, again
    assert tracked(repo) == before - {"gone", "lib/__init__.py"} and repo.subjects()[0] == "three"


def test_l22_what_is_only_staged_deletes_nothing_either(cordon, repo):
    plant(repo)
    result = cordon("run", "--cow", "--no-summary", "--git", "commit", "--", "sh", "-uc", "echo more >>full; git add -u; git rm -q gone; true", cwd=repo.path)
    cordon("changes", "apply", "latest", cwd=repo.path)
    listed = set(repo.git("ls-files").splitlines())
    assert set(EMPTY) <= listed and not [line for line in repo.status().splitlines() if line.split()[-1] in EMPTY], (result, repo.status())


@VIEWS
def test_l22_applying_files_deletes_nothing_that_an_attribute_hid(cordon, repo, lens):
    """Also where the run made a directory anew, and beside whiteouts of the host's own."""
    plant(repo)
    if os.getuid() == 0:
        os.mknod(repo.path / "node", stat.S_IFCHR, 0)
    result = cordon("run", "--cow", "--no-summary", "--git", "none", "--lens", lens, "--", "sh", "-uc",
                    "test -e empty && echo shown; rm -r deep gone; mkdir deep; echo new >deep/new; rm -rf lib; true", cwd=repo.path)
    taken = cordon("changes", "apply", "latest", cwd=repo.path)
    assert taken.returncode == 0 and (repo.path / "deep/new").exists() and not (repo.path / "deep/er").exists() and not (repo.path / "gone").exists(), (result, taken)
    assert (repo.path / "empty").exists() and (repo.path / "full").exists() and (repo.path / "moved/file").exists(), taken
    assert (repo.path / "lib/__init__.py").exists() is ("shown" not in result.stdout) and not (repo.path / "lib/a.txt").exists(), taken
    if os.getuid() == 0:
        assert stat.S_ISCHR((repo.path / "node").stat().st_mode)
