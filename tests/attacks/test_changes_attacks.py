# SPDX-License-Identifier: Apache-2.0
"""Attacks on whoever reads and applies the changes of a view: what an agent left in the layer must not get further than the agent could.

Classes H (hand-over to the host) and K of the threats. Each test plants in the upper layer what the kernel would not let an agent make, or
makes it as an agent would, and looks at the host's tree.
"""
import os
import stat
import subprocess
import sys
import threading
import time

import pytest

from support import poll
from views import View

PROTECTED = ["AGENTS.md", ".git/config", ".git/hooks", ".vscode/tasks.json"]


@pytest.fixture
def tree(box):
    root = box.repo("root", {"AGENTS.md": "rules\n", "src/a.c": "int a;\n", "src/deep/b.c": "int b;\n", "docs/secret": "s\n"})
    return root


def plant(view, name, content="evil\n", mode=0o644):
    path = view.upper / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    path.chmod(mode)
    view.box.own(*(view.upper / part for part in os.listdir(view.upper)))
    return path


def state_of(root):
    found = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        what = os.readlink(path) if path.is_symlink() else path.read_bytes() if stat.S_ISREG(status.st_mode) else None
        found[str(path.relative_to(root))] = (status.st_mode, status.st_ino, what)
    return found


@pytest.mark.parametrize(
    "path",
    ["AGENTS.md", ".git/config", ".git/hooks/pre-commit", ".vscode/tasks.json", "docs/secret", "docs/new", "ro/file", "lib/outside"],
)
def test_a_path_that_the_policy_holds_refuses_the_whole_apply(box, cordon, tree, path):
    grants = [("write", "src/**"), ("write", "AGENTS.md"), ("write", ".git/**"), ("write", ".vscode/**"), ("none", "docs/**"), ("read", "ro/**")]
    view = View(box, tree, grants=grants, protect=PROTECTED)
    plant(view, path)
    plant(view, "src/a.c", "int changed;\n")
    before = state_of(tree)
    done = cordon("changes", "apply", "--json", cwd=tree)
    refused = [item["path"] for item in done.json()["refused"]]
    assert done.returncode == 1 and refused[-1] == path and "src/a.c" not in refused, str(done)
    assert state_of(tree) == before, "nothing is written"
    assert cordon("changes", "apply", "latest", "src/a.c", cwd=tree).returncode == 0
    assert (tree / "src/a.c").read_text() == "int changed;\n", "what is allowed can be applied by its name"


def test_deleting_what_is_protected_is_refused_however_it_is_written(box, cordon, tree):
    before = state_of(tree)
    as_whiteout = View(box, tree, protect=PROTECTED)
    os.mknod(as_whiteout.upper / "AGENTS.md", stat.S_IFCHR, os.makedev(0, 0))
    of_parent = View(box, tree, protect=PROTECTED)
    os.mknod(of_parent.upper / ".git", stat.S_IFCHR, os.makedev(0, 0))
    opaque = View(box, tree, protect=PROTECTED)
    (opaque.upper / ".git").mkdir()
    os.setxattr(opaque.upper / ".git", "user.overlay.opaque", b"y")
    marked = View(box, tree, protect=PROTECTED)
    plant(marked, "AGENTS.md", "")
    os.setxattr(marked.upper / "AGENTS.md", "user.overlay.whiteout", b"y")
    link = View(box, tree, protect=PROTECTED)
    os.symlink("src", link.upper / ".vscode")
    for view in (as_whiteout, of_parent, opaque, marked, link):
        box.own(view.upper)
        done = cordon("changes", "apply", view.id, "--json", cwd=tree)
        assert done.returncode == 1 and done.json()["refused"], str(done)
        assert state_of(tree) == before


def test_a_forged_opaque_directory_is_a_list_of_deletions_that_people_see(box, cordon, tree):
    view = View(box, tree)
    (view.upper / "src").mkdir()
    os.setxattr(view.upper / "src", "user.overlay.opaque", b"y")
    box.own(view.upper)
    shown = cordon("changes", "diff", "--name-status", cwd=tree).stdout.splitlines()
    assert shown == ["D\tsrc/a.c", "D\tsrc/deep/b.c", "D\tsrc/deep/"]
    applied = cordon("changes", "apply", cwd=tree)
    assert applied.returncode == 0 and "deleted:\nD\tsrc/a.c\n" in applied.stdout, str(applied)
    assert cordon("changes", "undo", cwd=tree).returncode == 0 and (tree / "src/deep/b.c").read_text() == "int b;\n"


@pytest.mark.parametrize("attribute", ["redirect", "metacopy"])
def test_attributes_that_lead_elsewhere_are_refused(box, cordon, tree, attribute):
    view = View(box, tree)
    (view.upper / "src").mkdir()
    os.setxattr(view.upper / "src", f"user.overlay.{attribute}", b"/docs")
    box.own(view.upper)
    done = cordon("changes", "apply", cwd=tree)
    assert done.returncode == 1 and "attribute of overlayfs" in done.stderr


def test_special_files_and_set_id_bits_never_come_out(box, cordon, tree):
    view = View(box, tree)
    os.mkfifo(view.upper / "fifo")
    box.run(sys.executable, "-c", "import socket; socket.socket(socket.AF_UNIX).bind('sock')", cwd=view.upper)
    if box.who.is_root:
        os.mknod(view.upper / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        os.mknod(view.upper / "disk", stat.S_IFBLK | 0o666, os.makedev(7, 0))
    plant(view, "shell")
    plant(view, "sub/group")
    box.own(view.upper)
    (view.upper / "shell").chmod(0o6755)
    (view.upper / "sub").chmod(0o3777)
    done = cordon("changes", "apply", "--json", cwd=tree)
    assert done.returncode == 0, str(done)
    left = {item["path"]: item["why"] for item in done.json()["left_out"]}
    assert left == {"fifo": "a FIFO", "sock": "a socket"} | ({"null": "a device", "disk": "a device"} if box.who.is_root else {})
    assert {name for name in os.listdir(tree) if name in ("fifo", "sock", "null", "disk")} == set()
    assert (tree / "shell").stat().st_mode & 0o7777 == 0o755 and (tree / "sub").stat().st_mode & 0o7777 == 0o777


def test_links_in_the_layer_are_made_again_and_never_followed(box, cordon, tree):
    secret = box.write("secret", "outside\n", mode=0o600)
    view = View(box, tree)
    os.symlink(secret, view.upper / "link")
    os.symlink("/", view.upper / "src")  # in the place of a directory that has files
    os.symlink("loop", view.upper / "loop")
    box.own(view.upper)
    patch = cordon("changes", "diff", cwd=tree)
    assert patch.returncode == 0 and "outside" not in patch.stdout and str(secret) in patch.stdout
    done = cordon("changes", "apply", cwd=tree)
    assert done.returncode == 0, str(done)
    assert os.readlink(tree / "link") == str(secret) and os.readlink(tree / "src") == "/" and os.readlink(tree / "loop") == "loop"
    assert secret.read_text() == "outside\n"
    assert cordon("changes", "undo", cwd=tree).returncode == 0 and (tree / "src/deep/b.c").exists()


@pytest.mark.parametrize("name", [".GIT", ".Git", ".git.", ".git ", "git~1", "GIT~1", ".g\u200cit", ".git\ufeff", ".git:x", ".git" + 20 * ".", "git~1 . . . . .", ".git       :x", 9 * "\u200d" + ".git"])
def test_twins_of_the_git_directory_are_refused(box, cordon, tree, name):
    view = View(box, tree, protect=PROTECTED)
    plant(view, f"{name}/hooks/pre-commit", mode=0o755)
    before = state_of(tree)
    done = cordon("changes", "apply", cwd=tree)
    assert done.returncode == 1 and "a twin of .git" in done.stdout and state_of(tree) == before


def test_names_that_only_look_alike_are_other_files(box, cordon, tree):
    view = View(box, tree, protect=PROTECTED)
    for name in ("agents.md", "AGENTS.MD", "\u0410GENTS.md", "u\u0308", "\u00fc", ".gitx", "git~10", ".git.........x"):
        plant(view, name, name)
    done = cordon("changes", "apply", cwd=tree)
    assert done.returncode == 0, str(done)
    assert (tree / "AGENTS.md").read_text() == "rules\n"
    assert all((tree / name).read_text() == name for name in ("agents.md", "AGENTS.MD", "u\u0308", "\u00fc"))


def test_names_and_texts_that_speak_to_a_terminal_are_escaped(box, cordon, tree):
    view = View(box, tree)
    plant(view, "\x1b[2Jclear\nD\tfake", "\x1b]0;title\x07\n")
    shown = box.run("script", "-qec", f"{cordon.path} changes diff --no-pager; {cordon.path} changes show; {cordon.path} changes apply", "/dev/null", cwd=tree)
    assert shown.returncode == 0 and b"\x1b[2J" not in shown.raw_stdout and b"\x1b]0" not in shown.raw_stdout and "clear\\nD" in shown.stdout


SWAP = """
import ctypes, os, sys
os.symlink(sys.argv[1], "aside")
libc = ctypes.CDLL(None)
while True:
    libc.renameat2(-100, b"src", -100, b"aside", 2)  # both change places in one step
"""


def test_a_directory_that_becomes_a_link_between_judgement_and_write_wins_nothing(box, cordon, tree):
    outside = box.mkdir("outside/deep")
    box.write("outside/a.c", "outside\n")
    box.write("outside/deep/b.c", "outside\n")
    view = View(box, tree)
    for n in range(40):
        plant(view, f"src/new{n}.c")
    plant(view, "src/deep/b.c", "evil\n")
    swapper = box.start(sys.executable, "-c", SWAP, str(outside.parent), cwd=tree)
    ends = set()
    until = time.monotonic() + 3
    while time.monotonic() < until:
        applied = cordon("changes", "apply", view.id, cwd=tree)
        ends.add(applied.returncode)
        cordon("changes", "undo", view.id, cwd=tree)
    swapper.kill()
    swapper.wait()
    assert sorted(os.listdir(outside.parent)) == ["a.c", "deep"] and os.listdir(outside) == ["b.c"], "nothing was written through the link"
    assert (outside.parent / "a.c").read_text() == (outside / "b.c").read_text() == "outside\n"
    assert 1 in ends, "the link was met"


def test_a_host_that_writes_all_the_time_loses_nothing(box, cordon, tree):
    """Either its text is replaced and kept for the undo, or it is noticed; no text is ever lost."""
    view = View(box, tree)
    plant(view, "src/a.c", "from the view\n")
    written, stop = [], threading.Event()

    def write():
        n = 0
        while not stop.is_set():
            n += 1
            text = f"host {n}\n"
            box.write("root/src/.a.c.tmp", text)
            os.rename(tree / "src/.a.c.tmp", tree / "src/a.c")
            written.append(text)

    thread = threading.Thread(target=write)
    thread.start()
    poll(lambda: written, 20, "the first text of the host")
    ends = [cordon("changes", "apply", view.id, cwd=tree).returncode for _ in range(10)]
    stop.set()
    thread.join()
    assert set(ends) == {1}, "the host's edits are conflicts"
    assert (tree / "src/a.c").read_text() == written[-1]


def test_git_of_the_tree_executes_nothing(box, cordon, tree):
    """A repository whose configuration names programs: reading bases for a merge starts none of them."""
    marker = box.path / "executed"
    subprocess.run(["rm", "-rf", str(tree / ".git")], check=True)
    box.run("sh", "-euc", "git init -q . && git add . && git -c user.name=a -c user.email=a@b commit -qm x", cwd=tree)
    view = View(box, tree)
    plant(view, "src/a.c", "int a;\nint view;\n")
    hook = f"#!/bin/sh\ntouch {marker}\n"
    box.write("evil", hook, mode=0o755)
    evil = str(box.path / "evil")
    with open(tree / ".git/config", "a", encoding="utf-8") as config:
        config.write(f'[core]\n\tfsmonitor = {evil}\n\thooksPath = {box.path}\n\tpager = {evil}\n[diff]\n\texternal = {evil}\n[filter "x"]\n\tsmudge = {evil}\n\tclean = {evil}\n')
    box.write("root/.gitattributes", "* filter=x diff=x\n")
    box.write("root/src/a.c", "int host;\nint a;\n")
    for words in (("diff",), ("apply",), ("undo",)):
        cordon("changes", *words, cwd=tree)
    assert not marker.exists()
