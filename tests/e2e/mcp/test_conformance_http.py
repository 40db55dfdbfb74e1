# SPDX-License-Identifier: Apache-2.0
"""The official conformance suite over HTTP, with the requirements of both revisions: against the program in tests/conformance, which has
what the suite expects of a server, and against `cordon serve`, which has its own tools."""
import re
import shutil
import socketserver
import threading

import pytest

from serving import PATIENT, Serve
from support import built_executable, callers, node_packages, poll

from .conftest import HERE, node

# What fails, and why; an entry that begins to pass fails the suite.
# Logging is deprecated: the specification tells new servers not to adopt it, and ours has no method for it.
DEPRECATED = ["logging-set-level", "tools-call-with-logging"]
# The names that the suite looks for are those of a fixture; cordon has other tools, resources and prompts.
FIXTURES = re.compile(r"^(tools-call|resources-(read|templates|subscribe|unsubscribe)|prompts-get|elicitation|input-required-result|completion)")


@pytest.fixture
def who():
    return callers().get("root") or callers()["user"]


@pytest.fixture(scope="module")
def suite(base_dir):
    return node_packages(HERE.parent.parent / "conformance", base_dir, "mcp-conformance")


@pytest.fixture
def run(box, sdk, suite):
    def go(url, revision):
        """{scenario: (passed, failed)} of those that count for the revision, and the whole text."""
        program = suite / "node_modules" / ".bin" / "conformance"
        done = box.run(node(sdk), program, "server", "--url", url, "--requirements", revision, "-o", box.path / revision, timeout=300)
        text = done.stdout + done.stderr
        unscored = set(re.findall(r"^  [✓✗] (\S+) \(", text, re.MULTILINE))
        found = re.findall(r"^[✓✗] ([\w-]+): (\d+) passed, (\d+) failed", text, re.MULTILINE)
        scored = {name: (int(passed), int(failed)) for name, passed, failed in found if name not in unscored}
        assert len(scored) > 25, text[-3000:]
        return scored, {name: int(failed) for name, _, failed in found if name in unscored}, text

    return go


@pytest.mark.long
@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_the_fixture_passes_everything_that_is_adopted(box, run, revision):
    program = box.bin / "mcp_fixture"
    if not program.exists():
        shutil.copy(built_executable().parent / "tests" / "mcp_fixture", program)
        program.chmod(0o755)
    process = box.start(program, "127.0.0.1:0")
    url = process.stdout.readline().decode().strip()
    scored, unscored, text = run(url, revision)
    failed = {name for name, (_, failures) in scored.items() if failures}
    assert failed == (set() if revision == "2026-07-28" else set(DEPRECATED)), text[-4000:]
    # Extensions, and a feature that no tool of ours uses, do not count; what else is pending passes.
    assert all(not failures for name, failures in unscored.items() if not name.startswith(("tasks-", "http-custom-"))), unscored
    process.terminate()
    assert process.wait(PATIENT) == 0


class Front(socketserver.ThreadingTCPServer):
    """Adds the token to each request, because the suite has none; a connection has one request."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, server):
        self.server = server
        super().__init__(("127.0.0.1", 0), None)

    def finish_request(self, request, client_address):
        data = b""
        while b"\r\n\r\n" not in data:
            chunk = request.recv(65536)
            if not chunk:
                return
            data += chunk
        first, _, rest = data.partition(b"\r\n")
        # The port of the front stands for that of the server.
        rest = rest.replace(f":{self.server_address[1]}".encode(), f":{self.server.port}".encode())
        with self.server.connect() as upstream:
            upstream.sendall(first + f"\r\nAuthorization: Bearer {self.server.token}\r\n".encode() + rest)
            pump = threading.Thread(target=copy, args=(request, upstream), daemon=True)
            pump.start()
            copy(upstream, request)


def copy(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    for sock in (source, target):
        try:
            sock.shutdown(2)
        except OSError:
            pass


@pytest.mark.long
@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_cordon_passes_what_needs_no_fixture(cordon, run, revision):
    server = Serve(cordon)
    server.token = server.make_token("--scope", "admin")
    poll(lambda: server.modern("tools/list").status == 200, PATIENT, "the token to be known")
    with Front(server) as front:
        threading.Thread(target=front.serve_forever, daemon=True).start()
        scored, unscored, text = run(f"http://127.0.0.1:{front.server_address[1]}/mcp", revision)
        front.shutdown()
    failed = {name for name, (_, failures) in scored.items() if failures}
    assert {name for name in failed if not FIXTURES.match(name)} <= {"logging-set-level", "server-stateless"}, text[-4000:]
    # Those of the four checks that need tools of the fixture.
    stateless = scored.get("server-stateless", (24, 0))
    assert stateless[1] <= 4 and stateless[0] >= 24, stateless
    for name in ("tools-list", "resources-list", "prompts-list", "dns-rebinding-protection", "server-sse-multiple-streams"):
        assert scored[name][1] == 0, text[-4000:]
    if revision == "2025-11-25":
        assert unscored["server-session-lifecycle"] == 0 and scored["server-initialize"][1] == 0
    else:
        assert scored["caching"][1] == 0 and scored["sep-2164-resource-not-found"][1] == 0
    assert server.stop() == 0
