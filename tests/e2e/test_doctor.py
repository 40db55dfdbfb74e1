# SPDX-License-Identifier: Apache-2.0
"""`cordon doctor` names the tier of a machine, and the one line that changes it, on machines that withhold something."""
import os
import subprocess

import pytest

# Runs a program as a user, with other files in the place of some of the machine's, and, if wanted, where no namespace can be made (clone3 gives EPERM).
ELSEWHERE = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def check(result):
    if result != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
covered, refused, user, command = eval(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
check(libc.unshare(0x20000))  # CLONE_NEWNS
check(libc.mount(b"none", b"/", None, 0x44000, None))  # MS_REC | MS_PRIVATE
for source, place in covered:
    check(libc.mount(source.encode(), place.encode(), None, 0x1000, None))  # MS_BIND
os.setgroups([])
os.setresgid(user, user, user)
os.setresuid(user, user, user)
if refused:
    rules = [(0x20, 0, 0, 0), (0x15, 0, 1, 435), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7fff0000)]
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
    check(libc.prctl(38, 1, 0, 0, 0))
    check(libc.prctl(22, 2, ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(rules), ctypes.addressof(text))), 0, 0))
os.execv(command[0], command)
"""
SETTINGS = "/proc/sys/kernel"


@pytest.fixture
def doctor(box, cordon):
    """`doctor(*options, settings={}, covered={}, refused=True)` on a machine with other settings of the kernel and other files."""
    if os.getuid() != 0:
        pytest.skip("only root can put other files in the place of the machine's")

    def run(*options, settings, covered, refused):
        fake = box.mkdir("kernel")
        for name in os.listdir(SETTINGS):
            try:
                (fake / name).write_bytes(open(f"{SETTINGS}/{name}", "rb").read())
            except OSError:
                pass  # a directory, or a setting that can only be written
        for name, value in settings.items():
            (fake / name).write_text(f"{value}\n")
        places = [(str(fake), SETTINGS)] if settings else []
        for number, (place, (text, mode)) in enumerate(covered.items()):
            path = box.path / f"file{number}"
            path.write_text(text)
            path.chmod(mode)
            places.append((str(path), place))
        return subprocess.run(["/usr/bin/python3", "-c", ELSEWHERE, repr(places), str(int(refused)), str(box.who.uid), cordon.path, "doctor", *options],
                              env=box.environment(), cwd=box.path, capture_output=True, text=True, check=False, timeout=60)

    return run


@pytest.mark.parametrize("who", ["user"], indirect=True)
@pytest.mark.parametrize("settings, covered, line", [
    ({"apparmor_restrict_unprivileged_userns": 1}, {}, "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (or make install"),
    ({"apparmor_restrict_unprivileged_userns": 0, "unprivileged_userns_clone": 0}, {}, "sysctl -w kernel.unprivileged_userns_clone=1"),
    ({"unprivileged_userns_clone": 1}, {"/proc/sys/user/max_user_namespaces": ("0\n", 0o644)}, "sysctl -w user.max_user_namespaces=15000"),
    ({"unprivileged_userns_clone": 1}, {}, "the container or service this runs in must allow user namespaces"),
], ids=["AppArmor", "Debian's setting", "no namespaces at all", "a container"])
def test_without_namespaces_the_line_that_brings_them_is_named(doctor, settings, covered, line):
    done = doctor(settings=settings, covered=covered, refused=True)
    rows = [row.strip().split("  ", 1) for row in done.stdout.splitlines() if "  " in row.strip()]
    named = {row[0]: row[1].strip() for row in rows}
    assert done.returncode == 1 and named["tier"] == "lower (Landlock and seccomp only)", done
    assert named["what changes it"].startswith(line) and named["run, folder scopes"] == "best effort only: namespaces", done
    assert ("no profile for this executable" in done.stdout) is (settings.get("apparmor_restrict_unprivileged_userns") == 1), done


@pytest.mark.parametrize("who", ["user"], indirect=True)
def test_a_closed_fuse_device_is_named_with_the_line_that_opens_it(doctor):
    done = doctor(settings={}, covered={"/dev/fuse": ("", 0o600)}, refused=False)
    assert done.returncode == 0 and "chmod 0666 /dev/fuse" in done.stdout, done
    assert "run, name patterns         does not work: FUSE" in done.stdout and "what changes it" not in done.stdout, done
