# SPDX-License-Identifier: Apache-2.0
"""What tests of cordon loop share: a repository with a PRD, agents that are lines of shell, and looks at what came of it."""
import json
import pathlib
import os

# Every agent begins so: the prompt in $p, and the story's id in $id.
READ = """p=$(cat); id=$(printf '%s\\n' "$p" | sed -n '1s/^# Story \\([^:]*\\):.*/\\1/p')\n"""


def story(id, **more):
    return {"id": id, "title": f"Title of {id}", **more}


class Loop:
    def __init__(self, cordon, box, top):
        self.cordon, self.box, self.top = cordon, box, top

    def prd(self, *stories, name="prd.json", **more):
        return self.box.write(f"repo/{name}", json.dumps({"project": "shop", **more, "userStories": list(stories)}, indent=2))

    def args(self, script, *args):
        return ["loop", *args, "--", "sh", "-c", READ + script]

    def __call__(self, script, *args, status=0, **options):
        done = self.cordon(*self.args(script, *args), cwd=self.top, **options)
        assert done.returncode == status, done
        return done

    def events(self, script, *args, status=0, **options):
        return [json.loads(line) for line in self(script, "--json", *args, status=status, **options).stdout.splitlines()]

    def passed(self, name="prd.json"):
        return [one["id"] for one in json.loads((self.top / name).read_text())["userStories"] if one.get("passes")]

    def views(self):
        path = self.box.state / "state" / "views"
        return sorted(os.listdir(path)) if path.exists() else []

    def output(self, call):
        """What the agent of a call has written so far; nothing before its log is there."""
        path = self.logs().get(call, pathlib.Path("/nonexistent")) / "output.log"
        return path.read_text() if path.exists() else ""

    def logs(self):
        return {path.name: path for path in (self.box.state / "state" / "loops").glob("*/logs/*")}
