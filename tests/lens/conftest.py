# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the lens: a directory, and commands that see it through a live cordon-lens."""
import json
import shutil
import signal
import subprocess
import textwrap
import time

import pytest

from support import built_executable, poll

# What code that runs inside the view begins with: answer() gives the value, or the name of the error.
PRELUDE = '''
import errno, fcntl, json, mmap, os, socket, stat, subprocess, sys, time
def answer(call, *args, **options):
    try:
        value = call(*args, **options)
    except OSError as error:
        return errno.errorcode[error.errno]
    return value if isinstance(value, (str, list, bool)) else "ok"
def read(path):
    with open(path) as stream:
        return stream.read()
def write(path, text="written\\n", flags=os.O_CREAT | os.O_TRUNC):
    fd = os.open(path, os.O_WRONLY | flags, 0o644)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
def names(path="."):
    return sorted(os.listdir(path))
out = {}
'''


# Answers questions of the test line by line, so that the kernel's caches are warm when something changes.
SERVER = """
for line in sys.stdin:
    print(json.dumps(eval(line)), flush=True)
"""

# A sanitized lens is not dumpable, so that its leaks cannot be looked for.
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=1", "UBSAN_OPTIONS": "halt_on_error=1"}


class Asker:
    """Questions to code that runs inside the view."""

    def __init__(self, process):
        self.process = process

    def __call__(self, expression):
        self.process.stdin.write(expression.encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return json.loads(line)

    def within_a_second(self, expression, wanted):
        deadline = time.monotonic() + 1.0
        while (got := self(expression)) != wanted and time.monotonic() < deadline:
            time.sleep(0.01)
        assert got == wanted, f"{expression}: {got!r} after a second"


class Lens:
    """`root` on the host, shown at `view` to commands of run(), start() and python()."""

    def __init__(self, box):
        self.box = box
        self.root = box.mkdir("root")
        self.view = box.mkdir("view")
        self.pid_file = box.path / "lens.pid"

    def write(self, name, data="", **options):
        return self.box.write(f"root/{name}", data, **options)

    def read(self, name):
        return (self.root / name).read_text()

    def names(self, name="."):
        return sorted(path.name for path in (self.root / name).iterdir())

    def command(self, rules, command):
        self.pid_file.unlink(missing_ok=True)
        bin_dir = self.box.bin
        return [
            *(str(bin_dir / "mount_lens"), "--lens", str(bin_dir / "cordon-lens"), "--root", str(self.root)),
            *("--at", str(self.view), "--lens-pid", str(self.pid_file), *rules, "--", *command),
        ]

    def run(self, *command, rules=("--rw", "**"), **options):
        return self.box.run(*self.command(rules, command), env=SANITIZERS, **options)

    def start(self, *command, rules=("--rw", "**"), **options):
        return self.box.start(*self.command(rules, command), env=SANITIZERS, **options)

    def script(self, code):
        return ("/usr/bin/python3", "-c", PRELUDE + textwrap.dedent(code) + "\nprint(json.dumps(out))")

    def python(self, code, rules=("--rw", "**"), **options):
        """Runs code inside the view; what it puts into `out` comes back."""
        done = self.run(*self.script(code), rules=rules, **options)
        assert done.returncode == 0, str(done)
        return json.loads(done.stdout)

    def start_python(self, code, rules=("--rw", "**")):
        """The same, left running: talk to it over its stdin and stdout, line by line."""
        return self.start(*self.script(code), rules=rules, stdin=subprocess.PIPE)

    def asker(self, rules=("--rw", "**"), within=()):
        return Asker(self.start(*within, *self.script(SERVER), rules=rules, stdin=subprocess.PIPE))

    def lens_pid(self):
        return int(poll(lambda: self.pid_file.exists() and self.pid_file.read_text(), what="the lens's pid"))


@pytest.fixture(scope="session")
def lens_tools(bin_dir):
    """mount_lens beside the executables under test."""
    target = bin_dir / "mount_lens"
    shutil.copyfile(built_executable().parent / "tests" / "mount_lens", target)
    target.chmod(0o755)


@pytest.fixture
def lens(box, lens_tools):
    made = Lens(box)
    yield made
    for process in box.started:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
