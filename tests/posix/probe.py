# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of table.txt in the current directory and prints what came of each step, as JSON. It needs nothing but Python's own modules, because
it runs inside: `python3 -I -S -B -c "$(cat probe.py)" <table.txt`."""
import ctypes, errno, fcntl, json, mmap, os, shutil, socket, stat, sys, time

libc = ctypes.CDLL(None, use_errno=True)
O = os
R, W, RW, CREAT, EXCL, TRUNC, APPEND, DIRECTORY, NOFOLLOW, PATH = O.O_RDONLY, O.O_WRONLY, O.O_RDWR, O.O_CREAT, O.O_EXCL, O.O_TRUNC, O.O_APPEND, O.O_DIRECTORY, O.O_NOFOLLOW, O.O_PATH
TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "dir", stat.S_IFLNK: "link", stat.S_IFIFO: "fifo", stat.S_IFSOCK: "socket"}
OLD = 1_000_000_000  # a time in the past that files get before something happens to them
kept = {}  # descriptors, by a name


def mk(path, text="", mode=0o666, flags=0):
    fd = os.open(path, W | CREAT | flags, mode)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def open_(path, flags=R, mode=0o666, name="fd"):
    kept[name] = os.open(path, flags, mode)


def opens(path, flags=R, mode=0o666):
    os.close(os.open(path, flags, mode))


def write(text, name="fd"):
    return os.write(kept[name], text.encode())


def read(name="fd", size=100):
    return os.read(kept[name], size).decode()


def seek(at, how=os.SEEK_SET, name="fd"):
    return os.lseek(kept[name], at, how)


def fd(call, *args, name="fd"):
    return call(kept[name], *args)


def close(name="fd"):
    os.close(kept.pop(name))


def cat(path):
    with open(path, "rb") as stream:
        data = stream.read()
    return data.decode() if len(data) < 100 else f"{len(data)} bytes, {data.count(0)} of them zero"


def describe(st):
    kind = TYPES[stat.S_IFMT(st.st_mode)]
    owner = "" if (st.st_uid, st.st_gid) == (os.getuid(), os.getgid()) else f" of {st.st_uid}:{st.st_gid}"
    return f"{kind} {stat.S_IMODE(st.st_mode):o}{owner}" + ("" if kind == "dir" else f" links {st.st_nlink} size {st.st_size}")


def st(path):
    return describe(os.lstat(path))


def fst(name="fd"):
    return describe(os.fstat(kept[name]))


def follow(path):
    return describe(os.stat(path))


def same(a, b):
    return os.path.samestat(os.lstat(a), os.lstat(b))


def names(path="."):
    return sorted(os.listdir(path))


def plain(path, mode):
    """A mode that the umask does not change."""
    before = os.umask(0)
    try:
        mk(path, mode=mode)
    finally:
        os.umask(before)


def changed(path, call, *args, **more):
    """Which times of a path a call changes. They are old before, and coarse clocks need a while to go on."""
    os.utime(path, (OLD, OLD), follow_symlinks=False)
    before = os.lstat(path)
    time.sleep(0.012)
    call(*args, **more)
    after = os.lstat(path)
    return " ".join(name for name in ("mtime", "ctime") if getattr(before, f"st_{name}_ns") != getattr(after, f"st_{name}_ns")) or "none"


def times(path):
    found = os.lstat(path)
    return [found.st_atime_ns, found.st_mtime_ns]


def utime_now(path, which):
    """Sets one time to now and leaves the other (UTIME_NOW, UTIME_OMIT)."""
    now, omit = 0x3FFFFFFF, 0x3FFFFFFE
    both = (ctypes.c_long * 4)(0, now if which == "atime" else omit, 0, now if which == "mtime" else omit)
    if libc.utimensat(-100, path.encode(), both, 0) != 0:
        raise OSError(ctypes.get_errno(), "utimensat")
    found = os.lstat(path)
    return [abs(found.st_atime - time.time()) < 60, abs(found.st_mtime - time.time()) < 60]


def rename2(a, b, flags):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), flags) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


def fallocate(mode, at, size, name="fd"):
    if libc.fallocate(kept[name], mode, ctypes.c_long(at), ctypes.c_long(size)) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


def deep(size, call, *args):
    """Calls with a path of exactly so many bytes below the current directory, whose directories are made step by step."""
    parts, home = [], os.open(".", R | DIRECTORY)
    left = size
    try:
        while left > 201:
            name = "d" * (100 if 201 < left < 302 else 200)
            parts.append(name)
            left -= len(name) + 1
            if not os.path.isdir(name):
                os.mkdir(name)
            os.chdir(name)
    finally:
        os.fchdir(home)
        os.close(home)
    return call("/".join([*parts, "f" * left]), *args)


def absolute(size, call, *args):
    """The same with an absolute path of so many bytes."""
    here = os.getcwd() + "/"
    return deep(size - len(here), lambda path: call(here + path, *args))


def down(levels):
    """Makes directories with names of 200 bytes, one in the other, further than any path reaches, and a file at the end."""
    home = os.open(".", R | DIRECTORY)
    try:
        for i in range(levels):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        mk("end", "found")
        os.rename("end", "other")
        os.link("other", "second")
        text = cat("second")
        os.unlink("second"), os.unlink("other")
        for i in range(levels):
            os.chdir("..")
            os.rmdir("d" * 200)
    finally:
        os.fchdir(home)
        os.close(home)
    return text


def loop(n):
    """A chain of so many links that leads to a file."""
    mk("l0", "end")
    for i in range(n):
        os.symlink(f"l{i}", f"l{i + 1}")
    return cat(f"l{n}")


def sock(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)


def talk(path):
    """A socket and a FIFO lead from one end to the other."""
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(path)
        server.listen()
        client.connect(path)
        client.send(b"hello")
        return server.accept()[0].recv(10).decode()


def pipe(path):
    reader = os.open(path, R | os.O_NONBLOCK)
    writer = os.open(path, W)
    os.write(writer, b"hello")
    try:
        return os.read(reader, 10).decode()
    finally:
        os.close(reader), os.close(writer)


def umask(mask, call, *args, **more):
    before = os.umask(mask)
    try:
        return call(*args, **more)
    finally:
        os.umask(before)


def tmpfile(path="."):
    kept["fd"] = os.open(path, RW | os.O_TMPFILE, 0o600)


def give_name(path, name="fd"):
    if libc.linkat(-100, f"/proc/self/fd/{kept[name]}".encode(), -100, path.encode(), 0x400) != 0:  # AT_SYMLINK_FOLLOW
        raise OSError(ctypes.get_errno(), "linkat")


def at(dirname, call, *args, **more):
    """A call relative to the descriptor of a directory."""
    there = os.open(dirname, R | DIRECTORY)
    try:
        return call(*args, dir_fd=there, **more)
    finally:
        os.close(there)


def mapped(path, text):
    """Writes through a shared mapping."""
    there = os.open(path, RW)
    try:
        with mmap.mmap(there, 0) as m:
            m[: len(text)] = text.encode()
            m.flush()
    finally:
        os.close(there)


def lock(path):
    """Whether a second descriptor can be locked while the first one is."""
    a, b = os.open(path, RW), os.open(path, RW)
    try:
        fcntl.flock(a, fcntl.LOCK_EX)
        fcntl.flock(b, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(a), os.close(b)


def run(path):
    pid = os.fork()
    if pid == 0:
        try:
            os.execv(path, [path])
        except OSError as error:
            os._exit(error.errno)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


N = "n" * 255
COMMAND = "#!/bin/sh\nexit 7\n"
chmod, chown, link, mkdir, mkfifo, mknod, readlink, rename, rmdir, symlink, truncate, unlink, utime = (
    os.chmod, os.lchown, os.link, os.mkdir, os.mkfifo, os.mknod, os.readlink, os.rename, os.rmdir, os.symlink, os.truncate, os.unlink, os.utime)
access, chdir, setxattr, getxattr, listxattr, removexattr = os.access, os.chdir, os.setxattr, os.getxattr, os.listxattr, os.removexattr


def outcome(step):
    try:
        value = eval(step)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    except KeyError:
        return "not open"
    if isinstance(value, bytes):
        value = value.decode()
    return "ok" if value is None else value


def do(number, steps):
    """A case has a directory of its own, and a process of its own, so that nothing of it stays."""
    name = f"case{number}"
    os.mkdir(name)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.umask(0o022)
        os.chdir(name)
        os.write(writer, json.dumps([outcome(step) for step in steps]).encode())
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as stream:
        answer = stream.read()
    os.waitpid(pid, 0)
    for where, dirs, _ in os.walk(name):
        try:
            for each in (where, *(os.path.join(where, d) for d in dirs)):
                if not os.path.islink(each) and not os.access(each, os.R_OK | os.W_OK | os.X_OK):
                    os.chmod(each, 0o700)
        except OSError:
            break  # too deep for a path
    shutil.rmtree(name, ignore_errors=True)
    return json.loads(answer) if answer else "died"


found = {}
for number, line in enumerate(sys.stdin.read().splitlines()):
    if line and line[0] != "#":
        case, steps = line.split(": ", 1)
        found[case.strip()] = do(number, [step.strip() for step in steps.split(";")])
print(json.dumps(found))
