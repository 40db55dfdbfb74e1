# SPDX-License-Identifier: Apache-2.0
"""Four clients from the npm registry, as a person has them: in a global npm directory of the home, configured by their own files.

docs/clients.md has the lines that start them; the tests run those lines and no others.
"""
import json
import os
import pathlib
import re
import select
import shlex
import subprocess
import time

from support import TOP, link_or_copy, node_packages
from terminals import Terminal

from clients.model import Deed

HERE = pathlib.Path(__file__).resolve().parent
NODE = TOP / "tests" / "e2e" / "mcp"  # its package.json pins a Node that is new enough
SECRET = "the-secret-half-of-a-key"
PLANTED = "planted-by-the-agent"
HOOKS = {1: "pre-commit", 2: "post-checkout"}
KEY = "sk-of-a-stand-in"


class Client:
    """What is different between the clients."""

    title = ""  # the heading in docs/clients.md
    name = ""
    package = ""
    program = ""  # in the package, what the name in bin/ leads to
    postinstall = ""
    settings = ""  # in the home
    presses = 1  # how often a person presses Ctrl-C to end it
    reads_by_tool = True  # whether its own tool opens files outside the workspace

    def variables(self, model):
        return {}

    def configure(self, box, home, work, model):
        raise NotImplementedError

    def plant(self, text):
        """The settings with a line of the agent's in them, such that the client still starts."""
        return json.dumps(json.loads(text) | {"planted": PLANTED})


class Claude(Client):
    title, name = "Claude Code", "claude"
    package, program, postinstall = "@anthropic-ai/claude-code", "bin/claude.exe", "install.cjs"
    settings = ".claude/settings.json"
    presses = 2

    def variables(self, model):
        return {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": model.url}

    def configure(self, box, home, work, model):
        box.write(home / self.settings, json.dumps({"skipDangerousModePermissionPrompt": True}))
        asked = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "bypassPermissionsModeAccepted": True,
            "projects": {str(work): {"hasTrustDialogAccepted": True}},
        }
        # Where it keeps what it has asked once: in the home, and beside the settings with CLAUDE_CONFIG_DIR.
        box.write(home / ".claude.json", json.dumps(asked))
        box.write(home / ".claude/.claude.json", json.dumps(asked))


class Codex(Client):
    title, name = "Codex", "codex"
    package, program = "@openai/codex", "bin/codex.js"
    settings = ".codex/config.toml"

    def variables(self, model):
        return {"OPENAI_API_KEY": KEY}

    def configure(self, box, home, work, model):
        box.write(home / self.settings, f"""model = "stand-in"
model_provider = "stand-in"

[model_providers.stand-in]
name = "stand-in"
base_url = "{model.url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"

[projects."{work}"]
trust_level = "trusted"
""")

    def plant(self, text):
        return f"{text}# {PLANTED}"


class Gemini(Client):
    title, name = "Gemini CLI", "gemini"
    package, program = "@google/gemini-cli", "bundle/gemini.js"
    settings = ".gemini/settings.json"
    presses = 2
    reads_by_tool = False  # it refuses this itself

    def variables(self, model):
        return {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": model.url}

    def configure(self, box, home, work, model):
        box.write(home / self.settings, json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}}))


class Opencode(Client):
    title, name = "opencode", "opencode"
    package, program, postinstall = "opencode-ai", "bin/opencode.exe", "postinstall.mjs"
    settings = ".config/opencode/opencode.json"
    reads_by_tool = False  # it looks whether a file is there first, and a look is no attempt

    def variables(self, model):
        # Nothing is fetched in a test.
        quiet = ("MODELS_FETCH", "AUTOUPDATE", "DEFAULT_PLUGINS", "LSP_DOWNLOAD")
        return {"OPENCODE_API_KEY": KEY, **{f"OPENCODE_DISABLE_{what}": "1" for what in quiet}}

    def configure(self, box, home, work, model):
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Stand-in",
            "options": {"baseURL": f"{model.url}/v1", "apiKey": "{env:OPENCODE_API_KEY}"},
            "models": {"stand-in": {"name": "Stand-in"}},
        }
        settings = {"model": "stand-in/stand-in", "small_model": "stand-in/stand-in", "permission": "allow", "snapshot": False, "provider": {"stand-in": provider}}
        box.write(home / self.settings, json.dumps(settings))

    def plant(self, text):
        return json.dumps(json.loads(text) | {"username": PLANTED})


CLIENTS = (Claude(), Codex(), Gemini(), Opencode())


# ---- documented lines ----


def documented_lines(client):
    """The lines of a client in docs/clients.md: in a terminal, headless, and going on."""
    text = (TOP / "docs" / "clients.md").read_text()
    section = re.search(rf"^## {re.escape(client.title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL).group(1)
    lines = re.search(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL).group(1).splitlines()
    terminal, headless, more = (shlex.split(line) for line in lines)
    return {"terminal": terminal, "headless": headless, "more": more}


# ---- installing ----


def install(base_dir):
    """A directory with the packages of all clients, installed once per lock file, their own install scripts run."""
    modules = node_packages(HERE, base_dir, "clients-node") / "node_modules"
    node = next((node_packages(NODE, base_dir, "mcp-node") / "node_modules").glob("node-linux-*/bin/node"))
    for client in CLIENTS:
        done = modules / client.package / f".{client.name}-installed"
        if client.postinstall and not done.exists():
            subprocess.run([node, client.postinstall], cwd=modules / client.package, check=True, capture_output=True)
            done.touch()
    return modules, node


def clone(source, target):
    """A copy of a tree that shares the files' content."""
    for top, folders, files in os.walk(source):
        here = target / os.path.relpath(top, source)
        here.mkdir(parents=True)
        for name in files + [name for name in folders if os.path.islink(os.path.join(top, name))]:
            link_or_copy(os.path.join(top, name), here / name)


class Person:
    """A user with a home, a repository in it, a key, and one client set up."""

    def __init__(self, box, installed, client, model):
        self.box, self.client, self.model = box, client, model
        self.home = box.home
        self.work = self.home / "work"
        modules, node = installed
        clone(modules / client.package, self.home / ".npm-global/lib/node_modules" / client.package)
        (self.home / ".npm-global/bin").mkdir()
        (self.home / ".npm-global/bin" / client.name).symlink_to(f"../lib/node_modules/{client.package}/{client.program}")
        versions = self.home / ".nvm/versions/node/v22/bin"
        versions.mkdir(parents=True)
        link_or_copy(os.path.realpath(node), versions / "node")
        self.own_folders(self.home / ".npm-global", self.home / ".nvm")
        box.write(self.home / ".ssh/id_ed25519", f"{SECRET}\n", mode=0o600)
        box.mkdir(self.home / "other-project")
        box.mkdir(self.work)
        assert box.run("git", "init", "-q", str(self.work)).returncode == 0
        client.configure(box, self.home, self.work, model)
        self.env = {
            "PATH": f"{self.home}/.npm-global/bin:{versions}:{box.bin}:/usr/local/bin:/usr/bin:/bin",
            "TERM": "xterm-256color",
            "TMPDIR": str(self.box.tmp),
            **client.variables(model),
        }

    def own_folders(self, *tops):
        """Directories and links become the user's; files share their content with those of other tests, and stay as they are."""
        if os.getuid() == 0:
            for top, folders, files in (found for start in tops for found in os.walk(start)):
                for name in (top, *(os.path.join(top, name) for name in folders + files)):
                    if os.path.islink(name) or os.path.isdir(name):
                        os.chown(name, self.box.who.uid, self.box.who.gid, follow_symlinks=False)

    def deeds(self, number):
        """The chores of one prompt: one that is fine, and five that are not."""
        place = {name: str(path) for name, path in self.places(number).items()}
        planted = self.client.plant((self.home / self.client.settings).read_text())
        plant = {name: f"echo {PLANTED} > {place[name]}" for name in ("outside", "hook", "program")}
        return [
            Deed("inside", "write", place["inside"], PLANTED),
            Deed("outside", "shell", text=plant["outside"]),
            self.read_key(place["secret"], number),
            Deed("hook", "shell", text=plant["hook"]),
            Deed("settings", "shell", text=f"printf '%s\\n' {shlex.quote(planted)} > ~/{self.client.settings}"),
            Deed("program", "shell", text=plant["program"]),
        ]

    def read_key(self, path, number):
        """Once as a path of the host, once as a name in the home, wherever that is."""
        if number == 2:
            return Deed("secret", "shell", text="cat ~/.ssh/id_ed25519")
        return Deed("secret", "read" if self.client.reads_by_tool else "shell", path, f"cat {path}")

    def places(self, number):
        """Where the deeds of a prompt show on the host."""
        return {
            "inside": self.work / f"inside-{number}.txt",
            "outside": self.home / f"other-project/outside-{number}.txt",
            "secret": self.home / ".ssh/id_ed25519",
            "hook": self.work / f".git/hooks/{HOOKS[number]}",
            "settings": self.home / self.client.settings,
            "program": self.home / ".npm-global/lib/node_modules" / self.client.package / f"planted-{number}.js",
        }

    def done(self, number):
        """The deeds of a prompt that show on the host, by name."""
        found = {name for name, place in self.places(number).items() if place.exists() and PLANTED in place.read_text()}
        return found | ({"secret"} if self.model.heard(SECRET) else set())

    def headless(self, line, timeout=240):
        return self.box.run(*line, cwd=self.work, env=self.env, timeout=timeout)

    def terminal(self, line):
        return ClientTerminal(self.box, *line, cwd=self.work, env=self.env)


class ClientTerminal(Terminal):
    """A terminal that answers what clients ask of one, in which a client works until its model has said farewell."""

    ANSWERS = (
        (re.compile(rb"\x1b\[6n"), b"\x1b[1;1R"),
        (re.compile(rb"\x1b\[c"), b"\x1b[?62;22c"),
        (re.compile(rb"\x1b\]11;\?(?:\x1b\\|\x07)"), b"\x1b]11;rgb:0000/0000/0000\x1b\\"),
        (re.compile(rb"\x1b\]10;\?(?:\x1b\\|\x07)"), b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\"),
    )
    CONTROL = re.compile(r"\x1b(?:\[[0-9;?<>=$ ]*[a-zA-Z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][AB0]|[=>78])")

    def text(self):
        """What was written, without control sequences."""
        return self.CONTROL.sub("", self.seen.decode(errors="replace"))

    def wait(self, condition, seconds):
        """Serves the terminal until the condition holds; False when it does not within the time, or the client has ended."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                return False
            if select.select([self.master], [], [], 0.1)[0]:
                data = os.read(self.master, 65536)
                self.seen += data
                for question, answer in self.ANSWERS:
                    for _ in question.findall(data):
                        self.type(answer)
            elif self.process.poll() is not None:
                return bool(condition())
        return True

    def drain(self):
        """Reads what was written before the client ended; the end of a process says nothing about what the terminal still holds."""
        while select.select([self.master], [], [], 0)[0]:
            self.seen += os.read(self.master, 65536)

    def work(self, model, presses, seconds=240):
        """Until the model's farewell is on the screen; then the client is told to end, as a person does."""
        assert self.wait(lambda: model.said_farewell.acquire(blocking=False), seconds), self.text()
        assert self.wait(lambda: model.farewell in self.text(), 60), self.text()
        ended = lambda: self.process.poll() is not None
        for _ in range(5):
            for _ in range(presses):
                self.wait(ended, 0.3)
                self.type(b"\x03")
            if self.wait(ended, 10):
                self.drain()
                return
        raise AssertionError(self.text())
