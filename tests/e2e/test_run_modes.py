# SPDX-License-Identifier: Apache-2.0
"""Permissive and strict folder workspaces: what a person reads on stderr, word for word, what the log keeps of it, and
what the host sees. The agent is a Python program that makes one call after the other, so that nothing is left to chance."""
import json
import os
import re
import signal
import subprocess

import pytest

from support import TOP, poll

PYTHON = ("/usr/bin/python3", "-I", "-S", "-B", "-c")
WATCHED = {
    "permissive": "[WORKSPACE] WARNING: File access outside workspace (permissive mode)\n",
    "strict": "[WORKSPACE] BLOCKED: File access outside workspace\n",
}
PRELUDE = """
import errno, functools, os
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
def read(path, **kw): do(os.open, path, os.O_RDONLY, **kw)
def write(path, **kw): do(os.open, path, os.O_WRONLY, **kw)
def make(path, **kw): do(os.open, path, os.O_WRONLY | os.O_CREAT, **kw)
def execute(path):
    pid = os.fork()
    if pid == 0:
        try:
            os.execv(path, [path])
        except OSError as error:
            os.write(1, (errno.errorcode[error.errno] + "\\n").encode())
            os._exit(0)
    print("done") if os.waitpid(pid, 0)[1] else None
"""


def said(mode, path, op, folders="lib"):
    """One report, with the words that scripts rely on."""
    text = f"{WATCHED[mode]}[WORKSPACE]   File: {path}\n[WORKSPACE]   Operation: {op}\n"
    return text if mode == "permissive" else f"{text}[WORKSPACE]   Workspace folders: {folders}\n"


def blocks(text):
    """What was reported, without the lines that advise how to lift a refusal; their words are tested below."""
    return re.sub(r"\[WORKSPACE\]   (Rule|To allow it): .*\n", "", text)


def folded(count, op, path):
    return f"[WORKSPACE]   ({count} times: {op} {path})\n"


@pytest.fixture
def repo(box):
    box.write("out/f", "outside\n")
    return box.repo(files={"lib/a": "a\n", "other/o": "o\n", "out/f": "outside\n"})


@pytest.fixture
def agent(cordon, repo):
    """`agent(mode, code, *options)` runs Python code in the workspace `lib` of the repository."""

    def run(mode, code, *options, **kw):
        return cordon("run", "--workspace", "lib", "--workspace-mode", mode, *options, "--", *PYTHON, PRELUDE + code, cwd=repo, **kw)

    return run


def records(box, event="violation"):
    lines = (box.state / "state/audit/audit.jsonl").read_text().splitlines()
    return [record for record in map(json.loads, lines) if record["event"] == event]


def snapshot(*tops):
    """Everything below directories, with content, mode and change time."""
    found = {}
    for top in tops:
        for base, dirs, files in os.walk(top):
            for name in dirs + files:
                path = os.path.join(base, name)
                st = os.lstat(path)
                data = open(path, "rb").read() if os.path.isfile(path) else None
                found[path] = (st.st_mode, st.st_ino, st.st_mtime_ns, data)
    return found


EVERYTHING = """
read("lib/a"); make("lib/new")
read("other/o"); read("other/o")
read({out!r} + "/f")
write({out!r} + "/f")
make({out!r} + "/made")
make({out!r} + "/made")
do(os.mkdir, {out!r} + "/dir")
do(os.rename, {out!r} + "/made", {out!r} + "/renamed")
do(os.chmod, {out!r} + "/renamed", 0o640)
do(os.unlink, {out!r} + "/f")
do(os.symlink, "f", {out!r} + "/link")
do(os.link, {out!r} + "/renamed", {out!r} + "/hard")
execute({out!r} + "/program")
"""


def test_permissive_run_warns_once_each_and_succeeds_in_the_repository(box, repo, agent):
    out = str(repo / "out")
    box.write("repo/out/program", "#!/bin/false\n", mode=0o755)
    result = agent("permissive", EVERYTHING.format(out=out))
    assert result.returncode == 0 and set(result.stdout.split()) == {"done"}, result
    told = [(f"{repo}/other/o", "read"), (f"{out}/f", "read"), (f"{out}/f", "write"), (f"{out}/made", "create"),
            (f"{out}/made", "write"), (f"{out}/dir", "create"), (f"{out}/made", "rename"), (f"{out}/renamed", "rename"),
            (f"{out}/renamed", "write"), (f"{out}/f", "delete"), (f"{out}/link", "create"), (f"{out}/renamed", "read"),
            (f"{out}/hard", "create"), (f"{out}/program", "execute")]
    assert blocks(result.stderr) == "".join(said("permissive", *one) for one in told) + folded(2, "read", f"{repo}/other/o")
    assert sorted(os.listdir(out)) == ["dir", "hard", "link", "program", "renamed"]
    assert os.stat(f"{out}/renamed").st_mode & 0o777 == 0o640 and (repo / "lib/new").exists()
    kept = [(r["path"], r["op"]) for r in records(box)]
    assert kept == told + [told[0]] and records(box)[-1]["detail"] == {"count": 2}
    assert {(r["decision"], r["mode"]) for r in records(box)} == {("warn", "permissive")}
    assert records(box, "end")[0]["detail"]["violations"] == len(told) + 1


def test_strict_refuses_the_same_run_and_says_so(box, repo, agent):
    out = str(box.mkdir("out"))
    box.write("out/program", "#!/bin/false\n", mode=0o755)
    before = snapshot(out, repo / "other", repo / ".git")
    result = agent("strict", EVERYTHING.format(out=out))
    assert result.returncode == 0, result
    assert result.stdout.split() == ["done"] * 2 + ["EACCES"] * 2 + ["ENOENT"] * 11, result
    assert snapshot(out, repo / "other", repo / ".git") == before
    told = [(f"{repo}/other/o", "read"), (f"{out}/f", "read"), (f"{out}/f", "write"), (f"{out}/made", "create"),
            (f"{out}/f", "delete"), (f"{out}/link", "create"), (f"{out}/program", "execute")]
    assert blocks(result.stderr) == ("".join(said("strict", *one) for one in told) + folded(2, "read", f"{repo}/other/o")
                             + folded(2, "create", f"{out}/made"))
    assert [(r["path"], r["op"]) for r in records(box)][:len(told)] == told
    assert {(r["decision"], r["mode"]) for r in records(box)} == {("deny", "strict")}


def test_strict_refuses_every_change_in_the_rest_of_the_repository(box, repo, agent):
    before = snapshot(repo)
    result = agent("strict", """
write("other/o"); make("other/new"); make("new"); do(os.mkdir, "dir"); do(os.unlink, "other/o"); do(os.rename, "other", "gone")
do(os.chmod, "other/o", 0o777); do(os.truncate, "other/o", 0); do(os.utime, "other/o"); do(os.link, "other/o", "lib/alias")
do(os.rename, "lib/a", "a"); execute("./other/o")
""")
    assert "done" not in result.stdout, result
    assert snapshot(repo) == before
    reported = re.findall(r"File: (.*)\n.*Operation: (.*)\n.*Workspace folders: lib\n", result.stderr)
    expected = {("other/o", "write"), ("other/new", "create"), ("new", "create"), ("dir", "create"), ("other/o", "delete"),
                ("other", "rename"), ("other/o", "read"), ("a", "rename"), ("other/o", "execute")}
    assert {(os.path.relpath(path, repo), op) for path, op in reported} == expected, result


WAYS = {
    "absolute": "read({out!r} + '/f')",
    "dots": "read('lib/../out/f')",
    "doubled slashes": "read('//' + {out!r}.lstrip('/') + '//.//f')",
    "through a system directory": "read('/usr/../' + {out!r} + '/f')",
    "link to the file": "read('lib/to-f')",
    "link to its directory": "read('lib/to-out/f')",
    "link to a link": "read('lib/to-link')",
    "after chdir": "os.chdir({out!r}); read('f')",
    "after chdir through a link": "os.chdir('lib/to-out'); read('./f')",
    "directory descriptor": "d = os.open({out!r}, os.O_PATH); read('f', dir_fd=d)",
    "descriptor of the workspace and dots": "d = os.open('lib', os.O_RDONLY); read('../out/f', dir_fd=d)",
    "/proc/self/cwd": "read('/proc/self/cwd/lib/../out/f')",
    "/proc/self/root": "read('/proc/self/root/' + {out!r} + '/f')",
    "/proc/PID/root": "read(f'/proc/{{os.getpid()}}/root/' + {out!r} + '/f')",
    "/proc/thread-self/cwd": "read('/proc/thread-self/cwd/lib/../out/f')",
    "/proc/self/fd": "d = os.open({out!r} + '/f', os.O_PATH); read(f'/proc/self/fd/{{d}}')",
    "/dev/fd": "d = os.open({out!r}, os.O_PATH); read(f'/dev/fd/{{d}}/f')",
    "link to /proc/self/root": "read('lib/to-proc')",
    "/proc/self/root twice": "read('/proc/self/root/proc/self/root' + {out!r} + '/f')",
    "/proc/self/cwd behind dots": "read('/proc/self/fd/../cwd/lib/../out/f')",
    "/proc/self/cwd behind dots out of /proc": "read('/proc/self/../../usr/../proc/./self/cwd/lib/../out/f')",
    "/proc/self/root behind a link to /proc": "read('lib/proc/self/root' + {out!r} + '/f')",
    "/proc/self/fd of a thread with descriptors of its own":
        "d = os.open({out!r}, os.O_PATH); e = os.open('lib', os.O_PATH); n = 77; os.dup2(d, n)\n"
        "def other(): libc.unshare(0x400); os.dup2(e, n); read('/proc/self/fd/77/f')\n"
        "import ctypes, threading; libc = ctypes.CDLL(None); t = threading.Thread(target=other); t.start(); t.join()",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_report_names_what_the_path_leads_to(box, repo, agent, way):
    out = f"{repo}/out"
    box.link("repo/lib/to-f", "../out/f")
    box.link("repo/lib/to-out", out)
    box.link("repo/lib/to-link", "to-f")
    box.link("repo/lib/to-proc", f"/proc/self/root{out}/f")
    box.link("repo/lib/proc", "/proc")
    result = agent("permissive", WAYS[way].format(out=out))
    assert result.stdout == "done\n" and blocks(result.stderr) == said("permissive", f"{out}/f", "read"), result


@pytest.mark.parametrize("mode", WATCHED)
def test_a_link_in_the_workspace_is_not_what_it_leads_to(box, repo, agent, mode):
    for name in ("removed", "moved", "touched"):
        box.link(f"repo/lib/{name}", "../../out/f")
    result = agent(mode, "do(os.unlink, 'lib/removed'); do(os.rename, 'lib/moved', 'lib/again'); do(os.symlink, '../../out/f', 'lib/new'); "
                   "do(os.utime, 'lib/touched', follow_symlinks=False); do(os.lstat, '../out/f'); do(os.open, 'lib/again', os.O_PATH)")
    assert "E" not in result.stdout.replace("ENOENT", "", 2), result
    assert result.stderr == "" and (box.path / "out/f").read_text() == "outside\n"


@pytest.mark.parametrize("options", [[], ["--lens", "always"]], ids=["mounts", "lens"])
def test_writing_what_is_there_is_no_creation_though_it_is_hidden(box, repo, agent, options):
    before = snapshot(repo / "other")
    result = agent("strict", "make('other/o'); make('other/new')", *options)
    assert blocks(result.stderr) == said("strict", f"{repo}/other/o", "write") + said("strict", f"{repo}/other/new", "create"), result
    assert "done" not in result.stdout and snapshot(repo / "other") == before


@pytest.mark.parametrize("options", [[], ["--lens", "always"]], ids=["mounts", "lens"])
def test_strict_reports_what_is_denied_in_the_workspace(box, repo, agent, options):
    box.write("repo/lib/b.sh", "secret\n")
    result = agent("strict", "read('lib/b.sh'); read('lib/a'); read('lib')", "--deny", "**/*.sh", *options)
    assert result.stdout.splitlines()[0] in ("EACCES", "ENOENT") and result.stdout.splitlines()[1:] == ["done", "done"]
    assert blocks(result.stderr) == said("strict", f"{repo}/lib/b.sh", "read"), result


def test_strict_reports_a_link_in_the_view_of_the_lens_that_leads_outside(box, repo, agent):
    box.link("repo/lib/ln", "../other/o")
    box.link("repo/lib/far", str(box.path / "out/f"))
    result = agent("strict", "read('lib/ln'); read('lib/far')", "--lens", "always")
    assert result.stdout == "EACCES\nEACCES\n"
    assert blocks(result.stderr) == said("strict", f"{repo}/other/o", "read") + said("strict", f"{box.path}/out/f", "read"), result


def test_a_save_that_the_lens_lets_through_is_no_violation(box, repo, cordon):
    box.write("repo/lib/a.ts", "one\n")
    result = cordon("run", "--workspace-mode", "strict", "--rw", "lib/**/*.ts", "--", "sed", "-i", "s/one/two/", "lib/a.ts", cwd=repo)
    assert (result.returncode, result.stderr, (repo / "lib/a.ts").read_text()) == (0, "", "two\n")
    result = cordon("run", "--workspace-mode", "strict", "--rw", "lib/**/*.ts", "--", *PYTHON, PRELUDE + "make('lib/b.py'); make('lib/c.ts.lock')",
                    cwd=repo)
    assert result.stdout == "EACCES\ndone\n" and "lib/b.py" in result.stderr and "lock" not in result.stderr, result


@pytest.mark.parametrize("mode", WATCHED)
def test_what_has_no_name_is_not_reported(agent, mode):
    result = agent(mode, """
m = os.memfd_create("x", 0)
os.write(m, open("/usr/bin/true", "rb").read())
do(os.open, f"/proc/self/fd/{m}", os.O_RDONLY)
if os.fork() == 0:
    os.execve(m, ["x"], {})
print(os.wait()[1])
d = os.open("lib/gone", os.O_RDWR | os.O_CREAT)
os.unlink("lib/gone")
do(os.open, f"/proc/self/fd/{d}", os.O_RDONLY)
""")
    assert (result.stdout, result.stderr) == ("done\n0\ndone\n", ""), result


BIND = """
import ctypes, mmap, os, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
os.chdir({out!r})
memory = mmap.mmap(-1, 8192)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
libc.munmap(ctypes.c_void_p(start + 4096), 4096)
s = socket.socket(socket.AF_UNIX)
address = struct.pack("=H", socket.AF_UNIX) + {name!r}.encode()
at = start + 4096 - len(address)
ctypes.memmove(at, address, len(address))
print(libc.syscall(49, s.fileno(), ctypes.c_void_p(at), ctypes.c_ulong(7 << 32 | len(address))))
os._exit(0)
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the number of bind(2) is that of x86-64")
def test_a_socket_is_reported_by_as_much_of_its_address_as_the_kernel_reads(box, repo, agent):
    out = f"{repo}/out"
    result = agent("permissive", BIND.format(out=out, name="sock"), "--net", "none")  # where every kernel has such sockets
    assert result.stdout == "0\n" and blocks(result.stderr) == said("permissive", f"{out}/sock", "create"), result
    assert os.path.exists(f"{out}/sock")


@pytest.mark.parametrize("mode", WATCHED)
def test_what_programs_always_read_is_not_reported(agent, mode):
    result = agent(mode, "for p in ('/', '/usr', '/usr/bin/env', '/bin/sh', '/etc/hosts', '/etc/passwd', '/dev/null', '/proc/self/status', "
                   "'/proc/cpuinfo', '/lib', '/run', '/usr/share/../lib/os-release'): read(p)\nwrite('/dev/null'); execute('/bin/false')")
    assert set(result.stdout.split()) == {"done"} and result.stderr == "", result


@pytest.mark.parametrize("mode", WATCHED)
def test_what_the_workspace_and_the_run_own_is_not_reported(agent, mode):
    result = agent(mode, "t = os.environ['TMPDIR']; h = os.environ['HOME']\nfor d in (t, h, '/dev/shm', 'lib'):\n"
                   "    make(d + '/x'); read(d + '/x'); write(d + '/x'); do(os.rename, d + '/x', d + '/y'); do(os.unlink, d + '/y')\n"
                   "    read(d); do(os.mkdir, d + '/d'); do(os.rmdir, d + '/d')\nread('lib/missing')")
    assert set(result.stdout.split()) == {"done", "ENOENT"} and result.stdout.count("ENOENT") == 1 and result.stderr == "", result


def test_looking_at_names_is_no_access_and_making_a_file_without_a_name_is(repo, agent):
    out = f"{repo}/out"
    result = agent("permissive", f"o = {out!r}; print(os.listdir(o)); do(os.open, o, os.O_RDONLY | os.O_DIRECTORY); do(os.stat, o + '/f'); "
                   "do(os.open, o + '/f', os.O_PATH); do(os.access, o, os.R_OK); do(os.open, o, os.O_TMPFILE | os.O_RDWR)")
    assert result.stdout == "['f']\n" + "done\n" * 5 and blocks(result.stderr) == said("permissive", out, "write"), result


@pytest.mark.parametrize("mode", WATCHED)
def test_what_is_not_there_to_be_read_is_not_reported(box, agent, mode):
    result = agent(mode, "read('lib/missing'); read('../out/missing'); execute('/nonexistent/program'); read('/nonexistent')")
    assert result.stdout == "ENOENT\n" * 4 and result.stderr == "", result


def test_strict_reports_the_search_for_what_the_host_has_in_private_places(box, agent):
    secret = box.write("home/.ssh/id_ed25519", "key\n", mode=0o600)
    result = agent("strict", f"read({str(secret)!r}); read('/tmp/nobody-has-this')")
    assert result.stdout == "ENOENT\nENOENT\n" and blocks(result.stderr) == said("strict", secret, "read"), result


def test_strict_lists_the_way_to_the_workspace_without_a_report(repo, agent):
    result = agent("strict", f"print(sorted(os.listdir('.')), os.listdir('lib')); read({str(repo.parent)!r})")
    assert result.stdout == "['.git', 'lib', 'other', 'out'] ['a']\ndone\n" and result.stderr == "", result


def test_shares_are_no_violation_and_stay_what_they_are(box, repo, agent):
    shared, kept = box.mkdir("shared"), box.mkdir("kept")
    box.write("kept/k", "k")
    result = agent("strict", f"make('/data/x'); read({str(kept)!r} + '/k'); write({str(kept)!r} + '/k')",
                   "--share", f"{shared}:/data", "--share", f"{kept}:{kept}:ro")
    assert result.stdout == "done\ndone\nEROFS\n" and blocks(result.stderr) == said("strict", f"{kept}/k", "write"), result
    assert (shared / "x").exists()


@pytest.mark.parametrize("mode", WATCHED)
def test_cordon_home_is_never_visible(box, agent, mode):
    box.write("state/state/secret", "record of ours")
    state = str(box.state)
    result = agent(mode, f"read({state!r} + '/state/secret'); make({state!r} + '/x'); do(os.listdir, {state!r}); "
                   f"do(os.listdir, {state!r} + '/state'); do(os.rename, {state!r}, 'lib/taken'); do(os.stat, {state!r} + '/state')")
    assert "done" not in result.stdout, result
    assert not (box.state / "x").exists() and (box.state / "state/secret").read_text() == "record of ours"
    assert WATCHED["permissive"] not in result.stderr
    assert said("strict", f"{state}/state/secret", "read") in result.stderr
    # Its own log is not where the agent is, and neither the run nor the agent can be made to write a line of it.
    assert all(record["session_id"] for record in records(box))


def test_protected_paths_stay_protected_in_permissive_mode(box, repo, agent):
    before = snapshot(repo / ".git")
    result = agent("permissive", "write('.git/config'); make('.git/hooks/post-commit'); do(os.rename, '.git', 'git2'); read('.git/config')")
    assert result.stdout.split() == ["EROFS", "EROFS", "EBUSY", "done"], result
    assert snapshot(repo / ".git") == before
    blocked = "[WORKSPACE] BLOCKED: Change of a protected path\n[WORKSPACE]   File: {}\n[WORKSPACE]   Operation: {}\n"
    assert blocked.format(f"{repo}/.git/config", "write") in result.stderr
    assert blocked.format(f"{repo}/.git/hooks/post-commit", "create") in result.stderr
    assert said("permissive", f"{repo}/.git/config", "read") in result.stderr


@pytest.mark.parametrize("mode", WATCHED)
def test_names_that_speak_are_escaped(box, repo, agent, cordon, mode):
    name = b"e\x1b[2J\n[WORKSPACE] all is well\r\xe2\x80\xae\xff"
    (repo / "other").joinpath(os.fsdecode(name)).write_text("x")
    box.own(repo / "other")
    result = agent(mode, f"do(os.open, os.fsencode({str(repo)!r}) + b'/other/' + {name!r}, os.O_RDONLY)")
    shown = r"e\e[2J\n[WORKSPACE] all is well\r\u{202e}\xff"
    assert blocks(result.stderr) == said(mode, f"{repo}/other/{shown}", "read"), result
    assert [r["path"] for r in records(box)] == [f"{repo}/other/{shown}"]
    listed = cordon("audit", "--json")
    assert listed.returncode == 0 and b"\x1b" not in listed.raw_stdout and "all is well" in listed.stdout


def test_a_path_that_cannot_be_read_is_reported_as_such(agent):
    result = agent("permissive", "import ctypes; c = ctypes.CDLL(None, use_errno=True)\nfor i in range(3): print(c.open(ctypes.c_void_p(8), 0))")
    assert result.stdout == "-1\n" * 3
    assert blocks(result.stderr) == said("permissive", "(unreadable)", "read") + folded(3, "read", "(unreadable)"), result


def test_any_number_of_different_violations_costs_a_bounded_number_of_lines(box, repo, agent):
    result = agent("strict", "for i in range(3000): make(f'other/n{i}')\nfor i in range(10): make('other/n0')", "--result", str(box.path / "result"))
    assert set(result.stdout.split()) == {"EACCES"}
    expected = "".join(said("strict", f"{repo}/other/n{i}", "create") for i in range(512))
    assert blocks(result.stderr) == (expected + folded(11, "create", f"{repo}/other/n0")
                             + "[WORKSPACE]   (2488 more accesses outside workspace are not listed)\n")
    assert json.loads((box.path / "result").read_text())["violations"] == 3010
    assert (box.state / "state/audit/audit.jsonl").stat().st_size < 300000


def test_with_json_the_reports_are_only_in_the_log(box, repo, cordon):
    result = cordon("run", "--json", "--workspace", "lib", "--", *PYTHON, PRELUDE + "read('other/o')", cwd=repo)
    assert result.json("stderr")["violations"] == 1 and [r["path"] for r in records(box)] == [f"{repo}/other/o"]


def test_a_report_is_one_piece_among_what_the_agent_says(agent, repo):
    result = agent("strict", "pid = os.fork()\nwhile pid == 0: os.write(2, b'agent\\n')\n"
                   "for i in range(300): do(os.open, f'other/n{i}', os.O_RDONLY)\nos.kill(pid, 9)")
    pieces = "".join(line for line in result.stderr.splitlines(True) if line != "agent\n")
    assert blocks(pieces) == "".join(said("strict", f"{repo}/other/n{i}", "read") for i in range(300))
    lines = result.stderr.splitlines()
    assert "agent" in lines, result
    torn = [lines[i:i + 5] for i, line in enumerate(lines) if "BLOCKED" in line and "agent" in lines[i:i + 5]]
    assert not torn, torn


RULES = {
    "no grant": ((), "read('other/o')", None, "--ro 'other/o'"),
    "a grant for reading": (("--ro", "other"), "write('other/o')", "other (--ro)", "--rw 'other/o'"),
    "a denial": (("--deny", "lib/a"), "read('lib/a')", "lib/a (--deny)", "deny"),
    "a protected path": (("--protect", "lib/a"), "write('lib/a')", "lib/a (--protect)", "protect"),
    "a temporary name": (("--protect", "lib/a"), "do(os.open, 'lib/.a.swp', os.O_WRONLY | os.O_CREAT)", "lib/a (--protect), as a temporary name of it", "protect"),
    "outside": ((), "read({out!r} + '/f')", None, "root"),
}


@pytest.mark.parametrize("why", RULES)
@pytest.mark.parametrize("lens", ["auto", "always"])
def test_a_refusal_names_the_rule_and_what_would_lift_it(box, repo, agent, why, lens):
    options, code, rule, remedy = RULES[why]
    result = agent("strict", code.format(out=str(box.path / "out")), *options, "--lens", lens)
    assert "done" not in result.stdout and result.stderr.count("BLOCKED") == 1, result
    assert re.findall(r"\[WORKSPACE\]   Rule: (.*)\n", result.stderr) == ([rule] if rule else []), result
    advice = re.findall(r"\[WORKSPACE\]   To allow it: (.*)\n", result.stderr)
    assert len(advice) == 1 and remedy in advice[0], result


def test_a_warning_needs_no_advice(agent):
    result = agent("permissive", "read('other/o')")
    assert result.stdout == "done\n" and "To allow it" not in result.stderr


ASKED = {
    "option": (("--workspace-mode", "strict", "--rw", "lib/**/*.ts"), {}),
    "variable": (("--rw", "lib/**/*.ts"), {"WORKSPACE_MODE": "strict"}),
    "option, of a file": (("--policy", "../policy.yaml", "--workspace-mode", "strict"), {}),
    "nobody": (("--rw", "lib/**/*.ts"), {}),
}


@pytest.mark.parametrize("by", ASKED)
def test_a_scope_by_name_reports_whoever_asked_for_a_mode(box, repo, cordon, by):
    options, env = ASKED[by]
    box.write("policy.yaml", "version: 1\nmode: strict\nrw:\n  - lib/**/*.ts\n")
    result = cordon("run", *options, "--", *PYTHON, PRELUDE + "make('lib/n.ts'); make('lib/n.sh'); read('other/o'); read('lib/n.ts')", cwd=repo, env=env)
    assert result.stdout == "done\nEACCES\nEACCES\ndone\n" and not (repo / "lib/n.sh").exists(), result
    told = [(f"{repo}/lib/n.sh", "create"), (f"{repo}/other/o", "read")]  # the lens tells of its refusals in any case
    assert blocks(result.stderr) == "".join(said("strict", *one).replace("[WORKSPACE]   Workspace folders: lib\n", "") for one in told)
    assert [(r["path"], r["op"]) for r in records(box)] == told


STALLED = {
    "ends": (".", "completed"),
    "goes on and on": ("while True: make('other/again')", "timeout"),
}


@pytest.mark.parametrize("then", STALLED)
def test_reports_that_nobody_reads_hold_up_neither_the_run_nor_its_time_limit(box, repo, cordon, then):
    # The pipe takes 64 KiB and is full long before the end; the reports wait, and are there for who reads them later.
    code, state = STALLED[then]
    code = PRELUDE + "def print(*args): pass\nfor i in range(512): make(f'other/{i:0200}')\n" + code.strip(".")
    run = cordon.start("run", "--workspace", "lib", "--workspace-mode", "strict", "--timeout", "4s", "--grace", "1s", "--result",
                       str(box.path / "result"), "--", *PYTHON, code, cwd=repo)
    poll((box.path / "result").exists, 60, "the end of the run")
    assert json.loads((box.path / "result").read_text())["state"] == state
    err = run.communicate(timeout=30)[1].decode()
    assert blocks(err).startswith("".join(said("strict", f"{repo}/other/{i:0200}", "create") for i in range(512)))
    assert run.returncode == (0 if state == "completed" else 124)


STORM = r"""
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static long each;
static long refused[8];

static void *storm(void *arg)
{
	long *count = arg;
	char name[64];

	for (long i = 0; i < each; i++) {
		int fd;

		/* Half of them the same file, half of them another name each time. */
		snprintf(name, sizeof(name), i % 2 ? "other/o" : "other/n%ld-%d", i, (int)(count - refused));
		fd = open(name, O_RDONLY);
		if (fd < 0 && (errno == EACCES || errno == ENOENT))
			++*count;
		else
			_exit(9);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[8];
	long sum = 0;

	each = argc > 1 ? atol(argv[1]) / 8 : 0;
	for (int i = 0; i < 8; i++)
		if (pthread_create(&threads[i], NULL, storm, &refused[i]))
			return 8;
	for (int i = 0; i < 8; i++) {
		pthread_join(threads[i], NULL);
		sum += refused[i];
	}
	printf("%ld\n", sum);
	return 0;
}
"""


@pytest.mark.limit(900)
@pytest.mark.parametrize("who, total", [("root", 100000), ("user", 100000), pytest.param("user", 1000000, marks=pytest.mark.soak)],
                         indirect=["who"])  # a million takes 25 s on two quiet cores
def test_a_storm_of_refused_opens_neither_hangs_nor_fills_the_log(box, repo, cordon, total):
    source = box.write("storm.c", STORM)
    subprocess.run(["cc", "-O2", "-pthread", "-o", repo / "lib/storm", source], check=True)
    result = cordon("run", "--workspace", "lib", "--workspace-mode", "strict", "--result", str(box.path / "result"), "--",
                    "lib/storm", str(total), cwd=repo, timeout=800)
    assert result.returncode == 0 and result.stdout == f"{total}\n", result.stderr[-1000:]
    assert json.loads((box.path / "result").read_text())["violations"] == total
    assert len(result.raw_stderr) < 512 * 5 * (len(str(repo)) + 100)
    lines = result.stderr.splitlines()
    assert f"[WORKSPACE]   ({total // 2} times: read {repo}/other/o)" in lines
    assert lines[-1] == f"[WORKSPACE]   ({total // 2 - 511} more accesses outside workspace are not listed)"
    assert (box.state / "state/audit/audit.jsonl").stat().st_size < 500000
    # What is told, folded, and dropped by the log's own limit adds up: nothing vanished without a number.
    dropped = sum(record["detail"]["count"] for record in records(box, "dropped"))
    assert len(records(box)) + dropped == 512 + 1 + 1
    print(f"{total} refused opens in {result.seconds:.1f} s")


@pytest.mark.parametrize("way", ["time-out", "signal"])
def test_a_watched_run_ends_in_the_middle_of_a_storm(box, repo, cordon, way):
    source = box.write("storm.c", STORM)
    subprocess.run(["cc", "-O2", "-pthread", "-o", repo / "lib/storm", source], check=True)
    words = ["--timeout", "1s"] if way == "time-out" else []
    process = cordon.start("run", "--workspace", "lib", "--workspace-mode", "strict", "--result", str(box.path / "result"), *words,
                           "--", "lib/storm", "1000000000", cwd=repo)
    said_first = process.stderr.readline()
    if way == "signal":
        process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert said_first.decode() == WATCHED["strict"] and out == b"", err[-500:]
    done = json.loads((box.path / "result").read_text())
    assert done["state"] == ("timeout" if words else "cancelled") and done["violations"] > 0, done


def test_the_document_lists_the_system_directories_of_the_code():
    code = (TOP / "src/sandbox/inside/where.c").read_text()
    listed = re.search(r"cordon_watch_system\[\] = \{(.*?)NULL", code, re.DOTALL).group(1)
    document = (TOP / "docs/watch.md").read_text()
    section = document.split("## System directories", 1)[1].split("\n## ", 1)[0]
    assert re.findall(r'"(/[^"]*)"', listed) == re.findall(r"^\| `(/[^`]*)`", section, re.MULTILINE)
