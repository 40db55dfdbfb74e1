# SPDX-License-Identifier: Apache-2.0
"""cordon session allow: a path for one run, for a session or for its project. test_net_lists.py has the hosts."""
import json
import shutil

from support import poll


class Again:
    """A session that is ended and resumed."""

    def __init__(self, sessions, *options):
        self.sessions = sessions
        sessions.create("--isolation", *options)
        self.id = sessions.shell()

    def resume(self):
        self.sessions.cordon("session", "stop", self.id, "--grace", "100ms")
        answer = self.sessions.start()
        assert answer["session_id"] == self.id and answer["spawned"]

    def allow(self, *options):
        return self.sessions.ask("session", "allow", self.id, *options)

    def can(self, command):
        return self.sessions.cordon("session", "exec", self.id, "--", "sh", "-c", command).returncode == 0


def test_a_path_counts_from_the_next_start_for_as_long_as_it_was_allowed(sessions, box):
    agent = Again(sessions)
    data = {name: box.mkdir(f"data-{name}") for name in ("run", "session", "policy")}
    for path in data.values():
        box.write(path / "file", "mine\n")
    read = {name: f"cat {path}/file" for name, path in data.items()}
    said = agent.allow("--path", str(data["run"]))
    assert (said["allowed"], said["effective"], said["already"]) == (f"{data['run']}:ro", "next_start", False)
    assert agent.allow("--path", str(data["session"]), "--write", "--for", "session")["effective"] == "next_start"
    assert agent.allow("--path", str(data["policy"]), "--for", "policy")["effective"] == "next_start"
    assert agent.allow("--path", str(data["run"]))["already"], "once is enough"
    assert not any(agent.can(command) for command in read.values()), "what runs is not widened"
    agent.resume()
    assert all(agent.can(command) for command in read.values())
    assert agent.allow("--path", str(data["run"]))["effective"] == "now"
    for name, path in data.items():
        assert agent.can(f"echo changed > {path}/file") == (name == "session")
        assert (path / "file").read_text() == ("changed\n" if name == "session" else "mine\n")
    agent.resume()
    assert [name for name, command in read.items() if agent.can(command)] == ["session", "policy"]
    # The project has what was for it, and another session gets that and no more.
    assert sessions.ask("project", "get", sessions.project["id"])["shares"] == [f"{data['policy']}:ro"]
    other = sessions.shell()
    for name, command in read.items():
        assert (sessions.cordon("session", "exec", other, "--", "sh", "-c", command).returncode == 0) == (name == "policy")
    # A session that has ended takes it, too; and what was for one start becomes what it is allowed next.
    sessions.cordon("session", "stop", other, "--grace", "100ms")
    for span in ("run", "session"):
        assert sessions.ask("session", "allow", other, "--path", str(data["run"]), "--for", span)["effective"] == "next_start"
    for _ in range(2):
        assert sessions.start()["session_id"] == other
        assert sessions.cordon("session", "exec", other, "--", "sh", "-c", read["run"]).returncode == 0
        sessions.cordon("session", "stop", other, "--grace", "100ms")
    # What is gone later keeps nobody from starting.
    shutil.rmtree(data["run"])
    assert sessions.start()["spawned"]
    assert "allowed, but not there any more" in json.dumps(sessions.get(other)["notes"])
    log = [json.loads(line) for line in sessions.cordon("audit", "--json").stdout.splitlines()]
    events = [e for e in log if e["event"] == "grant"]
    assert [(e["op"], e["detail"]["for"]) for e in events[:3]] == [("share", "once"), ("share", "session"), ("share", "policy")]


def test_an_allowed_path_that_becomes_a_link_is_refused_by_name(sessions, box):
    """Somebody who can write beside it must not make another path of what a person has allowed."""
    agent = Again(sessions)
    data, secret = box.mkdir("data"), box.mkdir("secret")
    for path in (data, secret):
        box.write(path / "file", path.name)
    box.link("link", secret)
    done = sessions.cordon("session", "allow", agent.id, "--path", str(box.path / "link"))
    assert done.returncode != 0 and f"leads to {secret} by a symbolic link" in done.stderr, str(done)
    assert agent.allow("--path", str(data), "--for", "session")["effective"] == "next_start"
    agent.resume()
    assert agent.can(f"cat {data}/file") and not agent.can(f"cat {secret}/file")
    data.rename(box.path / "old")
    box.link("data", secret)
    sessions.cordon("session", "stop", agent.id, "--grace", "100ms")
    refused = sessions.refused("session", "start", sessions.project["id"], "--detach", status=125)
    assert refused["kind"] == "policy_denied" and f"{data} leads to {secret}" in refused["message"] and f"cordon config confirm {data}" in refused["hint"]
    data.unlink()
    (box.path / "old").rename(data)
    agent.resume()
    assert agent.can(f"cat {data}/file") and not agent.can(f"cat {secret}/file"), "it is what it was"


def test_what_is_protected_can_not_be_had_this_way(sessions, box):
    agent = Again(sessions, "--protect", "AGENTS.md")
    box.link("to-home", box.state)
    home = str(box.state)
    workspace = sessions.top("workspaces", sessions.project["default_workspace_id"])
    for path, kind in (
        (home, "policy_denied"), (f"{home}/state", "policy_denied"), (f"{home}/state/sessions", "policy_denied"),
        (str(box.path), "policy_denied"), (str(box.path / "to-home"), "policy_denied"), (str(workspace), "policy_denied"),
        ("/workspace/AGENTS.md", "policy_denied"), ("/workspace", "policy_denied"), ("/workspace/../workspace/AGENTS.md", "usage"),
        ("data", "usage"), ("/", "usage"), ("/a/../b", "usage"), ("/a:ro", "usage"), ("/no/such/path", None), ("", "usage"),
    ):  # fmt: skip
        for span in ("run", "policy"):
            refused = sessions.refused("session", "allow", agent.id, "--path", path, "--for", span, "--write", status=2 if kind == "usage" else 1)
            assert kind in (None, refused["kind"]), (path, refused)
    agent.resume()
    assert not agent.can(f"ls {home}/state") and not agent.can("echo x > AGENTS.md")
    assert "allowances" not in json.loads(sessions.state(agent.id, "record.json").read_text())
    for wrong in (("--host", "a", "--path", "/usr"), (), ("--host", "a", "--write"), ("--path", "/usr", "--for", "ever"), ("--host", "not a host")):
        assert sessions.cordon("session", "allow", agent.id, *wrong).returncode == 2, wrong
    assert sessions.cordon("session", "allow", "0" * 8, "--host", "a.example.com").returncode == 1


def test_a_host_for_a_session_without_a_list(sessions):
    agent = Again(sessions, "--net", "none")
    assert agent.allow("--host", "a.example.com", "--for", "session")["effective"] == "next_start"
    agent.resume()
    assert agent.allow("--host", "A.example.com:443")["effective"] == "now", "it has a list now"
    assert sessions.get(agent.id)["net"] == ["a.example.com:443"]
    sessions.create("--isolation")
    agent.id = sessions.shell()
    said = agent.allow("--host", "a.example.com")
    assert said["already"] and said["effective"] == "now", "it has the host's network"


def test_two_who_allow_at_once_lose_nothing(sessions, box):
    agent = Again(sessions)
    paths = [box.mkdir(f"d{number}") for number in range(6)]
    started = [sessions.cordon.start("session", "allow", agent.id, "--path", str(path), "--for", ("session", "policy")[n % 2]) for n, path in enumerate(paths)]
    assert [process.wait(60) for process in started] == [0] * len(paths)
    agent.resume()
    poll(lambda: all(agent.can(f"ls {path}") for path in paths), 20)
