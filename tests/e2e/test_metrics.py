# SPDX-License-Identifier: Apache-2.0
"""What cordon itself costs in a run: `run --metrics FILE` and `cordon stats`."""
import json

import pytest

KEYS = {
    "startup_ms",
    "mounts",
    "landlock_rules",
    "decide",
    "lens",
    "watch",
    "net",
    "overhead_ms",
    "helper_rss_bytes",
    "session_id",
    "duration_ms",
}


@pytest.fixture
def repo(box):
    return box.repo(files={"lib/a.ts": "x", "src/b.ts": "x"})


def test_metrics_are_of_this_run(cordon, box, repo):
    command = "for i in 1 2 3 4 5; do cat src/b.ts lib/a.ts; done; sleep 0.3"
    done = cordon("run", "--metrics", str(box.path / "m.json"), "--workspace", "lib", "--", "sh", "-c", command, cwd=repo)
    assert done.returncode == 0, done
    metrics = json.loads((box.path / "m.json").read_text())
    assert set(metrics) == KEYS
    assert metrics["lens"] is None and metrics["net"] is None and metrics["mounts"] > 5 and metrics["landlock_rules"] > 5
    assert metrics["watch"]["events"] >= 10 and metrics["watch"]["dropped"] == 0
    assert metrics["decide"]["calls"] >= 5 and 0 < metrics["decide"]["ns_p50"] <= metrics["decide"]["ns_p99"]
    assert 0 < metrics["startup_ms"] <= metrics["overhead_ms"]
    # The program's own time is none of cordon's.
    assert metrics["duration_ms"] >= 300 and metrics["overhead_ms"] < metrics["duration_ms"] + metrics["startup_ms"]
    assert metrics["helper_rss_bytes"] > 500_000
    assert cordon("stats", metrics["session_id"][:8], "--json", cwd=repo).json().items() >= metrics.items()
    text = cordon("stats", cwd=repo).stdout
    assert f"session_id: {metrics['session_id']}\n" in text and f"mounts: {metrics['mounts']}\n" in text and "lens: -\n" in text


def test_metrics_of_the_lens_come_from_its_process(cordon, box, repo):
    done = cordon(
        *("run", "--metrics", "m.json", "--result", "r.json", "--rw", "lib/**/*.ts", "--ro", "**", "--", "sh", "-c"),
        "cat lib/a.ts src/b.ts; (: >lib/x.sh) 2>/dev/null; echo >lib/new.ts",
        cwd=repo,
    )
    metrics = json.loads((repo / "m.json").read_text())
    assert metrics["lens"]["lookups"] >= 4 and metrics["lens"]["denied"] >= 1, (done, metrics)
    assert 0 < metrics["lens"]["us_p50"] <= metrics["lens"]["us_p99"]
    assert metrics["decide"]["calls"] >= metrics["lens"]["lookups"]
    assert json.loads((repo / "r.json").read_text())["metrics"]["mounts"] == metrics["mounts"]


MAKES = """
import errno, os, sys
os.mkdir("d")
def make(path):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)  # open() would ask whether it is a terminal, too
    os.write(fd, b"x")
    os.close(fd)
make("d/one")
make("d/one")  # now the kernel knows that it need not ask for opens
for i in range(int(sys.argv[1])):
    make(f"d/{i}")
try:
    print(os.getxattr("d/one", "user.none"))
except OSError as error:
    print(errno.errorcode[error.errno])
"""


@pytest.mark.parametrize("memory, most, answer", [(False, 5, "ENODATA"), (True, 4, "ENOTSUP")], ids=["with attributes", "without"])
def test_a_new_file_costs_few_requests_to_the_lens(cordon, box, who, memory, most, answer):
    """LOOKUP, CREATE, WRITE, GETATTR of its directory, and GETXATTR unless the file system (ramfs) has no attributes of users at all."""
    counts = []
    for n in (50, 450):
        root = box.mkdir(f"root{n}")
        mount = f'mount -t ramfs ramfs {root} && mkdir -m 777 {root}/in && cd {root}/in && exec "$@"' if memory else f'mkdir {root}/in && cd {root}/in && exec "$@"'
        enter = ["unshare", *([] if who.is_root else ["--user", "--map-root-user"]), "--mount"] if memory else []
        done = box.run(*enter, "sh", "-c", mount, "sh", cordon.path, "run", "--root", ".", "--lens", "always", "--metrics", str(box.path / f"{n}.json"), "--",
                       "/usr/bin/python3", "-I", "-S", "-B", "-c", MAKES, str(n))
        assert (done.returncode, done.stdout, done.stderr) == (0, answer + "\n", ""), done
        counts.append(json.loads((box.path / f"{n}.json").read_text())["lens"]["requests"])
    assert (counts[1] - counts[0]) / 400 < most + 0.3, counts


def test_metrics_of_the_network_come_from_its_process(machine, online):
    root = machine.mkdir("work")
    script = "for i in 1 2 3; do curl -sS -m 60 -o /dev/null https://a.example.com/ || exit 1; done; curl -sS https://b.example.com/ 2>/dev/null; true"
    for options in ([], ["--metrics", str(root / "m.json")]):  # without, the process has nothing to count in
        done = online("run", "--root", root, "--net", "a.example.com", *options, "--", "sh", "-c", script)
        assert done.returncode == 0, done
    net = json.loads((root / "m.json").read_text())["net"]
    assert net["connections"] == 3 and net["refused"] >= 1 and 0 < net["us_p50"] <= net["us_p99"] and net["cpu_ms"] > 0, net
    assert "net.connections: 3\n" in online("stats").stdout
    # A list of which nothing is used has no process.
    assert online("run", "--root", root, "--net", "a.example.com", "--metrics", str(root / "m.json"), "--", "true").returncode == 0
    assert json.loads((root / "m.json").read_text())["net"] == {"connections": 0, "refused": 0, "us_p50": 0.0, "us_p99": 0.0, "cpu_ms": 0.0}


def test_a_run_that_does_not_ask_is_not_measured(cordon, box, repo):
    done = cordon("run", "--json", "--", "true", cwd=repo)
    result = done.json("stderr")
    assert "metrics" not in result
    done = cordon("stats", result["session_id"], cwd=repo)
    assert done.returncode == 1 and "was not measured" in done.stderr
    done = cordon("stats", "0000", cwd=repo)
    assert done.returncode == 1 and "there is no end of 0000 in the audit log" in done.stderr
    assert cordon("run", "--metrics", "no/where/m.json", "--", "true", cwd=repo).returncode == 125
    # A program that can't be executed has no start, and is measured all the same.
    assert cordon("run", "--metrics", "m.json", "--", "/nonexistent", cwd=repo).returncode == 127
    assert json.loads((repo / "m.json").read_text())["startup_ms"] is None
    # The audit log has the numbers for stats and does not print them in its lines.
    assert "metrics" not in cordon("audit", cwd=repo).stdout


def test_an_agent_cannot_turn_the_file_of_the_metrics(cordon, box, repo):
    box.write("victim", "mine")
    swap = f"rm -f lib/m.json; ln -s {box.path}/victim lib/m.json"
    done = cordon("run", "--metrics", "lib/m.json", "--workspace", "lib", "--", "sh", "-c", swap, cwd=repo)
    assert done.returncode == 0 and (box.path / "victim").read_text() == "mine"
    assert not (repo / "lib/m.json").is_symlink() and json.loads((repo / "lib/m.json").read_text())["mounts"]


def test_sessions_are_measured(sessions):
    sessions.create()
    session = sessions.start(command=["sh", "-c", "cat /etc/hostname"])["session_id"]
    sessions.cordon("session", "wait", session)
    stats = sessions.ask("stats", session)
    assert stats["session_id"] == session and stats["mounts"] > 5 and stats["startup_ms"] > 0
