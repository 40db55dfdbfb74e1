# SPDX-License-Identifier: Apache-2.0
"""The shape of the tree: who may include or start whom, what every file begins with, sizes, and what must not stand in it."""
import functools
import importlib.machinery
import importlib.util
import re
import subprocess

import pytest

from support import TESTS, TOP, built_executable

# Each room may include itself and what stands before it.
ROOMS = ["base", "policy", "protect", "config", "learn", "audit"]
ROOMS += ["sandbox/plan", "sandbox/inside", "sandbox/watch", "sandbox/host"]
ROOMS += ["run", "state", "recipe", "store", "git", "view", "attest", "approval", "job", "project", "agent", "loop", "flow", "mcp", "page", "cli"]
# Executables of their own: each stands above the named room, and nobody includes it.
ABOVE = {"lens": "sandbox/host", "net": "sandbox/host", "serve": "page"}
# Executables, and the rooms that may name them: the one that starts it, and the one that it is made of.
STARTED_BY = {
    "cordon-lens": {"sandbox/host", "lens"},
    "cordon-net": {"sandbox/host", "net"},
    "cordon-job": {"job"},
    "cordon-serve": {"cli", "serve"},
}
# Who replaces a process by another program: the agent's process, the owners of executables, the command line for the user's pager, the
# loop for one that outlives its caller, whoever takes over commits, with git, who has runs attested, with ssh-keygen, and who asks a person, with notify-send.
MAY_EXEC = {"approval", "attest", "cli", "git", "loop", "sandbox/inside", "sandbox/host", "job"}
EXEC = re.compile(r"\b(?:f?execve|execveat|execvpe?|execle?|execlp|posix_spawnp?)\s*\(")  # popen and system are banned everywhere
# What a copy of a process with threads must not call: it may wait for ever for a lock that nobody holds any more.
FORBIDDEN_INSIDE = re.compile(
    r"(?:malloc|calloc|realloc|reallocarray|free|aligned_alloc|posix_memalign|memalign|strn?dup|realpath|qsort"
    r"|.*printf(?:_chk)?|.*scanf(?:_chk)?|std(?:in|out|err)|f(?:open|dopen|reopen|close|flush|read|write|gets|puts|getc|putc)(?:64)?"
    r"|f?puts?|putchar|getline|getdelim|open_memstream|perror|strerror|psignal|tmpfile"
    r"|(?:fd)?opendir|readdir(?:64)?(?:_r)?|closedir|scandir(?:64)?|fts_.*|n?ftw(?:64)?|glob(?:64)?"
    r"|get(?:pw|gr|host|serv|addrinfo|nameinfo).*|setlocale|localtime(?:_r)?|mktime|tzset"
    r"|v?syslog|openlog|exit|atexit|pthread_.*|sem_.*|dl(?:open|sym)|setenv|putenv|json_.*|yaml_.*|sodium_.*)"
)
MAX_LINES = 1000
# Put together from parts, so that this file may stand in the tree it checks.
HOSTS = [".".join(parts) for parts in (("registry", "npmjs", "org"), ("pypi", "org"), ("deb", "debian", "org"), ("npmmirror", "com"))]
MACHINE_PATHS = ["/".join(("", "work", name)) for name in ("main", "wt-", "shared", ".mirror")]


def tracked():
    """Files under version control, or every file when this is not a checkout."""
    listed = subprocess.run(["git", "-c", f"safe.directory={TOP}", "ls-files", "-z"], cwd=TOP, capture_output=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        names = listed.stdout.decode().split("\0")
        return [TOP / name for name in names if name and (TOP / name).is_file()]
    hidden = ("build", "node_modules", "__pycache__", "out")
    return [
        path
        for path in TOP.rglob("*")
        if path.is_file() and not any(part.startswith(hidden) for part in path.relative_to(TOP).parts[:-1])
    ]


FILES = tracked()
C_FILES = [path for path in FILES if path.suffix in (".c", ".h")]
SOURCES = [path for path in C_FILES if path.is_relative_to(TOP / "src")]
# What cordon is made of: not the program that makes the filters while it is built.
MODULES = [path for path in SOURCES if path.suffix == ".c" and path.stem != "seccomp_gen"]


def is_script(path, interpreter):
    if path.is_relative_to(TOP / "tests" / "cases") or path.is_relative_to(TOP / "fuzz" / "corpus"):
        return False
    with path.open("rb") as stream:
        first = stream.readline(200)
    return first.startswith(b"#!") and re.search(interpreter, first) is not None


SHELL = [path for path in FILES if is_script(path, rb"\b(ba|da)?sh\b")]
PYTHON = [path for path in FILES if path.suffix == ".py" or is_script(path, rb"\bpython3\b")]


def name(path):
    return str(path.relative_to(TOP))


def room(path):
    """The room of a path below src: its first component, in the sandbox its first two."""
    parts = str(path).split("/")
    return "/".join(parts[:2]) if parts[0] == "sandbox" else parts[0]


def room_of(path):
    return room(path.relative_to(TOP / "src"))


def may_include(where):
    if where in ABOVE:
        return set(ROOMS[: ROOMS.index(ABOVE[where]) + 1]) | {where}
    return set(ROOMS[: ROOMS.index(where) + 1])


def wrong_includes(where, text):
    """What a file with this text in this room includes and must not."""
    found = re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.MULTILINE)
    return [target for target in found if target != "cordon.h" and room(target) not in may_include(where)]


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def wrong_starts(where, text):
    """Executables that a file with this text names as a program, and must not; and calls of exec where none may be."""
    code = without_comments(text)
    named = re.findall(r'"(?:[^"\s]*/)?(cordon-[a-z]+)"', code)
    found = [program for program in named if program in STARTED_BY and where not in STARTED_BY[program]]
    return found + ([] if where in MAY_EXEC else EXEC.findall(code))


def test_there_is_something_to_check():
    assert len(SOURCES) > 20 and len(SHELL) >= 2 and len(PYTHON) >= 4


def test_every_source_directory_is_a_known_room():
    assert {room_of(path) for path in SOURCES} <= set(ROOMS) | set(ABOVE)


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_includes_point_downward(path):
    assert wrong_includes(room_of(path), path.read_text()) == [], f'{name(path)}: includes are "room/file.h", of rooms below'


def test_the_order_of_rooms_would_be_noticed():
    assert "policy" not in may_include("base") and "cli" not in may_include("mcp")
    assert "store" not in may_include("lens") and "lens" not in may_include("cli")
    assert wrong_includes("sandbox/inside", '#include "sandbox/host/limits.h"\n#include "base/io.h"\n') == ["sandbox/host/limits.h"]
    assert wrong_includes("sandbox/plan", '\t# include "sandbox/inside/inside.h"\n') == ["sandbox/inside/inside.h"]
    assert wrong_includes("sandbox/watch", '#include "sandbox/inside/hand.h"\n') == []
    assert wrong_includes("job", '#include <stdio.h>\n#include "agent/job.h"\n') == ["agent/job.h"]
    assert wrong_includes("run", '#include "output.h"\n') == ["output.h"], "a name without its room says no direction"
    assert wrong_includes("net", '#include "lens/lens.h"\n#include "run/run.h"\n') == ["lens/lens.h", "run/run.h"]
    assert wrong_includes("serve", '#include "mcp/mcp.h"\n#include "cli/cli.h"\n') == ["cli/cli.h"]


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_program_is_started_by_the_room_that_owns_it(path):
    assert wrong_starts(room_of(path), path.read_text()) == []


def test_a_program_started_elsewhere_would_be_noticed():
    assert wrong_starts("cli", 'static const char name[] = "/cordon-lens";') == ["cordon-lens"]
    assert wrong_starts("run", 'f(CORDON_LIBEXEC "/cordon-job")') == ["cordon-job"]
    assert wrong_starts("sandbox/inside", 'char *argv[] = { "cordon-net", NULL };') == ["cordon-net"]
    assert wrong_starts("job", 'f("/cordon-job"); execve(a, b, c);') == []
    assert len(wrong_starts("store", "if (fork() == 0)\n\texecve(path, argv, environ);")) == 1
    assert len(wrong_starts("mcp", "posix_spawn(&pid, path, NULL, NULL, argv, environ);")) == 1
    assert wrong_starts("cli", '/* execve("/cordon-lens") */ f("cordon-lens is missing");') == []


def test_the_program_of_each_owner_is_found_where_it_is_started():
    """The literal that the check above looks for is really how a program is named."""
    text = (TOP / "src" / "sandbox" / "host" / "lens_process.c").read_text()
    assert "cordon-lens" in wrong_starts("cli", text)


def compiled(path):
    """The object of a source file, in the build tree of the executable under test."""
    build = built_executable().parent
    flat = "_".join(path.relative_to(TOP).parts) + ".o"
    found = [build / part / flat for part in ("libcordon-run.a.p", "libcordon-core.a.p") if (build / part / flat).exists()]
    assert found, f"{flat} is not in {build}: set CORDON to an executable in its build tree"
    return found[0]


def compiled_rooms(*rooms):
    return [compiled(path) for path in MODULES if room_of(path) in rooms]


def undefined(path):
    rows = subprocess.run(["nm", "-u", "-P", path], capture_output=True, text=True, check=True).stdout.splitlines()
    return {row.split()[0] for row in rows}


def references(path):
    """{function: names that it refers to} of one object. What is found through a section is everything that the section has."""
    command = ["objdump", "-d", "-r", "--no-show-raw-insn", "-w", path]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    uses, sections = {}, {}
    section = function = None
    for line in lines:
        if begin := re.match(r"Disassembly of section (\S+):", line):
            section = begin[1]
        elif begin := re.match(r"[0-9a-f]+ <(\S+)>:", line):
            function = begin[1]
            uses[function] = set()
            sections.setdefault(section, set()).add(function)
        elif function:
            # With -w a relocation stands on the line of its instruction.
            uses[function].update(re.findall(r"\bR_\w+\s+([^\s+-][^\s+]*?)(?:[+-]0x[0-9a-f]+)?(?=\s|$)", line))
            uses[function].update(re.findall(r"<([\w.]+)(?:\+0x[0-9a-f]+)?>", re.sub(r"R_\w+.*", "", line)))
    tables = subprocess.run(["objdump", "-r", "-w", path], capture_output=True, text=True, check=True).stdout
    for block in re.split(r"RELOCATION RECORDS FOR ", tables)[1:]:
        table = re.match(r"\[(\S+)\]", block)[1]
        if table.startswith(".data"):
            sections[table] = {re.sub(r"[+-]0x[0-9a-f]+$", "", row.split()[2]) for row in block.splitlines()[2:] if len(row.split()) == 3}
    for names in uses.values():
        for _ in range(2):  # a table of functions, then the section that they are in
            names.update(*(sections.get(used, ()) for used in list(names)))
    return uses


@functools.cache
def program():
    """What the rooms that run inside, and those below that they may call, are made of: {object: {function: names}}, {function: object}."""
    graph = {path: references(path) for path in compiled_rooms("base", "policy", "sandbox/plan", "sandbox/inside")}
    listing = subprocess.run(["nm", "-A", "--defined-only", "--extern-only", *graph], capture_output=True, text=True, check=True).stdout
    rows = [re.match(r"(.*):\S+ \w (\S+)$", row).groups() for row in listing.splitlines()]
    by_text = {str(path): path for path in graph}
    return graph, {symbol: by_text[path] for path, symbol in rows}


def reached(start_object, start_function):
    """{imported name: the way to it} of everything that a function calls, here and in what it calls."""
    graph, defined = program()
    ways, todo, seen = {}, [(start_object, start_function, (start_function,))], set()
    while todo:
        path, function, way = todo.pop()
        if (path, function) in seen:
            continue
        seen.add((path, function))
        for used in graph[path].get(function, ()):
            where = path if used in graph[path] else defined.get(used)
            if where is None:
                ways.setdefault(used, (*way, used))
            else:
                todo.append((where, used, (*way, used)))
    return ways


def forbidden_ways(start_object, start_function):
    ways = reached(start_object, start_function)
    return [" > ".join(ways[used]) for used in sorted(ways) if FORBIDDEN_INSIDE.fullmatch(used)]


@pytest.mark.parametrize("path", [path for path in MODULES if room_of(path) == "sandbox/inside"], ids=name)
def test_what_runs_inside_imports_no_malloc_and_no_stdio(path):
    assert {used for used in undefined(compiled(path)) if FORBIDDEN_INSIDE.fullmatch(used)} == set()


def test_what_runs_inside_reaches_no_malloc_and_no_stdio_in_what_it_calls():
    graph, defined = program()
    inside = compiled_rooms("sandbox/inside")
    found, unknown = [], set()
    for path in inside:
        for function in graph[path]:
            found += forbidden_ways(path, function)
        unknown |= {used for used in undefined(path) if used.startswith("cordon_") and used not in defined}
    assert found == [] and unknown == set()


def test_malloc_or_stdio_inside_would_be_noticed():
    for symbol in ("malloc", "free", "__snprintf_chk", "vsnprintf", "fopen64", "stderr", "opendir", "readdir64", "getpwnam_r", "syslog", "exit"):
        assert FORBIDDEN_INSIDE.fullmatch(symbol), symbol
    for symbol in ("_exit", "open64", "read", "memcpy", "cordon_freep", "strlen", "__stack_chk_fail", "sigprocmask"):
        assert not FORBIDDEN_INSIDE.fullmatch(symbol), symbol
    _, defined = program()
    # Directly, through a function of another file, and through one of the same file that has no name outside it.
    assert any(way.endswith("calloc") for way in forbidden_ways(defined["cordon_arena_new"], "cordon_arena_new"))
    assert any(way.endswith("calloc") for way in forbidden_ways(defined["cordon_plan_note"], "cordon_plan_note"))
    assert any("printf" in way for way in forbidden_ways(defined["cordon_fail"], "cordon_fail"))
    assert any("printf" in way for way in forbidden_ways(defined["cordon_plan_build"], "cordon_plan_build"))
    # And what is called for certain is found on the way.
    assert "mount_setattr" in reached(defined["cordon_inside_build"], "cordon_inside_build")
    assert "memcpy" in reached(defined["cordon_fd_path"], "cordon_fd_path")


# ---- one of each ----


def load_house():
    """scripts/house, whose counts the rules below are about."""
    loader = importlib.machinery.SourceFileLoader("house", str(TOP / "scripts" / "house"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("house", loader))
    loader.exec_module(module)
    return module


HOUSE = load_house()
# What breaks a rule today, {file: how often}. A list may only shrink: who mends something takes it out, and nothing is added.
FORKS = {}
RUNS = {"cli/cmd_learn.c": 1, "cli/cmd_orchestrator_run.c": 1}
INTERNALS = {"serve/exchange.c > mcp/internal.h"}
TWICE = set()
# A question about folders, a learned policy that is read back, and what a project's settings would show, which is judged without a run.
BUILDS = {"cli/cmd_check_file.c": 1, "learn/learned.c": 1}
SHARES = {"store/places.c": 2}


def calls_beside(code, function, *allowed):
    """{file: how often it calls a function} where it must not; `allowed` are rooms and files."""
    calls = {str(path): n for path, n in code.calls(function).items()}
    return {path: n for path, n in calls.items() if room(path) not in allowed and not path.startswith(allowed)}


RULES = {
    "locks are taken in base/lock and audit": (lambda code: calls_beside(code, "flock", "base/lock", "audit"), {}),
    "processes are made in base/child, the sandbox and the lens": (lambda code: calls_beside(code, "fork", "base/child", "sandbox/", "lens"), FORKS),
    "one caller above run/ runs a program": (lambda code: calls_beside(code, "cordon_run", "run", "view/run.c"), RUNS),
    "policies are built from recipes": (lambda code: calls_beside(code, "cordon_policy_build", "config", "recipe"), BUILDS),
    "shares are added to policies of recipes": (lambda code: calls_beside(code, "cordon_shares_add", "protect", "recipe"), SHARES),
    "no room includes another's internal.h": (lambda code: set(code.foreign_internals()), INTERNALS),
    "no type is defined twice": (lambda code: set(code.types_defined_twice()), TWICE),
}


@functools.cache
def house():
    return HOUSE.Code()


@pytest.mark.parametrize("rule", RULES)
def test_who_breaks_a_rule_of_the_house_is_listed_and_the_list_only_shrinks(rule):
    find, known = RULES[rule]
    found = find(house())
    assert found == known, f"{rule}: take out what is mended, and add nothing"


def test_what_breaks_a_rule_of_the_house_would_be_noticed(tmp_path):
    texts = {
        "flow/a.c": '#include "store/internal.h"\nint f(void)\n{\n\t/* flock(fd) */\n\treturn flock(fd, LOCK_EX) + fork();\n}\n',
        "flow/a.h": "struct cordon_thing {\n\tint a;\n};\nint cordon_run(const struct cordon_run_spec *spec);\n",
        "cli/a.h": "typedef enum cordon_thing {\n\tA,\n} cordon_thing;\n",
        "cli/a.c": '#include "cli/internal.h"\nint g(void)\n{\n\treturn cordon_run(&spec) + o.flock(1) + cordon_flock(1);\n}\n',
        "agent/a.c": "int i(void)\n{\n\treturn cordon_policy_build(&spec) + cordon_shares_add(policy);\n}\n",
        "base/lock.c": "int cordon_flock(int fd)\n{\n\treturn flock(fd, LOCK_EX);\n}\n",
        "sandbox/host/a.c": "int h(void)\n{\n\treturn fork();\n}\n",
    }
    for path, text in texts.items():
        (tmp_path / "src" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / path).write_text(text)
    code = HOUSE.Code(tmp_path)
    assert [find(code) for find, _ in RULES.values()] == [
        {"flow/a.c": 1}, {"flow/a.c": 1}, {"cli/a.c": 1}, {"agent/a.c": 1}, {"agent/a.c": 1}, {"flow/a.c > store/internal.h"}, {"cordon_thing"}]


CONTRIBUTING = (TOP / "CONTRIBUTING.md").read_text()
STEP = re.compile(r"^(\d+\. +|- +| +- +)`(src/[^`]+)`", re.MULTILINE)


def level(file):
    return ROOMS.index(room(file.removeprefix("src/")))


def walks():
    """The walks of CONTRIBUTING, {title: [list]}; a list is [(mark, file)], the mark as it begins the line."""
    found = {}
    for part in CONTRIBUTING.split("\n## Three walks\n", 1)[1].split("\n## ", 1)[0].split("\n### ")[1:]:
        title, _, text = part.partition("\n")
        lists = [STEP.findall(paragraph) for paragraph in text.split("\n\n")]
        found[title] = [steps for steps in lists if steps]
    return found


def wrong_steps(steps):
    """Steps of a list that lead the wrong way: numbered and indented ones go up, or callbacks (bullets) go down."""
    wrong, outer, inner = [], None, None
    for mark, file in steps:
        before = inner if mark.startswith(" ") else outer
        up = mark.startswith("-")
        if before and (level(file) < level(before) if up else level(file) > level(before)):
            wrong.append(f"{before} > {file}")
        inner = file
        if not mark.startswith(" "):
            outer = file
    return wrong


@pytest.mark.parametrize("title", walks())
def test_a_walk_names_files_that_exist_and_goes_up_by_callbacks_only(title):
    lists = walks()[title]
    assert lists and sum(len(steps) for steps in lists) > 8
    for steps in lists:
        assert [file for _, file in steps if not (TOP / file).is_file()] == []
        assert wrong_steps(steps) == []
        assert len({mark[0].isdigit() for mark, _ in steps if not mark.startswith(" ")}) == 1, "steps or callbacks, not both"
        assert len([file for _, file in steps]) == len({file for _, file in steps}), "one step for each file"


def test_there_are_three_walks():
    assert len(walks()) == 3


def test_a_walk_that_goes_back_up_would_be_noticed():
    assert wrong_steps([("1. ", "src/cli/main.c"), ("2. ", "src/run/run.c"), ("3. ", "src/cli/cmd_run.c")])
    assert wrong_steps([("1. ", "src/run/run.c"), ("   - ", "src/policy/decide.c"), ("   - ", "src/config/document.c")])
    assert wrong_steps([("- ", "src/run/run.c"), ("- ", "src/audit/audit.c")])
    assert not wrong_steps([("1. ", "src/run/run.c"), ("   - ", "src/policy/decide.c"), ("2. ", "src/sandbox/host/launch.c")])


def test_the_map_of_rooms_is_the_real_one():
    listed = re.findall(r"^\| `src/([^`]+)` \|", CONTRIBUTING, re.MULTILINE)
    assert {room_of(path) for path in SOURCES} <= set(listed)
    ordered = [name for name in listed if name not in ABOVE]
    assert ordered == sorted(ordered, key=ROOMS.index, reverse=True)


# What is written for another program: systemd-run's options, the lens's, the first line of git's patches, git's own options, the command line of
# a loop that a client starts, and a command for the reader of a learned policy.
OPTIONS_OF_OTHERS = {"src/sandbox/host/lens_process.c", "src/sandbox/host/net_process.c", "src/config/settings_defaults.c", "src/learn/learned.c", "src/view/patch.c", "src/view/base.c"}
OPTIONS_OF_OTHERS |= {f"src/git/{name}.c" for name in ("check", "clone", "dir", "finish", "judge", "notes", "scratch", "take")}
OPTIONS_OF_OTHERS |= {"src/protect/rows.c"}  # names of documentation pages
OPTIONS_OF_OTHERS |= {"src/loop/git.c", "src/loop/git_base.c", "src/loop/git_import.c", "src/loop/git_objects.c", "src/loop/git_view.c", "src/mcp/tools/loop.c"}
LIBRARY = [path for path in SOURCES if path.relative_to(TOP / "src").parts[0] not in ("cli", "lens", "net", "serve")]


@pytest.mark.parametrize("path", LIBRARY, ids=name)
def test_a_message_of_the_library_names_no_option(path):
    texts = re.findall(r'"(?:[^"\\\n]|\\.)*"', path.read_text())
    named = [text for text in texts if re.search(r"(?<![\w-])--[a-z]", text) and "systemd-run" not in text]
    assert not named or name(path) in OPTIONS_OF_OTHERS, f"{named}: see base/setting.h"


@pytest.mark.parametrize("path", C_FILES, ids=name)
def test_every_file_says_its_licence_and_its_purpose(path):
    text = path.read_text()
    first, _, rest = text.partition("\n")
    assert first == "/* SPDX-License-Identifier: Apache-2.0 */"
    comment = re.match(r"/\*(.*?)\*/", rest, re.DOTALL)
    assert comment, f"{name(path)}: a comment with the purpose stands below the licence line"
    words = re.sub(r"\s*\n \*\s*", " ", comment.group(1)).split()
    assert len(words) >= 3 and any(word[-1] in ".:" for word in words), f"{name(path)}: {' '.join(words)}"


@pytest.mark.parametrize("path", SHELL + PYTHON, ids=name)
def test_every_script_says_its_licence(path):
    head = path.read_text().splitlines()[:3]
    assert any("SPDX-License-Identifier: Apache-2.0" in line for line in head)


def test_members_of_json_objects_are_read_by_one_module():
    """base/json.h has the defaults of what is missing; a copy of them would differ one day."""
    nested = re.compile(r"\bjson_(?:string_value|integer_value|is_true)\(\s*json_object_get\(")
    assert {name(path) for path in SOURCES if nested.search(path.read_text())} == {"src/base/json.c"}


def test_schemas_of_tools_are_files_and_no_text_in_c():
    families = {path.stem for path in (TOP / "src/mcp/schemas").glob("*.json")} - {"parts"}
    assert families and families <= {path.stem for path in (TOP / "src/mcp/tools").glob("*.c")}
    assert [name(path) for path in SOURCES if path.is_relative_to(TOP / "src/mcp") and '\\"type\\"' in path.read_text()] == []


def test_no_file_is_too_long():
    long = [f"{name(path)}: {n}" for path in C_FILES + SHELL + PYTHON if (n := path.read_text().count("\n")) > MAX_LINES]
    assert not long


def test_no_path_of_a_machine_and_no_registry_is_named():
    here = [f"{TOP}/"] if len(TOP.parts) > 2 else []
    found = []
    for path in FILES:
        text = path.read_bytes().decode(errors="replace")
        found += [f"{name(path)}: {word}" for word in HOSTS + MACHINE_PATHS + here if word in text]
    assert not found


def test_nothing_is_left_to_be_done():
    words = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")
    found = [
        f"{name(path)}:{i}"
        for path in C_FILES + SHELL + PYTHON
        for i, line in enumerate(path.read_text().splitlines(), 1)
        if words.search(line) and "XXXXXX" not in line
    ]
    assert not found


def test_every_unit_test_is_in_the_table():
    table = (TESTS / "meson.build").read_text()
    files = {path.stem[len("test_") :] for path in (TESTS / "unit").glob("test_*.c")}
    assert files and {n for n in files if not re.search(rf"'{n}'", table)} == set()


def test_every_fuzz_target_has_kept_inputs():
    for path in (TOP / "fuzz").glob("fuzz_*.c"):
        assert any((TOP / "fuzz" / "corpus" / path.stem[len("fuzz_") :]).iterdir()), path.name


def test_continuous_integration_runs_the_command_of_the_readme_and_nothing_else():
    lines = [line.strip() for line in (TOP / ".ci" / "run").read_text().splitlines()]
    commands = [line for line in lines if line and not line.startswith("#")]
    makefile = (TOP / "Makefile").read_text()
    assert commands == ["set -eu", 'cd "$(dirname "$0")/.."', "exec make test test-long test-kernels"]
    assert re.search(r"`make test`\s+runs\s+the\s+tests,\s+and\s+`make test test-long\s+test-kernels`\s+all", (TOP / "README.md").read_text())
    recipe = {target: re.search(rf"^{target}: all\n\t@scripts/setup test\n\t@scripts/test \$\(BUILD\) (.*)$", makefile, re.MULTILINE).group(1)
              for target in ("test", "test-long", "test-soak")}
    assert recipe == {"test": "test", "test-long": "long", "test-soak": "soak"}
    assert [path.name for path in (TOP / ".ci").iterdir()] == ["run"]


def test_markers_of_targets_are_in_files_of_tests_where_their_runner_looks_for_them():
    words = re.compile(r"\bmark\.(serial|long|soak)\b|\bmarkers?\b.*\b(serial|long|soak)\b")
    elsewhere = [path for path in TESTS.rglob("*.py") if not path.name.startswith("test_") and words.search(path.read_text())]
    assert elsewhere == []
    for word in ("serial", "long", "soak"):
        assert any(f"mark.{word}" in path.read_text() for path in TESTS.rglob("test_*.py"))


def test_what_a_developer_runs_is_there_and_has_a_reason():
    for line in (TESTS / "check.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        place, *why = line.split(maxsplit=1)
        file, _, test = place.partition("::")
        text = (TOP / file).read_text()
        assert why and (not test or f"\ndef {test}(" in text), line
        assert not re.search(rf"mark\.(?:serial|long|soak)\n(?:@.*\n)*def {test or '.*'}\(|^pytestmark.*(?:serial|long|soak)", text, re.MULTILINE), line


@pytest.mark.parametrize("path", SHELL, ids=name)
def test_shellcheck_finds_nothing(path):
    done = subprocess.run(["shellcheck", "-x", path], cwd=TOP, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", PYTHON, ids=name)
def test_python_files_compile(path):
    compile(path.read_text(), str(path), "exec")


def test_tracked_files_are_text_or_kept_inputs():
    data = (TOP / "fuzz" / "corpus", TESTS / "cases")
    for path in FILES:
        if not any(path.is_relative_to(d) for d in data):
            assert b"\0" not in path.read_bytes(), name(path)
