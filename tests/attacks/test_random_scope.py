# SPDX-License-Identifier: Apache-2.0
"""Scopes by name under random work: whatever calls come in whatever order, nothing out of scope is read, changed, made or kept."""
import os
import pathlib
import stat

import pytest

PROBE = pathlib.Path(__file__).parent / "probes" / "random_scope.py"
ROUNDS = 4000
FILES = {
    "src/a.ts": "a\n", "src/b.ts": "b\n", "src/deep/c.ts": "c\n", "src/prot.ts": "held\n", "docs/a.ts": "public\n", "src/deny.ts": "SECRET 1\n",
    "src/secret.txt": "SECRET 2\n", "src/deep/secret.txt": "SECRET 3\n", "src/key.env": "SECRET 4\n", "docs/secret.txt": "SECRET 5\n",
    "secret.txt": "SECRET 6\n", "src/deep/.hidden": "SECRET 7\n",
}  # fmt: skip
COMMON = ["--deny", "**/deny.ts", "--protect", "src/prot.ts"]
SCOPES = {
    "by type": (["--rw", "src/**/*.ts", "--ro", "docs/a.ts"], lambda name: name.startswith("src/") and name.endswith(".ts")),
    "folder but for some": (["--workspace", "src", "--workspace-mode", "strict", "--deny", "**/*.txt", "--deny", "**/*.env", "--deny", "**/.hidden",
                             "--ro", "docs/a.ts"],
                            lambda name: name.startswith("src/") and not name.endswith((".txt", ".env", ".hidden"))),
}  # fmt: skip


def look(top):
    """Everything but directories: what it is, its mode, its content and its attributes."""
    found = {}
    for base, dirs, files in os.walk(top):
        for name in [*dirs, *files]:
            path = os.path.join(base, name)
            st = os.lstat(path)
            if stat.S_ISDIR(st.st_mode):
                continue
            regular = stat.S_ISREG(st.st_mode)
            content = open(path, "rb").read() if regular else None
            attributes = {key: os.getxattr(path, key) for key in os.listxattr(path)} if regular else {}
            found[os.path.relpath(path, top)] = (st.st_ino, st.st_mode, st.st_mtime_ns if regular else 0, content, attributes)
    return found


def is_secret(seen):
    return seen[3] is not None and b"SECRET" in seen[3]


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("seed", [15, 24, 48])
def test_random_work_reads_changes_makes_and_keeps_nothing_out_of_scope(box, cordon, scope, seed):
    options, may_write = SCOPES[scope]
    repo = box.repo(files=FILES)
    os.setxattr(repo / "docs/secret.txt", "user.secret", b"SECRET 8")
    os.link(repo / "src/secret.txt", repo / "src/deep/hard.txt")
    box.own(repo)
    before = look(repo)
    result = cordon("run", *options, *COMMON, "--", "/usr/bin/python3", "-I", "-B", "-c", PROBE.read_text(), str(seed), str(ROUNDS), cwd=repo,
                    timeout=100)
    assert result.returncode == 0, result
    done, leaks = result.stdout.split(" ", 1)
    assert leaks == "[]\n" and int(done) > ROUNDS // 20, result.stdout
    after = look(repo)

    def held(name):
        return not may_write(name) or name == "src/prot.ts" or "deny.ts" in name.split("/")

    assert {name: how for name, how in after.items() if held(name)} == {name: how for name, how in before.items() if held(name)}
    assert [name for name, how in after.items() if is_secret(how) and not held(name)] == []


def test_control_without_cordon_the_same_work_does_all_of_it(box):
    repo = box.repo(files=FILES)
    before = look(repo)
    result = box.run("/usr/bin/python3", "-I", "-B", "-c", PROBE.read_text(), "15", str(ROUNDS), cwd=repo, timeout=100)
    assert "SECRET" in result.stdout, result
    after = look(repo)
    changed = [name for name in before if before[name] != after.get(name)]
    assert [name for name in changed if is_secret(before[name])] and set(after) - set(before)
