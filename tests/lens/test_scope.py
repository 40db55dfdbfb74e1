# SPDX-License-Identifier: Apache-2.0
"""What a scope by name means to a run, looked at from inside and from the host."""
import os
import stat
import subprocess

import pytest

TS = ("--rw", "src/**/*.ts")


@pytest.fixture
def tree(lens):
    lens.write("src/a.ts", "a\n")
    lens.write("src/deep/er/b.ts", "b\n")
    lens.write("src/secret.txt", "SECRET\n")
    lens.write("src/deep/key.pem", "SECRET\n")
    lens.write("docs/readme.md", "SECRET\n")
    lens.write("top.ts", "SECRET\n")
    return lens


def snapshot(root):
    """Everything about a tree that a run could change, but for access times."""
    found = {}
    for top, directories, files in os.walk(root):
        for name in [*directories, *files]:
            path = os.path.join(top, name)
            info = os.lstat(path)
            content = os.readlink(path) if stat.S_ISLNK(info.st_mode) else None
            if stat.S_ISREG(info.st_mode):
                with open(path, "rb") as stream:
                    content = stream.read()
            found[path] = (info.st_ino, info.st_mode, info.st_nlink, info.st_mtime_ns, content)
    return found


def test_files_in_scope_are_read_and_written(tree):
    out = tree.python(
        """
        out["read"] = [read("src/a.ts"), read("src/deep/er/b.ts")]
        write("src/a.ts", "changed")
        out["again"] = read("src/a.ts")
        """,
        rules=TS,
    )
    assert out == {"read": ["a\n", "b\n"], "again": "changed"}
    assert tree.read("src/a.ts") == "changed"


def test_files_outside_the_scope_give_permission_denied_and_stay_as_they_are(tree):
    before = snapshot(tree.root)
    out = tree.python(
        """
        for path in ["src/secret.txt", "src/deep/key.pem", "docs/readme.md", "docs", "top.ts"]:
            out[path] = [answer(call, path) for call in (read, write, os.stat, os.unlink, lambda p: os.chmod(p, 0o777),
                         lambda p: os.truncate(p, 0), os.utime, lambda p: os.rename(p, "src/x.ts"), lambda p: os.link(p, "src/y.ts"),
                         lambda p: os.setxattr(p, "user.x", b"1"))]
        """,
        rules=TS,
    )
    assert all(set(answers) == {"EACCES"} for answers in out.values()), out
    assert snapshot(tree.root) == before


def test_listings_show_what_is_granted_and_what_leads_to_it(tree):
    out = tree.python(
        """
        for path in [".", "src", "src/deep", "src/deep/er"]:
            out[path] = names(path)
        out["types"] = [e.is_dir() for e in sorted(os.scandir("src"), key=lambda e: e.name)]
        """,
        rules=TS,
    )
    assert out == {".": ["src"], "src": ["a.ts", "deep"], "src/deep": ["er"], "src/deep/er": ["b.ts"], "types": [False, True]}


def test_a_name_out_of_scope_that_is_missing_looks_like_one_that_exists(tree):
    out = tree.python('out["answers"] = [answer(os.stat, p) for p in ("docs/missing", "docs", "nothing.md", "top.ts")]', rules=TS)
    assert set(out["answers"]) == {"EACCES"}


def test_the_wildcard_reaches_files_that_come_later(tree):
    out = tree.python(
        """
        write("src/new.ts")
        os.makedirs("src/made/here")
        write("src/made/here/new.ts")
        out["refused"] = [answer(write, p) for p in ("src/new.sh", "src/made/here/new.sh", "new.ts", "src/made/ts", "docs/new.ts")]
        out["mkdir"] = [answer(os.mkdir, p) for p in ("other", "docs/x")]
        """,
        rules=TS,
    )
    assert out == {"refused": ["EACCES"] * 5, "mkdir": ["EACCES"] * 2}
    assert tree.read("src/new.ts") == tree.read("src/made/here/new.ts") == "written\n"
    assert tree.names("src/made/here") == ["new.ts"] and tree.names(".") == ["docs", "src", "top.ts"]


def test_a_read_only_scope_cannot_be_changed(tree):
    before = snapshot(tree.root)
    out = tree.python(
        """
        out["read"] = read("src/a.ts")
        out["open"] = [answer(os.open, "src/a.ts", flags) for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_RDONLY | os.O_TRUNC)]
        out["rest"] = {
            "create": answer(write, "src/new.ts"), "unlink": answer(os.unlink, "src/a.ts"), "chmod": answer(os.chmod, "src/a.ts", 0o600),
            "utime": answer(os.utime, "src/a.ts"), "rename": answer(os.rename, "src/a.ts", "src/c.ts"),
            "link": answer(os.link, "src/a.ts", "src/c.ts"), "symlink": answer(os.symlink, "a.ts", "src/c.ts"),
            "over": answer(os.rename, "src/deep/er/b.ts", "src/a.ts"),
            "fifo": answer(os.mkfifo, "src/f.ts"),
        }
        out["open"].append(answer(os.setxattr, "src/a.ts", "user.x", b"1"))
        out["mode"] = oct(os.stat("src/a.ts").st_mode & 0o777)
        """,
        rules=("--ro", "src/**/*.ts"),
    )
    assert out["read"] == "a\n" and set(out["open"]) == {"EACCES"} and out["mode"] == "0o444"
    assert set(out["rest"].values()) == {"EROFS"}, out
    assert snapshot(tree.root) == before


def test_every_write_grant_counts_as_read_in_a_read_only_policy(tree):
    out = tree.python('out["a"] = [read("src/a.ts"), answer(write, "src/a.ts"), answer(os.unlink, "src/a.ts")]', rules=(*TS, "--read-only"))
    assert out["a"] == ["a\n", "EACCES", "EROFS"]


def test_renames_and_links_are_judged_under_both_names(tree):
    before = {name: tree.read(name) for name in ("src/secret.txt", "docs/readme.md")}
    out = tree.python(
        """
        out["out of scope"] = [answer(os.rename, "src/a.ts", p) for p in ("src/a.txt", "docs/a.ts", "a.ts", "../a.ts")]
        out["into scope"] = [answer(os.rename, p, "src/stolen.ts") for p in ("src/secret.txt", "docs/readme.md", "top.ts")]
        out["link out"] = [answer(os.link, "src/a.ts", p) for p in ("src/a.txt", "docs/a.ts")]
        out["link in"] = [answer(os.link, p, "src/stolen.ts") for p in ("src/secret.txt", "top.ts")]
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        def renameat2(a, b, flags):
            if libc.renameat2(-100, a.encode(), -100, b.encode(), flags) != 0:
                raise OSError(ctypes.get_errno(), "renameat2")
        out["exchange"] = [answer(renameat2, "src/a.ts", p, 2) for p in ("src/secret.txt", "docs/readme.md")]
        out["whiteout"] = answer(renameat2, "src/a.ts", "src/w.ts", 4)
        out["inside"] = answer(renameat2, "src/a.ts", "src/deep/er/b.ts", 2)
        out["swapped"] = [read("src/a.ts"), read("src/deep/er/b.ts")]
        out["noreplace"] = answer(renameat2, "src/a.ts", "src/deep/er/b.ts", 1)
        out["plain"] = answer(os.rename, "src/a.ts", "src/deep/c.ts")
        """,
        rules=TS,
    )
    assert set(out["out of scope"][:3]) == {"EACCES"} and out["out of scope"][3] in ("EXDEV", "EACCES")
    assert set(out["into scope"] + out["link out"] + out["link in"] + out["exchange"]) == {"EACCES"}, out
    assert out["whiteout"] in ("EINVAL", "EPERM")
    assert out["inside"] == "ok" and out["swapped"] == ["b\n", "a\n"] and out["noreplace"] == "EEXIST" and out["plain"] == "ok"
    assert {name: tree.read(name) for name in before} == before
    assert tree.read("src/deep/c.ts") == "b\n"


def test_a_directory_moves_only_when_all_of_it_may(tree):
    tree.write("src/pure/one.ts", "1")
    tree.write("src/pure/sub/two.ts", "2")
    out = tree.python(
        """
        out["mixed"] = answer(os.rename, "src/deep", "src/other")
        out["pure"] = answer(os.rename, "src/pure", "src/moved")
        out["read"] = [read("src/moved/one.ts"), read("src/moved/sub/two.ts"), answer(read, "src/pure/one.ts")]
        write("src/moved/sub/two.ts", "changed")
        """,
        rules=TS,
    )
    assert out == {"mixed": "EXDEV", "pure": "ok", "read": ["1", "2", "ENOENT"]}
    assert tree.read("src/deep/key.pem") == "SECRET\n" and tree.read("src/moved/sub/two.ts") == "changed"


def test_a_directory_too_deep_to_be_judged_is_copied_and_crashes_nobody(lens):
    """Judging all of it would take more stack than there is."""
    lens.write("src/f.ts", "1")
    out = lens.python(
        """
        view = os.getcwd()
        os.makedirs("src/top")
        os.chdir("src/top")
        for _ in range(1200):
            os.mkdir("a")
            os.chdir("a")
        os.chdir(view)
        out["deep"] = [answer(os.rename, "src/top", "src/other"), answer(read, "src/f.ts")]
        os.makedirs("src/near/" + "a/" * 50)
        out["near"] = answer(os.rename, "src/near", "src/moved")
        """,
        rules=TS,
    )
    subprocess.run(["rm", "-r", str(lens.root / "src")], check=True)  # too deep for Python, too
    assert out == {"deep": ["EXDEV", "1"], "near": "ok"}


def test_moving_a_directory_does_not_carry_a_denied_file_into_sight(tree):
    out = tree.python(
        """
        out["move"] = answer(os.rename, "src/deep", "src/other")
        out["read"] = [answer(read, p) for p in ("src/other/key.pem", "src/deep/key.pem")]
        """,
        rules=("--rw", "src", "--deny", "src/deep/key.pem"),
    )
    assert out["move"] == "EXDEV" and "SECRET\n" not in out["read"]


def test_links_are_judged_by_what_they_resolve_to(tree):
    tree.box.link("root/src/pass.ts", "/etc/passwd")
    tree.box.link("root/src/text.ts", "secret.txt")
    tree.box.link("root/src/up.ts", "../docs/readme.md")
    tree.box.link("root/src/dir", "../docs")
    tree.box.link("root/src/good.ts", "deep/er/b.ts")
    tree.box.link("root/way", "src/deep")
    tree.box.link("root/chain.ts", "way/er/b.ts")
    tree.box.link("root/src/loop.ts", "loop.ts")
    before = snapshot(tree.root)
    out = tree.python(
        """
        bad = ["src/pass.ts", "src/text.ts", "src/up.ts", "src/dir/readme.md"]
        out["bad"] = [answer(call, p) for p in bad for call in (read, lambda p: write(p, flags=0), lambda p: os.chmod(p, 0))]
        out["bad"] += [answer(os.readlink, p) for p in bad[:3]]
        out["good"] = [answer(read, p) for p in ("src/good.ts", "way/er/b.ts", "chain.ts")]
        out["loop"] = answer(read, "src/loop.ts")
        out["links made"] = [answer(os.symlink, t, p) for t, p in (("/etc/passwd", "src/m1.ts"), ("../docs/readme.md", "src/m2.ts"), ("a.ts", "src/m3.ts"))]
        out["read through"] = [answer(read, p) for p in ("src/m1.ts", "src/m2.ts", "src/m3.ts")]
        out["made out of scope"] = [answer(os.symlink, "a.ts", p) for p in ("src/m.txt", "m.ts")]
        for p in ("src/m1.ts", "src/m2.ts", "src/m3.ts"):
            os.unlink(p)
        """,
        rules=TS,
    )
    assert set(out["bad"]) == {"EACCES"}, out
    assert out["good"] == ["b\n"] * 3 and out["loop"] in ("ELOOP", "EACCES")
    assert out["links made"] == ["ok"] * 3 and out["read through"] == ["EACCES", "EACCES", "a\n"]
    assert out["made out of scope"] == ["EACCES"] * 2
    after = snapshot(tree.root)
    before.pop(str(tree.root / "src")), after.pop(str(tree.root / "src"))
    assert after == before


def test_links_that_lead_in_a_circle_are_told_as_such_where_their_text_may_be_known(lens):
    lens.box.link("root/src/a.ts", "b.ts")
    lens.box.mkdir("root/src")
    lens.box.link("root/src/b.ts", "../src/a.ts")
    lens.box.link("root/src/abs.ts", str(lens.root / "src/abs.ts"))
    lens.box.mkdir("root/secret")
    lens.box.link("root/secret/round", "../src/c.ts")
    lens.box.link("root/src/c.ts", "../secret/round")
    lens.view = lens.root
    out = lens.python(
        """
        for name in ("a", "b", "abs", "c"):
            path = f"src/{name}.ts"
            out[name] = [answer(os.readlink, path), answer(read, path), answer(os.lstat, path)]
        out["made"] = [answer(os.symlink, "own.ts", "src/own.ts"), answer(os.readlink, "src/own.ts"), answer(read, "src/own.ts")]
        out["probe"] = [answer(os.symlink, "../secret/round", "src/p.ts"), answer(os.readlink, "src/p.ts"), answer(read, "src/p.ts")]
        out["listed"] = names("src")
        """,
        rules=("--rw", "src/**/*.ts"),
    )
    assert out["a"] == ["b.ts", "ELOOP", "ok"] and out["b"] == ["../src/a.ts", "ELOOP", "ok"]
    assert out["abs"] == [str(lens.root / "src/abs.ts"), "ELOOP", "ok"] and out["made"] == ["ok", "own.ts", "ELOOP"]
    # A circle through a place out of scope is not told.
    assert out["c"] == ["EACCES", "EACCES", "ok"] and out["probe"] == ["ok", "EACCES", "EACCES"]
    assert {"a.ts", "own.ts"} <= set(out["listed"])


def test_denied_names_win_and_a_more_specific_grant_decides(lens):
    lens.write("src/.env", "SECRET")
    lens.write("src/app.js", "app")
    lens.write("src/vendor/lib.js", "lib")
    out = lens.python(
        """
        out["env"] = [answer(read, "src/.env"), answer(write, "src/.env"), answer(write, "src/sub.env"), answer(os.rename, "src/app.js", "src/.env")]
        out["names"] = names("src")
        out["vendor"] = [read("src/vendor/lib.js"), answer(write, "src/vendor/lib.js"), answer(write, "src/vendor/new.js")]
        out["app"] = [answer(write, "src/app.js"), answer(write, "src/new.js")]
        """,
        rules=("--rw", "src", "--ro", "src/vendor", "--deny", "**/.env"),
    )
    assert out["env"] == ["EACCES", "EACCES", "ok", "EACCES"] and out["names"] == ["app.js", "sub.env", "vendor"]
    assert out["vendor"] == ["lib", "EACCES", "EROFS"] and out["app"] == ["ok", "ok"]
    assert lens.read("src/.env") == "SECRET"


def test_permissive_mode_lets_through_what_no_rule_forbids(tree):
    tree.write("src/.env", "SECRET")
    out = tree.python(
        """
        out["read"] = [read("docs/readme.md"), answer(write, "docs/new.md"), answer(read, "src/.env"), answer(write, "AGENTS.md")]
        """,
        rules=(*TS, "--deny", "**/.env", "--protect", "AGENTS.md", "--permissive"),
    )
    assert out["read"] == ["SECRET\n", "ok", "EACCES", "EACCES"]


def test_protected_paths_hold_in_place_and_in_name(lens):
    lens.write("AGENTS.md", "rules\n")
    lens.write(".git/config", "[core]\n")
    lens.write(".git/index", "x")
    lens.write("free.txt", "free\n")
    out = lens.python(
        """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        def exchange(a, b):
            if libc.renameat2(-100, a.encode(), -100, b.encode(), 2) != 0:
                raise OSError(ctypes.get_errno(), "renameat2")
        out["read"] = [read("AGENTS.md"), read(".git/config")]
        out["modify"] = [answer(call, p) for p in ("AGENTS.md", ".git/config")
                         for call in (lambda p: os.chmod(p, 0o777), os.utime)]
        out["open"] = [answer(call, p) for p in ("AGENTS.md", ".git/config")
                       for call in (write, lambda p: os.setxattr(p, "user.x", b"1"), lambda p: os.truncate(p, 0))]
        out["leaf"] = [answer(os.unlink, "AGENTS.md"), answer(os.rename, "AGENTS.md", "x"), answer(os.rename, "free.txt", "AGENTS.md"),
                       answer(exchange, "free.txt", "AGENTS.md"), answer(exchange, "AGENTS.md", "free.txt")]
        os.mkdir("twin")
        out["ancestor"] = [answer(os.rename, ".git", "x"), answer(exchange, ".git", "twin"), answer(exchange, "twin", ".git")]
        out["link"] = answer(os.link, "AGENTS.md", "second")
        os.mkdir("staged")
        write("staged/hook")
        out["missing"] = [answer(write, ".env.local"), answer(os.mkdir, "hooks"), answer(os.rename, "staged", "hooks"),
                          answer(os.symlink, "staged", "hooks"), answer(os.mkdir, ".env.local"), answer(os.mkfifo, ".env.local"),
                          answer(os.link, "free.txt", ".env.local"), answer(os.rename, "free.txt", ".env.local"),
                          answer(lambda: socket.socket(socket.AF_UNIX).bind(".env.local")), answer(os.stat, "hooks")]
        out["work"] = [answer(write, ".git/index"), answer(write, ".git/new"), answer(os.rename, ".git/new", "out"), answer(os.rename, "out", ".git/new")]
        """,
        rules=("--rw", "**", "--protect", "AGENTS.md", "--protect", ".git/config", "--protect", ".env.local", "--protect", "hooks/pre-commit"),
    )
    assert out["read"] == ["rules\n", "[core]\n"]
    assert set(out["modify"]) == {"EROFS"} and set(out["open"]) == {"EACCES"}
    assert set(out["leaf"] + out["ancestor"]) == {"EBUSY"}, out
    assert out["link"] == "EROFS"
    assert out["missing"] == ["EACCES"] * 9 + ["ENOENT"], out
    assert out["work"] == ["ok"] * 4
    assert lens.read("AGENTS.md") == "rules\n" and lens.read("free.txt") == "free\n"
    assert not (lens.root / "hooks").exists() and not (lens.root / ".env.local").exists()


def test_protected_links_hold_with_everything_on_their_way(lens):
    lens.write("real/rules.md", "rules\n")
    lens.box.link("root/dir", "real")
    lens.box.link("root/middle", "dir/rules.md")
    lens.box.link("root/AGENTS.md", "middle")
    out = lens.python(
        """
        out["read"] = read("AGENTS.md")
        out["target"] = [answer(write, "real/rules.md"), answer(os.unlink, "real/rules.md"), answer(os.rename, "real", "r")]
        out["links"] = [answer(os.unlink, p) for p in ("AGENTS.md", "middle", "dir")]
        out["free"] = answer(write, "real/other.md")
        """,
        rules=("--rw", "**", "--protect", "AGENTS.md"),
    )
    assert out == {"read": "rules\n", "target": ["EACCES", "EBUSY", "EBUSY"], "links": ["EBUSY"] * 3, "free": "ok"}


def test_names_that_speak_are_names_like_others(lens):
    strange = ["a\x1b[31m.ts", "new\nline.ts", "bidi\u202e.ts", b"inv\xffalid.ts".decode(errors="surrogateescape"), "q?*[x].ts", " .ts"]
    for name in strange:
        lens.write(f"src/{name}", "x")
    out = lens.python(
        """
        listed = os.listdir(b"src")
        out["n"] = [answer(lambda: read(b"src/" + n)) for n in listed]
        out["hex"] = sorted(n.hex() for n in listed)
        out["bad"] = answer(write, b"src/esc\\x1b.sh")
        """,
        rules=TS,
    )
    assert out["n"] == ["x"] * len(strange) and out["bad"] == "EACCES"
    assert out["hex"] == sorted(os.fsencode(n).hex() for n in strange)
