# SPDX-License-Identifier: Apache-2.0
"""cordon policy diff: what one policy allows and another one does not; each witness is tried in a live sandbox."""
import json
import os
import pathlib
import subprocess

import pytest

PROBE = """
import json, os, sys
answers = []
for op, path in json.load(sys.stdin):
    path = os.path.join(os.getcwd(), path)
    try:
        if op == "write" and not os.path.isdir(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
        elif op == "write":
            os.close(os.open(os.path.join(path, "probe"), os.O_WRONLY | os.O_CREAT))
        elif os.path.isdir(path):
            answers.append(None)  # a directory that leads to something granted can be listed
            continue
        else:
            os.close(os.open(path, os.O_RDONLY))
        answers.append("allow")
    except OSError:
        answers.append("deny")
print(json.dumps(answers))
"""


def diff(cordon, box, before, after, **options):
    root = box.path / "repo"
    if not root.exists():
        box.repo(files={"src/f.ts": "x", "docs/f": "x", "lib/f": "x", "a/x/f": "x", "b/x/f": "x"})
    for name, text in (("before.yaml", before), ("after.yaml", after)):
        box.write(name, text)
    return cordon("policy", "diff", "--root", str(root), *options.get("extra", ["--json"]), str(box.path / "before.yaml"), str(box.path / "after.yaml"))


def shown(found):
    return {(side, one["op"], one["witness"]) for side in ("added", "removed") for one in found[side]}


def test_the_same_in_other_words_is_the_same(box, cordon):
    done = diff(cordon, box, "rw: [src]\nro: ['{a,b}/*.ts']\n", "rw: ['src/**']\nro: ['[ab]/*.ts']\n")
    assert done.returncode == 0 and done.json() == {"added": [], "removed": []}


def test_what_is_added_has_the_shortest_witness_and_both_rules(box, cordon):
    done = diff(cordon, box, "rw: [src]\n", "rw: [src, docs]\n")
    assert done.returncode == 1, done
    found = done.json()
    assert shown(found) == {("added", "read", "docs"), ("added", "write", "docs")}
    one = found["added"][0]
    assert one["before"]["reason"] == "no_grant" and one["after"]["rule"] == "docs" and one["after"]["where"].endswith("after.yaml:1:11")
    text = diff(cordon, box, "rw: [src]\n", "rw: [src, docs]\n", extra=[])
    assert text.returncode == 1 and "+ write   docs\n" in text.stdout and text.stdout.endswith("2 added, 0 taken away\n")


def test_what_is_only_taken_away_is_no_widening(box, cordon):
    done = diff(cordon, box, "rw: [src]\n", "rw: [src]\ndeny: ['src/**/*.key']\nnet: [example.com]\n")
    assert done.returncode == 0 and not done.json()["added"]
    assert {("removed", "read", "src/.key"), ("removed", "write", "src/.key")} <= shown(done.json())


def test_a_path_that_is_protected_in_both_is_no_difference(box, cordon):
    found = diff(cordon, box, "rw: [src]\n", "rw: [src, .git/hooks]\n").json()
    assert {one["op"] for one in found["added"]} == {"read"}, "writing .git/hooks is refused with both"


def test_hosts_are_compared_with_their_ports(box, cordon):
    found = diff(cordon, box, "net: [example.com]\n", "net: ['*.example.com', 'example.com:8443']\n").json()
    assert shown(found) == {("removed", "connect", "example.com:443"), ("added", "connect", "a.example.com:443"), ("added", "connect", "example.com:8443")}


def test_what_is_wrong_is_named_with_its_place(box, cordon):
    done = diff(cordon, box, "rw: [src]\n", "rw: ['src/**.ts']\n", extra=[])
    assert done.returncode not in (0,) and "after.yaml:1:" in done.stderr and not done.stdout
    usage = cordon("policy", "diff", str(box.path / "before.yaml"))
    assert usage.returncode == 2 and "two policy files" in usage.stderr


def test_what_is_too_large_is_refused_and_not_guessed(box, cordon):
    done = diff(cordon, box, "rw: ['**/*a" + "?" * 40 + "b']\n", "rw: [src]\n", extra=[])
    assert done.returncode == 1 and "too large to be compared exactly" in done.stderr and not done.stdout


PAIRS = [
    ("rw: [src]\n", "rw: [src, 'docs/*.md']\n"),
    ("ro: ['**']\nrw: ['src/**/*.ts']\n", "ro: ['**']\nrw: ['src/*.ts', lib]\ndeny: ['lib/*.pem']\n"),
    ("rw: ['{a,b}/x']\n", "rw: [a]\nro: ['b/?']\n"),
]


@pytest.mark.parametrize("before, after", PAIRS)
def test_each_witness_is_true_in_a_live_sandbox(box, cordon, before, after):
    found = diff(cordon, box, before, after).json()
    cases = [one for side in ("added", "removed") for one in found[side] if one["op"] in ("read", "write")]
    assert cases
    root = box.path / "repo"
    # Reading needs something to read: a witness that is not there yet is made by the host.
    made = [one["witness"] for one in cases if one["op"] == "read" and one["witness"] != "."]
    script = f"cd {root} && " + " && ".join(["true"] + [f"mkdir -p \"$(dirname '{path}')\" && {{ [ -e '{path}' ] || echo x >'{path}'; }}" for path in made])
    assert box.run("sh", "-c", script).returncode == 0
    probe = box.write("probe.py", PROBE)
    for which, side in (("before.yaml", "before"), ("after.yaml", "after")):
        done = cordon("run", "--root", str(root), "--policy", str(box.path / which), "--workspace-mode", "strict", "--share", f"{probe}:/tmp/probe.py:ro", "--",
                      "python3", "/tmp/probe.py", input=json.dumps([[one["op"], one["witness"]] for one in cases]), cwd=str(root))
        assert done.returncode == 0, done
        answers = json.loads(done.stdout)
        assert any(answers) and [one[side]["decision"] if answer else None for one, answer in zip(cases, answers)] == answers, (which, cases)


@pytest.mark.long
@pytest.mark.limit(300)
def test_5000_random_pairs_against_every_path_of_a_small_alphabet():
    unit = pathlib.Path(os.environ["CORDON"]).parent / "tests/test_compare"
    done = subprocess.run([unit], env={**os.environ, "CORDON_COMPARE_PAIRS": "5000"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
