# SPDX-License-Identifier: Apache-2.0
"""Runs that can be proven: attestations, who verifies them, and what of a forged one is noticed."""
import json
import random
import re
import shutil

import pytest

from repositories import Repository
from support import built_executable

NAME = "alice@example.org"
# ssh-keygen wants to know the account, and the one that the tests play has no line in /etc/passwd.
ACCOUNT = """
#include <pwd.h>
#include <unistd.h>
struct passwd *getpwuid(uid_t uid)
{
	static struct passwd account = { .pw_name = "tester", .pw_dir = "/nonexistent", .pw_shell = "/bin/sh", .pw_gecos = "", .pw_passwd = "" };

	account.pw_uid = uid;
	return &account;
}
"""


class Proven:
    """A repository, a key outside it, and the file of who may sign."""

    def __init__(self, box, cordon):
        self.box, self.cordon = box, cordon
        self.repo = Repository(box)
        self.keys = box.mkdir("keys")
        tools = box.mkdir("tools")
        box.write("tools/account.c", ACCOUNT)
        box.write("tools/ssh-keygen", f"#!/bin/sh\nLD_PRELOAD={tools}/account.so exec {shutil.which('ssh-keygen')} \"$@\"\n")
        assert box.run("sh", "-c", "cc -shared -fPIC -o account.so account.c && chmod 755 ssh-keygen", cwd=tools).returncode == 0
        plain = box.environment
        box.environment = lambda extra=None: plain({"PATH": f"{tools}:{plain()['PATH']}", **(extra or {})})
        assert box.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.keys / "id")).returncode == 0
        self.signers = self.keys / "signers"
        box.write("keys/signers", f"{NAME} {(self.keys / 'id.pub').read_text()}")

    def run(self, *args, script="true", key=None):
        return self.cordon("run", "--attest", str(key or self.keys / "id"), *args, "--", "sh", "-c", script, cwd=self.repo.path)

    def commit(self, *args, script="echo new > lib/new.txt; git add lib; git commit -qm two"):
        done = self.run("--git", "commit", *args, script=script)
        assert done.returncode == 0, str(done)
        return done

    def verify(self, what, *args):
        return self.cordon("verify-run", "--signers", str(self.signers), *args, str(what), cwd=self.repo.path)

    def check(self, *args, cwd=None):
        return self.cordon("git", "check", "--attested", "--signers", str(self.signers), *args, cwd=cwd or self.repo.path)

    def file(self, done):
        return re.search(r"\[ATTEST\] (\S+)", done.stderr)[1]


@pytest.fixture
def proven(box, cordon):
    return Proven(box, cordon)


def text_of(box, path):
    return box.run("cat", str(path)).stdout


def test_a_run_is_attested_with_what_it_was_and_its_commits_carry_the_note(proven):
    done = proven.commit(script="echo new > lib/new.txt; git add lib; git commit -qm two; echo 3 > lib/3; git add lib; git commit -qm three")
    line = text_of(proven.box, proven.file(done)).split("\n", 1)[0]
    statement = json.loads(line)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    commits = [s["digest"]["gitCommit"] for s in statement["subject"] if "gitCommit" in s["digest"]]
    assert commits == proven.repo.git("rev-list", "--reverse", "HEAD~2..HEAD").split()
    files = {s["name"]: s["digest"]["sha256"] for s in statement["subject"][1:] if "sha256" in s["digest"]}
    wanted = proven.box.run("sha256sum", "lib/new.txt", "lib/3", cwd=proven.repo.path).stdout.split()
    assert files == {wanted[1]: wanted[0], wanted[3]: wanted[2]}
    predicate = statement["predicate"]
    assert predicate["layers"]["layers"]["landlock"] is True and predicate["layers"]["tier"] == "full"
    assert predicate["refusals"] == {"count": 0, "warned": 0, "unlisted": 0, "listed": []}
    assert predicate["run"]["command"][:2] == ["sh", "-c"] and predicate["git"]["state"] == "taken"
    assert predicate["cordon"]["version"] and re.fullmatch(r"[0-9a-f]{64}", predicate["audit"]["hash"])
    for commit in ("HEAD", "HEAD~1"):
        assert proven.repo.git("notes", "--ref", "cordon", "show", commit).split("\n", 1)[0] == line
        answer = proven.verify(commit, "--json")
        assert answer.returncode == 0 and answer.json()["signer"] == NAME and answer.json()["failures"] == []
    assert proven.verify(proven.file(done)).returncode == 0
    assert proven.check("HEAD~2..HEAD").returncode == 0
    without = proven.verify("HEAD~2")
    assert without.returncode == 1 and "has no attestation" in without.stderr
    assert proven.check("HEAD~2").returncode == 1
    assert proven.verify("no-such-thing").returncode == 2 and proven.verify("HEAD~2..HEAD").returncode == 2
    assert proven.cordon("verify-run", "HEAD", cwd=proven.repo.path).returncode == 2, "nobody said who may sign"


def test_commits_of_a_view_get_the_note_when_it_is_applied(proven):
    done = proven.run("--cow", "--git", "commit", script="echo v > lib/v; git add lib/v; git commit -qm view; rm docs/b.txt")
    assert done.returncode == 0 and proven.repo.git("notes", "--ref", "cordon", "list") == ""
    statement = json.loads(text_of(proven.box, proven.file(done)).split("\n", 1)[0])
    assert statement["predicate"]["files"]["deleted"] == ["docs/b.txt"]
    too_early = proven.verify(proven.file(done))
    assert too_early.returncode == 1 and "file: lib/v is not there" in too_early.stderr and "docs/b.txt is there" in too_early.stderr
    assert proven.cordon("changes", "apply", "latest", cwd=proven.repo.path).returncode == 0
    assert proven.verify(proven.file(done)).returncode == 0 and proven.verify("HEAD").returncode == 0
    assert proven.check("HEAD").returncode == 0


def test_commits_that_wait_get_the_note_when_they_are_taken_over(proven):
    proven.box.write("repo/.git/index.lock", "")
    done = proven.run("--git", "commit", script="echo x > lib/x; git add lib/x; git commit -qm x")
    assert "another git works" in done.stderr and proven.repo.git("notes", "--ref", "cordon", "list") == "", str(done)
    (proven.repo.path / ".git/index.lock").unlink()
    assert proven.cordon("git", "take", cwd=proven.repo.path).returncode == 0
    assert proven.repo.subjects()[0] == "x" and proven.verify("HEAD").returncode == 0


def test_commits_that_the_policy_refuses_are_named_as_such(proven):
    done = proven.run("--git", "commit", "--workspace", "lib", "--workspace-mode", "strict",
                      script="git rm -q --cached docs/b.txt; git commit -qm outside")
    assert done.returncode == 0 and "REFUSED" in done.stderr, str(done)
    statement = json.loads(text_of(proven.box, proven.file(done)).split("\n", 1)[0])
    assert statement["predicate"]["git"]["refused"] == 1 and statement["predicate"]["git"]["state"] == "refused"
    assert proven.repo.git("notes", "--ref", "cordon", "list") == ""


def test_a_run_with_refusals_is_attested_and_its_commits_are_refused(proven):
    done = proven.commit("--workspace", "lib", "--workspace-mode", "strict",
                         script="echo x > docs/x; echo x > lib/x; git add lib/x; git commit -qm x")
    answer = proven.verify("HEAD", "--json")
    assert answer.returncode == 0 and answer.json()["refusals"] >= 1, str(done)
    first = answer.json()["statement"]["predicate"]["refusals"]["listed"][0]
    assert first["op"] == "create" and first["path"].endswith("/docs/x")
    refused = proven.check("HEAD")
    assert refused.returncode == 1 and "of its run were refused" in refused.stderr
    assert proven.check("--json", "HEAD").json()["unattested"][0]["commit"] == proven.repo.git("rev-parse", "HEAD")


def test_a_program_that_an_agent_left_verifies_nothing(proven):
    """A directory of the repository may stand on the PATH, as those of npm do."""
    proven.commit()
    left, ran = proven.repo.path / "bin", proven.box.path / "ran"
    proven.box.mkdir(left)
    proven.box.write(left / "ssh-keygen", f"#!/bin/sh\necho who >>{ran}\necho {NAME}\n", mode=0o755)
    before = proven.box.environment
    proven.box.environment = lambda extra=None: before({"PATH": f"{left}:{before()['PATH']}", **(extra or {})})
    proven.box.write("keys/signers", "")  # nobody may sign
    assert proven.verify("HEAD").returncode == 1 and proven.check("HEAD").returncode == 1
    assert not ran.exists()


@pytest.mark.parametrize("where, said", [("repo/id", "lies where the run can write"), ("keys/nothing", "cannot open the key"), ("keys/text", "is no key of ssh")])
def test_a_key_that_is_none_or_that_the_run_could_write_refuses_the_run(proven, where, said):
    proven.box.run("cp", str(proven.keys / "id"), str(proven.repo.path / "id"))
    proven.box.write("keys/text", "no key\n")
    done = proven.run(key=proven.box.path / where, script="echo ran > lib/ran")
    assert done.returncode in (2, 125) and said in done.stderr, str(done)
    assert not (proven.repo.path / "lib/ran").exists()


def test_a_link_in_the_root_to_a_key_outside_and_a_link_outside_to_one_inside(proven):
    proven.box.run("ln", "-s", str(proven.keys / "id"), str(proven.repo.path / "link"))
    proven.box.run("cp", str(proven.keys / "id"), str(proven.repo.path / "id"))
    proven.box.run("ln", "-s", str(proven.repo.path / "id"), str(proven.keys / "inward"))
    assert proven.run(key=proven.keys / "inward").returncode == 125
    assert proven.run(key=proven.repo.path / "link").returncode == 0, "the key itself lies outside"


def test_a_server_takes_attested_commits_and_no_others(proven):
    """A real pre-receive hook: the note comes with the same push, before any ref of the server has moved."""
    box, repo = proven.box, proven.repo
    bare = box.mkdir("server.git")
    repo.git("init", "-q", "--bare", str(bare), cwd=box.path)
    repo.git("push", "-q", str(bare), "main")
    box.write("server.git/hooks/pre-receive", f"""#!/bin/sh
notes=refs/notes/cordon list=$(cat)
while read -r _ new ref; do [ "$ref" != refs/notes/cordon ] || notes=$new; done <<END
$list
END
while read -r _ new ref; do
	case $ref in refs/heads/*) '{built_executable()}' git check --attested --signers '{proven.signers}' --notes "$notes" --unpushed "$new" >&2 || exit 1 ;; esac
done <<END
$list
END
""")
    box.run("chmod", "755", str(bare / "hooks/pre-receive"))
    before = repo.git("rev-parse", "HEAD")
    repo.git("commit", "-q", "--allow-empty", "-m", "by hand")
    push = box.run("git", "push", str(bare), "main", cwd=repo.path)
    assert push.returncode != 0 and "it has no attestation" in push.stderr, str(push)
    repo.git("reset", "-q", "--hard", before)
    proven.commit()
    push = box.run("git", "push", str(bare), "main", cwd=repo.path)
    assert push.returncode != 0 and "it has no attestation" in push.stderr, "the note was not pushed"
    push = box.run("git", "push", str(bare), "main", "refs/notes/cordon", cwd=repo.path)
    assert push.returncode == 0, str(push)
    assert repo.git("rev-parse", "main", cwd=bare) == repo.git("rev-parse", "HEAD") != before


def test_names_that_no_terminal_would_show_are_verified_too(proven):
    done = proven.run(script=r"""printf x >"$(printf 'lib/a\\\tb\nc\033\377')"; ln -s 'to nowhere' lib/link; printf y >'lib/\u{e9}'""")
    names = [s["name"] for s in json.loads(text_of(proven.box, proven.file(done)).split("\n", 1)[0])["subject"][1:]]
    assert len(names) == 3 and any("\\n" in name and "\\xff" in name for name in names), names
    assert proven.verify(proven.file(done)).returncode == 0
    proven.box.run("ln", "-sfn", "elsewhere", "lib/link", cwd=proven.repo.path)
    changed = proven.verify(proven.file(done))
    assert changed.returncode == 1 and changed.stderr == "cordon: file: lib/link is not as the run left it\n"
    assert proven.verify(proven.file(done), "--no-files").returncode == 0


def test_hosts_that_were_reached_are_in_the_statement(machine, online):
    """In the world of tests/internet.py."""
    proven = Proven(machine, online)
    script = "for h in a.example.com b.example.com; do curl -sS -m 60 -o /dev/null https://$h/ 2>/dev/null; done; true"
    done = proven.run("--net", "a.example.com", script=script)
    assert done.returncode == 0, done
    predicate = json.loads(text_of(machine, proven.file(done)).split("\n", 1)[0])["predicate"]
    assert predicate["network"] == {"mode": "list", "reached": ["a.example.com:443"], "complete": True}
    assert "b.example.com" in predicate["refusals"]["listed"][0]["path"] and predicate["refusals"]["count"] >= 1


# ---- forgeries ----


def flip(random_source, text, first, last):
    """Another character of the same kind at a random place, so that the text stays as well-formed as it was."""
    place = random_source.choice([i for i in range(first, last) if text[i].isalnum()])
    other = random_source.choice([c for c in ("0123456789abcdef" if text[place] in "0123456789abcdef" else "XYZ") if c != text[place]])
    return text[:place] + other + text[place + 1 :]


def tamper(proven, chance, original, log, log_text):
    """Changes one thing, returns what is to be verified and how to mend it."""
    kind = chance.choice(["policy", "statement", "result", "commit", "chain", "signature", "armour", "cut", "file"])
    line = original.index("\n")
    forged = proven.keys / "forged"
    if kind == "policy":
        first = original.index('"lines":[')
        proven.box.write("keys/forged", flip(chance, original, first, original.index('"layers"')))
    elif kind == "statement":
        proven.box.write("keys/forged", flip(chance, original, 0, line))
    elif kind == "result":
        first = original.index('"refusals"')
        proven.box.write("keys/forged", flip(chance, original, first, line))
    elif kind == "signature":
        proven.box.write("keys/forged", flip(chance, original, line + 32, len(original) - 30))
    elif kind == "armour":
        place = chance.choice([i for i in range(line + 1, len(original)) if original[i] == "\n"])
        proven.box.write("keys/forged", original[:place] + chance.choice(["", " ", "\n\n", "\v", "\r\n"]) + original[place + 1 :])
    elif kind == "cut":
        proven.box.write("keys/forged", original[: chance.randrange(len(original))])
    elif kind == "commit":
        name = f"refs/heads/t{chance.randrange(10**9)}"
        tree = proven.repo.git("rev-parse", "HEAD^{tree}")
        commit = proven.repo.git("commit-tree", "-p", "HEAD~1", "-m", name, tree)
        proven.repo.git("notes", "--ref", "cordon", "copy", "-f", "HEAD", commit)
        return kind, commit, lambda: None
    elif kind == "chain":
        proven.box.write(log, flip(chance, log_text, 0, len(log_text) - 1))
        return kind, "HEAD", lambda: proven.box.write(log, log_text)
    else:
        proven.box.write("repo/lib/new.txt", f"new {chance.random()}\n")
        proven.box.write("keys/forged", original)
        return kind, forged, lambda: proven.box.write("repo/lib/new.txt", "new\n")
    return kind, forged, lambda: None


def forge(proven, rounds, seed):
    chance = random.Random(seed)
    done = proven.commit()
    original = text_of(proven.box, proven.file(done))
    log_path = next(proven.box.path.rglob("state/audit/audit.jsonl"))
    log, log_text = str(log_path.relative_to(proven.box.path)), log_path.read_text()
    seen = set()
    for number in range(rounds):
        kind, what, mend = tamper(proven, chance, original, log, log_text)
        answer = proven.verify(what)
        assert answer.returncode == 1 and len(answer.stderr.splitlines()) >= 1, (seed, number, kind, str(answer))
        mend()
        seen.add(kind)
    assert proven.verify("HEAD").returncode == 0 and proven.verify(proven.file(done)).returncode == 0, "all of it was mended"
    return seen


def test_what_is_changed_afterwards_is_found(proven):
    assert len(forge(proven, 24, 31)) >= 7


@pytest.mark.long
@pytest.mark.limit(300)
@pytest.mark.parametrize("who", ["user"], indirect=True)
def test_each_of_500_forgeries_is_found(who, proven):
    assert len(forge(proven, 500, 500)) == 9


def test_another_key_of_the_same_name_in_another_namespace_is_not_believed(proven):
    done = proven.commit()
    line = text_of(proven.box, proven.file(done)).split("\n", 1)[0] + "\n"
    proven.box.write("keys/line", line)
    for key, space, fine in (("id", "cordon-run", True), ("id", "file", False), ("other", "cordon-run", False)):
        if key == "other":
            proven.box.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(proven.keys / "other"))
        proven.box.run("rm", "-f", str(proven.keys / "line.sig"))
        assert proven.box.run("ssh-keygen", "-Y", "sign", "-n", space, "-f", str(proven.keys / key), str(proven.keys / "line")).returncode == 0
        proven.box.write("keys/whole", line + (proven.keys / "line.sig").read_text())
        answer = proven.verify(proven.keys / "whole")
        assert (answer.returncode == 0) is fine, str(answer)
        assert fine or answer.stderr.startswith("cordon: signature:")
