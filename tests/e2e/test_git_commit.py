# SPDX-License-Identifier: Apache-2.0
"""`--git none|read|commit`: what works inside, what the host has afterwards, `cordon git check` and `install-hook`."""
import json
import os
import shlex

import pytest

from repositories import Repository
from support import poll

LOG = ("log", "--format=%an|%ae|%s|%P|%H", "--all", "--topo-order")


@pytest.fixture
def repo(box):
    return Repository(box)


@pytest.fixture
def commits(cordon, repo):
    """Runs a shell script inside with --git commit, in the repository."""

    def run(script, *options, ok=True, cwd=None, **more):
        done = cordon("run", "--git", "commit", *options, "--", "sh", "-euc", script, cwd=cwd or repo.path, **more)
        assert not ok or done.returncode == 0, str(done)
        return done

    return run


@pytest.fixture(params=["plain", "view"])
def commits_anyhow(request, cordon, repo, commits):
    """The same, also in a view, whose git directory is an overlay and whose commits are taken over by apply."""

    def run(script):
        if request.param == "plain":
            return commits(script)
        done = commits(script, "--cow", "--no-summary")
        taken = cordon("changes", "apply", "latest", cwd=repo.path)
        assert taken.returncode == 0 or "has no view" in taken.stderr, str(taken)
        return done

    return run


def waiting(cordon, repo):
    return cordon("git", "list", "--json", cwd=repo.path).json()


def test_a_commit_arrives_as_it_is_and_the_status_is_clean(cordon, repo, commits):
    inside = commits(
        "echo c >lib/c.txt; git add lib/c.txt; GIT_AUTHOR_NAME=Agent GIT_AUTHOR_EMAIL=agent@example.org git commit -q -m two;"
        f" git {shlex.join(LOG)}; git cat-file commit HEAD; git status --porcelain"
    )
    log = repo.git(*LOG)
    assert inside.stdout.startswith(log) and "Agent|agent@example.org|two" in log
    assert repo.git("log", "-1", "--format=%cn <%ce>") == "Host Person <host@example.org>"
    assert repo.status() == "" and repo.git("fsck", "--strict", "--no-dangling") == ""
    assert repo.subjects() == ["two", "one"] and waiting(cordon, repo) == []
    assert "[GIT] main: " in inside.stderr
    assert repo.git("reflog", "-1", "--format=%gs") == "cordon: taken over from a run"


def test_a_signature_is_kept(repo, commits):
    raw = (
        "tree $(git write-tree)\nparent $(git rev-parse HEAD)\nauthor A <a@example.org> 1700000000 +0100\n"
        "committer B <b@example.org> 1700000001 +0100\ngpgsig -----BEGIN SSH SIGNATURE-----\n U1NIU0lH\n -----END SSH SIGNATURE-----\n\nsigned\n"
    )
    commits(f'echo s >lib/s; git add lib/s; id=$(printf "%s\\n" "{raw}" | git hash-object -t commit -w --stdin); git reset -q --soft $id')
    assert " U1NIU0lH" in repo.git("cat-file", "commit", "HEAD") and repo.status() == ""


WORK = {
    # name: (script, branch of HEAD, subjects of it)
    "amend": ("echo x >>lib/a.txt; git commit -q -a --amend -m amended", "main", ["amended"]),
    "a branch and tags": (
        "git checkout -q -b topic; echo x >>lib/a.txt; git commit -q -a -m two; git tag v1; git tag -a v2 -m annotated",
        "topic",
        ["two", "one"],
    ),
    "a merge": (
        "git checkout -q -b topic; echo t >lib/t; git add lib; git commit -q -m t; git checkout -q main; echo m >lib/m; git add lib;"
        " git commit -q -m m; git merge -q --no-edit topic; git gc -q --prune=now",
        "main",
        ["Merge branch 'topic'", "m", "t", "one"],
    ),
    "a rebase": (
        "git checkout -q -b topic; echo t >lib/t; git add lib; git commit -q -m t; git checkout -q main; echo m >lib/m; git add lib;"
        " git commit -q -m m; git checkout -q topic; git rebase -q main",
        "topic",
        ["t", "m", "one"],
    ),
    "no branch": ("git checkout -q --detach; echo x >>lib/a.txt; git commit -q -a -m two", "HEAD", ["two", "one"]),
    "a revert": ("echo x >>lib/a.txt; git commit -q -a -m two; git revert --no-edit HEAD >/dev/null", "main", ['Revert "two"', "two", "one"]),
}


@pytest.mark.parametrize("work", WORK)
def test_everyday_work_is_taken_over(repo, commits_anyhow, work):
    script, branch, subjects = WORK[work]
    inside = commits_anyhow(f"{script}; git for-each-ref --format='%(objectname) %(refname)'; git rev-parse HEAD")
    *refs, head = inside.stdout.splitlines()
    assert dict(reversed(line.split(" ", 1)) for line in refs) == repo.refs()
    assert repo.git("rev-parse", "HEAD") == head and repo.git("rev-parse", "--abbrev-ref", "HEAD") == branch
    assert sorted(repo.subjects()) == sorted(subjects) and repo.status() == ""
    repo.git("fsck", "--strict", "--no-dangling")


def test_stash_and_staged_changes_come_along_and_what_was_deleted_stays(cordon, repo, commits):
    repo.git("branch", "old")
    repo.git("tag", "release")
    done = commits(
        "echo x >>lib/a.txt; git stash -q -m 'half done'; git branch -q -D old; git tag -f release $(git commit-tree -m t HEAD^{tree}) >/dev/null;"
        " echo s >lib/staged; git add lib/staged; git rm -q --cached docs/b.txt"
    )
    assert repo.git("stash", "list", "--format=%gs") == "On main: half done"
    assert repo.status().splitlines() == ["D  docs/b.txt", "A  lib/staged", "?? docs/"]
    assert repo.git("rev-parse", "old", "release^{commit}").split() == [repo.git("rev-parse", "main")] * 2
    assert "[GIT] stash: new entry: On main: half done" in done.stderr
    assert "refs/heads/old: the run deleted it, and it stays" in done.stderr and "refs/tags/release: the run moved the tag" in done.stderr
    commits("git stash pop -q")  # what the host had staged is still staged inside, and afterwards
    assert repo.status().splitlines() == ["D  docs/b.txt", " M lib/a.txt", "A  lib/staged", "?? docs/"]


def test_a_linked_worktree_commits_to_its_own_branch(cordon, repo, commits):
    repo.git("worktree", "add", "-q", "../linked", "-b", "side")
    linked = repo.box.path / "linked"
    commits("git status --porcelain; echo w >lib/w; git add lib; git commit -q -m linked; mkdir -p $(git rev-parse --git-common-dir)/hooks", cwd=linked)
    assert repo.subjects("side") == ["linked", "one"] and repo.subjects("main") == ["one"]
    assert repo.git("status", "--porcelain", cwd=linked) == "" and repo.status() == ""
    assert repo.git("branch", "--show-current", cwd=linked) == "side"
    # The branch of another worktree is left alone.
    done = commits("git update-ref refs/heads/side HEAD", ok=False)
    assert "refs/heads/side: it is checked out in the worktree linked" in done.stderr and repo.subjects("side") == ["linked", "one"]


def test_a_strict_workspace_takes_what_lies_inside_and_permissive_warns(cordon, repo, commits):
    strict = ("--workspace", "lib", "--workspace-mode", "strict")
    commits("echo l >lib/l; git add lib; git commit -q -m inside", *strict)
    assert repo.subjects() == ["inside", "one"] and repo.status() == ""
    outside = 'b=$(echo evil | git hash-object -w --stdin); git update-index --add --cacheinfo 100644,$b,docs/new.txt; git commit -q -m outside'
    done = commits(outside, *strict)
    assert "[GIT] REFUSED: docs/new.txt (commit " in done.stderr and repo.subjects() == ["inside", "one"] and repo.status() == ""
    assert commits(outside, *strict, "--fail-on-violation", ok=False).returncode == 3
    assert len(waiting(cordon, repo)) == 2
    again = cordon("git", "take", cwd=repo.path)
    assert again.returncode == 1 and "docs/new.txt" in again.stderr
    for record in waiting(cordon, repo):
        assert cordon("git", "drop", record["id"], cwd=repo.path).returncode == 0
    assert waiting(cordon, repo) == [] and repo.subjects() == ["inside", "one"]
    warned = commits("echo d >docs/d; git add docs; git commit -q -m warned", "--workspace", "lib")
    assert "[GIT] WARNING: docs/d (commit " in warned.stderr and repo.subjects() == ["warned", "inside", "one"]


@pytest.mark.parametrize("scope", [(), ("--workspace", "lib", "--workspace-mode", "strict")], ids=["root", "folder"])
@pytest.mark.parametrize("view", [(), ("--cow", "--no-summary")], ids=["plain", "view"])
def test_a_fence_of_patterns_leaves_the_run_a_git_directory_of_its_own(cordon, repo, commits, view, scope):
    """The fence does not name .git, and the lens asks every fence about the place where that directory is mounted."""
    fenced = (*scope, "--within", "lib/*.sh", *view)

    def take():
        return cordon("changes", "apply", "latest", cwd=repo.path) if view else None

    done = commits("echo n >lib/n.sh; git add lib/n.sh; git commit -q -m fenced; git log -1 --format=%s; ! cat lib/a.txt; ! touch lib/n.txt", *fenced)
    take()
    assert done.stdout == "fenced\n" and f"File: {repo.path}/.git\n" not in done.stderr, str(done)
    assert repo.subjects() == ["fenced", "one"] and repo.status() == "" and not (repo.path / "lib/n.txt").exists()
    done = commits("b=$(echo evil | git hash-object -w --stdin); git update-index --add --cacheinfo 100644,$b,lib/n.txt; git commit -q -m outside", *fenced)
    taken = take() or done
    assert "[GIT] REFUSED: lib/n.txt (commit " in taken.stderr and repo.subjects() == ["fenced", "one"], str(taken)


def test_merging_and_rebasing_the_hosts_own_work_is_inside_a_strict_scope(repo, commits):
    repo.git("checkout", "-q", "-b", "topic")
    repo.box.write("repo/lib/t", "t\n")
    repo.git("add", ".")
    repo.git("commit", "-q", "-m", "topic")
    repo.git("checkout", "-q", "main")
    repo.box.write("repo/docs/b.txt", "changed by the host\n")
    repo.git("commit", "-q", "-a", "-m", "docs")
    repo.git("branch", "again", "topic")
    repo.git("checkout", "-q", "topic")
    strict = ("--rw", "lib", "--rw", ".git", "--workspace-mode", "strict", "--ro", "docs")
    # The files outside can't be checked out inside, so the merge is made of trees, as `git merge-tree` does.
    commits("t=$(git merge-tree --write-tree topic main); git update-ref refs/heads/topic $(git commit-tree $t -p topic -p main -m merged)", *strict)
    assert repo.subjects("topic")[0] == "merged"
    rebased = "t=$(git merge-tree --write-tree again main); git update-ref refs/heads/again $(git commit-tree $t -p main -m rebased)"
    done = commits(rebased, *strict)
    assert repo.subjects("again") == ["rebased", "docs", "one"] and "again@{1}" in done.stderr


def test_read_shows_the_repository_and_changes_nothing(cordon, repo):
    script = "git log --format=%s; git status --porcelain; echo x >lib/new; git add lib/new; git commit -q -m no"
    for scope in (("--git", "read"), ("--workspace", "lib", "--workspace-mode", "strict")):
        done = cordon("run", *scope, "--", "sh", "-c", script, cwd=repo.path)
        assert done.returncode != 0 and done.stdout.startswith("one\n"), str(done)
        assert repo.subjects() == ["one"] and repo.status() == "?? lib/new"
        assert "Rule: .git (--git read)\n[WORKSPACE]   To allow it: use --git commit\n" in done.stderr, str(done)
    hidden = cordon("run", "--git", "none", "--workspace", "lib", "--", "cat", ".git/HEAD", cwd=repo.path)
    assert hidden.returncode == 1 and "Rule: .git (--git none)\n[WORKSPACE]   To allow it: use --git read\n" in hidden.stderr, str(hidden)
    # What is denied by name is not to be read in the history either, unless that is asked for.
    done = cordon("run", "--workspace", "lib", "--workspace-mode", "strict", "--deny", "docs", "--", "git", "log", cwd=repo.path)
    assert done.returncode == 128 and "one" not in done.stdout, str(done)


@pytest.mark.parametrize("scope", [("--git", "read"), ("--read-only",), ("--workspace", "lib", "--workspace-mode", "strict"), ("--rw", ".", "--ro", ".git")])
def test_to_look_at_a_repository_that_can_only_be_read_is_no_violation(cordon, repo, scope):
    """`git status` would refresh the index, whose times no longer fit."""
    os.utime(repo.path / "lib/a.txt", (1, 1))
    before = (repo.path / ".git/index").stat()
    done = cordon("run", *scope, "--fail-on-violation", "--", "sh", "-c", "git status --porcelain && git diff --stat && git log --format=%s", cwd=repo.path)
    assert done.returncode == 0 and done.stdout.endswith("one\n") and "BLOCKED" not in done.stderr, str(done)
    after = (repo.path / ".git/index").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    # What is no look is one; and where the index can be written, git writes it.
    done = cordon("run", *scope, "--fail-on-violation", "--", "sh", "-c", "git add -A; true", cwd=repo.path)
    assert done.returncode != 0 or "BLOCKED" in done.stderr or "Read-only file system" in done.stderr, str(done)
    assert cordon("run", "--", "sh", "-c", 'git status; test -z "$GIT_OPTIONAL_LOCKS"', cwd=repo.path).returncode == 0
    assert (repo.path / ".git/index").stat().st_ino != before.st_ino


def test_the_index_that_a_view_keeps_is_no_second_name_and_one_in_the_root_is(cordon, repo):
    assert cordon("run", "--cow", "--no-summary", "--", "sh", "-c", "echo x >>lib/a.txt", cwd=repo.path).returncode == 0
    before = (repo.path / ".git/index").stat()
    assert before.st_nlink == 2, "the view keeps the index by a second name"
    done = cordon("run", "--git", "read", "--", "git", "status", "--porcelain", cwd=repo.path)
    after = (repo.path / ".git/index").stat()
    assert done.returncode == 0 and "copied apart" not in done.stderr and (after.st_ino, after.st_nlink) == (before.st_ino, 2), str(done)
    os.link(repo.path / ".git/index", repo.path / "lib/second")
    done = cordon("run", "--git", "read", "--", "sh", "-c", "echo bad >lib/second", cwd=repo.path)
    assert "copied apart" in done.stderr and (repo.path / "lib/second").read_text() == "bad\n", str(done)
    assert (repo.path / ".git/index").stat().st_ino != before.st_ino and (repo.path / ".git/index").read_bytes()[:4] == b"DIRC"


def test_none_has_no_repository(cordon, repo):
    done = cordon("run", "--git", "none", "--", "git", "log", cwd=repo.path)
    assert done.returncode == 128 and "not a git repository" in done.stderr, str(done)
    done = cordon("run", "--git", "none", "--", "sh", "-c", "rm -rf .git; git init", cwd=repo.path)
    assert done.returncode != 0 and repo.subjects() == ["one"], str(done)


def test_a_policy_file_says_what_the_repository_is_for(cordon, repo):
    repo.box.write("policy.yaml", "version: 1\ngit: commit\n")
    script = "echo x >>lib/a.txt; git commit -q -a -m two"
    done = cordon("run", "--policy", "../policy.yaml", "--", "sh", "-euc", script, cwd=repo.path)
    assert done.returncode == 0 and repo.subjects() == ["two", "one"], str(done)
    repo.box.write("policy.yaml", "version: 1\ngit: push\n")
    done = cordon("run", "--policy", "../policy.yaml", "--", "true", cwd=repo.path)
    assert done.returncode == 125 and "policy.yaml:2:6: 'push' is not a use of the repository" in done.stderr, str(done)


COMMIT = "git commit -q -m by-agent && echo committed"


def test_agents_say_what_the_repository_is_for(cordon, repo, box):
    """The scope is judged for commits, too; what is refused waits, and an agent that extends another has no more."""
    scope = {"role": "developer", "scope": ["lib/**"]}
    agents = [{"name": "commits", **scope, "git": "commit"}, {"name": "reads", **scope, "git": "read"}, {"name": "none", **scope, "git": "none"},
              {"name": "view", **scope, "git": "commit", "cow": True}, {"name": "says-nothing", **scope}]
    box.write("repo/agents.json", json.dumps({"agents": agents}))

    def execute(name, script):
        return cordon("execute", "--agent", name, "--command", script, cwd=repo.path)

    done = execute("commits", f"echo x >lib/new; git add lib; {COMMIT}")
    assert "committed" in done.stdout and "[GIT] commits: main: " in done.stderr, str(done)
    assert repo.subjects() == ["by-agent", "one"] and repo.status() == "?? agents.json"
    done = execute("view", f"echo x >lib/view; git add lib; {COMMIT}")
    assert repo.subjects() == ["by-agent", "one"] and "its changes wait in a view" in done.stderr, str(done)
    assert cordon("changes", "apply", "latest", cwd=repo.path).returncode == 0 and repo.subjects() == ["by-agent", "by-agent", "one"]
    outside = f"git update-index --add --cacheinfo 100644,$(git hash-object -w lib/a.txt),docs/x; {COMMIT}"
    refused = json.loads(cordon("execute", "--agent", "commits", "--json", "--command", outside, cwd=repo.path).stdout)
    assert refused["state"] == "completed" and refused["git"]["state"] == "refused" and [item["path"] for item in refused["git"]["paths"]] == ["docs/x"]
    assert refused["git"]["id"] in [item["id"] for item in waiting(cordon, repo)] and repo.subjects() == ["by-agent", "by-agent", "one"]
    assert cordon("git", "drop", refused["git"]["id"], cwd=repo.path).returncode == 0
    done = execute("reads", f"git log --format=%s; {COMMIT}")
    assert done.stdout.splitlines() == ["by-agent", "by-agent", "one"] and "committed" not in done.stdout, str(done)
    for name in ("none", "says-nothing"):
        assert "not a git repository" in execute(name, "git log").stderr, name
    for wrong, said in (({"git": "commit", "extends": "reads"}, "git is wider than that of reads: read"), ({"git": "write"}, "'write' is not a use of the repository")):
        box.write("repo/agents.json", json.dumps({"agents": [*agents, {"name": "wrong", **scope, **wrong}]}))
        done = cordon("agent", "validate", cwd=repo.path)
        assert done.returncode != 0 and said in done.stderr and "agents.json:1:" in done.stderr, str(done)


def test_projects_say_what_sessions_may_do_with_the_repository(cordon, box):
    open_project = json.loads(cordon("project", "create", "q", "--git", "commit", "--json").stdout)
    refused = cordon("session", "start", open_project["id"], "--", "true")
    assert refused.returncode != 0 and "the setting git is for isolated projects" in refused.stderr, str(refused)
    project = json.loads(cordon("project", "create", "p", "--isolation", "--git", "commit", "--json").stdout)
    workspace = box.state / "projects" / project["id"] / "workspaces" / project["default_workspace_id"]

    def session(script):
        done = cordon("session", "start", project["id"], "--", "/bin/sh", "-c", f"git config user.name a; git config user.email a@b; {script}")
        found = json.loads(cordon("session", "list", "--json").stdout)["sessions"]
        return done, max(found, key=lambda item: item["started_at"])

    def subjects():
        return box.run("git", "log", "--format=%s", cwd=workspace).stdout.split()

    assert project["git"] == "commit"
    done, record = session(f"echo x >new; git add new; {COMMIT}")
    assert "committed" in done.stdout and subjects()[:1] == ["by-agent"], f"{done} {record}"
    assert record["git"] == "commit" and record["git_result"]["state"] == "taken" and record["git_result"]["commits"] == 1
    assert "git: " in cordon("session", "output", record["session_id"], "--json").stdout
    assert cordon("project", "update", project["id"], "--git", "read").returncode == 0
    done, record = session(f"git log --format=%s; echo y >new; git add new; {COMMIT}")
    assert "by-agent" in done.stdout and "committed" not in done.stdout and "git_result" not in record, f"{done} {record}"
    assert cordon("project", "update", project["id"], "--git", "default", "--cow").returncode == 0
    done, record = session(f"echo z >new; git add new; {COMMIT}")
    assert "committed" in done.stdout and len(subjects()) == len(set(subjects())) and record["view_id"], f"{done} {record}"
    assert cordon("changes", "apply", record["view_id"]).returncode == 0 and subjects()[:2] == ["by-agent", "by-agent"]
    assert cordon("project", "update", project["id"], "--git", "write").returncode == 2


def test_commit_needs_a_repository_that_can_be_copied(cordon, repo, box):
    plain = box.mkdir("plain")
    done = cordon("run", "--git", "commit", "--", "true", cwd=plain)
    assert done.returncode == 125 and "is not the top directory of a git repository" in done.stderr, str(done)
    box.write("repo/.git/MERGE_HEAD", repo.git("rev-parse", "HEAD") + "\n")
    done = cordon("run", "--git", "commit", "--", "true", cwd=repo.path)
    assert done.returncode == 125 and "in the middle of a merge" in done.stderr, str(done)
    (repo.path / ".git/MERGE_HEAD").unlink()
    box.write("repo/.git/objects/info/alternates", "/usr/share\n")
    done = cordon("run", "--git", "commit", "--", "true", cwd=repo.path)
    assert done.returncode == 125 and "borrows objects from /usr/share" in done.stderr and waiting(cordon, repo) == [], str(done)
    (repo.path / ".git/objects/info/alternates").unlink()
    repo.git("update-index", "--split-index")
    done = cordon("run", "--git", "commit", "--", "true", cwd=repo.path)
    assert done.returncode == 125 and "has a split index" in done.stderr, str(done)
    done = cordon("run", "--cow", "--no-summary", "--", "git", "status", "--porcelain", cwd=repo.path)
    assert done.returncode == 0, str(done)
    repo.git("update-index", "--no-split-index")
    assert list(repo.path.glob(".git/sharedindex.*")), "what git leaves behind says nothing about the index"
    done = cordon("run", "--git", "commit", "--", "true", cwd=repo.path)
    assert done.returncode == 0, str(done)


def test_a_very_large_log_of_head_is_left_out(repo, commits_anyhow):
    line = "0" * 40 + " " + repo.git("rev-parse", "HEAD") + " Host Person <host@example.org> 1 +0000\t" + "x" * 1000 + "\n"
    with open(repo.path / ".git/logs/HEAD", "w", encoding="utf-8") as log:
        log.write(line * ((17 << 20) // len(line)))
    commits_anyhow("echo x >lib/x; git add lib; git commit -q -m x")
    assert repo.subjects() == ["x", "one"]
    assert (repo.path / ".git/logs/HEAD").stat().st_size > 16 << 20


def test_whoever_only_looks_at_a_view_leaves_its_git_directory_alone(cordon, box, repo, commits):
    """The end of a run and the page ask whether there are commits, without the lock of the view."""
    commits("echo x >lib/x; git add lib; git commit -q -m x", "--cow", "--no-summary")
    (start,) = box.state.glob("state/views/*/git-start")
    assert sorted(path.name for path in start.iterdir()) == ["git", "started"]
    assert cordon("changes", "show", "latest", cwd=repo.path).returncode == 0
    assert sorted(path.name for path in start.iterdir()) == ["git", "started"]
    assert cordon("changes", "apply", "latest", cwd=repo.path).returncode == 0 and repo.subjects() == ["x", "one"]


def test_a_run_that_commits_nothing_leaves_nothing(cordon, repo, commits):
    before = (repo.refs(), (repo.path / ".git/index").read_bytes())
    done = commits("git status; git log")
    assert (repo.refs(), (repo.path / ".git/index").read_bytes()) == before and "[GIT]" not in done.stderr
    assert waiting(cordon, repo) == [] and list((repo.box.state / "state/git").iterdir()) == []


def test_check_judges_ranges_commits_and_what_is_staged(cordon, repo):
    def check(*args):
        return cordon("git", "check", *args, cwd=repo.path)

    repo.box.write("repo/lib/in", "x\n")
    repo.git("add", ".")
    repo.git("commit", "-q", "-m", "in")
    assert check("--workspace", "lib", "HEAD").returncode == 0
    repo.box.write("repo/docs/out", "x\n")
    repo.git("add", ".")
    staged = check("--workspace", "lib", "--staged")
    assert staged.returncode == 1 and "docs/out (staged)" in staged.stderr, str(staged)
    repo.git("commit", "-q", "-m", "out")
    assert check("--workspace", "lib", "HEAD~1").returncode == 0 and check("--workspace", "docs", "HEAD~1..HEAD").returncode == 0
    done = check("--workspace", "lib", "HEAD~2..HEAD", "--json")
    assert done.returncode == 1 and [path["path"] for path in done.json()["paths"]] == ["docs/out"] and done.json()["state"] == "refused"
    assert check("--workspace", "lib", "--workspace-mode", "permissive", "HEAD").returncode == 0
    assert check("--deny", "docs", "--workspace-mode", "permissive", "HEAD").returncode == 1
    repo.box.write("policy.yaml", "version: 1\nrw: [docs]\n")
    assert check("--policy", "../policy.yaml", "HEAD").returncode == 0 and check("--policy", "../policy.yaml", "HEAD~1").returncode == 1
    assert check("no-such-branch").returncode == 2 and check("--all").returncode == 2 and check().returncode == 2
    assert check("--unpushed", "HEAD", "--workspace", "lib").returncode == 1  # no remote has any commit


def test_hooks_refuse_commits_and_pushes(cordon, repo, box):
    def install(*args):
        return cordon("git", "install-hook", *args, cwd=repo.path)

    def commit(path):
        box.write(f"repo/{path}", "x\n")
        repo.git("add", ".")
        return box.run("git", "commit", "-q", "-m", path, cwd=repo.path)

    done = install("--workspace", "lib")
    assert done.returncode == 0 and done.stdout == f"{repo.path}/.git/hooks/pre-commit\n", str(done)
    assert commit("lib/ok").returncode == 0
    refused = commit("docs/no")
    assert refused.returncode == 1 and "docs/no" in refused.stderr, str(refused)
    (repo.path / ".git/hooks/pre-commit").unlink()
    assert commit("docs/no").returncode == 0
    box.run("git", "init", "-q", "--bare", box.path / "remote.git")
    assert install("--pre-push", "--workspace", "lib").returncode == 0
    assert box.run("git", "push", "-q", box.path / "remote.git", "main~1:refs/heads/main", cwd=repo.path).returncode == 1  # one has docs/
    assert install("--pre-push", "--workspace", "lib,docs").returncode == 0
    assert box.run("git", "push", "-q", box.path / "remote.git", "main", cwd=repo.path).returncode == 0
    assert install("--pre-push", "--workspace", "lib").returncode == 0
    assert commit("docs/more").returncode == 0
    assert box.run("git", "push", "-q", box.path / "remote.git", "main", cwd=repo.path).returncode == 1
    box.write("repo/.git/hooks/pre-commit", "#!/bin/sh\nexit 0\n", mode=0o755)
    theirs = install("--workspace", "lib")
    assert theirs.returncode == 1 and "has a pre-commit hook already" in theirs.stderr
    assert install("--workspace", "lib", "--force").returncode == 0 and install("--workspace", "nowhere").returncode != 0


def test_a_run_whose_commits_are_refused_says_the_same_by_its_exit_status_and_its_result(cordon, box, repo, commits):
    refused = "b=$(echo evil | git hash-object -w --stdin); git update-index --add --cacheinfo 100644,$b,docs/new.txt; git commit -q -m outside"
    taken = "echo l >lib/l; git add lib; git commit -q -m inside"
    for script, status, state, git in ((taken, 0, "completed", "taken"), (refused, 3, "failed", "refused"), ("true", 0, "completed", None)):
        options = ["--workspace", "lib", "--workspace-mode", "strict", "--fail-on-violation", "--result", box.path / "result.json"]
        done = commits(script, *options, ok=False)
        result = json.loads((box.path / "result.json").read_text())
        assert done.returncode == status, str(done)
        assert (result["state"], result.get("failed_on_violation", False), result["exit_code"]) == (state, status == 3, 0)
        assert result.get("git", {}).get("state") == git
    refusal = json.loads(commits(refused, *options[:5], "--json", ok=False).stderr.splitlines()[-2])
    assert refusal["state"] == "failed" and refusal["git"]["id"] in [record["id"] for record in waiting(cordon, repo)]
    # Without the option, the command's own status counts, and the result still says what became of the commits.
    assert commits(refused, *options[:4], "--result", box.path / "result.json").returncode == 0
    result = json.loads((box.path / "result.json").read_text())
    assert result["state"] == "completed" and result["git"]["refused"] == 1


@pytest.mark.parametrize("lens", ["never", "always"])
@pytest.mark.parametrize("scope", [["--within", "lib"], ["--workspace", "lib", "--workspace-mode", "strict", "--within", "lib", "--within", "lib,docs/x"]])
def test_a_fence_leaves_the_repository_to_whoever_asks_for_it(cordon, repo, lens, scope):
    options = ["--lens", lens, *scope]
    inside = ("sh", "-c", "echo two >>lib/a.txt; git commit -q -a -m two; git log --format=%s; cat docs/b.txt; echo x >>docs/b.txt")
    done = cordon("run", *options, "--git", "commit", "--", *inside, cwd=repo.path)
    assert done.stdout == "two\none\n" and done.stderr.count("Permission denied") >= 2, str(done)
    assert repo.subjects() == ["two", "one"] and repo.status() == "" and (repo.path / "docs/b.txt").read_text() == "b\n"
    inside = ("sh", "-c", "git log --format=%s; git cat-file -p HEAD:docs/b.txt; echo x >.git/x; cat docs/b.txt; git commit -q --allow-empty -m three")
    done = cordon("run", *options, "--git", "read", "--", *inside, cwd=repo.path)
    assert done.stdout == "two\none\nb\n" and "docs/b.txt: Permission denied" in done.stderr, str(done)
    assert repo.subjects() == ["two", "one"] and not (repo.path / ".git/x").exists()
    # Where nobody asked, the fence hides it.
    done = cordon("run", *options, "--", "git", "log", cwd=repo.path)
    assert done.returncode == 128 and "not a git repository" in done.stderr, str(done)


def test_the_result_is_an_object_with_json(cordon, repo):
    done = cordon("run", "--git", "commit", "--json", "--", "sh", "-euc", "echo x >>lib/a.txt; git commit -q -a -m two", cwd=repo.path)
    objects = [json.loads(line) for line in done.stderr.splitlines()]
    git = next(item["git"] for item in objects if item.get("kind") == "git")
    assert git["state"] == "taken" and git["commits"] == 1 and git["refs"][0]["new"] == repo.git("rev-parse", "HEAD")


def test_the_run_starts_with_the_refs_and_the_index_that_git_sees_and_cannot_reach_the_hosts(repo, commits_anyhow):
    head = repo.git("rev-parse", "HEAD")
    repo.git("branch", "packed")
    repo.git("update-ref", "refs/remotes/origin/main", head)
    repo.git("pack-refs", "--all")
    repo.git("commit", "-q", "--allow-empty", "-m", "two")  # main is loose now, and its packed value is old
    repo.git("update-ref", "refs/notes/deep/er", head)
    repo.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    repo.git("symbolic-ref", "refs/remotes/origin/none", "refs/remotes/origin/missing")
    repo.git("update-index", "--refresh")
    index, kept = (repo.path / ".git/index").read_bytes(), (repo.path / ".git/index").stat()
    inside = commits_anyhow(
        "git for-each-ref --format='%(objectname) %(refname)'; git ls-files -s; git reflog -2 --format=%gs;"
        " printf evil | dd of=.git/index conv=notrunc status=none; echo x >>.git/info/exclude; chmod 600 .git/index; touch -d @1 .git/index"
    )
    seen = repo.git("for-each-ref", "--format=%(objectname) %(refname)") + "\n" + repo.git("ls-files", "-s")
    assert seen in inside.stdout and "commit: two" in inside.stdout, str(inside)
    now = (repo.path / ".git/index").stat()
    assert (repo.path / ".git/index").read_bytes() == index and (now.st_mode, now.st_mtime_ns, now.st_ino) == (kept.st_mode, kept.st_mtime_ns, kept.st_ino)
    assert repo.status() == ""


def test_what_a_run_in_a_view_removed_from_its_git_directory_does_not_come_back(cordon, box, repo):
    """Its git directory is completed after the run with what the run left alone, and with nothing else, however often it is looked at."""
    repo.git("branch", "old")
    script = "rm .git/packed-refs; rm -r .git/info; mkdir .git/info; echo mine >.git/info/exclude; git checkout -q --detach 2>/dev/null; echo x >lib/x; ls .git .git/logs"
    inside = cordon("run", "--cow", "--no-summary", "--", "sh", "-c", script, cwd=repo.path)
    (view,) = (box.state / "state/views").iterdir()
    for _ in range(2):
        done = cordon("changes", "apply", "latest", "--dry-run", cwd=repo.path)
        names = sorted(path.name for path in (view / "git").iterdir())
        assert "packed-refs" not in names and {"HEAD", "config", "index", "refs", "objects", "logs"} <= set(names), f"{inside} {done} {names}"
        assert [path.name for path in (view / "git/info").iterdir()] == ["exclude"] and (view / "git/info/exclude").read_text() == "mine\n"
        assert (view / "git/index").stat().st_ino == (repo.path / ".git/index").stat().st_ino, "what it left alone is no copy"
    assert "refs/heads/old: the run deleted it, and it stays" in done.stderr and set(repo.refs()) == {"refs/heads/main", "refs/heads/old"}, str(done)


def test_a_branch_whose_name_is_no_utf_8_is_taken_over(repo, commits):
    name = b"\xe4".decode("utf-8", "surrogateescape")
    repo.git("checkout", "-q", "-b", name)
    done = commits("git commit -q --allow-empty -m two", "--no-summary")
    assert repo.subjects() == ["two", "one"] and repo.subjects("main") == ["one"], str(done)


def test_nothing_of_a_repository_that_is_only_read_can_be_changed_under_a_second_name(cordon, repo):
    """Git does not notice that a blob is not what its name says, so single objects count, too."""
    objects = repo.path / ".git/objects"
    single = next(path for path in objects.glob("??/*"))
    repo.git("repack", "-q")
    pack = next(objects.glob("pack/*.pack"))
    for number, path in enumerate((single, pack, repo.path / ".git/description")):
        (repo.path / f"twin{number}").hardlink_to(path)
    done = cordon("run", "--git", "read", "--", "git", "log", "-1", "--format=%s", cwd=repo.path)
    assert done.returncode == 0 and done.stdout == "one\n", str(done)
    links = [path.stat().st_nlink for path in (single, pack, repo.path / ".git/description")]
    assert links == [1, 1, 1], str(done)
    assert cordon("run", "--cow", "--git", "read", "--", "sh", "-c", "echo x >.git/description", cwd=repo.path).returncode != 0
    assert (repo.path / ".git/description").stat().st_nlink == 1


def test_taking_over_is_in_the_audit_log_and_gc_removes_what_killed_runs_left(cordon, box, repo, commits):
    commits("echo c >lib/c; git add lib; git commit -q -m two")
    commits("echo d >docs/d; git add docs; git commit -q -m three", "--workspace", "lib", "--workspace-mode", "strict", ok=False)
    log = [json.loads(line) for line in cordon("audit", "--json", cwd=repo.path).stdout.splitlines()]
    taken = [entry for entry in log if entry.get("op") == "git-take"]
    assert [(entry["detail"]["commits"], entry["detail"]["refs"]) for entry in taken][:1] == [(1, 1)], log
    records = box.state / "state/git"

    def killed(script):
        before = set(records.iterdir())
        run = cordon.start("run", "--git", "commit", "--", "sh", "-c", f"{script}; touch ready; sleep 600", cwd=repo.path)
        poll((repo.path / "ready").exists)
        run.kill()
        run.wait()
        (repo.path / "ready").unlink()
        (made,) = set(records.iterdir()) - before
        os.utime(made, (1, 1))
        return made

    idle, busy = killed("true"), killed("git commit -q --allow-empty -m mine")
    assert cordon("gc", cwd=repo.path).returncode == 0
    assert not idle.exists() and busy.exists()
    assert cordon("git", "take", busy.name[:8], cwd=repo.path).returncode == 0 and repo.subjects()[0] == "mine"
