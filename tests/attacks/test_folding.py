# SPDX-License-Identifier: Apache-2.0
"""Directories in which a name has several spellings: a boundary can't be held there, so the run is refused."""
import os
import pathlib
import platform
import shutil
import subprocess

import pytest

from modes import NARROW, open_session
from support import poll

SOURCE = pathlib.Path(__file__).resolve().parent / "folding/foldfs.c"
RUNS = {mode: options for mode, options in NARROW.items() if mode != "session"}
# How a server folds, and another spelling of AGENTS.md.
SPELLINGS = {"case": "agents.MD", "end": "AGENTS.md. .", "ignorable": "AG\u200cENTS.md", "width": "AGENTS.m\uff44"}


@pytest.fixture(scope="session")
def foldfs(base_dir):
    """The server, built."""
    target = base_dir / "foldfs"
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], capture_output=True, text=True, check=True).stdout.split()
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-o", str(target), str(SOURCE), *flags], check=True)
    return target


@pytest.fixture
def served(arena, foldfs):
    """Mounts the arena's workspace through the server, and moves the arena there."""
    if os.getuid() != 0:
        pytest.skip("only root can mount for another user")
    running = []

    def mount(how, below="", backing=None, at=None):
        backing = backing or arena.root
        place = at or arena.box.mkdir(f"served-{len(running)}")
        process = subprocess.Popen([str(foldfs), how, below, str(backing), str(place), "-f", "-o", "allow_other,default_permissions"],
                                   stdout=subprocess.DEVNULL)
        running.append((process, place))
        poll(lambda: os.path.ismount(place))
        arena.root = place
        return place

    yield mount
    for process, place in running:
        subprocess.run(["umount", "-l", str(place)], check=False)
        process.wait(10)


def run(arena, *options, command=("echo", "ran")):
    return arena.cordon("run", "--root", str(arena.root), *options, "--", *command, cwd=arena.root)


def tree(top):
    return {str(path.relative_to(top)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"") for path in sorted(top.rglob("*"))}


def assert_refused(result, place, *words):
    assert result.returncode == 125 and "ran" not in result.stdout, result
    lines = result.stderr.splitlines()
    assert str(place) in lines[0] and "fold" in lines[0] and all(word in lines[0] for word in words), result


@pytest.mark.parametrize("mode", RUNS)
@pytest.mark.parametrize("how", SPELLINGS)
def test_l6_a_server_that_folds_names_is_refused_and_nothing_is_made_to_find_out(arena, served, how, mode):
    backing, root = arena.root, None
    before = tree(backing)
    root = served(how)
    assert (root / SPELLINGS[how]).read_text() == "the prompt\n", "the server folds"
    assert_refused(run(arena, *RUNS[mode]), root, "are one file")
    assert tree(backing) == before


@pytest.mark.parametrize("how, started", [("exact", True), *((how, False) for how in SPELLINGS)])
def test_l6_a_session_whose_workspace_lies_on_such_a_server_is_refused(arena, served, how, started):
    def serve(top):
        served(how, at=top)

    if started:
        arena.session, _ = open_session(arena.box, arena.cordon, serve)
        assert arena.cordon("session", "exec", arena.session, "--", "cat", "AGENTS.md").stdout == "the prompt\n"
        arena.close()
    else:
        with pytest.raises(AssertionError, match="are one file: no rule can hold a name there"):
            open_session(arena.box, arena.cordon, serve)


@pytest.mark.parametrize("mode", ["plain", "lens"])
def test_l6_a_server_that_tells_names_apart_works_and_boundaries_hold(arena, served, mode):
    root = served("exact")
    result = run(arena, *RUNS[mode], command=["sh", "-c", "echo evil >.git/hooks/pre-commit; echo made >src/made; cat src/made"])
    assert result.stdout == "made\n" and (root / "src/made").read_text() == "made\n", result
    assert (root / ".git/hooks/pre-commit").read_text() == "#!/bin/sh\n"


@pytest.mark.parametrize("below, refused", [(".git", True), ("deep", True), ("deep/er", True), ("src", False)])
def test_l6_each_directory_with_a_boundary_is_asked_and_no_other(arena, served, below, refused):
    root = served("case", below)
    result = run(arena, "--protect", "deep/er/held.txt", "--protect", "deep/er/missing.txt")
    if refused:
        assert_refused(result, root / below)
    else:
        assert result.stdout == "ran\n", result


def test_l6_a_directory_for_a_missing_name_is_asked_by_the_names_that_it_has(arena, served):
    arena.box.write("repo/data/some.txt", "")
    root = served("case", "data")
    assert_refused(run(arena, "--protect", "data/missing"), root / "data")


def test_l6_where_nothing_can_be_asked_for_the_run_is_refused_until_there_is_a_name(arena, served):
    empty = arena.box.mkdir("empty")
    root = served("exact", backing=empty)
    result = run(arena)
    assert_refused(result, root, "can't tell")
    assert "make a file there" in result.stderr and os.listdir(empty) == []
    (empty / "a").write_text("")
    assert run(arena).stdout == "ran\n"


def test_l6_an_empty_directory_of_a_server_is_judged_by_the_one_above(arena, served):
    served("case", backing=arena.box.path / "repo")
    arena.box.mkdir("repo/hollow")
    arena.root = arena.root / "hollow"
    assert_refused(run(arena), arena.root)
    arena.root = arena.box.path / "repo"
    served("exact")
    arena.root = arena.root / "hollow"
    assert run(arena).stdout == "ran\n"


def test_l6_pairs_of_names_that_an_agent_planted_stop_no_run(arena):
    """On a file system that tells them apart: second names of one file, and of directories, at every place that is asked."""
    for name in ("agents.MD", "Agents.md"):
        os.link(arena.root / "AGENTS.md", arena.root / name)
    shutil.copytree(arena.root / ".git", arena.root / ".GIT", symlinks=True)
    os.link(arena.root / ".git/config", arena.root / ".git/CONFIG")
    arena.box.mkdir("repo/pairs")
    for i in range(100):
        arena.box.write(f"repo/pairs/name{i}", "")
        os.link(arena.root / f"pairs/name{i}", arena.root / f"pairs/NAME{i}")
    arena.box.own(arena.root)
    for mode in RUNS.values():
        assert run(arena, *mode, "--protect", "AGENTS.md", "--protect", "pairs/missing").stdout == "ran\n"


@pytest.mark.parametrize("files", [(), ("123", "\xe9"), ("x" * 255,)], ids=["empty", "letterless", "long"])
def test_l6_a_directory_without_usable_names_is_no_reason_to_refuse(arena, files):
    arena.box.mkdir("repo/bare")
    for name in files:
        arena.box.write(f"repo/bare/{name}", "")
    arena.root = arena.root / "bare"
    assert run(arena).stdout == "ran\n" and sorted(os.listdir(arena.root)) == sorted(files)


def test_l6_what_has_no_boundary_may_fold(arena, served):
    served("case")
    result = arena.cordon("run", "--root", str(arena.root), "--no-default-protect", "--rw", ".", "--", "cat", "agents.MD", cwd=arena.root)
    assert result.stdout == "the prompt\n", result


# ---- ext4, where each directory has a flag for it ----


@pytest.fixture
def casefold(arena):
    """A file system with the feature, or None: a kernel without CONFIG_UNICODE mounts none, and has nothing to defend."""
    if os.getuid() != 0:
        pytest.skip("only root can mount a file system")
    image, place = arena.box.path / "ext4.img", arena.box.path / "ext4"
    with open(image, "wb") as file:
        file.truncate(16 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-O", "casefold", "-E", "encoding=utf8", str(image)], check=True)
    place.mkdir()
    mounted = subprocess.run(["mount", "-o", "loop", str(image), str(place)], capture_output=True, check=False).returncode == 0
    assert mounted == os.path.exists("/sys/fs/ext4/features/casefold")
    if not mounted:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_l6_ext4_with_case_folding_is_refused_per_directory_and_no_agent_turns_it_on(arena, casefold):
    if not casefold:
        assert not platform.release().endswith("-amd64"), "Debian's kernels have CONFIG_UNICODE"
        return
    plain, folding = casefold / "plain", casefold / "folding"
    for top in (plain, folding):
        top.mkdir()
    subprocess.run(["chattr", "+F", str(folding)], check=True)
    arena.box.own(casefold)
    arena.root = folding
    assert_refused(run(arena), folding)  # empty: by its flag
    (folding / "Main.c").write_text("")
    assert (folding / "mAIN.C").exists(), "ext4 folds"
    assert_refused(run(arena), folding, "are one file")
    arena.root = plain
    shutil.copytree(arena.box.path / "repo", plain / "repo", symlinks=True)
    arena.box.own(plain)
    arena.root = plain / "repo"
    result = run(arena, command=["sh", "-c", "mkdir src/new; chattr +F src/new; lsattr -d src/new; echo ran"])
    assert "ran\n" in result.stdout and "F" not in result.stdout.split()[0], result
    (plain / "repo/data").mkdir()
    subprocess.run(["chattr", "+F", str(plain / "repo/data")], check=True)
    assert run(arena).stdout == "ran\n"
    assert_refused(run(arena, "--protect", "data/missing"), plain / "repo/data")
