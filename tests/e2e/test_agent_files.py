# SPDX-License-Identifier: Apache-2.0
"""The file of agents: both forms are read, every error is reported at its place, edits keep the rest, and trust is in the content."""
import json
import os
import re

import pytest

from support import manual

# As the original writes them: JSON with a scope object, and the YAML of a dump, which repeats equal lists by alias.
ORIGINAL_JSON = """{
  "agents": [
    {
      "name": "frontend-dev",
      "role": "developer",
      "scope": {
        "patterns": [
          "src/**"
        ],
        "readOnly": false
      }
    },
    {
      "name": "Code Reviewer",
      "role": "reviewer",
      "scope": {
        "patterns": [
          "src/**",
          "tests/**"
        ],
        "readOnly": true
      }
    }
  ]
}
"""
ORIGINAL_YAML = """agents:
  - name: Coder
    role: developer
    description: Implements core logic
    scope: &ref_0
      - src/**
  - name: Tester
    role: qa
    description: ''
    scope: *ref_0
    model: gpt-4
    instructions: |
      Write tests.
      Run them.
"""
COMMENTED = """# our agents
agents:
  # writes code
  - name: coder   # the first
    role: developer
    scope: [src/**]

  # writes documents
  - name: writer
    role: spec
    scope:
      - docs/**   # only these
# the end
"""


@pytest.fixture
def repo(box):
    return box.repo(files={"src/a.ts": "", "docs/n.md": "", "tests/t": ""})


@pytest.fixture
def agent(cordon, repo):
    def run(*args, status=0, **options):
        done = cordon("agent", *args, cwd=repo, **options)
        assert done.returncode == status, done
        return done

    return run


def test_the_originals_files_are_read_unchanged(agent, box, repo, cordon):
    box.write("repo/agents.json", ORIGINAL_JSON)
    assert agent("validate").stdout == "Configuration valid (2 agents)\n"
    reviewer = agent("show", "code reviewer", "--json").json()
    assert reviewer["scope"] == {"read": ["src/**", "tests/**"], "write": []} and reviewer["role"] == "reviewer"
    done = cordon("execute", "--agent", "Code Reviewer", "--command", "ls src && ! touch src/x", cwd=repo)
    assert done.returncode == 0 and done.stdout == "a.ts\n", done
    assert (repo / "agents.json").read_text() == ORIGINAL_JSON
    (repo / "agents.json").unlink()
    box.write("repo/.agent/agents.yaml", ORIGINAL_YAML)
    assert agent("validate").stdout == "Configuration valid (2 agents)\n"
    tester = agent("show", "Tester", "--json").json()
    assert tester["scope"] == {"read": [], "write": ["src/**"]} and tester["instructions"] == "Write tests.\nRun them.\n"
    assert agent("list").stdout.splitlines()[0].split("\t") == ["Coder", "developer", "-", "src/**", "Implements core logic"]


def test_an_empty_file_of_the_original_is_valid(agent, box):
    box.write("repo/agents.json", '{"agents": []}')
    assert agent("validate").stdout == "Configuration valid (0 agents)\n"
    assert "has no agents" in agent("list", "--json").stdout or agent("list", "--json").json()["agents"] == []


def test_two_files_are_an_error_unless_one_is_named(agent, box, repo, cordon):
    box.write("repo/agents.json", ORIGINAL_JSON)
    box.write("repo/.agent/agents.yaml", ORIGINAL_YAML)
    assert "has both agents.json and .agent/agents.yaml" in agent("validate", status=1).stderr
    done = cordon("execute", "--agent", "Coder", "--", "true", cwd=repo)
    assert done.returncode == 125 and "has both" in done.stderr
    assert cordon("execute", "--agent", "Coder", "--config", ".agent/agents.yaml", "--", "true", cwd=repo).returncode == 0
    assert agent("validate", "agents.json").stdout == "Configuration valid (2 agents)\n"


def test_all_errors_are_reported_in_one_pass_with_their_places(agent, box):
    box.write("repo/agents.json", """{
 "agents": [
  {"name": "a", "scope": {"patterns": []}},
  {"name": "A", "scope": ["/etc"], "colour": "red"},
  {"role": "two words", "scope": ["src/**.ts", "../x"]},
  {"name": "b", "scope": {"patterns": ["x"], "write": ["y"]}},
  {"name": "c", "scope": {"read": [], "write": []}},
  {"name": "codr"},
  {"name": "bad/name", "scope": ["src"], "readonly": true},
  {"name": "e", "scope": ["src"], "timeout": "soon", "limits": {"pids": 0, "disk": 1}, "net": "some", "env": {"A=B": "x", "TMPDIR": "/tmp"}},
  {"name": "f", "extends": "coder", "command": []},
  {"name": "g", "scope": {"patterns": "src/**"}, "env_pass": "HOME", "best_effort": "yes"}
 ],
 "version": 1
}
""")
    done = agent("validate", status=1)
    places = [re.match(r"cordon: \S+?agents\.json:(\d+):(\d+): (.*)", line).groups() for line in done.stderr.splitlines()]
    lines = [int(line) for line, _, _ in places]
    assert lines == sorted(lines), done.stderr
    told = {line: " | ".join(text for number, _, text in places if int(number) == line) for line in set(lines)}
    for line, part in {3: "must not be empty", 4: "is an agent a already", 5: "no name", 6: "one of two forms", 7: "no patterns", 8: "no scope",
                       9: "not a name", 10: "not a time", 11: "there is no agent 'coder'; did you mean 'codr'", 12: "must be a list", 14: "unknown key 'version'"}.items():
        assert part in told[line], f"{line}: {told.get(line)}"
    assert "unknown key 'colour'" in told[4] and "not a role" in told[5] and "src/**.ts" in told[5] and "unknown key 'readonly'" in told[9]
    assert all(part in told[10] for part in ("pids", "'disk'", "TMPDIR is set by cordon", "'some'", "A=B")), told[10]
    assert "1 to 256 words" in told[11] and "best_effort must be true or false" in told[12]
    assert agent("validate", "--json", status=1).stderr.count('"kind":"config"') == len(places)


@pytest.mark.parametrize("text", ["", "[]", "agents", "{", '{"agents": {}}', "\0", '{"agents": [[]]}', '{"agents": [null, 1, "x"]}', "x" * 2_000_000])
def test_whatever_the_file_holds_is_an_answer(agent, box, text):
    box.write("repo/agents.json", text)
    assert agent("validate", status=1).stderr.startswith("cordon: ")


def test_a_link_or_a_fifo_is_not_read(agent, box, repo):
    box.write("outside.json", ORIGINAL_JSON)
    box.link("repo/agents.json", "../outside.json")
    assert "link" in agent("validate", status=1).stderr
    (repo / "agents.json").unlink()
    os.mkfifo(repo / "agents.json")
    box.own(repo / "agents.json")
    assert "not a regular file" in agent("validate", status=1).stderr


def test_without_a_file_or_with_an_unknown_agent_the_status_is_125(cordon, repo, box):
    done = cordon("execute", "--agent", "coder", "--", "true", cwd=repo)
    assert done.returncode == 125 and "'cordon agent init' makes one" in done.stderr, done
    box.write("repo/agents.json", ORIGINAL_JSON)
    done = cordon("execute", "--agent", "frontend-dv", "--", "true", cwd=repo)
    assert done.returncode == 125 and "did you mean 'frontend-dev'?" in done.stderr, done


# ---- changes ----


def test_edits_keep_comments_order_and_every_other_byte(agent, box, repo):
    path = box.write("repo/.agent/agents.yaml", COMMENTED)
    agent("add", "qa", "--role", "qa", "--scope", "tests/**,*.{md,txt}", "--read-only", "--description", 'says "hi" # no comment', "--model", "m")
    added = '  - name: "qa"\n    role: "qa"\n    description: "says \\"hi\\" # no comment"\n' \
            '    scope: {"patterns": ["tests/**", "*.{md,txt}"], "readOnly": true}\n    model: "m"\n'
    assert path.read_text() == COMMENTED.replace("# the end\n", added + "# the end\n")
    assert agent("show", "QA", "--json").json()["scope"]["read"] == ["tests/**", "*.{md,txt}"]
    agent("remove", "qa")
    assert path.read_text() == COMMENTED
    agent("remove", "coder")
    assert path.read_text() == COMMENTED.replace("  - name: coder   # the first\n    role: developer\n    scope: [src/**]\n", "")
    agent("remove", "writer")
    assert path.read_text().startswith("# our agents\nagents: []\n") and "# writes documents" in path.read_text()
    assert agent("validate").stdout == "Configuration valid (0 agents)\n"


@pytest.mark.parametrize("text", [ORIGINAL_JSON, '{"agents":[{"name":"frontend-dev","scope":["src"]},{"name":"x","scope":["a"]}]}',
                                  '{\n\t"agents": [\n\t\t{"name": "frontend-dev", "scope": ["src"]}\n\t]\n}\n'])
def test_edits_of_json_keep_the_rest(agent, box, repo, text):
    path = box.write("repo/agents.json", text, mode=0o640)
    before = [name["name"] for name in json.loads(text)["agents"]]
    agent("add", "late", "--patterns", "docs/**")
    added = path.read_text()
    assert [name["name"] for name in json.loads(added)["agents"]] == before + ["late"]
    assert added.startswith(text[:text.rindex("}", 0, text.rindex("]"))]) and path.stat().st_mode & 0o777 == 0o640
    agent("remove", "late")
    assert path.read_text() == text
    agent("remove", before[0])
    assert [name["name"] for name in json.loads(path.read_text())["agents"]] == before[1:]


def test_a_refused_edit_leaves_the_file_untouched(agent, box):
    path = box.write("repo/agents.json", ORIGINAL_JSON)
    assert "there is an agent frontend-dev already" in agent("add", "FRONTEND-DEV", status=1).stderr
    assert "src/**.ts" in agent("add", "x", "--patterns", "src/**.ts", status=1).stderr
    assert "not a name" in agent("add", "a/b", status=2).stderr
    assert "did you mean 'frontend-dev'" in agent("remove", "frontend-de", status=1).stderr
    assert path.read_text() == ORIGINAL_JSON
    path = box.write("repo/agents.json", ORIGINAL_JSON + "x")
    agent("add", "y", status=1)
    assert path.read_text() == ORIGINAL_JSON + "x"
    (path).unlink()
    path = box.write("repo/.agent/agents.yaml", ORIGINAL_YAML)
    assert "cannot change" in agent("remove", "Coder", status=1).stderr, "another agent uses its anchor"
    assert path.read_text() == ORIGINAL_YAML


def test_the_first_agent_makes_the_file_and_init_never_overwrites(agent, repo):
    agent("add", "--name", "solo", "--role", "developer")
    assert json.loads((repo / "agents.json").read_text())["agents"] == [
        {"name": "solo", "role": "developer", "scope": {"patterns": ["src/**"], "readOnly": False}}]
    assert "is there already" in agent("init", status=1).stderr


@pytest.mark.parametrize("preset, scope", [
    (None, {"read": [], "write": ["src/**"]}),
    ("frontend", {"read": ["**"], "write": ["src/**/*.{ts,tsx,js,jsx,css,html}"]}),
    ("backend", {"read": [], "write": ["src/**", "migrations/**"]}),
    ("docs", {"read": [], "write": ["docs/**", "*.md"]}),
    ("tests", {"read": ["src/**"], "write": ["tests/**"]}),
    ("read-only", {"read": ["**"], "write": []}),
])
def test_presets(agent, preset, scope):
    agent("init", *(["--preset", preset] if preset else []))
    assert agent("list", "--json").json()["agents"][0]["scope"] == scope


def test_roles_are_listed(cordon):
    assert [role["name"] for role in cordon("role", "list", "--json").json()] == ["developer", "qa", "architect", "reviewer", "spec", "unknown"]


# ---- extends ----


def test_an_agent_that_extends_another_may_only_narrow_it(agent, box):
    base = {"name": "base", "role": "qa", "scope": {"read": ["**"], "write": ["src/**"]}, "timeout": 5000, "limits": {"pids": 50}, "net": "none",
            "env": {"A": "1", "B": "2"}, "env_pass": ["TOKEN", "KEY"], "command": ["true"]}
    child = {"name": "child", "extends": "Base", "scope": {"read": ["docs"], "write": ["src/**/*.ts"]}, "timeout": 1000, "env": {"B": "3"},
             "env_pass": ["KEY"]}
    box.write("repo/agents.json", json.dumps({"agents": [child, base, {"name": "same", "extends": "child"}]}))
    same = agent("show", "same", "--json").json()
    assert same["scope"] == {"read": ["docs"], "write": ["src/**/*.ts"]} and same["role"] == "qa" and same["timeout_ms"] == 1000
    assert same["env"] == {"A": "1", "B": "3"} and same["env_pass"] == ["KEY"] and same["net"] == "none" and same["limits"] == {"pids": 50}
    wider = [{"scope": ["docs/**"]}, {"scope": ["**"]}, {"timeout": 6000}, {"limits": {"pids": 51}}, {"net": "host"}, {"env_pass": ["OTHER"]},
             {"best_effort": True}, {"profile": "claude"}]
    box.write("repo/agents.json", json.dumps({"agents": [base, *({"name": f"w{i}", "extends": "base", **change} for i, change in enumerate(wider))]},
                                             indent=1))
    told = agent("validate", status=1).stderr
    assert told.count("is wider than that of base") == len(wider), told
    loop = [{"name": "x", "extends": "y"}, {"name": "y", "extends": "x"}]
    box.write("repo/agents.json", json.dumps({"agents": loop}))
    assert "extends itself" in agent("validate", status=1).stderr


# ---- trust ----

GREEDY = {"name": "greedy", "scope": ["src/**"], "env_pass": ["SECRET"], "net": "profile", "best_effort": True, "profile": "claude",
          "command": ["sh", "-c", "echo secret=$SECRET; cat docs/n.md; true"]}


def test_an_untrusted_file_widens_nothing_and_says_so(agent, box, cordon, repo):
    box.write("repo/docs/n.md", "notes")
    box.write("repo/agents.json", json.dumps({"agents": [GREEDY]}))
    done = cordon("execute", "--all", cwd=repo, env={"SECRET": "s"})
    assert done.returncode == 0 and done.stdout == "secret=\n", done
    for key in ("env_pass", "net", "profile", "best_effort"):
        assert len(re.findall(rf"agents\.json:1:\d+: {key} of greedy has no effect: the file is not trusted", done.stderr)) == 1, done.stderr
    notices = agent("show", "greedy", "--json").json()
    assert notices["trusted"] is False and len(notices["notices"]) == 4
    narrow = {"name": "narrow", "scope": ["src/**"], "net": "none", "command": "ls /sys/class/net"}
    box.write("repo/agents.json", json.dumps({"agents": [narrow]}))
    done = cordon("execute", "--all", cwd=repo)
    assert "no effect" not in done.stderr and done.stdout in ("", "lo\n"), "net: none counts, because it only narrows"


def test_a_trusted_file_counts_until_it_changes(agent, box, cordon, repo):
    trusting = {key: value for key, value in GREEDY.items() if key not in ("profile", "best_effort", "net")}
    path = box.write("repo/agents.json", json.dumps({"agents": [trusting]}))

    def secret():
        done = cordon("execute", "--all", cwd=repo, env={"SECRET": "s"})
        assert done.returncode == 0, done
        return done.stdout, done.stderr

    assert "greedy: gets the variable SECRET" in agent("trust").stdout
    out, err = secret()
    assert out == "secret=s\n" and "no effect" not in err
    path.write_text(path.read_text() + "\n")
    out, err = secret()
    assert out == "secret=\n" and "env_pass of greedy has no effect" in err
    agent("trust")
    assert secret()[0] == "secret=s\n"
    copy = box.repo("other", files={"src/a": "", "agents.json": path.read_text()})
    done = cordon("execute", "--all", cwd=copy, env={"SECRET": "s"})
    assert done.stdout == "secret=\n", "trust belongs to one place"
    agent("trust", "--revoke")
    assert secret()[0] == "secret=\n"


def test_a_profile_counts_after_trust_and_does_not_widen_the_scope(agent, box, cordon, repo):
    """A stand-in for a client in the user's npm directory, through the shipped profile of the same name."""
    box.write("home/lib/node_modules/client/cli.js", "#!/usr/bin/env node\nprocess.exit(require('child_process').spawnSync('sh', ['-c', process.argv[2]],"
              "{stdio: 'inherit'}).status)\n", mode=0o755)
    box.link("home/bin/claude", "../lib/node_modules/client/cli.js")
    script = "echo key=$ANTHROPIC_API_KEY other=$OTHER mode=$DISABLE_AUTOUPDATER; echo kept >~/.claude/session; cat docs/n.md; echo x >~/.claude/settings.json; true"
    box.write("repo/agents.json", json.dumps({"agents": [
        {"name": "client", "profile": "claude", "scope": ["src/**"], "command": ["claude", script]},
        {"name": "wide", "profile": "wide", "scope": ["src/**"], "command": ["true"]},
        {"name": "none", "profile": "claud", "scope": ["src/**"], "command": ["true"]}]}))
    env = {"PATH": f"{box.home}/bin:/usr/bin:/bin", "ANTHROPIC_API_KEY": "k", "OTHER": "o"}
    done = cordon("execute", "--agent", "client", cwd=repo, env=env)
    assert done.returncode == 127 and "profile of client has no effect" in done.stderr, done
    agent("trust")
    assert cordon("execute", "--agent", "client", "--dry-run", cwd=repo, env=env).returncode == 0 and not (box.home / ".claude").exists()
    done = cordon("execute", "--agent", "client", cwd=repo, env=env)
    assert done.returncode == 0 and done.stdout == "key=k other= mode=1\n" and "docs/n.md: Permission denied" in done.stderr, done
    assert (box.home / ".claude/session").read_text() == "kept\n" and not (box.home / ".claude/settings.json").exists()
    box.write("state/profiles/wide.yaml", 'version: 1\nrw: ["**"]\n')
    done = cordon("execute", "--agent", "wide", cwd=repo, env=env)
    assert done.returncode == 125 and "grants paths of the repository" in done.stderr, done
    done = cordon("execute", "--agent", "none", cwd=repo, env=env)
    assert done.returncode == 125 and "agents.json:1:" in done.stderr and "claude" in done.stderr, done


def test_an_agent_cannot_change_the_files_or_trust_them(agent, box, cordon, repo):
    box.write("repo/agents.json", json.dumps({"agents": [{"name": "a", "scope": ["**"]}]}))
    script = "echo x >>agents.json; mkdir .agent; mv agents.json b; rm agents.json; ln -s /tmp .agent; ls $1/state 2>&1; true"
    done = cordon("execute", "--agent", "a", "--", "sh", "-c", script, "sh", str(box.state), cwd=repo)
    assert done.returncode == 0 and json.loads((repo / "agents.json").read_text())["agents"][0]["name"] == "a", done
    assert not (repo / ".agent").exists() and "trust" not in done.stdout


def test_the_manual_knows_every_key_of_the_file(agent, box):
    page = manual("agents.json.5").read_text()
    told = {key for row in re.findall(r"^\.It (Ic .*)$", page, re.MULTILINE) for key in re.findall(r"Ic (\w+) :", row)}
    box.write("repo/agents.json", '{"agents": [{"name": "a", "scope": ["x"], "qqqqqqqqqqqq": 1}]}')
    known = re.search("known are ([a-z_, ]+)", agent("validate", status=1).stderr)
    assert known and set(known.group(1).split(", ")) == told
    block = re.search(r"^\.Bd -literal.*\n(\{\n(?:.*\n)*?)\.Ed$", page, re.MULTILINE).group(1)
    box.write("repo/agents.json", block)
    assert agent("validate").stdout == "Configuration valid (2 agents)\n"
    yaml = re.search(r"^\.Bd -literal.*\n(agents:\n(?:.*\n)*?)\.Ed$", page, re.MULTILINE).group(1)
    assert agent("validate", str(box.write("x.yaml", yaml))).stdout == "Configuration valid (1 agents)\n"
