# SPDX-License-Identifier: Apache-2.0
"""The lens tells what it refused: each refusal that the work saw, under its name, and nothing that was only looked at. The
agent is a Python program that writes down what it was refused; the reports come from the audit log on the host."""
import json
import os
import select
import signal

import pytest

from support import command_line, descendants

PYTHON = ("/usr/bin/python3", "-I", "-S", "-B", "-c")
PRELUDE = """
import errno, functools, os, socket
print = functools.partial(print, flush=True)
def do(call, *args, **kw):
    try:
        made = call(*args, **kw)
        if call is os.open:
            os.close(made)
    except OSError as error:
        print(errno.errorcode[error.errno])
    else:
        print("done")
def read(path): do(os.open, path, os.O_RDONLY)
def write(path): do(os.open, path, os.O_WRONLY)
def make(path, flags=0): do(os.open, path, os.O_WRONLY | os.O_CREAT | flags)
def bind(path):
    with socket.socket(socket.AF_UNIX) as s:
        do(s.bind, path)
def execute(path):
    pid = os.fork()
    if pid == 0:
        try:
            os.execv(path, [path])
        except OSError as error:
            os.write(1, (errno.errorcode[error.errno] + "\\n").encode())
        os._exit(0)
    os.waitpid(pid, 0)
"""


@pytest.fixture
def repo(box):
    top = box.repo(files={"src/a.ts": "a\n", "src/build.sh": "#!/bin/sh\n", "secret42": "s\n", "secretdir/key": "k\n", "docs/d.md": "d\n",
                          "kept/ro.txt": "r\n", "AGENTS.md": "prompt\n"})
    (top / "src/build.sh").chmod(0o755)
    box.link("repo/src/out.ts", "../docs/d.md")
    box.link("repo/src/lost.ts", "../docs/missing.md")
    return top


def reports(box, repo):
    """(operation, path below the root) of every refusal in the log, repeated as often as it was counted."""
    lines = (box.state / "state/audit/audit.jsonl").read_text().splitlines()
    found = []
    for record in map(json.loads, lines):
        if record["event"] == "violation":
            count = (record.get("detail") or {}).get("count", 1)
            found += [(record["op"], os.path.relpath(record["path"], repo))] * (count - 1 if count > 1 else 1)
            assert record["decision"] == "deny", record
    return found


def run(cordon, repo, code, *options, **kw):
    return cordon("run", *options, "--", *PYTHON, PRELUDE + code, cwd=repo, **kw)


DENY = ("--rw", "**", "--deny", "secret*", "--deny", "secretdir/**")
BY_NAME = ("--rw", "src/**/*.ts")
READ_ONLY = ("--ro", "kept/*.txt", "--rw", "src/**/*.ts")
PROTECT = ("--lens", "always", "--protect", "AGENTS.md", "--protect", "docs/d.md", "--protect", "late/name")
# What the agent does, and the one report of it.
REFUSED = {
    "read": (DENY, "read('secret42')", ("read", "secret42")),
    "read in a directory": (DENY, "read('secretdir/key')", ("read", "secretdir/key")),
    "read by an absolute path": (DENY, "read(os.getcwd() + '/secretdir/key')", ("read", "secretdir/key")),
    "read through a link": (BY_NAME, "read('src/out.ts')", ("read", "docs/d.md")),
    "read from a thread": (DENY, "import threading; t = threading.Thread(target=read, args=('secret42',)); t.start(); t.join()",
                           ("read", "secret42")),
    "write": (DENY, "write('secret42')", ("write", "secret42")),
    "write with O_CREAT": (DENY, "make('secret42')", ("write", "secret42")),
    "create": (DENY, "make('secret43')", ("create", "secret43")),
    "create in a hidden directory": (DENY, "make('secretdir/new')", ("create", "secretdir/new")),
    "create by name": (BY_NAME, "make('src/new.sh')", ("create", "src/new.sh")),
    "mkdir": (DENY, "do(os.mkdir, 'secretx')", ("create", "secretx")),
    "symlink": (DENY, "do(os.symlink, 'x', 'secretx')", ("create", "secretx")),
    "mkfifo": (DENY, "do(os.mkfifo, 'secretx')", ("create", "secretx")),
    "bind": (DENY, "bind('secretx')", ("create", "secretx")),
    "hard link to a name": (BY_NAME, "do(os.link, 'src/a.ts', 'src/a.sh')", ("create", "src/a.sh")),
    "hard link of a name": (BY_NAME, "do(os.link, 'src/build.sh', 'src/b.ts')", ("read", "src/build.sh")),
    "delete": (DENY, "do(os.unlink, 'secret42')", ("delete", "secret42")),
    "delete what may be read": (READ_ONLY, "do(os.unlink, 'kept/ro.txt')", ("delete", "kept/ro.txt")),
    "rename away": (DENY, "do(os.rename, 'secret42', 'open')", ("rename", "secret42")),
    "rename to": (BY_NAME, "do(os.rename, 'src/a.ts', 'src/a.sh')", ("rename", "src/a.sh")),
    "rename what may be read": (READ_ONLY, "do(os.rename, 'kept/ro.txt', 'src/x.ts')", ("rename", "kept/ro.txt")),
    "chmod": (DENY, "do(os.chmod, 'secret42', 0o600)", ("write", "secret42")),
    "chmod what may be read": (READ_ONLY, "do(os.chmod, 'kept/ro.txt', 0o600)", ("write", "kept/ro.txt")),
    "utime what may be read": (READ_ONLY, "do(os.utime, 'kept/ro.txt')", ("write", "kept/ro.txt")),
    "truncate": (DENY, "do(os.truncate, 'secret42', 0)", ("write", "secret42")),
    "execute": (BY_NAME, "execute('src/build.sh')", ("execute", "src/build.sh")),
    "delete what is protected": (PROTECT, "do(os.unlink, 'AGENTS.md')", ("delete", "AGENTS.md")),
    "move what holds something protected": (PROTECT, "do(os.rename, 'docs', 'd2')", ("rename", "docs")),
    "make what is protected and missing": (PROTECT, "do(os.mkdir, 'late')", ("create", "late")),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_refusal_is_told_once_by_its_name(box, cordon, repo, what):
    options, code, told = REFUSED[what]
    result = run(cordon, repo, code, *options)
    assert result.stdout.split() in (["EACCES"], ["EROFS"], ["EBUSY"], ["EPERM"]), result
    assert reports(box, repo) == [told], result
    path = repo / told[1]
    assert "BLOCKED: " in result.stderr and f"  File: {path}\n" in result.stderr and f"  Operation: {told[0]}\n" in result.stderr
    assert (repo / "secret42").read_text() == "s\n" and sorted(os.listdir(repo / "secretdir")) == ["key"]
    assert (repo / "AGENTS.md").read_text() == "prompt\n" and (repo / "kept/ro.txt").exists() and not (repo / "late").exists()


# What is no attempt, though the lens says no.
LOOKS = {
    "stat": (DENY, "do(os.stat, 'secret42'); do(os.lstat, 'secretdir/key'); do(os.access, 'secret42', os.R_OK)"),
    "O_PATH": (DENY, "do(os.open, 'secret42', os.O_PATH)"),
    "listing": (DENY, "do(os.listdir, 'secretdir'); os.listdir('.')"),
    "walk": (DENY, "[[os.stat(os.path.join(d, n), follow_symlinks=False) for n in f] for d, _, f in os.walk('.')]"),
    "missing": (DENY, "read('secretnone'); write('secretnone'); do(os.unlink, 'secretnone'); do(os.rename, 'secretnone', 'x'); "
                "do(os.chmod, 'secretnone', 0o600); execute('./secretnone')"),
    "missing directory": (DENY, "read('secretnone/x'); make('secretnone/x'); do(os.mkdir, 'secretnone/x')"),
    "missing below": (DENY, "read('secretdir/none'); do(os.unlink, 'secretdir/none')"),
    "exists": (DENY, "do(os.mkdir, 'secretdir'); do(os.symlink, 'x', 'secret42'); make('secret42', os.O_EXCL); do(os.mkdir, 'secretdir/key')"),
    "readlink": (BY_NAME, "do(os.readlink, 'src/out.ts'); do(os.lstat, 'src/out.ts'); do(os.stat, 'src/out.ts')"),
    "link to what is missing": (BY_NAME, "read('src/lost.ts')"),
    "save": (BY_NAME, "make('src/a.ts.tmp1'); do(os.rename, 'src/a.ts.tmp1', 'src/a.ts'); make('src/.a.ts.swp'); do(os.unlink, 'src/.a.ts.swp')"),
    "differences of the file system": (BY_NAME, "do(os.chown, 'src/a.ts', 12345, -1); do(os.chmod, 'src/a.ts', 0o4755)"),
    "moving a directory in pieces": (("--rw", "**", "--deny", "src/*.sh"), "do(os.rename, 'src', 'src2')"),
}


@pytest.mark.parametrize("what", LOOKS)
def test_what_only_looks_or_would_fail_anyway_is_not_told(box, cordon, repo, what):
    options, code = LOOKS[what]
    result = run(cordon, repo, code, *options)
    assert result.returncode == 0 and result.stderr == "" and reports(box, repo) == [], result


def test_git_and_ls_over_a_tree_with_denied_files_are_not_told(box, cordon):
    repo = box.mkdir("tree")
    for name in ("a.ts", "secret42", "secretdir/key", "b/.env"):
        box.write(f"tree/{name}", "x\n")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(repo))
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "all")):
        assert box.run(*git, *words).returncode == 0
    result = cordon("run", *DENY, "--deny", "**/.env", "--", "sh", "-c", "ls -lR >/dev/null; find . -name '*' >/dev/null; du . >/dev/null; "
                    "git status --short; git log --stat >/dev/null; git diff --quiet HEAD -- a.ts", cwd=repo)
    assert reports(box, repo) == [] and "BLOCKED" not in result.stderr, result


def test_repetitions_are_folded_and_counted(box, cordon, repo):
    result = run(cordon, repo, "for i in range(40): read('secret42')", "--no-summary", *DENY)
    assert result.stderr.count("BLOCKED") == 1 and f"(40 times: read {repo}/secret42)" in result.stderr, result
    assert reports(box, repo) == [("read", "secret42")] * 40


def test_a_flood_costs_a_bounded_number_of_lines_and_every_refusal_is_counted(box, cordon, repo):
    result = run(cordon, repo, "import threading\ndef many(k):\n    for i in range(1500): make(f'secret-{k}-{i}')\n"
                 "ts = [threading.Thread(target=many, args=(k,)) for k in range(8)]\n[t.start() for t in ts]; [t.join() for t in ts]",
                 "--result", str(box.path / "result"), *DENY)
    assert result.stdout.split() == ["EACCES"] * 12000
    assert json.loads((box.path / "result").read_text())["violations"] == 12000
    assert result.stderr.count("BLOCKED") == 512 and "more accesses outside workspace are not listed" in result.stderr


def test_a_supervisor_that_stands_still_does_not_hold_up_the_work(box, cordon, repo):
    process = cordon.start("run", *DENY, "--", "sh", "-c", "echo up; read x; cat secret42; cat AGENTS.md; sleep 100", cwd=repo,
                           stdin=-1)
    assert process.stdout.readline() == b"up\n"
    assert [p for p in descendants(process.pid) if "cordon-lens" in command_line(p)]
    os.kill(process.pid, signal.SIGSTOP)
    process.stdin.write(b"\n")
    process.stdin.flush()
    try:
        assert select.select([process.stdout], [], [], 10)[0] and process.stdout.readline() == b"prompt\n"
    finally:
        os.kill(process.pid, signal.SIGCONT)
    os.kill(process.pid, signal.SIGTERM)
    process.communicate(timeout=20)


def test_looking_at_a_denied_name_stays_cheap(cordon, repo):
    result = run(cordon, repo, "import time; n = 3000; t = time.monotonic()\nfor i in range(n):\n    try: os.stat('secret42')\n"
                 "    except OSError: pass\nprint((time.monotonic() - t) / n)", *DENY)
    assert float(result.stdout) < 0.002, result  # microseconds on an idle machine


def test_who_hides_from_the_supervisor_is_told_of_all_the_same(box, cordon, repo):
    result = run(cordon, repo, "import ctypes; ctypes.CDLL(None).prctl(4, 0); read('secret42')", *DENY)
    assert result.stdout == "EACCES\n" and reports(box, repo) == [("read", "secret42")], result


def test_the_summary_and_the_result_count_what_the_lens_refused(box, cordon, repo):
    result = run(cordon, repo, "read('secret42'); make('secret-new')", "--summary", "--result", str(box.path / "result"), *DENY)
    assert "[SUMMARY] 2 attempts refused:\n" in result.stderr and "no attempt was refused" not in result.stderr, result
    assert json.loads((box.path / "result").read_text())["violations"] == 2
