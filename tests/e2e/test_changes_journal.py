# SPDX-License-Identifier: Apache-2.0
"""The journal of apply and undo: what happens when the host goes on in that very moment, when a process is killed, when the stage is on
another file system, and with what is left of journals later. Nothing of the host's is lost, and no view is stuck."""
import json
import os
import random
import shutil
import stat
import struct
import subprocess
import threading
import time

import pytest

from support import Cordon, kill_session, poll
from views import Killer, View

WEEK = 7 * 86400


@pytest.fixture
def tree(box):
    for name in ("f1", "f2", "f3", "f4"):
        box.write(f"root/{name}", f"{name}\n")
    return box.path / "root"


@pytest.fixture
def far(memory_box):
    """A root on another file system than the view."""
    for name in ("f1", "f2"):
        memory_box.write(f"root/{name}", f"{name}\n")
    return memory_box.path / "root"


def text_of(path):
    """Also of a file that is just being moved."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return None


def all_texts(top):
    return "".join(path.read_text() for path in top.rglob("*") if path.is_file() and not path.is_symlink())


def state_of(cordon, tree, view):
    listed = cordon("changes", "list", "--json", cwd=tree)
    assert listed.returncode == 0, str(listed)
    return next(item["state"] for item in listed.json()["changes"] if item["id"] == view.id)


def save(tree, name, text):
    """As an editor does it: a new file gets the name."""
    status = tree.stat()
    (tree / ".saved").write_text(text)
    os.chown(tree / ".saved", status.st_uid, status.st_gid)
    os.replace(tree / ".saved", tree / name)


# ---- the host saves while a step is carried out ----

PAUSES = "inject=renameat,renameat2:delay_enter=500000:delay_exit=1000000"


def pause(cordon, tree, *args):
    """Runs cordon with pauses before and after every rename: half a second, and one second."""
    return cordon.box.start("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=renameat,renameat2", "-e", PAUSES, cordon.path, *args, cwd=tree,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def meet_step(cordon, tree, view, *args, state="intent"):
    """Starts cordon and comes back when its first step has looked at the file, and is about to move it."""
    running = pause(cordon, tree, *args)
    poll(lambda: (view.dir / "journal/1" / state).exists(), 30, f"the journal to be in the state {state}")
    time.sleep(1.2)
    return running


@pytest.mark.parametrize("work", ["echo agent > f1", "rm f1"], ids=["replaced", "removed"])
@pytest.mark.parametrize("killed", [False, True], ids=["goes_on", "killed"])
def test_what_the_host_saves_between_look_and_move_stays_in_the_tree(box, cordon, tree, work, killed):
    view = View(box, tree).work(work)
    running = meet_step(cordon, tree, view, "changes", "apply", view.id)
    save(tree, "f1", "saved\n")
    if killed:
        poll(lambda: text_of(tree / "f1") != "saved\n", 20, "the step")
        kill_session(running)
        running.wait()
    else:
        assert running.wait(60) == 1
    assert state_of(cordon, tree, view) == "ended"
    assert (tree / "f1").read_text() == "saved\n"
    again = cordon("changes", "apply", "--json", view.id, cwd=tree)
    assert again.returncode == 1 and [item["path"] for item in again.json()["conflicts"]] == ["f1"], str(again)
    assert cordon("changes", "discard", view.id, cwd=tree).returncode == 0


def test_of_two_saves_the_last_one_stays_and_the_other_is_kept(box, cordon, tree):
    view = View(box, tree).work("echo agent > f1")
    running = meet_step(cordon, tree, view, "changes", "apply", view.id)
    save(tree, "f1", "first\n")
    poll(lambda: not (tree / "f1").exists(), 20, "the step")
    save(tree, "f1", "second\n")
    assert running.wait(60) == 1
    assert (tree / "f1").read_text() == "second\n"
    assert "first\n" in all_texts(view.dir / "journal" / "kept-1")
    assert state_of(cordon, tree, view) == "ended"
    assert cordon("changes", "discard", view.id, cwd=tree).returncode == 0


@pytest.mark.parametrize("killed", [False, True], ids=["goes_on", "killed"])
def test_what_the_host_saves_while_an_undo_moves_the_file_stays_in_the_tree(box, cordon, tree, killed):
    view = View(box, tree).work("echo agent > f1; echo agent > f2")
    assert cordon("changes", "apply", view.id, cwd=tree).returncode == 0
    running = meet_step(cordon, tree, view, "changes", "undo", view.id, state="undo")
    save(tree, "f2", "saved\n")  # the last step is the first to be taken back
    if killed:
        poll(lambda: text_of(tree / "f2") != "saved\n", 20, "the step")
        kill_session(running)
        running.wait()
    else:
        assert running.wait(60) == 1
    # An undo that goes on is not done at all; one that was killed is ended as far as possible, and says what it has kept.
    assert state_of(cordon, tree, view) == ("ended" if killed else "applied")
    assert (tree / "f2").read_text() == "saved\n"
    assert (tree / "f1").read_text() == ("f1\n" if killed else "agent\n")
    assert "f2\n" in all_texts(view.dir / "journal")
    assert cordon("changes", "discard", view.id, cwd=tree).returncode == 0


# ---- what the host did to modes and times ----


def test_undo_leaves_modes_and_times_alone_that_the_host_set_later(box, cordon, tree):
    box.mkdir("root/d")
    view = View(box, tree).work("chmod 775 d; touch -d @1000000000 f1")
    assert cordon("changes", "apply", view.id, cwd=tree).returncode == 0
    assert (tree / "d").stat().st_mode & 0o777 == 0o775 and (tree / "f1").stat().st_mtime == 1000000000
    (tree / "d").chmod(0o700)
    refused = cordon("changes", "undo", "--json", view.id, cwd=tree)
    assert refused.returncode == 1 and [item["path"] for item in refused.json()["conflicts"]] == ["d"], str(refused)
    (tree / "d").chmod(0o775)
    (tree / "f1").write_text("host\n")
    edited = (tree / "f1").stat().st_mtime_ns
    assert cordon("changes", "undo", view.id, cwd=tree).returncode == 0
    assert (tree / "d").stat().st_mode & 0o777 == 0o755
    assert (tree / "f1").stat().st_mtime_ns == edited, "a file with a new text keeps its new time"


def test_an_apply_that_is_taken_back_leaves_a_mode_alone_that_the_host_set_meanwhile(box, cordon, tree):
    box.mkdir("root/d")
    view = View(box, tree).work("chmod 775 d; echo agent > f1")
    running = meet_step(cordon, tree, view, "changes", "apply", view.id)
    (tree / "d").chmod(0o700)
    save(tree, "f1", "saved\n")
    assert running.wait(60) == 1
    assert (tree / "d").stat().st_mode & 0o777 == 0o700


# ---- gc ----


def age(view):
    """Makes the run of a view end eight days ago."""
    record = json.loads((view.dir / "record.json").read_text())
    record["ended"] = {"sec": int(time.time()) - WEEK - 86400, "nsec": 0}
    view.write("record.json", json.dumps(record).encode())


def interrupted_undo(box, cordon, tree):
    view = View(box, tree).work("for n in 1 2 3 4; do echo agent > f$n; done")
    assert cordon("changes", "apply", view.id, cwd=tree).returncode == 0
    status = Killer(cordon, tree).kill("renameat2", 3, "changes", "undo", view.id)
    texts = [text_of(tree / name) for name in ("f1", "f4")]
    assert status != 0 and texts == ["agent\n", "f4\n"], "some steps were taken back, and some were not"
    age(view)
    return view


def test_gc_keeps_a_view_whose_undo_was_interrupted(box, cordon, tree):
    view = interrupted_undo(box, cordon, tree)
    assert cordon("gc").returncode == 0 and view.dir.exists()
    assert state_of(cordon, tree, view) == "ended"
    assert [(tree / f"f{n}").read_text() for n in range(1, 5)] == ["f1\n", "f2\n", "f3\n", "f4\n"]


def test_gc_keeps_a_view_that_has_something_of_the_hosts_set_aside(box, cordon, tree):
    view = interrupted_undo(box, cordon, tree)
    save(tree, "f1", "host\n")
    noticed = cordon("changes", "list", cwd=tree)
    assert "the host changed f1 meanwhile" in noticed.stderr and f"{view.id}/journal/kept-1" in noticed.stderr, str(noticed)
    assert state_of(cordon, tree, view) == "ended", "the others are undone"
    assert [(tree / f"f{n}").read_text() for n in range(1, 5)] == ["host\n", "f2\n", "f3\n", "f4\n"]
    record = json.loads((view.dir / "record.json").read_text())
    view.write("record.json", json.dumps(record | {"state": "applied"}).encode())
    age(view)
    assert cordon("gc").returncode == 0 and "f1\n" in all_texts(view.dir / "journal" / "kept-1")
    # A second journal that must be set aside gets another number.
    view.write("record.json", json.dumps(record | {"state": "ended"}).encode())
    assert cordon("changes", "apply", view.id, "f2", cwd=tree).returncode == 0 and (view.dir / "journal" / "2").exists()
    assert cordon("changes", "discard", view.id, cwd=tree).returncode == 0 and not view.dir.exists()


# ---- rights ----


def test_an_access_list_of_the_host_stays_and_the_group_gets_no_more(box, cordon, tree):
    entries = ((0x01, 6, 0xFFFFFFFF), (0x02, 6, 1234), (0x04, 0, 0xFFFFFFFF), (0x10, 6, 0xFFFFFFFF), (0x20, 0, 0xFFFFFFFF))
    access = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    os.setxattr(tree / "f1", "system.posix_acl_access", access)
    assert (tree / "f1").stat().st_mode & 0o777 == 0o660
    View(box, tree).work("echo agent >> f1")
    assert cordon("changes", "apply", cwd=tree).returncode == 0
    assert (tree / "f1").read_text() == "f1\nagent\n" and (tree / "f1").stat().st_mode & 0o777 == 0o660
    assert os.getxattr(tree / "f1", "system.posix_acl_access") == access


def test_work_in_directories_that_are_closed_to_their_owner_is_applied_and_undone(box, cordon, tree):
    for name in ("shut/one", "gone/deep/two", "moved/three"):
        box.write(f"root/{name}", "x\n")
    for name in ("shut", "gone/deep", "gone", "moved"):
        (tree / name).chmod(0o555)
    before = {str(path): path.stat().st_mode for path in tree.rglob("*")}
    view = View(box, tree).work("chmod u+w shut; echo new > shut/new; rm shut/one; chmod 555 shut; chmod -R u+w gone; rm -r gone; mv moved there")
    for _ in range(2):
        applied = cordon("changes", "apply", view.id, cwd=tree)
        assert applied.returncode == 0, str(applied)
        assert os.listdir(tree / "shut") == ["new"] and not (tree / "gone").exists() and not (tree / "moved").exists()
        assert (tree / "shut").stat().st_mode & 0o777 == (tree / "there").stat().st_mode & 0o777 == 0o555
        undone = cordon("changes", "undo", view.id, cwd=tree)
        assert undone.returncode == 0, str(undone)
        assert {str(path): path.stat().st_mode for path in tree.rglob("*")} == before


def test_attributes_of_new_directories_come_out_and_however_many_a_file_has(memory_box):
    """In memory, because ext4 has no room for so many names."""
    cordon = Cordon(memory_box)
    memory_box.write("root/f1", "f1\n")
    tree = memory_box.path / "root"
    script = "import os; os.mkdir('made'); os.setxattr('made', 'user.note', b'kept'); [os.setxattr('f1', f'user.{n:0200d}', b'x') for n in range(60)]"
    View(memory_box, tree).work(f'echo more >> f1; python3 -c "{script}"')
    assert cordon("changes", "apply", cwd=tree).returncode == 0
    assert os.getxattr(tree / "made", "user.note") == b"kept"
    assert len(os.listxattr(tree / "f1")) == 60


# ---- another file system ----


def test_on_another_file_system_everything_that_was_comes_back(box, cordon, far):
    os.mkfifo(far / "pipe", 0o640)
    (far / "tool").write_text("#!/bin/sh\n")
    (far / "open").mkdir()
    box.own(far)
    os.setxattr(far / "open", "user.x", b"y")
    (far / "tool").chmod(0o4755)
    (far / "open").chmod(0o1777)
    os.utime(far / "open", (1577836800, 1577836800))
    view = View(box, far).work("rm -r pipe tool open; echo agent > f1")
    before = {path.name: (path.lstat().st_mode, path.lstat().st_uid) for path in far.iterdir()}
    for _ in range(2):
        applied = cordon("changes", "apply", view.id, cwd=far)
        assert applied.returncode == 0 and sorted(os.listdir(far)) == ["f1", "f2"], str(applied)
        undone = cordon("changes", "undo", view.id, cwd=far)
        assert undone.returncode == 0, str(undone)
        assert {path.name: (path.lstat().st_mode, path.lstat().st_uid) for path in far.iterdir()} == before
        assert (far / "open").stat().st_mtime == 1577836800 and os.getxattr(far / "open", "user.x") == b"y"


def test_what_cannot_be_kept_is_named_before_anything_is_changed(box, cordon, far):
    box.write(far / "shut", "secret\n", mode=0o200)
    view = View(box, far).work("rm -f shut; echo agent > f1")
    done = cordon("changes", "apply", view.id, cwd=far)
    if box.who.is_root:
        assert done.returncode == 0 and not (far / "shut").exists(), str(done)
        assert cordon("changes", "undo", view.id, cwd=far).returncode == 0 and (far / "shut").stat().st_mode & 0o777 == 0o200
    else:
        assert done.returncode == 1 and "shut" in done.stderr, str(done)
    assert (far / "f1").read_text() == "f1\n" and sorted(os.listdir(far)) == ["f1", "f2", "shut"]
    assert cordon("changes", "apply", view.id, "f1", cwd=far).returncode == 0
    assert cordon("changes", "discard", view.id, cwd=far).returncode == 0


@pytest.mark.parametrize("verb", ["apply", "undo"])
def test_a_stage_that_the_host_removes_ends_the_journal_and_loses_no_old_file(box, cordon, far, verb):
    view = View(box, far).work("echo agent > f1; echo agent > f2; echo agent > f3")
    if verb == "undo":
        assert cordon("changes", "apply", view.id, cwd=far).returncode == 0
    assert Killer(cordon, far).kill("renameat2", 2, "changes", verb, view.id) != 0
    stage = next(path for path in far.iterdir() if path.name.startswith(".cordon"))
    shutil.rmtree(stage)  # as `git clean` does it
    noticed = cordon("changes", "list", cwd=far)
    assert "the host removed the directory in the root" in noticed.stderr, str(noticed)
    assert state_of(cordon, far, view) == "ended"
    kept = all_texts(view.dir / "journal" / "kept-1")
    assert "f1\n" in kept and "f2\n" in kept
    assert "interrupted" not in cordon("changes", "list", cwd=far).stderr, "it is over"
    assert cordon("changes", "discard", view.id, cwd=far).returncode == 0


def test_directories_of_a_lower_layer_can_be_removed(box, cordon):
    """A root on overlayfs, as in a container."""
    if os.getuid() != 0:
        return
    box.write("lower/d/one", "1\n")
    for name in ("upper", "work", "root"):
        box.mkdir(name)
    root = box.path / "root"
    layers = f"lowerdir={box.path}/lower,upperdir={box.path}/upper,workdir={box.path}/work"
    subprocess.run(["mount", "-t", "overlay", "-o", layers, "overlay", str(root)], check=True)
    try:
        view = View(box, root)
        os.mknod(view.upper / "d", stat.S_IFCHR, os.makedev(0, 0))
        for _ in range(2):
            applied = cordon("changes", "apply", view.id, cwd=root)
            assert applied.returncode == 0 and not (root / "d").exists(), str(applied)
            assert cordon("changes", "undo", view.id, cwd=root).returncode == 0 and (root / "d/one").read_text() == "1\n"
    finally:
        subprocess.run(["umount", str(root)], check=True)


# ---- journals later ----


def test_a_view_whose_root_is_gone_can_be_discarded_whatever_was_applied(box, cordon, tree):
    whole = View(box, tree).work("echo agent > f1; echo agent > f2")
    half = View(box, tree).work("echo agent > f3; echo agent > f4")
    assert cordon("changes", "apply", whole.id, "f1", cwd=tree).returncode == 0
    assert Killer(cordon, tree).kill("renameat2", 2, "changes", "apply", half.id) != 0
    shutil.rmtree(tree)
    for view in (whole, half):
        done = cordon("changes", "discard", view.id, cwd=box.path)
        assert done.returncode == 0 and not view.dir.exists(), str(done)


def test_journals_of_the_first_version_can_be_undone_and_of_others_are_refused(box, cordon, tree):
    box.write("root/d/one", "1\n")
    view = View(box, tree).work("echo agent > f1; rm f2; rm -r d; mkdir made; echo x > made/x")
    assert cordon("changes", "apply", view.id, cwd=tree).returncode == 0
    journal = view.dir / "journal" / "1"
    text = (journal / "applied").read_bytes()
    assert text.startswith(b"cordon-journal 2")
    for kept in list((journal / "stage").glob("*.old")):
        kept.rename(kept.with_suffix(""))
    (journal / "applied").write_bytes(text.replace(b"cordon-journal 2", b"cordon-journal 9"))
    refused = cordon("changes", "undo", view.id, cwd=tree)
    assert refused.returncode == 1 and "another version of cordon wrote the journal" in refused.stderr, str(refused)
    (journal / "applied").write_bytes(text.replace(b"cordon-journal 2", b"cordon-journal 1"))
    assert cordon("changes", "undo", view.id, cwd=tree).returncode == 0
    assert [(tree / name).read_text() for name in ("f1", "f2", "d/one")] == ["f1\n", "f2\n", "1\n"] and not (tree / "made").exists()


def test_a_damaged_journal_is_set_aside_and_is_not_in_the_way(box, cordon, tree):
    view = View(box, tree).work("echo agent > f1; echo agent > f2")
    assert Killer(cordon, tree).kill("renameat2", 2, "changes", "apply", view.id) != 0
    (view.dir / "journal/1/intent").write_text("nonsense")
    noticed = cordon("changes", "list", cwd=tree)
    assert "is damaged" in noticed.stderr and "kept-1" in noticed.stderr, str(noticed)
    assert "f2\n" in all_texts(view.dir / "journal/kept-1") + all_texts(tree), "nothing is lost"
    assert cordon("changes", "discard", view.id, cwd=tree).returncode == 0


def test_the_directory_of_journals_is_on_the_disk_before_the_first_step(box, cordon, tree):
    view = View(box, tree).work("echo agent > f1")
    log = box.path / "calls"
    done = box.run("strace", "-f", "-y", "-qq", "-o", str(log), "-e", "trace=fsync,mkdirat,renameat,renameat2", cordon.path, "changes", "apply", view.id, cwd=tree)
    assert done.returncode == 0, done.stderr
    calls = log.read_text().split("\n")
    made = next(n for n, line in enumerate(calls) if 'mkdirat' in line and '"journal"' in line)
    synced = next(n for n, line in enumerate(calls) if "fsync" in line and f"/views/{view.id}>" in line)
    step = next(n for n, line in enumerate(calls) if "renameat" in line and '"f1"' in line)
    assert made < synced < step


@pytest.mark.limit(300)
def test_killed_at_every_rename_while_directories_go_and_come_everything_is_whole(memory_box):
    """Each rename and removal, from the first to the last: the directories have no entry in the stage that could tell it."""
    cordon = Cordon(memory_box)
    for name in ("a/b/c/one", "a/two", "shape/file"):
        memory_box.write(f"root/{name}", f"{name}\n")
    memory_box.write("root/other", "other\n")
    tree = memory_box.path / "root"
    view = View(memory_box, tree).work("rm -r a shape; echo file > shape; mkdir -p x/y/z; echo new > x/y/z/new; rm other; mkdir other; echo in > other/in")

    def look():
        return {str(path.relative_to(tree)): (path.stat().st_mode, path.is_file() and path.read_text()) for path in tree.rglob("*")}

    killer, before = Killer(cordon, tree), look()
    calls = {"apply": killer.count("changes", "apply", view.id)}
    after = look()
    calls["undo"] = killer.count("changes", "undo", view.id)
    assert look() == before != after
    applied = False
    for verb in ("apply", "undo"):
        for call, number in calls[verb]:
            if call not in ("renameat", "renameat2", "unlinkat", "mkdirat"):
                continue
            if applied != (verb == "undo"):
                assert cordon("changes", "apply" if verb == "undo" else "undo", view.id, cwd=tree).returncode == 0
            killer.kill(call, number, "changes", verb, view.id)
            listed = cordon("changes", "list", "--json", cwd=tree)
            found = look()
            assert found in (before, after), f"{verb} was done by half at {call} {number}: {listed.stderr}"
            applied = found == after
            assert listed.json()["changes"][0]["state"] == ("applied" if applied else "ended")


STRIKES = {"renameat": 12, "renameat2": 12, "fsync": 10, "unlinkat": 8, "linkat": 6, "openat": 120}  # about how many calls there are


class Saver(threading.Thread):
    """A host that saves a few files while a command runs."""

    def __init__(self, tree, seed):
        super().__init__()
        self.tree, self.random, self.last = tree, random.Random(seed), {}

    def run(self):
        time.sleep(self.random.uniform(0, 0.06))
        for number in range(3):
            name, text = f"f{self.random.randrange(6)}", f"saved {number}\n"
            save(self.tree, name, text)
            self.last[name] = text
            time.sleep(self.random.uniform(0, 0.01))


@pytest.mark.soak
@pytest.mark.limit(600)
@pytest.mark.parametrize("apart", [False, True], ids=["one_file_system", "two_file_systems"])
def test_killed_at_any_point_beside_a_host_that_saves_nothing_is_lost_or_stuck(box, memory_box, apart):
    own = box if apart else memory_box
    cordon, seen = Cordon(own), set()
    for number in range(150):
        chance = random.Random(number)
        tree = memory_box.mkdir(f"root{number}")
        for name in ("f0", "f1", "f2", "f3", "f4", "f5", "d/e/x"):
            memory_box.write(tree / name, f"old {name}\n")
        view = View(own, tree).work("for n in 0 1 2 3; do echo agent > f$n; done; rm f4 f5; rm -r d; mkdir -p m/n; echo q > m/n/q")
        verb = "undo" if number % 2 else "apply"
        if verb == "undo":
            assert cordon("changes", "apply", view.id, cwd=tree).returncode == 0
        saver = Saver(tree, number)
        saver.start()
        call = chance.choice(sorted(STRIKES))
        Killer(cordon, tree).kill(call, chance.randint(STRIKES[call] // 6, STRIKES[call]), "changes", verb, view.id)
        saver.join()
        first, second = (cordon("changes", "list", "--json", cwd=tree) for _ in range(2))
        assert second.returncode == 0 and not second.stderr, f"round {number}: {first}{second}"
        applied = second.json()["changes"][0]["state"] == "applied"
        kept = list(view.dir.glob("journal/kept-*"))
        seen.add((verb, applied, bool(kept)))
        texts = all_texts(tree) + all_texts(view.dir / "journal") if (view.dir / "journal").exists() else all_texts(tree)
        assert all(text in texts for text in saver.last.values()), f"round {number}: {saver.last} {first}"
        for name in ("f0", "f1", "f2", "f3", "f4", "f5"):
            wanted = f"old {name}\n" if not applied else "agent\n" if name < "f4" else None
            assert kept or name in saver.last or text_of(tree / name) == wanted, f"round {number}: {name} {first}"
        assert kept or ((tree / "d/e/x").exists(), (tree / "m/n/q").exists()) == (not applied, applied), f"round {number}"
        assert not list(tree.glob(".cordon*")) and cordon("changes", "discard", view.id, cwd=tree).returncode == 0
    assert seen >= {(verb, applied, False) for verb in ("apply", "undo") for applied in (False, True)}
