# SPDX-License-Identifier: Apache-2.0
"""Protected paths in a writable root. The proof is what the host sees afterwards."""
import os
import subprocess
import threading
import time

import pytest

from arena import answers, hear
from support import poll

CHANGES = r"""
import fcntl, mmap, socket, struct
p = 'AGENTS.md'
fd = os.open(p, os.O_RDONLY)
for name, flags in dict(wronly=os.O_WRONLY, rdwr=os.O_RDWR, append=os.O_WRONLY | os.O_APPEND, trunc=os.O_RDONLY | os.O_TRUNC,
                        creat=os.O_WRONLY | os.O_CREAT).items():
    attempt('open ' + name, lambda: os.open(p, flags))
    attempt('reopen ' + name, lambda: os.open('/proc/self/fd/%d' % fd, flags))
attempt('truncate', lambda: os.truncate(p, 0))
attempt('ftruncate', lambda: os.ftruncate(fd, 0))
attempt('chmod', lambda: os.chmod(p, 0o777))
attempt('fchmod', lambda: os.fchmod(fd, 0o777))
attempt('chown', lambda: os.chown(p, os.getuid(), os.getgid()))
attempt('utime', lambda: os.utime(p, (1, 1)))
attempt('futime', lambda: os.utime(fd, (1, 1)))
attempt('setxattr', lambda: os.setxattr(p, 'user.evil', b'1'))
attempt('fsetxattr', lambda: os.setxattr(fd, 'user.evil', b'1'))
attempt('setflags', lambda: fcntl.ioctl(fd, 0x40086602, struct.pack('i', 0x40)))
attempt('mmap', lambda: mmap.mmap(fd, 4, mmap.MAP_SHARED, mmap.PROT_WRITE))
attempt('link out', lambda: os.link(p, 'alias'))
attempt('link fd', lambda: os.link('/proc/self/fd/%d' % fd, 'alias2', follow_symlinks=True))
attempt('copy_file_range', lambda: os.copy_file_range(os.open('src/main.c', os.O_RDONLY), fd, 5))
def tmpfile():
    t = os.open('.', os.O_TMPFILE | os.O_RDWR)
    os.write(t, b'evil')
    os.link('/proc/self/fd/%d' % t, p, follow_symlinks=True)
attempt('tmpfile', tmpfile)
attempt('make in dir', lambda: os.open('.factory/new', os.O_CREAT | os.O_WRONLY))
attempt('unlink in dir', lambda: os.unlink('.factory/settings.json'))
attempt('mkdir in dir', lambda: os.mkdir('.git/hooks/d'))
attempt('bind in dir', lambda: socket.socket(socket.AF_UNIX).bind('.factory/s'))
"""


def test_a1_no_call_changes_a_protected_file(arena):
    result = arena.py(CHANGES)
    found = answers(result)
    assert len(found) > 25, result
    assert "done" not in {found[k] for k in found}, result
    for name in ("open wronly", "truncate", "chmod", "utime", "setxattr", "make in dir", "unlink in dir", "mkdir in dir"):
        assert found[name] == "EROFS", (name, found)
    arena.assert_unharmed()


@pytest.mark.parametrize("make", ["mkfifo AGENTS.md", "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('AGENTS.md')\""])
def test_a1_a_fifo_or_socket_in_the_protected_set_is_refused_at_start(arena, make):
    os.unlink(arena.root / "AGENTS.md")
    subprocess.run(["/bin/sh", "-c", make], cwd=arena.root, check=True)
    result = arena.sh("echo started")
    assert result.returncode == 125 and "AGENTS.md" in result.stderr and "started" not in result.stdout


NAMES = r"""
import ctypes
open('twin', 'w').write('evil')
os.makedirs('twindir/er'); open('twindir/er/held.txt', 'w').write('evil'); os.makedirs('other', exist_ok=True)
def renameat2(a, b, flags):
    r = syscall(316, -100, a.encode(), -100, b.encode(), flags)
    if r < 0: raise OSError(-r, 'renameat2')
for p in ('AGENTS.md', '.git/config', 'deep/er/held.txt'):
    attempt('rename ' + p, lambda: os.rename(p, 'moved'))
    attempt('unlink ' + p, lambda: os.unlink(p))
    attempt('over ' + p, lambda: os.rename('twin', p))
    attempt('exchange ' + p, lambda: renameat2('twin', p, 2))
    attempt('whiteout ' + p, lambda: renameat2(p, 'gone', 4))
for p in ('.factory', '.git/hooks'):
    attempt('rename ' + p, lambda: os.rename(p, 'moved'))
    attempt('rmdir ' + p, lambda: os.rmdir(p))
for p in ('.git', 'deep', 'deep/er'):
    attempt('rename ' + p, lambda: os.rename(p, 'moved'))
    attempt('into ' + p, lambda: os.rename(p, 'other/moved'))
    attempt('exchange ' + p, lambda: renameat2('twindir', p, 2))
    attempt('over ' + p, lambda: os.rename('twindir', p))
"""


def test_a2_a3_a4_neither_the_leaf_nor_an_ancestor_can_be_renamed_removed_or_exchanged(arena):
    result = arena.py(NAMES)
    found = answers(result)
    assert len(found) > 25 and "done" not in found.values(), result
    for name in ("rename AGENTS.md", "unlink AGENTS.md", "over AGENTS.md", "exchange AGENTS.md", "rename .git", "into deep",
                 "exchange .git", "rename deep/er", "rename .factory"):
        assert found[name] == "EBUSY", (name, found)
    arena.assert_unharmed()


def test_a3_control_a_read_only_bind_alone_loses_the_name(arena):
    result = arena.bwrap("mv .git x && mkdir .git && echo evil >.git/config")
    assert result.returncode == 0, result
    assert (arena.root / ".git/config").read_text() == "evil\n"


def test_a3_ordinary_work_below_and_renames_across_a_pinned_directory_go_on(arena):
    result = arena.py("""
os.rename('src/main.c', 'deep/main.c'); os.rename('deep/main.c', 'deep/er/main.c'); os.rename('deep/er/main.c', 'src/main.c')
open('.git/a', 'w').write('x'); os.mkdir('.git/d'); os.rename('.git/a', '.git/d/a'); os.rename('.git/d/a', '.git/b'); os.rename('.git/b', 'deep/b')
# What comes from elsewhere could become a link on the way, so it is copied into a git directory.
try: os.rename('src/main.c', '.git/main.c')
except OSError as error: assert error.errno == 18, error
import subprocess; subprocess.run(['mv', 'src/main.c', '.git/main.c'], check=True); os.rename('.git/main.c', 'src/main.c')
os.rename('deep/er/free.txt', 'deep/er/still-free.txt'); os.mkdir('deep/new'); os.rename('deep/new', 'deep/er/new')
os.link('src/main.c', 'deep/second'); os.unlink('deep/second');
open('.git/index', 'w').write('x'); os.rmdir('deep/er/new'); print('work done')
""")
    assert result.returncode == 0 and "work done" in result.stdout, result
    assert (arena.root / "deep/er/still-free.txt").exists() and (arena.root / ".git/index").exists()
    arena.assert_unharmed()


CREATE = r"""
import socket
os.makedirs('stage/sub'); open('stage/sub/name', 'w').write('evil'); open('evil', 'w').write('evil')
attempt('open', lambda: os.close(os.open('absent.md', os.O_CREAT | os.O_WRONLY)))
attempt('mkdir', lambda: os.mkdir('absent.md'))
attempt('symlink', lambda: os.symlink('evil', 'absent.md'))
attempt('link', lambda: os.link('evil', 'absent.md'))
attempt('mknod', lambda: os.mknod('absent.md'))
attempt('bind', lambda: socket.socket(socket.AF_UNIX).bind('absent.md'))
attempt('rename', lambda: os.rename('evil', 'absent.md'))
attempt('first component', lambda: os.mkdir('gone'))
attempt('staged tree', lambda: os.rename('stage', 'gone'))
attempt('through a path', lambda: os.mkdir('src/../gone'))
attempt('absolute', lambda: os.mkdir(os.getcwd() + '/gone'))
def tmpfile():
    t = os.open('.', os.O_TMPFILE | os.O_RDWR); os.write(t, b'evil')
    r = syscall(265, -100, b'/proc/self/fd/%d' % t, -100, b'absent.md', 0x400)  # linkat with AT_SYMLINK_FOLLOW
    if r < 0: raise OSError(-r, '')
attempt('tmpfile', tmpfile)
d = os.open('.', os.O_RDONLY)
attempt('dir fd', lambda: os.open('absent.md', os.O_CREAT | os.O_WRONLY, dir_fd=d))
os.chdir('src')
attempt('from below', lambda: os.mkdir('../gone'))
print('exists', os.path.lexists('../absent.md') or os.path.lexists('../gone'))
"""


def test_a5_a_missing_protected_path_cannot_come_to_be(arena):
    result = arena.py(CREATE, "--protect", "absent.md", "--protect", "gone/sub/name")
    found = answers(result)
    assert found.pop("exists") == "False", result
    assert len(found) == 14 and set(found.values()) == {"EACCES"}, result
    assert not os.path.lexists(arena.root / "absent.md") and not os.path.lexists(arena.root / "gone")
    arena.assert_unharmed()


def test_a5_control_without_protection_the_name_comes_to_be(arena):
    assert arena.sh("echo evil >absent.md", protect=False).returncode == 0
    assert (arena.root / "absent.md").read_text() == "evil\n"


def test_a5_what_races_past_the_watch_is_taken_away(arena, box):
    """One thread flips the name in memory while another creates: some creations pass the check with another name."""
    result = arena.py("""
import threading, time
buf = ctypes.create_string_buffer(b'harmless-1', 32)
stop = False
def flip():
    while not stop:
        buf.raw = b'absent.md\\0' + bytes(22)
        buf.raw = b'harmless-1\\0' + bytes(21)
t = threading.Thread(target=flip); t.start()
end = time.time() + 4
won = 0
sys.setswitchinterval(1e-5)
while time.time() < end:
    fd = syscall(257, -100, buf, os.O_CREAT | os.O_WRONLY, 0o644)
    if fd >= 0:
        os.close(fd)
stop = True; t.join()
end = time.time() + 10
while os.path.lexists('absent.md') and time.time() < end:
    time.sleep(0.05)
print('left', os.path.lexists('absent.md'), time.time() - end + 10)
""", "--protect", "absent.md", timeout=90)
    assert "left False" in result.stdout, result
    assert not os.path.lexists(arena.root / "absent.md")


def test_a5_what_the_host_makes_meanwhile_stays_and_is_protected(arena):
    process = arena.cordon.start("run", "--root", str(arena.root), "--protect", "absent.md", "--", "sh", "-c",
                                 "echo up; read x; cat absent.md; echo evil >absent.md; rm -f absent.md; mv absent.md y; true",
                                 cwd=arena.root, stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    arena.box.write("repo/absent.md", "the host's\n")
    hear(process, b"protected from now on")
    out, err = process.communicate(b"\n", timeout=20)
    assert out == b"the host's\n" and b"cannot create absent.md" in err, err
    assert (arena.root / "absent.md").read_text() == "the host's\n"


def test_a6_a_missing_name_does_not_seem_to_exist(arena, box):
    """W lies below a repository, P names a missing .git: git finds the same top level inside and outside."""
    subprocess.run(["git", "init", "-q", str(box.path / "outer")], check=True)
    inner = box.mkdir("outer/inner")
    box.own(box.path / "outer")
    outside = box.run("git", "rev-parse", "--show-toplevel", cwd=inner)
    result = arena.cordon("run", "--root", str(box.path / "outer"), "--protect", "inner/.git", "--protect", "x.lock", "--", "sh", "-c",
                          "cd inner; git rev-parse --show-toplevel; ls -a; test -e .git; echo $?", cwd=inner)
    assert outside.stdout.splitlines()[0] == result.stdout.splitlines()[0]
    assert result.stdout.splitlines()[-1] == "1" and ".git" not in result.stdout.splitlines()[1:-1]


def test_a7_a_protected_link_is_held_and_so_is_its_target(arena):
    arena.box.write("repo/real/prompt.md", "target\n")
    arena.box.link("repo/LINK.md", "chain")
    arena.box.link("repo/chain", "real/prompt.md")
    result = arena.py("""
attempt('unlink', lambda: os.unlink('LINK.md'))
attempt('chain', lambda: os.rename('chain', 'x'))
attempt('target', lambda: open('real/prompt.md', 'w'))
attempt('through', lambda: open('LINK.md', 'w'))
attempt('parent', lambda: os.rename('real', 'y'))
print('read', open('LINK.md').read().strip())
""", "--protect", "LINK.md")
    found = answers(result)
    assert found == {"unlink": "EBUSY", "chain": "EBUSY", "target": "EROFS", "through": "EROFS", "parent": "EBUSY", "read": "target"}, result
    assert os.readlink(arena.root / "LINK.md") == "chain" and (arena.root / "real/prompt.md").read_text() == "target\n"


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", ".", "LINK.md", "a/b/../../.."])
def test_a7_a8_a9_a_protected_link_that_leads_out_or_back_is_refused_with_a_reason(arena, target):
    arena.box.write("outside", "outside\n")
    arena.box.mkdir("repo/a/b")
    arena.box.link("repo/LINK.md", target)
    result = arena.sh("echo started", "--protect", "LINK.md")
    assert result.returncode == 125 and "LINK.md" in result.stderr and "link" in result.stderr
    assert "started" not in result.stdout and result.seconds < 10


def test_a9_long_chains_of_links_end_in_an_answer(arena):
    for i in range(60):
        arena.box.link(f"repo/l{i}", f"l{i + 1}")
    result = arena.sh("echo started", "--protect", "l0")
    assert result.returncode == 125 and result.seconds < 10


@pytest.mark.parametrize("protected", ["AGENTS.md", ".factory/settings.json"])
def test_a10_a_second_name_made_earlier_is_copied_apart(arena, protected):
    os.link(arena.root / protected, arena.root / "alias")
    content = (arena.root / protected).read_text()
    result = arena.sh("echo evil >alias; cat alias")
    assert result.stdout == "evil\n" and "hard links" in result.stderr
    assert (arena.root / protected).read_text() == content and os.stat(arena.root / protected).st_nlink == 1


def test_a10_control_a_read_only_bind_alone_is_gone_around_by_a_hard_link(arena):
    os.link(arena.root / "AGENTS.md", arena.root / "alias")
    arena.bwrap("echo evil >alias")
    assert (arena.root / "AGENTS.md").read_text() == "evil\n"


def replace_by_rename(path):
    path.with_name("tmp-save").write_text(f"saved {time.time_ns()}\n")
    os.rename(path.with_name("tmp-save"), path)


def replace_by_unlink(path):
    os.unlink(path)
    path.write_text(f"saved {time.time_ns()}\n")


def rename_away(path):
    os.rename(path, path.with_name("old-one"))
    path.write_text(f"saved {time.time_ns()}\n")


@pytest.mark.parametrize("replace", [replace_by_rename, replace_by_unlink, rename_away])
def test_a12_a13_the_host_replaces_a_protected_file_again_and_again(arena, replace):
    held = arena.root / "deep/er/held.txt"
    process = arena.cordon.start("run", "--root", str(arena.root), *arena.protect(), "--", "sh", "-c",
                                 "echo up; while read x; do echo evil 2>/dev/null >deep/er/held.txt; mv deep/er/held.txt z 2>/dev/null; echo tried; done",
                                 cwd=arena.root, stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    for i in range(1, 6):
        replace(held)
        arena.box.own(held)
        content = held.read_text()
        hear(process, b"protected again", i)
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"tried\n"
        assert held.read_text() == content
    process.communicate(timeout=20)
    events = arena.cordon("audit", "--kind", "protected_lost", "--json").stdout
    assert events.count("protected_lost") >= 5


def test_a12_a_checkout_that_replaces_the_directory(arena):
    process = arena.cordon.start("run", "--root", str(arena.root), *arena.protect(), "--", "sh", "-c",
                                 "echo up; read x; echo evil >.git/config; mv .git x; true", cwd=arena.root, stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    os.rename(arena.root / ".git", arena.root / "old-git")
    arena.box.write("repo/.git/config", "new config\n")
    arena.box.mkdir("repo/.git/hooks")
    hear(process, f"protected again: {arena.root}/.git/config\n".encode())
    _, err = process.communicate(b"\n", timeout=20)
    assert (arena.root / ".git/config").read_text() == "new config\n", err
    assert b"Read-only file system" in err


def test_a12_control_a_live_bind_dissolves(arena):
    process = arena.box.start("bwrap", "--bind", "/", "/", "--ro-bind", str(arena.root / "AGENTS.md"), str(arena.root / "AGENTS.md"), "--",
                              "sh", "-c", "echo up; read x; echo evil >AGENTS.md", cwd=arena.root, stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    replace_by_rename(arena.root / "AGENTS.md")
    arena.box.own(arena.root / "AGENTS.md")
    process.communicate(b"\n", timeout=20)
    assert (arena.root / "AGENTS.md").read_text() == "evil\n"


def test_a14_a_later_run_must_protect_what_a_live_one_does(arena):
    within = arena.box.mkdir("repo/.factory/sub")
    arena.before = arena.look()
    first = arena.cordon.start("run", "--root", str(arena.root), *arena.protect(), "--", "sh", "-c", "echo up; read x", cwd=arena.root,
                               stdin=subprocess.PIPE)
    assert first.stdout.readline() == b"up\n"
    looser = arena.sh("echo evil >AGENTS.md", protect=False)
    assert looser.returncode == 125 and "AGENTS.md" in looser.stderr
    below = arena.cordon("run", "--root", str(arena.root / "deep"), "--", "sh", "-c", "echo evil >er/held.txt", cwd=arena.root)
    assert below.returncode == 125
    # Nor where its root lies in what the live one protects, or by a share of it, from a view neither.
    elsewhere = arena.box.mkdir("elsewhere")
    for root, words in ((within, ()), (elsewhere, ("--share", f"{arena.root}:/other")), (elsewhere, ("--share", f"{arena.root}/deep:/other")),
                        (elsewhere, ("--share", f"{within}:/other")), (elsewhere, ("--share", f"{arena.root}/AGENTS.md:/other")),
                        (elsewhere, ("--share", f"{arena.root}:/other", "--cow", "--no-summary"))):
        other = arena.cordon("run", "--root", str(root), *words, "--", "sh", "-c", "echo evil | tee x /other /other/er/held.txt", cwd=root)
        assert other.returncode == 125 and "is active in" in other.stderr, other
    for share in (f"{arena.root}:/other:ro", f"{arena.root}/src:/other"):
        assert arena.cordon("run", "--root", str(elsewhere), "--share", share, "--", "ls", "/other", cwd=elsewhere).returncode == 0
    assert arena.sh("true").returncode == 0
    assert arena.sh("true", "--protect", "src/main.c").returncode == 0
    assert arena.sh("true", "--read-only", protect=False).returncode == 0
    first.communicate(b"\n", timeout=20)
    assert arena.sh("true", protect=False).returncode == 0
    arena.assert_unharmed()


@pytest.mark.parametrize("views", [(True, False), (False, True), (True, True)], ids=["first", "second", "both"])
def test_a14_a_run_in_a_view_shares_nothing_with_another_run(arena, views):
    """Whatever they protect, both run side by side; what the other one protects on the host stays as it is."""
    first = arena.cordon.start("run", "--root", str(arena.root), *(["--cow", "--no-summary"] if views[0] else []), *arena.protect(), "--", "sh", "-c",
                               "echo up; read x; cat src/main.c; echo evil >AGENTS.md", cwd=arena.root, stdin=subprocess.PIPE)
    assert first.stdout.readline() == b"up\n"
    second = arena.sh("echo other >src/main.c && echo evil >AGENTS.md && cat AGENTS.md", *(["--cow", "--no-summary"] if views[1] else []), protect=False)
    assert second.returncode == 0 and second.stdout == "evil\n", second
    out, err = first.communicate(b"\n", timeout=20)
    assert (out == b"other\n") is not views[1] and b"Read-only file system" in err, err
    if views[1]:
        arena.assert_unharmed()
    else:
        assert (arena.root / "AGENTS.md").read_text() == "evil\n"  # the second run was free to change it


NESTED = r"""
import ctypes
d = os.open('deep/er', os.O_RDONLY)
attempt('unshare', lambda: (_ for _ in ()).throw(OSError(-syscall(272, 0x10000000 | 0x20000), 'x')) if syscall(272, 0x10000000 | 0x20000) < 0 else None)
r = syscall(56, 0x10000000 | 17, 0, 0, 0, 0)
if r == 0: os._exit(0)
print('clone', errno.errorcode.get(-r, 'done'))
args = (ctypes.c_uint64 * 11)(); args[0] = 0x10000000; args[4] = 17
r = syscall(435, ctypes.byref(args), 88)
if r == 0: os._exit(0)
print('clone3', errno.errorcode.get(-r, 'done'))
attempt('rename', lambda: os.rename('held.txt', 'x', src_dir_fd=d, dst_dir_fd=d))
print('max', open('/proc/sys/user/max_user_namespaces').read().strip())
"""


def test_a15_no_nested_user_namespace_can_be_made(arena):
    found = answers(arena.py(NESTED))
    assert found["unshare"] == "EPERM" and found["clone"] == "EPERM" and found["clone3"] == "ENOSYS" and found["rename"] == "EBUSY", found
    assert found["max"] == "0"
    arena.assert_unharmed()


def test_a15_control_in_bubblewrap_a_nested_namespace_takes_the_mount_apart(arena):
    script = ("exec 3<. ; unshare -Urm sh -c 'mount --bind / /tmp 2>/dev/null; umount -l deep/er/held.txt 2>/dev/null || "
              "(cd /tmp && mount -t tmpfs none /tmp)'; echo $?")
    result = arena.bwrap(script)
    assert result.returncode == 0 and "Operation not permitted" not in result.stderr.splitlines()[:1], result


def test_a16_no_capability_is_left(arena):
    result = arena.py("""
for line in open('/proc/self/status'):
    if line.startswith(('Cap', 'NoNewPrivs')):
        print(line.strip().replace('\\t', ' '))
attempt('remount', lambda: (_ for _ in ()).throw(OSError(-syscall(165, 0, b'AGENTS.md', 0, 32 | 4096, 0), '')))
attempt('umount', lambda: (_ for _ in ()).throw(OSError(-syscall(166, b'AGENTS.md', 2), '')))
attempt('chroot', lambda: os.chroot('/tmp'))
attempt('setuid', lambda: os.setuid(12345))
attempt('setgroups', lambda: os.setgroups([1]))
attempt('sethostname', lambda: __import__('socket').sethostname('evil'))
""")
    found = answers(result)
    for name in ("CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"):
        assert int(found[name], 16) == 0
    assert found["NoNewPrivs:"] == "1"
    assert all(found[k] in ("EPERM", "EINVAL") for k in ("remount", "umount", "chroot", "setuid", "setgroups", "sethostname")), found
    arena.assert_unharmed()


def test_a11_a_hard_link_to_a_file_outside_is_a_documented_limit(arena):
    from support import TOP
    assert "Hard links out of the workspace" in (TOP / "docs/threat-model.md").read_text()


def test_a17_deleting_what_may_be_edited_is_a_documented_limit(arena):
    from support import TOP
    assert "Deleting what may be edited" in (TOP / "docs/threat-model.md").read_text()


def test_default_protection_covers_what_git_and_editors_execute(arena):
    result = arena.sh("echo evil >.git/config; echo evil >.git/hooks/post-checkout; mkdir .claude .vscode; echo x >.envrc; "
                      "echo x >.mcp.json; echo ok >.vscode/notes.txt; git --version >/dev/null; true", protect=False)
    assert result.returncode == 0
    for name in (".claude", ".envrc", ".mcp.json", ".git/hooks/post-checkout"):
        assert not os.path.lexists(arena.root / name), name
    arena.assert_unharmed()
    loose = arena.sh("echo evil >.git/hooks/post-checkout; echo x >.envrc", "--no-default-protect", protect=False)
    assert loose.returncode == 0 and (arena.root / ".envrc").exists()
