# SPDX-License-Identifier: Apache-2.0
"""Views whose upper layer a test makes itself: by work in an overlay without the rest of a sandbox, or by planting what no run could make."""
import json
import os
import re
import subprocess
import time
import uuid

# The work of an agent in an overlay, without a sandbox. $0 is the root, $1 the view, $2 a script, $3 the layers between the two.
MOUNT = 'mount -t overlay -o "userxattr,lowerdir=$3$0,upperdir=$1/upper,workdir=$1/work" overlay "$1/merged" && cd "$1/merged" && exec sh -euc "$2"'


def policy_text(root, mode="strict", grants=(), protect=()):
    """A policy as policy/handover.h writes it."""
    words = ["cordon-policy", "2", "root", str(root), "mode", mode, "read_only", "no", "editor_temps", "yes"]
    for access, pattern in grants:
        words += ["grant", access, pattern, ""]
    for path in protect:
        words += ["protect", path, "--protect", "asked"]
    return b"".join(os.fsencode(word) + b"\0" for word in words + ["end"])


class View:
    """A view of `root`, with the record of a run that has ended."""

    def __init__(self, box, root, layers=(), **policy):
        """`layers` are views below this one, topmost first."""
        self.box, self.root, self.layers = box, root, layers
        self.id = str(uuid.uuid4())
        self.dir = box.state / "state" / "views" / self.id
        made = root.stat()
        for path in (box.state / "state", box.state / "state" / "views", self.dir, self.dir / "upper", self.dir / "work"):
            if not path.exists():
                path.mkdir(mode=0o700, exist_ok=True)  # a server that starts may make the first ones meanwhile
                os.chown(path, box.who.uid, box.who.gid)
        self.upper = self.dir / "upper"
        self.upper.chmod(0o755)
        # File times come from a clock that advances in ticks: what happened before is earlier, what happens after is later.
        time.sleep(0.012)
        now = time.time_ns()
        time.sleep(0.012)
        record = {"schema": 1, "id": self.id, "state": "ended", "root": str(root), "created_at": "2026-01-01T00:00:00.000Z", "command": ["true"]}
        record |= {"git": "none", "dev": made.st_dev, "ino": made.st_ino, "started": {"sec": now // 10**9, "nsec": now % 10**9}, "layers": [view.id for view in layers]}
        self.write("policy", policy_text(root, **policy))
        self.write("record.json", json.dumps(record).encode())

    def write(self, name, content):
        path = self.dir / name
        path.write_bytes(content)
        path.chmod(0o600)
        os.chown(path, self.box.who.uid, self.box.who.gid)

    def work(self, script):
        """Does the work of an agent: a shell script in the view."""
        merged = self.dir / "merged"
        merged.mkdir()
        os.chown(merged, self.box.who.uid, self.box.who.gid)
        command = ["unshare", "-rm", "sh", "-euc", MOUNT, str(self.root), str(self.dir), script, "".join(f"{view.upper}:" for view in self.layers)]
        done = subprocess.run(command, capture_output=True, check=False, timeout=120, **self.box.who.popen_args())
        merged.rmdir()
        assert done.returncode == 0, os.fsdecode(done.stderr)
        return self


# Calls after which a kill finds another state on the disk, and those in between.
CALLS = "renameat,renameat2,unlinkat,mkdirat,openat,linkat,symlinkat,fchmod,chmod,utimensat,write,fsync,syncfs,close"


class Killer:
    """Runs cordon and kills it at one of its system calls: strace counts each kind of call by itself."""

    def __init__(self, cordon, tree):
        self.cordon, self.tree = cordon, tree

    def count(self, *args):
        log = self.cordon.box.path / "calls"
        done = self.cordon.box.run("strace", "-f", "-qq", "-o", str(log), "-e", f"trace={CALLS}", self.cordon.path, *args, cwd=self.tree)
        assert done.returncode == 0, done.stderr
        seen = {}
        return [(call, seen.setdefault(call, []).append(0) or len(seen[call])) for call in re.findall(r"^\d+ +(\w+)\(", log.read_text(), re.MULTILINE)]

    def kill(self, call, number, *args):
        inject = ("-e", f"trace={call}", "-e", f"inject={call}:signal=SIGKILL:when={number}")
        return self.cordon.box.run("strace", "-f", "-qq", "-o", "/dev/null", *inject, self.cordon.path, *args, cwd=self.tree).returncode
