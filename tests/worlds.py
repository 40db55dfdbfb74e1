# SPDX-License-Identifier: Apache-2.0
"""A machine on which everything happens that the page shows: a session, an agent's run, a view, a loop, a workflow, an approval."""
import json

from flows import Desk, human, step
from loops import READ, Loop, story
from support import poll

# Names and output that want to be more than text.
HOSTILE = "<script>alert(1)</script>\"'&"
BIDI = "a\u202eb"
ANSI = "\033[31mred\033[0m"
SHELL = 'while read -r line; do eval "$line"; done 2>&1'


class World:
    """Real things of every kind, made once by the command line; their ids are attributes."""

    def __init__(self, box, cordon):
        self.box, self.cordon = box, cordon
        self.repo = box.repo(files={"lib/a.txt": "one\ntwo\nthree\n", "lib/b.txt": "b\n", "docs/notes.md": "notes\n"})
        self.start_session()
        self.execute_agent()
        self.make_view()
        self.work_loop()
        self.run_workflow()
        self.ask_approval()

    def ask(self, *args, status=0, **options):
        done = self.cordon(*args, "--json", **options)
        assert done.returncode == status, str(done)
        return done.json()

    def start_session(self):
        """One that has ended, so that it was measured, and one that goes on."""
        self.project = self.ask("project", "create", f"shop {HOSTILE}", "--no-git", "--isolation", "--protect", "AGENTS.md")["id"]
        assert self.cordon("session", "start", self.project, "--", "true").returncode == 0
        done = self.cordon("session", "start", self.project, "--new-session", "--detach", "--json", "--", "sh", "-c", SHELL)
        assert done.returncode == 0, str(done)
        self.session = done.json()["session_id"]
        self.say(f"printf '%s\\n' '{ANSI} {HOSTILE.replace(chr(39), '')} {BIDI}'; echo x >AGENTS.md")

    def say(self, line):
        assert self.cordon("session", "send", self.session, line).returncode == 0

    def execute_agent(self):
        self.box.write("repo/agents.json", json.dumps({"agents": [{"name": "qa", "role": "qa", "scope": {"patterns": ["lib/**"]}}]}))
        done = self.cordon("execute", "--agent", "qa", "--json", "--command", "echo checked; cat docs/notes.md", cwd=self.repo)
        self.run = json.loads(done.stdout)["runId"]

    def make_view(self):
        """Changes that wait: a file with two hunks' worth of lines, a new one, a deletion, and what the host would execute."""
        self.box.write("repo/lib/long.txt", "".join(f"line {n}\n" for n in range(60)))
        work = "sed -i 's/^line 5$/LINE 5/; s/^line 50$/LINE 50/' lib/long.txt; echo new >lib/new.txt; rm lib/b.txt; echo '#' >>lib/a.txt"
        done = self.cordon("run", "--cow", "--git", "none", "--json", "--", "sh", "-c", work, cwd=self.repo)
        assert done.returncode == 0, str(done)
        self.view = self.ask("changes", "list", cwd=self.repo)["changes"][-1]["id"]

    def work_loop(self):
        """One story passes, one is parked, one waits for it."""
        top = self.box.mkdir("looped")
        self.box.write("looped/lib/x", "")
        self.loop = Loop(self.cordon, self.box, top)
        stories = [story("S1"), story("S2"), story("S3", dependencies=["S2"])]
        self.box.write("looped/prd.json", json.dumps({"project": "shop", "userStories": stories}))
        script = 'case $id in S2) echo no; exit 1;; *) echo done >lib/$id;; esac'
        self.cordon("loop", "--max-iterations", "6", "--", "sh", "-c", READ + script, cwd=top)
        self.loop_id = next(path.name for path in (self.box.state / "state" / "loops").iterdir() if path.is_dir())

    def run_workflow(self):
        self.desk = Desk(self.box, self.cordon, grants=["docs"])
        self.desk.define(step("plan", "echo planned", next="review"), human("review", on_approve="ship", on_reject="plan"), step("ship", "echo shipped"))
        self.flow = self.desk.begin()
        poll(lambda: self.desk.status(self.flow).get("pendingHumanInput"), 60, "the workflow to wait")

    def ask_approval(self):
        """A client that can't ask its person wants to delete a project."""
        self.doomed = self.ask("project", "create", "doomed", "--no-git")["id"]
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": f"client {HOSTILE}", "version": "1"}}}
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "project_delete", "arguments": {"project_id": self.doomed}}}
        lines = [hello, {"jsonrpc": "2.0", "method": "notifications/initialized"}, call]
        done = self.cordon("mcp", input="".join(json.dumps(line) + "\n" for line in lines))
        assert "approval" in done.stdout, str(done)
        self.approval = self.ask("approvals", "list")[-1]["id"]
