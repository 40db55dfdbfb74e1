# SPDX-License-Identifier: Apache-2.0
"""`cordon mount` and `unmount`: links to workspace folders, made and removed without following or losing anything."""
import os

import pytest


@pytest.fixture
def repo(box):
    return box.repo(files={"lib/a": "1", "lib/utils/u": "", "src/b": "2", "packages/api/c": "3", "packages/web/d": ""})


@pytest.fixture
def worker(box):
    return box.mkdir("worker")


def snapshot(top):
    """Every name below a directory, with what it is and holds."""
    found = {}
    for path in sorted(top.rglob("*")):
        name = str(path.relative_to(top))
        found[name] = os.readlink(path) if path.is_symlink() else path.read_text() if path.is_file() else "/"
    return found


def test_cli_reference_mount_and_unmount(cordon, repo, worker):
    result = cordon("mount", "lib,src", worker, cwd=repo)
    assert result.returncode == 0, result
    assert snapshot(worker) == {"lib": f"{repo}/lib", "src": f"{repo}/src"}
    assert (worker / "lib/a").read_text() == "1"
    assert result.stdout == "" and "protect nothing" in result.stderr
    assert cordon("unmount", "lib,src", worker, cwd=repo).returncode == 0
    assert snapshot(worker) == {} and worker.is_dir()
    assert (repo / "lib/a").read_text() == "1"


def test_mounting_twice_and_unmounting_twice_is_fine(cordon, repo, worker):
    for _ in range(2):
        assert cordon("mount", "lib, src", worker, cwd=repo).returncode == 0
        assert snapshot(worker) == {"lib": f"{repo}/lib", "src": f"{repo}/src"}
    for _ in range(2):
        assert cordon("unmount", "lib,src", worker, cwd=repo).returncode == 0
        assert snapshot(worker) == {}


def test_a_missing_directory_is_made(cordon, repo, box):
    assert cordon("mount", "lib", "fresh", cwd=box.path, env={"WORKSPACE_REPO_ROOT": str(repo)}).returncode == 0
    assert os.readlink(box.path / "fresh/lib") == f"{repo}/lib"
    assert cordon("mount", "lib", box.path / "no/parent", cwd=repo).returncode == 1
    assert cordon("unmount", "lib", box.path / "nowhere", cwd=repo).returncode == 1


def test_nested_folders_keep_their_place_and_their_parents_are_removed_again(cordon, repo, worker):
    assert cordon("mount", "packages/api,packages/web", worker, cwd=repo).returncode == 0
    assert snapshot(worker) == {
        "packages": "/",
        "packages/api": f"{repo}/packages/api",
        "packages/web": f"{repo}/packages/web",
    }
    assert cordon("unmount", "packages/api", worker, cwd=repo).returncode == 0
    assert snapshot(worker) == {"packages": "/", "packages/web": f"{repo}/packages/web"}
    assert cordon("unmount", "packages/api,packages/web", worker, cwd=repo).returncode == 0
    assert snapshot(worker) == {}


def test_an_absolute_folder_is_mapped_by_its_place(cordon, repo, worker, box):
    box.link("through", "repo")
    assert cordon("mount", f"{repo}/packages/api,{box.path}/through/lib", worker, cwd=repo).returncode == 0
    assert snapshot(worker) == {"lib": f"{repo}/lib", "packages": "/", "packages/api": f"{repo}/packages/api"}


@pytest.mark.parametrize("folders", ["lib,lib/utils", "lib/utils,lib", "lib,lib,./lib/"])
def test_a_folder_in_another_is_reached_through_it(cordon, repo, worker, folders):
    assert cordon("mount", folders, worker, cwd=repo).returncode == 0
    assert snapshot(worker) == {"lib": f"{repo}/lib"}
    assert cordon("unmount", folders, worker, cwd=repo).returncode == 0
    assert snapshot(worker) == {}


def test_no_dangling_link_is_made(cordon, repo, worker):
    result = cordon("mount", "lib,missing", worker, cwd=repo)
    assert result.returncode == 1
    assert "Workspace folder does not exist: missing" in result.stderr
    assert snapshot(worker) == {}


def test_a_folder_outside_is_refused(cordon, repo, worker, box):
    box.link("repo/out", "/etc")
    result = cordon("mount", "lib,out", worker, cwd=repo)
    assert result.returncode == 1 and "outside repository: out" in result.stderr
    assert snapshot(worker) == {}


def test_the_repository_itself_cannot_be_mounted(cordon, repo, worker):
    assert cordon("mount", ".", worker, cwd=repo).returncode == 2
    assert snapshot(worker) == {}


@pytest.mark.parametrize("obstacle", ["file", "directory", "link", "dangling"])
def test_what_is_in_the_way_is_left_alone_and_nothing_else_is_made(cordon, repo, worker, box, obstacle):
    if obstacle == "file":
        box.write("worker/src", "precious")
    elif obstacle == "directory":
        box.write("worker/src/file", "precious")
    else:
        box.link("worker/src", f"{repo}/lib" if obstacle == "link" else "/nowhere")
    before = snapshot(worker)
    result = cordon("mount", "packages/api,lib,src", worker, cwd=repo)
    assert result.returncode == 1 and "in the way" in result.stderr
    assert snapshot(worker) == before
    result = cordon("unmount", "lib,src", worker, cwd=repo)
    assert result.returncode == 1
    assert snapshot(worker) == before


def test_one_obstacle_does_not_keep_the_others_from_being_unmounted(cordon, repo, worker, box):
    assert cordon("mount", "lib", worker, cwd=repo).returncode == 0
    box.write("worker/src", "precious")
    result = cordon("unmount", "src,lib", worker, "--json", cwd=repo)
    assert result.returncode == 1
    assert {link["path"]: link["state"] for link in result.json()["links"]} == {"src": "refused", "lib": "removed"}
    assert result.json("stderr")["kind"] == "conflict"
    assert snapshot(worker) == {"src": "precious"}


def test_no_link_in_the_directory_is_followed(cordon, repo, worker, box):
    victim = box.mkdir("victim")
    box.link("worker/packages", victim)
    before = snapshot(worker)
    result = cordon("mount", "lib,packages/api", worker, cwd=repo)
    assert result.returncode == 1
    assert snapshot(victim) == {} and snapshot(worker) == before
    box.link("victim/api", f"{repo}/packages/api")
    assert cordon("unmount", "packages/api", worker, cwd=repo).returncode == 1
    assert snapshot(victim) == {"api": f"{repo}/packages/api"}


def test_unmounting_keeps_directories_that_hold_something(cordon, repo, worker, box):
    assert cordon("mount", "packages/api", worker, cwd=repo).returncode == 0
    box.write("worker/packages/notes", "keep")
    assert cordon("unmount", "packages/api", worker, cwd=repo).returncode == 0
    assert snapshot(worker) == {"packages": "/", "packages/notes": "keep"}


def test_a_folder_that_is_gone_or_turned_can_still_be_unmounted(cordon, repo, worker, box):
    assert cordon("mount", "lib,src", worker, cwd=repo).returncode == 0
    (repo / "lib").rename(repo / "gone")
    (repo / "src").rename(repo / "gone2")
    box.link("repo/src", "/etc")
    assert cordon("unmount", "lib,src", worker, cwd=repo).returncode == 0
    assert snapshot(worker) == {}


def test_a_linked_folder_keeps_its_name(cordon, repo, worker, box):
    box.link("repo/door", "lib")
    assert cordon("mount", "door", worker, cwd=repo).returncode == 0
    assert (worker / "door/a").read_text() == "1"
    assert cordon("unmount", "door", worker, cwd=repo).returncode == 0
    assert snapshot(worker) == {}


def test_the_result_of_mounting_as_an_object(cordon, repo, worker):
    result = cordon("mount", "lib", worker, "--json", cwd=repo)
    assert result.stderr == ""
    link = {"folder": "lib", "path": "lib", "target": f"{repo}/lib"}
    assert result.json()["dir"] == str(worker)
    assert result.json()["links"] == [{**link, "state": "created"}]
    assert "protect nothing" in result.json()["note"]
    assert cordon("mount", "lib", worker, "--json", cwd=repo).json()["links"] == [{**link, "state": "present"}]


def test_strange_names_are_mounted(cordon, repo, worker, box):
    for name in ("a,b", "new\nline", "-dash", "qu'ote"):
        box.mkdir(f"repo/{name}")
    folders = r"a\,b,x/../new" + "\nline,./-dash,qu'ote"
    assert cordon("mount", "--", folders, worker, cwd=repo).returncode == 0
    assert set(snapshot(worker)) == {"a,b", "new\nline", "-dash", "qu'ote"}
    assert cordon("unmount", folders, worker, cwd=repo).returncode == 0
    assert snapshot(worker) == {}


def test_a_directory_that_cannot_be_written_is_an_error(cordon, repo, worker, who):
    if who.is_root:
        # Root may write anywhere; a file system that holds no links refuses even root.
        target = "/proc/self"
    else:
        worker.chmod(0o555)
        target = worker
    result = cordon("mount", "lib", target, cwd=repo)
    assert result.returncode == 1 and "lib" in result.stderr


def test_wrong_numbers_of_arguments_are_wrong_usage(cordon, repo):
    for command in ("mount", "unmount"):
        assert cordon(command, cwd=repo).returncode == 2
        assert cordon(command, "lib", cwd=repo).returncode == 2
        assert cordon(command, "lib", "w", "more", cwd=repo).returncode == 2
    assert not (repo / "lib/lib").exists()
