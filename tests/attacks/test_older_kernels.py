# SPDX-License-Identifier: Apache-2.0
"""What holds where Landlock has no scopes (before Linux 6.12), and what differs there. `make test-kernels` runs it on such a kernel;
on a newer one it shows that nothing differs."""
import json
import os
import socket
import time

import pytest

from arena import PRELUDE, answers
from support import CLONE3, REFUSING, landlock_scopes

SCOPES = landlock_scopes()


@pytest.fixture
def services():
    """Services of the host with abstract names, one of each kind; they must get nothing."""
    name = f"cordon-older-{os.getpid()}-{time.time_ns()}"
    made = [socket.socket(socket.AF_UNIX, kind) for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM)]
    for each, kind in zip(made, ("0", "1", "datagram")):
        each.bind(f"\0{name}-{kind}")
        each.setblocking(False)
    for each in made[:2]:
        each.listen(4)
    yield name
    for ask in (made[0].accept, made[1].accept, lambda: made[2].recv(10)):
        with pytest.raises(BlockingIOError):
            ask()
    for each in made:
        each.close()


REACH = """
import socket
def stream():
    socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).connect('\\0%(name)s-0')
def datagram():
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', '\\0%(name)s-datagram')
def pair(kind, act):
    one, other = socket.socketpair(socket.AF_UNIX, kind)
    act(one)
attempt('stream', stream)
attempt('datagram', datagram)
for number, kind in enumerate((socket.SOCK_DGRAM, socket.SOCK_RAW)):
    attempt('pair sends %%d' %% number, lambda: pair(kind, lambda s: s.sendto(b'x', '\\0%(name)s-datagram')))
    attempt('pair connects %%d' %% number, lambda: pair(kind, lambda s: (s.connect('\\0%(name)s-datagram'), s.send(b'x'))))
for number, kind in enumerate((socket.SOCK_STREAM, socket.SOCK_SEQPACKET)):
    attempt('fixed pair connects %%d' %% number, lambda: pair(kind, lambda s: s.connect('\\0%(name)s-%%d' %% number)))
    attempt('fixed pair sends %%d' %% number, lambda: pair(kind, lambda s: s.send(b'x')))
"""


@pytest.mark.parametrize("net", ["host", "none"])
def test_no_kind_of_socket_reaches_an_abstract_name_of_the_host(arena, services, net):
    found = answers(arena.py(REACH % {"name": services}, "--net", net))
    fixed = {name: found.pop(name) for name in list(found) if name.startswith("fixed")}
    assert len(found) == 6 and set(found.values()) <= {"EACCES", "EPERM", "ECONNREFUSED"}, found
    assert [fixed[f"fixed pair sends {i}"] for i in (0, 1)] == ["done", "done"], fixed
    assert {fixed[f"fixed pair connects {i}"] for i in (0, 1)} == {"EISCONN" if net == "host" else "ECONNREFUSED"}, fixed


@pytest.mark.parametrize("net", ["host", "none"])
def test_sockets_work_inside_and_what_differs_is_said(arena, net):
    report = arena.box.path / "result.json"
    found = answers(arena.py("""
import socket
def serve(address):
    server = socket.socket(socket.AF_UNIX); server.bind(address); server.listen(1)
    client = socket.socket(socket.AF_UNIX); client.connect(address); client.send(b'x')
    assert server.accept()[0].recv(1) == b'x'
attempt('path', lambda: serve('/tmp/socket'))
attempt('workspace', lambda: serve('socket'))
attempt('abstract', lambda: serve('\\0cordon-own-%d' % os.getpid()))
attempt('internet', lambda: socket.create_server(('127.0.0.1', 0)))
""", "--net", net, "--result", str(report)))
    works = SCOPES or net == "none"
    assert found == {"path": "done" if works else "EACCES", "workspace": "done" if works else "EACCES",
                     "abstract": "done" if works else "EACCES", "internet": "done"}, found
    enforcement = json.loads(report.read_text())["enforcement"]
    plan = arena.cordon("run", "--root", str(arena.root), "--net", net, "--dry-run", "--json", "--", "true").json()
    assert enforcement["tier"] == "full" and enforcement["missing"] == [] and enforcement["layers"]["landlock_scopes"] is SCOPES
    assert enforcement["differs"] == plan["differs"] and ("AF_UNIX" in "".join(plan["differs"])) is not works, plan["differs"]


def test_doctor_names_the_tier_and_what_differs(arena):
    value = arena.cordon("doctor", "--json").json()
    assert value["ok"] and value["tier"] == "full", value
    assert [("AF_UNIX" in item["what"], item["use"]) for item in value["differs"]] == \
        ([] if SCOPES else [(True, "--net none, or Linux 6.12 or newer"), (False, "Linux 6.12 or newer")])
    text = arena.cordon("doctor").stdout
    assert "tier                       full\n" in text and ("on this kernel" in text) is not SCOPES, text


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_a_stream_that_is_a_socket_lends_no_way_to_the_host(arena, kind):
    """Whoever starts cordon may have such a socket; an unconnected one, or one for datagrams, could be given a name."""
    ends = [socket.socket(socket.AF_UNIX, kind)] if kind == socket.SOCK_STREAM else list(socket.socketpair(socket.AF_UNIX, kind))
    try:
        result = arena.sh("echo started", stdin=ends[0])
        if SCOPES:
            assert result.stdout == "started\n", result
        else:
            assert result.returncode == 125 and "standard input is a socket" in result.stderr and result.stdout == "", result
        with_pair = list(socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM))
        ends += with_pair
        assert arena.sh("echo started", stdin=with_pair[0]).stdout == "started\n"
    finally:
        for each in ends:
            each.close()


HAND = r"""
import signal, time
def hands():
    found = []
    for pid in os.listdir('/proc'):
        try:
            if pid.isdigit() and open('/proc/%s/comm' % pid).read() == 'cordon-hand\n':
                found.append(int(pid))
        except OSError:
            pass
    return found
def make(name):
    os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
make('first')
print('hands', len(hands()))
made = 0
for i in range(40):
    for pid in hands():
        attempt('kill', lambda: os.kill(pid, (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM)[i % 3]))
    try:
        make('file%d' % i)
        made += 1
    except PermissionError:
        pass
    for name in ('absent.md', '.git/hooks/new'):
        try:
            make(name)
            print('hole', name)
        except OSError:
            pass
print('made', made)
for i in range(100):
    try:
        make('last')
        break
    except PermissionError:
        time.sleep(0.02)
attempt('last', lambda: os.stat('last'))
# A hand that is stopped makes whoever asks wait, and nothing else.
child = os.fork()
if child == 0:
    time.sleep(0.5)
    for pid in hands():
        try: os.kill(pid, signal.SIGCONT)
        except OSError: pass
    os._exit(0)
for pid in hands():
    try: os.kill(pid, signal.SIGSTOP)
    except OSError: pass
attempt('after a stop', lambda: make('stopped'))
attempt('protected', lambda: make('absent.md'))
for pid in hands():
    try: os.kill(pid, signal.SIGSTOP)
    except OSError: pass
"""


def test_a_hand_that_the_agent_kills_or_stops_leaves_no_hole(arena, leftovers):
    """It makes entries in held directories. Before Linux 6.12 the agent, who has the same ids, can signal it."""
    result = arena.py(HAND, "--protect", "absent.md")
    found = answers(result)
    assert result.returncode == 0 and found["hands"] == "1" and found["last"] == "done" and "hole" not in result.stdout, result
    assert found["kill"] == ("EPERM" if SCOPES else "done") and found["after a stop"] == "done" and found["protected"] == "EACCES", found
    assert int(found["made"]) == 40 or not SCOPES, found
    assert not (arena.root / "absent.md").exists() and not (arena.root / ".git/hooks/new").exists()
    leftovers.assert_none()
    arena.assert_unharmed()


def test_a_stopped_hand_does_not_outlive_the_time_limit(arena, leftovers):
    began = time.monotonic()
    result = arena.py(HAND.split("made = 0")[0] + """
for pid in hands():
    attempt('stop', lambda: os.kill(pid, signal.SIGSTOP))
sys.stdout.flush()
make('never')
time.sleep(60)
""", "--protect", "absent.md", "--timeout", "3s", "--grace", "1s")
    assert result.returncode == 124 and time.monotonic() - began < 40, result
    leftovers.assert_none()
    arena.assert_unharmed()


def test_pid_1_notices_no_signal_from_inside(arena):
    result = arena.py("""
import signal
for number in range(1, 65):
    try: os.kill(1, number)
    except OSError: pass
try: os.kill(-1, signal.SIGCONT)
except OSError: pass
os.rename('src/main.c', 'src/other.c')
print('alive', os.path.exists('/proc/1'))
attempt('protected', lambda: open('AGENTS.md', 'w'))
""")
    assert result.returncode == 0 and answers(result) == {"alive": "True", "protected": "EROFS"}, result
    arena.assert_unharmed()


TRUNCATE = r"""
import glob
for name in ('AGENTS.md', '.git/config', 'deep/er/held.txt', 'docs/read.txt', '/etc/passwd', '/etc/hosts', '/usr/bin/env'):
    attempt('truncate ' + name, lambda: os.truncate(name, 0))
    for word, flags in (('read', os.O_RDONLY), ('none', 3), ('write', os.O_WRONLY)):
        attempt('open %s %s' % (word, name), lambda: os.open(name, flags | os.O_TRUNC))
os.truncate('src/main.c', 3)
os.close(os.open('src/main.c', os.O_RDONLY | os.O_TRUNC))
"""


def test_what_may_only_be_read_is_truncated_in_no_way(arena):
    """Landlock judges it from Linux 6.2 on; read-only mounts hold it everywhere."""
    (arena.root / "docs").mkdir()
    (arena.root / "docs/read.txt").write_text("kept\n")
    arena.box.own(arena.root / "docs")
    result = arena.py(TRUNCATE, "--rw", ".", "--ro", "docs")
    found = answers(result)
    assert result.returncode == 0 and len(found) == 28 and set(found.values()) <= {"EROFS", "EACCES", "EPERM", "ETXTBSY"}, result
    assert (arena.root / "docs/read.txt").read_text() == "kept\n" and (arena.root / "src/main.c").read_text() == ""
    arena.assert_unharmed()


# The lower tier: no namespaces, and so no read-only mounts.
def test_without_namespaces_too_nothing_is_truncated_and_no_socket_reached(arena, services):
    (arena.root / "docs").mkdir()
    (arena.root / "docs/read.txt").write_text("kept\n")
    arena.box.own(arena.root / "docs")
    script = REACH % {"name": services} + r"""
for word, flags in (('read', os.O_RDONLY), ('none', 3), ('write', os.O_WRONLY)):
    attempt('open ' + word, lambda: os.open('docs/read.txt', flags | os.O_TRUNC))
attempt('truncate', lambda: os.truncate('docs/read.txt', 0))
attempt('written', lambda: os.close(os.open('src/main.c', os.O_WRONLY | os.O_TRUNC)))
"""
    result = arena.box.run(*REFUSING, CLONE3, "EPERM", arena.cordon.path, "run", "--root", str(arena.root), "--best-effort", "--rw", "src", "--ro", "docs",
                           "--no-default-protect", "--", "/usr/bin/python3", "-c", PRELUDE + script, cwd=arena.root)
    found = answers(result)
    assert found.pop("written") == "done" and (arena.root / "src/main.c").read_text() == "", result
    found = {name: value for name, value in found.items() if not name.startswith("fixed")}
    assert len(found) == 10 and set(found.values()) <= {"EACCES", "EPERM"}, found
    assert (arena.root / "docs/read.txt").read_text() == "kept\n"
