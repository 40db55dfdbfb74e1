# SPDX-License-Identifier: Apache-2.0
"""Sandboxes inside a sandbox: what they say, and that docs/nested.md says the same."""
import json
import shutil

import pytest

from support import TOP


@pytest.fixture
def repo(box):
    made = box.repo(files={"a": "", "lib/a": ""})
    box.mkdir(made / "tools")
    shutil.copyfile(box.bin / "cordon", made / "tools" / "cordon")
    (made / "tools" / "cordon").chmod(0o755)
    return made


def test_a_run_inside_a_run_says_so_and_what_to_do(cordon, repo):
    for command in (["run"], ["run", "--workspace", "lib"], ["learn", "--output", "/tmp/p.yaml"]):
        done = cordon("run", "--", "tools/cordon", *command, "--", "true", cwd=repo)
        assert done.returncode == 125 and done.stdout == "", done
        said = [line for line in done.stderr.splitlines() if not line.startswith(("[LEARN]", "[INFO]"))]
        assert len(said) == 1 and "already inside a sandbox" in said[0] and "run the command itself" in said[0]
    done = cordon("run", "--", "tools/cordon", "run", "--json", "--", "true", cwd=repo)
    inner = json.loads(done.stderr.splitlines()[0])
    assert (inner.get("error") or inner)["kind"] == "kernel_unsupported"


def test_outside_nothing_is_said_of_it(cordon, repo):
    assert cordon("run", "--", "true", cwd=repo).stderr == ""
    assert cordon("doctor", "--json").json()["nested"] is False


def test_doctor_inside_says_that_its_answers_are_about_the_sandbox(cordon, repo):
    done = cordon("run", "--", "sh", "-c", "tools/cordon doctor; tools/cordon doctor --json", cwd=repo)
    text, _, as_json = done.stdout.rpartition("\n{")
    assert text.startswith("This is inside a sandbox of cordon") and "run cordon outside of this sandbox" in text
    assert "sysctl" not in text.split("namespaces", 1)[1].split("Landlock", 1)[0]
    assert json.loads("{" + as_json)["nested"] is True


def test_bubblewrap_inside_fails_with_the_documented_words(cordon, repo, who):
    """Codex and Claude Code start it for each command; docs/nested.md names what they print."""
    page = (TOP / "docs/nested.md").read_text()
    for options, words in (
        (["--unshare-user"], "No permissions to create new namespace"),
        ([], "Creating new namespace failed" if who.is_root else "No permissions to create new namespace"),
    ):
        command = ["bwrap", "--ro-bind", "/", "/", *options, "true"]
        done = cordon("run", "--", *command, cwd=repo)
        assert done.returncode != 0 and words in done.stderr and words in page
        # The same command works outside, so it was the sandbox that refused.
        assert cordon.box.run(*command).returncode == 0


def test_no_way_to_a_user_namespace(cordon, repo):
    ways = "unshare -U true; unshare -m true; unshare -Un true; echo 5 > /proc/sys/user/max_user_namespaces; cat /proc/sys/user/max_user_namespaces"
    done = cordon("run", "--", "sh", "-c", ways, cwd=repo)
    assert done.stderr.count("Operation not permitted") == 3 and done.stdout == "0\n", done
