# SPDX-License-Identifier: Apache-2.0
"""The command lines, variables and PRDs of claude-loop work unchanged, through its own scripts; and nothing of it is forgotten:
tests/cases/seed-003.tsv has one line for each feature, flag, message, variable, example and enhancement, with the tests that show it
and the words that explain it in the manual."""
import ast
import functools
import json
import shutil
import subprocess

import pytest

from support import TOP

COMPAT = TOP / "compat"
# Does something in the first folder that it may write.
AGENT = "cat >/dev/null; for d in lib tests packages/api; do if [ -d $d ] && echo done >$d/done.txt; then exit 0; fi; done; exit 1"
FOLDERS = ("lib", "src", "tests", "packages/api", "packages/shared/types")


@pytest.fixture
def project(box):
    """A project of a user of claude-loop: its scripts lie in it, and there is a PRD."""
    top = box.mkdir("project")
    for folder in FOLDERS:
        box.write(f"project/{folder}/main.ts", "x\n")
    box.write("project/claude-loop.sh", (COMPAT / "claude-loop.sh").read_text(), mode=0o755)
    box.write("project/lib/workspace-manager.sh", (COMPAT / "lib/workspace-manager.sh").read_text(), mode=0o755)
    box.write("project/prd.json", json.dumps({"project": "p", "userStories": [{"id": "US-001", "title": "t"}]}))
    box.write("state/config.yaml", f"defaults:\n  loop:\n    command: [sh, -c, '{AGENT}']\n", mode=0o600)
    return top


@pytest.fixture
def script(box, project):
    """Runs a line as a user would type it."""

    def run(line, **env):
        return box.run("sh", "-c", line, cwd=project, env={"CORDON": str(box.bin / "cordon"), **env})

    return run


def passed(project):
    return [story["id"] for story in json.loads((project / "prd.json").read_text())["userStories"] if story.get("passes")]


LINES = {
    "basic_usage_single_folder": './claude-loop.sh --workspace "lib"',
    "basic_usage_multiple_folders": './claude-loop.sh --workspace "lib,src,tests"',
    "basic_usage_other_flags": './claude-loop.sh --workspace "lib,src" --max-iterations 20 -v',
    "mode_permissive": './claude-loop.sh --workspace "lib,src" --workspace-mode permissive',
    "mode_strict": './claude-loop.sh --workspace "lib,src" --workspace-mode strict',
    "parallel_prd_execution": './claude-loop.sh --parallel --workspace "lib,src"',
    "example_1_focused_library": './claude-loop.sh --workspace "lib" --workspace-mode strict',
    "example_2_monorepo": './claude-loop.sh --workspace "packages/api,packages/shared"',
    "example_3_test_driven": './claude-loop.sh --workspace "tests,src" --workspace-mode permissive',
    "environment_variables": 'export WORKSPACE_FOLDERS="lib,src,tests"\nexport WORKSPACE_MODE="strict"\n./claude-loop.sh',
}


@pytest.mark.parametrize("name", LINES)
def test_a_command_line_of_the_seed_works_unchanged(script, project, name):
    mode = "strict" if "strict" in LINES[name] else "permissive"
    done = script(LINES[name])
    assert done.returncode == 0 and passed(project) == ["US-001"], done
    assert f"[INFO] Workspace sandboxing: Enabled (mode: {mode})\n" in done.stderr, done
    assert len(list(project.rglob("done.txt"))) == 1


def test_a_missing_folder_ends_the_loop_with_1_and_the_seeds_words(script, project):
    done = script('./claude-loop.sh --workspace "lib,nope"')
    assert done.returncode == 1 and "[WORKSPACE] Workspace folder does not exist: nope\n" in done.stderr, done
    assert passed(project) == []


def test_the_workspace_of_the_prd_narrows_what_the_flags_give(box, script, project):
    prd = {"project": "p", "workspace": {"folders": ["tests"], "mode": "strict"}, "userStories": [{"id": "US-001", "title": "t"}]}
    box.write("project/prd.json", json.dumps(prd))
    done = script('./claude-loop.sh --workspace "lib,tests"')
    assert done.returncode == 0 and [str(path.relative_to(project)) for path in project.rglob("done.txt")] == ["tests/done.txt"], done
    assert "Enabled (mode: strict)" in done.stderr
    box.write("project/prd.json", json.dumps({**prd, "workspace": {"folders": ["src"]}}))
    done = script('./claude-loop.sh --workspace "lib"')
    assert done.returncode == 1 and "no folder is left" in done.stderr, done


def test_the_workspace_manager_standalone(box, script, project):
    manager = "./lib/workspace-manager.sh"
    assert "[WORKSPACE] All workspace folders validated\n" in script(f'{manager} validate "lib,src,tests"').stderr
    assert script(f'{manager} check-file "src/main.ts" "src,lib"').returncode == 0
    assert script(f'{manager} check-file "tests/main.ts" "src,lib"').returncode == 1
    assert script(f'{manager} infer-scope "lib,src"').json()[:2] == ["lib/**/*.sh", "lib/**/*.js"]
    done = script(f'{manager} update-prd "lib,src" "prd.json"')
    assert done.returncode == 0 and "[WORKSPACE] Setting fileScope for story US-001\n[WORKSPACE] Updated fileScope for 1 stories\n" in done.stderr
    worker = box.path / "a worker"
    assert script(f'{manager} mount "lib,src" "{worker}"').returncode == 0 and (worker / "src").is_symlink()
    assert script(f'{manager} unmount "lib,src" "{worker}"').returncode == 0 and not (worker / "src").exists()
    assert "**Mode**: strict\n" in script(f'{manager} prompt-section "lib,src" "strict"').stdout
    done = script(f"{manager} rm -rf /")
    assert done.returncode == 2 and done.stderr.startswith("usage: ")


def test_the_functions_of_the_library(script, project):
    source = "WORKSPACE_MANAGER=./lib/workspace-manager.sh; . ./lib/workspace-manager.sh\n"
    done = script(
        source + 'init_workspace "lib,src" strict && validate_workspace_folders && is_file_in_workspace lib/x && ! is_file_in_workspace tests/x\n'
        'validate_file_access lib/x read && ! validate_file_access tests/x write && infer_file_scope_from_workspace | grep -c "src/" &&\n'
        'mount_workspace_in_worker ../worker && get_workspace_prompt_section | grep "^..Mode"\n'
        "WORKSPACE_MODE=permissive; validate_file_access tests/x && echo allowed"
    )
    assert done.returncode == 0 and done.stdout == "1\n**Mode**: strict\nallowed\n", done
    assert "[WORKSPACE] BLOCKED: File access outside workspace\n" in done.stderr
    assert "[WORKSPACE] WARNING: File access outside workspace (permissive mode)\n" in done.stderr


def test_the_scripts_hand_on_every_argument_as_it_is(box, project):
    """Through a link too, and with names that a shell would take apart."""
    recorder = box.write("recorder", '#!/bin/sh\nfor a; do printf "<%s>" "$a"; done\n', mode=0o755)
    box.link("project/my loop.sh", COMPAT / "claude-loop.sh" if box.who.is_root else "claude-loop.sh")
    nasty = ["--workspace", "a b,$(touch x),`id`", "-v", "--", "*", "", "\n'\""]
    for name in ("claude-loop.sh", "my loop.sh"):
        done = box.run(f"./{name}", *nasty, cwd=project, env={"CORDON": str(recorder)})
        assert done.stdout == "".join(f"<{word}>" for word in ["loop", *nasty]), done
    done = box.run("./lib/workspace-manager.sh", "mount", *nasty, cwd=project, env={"CORDON": str(recorder)})
    assert done.stdout == "".join(f"<{word}>" for word in ["mount", *nasty])
    assert not (project / "x").exists()


def test_the_scripts_find_cordon_where_they_are_installed(box):
    """In the source tree they find the build beside them, and installed the program of the same prefix."""
    prefix = box.mkdir("prefix")
    box.write("prefix/bin/cordon", '#!/bin/sh\necho installed "$@"\n', mode=0o755)
    for name in ("claude-loop.sh", "lib/workspace-manager.sh"):
        box.write(f"prefix/share/cordon/compat/{name}", (COMPAT / name).read_text(), mode=0o755)
    for command, words in ((("claude-loop.sh", "-v"), "installed loop -v\n"), (("lib/workspace-manager.sh", "validate", "lib"), "installed validate lib\n")):
        done = box.run(prefix / "share/cordon/compat" / command[0], *command[1:], cwd=box.path)
        assert done.stdout == words, done


def test_the_scripts_are_plain_posix_shell():
    for path in (COMPAT / "claude-loop.sh", COMPAT / "lib/workspace-manager.sh"):
        assert path.read_text().startswith("#!/bin/sh\n")
        subprocess.run(["dash", "-n", path], check=True)
        if shutil.which("shellcheck"):
            subprocess.run(["shellcheck", "-s", "sh", path], check=True)


# ---- nothing is forgotten ----


def rows():
    for line in (TOP / "tests/cases/seed-003.tsv").read_text().splitlines():
        if line and not line.startswith("#"):
            yield line.split("\t")


@functools.lru_cache(maxsize=None)
def names_of(file):
    return {node.name for node in ast.walk(ast.parse((TOP / "tests" / file).read_text())) if isinstance(node, ast.FunctionDef)}


@functools.lru_cache(maxsize=None)
def words_of(page):
    path = TOP / "man" / page if (TOP / "man" / page).exists() else TOP / "docs" / page
    text = path.read_text()
    if path.parent.name == "man":
        text = subprocess.run(["mandoc", "-Tutf8", "-O", "width=500", path], capture_output=True, text=True, check=True).stdout
        text = "".join(text[i] for i in range(len(text)) if text[i] != "\b" and text[i + 1 : i + 2] != "\b")
    return " ".join(text.split()).replace("‐", "-").replace("−", "-")


def test_every_item_of_the_seed_has_a_test_and_a_paragraph():
    items = list(rows())
    assert len(items) >= 50 and len({item[0] for item in items}) == len(items)
    for item, tests, page, words in items:
        for test in tests.split(","):
            file, _, name = test.partition("::")
            assert name in names_of(file), f"{item}: there is no test {test}"
        assert words in words_of(page), f"{item}: {page} does not say: {words}"
