# SPDX-License-Identifier: Apache-2.0
"""A user's terminal, for tests of what happens on it."""
import fcntl
import os
import pty
import select
import struct
import termios
import time


class Terminal:
    """The user's side: a pty on which a command runs in the foreground."""

    def __init__(self, box, *args, cwd, env=None):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 90, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.seen = b""
        self.process = box.start(*args, cwd=cwd, env={"TERM": "xterm", **(env or {})}, stdin=slave, stdout=slave, stderr=slave,
                                 preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def expect(self, text, seconds=15):
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            left = deadline - time.monotonic()
            assert left > 0, f"{text!r} not in {self.seen!r}"
            if select.select([self.master], [], [], left)[0]:
                self.seen += os.read(self.master, 4096)
        before, _, self.seen = self.seen.partition(text)
        return before

    def type(self, data):
        os.write(self.master, data)

    def close(self):
        os.close(self.master)
        os.close(self.slave)
