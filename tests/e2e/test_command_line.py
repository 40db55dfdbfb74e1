# SPDX-License-Identifier: Apache-2.0
"""What all commands share: options, help, errors as text and as objects, and completions made from the tables."""
import fcntl
import json
import os
import pty
import re
import struct
import termios

import pytest

from support import poll
from terminals import Terminal


@pytest.fixture
def repo(box):
    return box.repo(files={"lib/a": "", "my folder/b": "", "-x/c": ""})


def commands(cordon):
    """Names of all commands, from the help."""
    text = cordon("help", "all").stdout.split("Commands:\n")[1]
    return re.findall(r"^  ([a-z-]+(?: [a-z-]+)?)  ", text, re.MULTILINE)


def option_names(cordon, command):
    return re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)", cordon(*command.split(), "--help").stdout, re.MULTILINE)


# ---- options ----


def test_options_stand_anywhere(cordon, repo):
    for args in (
        ["--workspace", "lib", "lib/x", "y"],
        ["lib/x", "--workspace", "lib", "y"],
        ["lib/x", "y", "--workspace=lib"],
        ["--workspace=lib", "--", "lib/x", "y"],
        ["lib/x", "--workspace=lib", "--", "y"],
    ):
        result = cordon("check", "--workspace-mode", "strict", *args, cwd=repo)
        assert (result.stdout, result.returncode) == ("allow lib/x\ndeny y\n", 1), result


def test_two_dashes_end_the_options(cordon, repo):
    result = cordon("check", "--rw=-x", "--", "-x/c", "--json", "--", cwd=repo)
    assert result.stdout == "allow -x/c\ndeny --json\ndeny --\n"


def test_a_value_may_look_like_an_option_and_may_be_empty(cordon, repo):
    assert cordon("check", "--rw", "--json", "--", "--json/x", cwd=repo).stdout == "allow --json/x\n"
    assert cordon("check", "--rw=", "x", cwd=repo).returncode == 2


def test_short_options_are_clustered_and_take_values(cordon, repo):
    assert cordon("tree", "-ad1", cwd=repo).returncode == 0
    assert cordon("tree", "-ad", "1", cwd=repo).stdout == cordon("tree", "--all", "--depth=1", cwd=repo).stdout
    assert cordon("tree", "-h").stdout == cordon("tree", "--help").stdout


@pytest.mark.parametrize(
    "args, named",
    [
        (["--bogus"], "--bogus"),
        (["--bogus=value"], "--bogus"),
        (["-X"], "-X"),
        (["-qX"], "-X"),
        (["--rw"], "--rw"),
        (["--json=yes"], "--json"),
        (["--work", "x"], "--work"),
        (["--op", "chmod"], "read|write"),
        (["--root", "a", "--root", "b"], "twice"),
        (["--"], "no path"),
        (["-"], None),
    ],
)
def test_wrong_options_are_named(cordon, repo, args, named):
    result = cordon("check", *args, cwd=repo)
    if named is None:
        assert result.stdout == "allow -\n"
        return
    assert result.returncode == 2 and result.stdout == "", result
    assert named in result.stderr and result.stderr.count("\n") == 1
    as_object = cordon("check", *[arg for arg in args if arg != "--"], "--json", cwd=repo)
    if args != ["--rw"]:
        assert as_object.json("stderr")["kind"] == "usage"


def test_an_abbreviation_is_refused_with_the_name_that_was_meant(cordon, repo):
    assert "did you mean --no-default-protect?" in cordon("check", "--no-def", "x", cwd=repo).stderr
    assert "did you mean --workspace or --workspace-mode?" in cordon("check", "--works", "x", cwd=repo).stderr


@pytest.mark.parametrize(
    "args, meant",
    [
        (["chekc", "x"], "cordon check"),
        (["chek-file", "x"], "cordon check-file"),
        (["Doctor"], "cordon doctor"),
        (["projct", "list"], "cordon project"),
        (["project", "crate", "shop"], "cordon project create"),
        (["session", "strat"], "cordon session start"),
        (["audit", "verfy"], "cordon audit verify"),
        (["start"], "cordon session start"),
        (["delete", "x"], "cordon project delete, cordon workspace delete"),
        (["check", "--jsno", "x"], "--json"),
        (["check", "-json", "x"], "--json"),
        (["check", "--worspace=lib", "x"], "--workspace"),
        (["run", "--unprotct", "a", "--", "true"], "--unprotect"),
        (["session", "start", "--detatch", "p"], "--detach"),
        (["frobnicate"], None),
        (["project", "frobnicate"], None),
        (["check", "--frobnicate", "x"], None),
    ],
)
def test_did_you_mean(cordon, repo, args, meant):
    """A typing error in a command, a subcommand or an option is answered with what is closest, and with nothing that is not."""
    result = cordon(*args, cwd=repo)
    assert result.returncode == 2 and result.stdout == "" and result.stderr.count("\n") == 1
    assert ("did you mean" in result.stderr) is (meant is not None), result.stderr
    if meant:
        assert result.stderr.endswith(f"; did you mean {meant}?\n")
    else:
        assert "--help'" in result.stderr
    # An option must come before the command that `run` starts.
    as_object = cordon(args[0], *args[1:], "--json", cwd=repo)
    if "--" not in args:
        assert as_object.json("stderr")["kind"] == "usage"


def test_a_group_shows_its_commands(cordon):
    verbs = {"project": {"create", "list", "get", "update", "delete"}, "workspace": {"create", "list", "get", "sync", "delete"},
             "session": {"start", "list", "get", "send", "output", "attach", "exec", "wait", "stop", "cleanup"}}
    for group, expected in verbs.items():
        shown = cordon(group, "--help")
        assert shown.returncode == 0 and shown.stderr == "" and shown.stdout.startswith(f"Usage: cordon {group} COMMAND")
        listed = dict(re.findall(r"^  ([a-z]+) +(\S.*)$", shown.stdout, re.MULTILINE))
        assert expected <= set(listed) and all(listed.values())
        assert cordon("help", group).stdout == cordon(group, "-h").stdout == shown.stdout
        alone = cordon(group)
        assert alone.returncode == 2 and alone.stdout == shown.stdout
    # A group that is a command too keeps its own help, which names the others.
    assert "cordon audit verify" in cordon("audit", "--help").stdout and "--follow" in cordon("audit", "--help").stdout


def test_the_version_is_said_in_every_way_that_people_ask(cordon):
    said = cordon("version")
    assert re.fullmatch(r"cordon \d+\.\d+\.\d+\n", said.stdout) and said.returncode == 0
    assert cordon("--version").stdout == cordon("-V").stdout == said.stdout
    assert cordon("version", "--json").json() == {"version": said.stdout.split()[1]}
    assert cordon("version", "-q").stdout == said.stdout.split()[1] + "\n"
    assert cordon("version", "x").returncode == 2


# ---- what is printed where ----


def on_terminal(box, *args, columns, env=None):
    """What a command prints on a terminal of this width."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    process = box.start(str(box.bin / "cordon"), *args, env=env, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    seen = b""
    try:
        while chunk := os.read(master, 4096):
            seen += chunk
    except OSError:
        pass
    os.close(master)
    assert process.wait(30) == 0, seen
    return seen.decode().replace("\r\n", "\n")


@pytest.fixture
def projects(box, cordon):
    long = "a name that is much too long for a narrow terminal, with ü and 日本"
    return {name: cordon("project", "create", "--json", "--no-git", name).json()["id"] for name in ("shop", long)}


def test_a_table_fits_the_terminal_and_has_a_header(box, cordon, projects):
    wide = on_terminal(box, "project", "list", columns=300, env={"NO_COLOR": "1"}).splitlines()
    assert wide[0].split() == ["ID", "NAME", "ISOLATION", "PROTECTED", "CREATED"] and len(wide) == 3
    assert all(id in "\n".join(wide) and name in "\n".join(wide) for name, id in projects.items())
    starts = [line.index(cell) for line, cell in zip(wide, ("NAME", "shop", "a name"))]
    assert len(set(starts)) == 1
    narrow = on_terminal(box, "project", "list", columns=70, env={"NO_COLOR": "1"}).splitlines()
    assert max(map(len, narrow)) <= 70 and "…" in narrow[2]
    # The id is cut to what a command takes.
    shown = narrow[1].split()[0]
    assert len(shown) == 8 and cordon("project", "get", "--json", shown).json()["id"] == projects["shop"]


def test_colours_only_on_a_terminal_that_wants_them(box, cordon, projects):
    assert "\x1b[1m" in on_terminal(box, "project", "list", columns=200)
    assert "\x1b" not in on_terminal(box, "project", "list", columns=200, env={"NO_COLOR": "1"})
    assert "\x1b" not in cordon("project", "list").stdout


def test_a_pipe_gets_whole_values_between_tabs_and_no_header(cordon, projects):
    rows = [line.split("\t") for line in cordon("project", "list").stdout.splitlines()]
    assert {row[1]: row[0] for row in rows} == projects and all(len(row) == 5 for row in rows)


def test_quiet_prints_ids_and_no_log_lines(box, cordon, repo, projects):
    assert cordon("project", "list", "-q").stdout.split() == list(projects.values())
    made = cordon("project", "create", "-q", "--no-git", "third").stdout
    assert cordon("project", "get", "--quiet", "third").stdout == made
    assert cordon("session", "list", "-q").stdout == ""
    assert cordon("validate", "lib", cwd=repo).stderr != "" and cordon("validate", "-q", "lib", cwd=repo).stderr == ""
    assert cordon("validate", "-q", "missing", cwd=repo).returncode == 1


def test_a_quiet_run_prints_nothing_of_its_own_but_errors(box, cordon, repo):
    refused = ["--workspace", "lib", "--workspace-mode", "strict", "--", "sh", "-c", "echo x > outside; echo said"]
    loud, quiet = (cordon("run", "--summary", *more, *refused, cwd=repo) for more in ([], ["-q"]))
    assert "BLOCKED" in loud.stderr and loud.stdout == quiet.stdout == "said\n"
    assert "[" not in quiet.stderr and "outside" in quiet.stderr  # what the shell says itself
    audit = [json.loads(line) for line in cordon("audit", "--json", "--kind", "violation").stdout.splitlines()]
    assert len({record["session_id"] for record in audit}) == 2
    assert cordon("run", "-q", "--", "no-such-program", cwd=repo).stderr.startswith("cordon: ")


# ---- help ----


def test_unknown_and_incomplete_commands(cordon):
    result = cordon("frobnicate")
    assert result.returncode == 2 and "frobnicate" in result.stderr
    assert cordon().returncode == 2
    assert cordon("help", "frobnicate").returncode == 2
    assert cordon("\x1b[31m").stderr.count("\x1b") == 0


def test_help_goes_to_stdout_and_names_every_option_once(cordon):
    names = commands(cordon)
    assert {"validate", "check-file", "infer-scope", "update-prd", "mount", "unmount", "prompt-section", "check", "why",
            "tree", "completion"} <= set(names)
    for name in names:
        result = cordon(*name.split(), "--help")
        assert result.returncode == 0 and result.stderr == ""
        assert result.stdout.startswith(f"Usage: cordon {name} [OPTION]...")
        assert max(map(len, result.stdout.splitlines())) <= 120
        assert cordon("help", *name.split()).stdout == result.stdout
        options = option_names(cordon, name)
        assert len(options) == len(set(options)) and {"json", "help"} <= set(options)


def test_errors_are_one_line_of_text_or_one_object(cordon, repo):
    text = cordon("check", "--policy", "missing\n.yaml", "x", cwd=repo)
    assert text.returncode == 1 and text.stderr.count("\n") == 1 and text.stderr.startswith("cordon: ")
    result = cordon("check", "--policy", "missing\n.yaml", "--json", "x", cwd=repo)
    error = result.json("stderr")
    assert error["kind"] == "not_found" and "missing" in error["message"] + error["where"]


def test_an_error_message_of_any_bytes_is_valid_json(cordon, repo):
    for name in (b"\xff" * 3000, "ü" * 2000, "a\\" * 3000):
        result = cordon("validate", "--json", name, cwd=repo)
        assert result.returncode in (1, 2)
        for line in result.raw_stderr.splitlines():
            assert json.loads(line)["kind"]


# ---- completions ----


def complete(box, cordon, *words, cwd=None):
    """What bash would offer for the last word."""
    script = box.write("completion", cordon("completion", "bash").stdout)
    driver = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _cordon; printf "%s\\n" "${COMPREPLY[@]}"'
    result = box.run("bash", "-c", driver, "bash", str(script), str(box.bin / "cordon"), *words, cwd=cwd)
    assert result.stderr == "", result
    return [line for line in result.stdout.split("\n") if line]


def test_bash_completes_commands_options_and_values(box, cordon, repo):
    assert {"check", "check-file"} <= set(complete(box, cordon, "che"))
    assert complete(box, cordon, "check", "--works") == ["--workspace", "--workspace-mode"]
    assert complete(box, cordon, "check", "--op", "") == ["read", "write", "connect"]
    assert complete(box, cordon, "run", "--net", "") == ["host", "none", "profile"]
    assert complete(box, cordon, "check", "--op", "w") == ["write"]
    assert complete(box, cordon, "completion", "") == ["bash", "zsh", "fish"]
    assert {"strict", "permissive"} <= set(complete(box, cordon, "prompt-section", "lib", ""))


def test_bash_completes_files_and_lists_of_folders(box, cordon, repo):
    assert complete(box, cordon, "check", "--workspace", "li", cwd=repo) == ["lib"]
    assert complete(box, cordon, "check", "--workspace", "lib,my", cwd=repo) == ["lib,my folder"]
    assert complete(box, cordon, "check", "lib/", cwd=repo) == ["lib/a"]
    assert complete(box, cordon, "mount", "lib", "my", cwd=repo)[0] == "my folder"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_name_every_command_and_option(box, cordon, shell):
    result = cordon("completion", shell)
    assert result.returncode == 0 and result.stderr == ""
    for name in commands(cordon):
        for word in name.split():
            assert word in result.stdout
        for option in option_names(cordon, name):
            assert (f"-l {option} " if shell == "fish" else f"--{option}") in result.stdout
    script = box.write(f"completion.{shell}", result.stdout)
    assert box.run(shell, "-n", str(script)).returncode == 0


class Bash:
    """What bash itself offers for the last word."""

    def __init__(self, box, cordon):
        self.box, self.cordon = box, cordon

    def __call__(self, *words):
        return sorted(complete(self.box, self.cordon, *words))


class Fish(Bash):
    def __call__(self, *words):
        script = self.box.write("completion.fish", self.cordon("completion", "fish").stdout)
        line = " ".join([str(self.box.bin / "cordon"), *words])
        done = self.box.run("fish", "--no-config", "-c", f"source {script}; complete -C '{line}'", env={"HOME": str(self.box.path)})
        assert done.stderr == "", done
        return sorted(line.split("\t")[0] for line in done.stdout.splitlines())


class Zsh(Bash):
    """A zsh on a terminal, which completes the line that is typed and then shows its last word."""

    RC = """
        autoload -Uz compinit; compinit -u -d $ZDOTDIR/dump; autoload -Uz _cordon; compdef _cordon cordon; unsetopt beep; setopt no_list_beep
        cordon() { if [[ $1 = completion ]]; then command cordon "$@"; else print -r -- "<$argv[-1]>"; fi }
        PS1='ready> '
    """

    def __call__(self, *words):
        self.box.mkdir("zsh")
        self.box.write("zsh/_cordon", self.cordon("completion", "zsh").stdout)
        self.box.write("zsh/.zshrc", "fpath=($ZDOTDIR $fpath)\n" + self.RC)
        env = {"ZDOTDIR": str(self.box.path / "zsh"), "PATH": f"{self.box.bin}:/usr/bin:/bin"}
        terminal = Terminal(self.box, "zsh", "-i", cwd=self.box.path, env=env)
        terminal.expect(b"ready> ", 30)
        terminal.type((" ".join(["cordon", *words]) + "\t\n").encode())
        terminal.expect(b"<", 30)
        shown = terminal.expect(b">", 30).decode()
        terminal.type(b"\x04")
        terminal.close()
        return [] if shown == words[-1] else [shown]


@pytest.mark.parametrize("shell", [Bash, Fish, Zsh])
def test_shells_complete_names_and_ids(box, cordon, shell):
    ask = shell(box, cordon)
    made = {name: cordon("project", "create", "-q", "--no-git", name).stdout.strip() for name in ("shop", "shelf")}
    workspace = cordon("workspace", "create", "-q", "shop", "--external-id", "alice").stdout.strip()
    session = cordon("session", "start", "-q", "shop", "--detach", "--", "true").stdout.strip()
    if shell is not Zsh:  # which completes one answer, and would show several
        assert ask("project", "get", "") == ask("session", "start", "--detach", "sh") == sorted(made)
    assert ask("project", "get", "sho") == ["shop"]
    assert ask("project", "get", made["shop"][:8]) == [made["shop"]]
    assert ask("session", "start", "--detach", "sho") == ["shop"]
    assert ask("workspace", "get", "shop", "al") == ["alice"]
    assert ask("workspace", "get", "shop", workspace[:8]) == [workspace]
    assert ask("workspace", "get", "shelf", "al") == []
    assert ask("session", "get", session[:6]) == [session]
    assert ask("session", "start", "shop", "--workspace", "al") == ["alice"]
    assert ask("sess") == ["session"] and ask("session", "ex") == ["exec"]


def test_ids_for_completions_are_plain_lines(box, cordon, repo):
    made = [cordon("project", "create", "-q", "--no-git", name).stdout.strip() for name in ("shop", "twin", "twin")]
    lines = [line.split("\t") for line in cordon("completion", "--ids", "projects").stdout.splitlines()]
    assert lines == [["shop", made[0]], [made[1], "twin"], [made[2], "twin"]]
    assert cordon("run", "--", "true", cwd=repo).returncode == 0
    run = cordon("completion", "--ids", "runs").stdout.split("\t")[0]
    assert f" {run[:8]} " in cordon("audit", "--run", run).stdout
    assert cordon("completion", "--ids", "workspaces").returncode == 2
    assert cordon("completion", "--ids", "workspaces", "--project", "nobody").returncode == 1
    assert cordon("completion", "--ids", "people").returncode == 2
    assert cordon("completion", "--ids", "crews").stdout == ""  # runs of `cordon execute`, which are not those of the log
    assert complete(box, cordon, "audit", "--run", run[:6]) == [run] and complete(box, cordon, "status", run[:6]) == []


def test_completion_of_an_unknown_shell_is_wrong_usage(cordon):
    assert cordon("completion").returncode == 2
    assert cordon("completion", "tcsh").returncode == 2
