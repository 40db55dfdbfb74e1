# SPDX-License-Identifier: Apache-2.0
"""Whatever option or file made a rule, what it refuses is reported once, recorded, counted, and seen by --fail-on-violation: by tripwires
where FUSE can be used, else by the trap. Both say the same. What a list of hosts, a limit or the environment refuses is reported in the same way."""
import json
import os
import pathlib
import re
import subprocess

import pytest

from support import poll

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
        elif op == "list":
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


INSIDE = ["read:lib/a", "write:lib/a", "create:lib/new", "look:lib", "list:lib"]
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
    reported(["--rw", "lib"], ["look:other", "look:top", "list:.", "list:lib", "read:lib/none", "read:none", "execute:none", "look:none", "list:none"], [])


@pytest.mark.parametrize("reported", ["tripwires"], indirect=True)  # the trap lets listings pass: it would stop every program at every directory
@pytest.mark.parametrize("options", [("--rw", "lib"), ("--deny", "other", "--deny", "top", "--no-default-protect")], ids=["scope", "denied"])
def test_listing_a_hidden_directory_is_told_of_once(reported, options):
    reported(options, ["look:other", "list:.", "list:lib", "list:other", "list:other", "list:other/sub", "list:top"], [("other", "read"), ("other/sub", "read")], more=1)


def test_a_path_that_is_too_long_with_the_directory_in_front_of_it_is_told_by_its_name(reported):
    way = "./" * 2040
    reported(["--rw", "lib"], [f"read:{way}lib/a", f"create:{way}lib/made", f"read:{way}other/o", f"write:{way}top", f"create:{way}other/n", f"create:{way}none/n"],
             [("other/o", "read"), ("top", "write"), ("other/n", "create")])


def test_a_path_that_is_longer_than_any_is_no_attempt(reported):
    way = "./" * 2050
    reported(["--rw", "lib"], [f"read:{way}other/o", f"write:{way}top", f"create:{way}other/n", f"execute:{way}top"], [])


# ---- refusals that are not about files ----


def records(home, session):
    kept = [json.loads(line) for line in (home / "state/audit/audit.jsonl").read_text().splitlines()]
    return [r for r in kept if r["session_id"] == session and r["event"] in ("violation", "limit")]


DIALS = """
import socket, sys
for name in sys.argv[1:]:
    kind, host, port = name.split()
    try:
        if kind == "name":
            socket.getaddrinfo(host, None)
        elif kind == "tcp":
            socket.create_connection((host, int(port)), timeout=30).close()
        else:
            with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as s:
                s.connect((host, int(port)))
                s.send(b"x")
                s.settimeout(30)
                s.recv(1)
    except OSError:
        pass
"""


def test_a_list_of_hosts_tells_of_names_addresses_loopback_and_datagrams(online, machine):
    """The machine has a service at port 5432 of every address, its loopback too (tests/internet.py). Where the host has none, there is nothing to be
    refused: programs wait for servers of their own."""
    root, result = machine.mkdir("work"), machine.path / "result.json"

    def run(attempts, expected):
        done = online("run", "--root", str(root), "--net", "a.example.com", "--fail-on-violation", "--result", str(result), "--", *PYTHON, DIALS, *attempts, cwd=root)
        value = json.loads(result.read_text())
        told = re.findall(r"BLOCKED: .*\n\[NETWORK\]   Host: (.*)\n(?:\[NETWORK\]   To allow it: (.*)\n)?", done.stderr)
        assert sorted(told) == sorted(expected), done
        assert done.returncode == (3 if expected else 0) and value["exit_code"] == 0 and value["violations"] == len(expected), (value, done)
        assert sorted(r["path"] for r in records(machine.state, value["session_id"])) == sorted(host for host, _ in expected)

    run(["tcp 127.0.0.1 1", "udp 127.0.0.1 1", "tcp ::1 2", "name localhost -"], [])
    run(["name b.example.com -"] * 2 + ["tcp 192.0.2.10 81", "tcp 192.0.2.10 81", "tcp 127.0.0.1 5432", "tcp 127.0.0.1 5432", "tcp ::1 5432", "tcp 127.9.9.9 5432",
                                        "tcp 10.77.0.2 5432", "udp 192.0.2.10 443"],
        [("b.example.com", "--net 'b.example.com:443'"), ("192.0.2.10:81", "--net '192.0.2.10:81'"), ("127.0.0.1:5432", "--net 'localhost:5432'"),
         ("[::1]:5432", "--net 'localhost:5432'"), ("127.9.9.9:5432", "--net '127.9.9.9:5432'"), ("10.77.0.2:5432", "--net '10.77.0.2:5432'"),
         ("192.0.2.10:443/udp", "")])


BOMB = """
import os, time
for i in range(40):
    try:
        if os.fork() == 0:
            time.sleep(1)
            os._exit(0)
    except BlockingIOError:
        pass
"""
FULL = """
try:
    open("/tmp/full", "wb").write(bytes(2 << 20))
except OSError:
    pass
"""


@pytest.fixture
def group(who):
    """A control group in which the caller may make others, as a login session has. Without one, the kernel holds --pids and tells nobody."""
    if os.getuid() != 0:
        pytest.skip("the tests run as an ordinary user, who cannot make a control group")
    v1 = pathlib.Path("/sys/fs/cgroup/pids")
    made = (v1 if v1.is_dir() else pathlib.Path("/sys/fs/cgroup")) / f"cordon-pids-{os.getpid()}-{who.name}"
    if not v1.is_dir():
        (made.parent / "cgroup.subtree_control").write_text("+pids")
    made.mkdir()
    for path in (made, *made.iterdir()):
        os.chown(path, who.uid, who.gid)
    yield made
    for path in (*[p for p in made.iterdir() if p.is_dir()], made):
        poll(lambda: not (path / "cgroup.procs").read_text(), what="an empty group")
        path.rmdir()


@pytest.mark.parametrize("limit, options, code", [("pids", ("--pids", "20"), BOMB),
                                                  ("tmp", ("--tmp-size", "1M"), FULL)], ids=["pids", "tmp"])
def test_a_limit_that_is_reached_is_told_of_once(box, cordon, group, limit, options, code):
    root, result = box.mkdir("work"), box.path / "result.json"
    join = 'echo $$ >"$0/cgroup.procs" && u=$1 g=$2 && shift 2 && exec setpriv --reuid="$u" --regid="$g" --clear-groups -- "$@"'
    for program, hit in ((code, True), ("pass", False)):
        done = subprocess.run(["sh", "-c", join, str(group), str(box.who.uid), str(box.who.gid), cordon.path, "run", "--root", str(root), "--fail-on-violation", "--result",
                               str(result), *options, "--", *PYTHON, program], env=box.environment(), cwd=root, capture_output=True, text=True, timeout=60, check=False)
        value = json.loads(result.read_text())
        assert value["limits"].get("pids", {"mechanism": "cgroup"})["mechanism"].startswith("cgroup"), value
        assert done.returncode == (3 if hit else 0) and value["exit_code"] == 0 and value["violations"] == hit, (value, done)
        assert done.stderr.count("[LIMIT]") == hit, done
        assert [(r["event"], r["op"]) for r in records(box.state, value["session_id"])] == [("limit", limit)] * hit


def test_a_limit_that_ends_the_run_is_no_refusal_beside(box, cordon):
    root, result = box.mkdir("work"), box.path / "result.json"
    done = cordon("run", "--root", str(root), "--fail-on-violation", "--result", str(result), "--timeout", "300ms", "--grace", "100ms", "--", "sleep", "60")
    value = json.loads(result.read_text())
    assert (done.returncode, value["state"], value["violations"]) == (124, "timeout", 0), (value, done)


def test_variables_that_were_asked_for_and_are_not_there(box, cordon):
    """By an option or in a policy file. A profile names what its program may want, and a star what there may be."""
    root, result = box.mkdir("work"), box.path / "result.json"
    policy = box.write("policy.yaml", "version: 1\nrw: [.]\nkeep_env: [OF_FILE, 'SOME_*', OF_BOTH]\n"
                       "net:\n  inject: [{host: api.example.com, header: k, from_env: TAKEN, base_url_env: URL}]\n")

    def run(*options, **env):
        done = cordon("run", "--root", str(root), "--fail-on-violation", "--result", str(result), "--policy", str(policy), "--keep-env", "OF_OPTION", "--keep-env", "OF_BOTH",
                      *options, "--", "env", env={"TAKEN": "k3y", **env})
        value = json.loads(result.read_text())
        told = re.findall(r"\[ENVIRONMENT\] MISSING: (\w+) was to be passed on, (.*)", done.stderr)
        assert done.returncode == (3 if told else 0) and value["exit_code"] == 0 and value["violations"] == len(told), (value, done)
        assert [(r["op"], r["path"], r["decision"]) for r in records(box.state, value["session_id"])] == [("env", name, "deny") for name, _ in told]
        assert "k3y" not in done.stdout + done.stderr, done
        return told

    unset = "and is not set"
    assert run() == [("OF_OPTION", unset), ("OF_BOTH", unset), ("OF_FILE", unset)]
    assert run(OF_OPTION="1", OF_FILE="") == [("OF_BOTH", unset)]
    assert run("--keep-env", "TAKEN", "--env", "OF_BOTH=2", OF_OPTION="1", OF_FILE="x") == [("TAKEN", "but only the endpoint of `inject` has its value")]
    assert run(OF_OPTION="1", OF_FILE="x", OF_BOTH="3") == []
