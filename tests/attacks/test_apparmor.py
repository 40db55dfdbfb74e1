# SPDX-License-Identifier: Apache-2.0
"""Where AppArmor withholds capabilities in user namespaces, a profile gives them back to cordon.

`make test-kernels` runs it where AppArmor is active; elsewhere it shows that nothing is restricted. Debian's kernels lack Ubuntu's setting, and its parser
knows no rule for user namespaces. So the profile that Ubuntu gives to programs without one is imitated by one that withholds capabilities, and of cordon's
own profile only the lines are left out that this parser can't read.
"""
import pathlib
import subprocess

import pytest

from support import TOP

ENABLED = pathlib.Path("/sys/module/apparmor/parameters/enabled")
ACTIVE = ENABLED.exists() and ENABLED.read_text().strip() == "Y" and pathlib.Path("/sys/kernel/security/apparmor").is_dir()
RESTRICTED = """
include <tunables/global>
profile cordon-test-restricted flags=(attach_disconnected,mediate_deleted) {
  /** rwlkm,
  / r,
  /** pix,
  network, unix, signal, ptrace, mount, remount, umount, pivot_root,
  audit deny capability,
}
"""


def parser(option, text):
    done = subprocess.run(["apparmor_parser", "--skip-cache", option], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def profile_of(bin_dir):
    """cordon's own profile for executables that lie elsewhere, as far as this parser reads it."""
    text = (TOP / "apparmor/cordon.in").read_text()
    for name, value in {"name": "cordon-test-own", "cordon": f"{bin_dir}/cordon"[1:], "libexec": str(bin_dir)[1:]}.items():
        text = text.replace(f"@{name}@", value)
    return "\n".join(line for line in text.splitlines() if line.strip() not in ("userns,", "abi <abi/4.0>,"))


@pytest.fixture
def profiles(bin_dir):
    """Loads and, at the end, removes them."""
    texts = {"restricted": RESTRICTED, "own": profile_of(bin_dir)}
    loaded = []

    def load(name):
        parser("--replace", texts[name])
        loaded.append(name)

    yield load
    for name in loaded:
        parser("--remove", texts[name])


def restricted(box, *command):
    """Runs a command from a shell that AppArmor restricts."""
    code = "import os, sys; open('/proc/self/attr/apparmor/exec', 'w').write('exec cordon-test-restricted'); os.execv('/bin/sh', ['sh', '-c', 'exec \"$@\"', *sys.argv])"
    return box.run("/usr/bin/python3", "-c", code, *command)


@pytest.mark.parametrize("who", ["user"], indirect=True)
def test_a_profile_gives_cordon_the_namespaces_that_apparmor_withholds(box, cordon, profiles):
    if not ACTIVE:
        rows = {row["name"]: row for row in cordon("doctor", "--json").json()["probes"]}
        assert rows["AppArmor"]["ok"] and rows["AppArmor"]["detail"] == "keeps user namespaces from no program"
        return
    root = box.repo()
    run = [cordon.path, "run", "--root", str(root), "--protect", "AGENTS.md", "--", "sh", "-c", "echo made >new; echo no >AGENTS.md; cat /proc/self/attr/current"]
    profiles("restricted")
    refused = restricted(box, *run)
    assert refused.returncode == 125 and "cordon doctor" in refused.stderr and not (root / "new").exists(), refused
    value = restricted(box, cordon.path, "doctor", "--json").json()
    assert value["tier"] == "landlock" and not value["ok"] and value["change"], value
    lower = restricted(box, cordon.path, "run", "--root", str(root), "--best-effort", "--no-default-protect", "--rw", ".", "--", "true")
    assert lower.returncode == 0 and "best effort" in lower.stderr, lower
    profiles("own")
    done = restricted(box, *run)
    assert "Permission denied" in done.stderr and (root / "new").read_text() == "made\n" and not (root / "AGENTS.md").exists(), done
    assert done.stdout.startswith("cordon-test-own"), done
    assert restricted(box, cordon.path, "doctor", "--json").json()["tier"] == "full"
