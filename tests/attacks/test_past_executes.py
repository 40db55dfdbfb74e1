# SPDX-License-Identifier: Apache-2.0
"""What the host would execute later: attacks of class L that succeeded against an earlier version (L7, L8, L11 to L14, L24)."""
import os

import pytest

from arena import PRELUDE, answers
from modes import WIDE

# In a view the attempt itself is the proof: nothing of it reaches the host.
MODES = {**WIDE, "permissive": ("--workspace", "src", "--workspace-mode", "permissive")}
EVERY_MODE = pytest.mark.parametrize("mode", MODES)
EVERY_RUN = pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "session"])
STRICT = ["--workspace", "src", "--workspace-mode", "strict"]

PLANT = r"""
def plant(p):
    if os.path.dirname(p): os.makedirs(os.path.dirname(p), exist_ok=True)
    open(p, 'w').write('evil')
def replace(p):
    open('twin', 'w').write('evil')
    try: os.rename('twin', p)
    finally:
        if os.path.lexists('twin'): os.unlink('twin')
for p in sys.argv[1:]:
    attempt('write ' + p, lambda: plant(p))
    attempt('replace ' + p, lambda: replace(p))
    attempt('remove ' + p, lambda: os.unlink(p))
    attempt('link ' + p, lambda: os.symlink('/tmp', p))
plant('src/work.c'); print('worked')
"""


def attack(arena, names):
    """Tries to make, replace and remove each of these names. Returns what the agent could do; ordinary work must succeed."""
    result = arena.inside("/usr/bin/python3", "-c", PRELUDE + PLANT, *names)
    assert "worked" in result.stdout, str(result)
    found = answers(result)
    assert len(found) >= 4 * len(names), str(result)
    return {name for name, answer in found.items() if answer == "done"}


def enter(arena, mode, options, names):
    """The names in this mode: one is that of the root."""
    arena.enter(mode, *options, protect=False, modes=MODES)
    return [name.replace("ROOT", arena.root.name) for name in names]


def look(root, names):
    return {name: (root / name).read_text() if (root / name).is_file() else os.path.lexists(root / name) for name in names}


def assert_held(arena, names, mode="plain", *options):
    names = enter(arena, mode, options, names)
    before = look(arena.root, names)
    assert attack(arena, names) == set()
    assert look(arena.root, names) == before


def assert_free(arena, names, mode="plain", *options):
    """The control: the same names can be written."""
    names = enter(arena, mode, options, names)
    assert {f"write {name}" for name in names} <= attack(arena, names)


def git(arena, *args, **kw):
    return arena.box.run("git", *args, **kw)


# ---- L13: names of the default list ----

L13 = [".agents/skills/x/SKILL.md", ".amp/settings.json", ".continue/mcpServers/x.yaml", ".clinerules/hooks/TaskStart", ".trae/mcp.json", ".kilocode/mcp.json",
       ".junie/mcp/mcp.json", ".augment/settings.json", ".pi/extensions/x.ts", ".openhands/setup.sh", ".vs/mcp.json", ".bsp/x.json", ".vimrc", ".gvimrc",
       ".vim/coc-settings.json", ".dir-locals-2.el", "ROOT.code-workspace", "mise/config.toml", ".config/lefthook.yml", ".lefthook/pre-commit/x", ".Rprofile",
       ".ghci", ".iex.exs", ".irbrc", ".pryrc", ".pdbrc", ".octaverc", ".ocamlinit", ".pnpmfile.mjs", "pnpm-workspace.yaml", ".bundle/config",
       ".mvn/extensions.xml", ".pylintrc", "ansible.cfg", ".luarc.json", ".bazeliskrc", "prek.toml", ".overcommit.yml", "cordon.yaml",
       ".vscode/c_cpp_properties.json", ".vscode/cmake-kits.json", ".vscode/extensions/x/package.json"]


@EVERY_MODE
def test_l13_no_file_that_a_tool_executes_can_be_planted(arena, mode):
    assert_held(arena, L13, mode)
    assert (arena.root / "src/work.c").exists() == (mode != "view")


def test_l13_control_without_the_list_all_of_them_can(arena):
    assert_free(arena, L13, "plain", "--no-default-protect")


@EVERY_MODE
def test_l13_nor_changed_where_they_are(arena, mode):
    for name in L13 + ["my.code-workspace"]:
        arena.box.write(f"repo/{name}", "held\n")
    assert_held(arena, L13 + ["my.code-workspace"], mode)


@EVERY_MODE
def test_l13_what_an_allowed_envrc_reads_is_held(arena, mode):
    arena.box.write("repo/.envrc", "dotenv\nsource_env conf/more.sh\nPATH_add bin\n")
    arena.box.write("repo/conf/more.sh", "source_env_if_exists last.sh\n")
    names = [".env", "conf/more.sh", "last.sh", "bin/ls"]
    assert_held(arena, names, mode)
    os.unlink(arena.root / ".envrc")
    assert_free(arena, names, mode)


# ---- L8: the user's own git configuration ----


@EVERY_MODE
@pytest.mark.parametrize("where", ["home/.gitconfig", "home/.config/git/config", "include"])
def test_l8_hooks_that_the_users_own_configuration_names_are_held(arena, mode, where):
    text = "[core]\n\thooksPath = .githooks\n\tfsmonitor = tools/mon\n\tattributesFile = conf/attributes\n"
    if where == "include":
        arena.box.write("home/.gitconfig", '[includeIf "gitdir:~/never/"]\n\tpath = more\n')
        where = "home/more"
    arena.box.write(where, text)
    assert_held(arena, [".githooks/pre-commit", "tools/mon", "conf/attributes"], mode)
    arena.box.mkdir((arena.root / "tools").relative_to(arena.box.path))
    assert_free(arena, ["githooks/pre-commit", "tools/other"], mode)


def test_l8_control_git_on_the_host_runs_what_is_planted_there(arena):
    box, mark = arena.box, arena.box.path / "pwned"
    box.write("home/.gitconfig", "[core]\n\thooksPath = .githooks\n[user]\n\tname = x\n\temail = x@example.com\n")
    git(arena, "init", "-q", "fresh", cwd=box.path)
    box.write("fresh/.githooks/pre-commit", f"#!/bin/sh\ntouch {mark}\n", mode=0o755)
    assert git(arena, "commit", "-q", "--allow-empty", "-m", "m", cwd=box.path / "fresh").returncode == 0 and mark.exists()


def test_l8_a_fifo_and_a_loop_of_includes_start_the_run_all_the_same(arena):
    os.mkfifo(arena.box.home / "fifo")
    arena.box.own(arena.box.home / "fifo")
    arena.box.write("home/.gitconfig", "[include]\n\tpath = fifo\n[include]\n\tpath = .gitconfig\n[core]\n\thooksPath = .githooks\n")
    assert_held(arena, [".githooks/pre-commit"])


# ---- L12: neighbours ----


@EVERY_MODE
def test_l12_nested_and_bare_repositories_are_held_like_the_roots_own(arena, mode):
    for args in (("init", "-q", "sub"), ("init", "-q", "--bare", "deep/hub.git"), ("init", "-q", "deep/er/inner")):
        assert git(arena, *args, cwd=arena.root).returncode == 0
    names = ["sub/.git/config", "sub/.git/hooks/pre-commit", "sub/.git/commondir", "deep/hub.git/hooks/post-receive", "deep/hub.git/config",
             "deep/er/inner/.git/hooks/pre-commit"]
    assert_held(arena, names, mode)
    # Work goes on in them, and the hand moves none of them away.
    result = arena.inside("/usr/bin/python3", "-c", PRELUDE + """
attempt('move', lambda: os.rename('sub/.git', 'sub/other'))
attempt('move all', lambda: os.rename('sub', 'sub2'))
open('sub/file', 'w').write('x')
import subprocess
subprocess.run(['git', '-C', 'sub', 'add', 'file'], check=True)
subprocess.run(['git', '-C', 'sub', '-c', 'user.name=x', '-c', 'user.email=x@example.com', 'commit', '-qm', 'm'], check=True)
print('committed')
""")
    assert "committed" in result.stdout and "done" not in answers(result).values(), str(result)


MANY = """
for i in range(1500):
    for d in ('', '.config/'):
        open(d + 'n%d' % i, 'w').close()
"""


def test_l13_what_is_found_by_a_pattern_is_held_behind_any_number_of_other_names(arena):
    """An agent makes them in an earlier run; the order of a listing is that of hashes."""
    names = [name for i in range(6) for name in (f"w{i}.code-workspace", f"mise.w{i}.toml", f".config/mise.w{i}.toml")]
    for name in names:
        arena.box.write(f"repo/{name}", "")
    assert arena.py(MANY, protect=False).returncode == 0
    assert_held(arena, names)


CLOSED = {".git": ".git/commondir", ".git/info": ".git/info/attributes", ".git/modules": ".git/modules/old/config", ".git/modules/old": ".git/modules/old/commondir",
          ".": ".git/commondir", ".vscode": ".vscode/tasks.json", "sub": "sub/.git/hooks/pre-commit", "sub/.git": "sub/.git/commondir", "deep": "deep/er/inner/.git/config",
          "deep/er": "deep/er/new.txt"}


@pytest.mark.parametrize("mode,bits", [("plain", "000"), ("plain", "311"), ("permissive", "311"), ("view", "311"), ("lens", "311")])
@pytest.mark.parametrize("closed", CLOSED)
def test_l12_a_directory_that_one_run_closes_holds_what_it_held_in_the_next_one(arena, mode, bits, closed):
    """An agent has the user's id: where the next start could not look into a directory, nothing in it was held, and chmod opened it again."""
    for args in (("init", "-q", "sub"), ("init", "-q", "deep/er/inner"), ("init", "-q", "--bare", ".git/modules/old")):
        assert git(arena, *args, cwd=arena.root).returncode == 0
    arena.box.mkdir("repo/.vscode")
    arena.box.mkdir("repo/.git/info")
    name, before = CLOSED[closed], (arena.root / CLOSED[closed]).exists()
    digest = (arena.root / name).read_bytes() if before else None
    assert arena.sh(f"chmod {bits} {closed}", protect=False).returncode == 0
    result = arena.sh(f"chmod 755 {closed}; (echo evil >{name}) && echo planted; echo worked", "--protect", "deep/er/new.txt", *MODES[mode], protect=False)
    os.chmod(arena.root / closed, 0o755)
    assert ((arena.root / name).read_bytes() if (arena.root / name).exists() else None) == digest, result
    # Root reads what it likes, so that the run starts and refuses the name. A view has a git directory of its own.
    assert ("planted" not in result.stdout or mode == "view") and ("worked" in result.stdout or result.returncode == 125 and result.stderr.count("\n") == 1), result
    assert arena.sh("echo worked >src/new", "--protect", "deep/er/new.txt", *MODES[mode], protect=False).returncode == 0


@EVERY_MODE
@pytest.mark.parametrize("others", [False, True], ids=["the first", "another"])
def test_l12_the_git_directory_of_a_submodule_that_was_never_checked_out_is_held(arena, mode, others):
    """Git on the host takes the one that it finds there, with its hooks, when it checks the submodule out."""
    arena.box.write("repo/.gitmodules", '[submodule "libs/new"]\n\tpath = libs/new\n\turl = ../new\n')
    if others:
        assert git(arena, "init", "-q", "--bare", ".git/modules/libs/old", cwd=arena.root).returncode == 0
    names = enter(arena, mode, (), [".git/modules/libs/new", ".git/modules/libs/new/config", ".git/modules/libs/new/hooks/post-checkout"])
    # A view has a git directory of its own.
    assert attack(arena, names) == set() or mode == "view"
    assert not (arena.root / ".git/modules/libs/new").exists()


def test_l12_a_submodule_that_nobody_knows_is_told(arena):
    assert git(arena, "init", "-q", "--bare", ".git/modules/old", cwd=arena.root).returncode == 0
    quiet = arena.sh("git init -q --bare .git/modules/a/b && echo worked", protect=False)
    assert quiet.stdout == "worked\n" and "has git execute" not in quiet.stderr, quiet
    (arena.root / ".git/modules/old/HEAD").touch()
    result = arena.sh("git init -q --bare .git/modules/a/c && git -C .git/modules/a/c config core.fsmonitor evil", protect=False)
    assert ".git/modules/a/c was made or changed, and has git execute: core.fsmonitor" in result.stderr, result


# What an earlier run does, and what it would be free to write in the next one.
DISGUISES = {
    "HEAD of a bare one moved": ("mv hub/HEAD hub/away", "hub/hooks/post-receive"),
    "refs of a bare one moved": ("mv deep/hub.git/refs deep/hub.git/away", "deep/hub.git/hooks/post-receive"),
    "parts behind many names": ("cd hub; for i in $(seq 600); do : >n$i; mkdir d$i; done", "hub/hooks/post-receive"),
    "HEAD of a module moved": ("mv .git/modules/old/HEAD .git/modules/old/away", ".git/modules/old/hooks/post-checkout"),
    "objects of a module moved": ("mv .git/modules/lib/old/objects .git/modules/away", ".git/modules/lib/old/hooks/post-checkout"),
    "a module above a module": ("cd .git/modules/lib; mkdir objects refs; echo ref: refs/heads/x >HEAD", ".git/modules/lib/old/hooks/post-checkout"),
    "a configuration above a module": ("printf '[core]\\n\\trepositoryformatversion = 0\\n' >.git/modules/lib/config", ".git/modules/lib/old/hooks/post-checkout"),
    "a bare one around others": ("cd deep; mkdir objects refs; echo ref: refs/heads/x >HEAD", "deep/er/inner/.git/hooks/pre-commit"),
    "a bare one around the root's": ("rm -r .git/objects; mkdir objects refs; echo ref: refs/heads/x >HEAD", "deep/er/inner/.git/hooks/pre-commit"),
}


@EVERY_MODE
@pytest.mark.parametrize("disguise", DISGUISES)
def test_l12_what_one_run_disguises_is_held_in_the_next_one(arena, mode, disguise):
    """A git directory is known by parts that a run may move away or make elsewhere. What is held in it tells the next run, too."""
    for args in (("init", "-q", "deep/er/inner"), *(("init", "-q", "--bare", path) for path in ("hub", "deep/hub.git", ".git/modules/old", ".git/modules/lib/old"))):
        assert git(arena, *args, cwd=arena.root).returncode == 0
    first, name = DISGUISES[disguise]
    arena.sh(first, protect=False)
    assert_held(arena, [name], mode)


def test_l12_a_folder_of_repositories_that_becomes_a_bare_one_holds_them_all(arena):
    (arena.root / ".git").rename(arena.root / "apart")
    assert git(arena, "init", "-q", "sub", cwd=arena.root).returncode == 0
    arena.sh("mkdir objects refs; echo ref: refs/heads/x >HEAD", protect=False)
    assert_held(arena, ["sub/.git/hooks/pre-commit"])


def test_l12_submodules_are_added_and_directories_look_like_git_s_all_the_same(arena):
    """The other side: names that git uses are free where nothing is a git directory."""
    assert git(arena, "init", "-q", "--bare", ".git/modules/lib/old", cwd=arena.root).returncode == 0
    result = arena.sh("mkdir -p deploy/hooks deploy/refs && echo x >deploy/config && echo x >deploy/hooks/x && git init -q --bare .git/modules/new && "
                      "git init -q --bare .git/modules/lib/new && mv .git/modules/lib/old/HEAD h && mv h .git/modules/lib/old/HEAD && echo worked", protect=False)
    assert "worked" in result.stdout, result
    assert arena.sh("echo y >deploy/config && echo y >deploy/hooks/x && echo worked", protect=False).stdout == "worked\n"


def test_l12_a_closed_directory_of_somebody_elses_stops_nobody(arena):
    if os.getuid() != 0:
        pytest.skip("only root gives directories away")
    (arena.root / "theirs").mkdir(mode=0o700)
    os.chown(arena.root / "theirs", 12345, 12345)
    result = arena.sh("chmod 755 theirs; echo worked", protect=False)
    assert "worked" in result.stdout, result


def test_l12_unprotect_lifts_it_for_one(arena):
    assert git(arena, "init", "-q", "sub", cwd=arena.root).returncode == 0
    assert_free(arena, ["sub/.git/hooks/pre-commit"], "plain", "--unprotect", "sub/.git/hooks")


@EVERY_RUN
def test_l12_a_root_below_a_repository_holds_what_that_executes(arena, mode):
    sub = arena.root / "deep"
    arena.box.mkdir("repo/deep/src")
    arena.box.own(sub)
    (arena.root / ".git/config").write_text("[core]\n\tbare = false\n\thooksPath = deep/hooks\n\tfsmonitor = deep/tools/mon\n")
    arena.root = sub
    assert_held(arena, ["hooks/pre-commit", "tools/mon", ".gitattributes"], mode)
    arena.box.mkdir("repo/deep/tools")
    assert_free(arena, ["tools/other"], mode)


# ---- L11: a home as root ----

HOME_NAMES = [".config/autostart/x.desktop", ".config/systemd/user/x.service", ".local/lib/python3.11/site-packages/x.pth", ".vimrc", ".vim/plugin/x.vim", ".cargo/bin/cargo",
              ".bash_completion", ".local/bin/ls", "bin/ls", ".zlogout", ".config/nvim/init.lua", ".emacs.d/init.el", ".config/environment.d/x.conf", ".inputrc",
              ".gradle/init.d/x.gradle", ".config/git/config", ".local/share/applications/x.desktop", ".xprofile", ".tmux.conf", ".config/pip/pip.conf", ".direnvrc"]


@EVERY_RUN
def test_l11_in_a_home_nothing_that_a_login_or_a_shell_executes_can_be_made(arena, mode):
    arena.root = arena.box.home
    arena.box.write("home/src/main.c", "int x;\n")
    assert_held(arena, HOME_NAMES, mode)
    for name in (".config", ".local/share"):
        arena.box.mkdir(f"home/{name}")
    assert_free(arena, [".config/app/settings", ".local/share/app/data", "notes"], mode)


def test_l11_control_elsewhere_the_same_names_are_ordinary(arena):
    assert_free(arena, [".config/autostart/x.desktop", ".cargo/bin/cargo", "bin/ls", ".local/bin/ls"])


# ---- L14: cordon.yaml ----


@EVERY_MODE
@pytest.mark.parametrize("name", ["cordon.yaml", "cordon.json"])
def test_l14_no_run_writes_the_policy_of_the_next_one(arena, mode, name):
    assert_held(arena, [name], mode)
    (arena.root / name).write_text("version: 1\n" if name.endswith("yaml") else '{"version": 1}')
    arena.box.own(arena.root / name)
    assert_held(arena, [name], mode)
    if mode == "session":  # which has its settings from its project
        assert_free(arena, [name], mode, "--no-default-protect")
        return
    # The person who names the file still gets it. Then it is held whatever else is switched off.
    assert_held(arena, [name], mode, "--policy", str(arena.root / name), "--no-default-protect")
    assert_free(arena, [name], mode, "--unprotect", name)


# ---- L24: second names ----


@pytest.mark.parametrize("options", [STRICT, [*STRICT, "--lens", "always"], ["--deny", ".envrc"]], ids=["strict", "lens", "denied"])
@pytest.mark.parametrize("name", [".envrc", ".idea/workspace.xml"])
def test_l24_a_second_name_of_a_file_that_the_run_does_not_see_is_copied_apart(arena, options, name):
    held = arena.box.write(f"repo/{name}", "held\n")
    os.link(held, arena.root / "src/e")
    result = arena.sh("cat src/e; echo evil >src/e; echo done", *options, protect=False)
    assert result.stdout == "held\ndone\n", str(result)
    assert held.read_text() == "held\n" and (arena.root / "src/e").read_text() == "evil\n"


@EVERY_MODE
def test_l24_nor_does_a_second_name_lead_to_a_file_that_the_run_sees(arena, mode):
    held = arena.box.write("repo/.envrc", "held\n")
    os.link(held, arena.root / "src/e")
    arena.enter(mode, protect=False, modes=MODES)
    result = arena.inside("sh", "-c", "cat src/e; echo evil >src/e; echo done")
    assert result.stdout == "held\ndone\n", str(result)
    assert (arena.root / ".envrc").read_text() == "held\n" and (arena.root / "src/e").read_text() == ("held\n" if mode == "view" else "evil\n")


def test_l24_control_a_file_that_is_not_protected_keeps_its_second_name(arena):
    other = arena.box.write("repo/other", "mine\n")
    os.link(other, arena.root / "src/e")
    arena.sh("echo changed >src/e", *STRICT, protect=False)
    assert other.read_text() == "changed\n"


# ---- L7: the state of clients ----

CLIENTS = {
    "gemini": (".gemini", ["tmp/bin/rg", "history/p/.git/hooks/post-checkout", "history/p/.git/config"], "tmp/p/chats/x.json"),
    "opencode": (".local/share/opencode", ["snapshot/p/config", "worktree/p/.git", "bin/rg"], "storage/x.json"),
    "codex": (".codex", ["worktrees/p/.git", "shell_snapshots/x.sh", "tmp/x"], "sessions/x.jsonl"),
    "claude": (".claude", ["shell-snapshots/x.sh", "session-env/x", "plugins/x/hook"], "projects/x.jsonl"),
}


@pytest.mark.parametrize("there", [True, False], ids=["there", "missing"])
@pytest.mark.parametrize("client", CLIENTS)
def test_l7_nothing_that_the_real_client_executes_stays_of_a_run(arena, client, there):
    state, executed, kept = CLIENTS[client]
    for name in executed if there else ():
        arena.box.write(f"home/{state}/{name}", "mine\n")
    arena.box.own(arena.box.home)
    script = "cd ~/%s; for f in %s; do mkdir -p $(dirname $f); echo evil >$f; done 2>/dev/null; cat %s" % (state, " ".join([*executed, kept]), executed[0])
    result = arena.sh(script, "--profile", client, protect=False)
    # The client itself can work with its own files for the length of the run.
    assert result.stdout == "evil\n", str(result)
    top = arena.box.home / state
    assert (top / kept).read_text() == "evil\n"
    for name in executed:
        assert (top / name).read_text() == "mine\n" if there else not os.path.lexists(top / name), name


@EVERY_MODE
def test_l7_nor_in_any_mode_with_all_clients_at_once(arena, mode):
    """The state of a session's profiles is never the user's own."""
    profiles = [word for client in CLIENTS for word in ("--profile", client)]
    for state, executed, _ in CLIENTS.values():
        arena.box.write(f"home/{state}/{executed[0]}", "mine\n")
    arena.box.own(arena.box.home)
    arena.enter(mode, *profiles, protect=False, modes=MODES)
    script = "cd ~/%s; for f in %s; do mkdir -p $(dirname $f); echo evil >$f; done 2>/dev/null; cat %s"
    result = arena.inside("sh", "-c", "; ".join(script % (state, " ".join([*executed, kept]), executed[0]) for state, executed, kept in CLIENTS.values()))
    assert result.stdout == "evil\n" * len(CLIENTS), str(result)
    for state, executed, kept in CLIENTS.values():
        top = arena.box.home / state
        assert [os.path.lexists(top / name) for name in executed] == [True, False, False] and (top / executed[0]).read_text() == "mine\n", state
        assert os.path.lexists(top / kept) == (mode != "session")


@pytest.mark.parametrize("client", CLIENTS)
def test_l7_in_a_share_of_the_state_it_is_held(arena, client):
    state, executed, kept = CLIENTS[client]
    for name in [*executed, kept]:
        arena.box.write(f"home/{state}/{name}", "mine\n")
    arena.box.own(arena.box.home)
    top = arena.box.home / state
    held = [name for name in executed if name != "tmp/x"]
    arena.sh("; ".join(f"echo evil >{top}/{name}" for name in [*held, kept]), "--share", str(top), protect=False)
    assert {name: (top / name).read_text() for name in held} == {name: "mine\n" for name in held} and (top / kept).read_text() == "evil\n"
