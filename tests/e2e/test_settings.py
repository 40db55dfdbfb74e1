# SPDX-License-Identifier: Apache-2.0
"""config.yaml: every error at its place, every other byte kept, places that no area may have, domains, and many writers at once."""
import json
import os
import random
import re
import subprocess
import sys
import xml.etree.ElementTree

import pytest

from support import TESTS, TOP

sys.path.insert(0, str(TESTS / "e2e"))
from test_orchestrators import Orchestra  # noqa: E402

# Every key of the published examples and of their specification, the older form of areas included.
ORIGINAL = """# where orchestrators live
workspaces_path: {top}/claw/workspaces
shared_workspaces:
  shared: {top}/one
  docs: {top}/two          # the manuals
  data: {{path: {top}/three, description: Numbers}}
orchestrators:
  engineering_orchestrator:
    private_workspace: {top}/claw/workspaces/engineering_orchestrator
    shared_access: [shared, docs, data]

  product_orchestrator:
    private_workspace: {top}/claw/workspaces/product_orchestrator
    shared_access: [docs]
channel_profiles:
  engineering_profile:
    channel: slack
    slack_app_user_id: U123
    orchestrator_id: engineering_orchestrator
    require_mention_in_channels: true
    thread_response_mode: always_reply
  product_profile: {{channel: discord, orchestrator_id: product_orchestrator, workflow: answer, identity: {{name: P}}}}
monitoring:
  heartbeat_interval: 3600
channels:
  discord: {{enabled: true}}
  slack:
    enabled: false
    include_im_conversations: true
    allowlisted_channels: []
    inbound_mode: socket
auth_sync: {{enabled: false, sources: {{}}}}
memory: {{enabled: true}}
local_llm: {{}}
"""
COMMENTED = """# settings of the team

shared_workspaces:   # what is shared
  docs:
    path: {top}/two   # manuals
    description: 'The docs'
# --- people ---
orchestrators:
  # answers mails
  alpha:
    shared_access:   # keep short
      - docs   # needed

  beta: {{shared_access: []}}   # new
  gamma:
# the end
"""


@pytest.fixture
def orchestra(box, cordon):
    for name in ("one", "two", "three", "four"):
        box.mkdir(name)
    return Orchestra(box, cordon)


@pytest.fixture
def settings(orchestra, box):
    def write(text):
        box.write("state/config.yaml", text.format(top=box.path), mode=0o600)
        return orchestra.settings

    return write


def test_the_originals_settings_are_read_unchanged(orchestra, settings, box):
    file = settings(ORIGINAL)
    for name in ("engineering_orchestrator", "product_orchestrator"):
        orchestra("orchestrator", "add", name)
    assert file.read_text() == ORIGINAL.format(top=box.path)
    done = orchestra("config", "validate")
    assert done.stdout == "Configuration valid (2 orchestrators, 3 shared areas, 2 channel profiles)\n"
    told = re.findall(r"config\.yaml:\d+:\d+: (\w+)", done.stderr)
    assert sorted(told) == sorted(
        ["monitoring", "channels", "auth_sync", "memory", "local_llm", "slack_app_user_id", "require_mention_in_channels", "thread_response_mode", "identity"]
    )
    shown = orchestra.ask("config", "show")
    assert shown["shared_workspaces"]["docs"] == {
        "path": str(box.path / "two"),
        "description": "docs",
        "granted_to": ["engineering_orchestrator", "product_orchestrator"],
    }
    profile = orchestra.ask("channel-profile", "show", "product_profile")
    assert profile["default_workflow"] == "answer" and profile["identity"] == {"name": "P"}
    # A change keeps all of it.
    orchestra("orchestrator", "grant-shared-access", "product_orchestrator", "data", "--read-only")
    assert file.read_text() == ORIGINAL.format(top=box.path).replace("shared_access: [docs]", "shared_access: [docs, {name: data, access: read-only}]")


def test_import_takes_over_the_originals_file_with_a_report(orchestra, box):
    other = box.write("claw.yaml", ORIGINAL.format(top=box.path).replace("workspaces_path", "workspace_path", 1))
    done = orchestra("config", "import", str(other))
    assert "settings imported" in done.stdout and "monitoring is kept, and not used here" in done.stderr and "engineering_orchestrator has no file" in done.stderr
    assert f"workspaces_path: {box.path}/claw/workspaces" in orchestra.settings.read_text() and "# the manuals" in orchestra.settings.read_text()
    assert orchestra.refused("config", "import", str(other))[0]["kind"] == "conflict"
    bad = box.write("bad.yaml", "shared_workspaces: {x: /nowhere}\n")
    orchestra.settings.unlink()
    assert "does not exist" in orchestra.refused("config", "import", str(bad))[0]["message"]


def test_all_errors_are_reported_in_one_pass_at_their_places(orchestra, settings, box):
    file = settings(
        "shared_workspaces:\n  gone: {{path: {top}/gone, description: x}}\n  two: {{path: {top}/two, description: x}}\n  in: {{path: {top}/two/in, description: x}}\n"
        "orchestrators:\n  alpha: {{private_workspace: /, shared_access: []}}\n"
    )
    box.mkdir("two/in")
    errors = orchestra.refused("config", "validate")
    assert [error["where"] for error in errors[:3]] == [f"{file}:{line}:{column}" for line, column in ((2, 16), (4, 14), (6, 30))]
    assert all(error["kind"] == "config" and error["message"] for error in errors[:3]) and [error["kind"] for error in errors[3:]] == ["not_found"]
    # No other command begins with such settings, and agents are not started.
    for command in (["orchestrator", "add", "beta"], ["orchestrator", "list"], ["access"], ["config", "show"]):
        assert len(orchestra.refused(*command)) == 3
    orchestra("orchestrator", "run", "alpha", "--", "true", status=125)
    # What takes something away works all the same.
    orchestra("shared", "remove", "gone")
    orchestra("shared", "remove", "in")
    orchestra("orchestrator", "remove", "alpha")
    orchestra("config", "validate")


def test_places_that_no_area_may_have(orchestra, box):
    orchestra("shared", "add", "two", str(box.path / "two"), "--description", "x")
    private = orchestra.add("alpha")
    box.mkdir("two/inside")
    box.write("file")
    box.link("dangling", "/nowhere/at/all")
    foreign = box.mkdir("foreign/mine").parent
    box.mkdir("free/mine")
    (box.path / "free").chmod(0o777)
    os.chown(foreign, 54322, 54322) if os.getuid() == 0 else None
    for path, why in {
        "/": "whole file system",
        **{path: "part of the system" for path in ("/proc", "/sys/kernel", "/dev", "/etc", "/usr/share", "/bin")},
        str(box.home): "holds your home directory",
        str(box.path): "holds",
        str(box.state): "cordon's own records",
        str(box.state / "state"): "cordon's own records",
        str(private): "cordon's own records",
        str(box.path / "two" / "inside"): "lies in the shared area two",
        str(box.path / "nothing"): "does not exist",
        str(box.path / "dangling"): "does not exist",
        str(box.path / "file"): "not a directory",
        **({str(foreign): "belongs to another user", str(foreign / "mine"): "lies in a directory of others"} if os.getuid() == 0 else {}),
        str(box.path / "free" / "mine"): "lies in a directory of others",
    }.items():
        errors = orchestra.refused("shared", "add", "new", path, "--description", "x")
        assert any(why in error["message"] for error in errors), (path, errors)
    for key in ("a b", "../x", "", "x/y", "ä", "a" * 65):
        assert orchestra.refused("shared", "add", key, str(box.path / "one"), "--description", "x", status=2)[0]["kind"] == "usage"
    assert "must be absolute" in orchestra.refused("shared", "add", "one", "relative", "--description", "x", status=2)[0]["message"]
    orchestra("shared", "add", "one", str(box.path / "one"), status=2)
    # A path through a link is stored as what it leads to.
    box.link("link", box.path / "one")
    assert f"path={box.path}/one" in orchestra("shared", "add", "one", f"{box.path}/./link/../link/", "--description", "x").stdout.splitlines()


def test_places_that_no_private_workspace_may_have(orchestra, box):
    private = orchestra.add("alpha")
    orchestra.add("beta")
    orchestra("shared", "add", "two", str(box.path / "two"), "--description", "x")
    box.mkdir("open", mode=0o777)
    for path, why in {
        "/": "whole file system",
        str(box.home): "holds your home directory",
        str(box.state): "cordon's own records",
        str(box.state / "state" / "x"): "cordon's own records",
        str(box.state / "workspaces"): "cordon's own records",
        str(private): "is the same directory as",
        str(private / "inside"): "lies in the private workspace of alpha",
        str(box.path / "two" / "x"): "lies in the shared area two",
        str(box.path / "open"): "other users can write",
    }.items():
        errors = orchestra.refused("orchestrator", "set-private-workspace", "beta", path)
        assert any(why in error["message"] for error in errors), (path, errors)
    for mode in (0o770, 0o707):
        place = box.mkdir("open", mode=mode)
        place.chmod(mode)
        assert "other users can write to the private workspace of beta" in orchestra.refused("orchestrator", "set-private-workspace", "beta", str(place))[0]["message"] and list(place.iterdir()) == []
    assert not (box.path / "two" / "x").exists() and not (private / "inside").exists()


def test_a_link_that_agents_could_turn_is_no_way_to_an_area(orchestra, settings, box):
    settings(
        "shared_workspaces:\n  two: {{path: {top}/two, description: x}}\n  four: {{path: {top}/two/link, description: x}}\n"
        "orchestrators:\n  alpha: {{shared_access: [two, four]}}\n"
    )
    box.link("two/link", box.path / "four")
    error = orchestra.refused("orchestrator", "list")[0]
    assert "which agents that use the shared area two could change" in error["message"] and error["where"].endswith(":3:16")
    orchestra("orchestrator", "run", "alpha", "--", "true", status=125)
    # A link that the caller alone can change is followed, and reported.
    settings("shared_workspaces:\n  four: {{path: {top}/way, description: x}}\n")
    box.link("way", box.path / "four")
    assert f"{box.path}/way leads to {box.path}/four" in orchestra("config", "validate").stderr
    if os.getuid() == 0:
        os.chown(box.path / "way", 54322, 54322, follow_symlinks=False)
        assert "belongs to another user" in orchestra.refused("config", "validate")[0]["message"]


def test_misconfigured_shared_paths_fail_validation_and_every_start(orchestra, box):
    area = orchestra.area("docs")
    orchestra.add("alpha", "docs")
    good = orchestra.settings.read_text()
    for path, why in ((f"{area}-gone", "does not exist"), ("relative/docs", "must be an absolute path"), (str(box.write("areas/file")), "is not a directory"), (str(box.path / "areas"), None)):
        text = good.replace(str(area), path)
        if why is None:  # another area in it
            text, why = text.replace("shared_workspaces:", f"shared_workspaces:\n  inner: {{path: {area}, description: d}}"), "lies in the shared area"
        box.write(orchestra.settings, text, mode=0o600)
        for words, status in ((["config", "validate"], 1), (["orchestrator", "show", "alpha"], 1), (["orchestrator", "run", "alpha", "--", "true"], 125), (["workflow", "run", "alpha"], 125)):
            done = orchestra.cordon(*words)
            assert done.returncode == status and why in done.stderr and f"{orchestra.settings.name}:" in done.stderr, (path, done)


def test_settings_that_agents_could_change_are_refused(orchestra, box):
    area = orchestra.area("docs")
    private = orchestra.add("alpha", "docs")
    text = orchestra.settings.read_text()
    for place, why in ((area, "the settings lie in the shared area docs"), (private, "the settings lie in the private workspace of alpha")):
        named = box.write(place / "sub/config.yaml", text, mode=0o600)
        through = box.path / "named.yaml"
        through.unlink(missing_ok=True)
        through.symlink_to(named)
        for path in (named, through):
            done = orchestra.cordon("orchestrator", "run", "--config", str(path), "alpha", "--", "true")
            assert done.returncode == 125 and why in done.stderr, done
        done = orchestra.cordon("orchestrator", "revoke-shared-access", "--config", str(named), "alpha", "docs")
        assert done.returncode == 0, "taking away works in any settings"
    good = box.write("elsewhere/config.yaml", text, mode=0o600)
    assert orchestra.cordon("orchestrator", "run", "--config", str(good), "alpha", "--", "ls", "shared").stdout == "docs\n"


def test_edits_keep_comments_and_every_other_byte(orchestra, settings, box):
    file = settings(COMMENTED)
    text = COMMENTED.format(top=box.path)
    orchestra("shared", "add", "one", str(box.path / "one"), "--description", 'with "quotes": # and more', "--domain", "no")
    one = f"  one:\n    path: {box.path}/one\n    description: \"with \\\"quotes\\\": # and more\"\n    domain: \"no\"\n"
    text = text.replace("    description: 'The docs'\n", "    description: 'The docs'\n" + one)
    assert file.read_text() == text
    for orchestrator in ("alpha", "beta", "gamma"):
        orchestra("orchestrator", "grant-shared-access", orchestrator, "one", "--read-only")
    grant = "{name: one, access: read-only}"
    text = text.replace("      - docs   # needed\n", f"      - docs   # needed\n      - {grant}\n")
    text = text.replace("  beta: {shared_access: []}   # new\n", f"  beta: {{shared_access: [{grant}]}}   # new\n")
    text = text.replace("  gamma:\n", f"  gamma:\n    shared_access:\n      - {grant}\n")
    assert file.read_text() == text
    orchestra("orchestrator", "revoke-shared-access", "alpha", "docs")
    text = text.replace("      - docs   # needed\n", "")
    assert file.read_text() == text
    orchestra("orchestrator", "revoke-shared-access", "alpha", "one")
    orchestra("orchestrator", "revoke-shared-access", "gamma", "one")
    text = text.replace(f"    shared_access:   # keep short\n      - {grant}\n", "    shared_access: []   # keep short\n").replace(f"shared_access:\n      - {grant}\n", "shared_access: []\n")
    assert file.read_text() == text
    orchestra("orchestrator", "grant-shared-access", "alpha", "docs")
    text = text.replace("    shared_access: []   # keep short\n", "    shared_access:   # keep short\n      - docs\n")
    assert file.read_text().replace("shared_access:    #", "shared_access:   #") == text
    orchestra("orchestrator", "remove", "gamma")
    assert file.read_text().endswith("# new\n# the end\n") and "# answers mails" in file.read_text()


def test_a_command_that_fails_changes_nothing_and_one_without_effect_succeeds(orchestra, box):
    one = str(box.path / "one")
    orchestra.refused("orchestrator", "grant-shared-access", "alpha", "docs")
    assert not orchestra.settings.exists()
    orchestra("shared", "add", "one", one, "--description", "x")
    orchestra.add("alpha", "one")
    before = orchestra.settings.read_bytes()
    for command in (["shared", "add", "one", one, "--description", "x"], ["orchestrator", "add", "alpha"], ["orchestrator", "grant-shared-access", "alpha", "one"]):
        orchestra(*command)
        assert orchestra.settings.read_bytes() == before
    assert orchestra.refused("shared", "remove", "one")[0]["kind"] == "conflict"
    assert orchestra.refused("shared", "add", "one", str(box.path / "two"), "--description", "x")[0]["kind"] == "conflict"
    assert "did you mean 'one'" in orchestra.refused("orchestrator", "grant-shared-access", "alpha", "onee")[0]["hint"]
    assert orchestra.refused("channel-profile", "add", "p", "fax", "alpha")[0]["kind"] == "config"
    for path in (os.fsencode(box.path) + b"/\xff", os.fsencode(box.path) + b"/a\nb"):
        done = orchestra.cordon("orchestrator", "set-private-workspace", "alpha", path)
        assert done.returncode in (0, 2) and (done.returncode == 0) == (b"\n" in path), done
    orchestra("orchestrator", "unset-private-workspace", "alpha")
    assert orchestra.settings.read_bytes() == before
    # Where the private workspace can't be made, there is no orchestrator either.
    box.write("state/workspaces/beta")
    orchestra.refused("orchestrator", "add", "beta")
    # A directory that cannot be written changes nothing.
    box.write("ro/config.yaml", before, mode=0o600)
    if not box.who.is_root:
        (box.path / "ro").chmod(0o500)
        orchestra("orchestrator", "add", "gamma", "--config", str(box.path / "ro" / "config.yaml"), status=1)
        assert not (box.state / "workspaces" / "gamma").exists()


def test_another_settings_file_and_dotted_names(orchestra, box):
    other = box.write("other.yaml", "# mine\n", mode=0o600)
    orchestra("shared.add", "one", str(box.path / "one"), "--description", "x", "--config", str(other))
    env = {"CORDON_CONFIG": str(other)}
    assert orchestra("config", "path", env=env).stdout == f"{other}\n"
    orchestra("orchestrator.add", "alpha", env=env)
    orchestra("orchestrator.grant_shared_access", "alpha", "one", env=env)
    assert orchestra("channel_profile.list", env=env).stdout == "" and not orchestra.settings.exists()
    assert other.read_text().startswith("# mine\n") and orchestra("access", env=env).stdout.splitlines()[-1].split() == ["alpha", "rw"]
    other.chmod(0o666)
    assert "other users can write" in orchestra("orchestrator", "list", env=env, status=1).stderr
    orchestra("orchestrator", "list", "--config", str(box.path / "missing.yaml"), status=1)


def test_a_domain_keeps_areas_of_others_out_unless_the_grant_says_so(orchestra, box):
    for key, domain in (("one", "sales"), ("two", "support"), ("three", None)):
        orchestra("shared", "add", key, str(box.path / key), "--description", key, *(["--domain", domain] if domain else []))
    orchestra.add("alpha", "two", "three")
    orchestra("channel-profile", "add", "desk", "slack", "alpha", "--domain", "support")
    error = orchestra.refused("orchestrator", "grant-shared-access", "alpha", "one")[0]
    assert "support" in error["message"] and "sales" in error["message"]
    orchestra("orchestrator", "grant-shared-access", "alpha", "one", "--cross-domain", "--read-only")
    orchestra.add("beta", "one")
    assert "sales" in orchestra.refused("channel-profile", "add", "mail", "local", "beta", "--domain", "support")[0]["message"]
    assert "sales" in orchestra.refused("channel-profile", "set-orchestrator", "desk", "beta")[0]["message"]
    # Everything about access in one view.
    assert orchestra("access").stdout == (
        "ORCHESTRATOR  one  two  three\nalpha         ro!  rw   rw\nbeta          rw   -    -\n"
        "! belongs to another domain than a channel profile of the orchestrator\n"
    )
    assert orchestra.ask("access") == {
        "access": {"alpha": {"one": "ro", "two": "rw", "three": "rw"}, "beta": {"one": "rw", "two": "none", "three": "none"}},
        "crossings": [{"orchestrator": "alpha", "area": "one", "area_domain": "sales", "profile_domains": ["support"]}],
    }
    picture = xml.etree.ElementTree.fromstring(orchestra("access", "--svg").stdout)
    cells = [rect.get("class") for rect in picture.iter("{http://www.w3.org/2000/svg}rect") if rect.get("width") == "32"]
    assert cells == ["ro cross", "rw", "rw", "rw", "none", "none"]


def test_agents_of_an_orchestrator_are_added_and_removed_in_its_file(orchestra):
    private = orchestra.add("alpha")
    file = private / "orchestrator.yaml"
    before = file.read_text()
    orchestra("orchestrator-agent", "add", "alpha", "writer", "--provider", "openai", "--model", "gpt-5", "--can-orchestrate")
    lines = "  writer:\n    provider: openai\n    model: \"gpt-5\"\n    can_orchestrate_workflows: true\n"
    assert file.read_text().replace("model: gpt-5", 'model: "gpt-5"') == before.replace("    model: sonnet\n\nworkflows", f"    model: sonnet\n{lines}\nworkflows")
    assert orchestra.ask("orchestrator-agent", "show", "alpha", "writer")["provider"] == "openai"
    orchestra("orchestrator", "set-selector-agent", "alpha", "writer")
    assert "selector_agent: writer\n" in file.read_text()
    changed = file.read_bytes()
    orchestra("orchestrator-agent", "remove", "alpha", "writer", status=1)
    orchestra("orchestrator-agent", "add", "alpha", "x", "--provider", "nobody", status=1)
    orchestra("orchestrator", "set-selector-agent", "alpha", "worker", status=1)
    orchestra("orchestrator", "set-selection-max-retries", "alpha", "0", status=2)
    assert "there is no workflow nope" in orchestra("orchestrator", "set-default-workflow", "alpha", "nope", status=1).stderr
    assert "worker" in orchestra("orchestrator-agent", "remove", "alpha", "worker", status=1).stderr
    assert file.read_bytes() == changed
    orchestra("orchestrator", "set-selection-max-retries", "alpha", "5")
    orchestra("orchestrator", "set-selector-agent", "alpha", "router")
    orchestra("orchestrator-agent", "remove", "alpha", "writer")
    assert file.read_text() == before.replace("selection_max_retries: 2", "selection_max_retries: 5")
    # A link or a FIFO in its place is never followed, and nobody waits for it.
    file.unlink()
    file.symlink_to("/etc/passwd")
    assert "link" in orchestra("config", "validate", status=1).stderr
    file.unlink()
    os.mkfifo(file)
    orchestra("orchestrator-agent", "list", "alpha", status=1)


def test_doctor_says_whether_each_workspace_can_be_written(orchestra, settings, box):
    def state():
        return [end for end in orchestra.cordon("doctor", "--json").json()["front_ends"] if end["name"] == "orchestrators"]

    assert state() == []
    private = orchestra.add("alpha")
    assert state()[0]["state"] == "works"
    if not box.who.is_root:
        private.chmod(0o500)
        assert state()[0]["state"] == "does not work" and "private workspace of alpha" in state()[0]["why"]
    settings("shared_workspaces: {{x: /nowhere/at/all}}\n")
    assert "1 errors in the settings" in state()[0]["why"]


def test_the_example_is_valid(orchestra, box):
    text = (TOP / "examples" / "orchestrators" / "config.yaml").read_text()
    for name in ("manuals", "specs", "prices"):
        box.mkdir(f"srv/{name}")
    example = box.write("example.yaml", text.replace("/srv/", f"{box.path}/srv/"), mode=0o600)
    orchestra("config", "import", str(example))
    assert [line.split() for line in orchestra("access").stdout.splitlines()[1:3]] == [["engineering", "-", "rw", "-"], ["helpdesk", "rw", "ro", "ro!"]]


def many_writers(orchestra, box, orchestrators, areas, writers, rounds):
    """Grants and revokes at random from several processes; each writer has its own pairs, so that the end is known."""
    for area in range(areas):
        box.mkdir(f"many/a{area}")
    text = "shared_workspaces:\n" + "".join(f"  a{n}: {{path: {box.path}/many/a{n}, description: x}}\n" for n in range(areas))
    text += "orchestrators:\n" + "".join(f"  o{n}:   # {n}\n" for n in range(orchestrators))
    box.write("state/config.yaml", text, mode=0o600)
    dice = random.Random(15)
    pairs = [(o, a) for o in range(orchestrators) for a in range(areas)]
    wanted, scripts = {}, []
    for writer in range(writers):
        own, lines = pairs[writer::writers], []
        for _ in range(rounds):
            o, a = dice.choice(own)
            grant = dice.choice(["", "--read-only", None])
            wanted[f"o{o}", f"a{a}"] = {"": "rw", "--read-only": "ro", None: "none"}[grant]
            verb = "revoke-shared-access" if grant is None else "grant-shared-access"
            lines.append(f"{orchestra.cordon.path} orchestrator {verb} o{o} a{a} {grant or ''} >/dev/null || exit 1")
        scripts.append("\n".join(lines))
    started = [box.start("sh", "-c", script, stdout=subprocess.DEVNULL) for script in scripts]
    while any(process.poll() is None for process in started):
        # Whoever reads, at whatever instant, reads whole and valid settings.
        orchestra("orchestrator", "list", "-q")
    assert [process.returncode for process in started] == [0] * writers, [process.stderr.read() for process in started]
    access = orchestra.ask("access")["access"]
    assert {(o, a): value for o, row in access.items() for a, value in row.items()} == {
        (f"o{o}", f"a{a}"): wanted.get((f"o{o}", f"a{a}"), "none") for o, a in pairs
    }
    comments = re.findall(r"^  o\d+:.*# (\d+)$", orchestra.settings.read_text(), re.MULTILINE)
    assert comments == [str(n) for n in range(orchestrators)]
    assert sorted(os.listdir(box.state)) == ["config.yaml", "state"]
    return wanted


def effective(orchestra, orchestrator):
    """The areas that an agent really has."""
    done = orchestra.agent(orchestrator, "for d in shared/*; do test -d $d && { touch $d/w 2>/dev/null && echo ${d#*/} rw || echo ${d#*/} ro; }; done; true")
    return dict(line.split() for line in done.stdout.splitlines())


def test_writers_at_the_same_time_lose_nothing(orchestra, box):
    wanted = many_writers(orchestra, box, orchestrators=6, areas=4, writers=4, rounds=8)
    for o in range(2):
        assert effective(orchestra, f"o{o}") == {a: value for (x, a), value in wanted.items() if x == f"o{o}" and value != "none"}


@pytest.mark.soak
@pytest.mark.limit(300)
@pytest.mark.parametrize("who", ["user"], indirect=True)
def test_a_hundred_orchestrators_and_fifty_areas_under_eight_writers(orchestra, box):
    wanted = many_writers(orchestra, box, orchestrators=100, areas=50, writers=8, rounds=40)
    orchestrators = sorted({o for o, _ in wanted})
    for orchestrator in orchestrators:
        assert effective(orchestra, orchestrator) == {a: value for (x, a), value in wanted.items() if x == orchestrator and value != "none"}
