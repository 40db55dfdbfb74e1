# SPDX-License-Identifier: Apache-2.0
"""Starting in a tree that the last agent prepared, and what must never be seen inside."""
import ctypes
import errno
import itertools
import json
import os
import subprocess
import threading
import time

import pytest

from arena import answers

RENAME_EXCHANGE = 2
AT_FDCWD = -100
libc = ctypes.CDLL(None, use_errno=True)


def exchange(a, b):
    if libc.renameat2(AT_FDCWD, os.fsencode(a), AT_FDCWD, os.fsencode(b), RENAME_EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


class Flipper:
    """Does something again and again in a thread, while runs start."""

    CALM, STORM = 0.2, 0.0002

    def __init__(self, flip):
        self.flip = flip
        self.moments = []  # of the flips, as time.time() tells
        self.pause = self.STORM
        self.stopped = False
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.stopped:
            self.flip()
            self.moments.append(time.time())
            time.sleep(self.pause)

    def hit(self, begin, end):
        """Whether there was a flip between two moments."""
        return any(begin < moment < end for moment in self.moments)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped = True
        self.thread.join()


@pytest.fixture
def trees(box):
    """Two repositories, each with a protected file, that take turns at one name."""
    for name in ("a", "b"):
        box.repo(f"trees/{name}", files={"AGENTS.md": f"prompt of {name}\n", "deep/held.txt": f"held by {name}\n", "which": f"{name}\n"})
    os.unlink(box.path / "trees/b/.git/config")  # the other tree looks different to whoever judges it
    box.link("trees/current", "a")
    return box.path / "trees"


AGENT = ("date +%s.%N; cat which AGENTS.md deep/held.txt; pwd -P; echo evil >AGENTS.md; echo evil >deep/held.txt; mv deep moved; "
         "mv AGENTS.md moved; echo evil >.git/config; mv .git gone; true")
TRIES, SECONDS = 1000, 200


def start_until(enough, flipper, box, cordon, root):
    """Starts runs one after the other until `enough(hits, refused)`, where hits are what agents saw whose start a flip hit.

    The storm calms when a start is refused and rises when one comes through, so that a machine of any speed shows both.
    """
    hits, refused, deadline = [], 0, time.monotonic() + SECONDS
    for _ in range(TRIES):
        began = time.time()
        result = cordon("run", "--root", str(root), "--protect", "AGENTS.md", "--protect", "deep/held.txt", "--", "/bin/sh", "-c", AGENT,
                        cwd=box.path)
        if result.returncode == 125:
            # Nothing was started, and one line says why.
            assert result.stdout == "" and len(result.stderr.splitlines()) == 1, result
            refused += 1
            flipper.pause = min(flipper.pause * 2, flipper.CALM)
        else:
            assert result.returncode == 0, result
            when, which, prompt, held, where = result.stdout.splitlines()
            # One tree, and no mixture of both.
            assert (prompt, held) == (f"prompt of {which}", f"held by {which}"), result
            if flipper.hit(began, float(when)):
                hits.append((which, where))
            flipper.pause = max(flipper.pause / 2, flipper.STORM)
        if enough(hits, refused):
            return hits
        if time.monotonic() > deadline:
            break
    raise AssertionError(f"not enough came through or was refused in {TRIES} starts or {SECONDS} s: {hits}, {refused} refused")


def assert_trees_unharmed(trees):
    for name in ("a", "b"):
        tree = trees / name
        assert (tree / "AGENTS.md").read_text() == f"prompt of {name}\n" and (tree / "deep/held.txt").read_text() == f"held by {name}\n"
        assert not (tree / "gone").exists() and not (tree / "moved").exists()
    assert "evil" not in (trees / "a/.git/config").read_text() and not (trees / "b/.git/config").exists()


@pytest.mark.limit(240)
def test_c1_a_link_in_the_root_that_flips_leads_to_one_tree_or_the_other(box, cordon, trees):
    targets = itertools.cycle("ba")

    def flip():
        (trees / "next").symlink_to(next(targets))
        os.rename(trees / "next", trees / "current")

    with Flipper(flip) as flipper:
        hits = start_until(lambda hits, _: len(hits) > 12 and {which for which, _ in hits} == {"a", "b"}, flipper, box, cordon,
                           trees / "current")
    assert all(where == str(trees / which) for which, where in hits), hits
    assert_trees_unharmed(trees)


@pytest.mark.limit(240)
def test_c1_directories_that_are_exchanged_during_the_start_are_noticed_or_held(box, cordon, trees):
    """The names are real here: the path that was judged leads to another tree a moment later."""
    with Flipper(lambda: exchange(trees / "a", trees / "b")) as flipper:
        hits = start_until(lambda hits, refused: len(hits) >= 15 and refused >= 50, flipper, box, cordon, trees / "a")
    if len(flipper.moments) % 2:
        exchange(trees / "a", trees / "b")
    assert all(where == str(trees / "a") for _, where in hits), hits
    assert_trees_unharmed(trees)


def test_c1_control_what_checks_a_path_and_then_uses_it_shows_the_other_tree(box, trees):
    """The same flip against a launcher that checks AGENTS.md by path and protects it by path."""
    def flip():
        exchange(trees / "a", trees / "b")

    check_then_use = ("test -f {root}/.git/config || exit 3; sleep 0.01; bwrap --bind / / --ro-bind-try {root}/.git/config "
                      "{root}/.git/config sh -c 'echo evil >{root}/.git/config'")
    def harmed():
        configs = [trees / name / ".git/config" for name in ("a", "b")]
        return any("evil" in config.read_text() for config in configs if config.exists())

    for _ in range(10):
        with Flipper(flip):
            for _ in range(25):
                box.run("/bin/sh", "-c", check_then_use.format(root=trees / "a"))
        if harmed():
            return
    raise AssertionError("no check was followed by a flip, so that this storm proves nothing")


@pytest.mark.parametrize("name, below", [(".factory", "settings.json"), (".claude", "settings.json"), (".vscode", "tasks.json"),
                                         (".git/hooks", "pre-commit"), (".git/info", "attributes"), (".husky", "post-merge")])
@pytest.mark.parametrize("asked", [False, True])
def test_c2_a_link_where_something_is_to_be_mounted_leads_nowhere(arena, name, below, asked):
    """An earlier agent left a link to the user's keys at a place that will be protected."""
    keys = arena.box.mkdir("keys", mode=0o700)
    arena.box.write("keys/id_ed25519", "the key\n", mode=0o600)
    if (arena.root / name).is_dir():
        subprocess.run(["rm", "-r", str(arena.root / name)], check=True)
    arena.box.link(f"repo/{name}", str(keys))
    result = arena.sh(f"cat {name}/id_ed25519; echo evil >{name}/{below}; echo evil >{name}/id_ed25519; ls {name}; find / -xdev -name id_ed25519; find . -name id_ed25519",
                      *(["--protect", name] if asked else []), protect=False)
    assert (result.returncode == 125) == asked, result
    assert "the key" not in result.stdout and "id_ed25519" not in result.stdout
    assert os.listdir(keys) == ["id_ed25519"] and (keys / "id_ed25519").read_text() == "the key\n"
    assert os.readlink(arena.root / name) == str(keys)


def test_c2_nothing_is_mounted_through_a_link_of_the_tree(arena):
    arena.box.write("keys/id", "the key\n")
    arena.box.write("data/x", "shared\n")
    arena.box.link("repo/out", str(arena.box.path / "keys"))
    for options in (["--share", f"{arena.box.path}/data:{arena.root}/out"], ["--share", f"{arena.box.path}/data:{arena.root}/out/data"],
                    ["--rw", "out"], ["--ro", "out"]):
        result = arena.sh("echo started; cat out/id", *options, protect=False)
        assert result.returncode == 125 and result.stdout == "" and "out" in result.stderr, (options, result)
    denied = arena.sh("cat out/id; cat out; ls out", "--deny", "out", protect=False)
    assert "the key" not in denied.stdout
    assert os.listdir(arena.box.path / "keys") == ["id"]


def test_c2_control_bubblewrap_makes_the_mount_point_at_the_far_end(arena):
    keys = arena.box.mkdir("keys")
    arena.box.link("repo/.claude", "../keys")
    arena.box.run("bwrap", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink",
                  "usr/lib64", "/lib64", "--bind", str(arena.box.path), str(arena.box.path), "--ro-bind", "/usr/lib/os-release",
                  str(arena.root / ".claude/settings.json"), "/bin/true")
    assert os.listdir(keys) == ["settings.json"]


# ---- control data ----


@pytest.fixture
def household(box):
    """A home directory with the state directory where it usually is, and some work that makes records."""
    home = box.mkdir("household", mode=0o700)
    box.write("household/work/file.txt", "work\n")
    state = box.mkdir("household/.local/share/cordon", mode=0o700)
    return home, state, {"HOME": str(home), "CORDON_HOME": None, "XDG_DATA_HOME": None}


def snapshot(state):
    """Names and content of everything that is kept, but for what every run adds or uses again."""
    return {str(p): p.read_bytes() for p in sorted(state.rglob("*")) if p.is_file() and "audit" not in str(p) and p.name != "spare-run"}


HUNT = r"""
import subprocess
base = os.path.expandvars('$MARK')
for name in ('state', 'state/audit', 'state/runs', 'projects', 'config.yaml'):
    p = base + '/' + name
    attempt('list ' + name, lambda: os.listdir(p))
    attempt('make ' + name, lambda: open(p + '/evil', 'w'))
attempt('list', lambda: os.listdir(base))
attempt('mode', lambda: os.chmod(base, 0o777))
attempt('make', lambda: open(base + '/evil', 'w'))
attempt('over', lambda: (os.makedirs('staged/state', exist_ok=True), os.rename('staged', base)))
attempt('link', lambda: os.symlink(base, 'way-in'))
attempt('through', lambda: os.listdir('way-in/state'))
part = base
while part not in ('/', os.path.expandvars('$TOP')):
    attempt('away ' + part, lambda: os.rename(part, part + '.old'))
    attempt('exchange ' + part, lambda: (os.makedirs('twin', exist_ok=True), (_ for _ in ()).throw(OSError(-syscall(316, -100, b'twin', -100, part.encode(), 2), ''))))
    part = os.path.dirname(part)
print('found', len([1 for top, _, files in os.walk(os.path.expandvars('$TOP')) for f in files if f.endswith('.jsonl') or f == 'cordon-run']))
"""


@pytest.mark.parametrize("options", [[], ["--rw", "."], ["--rw", ".local"], ["--rw", ".local/share/cordon"], ["--rw", ".local", "--rw", "work"],
                                     ["--workspace", "work", "--workspace-mode", "permissive"],
                                     ["--workspace", ".local", "--workspace-mode", "strict"], ["--lens", "always"],
                                     ["--at", "/elsewhere"]])
def test_c7_control_data_is_outside_every_sandbox(box, cordon, household, options):
    home, state, env = household
    assert cordon("run", "--root", str(home), "--", "true", cwd=home, env=env).returncode == 0  # there are records now
    kept = snapshot(state)
    at = "/elsewhere" if options[:1] == ["--at"] else str(home)
    from arena import PRELUDE
    result = cordon("run", "--root", str(home), "--env", f"MARK={at}/.local/share/cordon", "--env", f"TOP={at}", *options, "--",
                    "/usr/bin/python3", "-c", PRELUDE + HUNT, cwd=home, env=env)
    found = answers(result)
    assert result.returncode == 0 and len(found) > 20, result
    found.pop("link")
    assert found.pop("found") == "0" and "done" not in found.values(), (options, found)
    assert snapshot(state) == kept and not (home / ".local.old").exists() and os.stat(state).st_mode & 0o777 == 0o700
    assert cordon("audit", "verify", env=env).returncode == 0
    assert cordon("run", "--root", str(home), "--", "true", cwd=home, env=env).returncode == 0


@pytest.mark.parametrize("options", [
    ["--root", "{state}"], ["--root", "{state}/state"], ["--root", "{state}/state/audit"], ["--share", "{state}"], ["--share", "{state}:/x:ro"],
    ["--share", "{state}/state/audit:/x:ro"], ["--share", "{home}:/x"], ["--share", "{home}:/x:ro"], ["--home", "{home}"], ["--home", "{state}"],
    ["--root", "{home}", "--rw", ".local/share/cordon/state"], ["--root", "{home}", "--ro", ".local/share/cordon/state/audit"],
    ["--root", "{home}/alias"], ["--share", "{home}/alias:/x"], ["--home", "{home}/alias"]])
def test_c7_no_option_shows_control_data(box, cordon, household, options):
    home, state, env = household
    assert cordon("run", "--root", str(home / "work"), "--", "true", cwd=home, env=env).returncode == 0
    box.link("household/alias", ".local/share/cordon/state")
    words = [o.format(home=home, state=state) for o in options]
    if "--root" not in words:
        words += ["--root", str(home / "work")]
    result = cordon("run", *words, "--", "/bin/sh", "-c", "echo started; find / -xdev -name '*.jsonl' -o -xdev -name runs", cwd=home, env=env)
    assert result.returncode == 125 and result.stdout == "" and "own records" in result.stderr, result


def test_c7_a_second_way_into_the_workspace_is_refused(arena):
    """It would go around what is protected: --share of the root, of what holds it or lies in it, as --home too."""
    for words in (["--share", f"{arena.root}:/x"], ["--share", f"{arena.root}/.git:/x"], ["--share", f"{arena.root}/deep"],
                  ["--home", str(arena.root)], ["--home", f"{arena.root}/.git"]):
        result = arena.sh("echo started; echo evil >/x/AGENTS.md; echo evil >/x/config; echo evil >~/AGENTS.md; echo evil >~/config", *words)
        assert result.returncode == 125 and result.stdout == "" and "overlaps the workspace" in result.stderr, (words, result)
    arena.box.mkdir("more")
    beside = arena.sh("echo x >/x/new && echo made", "--share", f"{arena.root.parent}/more:/x")
    assert beside.stdout == "made\n", beside
    readable = arena.sh("cat /x/AGENTS.md; echo evil >/x/AGENTS.md", "--share", f"{arena.root}:/x:ro")
    assert readable.stdout == "the prompt\n"
    arena.assert_unharmed()


def test_c7_links_on_the_way_to_the_state_directory_stay_where_they_are(box, cordon, household):
    """The next run would believe records that the agent wrote."""
    home, state, env = household
    os.rename(home / ".local", home / "disk")
    box.link("household/.local", "disk")
    for options in ([], ["--lens", "always"]):
        result = cordon("run", "--root", str(home), *options, "--", "/bin/sh", "-c",
                        "rm .local; mv .local x; ln -sfn fake .local; mkdir -p .local/share/cordon/state fake; ls .local/share/cordon", cwd=home, env=env)
        assert os.readlink(home / ".local") == "disk" and "state" not in result.stdout, result
    assert cordon("run", "--root", str(home / "work"), "--", "true", cwd=home, env=env).returncode == 0


@pytest.mark.parametrize("name", ["cordon.yaml", ".cordon.yaml", ".cordon/config.yaml", "cordon/config.yaml", ".config/cordon/config.yaml"])
def test_c7_configuration_in_the_tree_loosens_nothing(arena, name):
    arena.box.write(f"repo/{name}", "version: 1\nmode: permissive\nwrite: ['**']\nprotect: []\nread_only: false\n")
    result = arena.sh("echo evil >src/main.c; echo evil >AGENTS.md; ls /etc/shadow", "--ro", ".")
    assert "Read-only file system" in result.stderr, result
    assert (arena.root / "src/main.c").read_text().startswith("int main")
    arena.assert_unharmed()


def test_c7_a_policy_file_in_the_tree_is_not_the_agents_to_change(arena):
    policy = arena.box.write("repo/conf/cordon.yaml", "version: 1\nprotect: [AGENTS.md]\n")
    text = policy.read_text()
    result = arena.cordon("run", "--root", str(arena.root), "--policy", str(policy), "--", "/bin/sh", "-c",
                          "echo x >conf/cordon.yaml; rm -f conf/cordon.yaml; mv conf gone; mv conf/cordon.yaml y; echo evil >AGENTS.md", cwd=arena.root)
    assert "Read-only file system" in result.stderr and policy.read_text() == text, result
    arena.assert_unharmed()


# ---- a layer is missing ----

# Refuses system calls (with an error number each) from here on, then becomes the command.
REFUSE = r"""
import ctypes, os, struct, sys
rules = [tuple(map(int, word.split('='))) for word in sys.argv[1].split(',')]
code = [struct.pack('HBBI', 0x20, 0, 0, 0)]
for nr, error in rules:
    code += [struct.pack('HBBI', 0x15, 0, 1, nr), struct.pack('HBBI', 0x06, 0, 0, 0x50000 | error)]
code.append(struct.pack('HBBI', 0x06, 0, 0, 0x7fff0000))
text = ctypes.create_string_buffer(b''.join(code))
program = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', len(code), ctypes.addressof(text)))
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
if libc.prctl(22, 2, program, 0, 0) != 0:
    sys.exit('no filter')
os.execv(sys.argv[2], sys.argv[2:])
"""
NR = {"clone3": 435, "landlock_create_ruleset": 444, "landlock_restrict_self": 446, "seccomp": 317, "pivot_root": 155, "move_mount": 429,
      "mount_setattr": 442, "open_tree": 428, "fsopen": 430, "capset": 126, "close_range": 436, "sethostname": 170, "mount": 165, "setsid": 112}


def without(arena, calls, *options, script="echo started"):
    rules = ",".join(f"{NR[name]}={error}" for name, error in calls.items())
    return arena.box.run("/usr/bin/python3", "-c", REFUSE, rules, arena.cordon.path, "run", "--root", str(arena.root), *arena.protect(), *options,
                         "--", "/bin/sh", "-c", script, cwd=arena.root)


@pytest.mark.parametrize("call, error, word", [
    ("clone3", errno.EPERM, "namespaces"), ("clone3", errno.ENOSYS, "namespaces"), ("clone3", errno.ENOSPC, "namespaces"),
    ("landlock_create_ruleset", errno.ENOSYS, "Landlock"), ("landlock_create_ruleset", errno.EOPNOTSUPP, "Landlock"),
    ("landlock_restrict_self", errno.E2BIG, "Landlock"), ("seccomp", errno.ENOSYS, "system call filter"), ("seccomp", errno.EBUSY, "system call filter"),
    ("pivot_root", errno.EPERM, "pivot_root"), ("move_mount", errno.EPERM, "mount"), ("mount_setattr", errno.ENOSYS, "freeze"),
    ("open_tree", errno.ENOSYS, "mount"), ("fsopen", errno.EPERM, "tmpfs"), ("capset", errno.EPERM, "capabilities"),
    ("close_range", errno.ENOSYS, "descriptors"), ("sethostname", errno.EPERM, "host name"), ("mount", errno.EPERM, "private"),
    ("setsid", errno.EPERM, "session")])
def test_c8_a_missing_layer_is_125_and_named(arena, call, error, word):
    result = without(arena, {call: error})
    assert result.returncode == 125 and result.stdout == "" and word in result.stderr, result
    assert len(result.stderr.splitlines()) == 1
    arena.assert_unharmed()


@pytest.mark.parametrize("call, error", [("clone3", errno.ENOSYS), ("clone3", errno.EPERM), ("landlock_create_ruleset", errno.ENOSYS)])
def test_c8_best_effort_declares_what_is_not_active(arena, call, error):
    report = arena.box.path / "result.json"
    result = without(arena, {call: error}, "--rw", "src", "--best-effort", "--result", str(report), script="echo x >src/new; echo evil >AGENTS.md; cat AGENTS.md")
    assert (arena.root / "src/new").exists() and "evil" not in result.stdout, result
    lacking = ["namespaces", "mounts", "protected_paths", "file_metadata"] if call == "clone3" else ["landlock", "landlock_scopes"]
    enforcement = json.loads(report.read_text())["enforcement"]
    assert enforcement["missing"] == lacking and enforcement["tier"] == ("landlock" if call == "clone3" else "full"), enforcement
    assert f"[INFO] best effort: not active here: {', '.join(lacking)}\n" in result.stderr, result
    start = json.loads(arena.cordon("audit", "--kind", "start", "--json").stdout.splitlines()[-1])
    assert start["detail"]["missing"] == lacking and start["detail"]["tier"] == enforcement["tier"], start
    arena.assert_unharmed()


def test_c8_where_nothing_is_missing_best_effort_changes_nothing(arena):
    for options in ([], ["--best-effort"]):
        result = arena.sh("echo evil >AGENTS.md", *options, "--result", str(arena.box.path / "r.json"))
        enforcement = json.loads((arena.box.path / "r.json").read_text())["enforcement"]
        assert enforcement["tier"] == "full" and enforcement["missing"] == [] and "best effort" not in result.stderr
        start = json.loads(arena.cordon("audit", "--kind", "start", "--json").stdout.splitlines()[-1])
        assert start["detail"]["missing"] == []
    arena.assert_unharmed()


def test_c8_best_effort_never_means_without_a_filter_or_with_capabilities(arena):
    for call, error in (("seccomp", errno.ENOSYS), ("capset", errno.EPERM)):
        result = without(arena, {call: error}, "--best-effort")
        assert result.returncode == 125 and result.stdout == "", result


def test_c8_inside_a_sandbox_another_one_is_refused_with_its_name_or_declared(arena):
    """The filter of the outer run refuses namespaces and lends its listener to nobody."""
    inner = "CORDON_HOME=/tmp/inner HOME=/tmp /opt/cordon/cordon run --root {root}/src {options} -- /bin/sh -c 'echo started; echo x >../evil; echo y >new'"
    share = ["--share", f"{arena.box.bin}:/opt/cordon:ro"]
    refused = arena.sh(inner.format(root=arena.root, options=""), *share)
    assert refused.returncode == 125 and "already inside a sandbox" in refused.stderr and "started" not in refused.stdout, refused
    declared = arena.sh(inner.format(root=arena.root, options="--best-effort --no-default-protect --rw . --result /tmp/r") + "; cat /tmp/r", *share)
    assert "started" in declared.stdout and "best effort" in declared.stderr, declared
    assert (arena.root / "src/new").exists() and not (arena.root / "evil").exists()
    value = json.loads(declared.stdout.splitlines()[-1])
    assert value["enforcement"]["tier"] == "landlock", value
    arena.assert_unharmed()


# ---- paths as weapons ----

LONG = "x" * 100_000  # one argument of an exec may have 131,072 bytes


@pytest.mark.parametrize("words", [
    ["--root", "../../../../../.."], ["--root", ""], ["--root", "-o"], ["--root", LONG], ["--root", "a/" * 40_000], ["--root", "loop"],
    ["--root", "AGENTS.md"], ["--root", "fifo"], ["--root", "/proc/self/cwd/.."], ["--root", "/proc/self/fd/0"], ["--root", "out"],
    ["--protect", "../outside"], ["--protect", "/etc/passwd"], ["--protect", "a/../../x"], ["--protect", ""], ["--protect", LONG],
    ["--protect", "."], ["--protect", "/"], ["--protect", "src/" * 20_000], ["--rw", "../x"], ["--rw", "/etc"], ["--rw", ""], ["--rw", LONG], ["--ro", "a/../.."],
    ["--rw", "out"], ["--rw", "out/.ssh"], ["--at", "relative"], ["--at", "/x/../../y"], ["--at", "/"], ["--at", "/proc"], ["--at", "/proc/self/root"],
    ["--at", "/dev/shm"], ["--at", "/etc"], ["--at", "/" + LONG], ["--share", "../outside:../x"], ["--share", "src:relative"], ["--share", ":"],
    ["--share", "/no/such"], ["--share", f"/{LONG}"], ["--share", "/etc/shadow/../..:/x"], ["--home", ""], ["--home", LONG], ["--home", "AGENTS.md"], ["--home", "/proc/1/root"],
    ["--env", "=x"], ["--env", LONG], ["--keep-env", "A=B"], ["--keep-env", ""], ["--policy", "fifo"], ["--policy", "loop"], ["--policy", "/dev/zero"],
    ["--result", "no/such/dir/r"], ["--result", LONG], ["--deny", "../x"], ["--workspace", "../x,src"], ["--workspace", LONG], ["-o", "x"], ["--oot", "x"]])
def test_c10_paths_as_weapons_are_refused_or_harmless(arena, words):
    outside = arena.box.write("outside/.ssh/key", "the key\n")
    arena.box.link("repo/out", "../outside")
    arena.box.link("repo/loop", "loop")
    os.mkfifo(arena.root / "fifo")
    result = arena.sh("echo started; cat out/.ssh/key .ssh/key ../outside/.ssh/key; (echo evil >out/.ssh/key); true", *words, protect=False, timeout=20)
    harmless = words in (["--root", "out"], ["--root", "/proc/self/cwd/.."], ["--at", "/dev/shm"], ["--protect", "src/" * 20_000], ["--result", LONG])
    if not harmless:
        assert result.returncode in (2, 125) and "started" not in result.stdout, result
        assert len(result.stderr) < 20_000 and result.stderr.startswith(("cordon: ", "[WORKSPACE]")), result
    if words[0] != "--root":
        assert "the key" not in result.stdout and outside.read_text() == "the key\n", result
    assert result.seconds < 10


def test_c10_a_command_line_of_a_megabyte_is_an_answer_not_a_crash(arena):
    for word in ("--protect", "--rw", "--env", "--share", "--deny"):
        value = {"--env": "K{}=v", "--share": "/no/such/{}"}.get(word, "no/such/{}")
        words = [w for i in range(20_000) for w in (word, value.format(i))]
        result = arena.cordon("run", "--root", str(arena.root), *words, "--", "true", cwd=arena.root, timeout=30)
        assert result.returncode in (0, 2, 125), (word, result.returncode, result.stderr[:500])


def test_c10_the_result_is_written_where_it_was_asked_for_whatever_the_agent_puts_there(arena):
    target = arena.box.write("outside/profile", "mine\n")
    arena.box.mkdir("repo/out")
    result = arena.sh(f"ln -s {target} out/result.json; mv out away; ln -s {target.parent} out; true", "--result", "out/result.json", protect=False)
    assert result.returncode == 0, result
    assert target.read_text() == "mine\n" and os.listdir(target.parent) == ["profile"]
    assert json.loads((arena.root / "away/result.json").read_text())["state"] == "completed"
