# SPDX-License-Identifier: Apache-2.0
"""The ioctl requests that a program inside can make: those that docs/ioctl.md lists, and no others."""
import array
import fcntl
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from arena import PRELUDE, answers
from modes import NARROW

TOP = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = TOP / "docs/ioctl.md"
RUNS = {**NARROW, "network": ("--net", "example.org")}


def listed():
    """{name: number} of the document."""
    return {name: int(number, 16) for name, number in re.findall(r"^\| `([A-Z0-9_]+)` \| `(0x[0-9a-f]+)` \| \S", DOCUMENT.read_text(), re.MULTILINE)}


def loaded(source):
    """The names in the table from which the filter is made."""
    table = re.search(r"ioctl_requests\[\] = \{(.*?)\};", source.read_text(), re.DOTALL)[1]
    return re.findall(r"^\t([A-Z0-9_]+),$", table, re.MULTILINE)


@pytest.fixture
def sweep(arena, probes):
    shutil.copy(probes / "ioctls", arena.root / "src/ioctls")
    arena.box.own(arena.root / "src/ioctls")
    return [*(hex(number) for number in listed().values())]


def test_the_document_names_the_requests_of_the_table():
    assert list(listed()) and sorted(listed()) == sorted(loaded(TOP / "src/sandbox/inside/ioctl_table.h"))


@pytest.mark.parametrize("run", RUNS)
def test_what_the_document_lists_passes_and_nothing_else_whatever_stands_in_the_upper_half(arena, sweep, run):
    arena.enter(run, protect=False, modes=RUNS)
    result = arena.inside(f"{arena.inner}/src/ioctls", *sweep)
    *passed, tried = result.stdout.splitlines()
    assert re.fullmatch(r"tried \d{8,}", tried), result
    assert {int(word, 16) for word in passed} == set(listed().values()), set(map(hex, {int(w, 16) for w in passed} ^ set(listed().values())))


def test_control_without_the_filter_every_request_reaches_the_kernel(arena, probes):
    passed = arena.box.run(str(probes / "ioctls")).stdout.splitlines()
    assert len(set(passed)) > 1000000


# Makes each request on each kind of descriptor, with an argument that fits most of them, and tells the answers.
EVERY = r"""
import fcntl, json, pty, signal, socket
signal.signal(signal.SIGHUP, signal.SIG_IGN)
def answer(fd, number, argument):
    try:
        r = fcntl.ioctl(fd, number, argument)
        return 'done' if not isinstance(argument, int) or number != 0x5441 else 'opened'
    except OSError as e: return errno.errorcode.get(e.errno, str(e.errno))
def all_answers(name, number):
    out = []
    master, slave = pty.openpty()
    others = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socketpair()[0], open('src/main.c', 'r+b'), os.open('src', os.O_RDONLY),
              open('/dev/urandom', 'rb'), os.pipe()[0]]
    others += [open('/dev/null', 'r+b')]
    fds = [master, slave, *others]
    # What a file system answers is compared on the same one: below /dev they differ.
    if name.startswith(('FS_IOC', 'FICLONE', 'FIDEDUPE')): fds = [open('src/main.c', 'r+b'), open('src/main.c', 'rb'), os.open('src', os.O_RDONLY)]
    for fd in fds:
        argument = bytearray(b'lo' + bytes(14) + b'\x01' + bytes(1007))
        if name in ('TCSBRK', 'TCXONC', 'TCFLSH', 'TIOCSCTTY', 'TIOCGPTPEER', 'TCSBRKP'): argument = 2
        elif name.startswith(('TCSET', 'TIOCS', 'FI', 'TIOCPKT', 'SIOCS')): argument = bytearray(1024)
        if name == 'FICLONE': argument = fds[1].fileno()
        elif name == 'FICLONERANGE': argument = bytearray(fds[1].fileno().to_bytes(8, 'little') + bytes(24))
        out.append(answer(fd, number, argument))
    return out
for name, number in REQUESTS.items():
    pid = os.fork()
    if pid == 0:
        os.setsid()
        print(name, json.dumps(all_answers(name, number), separators=(',', ':')), flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
"""


def test_every_request_of_the_list_answers_as_it_does_natively(arena):
    script = f"REQUESTS = {listed()!r}\n" + EVERY
    native = answers(arena.box.run("/usr/bin/python3", "-c", PRELUDE + script, cwd=arena.root))
    inside = answers(arena.py(script, "--net", "host"))
    assert len(native) == len(listed()) and inside == native
    # The comparison would prove nothing of a request that fails on every descriptor.
    fails = {name for name, found in native.items() if not re.search("done|opened", found)}
    assert fails <= {"FICLONE", "FICLONERANGE", "FIDEDUPERANGE", "FS_IOC_GETVERSION", "FS_IOC_GETFSSYSFSPATH", "FS_IOC_GETFSUUID", "FS_IOC_GETFSLABEL",
                     "TIOCSPGRP", "TIOCNOTTY", "TIOCGPTPEER", "TIOCGPGRP", "TIOCGSID", "SIOCATMARK", "SIOCOUTQNSD", "SIOCGIFCONF", "SIOCGIFTXQLEN",
                     "SIOCGSTAMP_OLD", "SIOCGSTAMPNS_OLD", "SIOCGSTAMP_NEW", "SIOCGSTAMPNS_NEW", "FS_IOC_FSGETXATTR", "FS_IOC_FIEMAP"}, fails


ATTRIBUTES = r"""
import fcntl, struct
for name in ('src/main.c', 'src'):
    fd = os.open(name, os.O_RDONLY)
    before = struct.unpack('q', fcntl.ioctl(fd, 0x80086601, bytes(8)))[0]
    for flag in (0x10, 0x20, 0x40, 0x40000000):  # immutable, append only, nodump, case folding
        attempt('%s %x' % (name, flag), lambda: fcntl.ioctl(fd, 0x40086602, struct.pack('q', before | flag)))
    attempt(name + ' xattr', lambda: fcntl.ioctl(fd, 0x401c5820, fcntl.ioctl(fd, 0x801c581f, bytes(28))))
    attempt(name + ' version', lambda: fcntl.ioctl(fd, 0x40087602, struct.pack('q', 7)))
"""


def flags_of(path):
    fd = os.open(path, os.O_RDONLY)
    flags = array.array("l", [0])
    try:
        fcntl.ioctl(fd, 0x80086601, flags)
    finally:
        os.close(fd)
    return flags[0]


@pytest.mark.parametrize("run", [run for run in NARROW if run != "lens"])  # of which FUSE has none
def test_the_flags_of_files_and_directories_can_be_read_and_not_changed(arena, run):
    before = [flags_of(arena.root / name) for name in ("src", "src/main.c")]
    found = answers(arena.enter(run, modes=NARROW).inside("/usr/bin/python3", "-c", PRELUDE + ATTRIBUTES))
    assert len(found) == 12 and set(found.values()) == {"ENOTTY"}, found
    assert [flags_of(arena.root / name) for name in ("src", "src/main.c")] == before


def test_control_natively_a_flag_can_be_set(arena):
    found = answers(arena.box.run("/usr/bin/python3", "-c", PRELUDE + ATTRIBUTES.replace("0x10, 0x20, 0x40, 0x40000000", "0x40,"), cwd=arena.root))
    assert found["src/main.c 40"] == "done" and flags_of(arena.root / "src/main.c") & 0x40


# ---- btrfs: names that no hook for paths sees ----


@pytest.fixture
def btrfs(arena):
    """A directory of the caller's in a file system of its own; the arena's workspace moves there."""
    if os.getuid() != 0:
        pytest.skip("only root can mount a file system")
    image, place = arena.box.path / "btrfs.img", arena.box.path / "btrfs"
    with open(image, "wb") as file:
        file.truncate(128 << 20)
    subprocess.run(["mkfs.btrfs", "-q", str(image)], check=True, stdout=subprocess.DEVNULL)
    place.mkdir()
    subprocess.run(["mount", "-o", "loop,user_subvol_rm_allowed", str(image), str(place)], check=True)
    try:
        shutil.copytree(arena.root, place / "repo", symlinks=True)
        subprocess.run(["btrfs", "-q", "subvolume", "create", str(place / "repo/src/old")], check=True)
        (place / "repo/src/old/kept").write_text("kept\n")
        arena.box.own(place)
        arena.root, arena.box.state = place / "repo", arena.box.mkdir("btrfs/state", mode=0o700)
        yield arena.root
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


# Each way to make or remove a subvolume; a structure has the descriptor of the source and the name, 4096 bytes in all.
SUBVOLUMES = r"""
import fcntl, struct
def v1(fd, name): return bytearray(struct.pack('q4088s', fd, name))
def v2(fd, name, flags=0): return bytearray(struct.pack('qQQ32s4040s', fd, 0, flags, b'', name))
src, root = os.open('src', os.O_RDONLY), os.open('.', os.O_RDONLY)
old = os.open('src/old', os.O_RDONLY)
for place, fd in (('root', root), ('src', src)):
    attempt(place + ' subvol-create', lambda: fcntl.ioctl(fd, 0x5000940e, v1(0, b'.vscode')))
    attempt(place + ' subvol-create-v2', lambda: fcntl.ioctl(fd, 0x50009418, v2(0, b'.idea')))
    attempt(place + ' snap-create', lambda: fcntl.ioctl(fd, 0x50009401, v1(old, b'AGENTS.override.md')))
    attempt(place + ' snap-create-v2', lambda: fcntl.ioctl(fd, 0x50009417, v2(old, b'.cursor')))
    attempt(place + ' snap-create-v2-read-only', lambda: fcntl.ioctl(fd, 0x50009417, v2(old, b'.gemini', 2)))
attempt('snap-destroy', lambda: fcntl.ioctl(src, 0x5000940f, v1(0, b'old')))
attempt('snap-destroy-v2', lambda: fcntl.ioctl(src, 0x5000943f, v2(0, b'old')))
attempt('subvol-setflags', lambda: fcntl.ioctl(old, 0x4008941a, struct.pack('Q', 2)))
attempt('default-subvol', lambda: fcntl.ioctl(src, 0x40089413, struct.pack('Q', 5)))
attempt('defrag', lambda: fcntl.ioctl(os.open('src/main.c', os.O_RDWR), 0x50009402, bytearray(4096)))
attempt('set-label', lambda: fcntl.ioctl(root, 0x41009432, bytes(256)))
"""
COPY = r"""
import fcntl
data = os.open('src/main.c', os.O_RDONLY)
with open('src/copy', 'wb') as copy: attempt('clone', lambda: fcntl.ioctl(copy, 0x40049409, data))
print('same', open('src/copy').read() == open('src/main.c').read())
"""


@pytest.mark.parametrize("run", NARROW)
def test_no_request_of_btrfs_makes_or_removes_a_name(arena, btrfs, run):
    btrfs = arena.enter(run, modes=NARROW).root
    before = sorted(os.listdir(btrfs)), sorted(os.listdir(btrfs / "src"))
    found = answers(arena.inside("/usr/bin/python3", "-c", PRELUDE + SUBVOLUMES))
    assert len(found) == 16 and set(found.values()) == {"ENOTTY"}, found
    assert (sorted(os.listdir(btrfs)), sorted(os.listdir(btrfs / "src"))) == before and (btrfs / "src/old/kept").read_text() == "kept\n"


def test_copies_share_their_blocks_on_btrfs(arena, btrfs):
    found = answers(arena.py(COPY))
    assert found == {"clone": "done", "same": "True"} and (btrfs / "src/copy").read_bytes() == (btrfs / "src/main.c").read_bytes()


def test_control_natively_the_requests_of_btrfs_make_and_remove_names(arena, btrfs):
    found = answers(arena.box.run("/usr/bin/python3", "-c", PRELUDE + SUBVOLUMES, cwd=btrfs))
    made = [name for name, answer in found.items() if answer == "done"]
    assert {"root subvol-create", "root snap-create-v2", "src subvol-create-v2", "snap-destroy"} <= set(made), found
    assert (btrfs / ".vscode").is_dir() and (btrfs / ".cursor/kept").exists() and not (btrfs / "src/old").exists()
