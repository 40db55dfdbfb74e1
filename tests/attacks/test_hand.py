# SPDX-License-Identifier: Apache-2.0
"""Attacks on the hand: what it could be made to do in places that only the caller's Landlock domain holds."""
import os
import signal
import subprocess

import pytest

from arena import PRELUDE, answers
from support import descendants, poll

MODES = pytest.mark.parametrize("mode", [[], ["--workspace-mode", "permissive"]], ids=["plain", "permissive"])


LINK_OPEN = """
def link_open(fd, name):  # Python's own os.link() follows no link
    r = syscall(265, -100, b'/proc/self/fd/%d' % fd, -100, name, 0x400)
    if r < 0:
        raise OSError(-r, os.strerror(-r))
"""


def start(arena, script, *options, **kw):
    return arena.cordon.start("run", "--root", str(arena.root), *options, "--", "/usr/bin/python3", "-c", PRELUDE + LINK_OPEN + script, cwd=arena.root, **kw)


def init_of(process):
    """PID 1 of the run: the first of its descendants that is alone in a new pid namespace as number 1."""
    for pid in descendants(process.pid):
        try:
            with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
                numbers = next(line for line in status if line.startswith("NSpid:")).split()[1:]
        except (OSError, StopIteration):
            continue
        if len(numbers) > 1 and numbers[-1] == "1":
            return pid
    return None


IN_THE_GAP = """
import time
open('x', 'w').write('evil')
open('ready', 'w').close()
while not os.path.exists('conf/host'): time.sleep(0.01)
d = os.open('conf', os.O_PATH | os.O_DIRECTORY)
f = os.open('conf/host', os.O_RDONLY)
def all_ways(when):
    attempt(when + '-make', lambda: os.open('evil', os.O_CREAT | os.O_WRONLY, dir_fd=d))
    attempt(when + '-link', lambda: os.link('x', 'evil', dst_dir_fd=d))
    attempt(when + '-rename', lambda: os.rename('x', 'evil', dst_dir_fd=d))
    attempt(when + '-link-out', lambda: os.link('host', 'y1', src_dir_fd=d))
    attempt(when + '-file-out', lambda: link_open(f, b'y2'))
    attempt(when + '-rename-out', lambda: os.rename('host', 'y3', src_dir_fd=d))
all_ways('gap')
open('tried', 'w').close()
while not os.path.exists('go'): time.sleep(0.01)
all_ways('later')
attempt('work', lambda: os.rename('x', 'src/x'))
"""


@MODES
def test_nothing_comes_into_a_boundary_or_out_of_it_before_it_is_mounted(arena, mode):
    box, root = arena.box, arena.root
    run = start(arena, IN_THE_GAP, "--protect", "conf", *mode)
    poll((root / "ready").exists, 20, "the start of the agent")
    init = init_of(run)
    assert init
    os.kill(init, signal.SIGSTOP)  # so the host is always faster than PID 1
    try:
        box.write("repo/conf/host", "the host's")
        poll((root / "tried").exists, 20, "the attempts")
    finally:
        os.kill(init, signal.SIGCONT)
    poll(lambda: b"/conf " in open(f"/proc/{init}/mountinfo", "rb").read(), 10, "the mount")
    box.write("repo/go")
    out = run.communicate(timeout=30)[0]
    got = dict(line.split() for line in out.decode().splitlines() if " " in line)
    assert {name for name, what in got.items() if what == "done"} == {"work"}, got
    assert len(got) == 13 and os.listdir(root / "conf") == ["host"]
    assert os.stat(root / "conf/host").st_nlink == 1 and (root / "conf/host").read_text() == "the host's"


FLIP = """
import resource, threading, time
open('ready', 'w').close()
while not os.path.exists('hosttmp'): time.sleep(0.01)
hand = next(int(p) for p in os.listdir('/proc') if p.isdigit() and 'hand' in open(f'/proc/{p}/comm').read())
f, stop, linked = os.open('hosttmp', os.O_RDONLY), False, 0
hard = resource.prlimit(hand, resource.RLIMIT_NOFILE)[1]
def flip(low):
    while not stop:
        resource.prlimit(hand, resource.RLIMIT_NOFILE, (low, hard))
        resource.prlimit(hand, resource.RLIMIT_NOFILE, (hard, hard))
for low in range(5, 14):
    stop = False
    thread = threading.Thread(target=flip, args=(low,))
    thread.start()
    for i in range(800):
        linked += syscall(265, f, b'', -100, b'y%d' % linked, 0x1000) == 0  # linkat, AT_EMPTY_PATH
    stop = True
    thread.join()
attempt('work', lambda: open('mine', 'w').close())
attempt('nameless', lambda: link_open(os.open('.', os.O_TMPFILE | os.O_RDWR), b'named'))
print('linked', linked)
"""


def test_a_file_of_the_host_gets_no_second_name_when_the_hand_lacks_descriptors(arena):
    root = arena.root
    run = start(arena, FLIP)
    poll((root / "ready").exists, 20, "the start of the agent")
    temporary = arena.box.write("repo/hosttmp", "the host's")
    out = run.communicate(timeout=60)[0].decode()
    assert "linked 0" in out and "work done" in out and "nameless done" in out, out
    assert os.stat(temporary).st_nlink == 1 and temporary.read_text() == "the host's"


KILLED = """
import resource, threading
os.mkfifo('fifo')
threading.Thread(target=lambda: os.open('fifo', os.O_WRONLY), daemon=True).start()
def is_hand(pid):
    try:
        return 'hand' in open(f'/proc/{pid}/comm').read()
    except OSError:
        return False
hands = lambda: {int(p) for p in os.listdir('/proc') if p.isdigit() and is_hand(p)}
while len(hands()) < 2: pass
hand = min(hands())
resource.prlimit(hand, resource.RLIMIT_CPU, (1, 1))
refused = 0
while is_hand(hand):
    for i in range(1000):
        try:
            os.close(os.open('new', os.O_CREAT | os.O_WRONLY))
        except PermissionError:
            refused += 1
attempt('work', lambda: open('after', 'w').close())
print('refused', refused, flush=True)
os._exit(0)
"""


def test_a_killed_hand_is_replaced_while_a_fifo_is_waited_for(arena):
    out, err = (text.decode() for text in start(arena, KILLED).communicate(timeout=60))
    assert "work done" in out and "refused" in out, out + err
    assert (arena.root / "after").exists()


BACK = """
import shutil
came = 0
for i in range(20):
    os.makedirs('src/a/b')
    for d in ('src/a', 'src/a/b'):
        open(d + '/f', 'w').close()
    numbers = {os.stat(d).st_ino for d in ('src/a', 'src/a/b')}
    shutil.rmtree('src/a')
    os.makedirs('new/er')
    came += os.stat('new').st_ino in numbers or os.stat('new/er').st_ino in numbers
    for d in ('new', 'new/er'):
        attempt('file-%d-%s' % (i, d), lambda: open(d + '/f', 'w').close())
        attempt('directory-%d-%s' % (i, d), lambda: os.mkdir(d + '/d'))
    os.makedirs('src/a/b')
    os.close(os.open('src/a/b/f', os.O_CREAT | os.O_WRONLY))
    os.rename('src/a', 'moved')
    attempt('moved-%d' % i, lambda: os.close(os.open('moved/b/f', os.O_CREAT | os.O_WRONLY)))
    shutil.rmtree('new')
    shutil.rmtree('moved')
print('came', 'back' if came else 'never')
"""


@MODES
def test_a_directory_with_the_number_of_a_removed_one_that_was_free_can_be_worked_in(arena, mode):
    """ext4 uses the number of a removed directory again at once. What the hand knew of the old one says nothing about the new one."""
    result = arena.py(BACK, *mode)
    found = answers(result)
    assert found.pop("came") == "back", "the file system did not use a number again"
    assert len(found) == 100 and set(found.values()) == {"done"}, result
    arena.assert_unharmed()


BACK_ON_THE_HOST = """
for line in sys.stdin:
    os.mkdir('src/a')
    open('src/a/f', 'w').close()
    os.unlink('src/a/f')
    number = os.stat('src/a').st_ino
    os.rmdir('src/a')
    print(number, flush=True)
    sys.stdin.readline()
    attempt('late', lambda: open('late/f', 'w').close())
    sys.stdout.flush()
"""


def test_a_directory_of_the_hosts_with_the_number_of_a_removed_one_can_be_worked_in(arena):
    process = start(arena, BACK_ON_THE_HOST, stdin=subprocess.PIPE)
    came = 0
    for _ in range(10):
        process.stdin.write(b"go\n")
        process.stdin.flush()
        number = int(process.stdout.readline())
        late = arena.box.mkdir("repo/late")
        came += late.stat().st_ino == number
        process.stdin.write(b"go\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"late done\n"
        (late / "f").unlink()
        late.rmdir()
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    assert came, "the file system did not use a number again"
