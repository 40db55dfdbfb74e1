# SPDX-License-Identifier: Apache-2.0
"""The audit log: one chain from many processes, whole after kills, nothing changed unseen, bounded, safe to show.

The chain is checked twice: by `cordon audit verify`, and here with hashlib from the description in docs/audit.md.
"""
import hashlib
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import subprocess
import time

import pytest

from support import TOP, built_executable, poll

ZERO = "0" * 64
HOSTILE = b"a\x1b]0;x\x07\n{\"event\":\"end\"}\r\xe2\x80\xae\xc2\x9b\xff\xc3(\\\"</script>"
SHOWN = '"a\\\\e]0;x\\\\x07\\\\n{\\"event\\":\\"end\\"}\\\\r\\\\u{202e}\\\\u{9b}\\\\xff\\\\xc3(\\\\\\\\\\"</script>"'


class Log:
    """The log of one box, looked at from the host."""

    def __init__(self, box, cordon):
        self.box = box
        self.cordon = cordon
        self.dir = box.state / "state" / "audit"
        self.current = self.dir / "audit.jsonl"
        self.head = self.dir / "head"
        source = built_executable().parent / "tests" / "audit_writer"
        self.program = box.bin / "audit_writer"
        if not self.program.exists():
            temporary = box.bin / f"audit_writer.{os.getpid()}"
            shutil.copyfile(source, temporary)
            temporary.chmod(0o755)
            temporary.rename(self.program)

    def start(self, *args, **options):
        return self.box.start(self.program, *map(str, args), **options)

    def write(self, *args):
        done = self.box.run(str(self.program), *map(str, args))
        assert done.returncode == 0, done

    def files(self):
        """Oldest first. A writer that was killed while it rotated leaves no current one."""
        return sorted(self.dir.glob("audit-*.jsonl")) + [path for path in [self.current] if path.exists()]

    def lines(self):
        return [line for path in self.files() for line in path.read_bytes().split(b"\n")[:-1]]

    def records(self):
        return [json.loads(line) for line in self.lines()]

    def check(self, first=1, prev=ZERO):
        """Every line is the next record and names the hash of the one before."""
        seq = first - 1
        for line in self.lines():
            record = json.loads(line)
            seq += 1
            assert (record["seq"], record["prev"]) == (seq, prev), line
            prev = hashlib.sha256(line).hexdigest()
        return seq, prev

    def verify(self):
        done = self.cordon("audit", "verify", "--json")
        assert done.returncode in (0, 1), done
        report = done.json()
        assert report["ok"] == (done.returncode == 0)
        return report

    def edit(self, change):
        """Passes the lines of the current file through `change`; the file keeps its owner."""
        lines = self.current.read_bytes().splitlines(keepends=True)
        self.current.write_bytes(b"".join(change(lines)))


@pytest.fixture
def log(box, cordon):
    return Log(box, cordon)


# ---- many writers ----


@pytest.mark.parametrize("rotate", [0, 20000])
def test_eight_processes_write_one_chain(log, rotate):
    extra = ["--rotate", rotate, "--keep", 200] if rotate else []
    writers = [log.start("--run", f"run-{i}", "--event", "grant", "--count", 250, *extra) for i in range(8)]
    assert [process.wait(60) for process in writers] == [0] * 8
    last, tip = log.check()
    report = log.verify()
    assert report["ok"] and report["last_seq"] == last and report["last_hash"] == tip, report
    for i in range(8):
        own = [r["detail"]["n"] for r in log.records() if r.get("session_id") == f"run-{i}"]
        assert own == list(range(250))
    assert (len(log.files()) > 10) == bool(rotate)


@pytest.mark.soak
@pytest.mark.parametrize("rotate", [0, 50000])  # not so small that a fast machine drops the first files
def test_killed_writers_lose_no_acknowledged_record_and_leave_a_whole_chain(log, rotate):
    extra = ["--rotate", rotate, "--keep", 256] if rotate else []
    instants = random.Random(4)
    acknowledged = 0
    for round_number in range(12):
        runs = [f"kill-{round_number}-{i}" for i in range(3)]
        writers = [log.start("--run", run, "--event", "grant", "--count", 100000, "--ack", *extra) for run in runs]
        time.sleep(instants.uniform(0.01, 0.05))
        for process in writers:
            process.kill()
        counts = [process.communicate(timeout=20)[0].count(b"\n") for process in writers]
        acknowledged += sum(counts)
        report = log.verify()
        assert report["ok"], report
        found = [json.loads(line) for line in log.lines() if line.endswith(b"}")]
        for run, count in zip(runs, counts):
            own = [r["detail"]["n"] for r in found if r.get("session_id") == run]
            assert own == list(range(len(own))) and len(own) >= count
    assert acknowledged > 100
    log.write("--event", "end", *extra)
    report = log.verify()
    assert report["ok"], report
    if report["torn"] == 0:
        log.check()


def test_unfinished_line_is_named_and_the_next_writer_repairs_it(log):
    log.write("--event", "grant", "--count", 3)
    with log.current.open("ab") as stream:
        stream.write(b'{"v":1,"seq":4,"prev":"ab')
    report = log.verify()
    assert report["ok"] and report["torn"] == 1 and report["first_torn"]["line"] == 4
    log.write("--event", "grant")
    report = log.verify()
    assert report["ok"] and report["torn"] == 1 and report["records"] == 5
    shown = log.cordon("audit")
    assert shown.returncode == 0 and "audit.jsonl:4: not a record" in shown.stdout
    assert "reason=torn bytes=25" in shown.stdout
    assert "no records: 1" in shown.stderr


# ---- forgery ----


def forge(lines):
    lines[2] = lines[2].replace(b'"write"', b'"wrote"')
    return lines


def forge_with_valid_chain_field(lines):
    """The line is made anew with a right prev: only its successor can tell."""
    record = json.loads(lines[2])
    record["path"] = "harmless"
    lines[2] = json.dumps(record).encode() + b"\n"
    return lines


FORGERIES = {
    "changed": (forge, 3),
    "made anew": (forge_with_valid_chain_field, 3),
    "last one changed": (lambda lines: lines[:-1] + [lines[-1].replace(b"write", b"wrote")], 6),
    "removed": (lambda lines: lines[:2] + lines[3:], 3),
    "first removed": (lambda lines: lines[1:], 1),
    "inserted": (lambda lines: lines[:3] + [lines[2]] + lines[3:], 4),
    "foreign line": (lambda lines: lines[:3] + [b"hello\n"] + lines[3:], 4),
    "reordered": (lambda lines: lines[:2] + [lines[3], lines[2]] + lines[4:], 3),
    "tail cut off": (lambda lines: lines[:4], 4),
    "cut inside a line": (lambda lines: lines[:5] + [lines[5][:40]], 6),
    "emptied": (lambda lines: [], 0),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgery_is_found_at_its_line_and_stays_found(log, name):
    change, line = FORGERIES[name]
    log.write("--event", "grant", "--count", 6)
    assert log.verify()["ok"]
    log.edit(change)
    report = log.verify()
    assert not report["ok"]
    assert (report["first_break"]["file"], report["first_break"]["line"]) == ("audit.jsonl", line), report
    log.write("--event", "grant")
    after = log.verify()
    assert not after["ok"], "the next writer covered it up"
    text = log.cordon("audit", "verify")
    assert text.returncode == 1 and text.stdout.startswith("broken: audit.jsonl"), text


def test_removed_files_are_found(log):
    log.write("--event", "grant", "--count", 60, "--rotate", 2000, "--keep", 50)
    assert log.verify()["ok"] and len(log.files()) > 4
    (log.dir / "audit-000001.jsonl").unlink()
    report = log.verify()
    assert not report["ok"] and report["first_break"]["file"] == "audit-000002.jsonl"


def test_missing_head_is_found_and_stays_found(log):
    log.write("--event", "grant", "--count", 3)
    log.head.unlink()
    assert log.verify()["first_break"]["file"] == "head"
    log.write("--event", "grant")
    report = log.verify()
    assert not report["ok"] and report["first_break"]["line"] == 4


def test_pruned_files_leave_a_record_and_a_whole_chain(log):
    log.write("--event", "grant", "--count", 100, "--rotate", 2000, "--keep", 3)
    assert len(log.files()) == 4
    pruned = [record["detail"] for record in log.records() if record["event"] == "pruned"]
    first = json.loads(log.lines()[0])
    assert first["event"] == "rotated"
    assert {"last_seq": first["seq"] - 1, "last_hash": first["prev"]}.items() <= pruned[-1].items()
    log.check(first["seq"], first["prev"])
    assert log.verify()["ok"]


# ---- hostile names ----


def test_hostile_names_stay_one_valid_line(log):
    log.write("--event", "grant")
    assert log.box.run(os.fsencode(log.program), b"--path", HOSTILE).returncode == 0
    log.write("--event", "end")
    raw = log.current.read_bytes()
    assert raw.count(b"\n") == 3 and not re.search(rb"[\x00-\x09\x0b-\x1f\x7f-\xff]", raw)
    assert log.records()[1]["path"] == json.loads(SHOWN)
    shown = log.cordon("audit").raw_stdout
    assert shown.count(b"\n") == 3 and not re.search(rb"[\x00-\x09\x0b-\x1f\x7f-\xff]", shown)
    assert json.loads(SHOWN).encode() in shown
    assert log.verify()["ok"]


def test_ordinary_names_of_all_languages_are_kept(log):
    log.write("--path", "src/Grüße/日本語.ts")
    assert log.records()[0]["path"] == "src/Grüße/日本語.ts"
    assert "src/Grüße/日本語.ts" in log.cordon("audit").stdout


def test_a_name_longer_than_a_record_is_cut_and_says_so(log):
    assert log.box.run(os.fsencode(log.program), b"--path", b"\x1b" * 20000).returncode == 0
    line = log.lines()[0]
    record = json.loads(line)
    assert len(line) < 8192 and record["cut"] == ["path"] and record["detail"] == {"n": 0}


# ---- limits ----


@pytest.mark.limit(180)
def test_a_million_events_are_counted_and_do_not_fill_the_disk(log):
    log.write("--count", 1000000, "--path", "lib/" + "x" * 200)
    records = log.records()
    dropped = sum(r["detail"]["count"] for r in records if r["event"] == "dropped")
    assert dropped > 900000 and dropped + sum(r["event"] == "violation" for r in records) == 1000000
    assert log.current.stat().st_size < 2 << 20
    assert log.verify()["ok"]


def test_what_an_operator_must_know_is_never_left_out(log):
    for event in ("start", "end", "refusal", "grant", "gc"):
        log.write("--event", event, "--count", 400)
        assert sum(r["event"] == event for r in log.records()) == 400
    assert not any(r["event"] == "dropped" for r in log.records())


# ---- queries ----


def test_filters(log):
    for run in ("aaaa-1", "bbbb-2"):
        log.write("--run", run, "--event", "start")
        log.write("--run", run, "--path", f"lib/{run}")
        log.write("--run", run, "--event", "end")
    count = lambda *args: len(log.cordon("audit", *args).stdout.splitlines())
    assert count() == 6
    assert count("--run", "aaaa") == 3 and count("--run=bbbb-2", "--kind", "violation") == 1
    assert count("--kind", "start,end") == 4 and count("--kind", "start", "--kind", "violation") == 4
    assert count("--since", "1h") == 6 and count("--since", "0s") == 0
    assert count("--path", "b/bbbb") == 1 and count("--path", "nowhere") == 0 and count("--agent", "nobody") == 0
    assert count("--decision", "allow") == 0 and count("--until", "0s") == 6 and count("--until", "1h") == 0
    middle = log.records()[3]["time"]
    later = [r for r in log.records() if r["time"] >= middle]
    got = [json.loads(line) for line in log.cordon("audit", "--json", "--since", middle).stdout.splitlines()]
    assert got == later


def test_json_gives_the_lines_as_they_were_written(log):
    log.write("--event", "grant", "--count", 5)
    assert log.cordon("audit", "--json").raw_stdout == log.current.read_bytes()


@pytest.mark.parametrize(
    "args, word",
    [
        (["--kind", "nonsense"], "violation protected_lost"),
        (["--kind", "end,"], "no such event"),
        (["--since", "tomorrow"], "not a time"),
        (["--until", "tomorrow"], "not a time"),
        (["--decision", "maybe"], "maybe"),
        (["--run", "abc"], "run id"),
        (["nonsense"], "nonsense"),
        (["verify", "extra"], "extra"),
        (["--unknown"], "--unknown"),
    ],
)
def test_usage_errors(cordon, args, word):
    done = cordon("audit", *args)
    assert done.returncode == 2 and word in done.stderr and not done.stdout, done


def test_an_empty_log_is_whole_and_shows_nothing(cordon):
    assert cordon("audit").raw_stdout == b""
    done = cordon("audit", "verify")
    assert done.returncode == 0 and done.stdout.startswith("whole: 0 records"), done


def on_terminal(box, *args, env=None):
    """What a command prints on a terminal."""
    master, slave = pty.openpty()
    process = box.start(*args, stdout=slave, env=env)
    os.close(slave)
    seen = b""
    while select.select([master], [], [], 10)[0]:
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        seen += data
    os.close(master)
    assert process.wait(10) == 0
    return seen


def test_colour_only_on_a_terminal_and_never_with_no_color(log):
    log.write("--path", "x")
    assert b"\x1b[31mviolation" in on_terminal(log.box, log.cordon.path, "audit")
    assert b"\x1b" not in on_terminal(log.box, log.cordon.path, "audit", env={"NO_COLOR": "1"})
    assert b"\x1b" not in log.cordon("audit").raw_stdout


# ---- following ----


def read_lines(process, n, seconds=20):
    """The next `n` lines a process prints."""
    lines, rest, deadline = [], b"", time.monotonic() + seconds
    while len(lines) < n:
        ready = select.select([process.stdout], [], [], max(0, deadline - time.monotonic()))[0]
        data = os.read(process.stdout.fileno(), 65536) if ready else b""
        assert data, f"only {len(lines)} of {n} lines"
        *whole, rest = (rest + data).split(b"\n")
        lines += whole
    return lines


def test_follow_shows_what_comes_over_rotation_and_ends_on_interrupt(log):
    log.write("--event", "grant")
    follower = log.cordon.start("audit", "--follow", "--json", "--kind", "grant")
    assert len(read_lines(follower, 1)) == 1
    log.write("--event", "grant", "--count", 200, "--rotate", 3000, "--keep", 100)
    assert len(log.files()) > 5
    got = [json.loads(line)["detail"]["n"] for line in read_lines(follower, 200)]
    assert got == list(range(200))
    follower.send_signal(signal.SIGINT)
    assert follower.wait(10) == 0
    assert follower.stdout.read() == b"" and follower.stderr.read() == b""


def test_follow_ends_when_nobody_reads_any_more(log):
    log.write("--event", "grant")
    follower = log.cordon.start("audit", "-f")
    read_lines(follower, 1)
    follower.stdout.close()
    assert follower.wait(10) == 0


def test_follow_never_shows_half_a_record(log):
    log.write("--event", "grant")
    follower = log.cordon.start("audit", "--follow", "--json")
    read_lines(follower, 1)
    writers = [log.start("--run", f"run-{i}", "--event", "grant", "--count", 150) for i in range(4)]
    for line in read_lines(follower, 600, seconds=60):
        json.loads(line)
    assert [process.wait(20) for process in writers] == [0] * 4


# ---- where it lies ----


def test_log_and_directories_are_private(log):
    log.write("--event", "start")
    for path in (log.box.state / "state", log.dir):
        assert path.stat().st_mode & 0o777 == 0o700
    for path in (log.current, log.head):
        assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("command", [["audit"], ["audit", "verify"]])
def test_a_home_that_is_not_only_ours_is_refused(box, cordon, command):
    shared = box.mkdir("shared", mode=0o775)
    shared.chmod(0o777)
    cases = {str(shared): "can be written by others", "relative/home": "not an absolute path"}
    cases[str(box.link("link", "home"))] = "symbolic link"
    cases["/proc" if box.who.is_root else "/usr"] = "cannot make" if box.who.is_root else "belongs to user 0"
    for home, word in cases.items():
        done = cordon(*command, env={"CORDON_HOME": home})
        assert done.returncode == 1 and word in done.stderr and done.stderr.count("\n") == 1, done
    done = cordon(*command, env={"CORDON_HOME": None, "HOME": None})
    assert done.returncode == 1 and "HOME is not set" in done.stderr and "CORDON_HOME" in done.stderr, done


# ---- the schema ----


def conforms(value, schema, where="record"):
    """The part of JSON Schema that docs/audit-schema.json uses."""
    types = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
    known = {"$schema", "$id", "title", "description", "type", "const", "enum", "minimum", "pattern", "required",
             "properties", "additionalProperties", "items", "allOf", "if", "then"}
    assert set(schema) <= known, f"{where}: the test knows no {set(schema) - known}"
    if "type" in schema:
        assert type(value) is types[schema["type"]], f"{where}: {value!r}"
    if "const" in schema:
        assert value == schema["const"], where
    if "enum" in schema:
        assert value in schema["enum"], f"{where}: {value!r}"
    if "minimum" in schema:
        assert value >= schema["minimum"], where
    if "pattern" in schema:
        assert re.search(schema["pattern"], value), f"{where}: {value!r}"
    for key in schema.get("required", []):
        assert key in value, f"{where}: no {key}"
    properties = schema.get("properties", {})
    if schema.get("additionalProperties") is False:
        assert set(value) <= set(properties), f"{where}: {set(value) - set(properties)}"
    for key, inner in properties.items():
        if isinstance(value, dict) and key in value:
            conforms(value[key], inner, f"{where}.{key}")
    for item in value if "items" in schema else []:
        conforms(item, schema["items"], where)
    for inner in schema.get("allOf", []):
        conforms(value, inner, where)
    if "if" in schema and not violates(value, schema["if"]):
        conforms(value, schema["then"], where)


def violates(value, schema):
    try:
        conforms(value, schema)
    except AssertionError:
        return True
    return False


SCHEMA = json.loads((TOP / "docs" / "audit-schema.json").read_text())


def test_every_record_conforms_to_the_published_schema(log, cordon):
    for event in ("start", "end", "refusal", "grant", "gc", "limit", "protected_lost", "protected_created"):
        log.write("--event", event, "--path", "x")
    log.write("--count", 500)
    log.box.run(os.fsencode(log.program), b"--path", b"\x1b" * 20000)
    with log.current.open("ab") as stream:
        stream.write(b"{")
    log.write("--event", "grant", "--count", 60, "--rotate", 4000, "--keep", 2)
    log.head.unlink()
    log.write("--event", "grant")
    lost = log.current.read_bytes().splitlines(keepends=True)
    log.current.write_bytes(b"".join(lost[:-1]))
    log.write("--event", "grant")
    records = [json.loads(line) for line in log.lines() if line.endswith(b"}")]
    for record in records:
        conforms(record, SCHEMA)
    assert {"rotated", "pruned", "repaired"} <= {record["event"] for record in records}
    assert violates({**records[0], "surprise": 1}, SCHEMA) and violates({**records[0], "seq": 0}, SCHEMA)
    named = cordon("audit", "--kind", "?").stderr.partition("there are: ")[2].split()
    assert named == SCHEMA["properties"]["event"]["enum"]


def test_the_example_of_the_documentation_holds(log):
    log.write("--event", "grant", "--count", 2)
    done = log.box.run("sh", "-c", "sed -n 1p audit.jsonl | tr -d '\\n' | sha256sum", cwd=log.dir)
    assert done.stdout.split()[0] == log.records()[1]["prev"]
    assert "sed -n 1p audit.jsonl | tr -d '\\n' | sha256sum" in (TOP / "docs" / "audit.md").read_text()


def test_a_reader_does_not_wait_for_a_stopped_reader(log):
    log.write("--event", "grant", "--count", 2000)
    stuck = log.cordon.start("audit")  # its pipe fills up and nobody reads
    poll(lambda: select.select([stuck.stdout], [], [], 0)[0], what="output")
    began = time.monotonic()
    log.write("--event", "end")
    assert time.monotonic() - began < 2
    assert stuck.poll() is None


@pytest.fixture
def small_disk(box):
    """CORDON_HOME on a file system of its own, which can be filled."""
    if os.getuid() != 0:
        pytest.skip("only root can mount something on the host")
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size=4m,mode=700,uid={box.who.uid},gid={box.who.gid}", "none", box.state], check=True)
    yield box.state
    subprocess.run(["umount", "-l", box.state], check=True)


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_full_disk_stops_no_run_that_runs_and_is_told(box, cordon, small_disk, options):
    repo = box.repo(files={"lib/a": "a\n", "other/o": "o\n"})
    run = cordon.start("run", "--workspace", "lib", "--workspace-mode", "strict", *options, "--", "sh", "-c",
                       "touch lib/up; while ! [ -e lib/go ]; do sleep 0.02; done; for i in $(seq 40); do cat other/o$i; done; touch lib/over",
                       cwd=repo)
    poll((repo / "lib/up").exists, 20, "the start")
    with open(small_disk / "fill", "wb", buffering=0) as fill, pytest.raises(OSError):
        while True:
            fill.write(bytes(65536) if os.statvfs(small_disk).f_bfree > 32 else b"x" * 512)
    # What is left of the last page of the log takes some records.
    box.write("repo/lib/go")
    err = run.communicate(timeout=30)[1].decode()
    assert run.returncode == 0 and (repo / "lib/over").exists()
    missing = re.search(r"WARNING: (\d+) events are missing in the audit log: it could not be written", err)
    log = (small_disk / "state/audit/audit.jsonl").read_text()
    # Forty refused reads and the end.
    assert missing and int(missing.group(1)) == 41 - log.count("other/o"), err
    assert cordon("audit", "verify").returncode == 0
    refused = cordon("run", "--", "touch", "more", cwd=repo)
    assert refused.returncode == 125 and "No space left on device" in refused.stderr and not (repo / "more").exists()
    os.unlink(small_disk / "fill")
    assert cordon("run", "--", "touch", "more", cwd=repo).stderr == "" and (repo / "more").exists()
    assert cordon("audit", "verify").returncode == 0
