# SPDX-License-Identifier: Apache-2.0
"""/etc/cordon/managed.yaml: a fence around every policy of every user. The tests put a copy of /etc in its place, in a mount namespace of their own."""
import json
import os
import shutil
import subprocess

import pytest

# Runs a program as a user, with another /etc.
ELSEWHERE = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def check(result):
    if result != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
etc, user, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
check(libc.unshare(0x20000))  # CLONE_NEWNS
check(libc.mount(b"none", b"/", None, 0x44000, None))  # MS_REC | MS_PRIVATE
check(libc.mount(etc.encode(), b"/etc", None, 0x1000, None))  # MS_BIND
os.setgroups([])
os.setresgid(user, user, user)
os.setresuid(user, user, user)
os.execv(command[0], command)
"""
PATH = "/etc/cordon/managed.yaml"


@pytest.fixture(scope="module")
def etc(base_dir):
    if os.getuid() != 0:
        pytest.skip("only root can put another /etc in the place of the machine's")
    copy = base_dir / "managed-etc"
    shutil.copytree("/etc", copy, symlinks=True, ignore_dangling_symlinks=True)
    (copy / "cordon").mkdir(exist_ok=True)
    return copy


@pytest.fixture
def managed(etc, box, cordon):
    """`managed(text)` writes the file; `managed(None, *command)` runs cordon beside it."""
    root = box.repo(files={"src/f.ts": "x", "src/key.pem": "k", "docs/n.md": "d", "README": "r"})

    def run(text, *args, mode=0o644, owner=0, env=None):
        path = etc / "cordon/managed.yaml"
        if text is not None:
            path.unlink(missing_ok=True)
            path.write_text(text)
            path.chmod(mode)
            os.chown(path, owner, owner)
        if not args:
            return None
        return subprocess.run(["/usr/bin/python3", "-c", ELSEWHERE, str(etc), str(box.who.uid), cordon.path, *args], env={**box.environment(), **(env or {})}, cwd=root,
                              capture_output=True, text=True, check=False, timeout=60)

    yield run
    (etc / "cordon/managed.yaml").unlink(missing_ok=True)


TRY = "for f in src/f.ts src/key.pem docs/n.md README; do cat $f >/dev/null 2>&1 && echo read $f; (echo y >>$f) 2>/dev/null && echo wrote $f; done; true"


def test_a_run_gets_no_more_than_the_fence_gives(managed, box):
    managed("deny: ['**/*.pem']\nrw: [src]\nro: [docs]\n")
    root = box.path / "repo"
    done = managed(None, "run", "--rw", ".", "--", "sh", "-c", TRY)
    assert done.returncode == 0 and done.stdout.splitlines() == ["read src/f.ts", "wrote src/f.ts", "read docs/n.md"], done
    assert (root / "src/f.ts").read_text() == "xy\n" and (root / "README").read_text() == "r" and (root / "docs/n.md").read_text() == "d"
    # Neither a mode nor no policy at all, nor what is protected or not, leads around it.
    for options in ([], ["--workspace", "src,docs", "--workspace-mode", "permissive"], ["--no-default-protect"], ["--profile", "claude"]):
        done = managed(None, "run", *options, "--", "sh", "-c", TRY)
        assert not {"read src/key.pem", "read README", "wrote docs/n.md", "wrote README"} & set(done.stdout.splitlines()), (options, done)
    # Without the file all of it works.
    managed("version: 1\n")
    assert "wrote README" in managed(None, "run", "--rw", ".", "--", "sh", "-c", TRY).stdout


def test_what_is_protected_or_read_only_there_stays_as_it_is(managed, box):
    managed("protect: [README, .vscode]\n")
    done = managed(None, "run", "--", "sh", "-c", TRY)
    assert "wrote src/f.ts" in done.stdout and "read README" in done.stdout and "wrote README" not in done.stdout, done
    refused = managed(None, "run", "--unprotect", ".vscode", "--", "true")
    assert refused.returncode in (2, 125) and f"asked for ({PATH}:1:19)" in refused.stderr, refused
    managed("read_only: true\n")
    assert "wrote" not in managed(None, "run", "--rw", "src", "--", "sh", "-c", TRY).stdout


def test_why_and_policy_test_name_the_fence(managed, box):
    managed("deny: ['**/*.pem']\nrw: [src]\nnet: [a.example.com]\n")
    denied = json.loads(managed(None, "why", "--json", "--op", "read", "src/key.pem").stdout)
    assert denied["decision"] == "deny" and denied["where"] == f"{PATH}:1:8"
    outside = json.loads(managed(None, "why", "--json", "--rw", ".", "--op", "write", "README").stdout)
    assert outside["decision"] == "deny" and outside["fence"] == PATH
    host = managed(None, "why", "--net", "host", "b.example.com:443").stdout
    assert host.startswith("deny") and f"fence      {PATH}" in host and f"widen the fence {PATH}" in host
    assert managed(None, "check", "--op", "connect", "--net", "a.example.com,b.example.com", "a.example.com").returncode == 0
    box.write("table.yaml", "questions: [deny read src/key.pem, deny write README, allow write src/f.ts, deny connect b.example.com]\n")
    done = managed(None, "policy", "test", "--rw", ".", "--live", str(box.path / "table.yaml"))
    assert done.returncode == 0 and done.stdout.endswith("4 questions, 0 not as expected, 0 not asked in a sandbox\n"), done


def test_shares_are_those_that_it_names(managed, box):
    box.mkdir("given")
    box.mkdir("other")
    managed(f"share: ['{box.path}/given:ro']\n")
    assert managed(None, "run", "--share", f"{box.path}/given:ro", "--", "true").returncode == 0
    for share in (f"{box.path}/given", f"{box.path}/other:ro", f"{box.path}:ro"):
        done = managed(None, "run", "--share", share, "--", "true")
        assert done.returncode == 125 and "can't be shared" in done.stderr and f"{PATH}:1:8" in done.stderr, done
    assert managed(None, "run", "--home", f"{box.path}/other", "--", "true").returncode == 125


def test_sessions_and_their_lists_stay_within(managed, box):
    managed("net: [a.example.com]\ndeny: ['**/secret']\n")
    project = json.loads(managed(None, "project", "create", "p", "--net", "a.example.com,b.example.com", "--json", "--", "cat").stdout)["id"]
    started = managed(None, "session", "start", project, "--detach", "--json", "--", "sh", "-c", "echo x >secret && echo made; sleep 60")
    session = json.loads(started.stdout)["session_id"]
    try:
        refused = managed(None, "session", "net", session, "--allow", "b.example.com")
        assert refused.returncode != 0 and f"can't be reached on this machine ({PATH}:1:6)" in refused.stderr, refused
        assert managed(None, "session", "net", session, "--revoke", "a.example.com").returncode == 0
        assert managed(None, "session", "net", session, "--allow", "a.example.com").returncode == 0
        assert "made" not in managed(None, "session", "output", session).stdout
    finally:
        managed(None, "session", "stop", session, "--grace", "100ms")


@pytest.mark.parametrize("text, place", [("rw: [x\n", ":2:1: "), ("denny: [x]\n", ":1:1: unknown key"), ("deny: ['a/**b']\n", ":1:"), ("env: {A: b}\n", ":1:1: env narrows nothing"),
                                         ("net: profile\n", ":1:6: net"), ("unprotect: [.git/hooks]\n", ":1:1: unprotect")])
def test_a_broken_file_refuses_every_run_with_the_place(managed, text, place):
    managed(text)
    done = managed(None, "run", "--", "echo", "ran")
    assert done.returncode == 125 and PATH + place in done.stderr and not done.stdout, done
    assert managed(None, "check", "README").returncode != 0 and managed(None, "execute", "nobody").returncode != 0


def test_a_file_that_others_could_have_written_refuses_every_run(managed, box, etc):
    for options in ({"mode": 0o666}, {"mode": 0o664}, {"owner": 12345}):
        managed("version: 1\n", **options)
        done = managed(None, "run", "--", "echo", "ran")
        assert done.returncode == 125 and "must belong to root" in done.stderr and not done.stdout, done
    managed("version: 1\n")
    (etc / "cordon").chmod(0o777)
    try:
        done = managed(None, "run", "--", "echo", "ran")
        assert done.returncode == 125 and "/etc/cordon must belong to root" in done.stderr, done
    finally:
        (etc / "cordon").chmod(0o755)
    managed("version: 1\n", mode=0o600)
    done = managed(None, "run", "--", "echo", "ran")
    assert done.returncode == (0 if box.who.is_root else 125), "what can't be read is not left out"


def test_doctor_shows_it(managed):
    managed("deny: [x]\n")
    told = json.loads(managed(None, "doctor", "--json").stdout)
    assert told["managed"] == {"path": PATH, "state": "in force", "where": "", "error": ""}
    assert f"{PATH}   in force\n" in managed(None, "doctor").stdout
    managed("deny: {}\n")
    done = managed(None, "doctor", "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 1 and not told["ok"] and told["managed"]["state"] == "broken" and told["managed"]["where"] == f"{PATH}:1:7"
