# SPDX-License-Identifier: Apache-2.0
"""Attacks on the policy that succeeded against an earlier version: denials with wildcards, linked policy files, fences, defaults that are
lifted one by one."""
import os
import subprocess

import pytest

from arena import answers

VIEWS = pytest.mark.parametrize("view", ["never", "always"], ids=["mounts", "lens"])
SECRET = {"secret/key": "SECRET\n", "secret/deep/er": "SECRET\n", "open/key": "public\n", "open/secret/key": "public\n"}
# Everything an agent could try with a directory that is denied.
HUNT = """
attempt('read', lambda: open('secret/key').read())
attempt('deep', lambda: open('secret/deep/er').read())
attempt('list', lambda: os.listdir('secret'))
attempt('write', lambda: open('secret/key', 'w'))
attempt('make', lambda: open('secret/new', 'w'))
attempt('move', lambda: os.rename('secret', 'open/moved'))
attempt('exchange', lambda: os.rename('open', 'secret'))
attempt('link', lambda: os.link('secret/key', 'open/link'))
attempt('remove', lambda: os.unlink('secret/key'))
os.symlink('../secret/key', 'open/way')
attempt('way', lambda: open('open/way').read())
attempt('elsewhere', lambda: open('open/secret/key').read())
attempt('work', lambda: open('open/key', 'w').write('changed'))
"""


@pytest.mark.parametrize("mode", ["strict", "permissive"])
@pytest.mark.parametrize(("deny", "view"), [("sec*", "auto"), ("**/sec?et", "auto"), ("{s,t}ec[a-z]*", "always"), ("secret", "never"), ("secret", "always")])
def test_k9_what_is_denied_is_denied_with_all_that_lies_below(arena, deny, view, mode):
    for path, text in SECRET.items():
        arena.box.write(f"repo/{path}", text)
    found = answers(arena.py(HUNT, "--deny", deny, "--lens", view, "--workspace-mode", mode, protect=False))
    elsewhere = "done" if not deny.startswith("**") else "EACCES"
    assert found.pop("work") == "done" and found.pop("elsewhere") == elsewhere
    assert len(found) == 10 and "done" not in found.values(), found
    assert (arena.root / "secret/key").read_text() == "SECRET\n" and sorted(os.listdir(arena.root / "secret")) == ["deep", "key"]
    assert (arena.root / "open/key").read_text() == "changed" and not (arena.root / "open/link").exists()


def test_k9_a_name_that_is_made_later_is_judged_the_same(arena):
    result = arena.py("""
attempt('denied', lambda: os.mkdir('secrets'))
attempt('moved', lambda: (os.mkdir('x'), os.rename('x', 'security')))
attempt('inside', lambda: os.mkdir('src/secrets'))
""", "--deny", "sec*", protect=False)
    assert answers(result) == {"denied": "EACCES", "moved": "EACCES", "inside": "done"}, result
    assert not (arena.root / "secrets").exists() and not (arena.root / "security").exists() and (arena.root / "src/secrets").is_dir()


def test_k9_control_without_a_denial_all_of_it_works(arena):
    arena.box.write("repo/secret/key", "SECRET\n")
    result = arena.py("attempt('read', lambda: open('secret/key').read()); attempt('move', lambda: os.rename('secret', 'moved'))", protect=False)
    assert answers(result) == {"read": "done", "move": "done"}


@VIEWS
def test_a_denied_directory_inside_a_protected_one_is_not_to_be_seen(arena, view):
    arena.box.write("repo/lib/keys/key", "SECRET\n")
    arena.box.write("repo/lib/a", "a\n")
    result = arena.py("""
attempt('denied', lambda: open('lib/keys/key').read())
attempt('read', lambda: open('lib/a').read())
attempt('write', lambda: open('lib/a', 'w'))
attempt('beside', lambda: open('src/new', 'w'))
""", "--deny", "lib/keys", "--protect", "lib", "--lens", view, protect=False)
    found = answers(result)
    assert found.pop("write") in ("EROFS", "EACCES") and (arena.root / "lib/a").read_text() == "a\n"
    assert found == {"denied": "EACCES", "read": "done", "beside": "done"}, result


POLICY = "version: 1\n"
# Ways to have another policy obeyed at the next run.
USURP = """
def evil(path):
    with open(path, 'w') as stream: stream.write('EVIL')
evil('prepared')
attempt('through', lambda: evil('policy.yaml'))
attempt('target', lambda: evil('conf/real.yaml'))
attempt('unlink', lambda: os.unlink('policy.yaml'))
attempt('replace', lambda: os.rename('prepared', 'policy.yaml'))
attempt('hop', lambda: os.rename('prepared', 'conf/hop.yaml'))
attempt('hop away', lambda: os.unlink('conf/hop.yaml'))
attempt('parent', lambda: os.rename('conf', 'conf2'))
attempt('directory link', lambda: os.rename('cfg', 'cfg2'))
attempt('beside', lambda: evil('conf/free'))
"""


def make_policy(arena):
    arena.box.write("repo/conf/real.yaml", POLICY)
    arena.box.link("repo/conf/hop.yaml", "real.yaml")
    arena.box.link("repo/cfg", "conf")
    arena.box.link("repo/policy.yaml", "cfg/hop.yaml")


@VIEWS
@pytest.mark.parametrize("given", ["policy.yaml", "./src/../policy.yaml", "absolute", "outside"])
def test_k8_a_linked_policy_file_is_held_under_every_name(arena, given, view):
    make_policy(arena)
    if given == "absolute":
        given = str(arena.root / "policy.yaml")
    elif given == "outside":
        given = str(arena.box.link("elsewhere.yaml", arena.root / "policy.yaml"))
    found = answers(arena.py(USURP, "--policy", given, "--lens", view, "--no-default-protect", protect=False))
    assert found.pop("beside") == "done"
    assert len(found) == 8 and "done" not in found.values(), found
    assert os.readlink(arena.root / "policy.yaml") == "cfg/hop.yaml" and os.readlink(arena.root / "cfg") == "conf"
    assert os.readlink(arena.root / "conf/hop.yaml") == "real.yaml" and (arena.root / "conf/real.yaml").read_text() == POLICY


def test_k8_control_a_file_that_is_no_policy_can_be_replaced(arena):
    make_policy(arena)
    found = answers(arena.py(USURP, "--no-default-protect", protect=False))
    assert found["through"] == found["unlink"] == found["replace"] == "done" and os.path.isfile(arena.root / "policy.yaml")


def test_folders_and_patterns_mean_both(arena):
    for path in ("lib/a.ts", "lib/a.sh", "src/a.ts"):
        arena.box.write(f"repo/{path}", "old\n")
    result = arena.py("""
attempt('both', lambda: open('lib/a.ts', 'w').write('new'))
attempt('later', lambda: (os.mkdir('lib/new'), open('lib/new/b.ts', 'w').write('new')))
attempt('pattern only', lambda: open('src/a.ts', 'w'))
attempt('folder only', lambda: open('lib/a.sh', 'w'))
attempt('read', lambda: open('lib/a.sh').read())
attempt('make', lambda: open('lib/b.sh', 'w'))
attempt('rename', lambda: os.rename('lib/a.ts', 'lib/a.js'))
""", "--workspace", "lib", "--workspace-mode", "strict", "--within", "{lib,src}/**/*.ts", protect=False)
    found = answers(result)
    assert found.pop("both") == found.pop("later") == "done"
    assert len(found) == 5 and "done" not in found.values(), found
    assert (arena.root / "lib/a.ts").read_text() == (arena.root / "lib/new/b.ts").read_text() == "new"
    assert (arena.root / "lib/a.sh").read_text() == (arena.root / "src/a.ts").read_text() == "old\n"
    assert sorted(os.listdir(arena.root / "lib")) == ["a.sh", "a.ts", "new"]


@VIEWS
def test_a_fence_of_folders_narrows_and_the_policy_file_says_it_too(arena, view):
    for path in ("lib/a/x", "lib/b/x", "docs/x"):
        arena.box.write(f"repo/{path}", "old\n")
    policy = arena.box.write("fence.yaml", "rw: [lib, docs]\nwithin: [lib, src]\n")
    result = arena.py("""
attempt('inside', lambda: open('lib/a/x', 'w').write('new'))
attempt('second fence', lambda: open('lib/b/x', 'w'))
attempt('first fence', lambda: open('docs/x').read())
attempt('grant', lambda: open('src/main.c').read())
attempt('make', lambda: open('lib/b/y', 'w'))
""", "--policy", str(policy), "--within", "lib/a,docs", "--lens", view, protect=False)
    found = answers(result)
    assert found.pop("inside") == "done" and len(found) == 4 and "done" not in found.values(), result
    assert (arena.root / "lib/a/x").read_text() == "new" and (arena.root / "lib/b/x").read_text() == "old\n"


@VIEWS
def test_one_default_is_lifted_and_the_others_hold(arena, view):
    arena.box.write("repo/.vscode/tasks.json", "{}\n")
    result = arena.py("""
attempt('lifted', lambda: open('.vscode/tasks.json', 'w').write('new'))
attempt('missing', lambda: open('.vscode/mcp.json', 'w').write('new'))
attempt('hooks', lambda: open('.git/hooks/post-checkout', 'w').write('new'))
""", "--unprotect", ".vscode", "--lens", view, protect=False)
    found = answers(result)
    assert found.pop("lifted") == found.pop("missing") == "done" and found["hooks"] != "done", result
    assert (arena.root / ".vscode/tasks.json").read_text() == "new" and not (arena.root / ".git/hooks/post-checkout").exists()
    for wrong, word in (("src", "not protected by default"), (".git/hooks/x", "what is protected is .git/hooks")):
        refused = arena.sh("true", "--unprotect", wrong, protect=False)
        assert refused.returncode == 2 and word in refused.stderr, refused
    refused = arena.sh("true", "--unprotect", ".git/config")
    assert refused.returncode == 2 and "asked for (--protect)" in refused.stderr


def test_why_names_the_option_that_lifts_a_refusal(arena):
    def why(path, *options):
        return arena.cordon("why", "--json", "--op", "write", *options, path, cwd=arena.root).json()["remedy"]

    assert why(".git/config") == "lift it with --unprotect '.git/config'"
    assert why("src/main.c", "--ro", ".") == "grant it with --rw 'src/main.c'"
    assert why("src", "--ro", "src") == "grant it for writing (--rw) in place of `src` (--ro)"
    assert why("src/main.c", "--rw", "deep") == "grant it with --rw 'src/main.c'"
    assert why("src/main.c", "--deny", "src") == "remove or narrow that deny, `src` (--deny)"
    assert why("AGENTS.md", "--protect", "AGENTS.md") == "take it off the protected paths: `AGENTS.md` (--protect)"
    assert why("src/main.c", "--within", "deep") == "widen the fence --within deep, or leave it out"
    assert why("src/main.c", "--read-only") == "use a policy that is not read-only"
    assert "--share" in why("/etc/hostname", "--rw", "src")


def test_a14_a_later_run_that_could_not_change_it_need_not_protect_it(arena):
    first = arena.cordon.start("run", "--root", str(arena.root), *arena.protect(), "--", "sh", "-c", "echo up; read x", cwd=arena.root,
                               stdin=subprocess.PIPE)
    assert first.stdout.readline() == b"up\n"
    narrow = arena.sh("echo work >src/new; echo evil >AGENTS.md", "--rw", "src", protect=False)
    assert (arena.root / "src/new").exists() and narrow.returncode != 125
    assert arena.sh("true", "--rw", "src", "--rw", "deep", protect=False).returncode == 125
    assert arena.sh("true", "--within", "src,AGENTS.md", protect=False).returncode == 125
    assert arena.sh("true", "--within", "src", protect=False).returncode == 0
    first.communicate(b"\n", timeout=20)
    arena.assert_unharmed()
