# SPDX-License-Identifier: Apache-2.0
"""cordon loop: stories one after the other and side by side, checks, conflicts, notes, scopes, output, and what agents can't do."""
import json
import os
import pathlib
import signal

import pytest

from loops import Loop, story
from support import poll

FOLDER_SCOPE = [f"lib/**/*.{ext}" for ext in "sh js ts py json md yaml yml".split()]


@pytest.fixture
def loop(cordon, box):
    top = box.mkdir("repo")
    box.mkdir("repo/lib")
    box.write("repo/lib/shared.txt", "base\n")
    box.write("repo/docs/guide.md", "guide\n")
    return Loop(cordon, box, top)


# ---- one after the other ----


def test_stories_are_done_by_priority_and_dependency_and_only_the_loop_marks_them(loop):
    prd = loop.prd(story("B", dependencies=["A"], priority=1), story("A"), story("C", priority=2), story("D", passes=True))
    before = prd.read_text()
    done = loop('echo $id >> lib/order; echo "{}" > prd.json; exit 0', "--rw", "**")
    assert (loop.top / "lib/order").read_text().split() == ["C", "A", "B"]
    assert done.stdout == "B\tpassed\nA\tpassed\nC\tpassed\nD\tpassed\n", done
    after = json.loads(prd.read_text())
    assert loop.passed() == ["B", "A", "C", "D"] and after["userStories"][0]["title"] == "Title of B"
    assert before.replace("passes", "") != prd.read_text() and "3 iterations" in done.stderr, done


def test_the_prompt_has_the_story_its_criteria_notes_and_the_workspace_section(loop, cordon):
    loop.prd(story("US-1", description="Do it\nwell", acceptanceCriteria=["works", "tested"], notes="mind the gap"))
    loop("printf '%s\\n' \"$p\" > lib/prompt.md", "--workspace", "lib", "--workspace-mode", "strict", "--verify", "true")
    prompt = (loop.top / "lib/prompt.md").read_text()
    section = cordon("prompt-section", "lib", "strict", cwd=loop.top).stdout.strip()
    assert prompt.startswith("# Story US-1: Title of US-1\n\nProject: shop\n\n## Description\n\nDo it\nwell\n\n")
    assert "## Acceptance Criteria\n\n- works\n- tested\n" in prompt and "mind the gap" in prompt and section in prompt
    assert "- `lib/**/*.sh`" in prompt and "`true`" in prompt
    log = loop.logs()["US-1.1"]
    assert (log / "prompt.txt").read_text().strip() == prompt.strip()


def test_a_word_of_the_command_can_name_a_file_with_the_prompt(loop, cordon):
    loop.prd(story("US-1"))
    done = cordon("loop", "--", "sh", "-c", 'test -z "$(cat)" && cp "$1" copy && ! echo x > "$1"', "sh", "{prompt_file}", cwd=loop.top)
    assert done.returncode == 0 and "# Story US-1" in (loop.top / "copy").read_text(), done


def test_the_lines_of_the_start_are_those_that_scripts_know(loop):
    loop.prd(story("US-001"), story("US-002", fileScope=["lib/*.c"]))
    done = loop("exit 0", "--workspace", "lib, docs")
    assert done.stderr.startswith(
        "[WORKSPACE] Initialized workspace manager\n[WORKSPACE]   Folders: lib,docs\n[WORKSPACE]   Mode: permissive\n"
        f"[WORKSPACE]   Repo Root: {loop.top}\n[WORKSPACE] Validated workspace folder: lib\n[WORKSPACE] Validated workspace folder: docs\n"
        "[WORKSPACE] All workspace folders validated\n[INFO] Workspace sandboxing: Enabled (mode: permissive)\n"
        "[WORKSPACE] Auto-inferring fileScope from workspace...\n[WORKSPACE] Setting fileScope for story US-001\n"
        "[WORKSPACE] Updated fileScope for 1 stories\n"), done
    first, second = json.loads((loop.top / "prd.json").read_text())["userStories"]
    assert first["fileScope"][:8] == FOLDER_SCOPE and second["fileScope"] == ["lib/*.c"]


def test_a_story_can_not_change_the_policy_file_that_holds_it(loop, box):
    box.write("repo/lib/rules.yaml", "version: 1\nrw: [lib]\n")
    loop.prd(story("A"))
    loop("echo 'rw: [\"**\"]' >> lib/rules.yaml && echo yes > lib/changed; echo x > lib/made; exit 0", "--policy", "lib/rules.yaml")
    assert (loop.top / "lib/made").exists() and not (loop.top / "lib/changed").exists()
    assert (loop.top / "lib/rules.yaml").read_text() == "version: 1\nrw: [lib]\n"


# ---- checks, failures, notes ----


def test_a_failure_goes_back_with_a_note_and_the_third_parks_the_story(loop):
    loop.prd(story("BAD"), story("AFTER", dependencies=["BAD"]), story("GOOD"))
    script = 'printf "%s" "$p" > /tmp/p; case $id in BAD) echo trying; grep -c "### Attempt" /tmp/p >&2; exit 7;; *) echo x > lib/$id;; esac'
    events = loop.events(script, status=1)
    notes = [event["note"] for event in events if event["event"] == "failed"]
    assert len(notes) == 3 and "exit code 7" in notes[0] and "| trying" in notes[0] and "| 2" in notes[2], notes
    assert [event["reason"] for event in events if event["event"] == "parked"] == ["The agent ended with exit code 7."]
    assert loop.passed() == ["GOOD"] and sorted(os.listdir(loop.top / "lib")) == ["GOOD", "shared.txt"]
    assert [(one["id"], one["state"]) for one in events[-1]["stories"]] == [("BAD", "parked"), ("AFTER", "waiting"), ("GOOD", "passed")]


def test_a_check_decides_and_its_output_is_in_the_next_prompt(loop):
    loop.prd(story("A"))
    script = 'if printf %s "$p" | grep -q "| missing: fix"; then echo 1 > lib/fix; else echo 1 > lib/try; fi'
    events = loop.events(script, "--verify", "ls lib; test -e lib/fix || { echo missing: fix; exit 3; }")
    assert [event["event"] for event in events if event["event"] in ("failed", "accepted", "passed")] == ["failed", "accepted", "passed"]
    assert sorted(os.listdir(loop.top / "lib")) == ["fix", "shared.txt"], "nothing of the failed attempt is there"
    result = events[-2]["stories"][0] if events[-2]["event"] == "passed" else [e for e in events if e["event"] == "passed"][0]["stories"][0]
    for key in "story_id success exit_code duration_ms tokens_in tokens_out model log_file error files_changed delegation_depth timestamp".split():
        assert key in result, key
    assert result["files_changed"] == ["lib/fix"] and result["success"] is True and result["tokens_in"] is None


def test_what_an_agent_changes_outside_its_scope_does_not_count_in_the_check(loop):
    """Permissive mode lets it change the tests; the check uses those of the repository."""
    loop.box.write("repo/tests/run.sh", "test -e lib/done\n")
    loop.prd(story("CHEAT"), story("REAL"))
    script = 'echo "exit 0" > tests/run.sh; test $id = CHEAT || echo y > lib/done'
    loop(script, "--workspace", "lib", "--verify", "sh tests/run.sh", status=1)
    assert loop.passed() == ["REAL"] and (loop.top / "lib/done").exists()
    assert (loop.top / "tests/run.sh").read_text() == "exit 0\n", "permissive mode takes it over with a warning"
    loop.box.write("repo/tests/run.sh", "test -e lib/never\n")
    loop.prd(story("CHEAT"))
    loop(script, "--workspace", "lib,tests", "--verify", "sh tests/run.sh")
    assert loop.passed() == ["CHEAT"], "its scope has the tests"


def test_a_call_that_hangs_ends_after_its_time(loop):
    loop.prd(story("SLOW"))
    events = loop.events("echo x > lib/x; sleep 1000 & sleep 1000", "--timeout", "1s", "--max-iterations", "1", status=1)
    failed = [event for event in events if event["event"] == "failed"][0]
    assert failed["result"]["exit_code"] == 124 and "within 1 s" in failed["note"], failed
    assert not (loop.top / "lib/x").exists() and loop.views() == []


def test_the_limit_of_iterations_ends_the_loop_and_the_same_command_goes_on(loop):
    loop.prd(*[story(f"S{i}") for i in range(5)])
    done = loop("echo $id > lib/$id", "--max-iterations", "2", status=1)
    assert "the same command goes on" in done.stderr and loop.passed() == ["S0", "S1"]
    loop("echo $id > lib/$id", "--max-iterations", "3")
    assert loop.passed() == [f"S{i}" for i in range(5)]


# ---- what agents can't do ----


def test_strict_mode_refuses_and_permissive_warns_in_the_words_that_scripts_know(loop):
    loop.prd(story("A"))
    done = loop("echo x > docs/new; echo x > lib/new; exit 0", "--workspace", "lib", "--workspace-mode", "strict")
    assert f"[WORKSPACE] BLOCKED: File access outside workspace\n[WORKSPACE]   File: {loop.top}/docs/new\n[WORKSPACE]   Operation: write\n[WORKSPACE]   Workspace folders: lib\n" in done.stderr, done
    assert not (loop.top / "docs/new").exists() and (loop.top / "lib/new").exists()
    loop.prd(story("A"))
    done = loop("echo x > docs/new; exit 0", "--workspace", "lib")
    assert f"[WORKSPACE] WARNING: File access outside workspace (permissive mode)\n[WORKSPACE]   File: {loop.top}/docs/new\n" in done.stderr, done
    assert (loop.top / "docs/new").exists()
    loop.prd(story("A"))
    events = loop.events("echo x > docs/newer; exit 0", "--workspace", "lib", "--fail-on-violation", "--max-iterations", "1", status=1)
    assert loop.passed() == [] and not (loop.top / "docs/newer").exists() and [e for e in events if e["event"] == "violation"]


def test_an_agent_that_changes_the_prd_changes_nothing(loop):
    prd = loop.prd(story("A"), story("B"))
    events = loop.events("sed -i s/Title/Owned/ prd.json; rm -f prd.json; mv prd.json x; echo '{}' > prd.json; exit 1", "--max-iterations", "1", status=1)
    assert "Owned" not in prd.read_text() and loop.passed() == [] and "x" not in os.listdir(loop.top)
    assert [e["path"] for e in events if e["event"] == "violation"][0].endswith("prd.json"), events


def test_a_scope_of_a_person_is_a_fence_in_strict_mode_and_told_in_permissive(loop):
    stories = story("A", fileScope=["lib/*.ts"])
    loop.prd(stories)
    script = "echo x > lib/a.ts; echo x > lib/a.css; exit 0"
    loop(script, "--workspace", "lib", "--workspace-mode", "strict")
    assert (loop.top / "lib/a.ts").exists() and not (loop.top / "lib/a.css").exists()
    loop.prd(stories)
    done = loop(script, "--workspace", "lib")
    assert (loop.top / "lib/a.css").exists() and "A changed a file outside its scope: lib/a.css" in done.stderr, done
    loop.prd(stories)
    done = loop("echo y > lib/b.css; exit 0", "--workspace", "lib", "--file-scope", "off")
    assert "outside its scope" not in done.stderr
    loop.prd(stories)
    loop("echo y > lib/c.css; exit 0", "--workspace", "lib", "--file-scope", "enforce")
    assert not (loop.top / "lib/c.css").exists()


def test_new_types_of_files_are_suggested_or_written_into_inferred_scopes(loop):
    loop.prd(story("A"), story("B", fileScope=["lib/*.c"]))
    done = loop("echo x > lib/a.css; echo x > docs/x.rst; exit 0", "--workspace", "lib", "--max-iterations", "1", status=1)
    assert "Suggestion for fileScope: lib/**/*.css" in done.stderr and "rst" not in done.stderr.split("Suggestion", 1)[1].splitlines()[0], done
    assert json.loads((loop.top / "prd.json").read_text())["userStories"][0]["fileScope"] == FOLDER_SCOPE
    loop.prd(story("A"), story("C"), story("B", fileScope=["lib/*.c"]))
    loop("echo $id > lib/a.css; exit 0", "--workspace", "lib", "--update-scope", "write", "--max-iterations", "1", status=1)
    first, second, third = json.loads((loop.top / "prd.json").read_text())["userStories"]
    assert first["fileScope"] == second["fileScope"] == FOLDER_SCOPE + ["lib/**/*.css"] and third["fileScope"] == ["lib/*.c"]
    loop("echo $id > lib/b.css; exit 0", "--workspace", "lib", "--workspace-mode", "strict")
    assert loop.passed() == ["A", "C", "B"], "the scope counts as inferred ever after"


# ---- side by side ----


def test_stories_side_by_side_see_what_was_accepted_and_conflicts_go_back(loop):
    names = [f"S{i}" for i in range(8)]
    loop.prd(*[story(name) for name in names], story("LAST", dependencies=["S0", "S1"]))
    script = """
    case $id in
    S0|S1) echo $id >> lib/shared.txt;;
    LAST) test -e lib/S0 && test -e lib/S1 && rm lib/S0;;
    esac
    n=0; while test $n -lt 20; do n=$((n + 1)); sleep 0.02; done
    test $id = LAST || echo $id > lib/$id
    """
    events = loop.events(script, "--max-workers", "4", "--max-iterations", "20")
    assert sorted(loop.passed()) == sorted([*names, "LAST"])
    assert sorted((loop.top / "lib/shared.txt").read_text().split()) == ["S0", "S1", "base"]
    assert sorted(os.listdir(loop.top / "lib")) == sorted(["shared.txt", *names[1:]])
    conflicts = [e for e in events if e["event"] == "failed"]
    assert len(conflicts) == 1 and "both changed lib/shared.txt" in conflicts[0]["note"] and not conflicts[0]["counts"], conflicts
    assert events[-1]["conflicts"] == 1 and len([e for e in events if e["event"] == "landing"]) >= 1


def test_the_hosts_own_edits_meanwhile_are_merged_or_send_the_result_back(loop):
    loop.box.write("repo/lib/long.txt", "".join(f"{i}\n" for i in range(40)))
    loop.prd(story("A"))
    script = "sed -i 's/^39$/agent/' lib/long.txt; echo ready; while ! test -e /gate/go; do sleep 0.02; done"
    gate = loop.box.mkdir("gate")
    process = loop.cordon.start(*loop.args(script, "--verify", "true", "--share", f"{gate}:/gate"), cwd=loop.top)
    poll(lambda: "ready" in loop.output("A.1"), 60, "the agent")
    text = (loop.top / "lib/long.txt").read_text()
    (loop.top / "lib/long.txt").write_text("host\n" + text)
    loop.box.write("gate/go", "")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert (loop.top / "lib/long.txt").read_text() == "host\n" + text.replace("\n39\n", "\nagent\n")


# ---- going on, stopping, locks ----


def test_a_second_loop_on_the_same_prd_is_refused_and_ctrl_c_keeps_and_names_views(loop, cordon):
    loop.prd(story("A"), story("B"))
    process = cordon.start(*loop.args("echo begun > lib/half; echo ready; sleep 1000"), cwd=loop.top)
    poll(lambda: "ready" in loop.output("A.1"), 60, "the agent")
    second = loop("exit 0", status=1)
    assert f"another loop works on {loop.top}/prd.json" in second.stderr, second
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    kept = loop.views()
    assert process.returncode == 130 and len(kept) == 1 and f"view {kept[0][:8]}".encode() in err, err
    assert not (loop.top / "lib/half").exists() and loop.passed() == []
    assert "lib/half" in cordon("changes", "diff", kept[0], cwd=loop.top).stdout
    loop("echo $id > lib/$id")
    assert loop.passed() == ["A", "B"]


def test_a_killed_loop_goes_on_and_does_nothing_twice(loop, cordon):
    """Killed while one result is accepted and waits, one is half done: neither is lost or done twice."""
    loop.prd(story("A"), story("B"), story("C", dependencies=["A"]))
    script = 'case $id in B) while ! test -e /gate/go; do sleep 0.02; done;; esac; echo $id >> lib/$id; date +%s%N >> lib/$id.calls'
    gate = loop.box.mkdir("gate")
    args = ["--max-workers", "2", "--share", f"{gate}:/gate"]
    process = cordon.start(*loop.args(script, *args), cwd=loop.top)
    journal = lambda: "".join(path.read_text() for path in (loop.box.state / "state/loops").glob("*/journal"))
    poll(lambda: journal().count('"accepted"') >= 2, 60, "accepted results")
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    assert loop.passed() == [] and not (loop.top / "lib/A").exists(), "the host's tree waits until no view is live"
    loop.box.write("gate/go", "")
    done = loop(script, *args)
    assert "Going on" in done.stderr and loop.passed() == ["A", "B", "C"]
    for name in "ABC":
        assert (loop.top / "lib" / name).read_text() == f"{name}\n" and len((loop.top / f"lib/{name}.calls").read_text().split()) == 1
    # One view of a result that was applied by itself may stay, to be undone.
    assert len(loop.views()) <= 2


# ---- output and options ----


@pytest.mark.parametrize("restarted", [False, True])
def test_after_a_crash_of_the_machine_only_applied_results_count(loop, cordon, restarted):
    """A result that was accepted and not applied: a kill does not lose it, but a crash may have, so then it is made again."""
    loop.prd(story("S0"), story("S1"))
    gate = loop.box.mkdir("gate")
    script = "echo $id > lib/$id; case $id in S1) while ! test -e /gate/go; do sleep 0.02; done;; esac"
    args = ["--max-workers", "2", "--share", f"{gate}:/gate"]
    process = cordon.start(*loop.args(script, *args), cwd=loop.top)
    journals = lambda: list((loop.box.state / "state/loops").glob("*/journal"))
    poll(lambda: any('"accepted"' in path.read_text() for path in journals()), 60, "an accepted result")
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    loop.box.write("gate/go", "")
    if restarted:  # another boot, and what was written last is gone
        [path] = journals()
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        assert boot in path.read_text()
        path.write_text(path.read_text().replace(boot, "another"))
        [lost] = (loop.box.state / "state/views").glob("*/upper/lib/S0")
        lost.write_text("")
    events = loop.events(script, *args)
    assert sorted(event["story"] for event in events if event["event"] == "call") == (["S0", "S1"] if restarted else ["S1"])
    assert [(loop.top / "lib" / name).read_text() for name in ("S0", "S1")] == ["S0\n", "S1\n"]
    assert loop.passed() == ["S0", "S1"]


def test_json_is_a_stream_and_metrics_and_logs_are_written(loop):
    loop.prd(story("A"))
    box = loop.box.mkdir("out")
    events = loop.events("echo out; echo err >&2; echo x > lib/x", "--metrics", str(box / "m.json"), "--log-dir", str(box / "logs"))
    assert [e["event"] for e in events] == ["begin", "call", "accepted", "passed", "done", "summary"]
    assert json.loads((box / "m.json").read_text()) == events[-1] and events[-1]["iterations"] == 1
    logs = box / "logs" / "A.1"
    assert sorted(os.listdir(logs)) == ["combined.log", "error.log", "output.log", "prompt.txt"]
    assert (logs / "output.log").read_text() == "out\n" and (logs / "error.log").read_text() == "err\n"


def test_confirm_without_a_terminal_takes_nothing_over(loop):
    loop.prd(story("A"))
    done = loop("echo x > lib/x", "--confirm", status=1)
    assert "--confirm needs a terminal" in done.stderr and loop.passed() == [] and not (loop.top / "lib/x").exists()
    assert len(loop.views()) == 1, "the view stays for the person"


def test_several_prds_share_the_pool_and_each_has_its_own_workspace(loop):
    loop.prd(story("A"), name="one.json", workspace={"folders": ["lib"], "mode": "strict"})
    loop.prd(story("A"), name="two.json", workspace={"folders": ["docs"], "mode": "strict"})
    loop("echo $id >> lib/x 2>/dev/null; echo $id >> docs/x 2>/dev/null; exit 0", "--prd", "one.json", "--prd", "two.json", "--max-workers", "2")
    assert loop.passed("one.json") == loop.passed("two.json") == ["A"]
    assert (loop.top / "lib/x").read_text() == "A\n" and (loop.top / "docs/x").read_text() == "A\n"


def test_bad_calls_are_refused_in_one_line_with_status_1_or_2(loop):
    assert "there is no PRD prd.json" in loop("exit 0", status=1).stderr
    loop.prd(story("A"))
    assert "[WORKSPACE] Workspace folder does not exist: nope" in loop("exit 0", "--workspace", "lib,nope", status=1).stderr
    loop("exit 0", "--max-workers", "0", status=2)
    loop("exit 0", "--no-views", "--parallel", status=2)
    loop("exit 0", "--no-views", "--confirm", status=2)
    loop("exit 0", "--workspace-mode", "loose", status=2)
    loop.prd(story("A", dependencies=["B"]), story("B", dependencies=["A"]))
    assert "prd.json:" in loop("exit 0", status=1).stderr
    loop.prd(story("A"), workspace={"folders": ["docs"]})
    assert loop("exit 0", "--workspace", "lib", status=1).stderr.count("\n") == 1, "an empty intersection"
    assert loop.passed() == []


def test_without_views_the_agent_works_in_the_tree_itself(loop):
    loop.prd(story("A"))
    loop("echo x > lib/x; echo '{}' > prd.json; exit 0", "--no-views", "--verify", "test -e lib/x")
    assert (loop.top / "lib/x").exists() and loop.passed() == ["A"]


def test_the_variables_of_workspaces_count(loop):
    loop.prd(story("A"))
    env = {"WORKSPACE_FOLDERS": "lib", "WORKSPACE_MODE": "strict"}
    loop("echo x > docs/x; echo x > lib/x; exit 0", env=env)
    assert (loop.top / "lib/x").exists() and not (loop.top / "docs/x").exists()
    for more in ({"env": {**env, "WORKSPACE_ENABLED": "false"}}, {"env": env}):
        loop.prd(story("A"))
        loop("echo x > docs/x; exit 0", *([] if "WORKSPACE_ENABLED" in more["env"] else ["--disable-workspace-checks"]), **more)
        assert (loop.top / "docs/x").exists() and "fileScope" not in (loop.top / "prd.json").read_text()
        os.unlink(loop.top / "docs/x")
