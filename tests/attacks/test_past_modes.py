# SPDX-License-Identifier: Apache-2.0
"""Attacks on modes and shares that succeeded against an earlier version: what it showed of the host, and let the agent change.

Each attack is made from inside, and what came of it is looked up on the host."""
import json
import os
import pathlib
import re

import pytest

from support import TOP, remove_tree

PERMISSIVE = ["--workspace", "src", "--workspace-mode", "permissive"]
STRICT = ["--workspace", "src", "--workspace-mode", "strict"]
MODES = pytest.mark.parametrize("mode", [PERMISSIVE, STRICT], ids=["permissive", "strict"])


@pytest.fixture
def neighbours(arena):
    """What lies around the repository and is nobody's business inside it."""
    arena.box.write("home/notes.txt", "my notes\n")
    arena.box.write("home/.ssh/id_ed25519", "the key\n", mode=0o600)
    arena.box.write("beside/data.txt", "beside\n")
    return arena.box


def content(top):
    """{path: content} of every file below a directory of the host."""
    return {str(p): p.read_bytes() for p in sorted(pathlib.Path(top).rglob("*")) if p.is_file()}


# ---- permissive means the repository, never the rest of the host ----


@MODES
def test_outside_the_root_the_modes_do_not_differ(arena, neighbours, mode):
    box = neighbours
    before = content(box.home), content(box.path / "beside")
    result = arena.sh(f"cat {box.home}/notes.txt {box.home}/.ssh/id_ed25519 {box.path}/beside/data.txt\n"
                      f"echo evil >{box.path}/beside/data.txt; echo evil >{box.path}/beside/new; rm {box.home}/notes.txt\n"
                      f"ls {box.home} {box.path}/beside; ls -A / /home /root /var /srv /opt /mnt; cat /etc/shadow", *mode, protect=False)
    assert not re.search("my notes|the key|beside$|notes.txt$|data.txt$", result.stdout, re.MULTILINE), result
    assert set(os.listdir("/")) - set(result.stdout.split()) >= {"boot", "opt", "srv", "mnt"} & set(os.listdir("/")), result
    assert (content(box.home), content(box.path / "beside")) == before


def test_permissive_lets_everything_in_the_root_through_and_warns(arena, neighbours):
    result = arena.sh("cat deep/er/free.txt; echo more >deep/er/new.txt; mkdir made; rm deep/er/free.txt; echo $?", *PERMISSIVE, protect=False)
    assert result.stdout == "free\n0\n", result
    assert (arena.root / "deep/er/new.txt").read_text() == "more\n" and not (arena.root / "deep/er/free.txt").exists()
    assert (arena.root / "made").is_dir() and result.stderr.count("WARNING: File access outside workspace (permissive mode)") >= 4


@MODES
def test_an_attempt_to_leave_the_root_is_refused_and_told_in_either_mode(arena, neighbours, mode):
    path = f"{neighbours.path}/beside/data.txt"
    result = arena.sh(f"cat {path}; echo evil >{path}", *mode, protect=False)
    assert result.stderr.count(f"File: {path}\n") == 2 and "BLOCKED: File access outside workspace" in result.stderr, result
    assert "WARNING" not in result.stderr and pathlib.Path(path).read_text() == "beside\n"


@MODES
def test_home_and_temporary_directories_are_private_in_either_mode(arena, neighbours, mode):
    box = neighbours
    result = arena.sh("echo mine >~/left && echo mine >/tmp/left && echo mine >$TMPDIR/left && ls -A ~ && echo $HOME", *mode, protect=False)
    assert result.returncode == 0 and result.stdout.split()[0] == "left", result
    assert result.stdout.split()[-1] != str(box.home) and not (box.home / "left").exists() and not os.path.exists("/tmp/left")


# ---- K17: $TEMP_DIR ----


@pytest.fixture(params=["below /tmp", "right in /tmp", "elsewhere"])
def rooted(request, arena):
    """A repository that is or is not in /tmp."""
    if request.param == "below /tmp":
        yield arena.root
        return
    parent = "/tmp" if request.param == "right in /tmp" else "/var/tmp"
    top = pathlib.Path(parent) / f"cordon-k17-{os.getpid()}-{arena.box.who.name}"
    top.mkdir(mode=0o755)
    (top / "file.txt").write_text("work\n")
    (top / ".git").mkdir()
    arena.box.own(top)
    yield top
    remove_tree(top)


@pytest.mark.parametrize("mode", [[], PERMISSIVE, ["--lens", "always"]], ids=["plain", "permissive", "lens"])
def test_k17_emptying_the_temporary_directory_empties_nothing_else(arena, rooted, mode):
    if "--workspace" in mode:
        (rooted / "src").mkdir(exist_ok=True)
        arena.box.own(rooted / "src")
    before = content(rooted)
    assert before
    result = arena.cordon("run", "--root", str(rooted), *mode, "--", "/bin/sh", "-c",
                          'ls -A "$TEMP_DIR" && echo x >"$TEMP_DIR/mine" && mkdir "$TEMP_DIR/.d" && test "$TMPDIR" = "$TEMP_DIR" && '
                          'rm -rf "$TEMP_DIR"/* "$TEMP_DIR"/.[!.]* && ls -A "$TEMP_DIR" && echo work >made && echo done', cwd=rooted)
    assert result.stdout == "done\n", result
    assert content(rooted) == {**before, str(rooted / "made"): b"work\n"}


def test_k17_the_temporary_directory_is_gone_after_every_kind_of_end(arena, leftovers):
    name = f"of-the-run-{os.getpid()}"
    for end in ("exit 0", "exit 3", "kill -9 $$", "kill -9 -1", "sleep 30"):
        arena.sh(f'echo data >"$TEMP_DIR/{name}"; echo data >/tmp/{name}; {end}', "--timeout", "1s", "--grace", "100ms", protect=False)
        again = arena.sh('ls -A "$TEMP_DIR" /tmp', protect=False)
        assert name not in again.stdout and not os.path.exists(f"/tmp/{name}") and not os.path.exists(f"/run/tmp/{name}"), (end, again)
    leftovers.assert_none()


def test_k17_a_root_where_the_temporary_directory_lies_is_refused(arena):
    result = arena.sh("echo started", "--at", "/run/tmp/x", protect=False)
    assert result.returncode == 125 and result.stdout == "" and "temporary directory" in result.stderr, result
    assert arena.sh("pwd", "--at", "/run/other", protect=False).stdout == "/run/other\n"


# ---- K19: learn ----

SECRETS = (".ssh/id_ed25519", ".gnupg/private.key", ".aws/credentials", ".config/gh/hosts.yml", ".netrc", ".docker/config.json", ".kube/config",
           ".git-credentials", ".npmrc", ".pypirc", ".mozilla/firefox/cookies.sqlite", ".config/google-chrome/Default/Cookies",
           ".local/share/keyrings/login.keyring", ".password-store/bank.gpg", ".bash_history", ".zsh_history",
           ".local/share/fish/fish_history")


def learn(arena, script, *options, **kw):
    return arena.cordon("learn", "--output", "-", *options, "--", "/bin/sh", "-c", script, cwd=arena.root, **kw)


def test_k19_learn_shows_no_secret_of_the_home(arena, neighbours):
    box = neighbours
    for name in SECRETS:
        box.write(f"home/{name}", "hunter2\n")
    box.write("dots/aliased", "hunter2\n")
    box.link("home/.pgpass", "../dots/aliased")
    box.write("state/state/secret", "hunter2\n")
    before = content(box.home), content(box.path / "dots")
    result = learn(arena, f"cat ~/notes.txt; cd ~; grep -r hunter2 . {box.path}/dots {box.state}; cat {' '.join(SECRETS)} .pgpass; "
                   "cp -r .ssh copy; cat copy/*; mv .config c2; grep -r hunter2 c2; ln .netrc hard; cat hard; true")
    assert result.returncode == 0 and result.stdout.startswith("my notes\n# Learned"), result
    assert (content(box.home), content(box.path / "dots")) == before
    for name in SECRETS:
        (box.home / name).read_text()  # the control: the caller's own files


def test_k19_what_learn_writes_in_the_home_is_discarded_and_a_line_says_so(arena, neighbours):
    box = neighbours
    before = content(box.home)
    result = learn(arena, "echo more >>~/notes.txt && cat ~/notes.txt && echo new >~/made && mkdir -p ~/.cache/x && echo $HOME && rm ~/notes.txt && "
                   "ls ~ && echo inside >src/made.txt")
    assert result.returncode == 0, result
    assert result.stdout.startswith(f"my notes\nmore\n{box.home}\nmade\n"), result
    assert content(box.home) == before and sorted(os.listdir(box.home)) == [".ssh", "notes.txt"]
    assert (arena.root / "src/made.txt").read_text() == "inside\n"
    assert "[LEARN] outside the root the command sees what you see, read-only" in result.stderr and "is discarded" in result.stderr


@pytest.fixture
def elsewhere(arena):
    """A directory of the caller that is neither in the home nor in /tmp."""
    top = pathlib.Path("/var/tmp") / f"cordon-k19-{os.getpid()}-{arena.box.who.name}"
    top.mkdir(mode=0o755)
    (top / "data.txt").write_text("elsewhere\n")
    arena.box.own(top)
    yield top
    remove_tree(top)


def test_k19_learn_reads_the_host_and_changes_nothing_of_it(arena, neighbours, elsewhere):
    box = neighbours
    box.run("/bin/sh", "-c", f"echo control >{elsewhere}/control")
    assert (elsewhere / "control").exists()
    before = content(elsewhere), content(box.path / "beside")
    result = learn(arena, f"cat {elsewhere}/data.txt; echo evil >{elsewhere}/data.txt; echo evil >{elsewhere}/new; rm -rf {elsewhere}; chmod 777 {elsewhere}; "
                   f"echo evil >{box.path}/beside/data.txt; rm -r {box.path}/beside; true")
    assert result.returncode == 0 and result.stdout.startswith("elsewhere\n"), result
    assert (content(elsewhere), content(box.path / "beside")) == before and elsewhere.stat().st_mode & 0o777 == 0o755
    assert f'"{elsewhere}"  # written' in result.stdout


def test_k19_learn_sees_no_other_home_no_socket_directory_and_no_system_secret(arena, neighbours):
    result = learn(arena, "cat /etc/shadow /etc/gshadow /etc/ssh/*key /etc/ssl/private/*; ls -A /run /home /root; true")
    seen = result.stdout.split("# Learned")[0]
    assert result.returncode == 0 and "root:" not in seen and "PRIVATE" not in seen, result
    assert set(re.sub("/(run|home|root):", "", seen).split()) <= {"tmp"}, result


def test_k19_learn_keeps_denials_where_the_root_is_seen_elsewhere(arena, neighbours):
    result = learn(arena, f"cat {arena.root}/deep/er/held.txt deep/er/held.txt; cat deep/er/free.txt", "--at", "/elsewhere", "--deny", "deep/er/held.txt")
    assert result.stdout.startswith("free\n"), result


def test_k19_a_share_shows_what_learn_hides_otherwise(arena, neighbours):
    box = neighbours
    result = learn(arena, "cat ~/.ssh/id_ed25519; echo evil >~/.ssh/id_ed25519", "--share", f"{box.home}/.ssh:ro")
    assert result.stdout.startswith("the key\n") and (box.home / ".ssh/id_ed25519").read_text() == "the key\n", result


def test_k19_a_home_that_holds_the_root_is_discarded_around_it(arena, neighbours):
    box = neighbours
    result = learn(arena, "echo evil >~/notes.txt; echo evil >~/repo-neighbour; echo work >src/made.txt; ls ~", env={"HOME": str(box.path)})
    assert result.returncode == 0 and "repo-neighbour" in result.stdout.split("# Learned")[0], result
    assert (arena.root / "src/made.txt").read_text() == "work\n"
    assert not (box.path / "repo-neighbour").exists() and not (box.path / "notes.txt").exists()


def test_k19_without_a_layer_the_home_is_private_and_a_line_says_so(arena, neighbours):
    """Something else is mounted in the home, and a layer can't be laid on what has mounts of others in it."""
    box = neighbours
    box.mkdir("home/mounted")
    before = content(box.home)
    script = (f"mount -t tmpfs x {box.home}/mounted && exec {arena.cordon.path} learn --output - -- /bin/sh -c "
              "'echo new >~/made && cat ~/made; cat ~/notes.txt; echo $HOME'")
    result = box.run("unshare", *(["-m"] if box.who.is_root else ["-rm"]), "/bin/sh", "-c", script, cwd=arena.root)
    assert result.returncode == 0 and result.stdout.startswith("new\n"), result
    assert "my notes" not in result.stdout and f"{box.home}\n" not in result.stdout.split("# Learned")[0], result
    assert "its home is a private one" in result.stderr and content(box.home) == before


# ---- K20: shares are part of the decision ----


def violations(box):
    log = box.state / "state/audit/audit.jsonl"
    return [r["path"] for r in map(json.loads, log.read_text().splitlines()) if r["event"] == "violation"]


@pytest.mark.parametrize("scope", [["--rw", "src"], ["--rw", "src/**/*.c"]], ids=["folder", "names"])
def test_k20_a_share_in_a_part_of_the_root_that_is_not_granted(arena, scope):
    data = arena.box.mkdir("data")
    arena.box.write("repo/out/secret", "hidden\n")
    arena.box.write("repo/out/data/below", "hidden\n")
    result = arena.sh("echo new >out/data/new && cat src/main.c && ls out/data; cat out/secret; cat out/data/below; echo evil >out/made", *scope, "--workspace-mode",
                      "strict", "--share", f"{data}:{arena.root}/out/data", protect=False)
    assert result.stdout.endswith("new\n") and "int main" in result.stdout and "hidden" not in result.stdout, result
    assert (data / "new").exists() and content(arena.root / "out") == {f"{arena.root}/out/secret": b"hidden\n", f"{arena.root}/out/data/below": b"hidden\n"}
    assert violations(arena.box) == [f"{arena.root}/out/secret", f"{arena.root}/out/made"], result


@pytest.mark.parametrize("mode", [[], ["--lens", "always"]], ids=["mounts", "lens"])
def test_k20_a_write_that_succeeds_in_a_share_is_not_recorded_as_denied(arena, mode):
    data = arena.box.mkdir("data")
    arena.box.mkdir("repo/out/data")
    result = arena.sh("echo new >out/data/new && echo written; cat out/data/new; echo evil >out/beside; mkdir out/data/d", "--ro", "**", "--workspace-mode",
                      "strict", "--share", f"{data}:{arena.root}/out/data", *mode, protect=False)
    assert result.stdout == "written\nnew\n", result
    assert (data / "new").read_text() == "new\n" and (data / "d").is_dir() and os.listdir(arena.root / "out/data") == []
    assert not (arena.root / "out/beside").exists()
    assert violations(arena.box) == [f"{arena.root}/out/beside"] and "out/data" not in result.stderr, result


def test_k20_what_is_refused_in_a_share_is_told(arena):
    data = arena.box.mkdir("data")
    arena.box.write("data/f", "f\n")
    arena.box.mkdir("repo/out/data")
    result = arena.sh("cat out/data/f /elsewhere/f; echo evil >out/data/f; echo evil >/elsewhere/f", "--workspace-mode", "strict", "--rw", "**", "--share",
                      f"{data}:{arena.root}/out/data:ro", "--share", f"{data}:/elsewhere:ro", protect=False)
    assert result.stdout == "f\nf\n" and (data / "f").read_text() == "f\n", result
    assert violations(arena.box) == [f"{arena.root}/out/data/f", f"{data}/f"], result


def decisions(arena, *words, env=None):
    """What check says for reading and writing, and why and tree with it."""
    found = {}
    for op in ("read", "write"):
        done = arena.cordon("check", "--op", op, *words, cwd=arena.root, env=env)
        for line in done.stdout.splitlines():
            verdict, path = line.split(" ", 1)
            found[op, path] = verdict
    return found


def test_k20_check_why_and_tree_know_shares(arena):
    data, more = arena.box.mkdir("data"), arena.box.mkdir("more")
    arena.box.mkdir("repo/out/data")
    arena.box.mkdir("data/.git/hooks")
    options = ["--ro", "**", "--share", f"{data}:{arena.root}/out/data", "--share", f"{more}:/more:ro"]
    said = decisions(arena, *options, "out/data/x", "out/x", f"{data}/x", f"{data}/.git/hooks/x", f"{more}/x", f"{arena.box.path}/other")
    assert said == {("read", "out/data/x"): "allow", ("write", "out/data/x"): "allow", ("read", "out/x"): "allow", ("write", "out/x"): "deny",
                    ("read", f"{data}/x"): "allow", ("write", f"{data}/x"): "allow", ("read", f"{data}/.git/hooks/x"): "allow",
                    ("write", f"{data}/.git/hooks/x"): "deny", ("read", f"{more}/x"): "allow", ("write", f"{more}/x"): "deny",
                    ("read", f"{arena.box.path}/other"): "deny", ("write", f"{arena.box.path}/other"): "deny"}
    why = arena.cordon("why", *options, "--op", "write", f"{more}/x", cwd=arena.root)
    assert f"it lies in what is shown by --share {more}:ro" in why.stdout and "share it without :ro" in why.stdout, why
    why = arena.cordon("why", *options, "--op", "write", f"{data}/.git/hooks/x", cwd=arena.root)
    assert "is protected by default" in why.stdout, why
    tree = arena.cordon("tree", *options, cwd=arena.root)
    assert f"data/  (shows {data})" in tree.stdout and f"ro        /more  (shows {more})" in tree.stdout, tree
    arena.box.write("shares.yaml", f"version: 1\nro: ['**']\nshare: ['{data}:{arena.root}/out/data', '{more}:/more:ro', '/no/such/place']\n")
    assert decisions(arena, "--policy", str(arena.box.path / "shares.yaml"), "out/data/x", "out/x", f"{data}/x", f"{data}/.git/hooks/x", f"{more}/x",
                     f"{arena.box.path}/other") == said


def test_k20_a_home_that_stays_is_a_share_too(arena):
    home = arena.box.mkdir("agent-home")
    arena.box.write("agent-home/.claude/settings.json", "{}\n")
    said = decisions(arena, "--home", str(home), f"{home}/x", f"{home}/.claude/settings.json", f"{home}/.claude/projects/x")
    assert said["write", f"{home}/x"] == said["write", f"{home}/.claude/projects/x"] == "allow"
    assert said["write", f"{home}/.claude/settings.json"] == "deny" and said["read", f"{home}/.claude/settings.json"] == "allow"
    result = arena.sh("echo evil >~/.claude/settings.json; mkdir -p ~/.claude/projects ~/.cargo && echo s >~/.claude/projects/s && echo kept", "--home", str(home))
    assert result.stdout == "kept\n" and (home / ".claude/projects/s").exists() and (home / ".cargo").exists(), result
    assert (home / ".claude/settings.json").read_text() == "{}\n"


def test_k20_what_one_run_closes_in_a_home_is_held_in_the_next_one(arena):
    """Behind many other directories nobody looks for repositories in it."""
    home = arena.box.mkdir("agent-home")
    arena.box.write("agent-home/.claude/settings.json", "{}\n")
    assert arena.sh("cd; mkdir $(seq -f .a%g 200); chmod 000 .claude", "--home", str(home)).returncode == 0
    result = arena.sh("cd; chmod 755 .claude; (echo evil >.claude/settings.json) && echo planted; echo worked", "--home", str(home))
    os.chmod(home / ".claude", 0o755)
    assert (home / ".claude/settings.json").read_text() == "{}\n" and "planted" not in result.stdout, result
    assert "worked" in result.stdout or result.returncode == 125 and result.stderr.count("\n") == 1, result
    assert arena.sh("echo worked", "--home", str(home)).stdout == "worked\n"


# ---- K18: default protection in shares ----

AGENTS = {
    ".claude": (["settings.json", "settings.local.json", "hooks/stop.sh", "plugins/p/plugin.json", "commands/c.md", "agents/a.md", "CLAUDE.md"],
                ["projects/p/session.jsonl", "todos/t.json", "history.jsonl"]),
    ".codex": (["config.toml", "hooks.json", "rules/default.rules", "prompts/p.md", "AGENTS.md"], ["sessions/s.jsonl", "history.jsonl", "log/l"]),
    ".gemini": (["settings.json", "extensions/e/gemini-extension.json", "trustedFolders.json", "GEMINI.md", "tmp/bin/rg", "history/h"], ["log/t", "sessions/l"]),
    ".config/opencode": (["opencode.json", "plugin/p.ts", "command/c.md", "agent/a.md", "AGENTS.md"], [".gitignore", "state/s"]),
}


@pytest.mark.parametrize("agent", AGENTS)
def test_k18_an_agents_directory_can_be_written_but_for_what_the_agent_obeys(arena, agent):
    obeyed, state = AGENTS[agent]
    top = arena.box.home / agent
    for name in obeyed + state:
        arena.box.write(f"home/{agent}/{name}", "mine\n")
    before = content(top)
    script = "; ".join(f"echo evil >{top}/{name}; rm -f {top}/{name}; mv {top}/{name.split('/')[0]} {top}/moved-{i}; "
                       f"rm -rf {top}/{name.split('/')[0]}" for i, name in enumerate(obeyed))
    script += "; " + "; ".join(f"echo state >>{top}/{name}" for name in state)
    result = arena.sh(f"{script}; echo new >{top}/fresh; echo end", "--share", str(top))
    assert result.stdout == "end\n", result
    after = content(top)
    assert {path: text for path, text in after.items() if path.removeprefix(f"{top}/") in obeyed} == {f"{top}/{name}": b"mine\n" for name in obeyed}, result
    assert [after[f"{top}/{name}"] for name in state] == [b"mine\nstate\n"] * len(state) and after[f"{top}/fresh"] == b"new\n"
    # Without cordon's list all of it can be changed: the control.
    arena.sh(f"echo evil >{top}/{obeyed[0]}", "--share", str(top), "--no-default-protect", protect=False)
    assert (top / obeyed[0]).read_text() == "evil\n" and before != after


def test_k18_what_the_host_executes_is_protected_in_a_share_as_in_the_root(arena):
    other = arena.box.repo("other", files={".git/hooks/pre-commit": "#!/bin/sh\n", ".envrc": "export A=1\n", "src/a.c": "int a;\n", ".claude/settings.json": "{}\n"})
    before = content(other)
    result = arena.sh(f"cd {other}; echo evil >.git/config; echo evil >.git/hooks/pre-commit; echo evil >.envrc; rm .envrc; echo evil >.claude/settings.json; "
                      "mv .claude x; rm -rf .git/hooks; echo 'int b;' >src/a.c && echo work >made && echo done", "--share", str(other))
    assert result.stdout == "done\n", result
    after = content(other)
    assert after.pop(f"{other}/made") == b"work\n" and after.pop(f"{other}/src/a.c") == b"int b;\n"
    assert before.pop(f"{other}/src/a.c") and after == before


@pytest.mark.parametrize("name", ["bin", ".local/bin", ".config/systemd", ".config/autostart/x", ".ssh", ".claude/hooks", ".codex/rules"])
def test_k18_a_directory_of_which_the_host_executes_everything_is_shared_for_reading_only(arena, name):
    arena.box.write(f"home/{name}/file", "mine\n")
    top = arena.box.home / name
    result = arena.sh(f"echo started; echo evil >{top}/file", "--share", str(top))
    assert result.returncode == 125 and result.stdout == "" and "the host executes" in result.stderr and ":ro" in result.stderr, result
    result = arena.sh(f"cat {top}/file; echo evil >{top}/file", "--share", f"{top}:ro")
    assert result.stdout == "mine\n" and (top / "file").read_text() == "mine\n", result


def test_k18_a_share_of_what_holds_such_directories_protects_them(arena):
    box = arena.box
    for name in (".config/autostart/a.desktop", ".config/fish/config.fish", ".config/opencode/opencode.json", ".config/app/state"):
        box.write(f"home/{name}", "mine\n")
    top = box.home / ".config"
    result = arena.sh(f"cd {top}; echo evil >autostart/a.desktop; echo evil >fish/config.fish; echo evil >opencode/opencode.json; mv autostart x; "
                      "echo work >app/state && echo done", "--share", str(top))
    assert result.stdout == "done\n", result
    assert {k.removeprefix(f"{top}/"): v for k, v in content(top).items()} == {
        "autostart/a.desktop": b"mine\n", "fish/config.fish": b"mine\n", "opencode/opencode.json": b"mine\n", "app/state": b"work\n"}


def test_k18_the_document_lists_the_directories_of_the_code():
    code = (TOP / "src/protect/share_defaults.c").read_text()
    rows = {d: re.findall(r'"([^"]+)"', names) for d, names in re.findall(r'\{\s*"([^"]+)",\s*\(const char \*const\[\]\)\{(.*?)NULL\s*\}\s*\}', code, re.DOTALL)}
    section = (TOP / "docs/protected-by-default.md").read_text().split("## In shares", 1)[1]
    assert len(rows) > 10
    assert {d: re.findall(r"`([^`]+)`", names) for d, names in re.findall(r"^\| `([^`]+)` \| (.*) \|$", section, re.MULTILINE)} == rows


# ---- K4, K16: shares and the root, shares among themselves ----


@pytest.fixture
def state_apart(arena):
    """Records that lie outside of the box, so that the box may be shared."""
    state = arena.box.path.with_name(f"{arena.box.path.name}-state")
    state.mkdir(mode=0o700)
    arena.box.own(state)
    yield {"CORDON_HOME": str(state)}
    remove_tree(state)


@pytest.mark.parametrize("policy", [["--deny", "deep/er/held.txt"], ["--deny", "**/*.txt"], ["--rw", "src"], STRICT, ["--rw", "src/**/*.c"]],
                         ids=["deny", "pattern", "scope", "folders", "names"])
@pytest.mark.parametrize("source", [".", "deep", ".."])
def test_k16_a_read_only_share_of_the_root_shows_nothing_that_the_policy_hides(arena, state_apart, policy, source):
    where = os.path.normpath(arena.root / source)
    result = arena.sh("echo started; cat /x/er/held.txt /x/deep/er/held.txt /x/repo/deep/er/held.txt", *policy, "--share", f"{where}:/x:ro", protect=False,
                      env=state_apart)
    assert result.returncode == 125 and result.stdout == "" and "what the policy hides there could be read" in result.stderr, result
    shown = arena.sh("cat /x/er/held.txt; echo evil >/x/er/held.txt", "--share", f"{arena.root}/deep:/x:ro")
    assert shown.stdout == "held\n" and (arena.root / "deep/er/held.txt").read_text() == "held\n", shown


def test_k16_shares_that_overlap_agree_or_are_refused(arena):
    box = arena.box
    box.write("data/sub/f", "f\n")
    box.write("data/sub/.envrc", "mine\n")
    data = box.path / "data"
    for first, second, why in ((f"{data}:/a", f"{data}/sub:/b:ro", "different rights"), (f"{data}:/a:ro", f"{data}/sub:/b", "different rights"),
                               (f"{data}:/a", f"{data}:/b:ro", "different rights"), (f"{data}:/a", f"{box.home}:/a", "at the same place"),
                               (f"{data}:/a", f"{box.home}:/a/sub", "one inside the other")):
        for words in ((first, second), (second, first)):
            result = arena.sh("echo started", "--share", words[0], "--share", words[1], protect=False)
            assert result.returncode == 125 and result.stdout == "" and why in result.stderr and len(result.stderr.splitlines()) == 1, (words, result)
    # What is protected in one is protected in the other.
    result = arena.sh("echo evil >/a/sub/.envrc; echo evil >/b/.envrc; echo g >/a/sub/g && cat /b/g", "--share", f"{data}:/a", "--share", f"{data}/sub:/b", protect=False)
    assert result.stdout == "g\n" and (data / "sub/.envrc").read_text() == "mine\n" and (data / "sub/g").exists(), result
    both = arena.sh("cat /a/sub/f /b/f; echo evil >/a/sub/f", "--share", f"{data}:/a:ro", "--share", f"{data}/sub:/b:ro", protect=False)
    assert both.stdout == "f\nf\n" and (data / "sub/f").read_text() == "f\n", both
    inner = arena.sh("cat /a/sub/notes", "--share", f"{data}:/a:ro", "--share", f"{box.write('more/notes', 'more').parent}:/a/sub", protect=False)
    assert inner.stdout == "more", inner


def test_k16_a_share_that_holds_the_root_does_not_cover_it(arena, state_apart):
    result = arena.sh(f"echo work >made && cat {arena.box.path}/beside; echo evil >{arena.box.path}/beside; echo evil >AGENTS.md; ls src", "--share",
                      f"{arena.box.write('beside', 'beside').parent}:ro", env=state_apart)
    assert result.stdout == "besidemain.c\n" and (arena.root / "made").exists() and (arena.box.path / "beside").read_text() == "beside", result
    arena.assert_unharmed()


def test_k16_a_share_takes_no_place_that_the_run_needs(arena):
    data = arena.box.mkdir("data")
    for target, why in ((str(arena.root), "the workspace"), ("/run/tmp", "temporary directory"), ("/run/tmp/x", "temporary directory"), ("/run", "temporary directory")):
        result = arena.sh("echo started", "--share", f"{data}:{target}", protect=False)
        assert result.returncode == 125 and result.stdout == "" and why in result.stderr, result


def test_k4_the_place_of_a_share_in_the_root_is_told_as_a_boundary(arena):
    data = arena.box.mkdir("data")
    arena.box.mkdir("repo/out/data")
    plan = arena.cordon("run", "--dry-run", "--json", "--share", f"{data}:{arena.root}/out/data", "--", "true", cwd=arena.root)
    assert [step["path"] for step in plan.json()["steps"] if step.get("share")] == [f"{arena.root}/out/data"], plan
    moved = arena.sh("mv out/data x; rmdir out/data; echo $?", "--share", f"{data}:{arena.root}/out/data", protect=False)
    assert moved.stdout == "1\n" and (arena.root / "out/data").is_dir(), moved
