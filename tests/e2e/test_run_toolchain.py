# SPDX-License-Identifier: Apache-2.0
"""Real tools work inside, unchanged from outside: git, make and cc, node and npm, python with a virtual environment."""
import os
import pathlib
import shutil
import subprocess

import pytest


def sh(cordon, script, *options, **kw):
    return cordon("run", *options, "--", "/bin/sh", "-ec", script, timeout=110, **kw)


GIT = "git -c user.name=agent -c user.email=agent@example.invalid"


def test_git_clone_commit_and_log(box, cordon):
    origin = box.mkdir("work/origin")
    box.run("git", "init", "-q", "-b", "main", cwd=origin)
    box.write("work/origin/file", "content\n")
    box.run("sh", "-c", f"git add . && {GIT} commit -qm first", cwd=origin)
    result = sh(cordon, f"git clone -q origin clone; cd clone; echo more >>file; {GIT} commit -qam second; git log --format=%s; "
                "git status --porcelain; git fsck", "--root", str(box.path / "work"), cwd=box.path / "work")
    assert result.returncode == 0 and result.stdout.splitlines()[:2] == ["second", "first"], result
    outside = box.run("git", "log", "--format=%s", cwd=box.path / "work/clone")
    assert outside.stdout == "second\nfirst\n"


def test_committing_in_the_root_repository_works_while_its_configuration_is_held(box, cordon):
    repo = box.mkdir("repo")
    box.run("git", "init", "-q", "-b", "main", cwd=repo)
    result = sh(cordon, f"echo a >file; git add file; {GIT} commit -qm inside; git log --format=%s; git branch topic; "
                f"git checkout -q topic; {GIT} commit -q --allow-empty -m empty; git stash list; git gc -q", cwd=repo)
    assert result.returncode == 0 and "inside" in result.stdout, result
    assert box.run("git", "log", "--format=%s", "topic", cwd=repo).stdout == "empty\ninside\n"
    held = sh(cordon, "git config user.name evil", cwd=repo)
    assert held.returncode != 0 and "evil" not in (repo / ".git/config").read_text()


def test_a_c_project_builds_with_make(box, cordon):
    repo = box.repo(files={
        "Makefile": "prog: main.o add.o\n\t$(CC) -o $@ $^\n%.o: %.c\n\t$(CC) -O1 -c $<\ncheck: prog\n\t./prog\n",
        "main.c": '#include <stdio.h>\nint add(int, int);\nint main(void) { printf("%d\\n", add(40, 2)); return 0; }\n',
        "add.c": "int add(int a, int b) { return a + b; }\n",
    })
    result = sh(cordon, "make -j2 check", cwd=repo)
    assert result.returncode == 0 and result.stdout.splitlines()[-1] == "42", result
    assert subprocess.run([repo / "prog"], capture_output=True, check=True).stdout == b"42\n"


def test_a_node_project_installs_from_a_local_cache_and_runs_its_tests(box, cordon):
    node, npm = shutil.which("node"), shutil.which("npm")
    assert node and npm, "node and npm are needed (scripts/setup test installs them)"
    repo = box.repo(files={
        "package.json": '{"name": "app", "version": "1.0.0", "scripts": {"test": "node --test"}, "dependencies": {"dep": "file:dep-1.0.0.tgz"}}\n',
        "app.test.js": 'const test = require("node:test"); const assert = require("node:assert");\n'
                       'test("dep works", () => assert.strictEqual(require("dep")(), 42));\n',
    })
    box.write("dep/package.json", '{"name": "dep", "version": "1.0.0", "main": "index.js"}\n')
    box.write("dep/index.js", "module.exports = () => 42;\n")
    cache = box.mkdir("npm-cache")
    env = {"npm_config_cache": str(cache), "PATH": f"{os.path.dirname(node)}:/usr/local/bin:/usr/bin:/bin"}
    packed = box.run("npm", "pack", "--silent", str(box.path / "dep"), cwd=repo, env=env)
    assert packed.returncode == 0, packed
    locked = box.run("npm", "install", "--package-lock-only", "--offline", "--silent", cwd=repo, env=env)
    assert locked.returncode == 0, locked
    # Where node comes from elsewhere than /usr, its directory is shown read-only, as a user would do it.
    options = [] if pathlib.Path(node).resolve().is_relative_to("/usr") else ["--share", f"{pathlib.Path(node).resolve().parents[1]}:ro"]
    result = sh(cordon, "npm ci --offline --silent; npm test --silent", "--net", "none", "--share", f"{cache}:/run/npm", "--env",
                "npm_config_cache=/run/npm", *options, cwd=repo)
    assert result.returncode == 0 and "pass 1" in result.stdout, result
    assert (repo / "node_modules/dep/index.js").exists()


def test_python_with_a_virtual_environment(box, cordon):
    repo = box.repo(files={"mod.py": "def answer():\n    return 42\n",
                           "test_mod.py": "import unittest, mod\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(mod.answer(), 42)\n"})
    result = sh(cordon, "/usr/bin/python3 -m venv --without-pip venv; ./venv/bin/python -m unittest -q; ./venv/bin/python -c 'import sys; "
                "print(sys.prefix)'", cwd=repo)
    assert result.returncode == 0 and result.stdout.strip() == str(repo / "venv"), result
    outside = box.run(str(repo / "venv/bin/python"), "-c", "import mod; print(mod.answer())", cwd=repo)
    assert outside.stdout == "42\n"


def test_a_home_directory_that_stays(box, cordon):
    repo, home = box.repo(), box.mkdir("agent-home")
    assert sh(cordon, 'echo kept >"$HOME/.rc"', "--home", str(home), cwd=repo).returncode == 0
    assert (home / ".rc").read_text() == "kept\n"
    assert sh(cordon, 'cat "$HOME/.rc"', "--home", str(home), cwd=repo).stdout == "kept\n"
    assert sh(cordon, 'ls -A "$HOME"', cwd=repo).stdout == ""


def test_shares_at_the_same_and_at_another_place(box, cordon):
    repo = box.repo()
    box.write("data/file", "data\n")
    box.write("more/file", "more\n")
    data, more = box.path / "data", box.path / "more"
    result = sh(cordon, f"cat {data}/file /mnt/data/file; echo x >{data}/new; echo x >/mnt/data/no || echo refused", "--share", str(data),
                "--share", f"{more}:/mnt/data:ro", cwd=repo)
    assert result.stdout == "data\nmore\nrefused\n" and (data / "new").exists() and not (more / "no").exists(), result
