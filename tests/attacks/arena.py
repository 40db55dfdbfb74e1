# SPDX-License-Identifier: Apache-2.0
"""What attacks share: a workspace with protected paths, programs run inside, and the same without cordon."""
import hashlib
import os
import pathlib
import select
import shutil
import stat
import subprocess
import time

from modes import WIDE, WORKSPACE, open_session
from support import poll

PROTECTED = ("AGENTS.md", ".factory", ".git/config", ".git/hooks", "deep/er/held.txt")


class Arena:
    """A repository with protected paths, seen from the host."""

    def __init__(self, box, cordon):
        self.box = box
        self.cordon = cordon
        self.root = box.repo(files={
            "AGENTS.md": "the prompt\n",
            ".factory/settings.json": "{}\n",
            ".git/hooks/pre-commit": "#!/bin/sh\n",
            "deep/er/held.txt": "held\n",
            "deep/er/free.txt": "free\n",
            "src/main.c": "int main(void) { return 0; }\n",
        })
        self.before = self.look()
        self.session = None

    def look(self):
        """Everything about the protected paths: type, mode, owner, inode, times, content, names."""
        found = {}
        for name in PROTECTED:
            top = self.root / name
            for path in [top, *sorted(top.rglob("*"))] if top.is_dir() and not top.is_symlink() else [top]:
                st = os.lstat(path)
                content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(st.st_mode) else None
                found[str(path)] = (st.st_mode, st.st_uid, st.st_ino, st.st_mtime_ns, st.st_nlink, content,
                                    tuple(os.listxattr(path, follow_symlinks=False)))
        for parent in (".git", "deep", "deep/er"):
            found[parent] = os.lstat(self.root / parent).st_ino
        return found

    def assert_unharmed(self):
        assert self.look() == self.before

    def protect(self):
        return [word for path in PROTECTED for word in ("--protect", path)]

    def sh(self, script, *options, protect=True, **kw):
        return self.cordon("run", "--root", str(self.root), *(self.protect() if protect else []), *options, "--", "/bin/sh", "-c",
                           script, cwd=self.root, **kw)

    def py(self, script, *options, protect=True, **kw):
        return self.cordon("run", "--root", str(self.root), *(self.protect() if protect else []), *options, "--", "/usr/bin/python3",
                           "-c", PRELUDE + script, cwd=self.root, **kw)

    def enter(self, mode, *settings, protect=True, modes=WIDE):
        """From now on inside() and begin() start programs in this mode. The workspace moves to where a session has its root; of settings,
        those that a run and a project share work in every mode."""
        self.close()
        settings = [*(self.protect() if protect else []), *settings]
        if mode == "session":
            self.session, self.root = open_session(self.box, self.cordon, self.move, *settings)
            self.entry, self.inner = ["session", "exec", self.session, "--"], WORKSPACE
        else:
            self.entry, self.inner = ["run", "--root", str(self.root), *settings, *modes[mode], "--"], str(self.root)
        if protect:
            self.before = self.look()
        return self

    def move(self, top):
        for path in [*self.root.iterdir()]:
            shutil.move(path, top)

    def inside(self, *words, **kw):
        return self.cordon(*self.entry, *words, cwd=self.root, **kw)

    def begin(self, *words, **kw):
        return self.cordon.start(*self.entry, *words, cwd=self.root, **kw)

    def assert_told(self, err, *words):
        """A person was told: on standard error, or in the record, where those of a session come a little later."""
        if self.session:
            poll(lambda: all(word in self.cordon("audit", "--json").stdout for word in words), 10, f"{words} in the record")
        else:
            assert all(word in err for word in words), err

    def close(self):
        if self.session:
            self.cordon("session", "stop", self.session, "--grace", "100ms")
            self.session = None

    def bwrap(self, script, *options, program="/bin/sh", **kw):
        """The same in plain bubblewrap, with a read-only bind on the protected files: what others do."""
        binds = ["--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64",
                 "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", str(self.root), str(self.root)]
        for name in PROTECTED:
            binds += ["--ro-bind", str(self.root / name), str(self.root / name)]
        words = [program, "-c", (PRELUDE if "python" in program else "") + script]
        return self.box.run("bwrap", *binds, "--chdir", str(self.root), *options, *words, **kw)


def hear(process, word, times=1):
    """Waits until a run has said a word on standard error so often; process.heard has what it said. A boundary is in force again when
    a report says so."""
    process.heard = getattr(process, "heard", b"")
    end = time.monotonic() + 30
    while process.heard.count(word) < times and select.select([process.stderr], [], [], max(0, end - time.monotonic()))[0]:
        said = os.read(process.stderr.fileno(), 65536)
        if not said:
            break
        process.heard += said
    assert process.heard.count(word) >= times, process.heard


# What every program inside starts with: names of errors, raw system calls.
PRELUDE = """
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def syscall(*args):
    ctypes.set_errno(0)
    r = libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    return r if r >= 0 else -ctypes.get_errno()
def attempt(name, call):
    try:
        call()
        print(name, 'done')
    except OSError as e:
        print(name, errno.errorcode.get(e.errno, e.errno))
"""


def answers(result):
    """{attempt: what came of it}"""
    return dict(line.rsplit(" ", 1) for line in result.stdout.splitlines() if " " in line)


def build_probes(target):
    """Builds the programs of probes/, which run inside, without sanitizers."""
    for source in sorted((pathlib.Path(__file__).resolve().parent / "probes").glob("*.c")):
        subprocess.run([os.environ.get("CC", "cc"), "-O1", "-static", "-pthread", "-o", str(target / source.stem), str(source)], check=True)
        (target / source.stem).chmod(0o755)
