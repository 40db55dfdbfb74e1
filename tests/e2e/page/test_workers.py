# SPDX-License-Identifier: Apache-2.0
"""The child processes that make pages: what they have, what bounds them, and what happens to an action when the server ends."""
import fcntl
import json
import os
import random
import re
import signal
import socket
import struct
import threading
import time

import pytest

from support import poll
from views import View


def children(pid):
    return [int(child) for child in open(f"/proc/{pid}/task/{pid}/children").read().split()]


@pytest.fixture
def server(cordon, page):
    """The process of the server that `cordon open` has started."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(cordon.box.state / "state" / "serve" / "control"))
        return int.from_bytes(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], "little")


def waits_for_a_lock(pid):
    return any(words[1] == "->" and words[5] == str(pid) for words in map(str.split, open("/proc/locks")))


def held(cordon, page):
    """The lock of the approvals: whoever answers one waits for it."""
    answer = f"token={page.token()}&id={'0' * 32}&answer=deny".encode()
    assert page.raw("POST", "/approvals", None, answer).status == 404  # makes the directory
    lock = open(cordon.box.state / "state" / "approvals" / "lock")
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock, answer


def test_an_action_outlives_the_end_of_the_server(cordon, page, server):
    lock, answer = held(cordon, page)
    with socket.create_connection((page.address, page.port)) as sock:
        sock.sendall(page.bytes("POST", "/approvals", None, answer))
        # Only an action that has begun goes on: one whose browser is gone before that is refused.
        child = poll(lambda: [child for child in children(server) if waits_for_a_lock(child)], 20, "the child that acts")[0]
        os.killpg(os.getpgid(server), signal.SIGINT)  # what Ctrl-C does
        poll(lambda: not os.path.exists(f"/proc/{server}") or open(f"/proc/{server}/stat").read().split()[2] == "Z", 20, "the end of the server")
    assert open(f"/proc/{child}/stat").read().split()[2] != "Z", "it goes on"

    def answers():
        log = [json.loads(line) for line in cordon("audit", "--json").stdout.splitlines()]
        return [record for record in log if record.get("detail", {}).get("tool") == "approval_answer"]

    assert len(answers()) == 1
    lock.close()
    poll(lambda: len(answers()) == 2, 20, "the end of the action")


def test_a_page_that_nobody_reads_has_bounds_and_nothing_of_the_server(box, page, server):
    box.mkdir("root")
    view = View(box, box.path / "root").work("seq 1 2000000 >many")  # more than pipe and sockets hold
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect((page.address, page.port))
        sock.sendall(page.bytes("GET", f"/changes/{view.id}/patch"))
        child = poll(lambda: children(server), 20, "the child that makes the page")[0]
        poll(lambda: "pipe" in open(f"/proc/{child}/wchan").read() or open(f"/proc/{child}/stat").read().split()[2] == "S", 20, "a full pipe")
        limits = open(f"/proc/{child}/limits").read()
        assert re.search(rf"^Max data size +{1 << 30} +{1 << 30} ", limits, re.M), limits
        held = [os.readlink(f"/proc/{child}/fd/{fd}") for fd in os.listdir(f"/proc/{child}/fd") if int(fd) > 2]
        state = str(box.state / "state")
        assert not [name for name in held if not name.startswith((state, str(box.state), "pipe:"))], held
        assert sum(name.startswith("pipe:") for name in held) == 1, held
    poll(lambda: not children(server), 20, "the end of a child whose reader has gone")


def test_actions_that_hang_leave_the_page_to_be_seen(cordon, page, server):
    lock, answer = held(cordon, page)
    socks = [socket.create_connection((page.address, page.port)) for _ in range(16)]
    for sock in socks:
        sock.sendall(page.bytes("POST", "/approvals", None, answer))
    poll(lambda: len(children(server)) == 16, 20, "sixteen actions")
    assert "What runs now" in page.get("/")
    assert page.raw("POST", "/approvals", None, answer).status == 503
    lock.close()
    for sock in socks:
        assert sock.recv(12) == b"HTTP/1.1 404"
        sock.close()


@pytest.mark.long
def test_clients_that_vanish_at_any_instant_leave_nothing_behind(cordon, page, server):
    cookie, token, files = page.cookie, page.token(), len(os.listdir(f"/proc/{server}/fd"))
    paths = ("/", "/audit", "/changes", "/loop", "/access", "/audit/export", "/approvals", "/sessions", "/events?on=audit+views", "/page/script.js", "/login?code=1")

    def visit(seed):
        pick = random.Random(seed)
        for _ in range(300):
            form = pick.random() < 0.2
            text = page.bytes("POST", "/approvals", None, f"token={pick.choice((token, '0'))}&id=0&answer=x".encode()) if form else page.bytes("GET", pick.choice(paths))
            try:
                with socket.create_connection((page.address, page.port), 20) as sock:
                    sock.sendall(text[: pick.choice((len(text), len(text), pick.randrange(len(text))))])
                    if pick.random() < 0.3:
                        sock.shutdown(socket.SHUT_WR)
                    time.sleep(pick.choice((0, 0, 0.001, 0.005, 0.02)))
                    if pick.random() < 0.5:  # a reset instead of an end
                        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            except ConnectionError:
                pass

    threads = [threading.Thread(target=visit, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    poll(lambda: not children(server), 60, "the end of all children")
    poll(lambda: len(os.listdir(f"/proc/{server}/fd")) <= files + 2, 60, "the end of all connections")
    assert page.cookie == cookie and "What runs now" in page.get("/")
