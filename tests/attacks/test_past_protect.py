# SPDX-License-Identifier: Apache-2.0
"""Attacks on what is protected, shown and reported that succeeded against an earlier version."""
import json
import os
import socket
import subprocess
import time

import pytest

from arena import answers
from modes import RUNS
from support import poll

CLOCK_REALTIME_COARSE = 5  # of linux/time.h; the module time has no name for it

EITHER = pytest.mark.parametrize("lens", [[], ["--lens", "always"]], ids=["folder", "lens"])


def script_of(box, name, marker):
    return box.write(name, f"#!/bin/sh\ntouch {marker}\n", mode=0o755)


# ---- K7: links inside protected directories ----

@EITHER
def test_k7_a_hook_that_is_a_link_keeps_its_target(arena, lens):
    box = arena.box
    (arena.root / ".git/hooks/pre-commit").unlink()
    box.link("repo/.git/hooks/pre-commit", "../../scripts/pre-commit")
    target = box.write("repo/scripts/pre-commit", "#!/bin/sh\nexit 0\n", mode=0o755)
    result = arena.py("attempt('write', lambda: open('scripts/pre-commit', 'a'))\n"
                      "attempt('remove', lambda: os.unlink('scripts/pre-commit'))\n"
                      "attempt('rename', lambda: os.rename('scripts/pre-commit', 'scripts/x'))\n"
                      "attempt('away', lambda: os.rename('scripts', 'other'))\n"
                      "attempt('mode', lambda: os.chmod('scripts/pre-commit', 0o777))\n"
                      "attempt('beside', lambda: open('scripts/other', 'w').write('work'))\n"
                      "attempt('read', lambda: open('scripts/pre-commit').read())\n", *lens, protect=False)
    got = answers(result)
    assert {name for name, what in got.items() if what == "done"} == {"beside", "read"}, result
    assert target.read_text() == "#!/bin/sh\nexit 0\n" and (arena.root / "scripts/other").read_text() == "work"


@EITHER
def test_k7_a_chain_of_links_is_held_at_every_hop(arena, lens):
    box = arena.box
    box.link("repo/.git/hooks/post-checkout", "../../tools/first")
    box.link("repo/tools/first", "../more/second")
    box.link("repo/more/second", "../real/hook")
    box.write("repo/real/hook", "#!/bin/sh\n", mode=0o755)
    result = arena.py("for n in ('tools/first', 'more/second', 'real/hook'):\n"
                      "    attempt('remove-' + n, lambda: os.unlink(n))\n"
                      "    attempt('over-' + n, lambda: (open('evil', 'w').close(), os.rename('evil', n)))\n"
                      "attempt('write', lambda: open('real/hook', 'a'))\n"
                      "attempt('work', lambda: open('more/new', 'w'))\n", *lens, protect=False)
    got = answers(result)
    assert {name for name, what in got.items() if what == "done"} == {"work"}, result
    assert os.readlink(arena.root / "tools/first") == "../more/second" and os.readlink(arena.root / "more/second") == "../real/hook"
    assert (arena.root / "real/hook").read_text() == "#!/bin/sh\n"


@EITHER
def test_k7_a_linked_directory_on_the_way_is_held_and_stays_usable(arena, lens):
    box = arena.box
    box.link("repo/.git/hooks/post-merge", "../../tools/bin/hook")
    box.link("repo/tools", "kit")
    held = box.write("repo/kit/bin/hook", "#!/bin/sh\n", mode=0o755)
    result = arena.py("attempt('write', lambda: open('kit/bin/hook', 'a'))\n"
                      "attempt('through', lambda: open('tools/bin/hook', 'a'))\n"
                      "attempt('turn', lambda: (os.symlink('src', 'other'), os.rename('other', 'tools')))\n"
                      "attempt('remove', lambda: os.unlink('tools'))\n"
                      "attempt('away', lambda: os.rename('kit/bin', 'kit/b'))\n"
                      "attempt('beside', lambda: open('tools/bin/other', 'w').write('x'))\n"
                      "attempt('above', lambda: open('kit/new', 'w').write('x'))\n", *lens, protect=False)
    assert {name for name, what in answers(result).items() if what == "done"} == {"beside", "above"}, result
    assert held.read_text() == "#!/bin/sh\n" and os.readlink(arena.root / "tools") == "kit"


@EITHER
def test_k7_the_missing_target_of_a_link_cannot_come_to_be(arena, lens):
    arena.box.link("repo/.claude/hook", "../gen/hook")
    arena.box.mkdir("repo/gen")
    result = arena.sh("echo evil >gen/hook; echo work >gen/other; cat gen/other", *lens, protect=False)
    assert result.stdout == "work\n" and not os.path.lexists(arena.root / "gen/hook"), result


@EITHER
def test_k7_asked_for_directories_and_linked_directories_count_too(arena, lens):
    box = arena.box
    box.link("repo/policy/rules", "../rules")
    box.write("repo/rules/a/b.txt", "b\n")
    box.link("repo/rules/a/far", "../../far.txt")
    far = box.write("repo/far.txt", "far\n")
    result = arena.sh("echo evil >rules/a/b.txt; echo evil >rules/new; echo evil >far.txt; echo work >free.txt", "--protect", "policy", *lens,
                      protect=False)
    assert (arena.root / "rules/a/b.txt").read_text() == "b\n" and far.read_text() == "far\n", result
    assert not (arena.root / "rules/new").exists() and (arena.root / "free.txt").read_text() == "work\n", result


@EITHER
def test_k7_links_out_of_the_root_and_to_the_root_take_nothing_away(arena, lens):
    outside = arena.box.write("outside.txt", "o\n")
    arena.box.link("repo/.claude/out", str(outside))
    arena.box.link("repo/.claude/root", "..")
    arena.box.link("repo/.claude/loop", "loop")
    arena.box.link("repo/.claude/own", "settings.json")
    result = arena.sh("echo work >src/new.c && echo work >>src/main.c && echo done", *lens, protect=False)
    assert result.returncode == 0 and result.stdout == "done\n", result


def test_k7_check_says_what_the_kernel_does(arena):
    arena.box.link("repo/.git/hooks/post-merge", "../../scripts/a")
    arena.box.link("repo/scripts/a", "b")
    arena.box.write("repo/scripts/b", "b\n")
    said = arena.cordon("check", "--op", "write", "scripts/a", "scripts/b", "scripts/c", cwd=arena.root)
    assert [line.split()[0] for line in said.stdout.splitlines()] == ["deny", "deny", "allow"], said
    assert "leads here" in arena.cordon("why", "--op", "write", "scripts/b", cwd=arena.root).stdout


# ---- K16: the default list, many worktrees, ids, what a bound agent is told ----

PLANTED = [".helix/languages.toml", ".config/mise.toml", ".config/mise/config.toml", "mise.prod.toml", ".mise.prod.toml", "lefthook.yaml", "lefthook.toml",
           "lefthook.json", ".lefthook.json", "lefthook-local.yml", ".lefthook-local.toml", "crush.json", ".crush.json",
           "agents.json", ".agent/rules/x.md"]
WHERE_THE_DIRECTORY_IS = [".hg/hgrc", ".jj/repo/config.toml", ".github/hooks/x.json"]


@EITHER
@pytest.mark.parametrize("name", PLANTED + WHERE_THE_DIRECTORY_IS)
def test_k16_more_files_that_tools_execute_cannot_be_planted(arena, lens, name):
    for directory in (".hg", ".jj/repo", ".github"):
        arena.box.mkdir(f"repo/{directory}")
    result = arena.sh(f"mkdir -p {os.path.dirname(name) or '.'}; echo evil >{name}; echo work >src/new.c", *lens, protect=False, env={"MISE_ENV": "prod"})
    assert not os.path.lexists(arena.root / name) and (arena.root / "src/new.c").read_text() == "work\n", result


@EITHER
@pytest.mark.parametrize("name", PLANTED + WHERE_THE_DIRECTORY_IS + ["mise.other.toml"])
def test_k16_nor_changed_where_they_are(arena, lens, name):
    held = arena.box.write(f"repo/{name}", "held\n")
    result = arena.sh(f"echo evil >{name}; rm -f {name}; cat {name}; echo work >src/new.c", *lens, protect=False)
    assert held.read_text() == "held\n" and "held" in result.stdout and (arena.root / "src/new.c").read_text() == "work\n", result


@EITHER
@pytest.mark.parametrize("key", ["gpg.ssh.defaultKeyCommand", "difftool.x.path", "mergetool.x.path"])
def test_k16_programs_that_git_keys_name_are_held(arena, lens, key):
    section, name = key.rsplit(".", 1)
    head, _, sub = section.partition(".")
    (arena.root / ".git/config").write_text(f'[core]\n\tbare = false\n[{head} "{sub}"]\n\t{name} = tools/run\n')
    held = arena.box.write("repo/tools/run", "#!/bin/sh\n", mode=0o755)
    result = arena.sh("echo evil >tools/run; mv tools/run x; echo work >tools/other", *lens, protect=False)
    assert held.read_text() == "#!/bin/sh\n" and (arena.root / "tools/other").exists(), result


@EITHER
def test_k16_many_worktrees_that_an_agent_made_refuse_no_run_and_hide_none(arena, lens):
    """300 made up ones, and one that is real and comes last: the next run starts, and all of them are held."""
    made = arena.sh("mkdir -p .git/worktrees && cd .git/worktrees && for i in $(seq 300); do mkdir a$i && touch a$i/1 a$i/2 a$i/3 a$i/4 "
                    "a$i/5 a$i/6 a$i/7 a$i/8 a$i/9 a$i/10 a$i/11 a$i/12 a$i/13 a$i/14; done", *lens, protect=False)
    assert made.returncode == 0, made
    arena.box.write("repo/wt/real/.git", f"gitdir: {arena.root}/.git/worktrees/zreal\n")
    arena.box.write("repo/.git/worktrees/zreal/gitdir", f"{arena.root}/wt/real/.git\n")
    arena.box.write("repo/.git/worktrees/zreal/commondir", "../..\n")
    result = arena.sh("echo evil >wt/real/.git; echo evil >.git/worktrees/zreal/commondir; echo evil >.git/worktrees/a1/commondir; "
                      "mv .git/worktrees .git/w; echo work >wt/real/file; echo work >.git/COMMIT_EDITMSG", *lens, protect=False)
    assert result.returncode == 0, result
    assert (arena.root / "wt/real/.git").read_text().startswith("gitdir: ")
    assert (arena.root / ".git/worktrees/zreal/commondir").read_text() == "../..\n"
    assert not (arena.root / ".git/worktrees/a1/commondir").exists()
    assert (arena.root / "wt/real/file").exists() and (arena.root / ".git/COMMIT_EDITMSG").exists()


@pytest.mark.parametrize("name", ["-o", "-", "--json", "-O"])
def test_k16_a_workspace_id_is_no_option(arena, name):
    project = json.loads(arena.cordon("project", "create", "p", "--isolation", "--json").stdout)["id"]
    for words in (["workspace", "create", project, f"--id={name}"], ["session", "start", project, f"--workspace={name}", "--create-workspace", "--", "true"]):
        result = arena.cordon(*words)
        assert result.returncode != 0 and not os.path.lexists(arena.box.state / "projects" / project / "workspaces" / name.lower()), result
    assert arena.cordon("workspace", "create", project, "--id=o-").returncode == 0


# ---- K11: a transcript that the agent writes into ----

FORGED = "[state] the session ended: completed"


def test_k11_lines_of_the_agent_are_marked_where_cordon_speaks_too(arena):
    project = json.loads(arena.cordon("project", "create", "p", "--json").stdout)["id"]
    script = f"echo '{FORGED}'; echo '{FORGED}' >&2; printf 'open\\r' >&2; exit 3"
    start = ("session", "start", project, "--message", "m\n[state] forged")
    assert arena.cordon(*start, "--", "/bin/sh", "-c", script, input="").returncode == 3
    session = json.loads(arena.cordon("session", "list", "--json").stdout)["sessions"][0]["session_id"]
    apart = arena.cordon("session", "output", session)
    assert apart.stdout == FORGED + "\n"  # a stream that is the agent's alone is passed on as it is
    lines = apart.stderr.splitlines()
    assert [line for line in lines if FORGED in line] == ["| " + FORGED] and "| open\\r" in lines, lines
    assert {"[message] m", "[message] [state] forged"} <= set(lines) and all(line.startswith(("| ", "[")) for line in lines), lines
    both = arena.box.path / "both"
    with open(both, "wb") as file:
        process = arena.cordon.start("session", "output", session, stdout=file, stderr=file)
        assert process.wait(30) == 0
    lines = both.read_text().splitlines()
    assert lines.count("| " + FORGED) == 2 and FORGED not in lines and all(line.startswith(("| ", "[")) for line in lines), lines
    followed = arena.cordon("session", "output", session, "--follow")
    assert followed.stdout == FORGED + "\n" and followed.raw_stderr == f"{FORGED}\nopen\r".encode()


# ---- K12: sockets and FIFOs of the host in what may only be read ----

CONNECT = """
import socket
def connect(path):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM); s.settimeout(2); s.connect(path); s.sendall(b'x')
def datagram(path):
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', path)
def write(path):
    os.write(os.open(path, os.O_WRONLY | os.O_NONBLOCK), b'x')
"""


class Listener:
    """A service of the host: a stream and a datagram socket and a FIFO in a directory, and what reached them."""

    def __init__(self, box, directory):
        path = box.mkdir(directory)
        here = os.getcwd()
        os.chdir(path)  # names of sockets are short
        try:
            self.stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.stream.bind("stream")
            self.stream.listen(1)
            self.datagram = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.datagram.bind("datagram")
            os.mkfifo("fifo")
            self.fifo = os.open("fifo", os.O_RDONLY | os.O_NONBLOCK)
        finally:
            os.chdir(here)
        self.path = path
        for name in ("stream", "datagram", "fifo"):
            os.chmod(path / name, 0o777)
        box.own(path)

    def reached(self):
        found = set()
        for sock, name, take in ((self.stream, "stream", "accept"), (self.datagram, "datagram", "recv")):
            sock.setblocking(False)
            try:
                getattr(sock, take)(*([] if take == "accept" else [9]))
                found.add(name)
            except BlockingIOError:
                pass
        try:
            if os.read(self.fifo, 9):
                found.add("fifo")
        except BlockingIOError:
            pass
        return found

    def close(self):
        self.stream.close()
        self.datagram.close()
        os.close(self.fifo)


def knock(path):
    return (f"os.chdir({str(path)!r})\nattempt('stream', lambda: connect('stream'))\nattempt('datagram', lambda: datagram('datagram'))\n"
            "attempt('fifo', lambda: write('fifo'))\n")


@pytest.fixture
def listener(box):
    made = []

    def make(directory):
        made.append(Listener(box, directory))
        return made[-1]

    yield make
    for one in made:
        one.close()


@EITHER
@pytest.mark.parametrize("place, options", [
    ("repo/.claude/run", []),
    ("repo/held/a/b", ["--protect", "held"]),
    ("repo/look", ["--rw", "src", "--ro", "look"]),
    ("repo/look/deep/er", ["--ro", ".", "--rw", "src"]),
    ("repo/all", ["--read-only"]),
    ("elsewhere/x", ["--share", "ELSEWHERE:ro"]),
], ids=["default", "protected", "ro-grant", "ro-below", "read-only", "share"])
def test_k12_services_in_what_may_only_be_read_are_out_of_reach(arena, listener, lens, place, options):
    service = listener(place)
    options = [word.replace("ELSEWHERE", str(arena.box.path / "elsewhere")) for word in options]
    result = arena.py(CONNECT + knock(service.path), *options, *lens, protect=False)
    assert result.returncode == 0 and set(answers(result)) == {"stream", "datagram", "fifo"}, result
    assert "done" not in answers(result).values() and service.reached() == set(), result
    # The host's own are untouched.
    assert sorted(path.name for path in service.path.iterdir()) == ["datagram", "fifo", "stream"]


@pytest.mark.parametrize("options", [[], ["--ro", ".", "--rw", "src"]], ids=["root", "grant"])
def test_k12_where_the_agent_may_write_it_may_connect(arena, listener, options):
    service = listener("repo/src/run")
    result = arena.py(CONNECT + knock(service.path), *options, protect=False)
    assert set(answers(result).values()) == {"done"} and service.reached() == {"stream", "datagram", "fifo"}, result


def test_k12_the_look_is_bounded_and_says_so(arena, listener):
    service = listener("repo/look")
    for i in range(40):
        arena.box.mkdir(f"repo/look/{i}")
        for k in range(40):
            (arena.root / f"look/{i}/{k}").touch()
    result = arena.py(CONNECT + knock(service.path), "--ro", "look", "--rw", "src", protect=False)
    assert "done" not in answers(result).values() and service.reached() == set(), result
    plan = arena.cordon("run", "--root", str(arena.root), "--ro", "look", "--rw", "src", "--dry-run", "--json", "--", "true").json()
    assert any("look" in note and "sockets" in note for note in plan["notes"])
    masked = {step["path"] for step in plan["steps"] if step["step"] == "mask"}
    assert masked >= {str(service.path / name) for name in ("stream", "datagram", "fifo")}


# ---- K13: keys beside certificates, and what proc tells root ----

PKI = {
    "pki/ca-trust/extracted/pem/tls-ca-bundle.pem": (0o444, "CERTIFICATES"),
    "pki/ca-trust/source/anchors/own.pem": (0o644, "SECRET source"),
    "pki/tls/private/localhost.key": (0o600, "SECRET key"),
    "pki/tls/certs/combined.pem": (0o600, "SECRET combined"),
    "pki/tls/certs/open.pem": (0o644, "SECRET open"),
    "pki/tls/openssl.cnf": (0o644, "OPENSSL"),
    "pki/nssdb/key4.db": (0o600, "SECRET db"),
    "pki/java/keystore": (0o600, "SECRET store"),
    "letsencrypt/live/x/privkey.pem": (0o600, "SECRET le"),
    "ssh/ssh_host_ed25519_key": (0o600, "SECRET ssh"),
    "ssl/private/ssl-cert.key": (0o640, "SECRET ssl"),
    "java-17-openjdk/management/jmxremote.password": (0o600, "SECRET jmx"),
    "java-17-openjdk/net.properties": (0o644, "JAVA"),
    "java-21-openjdk/net.properties": (0o644, "SECRET closed directory"),
    "fonts/font.conf": (0o644, "FONT"),
    "gai.conf": (0o600, "SECRET gai"),
}


@pytest.fixture
def other_etc(box):
    """`run(script)`: in a sandbox of the caller on a machine with this /etc, as Fedora and RHEL have it."""
    etc = box.path / "etc"
    for name, (mode, text) in PKI.items():
        path = etc / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
        path.chmod(mode)
    (etc / "java-21-openjdk").chmod(0o750)
    (etc / "pki/java/cacerts").symlink_to("/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem")
    (etc / "pki/tls/certs/ca-bundle.crt").symlink_to("../../ca-trust/extracted/pem/tls-ca-bundle.pem")
    (etc / "pki/tls/cert.pem").symlink_to("/etc/pki/tls/certs/ca-bundle.crt")
    (etc / "ssl/certs").symlink_to("/etc/pki/tls/certs")
    box.own(box.mkdir("work"))

    def run(script):
        inner = [str(box.bin / "cordon"), "run", "--root", str(box.path / "work"), "--", "/bin/sh", "-c", script]
        become = ["setpriv", f"--reuid={box.who.uid}", f"--regid={box.who.gid}", "--clear-groups"] if os.getuid() == 0 and not box.who.is_root else []
        words = ["unshare", "-m" if os.getuid() == 0 else "-Urm", "sh", "-c", 'mount --bind "$0" /etc && exec "$@"', str(etc), *become, *inner]
        return subprocess.run(words, env=box.environment(), cwd=box.path, capture_output=True, text=True, timeout=60, check=False)

    return run


def test_k13_certificates_are_shown_and_the_keys_beside_them_are_not(other_etc):
    result = other_etc("cat /etc/ssl/certs/ca-bundle.crt /etc/pki/tls/cert.pem /etc/pki/tls/openssl.cnf /etc/pki/java/cacerts /etc/java-17-openjdk/net.properties /etc/fonts/font.conf; "
                       "find /etc -type f 2>/dev/null | while read -r f; do cat \"$f\" 2>/dev/null; done; ls -R /etc")
    assert result.returncode == 0 and "SECRET" not in result.stdout, result
    assert result.stdout.startswith("CERTIFICATES\nCERTIFICATES\nOPENSSL\nCERTIFICATES\nJAVA\nFONT\n"), result
    for name in ("localhost.key", "combined.pem", "open.pem", "anchors", "nssdb", "letsencrypt", "ssh", "private"):
        assert name not in result.stdout, result


TELLS = ["allocinfo", "kallsyms", "kcore", "key-users", "keys", "kmsg", "kpagecgroup", "kpagecount", "kpageflags", "latency_stats", "pagetypeinfo",
         "sched_debug", "slabinfo", "timer_list", "vmallocinfo", "vmcore"]


def test_k13_proc_tells_root_no_more_than_others(arena):
    script = "import os\nfor n in %r:\n    attempt(n, lambda: os.read(os.open('/proc/' + n, os.O_RDONLY | os.O_NONBLOCK), 4096))\n" % TELLS
    script += "attempt('meminfo', lambda: open('/proc/meminfo').read())\nattempt('self', lambda: open('/proc/self/status').read())\n"
    script += "attempt('unmask', lambda: os.unlink('/proc/keys'))\n"
    result = arena.py(script, protect=False)
    got = answers(result)
    assert got["meminfo"] == got["self"] == "done" and got["unmask"] != "done", result
    may = set() if arena.box.who.is_root else {name for name in TELLS if os.path.exists(f"/proc/{name}") and os.stat(f"/proc/{name}").st_mode & 0o004}
    assert {name for name in TELLS if got[name] == "done"} <= may, result


# ---- K14: gitlinks and nested repositories that have git execute something ----

def git_repo(arena, marker):
    """A real outer repository with a commit, and a script that shows that it was executed."""
    script = arena.box.write("evil", f"#!/bin/sh\ntouch {marker}\n", mode=0o755)
    arena.box.run("git", "init", "-q", "-b", "main", str(arena.root))
    arena.box.run("git", "-C", str(arena.root), "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "m")
    return script


GIT = "git -c user.name=a -c user.email=a@b -c init.defaultBranch=main"
NEST = f"{GIT} init -q nested && {GIT} -C nested commit -q --allow-empty -m n"


@EITHER
def test_k14_a_nested_repository_that_executes_is_told_without_being_asked(arena, lens):
    marker = arena.box.path / "executed"
    script = git_repo(arena, marker)
    result = arena.sh(f"{NEST} && git -C nested config core.fsmonitor {script} && git add nested 2>/dev/null", "--no-summary", *lens, protect=False)
    assert result.returncode == 0, result
    said = [line for line in result.stderr.splitlines() if "WARNING" in line]
    assert any("nested/.git" in line and "core.fsmonitor" in line for line in said), result
    assert any("nested is a new gitlink" in line for line in said) and len(said) == 2, result
    recorded = [json.loads(line) for line in arena.cordon("audit", "--json").stdout.splitlines()][-1]
    assert {item["path"] for item in recorded["detail"]["repositories"]} == {"nested", "nested/.git"}
    # It is no false alarm: git status in the outer repository executes it.
    arena.box.run("git", "-C", str(arena.root), "-c", "safe.directory=*", "status", cwd=arena.root)
    assert marker.exists()
    # Told once: the next run, which leaves all as it is, says nothing.
    again = arena.sh("git status >/dev/null 2>&1; echo x >src/new.c", "--no-summary", *lens, protect=False)
    assert "fsmonitor" not in again.stderr and "gitlink" not in again.stderr, again


@EITHER
@pytest.mark.parametrize("how, told", [
    ("git -C nested config core.hooksPath ../hooks", "core.hookspath"),
    ("git -C nested config filter.x.clean ./evil", "filter.x.clean"),
    ("git -C nested config include.path ../../evil.config", "include.path"),
    ("git -C nested config alias.st '!evil'", "alias.st"),
    ("printf '#!/bin/sh\\n' >nested/.git/hooks/pre-commit && chmod +x nested/.git/hooks/pre-commit", "hooks/pre-commit"),
    ("mv nested/.git nested/real && echo 'gitdir: real' >nested/.git && git -C nested config core.fsmonitor x", "core.fsmonitor"),
    ("mv nested/.git elsewhere && ln -s ../elsewhere nested/.git && git -C nested config core.sshCommand x", "core.sshcommand"),
    ("mkdir common && mv nested/.git/config common/ && cp -r nested/.git/objects nested/.git/refs common/ && echo ../../common >nested/.git/commondir && "
     "git config -f common/config core.fsmonitor x", "core.fsmonitor"),
    ("git clone -q --bare nested bare.d && git -C bare.d config core.fsmonitor x", "core.fsmonitor"),
    (f"mkdir nested/.git/rebase-merge && printf 'pick {'0' * 40}\\n\\tx touch x' >nested/.git/rebase-merge/git-rebase-todo", "nested/.git was made or changed"),
    ("mkdir .git/rebase-merge && echo 'exec touch x' >.git/rebase-merge/git-rebase-todo", "execute: rebase-merge/git-rebase-todo"),
    ("git -C nested config core.fsmonitor x && mv nested/.git/config evil && ln -s ../../evil nested/.git/config", "core.fsmonitor"),
    ("rm nested/.git/config && ln -s /etc/hosts nested/.git/config", "a file outside of the root"),
    ("mkdir away && printf '#!/bin/sh\\n' >away/pre-commit && chmod +x away/pre-commit && rm -rf nested/.git/hooks && "
     "ln -s ../../away nested/.git/hooks", "hooks/pre-commit"),
    ("rm -rf nested/.git/hooks && ln -s /usr/bin nested/.git/hooks", "hooks outside of the root"),
    ("mkdir -p parts/objects parts/refs entry && git config -f parts/config core.fsmonitor x && cp .git/HEAD entry/ && echo ../parts >entry/commondir && "
     "git -C entry config core.fsmonitor", "entry was made"),
], ids=["hooksPath", "filter", "include", "alias", "hook", "gitfile", "link", "commondir", "bare", "rebase", "rebase of the root", "linked config",
        "config outside", "linked hooks", "hooks outside", "bare with commondir"])
def test_k14_every_way_to_have_git_execute_is_told(arena, lens, how, told):
    git_repo(arena, arena.box.path / "executed")
    result = arena.sh(f"{NEST} && {how}; sleep 0.1", *lens, protect=False)
    assert result.returncode == 0 and told in result.stderr and "has git execute" in result.stderr, result


# What one run prepares is no git directory yet; the next one only has to move it, or to name it.
PREPARED = {
    "moved": ("mkdir -p n/g && git config -f n/g/config core.fsmonitor x", "mkdir n/g/objects n/g/refs && cp .git/HEAD n/g/ && mv n/g n/.git"),
    "moved hook": ("mkdir -p n/g/hooks && printf '#!/bin/sh\\n' >n/g/hooks/pre-commit && chmod +x n/g/hooks/pre-commit",
                   "mkdir n/g/objects n/g/refs && cp .git/HEAD n/g/ && mv n/g n/.git"),
    "gitfile": ("mkdir n g && git config -f g/config core.fsmonitor x", "mkdir g/objects g/refs && cp .git/HEAD g/ && echo 'gitdir: ../g' >n/.git"),
    "commondir": ("mkdir n c && git config -f c/config core.fsmonitor x",
                  "mkdir n/.git c/objects c/refs && cp .git/HEAD n/.git/ && echo ../../c >n/.git/commondir"),
    "rebase": ("mkdir .git/later && echo 'exec touch x' >.git/later/git-rebase-todo", "mv .git/later .git/rebase-merge"),
}


@pytest.mark.parametrize("how", PREPARED)
def test_k14_what_an_earlier_run_prepared_is_told(arena, how):
    git_repo(arena, arena.box.path / "executed")
    first, then = PREPARED[how]
    result = arena.sh(f"{first}; sleep 0.1", protect=False)
    assert result.returncode == 0 and "has git execute" not in result.stderr, result
    result = arena.sh(f"{then} && sleep 0.1", protect=False)
    assert result.returncode == 0 and f"{'.git' if how == 'rebase' else 'n/.git'} was made or changed, and has git execute" in result.stderr, result


@pytest.mark.parametrize("mode", ["plain", "view"])
def test_k14_a_repository_in_a_share_is_told(arena, mode):
    share = arena.box.mkdir("area")
    options = (*RUNS[mode], "--share", f"{share}:/area", "--home", str(arena.box.mkdir("other-home")))
    result = arena.sh("for d in /area ~; do git init -q $d/n && git -C $d/n config core.fsmonitor x; done; sleep 0.1", *options, protect=False)
    said = sorted(line.split("WARNING: ")[1] for line in result.stderr.splitlines() if "has git execute" in line)
    assert said == [f"{arena.box.path}/{name}/n/.git was made or changed, and has git execute: core.fsmonitor" for name in ("area", "other-home")], result
    recorded = [json.loads(line) for line in arena.cordon("audit", "--json").stdout.splitlines()][-1]
    assert {"path": f"{share}/n/.git", "executes": "core.fsmonitor", "gitlink": False} in recorded["detail"]["repositories"]
    again = arena.sh("touch /area/x; git -C /area/n status >/dev/null; sleep 0.1", *options, protect=False)
    assert again.returncode == 0 and "has git execute" not in again.stderr, again


def test_k14_a_rebase_that_the_host_began_in_a_nested_repository_is_not_told(arena):
    git_repo(arena, arena.box.path / "executed")
    assert arena.sh(NEST, protect=False).returncode == 0
    todo = arena.box.write("repo/nested/.git/rebase-merge/git-rebase-todo", "exec make\n")
    # What changed in the same tick of the clock in which a run starts counts as the run's.
    poll(lambda: time.clock_gettime_ns(CLOCK_REALTIME_COARSE) > todo.stat().st_ctime_ns)
    result = arena.sh(f"echo x >nested/new && git -C nested add new && {GIT} -C nested commit -q -m new; sleep 0.1", protect=False)
    assert result.returncode == 0 and "has git execute" not in result.stderr, result


def test_k14_a_rebase_in_a_linked_worktree_is_told(arena):
    git_repo(arena, arena.box.path / "executed")
    arena.box.run("git", "-C", str(arena.root), "-c", "safe.directory=*", "worktree", "add", "-q", "--detach", str(arena.box.path / "linked"))
    result = arena.cordon("run", "--", "sh", "-c", 'g=$(git rev-parse --git-dir) && mkdir $g/rebase-merge && echo "x touch y" >$g/rebase-merge/git-rebase-todo; sleep 0.1',
                          cwd=arena.box.path / "linked")
    assert result.returncode == 0 and f"{arena.root}/.git/worktrees/linked was made or changed, and has git execute: rebase-merge/git-rebase-todo" in result.stderr, result


def test_k14_a_rebase_that_would_execute_is_told_behind_many_names(arena):
    """A run that ends at once leaves little time to look around."""
    git_repo(arena, arena.box.path / "executed")
    assert arena.sh("mkdir $(seq 3000)", protect=False).returncode == 0
    result = arena.sh("mkdir .git/rebase-merge && echo 'exec touch x' >.git/rebase-merge/git-rebase-todo", protect=False)
    assert result.stderr.count("rebase-merge/git-rebase-todo") == 1, result


@EITHER
def test_k14_ordinary_work_with_repositories_is_not_told(arena, lens):
    git_repo(arena, arena.box.path / "executed")
    result = arena.sh(f"{NEST} && git -C nested config core.fsmonitor false && git -C nested config alias.st status && git clone -q nested copy && "
                      f"{GIT} worktree add -q --detach wt && echo x >wt/f && git -C wt add f && {GIT} -C wt commit -q -m f && echo y >g && git add g && "
                      f"{GIT} commit -q -m g && mkdir .git/rebase-merge && printf 'pick x exec y\\n# exec z\\n' >.git/rebase-merge/git-rebase-todo && sleep 0.1", *lens,
                      protect=False)
    assert result.returncode == 0 and "WARNING" not in result.stderr and "gitlink" not in result.stderr, result


@pytest.mark.parametrize("version", [2, 4])
def test_k14_gitlinks_are_found_in_every_form_of_the_index(arena, version):
    git_repo(arena, arena.box.path / "executed")
    for i in range(200):
        arena.box.write(f"repo/many/dir{i % 7}/file{i}", "x\n")
    arena.box.run("git", "-C", str(arena.root), "-c", "safe.directory=*", "add", "many")
    result = arena.sh(f"{NEST} && git update-index --index-version {version} && git add nested 2>/dev/null && git update-index --split-index", protect=False)
    assert result.returncode == 0 and result.stderr.count("is a new gitlink") == 1, result


def test_k14_hostile_metadata_ends_nothing(arena):
    """Not a crash, not a hang, no reading of FIFOs, no following out of the root."""
    arena.box.write("outside/config", "[core]\n\tfsmonitor = SECRET-KEY\n")
    arena.box.mkdir("repo/n")
    script = ("import struct\nos.makedirs('n/.git/hooks', exist_ok=True)\nos.mkfifo('n/.git/config')\nos.symlink('/dev/zero', 'n/.git/hooks/pre-push')\n"
              "os.makedirs('m'); open('m/.git', 'w').write('gitdir: ' + '../' * 200 + 'x' * 300)\n"
              "os.makedirs('o'); os.symlink('o', 'o/.git')\n"
              f"os.makedirs('p/.git'); os.symlink({str(arena.box.path / 'outside/config')!r}, 'p/.git/config')\n"
              "os.makedirs('q/.git'); open('q/.git/config', 'w').write('[core]\\n fsmonitor = \\x1b[31mx\\n[a \"\\x1b[2J\"]\\n cmd = y\\n')\n"
              "entry = lambda name: b'\\0' * 24 + struct.pack('>I', 0o160000) + b'\\0' * 32 + struct.pack('>H', len(name)) + name + b'\\0' * 8\n"
              "name = b'e\\x1b[31mvil/../../../etc'\n"
              "open('.git/index', 'wb').write(b'DIRC' + struct.pack('>II', 2, 0xffffffff) + entry(name) * 3)\n")
    result = arena.py(script, protect=False)
    assert result.returncode == 0 and "SECRET-KEY" not in result.stderr and "\x1b" not in result.stderr, result
    assert "q/.git" in result.stderr and "n/.git" in result.stderr and ".git/index was changed, and can't be read" in result.stderr, result
    assert all(line.startswith("[WORKSPACE]") for line in result.stderr.splitlines()), result


def test_k14_a_session_says_it_in_its_log(arena):
    project = json.loads(arena.cordon("project", "create", "p", "--isolation", "--json").stdout)["id"]
    assert arena.cordon("session", "start", project, "--", "/bin/sh", "-c", f"{NEST} && git -C nested config core.fsmonitor evil", input="").returncode == 0
    session = json.loads(arena.cordon("session", "list", "--json").stdout)["sessions"][0]["session_id"]
    assert "[warning] nested/.git was made or changed, and has git execute: core.fsmonitor" in arena.cordon("session", "output", session).stderr
    assert arena.cordon("run", "--root", str(arena.root), "--json", "--", "/bin/sh", "-c", f"{NEST} && git -C nested config core.pager evil", cwd=arena.root).json("stderr")[
        "repositories"] == [{"path": "nested/.git", "executes": "core.pager", "gitlink": False}]


# ---- what is hidden stays hidden in a directory that is protected ----

@EITHER
def test_what_is_denied_in_a_protected_directory_stays_denied(arena, lens):
    arena.box.write("repo/conf/secret.key", "SECRET\n")
    arena.box.write("repo/conf/deep/closed/file", "SECRET\n")
    arena.box.write("repo/conf/open", "open\n")
    result = arena.sh("cat conf/open conf/secret.key conf/deep/closed/file; echo x >conf/open; ls conf/deep", "--protect", "conf", "--deny", "conf/secret.key",
                      "--deny", "conf/deep/closed", *lens, protect=False)
    assert result.stdout.startswith("open\n") and "SECRET" not in result.stdout, result
    assert (arena.root / "conf/open").read_text() == "open\n"


@EITHER
def test_the_store_stays_hidden_in_a_protected_directory(box, cordon, lens):
    home = box.mkdir("household")
    store = box.mkdir("household/.local/share/cordon", mode=0o700)
    box.write("household/.local/share/notes", "notes\n")
    box.link("household/.claude/all", "../.local")
    for options in (["--protect", ".local"], []):
        result = cordon("run", "--root", str(home), *options, *lens, "--", "/bin/sh", "-c", "cat .local/share/notes; ls -A .local/share/cordon; ls .local/share/cordon/state; "
                        "echo x >.local/share/notes", cwd=home, env={"CORDON_HOME": str(store), "HOME": str(home)})
        assert result.stdout == "notes\n" and (home / ".local/share/notes").read_text() == "notes\n", result
    assert (store / "state" / "audit").is_dir()
