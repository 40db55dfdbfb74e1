# SPDX-License-Identifier: Apache-2.0
"""An agent in a sandbox against the server: it is the same user as the person, and has the host's network."""
import json
import os
import subprocess
import sys

from serving import PATIENT, Answer, Page, Serve
from support import landlock_scopes

# Sends standard input to a socket of a path, and prints the status of the answer.
SAY = """import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
try:
    s.sendall(sys.stdin.buffer.read())
except BrokenPipeError:
    pass  # the server has said what it has to say
print(s.recv(99).split()[1].decode(), flush=True)
"""
# The same when the process that connected has ended: its child has the socket.
LEAVE = SAY.replace("try:", "import os, time\nif os.fork():\n    os._exit(0)\ntime.sleep(0.3)\ntry:")
LEAVE = f"import os, sys\ndone, told = os.pipe()\nif os.fork():\n    os.close(told)\n    sys.exit(len(os.read(done, 1)))\nos.close(done)\n{LEAVE}"
OPEN = b"POST /open HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"


def create(server, name):
    return server.modern_bytes("tools/call", {"name": "project_create", "arguments": {"name": name}})


def projects(cordon):
    return {project["name"] for project in json.loads(cordon("project", "list", "--json").stdout)["projects"]}


def test_an_agent_that_sees_a_socket_of_the_server_is_refused_there(cordon, box):
    repo = box.repo()
    server = Serve(cordon, unix=repo / "s.sock")
    net = () if landlock_scopes() else ("--net", "none")  # older kernels refuse such sockets with the host's network
    control = repo / "control"
    os.link(box.state / "state" / "serve" / "control", control)
    box.own(control)

    def inside(path, text, program=SAY):
        done = cordon("run", *net, "--root", str(repo), "--", "python3", "-c", program, str(path), input=text)
        assert done.returncode == 0, str(done)
        return done.stdout.split()

    def outside(path, text):
        return box.run("python3", "-c", SAY, str(path), input=text).stdout.split()

    for program in (SAY, LEAVE):
        assert inside(server.unix, create(server, "agent"), program) == ["403"]
        assert inside(control, OPEN, program) == ["403"]
    assert projects(cordon) == set()
    assert outside(server.unix, create(server, "person")) == ["200"] and outside(control, OPEN) == ["200"]
    assert projects(cordon) == {"person"}
    assert server.stop() == 0


def test_who_has_other_namespaces_is_refused_at_a_socket(cordon, box):
    """A mount namespace suffices, and so does a user namespace: a sandbox that somebody else made has one of them."""
    server = Serve(cordon, unix=box.path / "s.sock")
    for options in (("--user", "--map-current-user"), ("--user", "--map-current-user", "--mount")):
        done = box.run("unshare", *options, "python3", "-c", SAY, server.unix, input=create(server, "other"))
        assert done.stdout.split() == ["403"], str(done)
    if os.getuid() == 0:  # only root has one without the other
        done = subprocess.run(["unshare", "--mount", "setpriv", f"--reuid={box.who.uid}", f"--regid={box.who.gid}", "--clear-groups", sys.executable, "-c", SAY, server.unix], input=create(server, "other"), capture_output=True, timeout=PATIENT, check=True)
        assert done.stdout.split() == [b"403"], done
    assert projects(cordon) == set()
    assert server.stop() == 0


# Sends standard input to a port, and prints the answer.
ASK = "import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 20); s.sendall(sys.stdin.buffer.read()); sys.stdout.buffer.write(b''.join(iter(lambda: s.recv(65536), b'')))"


class Person(Page):
    """One whose browser is a process of the user's own; `before` is what starts it."""

    def __init__(self, cordon, *before):
        self.command = (*before, "python3", "-c", ASK)
        super().__init__(cordon)

    def raw(self, method, path, headers=None, body=b""):
        return self.ask(self.bytes(method, path, headers, body))

    def ask(self, request, run=None):
        done = (run or self.cordon.box.run)(*self.command, self.address, str(self.port), input=request)
        assert done.returncode == 0, str(done)
        return Answer(done.raw_stdout)


def test_an_agent_that_gets_the_cookie_of_the_page_can_not_use_it(cordon, box):
    """It may start a server on another port of the page's address, to which a browser sends the cookie."""
    repo = box.repo()
    page = Person(cordon)

    def inside(*command, **more):
        return cordon("run", "--root", str(repo), "--", *command, **more)

    form = page.bytes("POST", "/approvals", None, f"token={page.token()}&id=x&answer=once".encode())
    for request, status in ((page.bytes("GET", "/approvals"), 200), (form, 404)):
        refused = page.ask(request, inside)
        assert refused.status == 403 and "outside of sandboxes" in refused.body.decode(), refused
        assert page.ask(request).status == status
    page.stop()


def test_a_browser_in_a_sandbox_of_its_own_has_a_login_too(cordon):
    page = Person(cordon, "unshare", "--user", "--map-current-user")
    assert "Approvals" in page.get("/approvals")
    page.stop()
