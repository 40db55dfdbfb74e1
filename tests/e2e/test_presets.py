# SPDX-License-Identifier: Apache-2.0
"""Presets: named folder workspaces, which may extend each other and only narrow. Validation hooks: programs that may refuse."""
import json

import pytest

SETTINGS = """\
defaults:
  presets:
    base:
      folders: [lib, src]
      protected_paths: [lib/keep]
      env_pass: [NPM_*]
    tight: {extends: base, mode: strict}
    sub: {extends: tight, folders: [lib/sub], env_pass: [NPM_TOKEN]}
"""


@pytest.fixture
def repo(box):
    box.write("state/config.yaml", SETTINGS, mode=0o600)
    return box.repo(files={"lib/a.ts": "x", "lib/sub/b.ts": "x", "lib/keep": "kept", "src/c.ts": "x", "docs/d.md": "x"})


WRITE = 'for f in lib/new lib/sub/new lib/keep src/new docs/new; do (echo x >"$f") 2>/dev/null; done; env | grep "^NPM" | sort; true'


def written(repo):
    return sorted(str(path.relative_to(repo)) for path in repo.rglob("new"))


def test_run_with_a_preset_is_held_by_the_kernel(cordon, repo):
    keep = {"NPM_TOKEN": "1", "NPM_X": "2", "OTHER": "3"}
    done = cordon("run", "--preset", "sub", "--", "sh", "-c", WRITE, cwd=repo, env=keep)
    assert done.returncode == 0 and done.stdout == "NPM_TOKEN=1\n", done
    assert written(repo) == ["lib/sub/new"]
    done = cordon("run", "--preset", "tight", "--", "sh", "-c", WRITE, cwd=repo, env=keep)
    assert done.stdout == "NPM_TOKEN=1\nNPM_X=2\n"
    assert written(repo) == ["lib/new", "lib/sub/new", "src/new"]
    assert (repo / "lib/keep").read_text() == "kept"
    # The preset says nothing about the mode, so it is that of folders: permissive.
    done = cordon("run", "--preset", "base", "--", "sh", "-c", WRITE, cwd=repo)
    assert written(repo) == ["docs/new", "lib/new", "lib/sub/new", "src/new"]
    assert "WARNING: File access outside workspace (permissive mode)" in done.stderr
    assert (repo / "lib/keep").read_text() == "kept"


def test_a_preset_and_folders_narrow_each_other(cordon, repo):
    for options, expected in (
        (["--preset", "tight", "--workspace", "lib/sub,docs"], ["lib/sub/new"]),
        (["--preset", "tight", "--workspace", "src", "--workspace-mode", "permissive"], ["lib/sub/new", "src/new"]),
        (["--preset", "tight"], ["lib/new", "lib/sub/new", "src/new"]),
    ):
        done = cordon("run", *options, "--", "sh", "-c", WRITE, cwd=repo, env={"WORKSPACE_FOLDERS": "docs"})
        assert done.returncode == 0 and written(repo) == expected, done
    done = cordon("run", "--preset", "tight", "--workspace", "docs", "--", "true", cwd=repo)
    assert done.returncode == 125 and "no folder is left: docs and lib,src have nothing in common" in done.stderr


def test_every_command_for_folders_takes_a_preset(cordon, box, repo):
    assert "Folders: lib/sub\n" in cordon("validate", "--preset", "sub", cwd=repo).stderr
    assert "(mode: strict)" in cordon("validate", "--preset", "sub", cwd=repo).stderr
    assert cordon("check-file", "--preset", "sub", "lib/sub/x", cwd=repo).returncode == 0
    assert cordon("check-file", "--preset", "sub", "lib/x", cwd=repo).returncode == 1
    assert cordon("infer-scope", "--preset", "sub", cwd=repo).json()[0] == "lib/sub/**/*.sh"
    assert "**Mode**: strict\n**Allowed Folders**: lib/sub\n" in cordon("prompt-section", "--preset", "sub", cwd=repo).stdout
    box.write("repo/prd.json", '{"project": "p", "userStories": [{"id": "A", "title": "t"}]}')
    assert cordon("update-prd", "--preset", "sub", "prd.json", cwd=repo).returncode == 0
    assert len(json.loads((repo / "prd.json").read_text())["userStories"][0]["fileScope"]) == 8
    assert cordon("mount", "--preset", "sub", str(box.path / "worker"), cwd=repo).returncode == 0
    assert (box.path / "worker/lib/sub").is_symlink()
    assert cordon("unmount", "--preset", "sub", str(box.path / "worker"), cwd=repo).returncode == 0
    assert cordon("check", "--op", "write", "--preset", "sub", "lib/sub/x", cwd=repo).returncode == 0
    assert cordon("check", "--op", "write", "--preset", "sub", "src/x", cwd=repo).returncode == 1
    assert "the workspace is lib/sub" in cordon("why", "--op", "write", "--preset", "sub", "src/x", cwd=repo).stdout
    assert cordon("validate", "--preset", "sub", "lib", cwd=repo).returncode == 2


def test_preset_show_prints_each_value_and_its_origin(cordon, box, repo):
    done = cordon("preset", "show", "sub", cwd=repo)
    file = box.state / "config.yaml"
    assert done.stdout == (
        "name: sub\nextends: tight\nextends: base\n"
        f"folders: lib/sub  (sub, {file}:8:37)\n"
        f"mode: strict  (tight, {file}:7:34)\n"
        f"protected_paths: lib/keep  (base, {file}:5:25)\n"
        f"env_pass: NPM_TOKEN  (sub, {file}:8:58)\n"
    ), done
    shown = cordon("preset", "show", "tight", "--json", cwd=repo).json()
    assert shown["extends"] == ["base"] and [value["preset"] for value in shown["values"]] == ["base", "tight", "base", "base"]
    assert cordon("preset", "list", cwd=repo).stdout == "base  lib,src\ntight  lib,src\nsub  lib/sub\n"
    assert cordon("preset", "list", "--quiet", cwd=repo).stdout == "base\ntight\nsub\n"
    done = cordon("preset", "show", "subb", cwd=repo)
    assert done.returncode == 1 and done.stderr == "cordon: there is no preset 'subb'; did you mean 'sub'?\n"
    assert cordon("run", "--preset", "nope", "--", "true", cwd=repo).returncode == 125


def test_a_preset_that_widens_or_extends_itself_is_an_error_with_a_place(cordon, box, repo):
    box.write(
        "state/config.yaml",
        SETTINGS + "    wide: {extends: sub, folders: [src], mode: permissive, env_pass: [KEY]}\n"
        "    a: {extends: b}\n    b: {extends: a}\n",
        mode=0o600,
    )
    for command in (("config", "validate"), ("preset", "list"), ("run", "--preset", "base", "--", "true")):
        done = cordon(*command, cwd=repo)
        assert done.returncode in (1, 125), done
        assert [line.split(": ")[1].rpartition("config.yaml")[2] for line in done.stderr.splitlines()] == [
            ":9:36",
            ":9:48",
            ":9:71",
            ":10:18",
        ], done


def test_a_link_in_the_repository_cannot_widen_a_preset(cordon, box, repo):
    box.write("state/config.yaml", "defaults:\n  presets:\n    a: {folders: [lib]}\n    b: {extends: a, folders: [lib/out]}\n", mode=0o600)
    box.link("repo/lib/out", "../docs")
    for command in (("run", "--preset", "b", "--", "true"), ("validate", "--preset", "b")):
        done = cordon(*command, cwd=repo)
        assert done.returncode in (1, 125) and "leads to docs, which is not in what the preset extends" in done.stderr, done


# ---- validation hooks ----


@pytest.fixture
def hooked(box, repo):
    """Writes a hook, and the settings that name it."""

    def make(script, *more):
        box.write("hooks/guard", f"#!/bin/sh\n{script}\n", mode=0o755)
        hook = f"{{name: guard, run: [{box.path}/hooks/guard, word], on: start, timeout: 60{''.join(more)}}}"
        box.write("state/config.yaml", f"{SETTINGS}  validation_hooks:\n    - {hook}\n", mode=0o600)
        return repo

    return make


def test_a_hook_refuses_with_its_first_line_and_cannot_write(cordon, box, hooked):
    repo = hooked(
        'read -r line; echo >&2; printf "%s %s\\033[31m\\nsecond\\n" "$1" "$line" >&2\n'
        f'(echo x >lib/hooked) 2>/dev/null; (echo x >{box.path}/hooked) 2>/dev/null; exit 7'
    )
    done = cordon("run", "--preset", "sub", "--", "sh", "-c", "echo ran", cwd=repo)
    assert done.returncode == 125 and done.stdout == "", done
    assert done.stderr == (
        "cordon: the validation hook guard refuses: word "
        '{"event":"start","folders":["lib/sub"],"mode":"strict","paths":[]}\\e[31m\n'
    )
    assert not list(box.path.rglob("hooked"))
    # It is asked about folder workspaces only, and a dry run starts nothing.
    assert cordon("run", "--", "true", cwd=repo).returncode == 0
    assert cordon("run", "--dry-run", "--preset", "sub", "--", "true", cwd=repo).returncode == 0


def test_a_hook_can_refuse_and_never_allow(cordon, hooked):
    repo = hooked('grep -q lib/sub && exit 0; echo "only lib/sub" >&2; exit 1')
    done = cordon("run", "--preset", "sub", "--", "sh", "-c", WRITE, cwd=repo)
    assert done.returncode == 0 and written(repo) == ["lib/sub/new"], done
    done = cordon("run", "--workspace", "src", "--", "true", cwd=repo)
    assert done.returncode == 125 and done.stderr == "cordon: the validation hook guard refuses: only lib/sub\n"


def test_a_hook_that_hangs_or_is_missing_has_refused(cordon, box, hooked):
    repo = hooked("sleep 1000 & sleep 1000")
    text = (box.state / "config.yaml").read_text()
    box.write("state/config.yaml", text.replace("timeout: 60", "timeout: 200ms"), mode=0o600)
    done = cordon("run", "--workspace", "lib", "--", "true", cwd=repo)
    assert done.returncode == 125 and done.stderr == "cordon: the validation hook guard refuses: it took too long\n", done
    (box.path / "hooks/guard").unlink()
    done = cordon("run", "--workspace", "lib", "--", "true", cwd=repo)
    assert done.returncode == 125 and "the validation hook guard refuses: " in done.stderr
    # Settings that can't be read could have a hook.
    box.write("state/config.yaml", "defaults: {validation_hook: []}\n", mode=0o600)
    assert cordon("run", "--workspace", "lib", "--", "true", cwd=repo).returncode == 125
    assert cordon("run", "--", "true", cwd=repo).returncode == 0


def test_a_hook_sees_no_network_and_no_secret_of_the_home(cordon, box, hooked):
    box.write("home/.ssh/id", "secret")
    repo = hooked(f'cat {box.home}/.ssh/id >&2 2>/dev/null; cat lib/a.ts >&2; cat /proc/net/dev | wc -l >&2; env >&2; exit 1')
    done = cordon("run", "--workspace", "lib", "--", "true", cwd=repo, env={"API_KEY": "secret"})
    assert "secret" not in done.stderr and "refuses: x" in done.stderr, done
