# SPDX-License-Identifier: Apache-2.0
"""cordon changes beside a host that goes on: modes, and directories that the host moves, stay as the host has them."""
import json
import os
import subprocess

import pytest

from views import Killer, View


def run_in_view(cordon, tree, script, **kw):
    done = cordon("run", "--cow", "--no-summary", "--", "sh", "-euc", script, cwd=tree, **kw)
    assert done.returncode == 0, str(done)


def mode(path):
    return path.lstat().st_mode & 0o7777


def apply(cordon, tree, *args):
    done = cordon("changes", "apply", "--json", *args, cwd=tree)
    return done.returncode, {item["path"] for item in done.json()["conflicts"]}


def tree_of(box, files):
    root = box.mkdir("root")
    for name, content in files.items():
        box.write(f"root/{name}", content)
    return root


# ---- modes ----


@pytest.fixture
def modes(box):
    """Directories 0755 and files 0644, with ten lines each."""
    text = "".join(f"line {n}\n" for n in range(10))
    return tree_of(box, {name: text for name in ("conf", "tool", "both", "same", "dir/old", "wide/old", "twice/old")})


AGENT = "echo more >> conf; echo x > dir/new; chmod 755 tool both same; chmod 775 wide twice; echo x > wide/new"


def test_the_mode_is_the_one_of_the_side_that_changed_it(box, cordon, modes):
    run_in_view(cordon, modes, AGENT)
    before = {path: (mode(path), path.read_bytes() if path.is_file() else None) for path in modes.rglob("*")}
    for name, bits in {"conf": 0o600, "dir": 0o700, "twice": 0o700, "same": 0o755}.items():
        (modes / name).chmod(bits)
    box.write("root/wide/host", "the directory changed, and its mode did not\n")
    shown = cordon("changes", "diff", "--json", cwd=modes).json()["changes"]
    assert {item["path"]: item["new_mode"] for item in shown if item["path"] in ("conf", "tool")} == {"conf": "0600", "tool": "0755"}
    assert apply(cordon, modes) == (0, set())
    found = {name: oct(mode(modes / name)) for name in ("conf", "tool", "same", "dir", "wide", "twice")}
    assert found == {"conf": "0o600", "tool": "0o755", "same": "0o755", "dir": "0o700", "wide": "0o775", "twice": "0o700"}
    assert (modes / "conf").read_text().endswith("line 9\nmore\n") and (modes / "dir/new").exists()
    assert cordon("changes", "undo", cwd=modes).returncode == 0
    (modes / "wide/host").unlink()
    for path, (bits, content) in before.items():
        path.chmod(bits)
        assert content is None or path.read_bytes() == content
    assert apply(cordon, modes) == (0, set()) and mode(modes / "wide") == 0o775 and mode(modes / "conf") == 0o644


def test_a_file_whose_mode_both_changed_is_a_conflict(box, cordon, modes):
    run_in_view(cordon, modes, AGENT)
    (modes / "both").chmod(0o600)
    assert apply(cordon, modes) == (1, {"both"})
    assert mode(modes / "both") == 0o600 and mode(modes / "tool") == 0o644, "nothing is written"
    (modes / "both").chmod(0o755)
    assert apply(cordon, modes) == (0, set()), "both want the same now"


def test_where_no_note_says_what_the_mode_was_rights_get_no_wider(box, cordon, modes):
    """The run was killed, or a former version of cordon made the view."""
    View(box, modes).work(AGENT)
    for name, bits in {"conf": 0o600, "dir": 0o700, "twice": 0o700}.items():
        (modes / name).chmod(bits)
    assert apply(cordon, modes) == (1, {"conf"}) and mode(modes / "conf") == 0o600
    assert apply(cordon, modes, "latest", "dir", "twice", "wide", "tool") == (0, set())
    found = {name: oct(mode(modes / name)) for name in ("dir", "twice", "wide", "tool")}
    assert found == {"dir": "0o700", "twice": "0o700", "wide": "0o775", "tool": "0o755"}


def test_a_host_that_closes_a_directory_beside_a_live_run_finds_it_closed(box, cordon, modes):
    live = cordon.start("run", "--cow", "--no-summary", "--", "sh", "-c", "echo x > dir/new; echo ready; read line", cwd=modes, stdin=subprocess.PIPE)
    assert live.stdout.readline() == b"ready\n"
    (modes / "dir").chmod(0o700)
    live.communicate(b"\n", timeout=60)
    assert apply(cordon, modes) == (0, set()) and mode(modes / "dir") == 0o700 and (modes / "dir/new").exists()


def test_set_id_and_sticky_bits_of_the_host_stay_where_the_view_did_not_write(box, cordon, modes):
    bits = {"dir": 0o2755, "wide": 0o1777, "tool": 0o4755, "conf": 0o6755, "both": 0o4755}
    for name, value in bits.items():
        (modes / name).chmod(value)
    View(box, modes).work("echo x > dir/new; echo x > wide/new; chmod g+w dir; touch -d @1000000000 tool; echo more >> conf; chmod go-x both")
    shown = [line.split("\t")[:2] for line in cordon("changes", "diff", "--name-status", cwd=modes).stdout.splitlines()]
    assert sorted(shown, key=lambda line: line[1]) == [["M", "both"], ["M", "conf"], ["M", "dir/"], ["A", "dir/new"], ["A", "wide/new"]]
    assert apply(cordon, modes) == (0, set())
    found = {name: oct(mode(modes / name)) for name in bits}
    assert found == {"dir": "0o2775", "wide": "0o1777", "tool": "0o4755", "conf": "0o755", "both": "0o744"}
    assert (modes / "tool").stat().st_mtime == 1000000000
    assert cordon("changes", "diff", "--name-status", cwd=modes).stdout == "", "and nothing is left to apply"


def test_a_directory_that_the_run_closed_comes_out_as_closed_as_it_was(box, cordon, modes):
    """Who lists the changes must open it, and does so several times before it is applied."""
    bits = {"search": 0o100, "none": 0, "list": 0o400, "all": 0o711, "dir": 0o300}
    script = "mkdir search none list all none/in; echo x | tee search/f none/in/f list/f all/f dir/f; " + "".join(f"chmod {value:o} {name}; " for name, value in bits.items())
    run_in_view(cordon, modes, script + "python3 -c 'import os; os.setxattr(\"all\", \"user.overlay.cordon.mode\", b\"0011\")' || true")
    for _ in range(2):
        shown = cordon("changes", "diff", "--json", cwd=modes).json()["changes"]
        assert {item["path"]: int(item["new_mode"], 8) for item in shown if item["path"] in bits} == bits
    assert apply(cordon, modes) == (0, set())
    assert {name: mode(modes / name) for name in bits} == bits
    assert (modes / "none/in/f").read_text() == "x\n"
    assert cordon("changes", "undo", cwd=modes).returncode == 0
    assert sorted(os.listdir(modes)) == ["both", "conf", "dir", "same", "tool", "twice", "wide"] and mode(modes / "dir") == 0o755


# ---- directories that the host moves ----


@pytest.fixture
def places(box):
    return tree_of(box, {"d/f": "f\n", "d/sub/g": "g\n", "other/f": "PRECIOUS\n", "other/sub/g": "PRECIOUS\n", "build/out": "out\n", "build/deep/out": "out\n",
                         "imp/p": "PRECIOUS\n", "imp/tmp": "t\n"})


def move_in(tree):
    os.rename(tree / "d", tree / "d.bak")
    os.rename(tree / "other", tree / "d")
    (tree / "d/newfile").touch()
    os.rename(tree / "imp", tree / "build/imp")
    (tree / "build/imp/tmp").unlink()


def test_a_directory_that_the_host_moved_into_place_is_neither_overwritten_nor_deleted(box, cordon, places):
    run_in_view(cordon, places, "echo agent >> d/f; echo agent >> d/sub/g; rm -r build")
    move_in(places)
    status, conflicts = apply(cordon, places)
    assert status == 1 and {"d/f", "d/sub/g", "build/imp", "build/imp/p"} <= conflicts and "build/out" not in conflicts, conflicts
    assert (places / "d/f").read_text() == (places / "d/sub/g").read_text() == (places / "build/imp/p").read_text() == "PRECIOUS\n"


def test_without_a_note_a_moved_directory_is_not_deleted_either(box, cordon, places):
    View(box, places).work("rm -r build; rm -r d; mkdir -p d/sub; echo agent > d/sub/g")
    move_in(places)
    status, conflicts = apply(cordon, places)
    assert status == 1 and {"d/f", "d/sub/g", "build/imp", "build/imp/p"} <= conflicts, conflicts


def test_a_host_that_works_in_the_same_directories_is_no_conflict(box, cordon, places):
    run_in_view(cordon, places, "echo agent >> d/f; echo agent >> d/sub/g; rm -r build; rm other/f")
    for name in ("d/x", "d/sub/y", "other/z", "top"):
        box.write(f"root/{name}", "host\n")
    (places / "imp/tmp").unlink()
    (places / "build/deep").chmod(0o755)
    assert apply(cordon, places) == (0, set())
    assert (places / "d/f").read_text() == "f\nagent\n" and (places / "d/x").exists() and not (places / "build").exists()
    assert cordon("changes", "undo", cwd=places).returncode == 0
    box.write("root/d/again", "host\n")
    assert apply(cordon, places, "latest", "build/deep") == (0, set()) and (places / "build").exists(), "a part of it"
    box.write("root/again", "host\n")
    assert apply(cordon, places) == (0, set()) and not (places / "build").exists(), "and then the rest"


# ---- another number for the same device ----


class Renumbered:
    """Makes everything that a view has written down say another number of the root's device, as if the machine had started again since."""

    def __init__(self, box, tree):
        self.view = next((box.state / "state/views").iterdir())
        self.now, self.then = tree.stat().st_dev, tree.stat().st_dev + 4096

    def record(self, **other):
        path = self.view / "record.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | other))

    def __call__(self):
        for path in (path for name in ("known", "journal/*/intent", "journal/*/applied", "journal/*/undo") for path in self.view.glob(name)):
            text = path.read_bytes()
            assert f" {self.now} ".encode() in text
            path.write_bytes(text.replace(f" {self.now} ".encode(), f" {self.then} ".encode()))
        self.record(dev=self.then)


def test_a_view_and_its_undo_last_longer_than_the_number_of_a_device(box, cordon, places):
    run_in_view(cordon, places, "echo agent >> d/f; echo agent >> d/sub/g; rm -r build; mkdir new; echo x > new/file")
    Renumbered(box, places)()
    (places / "d/f").chmod(0o600)
    box.write("root/d/host", "x\n")
    assert len(cordon("changes", "list", "--json", cwd=places).json()["changes"]) == 1
    assert apply(cordon, places) == (0, set()) and (places / "new/file").exists() and mode(places / "d/f") == 0o600
    assert cordon("changes", "undo", cwd=places).returncode == 0 and (places / "build/deep/out").exists() and not (places / "new").exists()
    assert apply(cordon, places) == (0, set()), "what undo left is noted with the number of the record"
    box.write("root/new/file", "the host went on\n")
    assert cordon("changes", "undo", cwd=places).returncode == 1
    os.rename(places / "other", places / "d.new")
    os.rename(places / "d", places / "d.old")
    os.rename(places / "d.new", places / "d")
    (places / "d/touched").touch()
    assert {"d/f", "d/sub/g"} <= apply(cordon, places)[1], "another directory is another one"


def test_an_apply_that_was_interrupted_before_the_machine_started_again_is_ended(box, cordon, places):
    run_in_view(cordon, places, "echo agent >> d/f; echo agent >> d/sub/g; echo agent >> other/f; echo agent >> imp/p")
    assert Killer(cordon, places).kill("renameat2", 2, "changes", "apply") != 0
    renumber = Renumbered(box, places)
    assert list(renumber.view.glob("journal/*/intent"))
    renumber()
    assert [view["state"] for view in cordon("changes", "list", "--json", cwd=places).json()["changes"]] == ["applied"]
    assert all((places / name).read_text().endswith("agent\n") for name in ("d/f", "d/sub/g", "other/f", "imp/p"))


@pytest.mark.parametrize("other", [{"lasting": ""}, {"lasting": "1.000000000 1 00"}, {"ino": 2**40}])
def test_a_root_that_can_be_another_directory_is_refused(box, cordon, places, other):
    run_in_view(cordon, places, "echo agent >> d/f")
    renumber = Renumbered(box, places)
    renumber()
    renumber.record(**other)
    assert cordon("changes", "list", "--json", cwd=places).json()["changes"] == []
    refused = cordon("changes", "apply", renumber.view.name, cwd=places)
    assert refused.returncode == 1 and "is not the directory any more" in refused.stderr and (places / "d/f").read_text() == "f\n"
