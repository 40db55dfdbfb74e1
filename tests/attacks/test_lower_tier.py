# SPDX-License-Identifier: Apache-2.0
"""L9: what the lower tier holds, where no sandbox with namespaces can be had, and what it declares that it does not hold."""
import json
import os
import pty
import socket

import pytest

from arena import PRELUDE, answers
from serving import Serve
from support import CLONE3, REFUSING

ATTACK = PRELUDE + r"""
import socket
def connect(kind):
    one = socket.socket(socket.AF_UNIX, kind)
    one.connect({service!r})
def send():
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', {service!r})
def pair():
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b'x', {service!r})
attempt('socket stream', lambda: connect(socket.SOCK_STREAM))
attempt('socket datagram', send)
attempt('socket pair', pair)
attempt('terminal read', lambda: os.open({terminal!r}, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK))
attempt('terminal write', lambda: os.open({terminal!r}, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK))
for path in ('/', '/dev/pts', '/proc/self/root', {beside!r}):
    attempt('list ' + path, lambda: os.listdir(path))
attempt('xattr path', lambda: os.setxattr({file!r}, 'user.planted', b'x'))
attempt('xattr link', lambda: os.setxattr({file!r}, 'user.planted', b'x', follow_symlinks=False))
attempt('xattr fd', lambda: os.setxattr(os.open('docs/read.txt', os.O_RDONLY), 'user.planted', b'x'))
attempt('xattr remove', lambda: os.removexattr({file!r}, 'user.there'))
"""
WORK = r"""
two = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
attempt('work pair', lambda: two[0].send(b'x'))
attempt('work write', lambda: open('src/new', 'w').write('new'))
attempt('work list', lambda: os.listdir('src'))
attempt('work mode', lambda: os.chmod('src/new', 0o755))
attempt('work times', lambda: os.utime('src/new', (1, 1)))
attempt('work null', lambda: open('/dev/null', 'w').write('x'))
"""


@pytest.fixture
def host(arena):
    """What the host has beside the workspace: a service on a path, a terminal in which somebody types, and a file."""
    arena.box.write("repo/docs/read.txt", "kept\n")
    beside = arena.box.mkdir("beside")
    file = arena.box.write("beside/file", "kept\n")
    os.setxattr(file, "user.there", b"x")
    path = str(beside / "service")
    service = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    service.bind(path)
    os.chmod(path, 0o777)
    service.listen(4)
    service.setblocking(False)
    master, slave = pty.openpty()
    os.chown(os.ttyname(slave), arena.box.who.uid, -1)
    yield {"service": path, "terminal": os.ttyname(slave), "beside": str(beside), "file": str(file)}, service
    service.close()
    os.close(master)
    os.close(slave)


def test_l9_without_namespaces_the_host_is_out_of_reach(arena, host):
    places, service = host
    script = ATTACK.format(**places) + WORK
    result = arena.box.run(*REFUSING, CLONE3, "EPERM", arena.cordon.path, "run", "--root", str(arena.root), "--best-effort", "--rw", "src", "--ro", "docs",
                           "--no-default-protect", "--result", str(arena.box.path / "result"), "--", "/usr/bin/python3", "-c", script, cwd=arena.root)
    found = answers(result)
    work = {name: value for name, value in found.items() if name.startswith("work")}
    assert len(work) == 6 and set(work.values()) == {"done"}, result
    rest = {name: value for name, value in found.items() if name not in work}
    assert len(rest) == 13 and all(value in (("EOPNOTSUPP", "ENOTSUP") if name.startswith("xattr") else ("EACCES",)) for name, value in rest.items()), rest
    with pytest.raises(BlockingIOError):
        service.accept()
    assert os.listxattr(places["file"]) == ["user.there"] and os.listxattr(arena.root / "docs/read.txt") == []
    enforcement = json.loads((arena.box.path / "result").read_text())["enforcement"]
    assert enforcement["tier"] == "landlock" and {"namespaces", "mounts", "protected_paths", "file_metadata"} <= set(enforcement["missing"]), enforcement
    assert any("AF_UNIX" in text for text in enforcement["differs"]), enforcement
    assert "not active here: namespaces, mounts, protected_paths, file_metadata" in result.stderr, result


def test_l9_control_the_same_without_cordon(arena, host):
    places, service = host
    found = answers(arena.box.run("/usr/bin/python3", "-c", ATTACK.format(**places), cwd=arena.root))
    assert len(found) == 13 and {name for name, value in found.items() if value != "done"} == {"socket datagram", "socket pair"}, found  # it is a stream
    service.accept()[0].close()


def test_l9_without_namespaces_a_program_opens_its_own_terminal(arena, host):
    places, _ = host
    master, slave = pty.openpty()
    os.chown(os.ttyname(slave), arena.box.who.uid, -1)
    script = f"echo mine >/dev/stdout; echo other >{places['terminal']}"
    result = arena.box.run(*REFUSING, CLONE3, "EPERM", arena.cordon.path, "run", "--root", str(arena.root), "--best-effort", "--rw", "src", "--no-default-protect",
                           "--", "sh", "-c", script, cwd=arena.root, stdout=slave)
    os.set_blocking(master, False)
    assert os.read(master, 100) == b"mine\r\n" and "Permission denied" in result.stderr, result
    os.close(master)
    os.close(slave)


def test_l9_without_namespaces_an_agent_does_not_answer_its_own_question(arena):
    """It is the same user as the person, sees the server's socket, and is refused before it can ask."""
    server = Serve(arena.cordon, unix=arena.root / "s.sock")
    script = PRELUDE + "import socket\nattempt('serve', lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).connect('s.sock'))\n"
    control = answers(arena.box.run("/usr/bin/python3", "-c", script, cwd=arena.root))
    result = arena.box.run(*REFUSING, CLONE3, "EPERM", arena.cordon.path, "run", "--root", str(arena.root), "--best-effort", "--rw", ".", "--no-default-protect", "--",
                           "/usr/bin/python3", "-c", script, cwd=arena.root)
    assert control == {"serve": "done"} and answers(result) == {"serve": "EACCES"}, (control, result)
    assert server.stop() == 0


def test_l9_a_stream_that_could_name_a_service_is_refused(arena, host):
    places, _ = host
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    refused = [*REFUSING, CLONE3, "EPERM", arena.cordon.path, "run", "--root", str(arena.root), "--best-effort", "--rw", "src", "--no-default-protect", "--", "true"]
    result = arena.box.run(*refused, cwd=arena.root, stdin=one)
    assert result.returncode == 125 and "standard input is a socket" in result.stderr, (result, places)
    one.close()
    other.close()
