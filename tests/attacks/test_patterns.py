# SPDX-License-Identifier: Apache-2.0
"""Scopes by name (`src/**/*.ts`) in whole sandboxes, and what of it applies to folders."""
import ctypes
import json
import os
import shutil
import stat
import subprocess

import pytest

LIBC = ctypes.CDLL(None, use_errno=True)
PATTERN = ["--rw", "src/**/*.ts"]
FOLDER = ["--rw", "src"]
BOTH = pytest.mark.parametrize("scope", [PATTERN, FOLDER], ids=["lens", "folder"])

# What code that runs inside begins with: answer() gives "ok", or the name of the error.
PRELUDE = r"""
import ctypes, errno, json, os, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
def answer(call, *args):
    try:
        value = call(*args)
    except OSError as error:
        return errno.errorcode[error.errno]
    return value if isinstance(value, (str, list)) else "ok"
def read(path):
    with open(path) as stream:
        return stream.read()
def write(path, text="written\n"):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as stream:
        stream.write(text)
def append(path):
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.write(fd, b"EVIL\n")
def renameat2(a, b, flags):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), flags) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")
def noreplace(a, b): renameat2(a, b, 1)
def exchange(a, b): renameat2(a, b, 2)
def linkat_empty(a, b):
    fd = os.open(a, os.O_PATH)
    if libc.linkat(fd, b"", -100, b.encode(), 0x1000) != 0:
        raise OSError(ctypes.get_errno(), "linkat")
def link_by_proc(a, b):
    fd = os.open(a, os.O_PATH)
    os.link(f"/proc/self/fd/{fd}", b, follow_symlinks=True)
out = {}
"""


class Field:
    """A tree with a scope in it, and code run inside or without a sandbox."""

    def __init__(self, box, cordon):
        self.box = box
        self.cordon = cordon
        self.root = box.repo(files={
            "src/a.ts": "a\n", "src/b.ts": "b\n", "src/deep/c.ts": "c\n", "src/notes.md": "notes\n", "src/run.sh": "run\n",
            "secret/key.ts": "SECRET\n", "secret/plain.txt": "SECRET\n", "top.ts": "TOP\n",
        })
        self.outside = box.write("outside/host.ts", "SECRET\n")

    def look(self):
        """Everything on the host below the root and outside: type, mode, links, content."""
        found = {}
        for top in (self.root, self.outside.parent):
            for path in sorted(top.rglob("*")):
                st = os.lstat(path)
                content = os.readlink(path) if path.is_symlink() else path.read_bytes() if stat.S_ISREG(st.st_mode) else None
                found[os.path.relpath(path, self.box.path)] = (stat.S_IFMT(st.st_mode), st.st_mode, st.st_nlink if content else 0, content)
        return found

    def words(self, code):
        return ["/usr/bin/python3", "-c", PRELUDE + code + "\nprint(json.dumps(out))"]

    def inside(self, code, options, cwd=None):
        done = self.cordon("run", "--root", str(self.root), *options, "--", *self.words(code), cwd=cwd or self.root)
        assert done.returncode == 0, str(done)
        return json.loads(done.stdout)

    def without(self, code):
        done = self.box.run(*self.words(code), cwd=self.root)
        assert done.returncode == 0, str(done)
        return json.loads(done.stdout)


@pytest.fixture
def field(box, cordon):
    return Field(box, cordon)


# ---- B1 ----

MAKE = """
for name in ("src/new.ts", "src/x/y/new.ts", "src/new.sh", "src/x/y/new.sh", "src/x/new", "new.ts", "lib/new.ts", "secret/new.ts"):
    out[name] = answer(write, name)
"""


@BOTH
def test_b1_files_made_after_the_start_are_judged_by_name(field, scope):
    before = field.look()
    out = field.inside(MAKE, scope)
    good = {"src/new.ts", "src/x/y/new.ts"} | ({"src/new.sh", "src/x/y/new.sh", "src/x/new"} if scope == FOLDER else set())
    assert {name for name, how in out.items() if how == "ok"} == good, out
    made = {name for name in set(field.look()) - set(before) if not (field.box.path / name).is_dir()}
    assert made == {f"repo/{name}" for name in good} and {k: v for k, v in field.look().items() if k in before} == before


def test_b1_control_without_cordon_all_of_them_are_made(field):
    assert set(field.without(MAKE).values()) == {"ok"}


def test_b1_what_the_host_makes_meanwhile_is_judged_alike(field):
    process = field.cordon.start("run", "--root", str(field.root), *PATTERN, "--", *field.words("""
print("ready", flush=True)
sys.stdin.readline()
for name in ("src/late.ts", "src/new/late.ts", "src/late.sh", "src/new/late.sh", "late.ts"):
    out[name] = answer(read, name)
"""), cwd=field.root, stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    for name in ("src/late.ts", "src/new/late.ts", "src/late.sh", "src/new/late.sh", "late.ts"):
        field.box.write(f"repo/{name}", "late\n")
    said, _ = process.communicate(b"\n", timeout=30)
    out = json.loads(said)
    assert {name for name, how in out.items() if how == "late\n"} == {"src/late.ts", "src/new/late.ts"}, out


# ---- B2 ----

# From, to: into the scope, out of it, between names out of it.
MOVES = """
MOVES = [("src/notes.md", "src/notes.ts"), ("secret/key.ts", "src/key.ts"), ("secret/key.ts", "src/a.ts"), ("src/a.ts", "src/a.sh"),
         ("src/a.ts", "secret/a.ts"), ("src/a.ts", "out.ts"), ("src/a.ts", "src/run.sh"), ("src/a.ts", "secret/key.ts"), ("src/run.sh", "src/notes.md"),
         ("src/deep", "secret/deep"), ("secret", "src/secret.ts"), ("src", "elsewhere")]
if folder:
    MOVES = [move for move in MOVES if not all(name.startswith("src/") for name in move)]
for a, b in MOVES:
    for call in (os.rename, noreplace, exchange, os.link, linkat_empty, link_by_proc):
        out[f"{call.__name__} {a} {b}"] = answer(call, a, b)
"""


@BOTH
def test_b2_every_call_with_two_names_is_judged_under_both(field, scope):
    before = field.look()
    out = field.inside(f"folder = {scope == FOLDER}\n" + MOVES, scope)
    assert "ok" not in out.values(), out
    assert field.look() == before
    out = field.inside("""
out["in scope"] = [answer(os.rename, "src/a.ts", "src/deep/a.ts"), answer(os.link, "src/b.ts", "src/b2.ts"), answer(exchange, "src/b.ts", "src/deep/c.ts")]
""", scope)
    assert out["in scope"] == ["ok", "ok", "ok"]
    assert (field.root / "src/deep/a.ts").read_text() == "a\n" and (field.root / "src/b.ts").read_text() == "c\n"


def test_b2_control_without_cordon_names_are_moved(field):
    out = field.without("folder = False\n" + MOVES)
    assert out["rename src/notes.md src/notes.ts"] == "ok" and out["rename secret/key.ts src/key.ts"] == "ok"


# ---- B3 ----


def test_b3_atomic_saves_work_and_leave_nothing_out_of_scope(field):
    before = field.look()
    out = field.inside("""
out["sed"] = str(subprocess.run(["sed", "-i", "s/a/saved/", "src/a.ts"]).returncode)
write("src/b.ts~", "saved\\n")
os.rename("src/b.ts~", "src/b.ts")
write("src/deep/c.ts.tmp.123", "kept?\\n")
out["kept"] = [answer(os.rename, "src/deep/c.ts.tmp.123", name) for name in ("src/evil.sh", "secret/evil.ts", "src/deep/evil")]
out["linked"] = [answer(os.link, "src/deep/c.ts.tmp.123", name) for name in ("src/evil.sh", "secret/evil.ts", "src/deep/evil")]
out["others"] = [answer(write, name) for name in ("src/notes.md~", "src/run.sh.tmp.1", "secret/key.ts~", "src/evil.sh")]
""", PATTERN)
    after = field.look()
    assert out["sed"] == "0" and not {"ok"} & {*out["kept"], *out["linked"], *out["others"]}, out
    assert set(after) == set(before)
    assert {name for name in before if after[name] != before[name]} <= {"repo/src/a.ts", "repo/src/b.ts"}
    assert (field.root / "src/a.ts").read_text() == "saved\n" and (field.root / "src/b.ts").read_text() == "saved\n"


# ---- B4 ----

FOLLOW = """
for name in ("src/link.ts", "src/absolute.ts", "src/outer.ts", "src/through.ts/key.ts", "src/dir.ts/x.sh", "src/chain.ts"):
    out[name] = [answer(read, name), answer(append, name), answer(os.truncate, name, 0), answer(os.chmod, name, 0o777)]
"""


def plant(field):
    """Links with matching names, and a directory whose name matches."""
    link = field.box.link
    link("repo/src/link.ts", "../secret/key.ts")
    link("repo/src/absolute.ts", str(field.root / "secret/key.ts"))
    link("repo/src/outer.ts", str(field.outside))
    link("repo/src/through.ts", "../secret")
    link("repo/src/chain.ts", "link.ts")
    field.box.write("repo/src/dir.ts/x.sh", "SECRET\n")


@BOTH
def test_b4_links_with_matching_names_are_judged_by_what_they_lead_to(field, scope):
    plant(field)
    before = field.look()
    out = field.inside(FOLLOW + """
for name, target in (("own1.ts", "../secret/key.ts"), ("own2.ts", "/etc/hostname"), ("own3.ts", "../top.ts")):
    os.symlink(target, "src/" + name)
    out[name] = [answer(append, "src/" + name), answer(os.chmod, "src/" + name, 0o777)]
    os.unlink("src/" + name)
""", scope)
    if scope == FOLDER:  # a folder grants what lies in it, whatever it is called
        assert out.pop("src/dir.ts/x.sh")[0] == "SECRET\n"
        before.pop("repo/src/dir.ts/x.sh")
        out["own3.ts"].pop()  # beside a folder stand placeholders of ours, whose mode is nobody's business
    assert not {"ok", "SECRET\n"} & {how for row in out.values() for how in row}, out
    after = field.look()
    assert {name: after[name] for name in before} == before


def test_b4_control_without_cordon_they_are_followed(field):
    plant(field)
    out = field.without(FOLLOW)
    assert out["src/link.ts"] == out["src/outer.ts"] == ["SECRET\n", "ok", "ok", "ok"]


# ---- directories that are swapped ----

ROUNDS = 100000
RACED = 10000  # rounds in which names were exchanged between the beginning and the end of an open
TWINS = {
    "a link to a directory": ("src/d", "src/twin", "../private"),
    "a link to the host": ("src/d", "src/twin", "{outside}"),
    "a link instead of the file": ("src/d/f.ts", "src/d/twin.ts", "hidden.txt"),
}


@pytest.fixture
def swap(field, probes):
    """Where the probe lies inside and outside; src/d/f.ts is the agent's, what is called FOREIGN is not."""
    field.box.write("repo/src/d/f.ts", "mine")
    field.box.write("repo/src/d/hidden.txt", "FOREIGN")
    field.box.write("repo/private/f.ts", "FOREIGN")
    field.box.write("outside/f.ts", "FOREIGN")
    shutil.copy(probes / "swap", field.root / "src/swap")
    field.box.own(field.root / "src/swap")
    return field.root / "src/swap"


def assert_own(done):
    """Every round was played, the races took place, and no descriptor was another's."""
    words = done.stdout.split()
    assert done.returncode == 0, str(done)
    counts = dict(zip(words[::2], map(int, words[1::2])))
    refused = {name: counts.pop(name) for name in set(counts) - {"rounds", "raced", "opened", "swaps"}}
    assert set(refused) <= {"EACCES", "ENOENT", "ESTALE", "ENOTDIR", "ELOOP"}, refused
    assert counts["rounds"] >= ROUNDS and counts["swaps"] >= counts["raced"] >= RACED, counts
    # Both ends of the exchange were met.
    assert counts["opened"] > RACED / 100 and sum(refused.values()) > RACED / 100, (counts, refused)


@pytest.mark.limit(600)
@pytest.mark.parametrize("scope", [["--rw", "src/**/*.ts", "--ro", "src/swap"], FOLDER], ids=["lens", "folder"])
@pytest.mark.parametrize("twin", TWINS)
def test_b4_swapping_on_the_host_never_gives_a_foreign_descriptor(field, swap, scope, twin):
    first, second, target = TWINS[twin]
    if scope == FOLDER and second.startswith("src/d/"):
        target = "../../private/f.ts"  # the whole folder is granted
    field.box.link(f"repo/{second}", target.format(outside=field.outside.parent))
    before = {name: how for name, how in field.look().items() if not name.startswith(("repo/src/d", "repo/src/twin"))}
    counter = field.box.write("counter", bytes(4096))
    host = field.box.start(str(swap), "keep", str(counter), first, second, cwd=field.root, stdin=subprocess.PIPE)
    with open(counter, "rb") as stdin:
        done = field.cordon("run", "--root", str(field.root), *scope, "--", "src/swap", "open", str(ROUNDS), str(RACED), "src/d", "f.ts",
                            "mine", cwd=field.root, stdin=stdin, timeout=500)
    host.communicate(timeout=20)
    assert_own(done)
    after = field.look()
    assert {name: after[name] for name in before} == before


@pytest.mark.limit(600)
@pytest.mark.parametrize("scope", [["--rw", "src/**", "--lens", "always"], FOLDER], ids=["lens", "folder"])
def test_b4_swapping_inside_never_gives_a_foreign_descriptor(field, swap, scope):
    field.box.link("repo/src/twin", "../private")
    done = field.cordon("run", "--root", str(field.root), *scope, "--", "src/swap", "open", str(ROUNDS), str(RACED), "src/d", "f.ts", "mine",
                        "src/d", "src/twin", cwd=field.root, timeout=500)
    assert_own(done)
    assert (field.root / "private/f.ts").read_text() == "FOREIGN"


def test_b4_control_without_cordon_a_foreign_descriptor_is_had_at_once(field, swap):
    field.box.link("repo/src/twin", "../private")
    done = field.box.run(str(swap), "open", str(ROUNDS), str(RACED), "src/d", "f.ts", "mine", "src/d", "src/twin", cwd=field.root)
    assert done.returncode == 1 and "FOREIGN" in done.stdout, str(done)


# ---- B7 ----

HOSTILE = ["", "src/[", "src/[a", "src/[]", "src/{a,b", "src/{{{a,b},c}", "../src/**", "src/../../etc/**", "src/**/../../**",
           "{" * 200 + "a" + "}" * 200, "{a,b}" * 40, "src/" + "x" * 5000, "[z-a]"]


@pytest.mark.parametrize("pattern", HOSTILE, ids=range(len(HOSTILE)))
def test_b7_a_hostile_pattern_is_an_error_that_names_it_and_nothing_runs(field, pattern):
    before = field.look()
    for words in (["--rw", pattern], ["--rw", "src/*.ts", "--deny", pattern]):
        done = field.cordon("run", "--root", str(field.root), *words, "--", "/bin/sh", "-c", "echo ran >src/ran.ts", cwd=field.root, timeout=10)
        assert done.returncode not in (0, 1) and done.returncode < 128 and done.stderr and field.look() == before, str(done)
        assert not pattern or pattern[:20] in done.stderr, done.stderr[:500]


def test_b7_many_wildcards_are_matched_in_bounded_time_and_no_wider_than_written(field):
    pattern = "src/" + "**/*a*/" * 30 + "*.ts"
    field.box.write("repo/src/" + "a/" * 30 + "in.ts", "in\n")
    out = field.inside(f"""
out["in"] = answer(read, "src/" + "a/" * 30 + "in.ts")
out["out"] = [answer(read, "src/a.ts"), answer(read, "src/deep/c.ts"), answer(write, "src/" + "a" * 200 + ".ts")]
""", ["--rw", pattern])
    assert out["in"] == "in\n" and set(out["out"]) == {"EACCES"}, out


def test_b7_a_nul_in_a_policy_file_is_an_error_with_its_place(field):
    policy = field.box.write("nul.json", '{"version": 1, "rw": ["src/a\\u0000.ts"]}\n')
    done = field.cordon("run", "--root", str(field.root), "--policy", str(policy), "--", "true", cwd=field.root)
    assert done.returncode not in (0, 1) and "nul.json" in done.stderr, str(done)


# ---- B9 ----


@BOTH
def test_b9_patterns_are_anchored_to_the_root_wherever_the_session_starts(field, scope):
    field.box.write("repo/src/deep/src/d.ts", "nested\n")
    field.box.write("repo/secret/src/s.ts", "SECRET\n")
    code = f"""
root = {str(field.root)!r}
for name in ("src/a.ts", "src/deep/c.ts", "secret/src/s.ts", "secret/key.ts"):
    out[name] = [answer(read, root + "/" + name), answer(append, root + "/" + name)]
out["relative"] = answer(read, "c.ts")
"""
    before = field.look()
    # Without --root: the repository's top is found from below.
    done = field.cordon("run", *scope, "--", *field.words(code), cwd=field.root / "src/deep")
    assert done.returncode == 0, str(done)
    out = json.loads(done.stdout)
    assert out["src/a.ts"] == ["a\n", "ok"] and out["src/deep/c.ts"] == ["c\n", "ok"] and out["relative"] == "c\nEVIL\n"
    assert {how for name in ("secret/src/s.ts", "secret/key.ts") for how in out[name]} <= {"EACCES", "ENOENT"}, out
    after = field.look()
    assert {n for n in before if before[n] != after[n]} == {"repo/src/a.ts", "repo/src/deep/c.ts"}
