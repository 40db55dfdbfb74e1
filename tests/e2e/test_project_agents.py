# SPDX-License-Identifier: Apache-2.0
"""Projects for the agents that people use: homes that stay, shares, limits of the original, and the command of today."""
import json

import pytest



def run(sessions, line, *options):
    """Runs a shell line in a session of its own, to its end; gives what it printed."""
    session = sessions.start("--new-session", *options, command=["sh", "-c", line + " 2>&1"])["session_id"]
    sessions.cordon("session", "wait", session)
    return sessions.text(session)


def tenants(sessions):
    for name in ("ann", "bob"):
        sessions.ask("workspace", "create", sessions.project["id"], "--id", name)
    return (["--workspace", "ann"], ["--workspace", "bob"])


def home_of(sessions, workspace):
    return sessions.box.state / "state/projects" / sessions.project["id"] / "homes" / workspace / "home"


@pytest.mark.parametrize("isolation", [["--isolation"], []], ids=["isolated", "shared"])
def test_my_home_is_still_there_tomorrow_and_is_nobody_elses(sessions, isolation):
    sessions.create("--home", "workspace", *isolation)
    ann, bob = tenants(sessions)
    # What the agent itself puts there stays writable: the host executes nothing of it.
    assert run(sessions, "echo secret > ~/.token; mkdir ~/.claude; echo {} > ~/.claude/settings.json; echo x > ~/.bashrc", *ann) == ""
    assert (home_of(sessions, "ann") / ".token").read_text() == "secret\n"
    assert home_of(sessions, "ann").stat().st_mode & 0o777 == 0o700
    assert run(sessions, "cat ~/.token; echo more >> ~/.claude/settings.json && echo y > ~/.bashrc && echo written", *ann) == "secret\nwritten\n"
    # The other tenant looks for it everywhere, and plants links where the next session will look.
    spy = run(sessions, f"ls -A ~; ls {home_of(sessions, 'ann')}; find / -name .token 2>/dev/null; ln -s {home_of(sessions, 'ann')} ~/.link;"
              f" cat ~/.link/.token; ln -sfn {home_of(sessions, 'ann')} $HOME/../home", *bob)
    assert "secret" not in spy and "No such file" in spy, spy
    assert run(sessions, "ls -A ~", *bob) == ".link\n"
    assert (home_of(sessions, "ann") / ".token").read_text() == "secret\n" and not home_of(sessions, "ann").is_symlink()
    # The home goes with its workspace: the next one of that name begins without it.
    sessions.ask("workspace", "delete", sessions.project["id"], "ann")
    assert not home_of(sessions, "ann").parent.exists()
    sessions.ask("workspace", "create", sessions.project["id"], "--id", "ann")
    assert run(sessions, "ls -A ~", *ann) == ""
    sessions.ask("project", "update", sessions.project["id"], "--home", "private")
    assert run(sessions, "ls -A ~; echo x > ~/gone", *bob) == "" and run(sessions, "ls -A ~", *bob) == ""


def test_all_tenants_have_one_home_if_the_operator_says_so(sessions, box):
    shared = box.mkdir(box.path / "agents-home")
    sessions.create("--isolation", "--home", str(shared))
    ann, bob = tenants(sessions)
    assert run(sessions, "echo hello > ~/note", *ann) == ""
    assert run(sessions, "cat ~/note", *bob) == "hello\n" and (shared / "note").read_text() == "hello\n"


def test_agents_read_what_is_shared_read_only_and_write_what_is_shared(sessions, box):
    docs, out = box.mkdir(box.path / "docs"), box.mkdir(box.path / "out")
    box.write(docs / "a.txt", "text\n")
    sessions.create("--isolation", "--share", f"{docs}:/docs:ro", "--share", str(out))
    ann, bob = tenants(sessions)
    assert run(sessions, f"cat /docs/a.txt; echo x > /docs/a.txt; echo made > {out}/f; ls {docs}", *ann).splitlines()[0] == "text"
    assert (docs / "a.txt").read_text() == "text\n" and (out / "f").read_text() == "made\n"
    assert run(sessions, f"cat {out}/f", *bob) == "made\n"
    # What the host would execute is protected in a share that can be written.
    assert "denied" in run(sessions, f"echo evil > {out}/.envrc", *ann).lower() and not (out / ".envrc").exists()
    # The published copy and the session's record name no path of the host.
    published = sessions.top("metadata.json").read_text()
    assert str(docs) not in published and str(box.path) not in published and "shares" not in json.loads(published)
    session = sessions.ask("session", "list")["sessions"][0]
    assert str(docs) not in json.dumps(session["enforcement"]) and "shares" not in session
    assert sessions.ask("project", "get", sessions.project["id"])["shares"] == [f"{docs}:/docs:ro", str(out)]
    sessions.ask("project", "update", sessions.project["id"], "--no-share")
    assert "No such file" in run(sessions, "ls /docs", *ann)


def test_settings_that_cannot_work_are_all_named_when_they_are_set(sessions, box):
    sessions.create("--isolation")
    project = sessions.project["id"]
    state = box.mkdir(box.path / "x")
    wrong = sessions.refused("project", "update", project, "--share", "relative", "--home", "elsewhere", "--pids", "0",
                             "--max-sessions", "0", "--protect", "/etc", status=2)
    for word in ("shares[0]", "absolute", "home must be", "limits.pids", "limits.max_sessions", "protected_paths[0] is absolute"):
        assert word in wrong["message"], (word, wrong)
    missing = sessions.refused("project", "update", project, "--share", "/no/such/a", "--share", "/no/such/b:ro", "--home", "/no/such/c")
    for word in ("/no/such/a", "/no/such/b", "/no/such/c"):
        assert word in missing["message"], missing
    for share in (box.state, box.state / "projects", "/"):
        assert "records" in sessions.refused("project", "update", project, "--share", str(share))["message"]
    assert "workspace is" in sessions.refused("project", "update", project, "--share", f"{state}:/workspace")["message"]
    assert "different rights" in sessions.refused("project", "update", project, "--share", str(state), "--share", f"{state}:/y:ro")["message"]
    assert sessions.ask("project", "get", project)["shares"] == []
    # A share that is gone later refuses the session, not a change of something else.
    gone = box.mkdir(box.path / "gone")
    sessions.ask("project", "update", project, "--share", str(gone))
    gone.rmdir()
    sessions.ask("project", "update", project, "--description", "still here")
    error = sessions.refused("session", "start", project, "--detach", "--", "true", status=125)
    assert str(gone) in error["message"]
    assert sessions.get(sessions.ask("session", "list")["sessions"][0]["session_id"])["state"] == "refused"


def test_a_resumed_session_runs_the_command_that_the_project_has_now(sessions):
    project = sessions.create("--isolation", command=["echo", "old"])
    first = sessions.start()["session_id"]
    sessions.cordon("session", "wait", first)
    sessions.ask("project", "update", project, "--", "echo", "new")
    assert sessions.start()["session_id"] == first
    sessions.cordon("session", "wait", first)
    assert sessions.text(first) == "old\nnew\n" and sessions.get(first)["command"] == ["echo", "new"]
    # A session that was started with a command of its own keeps that one.
    own = sessions.start("--new-session", command=["echo", "own"])["session_id"]
    sessions.cordon("session", "wait", own)
    assert sessions.start()["session_id"] == own
    sessions.cordon("session", "wait", own)
    assert sessions.text(own) == "own\nown\n"


def test_a_child_session_gets_no_home_and_no_share_that_its_parent_has_not(sessions, box):
    extra = box.mkdir(box.path / "extra")
    project = sessions.create("--isolation")
    parent = sessions.start(command=["sleep", "1000"])["session_id"]
    begin = ("session", "start", project, "--detach", "--parent", parent)
    for change in (["--share", str(extra)], ["--no-share", "--home", "workspace"], ["--home", str(extra)]):
        sessions.ask("project", "update", project, *change)
        error = sessions.refused(*begin, "--", "true", status=125)
        assert error["kind"] == "policy_denied" and "show more of the host" in error["message"], error
    sessions.ask("project", "update", project, "--home", "private")
    assert sessions.ask(*begin, "--", "true")["spawned"] is True


CLIENT = """#!/bin/sh
# A client as people install them: it keeps its state in the home, or where its variable says.
state=${NOTER_HOME:-$HOME/.noter}
mkdir -p "$state" && echo "$1" >> "$state/history" || exit 3
echo "$NOTER_KEY:$(cat "$state/history" | tr '\\n' ' ')"
"""

PROFILE = """version: 1
description: a client that takes notes
program: noter
state:
  - path: ~/.noter
    variable: NOTER_HOME
    hold: [settings.json]
private: [~/.noter/cache, ~/.noter-cache]
keep_env: ["NOTER_*"]
"""


@pytest.fixture
def noter(box):
    """A client in the user's npm directory, with a profile of the user's; gives the environment to start sessions with."""
    package = ".npm-global/lib/node_modules/noter"
    box.write(box.home / package / "cli.sh", CLIENT, mode=0o755)
    box.mkdir(box.home / ".npm-global/bin")
    box.link(box.home / ".npm-global/bin/noter", "../lib/node_modules/noter/cli.sh")
    box.write(box.home / ".noter/history", "of the operator\n")
    box.write(box.home / ".noter-cache/page", "of the operator\n")
    box.write(box.state / "profiles/noter.yaml", PROFILE)
    for place in (box.state, box.state / "profiles"):
        place.chmod(0o700)
    return {"PATH": f"{box.home}/.npm-global/bin:/usr/bin:/bin", "NOTER_KEY": "key", "OTHER_KEY": "hidden"}


def note(sessions, noter, text, *options):
    session = sessions.start("--new-session", *options, command=["noter", text], env=noter)["session_id"]
    sessions.cordon("session", "wait", session)
    return sessions.text(session)


@pytest.mark.parametrize("home", [[], ["--home", "workspace"]], ids=["private", "workspace"])
def test_a_client_from_my_npm_directory_serves_two_tenants_each_with_its_own_state(sessions, box, noter, home):
    sessions.create("--isolation", "--profile", "noter", *home)
    ann, bob = tenants(sessions)
    # Each has a state of its own, which is there at the next start; the operator's own is nobody's.
    assert note(sessions, noter, "anns", *ann) == "key:anns \n"
    assert note(sessions, noter, "two", *bob) == "key:two \n"
    assert note(sessions, noter, "more", *ann) == "key:anns more \n"
    assert (box.home / ".noter/history").read_text() == "of the operator\n"
    # A hostile tenant finds neither the other's nor the operator's, and can't change the program.
    own = box.state / "state/projects" / sessions.project["id"] / "homes"
    script = (f"cat {own}/ann/*/.noter/history {box.home}/.noter/history; ls {own}; find / -path '*noter/history' 2>/dev/null;"
              " cat ~/.noter-cache/page; echo x >> $(readlink -f $(command -v noter)); env | grep OTHER_KEY; rm -rf ~/.noter/cache; ln -s / ~/.noter/cache;"
              " mv ~/.noter ~/away; echo {} > ~/.noter/settings.json")
    spy = sessions.start("--new-session", *bob, command=["sh", "-c", script + " 2>&1"], env=noter)["session_id"]
    sessions.cordon("session", "wait", spy)
    text = sessions.text(spy)
    assert "anns" not in text and "operator" not in text and "hidden" not in text, text
    assert (box.home / ".npm-global/lib/node_modules/noter/cli.sh").read_text() == CLIENT
    assert not any(path.is_symlink() for path in (own / "bob").glob("*/.noter")), text
    # The state goes with its workspace.
    assert list((own / "ann").glob("*/.noter/history"))
    sessions.ask("workspace", "delete", sessions.project["id"], "ann")
    assert not (own / "ann").exists()
    assert "no profile" in sessions.refused("project", "update", sessions.project["id"], "--profile", "notre")["message"].lower()


def test_a_link_that_a_tenant_left_in_its_state_leads_nowhere(sessions, box, noter):
    """Without `private`, the tenant may replace a directory of its state; a later profile must not follow what is there."""
    box.write(box.state / "profiles/noter.yaml", PROFILE.replace("private: [~/.noter/cache, ~/.noter-cache]\n", ""))
    sessions.create("--isolation", "--profile", "noter")
    ann, _ = tenants(sessions)
    note(sessions, noter, "one", *ann)
    left = sessions.start("--new-session", *ann, command=["sh", "-c", f"ln -s {box.home} ~/.noter/cache"], env=noter)["session_id"]
    sessions.cordon("session", "wait", left)
    box.write(box.state / "profiles/noter.yaml", PROFILE)
    look = sessions.start("--new-session", *ann, command=["sh", "-c", "cat ~/.noter/cache/.noter-cache/page; ls -A ~/.noter/cache/ 2>&1"], env=noter)["session_id"]
    sessions.cordon("session", "wait", look)
    assert "operator" not in sessions.text(look) and "noter-cache\n" not in sessions.text(look), sessions.text(look)
    # Where the state itself is a link, which only the operator can make, the session is refused.
    state = box.state / "state/projects" / sessions.project["id"] / "homes/ann/state"
    (state / ".noter").rename(state / "kept")
    (state / ".noter").symlink_to(box.home)
    error = sessions.refused("session", "start", sessions.project["id"], "--detach", "--new-session", *ann, "--", "ls", env=noter, status=125)
    assert "is a link" in error["message"], error
