# SPDX-License-Identifier: Apache-2.0
"""libcordon as its users meet it: the header, the exported symbols, and a program built against the installed tree."""
import os
import re
import shutil
import subprocess

import pytest

from support import CASES, TOP, built_executable

HEADER = TOP / "include" / "cordon.h"


def of_the_installed_tree(test):
    """They share one installation, and that is a build of its own, which takes long."""
    return pytest.mark.long(pytest.mark.xdist_group("installed")(test))


COMPILE_LIMIT = 300
EXAMPLES = TOP / "examples"


def listed_symbols():
    return (CASES / "symbols.txt").read_text().split()


def run(*command, env=None, cwd=TOP):
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True, check=False, timeout=COMPILE_LIMIT
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def test_the_list_of_symbols_is_the_header():
    declared = re.findall(r"^CORDON_API [^;(]*?(\w+)\(", HEADER.read_text(), re.MULTILINE)
    assert len(declared) > 5 and sorted(declared) == listed_symbols()


def test_the_shared_library_exports_exactly_that():
    text = run("nm", "-D", "--defined-only", str(built_executable().parent / "libcordon.so"))
    assert sorted(line.split()[-1] for line in text.splitlines()) == listed_symbols()


STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wundef", "-Wstrict-prototypes", "-Werror", "-fsyntax-only"]


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_header_compiles_as_c11(compiler):
    run(compiler, "-std=c11", *STRICT, "-x", "c", str(HEADER))


@pytest.mark.parametrize("standard", ["c++11", "c++17"])
def test_the_header_compiles_as_cplusplus(standard):
    flags = [flag for flag in STRICT if flag != "-Wstrict-prototypes"]
    run("clang++", f"-std={standard}", *flags, "-Wno-pragma-once-outside-header", "-x", "c++", str(HEADER))


def test_the_executable_is_static_and_position_independent():
    text = run("readelf", "-W", "-h", "-l", "-d", str(built_executable()))
    assert re.search(r"Type:\s+DYN", text) and "INTERP" not in text and "(NEEDED)" not in text
    assert "GNU_RELRO" in text and re.search(r"GNU_STACK.* RW ", text)


@pytest.fixture(scope="module")
def installed(base_dir):
    """`make install` with a build directory of its own, so that the one under test keeps its prefix."""
    prefix, build = base_dir / "prefix", base_dir / "install-build"
    # Nothing that is looked at here depends on how well the code is optimized.
    run("meson", "setup", str(build), "-Dtests=disabled", "--buildtype=plain", "-Dc_args=-O0 -U_FORTIFY_SOURCE")
    run("make", "install", f"BUILD={build}", f"PREFIX={prefix}")
    yield prefix
    run("make", "uninstall", f"BUILD={build}", f"PREFIX={prefix}")
    left = [path for path in prefix.rglob("*") if not path.is_dir() or path.name == "cordon"]
    shutil.rmtree(build)
    shutil.rmtree(prefix)
    assert left == []


@pytest.fixture
def pkg_config(installed):
    directory = next(installed.rglob("cordon.pc")).parent

    def ask(*options):
        return run("pkg-config", *options, "cordon", env={"PKG_CONFIG_PATH": str(directory)}).split()

    return ask


@pytest.fixture
def compiled(installed, pkg_config, base_dir, request):
    """The examples, compiled the way their first comments say: {name: program}."""
    if request.param == "shared":
        flags = pkg_config("--cflags", "--libs") + [f"-Wl,-rpath,{next(installed.rglob('libcordon.so')).parent}"]
    else:
        flags = ["-static", *pkg_config("--cflags", "--libs", "--static")]
    targets = {name: base_dir / f"{name}-{request.param}" for name in ("check_path", "run_agent")}
    for name, target in targets.items():
        run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", str(EXAMPLES / f"{name}.c"), *flags, "-o", str(target))
    yield targets
    for target in targets.values():
        target.unlink()


def judge(box, program, env=None):
    repo = box.repo(files={"lib/a.ts": "x", "libsecret/key": "x"})
    box.link("repo/lib/pw", "/etc/passwd")
    good = box.run(program, repo, "lib", "lib/a.ts", "lib/new/b.ts", env=env)
    assert (good.returncode, good.stderr) == (0, "")
    assert [line.split()[0] for line in good.stdout.splitlines()] == ["allow", "allow"]
    bad = box.run(program, repo, "lib", "lib/a.ts", "libsecret/key", "lib/pw", "../x", env=env)
    assert bad.returncode == 1
    assert [line.split()[0] for line in bad.stdout.splitlines()] == ["allow", "deny", "deny", "deny"]
    missing = box.run(program, repo, "nothing", "lib/a.ts", env=env)
    assert missing.returncode == 2 and "Workspace folder does not exist: nothing" in missing.stderr


def agents(box, program, env=None):
    """A program that runs agents through the library: what is allowed happens, what is refused does not, and both are told."""
    repo = box.repo(name="agents", files={"lib/a.ts": "x", "docs/b": "old", ".git/hooks/pre-commit": "#!/bin/sh\n"})
    script = "echo new >lib/a.ts; echo new >docs/b; echo evil >.git/hooks/pre-commit; exit 7"
    done = box.run(program, repo, "lib", "/bin/sh", "-c", script, env=env)
    assert done.returncode == 7 and done.stdout.splitlines()[-1] == "failed, 2 refused, 2 counted", done
    assert [(repo / name).read_text() for name in ("lib/a.ts", "docs/b", ".git/hooks/pre-commit")] == ["new\n", "old", "#!/bin/sh\n"]
    refused = [line.split(": ", 2)[2] for line in done.stderr.splitlines() if line.startswith("run_agent: refused: ")]
    assert refused == [f"write {repo}/docs/b", f"write {repo}/.git/hooks/pre-commit"], done
    missing = box.run(program, repo, "lib", "/no/such/program", env=env)
    assert missing.returncode == 127 and missing.stdout == "refused, 0 refused, 0 counted\n"
    log = box.run(str(built_executable()), "audit", "--json")
    assert log.returncode == 0 and log.stdout.count("/docs/b") >= 1


def test_the_examples_run_in_the_build_tree(box):
    built = built_executable().parent
    shutil.copy(built / "libcordon.so", box.path / "libcordon.so.0")
    for name in ("check_path", "run_agent"):
        shutil.copy(built / "examples" / name, box.path)
    box.own(box.path)
    judge(box, box.path / "check_path", {"LD_LIBRARY_PATH": str(box.path)})
    agents(box, box.path / "run_agent", {"LD_LIBRARY_PATH": str(box.path)})


@of_the_installed_tree
@pytest.mark.limit(COMPILE_LIMIT)
@pytest.mark.parametrize("compiled", ["shared", "static"], indirect=True)
def test_the_examples_compile_against_the_installed_tree(compiled, box):
    judge(box, compiled["check_path"])
    agents(box, compiled["run_agent"])


@of_the_installed_tree
@pytest.mark.limit(COMPILE_LIMIT)
def test_installation_holds_what_a_user_needs(installed):
    names = {str(path.relative_to(installed)) for path in installed.rglob("*")}
    for wanted in (
        "bin/cordon",
        "include/cordon.h",
        "share/man/man1/cordon.1",
        "share/bash-completion/completions/cordon",
        "share/zsh/site-functions/_cordon",
        "share/fish/vendor_completions.d/cordon.fish",
        "share/doc/cordon/README.md",
        "share/cordon/apparmor/cordon",
        "libexec/cordon/apparmor-profile",
        "libexec/cordon/cordon-lens",
        "libexec/cordon/cordon-job",
    ):
        assert wanted in names, sorted(names)
    assert run(str(installed / "bin" / "cordon"), "--version").startswith("cordon ")
    named = {name for page in (TOP / "man").glob("*.[1-8]") for name in re.findall(r"^\.P[aq] (?:Pa )?(docs/[\w.-]+)", page.read_text(), re.MULTILINE)}
    assert len(named) > 4 and {name for name in named if f"share/doc/cordon/{name}" not in names} == set()
    profile = (installed / "share/cordon/apparmor/cordon").read_text()
    assert f"/{{{installed}/bin/cordon,{installed}/libexec/cordon/cordon-*}}".replace("{/", "{").replace(",/", ",") in profile, profile


@of_the_installed_tree
@pytest.mark.limit(COMPILE_LIMIT)
def test_destdir_is_honoured(installed, base_dir):
    build, stage = base_dir / "install-build", base_dir / "stage"
    run("make", "install", f"BUILD={build}", f"PREFIX={installed}", f"DESTDIR={stage}")
    staged = {path.relative_to(stage / installed.relative_to("/")) for path in stage.rglob("*") if path.is_file()}
    assert staged and staged == {path.relative_to(installed) for path in installed.rglob("*") if path.is_file()}
    assert f"prefix={installed}\n" in next(stage.rglob("cordon.pc")).read_text()
    (stage / installed.relative_to("/") / "bin/other").write_text("of someone else\n")
    run("make", "uninstall", f"BUILD={build}", f"PREFIX={installed}", f"DESTDIR={stage}")
    assert [path.name for path in stage.rglob("*") if not path.is_dir()] == ["other"] and (installed / "bin/cordon").exists()
    shutil.rmtree(stage)
