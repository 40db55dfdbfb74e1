# SPDX-License-Identifier: Apache-2.0
"""Orchestrators: what their agents see and what is on the host, by the rules and acceptance criteria of their specification."""
import json
import os
import stat
import time

import pytest

from support import poll


class Orchestra:
    """Settings with areas, and commands about them."""

    def __init__(self, box, cordon):
        self.box = box
        self.cordon = cordon
        self.settings = box.state / "config.yaml"

    def __call__(self, *args, status=0, **options):
        done = self.cordon(*args, **options)
        assert done.returncode == status, done
        return done

    def ask(self, *args, **options):
        return self(*args, "--json", **options).json()

    def refused(self, *args, status=1, **options):
        """The errors of a command that must fail, and must leave the settings alone."""
        before = self.settings.read_bytes() if self.settings.exists() else None
        done = self(*args, "--json", status=status, **options)
        assert (self.settings.read_bytes() if self.settings.exists() else None) == before
        return [json.loads(line) for line in done.stderr.splitlines()]

    def area(self, key, **files):
        path = self.box.mkdir(f"areas/{key}")
        for name, text in files.items():
            self.box.write(f"areas/{key}/{name}", text)
        self("shared", "add", key, str(path), "--description", f"The {key}")
        return path

    def add(self, orchestrator, *grants):
        self("orchestrator", "add", orchestrator)
        for grant in grants:
            self("orchestrator", "grant-shared-access", orchestrator, *grant.split())
        return self.box.state / "workspaces" / orchestrator

    def agent(self, orchestrator, script, *options, status=0):
        """What a shell prints that runs as the agent."""
        return self("orchestrator", "run", *options, orchestrator, "--", "sh", "-c", script, status=status)


@pytest.fixture
def orchestra(box, cordon):
    return Orchestra(box, cordon)


def visible(areas):
    """A script that prints every area that can be seen, by either of its names."""
    return " ".join(f"ls -d {path} shared/{path.name} 2>/dev/null;" for path in areas) + f"ls {areas[0].parent} 2>/dev/null; ls shared; "


# ---- private workspaces ----


def test_every_orchestrator_has_a_private_workspace_with_its_file(orchestra, box):
    done = orchestra("orchestrator", "add", "alpha")
    private = box.state / "workspaces" / "alpha"
    assert done.stdout.splitlines() == ["orchestrator added", "id=alpha", f"private_workspace={private}", f"config={private}/orchestrator.yaml"]
    assert stat.S_IMODE(private.stat().st_mode) == 0o700 and stat.S_IMODE(private.parent.stat().st_mode) == 0o700
    assert orchestra("orchestrator", "show", "alpha").stdout.splitlines()[-1] == "shared_access="
    assert (private / "orchestrator.yaml").read_text().splitlines()[1] == "id: alpha"
    assert orchestra("config", "validate").stdout == "Configuration valid (1 orchestrators, 0 shared areas, 0 channel profiles)\n"
    # A second time changes nothing, and makes what is missing.
    (private / "orchestrator.yaml").write_text("mine\n")
    before = orchestra.settings.read_bytes()
    orchestra("orchestrator", "add", "alpha")
    assert orchestra.settings.read_bytes() == before and (private / "orchestrator.yaml").read_text() == "mine\n"
    (private / "orchestrator.yaml").unlink()
    orchestra("orchestrator", "add", "alpha")
    orchestra("config", "validate")


def test_the_override_decides_the_private_workspace_and_else_the_default(orchestra, box):
    default = orchestra.add("alpha")
    (default / "data").write_text("kept")
    other = box.path / "elsewhere" / "alpha"
    done = orchestra("orchestrator", "set-private-workspace", "alpha", str(other))
    assert done.stdout.splitlines() == ["orchestrator updated", "id=alpha", f"private_workspace={other}", f"old_private_workspace={default}"]
    assert stat.S_IMODE(other.stat().st_mode) == 0o700 and (default / "data").read_text() == "kept"
    assert orchestra.agent("alpha", "pwd; ls").stdout.split() == [str(other), "orchestrator.yaml", "shared", "work"]
    done = orchestra("orchestrator", "unset-private-workspace", "alpha")
    assert f"private_workspace={default}" in done.stdout.splitlines()
    assert orchestra.agent("alpha", "cat data; pwd").stdout == f"kept{default}\n"
    # workspaces_path moves all that have no override.
    box.write("state/config.yaml", f"workspaces_path: {box.path}/w\n" + orchestra.settings.read_text(), mode=0o600)
    assert orchestra.ask("orchestrator", "show", "alpha")["private_workspace"] == f"{box.path}/w/alpha"


def test_removing_takes_the_entry_and_keeps_the_data(orchestra):
    private = orchestra.add("alpha")
    orchestra.add("beta")
    orchestra("channel-profile", "add", "desk", "slack", "alpha")
    (private / "data").write_text("kept")
    assert "desk" in orchestra.refused("orchestrator", "remove", "alpha")[0]["message"]
    orchestra("channel-profile", "set-orchestrator", "desk", "beta")
    assert orchestra("orchestrator", "remove", "alpha").stdout.splitlines() == ["orchestrator removed", "id=alpha", f"private_workspace={private}"]
    assert (private / "data").read_text() == "kept"
    assert [o["id"] for o in orchestra.ask("orchestrator", "list")] == ["beta"]
    orchestra("orchestrator", "remove", "alpha")
    orchestra("orchestrator", "run", "alpha", "--", "true", status=125)


# ---- what agents see ----


def test_an_orchestrator_with_no_grants_sees_only_its_private_workspace(orchestra):
    areas = [orchestra.area("docs", f="d"), orchestra.area("specs", f="s")]
    private = orchestra.add("alpha")
    done = orchestra.agent("alpha", visible(areas) + f"echo new > made; cat {areas[0]}/f; ls {private.parent}; ls {private.parent.parent}")
    # Of the directories above, only the way to the private workspace is there.
    assert done.stdout.split() == ["alpha", "workspaces"]
    assert (private / "made").read_text() == "new\n"


def test_an_orchestrator_with_grants_sees_private_plus_exactly_these(orchestra, box):
    docs, specs, secret = (orchestra.area(key, f=key) for key in ("docs", "specs", "secret"))
    private = orchestra.add("alpha", "docs", "specs --read-only")
    orchestra.add("beta", "secret")
    done = orchestra.agent("alpha", visible([docs, specs, secret]))
    assert done.stdout.split() == [str(docs), "shared/docs", str(specs), "shared/specs", "docs", "specs", "docs", "specs"]
    done = orchestra.agent(
        "alpha",
        f"cat shared/docs/f shared/specs/f; echo a > shared/docs/a; echo b > {docs}/b; echo c > shared/specs/c; echo d > {specs}/d; rm {specs}/f;"
        f"cat {secret}/f; rmdir shared/docs; mv shared moved; echo $CORDON_ORCHESTRATOR; echo $CORDON_SHARED",
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "docsspecsalpha"
    assert json.loads(lines[1]) == [
        {"name": "docs", "path": str(docs), "mount": f"{private}/shared/docs", "access": "read-write", "description": "The docs"},
        {"name": "specs", "path": str(specs), "mount": f"{private}/shared/specs", "access": "read-only", "description": "The specs"},
    ]
    # The proof is on the host: no copies, no links, nothing changed where it may only be read.
    assert sorted(os.listdir(docs)) == ["a", "b", "f"] and os.listdir(specs) == ["f"] and os.listdir(secret) == ["f"]
    assert sorted(os.listdir(private / "shared")) == ["docs", "specs"] and not os.listdir(private / "shared" / "docs")
    # The attempt at an area without a grant is refused and logged.
    log = [json.loads(line) for line in orchestra("audit", "--json").stdout.splitlines()]
    assert [r for r in log if r.get("path") == f"{secret}/f" and r.get("decision") == "deny" and r["orchestrator_id"] == "alpha"], log
    # So is every change of who may use what.
    orchestra("orchestrator", "revoke-shared-access", "alpha", "docs")
    orchestra.refused("orchestrator", "grant-shared-access", "alpha", "nothing")
    log = [json.loads(line) for line in orchestra("audit", "--json").stdout.splitlines()]
    assert [(r["event"], r["op"], r["orchestrator_id"], r["rule"], r.get("path")) for r in log if r.get("op") in ("grant", "revoke")] == [
        ("grant", "grant", "alpha", "docs", str(docs)),
        ("grant", "grant", "alpha", "specs", str(specs)),
        ("grant", "grant", "beta", "secret", str(secret)),
        ("grant", "revoke", "alpha", "docs", str(docs)),
        ("refusal", "grant", "alpha", "nothing", None),
    ]


def test_a_revoked_area_is_gone_at_the_next_step(orchestra):
    docs, specs = orchestra.area("docs", f="d"), orchestra.area("specs", f="s")
    private = orchestra.add("alpha", "docs", "specs")
    assert orchestra.agent("alpha", "cat shared/docs/f").stdout == "d"
    assert orchestra("orchestrator", "revoke-shared-access", "alpha", "docs").stdout.splitlines() == ["shared access revoked", "id=alpha", "shared_key=docs", "ended="]
    done = orchestra.agent("alpha", visible([docs, specs]) + f"cat {docs}/f shared/docs/f; true")
    assert done.stdout.split() == [str(specs), "shared/specs", "specs", "specs"]
    assert os.listdir(docs) == ["f"] and os.listdir(private / "shared") == ["specs"]
    # Again is no error; an area that is not defined is one.
    orchestra("orchestrator", "revoke-shared-access", "alpha", "docs")
    assert orchestra.refused("orchestrator", "revoke-shared-access", "alpha", "dosc")[0]["kind"] == "not_found"
    # From read-write to read-only and back.
    orchestra("orchestrator", "grant-shared-access", "alpha", "specs", "--read-only")
    done = orchestra.agent("alpha", "echo x > shared/specs/x", status=2)
    assert "(the shared area specs)\n[WORKSPACE]   To allow it: let the shared area specs be written\n" in done.stderr, done
    orchestra("orchestrator", "grant-shared-access", "alpha", "specs")
    orchestra.agent("alpha", "echo x > shared/specs/x")
    assert sorted(os.listdir(specs)) == ["f", "x"]


def test_revoking_ends_a_running_command_that_has_the_area(orchestra, box, leftovers):
    docs, specs = orchestra.area("docs"), orchestra.area("specs")
    private = orchestra.add("alpha", "docs", "specs")
    orchestra.add("beta", "docs")
    script = "trap 'echo x > ended; exit 7' TERM; touch running; while :; do sleep 0.1; done"
    holder = orchestra.cordon.start("orchestrator", "run", "alpha", "--", "sh", "-c", script)
    poll((private / "running").exists, 60, "the command runs")
    # What others lose, and what is only added, does not matter to it.
    orchestra("orchestrator", "revoke-shared-access", "beta", "docs")
    orchestra("shared", "add", "one", str(box.mkdir("areas/one")), "--description", "x")
    # Neither does a text that is not valid while somebody writes it.
    good = box.write("good", orchestra.settings.read_bytes(), mode=0o600)
    for text in (box.write("bad", "orchestrators: [\n", mode=0o600), good):
        text.replace(orchestra.settings)
        time.sleep(0.2)  # long enough for a command that would end to end
    assert holder.poll() is None
    orchestra("orchestrator", "grant-shared-access", "alpha", "specs", "--read-only")
    _, errors = holder.communicate(timeout=60)
    assert b"the shared area specs was revoked: the command was ended" in errors and (private / "ended").exists()
    leftovers.assert_none()


def test_a_command_that_holds_an_area_is_kept_when_asked_for_and_ended_later(orchestra, box, leftovers):
    docs = orchestra.area("docs")
    private = orchestra.add("alpha", "docs")
    script = "trap 'exit 7' TERM; while :; do echo x >> shared/docs/log; sleep 0.05; done"
    holder = orchestra.cordon.start("orchestrator", "run", "--run-id", "mine", "alpha", "--", "sh", "-c", script)
    poll((docs / "log").exists, 60, "the command runs")
    cover = box.state / "state/steps/run-mine"
    orchestra("gc")
    assert (cover / "mine").is_dir(), "what covers other runs stays while a command runs"
    orchestra("orchestrator", "revoke-shared-access", "alpha", "docs", "--keep-running")
    orchestra("shared", "add", "one", str(box.mkdir("areas/one")), "--description", "x")
    size = (docs / "log").stat().st_size
    poll(lambda: (docs / "log").stat().st_size > size + 6, 60, "it goes on")
    assert holder.poll() is None and orchestra("orchestrator", "run", "alpha", "--", "ls", "shared").stdout == "", "others have no such grant"
    orchestra("orchestrator", "revoke-shared-access", "alpha", "docs")
    _, errors = holder.communicate(timeout=60)
    assert b"the shared area docs was revoked: the command was ended" in errors and (private / "work/runs/mine").is_dir()
    leftovers.assert_none()
    orchestra("gc")
    assert not cover.exists()


def test_execution_starts_in_the_private_root_in_both_modes(orchestra):
    docs = orchestra.area("docs")
    private = orchestra.add("alpha", "docs")
    script = "pwd; echo $CORDON_RUN_WORKSPACE; echo a > work/runs/one/a; echo b > b; echo c > shared/docs/c; echo d > /tmp/d; ls work/runs"
    run = private / "work" / "runs" / "one"
    done = orchestra.agent("alpha", script, "--run-id", "one", "--run-workspace")
    assert done.stdout.split() == [str(private), str(run), "one"]
    assert (run / "a").read_text() == "a\n" and not (private / "b").exists() and (docs / "c").exists()
    done = orchestra.agent("alpha", script, "--run-id", "one")
    assert done.stdout.split() == [str(private), str(run), "one"]
    assert (private / "b").read_text() == "b\n"
    assert stat.S_IMODE(run.stat().st_mode) == 0o700


def test_a_dry_run_prints_the_plan_and_makes_no_run(orchestra):
    docs = orchestra.area("docs")
    private = orchestra.add("alpha", "docs --read-only")
    plan = orchestra("orchestrator", "run", "--dry-run", "--json", "--run-id", "one", "alpha", "--", "true").json()
    assert str(docs) in json.dumps(plan) and f"{private}/shared/docs" in json.dumps(plan) and os.listdir(private / "work" / "runs") == []


def test_other_runs_are_not_there(orchestra):
    private = orchestra.add("alpha")
    orchestra.agent("alpha", "echo mine > work/runs/one/f", "--run-id", "one")
    for options in (["--run-id", "two"], ["--run-id", "two", "--run-workspace"], []):
        done = orchestra.agent("alpha", "ls work/runs; cat work/runs/one/f; echo x > work/runs/one/x; mkdir work/runs/three; mv work w; rm -rf work/runs; true", *options)
        assert done.stdout.split() == (["two"] if options else [])
    assert sorted(os.listdir(private / "work" / "runs")) == ["one", "two"] and (private / "work" / "runs" / "one" / "f").read_text() == "mine\n"


def test_definitions_are_read_only_and_records_out_of_sight(orchestra, box):
    private = orchestra.add("alpha")
    for name in ("prompts", "workflows"):
        box.write(f"state/workspaces/alpha/{name}/x.md", "theirs")
    before = (private / "orchestrator.yaml").read_bytes()
    done = orchestra.agent(
        "alpha",
        "echo x > orchestrator.yaml; mv orchestrator.yaml y; rm -f orchestrator.yaml; echo x > prompts/x.md; echo x > workflows/new; mv prompts p; chmod 777 prompts;"
        f"cat prompts/x.md; ls {box.state}; cat {box.state}/config.yaml; ls {box.state}/state; true",
    )
    assert done.stdout.split() == ["theirsworkspaces"]
    assert (private / "orchestrator.yaml").read_bytes() == before
    assert os.listdir(private / "prompts") == ["x.md"] and (private / "prompts" / "x.md").read_text() == "theirs" and os.listdir(private / "workflows") == ["x.md"]


def test_the_environment_is_built_from_nothing(orchestra):
    orchestra.add("alpha")
    done = orchestra("orchestrator", "run", "alpha", "--", "env", env={"SLACK_BOT_TOKEN": "xoxb-1", "ANTHROPIC_API_KEY": "k", "FOO": "1"})
    assert not {"SLACK_BOT_TOKEN", "ANTHROPIC_API_KEY", "FOO"} & {line.split("=")[0] for line in done.stdout.splitlines()}


def test_a_place_that_is_taken_is_an_error_and_an_old_link_to_the_area_is_not(orchestra, box):
    docs = orchestra.area("docs", f="d")
    specs = orchestra.area("specs")
    private = orchestra.add("alpha", "docs")
    (private / "shared").mkdir()
    (private / "shared" / "docs").symlink_to(docs)
    (private / "shared" / "specs").symlink_to(specs)
    box.own(private / "shared")
    assert orchestra.agent("alpha", "cat shared/docs/f; ls shared").stdout.split() == ["ddocs"]
    assert (private / "shared" / "docs").is_dir() and not (private / "shared" / "docs").is_symlink()
    assert not os.path.lexists(private / "shared" / "specs")
    for elsewhere in ("/etc", specs):
        if not (private / "shared" / "docs").is_symlink():
            (private / "shared" / "docs").rmdir()
        else:
            (private / "shared" / "docs").unlink()
        (private / "shared" / "docs").symlink_to(elsewhere)
        (private / "shared" / "mine").unlink(missing_ok=True)
        (private / "shared" / "mine").symlink_to(docs)
        box.own(private / "shared")
        done = orchestra("orchestrator", "run", "alpha", "--", "true", status=125)
        assert "something else stands there" in done.stderr and os.readlink(private / "shared" / "docs") == str(elsewhere)
        assert os.readlink(private / "shared" / "mine") == str(docs), "a link that nobody but a person made stays"
