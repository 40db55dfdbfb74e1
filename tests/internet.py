# SPDX-License-Identifier: Apache-2.0
"""An Internet for tests, made of two network namespaces: one plays the machine on which cordon runs, the other all the rest.

The rest has a DNS server (192.0.2.53) and, on every address of the documentation ranges that a name has, these servers:

  80, 8080   HTTP; answers with what it was asked, as JSON        443, 8443  the same over TLS, with a certificate of a test CA; 8443 asks for a second ClientHello
  7          echoes                                                9          accepts and never reads
  19         sends for ever                                        22         speaks first, then echoes
  3128       a proxy that knows CONNECT

A path that names a file in the directory `www` of the Internet gets that file; /files/ is for such files only. /greeting is a
WebSocket that says hello.

NAMES says which names there are. Everything that arrives there is in `Internet.log()`: queries by name, requests with server name, Host
header and address. That is the proof from outside. The machine has the test CA in its certificates and a server on its own
loopback, port 5432, which says "database of the host".

    def test_x(internet, online):     # fixtures of conftest.py; `online` is like `cordon`, as root and as an ordinary user
        r = online("run", "--net", "a.example.com", "--", "curl", "-sS", "https://a.example.com/")
        assert "a.example.com" in internet.names_asked()
"""
import base64
import ctypes
import hashlib
import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import sys
import threading

from support import Box, session_helpers

NAMES = {
    "a.example.com": ["192.0.2.10", "2001:db8::10"],
    "b.example.com": ["192.0.2.10", "2001:db8::10"],  # the neighbour, on the same addresses
    "four.example.org": ["192.0.2.20"],
    "six.example.org": ["2001:db8::20"],
    "tcp.example.com": ["192.0.2.30"],
    "xn--bcher-kva.example.com": ["192.0.2.31"],
    "loopback.example.net": ["127.0.0.1", "::1"],
    "mapped.example.net": ["::ffff:127.0.0.1"],
    "metadata.example.net": ["169.254.169.254"],
    "private.example.net": ["10.77.0.1"],
    "machine.example.net": ["203.0.113.2"],  # a public address of the machine itself
    "both.example.net": ["127.0.0.1", "192.0.2.32"],
    "proxy.example.net": ["10.77.0.1"],
}
WEBSOCKET = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # of RFC 6455
WILD = ("wild.example.com", "192.0.2.40")  # and every name below it
FLIP = ("flip.example.net", ["192.0.2.50", "127.0.0.1"])  # one address after the other, with a TTL of 0
ADDRESSES = ["192.0.2.53", "192.0.2.10", "192.0.2.20", "192.0.2.30", "192.0.2.31", "192.0.2.32", "192.0.2.40", "192.0.2.50", "198.51.100.1",
             "169.254.169.254", "2001:db8::10", "2001:db8::20"]


# ---- the servers; this file is also the program that runs them ----


class Servers:
    def __init__(self, base):
        self.base = pathlib.Path(base)
        self.out = (self.base / "log").open("a", buffering=1)

    def note(self, **entry):
        self.out.write(json.dumps(entry) + "\n")

    def addresses(self, name):
        if name == FLIP[0]:
            times = (self.base / "log").read_text().count(FLIP[0])
            return [FLIP[1][min((times - 1) // 2, 1)]], 0  # A and AAAA are asked for together
        if name == WILD[0] or name.endswith("." + WILD[0]):
            return [WILD[1]], 60
        return NAMES.get(name), 60

    def dns(self, query):
        """The answer to one query."""
        at, labels = 12, []
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]])
            at += 1 + query[at]
        kind = int.from_bytes(query[at + 1:at + 3], "big")
        name = b".".join(labels).decode("latin-1").lower()
        self.note(dns=name, type=kind)
        found, ttl = self.addresses(name)
        family = {1: socket.AF_INET, 28: socket.AF_INET6}.get(kind)
        wanted = [a for a in found or [] if family and (":" in a) == (family == socket.AF_INET6)]
        head = query[:2] + bytes([0x81, 0x80 if found else 0x83]) + b"\0\1" + len(wanted).to_bytes(2, "big") + b"\0\0\0\0"
        answers = b"".join(
            b"\xc0\x0c" + kind.to_bytes(2, "big") + b"\0\1" + ttl.to_bytes(4, "big") + len(raw).to_bytes(2, "big") + raw
            for raw in (socket.inet_pton(family, a) for a in wanted))
        return head + query[12:at + 5] + answers

    async def serve_dns_stream(self, reader, writer):
        try:
            while True:
                n = int.from_bytes(await reader.readexactly(2), "big")
                answer = self.dns(await reader.readexactly(n))
                writer.write(len(answer).to_bytes(2, "big") + answer)
        except Exception:
            writer.close()

    async def serve_http(self, reader, writer):
        import asyncio
        local = writer.get_extra_info("sockname")
        secure = writer.get_extra_info("ssl_object")
        sni = getattr(secure, "asked_name", None) if secure else None
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                lines = head.split("\r\n")
                fields = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:] if line)}
                body = b""
                if "content-length" in fields:
                    body = await reader.readexactly(int(fields["content-length"]))
                seen = {"request": lines[0], "host": fields.get("host"), "sni": sni, "address": local[0].replace("::ffff:", ""),
                        "port": local[1], "fields": fields, "body": body.decode("latin-1")}
                self.note(**seen)
                path = lines[0].split(" ")[1]
                if path.startswith("/stream"):
                    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n")
                    for i in range(3):
                        writer.write(b"7\r\nevent%d\n\r\n" % i)
                        await writer.drain()
                        await asyncio.sleep(0.2)
                    writer.write(b"0\r\n\r\n")
                elif fields.get("upgrade", "").lower() == "websocket" and path == "/socket":
                    writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
                    while data := await reader.read(65536):
                        writer.write(b"ws:" + data)
                elif fields.get("upgrade", "").lower() == "websocket" and path == "/greeting":
                    accept = base64.b64encode(hashlib.sha1((fields["sec-websocket-key"] + WEBSOCKET).encode()).digest())
                    writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
                                 + accept + b"\r\n\r\n\x81\x05hello")
                elif (self.base / "www" / path.partition("?")[0].lstrip("/")).is_file():
                    text = (self.base / "www" / path.partition("?")[0].lstrip("/")).read_bytes()
                    kind = b"text/html" if path.endswith(".html") else b"application/octet-stream"
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (kind, len(text)) + text)
                elif path.startswith("/files/"):
                    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                elif path.startswith("/bytes/"):
                    n = int(path.split("/")[2])
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % n)
                    block = b"x" * 65536
                    while n > 0:
                        writer.write(block[:n])
                        n -= len(block)
                        await writer.drain()
                else:
                    text = json.dumps(seen).encode()
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
                await writer.drain()
        except Exception:
            writer.close()

    async def serve_echo(self, reader, writer):
        self.note(echo=writer.get_extra_info("sockname")[0].replace("::ffff:", ""), port=writer.get_extra_info("sockname")[1])
        if writer.get_extra_info("sockname")[1] == 22:
            writer.write(b"SSH-2.0-test\r\n")
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()

    async def serve_nothing(self, reader, writer):
        import asyncio
        writer.get_extra_info("socket")
        self.note(silent=True)
        writer.transport.pause_reading()
        await asyncio.sleep(3600)

    async def serve_forever(self, reader, writer):
        try:
            while True:
                writer.write(b"y" * 65536)
                await writer.drain()
        except Exception:
            writer.close()

    async def serve_proxy(self, reader, writer):
        import asyncio
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        target = head.split(" ")[1]
        self.note(proxy=target, authorization="Proxy-Authorization" in head)
        name, _, port = target.rpartition(":")
        there = await asyncio.open_connection(self.addresses(name)[0][0], int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

        async def copy(source, sink):
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
            sink.close()
        await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))

    async def run(self):
        import asyncio
        import ssl
        loop = asyncio.get_running_loop()

        def asked(sock, name, _):
            sock.asked_name = name
            self.note(hello=name)

        # The second one knows no group for which a client sends its key at once, so that it asks for another ClientHello.
        contexts = [ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) for _ in range(2)]
        for context in contexts:
            context.load_cert_chain(self.base / "cert.pem", self.base / "key.pem")
            context.sni_callback = asked
        contexts[1].set_ecdh_curve("prime256v1")

        class Datagrams(asyncio.DatagramProtocol):
            def connection_made(protocol, transport):
                protocol.transport = transport

            def datagram_received(protocol, data, peer):
                protocol.transport.sendto(self.dns(data), peer)
        await loop.create_datagram_endpoint(Datagrams, ("192.0.2.53", 53))
        await asyncio.start_server(self.serve_dns_stream, "192.0.2.53", 53)
        for port, serve, tls in ((80, self.serve_http, None), (8080, self.serve_http, None), (443, self.serve_http, contexts[0]),
                                 (8443, self.serve_http, contexts[1]), (7, self.serve_echo, None), (22, self.serve_echo, None),
                                 (9, self.serve_nothing, None), (19, self.serve_forever, None), (3128, self.serve_proxy, None)):
            listener = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=4096)
            await asyncio.start_server(serve, sock=listener, ssl=tls, limit=1 << 20)
        print("ready", flush=True)
        await asyncio.sleep(86400)


def serve(base):
    import asyncio
    asyncio.run(Servers(base).run())


def serve_machine():
    """The machine's own database, on its loopback and on its public address."""
    listener = socket.create_server(("", 5432), family=socket.AF_INET6, dualstack_ipv6=True)
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        try:
            connection.sendall(b"database of the host\n")
        except OSError:
            pass
        connection.close()


# ---- the namespaces ----


def run(*args, **options):
    return subprocess.run([str(a) for a in args], check=True, capture_output=True, **options)


class Internet:
    """Needs root. Close it, or use it with `with`."""

    def __init__(self, base):
        self.base = pathlib.Path(base)
        self.base.mkdir(mode=0o755, exist_ok=True)
        self.processes = []
        self.make_certificates()
        (self.base / "log").write_text("")
        (self.base / "resolv.conf").write_text("nameserver 192.0.2.53\n")
        (self.base / "hosts").write_text("127.0.0.1 localhost\n::1 localhost\n192.0.2.33 known.example.net\n")
        self.rest = self.hold("unshare", "--net", "sh", "-c", "ip link set lo up; echo ready; read line; exec python3 -E "
                              f"{__file__} serve {self.base}")
        mounts = "; ".join(f"mount --bind {self.base / name} {path}" for name, path in (
            ("resolv.conf", "$(readlink -f /etc/resolv.conf)"), ("hosts", "/etc/hosts"), ("bundle.crt", "/etc/ssl/certs/ca-certificates.crt")))
        self.machine = self.hold("unshare", "--net", "--mount", "--propagation", "slave", "sh", "-ec",
                                 f"ip link set lo up; {mounts}; echo ready; read line; exec python3 -E {__file__} machine")
        self.connect()
        for process in (self.rest, self.machine):
            process.stdin.write(b"\n")
            process.stdin.flush()
            self.await_ready(process)

    def hold(self, *args):
        process = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self.processes.append(process)
        session_helpers.add(process.pid)
        self.await_ready(process)
        return process

    def serve_more(self, *args):
        """Starts a further server in the rest of the world; it prints "ready" when it is."""
        return self.hold("nsenter", f"--net=/proc/{self.rest.pid}/ns/net", *map(str, args))

    def listen(self, port):
        """A socket of this process that listens with TLS in the rest of the world."""
        made = []

        def make():  # a namespace is a thread's own
            with open(f"/proc/{self.rest.pid}/ns/net", "rb") as there:
                assert ctypes.CDLL(None, use_errno=True).setns(there.fileno(), 0x40000000) == 0  # CLONE_NEWNET
            made.append(socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True))
        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.base / "cert.pem", self.base / "key.pem")
        return context.wrap_socket(made[0], server_side=True)

    @staticmethod
    def await_ready(process):
        line = process.stdout.readline()
        assert line == b"ready\n", f"{process.args} did not begin: {line!r}"

    def connect(self):
        """A cable between the two, and routes. Linux calls an address of this machine local, so they must be two."""
        rest, machine = self.rest.pid, self.machine.pid
        run("ip", "link", "add", "cable0", "netns", rest, "type", "veth", "peer", "name", "cable1", "netns", machine)

        def there(pid, *lines):
            run("nsenter", f"--net=/proc/{pid}/ns/net", "ip", "-batch", "-", input="\n".join(lines).encode())
        there(rest, "addr add 10.77.0.1/24 dev cable0", "addr add fd77::1/64 dev cable0 nodad",
              *(f"addr add {address}/{128 if ':' in address else 32} dev lo" for address in ADDRESSES), "link set cable0 up")
        there(machine, "addr add 10.77.0.2/24 dev cable1", "addr add 203.0.113.2/32 dev lo", "addr add fd77::2/64 dev cable1 nodad",
              "link set cable1 up", "route add default via 10.77.0.1", "route add default via fd77::1")

    def make_certificates(self):
        names = [*NAMES, FLIP[0], WILD[0], "*." + WILD[0]]
        (self.base / "names").write_text("subjectAltName=" + ",".join("DNS:" + n for n in names))
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        run("openssl", "req", "-x509", *key, "-keyout", self.base / "ca.key", "-out", self.base / "ca.pem", "-subj", "/CN=Test CA", "-days",
            "30", "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
        run("openssl", "req", *key, "-keyout", self.base / "key.pem", "-out", self.base / "request.pem", "-subj", "/CN=a.example.com")
        run("openssl", "x509", "-req", "-in", self.base / "request.pem", "-CA", self.base / "ca.pem", "-CAkey", self.base / "ca.key",
            "-CAcreateserial", "-days", "30", "-extfile", self.base / "names", "-out", self.base / "cert.pem")
        system = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
        (self.base / "bundle.crt").write_text(system.read_text() + (self.base / "ca.pem").read_text())

    def wrap(self, args, who=None, cwd="/"):
        """The command line that runs `args` on the machine, as `who` (support.Who). It must be started by root."""
        pid = self.machine.pid
        words = ["nsenter", f"--net=/proc/{pid}/ns/net", f"--mount=/proc/{pid}/ns/mnt", f"--wdns={cwd}"]
        if who and not who.is_root:
            words += ["setpriv", f"--reuid={who.uid}", f"--regid={who.gid}", "--clear-groups", "--"]
        return [*words, *map(str, args)]

    # ---- what the rest of the world saw ----

    def log(self):
        return [json.loads(line) for line in (self.base / "log").read_text().splitlines()]

    def mark(self):
        """Forgets what was seen so far."""
        (self.base / "log").write_text("")

    def names_asked(self):
        return {entry["dns"] for entry in self.log() if "dns" in entry}

    def requests(self):
        return [entry for entry in self.log() if "request" in entry]

    def close(self):
        for process in self.processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
            process.stdin.close()
            process.stdout.close()
        self.processes = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Machine(Box):
    """A box on the machine: its commands run there, as the caller."""

    def __init__(self, internet, *args):
        super().__init__(*args)
        self.internet = internet

    def popen_args(self):
        return {}  # whoever joins a namespace must be root, and becomes the caller then

    def start(self, *args, cwd=None, **options):
        return super().start(*self.internet.wrap(args, self.who, cwd or self.path), cwd=cwd, **options)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    elif sys.argv[1] == "machine":
        serve_machine()
    else:  # for a look by hand: tests/internet.py DIRECTORY COMMAND...
        with Internet(sys.argv[1]) as world:
            sys.exit(subprocess.run(world.wrap(sys.argv[2:], cwd=os.getcwd()), check=False).returncode)
