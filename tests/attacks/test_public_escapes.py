# SPDX-License-Identifier: Apache-2.0
"""Escapes that were published about agent sandboxes and their neighbours; docs/public-escapes.md says which test shows each.

Here are those that no other file shows. Each is made from inside, and the host looks at what came of it."""
import os
import pathlib
import re
import shutil

import pytest

from support import TOP

DOCUMENT = TOP / "docs" / "public-escapes.md"
SECRET = "the secret of the host"
MODES = {
    "plain": [],
    "strict": ["--workspace", "src", "--workspace-mode", "strict"],
    "permissive": ["--workspace", "src", "--workspace-mode", "permissive"],
    "view": ["--cow"],
    "lens": ["--lens", "always"],
}
in_modes = pytest.mark.parametrize("mode", MODES)


# ---- the table ----


def table():
    """(name, tests) of each row."""
    rows = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("|")][2:]
    return [(row.split("|")[1].strip(), re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)) for row in rows]


def test_every_row_of_the_table_names_tests_that_exist():
    rows = table()
    assert len(rows) >= 30
    for name, tests in rows:
        assert tests, f"no test shows {name}"
        for file, test in tests:
            path = TOP / file
            assert path.exists() and re.search(rf"^def {test}\(", path.read_text(), re.MULTILINE), f"{name}: {file} has no {test}"


# ---- /proc/self/root and other spellings of a denied program; the loader as a second way to execute ----


def loader():
    found = sorted(pathlib.Path("/lib64").glob("ld-linux*.so.*"))
    assert found, "the dynamic loader"
    return str(found[0])


@pytest.fixture
def tool(arena):
    """A dynamic program that tells the secret, built from one of the system: it prints what its name was given."""
    shutil.copy("/bin/echo", arena.root / "tool")
    arena.box.own(arena.root / "tool")
    arena.box.write("repo/key", f"{SECRET}\n")
    return arena.root / "tool"


WAYS = """
cd "$ROOT"
./tool told-1
"$ROOT/tool" told-2
/proc/self/root"$ROOT/tool" told-3
/proc/self/cwd/tool told-4
/proc/thread-self/root"$ROOT"/./tool told-5
"$LOADER" "$ROOT/tool" told-6
"$LOADER" /proc/self/root"$ROOT/tool" told-7
"$LOADER" --preload "$ROOT/tool" /bin/echo told-8 2>&1
cp tool src/copy && src/copy told-9
cp /proc/self/root"$ROOT"/tool src/copy && src/copy told-10
ln -s ../tool src/link && src/link told-11
ln tool src/hard && src/hard told-12
cat key /proc/self/root"$ROOT"/key /proc/self/cwd/key "/dev/fd/../..$ROOT/key"
python3 -c 'import mmap, os; f = os.open("key", os.O_RDONLY); print(mmap.mmap(f, 0, prot=mmap.PROT_READ)[:])'
python3 -c 'import os, sys; f = os.memfd_create("x"); os.sendfile(f, os.open("tool", os.O_RDONLY), 0, 1 << 20); os.execv(f"/proc/self/fd/{f}", ["tool", "told-13"])'
true
"""


@in_modes
def test_a_denied_program_is_neither_executed_nor_read_by_any_spelling_or_loader(arena, tool, mode):
    env = ["--env", f"ROOT={arena.root}", "--env", f"LOADER={loader()}"]
    result = arena.sh(WAYS, "--deny", "tool", "--deny", "key", *env, *MODES[mode], protect=False)
    told = [line for line in result.stdout.splitlines() if line.startswith("told-")]
    # The eighth runs the system's own echo, to which the denied file was to be added.
    assert told in ([], ["told-8"]) and SECRET not in result.stdout, result
    assert not (arena.root / "src/hard").exists()


def test_control_without_the_denial_every_way_works(arena, tool):
    result = arena.sh(WAYS, "--env", f"ROOT={arena.root}", "--env", f"LOADER={loader()}", protect=False)
    told = {line for line in result.stdout.splitlines() if line.startswith("told-")}
    assert told >= {f"told-{number}" for number in range(1, 14)} - {"told-8"}, result
    assert result.stdout.count(SECRET) >= 4


@in_modes
def test_a_program_started_by_the_loader_is_held_like_any_other(arena, mode):
    """What judges programs by their path is gone around by the loader; the kernel judges the calls, whoever makes them."""
    before = (arena.root / "AGENTS.md").read_bytes()
    result = arena.sh(f"{loader()} /bin/sh -c 'echo evil >AGENTS.md; echo evil >.git/hooks/pre-commit; echo evil >.git/hooks/new; mkdir -p .claude; "
                      f"cat {arena.box.home}/key; echo ran'", *MODES[mode])
    assert "ran\n" in result.stdout, result
    assert (arena.root / "AGENTS.md").read_bytes() == before and not (arena.root / ".git/hooks/new").exists()
    arena.assert_unharmed()


# ---- settings of a client that are missing at the start ----


@in_modes
@pytest.mark.parametrize("name", [".claude/settings.json", ".claude/settings.local.json", ".cursor/mcp.json", ".vscode/settings.json", ".codex/config.toml",
                                  ".gemini/settings.json"])
def test_settings_that_are_missing_at_the_start_cannot_be_made(arena, name, mode):
    """Neither the file, nor its directory, nor a whole tree that was prepared elsewhere and is moved there."""
    top = name.split("/")[0]
    result = arena.sh(f"mkdir {top}; echo evil >{name}; mkdir -p src/staged; echo evil >src/staged/{os.path.basename(name)}; mv src/staged {top}; "
                      f"ln -s src/staged {top}; echo evil >/proc/self/cwd/{name}; echo over", *MODES[mode], protect=False)
    assert "over\n" in result.stdout and not os.path.lexists(arena.root / name), result
    assert not [path for path in arena.box.state.rglob(os.path.basename(name)) if path.parent.name == top], "in the view"


# ---- a neighbour whose path begins like the root's; links that lead out ----


@in_modes
def test_a_neighbour_whose_name_begins_like_the_roots_is_no_part_of_it(arena, mode):
    beside = arena.box.write("repo-secret/key", f"{SECRET}\n")
    arena.box.link("repo/src/out", str(beside.parent))
    arena.box.link("repo/src/file", "../../repo-secret/key")
    result = arena.sh(f"cat {beside} ../repo-secret/key src/out/key src/file; echo evil >src/file; echo evil >{beside}; echo evil >src/out/new; "
                      f"echo evil >../repo-secret/new; ls -A .. | grep secret; true", *MODES[mode])
    assert SECRET not in result.stdout and "repo-secret" not in result.stdout, result
    assert beside.read_text() == f"{SECRET}\n" and os.listdir(beside.parent) == ["key"]


# ---- masks that are made of a file which the agent can turn ----


@in_modes
def test_a_mask_is_not_made_of_a_device_that_the_agent_could_turn(arena, mode):
    """A runtime that bind-mounts /dev/null over what is hidden shows whatever stands at that name by then."""
    arena.box.write("repo/key", f"{SECRET}\n")
    script = "rm -f /dev/null; ln -s $PWD/key /dev/null; mv /dev /dev2; mount --bind key /dev/null; cat /dev/null key; echo evil >key; echo over"
    for _ in range(2):
        result = arena.sh(script, "--deny", "key", *MODES[mode], protect=False)
        assert "over\n" in result.stdout and SECRET not in result.stdout, result
    assert (arena.root / "key").read_text() == f"{SECRET}\n" and os.path.exists("/dev/null") and not os.path.islink("/dev/null")


# ---- directories of set-up that are links ----


@pytest.mark.parametrize("name", ["dev", "proc", "tmp", "run", "etc", ".cordon"])
def test_set_up_makes_nothing_through_a_directory_of_the_tree_that_is_a_link(arena, name):
    """The root has links where a runtime would put its own devices and mount points."""
    outside = arena.box.mkdir("outside")
    arena.box.write("outside/ptmx", "of the host\n")
    arena.box.link(f"repo/{name}", str(outside))
    result = arena.sh("echo ran", "--protect", f"{name}/ptmx", "--deny", f"{name}/new/deep", protect=False)
    assert result.returncode in (0, 125), result
    assert os.listdir(outside) == ["ptmx"] and (outside / "ptmx").read_text() == "of the host\n"
