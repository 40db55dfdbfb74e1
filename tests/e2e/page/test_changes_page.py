# SPDX-License-Identifier: Apache-2.0
"""Changes on the page: what is shown is what the command says, and what was shown is what is applied."""
import html
import json
import os
import re
import subprocess

import pytest

from support import poll
from views import View

TEXT = "".join(f"line {n}\n" for n in range(1, 41))
HOSTILE = "<script>alert(1)</script>\x1b[31m\u202egnp"
WORK = r"""
sed -i 's/^line 3$/line three/; s/^line 30$/line thirty/' text.txt
rm gone.txt
rm -r dir
echo 'all:' > Makefile
printf '\0\1binary' > bin.dat
mkdir -p new/deep empty && echo new > new/deep/file && ln -s ../target new/link
mkfifo pipe
chmod 755 tool
"""


@pytest.fixture
def tree(box):
    box.mkdir("root")
    for name, content in {"text.txt": TEXT, "gone.txt": "gone\n", "tool": "#!/bin/sh\n", "dir/one": "1\n"}.items():
        box.write(f"root/{name}", content)
    return box.path / "root"


class Shown:
    """The page of a view as a person sees it, and the forms on it."""

    def __init__(self, page, view, part=""):
        self.page, self.path = page, f"/changes/{view}"
        self.text = page.get(self.path + part)
        self.plain = html.unescape(re.sub(r"<[^>]*>", " ", self.text))
        self.boxes = {html.unescape(name): number for number, name in re.findall(r'name="file" value="(\d+)" aria-label="Choose ([^"]*)"', self.text)}

    def digest(self, action):
        form = re.search(rf'name="action" value="{action}"><input type="hidden" name="shown" value="([0-9a-f]{{64}})"', self.text)
        assert form, f"no form to {action}"
        return form[1]

    def has(self, action):
        return f'name="action" value="{action}"' in self.text

    def hunks(self, name):
        """The values of the hunks of a file that can be chosen."""
        return re.findall(rf'name="hunk" value="({self.boxes[name]}\.\d+)"', self.text)

    def apply(self, *files, hunks=(), status=303):
        chosen = {"file": [self.boxes[name] for name in files], "hunk": list(hunks)}
        return self.page.post(self.path, status, action="chosen", shown=self.digest("chosen"), **chosen)

    def apply_all(self, status=303, **fields):
        return self.page.post(self.path, status, action="all", shown=self.digest("all"), **({"sure": "yes"} | fields))

    def undo(self, status=303):
        return self.page.post(self.path, status, action="undo", shown=self.digest("undo"))


def snapshot(root):
    return {str(path.relative_to(root)): os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None for path in root.rglob("*")}


def audited(cordon, tool):
    records = map(json.loads, cordon("audit", "--json").stdout.splitlines())
    return [record for record in records if record["event"] == "call" and record["detail"].get("tool") == tool]


def test_a_view_is_shown_as_the_command_shows_it_and_chosen_parts_are_applied_and_undone(box, cordon, page, tree):
    view = View(box, tree).work(WORK)
    before = snapshot(tree)
    listed = page.get("/changes")
    assert f'href="/changes/{view.id}"' in listed and "ended" in listed and str(tree) in listed
    assert "8 files: 4 added, 2 modified, 2 deleted; the host would execute 2 of them; 1 left out" in html.unescape(listed)
    shown = Shown(page, view.id)
    said = cordon("changes", "show", "--json", view.id, cwd=tree).json()
    assert {change["path"] for change in said["changes"]} - set(shown.boxes) == {"new", "new/deep", "dir"}, "they come along with what is in them"
    assert all(change["path"] in shown.plain for change in said["changes"]) and "pipe : a FIFO" in shown.plain
    order = [shown.text.index(f'aria-label="Choose {name}"') for name in ("Makefile", "dir/one", "gone.txt", "bin.dat")]
    assert order == sorted(order), "first what the host executes, then what is deleted"
    assert "executed by make" in shown.text and "Mode 0644 becomes 0755" in shown.plain and "Binary: 0 bytes become 8 bytes" in shown.plain
    assert "+line three" in shown.plain and "-line 3\n" in html.unescape(re.sub("<[^>]*>", "", shown.text)) and "+../target" in shown.plain
    patch = page.raw("GET", shown.path + "/patch")
    assert patch.headers["content-type"] == "text/x-diff" and "attachment" in patch.headers["content-disposition"]
    assert patch.body == cordon("changes", "diff", view.id, cwd=tree).raw_stdout

    # Some files and one of two hunks.
    assert len(shown.hunks("text.txt")) == 2
    assert shown.apply("gone.txt", "new/deep/file", "empty", hunks=shown.hunks("text.txt")[1:]) == f"{shown.path}?done=applied"
    assert "The changes are in the host's tree." in html.unescape(page.get(f"{shown.path}?done=applied"))
    text = (tree / "text.txt").read_text()
    assert "line thirty\n" in text and "line 3\n" in text and not (tree / "gone.txt").exists() and (tree / "new/deep/file").exists() and (tree / "empty").is_dir()
    assert not (tree / "Makefile").exists() and not (tree / "new/link").is_symlink() and (tree / "dir/one").exists(), "nothing else"
    assert Shown(page, view.id).hunks("text.txt"), "the other hunk is left"
    Shown(page, view.id).undo()
    assert snapshot(tree) == before

    # All of it, once the person has said that the dangerous part was seen.
    shown = Shown(page, view.id)
    assert "tick the box" in shown.apply_all(400, sure=[]) and snapshot(tree) == before
    shown.apply_all()
    assert (tree / "Makefile").exists() and not (tree / "dir").exists() and "line three" in (tree / "text.txt").read_text()
    assert cordon("changes", "show", "--json", view.id, cwd=tree).json()["state"] == "applied"
    assert "Nothing that the host's tree does not have" in html.unescape(page.get(shown.path))
    calls = audited(cordon, "changes_apply")
    assert [call["success"] for call in calls] == [True, True] and {call["detail"]["client"] for call in calls} == {"page"}
    assert {call["detail"]["principal"] for call in calls} == {f"uid:{box.who.uid}"} and {call["detail"]["about"] for call in calls} == {view.id}

    # The host goes on; then nothing is taken back.
    shown = Shown(page, view.id)
    box.write("root/Makefile", "changed by the host\n")
    assert "Makefile" in shown.undo(409) and (tree / "Makefile").read_text() == "changed by the host\n"
    assert "The host went on" in page.get(shown.path) and not Shown(page, view.id).has("undo")

    # Asks again, and then discards.
    asked = page.get(f"{shown.path}/discard")
    assert "nobody can bring them back" in asked and view.dir.exists()
    assert page.post(shown.path, action="discard") == "/changes?done=discarded" and not view.dir.exists()
    assert page.get(shown.path, 404) and len(audited(cordon, "changes_discard")) == 1


def test_what_was_shown_is_what_is_applied(box, cordon, page, tree):
    view = View(box, tree).work(WORK)
    shown = Shown(page, view.id)
    status = (tree / "text.txt").stat()
    box.write("root/text.txt", TEXT.replace("line 3\n", "line E\n"))
    os.utime(tree / "text.txt", ns=(status.st_atime_ns, status.st_mtime_ns))  # the same size and time
    before = snapshot(tree)
    for answer in (shown.apply_all(409), shown.apply("gone.txt", status=409), shown.apply(hunks=shown.hunks("text.txt")[:1], status=409)):
        assert "changed since it was shown" in answer and snapshot(tree) == before
    box.write("root/text.txt", TEXT)
    shown = Shown(page, view.id)
    assert cordon("changes", "apply", view.id, "gone.txt", cwd=tree).returncode == 0  # somebody else was faster
    assert "changed since it was shown" in shown.apply("bin.dat", status=409) and not (tree / "bin.dat").exists()
    undo = Shown(page, view.id)
    assert cordon("changes", "apply", view.id, "bin.dat", cwd=tree).returncode == 0
    assert "not the one that was shown" in undo.undo(409) and (tree / "bin.dat").exists() and not (tree / "gone.txt").exists()
    # What changed elsewhere was not shown, and is in nobody's way.
    shown = Shown(page, view.id)
    box.write("root/other", "by the host\n")
    shown.apply("new/link")
    assert (tree / "new/link").is_symlink()


def test_forms_that_the_page_does_not_make_change_nothing(box, page, tree):
    view = View(box, tree).work(WORK)
    before = snapshot(tree)
    shown = Shown(page, view.id)
    digest = {"action": "chosen", "shown": shown.digest("chosen")}
    for fields in (
        {"file": "999"},
        {"file": "-1"},
        {"file": "1.1"},
        {"hunk": "1"},
        {"hunk": f"{shown.boxes['bin.dat']}.0"},
        {"hunk": f"{shown.boxes['text.txt']}.9"},
        {"file": "99999999999999999999"},
        {"file": re.search(r"diff-(\d+)", shown.text)[1] + "\n"},
        {},
    ):
        assert "That did not work" in page.post(shown.path, 400, **(digest | fields)), fields
    assert page.post(shown.path, 400, action="chosen", file=shown.boxes["gone.txt"]), "without a digest"
    assert page.post(shown.path, 409, action="chosen", file=shown.boxes["gone.txt"], shown="0" * 64)
    assert page.post(shown.path, 400, action="undo") and page.post(shown.path, 400, action="nothing") and page.post(shown.path, 400)
    assert page.raw("POST", shown.path, None, b"action=discard&token=" + b"0" * 64).status == 403
    assert page.post(shown.path + "/discard", 400, action="discard")
    for path in ("/changes/none", f"/changes/{view.id[:8]}", "/changes/" + "0" * 8 + view.id[8:], shown.path + "/none", shown.path + "/file/x"):
        assert page.raw("GET", path).status == 404, path
    assert "no such change" in page.get(shown.path + "/file?n=999")
    assert snapshot(tree) == before and view.dir.exists()


def test_conflicts_refusals_and_merges_are_named_and_nothing_is_written(box, cordon, page, tree):
    done = cordon("run", "--cow", "--", "sh", "-euc", "sed -i 's/^line 3$/line three/' text.txt; echo agent > gone.txt; echo new > new", cwd=tree)
    assert done.returncode == 0, str(done)
    view = cordon("changes", "list", "--json", cwd=tree).json()["changes"][0]["id"]
    box.write("root/text.txt", TEXT.replace("line 30\n", "line thirty\n"))
    box.write("root/gone.txt", "host\n")
    before = snapshot(tree)
    shown = Shown(page, view)
    assert "gone.txt : the host changed the same lines" in shown.plain and not shown.has("all")
    assert "Both changes are merged" in shown.plain and "line thirty" not in shown.plain, "the diff is what an apply writes"
    answer = page.post(shown.path, 409, action="all", shown=shown.digest("chosen"), sure="yes")
    assert "1 conflicts" in answer and "gone.txt</code>: the host changed the same lines" in answer
    assert "gone.txt" in shown.apply("gone.txt", "new", status=409) and snapshot(tree) == before
    shown.apply("text.txt", "new")
    text = (tree / "text.txt").read_text()
    assert "line three\n" in text and "line thirty\n" in text and (tree / "gone.txt").read_text() == "host\n" and (tree / "new").exists()
    shown = Shown(page, view)
    assert "same lines" in shown.apply(hunks=shown.hunks("gone.txt"), status=409), "all hunks are the whole file"

    refused = View(box, tree, grants=[("read", "**"), ("write", "dir/**")], protect=["dir/one"]).work("echo x > dir/two; echo x > out; echo x > dir/one")
    before = snapshot(tree)
    shown = Shown(page, refused.id)
    assert "Refused by the policy of the run" in shown.plain and set(shown.boxes) == {"dir/two"} and not shown.has("all")
    answer = page.post(shown.path, 403, action="all", shown=shown.digest("chosen"), sure="yes")
    assert "out" in answer and "dir/one" in answer and snapshot(tree) == before
    shown.apply("dir/two")
    assert (tree / "dir/two").exists() and not (tree / "out").exists() and (tree / "dir/one").read_text() == "1\n"


def test_what_the_host_removed_comes_back_only_for_a_person_who_chose_it(box, cordon, page, tree):
    done = cordon("run", "--cow", "--", "sh", "-euc", "echo agent > gone.txt", cwd=tree)
    assert done.returncode == 0, str(done)
    view = cordon("changes", "list", "--json", cwd=tree).json()["changes"][0]["id"]
    (tree / "gone.txt").unlink()
    shown = Shown(page, view)
    assert "the host removed or renamed it" in shown.plain and not shown.has("all")
    assert page.post(shown.path, 409, action="all", shown=shown.digest("chosen")) and not (tree / "gone.txt").exists()
    shown.apply("gone.txt")
    assert (tree / "gone.txt").read_text() == "agent\n"


def test_names_and_contents_of_agents_are_text_and_bounded(box, cordon, page, tree):
    """Markup, escapes, bidi, newlines and invalid bytes in names and contents; long lines, long files, many files."""
    name = HOSTILE.replace("/", "\u2215") + "\nsecond\xff"
    script = r"""
printf '%s\n' "$(printf '<script>alert(1)</script>\033[31m\342\200\256gnp')" > "$(printf '%b' "$NAME")"
awk 'BEGIN { for (i = 0; i < 90000; i++) print "line", i }' > long
awk 'BEGIN { for (i = 0; i < 5000; i++) printf "abcdefghij"; print "" }' > wide
mkdir many && cd many && for i in $(seq 1000 1250); do echo $i > f$i; done
""".replace('"$(printf \'%b\' "$NAME")"', "\"$(printf '" + "".join(f"\\{byte:03o}" for byte in os.fsencode(name.replace("\xff", "\udcff"))) + "')\"")
    view = View(box, tree).work(script)
    shown = Shown(page, view.id)
    assert "254 files" in shown.text and len(shown.boxes) < 200 and "The next of" in shown.text
    rest = page.get(shown.path + "?skip=200")
    assert "f1250" in rest and "Files before these" in rest
    alone = page.get(f"{shown.path}/file?n={shown.boxes['long']}")
    assert "line 300" in shown.text and "line 80000" not in shown.text and "Not all of it is shown" in shown.text and "Show more of this file" in shown.text
    assert "line 40000" in alone and "line 80000" not in alone and "Not all of it is shown" in alone
    assert "48001 bytes more" in rest
    shown_name = next(box for box in shown.boxes if "alert" in box)
    assert "\\n" in shown_name and "\\xff" in shown_name and "\\u{202e}" in shown_name
    shown.apply(shown_name, "long")
    assert any(b"alert" in path for path in os.listdir(os.fsencode(tree)))
    for text in (shown.text, rest, alone, page.get("/changes"), page.get(shown.path)):
        assert "<script>alert" not in text and "\x1b" not in text and "\u202e" not in text and len(text) < 20_000_000
    assert len(shown.text) < 3_000_000


def test_commits_are_taken_over_with_the_whole_view(box, cordon, page, tree):
    def git(*args):
        done = box.run("git", "-c", "user.name=n", "-c", "user.email=e@x", *args, cwd=tree)
        assert done.returncode == 0, str(done)
        return done.stdout.strip()

    git("init", "-qb", "main")
    git("add", ".")
    git("commit", "-qm", "first")
    done = cordon("run", "--cow", "--git", "commit", "--", "sh", "-euc", "echo more >> text.txt; echo x > x; git add x text.txt; git -c user.name=a -c user.email=a@x commit -qm second", cwd=tree)
    assert done.returncode == 0, str(done)
    view = cordon("changes", "list", "--json", cwd=tree).json()["changes"][0]["id"]
    shown = Shown(page, view)
    assert "The run made commits" in shown.text
    assert shown.apply_all().endswith("done=applied-commits"), "and says so"
    assert git("log", "--format=%s").splitlines() == ["second", "first"] and git("status", "--porcelain") == ""


def test_a_live_view_can_be_looked_at_and_its_end_is_told(box, cordon, page, tree):
    live = cordon.start("run", "--cow", "--", "sh", "-c", "echo live > live; read line", cwd=tree, stdin=subprocess.PIPE)
    view = poll(lambda: cordon("changes", "list", "--json", cwd=tree).json()["changes"], 60, "the live view")[0]["id"]
    poll(lambda: "live</code>" in page.get(f"/changes/{view}"), 60, "its work")
    shown = Shown(page, view)
    assert "has not ended" in shown.text and not shown.boxes and not shown.has("all") and "/discard" not in shown.text
    assert f'data-live="approvals views/{view}"' in shown.text
    for action in ("all", "discard"):
        assert "not ended" in page.post(shown.path, 409, action=action, shown="0" * 64)
    stream = page.listen(f"views/{view}")
    stream.head()
    live.stdin.write(b"\n")
    live.stdin.flush()
    while b"event: change" not in stream.data:
        assert stream.more()
    stream.close()
    assert live.wait(60) == 0 and Shown(page, view).boxes


def test_what_was_interrupted_is_ended_on_request(box, page, tree):
    view = View(box, tree).work(WORK)
    for path in (view.dir / "journal", view.dir / "journal" / "1", view.dir / "journal" / "1" / "stage"):
        path.mkdir()
        box.own(path)
    shown = Shown(page, view.id)
    assert "was interrupted" in shown.text and not shown.boxes and not shown.has("all")
    assert page.post(shown.path, action="recover").endswith("done=recovered")
    assert Shown(page, view.id).has("all") and not (view.dir / "journal" / "1").exists()


def test_a_view_whose_root_is_gone_can_be_discarded(box, page, tree):
    view = View(box, tree).work("echo x > x")
    tree.rename(tree.with_name("elsewhere"))
    path = f"/changes/{view.id}"
    assert "cannot open the root" in page.get(path) and "cannot open the root" in page.get("/changes")
    assert page.post(path, 404, action="all", shown="0" * 64, sure="yes")
    assert f'href="{path}/discard"' in page.get(path) and page.post(path, action="discard") and not view.dir.exists()
