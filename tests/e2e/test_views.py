# SPDX-License-Identifier: Apache-2.0
"""`cordon run --cow`: what a run changes stays in a view, and everything else holds as without one."""
import json
import os
import pathlib
import signal
import subprocess

import pytest

from support import poll

WORK = pathlib.Path(__file__).with_name("view_work.py").read_text()
STATUS = pathlib.Path(__file__).with_name("view_status.py").read_text()
DENIED = "Permission denied"


def sh(cordon, script, *options, **kw):
    return cordon("run", "--cow", "--no-summary", *options, "--", "/bin/sh", "-c", script, **kw)


def views(box):
    where = box.state / "state" / "views"
    return sorted(where.iterdir()) if where.exists() else []


def record(view):
    return json.loads((view / "record.json").read_text())


@pytest.fixture(scope="session")
def prepared(base_dir):
    """The tree on which the work is done, made once."""
    top = base_dir / "prepared"
    top.mkdir()
    subprocess.run(["python3", "-c", WORK, "prepare"], cwd=top, check=True, timeout=120)
    return top


@pytest.fixture
def tree(box, prepared):
    top = box.path / "tree"
    subprocess.run(["cp", "-a", prepared, top], check=True)
    box.own(top)
    return top


def show(box, top):
    done = box.run("python3", "-c", WORK, "show", cwd=top, timeout=60)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


@pytest.mark.parametrize("lens", ["never", "always"])
def test_work_that_fails_in_a_naive_overlay_is_the_same_in_a_view(cordon, box, tree, lens):
    native = box.path / "native"
    subprocess.run(["cp", "-a", tree, native], check=True)
    done = box.run("python3", "-c", WORK, "work", cwd=native, timeout=120)
    assert done.returncode == 0, done
    before = show(box, tree)
    result = cordon("run", "--cow", "--no-summary", "--lens", lens, "--", "python3", "-c", WORK, "work", "show", cwd=tree, timeout=120)
    assert result.returncode == 0, result
    seen, wanted = json.loads(result.stdout), show(box, native)
    assert {path: seen.get(path) for path in wanted if seen.get(path) != wanted[path]} == {} and seen.keys() == wanted.keys()
    assert show(box, tree) == before
    assert len(views(box)) == 1 and record(views(box)[0])["state"] == "ended"
    applied = cordon("changes", "apply", "latest", cwd=tree, timeout=60)
    assert applied.returncode == 0, applied
    after = show(box, tree)
    assert {path: after.get(path) for path in wanted if after.get(path) != wanted[path]} == {} and after.keys() == wanted.keys()
    assert (tree / "hard").stat().st_ino == (tree / "hard2").stat().st_ino and (tree / "sparse").stat().st_blocks * 512 < 1 << 20
    undone = cordon("changes", "undo", "latest", cwd=tree, timeout=60)
    assert undone.returncode == 0 and show(box, tree) == before, undone


@pytest.mark.parametrize("lens", ["never", "always"])
def test_git_status_in_a_view_misses_nothing(cordon, box, lens):
    repo = box.repo(files={f"d{i}/e{i}/f{k}": "text\n" for i in range(4) for k in range(3)} | {".gitignore": "ignored*\n", "top": "text\n"})
    for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "one"]):
        done = box.run("git", *command, cwd=repo)
        assert done.returncode == 0, done
    os.utime(repo, (1_000_000_000, 1_000_000_000))
    script = f"git config user.name a; git config user.email a@b; stat -c %Y .; exec python3 - {os.getpid()}"
    result = cordon("run", "--cow", "--no-summary", "--lens", lens, "--", "sh", "-c", script, cwd=repo, input=STATUS, timeout=120)
    assert result.returncode == 0, result
    times, compared, different, remembered = result.stdout.split(maxsplit=3)
    assert times == "1000000000" and compared == "40" and int(different) > 10 and remembered == "UNTR\n", result


@pytest.fixture
def repo(box):
    return box.repo(files={"src/a.c": "a\n", "src/deep/b.c": "b\n", "docs/d.md": "d\n", "AGENTS.md": "prompt\n", "secret/key": "key\n",
                           ".git/hooks/pre-commit.sample": "x\n"})


def listing(top):
    return {str(path.relative_to(top)): path.read_bytes() if path.is_file() else None for path in top.rglob("*")}


ATTEMPTS = """
cat secret/key; mv secret open; ls secret
echo x >AGENTS.md; mv AGENTS.md A; rm -f AGENTS.md; ln AGENTS.md alias && echo x >alias
echo x >.git/hooks/pre-commit; mv .git g; echo x >>.git/config
mkdir .vscode; echo x >.vscode/settings.json; mv docs/d.md .vscode/settings.json
mkdir -p new/deep && mv new moved && ls moved
"""


@pytest.mark.parametrize("lens", ["never", "always"])
def test_boundaries_protected_denied_and_held_names_hold_in_a_view(cordon, box, repo, lens):
    before = listing(repo)
    result = sh(cordon, ATTEMPTS + "cat AGENTS.md; test -e .vscode/settings.json && echo made; echo fine >docs/new.md",
                "--protect", "AGENTS.md", "--deny", "secret", "--lens", lens, cwd=repo)
    assert "key\n" not in result.stdout and "made" not in result.stdout, result
    assert result.stdout.startswith("deep\nprompt\n"), result
    assert listing(repo) == before
    (view,) = views(box)
    upper = view / "upper"
    assert (upper / "docs/new.md").read_text() == "fine\n" and (upper / "moved/deep").is_dir()
    for name in ("AGENTS.md", "secret", "open", ".git/hooks/pre-commit", ".git/config", ".vscode/settings.json", "g"):
        assert not os.path.lexists(upper / name), name
    assert not (upper / "alias").exists() or (upper / "alias").read_text() == "x\n"


LATER = "cat new-secret a/b/key src/key; ls; echo x >src/key || echo held; echo mine >src/other; mv src/other src/moved; cat src/moved"


@pytest.mark.parametrize("lens, killed", [("never", False), ("always", False), ("never", True)])
def test_a_denied_name_that_the_host_makes_beside_a_live_view_is_not_there(cordon, box, repo, lens, killed):
    """Nothing of it is a change of the view either, also when the run was killed before it could clean up."""
    os.utime(repo / "src", (1_000_000_000, 1_000_000_000))
    options = ("--deny", "new-secret", "--deny", "a/b/key", "--deny", "src/key", "--lens", lens)
    live = cordon.start("run", "--cow", "--no-summary", *options, "--", "sh", "-c", f"stat -c %Y src; read line; {LATER}; echo end; read line", cwd=repo,
                        stdin=subprocess.PIPE)
    assert live.stdout.readline() == b"1000000000\n", "directories that had to be made in the layer are like the host's"
    for name in ("new-secret", "a/b/key", "src/key"):
        box.write(f"repo/{name}", "of the host\n")
    live.stdin.write(b"\n")
    live.stdin.flush()
    lines = []
    while not lines or lines[-1] != b"end\n":
        lines.append(live.stdout.readline())
        assert lines[-1], lines
    if killed:
        os.kill(live.pid, signal.SIGKILL)
    output = b"".join(lines).decode() + live.communicate(b"\n", timeout=60)[0].decode()
    assert "of the host" not in output and "new-secret" not in output and "held\nmine\n" in output, output
    shown = cordon("changes", "diff", "latest", "--name-status", cwd=repo)
    assert shown.stdout.splitlines() == ["A\tsrc/moved"], shown
    assert cordon("changes", "apply", "latest", cwd=repo).returncode == 0
    assert [(repo / name).read_text() for name in ("new-secret", "a/b/key", "src/key", "src/moved")] == ["of the host\n"] * 3 + ["mine\n"]


def test_a_strict_scope_holds_in_a_view(cordon, box, repo):
    before = listing(repo)
    result = sh(cordon, "echo x >src/new.c; mv src/deep src/shallow; cat docs/d.md; echo x >docs/d.md; echo x >top; ls", "--workspace", "src",
                "--workspace-mode", "strict", cwd=repo)
    assert result.stderr.count(DENIED) >= 3 and "src" in result.stdout, result
    assert listing(repo) == before
    (view,) = views(box)
    assert sorted(path.name for path in (view / "upper").iterdir()) == ["src"]
    assert (view / "upper/src/shallow/b.c").read_text() == "b\n"


def test_names_decide_through_the_lens_over_a_view(cordon, box, repo):
    before = listing(repo)
    result = sh(cordon, "echo x >src/new.c; echo x >src/new.h; mv src/deep src/shallow; cat src/shallow/b.c; cat docs/d.md", "--rw", "src/**/*.c", cwd=repo)
    assert result.stdout == "b\n" and result.stderr.count(DENIED) >= 2, result
    assert listing(repo) == before
    assert sorted(p.name for p in (views(box)[0] / "upper/src").iterdir()) == ["deep", "new.c", "shallow"]


FORGE = """
import os, sys
for name, value in (("opaque", b"y"), ("redirect", b"/secret"), ("whiteout", b""), ("origin", b"x"), ("metacopy", b"")):
    for path in ("docs", "docs/d.md", "made"):
        try:
            os.setxattr(path, "user.overlay." + name, value)
        except OSError:
            pass
print(sorted(os.listdir("docs")), sorted(os.listdir("made")))
"""


def test_attributes_of_overlayfs_cannot_be_forged(cordon, box, repo):
    before = listing(repo)
    box.write("forge.py", FORGE)
    result = cordon("run", "--cow", "--no-summary", "--share", f"{box.path / 'forge.py'}:/forge.py:ro", "--", "/bin/sh", "-c",
                    "mkdir made; echo x >made/in; python3 /forge.py", cwd=repo)
    assert result.stdout == "['d.md'] ['in']\n", result
    assert listing(repo) == before
    (view,) = views(box)
    for path in [view / "upper", *(view / "upper").rglob("*")]:
        names = os.listxattr(path, follow_symlinks=False)
        assert [name for name in names if name.startswith(("user.overlay.redirect", "user.overlay.whiteout", "user.overlay.metacopy"))] == []
        assert "user.overlay.opaque" not in names or os.getxattr(path, "user.overlay.opaque") == b"y" and path.name == "made"


def test_a_view_in_which_nothing_changed_is_removed_and_so_is_one_of_a_refused_run(cordon, box, repo):
    assert sh(cordon, "cat src/a.c", cwd=repo).stdout == "a\n"
    assert views(box) == []
    refused = cordon("run", "--cow", "--ro", "missing", "--share", "/nowhere", "--", "true", cwd=repo)
    assert refused.returncode == 125 and views(box) == []
    missing = cordon("run", "--cow", "--", "no-such-program", cwd=repo)
    assert missing.returncode == 127 and views(box) == []


def test_the_plan_shows_the_view_and_makes_none(cordon, box, repo):
    plan = json.loads(cordon("run", "--cow", "--protect", "src/a.c", "--dry-run", "--json", "--", "true", cwd=repo).stdout)
    steps = [step["step"] for step in plan["steps"]]
    assert plan["view"]["upper"].startswith(str(box.state)) and steps.count("view") == 1
    assert steps.index("freeze") < steps.index("view") < steps.index("pin")
    assert "view       " in cordon("run", "--cow", "--dry-run", "--", "true", cwd=repo).stdout
    assert views(box) == []
    assert json.loads(cordon("run", "--dry-run", "--json", "--", "true", cwd=repo).stdout)["view"] is None


def test_a_policy_file_asks_for_a_view(cordon, box, repo):
    box.write("policy.yaml", "version: 1\ncow: true\n")
    assert cordon("run", "--policy", str(box.path / "policy.yaml"), "--", "/bin/sh", "-c", "echo x >new", cwd=repo).returncode == 0
    assert not (repo / "new").exists() and (views(box)[0] / "upper/new").read_text() == "x\n"


def test_a_killed_run_leaves_its_view_and_gc_knows_it(cordon, box, repo):
    process = cordon.start("run", "--cow", "--", "/bin/sh", "-c", "echo x >new; exec sleep 600", cwd=repo)
    poll(lambda: views(box) and (views(box)[0] / "upper/new").exists(), 60)
    (view,) = views(box)
    half = view.with_name("00000000-0000-4000-8000-000000000000")
    half.mkdir(mode=0o700)
    box.own(half)
    assert "1 view live" in cordon("gc").stdout and not half.exists()
    process.kill()
    process.wait(60)
    assert poll(lambda: "1 view waits" in cordon("gc").stdout, 60)
    assert record(view)["state"] == "ended" and record(view)["lost"] is True
    assert (view / "upper/new").read_text() == "x\n" and not (repo / "new").exists()


def test_a_view_that_cannot_be_made_is_refused_with_the_reason(cordon, box, repo):
    inside = cordon("run", "--cow", "--root", str(box.path), "--", "true", cwd=repo)
    assert inside.returncode == 125 and "can't keep its changes" in inside.stderr and "CORDON_HOME" in inside.stderr, inside


def test_views_side_by_side_see_the_host_s_tree_and_not_each_other(cordon, box, repo):
    script = "echo $0 >mine; mv src $0-src; until test -e /tmp/../go; do sleep 0.01; done; ls"
    box.mkdir("gate")
    started = [cordon.start("run", "--cow", "--no-summary", "--share", f"{box.path / 'gate'}:/gate:ro", "--", "/bin/sh", "-c",
                            script.replace("/tmp/../go", "/gate/go"), name, cwd=repo) for name in ("one", "two", "three")]
    poll(lambda: len(views(box)) == 3 and all((view / "upper/mine").exists() for view in views(box)), 60)
    box.write("gate/go")
    for process, name in zip(started, ("one", "two", "three")):
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0 and set(out.decode().split()) == {"AGENTS.md", "docs", "mine", f"{name}-src", "secret"}, (out, err)
    assert not (repo / "mine").exists() and (repo / "src/a.c").exists()


def test_the_end_of_a_run_tells_what_the_host_would_execute_first_and_what_to_do_now(cordon, box, repo):
    result = cordon("run", "--cow", "--summary", "--", "/bin/sh", "-c", "echo all: >Makefile; echo x >new; echo y >>src/a.c; rm docs/d.md", cwd=repo)
    (view,) = views(box)
    short = view.name[:8]
    lines = [line.removeprefix("[SUMMARY] ") for line in result.stderr.splitlines() if line.startswith("[SUMMARY]")]
    assert lines[:3] == ["of what was changed the host would execute:", "  created Makefile (make)",
                         f"in view {short}: 2 created, 1 changed, 1 deleted; the root itself is as it was"], result
    assert [line.strip() for line in lines[3:6]] == [f"cordon changes {verb} {short}" for verb in ("diff", "apply", "discard")]
    quiet = cordon("run", "--cow", "--", "/bin/sh", "-c", "echo x >new", cwd=repo)
    assert "changes wait in view" in quiet.stderr and json.loads(cordon("run", "--cow", "--json", "--", "touch", "n", cwd=repo).stderr)["view"]
    assert "nothing was changed" in cordon("run", "--cow", "--summary", "--", "true", cwd=repo).stderr
    assert "+y" in cordon("changes", "diff", short, cwd=repo).stdout
    assert cordon("changes", "discard", short, cwd=repo).returncode == 0 and not view.exists()


@pytest.mark.parametrize("lens", ["never", "always"])
def test_a_directory_that_may_not_be_written_is_renamed_with_its_mode_times_and_attributes(cordon, box, repo, lens):
    closed = box.mkdir("repo/closed")
    box.write("repo/closed/in", "in\n")
    os.setxattr(closed, "user.note", b"kept")
    closed.chmod(0o550)
    os.utime(closed, (1_000_000_000, 1_000_000_000))
    script = "import os; os.rename('closed', 'open'); st = os.stat('open'); print(oct(st.st_mode), st.st_mtime, os.getxattr('open', 'user.note'), os.listdir('open'))"
    result = cordon("run", "--cow", "--no-summary", "--lens", lens, "--", "python3", "-c", script, cwd=repo)
    assert result.stdout == "0o40550 1000000000.0 b'kept' ['in']\n", result
    assert sorted(path.name for path in closed.iterdir()) == ["in"]


@pytest.mark.parametrize("lens", ["never", "always"])
def test_a_directory_with_too_much_in_it_is_not_moved_and_nothing_of_it_is_lost(cordon, box, repo, lens):
    deep = repo / "deep"
    for i in range(70):
        deep = deep / str(i)
    box.mkdir(deep)
    script = "for i in 1 2 3; do python3 -c 'import os; os.rename(\"deep\", \"moved\")'; done; find deep | wc -l"
    result = sh(cordon, script, "--lens", lens, cwd=repo)
    assert result.stderr.count("Invalid cross-device link") == 3 and result.stdout == "71\n", result
    assert result.stderr.count("entry by entry") == 1 and f"rename {repo}/deep, " in result.stderr, result


def test_agents_and_sessions_work_in_views(cordon, box, repo):
    agent = {"name": "one", "role": "developer", "scope": ["src/**"], "cow": True}
    box.write("repo/agents.json", json.dumps({"agents": [agent, {**agent, "name": "two", "extends": "one", "cow": False}]}))
    assert "that works in a view" in cordon("execute", "--agent", "one", "--", "true", cwd=repo).stderr
    box.write("repo/agents.json", json.dumps({"agents": [agent]}))
    done = cordon("execute", "--agent", "one", "--json", "--command", "echo x >src/new", cwd=repo)
    assert done.returncode == 0 and not (repo / "src/new").exists(), done
    (view,) = views(box)
    assert (view / "upper/src/new").read_text() == "x\n" and view.name in done.stdout
    project = json.loads(cordon("project", "create", "p", "--cow", "--json").stdout)
    project = project.get("project", project)
    assert project["cow"] is True
    script = "echo y >made; mkdir -p d; mv d e; cat made"
    started = cordon("session", "start", project["id"], "--", "/bin/sh", "-c", script)
    assert started.returncode == 0 and "y" in started.stdout, started
    (session,) = json.loads(cordon("session", "list", "--json").stdout)["sessions"]
    other = [path for path in views(box) if path != view]
    assert session["view_id"] == other[0].name and record(other[0])["session"] == session["session_id"]
    assert (other[0] / "upper").is_dir() and not list((box.state / "projects" / project["id"]).rglob("made"))
    assert len(list((other[0] / "upper").rglob("made"))) == 1
