# SPDX-License-Identifier: Apache-2.0
"""Chromium for the tests of the page, driven by e2e/page/browser/drive.mjs: a browser per test process, a tab per person."""
import itertools
import json
import os
import pathlib
import subprocess

from support import TESTS, built_executable, node_packages, session_helpers

HERE = TESTS / "e2e" / "page" / "browser"
NODE = TESTS / "e2e" / "mcp"  # has a Node that is new enough
# Within a group of radio buttons the arrows move.
IN_GROUP = """(e) => e.type === 'radio' && document.activeElement.type === 'radio' && e.name === document.activeElement.name
    && e.form === document.activeElement.form"""


class Browser:
    """The process of the browser; one command at a time."""

    def __init__(self, base_dir):
        modules = node_packages(HERE, base_dir, "page-node", ("drive.mjs",))
        node = next((node_packages(NODE, base_dir, "mcp-node") / "node_modules").glob("node-linux-*/bin/node"))
        self.process = subprocess.Popen([str(node), str(modules / "drive.mjs")], cwd=modules, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        session_helpers.add(self.process.pid)
        self.numbers = itertools.count(1)

    def ask(self, what, **more):
        self.process.stdin.write(json.dumps({"do": what} | more).encode() + b"\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline() or '{"error": "the browser has ended"}')
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


class Tab:
    """A person in front of a page. `options` are those of a context of Playwright: viewport, colorScheme, javaScriptEnabled."""

    def __init__(self, browser, link=None, **options):
        self.browser = browser
        self.name = f"tab{next(browser.numbers)}"
        self.may_fail = ()
        self.by_keys = options.get("javaScriptEnabled", True)
        self.browser.ask("open", tab=self.name, options={"viewport": {"width": 1280, "height": 900}} | options)
        if link:
            self.goto(link)
            self.element(("getByRole", "heading", {"level": 1}), call="waitFor")
        self.origin = link.partition("/login")[0] if link else None

    def goto(self, url):
        self.browser.ask("page", tab=self.name, call="goto", args=[url if "://" in url else self.origin + url])

    def url(self):
        return self.browser.ask("page", tab=self.name, call="url")

    def html(self):
        return self.browser.ask("page", tab=self.name, call="content")

    def press(self, *keys):
        for key in keys:
            self.browser.ask("keyboard", tab=self.name, call="press", args=[key])

    def type(self, text):
        self.browser.ask("keyboard", tab=self.name, call="type", args=[text])

    def element(self, *find, call="textContent", args=()):
        return self.browser.ask("element", tab=self.name, find=find, call=call, args=list(args))

    def click(self, role, name, **more):
        return self.element(("getByRole", role, {"name": name} | more), call="click")

    def reach(self, *find):
        """Brings the focus to a control by keys alone."""
        self.element(*find, call="waitFor")
        for _ in range(300):  # the page may exchange its parts meanwhile, so the control is looked for each time
            if self.element(*find, call="evaluate", args=["(e) => e === document.activeElement"]):
                return
            in_group = self.element(*find, call="evaluate", args=[IN_GROUP])
            self.press("ArrowDown" if in_group else "Tab")
        raise AssertionError(f"no way to {find} by keyboard")

    def use(self, role, name, **more):
        """Presses a button, follows a link or marks a box: by the keyboard alone, or by clicks where there is no script."""
        find = (("getByRole", role, {"name": name} | more), ("first",))
        if not self.by_keys:
            self.element(*find, call="click")
            return
        self.reach(*find)
        self.press("Enter" if role in ("button", "link") else "Space")

    def write(self, label, text):
        """Replaces what a field has."""
        find = (("getByLabel", label), ("first",))
        if not self.by_keys:
            self.element(*find, call="fill", args=[text])
            return
        self.reach(*find)
        self.press("Control+a")
        self.type(text)

    def choose(self, label, option):
        """Picks an option by its beginning."""
        find = (("getByLabel", label), ("first",))
        if not self.by_keys:
            self.element(*find, call="selectOption", args=[{"label": option}])
            return
        self.reach(*find)
        self.type(option)
        chosen = self.element(*find, call="evaluate", args=["(e) => e.selectedOptions[0].label"])
        assert chosen == option, (chosen, option)

    def download(self, role, name):
        """What a link gives as a file, and the name of that file."""
        self.use(role, name)
        return self.browser.ask("downloaded", tab=self.name)

    def see(self, text):
        """Waits until the text is shown."""
        self.element(("getByText", text), ("first",), call="waitFor")

    def evaluate(self, script):
        return self.browser.ask("evaluate", tab=self.name, script=script)

    def axe(self):
        """What is serious or critical."""
        return [found for found in self.browser.ask("axe", tab=self.name) if found["impact"] in ("serious", "critical")]

    def picture(self, name):
        """Kept as an artefact, for people to look at."""
        where = pathlib.Path(os.environ.get("CORDON_PICTURES", built_executable().parent / "pictures"))
        where.mkdir(parents=True, exist_ok=True)
        self.browser.ask("page", tab=self.name, call="screenshot", args=[{"path": str(where / f"{name}.png"), "fullPage": True}])

    def overflows(self):
        """Whether somebody has to scroll sideways."""
        return self.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")

    def close(self):
        """Nothing failed in the page, and it asked nobody but its own server."""
        seen = self.browser.ask("close", tab=self.name)
        faults = [fault for fault in seen["faults"] if not any(part in fault for part in self.may_fail)]
        assert not faults, faults
        assert not [url for url in seen["asked"] if self.origin and not url.startswith(self.origin + "/")], seen["asked"]
