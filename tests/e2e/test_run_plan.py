# SPDX-License-Identifier: Apache-2.0
"""What `--dry-run` prints is what is enforced; the objects follow their schemas; doctor, limits and the lower tier."""
import json
import os
import re
import subprocess

import pytest

from support import MOUNT_CALLS, REFUSING, TOP


def sh(cordon, script, *options, **kw):
    return cordon("run", *options, "--", "/bin/sh", "-c", script, **kw)


def check(schema, value, root=None, at="$"):
    """As much of JSON Schema as our schemas use."""
    root = root or schema
    if "$ref" in schema:
        return check(root["$defs"][schema["$ref"].rpartition("/")[2]], value, root, at)
    if "const" in schema:
        assert value == schema["const"], at
    if "enum" in schema:
        assert value in schema["enum"], (at, value)
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        assert any(isinstance(value, kinds[n]) for n in names), (at, value)
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        for name in schema.get("required", []):
            assert name in value, (at, name)
        if schema.get("additionalProperties") is False:
            assert set(value) <= set(properties), (at, set(value) - set(properties))
        for name, inner in properties.items():
            if name in value:
                check(inner, value[name], root, f"{at}.{name}")
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            check(schema["items"], item, root, f"{at}[{i}]")


def schema(name):
    return json.loads((TOP / "docs" / name).read_text())


@pytest.fixture
def repo(box):
    return box.repo(files={"lib/a": "a\n", "docs/d": "d\n", "AGENTS.md": "p\n"})


OPTIONS = [[], ["--workspace", "lib", "--workspace-mode", "strict"], ["--rw", "lib", "--ro", "docs", "--deny", "lib/x"],
           ["--at", "/workspace", "--protect", "AGENTS.md", "--net", "none", "--memory", "1G", "--timeout", "5s"],
           ["--workspace", "lib", "--workspace-mode", "permissive"], ["--rw", "**/*.c"]]


@pytest.mark.parametrize("options", OPTIONS)
def test_the_plan_and_the_result_follow_their_schemas(cordon, repo, options):
    plan = cordon("run", *options, "--dry-run", "--json", "--", "true", cwd=repo).json()
    check(schema("plan-schema.json"), plan)
    result = cordon("run", *options, "--json", "--", "true", cwd=repo)
    assert result.returncode == 0, result
    check(schema("result-schema.json"), json.loads(result.stderr.splitlines()[-1]))


def test_the_check_of_schemas_can_fail():
    with pytest.raises(AssertionError):
        check(schema("plan-schema.json"), {"version": 2})


@pytest.mark.parametrize("options", OPTIONS[:4])
def test_what_the_plan_says_is_what_is_mounted(cordon, repo, options):
    plan = cordon("run", *options, "--dry-run", "--json", "--", "true", cwd=repo).json()
    table = sh(cordon, "cat /proc/self/mountinfo", *options, cwd=repo).stdout
    mounted = {}
    for line in table.splitlines():
        fields = line.split()
        mounted[fields[4].encode().decode("unicode_escape")] = fields[5].split(",")
    for step in plan["steps"]:
        if step["step"] in ("bind", "private", "mask"):
            assert step["path"] in mounted, step
            read_only = step.get("read_only", step["step"] == "mask")
            assert ("ro" in mounted[step["path"]]) == read_only, (step, mounted[step["path"]])
            assert "nosuid" in mounted[step["path"]], step
            assert step.get("device") or "nodev" in mounted[step["path"]], step
    assert "ro" in mounted["/"] and "ro" in mounted["/proc"]


def test_a_dry_run_changes_nothing(cordon, box, repo):
    os.link(repo / "AGENTS.md", repo / "alias")
    before = sorted((str(p), os.lstat(p).st_ino) for p in repo.rglob("*"))
    text = cordon("run", "--protect", "AGENTS.md", "--dry-run", "--", "true", cwd=repo)
    assert text.returncode == 0 and "protected" in text.stdout and "AGENTS.md" in text.stdout
    assert sorted((str(p), os.lstat(p).st_ino) for p in repo.rglob("*")) == before
    assert cordon("audit", "--json").stdout == ""


def test_a_policy_file_says_what_options_say_and_is_itself_protected(cordon, box, repo):
    box.write("repo/cordon.yaml", "version: 1\nrw: [lib]\nro: [docs]\nenv: {GREETING: hello}\nnet: none\nlimits: {timeout: 30s}\n")
    result = sh(cordon, "echo $GREETING; echo x >lib/new; echo x >docs/no; cat AGENTS.md; echo evil >cordon.yaml", "--policy", "cordon.yaml",
                cwd=repo)
    assert result.stdout == "hello\n" and (repo / "lib/new").exists() and not (repo / "docs/no").exists(), result
    held = sh(cordon, "echo evil >cordon.yaml; rm -f cordon.yaml; mv cordon.yaml x", "--policy", "cordon.yaml", "--rw", "**", cwd=repo)
    assert "evil" not in (repo / "cordon.yaml").read_text(), held


def test_doctor_finds_this_machine_fit_and_its_self_test_passes(cordon):
    result = cordon("doctor", "--json")
    value = result.json()
    assert result.returncode == 0 and value["ok"] and value["self_test"]["ok"], result
    assert len(value["self_test"]["promises"]) == 17 and all(p["ok"] for p in value["self_test"]["promises"])
    text = cordon("doctor")
    assert text.returncode == 0 and "self-test" in text.stdout


def test_limits_say_which_mechanism_held_them(cordon, repo, who):
    value = sh(cordon, "true", "--json", "--memory", "300M", "--pids", "40", "--cpus", "1", cwd=repo).json("stderr")
    mechanisms = {name: value["limits"][name]["mechanism"] for name in ("memory", "pids", "cpus")}
    if who.is_root:
        assert all(re.match("cgroup[12]$", m) for m in mechanisms.values()), mechanisms
    else:
        assert all(m for m in mechanisms.values()), mechanisms


def test_the_process_limit_holds_for_the_tree(cordon, repo):
    result = sh(cordon, "i=0; while [ $i -lt 60 ]; do sleep 5 & i=$((i + 1)); done; wait", "--pids", "20", "--timeout", "20s", cwd=repo)
    assert "fork" in result.stderr.lower() or "resource" in result.stderr.lower(), result


# ---- the lower tier ----


@pytest.fixture
def nested(cordon, box, repo):
    """cordon inside cordon: namespaces are refused there, as in a locked-down container."""
    def run(script):
        return sh(cordon, f"export CORDON_HOME=/tmp/inner PATH=/run/bin:$PATH\n{script}", "--share", f"{box.bin}:/run/bin:ro",
                  "--no-default-protect", cwd=repo)
    return run


def test_without_namespaces_a_run_is_refused_and_the_reason_named(box, repo):
    """In a user namespace that allows no other."""
    limit = f"echo 0 > /proc/sys/user/max_user_namespaces && {box.bin}/cordon run -- true"
    result = box.run("unshare", "--user", "--map-root-user", "sh", "-c", limit, cwd=repo)
    assert result.returncode == 125 and "cannot make the namespaces" in result.stderr and "user.max_user_namespaces" in result.stderr, result


def test_best_effort_carries_folder_scopes_and_says_so(nested, repo):
    result = nested("cordon run --best-effort --workspace lib --workspace-mode strict --no-default-protect --result /tmp/r -- sh -c "
                    "'echo in >lib/made; cat lib/a; cat AGENTS.md; echo out >docs/no; ls -d $TMPDIR'; cat /tmp/r; ls -d /tmp/cordon-* 2>/dev/null; "
                    "cordon audit --json")
    lines = result.stdout.splitlines()
    assert lines[0] == "a" and "best effort" in result.stderr, result
    value = json.loads(lines[2])
    assert value["enforcement"]["tier"] == "landlock" and "namespaces" in value["enforcement"]["missing"]
    assert (repo / "lib/made").exists() and not (repo / "docs/no").exists() and "Permission denied" in result.stderr
    private = re.compile(r"/tmp/cordon-[0-9a-f]{8}-")
    assert private.match(lines[1]) and not [line for line in lines[2:] if private.match(line)], lines
    assert any('"best_effort":true' in line for line in lines), lines


def test_git_works_in_the_lower_tier_beside_a_configuration_of_the_system(nested, box):
    box.write("home/.gitconfig", "[user]\n\tname = Ada\n")  # the outer run makes an /etc/gitconfig of it
    result = nested("grep -c Ada /etc/gitconfig; cordon run --best-effort --workspace lib --workspace-mode strict --no-default-protect -- "
                    "sh -c 'cat /etc/gitconfig; cd lib && git init -q && git status --porcelain && git config --get user.name; echo $?'")
    assert result.stdout == "1\n?? a\n1\n" and "cat: /etc/gitconfig: Permission denied" in result.stderr, result


def test_best_effort_refuses_what_landlock_cannot_hold(nested):
    result = nested("cordon run --best-effort --rw lib --ro lib/a -- true; echo $?; cordon run --best-effort --net none -- true; echo $?")
    assert result.stdout == "125\n125\n"


def test_best_effort_ends_the_whole_tree(nested):
    result = nested("cordon run --best-effort --timeout 1s --grace 200ms -- sh -c 'setsid sleep 77 & trap \"\" TERM; while :; do sleep 0.1; done'; "
                    "echo $?; sleep 0.3; pgrep -x sleep | wc -l")
    assert result.stdout.splitlines() == ["124", "0"], result


@pytest.mark.parametrize("call, error", [(call, "EPERM") for call in MOUNT_CALLS] + [("move_mount", "EACCES")])
def test_best_effort_takes_the_lower_tier_where_no_sandbox_can_be_set_up(box, cordon, repo, call, error):
    """Namespaces can be made there, and what comes next is refused, as AppArmor does it."""
    refused = [*REFUSING, MOUNT_CALLS[call], error, cordon.path, "run"]
    plain = box.run(*refused, "--", "true", cwd=repo)
    assert plain.returncode == 125 and "cannot set up the sandbox" in plain.stderr, plain
    script = "echo in >lib/made; cat lib/a; echo out >docs/no; true"
    result = box.run(*refused, "--best-effort", "--workspace", "lib", "--workspace-mode", "strict", "--no-default-protect", "--result", str(box.path / "result"),
                     "--", "sh", "-c", script, cwd=repo)
    assert result.returncode == 0 and result.stdout == "a\n" and (repo / "lib/made").exists() and not (repo / "docs/no").exists(), result
    assert "best effort: cannot set up the sandbox" in result.stderr and "Landlock and seccomp alone hold the folders" in result.stderr, result
    enforcement = json.loads((box.path / "result").read_text())["enforcement"]
    assert enforcement["tier"] == "landlock" and {"namespaces", "mounts"} <= set(enforcement["missing"]), enforcement
    assert [event["detail"]["tier"] for event in map(json.loads, cordon("audit", "--json").stdout.splitlines()) if "tier" in event.get("detail", {})][-1] == "landlock"
    for options in (["--cow"], ["--net", "none"], ["--rw", "lib", "--ro", "lib/a"], ["--protect", "AGENTS.md"], ["--deny", "lib/a"], ["--rw", "lib/*.ts"]):
        result = box.run(*refused, "--best-effort", *options, "--", "touch", "lib/ran", cwd=repo)
        assert result.returncode == 125 and not (repo / "lib/ran").exists(), (options, result)
    assert not list(box.path.parent.glob("cordon-selftest-*"))


def test_best_effort_leaves_the_tier_to_the_machine_and_not_to_the_tree(cordon, box, repo):
    """A tree for which the set-up fails gets its run refused, and not a weaker one."""
    result = cordon("run", "--best-effort", "--result", str(box.path / "result"), "--", "true", cwd=repo)
    assert result.returncode == 0 and json.loads((box.path / "result").read_text())["enforcement"]["tier"] == "full", result
    replace = "import os, sys\nwhile True:\n os.rename('lib', 'x')\n os.mkdir('lib')\n os.rmdir('lib')\n os.rename('x', 'lib')\n"
    racer = box.start("/usr/bin/python3", "-c", replace, cwd=repo)
    tiers = []
    for _ in range(40):
        (box.path / "result").unlink(missing_ok=True)
        result = cordon("run", "--best-effort", "--rw", "lib", "--no-default-protect", "--result", str(box.path / "result"), "--", "true", cwd=repo)
        if result.returncode == 0:
            tiers.append(json.loads((box.path / "result").read_text())["enforcement"]["tier"])
    racer.kill()
    assert set(tiers) <= {"full"}


@pytest.mark.parametrize("call", ["fsmount", "mount_setattr"])
def test_doctor_names_no_tier_that_its_self_test_could_not_set_up(box, cordon, call):
    result = box.run(*REFUSING, MOUNT_CALLS[call], "EPERM", cordon.path, "doctor", "--json")
    value = result.json()
    assert result.returncode == 1 and value["tier"] == "landlock" and not value["ok"] and "cannot set up the sandbox" in value["self_test"]["error"], value
    assert {end["name"]: end["state"] for end in value["front_ends"]}["run, folder scopes"] == "best effort only" and value["change"], value
    text = box.run(*REFUSING, MOUNT_CALLS[call], "EPERM", cordon.path, "doctor").stdout
    assert "lower (Landlock and seccomp only)" in text and "recommended" not in text, text
    assert cordon("doctor", "--json").json()["tier"] == "full"
