# SPDX-License-Identifier: Apache-2.0
"""Where nothing reports changes (files with several names, directories nobody may read), half a second is the longest they hide."""
import os
import signal

import pytest

PAUSE = 0.7  # longer than anything is believed
# Ways to read a file that are of one opinion only when nothing of it is left in the kernel's cache.
WAYS = """
def whole(path):
    return read(path)
def part(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.pread(fd, 2, 0).decode()
    finally:
        os.close(fd)
def mapped(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        with mmap.mmap(fd, 3, prot=mmap.PROT_READ) as area:
            return area[:].decode()
    finally:
        os.close(fd)
"""


@pytest.fixture
def unread(lens):
    """A directory that can be searched and changed, but not read: no mark can be put on it."""
    lens.write("dim/f", "one")
    (lens.root / "dim").chmod(0o311)
    yield lens.root / "dim" / "f"
    (lens.root / "dim").chmod(0o755)


def test_what_is_written_under_one_name_is_read_under_another_on_a_loaded_machine(lens):
    """The very read that finds out gives the new content, of a hundred files, in each of three ways, four times."""
    (lens.root / "lib").mkdir()
    lens.box.own(lens.root / "lib")
    for i in range(100):
        lens.write(f"src/{i}.ts", "000")
        os.link(lens.root / f"src/{i}.ts", lens.root / f"lib/{i}.ts")
    out = lens.python(
        WAYS
        + f"""
load = []
for _ in range(6):
    pid = os.fork()
    if pid == 0:
        while True:
            pass
    load.append(pid)
try:
    out["stale"] = []
    for text in ("abc", "def", "ghi", "jkl"):
        for i in range(100):
            write(f"src/{{i}}.ts", text, flags=os.O_TRUNC if text == "jkl" else 0)
        time.sleep({PAUSE})
        for i in range(100):
            got = (whole, part, mapped)[i % 3](f"lib/{{i}}.ts")
            if got != text[: len(got)]:
                out["stale"].append([text, str(i), got])
finally:
    for pid in load:
        os.kill(pid, 9)
""",
        rules=("--rw", "src/**/*.ts", "--ro", "lib/**/*.ts"),
    )
    assert out == {"stale": []}


@pytest.mark.parametrize("way", ["whole", "part", "mapped"])
@pytest.mark.parametrize("where", ["second name", "unread directory"])
def test_the_hosts_change_is_in_the_first_read_after_the_pause(lens, unread, where, way):
    changed, seen = unread, "dim/f"
    if where == "second name":
        changed, seen = lens.box.write("outside", "one"), "inside"
        os.link(changed, lens.root / "inside")
    process = lens.start_python(
        WAYS
        + f"""
for line in sys.stdin:
    time.sleep({PAUSE})
    print({way}("{seen}"), flush=True)
"""
    )

    def ask():
        process.stdin.write(b"\n")
        process.stdin.flush()
        return process.stdout.readline().decode().strip()

    assert ask() == "one"[: 2 if way == "part" else 3]
    info = changed.stat()
    for text in ("two", "six", "ten"):
        with changed.open("r+") as stream:
            stream.write(text)
        # The time of the last write can be set back; that of the last change can't.
        os.utime(changed, ns=(info.st_atime_ns, info.st_mtime_ns))
        assert ask() == text[: 2 if way == "part" else 3]


def test_an_open_file_is_asked_for_when_it_is_read_to_its_end(lens, unread):
    ask = lens.asker()
    assert ask('globals().update(fd=os.open("dim/f", os.O_RDONLY)) or os.pread(fd, 10, 0).decode()') == "one"
    for text in ("two", "longer", "by"):
        unread.write_text(text)
        assert ask(f"time.sleep({PAUSE}) or os.pread(fd, 10, 0).decode()") == text
        assert ask("str(os.fstat(fd).st_size)") == str(len(text))


def test_a_write_of_the_run_does_not_hide_one_of_the_host(lens):
    """Both change a page of the same file before the run has heard of the host's."""
    outside = lens.box.write("outside", "a" * 8192)
    os.link(outside, lens.root / "inside")
    ask = lens.asker()
    first = "os.pread(fd, 1, 0).decode() + os.pread(fd, 1, 4096).decode()"
    assert ask(f'globals().update(fd=os.open("inside", os.O_RDWR)) or {first}') == "aa"
    for text in "bcd":
        with outside.open("r+") as stream:
            stream.write(text)
        assert ask(f'os.pwrite(fd, b"{text}", 4096)') == 1
        assert ask("len(read('inside'))") == 8192
        assert ask(f"time.sleep({PAUSE}) or read('inside')[::4096]") == text * 2


def test_a_mode_that_changed_with_the_content_counts_at_once(lens):
    outside = lens.box.write("outside", "#!/bin/sh\necho one\n")
    os.link(outside, lens.root / "inside")
    ask = lens.asker()
    run = 'answer(lambda: subprocess.run(["./inside"], capture_output=True, text=True).stdout)'
    assert ask("read('inside')") and ask(run) == "EACCES"
    outside.write_text("#!/bin/sh\necho two\n")
    outside.chmod(0o755)
    assert ask(f"time.sleep({PAUSE}) or {run}") == "two\n"


STORM = """
import random
end = time.monotonic() + 4
def work(me):
    random.seed(me)
    done = 0
    while time.monotonic() < end:
        path, kind = f"d/h{random.randrange(5)}", random.randrange(10)
        fd = os.open(path, os.O_RDWR)
        size = os.fstat(fd).st_size
        try:
            if kind == 0: os.pwrite(fd, b"x" * random.randrange(1, 9000), 0)
            elif kind == 1: read(path)
            elif kind == 2: os.stat(path)
            elif kind == 3: os.ftruncate(fd, random.randrange(4096, 9000))
            elif kind == 4:
                with mmap.mmap(fd, 100) as area: area[:5] = b"abcde"
            elif kind == 5: os.link(path, f"d/l{me}")
            elif kind == 6: os.unlink(f"d/l{me}")
            elif kind == 7: names("d")
            elif kind == 8: os.chmod(path, random.choice((0o644, 0o600)))
            else: os.pread(fd, 50, os.lseek(fd, 0, os.SEEK_END) // 2)
            done += 1
        except (FileExistsError, FileNotFoundError):
            pass
        finally:
            os.close(fd)
    return done
pids = []
for me in range(5):
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if work(me) > 10 else 2)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
    pids.append(pid)
out["ended"] = [str(os.waitpid(pid, 0)[1]) for pid in pids]
"""


def test_no_answer_that_waits_makes_others_wait_for_ever(lens):
    """Writes, mappings, truncations, links and lists of files that the host changes meanwhile, with names in their directory."""
    outside = []
    for i in range(5):
        outside.append(lens.box.write(f"outside{i}", "a" * 9000))
        (lens.root / "d").mkdir(exist_ok=True)
        lens.box.own(lens.root / "d")
        os.link(outside[i], lens.root / f"d/h{i}")
    process = lens.start(*lens.script(STORM))
    number = 0
    while process.poll() is None:
        number += 1
        with outside[number % 5].open("r+") as stream:
            stream.write("y" * (number % 9000))
        lens.write("d/host", "x")
        (lens.root / "d/host").unlink()
    out, err = process.communicate(timeout=30)
    assert out == b'{"ended": ["0", "0", "0", "0", "0"]}\n' and process.returncode == 0, (out, err)
    assert number > 10


def test_a_warm_file_is_opened_and_read_without_the_lens(lens):
    """It is stopped meanwhile: nobody could answer."""
    lens.write("d/f", "content")
    ask = lens.asker()
    use = "[os.stat('d/f').st_size, part('d/f'), names('d')]"
    ask(f"exec({WAYS!r}, globals())")
    assert ask(use) == ask(use) == [7, "co", ["f"]]
    pid = lens.lens_pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        assert ask(use) == [7, "co", ["f"]]
    finally:
        os.kill(pid, signal.SIGCONT)
