# SPDX-License-Identifier: Apache-2.0
"""Sites that a person has open beside the page, on other ports of the same machine."""
import http.server
import threading

import pytest

from browsing import Tab


class Site:
    """A page of somebody else, with any text, that also sets cookies."""

    def __init__(self):
        self.pages = {}
        self.cookie = None
        self.seen = []  # cookies that browsers sent
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                site.seen.append(self.headers.get("Cookie", ""))
                body = site.pages.get(self.path, "").encode()
                self.send_response(200 if body else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                if site.cookie:
                    self.send_header("Set-Cookie", site.cookie)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def site():
    made = Site()
    yield made
    made.close()


@pytest.fixture
def victim(page, chromium, cordon):
    """A person who is logged in and visits other sites."""
    tab = Tab(chromium, cordon("open", "--no-browser").stdout.strip())
    tab.origin, tab.home = None, tab.origin
    tab.may_fail = ("",)  # the attacks fail loudly, in the console
    yield tab
    tab.close()


def test_another_port_can_neither_frame_nor_read_nor_post(site, victim):
    home = victim.home
    site.pages["/frame"] = f'<iframe id="f" src="{home}/"></iframe>'
    site.pages["/read"] = "<p>hello</p>"
    site.pages["/post"] = f'<form id="f" method="post" action="{home}/logout"><input name="token" value="{"0" * 64}"></form>'
    victim.goto(site.url + "/frame")
    framed = victim.evaluate("new Promise((done) => setTimeout(() => { try { done(document.getElementById('f').contentDocument?.body?.innerText ?? null) } catch { done(null) } }, 500))")
    assert not framed or "What runs now" not in framed
    victim.goto(site.url + "/read")
    for how in ("{}", "{credentials: 'include'}", "{mode: 'no-cors', credentials: 'include'}", "{method: 'POST', credentials: 'include', body: 'token=1'}"):
        got = victim.evaluate(f"fetch('{home}/', {how}).then((r) => r.text(), () => '')")
        assert "What runs now" not in got, how
    # Script and style of the page are no use to others either.
    assert victim.evaluate(f"new Promise((done) => {{ const s = document.createElement('script'); s.src = '{home}/page/script.js'; s.onload = () => done('ran'); s.onerror = () => done('refused'); document.body.append(s); }})") == "refused"
    victim.goto(site.url + "/post")
    victim.evaluate("document.getElementById('f').submit()")
    victim.element(("getByText", "Requests of other sites are refused"), call="waitFor")
    victim.goto(home + "/")
    victim.see("What runs now")  # still logged in


def test_cookies_of_another_port_give_nothing(site, victim, page):
    """Browsers share cookies among ports, so the page has an address of its own: a server of 127.0.0.1 neither gets its cookie, with which it
    could log in, nor changes it."""
    other = page.cookie.partition("=")[2].split(".")
    site.pages["/"] = "<p>hello</p>"
    assert page.address != "127.0.0.1"
    given = {""}
    for value in ("", "1.2.3", f"{other[0]}.{'0' * 32}.{other[2]}", f"{int(other[0]) + 1}.{other[1]}.{other[2]}"):
        site.cookie = f"cordon-{page.port}={value}; Path=/"
        given.add(f"cordon-{page.port}={value}")
        victim.goto(site.url + "/")
        victim.goto(victim.home + "/")
        victim.see("What runs now")
    assert site.seen and set(site.seen) <= given, site.seen


def test_a_link_of_another_site_leads_to_the_page_and_changes_nothing(site, victim):
    site.pages["/"] = f'<a href="{victim.home}/logout">a</a> <a href="{victim.home}/">b</a>'
    victim.goto(site.url + "/")
    victim.click("link", "b")
    victim.see("You are not logged in")  # from another site, even a link does not take the cookie along
    victim.goto(victim.home + "/")
    victim.see("What runs now")
