# SPDX-License-Identifier: Apache-2.0
"""Help, manual pages and completions tell the same: every command, every option, in all of them."""
import json
import re
import shutil
import subprocess

import pytest

from support import TOP, built_executable, manual

MAN = TOP / "man"


def capture(*command):
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False, timeout=30)
    return done.returncode, done.stdout, done.stderr


def commands():
    """The commands that `cordon help all` lists."""
    status, text, _ = capture(built_executable(), "help", "all")
    assert status == 0
    section = text.split("Commands:\n", 1)[1]
    return re.findall(r"^  ([a-z][a-z0-9 -]*?)  +\S", section, re.MULTILINE)


def help_options(command):
    """{option: its argument's name or ""} from the help text of one command."""
    status, text, _ = capture(built_executable(), *command.split(), "--help")
    assert status == 0
    listed = text.split("\nOptions:\n", 1)[1]
    return dict(re.findall(r"^  (?:-\w, |    )--([a-z0-9-]+)(?: (\S+))?", listed, re.MULTILINE))


def page_of(command):
    """Two-word commands share the page of their first word unless they have one of their own; a shell is a run."""
    if command == "shell":
        command = "run"
    own = manual(f"cordon-{command.replace(' ', '-')}.1")
    return own if own.exists() else manual(f"cordon-{command.split()[0]}.1")


def long_options(text):
    return set(re.findall(r"Fl -([a-z][a-z0-9-]+)", text))


def page_items(page):
    """Long options that a page explains as items of a list."""
    return long_options("\n".join(re.findall(r"^\.It Fl .*$", page.read_text(), re.MULTILINE)))


def rendered(page):
    status, text, errors = capture("mandoc", "-Tascii", str(page))
    assert status == 0, errors
    return re.sub(".\b", "", text)


COMMANDS = commands()
PAGES = sorted(manual(page.name) for page in MAN.glob("*.[1-8]"))


def test_there_is_something_to_compare():
    assert COMMANDS and PAGES


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_page_with_its_options(command):
    page = page_of(command)
    assert page.exists(), f"{page.name} is missing"
    common = page_items(MAN / "cordon.1")  # options of every command stand there
    assert set(help_options(command)) - long_options(page.read_text()) - common == set(), f"not in {page.name}"


@pytest.mark.parametrize("page", sorted({page_of(command) for command in COMMANDS}), ids=lambda page: page.name)
def test_a_page_explains_no_option_that_is_not_there(page):
    assert page.exists()
    there = set().union(*(help_options(command) for command in COMMANDS if page_of(command) == page))
    assert page_items(page) - there == set()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_page_calls_arguments_as_the_help_does(command):
    text = " ".join(rendered(page_of(command)).split()).lower()
    for option, argument in help_options(command).items():
        if argument and "|" not in argument:
            assert re.search(rf"--{option}[ =]{re.escape(argument.lower())}", text), f"--{option} {argument}"


@pytest.mark.parametrize("word", sorted({command.split()[0] for command in COMMANDS}))
def test_the_main_page_names_the_command(word):
    listed = " , ".join(re.findall(r"^\.It (?:Cm|Xr) (.*)$", (MAN / "cordon.1").read_text(), re.MULTILINE))
    assert re.search(rf"(?<![\w-])(?:cordon-)?{word}(?![\w-])", listed), f"{word} is not listed in cordon.1"


def test_every_setting_of_the_table_is_explained():
    """Each page of a file or a command that has it, by the table of a run (src/config/recipe_table.c)."""
    rows = json.loads((built_executable().parent / "recipe.json").read_text())
    told = {name: re.findall(r"(?:Fl -|Ic |, |and )([a-z][a-z_-]+)", manual(name).read_text()) for name in {page.name for page in PAGES}}
    missing = []
    for row in rows:
        pages = [(f"cordon-{command}.1", row["option"]) for command in row["commands"] if command in COMMANDS]
        pages += [("cordon-project.1", row["option"])] if row["project"] else []
        pages += [("cordon.yaml.5", row["key"])] if row["key"] else []
        pages += [("agents.json.5", row["agent"].rpartition(".")[2])] if row["agent"] else []
        pages += [("cordon-config.yaml.5", row["key"])] if row["limit"] else []
        missing += [f"{page}: {word}" for page, word in pages if word not in told[page]]
    assert len(rows) > 30 and missing == []


def test_every_page_of_a_command_belongs_to_one():
    names = {f"cordon-{command.replace(' ', '-')}" for command in COMMANDS} | {f"cordon-{c.split()[0]}" for c in COMMANDS}
    assert {page.stem for page in MAN.glob("cordon-*.1")} <= names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_are_lint_clean(page):
    _, text, errors = capture("mandoc", "-Tlint", "-Wall", str(page))
    # Whether another page is installed on this machine says nothing about the page, and lines here have 120 columns.
    ignored = re.compile("referenced manual not found|input text line longer than 80 bytes")
    found = [line for line in (text + errors).splitlines() if line and not ignored.search(line)]
    assert not found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_references_between_our_pages_lead_somewhere(page):
    names = {f"{other.stem}.{other.suffix[1:]}" for other in PAGES}
    for target, section in re.findall(r"^\.Xr (cordon\S*) (\d)", page.read_text(), re.MULTILINE):
        assert f"{target}.{section}" in names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_page_is_installed(page):
    assert f"'{page.name}'" in (MAN / "meson.build").read_text()


@pytest.fixture(scope="module", params=["bash", "zsh", "fish"])
def completion(request, tmp_path_factory):
    """(shell, file) of the completions that the executable prints."""
    if not shutil.which(request.param):
        pytest.skip(f"{request.param} is not installed")
    status, text, errors = capture(built_executable(), "completion", request.param)
    assert status == 0, errors
    path = tmp_path_factory.mktemp("completion") / f"cordon.{request.param}"
    path.write_text(text)
    return request.param, path


def test_completions_parse(completion):
    shell, path = completion
    status, _, errors = capture(shell, "-n", str(path))
    assert status == 0 and not errors, errors


@pytest.mark.parametrize("command", COMMANDS)
def test_completions_know_every_command_and_option(completion, command):
    text = completion[1].read_text()
    for word in command.split():
        assert re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text), word
    for option in help_options(command):
        assert re.search(rf"(?<!\w){re.escape(option)}(?![\w-])", text), option


def complete(completion, line):
    """What the shell would offer for the last word of a line."""
    shell, path = completion
    words = line.split(" ")
    if shell == "bash":
        script = (
            f"source {path}; COMP_WORDS=({' '.join(words[:-1])} '{words[-1]}'); COMP_CWORD={len(words) - 1};"
            f"COMP_LINE='{line}'; COMP_POINT={len(line)}; function=$(complete -p cordon | sed 's/.*-F \\([^ ]*\\).*/\\1/');"
            f"$function cordon '{words[-1]}' '{words[-2]}' 2>/dev/null; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        )
    else:
        script = f"source {path}; complete -C '{line}'"
    status, text, errors = capture(shell, "-c", script)
    assert status == 0, errors
    return {row.split("\t")[0].strip() for row in text.splitlines()}


# zsh completes only in an interactive shell.
@pytest.mark.parametrize("completion", ["bash", "fish"], indirect=True)
def test_completions_offer_commands_and_options(completion):
    assert complete(completion, "cordon che") == {"check", "check-file"}
    assert "--workspace" in complete(completion, "cordon check --work")
    assert {"strict", "permissive"} <= complete(completion, "cordon check --workspace-mode ")
