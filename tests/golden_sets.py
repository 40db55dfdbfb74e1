# SPDX-License-Identifier: Apache-2.0
"""Option sets of every front end, made from tables, and the world in which they are asked about; test_golden.py compares the answers."""
import itertools
import json

FILES = {
    "src/main.c": "main", "src/lib/util.c": "util", "src/lib/util.h": "util", "src/secret/key.pem": "key", "src/keep.txt": "keep",
    "docs/notes.md": "notes", "docs/deep/more.md": "more", "tests/a.test.js": "test", ".env": "TOKEN=1", ".vscode/settings.json": "{}",
    "package.json": "{}", "build/out.o": "out",
}
QUESTIONS = ["src/main.c", "src/lib/new.c", "src/secret/key.pem", "src/keep.txt", "docs/notes.md", ".env", ".git/config", ".vscode/settings.json",
             "../outside", "BOX/data/x"]
SETTINGS = {
    "workspaces_path": "BOX/ws",
    "shared_workspaces": {name: {"path": f"BOX/areas/{name}", "description": name} for name in ("specs", "media")},
    "orchestrators": {"alone": {"shared_access": []}, "reads": {"shared_access": ["specs"]}, "both": {"shared_access": ["specs", "media"]}},
    "defaults": {
        "providers": {"plain": {"command": ["/bin/true"]}, "named": {"command": ["/bin/true", "{prompt_file}"]}},
        "presets": {
            "base": {"folders": ["src", "docs"], "protected_paths": ["src/keep.txt"], "env_pass": ["GOLDEN_*"]},
            "tight": {"extends": "base", "mode": "strict"},
            "sub": {"extends": "tight", "folders": ["src/lib"]},
        },
    },
}
PROFILE = {"version": 1, "description": "golden", "program": "tool", "state": ["~/.tool"], "keep_env": ["TOOL_*"], "env": {"TOOL_MODE": "1"},
           "net": ["api.example.com"]}
AGENTS = {
    "writer": {"scope": {"patterns": ["src/**"], "readOnly": False}},
    "reader": {"scope": {"patterns": ["src/**"], "readOnly": True}},
    "typist": {"scope": ["src/**/*.c"]},
    "mixed": {"scope": {"read": ["**"], "write": ["docs/**"]}, "timeout": "10m"},
    "folder": {"scope": ["docs"], "env": {"GREETING": "hello", "PORT": 8080}},
    "child": {"extends": "mixed", "scope": {"read": ["docs/**"], "write": ["docs/deep/**"]}},
    "offline": {"scope": ["src"], "net": "none"},
    "listed": {"scope": ["src"], "net": ["api.example.com", "*.example.org:443"]},
    "view": {"scope": ["src/**"], "cow": True},
    "gitread": {"scope": ["src/**"], "git": "read"},
    "gitnone": {"scope": ["src/**"], "git": "none"},
    "beyond": {"scope": ["src/**"], "env_pass": ["TOKEN"], "best_effort": True},
}
# Grants, and what narrows them; every pair is a set.
GRANTS = {
    "none": [], "folder": ["--workspace", "src"], "folders strict": ["--workspace", "src,docs", "--workspace-mode", "strict"],
    "folder permissive": ["--workspace", "docs", "--workspace-mode", "permissive"], "rw": ["--rw", "src"], "rw pattern": ["--rw", "src/**/*.c"],
    "ro and rw": ["--ro", "docs", "--rw", "src/lib"], "preset": ["--preset", "tight"], "file": ["--policy", "BOX/policies/plain.yaml"],
    "file patterns": ["--policy", "BOX/policies/patterns.yaml"], "ro": ["--ro", "**"],
}
NARROWS = {
    "": [], "deny": ["--deny", "src/secret"], "deny pattern": ["--deny", "**/*.pem"], "secrets": ["--deny-secrets"], "within": ["--within", "src"],
    "two fences": ["--within", "src,docs", "--within", "src/lib,docs/deep"], "read only": ["--read-only"], "protect": ["--protect", "src/keep.txt"],
    "bare": ["--no-default-protect"], "unprotect": ["--unprotect", ".vscode"],
}
# Further options; those of the first table also belong to questions.
PLACES = {
    "at": ["--at", "/w"], "home": ["--home", "BOX/kept-home"], "share": ["--share", "BOX/data"], "share ro": ["--share", "BOX/data:ro"],
    "share placed": ["--share", "BOX/data:/data"], "share in root": ["--share", "BOX/data:BOX/repo/src/data"], "no net": ["--net", "none"],
    "host net": ["--net", "host"], "hosts": ["--net", "api.example.com,*.example.org:443"], "profile": ["--profile", "golden"],
    "at and share in it": ["--at", "/w", "--share", "BOX/data:/w/src/data"], "profile net": ["--profile", "golden", "--net", "profile"],
}
RUN_ONLY = {
    "env": ["--env", "A=1", "--env", "B=two"], "keep env": ["--keep-env", "GOLDEN_*"], "timeout": ["--timeout", "90s", "--grace", "1500ms"],
    "memory": ["--memory", "512M"], "pids": ["--pids", "99"], "cpus": ["--cpus", "0.5"], "tmp size": ["--tmp-size", "64M"],
    "lens": ["--lens", "always"], "no lens": ["--lens", "never"], "cow": ["--cow"], "git none": ["--git", "none"], "git read": ["--git", "read"],
    "git commit": ["--git", "commit"], "fail": ["--fail-on-violation"], "program": ["--program", "tool"], "best effort": ["--best-effort"],
}
APART = {("git read", "git commit"), ("share in root", "at")}  # the root's own path is not in the root that stands elsewhere
CROSSED = {
    "lens": ["--lens", "always"], "cow": ["--cow"], "git read": ["--git", "read"], "git commit": ["--git", "commit"], "within": ["--within", "src"],
    "share in root": ["--share", "BOX/data:BOX/repo/src/data"], "at": ["--at", "/w"], "read only": ["--read-only"],
}
POLICIES = {
    "plain": {"rw": ["src"], "ro": ["docs"]}, "patterns": {"rw": ["src/**/*.c", "docs/*.md"], "deny": ["**/*.pem"]},
    "folders": {"workspace": ["src", "docs"], "mode": "permissive"}, "strict": {"workspace": ["src"], "mode": "strict"},
    "fence": {"rw": ["**"], "within": ["src/**", "docs"]}, "read": {"rw": ["src"], "read_only": True}, "secrets": {"deny_secrets": True},
    "protect": {"protect": ["src/keep.txt", "docs/new"]}, "bare": {"default_protect": False}, "unprotect": {"unprotect": [".vscode"]},
    "env": {"env": {"A": "1"}, "keep_env": ["GOLDEN_*"]}, "home": {"home": "BOX/kept-home", "at": "/w"}, "share": {"share": ["BOX/data:/data:ro"]},
    "hosts": {"net": ["api.example.com"]}, "none": {"net": "none"}, "lens": {"lens": "always", "editor_temps": False, "rw": ["src"]},
    "limits": {"limits": {"timeout": "10m", "memory": "1G", "pids": 50, "cpus": "2", "tmp_size": "32M"}}, "cow": {"cow": True},
    "git": {"git": "read", "rw": ["src"]}, "profiles": {"profiles": ["golden"]}, "wrong key": {"rww": ["src"]}, "wrong value": {"mode": "loose"},
    "nowhere": {"workspace": ["absent"]}, "climbs": {"rw": ["../x"]},
}
REFUSED = [
    ["--rw", "../x"], ["--rw", ""], ["--workspace", "absent"], ["--workspace", "../box"], ["--preset", "absent"], ["--policy", "BOX/absent.yaml"],
    ["--profile", "absent"], ["--unprotect", "src/main.c"], ["--within", "/abs"], ["--share", "BOX/absent"], ["--at", "relative"],
    ["--net", "not a host"], ["--workspace-mode", "loose"], ["--deny", "a["], ["--protect", "../x"], ["--no-such-option"],
    ["--home", "BOX/absent-home"], ["--preset", "tight", "--workspace", "tests"],
]
VARIABLES = [{"WORKSPACE_FOLDERS": "src"}, {"WORKSPACE_FOLDERS": "src,docs", "WORKSPACE_MODE": "strict"},
             {"WORKSPACE_FOLDERS": "docs", "WORKSPACE_MODE": "permissive"}, {"WORKSPACE_FOLDERS": "absent"}]
PROJECTS = [[], ["--isolation"], ["--protect", "AGENTS.md"], ["--no-default-protect"], ["--net", "none"], ["--net", "api.example.com"],
            ["--share", "BOX/data:/data:ro"], ["--home", "workspace"], ["--env", "A=1", "--env-pass", "GOLDEN_X"], ["--timeout", "90s", "--memory", "1G", "--pids", "64"],
            ["--cow", "--git", "commit"], ["--best-effort", "--git", "read"], ["--profile", "golden"], ["--home", "relative"]]


def make_world(box):
    """Everything that the sets name. In files, each value has a line of its own: errors name columns, which paths would move."""
    box.repo(files=FILES)
    box.write("repo/agents.json", json.dumps({"agents": [{"name": name, "role": "developer", **agent} for name, agent in AGENTS.items()]}))
    for name in ("data", "repo/src/data", "kept-home", "areas/specs", "areas/media", "ws"):
        box.mkdir(name, mode=0o700 if name in ("kept-home", "ws") else 0o755)
    box.write("data/x", "x")
    box.write("state/config.yaml", placed(json.dumps(SETTINGS, indent=1), box), mode=0o600)
    box.write("state/profiles/golden.yaml", json.dumps(PROFILE))
    box.write("tools/tool", "#!/bin/sh\n", mode=0o755)
    for name, policy in POLICIES.items():
        box.write(f"policies/{name}.yaml", placed(json.dumps({"version": 1, **policy}, indent=1), box))
    for name in SETTINGS["orchestrators"]:
        steps = [{"id": "one", "type": "agent_task", "agent": "worker", "prompt": "x"},
                 {"id": "two", "type": "agent_task", "agent": "worker", "prompt": "x", "workspace_mode": "run_workspace", "needs": ["one"]}]
        box.write(f"ws/{name}/orchestrator.yaml", json.dumps({
            "id": name, "selector_agent": "worker", "default_workflow": "flow", "selection_max_retries": 1,
            "agents": {"worker": {"provider": "plain", "model": "m", "can_orchestrate_workflows": True}},
            "workflows": [{"id": "flow", "version": 1, "steps": steps}],
        }), mode=0o600)
        (box.path / "ws" / name).chmod(0o700)


def placed(text, box):
    return text.replace("BOX", str(box.path))


def run_sets():
    """(name, options, is a question too, environment)"""
    for (grant, options), (narrow, more) in itertools.product(GRANTS.items(), NARROWS.items()):
        yield f"{grant}, {narrow}".strip(", "), options + more, True, {}
    for grant in ("none", "folder", "rw pattern", "ro and rw"):
        for name, options in PLACES.items():
            yield f"{grant}, {name}", GRANTS[grant] + options, True, {}
        for name, options in RUN_ONLY.items():
            yield f"{grant}, {name}", GRANTS[grant] + options, False, {}
    for grant in ("none", "rw pattern"):
        for (one, options), (two, more) in itertools.combinations(CROSSED.items(), 2):
            if (one, two) not in APART:
                yield f"{grant}, {one} and {two}", GRANTS[grant] + options + more, False, {}
    for name in POLICIES:
        yield f"policy {name}", ["--policy", f"BOX/policies/{name}.yaml"], True, {}
    for options in REFUSED:
        yield f"refused {' '.join(options)}", options, True, {}
    for variables in VARIABLES:
        yield " ".join(f"{key}={value}" for key, value in variables.items()), [], True, variables


def sets():
    """Every set once: (name, [(kind, arguments)], environment). The first call of a kind is what the others are compared with."""
    for name, options, asks, env in run_sets():
        calls = [("run", ["run", "--dry-run", "--json", *options, "--", "/bin/true"])]
        if asks:
            calls += [("check", ["check", "--json", *options, "--", *QUESTIONS, "api.example.com:443"]), ("tree", ["tree", *options])]
            calls += [("why", ["why", "--json", *options, "--", question]) for question in ("src/lib/new.c", "docs/notes.md")]
        yield f"run: {name}", calls, env
    for agent in AGENTS:
        for options in ([], ["--net", "none"], ["--cwd", "temp"]):
            call = ["execute", "--agent", agent, "--dry-run", "--json", *options, "--command", "true"]
            yield f"agent: {agent} {' '.join(options)}".strip(), [("agent", call)], {}
        yield f"agent: show {agent}", [("agent show", ["agent", "show", agent, "--json"])], {}
    yield "agent: absent", [("agent", ["execute", "--agent", "absent", "--dry-run", "--json", "--command", "true"])], {}
    for name in SETTINGS["orchestrators"]:
        for options in ([], ["--run-id", "r1"], ["--run-id", "r1", "--run-workspace"], ["--timeout", "90s"]):
            call = ["orchestrator", "run", "--dry-run", "--json", *options, name, "--", "/bin/true"]
            yield f"orchestrator: {name} {' '.join(options)}".strip(), [("orchestrator", call)], {}
        yield f"workflow: {name}", [("workflow", ["workflow", "validate", name, "--json"]), ("workflow", ["workflow", "run", name, "flow", "--check", "--json"])], {}
    for i, options in enumerate(PROJECTS):
        yield f"project: {' '.join(options)}".strip(), [("project", ["project", "create", f"p{i}", "--no-git", "--json", *options, "--", "/bin/true"])], {}
    for preset in ("base", "tight", "sub", "absent"):
        yield f"loop: preset {preset}", [("loop", ["prompt-section", "--preset", preset]), ("loop", ["preset", "show", preset, "--json"])], {}
    for folders in ("src", "src,docs", "src/lib", "absent", "../box"):
        yield f"loop: {folders}", [("loop", ["prompt-section", folders]), ("loop", ["infer-scope", folders]), ("loop", ["validate", "--json", folders])], {}
