# SPDX-License-Identifier: Apache-2.0
"""What all commands share: options, help, errors as text and as objects, and completions made from the tables."""
import json
import re
import shutil

import pytest


@pytest.fixture
def repo(box):
    return box.repo(files={"lib/a": "", "my folder/b": "", "-x/c": ""})


def commands(cordon):
    """Names of all commands, from the help."""
    text = cordon("--help").stdout.split("Commands:\n")[1].split("\n\n")[0]
    return [re.match(r"  ([a-z-]+(?: [a-z-]+)?)  ", line + "  ").group(1).strip() for line in text.splitlines()]


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
        result = cordon("check", *args, cwd=repo)
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
        (["-q"], "-q"),
        (["-zq"], "-q"),
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
    result = box.run("bash", "-c", driver, "bash", str(script), "cordon", *words, cwd=cwd)
    assert result.stderr == "", result
    return [line for line in result.stdout.split("\n") if line]


def test_bash_completes_commands_options_and_values(box, cordon, repo):
    assert {"check", "check-file"} <= set(complete(box, cordon, "che"))
    assert complete(box, cordon, "check", "--works") == ["--workspace", "--workspace-mode"]
    assert complete(box, cordon, "check", "--op", "") == ["read", "write"]
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
    if shutil.which(shell):
        script = box.write(f"completion.{shell}", result.stdout)
        assert box.run(shell, "-n", str(script)).returncode == 0


def test_completion_of_an_unknown_shell_is_wrong_usage(cordon):
    assert cordon("completion").returncode == 2
    assert cordon("completion", "tcsh").returncode == 2
