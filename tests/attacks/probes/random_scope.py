# SPDX-License-Identifier: Apache-2.0
"""Random work on a small set of names, by every call that takes one: random_scope.py SEED ROUNDS. Prints what was read of secrets."""
import ctypes
import mmap
import os
import random
import signal
import stat
import sys

chance = random.Random(int(sys.argv[1]))
libc = ctypes.CDLL(None, use_errno=True)
DIRS = [".", "src", "src/deep", "src/x.ts", "docs", "src/new", "src/new/er", "src/deep/../..", "src/deep/.."]
NAMES = ["a.ts", "b.ts", "c.ts", "x.ts", "secret.txt", "key.env", "t.sh", "a.ts~", "a.ts.tmp", "a.ts.lock", "sedAbC123", "tmpabcdefgh",
         "aB3dE9xy", ".a.ts.swp", ".#a.ts", "deep", "new", "docs", "src", "l.ts", "l", "prot.ts", "deny.ts", ".git"]
TARGETS = ["secret.txt", "../docs", "../docs/secret.txt", "..", ".", "/etc/passwd", "a.ts", "deep", "/proc/self/cwd/docs/secret.txt"]
descriptors = []
leaks = set()
done = 0


def path():
    name = os.path.join(chance.choice(DIRS), chance.choice(NAMES))
    form = chance.choice(["{}"] * 14 + [os.getcwd() + "/{}", "/proc/self/cwd/{}", "/proc/self/root" + os.getcwd() + "/{}", "{}/"])
    return form.format(name) if chance.random() < 0.95 else os.path.join(name, chance.choice(NAMES))


def descriptor():
    if not descriptors:
        raise OSError
    return chance.choice(descriptors)


def seen(data):
    if b"SECRET" in data:
        leaks.add(bytes(data[:40]))


def raw(call, *args):
    if getattr(libc, call)(*args) != 0:
        raise OSError(ctypes.get_errno(), call)


def opened(name, flags, **kw):
    descriptors.append(os.open(name, flags, 0o644, **kw))
    return descriptors[-1]


def mapped(name):
    with mmap.mmap(opened(name, os.O_RDWR), 0) as memory:
        seen(memory[:100])
        memory[0:1] = b"A"


def renamed(flags):
    raw("renameat2", -100, path().encode(), -100, path().encode(), flags)


def copied(call):
    source, target = opened(path(), os.O_RDONLY), opened(path(), os.O_WRONLY | os.O_CREAT)
    os.copy_file_range(source, target, 100) if call == "copy" else os.sendfile(target, source, 0, 100)


WRITES = [os.O_CREAT, os.O_CREAT | os.O_EXCL, os.O_TRUNC, os.O_APPEND, os.O_CREAT | os.O_TRUNC]
FOLDERS = ["src/deep", "src/new", "src", "src/x.ts", "docs", "src/d.ts", "src/new/er"]
WORK = [
    lambda: seen(os.read(opened(path(), os.O_RDONLY | chance.choice([0, os.O_NOFOLLOW])), 100)),
    lambda: opened(path(), chance.choice([os.O_DIRECTORY, os.O_PATH])),
    lambda: os.write(opened(path(), os.O_RDWR | chance.choice(WRITES)), b"AGENT"),
    lambda: os.write(opened(path(), os.O_WRONLY | chance.choice(WRITES)), b"AGENT"),
    lambda: os.truncate(path(), chance.randrange(3)),
    lambda: os.rename(path(), path()),
    lambda: renamed(chance.choice([1, 2, 4])),
    lambda: os.rename(chance.choice(FOLDERS), chance.choice(FOLDERS)),
    lambda: os.link(path(), path(), follow_symlinks=chance.random() < 0.5),
    lambda: os.link(f"/proc/self/fd/{descriptor()}", path(), follow_symlinks=True),
    lambda: raw("linkat", descriptor(), b"", -100, path().encode(), 0x1000),
    lambda: os.symlink(chance.choice([*TARGETS, path()]), path()),
    lambda: os.unlink(path()),
    lambda: os.mkdir(path()),
    lambda: os.mkdir(path()),
    lambda: os.rmdir(path()),
    lambda: os.chmod(path(), chance.choice([0, 0o600, 0o755, 0o4755, 0o444])),
    lambda: os.utime(path(), (1, 1), follow_symlinks=chance.random() < 0.5),
    lambda: os.setxattr(path(), "user.x", b"AGENT"),
    lambda: seen(os.getxattr(path(), "user.secret")),
    lambda: os.readlink(path()),
    lambda: os.listdir(path()),
    lambda: os.mknod(path(), chance.choice([stat.S_IFREG, stat.S_IFIFO, stat.S_IFSOCK]) | 0o644),
    lambda: os.write(descriptor(), b"AGENT"),
    lambda: seen(os.pread(descriptor(), 100, 0)),
    lambda: seen(os.read(opened(chance.choice([*NAMES, "..", "../docs/secret.txt"]), os.O_RDONLY, dir_fd=descriptor()), 100)),
    lambda: opened(chance.choice(DIRS), os.O_TMPFILE | os.O_RDWR),
    lambda: copied("copy"),
    lambda: copied("send"),
    lambda: mapped(path()),
    lambda: os.fchmod(descriptor(), chance.choice([0o600, 0o777])),
    lambda: os.posix_fallocate(descriptor(), 0, 10),
]


def waited_too_long(number, frame):
    raise OSError("a FIFO that nobody opens")


signal.signal(signal.SIGALRM, waited_too_long)
for _ in range(int(sys.argv[2])):
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            chance.choice(WORK)()
            done += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)  # the alarm may come here, too
    except (OSError, ValueError, IndexError):
        pass
    while len(descriptors) > 40:
        os.close(descriptors.pop(chance.randrange(len(descriptors))))
print(done, sorted(leaks))
