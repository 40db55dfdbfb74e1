# SPDX-License-Identifier: Apache-2.0
"""The host side: its changes are seen within a second, what it swaps is never served as something else, no end hangs."""
import ctypes
import json
import itertools
import os
import pathlib
import signal
import time

import pytest

from support import poll, read_stat

LIBC = ctypes.CDLL(None, use_errno=True)
RENAME_EXCHANGE = 2


def exchange(a, b):
    if LIBC.renameat2(-100, os.fsencode(a), -100, os.fsencode(b), RENAME_EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


@pytest.mark.parametrize("name", ["f.txt", "deep/er/f.txt"])
def test_changes_on_the_host_are_seen_within_a_second(lens, name):
    path = lens.write(name, "one")
    other = lens.write("deep/other", "x")
    ask = lens.asker()
    there = os.path.dirname(name) or "."
    read, listing, size = f'answer(read, "{name}")', f'names("{there}")', f'answer(lambda: str(os.stat("{name}").st_size))'
    assert ask(read) == "one" and ask(size) == "3" and "f.txt" in ask(listing)
    for change in range(3):
        text = f"same size {change}"
        path.write_text(text)
        ask.within_a_second(read, text)
        ask.within_a_second(size, str(len(text)))
    with path.open("a") as stream:
        stream.write(" and more")
    ask.within_a_second(read, text + " and more")
    path.chmod(0o600)
    ask.within_a_second(f'oct(os.stat("{name}").st_mode & 0o777)', "0o600")
    replacement = path.with_name("replacement")
    lens.write(str(replacement.relative_to(lens.root)), "replaced")
    replacement.rename(path)
    ask.within_a_second(read, "replaced")
    path.unlink()
    ask.within_a_second(read, "ENOENT")
    ask.within_a_second(f'"f.txt" in {listing}', False)
    lens.write(name, "back")
    ask.within_a_second(read, "back")
    ask.within_a_second(f'"f.txt" in {listing}', True)
    other.rename(path)
    ask.within_a_second(read, "x")


@pytest.mark.parametrize("who", ["user"], indirect=True)  # root without capabilities cannot map itself once more
def test_where_nothing_reports_changes_they_are_seen_within_a_second_all_the_same(lens):
    """A view of a view: the inner lens hears nothing of what changes beyond the outer one, and must ask again."""
    path = lens.write("d/f", "one")
    inner = lens.box.mkdir("inner")
    command = [str(lens.box.bin / "mount_lens"), "--lens", str(lens.box.bin / "cordon-lens"), "--root", str(lens.view), "--at", str(inner)]
    ask = lens.asker(within=(*command, "--rw", "**", "--"))
    assert ask('read("d/f")') == "one" and ask('names("d")') == ["f"]
    path.write_text("two")
    ask.within_a_second('read("d/f")', "two")
    path.write_text("three!")
    ask.within_a_second('read("d/f")', "three!")
    lens.write("d/g", "new")
    ask.within_a_second('names("d")', ["f", "g"])
    path.unlink()
    ask.within_a_second('answer(read, "d/f")', "ENOENT")
    ask.within_a_second('names("d")', ["g"])
    assert ask('write("d/h", "inner")') is None and lens.read("d/h") == "inner"


def test_a_file_that_the_host_makes_a_moment_before_the_run_is_truncated_all_the_same(lens):
    """The lens is stopped, so that the host's file comes after the run believed that there is none, and before it makes one."""
    for name in ("f", "g"):
        ask = lens.asker()
        assert ask(f'answer(os.stat, "{name}")') == "ENOENT"
        pid = lens.lens_pid()
        os.kill(pid, signal.SIGSTOP)
        try:
            lens.write(name, "older and longer")
            flags = "" if name == "f" else ", flags=os.O_CREAT | os.O_EXCL"
            ask.process.stdin.write(f'answer(write, "{name}", "new"{flags})\n'.encode())
            ask.process.stdin.flush()
            time.sleep(0.2)  # for the run to ask; were it later, the lens would have heard of the file
        finally:
            os.kill(pid, signal.SIGCONT)
        assert ask("1") == ("ok" if name == "f" else "EEXIST") and ask("2") == 1
        assert lens.read(name) == ("new" if name == "f" else "older and longer")
        ask.process.kill()
        ask.process.wait()


def test_directories_that_the_host_makes_moves_and_removes_are_followed(lens):
    lens.write("a/f", "one")
    ask = lens.asker()
    assert ask('read("a/f")') == "one" and ask('answer(read, "b/f")') == "ENOENT"
    (lens.root / "a").rename(lens.root / "b")
    ask.within_a_second('[answer(read, "a/f"), answer(read, "b/f")]', ["ENOENT", "one"])
    lens.write("a/f", "two")
    ask.within_a_second('[answer(read, "a/f"), answer(read, "b/f")]', ["two", "one"])
    exchange(lens.root / "a", lens.root / "b")
    ask.within_a_second('[answer(read, "a/f"), answer(read, "b/f")]', ["one", "two"])
    assert ask('write("a/f", "three")') is None
    assert lens.read("a/f") == "three" and lens.read("b/f") == "two"


def test_a_second_name_on_the_host_is_another_way_to_change_a_file(lens):
    outside = lens.box.write("outside", "one")
    os.link(outside, lens.root / "inside")
    ask = lens.asker()
    assert ask('read("inside")') == "one"
    outside.write_text("two")
    ask.within_a_second('read("inside")', "two")
    assert ask('write("inside", "six")') is None and outside.read_text() == "six"
    outside.write_text("ten")
    ask.within_a_second('read("inside")', "ten")


def test_writes_through_a_mapping_on_the_host_are_seen_when_it_ends(lens):
    import mmap

    path = lens.write("m", "one.")
    ask = lens.asker()
    assert ask('read("m")') == "one."
    with path.open("r+b") as stream:
        area = mmap.mmap(stream.fileno(), 4)
    area[:4] = b"two."
    area.close()
    ask.within_a_second('read("m")', "two.")


def test_what_the_host_replaces_under_a_protected_name_stays_protected(lens):
    """A12, A13: no gap, however fast the host replaces and the run writes."""
    lens.write("AGENTS.md", "rules 0")
    process = lens.start_python(
        """
        print("ready", flush=True)
        began, tried = time.monotonic(), 0
        while time.monotonic() < began + 3 or (tried <= 100 or not os.path.exists("enough")) and time.monotonic() < began + 60:
            for call in (lambda: write("AGENTS.md", "EVIL", flags=0), lambda: write("AGENTS.md", "EVIL"), lambda: os.truncate("AGENTS.md", 0),
                         lambda: os.rename("own", "AGENTS.md"), lambda: os.unlink("AGENTS.md"), lambda: os.chmod("AGENTS.md", 0o777)):
                tried += answer(call) != "ok"
            write("own", "EVIL")
        out["tried"] = tried > 100
        """,
        rules=("--rw", "**", "--protect", "AGENTS.md"),
    )
    assert process.stdout.readline() == b"ready\n"
    number = 0
    while process.poll() is None and number < 20000:
        number += 1
        if number == 100:
            lens.write("enough", "")  # on a busy machine the run goes on until then
        kind = number % 3
        if kind == 0:
            lens.write("new", f"rules {number}")
            (lens.root / "new").rename(lens.root / "AGENTS.md")
        elif kind == 1:
            (lens.root / "AGENTS.md").unlink()
            lens.write("AGENTS.md", f"rules {number}")
        else:
            lens.write("AGENTS.md", f"rules {number}")
        text = lens.read("AGENTS.md")
        assert text == f"rules {number}", text
        assert (lens.root / "AGENTS.md").stat().st_mode & 0o777 == 0o644
    out, err = process.communicate(timeout=30)
    assert b'"tried": true' in out, (out, err)
    assert number >= 100


def test_an_open_file_stays_itself_when_the_host_swaps_its_name(lens):
    lens.write("a.ts", "first")
    lens.write("b.txt", "FOREIGN")
    ask = lens.asker(rules=("--rw", "*.ts"))
    assert ask('globals().update(fd=os.open("a.ts", os.O_RDWR)) or os.pread(fd, 10, 0).decode()') == "first"
    exchange(lens.root / "a.ts", lens.root / "b.txt")
    time.sleep(0.3)
    assert ask("answer(lambda: os.pread(fd, 10, 0).decode())") in ("first", "ESTALE")
    # The file is now called b.txt, which is not for writing; and a.ts is another file.
    assert ask('answer(os.pwrite, fd, b"EVIL", 0)') in ("ESTALE", "EACCES")
    assert lens.read("b.txt") == "first" and lens.read("a.ts") == "FOREIGN"


def test_mounts_below_the_root_are_not_part_of_the_tree(lens):
    if os.getuid() != 0:
        pytest.skip("only root can mount on the host")
    lens.box.write("elsewhere/secret", "FOREIGN")
    target = lens.box.mkdir("root/mnt")
    import subprocess

    subprocess.run(["mount", "--bind", str(lens.box.path / "elsewhere"), str(target)], check=True)
    try:
        out = lens.python('out["a"] = [answer(read, "mnt/secret"), answer(os.stat, "mnt"), answer(os.listdir, "mnt")]')
    finally:
        subprocess.run(["umount", str(target)], check=True)
    assert out["a"] == ["EACCES"] * 3


def test_the_death_of_the_lens_ends_every_wait_at_once(lens):
    lens.write("f", "x")
    process = lens.start_python(
        """
        print("ready", flush=True)
        sys.stdin.readline()
        began = time.monotonic()
        out["answers"] = [answer(os.stat, "g"), answer(write, "h"), answer(os.unlink, "f"), answer(os.mkdir, "d")]
        out["quick"] = time.monotonic() - began < 2
        """
    )
    assert process.stdout.readline() == b"ready\n"
    os.kill(lens.lens_pid(), signal.SIGKILL)
    time.sleep(0.2)
    out, err = process.communicate(b"\n", timeout=20)
    got = eval(out, {"true": True, "false": False})
    assert set(got["answers"]) <= {"ENOTCONN", "ECONNABORTED"} and got["quick"], (got, err)


def test_the_death_of_the_lens_in_the_middle_of_work_hangs_nobody(lens):
    process = lens.start_python(
        """
        for worker in range(4):
            if os.fork() == 0:
                while True:
                    try:
                        write(f"f{worker}", "x" * 100000)
                        read(f"f{worker}"), names(), os.unlink(f"f{worker}")
                    except OSError as error:
                        os._exit(error.errno)
        print("ready", flush=True)
        out["ended"] = [errno.errorcode[os.waitstatus_to_exitcode(os.wait()[1])] for _ in range(4)]
        """
    )
    assert process.stdout.readline() == b"ready\n"
    stop = time.monotonic() + 0.5
    while time.monotonic() < stop:  # the host changes things too, so that the kernel is being told
        lens.write("host", "x")
        (lens.root / "host").unlink()
    os.kill(lens.lens_pid(), signal.SIGKILL)
    out, err = process.communicate(timeout=30)
    ended = eval(out.splitlines()[-1])["ended"]
    # EIO is what a read of a page gives that could not be had.
    assert len(ended) == 4 and set(ended) <= {"ENOTCONN", "ECONNABORTED", "EIO"}, (out, err)


def children(pid):
    return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_the_death_of_the_invalidator_is_the_end_of_the_lens(lens):
    """Without it the kernel would believe for a day what is no longer true."""
    lens.write("f", "one")
    ask = lens.asker()
    assert ask("read('f')") == "one"
    (invalidator,) = children(lens.lens_pid())
    os.kill(invalidator, signal.SIGKILL)
    # Another name each time: that one is missing would be believed, too.
    missing = itertools.count()
    poll(lambda: ask(f"answer(os.stat, 'missing{next(missing)}')") in ("ENOTCONN", "ECONNABORTED"), what="the end of the view")
    lens.write("f", "two")
    assert ask("answer(read, 'f')") != "two"
    ask.process.communicate(timeout=20)
    assert ask.process.returncode == 121  # mount_lens: the lens ended with a status


def test_a_busy_host_does_not_keep_the_lens_from_its_end(lens):
    process = lens.start_python("print(names(), flush=True); sys.stdin.readline()")
    assert process.stdout.readline() == b"[]\n"
    script = f'cd {lens.root}; i=0; while :; do i=$((i + 1)); : >busy$1-$((i % 500)); done'
    busy = [lens.box.start("/bin/sh", "-c", script, "sh", str(i)) for i in range(3)]
    poll(lambda: len(lens.names()) > 500, what="the host's work")
    try:
        process.communicate(b"\n", timeout=20)
        assert process.returncode == 0 and None in {other.poll() for other in busy}
    finally:
        for other in busy:
            other.kill()


def test_the_lens_ends_with_its_supervisor_and_with_the_view(lens):
    process = lens.start("sleep", "60")
    pid = lens.lens_pid()
    process.kill()
    process.wait()
    poll(lambda: (read_stat(pid) or "Z")[0] in "ZX", what="the end of the lens")
    done = lens.run("true")
    assert done.returncode == 0, str(done)


def test_a_view_that_goes_while_the_lens_reads_is_an_ordinary_end(lens):
    """The kernel then says ECONNABORTED, once in some thousand ends; strace says it here every time."""
    wrapper = lens.box.write(
        "lens-of-strace",
        "#!/bin/sh\n"
        f'exec strace -D -qq -o /dev/null -e inject=read:error=ECONNABORTED:when=50+ {lens.box.bin}/cordon-lens "$@"\n',
        mode=0o755,
    )
    command = lens.command(("--rw", "**"), lens.script('out["a"] = [answer(os.stat, f"missing-{i}") for i in range(100)]'))
    command[command.index("--lens") + 1] = str(wrapper)
    done = lens.box.run(*command)
    assert done.returncode == 0 and done.stderr == "", str(done)
    answers = json.loads(done.stdout)["a"]
    assert answers[0] == "ENOENT" and answers[-1] in ("ENOTCONN", "ECONNABORTED"), answers


def test_the_lens_has_given_up_its_rights(lens):
    process = lens.start("sleep", "60")
    pid = lens.lens_pid()
    with open(f"/proc/{pid}/status") as stream:
        status = dict(line.split(":\t", 1) for line in stream.read().splitlines() if ":\t" in line)
    assert {status[key] for key in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1" and status["Threads"] == "2"
    if os.getuid() == 0:
        assert len(os.listdir(f"/proc/{pid}/fd")) <= 12
        assert os.stat(f"/proc/{pid}/environ").st_uid == 0  # not dumpable
    process.kill()


@pytest.mark.parametrize("arguments", [[], ["--root-fd"], ["--root-fd", "x"], ["--root-fd", "0", "--policy-fd", "1", "--fuse-fd", "2"], ["--bad", "3"]])
def test_bad_arguments_are_refused_with_the_usage(box, arguments):
    done = box.run(str(box.bin / "cordon-lens"), *arguments)
    assert done.returncode == 2 and "usage: cordon-lens" in done.stderr


@pytest.mark.parametrize("policy", [b"", b"nonsense", b"cordon-policy\x002\0root\0/\0", b"cordon-policy\x001\0end\0", b"cordon-policy\x002\0grant\0all\0x\0\0end\0"])
def test_a_damaged_policy_is_an_error_not_a_view(box, lens_tools, policy):
    root = os.open("/", os.O_PATH)
    read_end, write_end = os.pipe()
    os.write(write_end, policy)
    os.close(write_end)
    null = os.open("/dev/null", os.O_RDWR)
    done = box.run(str(box.bin / "cordon-lens"), "--root-fd", "100", "--policy-fd", "101", "--fuse-fd", "102",
                   fds={100: root, 101: read_end, 102: null})
    for fd in (root, read_end, null):
        os.close(fd)
    assert done.returncode == 1 and "error: the policy that was handed over is damaged" in done.stderr, done
