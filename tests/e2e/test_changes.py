# SPDX-License-Identifier: Apache-2.0
"""cordon changes: what a view changed, shown, applied and undone; nothing of the host's is lost."""
import json
import os
import random
import subprocess

import pytest

from support import Cordon, poll
from views import Killer, View

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


AGAIN = "rm -r dir opaque; mkdir -p dir/sub; echo new > dir/sub/new; mv box opaque"


def test_what_was_deleted_in_a_directory_that_was_made_again_is_listed_and_deleted_at_every_depth(box, cordon, tree):
    for name in ("opaque/in/side", "opaque/in/deep/side", "box/in/mine", "box/in/deep/mine"):
        box.write(f"root/{name}", "text\n")
    wanted = native(box, tree, AGAIN)
    before = snapshot(tree, times=True)
    run_in_view(cordon, tree, AGAIN)
    shown = cordon("changes", "diff", "--name-status", cwd=tree).stdout.splitlines()
    gone = ["dir/one", "dir/two", "dir/sub/three", "opaque/old", "opaque/kept", "opaque/in/side", "opaque/in/deep/side"]
    assert {f"D\t{name}" for name in gone} <= set(shown), shown
    applied = cordon("changes", "apply", cwd=tree)
    assert applied.returncode == 0 and all(f"D\t{name}\n" in applied.stdout for name in gone), str(applied)
    assert snapshot(tree) == wanted
    assert cordon("changes", "undo", cwd=tree).returncode == 0 and snapshot(tree, times=True) == before


ROUNDS = 250  # of each of the two callers


@pytest.mark.soak
@pytest.mark.limit(600)
@pytest.mark.parametrize("apart", [False, True], ids=["one_file_system", "two_file_systems"])
def test_killed_at_any_point_apply_and_undo_are_whole_or_not_done(box, memory_box, apart):
    """With the view on another file system than the root, the stage is a directory in the root while a command runs."""
    own = box if apart else memory_box
    cordon = Cordon(own)
    memory_box.mkdir("root")
    for name, content in FILES.items():
        memory_box.write(f"root/{name}", content)
    tree = memory_box.path / "root"
    view = View(own, tree).work(WORK)
    before, killer, random_ = snapshot(tree), Killer(cordon, tree), random.Random(13)
    calls = {"apply": killer.count("changes", "apply", view.id)}
    after = snapshot(tree)
    calls["undo"] = killer.count("changes", "undo", view.id)
    assert snapshot(tree) == before != after
    killed, ends = 0, {"apply": set(), "undo": set()}
    applied = False
    for number in range(ROUNDS):
        verb = "undo" if applied else "apply"
        status = killer.kill(*random_.choice(calls[verb]), "changes", verb, view.id)
        killed += status != 0
        listed = cordon("changes", "list", "--json", cwd=tree)
        assert listed.returncode == 0, listed.stderr
        found = snapshot(tree)
        assert found in (before, after), f"round {number}: {verb} was done by half"
        applied = found == after
        assert listed.json()["changes"][0]["state"] == ("applied" if applied else "ended"), f"round {number}: {verb}"
        ends[verb].add(applied)
        assert not [name for name in os.listdir(tree) if name.startswith(".cordon")]
    assert killed > ROUNDS * 0.9, killed
    assert ends == {"apply": {True, False}, "undo": {True, False}}, "kills before and after the decision"
    if applied:
        assert cordon("changes", "undo", view.id, cwd=tree).returncode == 0
    assert snapshot(tree) == before and cordon("changes", "apply", cwd=tree).returncode == 0 and snapshot(tree) == after


# ---- the host goes on ----


def test_conflicts_are_named_and_nothing_of_the_host_is_lost(box, cordon, tree):
    View(box, tree).work("echo agent >> text.txt; echo agent >> gone.txt; rm tool; echo x > both; echo y >> dir/one; echo fine > fine; rm -r opaque")
    box.write("root/text.txt", "host\n")  # edited, and what it was is not known
    (tree / "gone.txt").unlink()  # removed, and the view changed it
    box.write("root/tool", "host\n")  # changed, and the view removed it
    box.write("root/both", "host\n")  # made by both
    os.rename(tree / "dir", tree / "renamed")
    box.write("root/opaque/new", "host\n")  # made in a directory that the view removed
    before = snapshot(tree, times=True)
    done = cordon("changes", "apply", "--json", cwd=tree)
    named = {item["path"] for item in done.json()["conflicts"]}
    assert done.returncode == 1 and named >= {"text.txt", "gone.txt", "tool", "both", "dir", "opaque/new"}, str(done)
    assert snapshot(tree, times=True) == before
    assert cordon("changes", "apply", "latest", "fine", cwd=tree).returncode == 0 and (tree / "fine").read_text() == "fine\n"


def test_undo_is_refused_by_name_where_the_host_went_on(box, cordon, tree):
    view = View(box, tree).work(WORK)
    assert cordon("changes", "apply", cwd=tree).returncode == 0
    for change, named in (
        (lambda: box.write("root/text.txt", "host\n"), "text.txt"),
        (lambda: box.write("root/gone.txt", "made again\n"), "gone.txt"),
        (lambda: box.write("root/new/deep/own", "host\n"), "new/deep/own"),
        (lambda: os.unlink(tree / "one"), "one"),
    ):
        change()
        before = snapshot(tree, times=True)
        done = cordon("changes", "undo", "--json", view.id, cwd=tree)
        assert done.returncode == 1 and named in {item["path"] for item in done.json()["conflicts"]}, str(done)
        assert snapshot(tree, times=True) == before


def test_paths_and_hunks_can_be_chosen(box, cordon, tree):
    view = View(box, tree).work(WORK)
    some = cordon("changes", "apply", view.id, "new/deep", "gone.txt", cwd=tree)
    assert some.returncode == 0 and (tree / "new/deep/file").exists() and not (tree / "gone.txt").exists() and not (tree / "new/link").is_symlink()
    hunks = cordon("changes", "apply", "-p", view.id, "text.txt", cwd=tree, input="?\nn\ny\n")
    assert hunks.returncode == 0, str(hunks)
    text = (tree / "text.txt").read_text()
    assert "line thirty" in text and "line 3\n" in text
    assert cordon("changes", "diff", "--stat", view.id, "text.txt", cwd=tree).stdout.startswith(" text.txt |     2 +-"), "the other hunk is left"
    assert cordon("changes", "apply", view.id, "text.txt", cwd=tree).returncode == 0
    assert "line three" in (tree / "text.txt").read_text()
    assert cordon("changes", "apply", "-p", view.id, cwd=tree, input="q\n").returncode != 0
    assert cordon("changes", "apply", view.id, "no-such", cwd=tree).returncode == 1
    assert cordon("changes", "apply", view.id, "../x", cwd=tree).returncode == 2
    assert cordon("changes", "apply", view.id, "sub/three", cwd=tree / "dir").returncode == 0 and not (tree / "dir/sub/three").exists(), "relative to here"
    for answer, made in (("n", False), ("y", True)):
        asked = cordon("changes", "apply", "-p", view.id, "empty", cwd=tree, input=f"{answer}\n")
        assert asked.returncode == 0 and "Apply this new directory" in asked.stdout and (tree / "empty").exists() is made, str(asked)
    for _ in range(5):
        assert cordon("changes", "undo", view.id, cwd=tree).returncode == 0
    assert (tree / "text.txt").read_text() == FILES["text.txt"] and (tree / "dir/sub/three").exists()
    assert cordon("changes", "undo", view.id, cwd=tree).returncode == 1


def test_a_root_on_another_file_system_is_changed_as_well(box, memory_box, cordon):
    tree = memory_box.mkdir("root")
    for name, content in FILES.items():
        memory_box.write(f"root/{name}", content)
    view = View(box, tree)
    # A run that knows its view must not be able to take the name of the stage in the root.
    work = WORK + f"for k in 1 2 3; do echo mine > .cordon-{view.id[:8]}-$k; done"
    view.work(work)
    before = snapshot(tree, times=True)
    wanted = native(memory_box, tree, work)
    for _ in range(2):
        done = cordon("changes", "apply", view.id, cwd=tree)
        assert done.returncode == 0, done.stderr
        assert snapshot(tree) == wanted
        done = cordon("changes", "undo", view.id, cwd=tree)
        assert done.returncode == 0, done.stderr
        assert snapshot(tree, times=True) == before
    assert cordon("changes", "apply", view.id, cwd=tree).returncode == 0
    box.write("text", "host\n")
    os.replace(memory_box.write("other", "host\n"), tree / "text.txt")
    assert cordon("changes", "undo", view.id, cwd=tree).returncode == 1
    assert cordon("changes", "discard", view.id, cwd=tree).returncode == 0 and not view.dir.exists()


# ---- real runs ----


def run_in_view(cordon, tree, script, *options):
    done = cordon("run", "--cow", *options, "--", "sh", "-euc", script, cwd=tree)
    assert done.returncode == 0, str(done)


def test_a_run_in_a_view_is_applied_merged_and_undone(box, cordon, tree):
    """The host goes on after the run has ended: what is apart is merged, what is not is named, what the run moved is no deletion."""
    run_in_view(cordon, tree, "sed -i 's/^line 3$/line three/' text.txt; mv gone.txt moved.txt; echo agent > dir/one; echo new > new")
    assert "line 3\n" in (tree / "text.txt").read_text() and not (tree / "new").exists(), "the host's tree is as it was"
    text = (tree / "text.txt").read_text()
    box.write("root/text.txt", text.replace("line 30\n", "line thirty\n"))
    box.write("root/host", "made by the host, so that the directory changed\n")
    asked = cordon("changes", "apply", "-p", "latest", "text.txt", cwd=tree, input="n\n")
    assert "merged with the host's changes" in asked.stdout and "+line three" in asked.stdout and "line thirty" not in asked.stdout, "what an apply would write"
    merged = cordon("changes", "apply", "--json", cwd=tree)
    assert merged.returncode == 0, str(merged)
    assert [item["path"] for item in merged.json()["changed"] if item.get("merged")] == ["text.txt"]
    both = (tree / "text.txt").read_text()
    assert "line three\n" in both and "line thirty\n" in both and both.count("\n") == 40
    assert (tree / "moved.txt").read_text() == FILES["gone.txt"] and not (tree / "gone.txt").exists()
    assert cordon("changes", "undo", cwd=tree).returncode == 0
    assert (tree / "text.txt").read_text() == text.replace("line 30\n", "line thirty\n"), "the host's own text is back"
    box.write("root/text.txt", text.replace("line 3\n", "line III\n"))
    refused = cordon("changes", "apply", cwd=tree)
    assert refused.returncode == 1 and "text.txt: the host changed the same lines" in refused.stdout, str(refused)
    assert (tree / "gone.txt").exists() and not (tree / "new").exists(), "nothing is written"


def test_a_live_view_is_not_applied_and_another_one_beside_it_is(box, cordon, tree):
    live = cordon.start("run", "--cow", "--", "sh", "-c", "echo live > live; echo mine > gone.txt; touch ready; read line", cwd=tree, stdin=subprocess.PIPE)
    views = poll(lambda: cordon("changes", "list", "--json", cwd=tree).json()["changes"], 60, "the live view")
    poll(lambda: list((box.state / "state/views" / views[0]["id"] / "upper").glob("ready")), 60, "its work")
    assert views[0]["state"] == "live"
    for verb in ("apply", "discard"):
        refused = cordon("changes", verb, views[0]["id"], cwd=tree)
        assert refused.returncode == 1 and "not ended" in refused.stderr, str(refused)
    assert "live" in cordon("changes", "diff", views[0]["id"], cwd=tree).stdout, "it can be looked at"
    run_in_view(cordon, tree, "echo other > other; echo other > gone.txt")
    assert cordon("changes", "apply", cwd=tree).returncode == 0 and (tree / "gone.txt").read_text() == "other\n"
    live.stdin.write(b"\n")
    live.stdin.flush()
    assert live.wait(60) == 0
    conflict = cordon("changes", "apply", views[0]["id"], "--json", cwd=tree)
    assert conflict.returncode == 1 and [item["path"] for item in conflict.json()["conflicts"]] == ["gone.txt"], "each keeps its own"
    assert cordon("changes", "apply", views[0]["id"], "live", cwd=tree).returncode == 0 and (tree / "live").read_text() == "live\n"


def test_what_the_host_does_in_the_first_moment_of_a_run_counts_as_later_and_the_moment_before_does_not(box, cordon, tree):
    for _ in range(5):
        box.write("root/text.txt", "before\n")
        live = cordon.start("run", "--cow", "--no-summary", "--", "sh", "-c", "echo began; read line; echo agent > gone.txt; echo agent > text.txt", cwd=tree,
                            stdin=subprocess.PIPE)
        assert live.stdout.readline() == b"began\n"
        (tree / "gone.txt").write_text("of the host\n")
        live.communicate(b"\n", timeout=60)
        conflict = cordon("changes", "apply", "latest", "--json", cwd=tree)
        assert conflict.returncode == 1 and [item["path"] for item in conflict.json()["conflicts"]] == ["gone.txt"], str(conflict)
        assert (tree / "gone.txt").read_text() == "of the host\n"
        assert cordon("changes", "discard", "latest", cwd=tree).returncode == 0


def test_what_is_shown_says_who_would_execute_it_and_counts(box, cordon, tree):
    run_in_view(cordon, tree, "echo 'all:' > Makefile; printf '#!/bin/sh\\n' > run.sh; rm gone.txt; chmod 600 text.txt; echo x >> 'dir/one'")
    names = cordon("changes", "diff", "--name-status", cwd=tree).stdout.splitlines()
    assert names == ["A\tMakefile\t# executed by make", "A\trun.sh\t# executed by a shell", "M\tdir/one", "D\tgone.txt", "M\ttext.txt"]
    assert cordon("changes", "diff", "--stat", cwd=tree).stdout.splitlines()[-1] == " 5 files changed, 3 insertions(+), 1 deletions(-)"
    assert "# mode 0644 becomes 0600: text.txt\n" in cordon("changes", "diff", cwd=tree).stdout
    listed = cordon("changes", "diff", "--json", cwd=tree).json()["changes"]
    assert listed[0] == {"path": "Makefile", "status": "added", "type": "file", "new_mode": "0644", "size": 5, "executed_by": "make", "binary": False, "insertions": 1, "deletions": 0}
    dry = cordon("changes", "apply", "--dry-run", cwd=tree)
    assert dry.returncode == 0 and "would delete:\nD\tgone.txt\n5 files would change" in dry.stdout and (tree / "gone.txt").exists(), str(dry)
    assert cordon("changes", "list", "--quiet", cwd=tree).stdout.count("\n") == 1
    assert cordon("changes", "list", cwd=box.path).stdout == "" and len(cordon("changes", "list", "--all", "--json", cwd=box.path).json()["changes"]) == 1
    view = cordon("changes", "list", "--json", cwd=tree).json()["changes"][0]["id"]
    assert cordon("completion", "--ids", "views", view[:3]).stdout.startswith(view)
    assert cordon("changes", "discard", cwd=tree).returncode == 2, "what is thrown away must be named"
    assert cordon("changes", "discard", "latest", cwd=tree).returncode == 0
    assert cordon("changes", "show", cwd=tree).returncode == 1
    log = [record for record in map(json.loads, cordon("audit", "--json").stdout.splitlines()) if record["event"] == "changes"]
    assert [record["op"] for record in log] == ["discard"]


# ---- what git knows ----


def plant_text(view, change):
    """The text as a run left it that copied it up before the host changed it."""
    text = (view.root / "text.txt").read_text()
    path = view.upper / "text.txt"
    path.write_text(text.replace(*change))
    view.box.own(path)


@pytest.fixture
def repository(box, tree):
    done = box.run("sh", "-euc", "git init -q . && git add . && git -c user.name=n -c user.email=e@x commit -qm first && git status >/dev/null", cwd=tree)
    assert done.returncode == 0, done.stderr
    return tree


def test_git_knows_what_a_clean_file_was_when_the_host_changed_it_beside_a_live_view(box, cordon, repository):
    view = View(box, repository)
    plant_text(view, ("line 3\n", "line three\n"))
    box.write("root/text.txt", FILES["text.txt"].replace("line 30\n", "line thirty\n"))
    done = cordon("changes", "apply", "--json", cwd=repository)
    assert done.returncode == 0 and done.json()["changed"][0].get("merged") is True, str(done)
    text = (repository / "text.txt").read_text()
    assert "line three\n" in text and "line thirty\n" in text
    assert cordon("changes", "undo", cwd=repository).returncode == 0 and "line 3\n" in (repository / "text.txt").read_text()
    box.write("root/text.txt", FILES["text.txt"].replace("line 3\n", "line III\n"))
    assert "the host changed the same lines" in cordon("changes", "apply", cwd=repository).stdout


@pytest.mark.parametrize("then", ["edit", "restore", "checkout"])
def test_a_file_that_was_not_clean_is_a_conflict_and_not_merged_with_the_wrong_base(box, cordon, repository, then):
    box.write("root/text.txt", FILES["text.txt"].replace("line 10\n", "line ten\n"))  # uncommitted when the view begins
    view = View(box, repository)
    plant_text(view, ("line 3\n", "line three\n"))
    if then == "edit":
        box.write("root/text.txt", FILES["text.txt"].replace("line 10\n", "line ten\n").replace("line 30\n", "line thirty\n"))
    elif then == "restore":  # by hand: the host wants its line 10 back
        box.write("root/text.txt", FILES["text.txt"])
    else:
        assert box.run("git", "checkout", "-q", "--", "text.txt", cwd=repository).returncode == 0
    before = (repository / "text.txt").read_text()
    done = cordon("changes", "apply", "--json", cwd=repository)
    assert done.returncode == 1 and done.json()["conflicts"][0]["path"] == "text.txt", str(done)
    assert (repository / "text.txt").read_text() == before


BELOW = r"""
sed -i 's/^line 3$/line three/' text.txt
rm gone.txt
rm -r dir && mkdir dir && echo below > dir/below
echo added > added; ln -s text.txt link
mkdir -p made/deep && echo deep > made/deep/file
"""
ABOVE = r"""
sed -i 's/^line 30$/line thirty/' text.txt
echo again > gone.txt
rm dir/below && echo above > dir/above
echo more >> added; rm link; rm -r opaque
cp made/deep/file moved; rm made/deep/file; chmod 750 made/deep; chmod 600 added
echo unchanged > opaque.txt; rm opaque.txt
"""


def test_a_view_on_top_of_another_is_compared_with_it_and_applied_after_it(box, cordon, tree):
    """The layers between a view and the root are what it is based on: shown, merged and applied as such."""
    subprocess.run(["cp", "-a", str(tree), str(box.path / "native")], check=True)
    box.run("sh", "-euc", BELOW + ABOVE, cwd=box.path / "native")
    before = snapshot(tree)
    below = View(box, tree).work(BELOW)
    above = View(box, tree, layers=[below]).work(ABOVE)
    changes = cordon("changes", "diff", above.id, "--name-status", cwd=tree).stdout.splitlines()
    assert {"M\ttext.txt", "A\tgone.txt", "D\tdir/below", "A\tdir/above", "M\tadded", "D\tlink", "D\topaque/old", "D\tmade/deep/file", "A\tmoved"} <= set(changes)
    assert not any(line.endswith(("dir/one", "dir/two", "opaque.txt")) for line in changes), changes
    patch = cordon("changes", "diff", above.id, "text.txt", cwd=tree).stdout
    assert "+line thirty" in patch and "line three" not in patch.replace(" line three", ""), patch
    refused = cordon("changes", "apply", above.id, cwd=tree)
    assert refused.returncode != 0 and f"changes apply {below.id[:8]}" in refused.stderr and snapshot(tree) == before, str(refused)
    assert "was made on top of view" in cordon("changes", "discard", below.id, cwd=tree).stderr and below.dir.exists()
    for view in (below, above):
        done = cordon("changes", "apply", view.id, cwd=tree)
        assert done.returncode == 0, str(done)
    assert snapshot(tree) == snapshot(box.path / "native")
    for view in (above, below):
        assert cordon("changes", "undo", view.id, cwd=tree).returncode == 0
    assert snapshot(tree) == before


def test_what_the_host_changes_between_two_views_on_top_of_each_other_is_a_conflict(box, cordon, tree):
    below = View(box, tree).work("echo below >> tool; echo one > new")
    above = View(box, tree, layers=[below]).work("echo above >> tool; echo two >> new; rm bin.dat")
    assert cordon("changes", "apply", below.id, cwd=tree).returncode == 0
    box.write("root/tool", "of the host\n")
    before = snapshot(tree)
    done = cordon("changes", "apply", above.id, cwd=tree)
    assert done.returncode != 0 and "1 conflicts, the first is tool" in done.stderr and snapshot(tree) == before, str(done)
    assert cordon("changes", "apply", above.id, "new", "bin.dat", cwd=tree).returncode == 0
    assert (tree / "new").read_text() == "one\ntwo\n" and not (tree / "bin.dat").exists() and (tree / "tool").read_text() == "of the host\n"
    box.run("sh", "-c", f"rm -r {below.dir}")
    assert "which is not there any more" in cordon("changes", "show", above.id, cwd=tree).stderr
