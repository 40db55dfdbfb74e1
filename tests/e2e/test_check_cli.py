# SPDX-License-Identifier: Apache-2.0
"""`cordon check`, `why` and `tree`: one decision, asked in three ways."""
import json
import os
import pty
import subprocess

import pytest

POLICY = """\
version: 1
mode: strict
workspace: [lib, src]
ro: [docs]
deny: ["**/.env"]
protect: [AGENTS.md]
"""


@pytest.fixture
def repo(box):
    top = box.repo(files={
        "lib/a.ts": "", "lib/.env": "", "src/main.ts": "", "src/deep/er/x.c": "", "docs/n.md": "",
        "libsecret/key": "", "AGENTS.md": "", "README.md": "",
    })
    box.link("repo/lib/pw", "/etc/passwd")
    box.write("repo/cordon.yaml", POLICY)
    return top


def check(cordon, repo, *args, **options):
    """{path: verdict} of a check by arguments."""
    result = cordon("check", *args, cwd=repo, **options)
    assert result.returncode in (0, 1), result
    answers = dict(reversed(line.split(" ", 1)) for line in result.stdout.splitlines())
    assert (result.returncode == 0) == ("deny" not in answers.values()), result
    return answers


# ---- check ----


def test_answers_come_in_order_and_the_status_says_all(cordon, repo):
    result = cordon("check", "--workspace", "lib", "src/x", "lib/a.ts", "lib/new/x", cwd=repo)
    assert result.stdout == "warn src/x\nallow lib/a.ts\nallow lib/new/x\n" and result.returncode == 0
    result = cordon("check", "--workspace", "lib", "--workspace-mode", "strict", "src/x", "lib/a.ts", "lib/new/x", cwd=repo)
    assert result.stdout == "deny src/x\nallow lib/a.ts\nallow lib/new/x\n" and result.returncode == 1
    result = cordon("check", "--workspace", "lib", "lib/a.ts", cwd=repo)
    assert result.stdout == "allow lib/a.ts\n" and result.returncode == 0 and result.stderr == ""


def test_a_policy_from_options(cordon, repo):
    options = ["--rw", "src/**", "--ro", "docs", "--deny", "**/*.key", "--protect", "src/main.ts"]
    assert check(cordon, repo, *options, "src/x", "src/x.key", "src/main.ts", "docs/n.md", "README.md") == {
        "src/x": "allow", "src/x.key": "deny", "src/main.ts": "deny", "docs/n.md": "deny", "README.md": "deny",
    }
    assert check(cordon, repo, *options, "--op", "read", "src/main.ts", "docs/n.md", "src/x.key", "README.md") == {
        "src/main.ts": "allow", "docs/n.md": "allow", "src/x.key": "deny", "README.md": "deny",
    }


def test_a_policy_from_a_file(cordon, repo):
    paths = ["lib/a.ts", "lib/.env", "lib/pw", "libsecret/key", "docs/n.md", "AGENTS.md", "src/new/x"]
    answers = check(cordon, repo, "--policy", "cordon.yaml", *paths)
    assert [path for path in paths if answers[path] == "allow"] == ["lib/a.ts", "src/new/x"]


def test_options_and_a_file_go_together(cordon, repo):
    assert check(cordon, repo, "--policy", "cordon.yaml", "--rw", "docs/n.md", "--deny", "src/main.ts", "docs/n.md",
                 "src/main.ts", "src/x") == {"docs/n.md": "allow", "src/main.ts": "deny", "src/x": "allow"}


def test_without_a_scope_the_whole_root_may_be_written(cordon, repo):
    assert check(cordon, repo, "README.md", "new/x", "../x", "/etc/passwd") == {
        "README.md": "allow", "new/x": "allow", "../x": "deny", "/etc/passwd": "deny",
    }
    assert check(cordon, repo, "--deny", "**/.env", "lib/.env", "lib/a.ts") == {"lib/.env": "deny", "lib/a.ts": "allow"}


def test_the_default_operation_is_writing_where_anything_may_be_written(cordon, repo):
    assert check(cordon, repo, "--ro", "docs", "docs/n.md") == {"docs/n.md": "allow"}
    assert check(cordon, repo, "--ro", "docs", "--rw", "lib", "docs/n.md") == {"docs/n.md": "deny"}
    assert check(cordon, repo, "--ro", "docs", "--op", "write", "docs/n.md") == {"docs/n.md": "deny"}
    assert check(cordon, repo, "--rw", "lib", "--read-only", "lib/a.ts") == {"lib/a.ts": "allow"}
    assert check(cordon, repo, "--rw", "lib", "--read-only", "--op=write", "lib/a.ts") == {"lib/a.ts": "deny"}


def test_permissive_mode_warns_in_the_root_and_counts_as_allowed(cordon, box, repo):
    box.write("repo/p.yaml", POLICY.replace("strict", "permissive"))
    answers = check(cordon, repo, "--policy", "p.yaml", "README.md", "lib/a.ts", "/etc/passwd")
    assert answers == {"README.md": "warn", "lib/a.ts": "allow", "/etc/passwd": "deny"}
    # What a rule forbids stays forbidden.
    assert set(check(cordon, repo, "--policy", "p.yaml", "lib/.env", "AGENTS.md", "docs/n.md").values()) == {"deny"}
    # A flag goes before the file, the file before the variable; without any of them folders are permissive, as in a run.
    assert check(cordon, repo, "--policy", "p.yaml", "--workspace-mode", "strict", "README.md") == {"README.md": "deny"}
    env = {"WORKSPACE_MODE": "permissive"}
    assert check(cordon, repo, "--policy", "cordon.yaml", "README.md", env=env) == {"README.md": "deny"}
    assert check(cordon, repo, "--workspace", "lib", "README.md", env=env) == {"README.md": "warn"}
    assert check(cordon, repo, "--workspace", "lib", "README.md") == {"README.md": "warn"}
    assert check(cordon, repo, "--rw", "lib", "README.md") == {"README.md": "deny"}


@pytest.mark.parametrize("options", [["--workspace", "lib"], ["--workspace", "lib", "--workspace-mode", "strict"], ["--policy", "folders.yaml"], ["--rw", "lib"]], ids=" ".join)
def test_a_question_has_the_answer_that_a_run_gives(cordon, box, repo, options):
    box.write("repo/folders.yaml", "version: 1\nworkspace: [lib]\n")
    answer = check(cordon, repo, *options, "README.md")["README.md"]
    wrote = cordon("run", *options, "--", "/bin/sh", "-c", "echo x >> README.md", cwd=repo).returncode == 0
    assert wrote == (answer != "deny")
    why = json.loads(cordon("why", "--json", *options, "README.md", cwd=repo).stdout)
    mark = next(entry for entry in json.loads(cordon("tree", "--json", *options, cwd=repo).stdout)["children"] if entry["name"] == "README.md")["mark"]
    assert why["decision"] == answer and {"warn": "warn", "deny": "denied"}[answer] == mark
    assert (options[0] == "--rw" or "strict" in options) == (answer == "deny")


def test_the_root_is_where_relative_paths_begin(cordon, box, repo):
    box.mkdir("repo/src/deep")
    assert check(cordon, repo / "src/deep", "--rw", "lib", "lib/x") == {"lib/x": "allow"}
    assert check(cordon, box.path, "--root", "repo", "--rw", "lib", "lib/x", f"{repo}/lib/y") == {
        "lib/x": "allow", f"{repo}/lib/y": "allow",
    }
    assert check(cordon, repo, "--root", "src", "--rw", "deep", "deep/x", "../lib/a.ts") == {
        "deep/x": "allow", "../lib/a.ts": "deny",
    }


def test_what_the_host_executes_is_protected_unless_told(cordon, repo):
    assert check(cordon, repo, ".git/config", ".git/hooks/pre-commit", ".git/HEAD")[".git/config"] == "deny"
    assert check(cordon, repo, "--no-default-protect", ".git/config", ".git/hooks/x") == {
        ".git/config": "allow", ".git/hooks/x": "allow",
    }


def test_all_errors_are_reported_in_one_pass(cordon, box, repo):
    box.write("repo/bad.yaml", 'version: 1\nmode: lenient\nbogus: 1\nrw: ["src/**.ts"]\n')
    result = cordon("check", "--policy", "bad.yaml", "--rw", "!x", "--ro", "{1..3}", "--protect", "/abs", "--workspace",
                    "nope,none", "x", "--json", cwd=repo)
    assert result.stdout == "" and result.returncode in (1, 2)
    text = result.stderr
    for part in ("bad.yaml:2:", "bad.yaml:3:", "bad.yaml:4:", "--rw", "--ro", "--protect", "exist: nope", "exist: none"):
        assert part in text, (part, text)
    assert all(set(json.loads(line)) == {"kind", "message", "where", "hint"} for line in text.splitlines())


def test_a_bad_pattern_names_its_column_and_likely_meaning(cordon, repo):
    result = cordon("check", "--rw", "src/**.ts", "x", cwd=repo)
    assert result.returncode == 2
    assert "--rw" in result.stderr and "column" in result.stderr and "src/**/*.ts" in result.stderr


def test_streams(cordon, repo):
    asked = "lib/a.ts\nREADME.md\nlib/pw\nlib/two\\\n"
    result = cordon("check", "--workspace", "lib", "--stdin", input=asked, cwd=repo)
    assert result.returncode == 0
    assert result.stdout == "allow lib/a.ts\nwarn README.md\ndeny lib/pw\nallow lib/two\\\\\n"
    raw = b"lib/\xff\n\0README.md\0"
    result = cordon("check", "--workspace", "lib", "--stdin0", input=raw, cwd=repo)
    assert result.returncode == 0 and result.raw_stdout == b"allow lib/\xff\n\0warn README.md\0"
    result = cordon("check", "--workspace", "lib", "--stdin", "--json", input=asked, cwd=repo)
    assert [json.loads(line)["decision"] for line in result.stdout.splitlines()] == ["allow", "warn", "deny", "allow"]
    assert cordon("check", "--stdin", input="", cwd=repo).returncode == 0


def test_control_characters_in_arguments_are_escaped(cordon, repo):
    result = cordon("check", "--workspace", "lib", "lib/a\nallow b", b"lib/\xff\x1b", cwd=repo)
    assert result.stdout == "allow lib/a\\nallow b\nallow lib/\\xff\\e\n"


def test_a_decision_as_an_object(cordon, repo):
    result = cordon("check", "--policy", "cordon.yaml", "--json", "docs/n.md", "lib/pw", cwd=repo)
    assert result.returncode == 1
    first, second = (json.loads(line) for line in result.stdout.splitlines())
    assert first == {
        "path": "docs/n.md", "op": "write", "decision": "deny", "reason": "grant", "access": "read", "rule": "docs",
        "where": "cordon.yaml:4:6", "fence": None, "resolved": "docs/n.md", "exists": True,
    }
    assert (second["reason"], second["resolved"], second["rule"]) == ("outside_root", "/etc/passwd", None)


def test_wrong_usage(cordon, repo):
    for args in ([], ["--stdin", "x"], ["--op", "chmod", "x"], ["--policy", "a", "--policy", "b", "x"], ["--bogus", "x"],
                 ["--rw"], ["x", "--rw"], ["--stdin=1"]):
        result = cordon("check", *args, cwd=repo)
        assert result.returncode == 2, result
        assert result.stdout == "" and result.stderr.startswith("cordon: "), result
    assert cordon("check", "--policy", "missing.yaml", "x", cwd=repo).returncode == 1


def test_a_closed_pipe_ends_it_quietly(cordon, box, repo):
    result = box.run("sh", "-c", 'yes lib/a | "$0" check --workspace lib --stdin | head -n 1', cordon.path, cwd=repo)
    assert result.stdout == "allow lib/a\n" and result.stderr == ""


def test_a_full_disk_is_a_failure(cordon, repo):
    with open("/dev/full", "w") as full:
        process = cordon.start("check", "x", cwd=repo, stdout=full)
        _, err = process.communicate(timeout=10)
    assert process.returncode == 1 and b"standard output" in err


# ---- why ----


def test_why_names_rule_place_target_and_remedy(cordon, repo):
    result = cordon("why", "--policy", "cordon.yaml", "docs/n.md", cwd=repo)
    assert result.returncode == 0 and result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[0] == "deny: write docs/n.md"
    assert "docs" in result.stdout and "cordon.yaml:4:6" in result.stdout and "--rw" in result.stdout
    allowed = cordon("why", "--policy", "cordon.yaml", "lib/a.ts", cwd=repo).stdout
    assert allowed.startswith("allow: write lib/a.ts\n") and "cordon.yaml:3:" in allowed and "--deny" in allowed


def test_why_shows_where_a_link_leads(cordon, repo):
    assert "/etc/passwd" in cordon("why", "--workspace", "lib", "lib/pw", cwd=repo).stdout
    assert "does not exist" in cordon("why", "--workspace", "lib", "lib/new/x", cwd=repo).stdout


def test_the_remedy_of_why_gives_the_other_answer(cordon, repo):
    before = cordon("why", "--rw", "lib", "--json", "src/main.ts", cwd=repo).json()
    assert before["decision"] == "deny" and "--rw 'src/main.ts'" in before["remedy"]
    after = cordon("why", "--rw", "lib", "--rw", "src/main.ts", "--json", "src/main.ts", cwd=repo).json()
    assert after["decision"] == "allow"
    assert {"root", "mode", "because", "remedy", "rule", "where", "resolved"} <= set(after)


def test_why_and_check_agree(cordon, repo):
    for path in ("lib/a.ts", "lib/.env", "lib/pw", "libsecret/key", "docs/n.md", "AGENTS.md", "x\ny", ".git/config"):
        for op in ("read", "write"):
            why = cordon("why", "--policy", "cordon.yaml", "--op", op, path, "--json", cwd=repo).json()
            asked = cordon("check", "--policy", "cordon.yaml", "--op", op, path, "--json", cwd=repo).json()
            assert {key: why[key] for key in asked} == asked


# ---- tree ----


def marks(result):
    """{path: mark} of a tree as JSON."""
    found = {}

    def walk(node):
        found[node["path"]] = node["mark"]
        for child in node.get("children", []):
            walk(child)

    walk(result.json())
    return found


def test_the_tree_marks_every_entry_as_it_is_decided(cordon, repo):
    found = marks(cordon("tree", "--all", "--policy", "cordon.yaml", "--json", cwd=repo))
    assert found["lib"] == found["lib/a.ts"] == found["src/deep/er/x.c"] == "rw"
    assert found["docs"] == found["docs/n.md"] == "ro"
    assert found["lib/.env"] == found["lib/pw"] == found["libsecret/key"] == found["README.md"] == "denied"
    on_disk = {os.path.relpath(os.path.join(top, name), repo) for top, dirs, files in os.walk(repo) for name in dirs + files}
    assert set(found) == on_disk | {""}
    assert found["AGENTS.md"] == "denied"  # protected, but not granted for reading either
    assert marks(cordon("tree", "--all", "--protect", "AGENTS.md", "--json", cwd=repo))["AGENTS.md"] == "protected"


def test_the_tree_agrees_with_check(cordon, repo):
    options = ["--rw", "src/**/*.c", "--ro", "lib", "--deny", "**/.env", "--protect", "src/main.ts", "--rw", "docs"]
    found = marks(cordon("tree", "--all", *options, "--json", cwd=repo))
    paths = sorted(path for path in found if path)
    for op, allowed in (("read", ("rw", "ro", "protected", "warn")), ("write", ("rw", "warn"))):
        answers = check(cordon, repo, *options, "--op", op, *paths)
        assert {path: found[path] in allowed for path in paths} == {path: answers[path] != "deny" for path in paths}


def test_uniform_directories_are_folded_with_a_count(cordon, repo):
    result = cordon("tree", "--rw", "src", "--ro", "lib", "--no-default-protect", cwd=repo)
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["denied", f"{repo}/"]
    assert "rw          src/  (2 entries)" in lines
    assert "ro          lib/  (3 entries)" in lines
    assert "denied      libsecret/" in lines and not any("key" in line for line in lines)
    unfolded = cordon("tree", "--rw", "src", "--all", "--no-default-protect", cwd=repo).stdout
    assert "rw              er/\nrw                x.c\n" in unfolded


def test_a_rule_about_names_everywhere_folds_with_its_exception(cordon, repo):
    result = cordon("tree", "--rw", "src", "--deny", "**/.env", "--no-default-protect", cwd=repo)
    assert "rw          src/  (2 entries, except **/.env)\n" in result.stdout


def test_the_depth_is_limited_and_says_what_is_mixed(cordon, repo):
    result = cordon("tree", "--depth", "1", "--rw", "src/deep", "--no-default-protect", cwd=repo)
    assert "denied      src/  (2 entries, mixed)\n" in result.stdout
    result = cordon("tree", "-d2", "--rw", "src/deep", "--no-default-protect", cwd=repo)
    assert "denied      src/\nrw            deep/  (1 entry)\ndenied        main.ts\n" in result.stdout
    for bad in ("0", "-1", "x", ""):
        assert cordon("tree", "--depth", bad, cwd=repo).returncode == 2


def test_part_of_the_tree(cordon, repo):
    assert cordon("tree", "lib", "--rw", "lib", cwd=repo).stdout.splitlines()[1:] == [
        "rw          .env", "rw          a.ts", "denied      pw -> /etc/passwd",
    ]
    assert cordon("tree", "lib/a.ts", "--rw", "lib", cwd=repo).stdout == "rw        lib/a.ts\n"
    assert cordon("tree", "missing", cwd=repo).returncode == 1
    assert cordon("tree", "/etc", cwd=repo).returncode == 1
    assert cordon("tree", "lib/pw", cwd=repo).returncode == 1
    assert cordon("tree", "a", "b", cwd=repo).returncode == 2


def test_permissive_mode_is_marked_as_warning(cordon, repo):
    found = marks(cordon("tree", "--workspace", "lib", "--workspace-mode=permissive", "--json", cwd=repo))
    assert found["lib"] == "rw" and found["README.md"] == "warn"


def test_links_are_not_followed(cordon, box, repo):
    box.link("repo/up", "..")
    box.link("repo/lib/again", "../lib")
    found = marks(cordon("tree", "--all", "--json", cwd=repo))
    assert not any(path.startswith(("up/", "lib/again/")) for path in found)
    assert found["up"] == "denied" and found["lib/again"] == "rw"


def test_names_in_the_tree_are_escaped(cordon, box, repo):
    box.write("repo/lib/\x1b[31mred\nline", "")
    box.link("repo/lib/link", "to\nnowhere")
    result = cordon("tree", "lib", cwd=repo)
    assert "\\e[31mred\\nline\n" in result.stdout and "link -> to\\nnowhere\n" in result.stdout
    assert "\x1b" not in result.stdout


def test_a_large_directory_is_cut_but_what_differs_is_shown(cordon, box, repo):
    for i in range(300):
        (repo / f"lib/file{i:03}").touch()
    for i in range(50):
        (repo / f"zdir{i:02}").mkdir()
    box.write("repo/zz/wanted", "")
    result = cordon("tree", "lib", "--rw", "lib", "--protect", "lib/file299", cwd=repo)
    assert "protected   file299\n" in result.stdout
    assert result.stdout.splitlines()[-1].strip() == "… 243 more (243 rw)"
    assert len(result.stdout.splitlines()) == 62
    assert "zz/" in cordon("tree", "--rw", "zz/wanted", cwd=repo).stdout
    assert len(cordon("tree", "lib", "--all", "--rw", "lib", cwd=repo).stdout.splitlines()) == 304


def test_what_is_folded_is_not_read(cordon, repo, who):
    (repo / "src/deep").chmod(0)
    # Default protection would refuse it: what may lie in it, nobody knows.
    result = cordon("tree", "--no-default-protect", "--rw", "src", cwd=repo)
    assert result.returncode == 0 and "rw          src/  (2 entries)\n" in result.stdout
    result = cordon("tree", "--no-default-protect", "--rw", "src", "src", cwd=repo)
    (repo / "src/deep").chmod(0o755)
    assert ("cannot be read" in result.stdout) == (not who.is_root)


@pytest.mark.limit(60)
def test_the_tree_stays_small_and_fast_on_a_large_repository(cordon, repo):
    for i in range(40):
        for j in range(40):
            (repo / f"packages/p{i}/d{j}").mkdir(parents=True)
            for k in range(4):
                (repo / f"packages/p{i}/d{j}/f{k}.ts").touch()
    result = cordon("tree", "--rw", "packages/p7/**/*.ts", "--deny", "**/.env", cwd=repo)
    assert result.returncode == 0
    assert len(result.stdout.splitlines()) < 200 and result.seconds < 2
    assert "p7/" in result.stdout


def test_colour_only_on_a_terminal_and_never_with_no_color(cordon, repo):
    def on_terminal(env):
        leader, follower = pty.openpty()
        process = cordon.start("tree", "--rw", "lib", cwd=repo, env=env, stdout=follower, stderr=subprocess.DEVNULL)
        os.close(follower)
        process.wait(10)
        text = b""
        try:
            while chunk := os.read(leader, 65536):
                text += chunk
        except OSError:
            pass
        os.close(leader)
        return text

    assert b"\x1b[3" in on_terminal({})
    assert b"\x1b" not in on_terminal({"NO_COLOR": "1"})
    assert "\x1b" not in cordon("tree", "--rw", "lib", cwd=repo).stdout
