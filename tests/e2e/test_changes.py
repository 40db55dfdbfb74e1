# SPDX-License-Identifier: Apache-2.0
"""cordon changes: what a view changed, shown, applied and undone; nothing of the host's is lost."""
import os
import subprocess

import pytest

from views import View

FILES = {
    "text.txt": "".join(f"line {n}\n" for n in range(1, 41)),
    "gone.txt": "to be deleted\n",
    "tool": "#!/bin/sh\n",
    "bin.dat": bytes(range(256)) * 4,
    "dir/one": "1\n",
    "dir/two": "2\n",
    "dir/sub/three": "3\n",
    "opaque/old": "old\n",
    "opaque/kept": "kept\n",
    "name with blanks": "blank\n",
}

WORK = r"""
sed -i 's/^line 3$/line three/; s/^line 30$/line thirty/' text.txt
rm gone.txt
chmod 755 tool
printf '\0\1\2binary' > bin.dat
rm -r dir
mkdir -p new/deep && echo new > new/deep/file && ln -s ../target new/link
rm -r opaque && mkdir opaque && echo kept > opaque/kept && echo fresh > opaque/fresh
echo more >> 'name with blanks'
printf 'no newline' > 'tab	and "quote" ü'
truncate -s 1M sparse && printf x >> sparse
echo linked > one && ln one other
echo 'all:' > Makefile
touch -d @1000000000 old-time
mkdir empty
"""


@pytest.fixture
def tree(box):
    box.mkdir("root")
    for name, content in FILES.items():
        box.write(f"root/{name}", content)
    return box.path / "root"


def snapshot(root, times=False):
    """Everything about a tree that apply and undo must get right."""
    found = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        what = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(root))] = (oct(status.st_mode), what, status.st_mtime_ns if times and what is not None else 0)
    return found


def native(box, tree, script):
    """The same work without a view, in a copy."""
    copy = box.path / "native"
    subprocess.run(["cp", "-a", str(tree), str(copy)], check=True)
    box.run("sh", "-euc", script, cwd=copy)
    return snapshot(copy)


def test_apply_gives_what_native_work_gives_and_undo_gives_back_what_was(box, cordon, tree):
    wanted = native(box, tree, WORK)
    before = snapshot(tree, times=True)
    View(box, tree).work(WORK)
    applied = cordon("changes", "apply", "--json", cwd=tree)
    assert applied.returncode == 0, applied.stderr
    assert snapshot(tree) == wanted
    assert (tree / "one").stat().st_ino == (tree / "other").stat().st_ino, "hard links stay links"
    assert (tree / "sparse").stat().st_blocks < 1024, "holes stay holes"
    assert (tree / "old-time").stat().st_mtime == 1000000000
    assert cordon("changes", "show", cwd=tree).stdout.count("\t") == 0, "nothing is left to apply"
    undone = cordon("changes", "undo", cwd=tree)
    assert undone.returncode == 0, undone.stderr
    assert snapshot(tree, times=True) == before
    assert cordon("changes", "apply", cwd=tree).returncode == 0 and snapshot(tree) == wanted, "and once more"


def test_git_reads_the_diff(box, cordon, tree):
    View(box, tree).work(WORK)
    wanted = native(box, tree, WORK)
    patch = cordon("changes", "diff", cwd=tree)
    assert patch.returncode == 0, patch.stderr
    assert patch.stdout.index("a/Makefile") < patch.stdout.index("a/bin.dat"), "what the host executes stands first"
    assert "# the host would execute this file: make" in patch.stdout
    copy = box.path / "patched"
    subprocess.run(["cp", "-a", str(tree), str(copy)], check=True)
    check = box.run("git", "apply", "--whitespace=nowarn", "-", cwd=copy, input=patch.raw_stdout, env={"GIT_CEILING_DIRECTORIES": str(box.path)})
    assert check.returncode == 0, check.stderr
    got = {name: (mode[-3:] == "755", what) for name, (mode, what, _) in snapshot(copy).items() if what is not None}
    assert got == {name: (mode[-3:] == "755", what) for name, (mode, what, _) in wanted.items() if what is not None}
