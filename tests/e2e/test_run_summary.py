# SPDX-License-Identifier: Apache-2.0
"""The lines after a run: what changed, what was refused, what the host may execute of it."""
import json
import os
import pty
import re
import time

import pytest

from support import TOP, poll


@pytest.fixture
def repo(box):
    top = box.repo(files={"src/a.ts": "a\n", "src/b.ts": "b\n", "docs/d.md": "d\n", "Makefile": "all:\n", "tool": "#!/bin/sh\n"})
    time.sleep(0.05)  # file times are as coarse as the clock's tick
    return top


def summary(cordon, repo, script, *options):
    done = cordon("run", "--summary", *options, "--", "/bin/sh", "-c", script, cwd=repo)
    assert done.returncode == 0, done
    return [line[len("[SUMMARY] "):] for line in done.stderr.splitlines() if line.startswith("[SUMMARY] ")]


def test_created_and_changed_files_are_counted(cordon, repo):
    assert summary(cordon, repo, "cat src/a.ts; ls docs") == ["no file was created or changed"]
    lines = summary(cordon, repo, "echo 1 >new.c; mkdir x; echo 2 >x/y.c; echo 3 >>src/a.ts")
    assert lines == ["2 files created, 1 changed"]


@pytest.mark.parametrize("options", [(), ("--workspace", "src,docs"), ("--rw", "**/*.ts", "--rw", "docs"), ("--lens", "always")])
def test_folders_that_lost_files_are_named(cordon, box, repo, options):
    box.write("repo/docs/sub/x", "x")
    time.sleep(0.05)
    lines = summary(cordon, repo, "rm src/b.ts; rm -r docs/sub", *options)
    assert lines[0] == "no file was created or changed", lines
    assert lines[1].partition(": ")[0] == "files were removed from, or came and went in", lines
    assert sorted(lines[1].partition(": ")[2].split(", ")) == ["docs", "src"]
    assert summary(cordon, repo, "ls src docs; cat src/a.ts", *options)[:1] == ["no file was created or changed"]
    # A new name explains the time of its folder.
    assert summary(cordon, repo, "mv src/a.ts src/c.ts", *options)[0] == "0 files created, 1 changed"


def test_folders_that_lost_files_are_bounded_and_escaped(cordon, box, repo):
    for i in range(8):
        box.write(f"repo/d{i}/x\x1b[2J/y", "y")
    time.sleep(0.05)
    lines = summary(cordon, repo, "rm */*/y")
    assert len(lines) == 2 and lines[1].endswith(" and 3 more") and lines[1].count("\\e[2J") == 5 and "\x1b" not in lines[1], lines
    time.sleep(0.05)
    assert summary(cordon, repo, "rm -r d0 src docs")[1].endswith("in: .")


def test_what_the_host_may_execute_is_named(cordon, repo):
    lines = summary(cordon, repo, "echo x >>Makefile; echo x >run.sh; mkdir -p .github/workflows sub; echo x >.github/workflows/ci.yml; "
                    "echo x >sub/package.json; chmod +x tool; echo x >plain.txt; mkdir n; echo x >n/.envrc")
    assert lines[0].startswith("5 files created, 2 changed") and lines[1] == "of what was created or changed the host may execute:"
    told = {line.split(" (")[0].strip() for line in lines[2:]}
    assert told == {"changed Makefile", "created run.sh", "created .github/workflows/ci.yml", "created sub/package.json",
                    "changed tool", "created n/.envrc"}


def test_a_folder_that_was_made_unreadable_is_named(box, cordon, repo):
    box.mkdir("repo/node_modules/old", mode=0o311)
    time.sleep(0.05)
    lines = summary(cordon, repo, "mkdir -p node_modules/.bin; echo x >node_modules/.bin/tool; chmod 755 node_modules/.bin/tool; chmod 311 node_modules/.bin")
    told = "  created node_modules/.bin/tool (npm and its relatives)" if box.who.is_root else "1 folder that changed can't be read: node_modules/.bin"
    assert told in lines, lines


def test_hooks_of_a_repository_made_inside_are_named(cordon, repo):
    lines = summary(cordon, repo, "mkdir -p n/.git/hooks n/.git/objects/aa; echo x >n/.git/hooks/pre-commit; echo x >n/.git/objects/aa/bb; "
                    "echo x >n/.git/hooks/post-merge.sample; echo x >n/.git/index")
    assert lines == ["no file was created or changed", "of what was created or changed the host may execute:", "  created n/.git/hooks/pre-commit (git)"]


def test_refused_attempts_are_counted_and_the_first_shown(cordon, repo):
    lines = summary(cordon, repo, "for i in 1 2 3; do cat docs/d.md; done; echo x >Makefile; true", "--workspace", "src",
                    "--workspace-mode", "strict")
    assert lines[:2] == ["no file was created or changed", "4 attempts refused:"]
    assert lines[2] == f"  read {repo}/docs/d.md" and lines[3].endswith(f" {repo}/Makefile") and len(lines) == 5
    assert re.fullmatch("all of it: cordon audit --run [0-9a-f-]{36}", lines[4])
    assert summary(cordon, repo, "echo x >src/n.ts", "--workspace", "src", "--workspace-mode", "strict")[1:] == ["no attempt was refused"]


def test_warnings_are_counted_and_the_run_is_named_for_the_log(cordon, box, repo):
    lines = summary(cordon, repo, "cat docs/d.md; cat docs/d.md; cat tool", "--workspace", "src")
    assert lines[1] == "3 accesses outside the workspace let through with a warning" and len(lines) == 3
    run = re.fullmatch("all of it: cordon audit --run ([0-9a-f-]{36})", lines[2]).group(1)
    kept = [json.loads(line) for line in cordon("audit", "--json", "--run", run).stdout.splitlines()]
    assert {record["session_id"] for record in kept} == {run} and len([r for r in kept if r["event"] == "violation"]) == 3


@pytest.mark.parametrize("options", [["--workspace", "src", "--workspace-mode", "strict"], ["--rw", "src/**/*.ts"], ["--ro", "**"],
                                     ["--protect", "Makefile", "--protect", "late"], ["--lens", "always", "--protect", "late"]])
def test_it_never_says_that_nothing_was_refused_when_something_was(cordon, repo, options):
    lines = summary(cordon, repo, "cat docs/d.md; echo x >Makefile; mkdir late; rm tool; true", *options)
    assert "no attempt was refused" not in lines, lines


def test_what_is_discarded_with_the_private_home_is_counted(cordon, box, repo):
    lines = summary(cordon, repo, "cd; for i in 1 2 3 4 5; do echo $i >f$i; done; mkdir -p .cache/x; ln -s f1 .cache/x/link; echo >/tmp/not-this")
    assert lines == ["no file was created or changed", "6 files in the private home were discarded"]
    assert summary(cordon, repo, "echo >$HOME/one")[1:] == ["1 file in the private home was discarded"]
    assert summary(cordon, repo, "mkdir $HOME/empty; echo >$HOME/gone; rm $HOME/gone")[1:] == []
    box.mkdir("kept")
    assert summary(cordon, repo, "echo >$HOME/stays", "--home", "../kept")[1:] == [] and (box.path / "kept/stays").exists()
    done = cordon("run", "--result", "../result", "--", "sh", "-c", "echo >$HOME/one; mkdir $HOME/d; echo >$HOME/d/two; chmod 0 $HOME/d/two", cwd=repo)
    assert done.stderr == "" and json.loads((box.path / "result").read_text())["discarded_files"] == 2


def test_what_is_shown_in_the_home_is_not_discarded(cordon, box, repo):
    box.write("shared/a")
    box.write("shared/b")
    assert summary(cordon, repo, "ls $HOME/data; echo >$HOME/one", "--share", f"../shared:{box.home}/data")[1:] == [
        "1 file in the private home was discarded"]


def test_counting_what_is_discarded_is_bounded(cordon, repo):
    lines = summary(cordon, repo, "cd; d=.; for i in $(seq 100); do d=$d/d; done; mkdir -p $d; echo >$d/deep; seq 11000 | xargs touch; chmod 0 .")
    assert lines[1:] in (["at least 10000 files in the private home were discarded"], []), lines


@pytest.mark.parametrize("options, script, status, failed", [
    (["--workspace-mode", "strict"], "cat docs/d.md", 3, True),
    ([], "cat docs/d.md", 3, True),
    (["--workspace-mode", "strict"], "cat src/a.ts", 0, False),
    (["--workspace-mode", "strict"], "cat docs/d.md; exit 7", 7, False),
    (["--workspace-mode", "strict"], "cat docs/d.md; kill -9 $$", 137, False),
    (["--workspace-mode", "strict", "--timeout", "1s", "--grace", "100ms"], "cat docs/d.md; sleep 60", 124, False),
    (["--workspace-mode", "strict", "--lens", "always"], "cat docs/d.md", 3, True),
], ids=["refused", "warned", "nothing", "own status", "signal", "timeout", "lens"])
def test_a_run_can_fail_on_a_violation(cordon, box, repo, options, script, status, failed):
    words = ("run", "--workspace", "src", *options, "--result", "../result", "--summary")
    code = f"{script}; :" if status in (0, 3) else script
    done = cordon(*words, "--fail-on-violation", "--", "sh", "-c", code, cwd=repo)
    result = json.loads((box.path / "result").read_text())
    assert done.returncode == status and result.get("failed_on_violation", False) == failed, done
    if failed:
        assert (result["state"], result["exit_code"]) == ("failed", 0) and result["violations"] == 1
        assert "[SUMMARY] the command succeeded; the run has failed, as --fail-on-violation asks\n" in done.stderr
        assert cordon(*words, "--", "sh", "-c", code, cwd=repo).returncode == 0
        assert json.loads((box.path / "result").read_text())["state"] == "completed"


def test_only_what_could_be_written_is_counted(cordon, box, repo):
    process = cordon.start("run", "--summary", "--rw", "src", "--", "sh", "-c", "echo up; read x; echo x >src/n.ts", cwd=repo,
                           stdin=-1)
    assert process.stdout.readline() == b"up\n"
    box.write("repo/docs/host.sh", "x\n")
    _, err = process.communicate(b"\n", timeout=30)
    assert b"1 file created, 0 changed" in err and b"host.sh" not in err


def test_patterns_are_counted_through_the_lens(cordon, repo):
    assert summary(cordon, repo, "echo x >src/n.ts; echo x >>src/a.ts", "--rw", "src/**/*.ts") == ["1 file created, 1 changed"]


def test_names_are_escaped_and_lists_bounded(cordon, repo):
    lines = summary(cordon, repo, "i=0; while [ $i -lt 30 ]; do echo >f$i.sh; i=$((i+1)); done; echo >'\x1b[31mx.sh'")
    assert lines[0] == "31 files created, 0 changed" and lines[-1] == "  and 21 more" and len(lines) == 13
    time.sleep(0.05)  # as above: what the first run made last must not fall into the second one's first tick
    lines = summary(cordon, repo, "echo x >'\x1b[31my\n.sh'")
    assert lines == ["1 file created, 0 changed", "of what was created or changed the host may execute:", "  created \\e[31my\\n.sh (a shell)"]


def test_links_are_not_followed_by_the_walk(cordon, box, repo):
    box.write("outside/x.sh", "x\n")
    lines = summary(cordon, repo, f"ln -s {box.path}/outside link; ln -s / slash")
    assert lines == ["2 files created, 0 changed"]


def test_the_walk_is_bounded(cordon, box, repo):
    deep = "/".join(["d" * 200] * 15)
    lines = summary(cordon, repo, f"mkdir -p {deep} && cd {deep} && mkdir -p {deep} && cd {deep} && echo x >f; true")
    assert any("there may be more" in line for line in lines), lines
    box.run("rm", "-rf", str(repo / ("d" * 200)))


def test_without_a_terminal_it_is_asked_for(cordon, repo):
    for options in ([], ["--summary", "--no-summary"], ["--summary", "--json"]):
        done = cordon("run", *options, "--", "sh", "-c", "echo x >new.sh", cwd=repo)
        assert done.returncode == 0 and "SUMMARY" not in done.stderr, done


def test_a_command_that_was_not_started_has_none(cordon, repo):
    done = cordon("run", "--summary", "--", "no-such-command", cwd=repo)
    assert done.returncode == 127 and "SUMMARY" not in done.stderr, done


def on_terminal(cordon, repo, *options):
    master, slave = pty.openpty()
    process = cordon.start("run", *options, "--", "sh", "-c", "echo x >t.sh", cwd=repo, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    shown = bytearray()

    def ended():
        try:
            shown.extend(os.read(master, 65536))
        except OSError:
            return True
        return False

    poll(ended, seconds=30, what="the end of the run")
    os.close(master)
    assert process.wait(10) == 0, shown
    return bytes(shown)


def test_on_a_terminal_it_is_the_default(cordon, repo):
    assert b"[SUMMARY] 1 file created" in on_terminal(cordon, repo)
    assert b"SUMMARY" not in on_terminal(cordon, repo, "--no-summary")


def test_the_document_has_the_table_of_the_program():
    source = (TOP / "src/protect/executes.c").read_text()
    rows = set(re.findall(r'^\t\{ "([^"]+)", "([^"]+)" \}', source, re.MULTILINE))
    told = set()
    for names, who in re.findall(r"^\| (`.*`) \| (.*) \|$", (TOP / "docs/run-summary.md").read_text(), re.MULTILINE):
        told |= {(name, who) for name in re.findall(r"`([^`]+)`", names)}
    assert rows == told and len(rows) > 50
