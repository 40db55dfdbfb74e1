# SPDX-License-Identifier: Apache-2.0
"""The shape of the tree: who may include whom, what every file begins with, sizes, and what must not stand in it."""
import re
import subprocess

import pytest

from support import TESTS, TOP

# Each may include itself and what stands before it.
LAYERS = ["base", "policy", "config", "audit", "sandbox", "store", "mcp", "cli"]
# Executables of their own: they stand above the named layer, and nobody includes them.
ABOVE = {"lens": "sandbox", "serve": "mcp"}
MAX_LINES = 700
# Put together from parts, so that this file may stand in the tree it checks.
HOSTS = [".".join(parts) for parts in (("registry", "npmjs", "org"), ("pypi", "org"), ("deb", "debian", "org"), ("npmmirror", "com"))]
MACHINE_PATHS = ["/".join(("", "work", name)) for name in ("main", "wt-", "shared", ".mirror")]


def tracked():
    """Files under version control, or every file when this is not a checkout."""
    listed = subprocess.run(["git", "-c", f"safe.directory={TOP}", "ls-files", "-z"], cwd=TOP, capture_output=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        names = listed.stdout.decode().split("\0")
        return [TOP / name for name in names if name and (TOP / name).is_file()]
    hidden = ("build", "node_modules", "__pycache__", "out")
    return [
        path
        for path in TOP.rglob("*")
        if path.is_file() and not any(part.startswith(hidden) for part in path.relative_to(TOP).parts[:-1])
    ]


FILES = tracked()
C_FILES = [path for path in FILES if path.suffix in (".c", ".h")]
SOURCES = [path for path in C_FILES if path.is_relative_to(TOP / "src")]


def is_script(path, interpreter):
    if path.is_relative_to(TOP / "tests" / "cases") or path.is_relative_to(TOP / "fuzz" / "corpus"):
        return False
    with path.open("rb") as stream:
        first = stream.readline(200)
    return first.startswith(b"#!") and re.search(interpreter, first) is not None


SHELL = [path for path in FILES if is_script(path, rb"\b(ba|da)?sh\b")]
PYTHON = [path for path in FILES if path.suffix == ".py" or is_script(path, rb"\bpython3\b")]


def name(path):
    return str(path.relative_to(TOP))


def may_include(layer):
    if layer in ABOVE:
        return set(LAYERS[: LAYERS.index(ABOVE[layer]) + 1]) | {layer}
    return set(LAYERS[: LAYERS.index(layer) + 1])


def includes(path):
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.MULTILINE)


def test_there_is_something_to_check():
    assert len(SOURCES) > 20 and len(SHELL) >= 2 and len(PYTHON) >= 4


def test_every_source_directory_is_a_known_layer():
    assert {path.relative_to(TOP / "src").parts[0] for path in SOURCES} <= set(LAYERS) | set(ABOVE)


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_includes_point_downward(path):
    allowed = may_include(path.relative_to(TOP / "src").parts[0])
    for target in includes(path):
        if target == "cordon.h":
            continue
        assert "/" in target, f'{name(path)}: write "layer/{target}", so that the direction can be seen'
        assert target.split("/")[0] in allowed, f"{name(path)} must not include {target}"


def test_the_order_of_layers_would_be_noticed():
    assert "policy" not in may_include("base") and "cli" not in may_include("mcp")
    assert "store" not in may_include("lens") and "lens" not in may_include("cli")


@pytest.mark.parametrize("path", C_FILES, ids=name)
def test_every_file_says_its_licence_and_its_purpose(path):
    text = path.read_text()
    first, _, rest = text.partition("\n")
    assert first == "/* SPDX-License-Identifier: Apache-2.0 */"
    comment = re.match(r"/\*(.*?)\*/", rest, re.DOTALL)
    assert comment, f"{name(path)}: a comment with the purpose stands below the licence line"
    words = re.sub(r"\s*\n \*\s*", " ", comment.group(1)).split()
    assert len(words) >= 3 and any(word[-1] in ".:" for word in words), f"{name(path)}: {' '.join(words)}"


@pytest.mark.parametrize("path", SHELL + PYTHON, ids=name)
def test_every_script_says_its_licence(path):
    head = path.read_text().splitlines()[:3]
    assert any("SPDX-License-Identifier: Apache-2.0" in line for line in head)


def test_no_file_is_too_long():
    long = [f"{name(path)}: {n}" for path in C_FILES + SHELL + PYTHON if (n := path.read_text().count("\n")) > MAX_LINES]
    assert not long


def test_no_path_of_a_machine_and_no_registry_is_named():
    here = [f"{TOP}/"] if len(TOP.parts) > 2 else []
    found = []
    for path in FILES:
        text = path.read_bytes().decode(errors="replace")
        found += [f"{name(path)}: {word}" for word in HOSTS + MACHINE_PATHS + here if word in text]
    assert not found


def test_nothing_is_left_to_be_done():
    words = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")
    found = [
        f"{name(path)}:{i}"
        for path in C_FILES + SHELL + PYTHON
        for i, line in enumerate(path.read_text().splitlines(), 1)
        if words.search(line) and "XXXXXX" not in line
    ]
    assert not found


def test_every_unit_test_is_in_the_table():
    table = (TESTS / "meson.build").read_text()
    files = {path.stem[len("test_") :] for path in (TESTS / "unit").glob("test_*.c")}
    assert files and {n for n in files if not re.search(rf"'{n}'", table)} == set()


def test_every_fuzz_target_has_kept_inputs():
    for path in (TOP / "fuzz").glob("fuzz_*.c"):
        assert any((TOP / "fuzz" / "corpus" / path.stem[len("fuzz_") :]).iterdir()), path.name


def test_continuous_integration_runs_make_test_and_nothing_else():
    lines = [line.strip() for line in (TOP / ".ci" / "run").read_text().splitlines()]
    commands = [line for line in lines if line and not line.startswith("#")]
    assert commands == ["set -eu", 'cd "$(dirname "$0")/.."', "exec make test"]
    assert [path.name for path in (TOP / ".ci").iterdir()] == ["run"]


@pytest.mark.parametrize("path", SHELL, ids=name)
def test_shellcheck_finds_nothing(path):
    done = subprocess.run(["shellcheck", "-x", path], cwd=TOP, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", PYTHON, ids=name)
def test_python_files_compile(path):
    compile(path.read_text(), str(path), "exec")


def test_tracked_files_are_text_or_kept_inputs():
    data = (TOP / "fuzz" / "corpus", TESTS / "cases")
    for path in FILES:
        if not any(path.is_relative_to(d) for d in data):
            assert b"\0" not in path.read_bytes(), name(path)
