# SPDX-License-Identifier: Apache-2.0
"""Whatever option or file made a rule, what it refuses is reported once, recorded, counted, and seen by --fail-on-violation: by tripwires
where FUSE can be used, else by the trap. Both say the same."""
import json
import os
import re

import pytest

PYTHON = ("/usr/bin/python3", "-I", "-S", "-B", "-c")
READS = """
import os, sys
for name in sys.argv[1:]:
    op, path = name.split(":", 1)
    try:
        if op == "execute":
            if os.fork() == 0:
                try:
                    os.execv(path, [path])
                except OSError:
                    os._exit(0)
            os.wait()
        elif op == "look":
            os.path.exists(path), os.access(path, os.R_OK)
            os.close(os.open(path, os.O_PATH))
            os.listdir(path)
        else:
            os.close(os.open(path, {"read": os.O_RDONLY, "write": os.O_WRONLY, "create": os.O_WRONLY | os.O_CREAT,
                                    "both": os.O_RDONLY | os.O_CREAT, "empty": os.O_RDONLY | os.O_TRUNC}[op]))
    except OSError:
        pass
"""
BLOCK = re.compile(r"BLOCKED: .*\n\[WORKSPACE\]   File: (.*)\n\[WORKSPACE\]   Operation: (.*)\n")


@pytest.fixture
def repo(box):
    box.write("shared/data", "data\n")
    return box.repo(files={"lib/a": "a\n", "lib/deep/b": "b\n", "other/o": "o\n", "other/sub/p": "p\n", "top": "top\n", ".env": "S=1\n"})


@pytest.fixture(params=["tripwires", "trap"])
def reported(request, box, cordon, who, repo):
    """`reported(options, attempts, expected)`: a run with these options reports exactly that of them, wherever reports go. `more` is how often
    something of it was repeated."""
    hidden = ["unshare", *([] if who.is_root else ["--user", "--map-root-user"]), "--mount", "sh", "-c", 'mount --bind /dev/null /dev/fuse && exec "$@"', "sh"]

    def run(options, attempts, expected, more=0):
        result = box.path / "result.json"
        command = [cordon.path, "run", "--fail-on-violation", "--result", str(result), *options, "--", *PYTHON, READS, *attempts]
        done = box.run(*(hidden if request.param == "trap" else []), *command, cwd=repo)
        value = json.loads(result.read_text())
        told = [(os.path.relpath(path, repo), op) for path, op in BLOCK.findall(done.stderr)]
        assert told == expected, done
        assert done.returncode == (3 if expected else 0) and value["exit_code"] == 0, done
        assert value["violations"] == len(expected) + more and value.get("failed_on_violation", False) == bool(expected), (value, done)
        kept = [json.loads(line) for line in (box.state / "state/audit/audit.jsonl").read_text().splitlines()]
        kept = [r for r in kept if r["event"] == "violation" and r["session_id"] == value["session_id"] and "count" not in r.get("detail", {})]
        assert [(os.path.relpath(r["path"], repo), r["op"]) for r in kept] == expected, kept

    return run


INSIDE = ["read:lib/a", "write:lib/a", "create:lib/new", "look:lib"]
OUTSIDE = ["look:other", "read:top", "read:other/o", "read:other/sub/p", "read:other", "execute:top", "execute:other/o", "write:top", "create:other/made", "create:made"]
REFUSED = [("top", "read"), ("other/o", "read"), ("other/sub/p", "read"), ("other", "read"), ("top", "execute"), ("other/o", "execute"), ("top", "write"),
           ("other/made", "create"), ("made", "create")]  # fmt: skip


def test_a_scope_of_grants(reported):
    reported(["--rw", "lib"], INSIDE + OUTSIDE, REFUSED)


def test_a_scope_that_is_read_only(reported):
    reported(["--ro", "lib"], ["read:lib/a", "write:lib/a", "create:lib/new", *OUTSIDE], [("lib/a", "write"), ("lib/new", "create"), *REFUSED])


def test_a_root_that_is_read_only(reported):
    reported(["--ro", "."], ["read:lib/a", "read:top", "write:top", "create:new"], [("top", "write"), ("new", "create")])


def test_a_policy_file(box, reported):
    box.write("policy.yaml", "version: 1\nrw: [lib]\ndeny: [lib/deep]\n")
    reported(["--policy", str(box.path / "policy.yaml")], [*INSIDE, "read:lib/deep/b", "look:lib/deep", *OUTSIDE], [("lib/deep/b", "read"), *REFUSED])


def test_a_fence(reported):
    reported(["--rw", ".", "--within", "lib"], INSIDE + OUTSIDE, REFUSED)


def test_denied_files_and_directories_in_a_plain_run(reported):
    attempts = ["read:lib/a", "look:top", "read:top", "read:top", "both:top", "empty:top", "write:top", "execute:top", "look:other", "read:other/o", "read:other",
                "create:other/new", "both:other/o"]  # fmt: skip
    reported(["--deny", "top", "--deny", "other", "--no-default-protect"], attempts,
             [("top", "read"), ("top", "write"), ("top", "execute"), ("other/o", "read"), ("other", "read"), ("other/new", "create")], more=4)


def test_known_secrets(reported):
    reported(["--deny-secrets"], ["read:lib/a", "look:.env", "read:.env"], [(".env", "read")])


def test_a_share_that_is_read_only(box, reported):
    box.write("data/d", "d")
    reported(["--share", f"{box.path / 'data'}:ro", "--no-default-protect"], [f"read:{box.path}/data/d", f"write:{box.path}/data/d"], [("../data/d", "write")])


@pytest.mark.parametrize("reported", ["tripwires"], indirect=True)  # there is no lens without FUSE
def test_a_file_that_may_only_be_read_through_the_lens(reported):
    reported(["--rw", "lib/*", "--ro", "top", "--no-default-protect"], ["write:lib/a", "read:top", "write:top", "empty:top"], [("top", "write")], more=1)


def test_looking_and_what_is_not_there_is_no_attempt(reported):
    reported(["--rw", "lib"], ["look:other", "look:top", "read:lib/none", "read:none", "execute:none", "look:none"], [])
