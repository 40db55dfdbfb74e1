# SPDX-License-Identifier: Apache-2.0
"""`cordon serve` behind a real front, nginx with the lines of docs/serve.md: what it must pass on, and requests that try to hide another
one from it."""
import fcntl
import re
import shutil
import socket
import ssl
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from serving import PATIENT, Answer, Serve, Stream, read_all
from support import TOP, built_executable, callers, poll

pytestmark = pytest.mark.long  # it fetches a package
FRAMINGS = (
    b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", b"Content-Length: 5\r\nContent-Length: 0\r\n",
    b"Content-Length: 0\r\nContent-Length: 5\r\n", b"Content-Length: 0, 5\r\n", b"Content-Length: +5\r\n", b"Content-Length: 0x5\r\n", b"Content-Length:\x0b5\r\n",
    b"Content-Length : 5\r\n", b"Transfer-Encoding: xchunked\r\n", b"Transfer-Encoding: chunked, identity\r\n", b"Transfer-Encoding: identity, chunked\r\n",
    b"Transfer-Encoding:\tchunked\r\n", b"Transfer-Encoding : chunked\r\nContent-Length: 5\r\n", b"Transfer-Encoding\t: chunked\r\nContent-Length: 5\r\n",
    b"X: y\r\n Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", b"X: y\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    b"X: y\rTransfer-Encoding: chunked\r\nContent-Length: 5\r\n", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\n", b"Transfer_Encoding: chunked\r\nContent-Length: 5\r\n",
    b"Host: evil\r\nContent-Length: 5\r\n", b"Connection: Content-Length\r\nContent-Length: 5\r\n", b"Expect: 100-continue\r\nContent-Length: 5\r\n",
    b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\nContent-Length: 5\r\n",
)  # fmt: skip


@pytest.fixture
def who():
    return callers().get("user") or callers()["root"]


@pytest.fixture(scope="session")
def nginx(base_dir):
    """The program, unpacked and not installed: a package of it would start a server on the machine."""
    folder = built_executable().parent / "nginx"
    folder.mkdir(exist_ok=True)
    program = folder / "usr/sbin/nginx"
    with (folder / "lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not program.exists():
            subprocess.run(["apt-get", "download", "-q", "nginx"], cwd=folder, check=True, capture_output=True)
            subprocess.run(["dpkg-deb", "-x", str(next(folder.glob("nginx_*.deb"))), str(folder)], check=True)
    # The build may lie where only its owner can reach it.
    return shutil.copy(program, base_dir)


def documented_location(port):
    """The lines that docs/serve.md tells people to write, for our port."""
    text = (TOP / "docs" / "serve.md").read_text()
    return re.search(r"^location /mcp \{\n.*?^\}", text, re.MULTILINE | re.DOTALL)[0].replace("8080", str(port))


class Front:
    """nginx before a server: on a port, on another that keeps its connections to the server, and on a third with TLS."""

    def __init__(self, box, program, server):
        self.server = server
        self.folder = box.mkdir("front")
        self.plain, self.keeping, self.secure = (free_port() for _ in range(3))
        location = documented_location(server.port)
        kept = location.replace(f"http://127.0.0.1:{server.port}", "http://kept").replace("proxy_buffering", 'proxy_set_header Connection "";\nproxy_buffering')
        box.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "key.pem", "-out", "cert.pem",
                "-subj", "/CN=agents.example.org", "-days", "2", cwd=self.folder)
        temporary = "\n".join(f"{name}_temp_path {self.folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (self.folder / "nginx.conf").write_text(f"""
daemon off; master_process off; pid {self.folder}/pid; error_log {self.folder}/error.log;
events {{ }}
http {{
    log_format marks '$http_x_mark'; access_log {self.folder}/access.log marks;
    client_header_timeout 2s; client_body_timeout 2s; keepalive_timeout 2s;
    {temporary}
    upstream kept {{ server 127.0.0.1:{server.port}; keepalive 4; }}
    server {{ listen 127.0.0.1:{self.plain}; {location} }}
    server {{ listen 127.0.0.1:{self.keeping}; {kept} }}
    server {{ listen 127.0.0.1:{self.secure} ssl; ssl_certificate {self.folder}/cert.pem; ssl_certificate_key {self.folder}/key.pem; {location} }}
}}
""")
        self.process = box.start(str(program), "-c", str(self.folder / "nginx.conf"), "-p", str(self.folder), "-e", str(self.folder / "error.log"))
        poll(lambda: self.is_up(), PATIENT, "nginx to listen")

    def is_up(self):
        assert self.process.poll() is None, self.process.stderr.read() + (self.folder / "error.log").read_bytes()
        try:
            self.connect(self.secure).close()
            return True
        except OSError:
            return False

    def connect(self, port):
        sock = socket.create_connection(("127.0.0.1", port), 5)
        if port == self.secure:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.load_verify_locations(self.folder / "cert.pem")
            sock = context.wrap_socket(sock, server_hostname="agents.example.org")
        return sock

    def ask(self, data, port):
        """Everything that comes back, from one or several requests, until nginx closes."""
        with self.connect(port) as sock:
            try:
                sock.sendall(data)
                return read_all(sock)
            except (BrokenPipeError, ConnectionResetError, TimeoutError):
                return b""

    def seen(self):
        """The marks of all requests that nginx saw."""
        return set((self.folder / "access.log").read_text().split())


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@pytest.fixture
def front(box, cordon, nginx):
    server = Serve(cordon)
    server.token = server.make_token("--scope", "admin")
    poll(lambda: server.modern("tools/list").status == 200, PATIENT, "the token to be known")
    yield Front(box, nginx, server)
    assert server.stop() == 0, server.process.stderr.read().decode()


def project(cordon):
    return cordon("project", "create", "p", "--no-git", "--json").json()["id"]


def make_workspace(front, made, name, mark):
    params = {"name": "workspace_create", "arguments": {"project_id": made, "workspace_id": name}}
    return front.server.modern_bytes("tools/call", params, headers={"X-Mark": mark, "Connection": "close"})


def workspaces(front, made):
    return {entry["id"] for entry in front.server.did("workspace_list", project_id=made)["workspaces"]}


def test_the_documented_front_passes_on_answers_and_streams(front, cordon):
    made = project(cordon)
    for port in (front.plain, front.keeping, front.secure):
        assert Answer(front.ask(make_workspace(front, made, f"w{port}", "made"), port)).status == 200
        refused = front.server.modern_bytes("tools/list", token="wrong", headers={"Connection": "close"})
        assert Answer(front.ask(refused, port)).status == 401
        # The front sends its own Host, and Origin is passed on.
        strange = front.server.modern_bytes("tools/list", headers={"Origin": "https://evil.example", "Connection": "close"})
        assert Answer(front.ask(strange, port)).status == 403
        # A stream comes as it is written, and its end on this side is its end on the other.
        stream = Stream(front.connect(port))
        stream.sock.sendall(front.server.modern_bytes("subscriptions/listen", {"notifications": {"resourceSubscriptions": [f"cordon://project/{made}"]}}, id="l"))
        stream.wait(lambda event: event.get("method") == "notifications/subscriptions/acknowledged")
        cordon("project", "update", made, "--description", f"{port}")
        stream.wait(lambda event: event.get("method") == "notifications/resources/updated")
        stream.close()
    assert {f"w{port}" for port in (front.plain, front.keeping, front.secure)} <= workspaces(front, made)


def test_closing_a_call_at_the_front_ends_its_tree(front, cordon):
    made = project(cordon)
    call = {"name": "session_start", "arguments": {"project_id": made, "command": ["sleep", "1000"], "wait_seconds": 3600}}
    for port in (front.plain, front.keeping):
        sock = front.connect(port)
        sock.sendall(front.server.modern_bytes("tools/call", call))
        poll(lambda: front.server.did("session_list", status="active")["sessions"], PATIENT, "the session to run")
        sock.close()
        poll(lambda: not front.server.did("session_list", status="active")["sessions"], PATIENT, "the session to be stopped")


def test_no_request_is_hidden_from_the_front(front, cordon):
    """What has an effect was seen by the front as a request of its own, or the front could be led past its own rules."""
    made = project(cordon)
    base = front.server.head("POST", body=b"").replace(b"Content-Length: 0\r\n", b"")[:-2]
    tries = [(port, i, framing) for port in (front.plain, front.keeping) for i, framing in enumerate(FRAMINGS)]

    def attack(attempt):
        port, i, framing = attempt
        inner = make_workspace(front, made, f"hidden-{port}-{i}", f"hidden-{port}-{i}")
        front.ask(base + framing + f"X-Mark: outer-{port}-{i}\r\n\r\n".encode() + b"0\r\n\r\n" + inner, port)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(attack, tries))
    # The control: a plain second request on a connection is seen, and has its effect.
    first = front.server.modern_bytes("server/discover", headers={"X-Mark": "first"})
    said = front.ask(first + make_workspace(front, made, "plain", "plain"), front.plain)
    assert len(re.findall(rb"HTTP/1\.1 200", said)) == 2
    found = workspaces(front, made)
    assert "plain" in found
    # The front writes its log when an answer is sent, and not before.
    poll(lambda: {"first", "plain"} <= front.seen(), PATIENT, "the requests in the log of the front")
    seen = front.seen()
    hidden = {name for name in found if name.startswith("hidden")}
    assert hidden <= seen, hidden - seen
    assert front.server.modern("tools/list").status == 200
