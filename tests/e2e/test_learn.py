# SPDX-License-Identifier: Apache-2.0
"""cordon learn: the policy it writes is small, leaves secrets and the rest of the host out, and lets the same command
succeed under `cordon run --policy`, which then refuses everything else."""
import json
import os
import stat

import pytest

DENIED = "Permission denied"


@pytest.fixture
def repo(box):
    files = {f"src/{name}.ts": f"{name}\n" for name in "abc"}
    files.update({f"src/deep/{name}.ts": f"{name}\n" for name in "defg"})
    files.update({"src/build.sh": "sh\n", "docs/d.md": "d\n", "docs/e.txt": "e\n", "lib/x.c": "int x;\n", ".env": "TOKEN=hunter2\n",
                  "keys/server.pem": "-----BEGIN\n"})
    return box.repo(files=files)


def lists(path):
    """{key: [entries]} of the policy, read from its text."""
    found, key = {}, None
    for line in path.read_text().splitlines():
        if line.startswith("  - ") and key:
            found[key].append(json.loads(line[4:].split("  #")[0]))
        elif line and not line.startswith("#"):
            key = line.split(":")[0]
            found[key] = []
    return found


def learn(cordon, repo, script, *options, **kw):
    done = cordon("learn", "--output", "learned.yaml", *options, "--", "/bin/sh", "-c", script, cwd=repo, **kw)
    assert done.returncode == 0, done
    return lists(repo / "learned.yaml")


def enforce(cordon, repo, script, **kw):
    return cordon("run", "--policy", "learned.yaml", "--", "/bin/sh", "-c", script, cwd=repo, **kw)


def test_many_files_of_one_type_become_a_pattern_that_is_then_enforced(cordon, repo):
    script = "cat src/*.ts src/deep/*.ts"
    policy = learn(cordon, repo, script)
    assert policy["ro"] == ["src/**/*.ts"] and "rw" not in policy
    again = enforce(cordon, repo, script)
    assert again.returncode == 0 and again.stdout.split() == list("abcdefg"), again
    other = enforce(cordon, repo, "cat src/build.sh; cat docs/d.md; echo x >src/a.ts; echo x >src/new.ts; cat lib/x.c")
    assert other.stdout == "" and other.returncode != 0
    assert (repo / "src/a.ts").read_text() == "a\n" and not (repo / "src/new.ts").exists()


def test_single_files_stay_single_and_reading_is_apart_from_writing(cordon, repo):
    script = "cat lib/x.c >docs/e.txt"
    policy = learn(cordon, repo, script)
    assert policy["rw"] == ["docs/e.txt"] and policy["ro"] == ["lib/x.c"]
    (repo / "docs/e.txt").write_text("")
    assert enforce(cordon, repo, script).returncode == 0 and (repo / "docs/e.txt").read_text() == "int x;\n"
    other = enforce(cordon, repo, "echo x >lib/x.c; cat docs/d.md; echo x >docs/d.md; cat src/a.ts")
    assert other.stdout == "" and (repo / "lib/x.c").read_text() == "int x;\n" and (repo / "docs/d.md").read_text() == "d\n"


def test_a_folder_the_command_makes_is_granted_whole_and_from_a_clean_tree(cordon, box, repo):
    script = "rm -rf dist; mkdir -p dist/js && cp src/a.ts dist/js/a.js && echo 1 >dist/x && echo 2 >dist/y.map && ls dist"
    policy = learn(cordon, repo, script)
    assert policy["rw"] == ["dist"] and policy["ro"] == ["src/a.ts"]
    box.run("rm", "-rf", str(repo / "dist"))
    again = enforce(cordon, repo, script)
    assert again.returncode == 0 and (repo / "dist/js/a.js").read_text() == "a\n", again


def test_an_atomic_save_needs_no_grant_of_its_temporary_name(cordon, repo):
    script = "sed -i s/a/edited/ src/a.ts"
    policy = learn(cordon, repo, script)
    assert policy["rw"] == ["src/a.ts"]
    (repo / "src/a.ts").write_text("a\n")
    again = enforce(cordon, repo, script)
    assert again.returncode == 0 and (repo / "src/a.ts").read_text() == "edited\n", again


TEMPORARY = {
    # A name that the lens would not let through: no file to be written stands beside it at first, or it says none.
    "a file renamed to a new name": ("t=docs/tmpxyz$(od -An -N2 -tx1 /dev/urandom | tr -d ' ')_ && cp lib/x.c $t && mv $t docs/new.c", ["docs/new.c", "docs/tmp*"], "docs/new.c"),
    "a name of the command's own": ("t=docs/work.aB$(od -An -N2 -tx1 /dev/urandom | tr -d ' ') && sort docs/e.txt >$t && mv $t docs/e.txt", ["docs/e.txt", "docs/work.*"], None),
    "a directory with files in it": ("d=workAb1$(od -An -N2 -tx1 /dev/urandom | tr -d ' ') && mkdir $d && mkdir $d/in && cp lib/x.c $d/in/y && mv $d/in/y docs/new.c && rm -r $d",
                                     ["docs/new.c", "wor*/**"], "docs/new.c"),
    "a directory renamed as a whole": ("d=.workAb1$(od -An -N2 -tx1 /dev/urandom | tr -d ' ') && mkdir $d && cp lib/x.c $d/x.c && mv $d dist", [".work*/**", "dist"], "dist/x.c"),
}


@pytest.mark.parametrize("kind", TEMPORARY)
def test_temporary_names_of_every_run_are_granted_by_the_part_that_stays(cordon, box, repo, kind):
    script, granted, made = TEMPORARY[kind]
    for _ in range(3):
        policy = learn(cordon, repo, "set -e; " + script, "--force")
        left = [path.name for path in repo.glob("**/*ork*")] + [path.name for path in repo.glob("docs/tmp*")]
        assert not left
        if made:
            box.run("rm", "-rf", str(repo / made.split("/x")[0]))
        again = enforce(cordon, repo, "set -e; " + script)
        assert again.returncode == 0, (again, policy)
        assert not made or (repo / made).read_text() == "int x;\n"
        if made:
            box.run("rm", "-rf", str(repo / made.split("/x")[0]))
    assert len(policy["rw"]) == len(granted), policy
    other = enforce(cordon, repo, "echo x >docs/other; echo x >other; mkdir dir; cat docs/d.md")
    assert other.stdout == "" and not (repo / "other").exists() and not (repo / "docs/other").exists()


def test_what_is_only_looked_at_can_be_looked_at_again(cordon, repo):
    script = "test -f lib/x.c && test -d docs && test ! -e nowhere && cat src/*.ts src/deep/*.ts >/dev/null"
    policy = learn(cordon, repo, script)
    assert enforce(cordon, repo, script).returncode == 0
    assert "docs" not in policy["ro"]  # looked at, not into
    assert DENIED in enforce(cordon, repo, "cat docs/d.md").stderr


def test_folders_that_are_walked_become_few_grants_that_show_the_same(cordon, box, repo):
    for i in range(60):
        box.write(f"repo/pkg/p{i}/lib/x.js", "x")
        box.write(f"repo/pkg/p{i}/index.js", "x")
    script = "find pkg src .git -name '*.js' -o -name '*.ts' -o -name HEAD | sort"
    policy = learn(cordon, repo, "set -e; " + script)
    assert policy["ro"] == [".git", "pkg", "src/*", "src/deep/*"] and "rw" not in policy
    plain = box.run("/bin/sh", "-c", script, cwd=repo)
    again = enforce(cordon, repo, script)
    assert again.returncode == 0 and again.stdout == plain.stdout and len(plain.stdout.split()) == 128, again


def test_secrets_are_never_granted(cordon, repo):
    policy = learn(cordon, repo, "cat .env keys/server.pem lib/x.c")
    text = (repo / "learned.yaml").read_text()
    assert policy["ro"] == ["lib/x.c"] and "#   .env  (environment file, read)" in text and "#   keys/server.pem  (private key" in text
    result = enforce(cordon, repo, "cat .env; cat keys/server.pem; cat lib/x.c")
    assert result.stdout == "int x;\n"


def test_a_secret_inside_a_granted_folder_is_denied_by_name(cordon, box, repo):
    for name in ("a.c", "b.h", "c.S", "d.ld", "e.mk"):
        box.write(f"repo/fw/{name}", name)
    box.write("repo/fw/.env", "TOKEN=hunter2\n")
    policy = learn(cordon, repo, "cat fw/* fw/.env >/dev/null")
    assert policy["ro"] == ["fw"] and policy["deny"] == ["fw/.env"]
    result = enforce(cordon, repo, "cat fw/a.c; cat fw/.env")
    assert result.stdout == "a.c" and DENIED in result.stderr


SWEPT = {
    "by a listing": ("ls cfg", ["cfg/*"]),
    "by a type": ("cat cfg/x.json cfg/y.json cfg/z.json", ["cfg/*.json"]),
    "by a folder": ("cat cfg/?.*", ["cfg"]),
    "by folders that were walked": ("find cfg -name '*.zip'; ls cfg/d1 cfg/d2 cfg/d3 cfg/d4", ["cfg"]),
}


@pytest.mark.parametrize("how", SWEPT)
def test_a_secret_that_nobody_used_is_not_opened(cordon, box, repo, how):
    script, granted = SWEPT[how]
    for name in ("x.json", "y.json", "z.json", "1.c", "2.h", "3.S", "4.ld", "5.mk", "d1/a", "d2/a", "d3/a", "d4/a"):
        box.write(f"repo/cfg/{name}", name)
    secrets = ["cfg/secrets.json", "cfg/.env", "cfg/d3/id_rsa", "cfg/d4/secrets/inner/a"]
    for name in secrets:
        box.write(f"repo/{name}", "hunter2\n")
    odd = repo / "cfg" / os.fsdecode(b"od\xffd.pem")
    odd.write_text("hunter2\n")
    box.own(odd)
    policy = learn(cordon, repo, script)
    assert policy["ro"] == granted, policy
    result = enforce(cordon, repo, f"{script}; find cfg -type f | xargs -d '\\n' cat; cat {' '.join(secrets)} cfg/od*")
    assert "hunter2" not in result.stdout, (result, policy)
    assert ("d4/a" in result.stdout) == (granted == ["cfg"]) and "x.json" in result.stdout
    assert "looked at)" not in (repo / "learned.yaml").read_text()


def test_places_outside_the_root_are_comments(cordon, box, repo):
    box.write("elsewhere/data.txt", "data\n")
    script = f"cat {box.path}/elsewhere/data.txt lib/x.c; echo x >{box.path}/elsewhere/made || true"
    learn(cordon, repo, script)
    assert not (box.path / "elsewhere/made").exists()
    text = (repo / "learned.yaml").read_text()
    assert f'#   - "{box.path}/elsewhere"  # written' in text and "\nshare:" not in text
    refused = enforce(cordon, repo, script)
    assert refused.stdout == "int x;\n" and not (box.path / "elsewhere/made").exists()


def test_nothing_used_grants_nothing(cordon, repo):
    policy = learn(cordon, repo, "exit 0")
    assert policy["deny"] == ["**"]
    result = enforce(cordon, repo, "cat lib/x.c; echo x >lib/x.c; echo x >new")
    assert result.stdout == "" and (repo / "lib/x.c").read_text() == "int x;\n" and not (repo / "new").exists()


def test_protected_and_denied_paths_stay_so(cordon, repo):
    policy = learn(cordon, repo, "echo x >.git/config; cat docs/d.md; cat lib/x.c; true", "--deny", "docs", "--protect", "lib/x.c")
    text = (repo / "learned.yaml").read_text()
    assert policy["deny"] == ["docs"] and policy["protect"] == ["lib/x.c"] and policy["ro"] == ["lib/x.c"]
    assert "#   docs/d.md  (read)" in text and "#   .git/config  (written)" in text
    assert "bare = false" in (repo / ".git/config").read_text()


def test_without_patterns_folders_and_files_do(cordon, repo):
    script = "cat src/deep/*.ts; echo x >docs/new"
    policy = learn(cordon, repo, script, "--no-patterns")
    assert policy["rw"] == ["docs"] and policy["ro"] == ["src/deep/%s.ts" % name for name in "defg"]
    os.unlink(repo / "docs/new")
    again = cordon("run", "--policy", "learned.yaml", "--lens", "never", "--", "sh", "-c", script, cwd=repo)
    assert again.returncode == 0 and (repo / "docs/new").exists(), again


def test_git_status_and_commit_work_again(cordon, box):
    top = box.mkdir("project")
    box.write("project/a.c", "int a;\n")
    script = ("git status --short && git add a.c && git -c user.name=n -c user.email=e@x commit -qm message && git log --oneline")
    assert box.run("git", "init", "-q", cwd=top).returncode == 0
    policy = learn(cordon, top, script)
    assert policy["rw"] == [".git"]
    box.write("project/a.c", "int b;\n")
    again = enforce(cordon, top, script)
    assert again.returncode == 0 and again.stdout.count("message") == 2, again


def test_links_inside_the_root_are_followed_again(cordon, box, repo):
    box.link("repo/current", "src/deep")
    script = "cat current/d.ts; echo more >>current/e.ts"
    policy = learn(cordon, repo, script)
    assert policy["ro"] == ["src/deep/d.ts"] and policy["rw"] == ["src/deep/e.ts"]
    assert enforce(cordon, repo, script).stdout == "d\n"


def test_odd_names_are_names(cordon, box, repo):
    names = ["a [1].txt", "b\nc.md", 'q"\\.x', "*.y", "ünï.z"]
    for name in names:
        box.write(f"repo/odd/{name}", "odd\n")
    os.rename(repo / "odd/ünï.z", os.fsencode(repo / "odd") + b"/bad\xff.z")
    script = "cat odd/'a [1].txt' odd/'*.y' odd/bad*; cat odd/b*c.md"
    policy = learn(cordon, repo, script)
    assert enforce(cordon, repo, script).stdout == "odd\n" * 4, policy
    assert "\x1b" not in (repo / "learned.yaml").read_text()


def test_a_file_that_exists_is_kept_unless_forced(cordon, box, repo):
    box.write("repo/learned.yaml", "mine\n")
    refused = cordon("learn", "--output", "learned.yaml", "--", "touch", "ran", cwd=repo)
    assert refused.returncode == 125 and "exists" in refused.stderr and not (repo / "ran").exists()
    assert (repo / "learned.yaml").read_text() == "mine\n"
    assert cordon("learn", "--output", "learned.yaml", "--force", "--", "true", cwd=repo).returncode == 0
    assert "version: 1" in (repo / "learned.yaml").read_text()
    assert stat.S_IMODE(os.stat(repo / "learned.yaml").st_mode) == 0o644
    assert sorted(name for name in os.listdir(repo) if name.startswith(("learned", ".learned"))) == ["learned.yaml"]


def test_a_link_under_the_name_of_the_output_is_replaced_not_followed(cordon, box, repo):
    box.write("victim", "mine\n")
    done = cordon("learn", "--output", "learned.yaml", "--force", "--", "ln", "-s", str(box.path / "victim"), "learned.yaml", cwd=repo)
    assert done.returncode == 0, done
    assert (box.path / "victim").read_text() == "mine\n" and not os.path.islink(repo / "learned.yaml")


def test_output_to_stdout_and_as_an_object(cordon, repo):
    done = cordon("learn", "--output", "-", "--json", "--", "cat", "lib/x.c", cwd=repo)
    assert done.returncode == 0 and done.stdout.startswith("int x;\n# Learned by")
    told = json.loads(done.stderr.splitlines()[-1])
    assert told["ro"] == ["lib/x.c"] and told["rw"] == [] and told["complete"] is True


def test_the_status_of_the_command_passes_through(cordon, repo):
    done = cordon("learn", "--output", "learned.yaml", "--", "sh", "-c", "cat lib/x.c >/dev/null; exit 7", cwd=repo)
    assert done.returncode == 7 and "failed" in done.stderr and lists(repo / "learned.yaml")["ro"] == ["lib/x.c"]
    assert cordon("learn", "--output", "none.yaml", "--", "no-such-program", cwd=repo).returncode == 127
    assert not (repo / "none.yaml").exists()
    assert cordon("learn", cwd=repo).returncode == 2


def test_nothing_is_left_of_a_learned_run(cordon, repo, leftovers):
    learn(cordon, repo, "cat src/*.ts")
    leftovers.assert_none()
