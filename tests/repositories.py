# SPDX-License-Identifier: Apache-2.0
"""A repository of the host's, for the tests about commits of runs."""


class Repository:
    """A repository of the host's."""

    def __init__(self, box, name="repo"):
        self.box = box
        self.path = box.mkdir(name)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Host Person")
        self.git("config", "user.email", "host@example.org")
        for path, text in {"lib/a.txt": "a\n", "docs/b.txt": "b\n"}.items():
            box.write(f"{name}/{path}", text)
        self.git("add", ".")
        self.git("commit", "-q", "-m", "one")

    def git(self, *args, cwd=None, ok=True):
        done = self.box.run("git", *args, cwd=cwd or self.path)
        assert not ok or done.returncode == 0, str(done)
        return done.stdout.rstrip("\n")

    def status(self):
        return self.git("status", "--porcelain=v1")

    def refs(self):
        return dict(reversed(line.split(" ", 1)) for line in self.git("for-each-ref", "--format=%(objectname) %(refname)").splitlines())

    def subjects(self, ref="HEAD"):
        return self.git("log", "--format=%s", ref).splitlines()
