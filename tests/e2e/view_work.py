#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Work that fails in a naive overlay, done in the current directory; and what the directory is like afterwards, as JSON.

`view_work.py work` works, `view_work.py show` prints. Only what every run of it makes alike is shown.
"""
import ctypes
import hashlib
import json
import mmap
import os
import select
import shutil
import struct
import subprocess
import sys

GIT = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}


def run(*args):
    subprocess.run(args, check=True, env={**os.environ, **GIT}, stdout=subprocess.DEVNULL)


def write(path, text):
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)


def read(path):
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def git_renames():
    run("git", "mv", "moved", "renamed")
    run("git", "mv", "renamed/deep/er", "risen")
    assert "R  moved/one -> renamed/one" in subprocess.run(["git", "status", "--short"], check=True, capture_output=True, text=True).stdout


def node_renames():
    run("node", "-e", "const fs = require('fs'); fs.renameSync('pkg', 'pkg2'); fs.mkdirSync('empty2'); fs.renameSync('pkg2', 'empty2')")


def renames():
    os.makedirs("mix/new")  # in a directory of the lower layer, and both parts move
    write("mix/new/n", "n\n")
    os.rename("mix", "mixed")
    try:
        os.rename("mixed", "full")
        raise AssertionError("a directory went over one with entries")
    except OSError as error:
        assert error.strerror == "Directory not empty", error
    try:
        os.rename("mixed", "mixed/new/below")
        raise AssertionError("a directory went into itself")
    except OSError as error:
        assert error.strerror == "Invalid argument", error


def remade():
    shutil.rmtree("again")
    os.mkdir("again")  # opaque: nothing of what was there may shine through
    write("again/fresh", "fresh\n")
    os.remove("gone")
    os.remove("file")
    os.mkdir("file")  # another type
    shutil.rmtree("dir")
    write("dir", "a file now\n")
    os.symlink("dir", "link")


def links():
    os.link("hard", "hard2")
    with open("hard2", "a", encoding="utf-8") as stream:
        stream.write("through the second name\n")
    assert read("hard") == read("hard2")


def content():
    with open("sparse", "wb") as stream:
        stream.truncate(8 << 20)
        stream.seek(4 << 20)
        stream.write(b"middle")
    assert os.stat("sparse").st_blocks * 512 < 1 << 20
    with open("mapped", "r+b") as stream, mmap.mmap(stream.fileno(), 0) as memory:
        memory[0:4] = b"MMAP"
        memory.flush()
    assert read("mapped").startswith("MMAP")
    os.chmod("mode", 0o751)
    os.utime("times", (1_000_000_000, 1_000_000_001))
    os.setxattr("mode", "user.note", b"kept")


def notified():
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(os.O_NONBLOCK)
    assert fd >= 0 and libc.inotify_add_watch(fd, b"watched", 0x100 | 0x2) >= 0  # IN_CREATE | IN_MODIFY
    write("watched/lower", "changed\n")
    write("watched/new", "new\n")
    seen = set()
    while {b"lower", b"new"} - seen:
        assert select.select([fd], [], [], 60)[0]
        events = os.read(fd, 4096)
        while events:
            _, _, _, n = struct.unpack("iIII", events[:16])
            seen.add(events[16:16 + n].rstrip(b"\0"))
            events = events[16 + n:]
    os.close(fd)


def built():
    run("make", "-s", "-C", "c")
    assert subprocess.run(["./c/program"], check=True, capture_output=True, text=True).stdout == "built\n"


def installed():
    run("npm", "install", "--offline", "--no-audit", "--no-fund", "--silent", "--prefix", "js", "./js/thing-2.0.0.tgz")
    assert read("js/node_modules/thing/index.js") == "2\n" and not os.path.exists("js/node_modules/thing/old.js")


def prepare():
    """The tree before the work."""
    for path in ("moved/deep/er", "pkg/lib", "mix", "full", "again", "dir", "watched", "c", "js"):
        os.makedirs(path)
    for path in ("moved/one", "moved/deep/two", "moved/deep/er/three", "pkg/a.js", "pkg/lib/b.js", "mix/lower", "full/entry",
                 "again/old", "gone", "file", "dir/in", "hard", "mapped", "mode", "times", "watched/lower"):
        write(path, f"{path}\n")
    os.symlink("one", "moved/link")
    write("c/main.c", '#include <stdio.h>\nint main(void) { puts("built"); }\n')
    write("c/Makefile", "program: main.o\n\tcc -o $@ $<\nmain.o: main.c\n\tcc -c -o $@ $<\n")
    for version in "12":
        os.makedirs(f"js/v{version}/package")
        write(f"js/v{version}/package/package.json", json.dumps({"name": "thing", "version": f"{version}.0.0", "main": "index.js"}))
        write(f"js/v{version}/package/index.js", f"{version}\n")
        if version == "1":
            write("js/v1/package/old.js", "old\n")
        run("tar", "-C", f"js/v{version}", "-czf", f"js/thing-{version}.0.0.tgz", "package")
        shutil.rmtree(f"js/v{version}")
    write("js/package.json", '{"name": "app", "version": "1.0.0"}')
    run("npm", "install", "--offline", "--no-audit", "--no-fund", "--silent", "--prefix", "js", "./js/thing-1.0.0.tgz")
    run("git", "init", "-q", ".")
    run("git", "add", "-A")
    run("git", "commit", "-q", "-m", "first")


def shown(top="."):
    """{path: [type, mode, content, ...]}; without git's own files, of which a run in a view has its own."""
    found = {}
    for where, dirs, files in os.walk(top):
        dirs[:] = sorted(name for name in dirs if name != ".git")
        for name in sorted(dirs + files):
            path = os.path.join(where, name)
            st = os.lstat(path)
            relative = os.path.relpath(path, top)
            if relative.endswith("package-lock.json"):
                found[relative] = "there"
                continue
            if os.path.islink(path):
                found[relative] = ["link", os.readlink(path)]
            elif os.path.isdir(path):
                found[relative] = ["dir", oct(st.st_mode)]
            else:
                with open(path, "rb") as stream:
                    digest = hashlib.sha256(stream.read()).hexdigest()
                found[relative] = ["file", oct(st.st_mode), digest, st.st_size]
            if name == "times":
                found[relative].append(st.st_mtime_ns)
            if name == "mode":
                found[relative].append(os.getxattr(path, "user.note").decode() if "user.note" in os.listxattr(path) else "")
    return {path: found[path] for path in sorted(found)}


if __name__ == "__main__":
    os.umask(0o022)
    if sys.argv[1] == "prepare":
        prepare()
    if "work" in sys.argv:
        for part in (git_renames, node_renames, renames, remade, links, content, notified, built, installed):
            part()
    if "show" in sys.argv:
        json.dump(shown(), sys.stdout)
