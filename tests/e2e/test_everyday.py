# SPDX-License-Identifier: Apache-2.0
"""Everyday things that work without cordon work inside as well. Each test is named after what a user would say."""
import os
import pathlib
import pwd
import shutil
import threading

import pytest

from support import poll

GIT_USER = "[user]\n\tname = \"Zoë \\\"Z\\\" Miller\"\n\temail = zoe@example.com\n[credential]\n\thelper = store --file=/secret\n"


def sh(cordon, script, *options, **kw):
    return cordon("run", "--no-summary", *options, "--", "/bin/sh", "-c", script, **kw)


# ---- who I am ----


def test_my_commits_have_my_name(box, cordon):
    repo = box.mkdir("repo")
    box.write("home/.gitconfig", GIT_USER + "[include]\n\tpath = /nowhere\n")
    assert box.run("git", "init", "-q", str(repo)).returncode == 0
    result = sh(cordon, "echo x >f && git add f && git commit -qm one && git log --format='%an <%ae>' && git config -l --show-scope; "
                "cat /etc/gitconfig", cwd=repo)
    assert result.returncode == 0 and 'Zoë "Z" Miller <zoe@example.com>' in result.stdout, result
    assert "secret" not in result.stdout and "credential" not in result.stdout and "include" not in result.stdout, result
    host = box.run("git", "log", "--format=%an <%ae>", cwd=repo)
    assert host.stdout == 'Zoë "Z" Miller <zoe@example.com>\n', host


def test_the_repositorys_own_name_wins_and_i_can_set_another_inside(box, cordon):
    repo = box.mkdir("repo")
    box.write("home/.config/git/config", GIT_USER)
    assert box.run("git", "init", "-q", str(repo)).returncode == 0
    assert box.run("git", "config", "user.email", "work@example.com", cwd=repo).returncode == 0
    result = sh(cordon, "git config user.name; git config user.email; git config --global user.name Other && git config user.name", cwd=repo)
    assert result.stdout == 'Zoë "Z" Miller\nwork@example.com\nOther\n', result


def test_my_name_for_work_is_used_below_my_directory_for_work(box, cordon):
    """Git reads a file only for repositories in one directory; inside it is the same name as outside."""
    box.write("home/.gitconfig", "[user]\n\tname = Zoë\n\temail = zoe@home.example\n"
              f'[includeIf "gitdir:{box.path}/work/"]\n\tpath = ~/at-work\n[includeIf "gitdir:play/**/.git"]\n\tpath = at-play\n'
              f'[includeIf "gitdir/i:{str(box.path).upper()}/LOUD/"]\n\tpath = at-play\n')
    box.write("home/at-work", "[user]\n\temail = zoe@work.example\n[include]\n\tpath = deeper\n[credential]\n\thelper = secret\n")
    box.write("home/deeper", "[user]\n\tname = Dr. Zoë\n")
    box.write("home/at-play", "[user]\n\tname = Z\n")
    for where in ("work/a", "play/b/c", "loud/d", "else"):
        repo = box.mkdir(where)
        assert box.run("git", "init", "-q", str(repo)).returncode == 0
        outside = box.run("sh", "-c", "git config user.name; git config user.email", cwd=repo)
        inside = sh(cordon, "git config user.name; git config user.email; git config -l | grep secret", cwd=repo)
        assert inside.stdout == outside.stdout and inside.stdout.count("\n") == 2, (where, inside, outside)
    assert sh(cordon, "git config user.name", cwd=box.path / "work/a").stdout == "Dr. Zoë\n"


@pytest.mark.parametrize("text", [b"[include]\n\tpath = .gitconfig\n\tpath = pipe\n", b"[user]\n\tname = \x1b[31mx\n\temail = \"a\\nb\"\n", b"[user]\n name = " + b"x" * 9000, b"\0" * 300000])
def test_a_broken_gitconfig_stops_no_run(box, cordon, text):
    box.write("home/.gitconfig", text)
    os.mkfifo(box.home / "pipe")
    result = sh(cordon, "cat /etc/gitconfig; echo ran", cwd=box.mkdir("repo"))
    assert result.returncode == 0 and result.stdout == "ran\n", result


def test_i_get_my_login_shell(box, cordon):
    try:
        account = pwd.getpwuid(box.who.uid).pw_shell
    except KeyError:
        account = "/bin/bash"  # an account that /etc/passwd does not know has the shell of its environment
    result = sh(cordon, 'echo "$SHELL"; awk -F: -v u="$(id -u)" \'$3 == u { print $7 }\' /etc/passwd; "$SHELL" -c "echo it starts"',
                cwd=box.mkdir("repo"), env={"SHELL": "/bin/bash"})
    assert result.stdout == f"{account}\n{account}\nit starts\n", result


@pytest.mark.parametrize("who", ["user"], indirect=True)
@pytest.mark.parametrize("shell", ["/opt/none/zsh", "/home/x/sh", "/usr/sbin/nologin", "relative", "/usr/bin/no-such-shell", ""])
def test_a_shell_that_is_not_there_inside_is_bin_sh(box, cordon, shell):
    result = sh(cordon, 'echo "$SHELL"', cwd=box.mkdir("repo"), env={"SHELL": shell})
    assert result.stdout == "/bin/sh\n", result


def test_colours_and_my_proxy_are_as_on_the_host(box, cordon):
    mine = {"COLORTERM": "truecolor", "NO_COLOR": "1", "http_proxy": "http://me:pw@proxy:3128", "HTTPS_PROXY": "http://proxy:3128",
            "no_proxy": "localhost,.example", "AWS_SECRET": "x", "TERM": "xterm-256color"}
    result = sh(cordon, "env", cwd=box.mkdir("repo"), env=mine)
    env = dict(line.split("=", 1) for line in result.stdout.splitlines())
    assert {name: env.get(name) for name in mine} == {**mine, "AWS_SECRET": None}, result
    alone = sh(cordon, "env", "--net", "none", cwd=box.path / "repo", env=mine)
    assert "roxy" not in alone.stdout and "COLORTERM=truecolor" in alone.stdout, alone


# ---- git, where .git is a file ----


@pytest.fixture
def linked(box):
    """A repository with two linked worktrees, and a submodule in it."""
    box.write("home/.gitconfig", GIT_USER)
    done = box.run("sh", "-ec", """
        git init -q -b main sub && cd sub && echo s >s && git add s && git commit -qm sub && cd ..
        git init -q -b main main && cd main && mkdir lib && echo a >lib/a && git add lib && git commit -qm first
        git worktree add -q ../wt && git worktree add -q ../other
        git -c protocol.file.allow=always submodule --quiet add ../sub libs/sub && git commit -qm second""", cwd=box.path)
    assert done.returncode == 0, done
    return box.path


WORK = """git status --porcelain && echo b >b && git add b && git commit -qm inside && git checkout -q -b topic && git commit -q --allow-empty -m topic &&
    echo c >>b && git stash -q && git stash pop -q && git checkout -q b && git tag v1 && git rebase -q HEAD~1 && git diff HEAD~1 --stat >/dev/null &&
    git log --format=%s"""


@pytest.mark.parametrize("options", [(), ("--lens", "always")], ids=["mounts", "lens"])
def test_git_works_in_my_linked_worktree(linked, box, cordon, options):
    result = sh(cordon, WORK, *options, cwd=linked / "wt")
    assert result.returncode == 0 and result.stdout == "topic\ninside\nfirst\n" and result.stderr == "", result
    assert box.run("git", "log", "--format=%s", "topic", cwd=linked / "main").stdout == "topic\ninside\nfirst\n"
    assert box.run("git", "log", "-1", "--format=%an %ae", "topic", cwd=linked / "wt").stdout == 'Zoë "Z" Miller zoe@example.com\n'
    assert "".join(box.run("git", "-C", where, "status", "--porcelain").stdout for where in ("main", "wt", "other")) == ""
    assert box.run("git", "fsck", "--strict", cwd=linked / "main").returncode == 0


def test_i_work_in_the_main_worktree_while_agents_work_in_others(linked, box, cordon):
    """Nobody notices the others: no report, and every commit is there."""
    wait = "until [ -e go ]; do sleep 0.05; done; echo c >c && git add c && git commit -qm later && git log -1 --format=%s"
    agents = [cordon.start("run", "--no-summary", "--", "/bin/sh", "-c", f"touch ready; {wait}", cwd=linked / where) for where in ("wt", "other")]
    poll(lambda: all((linked / where / "ready").exists() for where in ("wt", "other")), 30, "both agents run")
    done = box.run("sh", "-ec", "for i in 1 2 3; do echo $i >f && git add f && git commit -qm $i && git status; done; git checkout -q -b side; git gc -q",
                   cwd=linked / "main")
    assert done.returncode == 0, done
    for where, agent in zip(("wt", "other"), agents):
        box.write(f"{where}/go")
        out, err = agent.communicate(timeout=60)
        assert (agent.returncode, out, err) == (0, b"later\n", b""), where
    assert box.run("git", "log", "--format=%s", "-1", "other", cwd=linked / "main").stdout == "later\n"
    assert box.run("git", "fsck", "--strict", cwd=linked / "main").returncode == 0


def test_git_works_in_my_submodule(linked, box, cordon):
    result = sh(cordon, WORK + "; ls -A ../..", cwd=linked / "main/libs/sub")
    assert result.stdout == "topic\ninside\nsub\n.git\nlibs\n", result
    assert box.run("git", "log", "--format=%s", "topic", cwd=linked / "main/libs/sub").stdout == "topic\ninside\nsub\n"
    assert box.run("git", "status", "--porcelain", cwd=linked / "main").stdout == " M libs/sub\n"


def test_git_works_in_a_worktree_of_a_bare_repository_and_in_a_submodule_of_it(linked, box, cordon):
    done = box.run("sh", "-ec", "git clone -q --bare main p/.bare && git -C p/.bare worktree add -q ../wt main && cd p/wt && "
                   "git -c protocol.file.allow=always submodule --quiet update --init", cwd=linked)
    assert done.returncode == 0, done
    for where in ("p/wt", "p/wt/libs/sub"):
        result = sh(cordon, WORK, cwd=linked / where)
        assert result.returncode == 0, result
        assert box.run("git", "log", "-2", "--format=%s", "topic", cwd=linked / where).stdout == "topic\ninside\n"


def test_the_git_directory_of_a_worktree_has_the_rights_of_dot_git(linked, box, cordon):
    common = linked / "main/.git"
    before = sorted(path.name for path in common.rglob("*"))
    read = sh(cordon, "git log --format=%s; git commit --allow-empty -m x", "--read-only", cwd=linked / "wt")
    assert read.stdout == "first\n" and read.returncode != 0 and "Read-only file system" in read.stderr, read
    for options in (("--workspace", "lib", "--workspace-mode", "strict"), ("--deny", ".git"), ("--rw", "lib/**/*.c")):
        hidden = sh(cordon, f"ls -A {linked}/main", *options, cwd=linked / "wt")
        assert hidden.returncode != 0 and hidden.stdout == "", hidden
    assert sorted(path.name for path in common.rglob("*")) == before
    mine = sh(cordon, f"git log --format=%s; git commit --allow-empty -m x; touch {common}/mine", "--share", f"{common}:ro", cwd=linked / "wt")
    assert mine.stdout == "first\n" and not (common / "mine").exists(), mine
    told = cordon("why", str(common / "config"), cwd=linked / "wt")
    assert "in the git directory" in told.stdout and "change it from outside" in told.stdout, told


# ---- the network, and being without ----


@pytest.mark.parametrize("net", ["host", "none"])
def test_my_host_name_resolves(box, cordon, net):
    result = sh(cordon, 'getent hosts "$(hostname)" localhost && /usr/bin/python3 -c "import socket; '
                's = socket.create_server((socket.gethostname(), 0)); socket.create_connection(s.getsockname()); print(\'served\')"',
                "--net", net, cwd=box.mkdir("repo"))
    assert result.returncode == 0 and "served" in result.stdout and "cordon" in result.stdout, result


def test_without_a_network_npm_git_and_curl_say_so_at_once(box, cordon):
    """At once means: nothing waits and nothing tries again. npm alone took more than a minute."""
    box.write("repo/package.json", '{"name": "p", "version": "1.0.0"}')
    script = ("npm view left-pad 2>&1 | grep -o ENOTFOUND | head -1; grep -c 'attempt 2' ~/.npm/_logs/*.log; "
              "curl -sS http://registry.example 2>&1; git ls-remote https://forge.example/x/y 2>&1; getent hosts forge.example || echo unknown; "
              "/usr/bin/python3 -c 'import socket; socket.getaddrinfo(\"forge.example\", 1)' 2>&1 | tail -1; cat /etc/resolv.conf; env | grep PIP_RETRIES")
    result = sh(cordon, script, "--net", "none", "--timeout", "60s", cwd=box.path / "repo", timeout=90)
    assert result.returncode == 0, result
    lines = result.stdout.splitlines()
    assert lines[:2] == ["ENOTFOUND", "0"], result
    assert "Could not resolve host: registry.example" in result.stdout and "Could not resolve host: forge.example" in result.stdout, result
    assert "unknown" in lines and "gaierror: [Errno -2] Name or service not known" in result.stdout, result
    assert "nameserver" not in result.stdout and lines[-1] == "PIP_RETRIES=0", result


# ---- homes, shares and links ----


def usual_home(box):
    try:
        return "/root" if box.who.is_root else f"/home/{pwd.getpwuid(box.who.uid).pw_name}"
    except KeyError:
        return "/home/agent"


def test_my_project_lies_below_my_home_and_i_give_another_home(box, cordon):
    box.write("project/file", "mine\n")
    box.write("other/.toolrc", "settings\n")
    at = usual_home(box) + "/code/project"
    result = sh(cordon, 'pwd; cat file; cat "$HOME/.toolrc"; echo x >"$HOME/made"; echo y >made; awk -F: -v u="$(id -u)" \'$3 == u { print $6 == ENVIRON["HOME"] }\' '
                "/etc/passwd", "--home", "../other", "--at", at, cwd=box.path / "project")
    assert result.returncode == 0 and result.stdout == f"{at}\nmine\nsettings\n1\n", result
    assert (box.path / "other/made").read_text() == "x\n" and (box.path / "project/made").read_text() == "y\n"
    assert not (box.path / "other/code").exists()
    usual = sh(cordon, 'echo "$HOME"; cat ~/.toolrc', "--home", "../other", cwd=box.path / "project")
    assert usual.stdout == f"{usual_home(box)}\nsettings\n", usual


def test_what_i_share_by_a_link_is_there_under_that_name(box, cordon):
    box.write("disk/data/file", "content\n")
    box.write("disk/one", "one\n")
    box.link("names/data", "../disk/data")
    box.link("names/again", box.path / "names/data")
    box.link("names/disk", "../disk")
    box.link("names/one", "disk/one")
    box.write("names/beside", "not shared")
    names = box.path / "names"
    result = sh(cordon, f"cat {names}/again/file {names}/data/file {box.path}/disk/data/file {names}/one; echo new >{names}/again/new; "
                f"echo x >{names}/one; readlink {names}/data; ls {names}; ls {names}/disk/", "--share", f"{names}/again", "--share", f"{names}/one:ro",
                cwd=box.mkdir("repo"))
    assert result.stdout == "content\n" * 3 + "one\n../disk/data\nagain\ndata\ndisk\none\ndata\none\n", result
    assert (box.path / "disk/data/new").read_text() == "new\n" and (box.path / "disk/one").read_text() == "one\n"


def test_a_share_by_a_link_in_the_system_works_and_one_by_a_link_in_my_workspace_is_refused(box, cordon):
    """An agent of an earlier run could have turned the link in the workspace."""
    box.write("disk/file", "content\n")
    box.link("repo/data", "../disk")
    result = sh(cordon, "cat data/file", "--share", "data:ro", cwd=box.path / "repo")
    assert result.returncode == 125 and "name the directory that is meant" in result.stderr, result
    result = sh(cordon, f"cat {box.path}/disk/file", "--share", f"{box.path}/disk:ro", cwd=box.path / "repo")
    assert result.stdout == "content\n", result
    again = sh(cordon, "cat /var/tmp/linked && ls -d /var/run/", "--share", f"{box.path}/disk/file:/tmp/linked:ro", cwd=box.path / "repo")
    assert again.stdout == "content\n/var/run/\n", again


def test_my_virtual_environment_starts_through_the_lens(box, cordon):
    """`venv/bin/python3` is a link to /usr, which the run sees anyway."""
    repo = box.mkdir("repo")
    assert box.run("/usr/bin/python3", "-m", "venv", "--without-pip", "venv", cwd=repo).returncode == 0
    box.link("repo/venv/bin/shadow", "/etc/shadow")
    box.link("repo/venv/bin/home", box.home)
    box.write("repo/app.py", "import sys; print(sys.prefix)")
    for options in (("--rw", "**/*.py", "--ro", "venv/**"), ("--deny", "**/*.key"), ("--rw", "**/*.py", "--ro", "venv/pyvenv.cfg")):
        result = sh(cordon, "venv/bin/python3 app.py && venv/bin/python app.py && readlink venv/bin/python3", *options, cwd=repo)
        assert result.stdout == f"{repo}/venv\n{repo}/venv\n/usr/bin/python3\n", (options, result)
    result = sh(cordon, "readlink venv/bin/shadow venv/bin/home; ls venv/bin/home; readlink venv/bin/python3; venv/bin/python3 app.py",
                "--rw", "**/*.py", "--deny", "venv/bin/python*", cwd=repo)
    assert result.stdout == "" and "Permission denied" in result.stderr, result


# ---- the system ----


QUEUE = """
import ctypes, os
rt = ctypes.CDLL("librt.so.1", use_errno=True)
queue = rt.mq_open(b"/cordon-test-queue", os.O_CREAT | os.O_RDWR, 0o600, None)
assert queue >= 0, os.strerror(ctypes.get_errno())
assert rt.mq_send(queue, b"hello", 5, 1) == 0
text = ctypes.create_string_buffer(8192)
assert rt.mq_receive(queue, text, 8192, None) == 5
print(text.value.decode(), os.listdir("/dev/mqueue"))
"""


def test_message_queues_work_and_are_my_own(box, cordon):
    command = ("run", "--no-summary", "--", "/usr/bin/python3", "-c", QUEUE)
    first = cordon(*command, cwd=box.mkdir("repo"))
    assert first.stdout == "hello ['cordon-test-queue']\n", first
    second = sh(cordon, "ls /dev/mqueue", cwd=box.path / "repo")
    assert second.returncode == 0 and second.stdout == "", second
    assert box.run("/usr/bin/python3", "-c", "import ctypes; print(ctypes.CDLL('librt.so.1').mq_open(b'/cordon-test-queue', 0))").stdout == "-1\n"


def test_i_can_start_a_run_while_apt_works(box, cordon):
    """A package manager replaces files of /etc at any time: no run is refused for it, and each has a cache of the linker."""
    if os.getuid() != 0:
        pytest.skip("only root can replace a file of /etc")
    cache, copy = pathlib.Path("/etc/ld.so.cache"), pathlib.Path(f"/etc/ld.so.cache~{os.getpid()}")
    done, replaced = threading.Event(), []

    def work():
        while not done.is_set():
            shutil.copy2(cache, copy)
            os.replace(copy, cache)
            replaced.append(1)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        results = [sh(cordon, "cmp /etc/ld.so.cache ld.so.cache && git --version", cwd=box.write("repo/ld.so.cache", cache.read_bytes()).parent)
                   for _ in range(24)]
    finally:
        done.set()
        worker.join()
        copy.unlink(missing_ok=True)
    assert len(replaced) > 20
    assert [result.returncode for result in results] == [0] * 24, "\n".join(map(str, results))
