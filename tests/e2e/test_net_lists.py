# SPDX-License-Identifier: Apache-2.0
"""Lists of hosts in options, policy files, projects, sessions, agents and MCP: who may say what, and that it holds.

The world is tests/internet.py: a.example.com and b.example.com are neighbours on one address.
"""
import json
import subprocess

from support import TOP, poll

# Prints which of these hosts answer.
ASK = 'for h in a.example.com b.example.com four.example.org; do curl -sS -m 60 -o /dev/null https://$h/ 2>/dev/null && echo $h; done; true'
ALL = ["a.example.com", "b.example.com", "four.example.org"]


def reached(done):
    assert done.returncode == 0, done
    return done.stdout.split()


# ---- questions ----


def test_check_why_and_tree_answer_about_hosts_without_looking_anything_up(box, cordon):
    root = box.mkdir("root")
    rules = ("--root", root, "--net", "api.example.com,*.example.org:443", "--net", "git.example.net:22/tcp")
    done = cordon("check", "--op", "connect", *rules, "API.example.com", "www.example.org:443")
    assert (done.returncode, done.stdout) == (0, "allow API.example.com\nallow www.example.org:443\n"), done
    done = cordon("check", "--op", "connect", *rules, "api.example.com:80", "example.org", "git.example.net:22", "192.0.2.1:443")
    assert (done.returncode, done.stdout.split()[::2]) == (1, ["deny", "deny", "allow", "deny"]), done
    done = cordon("check", "--op", "connect", "--stdin", *rules, input="api.example.com\nno host\nxn--bcher-kva.example\n")
    assert done.stdout == "allow api.example.com\ndeny no host\ndeny xn--bcher-kva.example\n"
    done = cordon("check", "--op", "connect", *rules, "api..example.com")
    assert done.returncode == 2 and "at column 5: a label is empty" in done.stderr
    done = cordon("why", "--json", *rules, "api.example.com:80").json()
    assert (done["op"], done["decision"], done["reason"], done["remedy"]) == ("connect", "deny", "no_host", "--net 'api.example.com:80'")
    done = cordon("why", "--json", *rules, "www.example.org:443").json()
    assert (done["decision"], done["rule"], done["where"]) == ("allow", "*.example.org:443", "--net")
    box.write("root/odd:443", "a file\n")
    assert cordon("why", "--json", *rules, "odd:443").json()["op"] != "connect", "a file of that name is a file"
    assert cordon("tree", *rules).stdout.endswith(
        "\nnetwork: these hosts and no others\n  api.example.com:443\n  *.example.org:443\n  git.example.net:22/tcp\n")
    assert cordon("tree", "--json", *rules).json()["net"] == ["api.example.com:443", "*.example.org:443", "git.example.net:22/tcp"]
    plan = cordon("run", "--dry-run", "--json", *rules, "--", "true").json()
    assert plan["net"] == "list" and plan["hosts"] == ["api.example.com:443", "*.example.org:443", "git.example.net:22/tcp"]


def test_what_is_no_list_is_refused_in_one_line(box, cordon):
    root = box.mkdir("root")
    for given, says in (
        (["--net", "none", "--net", "a.example.com"], "--net was given twice: none and a.example.com"),
        (["--net", "a.example.com,none"], "'none' stands alone, not in a list"),
        (["--net", "*"], "every host is no list"),
        (["--net", "https://a.example.com/"], "this is a URL"),
        (["--net", "profile"], "no profile with a list of hosts is in use"),
        (["--net", "a.example.com,"], "it is empty"),
        (["--net", "nnone"], "a name without a dot needs a port; write none, host, profile, or NAME:PORT"),
        (["--net", "a.example.com,database"], "a name without a dot needs a port"),
    ):
        done = cordon("run", "--root", root, *given, "--", "true")
        assert done.returncode == 125 or done.returncode == 2, done
        assert says in done.stderr and done.stderr.count("\n") == 1, done
    outside = box.write("policy.yaml", "net:\n  allow: [a.example.com, 'b..example.com']\n  inject: [{host: x.example.com, header: 'a b',\n"
                        "    from_env: KEY, base_url_env: URL}]\n  more: 1\n")
    done = cordon("run", "--root", root, "--policy", outside, "--", "true")
    assert done.returncode == 125
    for place, says in (("2:29", "a label is empty"), ("3:12", "'a b' is not the name of a header"), ("5:3", "unknown key 'more'")):
        assert f"policy.yaml:{place}: " in done.stderr and says in done.stderr, done.stderr


def test_the_example_for_an_agent_with_a_registry_means_what_it_says(box, cordon):
    root = box.mkdir("root")
    policy = box.write("agent.yaml", (TOP / "examples/network/agent.yaml").read_text())
    asked = {"registry.example.com": "allow", "a.cdn.example.com": "allow", "github.com:22": "allow", "github.com": "deny", "model.example.com": "deny"}
    done = cordon("check", "--root", root, "--policy", policy, "--op", "connect", *asked)
    assert done.stdout == "".join(f"{answer} {host}\n" for host, answer in asked.items()), done
    plan = cordon("run", "--dry-run", "--json", "--root", root, "--policy", policy, "--keep-env", "MODEL_*", "--", "true", env={"MODEL_API_KEY": "k3y"})
    assert plan.returncode == 0 and "k3y" not in plan.stdout, plan
    assert [line.split("=")[0] for line in plan.json()["env"] if line.startswith("MODEL_")] == ["MODEL_BASE_URL"]
    assert plan.json()["hosts"]["inject"][0]["host"] == "model.example.com:443"
    inside = box.write("root/agent.yaml", policy.read_text())
    assert cordon("check", "--root", root, "--policy", inside, "--op", "connect", "github.com:22").returncode != 0


# ---- policy files ----


def test_a_list_inside_the_workspace_only_narrows(machine, online):
    root = machine.mkdir("work")
    inside = machine.write("work/cordon.yaml", "net: [a.example.com, four.example.org]\n")
    outside = machine.write("outside.yaml", "net: {allow: [a.example.com, b.example.com]}\n")

    def run(*options):
        return reached(online("run", "--root", root, *options, "--", "sh", "-c", ASK))

    assert run("--policy", outside) == ["a.example.com", "b.example.com"]
    assert run("--policy", inside) == ["a.example.com", "four.example.org"], "less than the network of the host"
    assert run("--policy", inside, "--net", "a.example.com,b.example.com") == ["a.example.com"], "what both allow"
    assert run("--policy", inside, "--net", "b.example.com") == []
    assert run("--policy", outside, "--net", "four.example.org") == ["four.example.org"], "the option comes before a file outside"
    machine.link("link.yaml", inside)
    assert run("--policy", machine.path / "link.yaml", "--net", "b.example.com") == [], "a link to a file inside is a file inside"
    assert online("run", "--root", root, "--net", "none", "--policy", inside, "--", "sh", "-c", ASK).stdout == ""
    inside.write_text("net: {inject: [{host: a.example.com, header: x-key, from_env: SECRET, base_url_env: URL}]}\n")
    done = online("run", "--root", root, "--policy", inside, "--", "env", env={"SECRET": "s3cret"})
    assert done.returncode == 125 and "cordon.yaml:1:15: a file that an agent may write can't hand out credentials" in done.stderr, done


def test_an_attempt_is_told_once_with_the_rule_that_allows_it(machine, online, internet):
    root = machine.mkdir("work")
    script = ("for i in 1 2 3; do curl -sS https://b.example.com/; done; curl -sS --resolve b.example.com:443:192.0.2.10 https://b.example.com/; "
              "curl -sS http://a.example.com/; curl -sS --connect-to b.example.com:443:a.example.com:443 https://b.example.com/; true")
    done = online("run", "--root", root, "--net", "a.example.com", "--", "sh", "-c", script)
    assert done.returncode == 0, done
    told = [line for line in done.stderr.splitlines() if line.startswith("[NETWORK]   Host: b.example.com")]
    assert len(told) == 1 and "[NETWORK]   To allow it: --net 'b.example.com:443'" in done.stderr, done.stderr
    assert "[NETWORK]   To allow it: --net 'a.example.com:80'" in done.stderr
    assert "names another host than the one it was made to" in done.stderr
    assert internet.requests() == [] and "b.example.com" not in internet.names_asked()
    records = [json.loads(line) for line in online("audit", "--json", "--kind", "violation").stdout.splitlines()]
    seen = {(r["op"], r["path"], r["detail"]["reason"], r["detail"].get("would_allow")) for r in records}
    assert ("resolve", "b.example.com", "no_host", "b.example.com:443") in seen, seen
    assert ("connect", "a.example.com:80", "no_host", "a.example.com:80") in seen
    assert ("connect", "a.example.com:443", "other_host", None) in seen
    assert online("run", "--root", root, "--fail-on-violation", "--net", "a.example.com", "--", "sh", "-c", ASK).returncode == 3


def test_learn_makes_a_list_of_what_was_used_and_of_what_was_asked_for(machine, online):
    root = machine.mkdir("work")
    policy = machine.path / "learned.yaml"
    rules = "*.example.com,github.com:22/tcp,tcp.example.com:7/tcp"
    ask = ASK + "; exec 3<>/dev/tcp/tcp.example.com/7; echo x >&3; read -r line <&3"
    done = online("learn", "--root", root, "--output", policy, "--net", rules, "--", "bash", "-c", ask)
    assert reached(done) == ["a.example.com", "b.example.com"]
    learned = policy.read_text().partition("net:\n")[2].splitlines()
    assert [line.split('"')[1::2] + line.split("#")[-1:] for line in learned if "- " in line] == [
        ["a.example.com:443", '  - "a.example.com:443"'], ["b.example.com:443", '  - "b.example.com:443"'],
        ["tcp.example.com:7/tcp", '  - "tcp.example.com:7/tcp"'], ["four.example.org:443", " was asked for, and refused in this run"],
        ["github.com:22/tcp", " was allowed, and not used in this run"]], learned
    assert [line for line in learned if "github" in line][0].startswith("#  - ")
    assert reached(online("run", "--root", root, "--policy", policy, "--", "sh", "-c", ASK)) == ALL


# ---- projects, sessions, MCP ----


def test_sessions_carry_the_list_of_their_project_and_change_it_while_they_run(machine, online, internet):
    def ask(*args, status=0):
        done = online(*args[:2], "--json", *args[2:])
        assert done.returncode == status, done
        return done.json("stderr" if status else "stdout")

    project = ask("project", "create", "p", "--no-git", "--net", "a.example.com,four.example.org", "--net", "tcp.example.com:7/tcp",
                  "--net", "private.example.net:80/tcp,10.77.0.1:80")
    assert project["net"] == ["a.example.com", "four.example.org", "tcp.example.com:7/tcp", "private.example.net:80/tcp", "10.77.0.1:80"]
    assert reached(online("session", "start", project["id"], "--", "sh", "-c", ASK)) == ["a.example.com", "four.example.org"]
    assert reached(online("session", "start", project["id"], "--net", "a.example.com", "--", "sh", "-c", ASK)) == ["a.example.com"]
    wider = ask("session", "start", project["id"], "--net", "b.example.com", "--", "true", status=125)
    assert wider["kind"] == "policy_denied" and "it would reach more of the network: b.example.com:443" in wider["message"]
    # A live one: its connection ends when the host is revoked, and a host that is allowed is there at once.
    # So does one by a name to an address that is not public, when no rule grants that any more.
    live = ("exec 4<>/dev/tcp/private.example.net/80; exec 3<>/dev/tcp/tcp.example.com/7; echo hello >&3; read -r line <&3; echo got $line; "
            "cat <&3; echo cut; cat <&4; echo gone; read -r go; ") + ASK
    session = ask("session", "start", project["id"], "--new-session", "--detach", "--", "bash", "-c", live)["session_id"]

    def said():
        return "".join(e["text"] for e in ask("session", "output", session)["events"] if e["type"] == "stdout")

    poll(lambda: "got hello" in said(), 60)
    assert "cut" not in said()
    refused = ask("session", "net", session, "--revoke", "other.example.com", status=1)
    assert "the list has no rule other.example.com:443" in refused["message"]
    after = ask("session", "net", session, "--revoke", "tcp.example.com:7", "--allow", "b.example.com")
    assert after["net"] == ["a.example.com:443", "four.example.org:443", "private.example.net:80/tcp", "10.77.0.1:80", "b.example.com:443"]
    poll(lambda: "cut" in said(), 60)
    assert "gone" not in said()
    after = ask("session", "net", session, "--revoke", "10.77.0.1:80")
    poll(lambda: "gone" in said(), 60)
    assert ask("session", "get", session)["net"] == after["net"], "the record has it"
    assert online("session", "send", session, "go").returncode == 0
    poll(lambda: ask("session", "get", session)["status"] == "completed", 60)
    assert said().split("gone\n")[1].split() == ALL
    assert ask("project", "get", project["id"])["net"] == project["net"], "the project keeps its own"
    assert ask("session", "net", session, "--allow", "b.example.com", status=1)["kind"] == "conflict"
    host = ask("project", "create", "q", "--no-git")
    session = ask("session", "start", host["id"], "--detach", "--", "sleep", "60")["session_id"]
    assert "started without a list" in ask("session", "net", session, "--allow", "b.example.com", status=1)["message"]
    assert online("session", "stop", session).returncode == 0


def test_a_host_is_allowed_for_a_run_a_session_or_a_project(machine, online):
    def ask(*args):
        done = online(*args[:2], "--json", *args[2:])
        assert done.returncode == 0, done
        return done.json()

    def hosts():
        return online("session", "exec", session, "--", "sh", "-c", ASK).stdout.split()

    def resume():
        assert online("session", "stop", session, "--grace", "100ms").returncode == 0
        assert ask("session", "start", project, "--detach")["session_id"] == session

    project = ask("project", "create", "p", "--no-git", "--net", "a.example.com")["id"]
    session = ask("session", "start", project, "--detach", "--", "sleep", "600")["session_id"]
    assert hosts() == ["a.example.com"]
    assert ask("session", "allow", session, "--host", "b.example.com")["effective"] == "now" and hosts() == ALL[:2]
    resume()
    assert hosts() == ["a.example.com"], "that was for one run"
    assert ask("session", "allow", session, "--host", "b.example.com", "--for", "session")["effective"] == "now"
    assert ask("session", "allow", session, "--host", "four.example.org", "--for", "policy")["effective"] == "now" and hosts() == ALL
    resume()
    assert hosts() == ALL
    assert ask("project", "get", project)["net"] == ["a.example.com", "four.example.org:443"]
    assert online("session", "stop", session, "--grace", "100ms").returncode == 0


def tell(process, message):
    process.stdin.write((json.dumps(message) + "\n").encode())
    process.stdin.flush()


def test_mcp_carries_the_list_and_widening_needs_a_person(machine, online):
    calls = [
        ("project_create", {"name": "p", "net": ["a.example.com", "four.example.org"]}),
        ("project_update", {"project_id": "p", "net": ["a.example.com", "b.example.com"]}),
        ("project_update", {"project_id": "p", "net": ["a.example.com"]}),
        ("project_update", {"project_id": "p", "net": {"allow": ["a.example.com"], "inject": [
            {"host": "a.example.com", "header": "x-key", "from_env": "SECRET", "base_url_env": "URL"}]}}),
        ("project_update", {"project_id": "p", "net": ["a..example.com"]}),
        ("session_start", {"project_id": "p", "command": ["sh", "-c", ASK], "wait_seconds": 60}),
        ("session_start", {"project_id": "p", "net": ["b.example.com"], "command": ["sh", "-c", ASK], "wait_seconds": 60}),
        ("session_start", {"project_id": "p", "net": "none", "command": ["sh", "-c", ASK], "wait_seconds": 60}),
    ]
    requests = [{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "t", "version": "1"}}}]
    answers, questions = [], []
    process = online.start("mcp", stdin=subprocess.PIPE)
    project = None
    for number, request in enumerate([*requests, *calls]):
        if number:
            tool, args = request
            if project:
                args = {**args, "project_id": project}
            request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": args}}
        tell(process, request)
        while "method" in (answer := json.loads(process.stdout.readline())) or answer.get("id") != number:
            if answer.get("method") == "elicitation/create":
                questions.append(answer["params"]["message"])
                tell(process, {"jsonrpc": "2.0", "id": answer["id"], "result": {"action": "decline"}})
        answers.append(answer)
        project = project or answer.get("result", {}).get("structuredContent", {}).get("id")
    process.stdin.close()
    process.wait(60)
    created, wider, narrower, credentials, bad, session, beyond, none = [answer["result"] for answer in answers[1:]]
    assert created["structuredContent"]["net"] == ["a.example.com", "four.example.org"]
    assert wider["isError"] and credentials["isError"] and len(questions) == 2, questions
    assert "agents would reach more of the network: \"b.example.com:443\"" in questions[0]
    assert narrower["structuredContent"]["net"] == ["a.example.com"]
    assert "agents would use the credential \"SECRET\" of cordon's environment at \"a.example.com\"" in questions[1]
    assert bad["isError"] and "net[0]: bad host" in bad["content"][0]["text"], bad

    def text(answer):
        return "".join(e["text"] for e in answer["structuredContent"]["events"] if e["type"] == "stdout")

    assert text(session).split() == ["a.example.com"] and text(none) == ""
    assert beyond["isError"] and "net is wider than the project's" in beyond["content"][0]["text"]


# ---- agents and profiles ----


def test_agents_carry_a_list_and_one_without_trust_only_narrows(machine, online):
    root = machine.mkdir("repo")
    machine.mkdir("repo/.git")
    own = machine.state.joinpath("profiles")
    machine.run("mkdir", "-p", own)
    machine.run("sh", "-c", f"echo 'net: [a.example.com]' >{own}/mine.yaml")

    def agent(name, **more):
        return {"name": name, "scope": ["**"], "command": ["sh", "-c", ASK], **more}

    machine.write("repo/agents.json", json.dumps({"agents": [
        agent("listed", net=["a.example.com", "b.example.com"]), agent("lesser", extends="listed", net=["b.example.com"]),
        agent("profiled", net="profile", profile="mine")]}))

    def run(name):
        done = online("execute", "--agent", name, cwd=root)
        assert done.returncode == 0, done
        return done.stdout.split(), done.stderr

    assert run("listed")[0] == ["a.example.com", "b.example.com"]
    assert run("lesser")[0] == ["b.example.com"]
    done = online("execute", "--agent", "listed", "--net", "a.example.com,four.example.org", cwd=root)
    assert done.stdout.split() == ["a.example.com"], "an option narrows what the file allows"
    hosts, told = run("profiled")
    assert hosts == [] and "net of profiled has no effect: the file is not trusted" in told
    assert online("agent", "trust", cwd=root).returncode == 0
    assert run("profiled")[0] == ["a.example.com"]
    machine.write("repo/agents.json", json.dumps({"agents": [agent("listed", net=["a.example.com"]), agent("wider", extends="listed", net=["b.example.com"]), agent("profiled", extends="listed", profile="mine", net=["profile"])]}))
    done = online("agent", "validate", cwd=root)
    assert "net is wider than that of listed: the hosts of the profile are not in it" in done.stderr, done
    assert done.returncode == 1 and "net is wider than that of listed: it would reach more of the network: b.example.com:443" in done.stderr, done


def test_a_profile_gives_its_hosts_when_it_is_asked_to(machine, online):
    root = machine.mkdir("work")
    own = machine.state.joinpath("profiles")
    machine.run("mkdir", "-p", own)
    machine.run("sh", "-c", f"echo 'net: [a.example.com]' >{own}/mine.yaml")

    def run(*options):
        return reached(online("run", "--root", root, "--profile", "mine", *options, "--", "sh", "-c", ASK))

    assert run() == ALL, "a list in a profile says what a program needs; it limits nothing by itself"
    assert run("--net", "profile") == ["a.example.com"]
    assert run("--net", "profile,four.example.org") == ["a.example.com", "four.example.org"]
    names = online("profile", "list", "--json").json()
    for name in ("claude", "codex", "gemini", "opencode"):
        assert name in [entry["name"] for entry in names]
        plan = online("run", "--root", root, "--dry-run", "--json", "--profile", name, "--net", "profile", "--", "true").json()
        assert plan["net"] == "list" and plan["hosts"], plan["hosts"]
