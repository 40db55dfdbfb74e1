# SPDX-License-Identifier: Apache-2.0
"""cordon policy test: a table of questions, answered by the policy and by a real sandbox."""
import json
import os
import xml.etree.ElementTree as xml

POLICY = "rw: [src]\nro: ['docs/*.md']\ndeny: [.env, 'src/*.key']\nnet: []\n"
RIGHT = [
    "allow write src/a.ts", "allow write src/deep/er/a.ts", "allow write src/f.ts", "allow write src", "deny read .env", "deny write .env",
    "deny read src/a.key", "allow read docs/n.md", "deny write docs/n.md", "deny write docs", "deny write README", "deny write .git/hooks/pre-commit",
    "deny connect evil.example", "deny connect 192.0.2.5:80",
]


def prepare(box, policy=POLICY):
    root = box.repo(files={"src/f.ts": "x", "src/a.key": "k", "docs/n.md": "d", ".env": "s"})
    box.write("policy.yaml", policy)
    return root


def ask(cordon, box, questions, *options, **more):
    text = questions if isinstance(questions, str) else "version: 1\nquestions:\n" + "".join(f"  - {one}\n" for one in questions)
    box.write("table.yaml", text)
    return cordon("policy", "test", "--root", str(box.path / "repo"), "--policy", str(box.path / "policy.yaml"), *options, str(box.path / "table.yaml"), **more)


def everything(root):
    """All names below a directory, with what would show that somebody wrote there."""
    found = {}
    for place, dirs, files in os.walk(root):
        for name in [".", *dirs, *files]:
            st = os.lstat(os.path.join(place, name))
            found[os.path.relpath(os.path.join(place, name), root)] = (st.st_ino, st.st_mode, st.st_size, st.st_mtime_ns, st.st_ctime_ns)
    return found


def test_right_answers_are_right_in_a_sandbox_too_and_nothing_changes(box, cordon, leftovers):
    root = prepare(box)
    before = everything(root)
    done = ask(cordon, box, RIGHT, "--live", "--json")
    assert done.returncode == 0, done
    found = done.json()
    assert found["failed"] == 0 and [one["question"] for one in found["questions"]] == RIGHT
    assert all(one["live"] == one["expected"] == one["decision"] for one in found["questions"]), found
    assert everything(root) == before
    assert cordon("changes", "list", "--json").json()["total"] == 0, "the view does not stay"
    leftovers.assert_none()


def test_a_wrong_expectation_is_told_with_its_place_and_the_rule(box, cordon):
    prepare(box)
    done = ask(cordon, box, ["allow write src/a.ts", "allow read .env", "deny write src/f.ts"])
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "ok    allow write src/a.ts" and lines[1] == "FAIL  allow read .env"
    assert "table.yaml:4:5: the policy says deny: " in lines[2] and "policy.yaml:3:8" in lines[2]
    assert lines[-1] == "3 questions, 2 not as expected"
    quiet = ask(cordon, box, ["allow write src/a.ts", "allow read .env"], "--quiet")
    assert quiet.stdout.startswith("FAIL  allow read .env\n") and "ok " not in quiet.stdout


def test_the_sandbox_is_believed_before_the_policy(box, cordon, who):
    """The file is another user's: the policy allows what the kernel refuses."""
    root = prepare(box)
    box.run("chmod", "0444", str(root / "src/f.ts"))
    if who == "root":  # Root in a sandbox has no capabilities, but the file is its own: give it away.
        os.chown(root / "src/f.ts", 12345, 12345)
    assert ask(cordon, box, ["allow write src/f.ts"]).returncode == 0
    done = ask(cordon, box, ["allow write src/f.ts", "allow read src/f.ts"], "--live")
    assert done.returncode == 1 and "FAIL  allow write src/f.ts\n" in done.stdout and "a sandbox refuses it" in done.stdout, done
    assert "ok    allow read src/f.ts" in done.stdout


def test_what_cannot_be_tried_without_harm_is_not_asked(box, cordon):
    root = prepare(box, POLICY.replace("net: []\n", ""))
    shared = box.path / "shared"
    box.run("mkdir", str(shared))
    box.write("shared/old", "o")
    before = everything(shared)
    questions = [f"allow write {shared}/new", f"allow write {shared}/old", "deny read missing", "deny read docs", "deny read /etc/shadow", "allow connect a.example.com"]
    done = ask(cordon, box, questions, "--live", "--share", str(shared), "--json")
    assert done.returncode == 0, done
    assert [one["live"] for one in done.json()["questions"]] == ["not asked", "allow", "not asked", "not asked", "not asked", "not asked"]
    assert everything(shared) == before and not (root / "missing").exists()


def test_permissive_mode_warns(box, cordon):
    prepare(box, "mode: permissive\n" + POLICY)
    assert ask(cordon, box, ["warn write README", "allow write src/x", "deny write .env"], "--live").returncode == 0
    assert ask(cordon, box, ["deny write README"]).returncode == 1


def test_hosts_are_tried_by_name_and_by_address(machine, online, internet):
    root = machine.path / "repo"
    machine.repo(files={"a": "x"})
    table = machine.write("hosts.yaml", "questions:\n  - allow connect a.example.com\n  - allow connect six.example.org:80\n  - deny connect b.example.com\n"
                          "  - deny connect a.example.com:80\n  - deny connect 192.0.2.10:443\n  - deny connect localhost:5432\n")
    done = online("policy", "test", "--root", str(root), "--net", "a.example.com,six.example.org:80", "--live", "--json", str(table))
    assert [one["live"] for one in done.json()["questions"]] == ["allow", "allow", "deny", "deny", "deny", "deny"] and done.returncode == 0, done
    assert "b.example.com" not in internet.names_asked()


def test_tap_and_junit_are_well_formed(box, cordon):
    prepare(box)
    questions = ["allow write src/a.ts", "'allow read \"a&b<c>#d\"'"]
    done = ask(cordon, box, questions, "--format", "tap")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[:4] == ["TAP version 14", "1..2", "ok 1 - allow write src/a.ts", 'not ok 2 - allow read "a&b<c>\\#d"'] and lines[-1] == "  ..."
    message = next(line for line in lines if line.startswith("  message: "))
    assert "the policy says deny" in json.loads(message.removeprefix("  message: "))
    done = ask(cordon, box, questions, "--format", "junit")
    suite = xml.fromstring(done.stdout).find("testsuite")
    assert suite.get("tests") == "2" and suite.get("failures") == "1"
    cases = suite.findall("testcase")
    assert [one.get("name") for one in cases] == ["allow write src/a.ts", 'allow read "a&b<c>#d"']
    assert cases[0].find("failure") is None and "table.yaml:4:5: the policy says deny" in cases[1].find("failure").get("message")


def test_every_mistake_in_the_table_has_its_place(box, cordon):
    prepare(box)
    text = "version: 2\nquestion: []\nquestions:\n  - alow read x\n  - allow red x\n  - allow read\n  - deny connect *.example.com\n  - deny connect a..b\n  - warn connect a.example\n  - [x]\n"
    done = ask(cordon, box, text)
    assert done.returncode == 1 and not done.stdout
    places = [line.split("table.yaml:")[1].split(": ")[0] for line in done.stderr.splitlines() if "table.yaml:" in line]
    assert places == ["1:10", "2:1", "4:5", "5:11", "6:5", "7:18", "8:20", "9:5", "10:5"], done.stderr
    assert "there are no questions" in ask(cordon, box, "version: 1\n").stderr
    assert cordon("policy", "test").returncode == 2
    assert cordon("policy", "test", "--format", "sarif", "x.yaml").returncode == 2
