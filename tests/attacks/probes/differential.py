# SPDX-License-Identifier: Apache-2.0
"""Answers questions of the kernel inside one sandbox: a JSON list of [kind, path, other] on stdin, a list of error names on stdout."""
import errno
import json
import os
import sys


def read(path, _):
    fd = os.open(path, os.O_RDONLY)
    try:
        if os.read(fd, 100) != b"content\n":
            raise OSError(errno.ENODATA, "another content")
    finally:
        os.close(fd)


def write(path, _):
    fd = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(fd, b"CHANGED\n", 0)
    finally:
        os.close(fd)


def create(path, _):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))


def delete(path, _):
    os.unlink(path)


CALLS = {"read": read, "write": write, "create": create, "rename": os.rename, "delete": delete}
answers = []
for kind, path, other in json.load(sys.stdin):
    try:
        CALLS[kind](path, other)
        answers.append("done")
    except OSError as error:
        answers.append(errno.errorcode.get(error.errno, str(error.errno)))
json.dump(answers, sys.stdout)
