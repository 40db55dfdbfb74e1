# SPDX-License-Identifier: Apache-2.0
"""Getting to the page: the link, the cookie, forms, and who is turned away."""
import os
import re
import socket
import subprocess
import sys

import pytest

from serving import Answer, Page, read_all
from support import poll


def test_a_link_works_once(page):
    code = page.link.partition(page.host)[2]
    again = page.raw("GET", code)
    assert again.status == 401 and "set-cookie" not in again.headers and "used already" in again.body.decode()
    wrong = page.raw("GET", "/login?code=" + "0" * 64)
    assert wrong.status == 401 and "set-cookie" not in wrong.headers


def test_the_second_open_uses_the_same_server_and_login_survives_a_restart(cordon, page):
    other = Page(cordon)
    assert other.port == page.port and other.cookie != page.cookie
    assert "What runs now" in page.get("/") and "What runs now" in other.get("/")


def test_nobody_without_the_cookie_sees_anything(page):
    for cookie in (None, "", page.cookie[:-1] + ("0" if page.cookie[-1] != "0" else "1"), f"cordon-{page.port + 1}=" + page.cookie.partition("=")[2]):
        answer = page.raw("GET", "/", {"Cookie": cookie})
        assert answer.status == 401, (cookie, answer)
        assert "cordon open" in answer.body.decode() and "token" not in answer.body.decode()
    expired = re.sub(r"=\d+\.", "=1.", page.cookie)
    assert page.raw("GET", "/", {"Cookie": expired}).status == 401


def test_forged_cookies_of_the_same_name_do_not_end_a_login(page):
    """A server at the same host may set cookies of this name for a longer path, which browsers send first."""
    name, _, value = page.cookie.partition("=")
    for header in (f"{name}=1.2.3; {page.cookie}", f"{name}=; a={name}={value}; {page.cookie}", f"{name}={value[:-1]}; {name}=x; {page.cookie}; {name}=1"):
        assert page.raw("GET", "/", {"Cookie": header}).status == 200, header
    for header in (f"a{page.cookie}", f"a={page.cookie}", f'"{page.cookie}"', f"{name}={value}x"):
        assert page.raw("GET", "/", {"Cookie": header}).status == 401, header


def test_every_answer_forbids_frames_foreign_scripts_and_caches(page):
    for path in ("/", "/login?code=x", "/page/style.css"):
        headers = page.raw("GET", path).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"] and "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY" and ("no-store" in headers["cache-control"] or "immutable" in headers["cache-control"]) and headers["referrer-policy"] == "same-origin"


def test_forms_of_other_sites_and_other_ports_are_refused(page):
    body = f"token={page.token()}".encode()
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": None},
        {"Origin": f"http://{page.address}:{page.port + 1}"},
        {"Origin": f"http://localhost:{page.port}"},  # a name of ours, on whose [::1] another server may listen
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        assert page.raw("POST", "/logout", headers, body).status == 403, headers
    for wrong in (b"", b"token=", b"token=" + b"0" * 64, b"token=%zz"):
        assert page.raw("POST", "/logout", None, wrong).status == 403, wrong
    assert page.raw("POST", "/logout", {"Content-Type": "text/plain"}, body).status == 415
    assert page.get("/")  # still logged in
    # What a page of another port could read with the cookie that the browser sends along.
    assert page.raw("GET", "/", {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}).status == 403
    assert page.raw("GET", "/", {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}).status == 403
    assert page.raw("GET", "/", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}).status == 200


SAY = "import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 20); s.sendall(sys.stdin.buffer.read()); sys.stdout.buffer.write(b''.join(iter(lambda: s.recv(65536), b'')))"


def test_another_user_of_the_machine_can_use_neither_the_cookie_nor_the_link(cordon, page):
    """Both can be seen by others: a link in the arguments of a browser, the cookie by a server on another port."""
    if os.getuid() != 0:
        pytest.skip("the tests run as an ordinary user, who cannot be another one")

    def say(path, user):
        done = subprocess.run([sys.executable, "-I", "-c", SAY, page.address, str(page.port)], input=page.bytes("GET", path), capture_output=True, user=user, group=user, extra_groups=[], check=True, timeout=60)
        return Answer(done.stdout)

    link = cordon("open", "--no-browser").stdout.strip().partition(page.host)[2]
    owner = (cordon.box.state / "state" / "serve" / "control").stat().st_uid
    for path in ("/", link, "/page/style.css"):
        answer = say(path, owner + 1)
        assert answer.status == 403 and "another user" in answer.body.decode() and "set-cookie" not in answer.headers, answer
    assert say("/", owner).status == 200 and say("/", 0).status == 200
    assert say(link, owner).status == 200, "nobody has used it up"


def test_a_form_that_comes_when_too_much_is_under_way_is_told_so(page):
    """The bodies of forms that do not end fill what one client may hold."""
    part = b"token=" + b"x" * ((2 << 20) - 100)
    socks = []
    for size in [len(part)] * 32 + [8192]:  # the last one has more than is left
        sock = socket.create_connection((page.address, page.port), 60)
        sock.sendall(page.bytes("POST", "/logout", {"Content-Length": str(len(part) + 50)}) + part[:size])
        socks.append(sock)
    body = f"token={page.token()}".encode()
    poll(lambda: page.raw("POST", "/logout", None, b"token=wrong").status != 403, 20, "the bodies to be read")
    answer = page.raw("POST", "/logout", None, body)
    assert answer.status == 429 and "Too much is under way" in answer.body.decode(), answer
    for sock in socks:
        sock.close()
    poll(lambda: page.raw("POST", "/logout", None, body).status == 200, 60, "the bodies to be forgotten")


def test_rebinding_is_refused(page):
    assert page.raw("GET", "/", {"Host": "evil.example"}).status == 403
    assert page.raw("GET", page.link.partition(page.host)[2], {"Host": f"evil.example:{page.port}"}).status == 403


def test_a_logout_ends_the_login_and_its_streams(page):
    stream = page.listen("audit")
    assert stream.head().headers["content-type"] == "text/event-stream"
    answer = page.raw("POST", "/logout", None, f"token={page.token()}".encode())
    assert answer.status == 200 and "Max-Age=0" in answer.headers["set-cookie"]
    stream.ended()
    assert page.raw("GET", "/").status == 401


def test_only_the_control_socket_gives_links_and_it_serves_nothing_else(cordon, page):
    assert page.raw("POST", "/open", None, b"").status == 404

    def ask(text):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(str(control))
            try:
                sock.sendall(text)
            except BrokenPipeError:
                pass  # the server has said what it has to say
            return Answer(read_all(sock))

    control = cordon.box.state / "state" / "serve" / "control"
    if control.stat().st_uid != os.geteuid():  # the tests are root, and even root is another user
        assert ask(b"POST /open HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n").status == 403
        return
    assert ask(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 404
    assert ask(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}").status == 404
    assert ask(b"POST /open HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n").status == 403
    assert ask(b"POST /open HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n").status == 200


def test_a_stream_says_when_something_changes(cordon, page):
    stream = page.listen("audit", "../../etc", "views/")
    stream.head()
    done = cordon("run", "--root", str(cordon.box.path), "--", "true")
    assert done.returncode == 0, str(done)
    while b"event: change" not in stream.data:
        assert stream.more()
    stream.close()


@pytest.mark.parametrize("path", ["/nothing", "/session", "/session/", "//", "/page/../x", "/session/" + "a" * 500, "/page/none.css"])
def test_what_is_not_there_is_said_to_be_not_there(page, path):
    assert page.raw("GET", path).status == 404


def listens(server):
    """Whether it does, and on which port besides."""
    return int(re.search(rb"listening on http://127.0.0.1:(\d+)/", server.stderr.readline())[1])


def test_stop_ends_the_server_and_a_login_outlives_it(cordon, page):
    stream = page.listen("audit")
    stream.head()
    assert cordon("open", "--stop").returncode == 0
    stream.ended()
    with pytest.raises(ConnectionRefusedError):
        page.get("/")
    assert cordon("open", "--stop").returncode == 0  # nothing to do
    server = cordon.start("serve", "--listen", "127.0.0.1:0")
    listens(server)
    assert "What runs now" in page.get("/")  # the same place and cookie, before anybody opens it again
    server.kill()
    server.wait(60)
    again = Page(cordon)
    assert again.host == page.host and "What runs now" in page.get("/")
    assert page.token() != again.token()


def test_the_page_has_an_address_of_its_own_whatever_the_server_listens_on(cordon, page):
    """A browser sends a cookie to all ports of a host, so to every server that an agent starts on 127.0.0.1."""
    page.stop()
    server = cordon.start("serve", "--listen", "127.0.0.1:0")
    port = listens(server)
    link = cordon("open", "--no-browser").stdout.strip()
    assert page.host in link and not page.address.startswith("127.0.")
    address, host = page.address, page.host
    page.address, page.port, page.host = "127.0.0.1", port, f"127.0.0.1:{port}"
    name, _, value = page.cookie.partition("=")
    for cookie in (page.cookie, f"cordon-{port}={value}"):
        for path in ("/", "/approvals", "/page/style.css", link.partition(host)[2]):
            answer = page.raw("GET", path, {"Cookie": cookie})
            assert answer.status == 404 and "set-cookie" not in answer.headers, answer
    for wrong in (f"localhost:{host.rpartition(':')[2]}", f"127.0.0.1:{host.rpartition(':')[2]}"):
        page.address, page.port = address, int(host.rpartition(":")[2])
        assert page.raw("GET", "/", {"Host": wrong}).status == 403, wrong
    assert page.raw("GET", link.partition(host)[2], {"Host": host}).status == 200, "nobody has used it up"


def test_who_takes_the_address_of_the_page_gets_nothing_that_opens_it(cordon, page):
    page.stop()
    with socket.create_server((page.address, page.port)):
        done = cordon("open", "--no-browser")
        assert done.returncode == 0 and page.host not in done.stdout and "somebody else uses the address" in done.stderr
        assert b"somebody else" in (cordon.box.state / "state" / "serve" / "log").read_bytes()
        moved = Page(cordon)
    name, _, value = page.cookie.partition("=")
    assert moved.raw("GET", "/", {"Cookie": f"cordon-{moved.port}={value}"}).status == 401
    # That one may have got the cookie from a page that was open, so the place is not taken again.
    moved.stop()
    again = Page(cordon)
    assert again.host == moved.host and "What runs now" in moved.get("/")


def test_a_link_to_a_front_needs_its_name(cordon, page):
    done = cordon("open", "--front", "agents.example.org")
    assert done.returncode == 1 and "--allow-host" in done.stderr and not done.stdout
    assert cordon("open", "--front", "a b").returncode == 2
    page.stop()
    server = cordon.start("serve", "--listen", "127.0.0.1:0", "--allow-host", "agents.example.org")
    port = listens(server)
    link = cordon("open", "--front", "agents.example.org").stdout.strip()
    assert link.startswith("https://agents.example.org/login?code=")
    page.address, page.port, page.cookie = "127.0.0.1", port, None
    answer = page.raw("GET", link.partition(".org")[2], {"Host": "agents.example.org"})
    assert answer.status == 200 and answer.headers["set-cookie"].endswith("; Secure")
    page.cookie = answer.headers["set-cookie"].partition(";")[0]
    assert "What runs now" in page.get("/", headers={"Host": "agents.example.org"})
    assert page.raw("GET", "/", {"Host": f"127.0.0.1:{port}"}).status == 404
