# SPDX-License-Identifier: Apache-2.0
"""Scopes by name: an agent that may write `src/**/*.ts`, through `cordon run`."""
import os
import signal
import subprocess
import time

import pytest

from support import command_line, descendants, poll

DENIED = "Permission denied"
READ_ONLY = "Read-only file system"


def sh(cordon, script, *options, **kw):
    return cordon("run", *options, "--", "/bin/sh", "-c", script, **kw)


@pytest.fixture
def repo(box):
    return box.repo(files={"src/a.ts": "a\n", "src/deep/er/b.ts": "b\n", "src/build.sh": "sh\n", "docs/d.md": "d\n",
                           "AGENTS.md": "prompt\n"})


def test_wildcard_patterns_work_correctly(cordon, repo):
    result = sh(cordon, "cat src/a.ts src/deep/er/b.ts; echo c >src/deep/c.ts; mkdir src/new && echo n >src/new/n.ts; ls src", "--rw",
                "src/**/*.ts", cwd=repo)
    assert result.returncode == 0, result
    assert result.stdout.splitlines()[:2] == ["a", "b"] and "build.sh" not in result.stdout
    assert (repo / "src/deep/c.ts").read_text() == "c\n" and (repo / "src/new/n.ts").exists()


def test_agent_can_access_files_in_scope_by_name(cordon, repo):
    result = sh(cordon, "echo more >>src/a.ts; mv src/a.ts src/z.ts; rm src/deep/er/b.ts; cp src/z.ts src/y.ts; cat src/y.ts", "--rw",
                "src/**/*.ts", cwd=repo)
    assert result.stdout == "a\nmore\n", result
    assert sorted(p.name for p in (repo / "src").rglob("*.ts")) == ["y.ts", "z.ts"]


def test_temporary_names_of_saves_are_judged_like_others_when_a_policy_says_so(cordon, repo):
    for temps, saved in (("true", True), ("false", False)):
        (repo / "policy.yaml").write_text(f"version: 1\nrw: ['src/**/*.ts']\neditor_temps: {temps}\n")
        result = sh(cordon, "sed -i s/a/saved/ src/a.ts && echo saved; echo x >src/a.ts~ && mv src/a.ts~ src/deep/c.ts && echo moved; "
                    "echo in >src/deep/er/b.ts && echo written", "--policy", "policy.yaml", cwd=repo)
        assert result.stdout == ("saved\nmoved\n" if saved else "") + "written\n", result
        assert (repo / "src/a.ts").read_text() == "saved\n" and (repo / "src/deep/er/b.ts").read_text() == "in\n"
    assert not [p for p in (repo / "src").rglob("*") if p.name.startswith("sed") or p.name.endswith("~")]


def test_agent_cannot_access_files_outside_scope_by_name(cordon, repo):
    result = sh(cordon, "cat src/build.sh; cat docs/d.md; echo x >src/new.sh; echo x >src/build.sh; mv src/a.ts src/a.sh; "
                "ln src/a.ts src/alias.sh; mv src/build.sh src/got.ts; ln -s ../docs/d.md src/link.ts; cat src/link.ts; cat AGENTS.md",
                "--rw", "src/**/*.ts", cwd=repo)
    assert result.stdout == "" and result.stderr.count(DENIED) >= 8, result
    assert sorted(os.listdir(repo / "src")) in (["a.ts", "build.sh", "deep"], ["a.ts", "build.sh", "deep", "link.ts"])
    assert (repo / "src/build.sh").read_text() == "sh\n"


@pytest.mark.parametrize("scope", [["--within", "src"], ["--rw", "src/**/*.ts", "--within", "src", "--within", "src/deep,src/a.ts"]])
def test_a_share_in_the_root_is_there_though_a_fence_hides_its_place(cordon, box, repo, scope):
    box.write("data/x", "shared\n")
    (repo / "docs/data").mkdir()
    box.own(repo / "docs/data")
    share = ["--share", f"{box.path}/data:{repo}/docs/data"]
    result = sh(cordon, "cat docs/data/x; echo new >docs/data/new; ls docs; cat src/a.ts; cat docs/d.md; echo x >docs/d.md", "--lens", "always",
                *share, *scope, cwd=repo)
    assert result.stdout == "shared\ndata\na\n" and result.stderr.count(DENIED) >= 2, result
    assert (box.path / "data/new").read_text() == "new\n" and (repo / "docs/d.md").read_text() == "d\n"
    assert os.listdir(repo / "docs/data") == []


def test_read_only_scope_by_name_prevents_modifications(cordon, repo):
    result = sh(cordon, "cat src/a.ts; echo x >src/a.ts; rm -f src/a.ts; mv src/a.ts src/b.ts; chmod 600 src/a.ts; echo x >src/n.ts", "--ro",
                "src/**/*.ts", cwd=repo)
    assert result.stdout == "a\n" and READ_ONLY in result.stderr, result
    assert (repo / "src/a.ts").read_text() == "a\n" and not (repo / "src/n.ts").exists()


def test_deny_by_name_holds_for_later_files(cordon, box, repo):
    box.write("repo/.env", "SECRET=1\n")
    result = sh(cordon, "cat .env; mkdir -p new; echo x >new/.env; echo ok >new/file; cat new/file", "--deny", "**/.env", cwd=repo)
    assert result.stdout == "ok\n" and result.stderr.count(DENIED) == 2, result
    assert not (repo / "new/.env").exists()


def test_atomic_saves_work_and_keep_nothing_out_of_scope(cordon, repo):
    result = sh(cordon, "sed -i s/a/edited/ src/a.ts; cat src/a.ts; git --version >/dev/null; echo left >src/sedAAAAAA", "--rw",
                "src/**/*.ts", cwd=repo)
    assert "edited" in result.stdout and (repo / "src/a.ts").read_text() == "edited\n"
    assert not (repo / "src/sedAAAAAA").exists()


def test_lens_always_leaves_no_gap_when_the_host_replaces_a_protected_file(cordon, box, repo):
    process = cordon.start("run", "--lens", "always", "--protect", "AGENTS.md", "--", "sh", "-c",
                           "echo up; while [ ! -e stop ]; do echo evil 2>/dev/null >AGENTS.md; done", cwd=repo)
    assert process.stdout.readline() == b"up\n"
    end = time.monotonic() + 2
    while time.monotonic() < end:
        box.write("repo/tmp-save", "the host's\n")
        os.rename(repo / "tmp-save", repo / "AGENTS.md")
        assert (repo / "AGENTS.md").read_text() == "the host's\n"
    box.write("repo/stop")
    process.communicate(timeout=20)
    assert (repo / "AGENTS.md").read_text() == "the host's\n"


def test_lens_always_holds_protected_paths_like_mounts_do(cordon, repo):
    result = sh(cordon, "echo x >AGENTS.md; mv AGENTS.md y; rm -f AGENTS.md; mkdir absent; echo ok >fine; cat fine; mv docs z; cat z/d.md",
                "--lens", "always", "--protect", "AGENTS.md", "--protect", "absent/name", cwd=repo)
    # The kernel itself refuses the open by the mode the lens reports: "Permission denied" here, where a mount says EROFS.
    assert result.stdout == "ok\nd\n" and "cannot create AGENTS.md" in result.stderr and result.stderr.count("busy") == 2, result
    assert (repo / "AGENTS.md").read_text() == "prompt\n" and not (repo / "absent").exists()


def test_a_host_change_appears_within_a_second(cordon, box, repo):
    process = cordon.start("run", "--rw", "src/**/*.ts", "--", "sh", "-c", "cat src/a.ts; echo up; read x; cat src/a.ts src/fresh.ts", cwd=repo,
                           stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"a\n" and process.stdout.readline() == b"up\n"
    box.write("repo/tmp.ts", "replaced\n")
    os.rename(repo / "tmp.ts", repo / "src/a.ts")
    box.write("repo/src/fresh.ts", "fresh\n")
    time.sleep(1)
    out, _ = process.communicate(b"\n", timeout=20)
    assert out == b"replaced\nfresh\n"


def test_the_death_of_the_lens_ends_the_run_with_a_clear_error(cordon, repo):
    process = cordon.start("run", "--lens", "always", "--", "sh", "-c", "echo up; cat /dev/zero >/dev/null & while :; do ls >/dev/null; done",
                           cwd=repo)
    assert process.stdout.readline() == b"up\n"
    lens = poll(lambda: [p for p in descendants(process.pid) if "cordon-lens" in command_line(p)])
    os.kill(lens[0], signal.SIGKILL)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 125 and b"cordon-lens died" in err


WATCHED = ["--workspace", "src", "--workspace-mode", "strict", "--lens", "always"]


@pytest.mark.parametrize("scope, way", [(WATCHED, "src"), (WATCHED, "/tmp/link"), (["--rw", "src/**/*.ts"], "src")],
                         ids=["watched", "watched through a link", "patterns"])
def test_a_lens_that_hangs_holds_up_neither_the_time_limit_nor_the_end(cordon, repo, leftovers, scope, way):
    process = cordon.start("run", "--timeout", "2s", "--grace", "1s", *scope, "--", "sh", "-c",
                           f"ln -s $PWD/src /tmp/link; echo up; i=0; while :; do i=$((i+1)); cat {way}/$i.ts; done 2>/dev/null", cwd=repo)
    assert process.stdout.readline() == b"up\n"
    lens = poll(lambda: [p for p in descendants(process.pid) if "cordon-lens" in command_line(p)])
    os.kill(lens[0], signal.SIGSTOP)
    process.communicate(timeout=30)
    assert process.returncode == 124
    poll(lambda: not descendants(), what="the end of the lens")
    leftovers.assert_none()


def test_nothing_is_left_of_a_lens(cordon, repo, leftovers):
    assert sh(cordon, "ls >/dev/null", "--lens", "always", cwd=repo).returncode == 0
    poll(lambda: not descendants(), what="the end of the lens")
    leftovers.assert_none()


def test_no_start_is_refused_while_the_host_works_in_the_root(cordon, box, repo):
    """The kernel may hear of a change in the root before it has the attributes of the root."""
    child = subprocess.Popen(["/bin/sh", "-c", "while :; do echo x >busy; rm busy; done"], cwd=repo, **box.who.popen_args())
    try:
        for _ in range(40):
            result = sh(cordon, "cat src/a.ts; echo n >src/new.ts", "--rw", "src/**/*.ts", cwd=repo)
            assert result.returncode == 0 and result.stdout == "a\n", result
    finally:
        child.kill()
        child.wait()


MAKE = """
mkdir -p .github/ISSUE_TEMPLATE .vscode && echo x >.github/ISSUE_TEMPLATE/x.md && echo 1 >.vscode/extensions.json && rm .vscode/extensions.json && rmdir .vscode && echo made
mkdir .github/hooks; mkdir .vscode && echo 2 >.vscode/tasks.json; ln -s /tmp .vscode/mcp.json; rmdir .vscode
mkdir staged && echo 3 >staged/tasks.json && mv staged .vscode; ln -s staged .vscode; echo 4 >.vscode; mv .github moved
mkdir empty && mv -T empty .vscode; true
"""


@pytest.mark.parametrize("lens", ["auto", "always"])
def test_a_directory_above_protected_names_can_be_made_and_they_can_not(cordon, repo, lens):
    result = sh(cordon, MAKE, "--lens", lens, cwd=repo)
    assert result.stdout == "made\n", result
    assert sorted(str(path.relative_to(repo)) for path in (repo / ".github").rglob("*")) == [".github/ISSUE_TEMPLATE", ".github/ISSUE_TEMPLATE/x.md"]
    assert not (repo / ".vscode").is_symlink() and not (repo / ".vscode").exists() and not (repo / "moved").exists(), result
    assert (repo / "staged/tasks.json").exists() and result.stderr.count("Permission denied") >= 6 and "Device or resource busy" in result.stderr, result


FOLLOW = """
cd src; echo hello >data
ln -s /proc/self/fd/0 a; ln -s /dev/fd/0 b; ln -s //dev/./stdin c; ln -s /proc/self/cwd/data d; ln -s /proc/self/comm e; ln -s /dev/null f; ln -s ../../../../../../proc/thread-self/comm g
for link in a b c d e f g; do echo text | cat $link && readlink $link; done; echo x >f
ln -s /proc/self/cwd/../secret h; ln -s /proc/self/root/etc/../$OUTSIDE i; cat h; cat i; true
"""


@pytest.mark.parametrize("options", [[], ["--lens", "always"], ["--lens", "always", "--cow", "--no-summary"]], ids=["plain", "lens", "view"])
def test_links_to_the_processes_and_devices_of_the_run_lead_where_they_do_without_a_lens(cordon, box, repo, options):
    """And back into the workspace, where each name is judged, and to nothing of the host."""
    box.write("repo/secret", "hidden\n")
    outside = box.write("outside", "hidden\n")
    result = sh(cordon, f"OUTSIDE={outside}; {FOLLOW}", "--deny", "secret", *options, cwd=repo)
    expected = ["text", "/proc/self/fd/0", "text", "/dev/fd/0", "text", "//dev/./stdin", "hello", "/proc/self/cwd/data", "cat", "/proc/self/comm", "/dev/null", "cat",
                "../../../../../../proc/thread-self/comm"]
    assert result.stdout.splitlines() == expected, result
    assert "/proc/self/" not in result.stderr.replace("/proc/self/cwd/../secret", "") and f"{repo}/src/data" not in result.stderr, result
