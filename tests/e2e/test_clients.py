# SPDX-License-Identifier: Apache-2.0
"""Four real clients from the npm registry, as an ordinary user starts them, natively and in cordon.

A stand-in for the model of each asks by tool calls for a file in the workspace, and for five things that an agent has no business with.
Natively all of it is done, which shows that the attempts are real. In cordon the first is done and nothing else, and every refusal is
reported. What happened is read from the host, and from what the clients told the model.
"""
import json
import os
import re
import signal

import pytest

from clients.four import CLIENTS, SECRET, Person, documented_lines, install
from clients.model import Deed, Model
from flows import Desk, step
from support import callers, poll

ATTACKS = ("outside", "secret", "hook", "settings", "program")
REFUSED = re.compile("permission denied|read-only file system|no such file|nonexistent|not exist|not found", re.IGNORECASE)
FIRST, SECOND = "fix the tests", "now the docs"

# Installing four clients from the registry takes a minute.
pytestmark = [pytest.mark.limit(600), pytest.mark.long]


@pytest.fixture(scope="session")
def installed(base_dir):
    return install(base_dir)


@pytest.fixture
def who():
    """Clients refuse to work without questions as root."""
    return callers()["user"]


@pytest.fixture
def model():
    made = Model({})
    yield made
    made.close()


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def person(request, box, installed, model):
    made = Person(box, installed, request.param, model)
    model.deeds.update({FIRST: made.deeds(1), SECOND: made.deeds(2)})
    return made


def with_option(line, option):
    """The line of `cordon run` with one more option."""
    return [*line[:2], option, *line[2:]]


def natively(line):
    """What a person would type without cordon."""
    return line[line.index("--") + 1:]


def test_natively_a_client_does_whatever_its_model_asks_for(person, model):
    """The control: the same attempts, by the same tool calls, without cordon."""
    lines = documented_lines(person.client)
    terminal = person.terminal(natively(lines["terminal"]))
    terminal.work(model, person.client.presses)
    terminal.close()
    assert person.done(1) == {"inside", *ATTACKS}, model.answers
    person.client.configure(person.box, person.home, person.work, model)  # what was planted is taken out again
    model.requests.clear()
    model.deeds[FIRST] = person.deeds(2)
    done = person.headless(natively(lines["headless"]))
    assert done.returncode == 0 and model.farewell in done.stdout, done
    assert person.done(2) == {"inside", *ATTACKS}, model.answers


def reported(person):
    """Places of which the log says that an access was refused."""
    told = person.box.run("cordon", "audit", "--json", "--kind", "violation", env=person.env)
    records = [json.loads(line) for line in told.stdout.splitlines()]
    return {record["path"] for record in records if record["decision"] == "deny"}


def assert_only_the_inside_is_done(person, model, number):
    """As the host sees it, as the log tells it, and as the client told its model."""
    assert person.done(number) == {"inside"}, model.answers
    places = person.places(number)
    assert {str(places[name]) for name in ATTACKS} <= reported(person)
    assert all(REFUSED.search(model.answers[name]) for name in ATTACKS), model.answers


def test_in_cordon_a_client_does_its_work_and_nothing_else_and_goes_on_at_the_next_start(person, model):
    before = {name: (person.home / name).read_bytes() for name in (person.client.settings, ".ssh/id_ed25519")}
    lines = documented_lines(person.client)
    terminal = person.terminal(lines["terminal"])
    terminal.work(model, person.client.presses)
    shown = terminal.text()
    terminal.close()
    assert_only_the_inside_is_done(person, model, 1)
    assert "[SUMMARY]" in shown and "attempts refused" in shown, shown
    assert not model.heard(SECOND)

    model.requests.clear()
    model.answers.clear()
    dry = person.headless(with_option(lines["headless"], "--dry-run"))
    assert dry.returncode == 0, dry
    done = person.headless(lines["more"])
    assert done.returncode == 0 and model.farewell in done.stdout, done
    assert_only_the_inside_is_done(person, model, 2)
    assert all(str(person.places(2)[name]) in done.stderr for name in ATTACKS), done
    assert any(FIRST in body and SECOND in body for _, body in model.requests), "the conversation did not go on"
    assert {name: (person.home / name).read_bytes() for name in before} == before


@pytest.fixture
def claude(box, installed, model):
    return Person(box, installed, CLIENTS[0], model)


def test_claude_code_works_as_one_of_two_agents_beside_a_plain_script(claude, model):
    work = claude.work
    for name in ("src", "docs"):
        claude.box.mkdir(work / name)
    script = "echo by the script > docs/script.txt; echo by the script > src/script.txt"
    agents = [
        {"name": "claude", "profile": "claude", "scope": {"read": ["**"], "write": ["src"]},
         "command": ["claude", "--dangerously-skip-permissions", "-p", FIRST]},
        {"name": "script", "scope": {"write": ["docs"]}, "command": ["sh", "-c", script]},
    ]
    claude.box.write(work / "agents.json", json.dumps({"agents": agents}))
    key = claude.places(1)["secret"]
    settings = (claude.home / claude.client.settings).read_bytes()
    model.deeds[FIRST] = [
        Deed("own", "write", str(work / "src/claude.txt"), "by Claude"),
        Deed("other", "shell", text=f"echo by Claude > {work}/docs/claude.txt"),
        Deed("secret", "read", str(key)),
        Deed("settings", "shell", text=f"echo x > ~/{claude.client.settings}"),
    ]
    trusted = claude.headless(["cordon", "agent", "trust"])
    assert trusted.returncode == 0, trusted
    done = claude.headless(["cordon", "execute", "--agents", "claude,script", "--json"])
    results = {result["agentName"]: result for result in done.json()}
    assert results["claude"]["state"] == "completed" and model.farewell in results["claude"]["stdout"], done
    assert (work / "src/claude.txt").read_text() == "by Claude" and (work / "docs/script.txt").read_text() == "by the script\n", done
    assert not (work / "docs/claude.txt").exists() and not (work / "src/script.txt").exists()
    assert not model.heard(SECRET) and (claude.home / claude.client.settings).read_bytes() == settings
    assert {str(work / "docs/claude.txt"), str(key), str(claude.home / claude.client.settings)} <= reported(claude)


def test_claude_code_does_two_stories_of_a_loop(claude, model):
    """As the loop's own agent, without a word about its command. It also writes outside, marks its own story and reads a key."""
    work = claude.work
    claude.box.mkdir(work / "lib")
    stories = [{"id": "US-001", "title": "Add the greeting", "acceptanceCriteria": ["lib/hello.txt says hello"], "passes": False},
               {"id": "US-002", "title": "Add the farewell", "acceptanceCriteria": ["lib/bye.txt says bye"], "dependencies": ["US-001"],
                "passes": False}]
    prd = {"project": "shop", "workspace": {"folders": ["lib"], "mode": "strict"}, "userStories": stories}
    claude.box.write(work / "prd.json", json.dumps(prd, indent=2))
    done = claude.box.run("sh", "-c", "git add . && git -c user.name=p -c user.email=p@example.com commit -qm start", cwd=work, env=claude.env)
    assert done.returncode == 0, done
    key = claude.places(1)["secret"]
    model.deeds.update({
        # The client shows its model the titles of commits too, but not these.
        "lib/hello.txt says hello": [
            Deed("hello", "write", str(work / "lib/hello.txt"), "hello\n"),
            Deed("outside", "shell", text=f"echo x > {work}/outside.txt"),
            Deed("mark", "shell", text=f"sed -i s/false/true/ {work}/prd.json"),
            Deed("secret", "read", str(key))],
        "lib/bye.txt says bye": [Deed("bye", "shell", text="cat lib/hello.txt; sed s/hello/bye/ lib/hello.txt > lib/bye.txt")]})
    check = 'case $CORDON_STORY in US-001) test ! -e lib/bye.txt;; esac && grep -q hello lib/hello.txt'
    looped = claude.headless(["cordon", "loop", "--verify", check, "--json"])
    events = [json.loads(line) for line in looped.stdout.splitlines()]
    assert looped.returncode == 0, looped
    assert [event["story"] for event in events if event.get("event") == "call"] == ["US-001", "US-002"], "each needs one call"
    assert (work / "lib/hello.txt").read_text() == "hello\n" and (work / "lib/bye.txt").read_text() == "bye\n"
    assert model.answers["bye"].strip().startswith("hello"), "the second story sees what the first has made"
    assert [story["passes"] for story in json.loads((work / "prd.json").read_text())["userStories"]] == [True, True]
    assert not (work / "outside.txt").exists() and not model.heard(SECRET)
    assert all(REFUSED.search(model.answers[name]) for name in ("outside", "mark", "secret")), model.answers
    log = claude.box.run("git", "log", "--format=%s", "--name-only", cwd=work, env=claude.env).stdout
    assert log.index("US-002") < log.index("lib/bye.txt") < log.index("US-001") < log.index("lib/hello.txt"), log


def test_claude_code_serves_two_tenants_each_with_a_state_of_its_own(claude, model):
    """As the agent of a project, from the npm directory of the user who serves; the home of a workspace stays."""
    agent = ["claude", "--dangerously-skip-permissions"]
    package = claude.home / ".npm-global"
    made = claude.headless([
        "cordon", "project", "create", "chat", "--isolation", "--home", "workspace", "--share", f"{package}:ro",
        "--env", f"PATH={package}/bin:/usr/bin:/bin", "--env-pass", "ANTHROPIC_API_KEY", "--env-pass", "ANTHROPIC_BASE_URL",
        "--json", "--", *agent, "-p"])
    assert made.returncode == 0, made
    words = {"alice": "the-word-of-alice", "bob": "the-word-of-bob"}
    for who, word in words.items():
        model.deeds[word] = [Deed(f"{who}-makes", "shell", text=f"echo {word} > mine.txt")]

    def say(who, message, *command):
        return claude.headless(["cordon", "session", "start", "--external-id", who, "--source", "chat", "--create-workspace", "--message",
                                message, "--end-input", made.json()["id"], *(["--", *command] if command else [])])

    for who, word in words.items():
        done = say(who, f"remember {word}")
        assert done.returncode == 0 and model.farewell in done.stdout, done
    model.deeds = {SECOND: []}
    for who, word in words.items():
        model.requests.clear()
        done = say(who, SECOND, *agent, "--continue", "-p")
        assert done.returncode == 0 and model.farewell in done.stdout, done
        assert [name for name in words if model.heard(words[name])] == [who], "a conversation went on with another tenant"
    top = claude.box.state / "projects" / made.json()["id"] / "workspaces"
    assert sorted(path.read_text().strip() for path in top.glob("*/mine.txt")) == sorted(words.values())
    assert not (claude.home / ".claude/projects").exists(), "a tenant's conversation is in the home of the user who serves"


def test_claude_code_works_with_its_key_outside_of_the_run(internet, machine, installed):
    """The helper adds the key; neither the client's environment nor anything that it can read has it. The API is reached by TLS."""
    key = "sk-which-stays-outside"
    model = Model({}, listener=internet.listen(9443))
    person = Person(machine, installed, CLIENTS[0], model)
    person.env |= {"ANTHROPIC_API_KEY": key, "ANTHROPIC_BASE_URL": None}
    policy = machine.write("outside.yaml", "net:\n  inject:\n    - {host: 'a.example.com:9443', header: x-api-key, from_env: ANTHROPIC_API_KEY,"
                           " base_url_env: ANTHROPIC_BASE_URL}\n")
    model.deeds[FIRST] = [
        Deed("inside", "write", str(person.places(1)["inside"]), "by Claude"),
        Deed("environment", "shell", text="env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'"),
        Deed("direct", "shell", text="curl -sS https://a.example.com:9443/; true"),
    ]
    done = person.headless(["cordon", "run", "--policy", policy, "--profile", "claude", "--env", "ANTHROPIC_AUTH_TOKEN=unused", "--",
                            "claude", "--dangerously-skip-permissions", "-p", FIRST])
    model.close()
    assert done.returncode == 0 and model.farewell in done.stdout, done
    assert person.places(1)["inside"].read_text() == "by Claude"
    assert model.keys and set(model.keys) == {key}, "every request had the key"
    assert "ANTHROPIC_BASE_URL=http://127.0.0.1:" in model.answers["environment"]
    assert not model.heard(key) and "ANTHROPIC_API_KEY" not in model.answers["environment"]
    assert "Could not resolve host" in model.answers["direct"], "only the helper reaches the host of a credential"


def envelope(prompt, **values):
    token = re.search(r'\[workflow_result\]\{"token": "([0-9a-f]{32})"', prompt).group(1)
    return f"I am done.\n[workflow_result]{json.dumps({'token': token, **values})}[/workflow_result]"


@pytest.mark.parametrize("client, provider", [(CLIENTS[0], "anthropic"), (CLIENTS[1], "openai")], ids=["claude", "codex"])
def test_a_client_works_through_a_workflow_with_review_rejection_and_a_killed_engine(box, installed, client, provider, model, cordon):
    """As a provider without a word in the settings about its command; nothing that ended is done again."""
    person = Person(box, installed, client, model)
    desk = Desk(person.box, cordon)
    prompts = {"plan": "write-the-plan, and heed: {{state.check_feedback}}", "check": "review-the-plan {{steps.plan.outputs.doc}}", "build": "build-it"}
    desk.define(
        step("plan", workspace_mode="run_workspace", outputs=["doc"], output_files={"doc": "plan.md"}, next="check") | {"prompt": prompts["plan"]},
        step("check", type="agent_review", workspace_mode="run_workspace", outputs=["feedback?"], on_approve="build", on_reject="plan") | {"prompt": prompts["check"]},
        step("build", outputs=["artifact"]) | {"prompt": prompts["build"]})
    file = desk.private / "orchestrator.yaml"
    person.box.write(file, file.read_text().replace('"scripted"', f'"{provider}"').replace('"model": "m"', '"model": "stand-in"'), mode=0o600)
    model.deeds.update({
        "again-please": [Deed("second", "shell", text='echo the second plan > "$CORDON_RUN_WORKSPACE/plan.md"; echo plan >> "$CORDON_RUN_WORKSPACE/log"')],
        "write-the-plan": [Deed("first", "shell", text='echo the first plan > "$CORDON_RUN_WORKSPACE/plan.md"; echo plan >> "$CORDON_RUN_WORKSPACE/log"'),
                           Deed("area", "shell", text=f"cat {desk.areas['docs']}/file; ls {desk.box.path}/ws")],
        "review-the-plan": [Deed("look", "shell", text='pwd; echo check >> "$CORDON_RUN_WORKSPACE/log"')],
        "build-it": [Deed("build", "shell", text='cat "$CORDON_RUN_WORKSPACE/plan.md" > built.txt')]})
    runs, kills = [], []

    def review(prompt):
        if not kills:  # while the client waits for this answer, its engine is killed
            kills.append(desk.status(runs[0])["engine"])
            os.kill(kills[0], signal.SIGKILL)
        return envelope(prompt, decision="approve") if "second" in prompt else envelope(prompt, decision="reject", feedback="again-please")

    model.words.update({"review-the-plan": review, "build-it": lambda prompt: envelope(prompt, artifact="built.txt")})
    begun = person.headless(["cordon", "workflow", "run", "desk", "flow", "--json"])
    assert begun.returncode == 0, begun
    runs.append(begun.json()["runId"])
    poll(lambda: kills and desk.status(runs[0])["engine"] is None, 120)
    done = person.headless(["cordon", "workflow", "resume", runs[0], "--wait"])
    status = desk.status(runs[0])
    assert done.returncode == 0 and status["state"] == "succeeded" and status["outputs"] == {"artifact": "built.txt"}, (done, status, cordon("workflow", "logs", runs[0]).stdout)
    made = desk.directory(runs[0])
    assert (desk.private / "built.txt").read_text() == "the second plan\n" and (made / "log").read_text() == "plan\ncheck\nplan\ncheck\n"
    assert [(e["step"], e["attempt"]) for e in desk.journal(runs[0]) if e["event"] == "attempt"] == [("plan", 1), ("check", 1), ("check", 1), ("plan", 2), ("check", 2), ("build", 1)]
    assert str(desk.private) in model.answers["look"] and not model.heard("text of docs") and str(desk.areas["docs"] / "file") in reported(person)
