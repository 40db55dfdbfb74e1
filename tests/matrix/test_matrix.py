# SPDX-License-Identifier: Apache-2.0
"""The matrix: every system call that takes a path or changes a file, in every spelling, on every kind of boundary, in every mode.

`make test` runs a sixth of the cells, `make test-long` all of them. CORDON_MATRIX_SEED chooses the sixth; the default is the day. A cell that
is guilty is named with its number; CORDON_MATRIX_CELLS=FROM-TO runs these alone, in the mode and as the caller that pytest's -k selects."""
import errno
import os
import subprocess
import time

import pytest

import differences
from cell_worlds import HERE, MODES, build_attacker
from cells import Attack, Matrix, names

PARTS = 6
SEED = int(os.environ.get("CORDON_MATRIX_SEED", time.time() // 86400))
CELLS = os.environ.get("CORDON_MATRIX_CELLS")
# Numbers up to here are asked for in the running kernel.
LAST_NUMBER = 1023
# Calls that need a privilege, a device or a peer, or can't succeed in the way the cell makes them, so that no native cell shows a success.
NEVER_NATIVELY = {
    "mknodat(device)", "connect", "chroot", "pivot_root", "mount(bind on it)", "mount(remount)", "umount2", "open_tree(CLONE)", "open_tree_attr",
    "move_mount", "mount_setattr", "fspick", "swapon", "swapoff", "acct", "quotactl", "uselib", "fanotify_mark",
    "open(O_RDONLY|O_CREAT|O_DIRECTORY)", "openat(O_RDONLY|O_CREAT|O_DIRECTORY)", "openat2(O_RDONLY|O_CREAT|O_DIRECTORY)",
    "execveat(EMPTY_PATH)", "ioctl(FICLONE into it)", "ioctl(FICLONE from it)",
    # By a descriptor that is open for reading: that this gives no right to write is what these cells ask.
    "ftruncate", "fallocate", "write", "pwrite64", "writev", "pwritev", "pwritev2", "vmsplice", "mmap(SHARED, WRITE)", "copy_file_range(into it)",
    "sendfile(into it)", "splice(into it)",
}  # fmt: skip
NEVER_SPELLED = {"root of PID 1", "PATH_MAX and one more"}

in_parts = pytest.mark.parametrize("parts", [PARTS, pytest.param(1, marks=pytest.mark.long)], ids=["a sixth", "all"])
in_modes = pytest.mark.parametrize("mode", MODES)
native_results = {}


@pytest.fixture(scope="session")
def attacker(base_dir):
    return build_attacker(base_dir / "matrix-attacker")


@pytest.fixture
def matrix(box, cordon, attacker, mode, parts):
    made = Matrix(box, cordon, attacker, mode, parts, SEED)
    print(f"CORDON_MATRIX_SEED={SEED}")
    yield made
    made.close()


def natively(box, cordon, attacker, parts):
    """The same cells without cordon and without capabilities, once for each caller."""
    key = box.who.name, parts
    if key not in native_results:
        found = Matrix(box, cordon, attacker, "native", parts, SEED)
        native_results[key] = found.allowed()
        found.close()
    return native_results[key]


def listed(lines, count=60):
    """One line for each call and target, with the number of spellings."""
    groups = {}
    for line in lines:
        words = line.split(" | ", 2) if isinstance(line, str) else None
        key = (words[0].partition(": ")[2], words[2].partition(":")[0]) if words else (line[0], line[2:])
        groups.setdefault(key, []).append(line)
    shown = [f"{len(group)} like: {group[0]}"[:600] for group in groups.values()]
    return "\n".join([f"{len(lines)}, CORDON_MATRIX_SEED={SEED}:", *shown[:count]])


# ---- the tables ----


def table():
    lines = (HERE / "syscalls.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return {int(number): (name, kind, how) for number, name, kind, how in rows}


def asked(attacker, numbers, run=lambda words: subprocess.run(words, check=True, capture_output=True, text=True).stdout):
    lines = run([str(attacker), "numbers", *map(str, numbers)]).splitlines()
    return {int(number): int(answer) for number, answer in map(str.split, lines)}


def test_a_number_that_the_kernel_knows_and_the_table_does_not_is_noticed(attacker):
    """A new system call has to be sorted before it can be a hole. Only unsorted numbers are called: they do nothing here, or exist."""
    unsorted = [number for number in range(LAST_NUMBER + 1) if number not in table()]
    exist = [number for number, answer in asked(attacker, unsorted).items() if answer != errno.ENOSYS]
    assert not exist, f"system calls that nobody has sorted; add them to tests/matrix/syscalls.tsv: {exist}"


def test_that_question_finds_a_call_that_exists(attacker):
    answers = asked(attacker, [39, 438, LAST_NUMBER])
    assert answers[39] == 0 and answers[438] == errno.EINVAL and answers[LAST_NUMBER] == errno.ENOSYS


def test_every_call_of_the_table_has_cells_or_a_reason(attacker):
    in_cells = {number for number, _ in names(attacker)[1]}
    rows = table()
    assert {number for number, (_, _, how) in rows.items() if how == "cells"} == in_cells
    for number, (name, kind, how) in rows.items():
        assert kind in ("path", "descriptor", "other") and (how == "-") == (kind == "other"), (number, name, kind, how)


def test_what_the_table_calls_refused_is_refused(box, cordon, attacker):
    refused = [number for number, (_, _, how) in table().items() if how == "refused"]
    box.repo()
    tool = box.write("repo/attacker", attacker.read_bytes(), mode=0o755)
    inside = asked(tool, refused, lambda words: cordon("run", "--root", str(box.path / "repo"), "--", *words, cwd=box.path / "repo").stdout)
    assert set(inside) == set(refused) and set(inside.values()) <= {errno.EPERM, errno.ENOSYS}, inside


# ---- the product ----


@pytest.mark.limit(300)
@in_parts
@in_modes
def test_no_cell_of_a_boundary_changes_makes_or_reads_anything(matrix):
    if CELLS:
        first, last = map(int, CELLS.split("-"))
        matrix.fresh()
        matrix.sixth = 1
        for cell in range(first, last + 1):
            matrix.told(matrix.attack.run(cell, cell + 1))
            if not matrix.is_clean(cell, cell + 1):
                matrix.blame(cell, "; ".join(matrix.difference))
        guilty = matrix.guilty
    else:
        guilty = matrix.boundaries()
    assert not guilty, listed(guilty)


@pytest.mark.limit(300)
@in_parts
@in_modes
def test_on_allowed_paths_results_are_native_but_for_the_list_in_the_documentation(matrix, box, cordon, attacker, mode, parts):
    found = differences.compare(natively(box, cordon, attacker, parts), matrix.allowed(), mode, names(attacker))
    assert not matrix.guilty, listed(matrix.guilty)
    unexpected, used = differences.judge(found, differences.rows())
    assert not unexpected, listed(unexpected)
    if parts == 1:
        # A row for all modes has to be seen in a plain run, one for some in each of them.
        stale = [row for row in differences.rows() if row not in used and (mode in differences.split(row.mode) or (row.mode, mode) == ("*", "plain"))]
        assert not stale, f"rows of docs/matrix.md that nothing shows any more: {stale}"


# ---- controls ----


def test_control_natively_every_call_and_every_spelling_works_somewhere(box, cordon, attacker):
    """A cell that could not do harm anyway would prove nothing."""
    spellings, calls = names(attacker)
    worked = [key for key, (number, _) in natively(box, cordon, attacker, 1).items() if number == 0]
    never = {calls[i][1] for i in range(len(calls))} - {calls[key[2]][1] for key in worked}
    # Some depend on the file system of the temporary directory and on the kernel.
    assert never <= NEVER_NATIVELY | {"file_setattr", "file_getattr", "setxattrat", "setxattrat(EMPTY_PATH)"}, never - NEVER_NATIVELY
    assert {spellings[key[1]] for key in worked} == set(spellings) - NEVER_SPELLED


def test_control_the_host_notices_what_a_cell_changes(box, cordon, attacker):
    """Without cordon the cells of one protected file change it, and the look at the host tells."""
    attack = Attack(box, cordon, attacker, "native")
    matrix = Matrix(box, cordon, attacker, "native", PARTS, SEED)
    matrix.attack = attack
    assert not matrix.is_clean(0, matrix.calls) and any("AGENTS.md" in line for line in matrix.difference)
    reading = [name for _, name in names(attacker)[1]].index("open(O_RDONLY)")
    cell = matrix.targets.index("b:deny/key") * matrix.spellings * matrix.calls + reading
    told = matrix.attack.run(cell, cell + 1)
    matrix.close()
    assert told == [f"TOLD {cell} read"]


def test_control_a_wrong_row_would_be_noticed():
    text = f"{differences.HEADING}\n\n| call | path | target | mode | natively | inside | why |\n|---|---|---|---|---|---|---|\n"
    text += "| `openat2(*, NO_XDEV*)`, `mkdir` | * | * in conf | * | ok | EXDEV | x |\n"
    rows = differences.rows(text)
    hit = ("openat2(O_RDONLY, NO_XDEV )", "absolute", "file in conf", "plain", "ok", "EXDEV")
    assert differences.judge([hit], rows) == ([], set(rows))
    for at, other in ((0, "openat2(O_RDONLY)"), (2, "file in free"), (4, "EPERM"), (5, "EACCES")):
        wrong = hit[:at] + (other,) + hit[at + 1 :]
        assert differences.judge([wrong], rows) == ([wrong], set())
    assert differences.rows(), "the documentation has the table"
