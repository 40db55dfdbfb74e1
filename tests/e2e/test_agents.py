# SPDX-License-Identifier: Apache-2.0
"""Context isolation of named agents: every scenario of the specification, with Node.js agents that try."""
import json
import os

import pytest

from support import descendants, poll, read_stat

AGENTS = {
    "agents": [
        {"name": "developer", "role": "developer", "scope": {"patterns": ["src/**"], "readOnly": False}},
        {"name": "reader", "role": "reviewer", "scope": {"patterns": ["src/**"], "readOnly": True}},
        {"name": "typist", "role": "developer", "scope": ["src/**/*.ts"]},
        {"name": "qa", "role": "qa", "scope": {"read": ["src/**/*.ts"], "write": ["tests/**"]}},
        {"name": "configured", "role": "spec", "scope": ["src"], "env": {"GREETING": "hello", "PORT": 8080}},
    ]
}
FILES = {
    "src/app.ts": "app",
    "src/deep/util.ts": "util",
    "src/run.sh": "run",
    "src/.hidden": "dot",
    "docs/notes.md": "notes",
    "srcsecret/key": "key",
    "tests/a.test.js": "test",
}
# Tries operations and prints {what: "ok" or the code of the error}.
TRY = """
const fs = require("fs");
const tried = {};
for (const [what, path] of JSON.parse(process.argv[1])) {
  try {
    const does = {
      read: () => fs.readFileSync(path), create: () => fs.writeFileSync(path, "new", {flag: "wx"}), modify: () => fs.appendFileSync(path, "+"),
      delete: () => fs.unlinkSync(path), mkdir: () => fs.mkdirSync(path), list: () => fs.readdirSync(path), chmod: () => fs.chmodSync(path, 0o777),
      rename: () => fs.renameSync(path, path + ".moved.ts"),
    };
    does[what]();
    tried[what + " " + path] = "ok";
  } catch (error) {
    tried[what + " " + path] = error.code;
  }
}
console.log(JSON.stringify(tried));
"""
REFUSED = {"EACCES", "EROFS", "EPERM"}


@pytest.fixture
def repo(box):
    return box.repo(files={**FILES, "agents.json": json.dumps(AGENTS)})


@pytest.fixture
def execute(cordon, repo):
    def run(agent, *command, status=0, options=(), **more):
        done = cordon("execute", "--agent", agent, *options, "--", *command, cwd=repo, **more)
        assert done.returncode == status, done
        return done

    return run


@pytest.fixture
def attempt(execute):
    """What an agent's operations end with."""

    def run(agent, *operations):
        pairs = [operation.split(" ", 1) for operation in operations]
        return json.loads(execute(agent, "node", "-e", TRY, json.dumps(pairs)).stdout)

    return run


def allowed(tried):
    return {what for what, code in tried.items() if code == "ok"}


def refused(tried):
    return {what for what, code in tried.items() if code in REFUSED}


# ---- Requirement: Filesystem Isolation ----


def test_agent_can_access_files_in_scope(attempt, repo):
    tried = attempt("developer", "read src/app.ts", "modify src/app.ts", "create src/added.txt", "read src/.hidden", "mkdir src/made",
                    "delete src/run.sh", "list src/deep")
    assert refused(tried) == set() and len(allowed(tried)) == 7, tried
    assert (repo / "src/app.ts").read_text() == "app+" and (repo / "src/added.txt").read_text() == "new"
    assert (repo / "src/made").is_dir() and not (repo / "src/run.sh").exists()


def test_agent_cannot_access_files_outside_scope(attempt, repo, cordon, leftovers):
    tried = attempt("developer", "read docs/notes.md", "modify docs/notes.md", "create docs/x", "delete docs/notes.md", "read srcsecret/key",
                    "create x", "modify agents.json", "create .agent", "chmod docs/notes.md", "read tests/a.test.js")
    assert allowed(tried) == set() and set(tried.values()) <= REFUSED, tried
    assert tried["read docs/notes.md"] == "EACCES", "a permission error, not a missing file"
    for path, content in FILES.items():
        assert (repo / path).read_text() == content
    assert not (repo / "x").exists() and not (repo / "docs/x").exists() and not (repo / ".agent").exists()
    result = cordon("status", "--json", cwd=repo).json()[-1]["agents"][0]
    assert result["violations"] > 0 and result["state"] == "completed"
    leftovers.assert_none()


def test_agent_cannot_reach_the_host_outside_the_repository(attempt, box):
    secret = box.write("secret", "secret")
    tried = attempt("developer", f"read {secret}", f"create {secret}", f"create {box.path}/planted", f"create {box.home}/planted", "modify /etc/hostname")
    assert tried[f"read {secret}"] == "ENOENT" and tried["modify /etc/hostname"] in REFUSED, tried
    assert secret.read_text() == "secret" and not (box.path / "planted").exists() and not (box.home / "planted").exists()


def test_read_only_scope_prevents_modifications(attempt, repo):
    tried = attempt("reader", "read src/app.ts", "list src", "create src/new.ts", "modify src/app.ts", "delete src/app.ts", "mkdir src/dir",
                    "chmod src/app.ts", "rename src/app.ts")
    assert allowed(tried) == {"read src/app.ts", "list src"} and len(refused(tried)) == 6, tried
    assert (repo / "src/app.ts").read_text() == "app" and sorted(p.name for p in (repo / "src").iterdir()) == [".hidden", "app.ts", "deep", "run.sh"]


def test_wildcard_patterns_work_correctly(attempt, repo):
    tried = attempt("typist", "read src/app.ts", "read src/deep/util.ts", "modify src/deep/util.ts", "create src/later.ts", "modify src/later.ts",
                    "create src/deep/later.ts", "list src", "read src/run.sh", "modify src/run.sh", "create src/new.sh", "create src/a.tsx",
                    "read docs/notes.md", "delete src/run.sh")
    assert refused(tried) == {"read src/run.sh", "modify src/run.sh", "create src/new.sh", "create src/a.tsx", "read docs/notes.md",
                              "delete src/run.sh"}, tried
    assert len(allowed(tried)) == 7, tried
    assert (repo / "src/later.ts").read_text() == "new+" and not (repo / "src/new.sh").exists()


def test_one_agent_reads_sources_and_writes_tests(attempt, repo):
    tried = attempt("qa", "read src/app.ts", "modify src/app.ts", "read src/run.sh", "modify tests/a.test.js", "create tests/b.test.js")
    assert allowed(tried) == {"read src/app.ts", "modify tests/a.test.js", "create tests/b.test.js"}, tried
    assert (repo / "src/app.ts").read_text() == "app" and (repo / "tests/b.test.js").exists()


# ---- Requirement: Environment Isolation ----

COMPLETE = {"PATH", "HOME", "USER", "SHELL", "LANG", "TERM", "TMPDIR", "TEMP_DIR", "AGENT_NAME", "AGENT_ROLE", "AGENT_SCOPE_TEMP",
            "AGENT_SCOPE_BASE"}
PARENT = {"SECRET_TOKEN": "s3cret", "COLORTERM": "truecolor", "https_proxy": "http://proxy", "NODE_OPTIONS": "--no-warnings", "TERM": "xterm-secret",
          "NO_COLOR": "1", "LD_LIBRARY_PATH": "/nowhere"}


def environment(execute, agent, **more):
    return json.loads(execute(agent, "node", "-p", "JSON.stringify(process.env)", **more).stdout)


def test_agent_receives_defined_environment_variables(execute, repo):
    env = environment(execute, "developer", env=PARENT)
    assert set(env) == COMPLETE, "these and no others"
    assert (env["AGENT_NAME"], env["AGENT_ROLE"], env["AGENT_SCOPE_BASE"]) == ("developer", "developer", str(repo))
    assert env["TMPDIR"] == env["TEMP_DIR"] == env["AGENT_SCOPE_TEMP"]


def test_agent_cannot_access_parent_environment(execute):
    look = """
    const fs = require("fs");
    let found = JSON.stringify(process.env);
    for (const pid of fs.readdirSync("/proc").filter(name => /^[0-9]+$/.test(name)))
      for (const file of ["environ", "cmdline", "task/" + pid + "/environ"])
        try { found += fs.readFileSync(`/proc/${pid}/${file}`); } catch {}
    console.log(found.includes("s3" + "cret"), found.includes("xterm-" + "secret"), found.includes("AGENT_NAME="));
    """
    assert execute("developer", "node", "-e", look, env=PARENT).stdout == "false false true\n"


def test_agent_specific_variables_are_set(execute):
    env = environment(execute, "configured", env=PARENT)
    assert set(env) == COMPLETE | {"GREETING", "PORT"} and (env["GREETING"], env["PORT"]) == ("hello", "8080")


# ---- Requirement: Process Isolation ----


def test_agent_runs_in_separate_process(cordon, repo, box):
    """Another process in another PID namespace, in which it finds no process of ours."""
    script = "console.log(process.pid, require('fs').readlinkSync('/proc/self/ns/pid'), require('fs').readdirSync('/proc').filter(n => /^[0-9]+$/.test(n)).length)"
    done = cordon("execute", "--agents", "developer,reader", "--json", "--command", f"exec node -e \"{script}\"", cwd=repo)
    assert done.returncode == 0, done
    seen = [result["stdout"].split() for result in done.json()]
    spaces = {space for _, space, _ in seen} | {os.readlink("/proc/self/ns/pid")}
    assert len(spaces) == 3, "each agent has a PID namespace of its own"
    assert all(int(n) < 6 for _, _, n in seen), seen


def test_agent_process_has_isolated_memory(cordon, repo, box):
    """An agent with a secret in its memory, and another one that looks everywhere for it."""
    search = """
    const fs = require("fs");
    const wanted = ["trove", process.argv[1]].join("-");
    let files = 0, hits = 0;
    const look = (path, depth) => {
      let names = [];
      try { names = fs.readdirSync(path); } catch { return; }
      for (const name of names) {
        const full = path + "/" + name;
        try {
          const stat = fs.lstatSync(full);
          if (stat.isDirectory() && depth < 3) look(full, depth + 1);
          else if (stat.isFile() && stat.size < 1e6) { files++; if (fs.readFileSync(full).includes(wanted)) hits++; }
        } catch {}
      }
    };
    for (const pid of fs.readdirSync("/proc").filter(name => /^[0-9]+$/.test(name) && name != process.pid)) {
      try { for (const line of fs.readFileSync(`/proc/${pid}/maps`, "latin1").split("\\n")) {
        const m = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line);
        if (!m) continue;
        const fd = fs.openSync(`/proc/${pid}/mem`), from = parseInt(m[1], 16), b = Buffer.alloc(Math.min(parseInt(m[2], 16) - from, 1 << 20));
        fs.readSync(fd, b, 0, b.length, from); fs.closeSync(fd); files++;
        if (b.includes(wanted)) hits++;
      } } catch {}
      try { process.kill(Number(pid), 0); } catch {}
    }
    for (const path of ["/dev/shm", "/tmp", "/run", process.env.TMPDIR, process.env.HOME]) look(path, 0);
    console.log("hits", hits);
    """
    holder = "const keep = ['trove', '7f3a'].join('-'); require('fs').writeFileSync('/dev/shm/t', keep); require('fs').writeFileSync(process.env.TMPDIR + '/t', keep);" \
             "require('fs').writeFileSync('src/ready', ''); setTimeout(() => console.log(keep), 60000)"
    holding = cordon.start("execute", "--agent", "developer", "--", "node", "-e", holder, cwd=repo)
    poll((repo / "src/ready").exists, 30, "the agent that holds a secret")
    done = cordon("execute", "--agent", "reader", "--", "node", "-e", search, "7f3a", cwd=repo)
    assert done.stdout == "hits 0\n", done
    assert holding.poll() is None
    holding.terminate()
    assert holding.wait(30) == 143


def test_agent_process_can_be_terminated_independently(cordon, repo, box, leftovers):
    """One of five is cancelled, with all that it started; four go on to their own ends."""
    box.write("repo/agents.json", json.dumps({"agents": [{"name": f"a{i}", "role": "qa", "scope": [f"out/{i}/**"]} for i in range(5)]}))
    for i in range(5):
        box.mkdir(f"repo/out/{i}")
    script = (
        "const fs = require('fs'), n = process.env.AGENT_NAME[1]; require('child_process').spawn('sleep', ['1000'], {detached: true});"
        "process.on('SIGTERM', () => fs.writeFileSync(`out/${n}/term`, ''));"
        "fs.writeFileSync(`out/${n}/up`, ''); setInterval(() => { if (fs.existsSync(`out/${n}/go`)) { console.log('done', n); process.exit(0); } }, 20)"
    )
    running = cordon.start("execute", "--all", "--max-concurrent", "5", "--json", "--", "node", "-e", script, cwd=repo)
    poll(lambda: all((repo / f"out/{i}/up").exists() for i in range(5)), 60, "five agents")
    run = cordon("status", "--json", cwd=repo).json()[-1]["runId"]
    assert cordon("execute", "--cancel", run[:8], "--agent", "A2", cwd=box.path).stdout == f"cancelled A2 of {run}\n"

    def state(name):
        return {agent["agentName"]: agent["state"] for agent in cordon("status", run, "--json").json()[0]["agents"]}[name]

    poll(lambda: state("a2") == "cancelled", 30, "the end of the cancelled agent")
    assert (repo / "out/2/term").exists(), "it was asked before it was killed"
    assert [state(f"a{i}") for i in (0, 1, 3, 4)] == ["running"] * 4
    for i in (0, 1, 3, 4):
        box.write(f"repo/out/{i}/go")
    out, _ = running.communicate(timeout=60)
    assert running.returncode == 1
    results = {result["agentName"]: result for result in json.loads(out)}
    assert [results[f"a{i}"]["state"] for i in range(5)] == ["completed", "completed", "cancelled", "completed", "completed"]
    assert [results[f"a{i}"]["stdout"] for i in (0, 1, 3, 4)] == [f"done {i}\n" for i in (0, 1, 3, 4)]
    assert results["a2"]["exitCode"] is None and "was cancelled" in results["a2"]["error"] and results["a2"]["signal"] == 9
    leftovers.assert_none()


# ---- Requirement: Temporary Directory Isolation ----


def test_agent_gets_isolated_temp_directory(cordon, repo, box):
    """Empty at the start, writable, another one for each agent, nothing of the host in it and the root not below it."""
    box.write("tmp/of-the-host", "x")
    script = (
        "const fs = require('fs'), t = process.env.TEMP_DIR; console.log(JSON.stringify({before: fs.readdirSync(t), "
        "same: t == process.env.TMPDIR && t == require('os').tmpdir(), inside: process.env.AGENT_SCOPE_BASE.startsWith(t + '/')}));"
        "fs.writeFileSync(t + '/' + process.env.AGENT_NAME, 'mine'); setTimeout(() => console.log(fs.readdirSync(t).join()), 300)"
    )
    done = cordon("execute", "--agents", "developer,reader,qa", "--json", "--", "node", "-e", script, cwd=repo)
    assert done.returncode == 0, done
    for result in done.json():
        first, last = result["stdout"].splitlines()
        assert json.loads(first) == {"before": [], "same": True, "inside": False} and last == result["agentName"]


def test_temp_directory_is_cleaned_up(execute, cordon, repo, box, leftovers):
    """After a success, a failure, a time-out and the death of the supervisor: nothing of it is on the host."""
    mark = f"mark-{os.getpid()}"
    write = f"require('fs').writeFileSync(process.env.TEMP_DIR + '/{mark}', 'x');"
    execute("developer", "node", "-e", write)
    execute("developer", "node", "-e", write + "process.exit(7)", status=7)
    execute("developer", "node", "-e", write + "setTimeout(() => 0, 60000)", status=124, options=("--timeout", "700"))
    ready = "require('fs').writeFileSync('src/ready', ''); setTimeout(() => 0, 60000)"
    before = set(descendants())
    running = cordon.start("execute", "--agent", "developer", "--", "node", "-e", write + ready, cwd=repo)
    poll((repo / "src/ready").exists, 30, "the agent")
    for pid in set(descendants()) - before - {running.pid}:
        found = read_stat(pid)
        if found and found[1] == running.pid:
            os.kill(pid, 9)
    out, err = running.communicate(timeout=30)
    assert running.returncode == 125 and b"supervisor was killed" in err, err
    assert not list(box.path.rglob(mark)) and not os.path.exists(f"/run/tmp/{mark}") and not os.path.exists(f"/tmp/{mark}")
    leftovers.assert_none()
