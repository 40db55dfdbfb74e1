# SPDX-License-Identifier: Apache-2.0
"""Projects and workspaces through the command line; the file system is looked at from the host."""
import json
import os
import pty
import re
import threading

import pytest

UUID = re.compile(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


@pytest.fixture
def project(cordon):
    """`project(*options)` creates one and gives its record."""

    def create(*options):
        done = cordon("project", "create", "demo", "--json", *options)
        assert done.returncode == 0, done
        return done.json()

    return create


def tree(box, project, *below):
    return box.state.joinpath("projects", project["id"], *below)


def ask(cordon, *args):
    done = cordon(*args, "--json")
    assert done.returncode == 0, done
    return done.json()


def refused(cordon, *args, status=1, kind=None, word=""):
    done = cordon(*args, "--json")
    assert done.returncode == status, done
    assert done.stdout == "", done
    error = done.json("stderr")
    assert set(error) == {"kind", "message", "where", "hint"}
    assert kind is None or error["kind"] == kind, error
    assert word in error["message"], error
    return error


def test_a_project_has_a_published_copy_and_a_record_of_authority(box, cordon, project):
    made = project("--isolation", "--protect", "AGENTS.md", "--protect", ".factory/", "--", "agent", "--flag")
    assert UUID.match(made["id"]) and UUID.match(made["default_workspace_id"])
    published = json.loads(tree(box, made, "metadata.json").read_text())
    assert published["workspace_isolation"] is True
    assert published["protected_paths"] == ["AGENTS.md", ".factory/"]
    assert "agent_command" not in published
    assert made["agent_command"] == ["agent", "--flag"]
    assert tree(box, made, "workspaces", made["default_workspace_id"]).is_dir()
    for path in (box.state / "state", box.state / "state" / "projects", box.state / "projects"):
        assert path.stat().st_mode & 0o777 == 0o700
    record = box.state / "state" / "projects" / made["id"] / "project.json"
    assert record.stat().st_mode & 0o777 == 0o600
    assert json.loads(record.read_text())["schema"] == 1


def test_defaults_are_shown_as_false_and_empty(box, cordon, project):
    made = project()
    for shown in (made, ask(cordon, "project", "get", made["id"]), json.loads(tree(box, made, "metadata.json").read_text())):
        assert shown["workspace_isolation"] is False
        assert shown["protected_paths"] == []


def test_git_takes_the_new_repository(box, cordon, project):
    made = project("--remote-url", "https://example.org/team/repo.git")
    where = tree(box, made, "workspaces", made["default_workspace_id"])
    git = ["git", "-c", "safe.directory=*", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(where)]
    assert box.run(*git, "status", "--porcelain").stdout == ""
    assert box.run(*git, "remote", "get-url", "origin").stdout.strip() == "https://example.org/team/repo.git"
    assert box.run(*git, "commit", "--allow-empty", "-qm", "first").returncode == 0
    assert box.run(*git, "branch", "--show-current").stdout.strip() == "main"
    assert box.run(*git, "fsck").returncode == 0
    bare = project("--no-git")
    assert list(tree(box, bare, "workspaces", bare["default_workspace_id"]).iterdir()) == []


def test_a_template_gives_the_project_its_files(box, cordon, project):
    box.write("template/AGENTS.md", "rules\n")
    box.write("template/.factory/mcp.json", "{}\n")
    box.write("template/other", "not copied")
    made = project("--isolation", "--no-git", "--template", str(box.path / "template"))
    assert sorted(p.name for p in tree(box, made).iterdir()) == [".factory", "AGENTS.md", "metadata.json", "sessions", "workspaces"]
    default = tree(box, made, "workspaces", made["default_workspace_id"])
    assert sorted(p.name for p in default.iterdir()) == [".factory", "AGENTS.md"]
    box.link("template/.factory/evil", "/etc/passwd")
    refused(cordon, "project", "create", "x", "--template", str(box.path / "template"), kind="policy_denied", word=".factory/evil")
    assert len(ask(cordon, "project", "list")["projects"]) == 1


def test_a_changed_setting_is_published_and_a_refused_one_changes_nothing(box, cordon, project):
    made = project()
    changed = ask(cordon, "project", "update", made["id"], "--isolation", "--protect", "a", "--pids", "9", "--timeout", "90s")
    assert changed["workspace_isolation"] is True and changed["protected_paths"] == ["a"]
    assert changed["limits"]["pids"] == 9 and changed["limits"]["timeout_seconds"] == 90 and changed["limits"]["max_sessions"] == 10
    assert changed["sessions_with_earlier_settings"] == []
    before = tree(box, made, "metadata.json").read_text()
    refused(cordon, "project", "update", made["id"], "--name", "new", "--protect", "../x", status=2, kind="usage", word="'..'")
    assert tree(box, made, "metadata.json").read_text() == before
    assert ask(cordon, "project", "get", made["id"])["name"] == "demo"
    assert ask(cordon, "project", "update", made["id"], "--no-isolation", "--no-protect")["protected_paths"] == []


def test_a_forged_metadata_file_has_no_authority(box, cordon, project):
    made = project("--isolation", "--protect", "AGENTS.md")
    box.write(tree(box, made, "metadata.json"), json.dumps({**made, "workspace_isolation": False, "protected_paths": []}))
    got = ask(cordon, "project", "get", made["id"])
    assert got["workspace_isolation"] is True and got["protected_paths"] == ["AGENTS.md"]


BAD_IDS = ["", "..", "../../etc", "/etc", "a/b", ".", "x" * 65, "a\nb", "\udcff", "%2e%2e", "a b", "-o;id", "x" * 100_000]


@pytest.mark.parametrize("bad", BAD_IDS, ids=lambda text: repr(text[:12]))
def test_ids_are_refused_before_any_path_is_made_of_them(box, cordon, project, bad):
    made = project()
    seen = sorted(str(p) for p in box.state.rglob("*"))
    for args in (
        ("project", "get", bad),
        ("project", "delete", bad),
        ("workspace", "create", made["id"], f"--id={bad}"),
        ("workspace", "get", made["id"], bad),
        ("workspace", "delete", made["id"], bad),
        ("workspace", "list", bad),
    ):
        done = cordon(*args[:2], "--json", *([a for a in args[2:] if a.startswith("--id")]), "--", *[a for a in args[2:] if not a.startswith("--id")])
        # A project may have any name, so what is no id is a name that no project has.
        names_a_project = args[0] == "project" or args[1] == "list"
        assert (done.returncode, done.json("stderr")["kind"]) == ((1, "not_found") if names_a_project else (2, "usage")), done
        assert len(done.stderr) < 2000
    assert sorted(str(p) for p in box.state.rglob("*")) == seen


def test_unknown_projects_and_workspaces_are_not_found(cordon, project):
    made = project()
    missing = "00000000-0000-4000-8000-000000000000"
    refused(cordon, "project", "get", missing, kind="not_found", word=missing)
    refused(cordon, "workspace", "create", missing, kind="not_found", word=missing)
    refused(cordon, "workspace", "get", made["id"], "unknown", kind="not_found", word="unknown")
    assert ask(cordon, "project", "delete", missing)["deleted"] is False
    assert ask(cordon, "workspace", "delete", made["id"], "unknown")["deleted"] is False


def test_the_default_workspace_stays(box, cordon, project):
    made = project()
    refused(cordon, "workspace", "delete", made["id"], made["default_workspace_id"], kind="conflict", word="default")
    assert tree(box, made, "workspaces", made["default_workspace_id"]).is_dir()


def test_a_workspace_is_created_once(box, cordon, project):
    made = project()
    first = ask(cordon, "workspace", "create", made["id"], "--id", "ABC-123")
    assert first["id"] == "abc-123" and first["created"] is True
    assert first["path"] == str(tree(box, made, "workspaces", "abc-123"))
    again = ask(cordon, "workspace", "create", made["id"], "--id", "abc-123", "--source", "elsewhere")
    assert {**again, "created": True} == first
    found = ask(cordon, "workspace", "create", made["id"], "--external-id", "+49 151", "--source", "signal")
    assert ask(cordon, "workspace", "create", made["id"], "--external-id", "+49 151", "--source", "signal")["id"] == found["id"]
    assert ask(cordon, "workspace", "create", made["id"], "--external-id", "+49 151")["id"] != found["id"]
    assert ask(cordon, "workspace", "list", made["id"])["total"] == 4


def test_many_at_once_make_one_workspace_each(box, cordon, project):
    made = project()
    results = []

    def create(*options):
        results.append(cordon("workspace", "create", made["id"], "--json", *options).json())

    threads = [threading.Thread(target=create, args=("--external-id", "one")) for _ in range(8)]
    threads += [threading.Thread(target=create, args=("--id", "same")) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({r["id"] for r in results}) == 2
    assert sum(r["created"] for r in results) == 2
    assert ask(cordon, "workspace", "list", made["id"])["total"] == 3
    assert list((box.state / "state" / "staging").iterdir()) == []


def test_links_in_the_project_lead_nowhere(box, cordon, project):
    made = project("--isolation", "--no-git")
    victim = box.write("victim", "untouched")
    outside = box.mkdir("outside")
    for name, target in (("AGENTS.md", victim), (".factory", outside)):
        box.link(tree(box, made, name), target)
        refused(cordon, "workspace", "create", made["id"], "--id", "w", kind="policy_denied", word=name)
        tree(box, made, name).unlink()
    box.write(tree(box, made, "AGENTS.md"), "rules")
    box.link(tree(box, made, "workspaces", "w"), outside)
    refused(cordon, "workspace", "create", made["id"], "--id", "w", kind="conflict", word="not a directory")
    refused(cordon, "workspace", "get", made["id"], "w", kind="not_found")
    tree(box, made, "workspaces", "w").unlink()
    ask(cordon, "workspace", "create", made["id"], "--id", "w")
    copy = tree(box, made, "workspaces", "w", "AGENTS.md")
    copy.unlink()
    box.link(copy, victim)
    ask(cordon, "workspace", "sync", made["id"], "w")
    assert not copy.is_symlink() and copy.read_text() == "rules"
    assert victim.read_text() == "untouched" and list(outside.iterdir()) == []
    copy.unlink()
    box.link(tree(box, made, "metadata.json.new"), victim)
    tree(box, made, "metadata.json").unlink()
    box.link(tree(box, made, "metadata.json"), victim)
    ask(cordon, "project", "update", made["id"], "--description", "x")
    assert victim.read_text() == "untouched"


def test_a_deleted_workspace_is_gone_however_it_was_locked_up(box, cordon, project):
    made = project()
    ask(cordon, "workspace", "create", made["id"], "--id", "w")
    where = tree(box, made, "workspaces", "w")
    box.write(where / "deep" / "file", "x")
    box.link(where / "out", box.home)
    box.write("home/kept", "kept")
    for path in (where / "deep", where):
        path.chmod(0)
    assert ask(cordon, "workspace", "delete", made["id"], "w")["deleted"] is True
    assert not where.exists()
    assert (box.home / "kept").read_text() == "kept"
    assert ask(cordon, "project", "delete", made["id"])["deleted"] is True
    assert list((box.state / "projects").iterdir()) == []
    assert list((box.state / "state" / "projects").iterdir()) == []


def test_hostile_names_reach_no_terminal(box, cordon, project):
    refused(cordon, "project", "create", "a\x1b]0;evil\x07", status=2, kind="usage", word="control characters")
    ask(cordon, "project", "create", "bidi \u202e name")
    shown = cordon("project", "list").stdout
    assert "\u202e" not in shown and "\\u{202e}" in shown


def test_lists_are_tables_on_a_terminal_and_lines_elsewhere(box, cordon, project):
    made = project()
    assert cordon("project", "list").stdout.split("\t")[0] == made["id"]
    main, other = pty.openpty()
    process = cordon.start("project", "list", stdout=other)
    process.wait(10)
    os.close(other)
    shown = os.read(main, 65536).decode()
    os.close(main)
    assert "ID " in shown and made["id"][:8] in shown


def test_projects_are_found_by_part_of_their_name(cordon):
    for name in ("Alpha", "beta", "alphabet"):
        ask(cordon, "project", "create", name)
    assert [p["name"] for p in ask(cordon, "project", "list", "--name-contains", "ALPHA")["projects"]] == ["Alpha", "alphabet"]
    cut = ask(cordon, "project", "list", "--limit", "1")
    assert [p["name"] for p in cut["projects"]] == ["Alpha"] and cut["total"] == 3


def test_wrong_usage_is_said_so(cordon):
    for args in (
        ("project", "create"),
        ("project", "get"),
        ("project", "get", "a", "b"),
        ("project", "update", "00000000-0000-4000-8000-000000000000"),
        ("project", "list", "x"),
        ("project", "list", "--limit", "0"),
        ("project", "create", "x", "--memory", "much"),
        ("project", "create", "x", "--env", "novalue"),
        ("workspace", "create"),
        ("workspace", "delete", "one"),
    ):
        refused(cordon, *args, status=2, kind="usage")
    done = cordon("project", "create", "x", "--github-token", "t")
    assert done.returncode == 2
