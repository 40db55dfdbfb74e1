# SPDX-License-Identifier: Apache-2.0
"""A run with a list of hosts reaches them and nothing else: attacks on names, addresses, streams and the helper itself.

The world is tests/internet.py; the proof is what arrived there.
"""
import json
import os
import pathlib
import signal

import pytest

from support import command_line, descendants, poll, read_stat

# What every program inside begins with: tries that print what came of them, as JSON.
PRELUDE = """
import errno, json, os, socket, struct, sys, ssl
found = {}
def attempt(name, call):
    try:
        r = call()
        found[name] = r if isinstance(r, (str, int, list, type(None))) else 'done'
    except ssl.SSLError as e:
        found[name] = 'tls'
    except socket.gaierror as e:
        found[name] = 'no name'
    except OSError as e:
        found[name] = errno.errorcode.get(e.errno, str(e))
def connect(host, port, data=b'', timeout=20):
    s = socket.create_connection((host, port), timeout=timeout)
    if data:
        s.sendall(data)
    return s
def talk(host, port, data, timeout=20):
    with connect(host, port, data, timeout) as s:
        got = s.recv(65536)
        return got.decode('latin-1') if got else 'closed'
def hello(name, port_host=('a.example.com', 443)):
    '''A ClientHello for this name, as OpenSSL writes it.'''
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    i, o = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(i, o, server_hostname=name)
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return o.read()
def get(host, path='/'):
    return (f'GET {path} HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n').encode()
"""


@pytest.fixture
def inside(online, machine):
    """`inside(rules, script)` runs Python with the list and gives what it found."""
    root = machine.mkdir("work")

    def run(rules, script, *options, env=None, check=True):
        r = online("run", "--root", str(root), *(["--net", rules] if rules else []), *options, "--", "/usr/bin/python3", "-c",
                   PRELUDE + script + "\nprint(json.dumps(found))", cwd=root, env=env)
        if check:
            assert r.returncode == 0, r
        run.result = r
        return json.loads(r.stdout.splitlines()[-1]) if r.stdout.strip() else None

    run.root = root
    return run


def started(process, name):
    """The pid of a helper of a run that was started."""
    return poll(lambda: [p for p in descendants(process.pid) if name in command_line(p).split(" ")[0]], 30, name)[0]


def test_an_allowed_host_is_reached_and_its_neighbour_on_the_same_address_is_not(inside, internet, online):
    found = inside("a.example.com", """
def fetch(name, address=None):
    context = ssl.create_default_context()
    with context.wrap_socket(connect(address or name, 443), server_hostname=name) as tls:
        tls.sendall(get(name))
        return json.loads(tls.recv(65536).split(b'\\r\\n\\r\\n')[1])['sni']
attempt('a', lambda: fetch('a.example.com'))
attempt('a by address', lambda: fetch('a.example.com', '192.0.2.10'))
attempt('b', lambda: fetch('b.example.com'))
attempt('b on the address of a', lambda: fetch('b.example.com', '192.0.2.10'))
attempt('family 6', lambda: fetch('a.example.com', socket.getaddrinfo('a.example.com', 443, socket.AF_INET6)[0][4][0]))
""")
    assert found == {"a": "a.example.com", "a by address": "a.example.com", "b": "no name", "b on the address of a": "ECONNRESET",
                     "family 6": "a.example.com"}, found
    assert internet.names_asked() == {"a.example.com"}
    assert {r["sni"] for r in internet.requests()} == {"a.example.com"}
    records = [json.loads(line) for line in online("audit", "--json").stdout.splitlines()]
    told = {(r.get("op"), r.get("path")) for r in records if r["event"] == "violation"}
    assert ("resolve", "b.example.com") in told and ("connect", "a.example.com:443") in told, records


def test_no_address_port_or_protocol_leads_around_the_list(inside, internet, machine):
    listening = machine.start("python3", "-c", "import socket, time; s = socket.socket(socket.AF_UNIX); s.bind('\\0cordon-test-host'); "
                              "s.listen(); print('ready', flush=True); time.sleep(3600)")
    assert listening.stdout.readline() == b"ready\n"
    internet.mark()
    found = inside("a.example.com,four.example.org:8080", """
socket.getaddrinfo('a.example.com', 443)
for address in ('192.0.2.20', '192.0.2.53', '198.51.100.1', '10.77.0.1', '10.77.0.2', '203.0.113.2', '169.254.169.254', '1.1.1.1',
                '2001:db8::20', 'fd77::1', '::ffff:192.0.2.20', '2002:c000:214::', '255.255.255.255', '224.0.0.1', '0.0.0.0'):
    for port in (80, 443, 5432):
        attempt(f'{address} {port}', lambda: connect(address, port))
for port in (22, 80, 442, 444, 8443):
    attempt(f'a {port}', lambda: connect('a.example.com', port))
def send(address, port, data, family=socket.AF_INET):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.connect((address, port))
        s.send(data)
        s.settimeout(20)
        return s.recv(1)
attempt('udp 443', lambda: send('192.0.2.10', 443, b'quic'))
attempt('udp 53 of a host', lambda: send('192.0.2.53', 123, b'x'))
attempt('udp6 443', lambda: send('2001:db8::10', 443, b'quic', socket.AF_INET6))
def mptcp():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as s:
        s.connect(('192.0.2.20', 443))
attempt('mptcp', mptcp)
attempt('raw', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
attempt('ping', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP))
attempt('packet', lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3))
attempt('vsock', lambda: socket.socket(40, socket.SOCK_STREAM))
attempt('diag', lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4))
attempt('sctp', lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132))
def abstract():
    with socket.socket(socket.AF_UNIX) as s:
        s.connect('\\0cordon-test-host')
attempt('abstract', abstract)
""")
    tried = {k: v for k, v in found.items() if k[0].isdigit() or k[0] in "f:" or k.startswith("a ")}
    assert len(tried) == 50 and not {v for v in tried.values()} - {"ECONNREFUSED", "ENETUNREACH", "EACCES", "EINVAL", "EADDRNOTAVAIL"}, found
    assert {found[k] for k in ("udp 443", "udp 53 of a host", "udp6 443", "mptcp")} == {"ECONNREFUSED"}, found
    assert found["raw"] in ("EPERM", "EACCES") and found["ping"] == "EACCES", found
    assert {found[k] for k in ("packet", "vsock")} == {"EAFNOSUPPORT"} and found["diag"] in ("EAFNOSUPPORT", "EPROTONOSUPPORT"), found
    assert found["sctp"] != "done" and found["abstract"] in ("ECONNREFUSED", "EPERM"), found
    assert internet.names_asked() == {"a.example.com"} and not internet.requests()


def test_a_stream_for_another_name_ends_before_a_byte_of_it_leaves(inside, internet):
    found = inside("a.example.com,a.example.com:80,a.example.com:8443", """
good, other = hello('a.example.com'), hello('b.example.com')
def patched(old, new):
    return other.replace(old, new)
attempt('right', lambda: talk('a.example.com', 443, good)[:1])
attempt('other', lambda: talk('a.example.com', 443, other))
attempt('none', lambda: talk('a.example.com', 443, hello(None)))
attempt('nul', lambda: talk('a.example.com', 443, good.replace(b'a.example.com', b'a.example.co\\0')))
attempt('dot', lambda: talk('a.example.com', 443, good.replace(b'a.example.com', b'.example.com.')))
attempt('case', lambda: talk('a.example.com', 443, good.replace(b'a.example.com', b'A.eXample.COM'))[:1])
def pieces(data, size):
    with connect('a.example.com', 443) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(0, len(data), size):
            s.send(data[i:i + size])
        return s.recv(1).decode('latin-1')
attempt('pieces', lambda: pieces(good, 7))
records = b''.join(b'\\x16\\x03\\x01' + struct.pack('>H', len(good[5:][i:i + 9])) + good[5:][i:i + 9] for i in range(0, len(good) - 5, 9))
attempt('records', lambda: pieces(records, 100))
def megabyte():
    with connect('a.example.com', 443) as s:
        s.sendall(b'\\x16\\x03\\x01\\x40\\x00\\x01\\x0f\\xff\\xfc' + bytes(16380))
        for _ in range(64):
            s.sendall(b'\\x16\\x03\\x01\\x40\\x00' + bytes(16384))
        return s.recv(1)
attempt('megabyte', megabyte)
def encrypted():
    # An extension that says nothing becomes an encrypted client hello.
    assert good.count(b'\\x00\\x17\\x00\\x00') == 1
    return talk('a.example.com', 443, good.replace(b'\\x00\\x17\\x00\\x00', b'\\xfe\\x0d\\x00\\x00'))
attempt('encrypted', encrypted)
attempt('tls on 80', lambda: talk('a.example.com', 80, good))
def again(second, early=b''):
    # The server asks for another hello; both may also be sent at once.
    with connect('a.example.com', 8443, good + early) as s:
        if not early:
            s.recv(65536)
            s.sendall(second)
        while s.recv(65536):
            pass
attempt('again other', lambda: again(b'\\x14\\x03\\x03\\x00\\x01\\x01' + hello('b.example.com')))
attempt('again early', lambda: again(b'', other))
attempt('again with data', lambda: again(b'\\x17\\x03\\x03\\x00\\x10' + bytes(16) + hello('b.example.com')))
def whole():
    with ssl.create_default_context().wrap_socket(connect('a.example.com', 8443), server_hostname='a.example.com') as tls:
        tls.sendall(get('a.example.com'))
        return tls.recv(12).decode()
attempt('again whole', whole)
attempt('no tls', lambda: talk('a.example.com', 443, b'\\x00hello'))
attempt('http right', lambda: talk('a.example.com', 80, get('a.example.com'))[:15])
attempt('http other', lambda: talk('a.example.com', 80, get('b.example.com')))
attempt('http two', lambda: talk('a.example.com', 80, get('a.example.com').replace(b'\\r\\n\\r\\n', b'\\r\\nHost: b.example.com\\r\\n\\r\\n')))
attempt('http absolute', lambda: talk('a.example.com', 80, get('a.example.com', 'http://b.example.com/')))
attempt('http connect', lambda: talk('a.example.com', 80, b'CONNECT b.example.com:443 HTTP/1.1\\r\\nHost: a.example.com\\r\\n\\r\\n'))
attempt('http address', lambda: talk('a.example.com', 80, get('192.0.2.10')))
def second():
    with connect('a.example.com', 80, get('a.example.com', '/first')) as s:
        s.recv(65536)
        s.sendall(get('b.example.com', '/second'))
        return s.recv(65536).decode() or 'closed'
attempt('http second', second)
def keeps(n):
    with connect('a.example.com', 80) as s:
        for i in range(n):
            s.sendall(get('a.example.com', f'/kept{i}'))
            assert b'200' in s.recv(65536)
attempt('http kept', lambda: keeps(5))
body = b'POST /chunked HTTP/1.1\\r\\nHost: a.example.com\\r\\nContent-Length: 5\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n'
attempt('http smuggled', lambda: talk('a.example.com', 80, body + get('b.example.com')))
def upgrade(path):
    ask = f'GET {path} HTTP/1.1\\r\\nHost: a.example.com\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n\\r\\n'.encode()
    with connect('a.example.com', 80, ask + get('b.example.com', '/behind')) as s:
        out = b''
        while True:
            try:
                got = s.recv(65536)
            except ConnectionResetError:
                return 'reset after ' + out.decode()[9:12]
            out += got
            if not got or b'ws:' in out:
                return out.decode('latin-1')[9:12] + (' ws' if b'ws:' in out else '')
attempt('websocket', lambda: upgrade('/socket'))
attempt('no websocket', lambda: upgrade('/plain'))
""")
    assert found.pop("right") == found.pop("case") == found.pop("pieces") == found.pop("records") == "\x16", found
    assert found.pop("http right") == "HTTP/1.1 200 OK" and found.pop("http kept") is None, found
    assert found.pop("websocket") == "101 ws" and found.pop("no websocket").startswith("reset after"), found
    assert found.pop("megabyte") in ("ECONNRESET", "EPIPE"), found
    assert found.pop("again whole") == "HTTP/1.1 200", found
    assert set(found.values()) == {"ECONNRESET"} and len(found) == 17, found
    assert {e["hello"].lower() for e in internet.log() if "hello" in e} == {"a.example.com"}
    assert all(text in inside.result.stderr for text in (
        "[NETWORK] BLOCKED: a connection that hides which host it is for (encrypted client hello)", "--net 'a.example.com:443/tcp'")), inside.result
    seen = internet.requests()
    assert {r["host"] for r in seen} == {"a.example.com"} and not any("second" in r["request"] or "behind" in r["request"] for r in seen), seen


def test_a_name_that_leads_to_the_machine_or_its_network_leads_nowhere(inside, internet, online):
    rules = "*.example.net:5432/tcp,*.example.net:80,metadata.example.net"
    found = inside(rules, """
import time
for name in ('loopback', 'mapped', 'metadata', 'private', 'machine'):
    for port in (5432, 80):
        attempt(f'{name} {port}', lambda: talk(f'{name}.example.net', port, get(f'{name}.example.net')))
attempt('both', lambda: talk('both.example.net', 80, get('both.example.net'))[:15])
attempt('hosts file', lambda: [a[4][0] for a in socket.getaddrinfo('known.example.net', 80, socket.AF_INET, socket.SOCK_STREAM)])
attempt('flip', lambda: talk('flip.example.net', 80, get('flip.example.net'))[:15])
label = socket.getaddrinfo('flip.example.net', 80, type=socket.SOCK_STREAM)[0][4][0]
time.sleep(2.2)
for i in range(3):
    attempt(f'flipped {i}', lambda: talk(label, 5432, b'x'))
""")
    assert found.pop("both") == found.pop("flip") == "HTTP/1.1 200 OK", found
    assert found.pop("hosts file") == ["192.0.2.33"], found
    assert set(found.values()) <= {"no name", "ECONNRESET"} and len(found) == 13, found
    assert all(r["address"] in ("192.0.2.32", "192.0.2.50") for r in internet.requests()), internet.requests()
    records = [json.loads(line) for line in online("audit", "--json").stdout.splitlines()]
    assert {r["path"].split(":")[0] for r in records if r["event"] == "violation"} >= {
        "metadata.example.net", "private.example.net", "loopback.example.net", "machine.example.net"}, records


def test_granted_addresses_and_localhost_are_reached_and_names_that_lead_there(inside):
    found = inside("localhost:5432,10.77.0.1:80,private.example.net:80,198.51.100.1:7,[2001:db8::20]:7", """
attempt('localhost', lambda: talk('localhost', 5432, b''))
attempt('v6', lambda: talk('::1', 5432, b''))
attempt('private', lambda: talk('private.example.net', 80, get('private.example.net'))[:15])
attempt('address', lambda: talk('10.77.0.1', 80, get('whatever'))[:15])
attempt('echo', lambda: talk('198.51.100.1', 7, b'echo'))
attempt('echo6', lambda: talk('2001:db8::20', 7, b'echo'))
attempt('beside', lambda: connect('127.0.0.1', 5433))
attempt('beside6', lambda: connect('2001:db8::20', 80))
server = socket.create_server(('127.0.0.1', 5433))
attempt('own', lambda: connect('127.0.0.1', 5433))
""")
    assert found == {"localhost": "database of the host\n", "v6": "database of the host\n", "private": "HTTP/1.1 200 OK", "address": "HTTP/1.1 200 OK",
                     "echo": "echo", "echo6": "echo", "beside": "ECONNREFUSED", "beside6": "ECONNREFUSED", "own": "done"}, found


def test_names_are_no_channel(inside, internet):
    found = inside("a.example.com,*.wild.example.com,six.example.org,four.example.org,xn--bcher-kva.example.com", """
def query(name, kind=1, server=('127.0.0.1', 53), raw=None, tcp=False):
    labels = name if isinstance(name, list) else [l.encode() for l in name.split('.')]
    q = raw if raw is not None else (b'\\x12\\x34\\x01\\0\\0\\1\\0\\0\\0\\0\\0\\0' + b''.join(bytes([len(l)]) + l for l in labels) + b'\\0' + struct.pack('>HH', kind, 1))
    if tcp:
        with socket.create_connection(server, timeout=20) as s:
            s.sendall(struct.pack('>H', len(q)) + q)
            a = s.recv(4096)[2:]
    else:
        with socket.socket(socket.AF_INET6 if ':' in server[0] else socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(20)
            s.connect(server)
            s.send(q)
            a = s.recv(4096)
    return [a[3] & 15, a[7]]
attempt('a', lambda: query('a.example.com'))
attempt('a aaaa', lambda: query('a.example.com', 28))
attempt('tcp', lambda: query('a.example.com', tcp=True))
attempt('any server', lambda: query('a.example.com', server=('8.8.8.8', 53)))
attempt('any server 6', lambda: query('a.example.com', server=('2001:4860:4860::8888', 53)))
attempt('upper', lambda: query('A.EXAMPLE.COM'))
attempt('no v6', lambda: query('four.example.org', 28))
attempt('no v4', lambda: query('six.example.org', 1))
attempt('v6', lambda: query('six.example.org', 28))
attempt('idna', lambda: query('xn--bcher-kva.example.com'))
for kind in (65, 64, 16, 15, 33, 255):
    attempt(f'type {kind}', lambda: query('a.example.com', kind))
for name in ('secret-0123456789.evil.example', 'b.example.com', 'example.com', 'a.example.com.evil.example', 'wild.example.com', '1.2.0.192.in-addr.arpa',
             'xa.example.com'):
    for kind in (1, 28, 16, 65):
        attempt(f'no {name} {kind}', lambda: query(name, kind))
attempt('no dot in label', lambda: query([b'a.example', b'com']))
attempt('no nul', lambda: query([b'a\\0', b'example', b'com']))
attempt('no utf-8', lambda: query(['bücher'.encode(), b'example', b'com']))
for i in range(300):
    attempt('no tunnel', lambda: query(f'{i:060x}.evil.example'))
attempt('pointer', lambda: query('', raw=b'\\x12\\x34\\x01\\0\\0\\1\\0\\0\\0\\0\\0\\0\\xc0\\x0c\\0\\1\\0\\1')[0])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    for i in range(200):
        s.sendto(os.urandom(i), ('127.0.0.1', 53))
for rubbish in (b'\\x12\\x34\\x81\\x80' + bytes(8), b'\\x12\\x34\\x28' + bytes(20), bytes(12), b'\\xff' * 600, b'x'):
    with socket.create_connection(('127.0.0.1', 53), timeout=20) as s:
        s.sendall(struct.pack('>H', len(rubbish)) + rubbish)
        s.shutdown(socket.SHUT_WR)
        try:
            while s.recv(4096):
                pass
        except OSError:
            pass
with socket.create_connection(('127.0.0.1', 53), timeout=20) as s:
    one = b'\\x12\\x34\\x01\\0\\0\\1\\0\\0\\0\\0\\0\\0\\1a\\7example\\3com\\0\\0\\1\\0\\1'
    s.sendall((struct.pack('>H', len(one)) + one) * 5)
    got = b''
    while len(got) < 5 * (2 + len(one) + 16):
        got += s.recv(4096)
attempt('after rubbish', lambda: query('a.example.com'))
import time
began = time.monotonic()
wild = [query(f'n{i}.wild.example.com') for i in range(400)]
found['wild'] = [wild.count([0, 1]), wild.count([2, 0]), time.monotonic() - began]
""")
    answered, limited, took = found.pop("wild")
    most = 256 + 16 * (took + 1)  # at once, and in the time that it took
    assert answered + limited == 400 and 256 <= answered <= most, (answered, limited, took)
    for key in ("a", "a aaaa", "tcp", "any server", "any server 6", "upper", "v6", "idna", "after rubbish"):
        assert found.pop(key) == [0, 1], (key, found)
    for key in [k for k in found if k.startswith("type ") or k in ("no v6", "no v4")]:
        assert found.pop(key) == [0, 0], (key, found)
    assert found.pop("pointer") == 1
    assert {k: v for k, v in found.items() if v != [3, 0]} == {} and len(found) == 32, found
    asked = {(e["dns"], e["type"]) for e in internet.log() if "dns" in e}
    assert {name for name, _ in asked if not name.endswith(".wild.example.com")} == {
        "a.example.com", "six.example.org", "four.example.org", "xn--bcher-kva.example.com"}, asked
    assert {kind for _, kind in asked} <= {1, 28}
    assert len({name for name, _ in asked if name.endswith(".wild.example.com")}) <= most


def test_the_agent_cannot_take_the_addresses_of_the_helper(inside, internet):
    found = inside("a.example.com,a.example.com:8443,localhost:5432", """
def bind(address, port, kind=socket.SOCK_STREAM, reuse=True):
    family = socket.AF_INET6 if ':' in address else socket.AF_INET
    s = socket.socket(family, kind)
    if reuse:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        s.bind((address, port))
        if kind == socket.SOCK_STREAM:
            s.listen()
    except OSError:
        s.close()
        raise
    return s
for address in ('0.0.0.0', '127.0.0.1', '192.0.2.10', '::', '::1', '2001:db8::10'):
    attempt(f'dns {address}', lambda: bind(address, 53, socket.SOCK_DGRAM))
    attempt(f'dns tcp {address}', lambda: bind(address, 53))
    attempt(f'before {address}', lambda: bind(address, 443))
attempt('localhost', lambda: bind('127.0.0.1', 5432))
attempt('every', lambda: bind('0.0.0.0', 5432))
socket.getaddrinfo('a.example.com', 443)
attempt('after', lambda: bind('192.0.2.10', 8443))
attempt('after every', lambda: bind('0.0.0.0', 8443))
attempt('still', lambda: talk('a.example.com', 8443, hello('a.example.com'))[:1])
""")
    assert found.pop("still") == "\x16"
    assert set(found.values()) <= {"EACCES", "EADDRINUSE", "EADDRNOTAVAIL"} and len(found) == 22, found


def test_an_address_that_the_agent_takes_first_leads_to_itself(inside, internet):
    found = inside("a.example.com:8443/tcp", """
s = socket.create_server(('::', 8443), family=socket.AF_INET6, dualstack_ipv6=True)
import threading
def serve():
    while True:
        c, _ = s.accept()
        c.sendall(b'myself')
        c.close()
threading.Thread(target=serve, daemon=True).start()
attempt('self', lambda: talk('a.example.com', 8443, b''))
""")
    assert found == {"self": "myself"} and not internet.requests()


WAITS = "import socket, sys, time; socket.getaddrinfo('a.example.com', 443); print('ready', flush=True); sys.stdin.readline()\n"
TRIES = """
try:
    socket.create_connection(('192.0.2.10', 443), timeout=60)
    print('connected', flush=True)
except OSError as e:
    print(type(e).__name__, flush=True)
"""


def begin(online, machine, script, *options):
    root = machine.mkdir("work")
    run = online.start("run", "--root", str(root), "--net", "a.example.com", *options, "--", "/usr/bin/python3", "-c", script, cwd=root, stdin=-1)
    assert run.stdout.readline() == b"ready\n", run.communicate(timeout=60)
    return run


def test_the_helper_is_confined_and_dies_with_the_supervisor(online, machine):
    run = begin(online, machine, WAITS)
    helper = started(run, "cordon-net")
    status = dict(line.split(":\t") for line in pathlib.Path(f"/proc/{helper}/status").read_text().splitlines() if ":\t" in line)
    assert status["CapEff"] == status["CapPrm"] == "0" * 16 and status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status
    held = {os.readlink(f"/proc/{helper}/fd/{fd}").split(":")[0] for fd in os.listdir(f"/proc/{helper}/fd")}
    assert {path for path in held if not path.startswith(("socket", "anon_inode", "pipe"))} <= {"/dev/null"}, held
    assert pathlib.Path(f"/proc/{helper}/environ").read_bytes() == b""
    supervisor = read_stat(helper)[1]
    os.kill(supervisor, signal.SIGKILL)
    poll(lambda: not os.path.exists(f"/proc/{helper}") or read_stat(helper)[0] in "ZX", 30, "the end of the helper")


def test_a_helper_that_is_killed_closes_the_network_and_ends_nothing_else(online, machine, internet):
    run = begin(online, machine, WAITS + TRIES, "--summary")
    helper = started(run, "cordon-net")
    internet.mark()
    os.kill(helper, signal.SIGKILL)
    poll(lambda: not os.path.exists(f"/proc/{helper}"), 30, "the end of the helper")
    out, err = run.communicate(b"go\n", timeout=60)
    assert run.returncode == 0 and out == b"ConnectionRefusedError\n", (out, err)
    assert not internet.log()
    says = "cordon-net, which serves the list of hosts, was killed by signal 9: no host can be reached any more; the run goes on"
    assert err.decode().count(f"[NETWORK] WARNING: {says}\n") == 1, err
    assert b"[SUMMARY] the helper of the network ended before the command" in err, err
    told = [json.loads(line) for line in online("audit", "--json", "--kind", "refusal").stdout.splitlines()]
    assert [(r["op"], r["decision"], r["detail"]["message"]) for r in told] == [("network", "deny", says)], told


def test_the_helper_starts_when_it_is_needed_and_no_refusal_is_lost(online, machine):
    script = "import socket, sys; print('ready', flush=True); sys.stdin.readline()\n" + TRIES
    run = begin(online, machine, script)
    assert not [p for p in descendants(run.pid) if "cordon-net" in command_line(p).split(" ")[0]]
    out, err = run.communicate(b"go\n", timeout=60)
    # The last thing that the program does is to be refused; it is told all the same.
    assert run.returncode == 0 and out == b"ConnectionRefusedError\n" and b"[NETWORK]   Host: 192.0.2.10:443\n" in err, (out, err)


def test_programs_find_interfaces_and_addresses_and_change_none(inside):
    found = inside("a.example.com", """
import subprocess
for family in (socket.AF_INET, socket.AF_INET6):
    # Such a query counts only ordinary addresses of the machine.
    attempt(f'family {family}', lambda: len(socket.getaddrinfo('a.example.com', 443, family, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG)))
attempt('interfaces', lambda: [name for _, name in socket.if_nameindex()])
found['node'] = sorted(json.loads(subprocess.run(['node', '-p', 'JSON.stringify(os.networkInterfaces())'], check=True, capture_output=True).stdout))
def change(kind, body):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        s.send(struct.pack('=IHHII', 16 + len(body), kind, 0x605, 1, 0) + body)
        return errno.errorcode[-struct.unpack('=i', s.recv(4096)[16:20])[0]]
attempt('route', lambda: change(24, struct.pack('=BBBBBBBBI', 2, 32, 0, 0, 254, 3, 0, 2, 0) + struct.pack('=HHI', 8, 4, 1)))
attempt('address', lambda: change(20, struct.pack('=BBBBI', 2, 32, 0, 0, 1) + struct.pack('=HH4s', 8, 2, bytes([192, 0, 2, 10]))))
attempt('link', lambda: change(16, struct.pack('=BxHiII', 0, 0, 1, 0, 1)))
attempt('rule', lambda: change(32, struct.pack('=BBBBBBBBI', 2, 0, 0, 0, 255, 0, 0, 1, 0)))
for protocol in (4, 6, 9, 12, 15, 16):
    attempt(f'protocol {protocol}', lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol))
""")
    assert (found.pop(f"family {2}"), found.pop(f"family {10}"), found.pop("interfaces"), found.pop("node")) == (1, 1, ["lo"], ["lo"]), found
    assert {found.pop(k) for k in ("route", "address", "link", "rule")} == {"EPERM"}, found
    assert set(found.values()) == {"EPROTONOSUPPORT"} and len(found) == 6, found


def test_a_helper_that_is_stopped_holds_up_no_end(online, machine):
    run = begin(online, machine, WAITS)
    helper = started(run, "cordon-net")
    os.kill(helper, signal.SIGSTOP)
    out, err = run.communicate(b"go\n", timeout=60)
    assert run.returncode == 0, (out, err)
    assert not os.path.exists(f"/proc/{helper}")


def test_what_connections_make_the_helper_hold_is_bounded(inside, machine):
    # Each has sent nearly all of a long ClientHello, for which the helper needs 64 KiB.
    found = inside("a.example.com", """
import resource, time
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
part = b'\\x16\\x03\\x01\\x40\\x00\\x01\\x00\\x7f\\xf8' + bytes(16380) + b'\\x16\\x03\\x01\\x3f\\xfc' + bytes(16379)
address = socket.getaddrinfo('a.example.com', 443)[0][4][0]
kept = []
for i in range(600):
    try:
        kept.append(connect(address, 443, part))
    except OSError:
        pass
def ended(s):
    s.setblocking(False)
    try:
        return s.recv(1) == b''
    except BlockingIOError:
        return False
    except OSError:
        return True
end = time.monotonic() + 60
while time.monotonic() < end and 600 - len(kept) + sum(map(ended, kept)) < 88:
    time.sleep(0.1)
found['ended'] = 600 - len(kept) + sum(map(ended, kept))
for s in kept:
    s.close()
def again():
    while True:
        try:
            return talk(address, 443, hello('a.example.com'))[:1]
        except ConnectionResetError:
            assert time.monotonic() < end
            time.sleep(0.1)
attempt('again', again)
""")
    assert 88 <= found["ended"] < 600 and found["again"] == "\x16", found
    assert "[LIMIT] the connections of the run held more than 32 MiB at once" in inside.result.stderr, inside.result


@pytest.mark.long
def test_many_connections_and_servers_that_do_not_read_cost_little(online, machine, inside, internet):
    script = PRELUDE + """
import resource
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
kept = []
ended = 0
for i in range(10000):
    s = socket.socket()
    s.settimeout(60)
    try:
        s.connect(('198.51.100.1', 7))
        kept.append(s)
    except OSError:
        ended += 1
    if len(kept) > hard - 100:
        break
print('ready', flush=True)
sys.stdin.readline()
for s in kept:
    s.close()
del kept
import time
for i in range(100):
    try:
        r = talk('198.51.100.1', 7, b'echo')
        break
    except OSError:
        time.sleep(0.1)
print(r, flush=True)
s = connect('198.51.100.1', 9)
s.setblocking(False)
sent = 0
quiet = 0
while quiet < 20:
    try:
        sent += s.send(b'x' * 65536)
        quiet = 0
    except BlockingIOError:
        quiet += 1
        time.sleep(0.05)
f = connect('198.51.100.1', 19)
time.sleep(0.3)
print('stuck' if sent < 64 << 20 else sent, flush=True)
print(talk('198.51.100.1', 7, b'echo'), flush=True)
"""
    root = machine.mkdir("work")
    run = online.start("run", "--root", str(root), "--net", "198.51.100.1:7,198.51.100.1:9,198.51.100.1:19", "--", "/usr/bin/python3", "-c", script, cwd=root,
                       stdin=-1)
    assert run.stdout.readline() == b"ready\n", run.communicate(timeout=60)
    helper = started(run, "cordon-net")
    rss = {line.split(":")[0]: line.split()[1] for line in pathlib.Path(f"/proc/{helper}/status").read_text().splitlines() if "Rss" in line}
    assert int(rss["RssAnon"]) < 16 << 10, rss
    fds = len(os.listdir(f"/proc/{helper}/fd"))
    assert fds < 2 * 4096 + 600, fds
    out, err = run.communicate(b"go\n", timeout=100)
    assert run.returncode == 0 and out.splitlines() == [b"echo", b"stuck", b"echo"], (out, err)


def test_the_proxy_of_the_host_is_used_by_name(inside, internet):
    found = inside("a.example.com,b.example.com,four.example.org:80", """
attempt('env', lambda: [k for k in os.environ if 'proxy' in k.lower()])
attempt('a', lambda: talk('a.example.com', 443, hello('a.example.com'))[:1])
attempt('b', lambda: talk('b.example.com', 443, hello('b.example.com'))[:1])
attempt('four', lambda: talk('four.example.org', 80, get('four.example.org'))[:15])
attempt('other', lambda: talk('six.example.org', 443, hello('six.example.org')))
attempt('sni', lambda: talk('a.example.com', 443, hello('b.example.com')))
attempt('proxy', lambda: connect('10.77.0.1', 3128))
""", env={"https_proxy": "http://user:secret@proxy.example.net:3128/", "no_proxy": "localhost, b.example.com"})
    assert found == {"env": [], "a": "\x16", "b": "\x16", "four": "HTTP/1.1 200 OK", "other": "no name", "sni": "ECONNRESET", "proxy": "ECONNREFUSED"}, found
    assert [e["proxy"] for e in internet.log() if "proxy" in e] == ["a.example.com:443", "four.example.org:80"]
    assert all(e["authorization"] for e in internet.log() if "proxy" in e)
    assert internet.names_asked() == {"proxy.example.net", "b.example.com"}


def test_without_namespaces_a_list_is_refused_whatever_best_effort_says(online, machine, who):
    root = machine.mkdir("work")
    inner = f"echo 0 > /proc/sys/user/max_user_namespaces && exec {machine.bin}/cordon run --best-effort --root {root} --net a.example.com -- true"
    r = machine.run("unshare", "-Ur", "sh", "-c", inner, cwd=root)
    assert r.returncode == 125 and "namespaces" in r.stderr, r


INJECT = """
net:
  allow: ['b.example.com:8443']
  inject:
    - {host: a.example.com, header: X-Api-Key, from_env: TEST_KEY, base_url_env: FIRST_URL, path: /v1}
    - {host: 'b.example.com:8443', header: Authorization, prefix: 'Bearer ', from_env: TEST_KEY, base_url_env: SECOND_URL}
    - {host: x.y.wild.example.com, header: X-Api-Key, from_env: TEST_KEY, base_url_env: FALSE_URL}
    - {host: loopback.example.net, header: X-Api-Key, from_env: TEST_KEY, base_url_env: HOME_URL}
"""


def test_a_credential_is_added_outside_and_is_nowhere_inside(inside, internet, machine):
    policy = machine.write("outside.yaml", INJECT)
    found = inside(None, """
import http.client, threading, time, urllib.parse
def endpoint(name):
    u = urllib.parse.urlsplit(os.environ[name])
    c = http.client.HTTPConnection(u.hostname, u.port, timeout=60)
    return c, u.path
found['urls'] = [os.environ[n] for n in ('FIRST_URL', 'SECOND_URL')]
def ask(c, path, method='GET', body=None, headers={}):
    c.request(method, path, body, headers)
    r = c.getresponse()
    return r.status, r.read()
c, base = endpoint('FIRST_URL')
status, body = ask(c, base + '/x', 'POST', b'body', {'x-api-KEY': 'mine', 'Host': 'b.example.com'})
seen = json.loads(body)
found['first'] = [status, seen['host'], seen['sni'], seen['request'], seen['body']]
status, body = ask(c, base + '/again', 'POST', b'x' * 200000)
found['large'] = [status, len(json.loads(body)['body'])]
c, base = endpoint('SECOND_URL')
found['second'] = ask(c, '/y')[0]
c, base = endpoint('FALSE_URL')
found['false'] = ask(c, '/')[0]
c, base = endpoint('HOME_URL')
found['home'] = ask(c, '/')[0]
attempt('absolute', lambda: talk('127.0.0.1', 900, get('x', 'http://b.example.com/'))[:12])
for method in ('TRACE', 'trace', 'TRACK'):
    attempt(method, lambda: talk('127.0.0.1', 900, get('x').replace(b'GET', method.encode()))[:12])
attempt('smuggled', lambda: talk('127.0.0.1', 900, b'POST / HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 3\\r\\nContent-Length: 5\\r\\n\\r\\n')[:12])
attempt('direct', lambda: socket.getaddrinfo('a.example.com', 443))
with connect('127.0.0.1', 900, get('x', '/stream')) as s:
    got = b''
    while b'event0' not in got:
        got += s.recv(4096)
    found['early'] = int(b'event2' not in got)
    while b'0\\r\\n\\r\\n' not in got:
        got += s.recv(4096)
    found['events'] = got.count(b'\\r\\nevent')
def websocket():
    ask = b'GET /socket HTTP/1.1\\r\\nHost: x\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n\\r\\n'
    with connect('127.0.0.1', 900, ask + b'hello') as s:
        got = b''
        while b'ws:hello' not in got:
            got += s.recv(4096)
        return got.decode()[9:12]
attempt('websocket', websocket)
secret = 's3' + 'cret'
found['inside'] = [k for k, v in os.environ.items() if secret in v]
for pid in filter(str.isdigit, os.listdir('/proc')):
    for name in ('environ', 'cmdline'):
        try:
            if secret.encode() in open(f'/proc/{pid}/{name}', 'rb').read():
                found['inside'].append(f'{pid} {name}')
        except OSError:
            pass
""", "--policy", str(policy), "--keep-env", "TEST_*", env={"TEST_KEY": "s3cret"})
    assert found == {
        "urls": ["http://127.0.0.1:900/v1", "http://127.0.0.1:901"], "first": [200, "a.example.com", "a.example.com", "POST /v1/x HTTP/1.1", "body"],
        "large": [200, 200000], "second": 200, "false": 502, "home": 502, "absolute": "HTTP/1.1 502", "TRACE": "HTTP/1.1 502",
        "trace": "HTTP/1.1 502", "TRACK": "HTTP/1.1 502", "smuggled": "HTTP/1.1 502", "direct": "no name",
        "early": 1, "events": 3, "websocket": "101", "inside": []}, found
    assert not [r for r in internet.requests() if r["request"].upper().startswith("TRAC")]
    keys = [r["fields"].get("x-api-key") or r["fields"].get("authorization") for r in internet.requests()]
    assert set(keys) == {"s3cret", "Bearer s3cret"} and "mine" not in str(internet.requests())


def test_a_credential_that_is_not_there_is_refused_before_anything_starts(online, machine):
    policy = machine.write("outside.yaml", INJECT)
    r = online("run", "--root", str(machine.mkdir("work")), "--policy", str(policy), "--", "true")
    assert r.returncode == 125 and "TEST_KEY" in r.stderr and "not set" in r.stderr, r
