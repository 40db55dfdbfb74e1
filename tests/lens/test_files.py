# SPDX-License-Identifier: Apache-2.0
"""Files through the lens behave as files do: content, mappings, locks, attributes, holes, names that come and go."""
import os
import pathlib

GIB = 1 << 30


def test_shared_mappings_are_written_back(lens):
    lens.write("m.bin", b"\0" * 8192)
    out = lens.python(
        """
        fd = os.open("m.bin", os.O_RDWR)
        area = mmap.mmap(fd, 8192)
        area[4090:4100] = b"0123456789"
        area.flush()
        area[0:3] = b"abc"
        os.close(fd)
        area.close()
        private = os.open("m.bin", os.O_RDONLY)
        view = mmap.mmap(private, 8192, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE)
        out["seen"] = [view[0:3].decode(), view[4090:4100].decode()]
        """
    )
    data = (lens.root / "m.bin").read_bytes()
    assert out["seen"] == ["abc", "0123456789"]
    assert data[4090:4100] == b"0123456789" and data[:3] == b"abc" and len(data) == 8192


def test_programs_are_executed_and_modes_decide(lens):
    lens.write("run.sh", "#!/bin/sh\necho ran\n", mode=0o755)
    lens.write("no.sh", "#!/bin/sh\necho ran\n", mode=0o644)
    out = lens.python(
        """
        out["script"] = subprocess.run(["./run.sh"], capture_output=True, text=True).stdout
        out["refused"] = answer(subprocess.run, ["./no.sh"])
        with open("/bin/true", "rb") as source, open("copy", "wb") as target:
            target.write(source.read())
        os.chmod("copy", 0o755)
        out["binary"] = str(subprocess.run(["./copy"]).returncode)
        """
    )
    assert out == {"script": "ran\n", "refused": "EACCES", "binary": "0"}


def test_what_the_run_built_can_be_executed_on_the_host_at_once(lens):
    """A descriptor for writing that the lens kept would make it `Text file busy`."""
    process = lens.start_python(
        """
        with open("/bin/true", "rb") as source, open("copy", "wb") as target:
            target.write(source.read())
        os.chmod("copy", 0o755)
        print("built", flush=True)
        sys.stdin.readline()
        """
    )
    assert process.stdout.readline() == b"built\n"
    assert lens.box.run(str(lens.root / "copy")).returncode == 0
    process.communicate(b"\n", timeout=20)


def test_a_file_made_read_only_is_written_by_who_made_it(lens):
    """git makes its objects 0444 and writes them through the descriptor it got."""
    out = lens.python(
        """
        fd = os.open("object", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o444)
        os.write(fd, b"content")
        os.ftruncate(fd, 4)
        os.fsync(fd)
        out["read"] = [os.pread(fd, 100, 0).decode(), answer(os.open, "object", os.O_WRONLY)]
        os.close(fd)
        out["after"] = [read("object"), answer(os.open, "object", os.O_WRONLY)]
        fd = os.open("secret", os.O_RDWR | os.O_CREAT, 0)
        os.write(fd, b"mine")
        out["none"] = [os.pread(fd, 100, 0).decode(), answer(os.open, "secret", os.O_RDONLY)]
        """
    )
    assert out == {"read": ["cont", "EACCES"], "after": ["cont", "EACCES"], "none": ["mine", "EACCES"]}
    assert lens.read("object") == "cont" and (lens.root / "object").stat().st_mode & 0o777 == 0o444


def test_files_made_read_only_cost_a_bounded_number_of_descriptors(lens):
    """The kernel does not say when they are closed: the oldest makes room for the next, and no other is taken for it."""
    lens.write("first")
    process = lens.start_python(
        """
        read("first")
        kept = os.open("kept", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o444)
        for i in range(700):
            fd = os.open(f"object{i}", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o444)
            os.write(fd, str(i).encode())
            os.close(fd)
        print(answer(os.write, kept, b"late"), flush=True)
        sys.stdin.readline()
        """
    )
    assert process.stdout.readline() == b"EACCES\n"
    assert len(os.listdir(f"/proc/{lens.lens_pid()}/fd")) < 400
    process.communicate(b"\n", timeout=20)
    assert [lens.read(f"object{i}") for i in range(700)] == [str(i) for i in range(700)] and lens.read("kept") == ""


def test_locks_hold_between_processes_of_the_run(lens):
    lens.write("lock")
    out = lens.python(
        """
        def child(call):
            code = "import fcntl,sys\\nf=open('lock','r+')\\ntry:\\n " + call + "\\nexcept OSError: print('busy')\\nelse: print('free')"
            return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()
        flock, posix = "fcntl.flock(f, fcntl.LOCK_EX|fcntl.LOCK_NB)", "fcntl.lockf(f, fcntl.LOCK_EX|fcntl.LOCK_NB)"
        f = open("lock", "r+")
        fcntl.flock(f, fcntl.LOCK_EX)
        out["flock"] = [child(flock)]
        fcntl.flock(f, fcntl.LOCK_UN)
        out["flock"].append(child(flock))
        fcntl.lockf(f, fcntl.LOCK_EX)
        out["posix"] = [child(posix)]
        f.close()
        out["posix"].append(child(posix))
        """
    )
    assert out == {"flock": ["busy", "free"], "posix": ["busy", "free"]}


def test_user_attributes_work_and_no_others(lens):
    lens.write("f")
    out = lens.python(
        """
        os.setxattr("f", "user.note", b"value")
        out["get"] = os.getxattr("f", "user.note").decode()
        out["list"] = os.listxattr("f")
        out["others"] = [answer(os.setxattr, "f", name, b"\\1" * 20) for name in ("security.capability", "trusted.x", "security.x", "system.x")]
        os.setxattr("f", "user.gone", b"")
        os.removexattr("f", "user.gone")
        out["create"] = answer(os.setxattr, "f", "user.note", b"", os.XATTR_CREATE)
        out["missing"] = answer(os.getxattr, "f", "user.missing")
        """
    )
    assert out["get"] == "value" and out["list"] == ["user.note"] and not {"ok"} & set(out["others"])
    assert out["create"] == "EEXIST" and out["missing"] == "ENODATA"
    assert os.getxattr(lens.root / "f", "user.note") == b"value" and os.listxattr(lens.root / "f") == ["user.note"]


def test_large_and_sparse_files(lens):
    out = lens.python(
        """
        fd = os.open("big", os.O_RDWR | os.O_CREAT, 0o644)
        end = 6 << 30
        os.pwrite(fd, b"end", end)
        os.pwrite(fd, b"mid", 5 << 30)
        out["size"] = str(os.fstat(fd).st_size)
        out["read"] = [os.pread(fd, 3, end).decode(), os.pread(fd, 3, 5 << 30).decode(), str(os.pread(fd, 2, 1 << 32))]
        out["data"] = str(os.lseek(fd, 0, os.SEEK_DATA))
        out["hole"] = str(os.lseek(fd, 5 << 30, os.SEEK_HOLE))
        os.truncate("big", (5 << 30) + 2)
        out["cut"] = [str(os.stat("big").st_size), os.pread(fd, 10, 5 << 30).decode()]
        out["blocks"] = os.stat("big").st_blocks < 1000
        """
    )
    assert out["size"] == str(6 * GIB + 3) and out["read"] == ["end", "mid", str(b"\0\0")]
    assert int(out["data"]) <= 5 * GIB and 5 * GIB < int(out["hole"]) < 6 * GIB
    assert out["cut"] == [str(5 * GIB + 2), "mi"] and out["blocks"]
    assert (lens.root / "big").stat().st_size == 5 * GIB + 2


def test_fallocate_and_copies(lens):
    lens.write("from", b"x" * 100000)
    lens.write("ro/file", "read only")
    out = lens.python(
        """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        def fallocate(fd, mode, offset, length):
            if libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)) != 0:
                raise OSError(ctypes.get_errno(), "fallocate")
        fd = os.open("space", os.O_RDWR | os.O_CREAT, 0o644)
        fallocate(fd, 0, 0, 1 << 20)
        out["size"] = str(os.fstat(fd).st_size)
        os.pwrite(fd, b"y" * 8192, 0)
        out["punch"] = answer(fallocate, fd, 3, 4096, 4096)
        out["hole"] = str(os.pread(fd, 2, 4095))
        out["ranges"] = [answer(fallocate, fd, mode, 0, 4096) for mode in (0x10, 0x08, 0x20)]  # zero, collapse, insert
        source = os.open("from", os.O_RDONLY)
        to = os.open("to", os.O_RDWR | os.O_CREAT, 0o644)
        out["copied"] = str(os.copy_file_range(source, to, 100000))
        out["equal"] = os.pread(to, 100000, 0) == b"x" * 100000
        out["refused"] = answer(os.open, "ro/file", os.O_RDWR)
        """,
        rules=("--rw", "**", "--ro", "ro"),
    )
    assert out["size"] == str(1 << 20) and out["punch"] == "ok" and out["hole"] == str(b"y\0")
    assert out["ranges"] == ["ok", "ENOTSUP", "ENOTSUP"]  # docs/lens.md
    assert out["copied"] == "100000" and out["equal"] and out["refused"] == "EACCES"


def test_a_file_lives_on_while_it_is_open(lens):
    lens.write("victim", "old")
    out = lens.python(
        """
        fd = os.open("f", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        os.write(fd, b"before ")
        os.unlink("f")
        os.write(fd, b"after")
        out["unlinked"] = [os.pread(fd, 100, 0).decode(), answer(os.stat, "f"), str(os.fstat(fd).st_nlink)]
        os.ftruncate(fd, 3)
        out["cut"] = os.pread(fd, 100, 0).decode()
        write("f", "another")
        out["both"] = [os.pread(fd, 100, 0).decode(), read("f")]
        kept = os.open("victim", os.O_RDWR)
        write("new", "new")
        os.rename("new", "victim")
        os.pwrite(kept, b"OLD!", 0)
        out["replaced"] = [os.pread(kept, 100, 0).decode(), read("victim")]
        moved = os.open("f", os.O_RDWR)
        os.mkdir("d")
        os.rename("f", "d/g")
        os.pwrite(moved, b"MOVED", 0)
        os.rename("d", "e")
        os.pwrite(moved, b"!!", 5)
        out["moved"] = [read("e/g"), answer(os.stat, "d/g")]
        """
    )
    assert out == {
        "unlinked": ["before after", "ENOENT", "0"],
        "cut": "bef",
        "both": ["bef", "another"],
        "replaced": ["OLD!", "new"],
        "moved": ["MOVED!!", "ENOENT"],
    }
    assert lens.read("victim") == "new" and lens.read("e/g") == "MOVED!!" and lens.names() == ["e", "victim"]


def test_many_files_that_are_open_and_have_no_name(lens):
    out = lens.python(
        """
        import resource
        fds = []
        for i in range(900):
            fd = os.open(f"f{i}", os.O_RDWR | os.O_CREAT, 0o644)
            os.write(fd, str(i).encode())
            os.unlink(f"f{i}")
            fds.append(fd)
        out["all"] = all(os.pread(fd, 10, 0) == str(i).encode() for i, fd in enumerate(fds))
        """
    )
    assert out["all"] and lens.names() == []


def test_hard_links_are_one_file(lens):
    lens.write("a", "one")
    out = lens.python(
        """
        os.link("a", "b")
        write("b", "two!")
        out["same"] = [read("a"), str(os.stat("a").st_nlink), os.stat("a").st_ino == os.stat("b").st_ino]
        os.unlink("a")
        out["left"] = [read("b"), str(os.stat("b").st_nlink)]
        """
    )
    assert out == {"same": ["two!", "2", True], "left": ["two!", "1"]}


def test_a_hard_link_is_judged_by_the_name_it_is_reached_by(lens):
    lens.write("src/a.ts", "one")
    os.link(lens.root / "src/a.ts", lens.root / "src/hidden.txt")
    (lens.root / "lib").mkdir()
    lens.box.own(lens.root / "lib")
    os.link(lens.root / "src/a.ts", lens.root / "lib/a.ts")
    out = lens.python(
        """
        out["names"] = [answer(read, p) for p in ("src/a.ts", "src/hidden.txt", "lib/a.ts")]
        out["before"] = [oct(os.stat(p).st_mode & 0o777) for p in ("src/a.ts", "lib/a.ts")]
        out["ro"] = [answer(write, "lib/a.ts"), answer(os.chmod, "lib/a.ts", 0o600), answer(os.unlink, "lib/a.ts")]
        out["rw"] = answer(write, "src/a.ts", "two")
        time.sleep(1.1)
        out["after"] = [read("lib/a.ts"), answer(write, "lib/a.ts")]
        """,
        rules=("--rw", "src/**/*.ts", "--ro", "lib/**/*.ts"),
    )
    assert out["names"] == ["one", "EACCES", "one"] and out["before"] == ["0o644", "0o444"]
    assert out["ro"] == ["EACCES", "EROFS", "EROFS"] and out["rw"] == "ok" and out["after"] == ["two", "EACCES"]


def test_special_files(lens):
    out = lens.python(
        """
        os.mkfifo("pipe")
        if os.fork() == 0:
            write("pipe", "through", flags=0)
            os._exit(0)
        out["fifo"] = read("pipe")
        server = socket.socket(socket.AF_UNIX)
        server.bind("sock")
        server.listen()
        client = socket.socket(socket.AF_UNIX)
        client.connect("sock")
        client.send(b"hi")
        out["socket"] = server.accept()[0].recv(10).decode()
        out["device"] = [answer(os.mknod, "dev", mode | 0o600, os.makedev(1, 3)) for mode in (stat.S_IFCHR, stat.S_IFBLK)]
        out["whiteout"] = answer(os.mknod, "dev", stat.S_IFCHR | 0o600, 0)
        out["tmpfile"] = answer(os.open, ".", os.O_TMPFILE | os.O_RDWR)
        """
    )
    assert out == {"fifo": "through", "socket": "hi", "device": ["EPERM"] * 2, "whiteout": "EPERM", "tmpfile": "ENOTSUP"}


def test_modes_times_and_owners(lens):
    lens.write("f", "x")
    out = lens.python(
        """
        os.chmod("f", 0o750)
        os.utime("f", ns=(1_000_000_001, 2_000_000_002))
        info = os.stat("f")
        out["told"] = [oct(info.st_mode & 0o7777), str(info.st_atime_ns), str(info.st_mtime_ns), info.st_uid == os.getuid()]
        out["own"] = answer(os.chown, "f", os.getuid(), os.getgid())
        out["give"] = answer(os.chown, "f", 1, 1)
        out["setuid"] = [answer(os.chmod, "f", 0o4755), answer(os.chmod, "f", 0o2755)]
        fd = os.open("s", os.O_CREAT | os.O_WRONLY, 0o6755)
        out["made"] = oct(os.fstat(fd).st_mode & 0o7777)
        os.umask(0o077)
        os.mkdir("d", 0o6777)
        out["dir"] = oct(os.stat("d").st_mode & 0o7777)
        """
    )
    info = (lens.root / "f").stat()
    assert out["told"] == ["0o750", "1000000001", "2000000002", True] and out["own"] == "ok" and out["give"] in ("EPERM", "EINVAL")
    assert out["setuid"] == ["EPERM", "EPERM"] and out["made"] == "0o755" and out["dir"] == "0o700"
    assert info.st_mode & 0o7777 == 0o750 and info.st_mtime_ns == 2_000_000_002
    assert (lens.root / "s").stat().st_mode & 0o7777 == 0o755


def test_files_of_others_are_used_as_far_as_the_user_may(box, lens, who):
    """On the host they belong to another user; through the lens they seem to be one's own, with the rights one has."""
    if os.getuid() != 0:
        import pytest

        pytest.skip("only root can make files of others")
    other = 54322
    for name, mode in (("open", 0o666), ("read", 0o644), ("closed", 0o600), ("exec", 0o755)):
        os.chown(lens.write(name, "#!/bin/sh\n", mode=mode), other, other)
    out = lens.python(
        """
        for name in ("open", "read", "closed", "exec"):
            info = os.stat(name)
            out[name] = [answer(read, name), answer(write, name, "w"), oct(info.st_mode & 0o700), info.st_uid == os.getuid()]
        out["chmod"] = answer(os.chmod, "open", 0o777)
        out["unlink"] = answer(os.unlink, "closed")
        """
    )
    assert out == {
        "open": ["#!/bin/sh\n", "ok", "0o600", True],
        "read": ["#!/bin/sh\n", "EACCES", "0o400", True],
        "closed": ["EACCES", "EACCES", "0o0", True],
        "exec": ["#!/bin/sh\n", "EACCES", "0o500", True],
        "chmod": "EPERM",
        "unlink": "ok",
    }
    assert lens.read("open") == "w" and not (lens.root / "closed").exists()


def test_a_directory_that_may_be_listed_and_not_searched(lens):
    lens.write("d/file", "x")
    lens.write("d/sub/f", "x")
    lens.box.link("root/d/link", "file")
    out = lens.python(
        """
        os.chmod("d", 0o600)
        out["list"] = [names("d"), sorted(e.name for e in os.scandir("d") if e.is_dir(follow_symlinks=False))]
        out["refused"] = [answer(os.stat, "d/file"), answer(read, "d/file"), answer(write, "d/new"), answer(os.unlink, "d/file")]
        os.chmod("d", 0o300)
        out["search"] = [answer(names, "d"), answer(read, "d/file")]
        os.chmod("d", 0o755)
        out["again"] = [names("d"), read("d/file")]
        """
    )
    assert out["list"] == [["file", "link", "sub"], ["sub"]] and out["refused"] == ["EACCES"] * 4
    assert out["search"] == ["EACCES", "x"] and out["again"] == [["file", "link", "sub"], "x"]


def test_directories_of_many_entries_are_listed_whole_and_once(lens):
    (lens.root / "many").mkdir()
    for i in range(3000):
        (lens.root / "many" / f"file-{i}.ts").touch()
        if i % 3 == 0:
            (lens.root / "many" / f"other-{i}.txt").touch()
    lens.box.own(lens.root / "many")
    out = lens.python(
        """
        listed = os.listdir("many")
        out["n"] = [str(len(listed)), str(len(set(listed)))]
        out["again"] = sorted(os.listdir("many")) == sorted(listed)
        a, b = os.scandir("many"), os.scandir("many")
        mixed = [[], []]
        for x, y in zip(a, b):
            mixed[0].append(x.name); mixed[1].append(y.name)
        out["mixed"] = [str(len(set(m))) for m in mixed]
        for name in listed[::2]:
            os.unlink("many/" + name)
        out["left"] = str(len(os.listdir("many")))
        """,
        rules=("--rw", "many/*.ts"),
    )
    assert out == {"n": ["3000", "3000"], "again": True, "mixed": ["3000", "3000"], "left": "1500"}
    assert len(lens.names("many")) == 2500


def test_writes_of_every_size_arrive(lens):
    out = lens.python(
        """
        import random
        random.seed(7)
        data = bytearray()
        fd = os.open("f", os.O_RDWR | os.O_CREAT, 0o644)
        for _ in range(200):
            n, at = random.choice((1, 100, 4096, 70000, 300000)), random.randrange(0, 2_000_000)
            piece = random.randbytes(n)
            if len(data) < at + n:
                data.extend(bytes(at + n - len(data)))
            data[at:at + n] = piece
            os.pwrite(fd, piece, at)
            where = random.randrange(0, len(data))
            if os.pread(fd, 5000, where) != data[where:where + 5000]:
                out["wrong"] = str(where)
        os.fsync(fd)
        import hashlib
        out["sum"] = hashlib.sha256(data).hexdigest()
        """
    )
    import hashlib

    assert out == {"sum": hashlib.sha256(pathlib.Path(lens.root / "f").read_bytes()).hexdigest()}


def test_file_system_numbers_are_the_hosts(lens):
    out = lens.python('s = os.statvfs("."); out["s"] = [str(s.f_bsize), str(s.f_blocks), str(s.f_namemax)]')
    native = os.statvfs(lens.root)
    assert out["s"] == [str(native.f_bsize), str(native.f_blocks), str(native.f_namemax)]
