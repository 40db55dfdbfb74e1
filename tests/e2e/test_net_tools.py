# SPDX-License-Identifier: Apache-2.0
"""Everyday tools reach an allowed host with nothing configured, and not its neighbour on the same address.

a.example.com is in the list; b.example.com has the same addresses and serves the same (tests/internet.py). No tool gets a proxy
variable or a setting for the sandbox; where one below sets something, it is the test's own CA (Node has a list of its own), where its
files go, or how often it tries again. All tools run in one sandbox, which is what makes this cheap.
"""
import hashlib
import io
import json
import os
import pathlib
import subprocess
import tarfile

import pytest

GO = """package main
import ("fmt"; "io"; "net/http"; "os")
func main() {
	answer, err := http.Get("https://" + os.Args[1] + "/")
	if err != nil { fmt.Fprintln(os.Stderr, err); os.Exit(1) }
	text, _ := io.ReadAll(answer.Body)
	fmt.Println(string(text))
}
"""

# A database that answers every query with one row, and the ssh daemon of the machine's neighbour.
SERVERS = r"""
import socket, struct, subprocess, sys, threading, time
def message(kind, body):
    return kind + struct.pack('>I', len(body) + 4) + body
def exactly(c, n):
    data = b''
    while len(data) < n:
        more = c.recv(n - len(data))
        if not more:
            raise EOFError
        data += more
    return data
def talk(c):
    try:
        while True:
            n, code = struct.unpack('>II', exactly(c, 8))
            exactly(c, n - 8)
            if code == 196608:
                break
            c.sendall(b'N')
        ready = message(b'Z', b'I')
        c.sendall(message(b'R', struct.pack('>I', 0)) + message(b'S', b'server_version\x0015.0\0') + ready)
        while True:
            kind, n = struct.unpack('>cI', exactly(c, 5))
            exactly(c, n - 4)
            if kind == b'X':
                return
            row = message(b'T', struct.pack('>H', 1) + b'x\0' + struct.pack('>IHIhih', 0, 0, 25, -1, -1, 0))
            row += message(b'D', struct.pack('>HI', 1, 8) + b'database')
            c.sendall(row + message(b'C', b'SELECT 1\0') + ready)
    except (EOFError, OSError):
        pass
    finally:
        c.close()
listener = socket.create_server(('', 5432), family=socket.AF_INET6, dualstack_ipv6=True)
subprocess.Popen(['/usr/sbin/sshd', '-D', '-f', sys.argv[1]])
def sshd_is_there():
    try:
        socket.create_connection(('127.0.0.1', 2222)).close()
        return True
    except OSError:
        return False
while not sshd_is_there():
    time.sleep(0.02)
print('ready', flush=True)
while True:
    threading.Thread(target=talk, args=[listener.accept()[0]], daemon=True).start()
"""

NODE = """
const https = require('https'), host = process.argv[2], kind = process.argv[3];
const fail = error => { console.error(error); process.exit(1); };
if (kind === 'fetch') fetch(`https://${host}/`).then(a => a.text()).then(console.log, fail);
if (kind === 'http') https.get(`https://${host}/`, a => a.on('data', d => process.stdout.write(d))).on('error', fail);
if (kind === 'socket') {
  // Debian's Node has no WebSocket, so this is the handshake of one, and its first message.
  const headers = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': 13, 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==' };
  const show = data => { if (data.length > 2) { console.log(data.subarray(2).toString()); process.exit(0); } };
  https.get(`https://${host}/greeting`, { headers }).on('upgrade', (a, socket, head) => { show(head); socket.on('data', show); }).on('error', fail);
}
"""

# try NAME WANTED COMMAND...: runs it with each host in place of HOST, and prints whether it said what was wanted.
TOOLS = r"""
export NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
try() {
	name=$1 wanted=$2
	shift 2
	for host in a b; do
		rm -rf "$TMPDIR/t"; mkdir "$TMPDIR/t"; cd "$TMPDIR/t"
		case "$(eval "${*//HOST/$host.example.com}" 2>"$TMPDIR/err" </dev/null)" in
		*"$wanted"*) echo "$name $host yes" ;;
		*) echo "$name $host no: $(tail -n 2 "$TMPDIR/err" | tr '\n' ' ')" ;;
		esac
	done
}
W=$PWD
export GIT_SSH_COMMAND="ssh -i $W/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes"
try curl '"host": "' curl -sS https://HOST/
try wget '"host": "' wget -q -t 1 -O - https://HOST/
try git-https thing 'git clone -q https://HOST/files/repo.git c && ls c'
try git-ssh thing 'git clone -q ssh://root@HOST:2222$REPO c && ls c'
try npm thing 'npm install --no-audit --no-fund --no-update-notifier --fetch-retries=0 --registry=https://HOST/files/npm/ thing && ls node_modules'
try node-fetch '"host": "' node '$W/t.js' HOST fetch
try node-http '"host": "' node '$W/t.js' HOST http
try websocket hello node '$W/t.js' HOST socket
try urllib '"host": "' "/usr/bin/python3 -c 'import urllib.request; print(urllib.request.urlopen(\"https://HOST/\").read().decode())'"
try pip thing 'PYTHONPATH=$PIP /usr/bin/python3 -m pip download -q --no-deps --no-cache-dir --disable-pip-version-check --retries 0 --no-index --find-links https://HOST/files/pip/index.html thing && ls'
try go '"host": "' '$W/gets' HOST
try apt thing 'mkdir -p s/lists/partial c/archives/partial && echo "deb [trusted=yes] https://HOST/files/apt ./" >l && touch status &&
	A="-o Dir::State=$PWD/s -o Dir::Cache=$PWD/c -o Dir::State::status=$PWD/status -o Dir::Etc::SourceList=$PWD/l -o Dir::Etc::SourceParts=- -o APT::Sandbox::User= -o Acquire::Retries=0" &&
	apt-get $A -qq -o APT::Update::Error-Mode=any update && apt-cache $A search thing'
try openssl 'Verify return code: 0' 'openssl s_client -connect HOST:443 -servername HOST -verify_return_error'
try psql database 'psql "host=HOST port=5432 user=u dbname=d sslmode=disable gssencmode=disable" -Atc "select x"'
"""
NAMES = ["curl", "wget", "git-https", "git-ssh", "npm", "node-fetch", "node-http", "websocket", "urllib", "pip", "go", "apt", "openssl", "psql"]


def command(*args, **options):
    return subprocess.run([str(a) for a in args], check=True, capture_output=True, **options)


def tarball(path, name, files):
    with tarfile.open(path, "w:gz") as archive:
        for member, text in files.items():
            info = tarfile.TarInfo(f"{name}/{member}")
            info.size, info.mode = len(text), 0o644
            archive.addfile(info, io.BytesIO(text.encode()))


def publish(www, base):
    """What the tools ask for: a repository, a package of npm, one of Python, one of Debian."""
    for name in ("npm", "pip", "apt"):
        (www / name).mkdir(parents=True)
    tree = base / "tree"
    env = {"PATH": "/usr/bin:/bin", "HOME": str(base), "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.com",
           "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@example.com"}
    command("git", "init", "-q", "-b", "main", tree, env=env)
    (tree / "thing").write_text("thing\n")
    command("git", "-C", tree, "add", ".", env=env)
    command("git", "-C", tree, "commit", "-qm", "thing", env=env)
    command("git", "clone", "-q", "--bare", tree, www / "repo.git", env=env)
    command("git", "-C", www / "repo.git", "update-server-info", env=env)
    tarball(www / "npm" / "thing-1.0.0.tgz", "package", {"package.json": '{"name": "thing", "version": "1.0.0"}'})
    tar = (www / "npm" / "thing-1.0.0.tgz").read_bytes()
    version = {"name": "thing", "version": "1.0.0", "dist": {"tarball": "https://a.example.com/files/npm/thing-1.0.0.tgz",
                                                             "shasum": hashlib.sha1(tar).hexdigest()}}
    (www / "npm" / "thing").write_text(json.dumps({"name": "thing", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}))
    wheel = "thing-1.0.0-py3-none-any.whl"
    command("python3", "-c", "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1], 'w')\n"
            "z.writestr('thing.py', '')\nz.writestr('thing-1.0.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: thing\\nVersion: 1.0.0\\n')\n"
            "z.writestr('thing-1.0.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nTag: py3-none-any\\n')\n"
            "z.writestr('thing-1.0.0.dist-info/RECORD', '')", www / "pip" / wheel)
    (www / "pip" / "index.html").write_text(f'<!DOCTYPE html><html><body><a href="{wheel}">{wheel}</a></body></html>')
    packages = "Package: thing\nVersion: 1.0\nArchitecture: all\nFilename: ./thing.deb\nSize: 1\nDescription: the thing\n"
    (www / "apt" / "Packages").write_text(packages)
    (www / "apt" / "Release").write_text("Origin: test\nDate: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n "
                                         f"{hashlib.sha256(packages.encode()).hexdigest()} {len(packages)} Packages\n")


@pytest.fixture(scope="module")
def world(internet):
    """The Internet with these files, a database and an ssh daemon; and a program in Go."""
    base = internet.base / "tools"
    base.mkdir()
    www = internet.base / "www" / "files"
    www.mkdir(parents=True)
    publish(www, base)
    for key in ("host", "key"):
        command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", base / key)
    os.makedirs("/run/sshd", exist_ok=True)
    (base / "sshd").write_text(f"Port 2222\nHostKey {base}/host\nAuthorizedKeysFile {base}/key.pub\nStrictModes no\nUsePAM no\n"
                               "PermitRootLogin prohibit-password\nPidFile none\n")
    (base / "gets.go").write_text(GO)
    command("go", "build", "-o", base / "gets", base / "gets.go",
            env={"PATH": "/usr/bin:/bin", "HOME": str(base), "CGO_ENABLED": "0", "GO111MODULE": "off"})
    internet.serve_more("python3", "-c", SERVERS, base / "sshd")
    return base


def test_tools_reach_an_allowed_host_and_not_its_neighbour_with_nothing_configured(world, internet, machine, online):
    root = machine.mkdir("work")
    machine.write("work/t.js", NODE)
    machine.write("work/tools.sh", TOOLS)
    machine.write("work/gets", (world / "gets").read_bytes(), mode=0o755)
    machine.write("work/key", (world / "key").read_bytes(), mode=0o600)
    wheels = sorted(pathlib.Path("/usr/share/python-wheels").glob("pip-*.whl"))
    done = online("run", "--root", root, "--env", f"REPO={internet.base}/www/files/repo.git", "--env", f"PIP={wheels[0]}",
                  "--net", "a.example.com,a.example.com:2222/tcp,a.example.com:5432/tcp", "--", "bash", "tools.sh", cwd=root, timeout=240)
    assert done.returncode == 0, done
    assert "proxy" not in online("run", "--root", root, "--net", "a.example.com", "--", "env").stdout.lower()
    answers = {tuple(line.split()[:2]): line for line in done.stdout.splitlines()}
    assert [answers[name, "a"] for name in NAMES] == [f"{name} a yes" for name in NAMES], done.stdout
    assert [answers[name, "b"].split(":")[0] for name in NAMES] == [f"{name} b no" for name in NAMES], done.stdout
    seen = internet.requests()
    assert {entry["host"] for entry in seen} == {"a.example.com"} and {entry["sni"] for entry in seen} == {"a.example.com"}
    assert "b.example.com" not in internet.names_asked()
