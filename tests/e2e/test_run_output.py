# SPDX-License-Identifier: Apache-2.0
"""Where the agent's output and cordon's reports meet: files that the agent can't take back what is in, lines that begin at their
beginning, full-screen programs that stay whole. What is in a file is read on the host."""
import json
import os
import stat
import time

import pytest

from terminals import Terminal

PYTHON = ("/usr/bin/python3", "-I", "-S", "-B", "-c")
STRICT = ("--workspace", "lib", "--workspace-mode", "strict", "--no-summary")
REPORT = "[WORKSPACE] BLOCKED: File access outside workspace\n"


@pytest.fixture
def repo(box):
    return box.repo(files={"lib/a": "a\n", "other/o": "o\n"})


def run_into(cordon, repo, redirect, code, *options, **kw):
    """Runs Python code with its output where a shell's words say."""
    words = " ".join(f"'{word}'" for word in (cordon.path, "run", *STRICT, *options, "--", *PYTHON))
    return cordon.box.run("sh", "-c", f'{words} "$CODE" {redirect}', cwd=repo, env={"CODE": code}, **kw)


ERASE = r"""
import fcntl, os
def refuse():
    try: os.close(os.open("other/o", os.O_RDONLY))
    except OSError: pass
os.write(2, b"first\n")
refuse()
for fd in (1, 2):
    for attempt in (lambda: os.ftruncate(fd, 0), lambda: os.lseek(fd, 0, 0), lambda: os.pwrite(fd, b"X" * 400, 0),
                    lambda: fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_APPEND),
                    lambda: os.posix_fallocate(fd, 0, 1 << 20), lambda: os.fchmod(fd, 0o777),
                    lambda: os.close(os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_TRUNC)),
                    lambda: os.truncate(f"/proc/self/fd/{fd}", 0), lambda: os.truncate(f"/dev/fd/{fd}", 0)):
        try: attempt()
        except OSError: pass
os.write(2, b"last\n")
"""
FILES = {
    "both, one file": (">$LOG 2>&1", "LOG"),
    "both, one file, appended": (">>$LOG 2>&1", "LOG"),
    "both, opened twice": (">>$LOG 2>>$LOG", "LOG"),
    "stderr alone": ("2>$LOG", "LOG"),
    "read and write": ("1<>$LOG 2>&1", None),
}


@pytest.mark.parametrize("how", FILES)
def test_the_agent_cannot_take_back_what_is_in_a_file(box, cordon, repo, how):
    log = box.path / "log"
    redirect = FILES[how][0].replace("$LOG", str(log))
    if ">>" in redirect:
        box.write("log", "from before\n")
    result = run_into(cordon, repo, redirect, ERASE)
    assert result.returncode == 0, result
    text = log.read_text()
    before = "from before\n" if ">>" in redirect else ""
    expected = f"{before}first\n{REPORT}[WORKSPACE]   File: {repo}/other/o\n"
    assert text.startswith(expected) and text.endswith("last\n") and "X" not in text, text
    assert stat.S_IMODE(log.stat().st_mode) == 0o644


@pytest.mark.parametrize("redirect", ["0<>$LOG 2>>$LOG", "0>>$LOG 2>>$LOG"], ids=["read and write", "write"])
def test_standard_input_is_no_way_to_write_a_file(box, cordon, repo, redirect):
    log = box.write("log", "from before\n")
    code = "import os\nfor attempt in (lambda: os.ftruncate(0, 0), lambda: os.write(0, b'X'), lambda: os.truncate('/proc/self/fd/0', 0)):\n" \
           "    try: attempt()\n    except OSError: pass\nos.write(2, b'last\\n')"
    run_into(cordon, repo, redirect.replace("$LOG", str(log)), code)
    assert log.read_text() == "from before\nlast\n"


def test_control_without_cordon_the_same_program_erases_it(box, repo):
    box.run("sh", "-c", f'/usr/bin/python3 -c "$CODE" 2>>{box.path}/log', cwd=repo, env={"CODE": ERASE})
    assert not (box.path / "log").read_text().startswith("first\n")


def test_what_the_caller_writes_before_and_after_stays_in_its_place(box, cordon, repo):
    log = box.path / "log"
    words = f"'{cordon.path}' run -- sh -c 'echo inside; echo error >&2'"
    assert box.run("sh", "-c", f"(echo before; {words}; echo after) >{log} 2>&1", cwd=repo).returncode == 0
    assert log.read_text() == "before\ninside\nerror\nafter\n"


@pytest.mark.parametrize("redirect", [">", ">>"])
def test_much_output_arrives_whole(box, cordon, repo, redirect):
    log = box.path / "log"
    words = f"'{cordon.path}' run -- seq 1 3000000"
    assert box.run("sh", "-c", f"{words} {redirect}{log}", cwd=repo).returncode == 0
    lines = log.read_bytes().split(b"\n")
    assert len(lines) == 3000001 and lines[0] == b"1" and lines[2999999] == b"3000000" and lines[1234566] == b"1234567"


def test_both_streams_keep_their_order_in_one_file(box, cordon, repo):
    log = box.path / "log"
    result = run_into(cordon, repo, f">{log} 2>&1", "import os\nfor i in range(20000): os.write(1 + i % 2, b'%d\\n' % i)")
    assert result.returncode == 0 and log.read_text() == "".join(f"{i}\n" for i in range(20000))


def test_two_files_get_each_their_own(box, cordon, repo):
    out, err = box.path / "out", box.path / "err"
    run_into(cordon, repo, f">{out} 2>{err}", "import os\nos.write(1, b'out\\n' * 50000)\nos.write(2, b'err\\n' * 50000)")
    assert out.read_text() == "out\n" * 50000 and err.read_text() == "err\n" * 50000


def test_the_output_of_what_is_killed_at_the_end_arrives(box, cordon, repo):
    log = box.path / "log"
    words = f"'{cordon.path}' run -- sh -c '(echo from behind; sleep 100) & echo front; sleep 0.2; head -c 100000 /dev/zero'"
    began = time.monotonic()
    assert box.run("sh", "-c", f"{words} >{log}", cwd=repo).returncode == 0
    assert time.monotonic() - began < 30
    text = log.read_bytes()
    assert sorted(text[:18].split(b"\n")[:2]) == [b"from behind", b"front"] and len(text) == 100018


def test_a_time_limit_ends_a_flood_into_a_file(box, cordon, repo, leftovers):
    log = box.path / "log"
    words = f"'{cordon.path}' run --timeout 1s --grace 500ms -- yes"
    assert box.run("sh", "-c", f"{words} >{log}", cwd=repo).returncode == 124
    assert log.stat().st_size > 1000 and set(log.read_bytes()[:1000]) == set(b"y\n")
    log.unlink()
    leftovers.assert_none()


def test_a_file_that_may_not_grow_ends_the_agents_stream_and_not_the_supervisor(box, cordon, repo):
    log = box.path / "log"
    words = f"'{cordon.path}' run --result {box.path}/result -- sh -c 'yes; echo $? >lib/status'"
    result = box.run("sh", "-c", f"ulimit -f 2048; {words} >{log}", cwd=repo)
    assert result.returncode == 0 and (repo / "lib/status").read_text() == "141\n", result  # SIGPIPE
    assert json.loads((box.path / "result").read_text())["state"] == "completed"


def test_reports_come_in_the_order_of_what_happened(box, cordon, repo):
    log = box.path / "log"
    run_into(cordon, repo, f">{log} 2>&1", "import os\nfor i in range(100):\n    os.write(1, b'before %d\\n' % i)\n    try: open(f'other/n{i}', 'w')\n"
             "    except OSError: pass\n    os.write(1, b'after %d\\n' % i)")
    lines = log.read_text().splitlines()
    told = [lines.index(f"[WORKSPACE]   File: {repo}/other/n{i}") for i in range(100)]
    # The kernel refuses, and then it is told: what comes right behind may be a moment faster.
    assert told == sorted(told) and all(lines.index(f"before {i}") < told[i] for i in range(100))
    assert [line for line in lines if line.startswith(("before", "after"))] == [f"{word} {i}" for i in range(100) for word in ("before", "after")]


def test_what_the_lens_refuses_is_told_before_the_agent_goes_on(box, cordon, repo):
    log = box.path / "log"
    run_into(cordon, repo, f">{log} 2>&1", "import os\nfor i in range(100):\n    os.write(1, b'before %d\\n' % i)\n    try: open(f'other/n{i}', 'w')\n"
             "    except OSError: pass\n    os.write(1, b'after %d\\n' % i)", "--lens", "always")
    lines = log.read_text().splitlines()
    for i in range(100):
        assert lines.index(f"before {i}") < lines.index(f"[WORKSPACE]   File: {repo}/other/n{i}") < lines.index(f"after {i}")


@pytest.mark.parametrize("said, blank", [("no end", "no end\n"), ("an end\\n", "an end\n"), ("", ""), ("a\\n\\033[1mbold\\033[0m", "a\n\033[1mbold\033[0m\n")])
def test_a_report_begins_on_a_line_of_its_own(box, cordon, repo, said, blank):
    log = box.path / "log"
    run_into(cordon, repo, f"2>{log}", f"import os\nos.write(2, b'{said}')\ntry: open('other/o')\nexcept OSError: pass")
    assert log.read_text().startswith(blank + REPORT), log.read_text()


def test_the_summary_and_errors_begin_on_a_line_of_their_own(box, cordon, repo):
    log = box.path / "log"
    words = f"'{cordon.path}' run --summary -- sh -c 'printf tail >&2'"
    box.run("sh", "-c", f"{words} 2>{log}", cwd=repo)
    assert log.read_text().startswith("tail\n[SUMMARY] "), log.read_text()


def test_streams_that_are_no_files_are_handed_over_as_they_were(box, cordon, repo):
    result = cordon("run", "--", "sh", "-c", "readlink /proc/self/fd/1; printf x", cwd=repo)
    assert result.stdout.startswith("pipe:") and result.stdout.endswith("x")


# ---- --reports ----


@pytest.fixture
def terminal(box, cordon):
    opened = []

    def start(*args, cwd):
        opened.append(Terminal(box, cordon.path, *args, cwd=cwd))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


ALTERNATE = {
    "1049": (["\\033[?1049h"], "\\033[?1049l"),
    "47": (["\\033[?47h"], "\\033[?47l"),
    "1047 among others": (["\\033[?25;1047;2004h"], "\\033[?1047;25l"),
    "in pieces": (["\\033", "[?1", "04", "9h"], "\\033[?1049l"),
    "reset": (["\\033[?1049h"], "\\033c"),
    "after a title": (["\\033]0;\\033[?1049l title\\007\\033[?1049h"], "\\033[?1049l"),
}


@pytest.mark.parametrize("how", ALTERNATE)
def test_reports_wait_until_a_full_screen_program_gives_the_screen_back(terminal, repo, how):
    enter, leave = ALTERNATE[how]
    enter = "; ".join(f"printf '{piece}'; sleep 0.05" for piece in enter)
    t = terminal("run", *STRICT, "--", "sh", "-c", f"{enter}; (: <other/o) 2>/dev/null; echo drawn; sleep 0.3; echo whole; printf '{leave}'; "
                 "sleep 0.2; echo go; read x; echo the-end", cwd=repo)
    assert b"WORKSPACE" not in t.expect(b"whole")
    assert b"BLOCKED" in t.expect(b"Workspace folders: lib")
    t.expect(b"go")
    t.type(b"\n")
    t.expect(b"the-end")
    assert t.process.wait(15) == 0


def test_on_a_terminal_reports_wait_for_the_end(terminal, repo):
    t = terminal("run", *STRICT, "--", "sh", "-c", "(: <other/o) 2>/dev/null; printf the-end", cwd=repo)
    assert b"WORKSPACE" not in t.expect(b"the-end")
    rest = t.expect(b"lib\r\n")
    assert rest.startswith(b"\r\n[WORKSPACE] BLOCKED"), rest
    assert t.process.wait(15) == 0


def test_reports_now_are_said_at_once_and_on_a_line_of_their_own(terminal, repo):
    t = terminal("run", *STRICT, "--reports", "now", "--", "sh", "-c", "printf prompt; (: <other/o) 2>/dev/null; read x", cwd=repo)
    said = t.expect(b"Workspace folders: lib\r\n")
    assert said.startswith(b"prompt\r\n[WORKSPACE] BLOCKED") and said.count(b"\n") == said.count(b"\r\n"), said
    t.type(b"\n")
    assert t.process.wait(15) == 0


def test_reports_at_the_end_without_a_terminal(cordon, repo):
    result = cordon("run", *STRICT, "--reports", "end", "--", "sh", "-c", "(: <other/o) 2>/dev/null; echo done >&2", cwd=repo)
    assert result.stderr.startswith("done\n" + REPORT), result
    result = cordon("run", *STRICT, "--", "sh", "-c", "(: <other/o) 2>/dev/null; echo done >&2", cwd=repo)
    assert result.stderr.startswith(REPORT) and result.stderr.endswith("done\n"), result


def test_reports_go_into_a_file_that_is_appended_to(box, cordon, repo):
    box.write("reports", "earlier\n", mode=0o640)
    for name in ("reports", "fresh"):
        result = cordon("run", *STRICT, "--reports", f"file:../{name}", "--", "sh", "-c", "(: <other/o) 2>/dev/null; echo done >&2", cwd=repo)
        assert result.stderr == "done\n" and result.returncode == 0, result
    assert (box.path / "reports").read_text().startswith("earlier\n" + REPORT)
    assert (box.path / "fresh").read_text().startswith(REPORT) and stat.S_IMODE((box.path / "fresh").stat().st_mode) == 0o600


def test_a_report_file_in_the_agents_reach_is_refused(box, cordon, repo):
    box.mkdir("shared")
    box.mkdir("home2")
    box.write("real")
    os.link(box.path / "real", repo / "lib/alias")
    box.link("link", "nowhere")
    os.mkfifo(box.path / "fifo")
    box.own(box.path / "fifo", repo / "lib/alias")
    refused = [("lib/log", ()), ("../shared/log", ("--share", "../shared")), ("../home2/log", ("--home", "../home2")), ("../link", ()),
               ("../fifo", ()), ("../real", ()), ("../missing/log", ()), ("..", ())]
    for path, options in refused:
        result = cordon("run", *STRICT, *options, "--reports", f"file:{path}", "--", "touch", "lib/ran", cwd=repo)
        assert result.returncode in (2, 125) and "--reports" in result.stderr and not (repo / "lib/ran").exists(), (path, result)
    assert not (box.path / "nowhere").exists() and not (repo / "lib/log").exists() and not (box.path / "shared/log").exists()
    # Where nothing can be written it may lie, in the workspace too.
    result = cordon("run", *STRICT, "--share", "../shared:ro", "--reports", "file:other/log", "--", "sh", "-c", "(: <other/o) 2>/dev/null; :", cwd=repo)
    assert result.returncode == 0 and (repo / "other/log").read_text().startswith(REPORT), result


def test_other_words_are_usage_errors(cordon, repo):
    for word in ("never", "file:", "file", ""):
        result = cordon("run", "--reports", word, "--", "true", cwd=repo)
        assert result.returncode == 2 and "now, end and file:PATH" in result.stderr, result
