# SPDX-License-Identifier: Apache-2.0
"""Work that nobody here wrote, on a lens with a full grant and on the host: the same answers, but for those docs/lens.md lists."""
import re
import xml.etree.ElementTree

import pytest

from support import TOP

# All that stress-ng calls file system stressors and that an ordinary user can run, and others that use files; each checks
# its own results.
STRESSORS = """
    access chattr chdir chmod chown copy-file dentry dir dirdeep dirmany dnotify dup fallocate fcntl fiemap file-ioctl
    filename flock fpunch fsize fstat getdent handle hdd inode-flags inotify io iomix lease link locka lockf lockofd mknod
    open rename symlink sync-file touch utime verity xattr seek msync mmap sendfile splice readahead revio aio
""".split()
OPTIONS = {"mmap": ["--mmap-file", "--mmap-bytes", "4m"]}
GROUPS = 4
# Modules of Python's own test suite that call the file system, and what of them only starts processes.
PYTHON_TESTS = """
    test_os test_posix test_fileio test_file test_mmap test_fcntl test_shutil test_tempfile test_glob test_pathlib
    test_genericpath test_posixpath test_dbm test_fileinput test_filecmp
""".split()
PYTHON_IGNORED = ["*Spawn*", "*.ExecTests.*", "*URandom*", "*Win32*", "*PidTests*", "*Sched*"]


def differences(suite):
    """What the document says: {name: the table's row} of one suite."""
    section = (TOP / "docs/lens.md").read_text().split("## Differences from the file system itself")[1].split("\n## ")[0]
    found = {}
    for row in re.findall(rf"^\| .* \| {suite}: .* \|$", section, re.MULTILINE):
        for name in re.findall(r"`([^`]+)`", row.rsplit("|", 2)[1]):
            found[name] = row
    assert found, f"no row for {suite}"
    return found


@pytest.fixture
def both(lens):
    """Runs a command on the host's file system and through the view, in equal namespaces; the view stands where the root does."""
    native_dir = lens.box.mkdir("native")
    lens.view = lens.root

    def run(*command, **options):
        native = lens.run("env", "-C", str(native_dir), *command, **options)
        return native, lens.run(*command, **options)

    run.native_dir = native_dir
    return run


def stress(name):
    command = ["stress-ng", f"--{name}", "1", *OPTIONS.get(name, []), f"--{name}-ops", "50"]
    return [*command, "--timeout", "1", "--verify", "--temp-path", "."]


def verdict(done):
    return "skipped" if "skipp" in done.stderr else f"exit {done.returncode}"


@pytest.mark.soak
@pytest.mark.limit(300)
@pytest.mark.parametrize("group", range(GROUPS))
def test_file_system_stressors_end_as_on_the_host(lens, both, group):
    names = STRESSORS[group::GROUPS]
    differ = {}
    for name in names:
        native, through = both(*stress(name))
        if verdict(native) != verdict(through) and name not in differences("stress-ng"):
            native, through = both(*stress(name))  # a stressor that ran out of time does not do so twice
        if verdict(native) != verdict(through):
            differ[name] = f"{native}\n{through}"
    assert set(differ) == set(differences("stress-ng")) & set(names), "\n".join(differ.values()) or "no difference any more"
    assert lens.names() == []


def outcomes(report):
    """{name: how it ended} of each case."""
    found = {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        ends = [tag for tag in ("error", "failure", "skipped") if case.find(tag) is not None]
        found.setdefault(case.get("name").removeprefix("test."), set()).update(ends or ["passed"])
    return found


def compare_python_tests(lens, both, *select):
    """{name: (native, through the lens)} of all cases that were run."""
    ignored = [word for pattern in PYTHON_IGNORED for word in ("-i", pattern)]
    command = ["/usr/bin/python3", "-m", "test", "--tempdir", ".", "--junit-xml", "report.xml", *ignored, *select]
    ended = both(*command, *PYTHON_TESTS, timeout=200)
    native, through = (outcomes(top / "report.xml") for top in (both.native_dir, lens.root))
    assert set(native) == set(through), f"{ended[0]}\n{ended[1]}"
    assert lens.names() == ["report.xml"]
    return {name: (native[name], through[name]) for name in native}


@pytest.mark.soak
@pytest.mark.limit(300)
def test_pythons_own_tests_end_as_on_the_host(lens, both):
    listed = set(differences("Python"))
    found = compare_python_tests(lens, both)
    assert len(found) > 1000
    differ = {name for name, (native, through) in found.items() if native != through}
    new = sorted(differ - listed)
    if new:
        # Some cases look at the clock; what differs because of the lens does so again.
        again = compare_python_tests(lens, both, *(word for name in new for word in ("-m", f"test.{name}")))
        differ -= {name for name in new if again[name][0] == again[name][1]}
    assert differ == listed, {name: found[name] for name in differ ^ listed}


GIT_WORK = """
set -eu
export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z'
git init -q -b main .
mkdir -p src/deep
for i in $(seq 200); do echo "file $i" >src/f$i.txt; done
for i in $(seq 50); do seq $i >src/deep/n$i; done
ln -s ../src/f1.txt src/link
printf '#!/bin/sh\\necho hi\\n' >run; chmod +x run
git add -A; git commit -qm one
git checkout -qb side
for i in $(seq 100); do echo more >>src/f$i.txt; done
git mv src/deep src/moved; git rm -q src/f200.txt
git commit -qam two
git checkout -q main
echo main >>src/f150.txt; git commit -qam three
git merge -q --no-edit side
git rebase -q --onto side HEAD~1 || git rebase --abort
git stash -q || true
echo dirty >>src/f2.txt; git stash -q; git stash pop -q; git checkout -q .
git worktree add -q ../wt side 2>/dev/null || git worktree add -q wt side
git worktree prune
git gc -q; git repack -adq
git fsck --full --strict >/dev/null 2>&1
git clone -q . clone; git -C clone log --oneline | wc -l
git grep -c more | wc -l
rm -rf clone wt
git clean -qfdx
git status --porcelain
git rev-parse HEAD^{tree}
git ls-files -s | sha256sum
git log --format=%H | sha256sum
"""


@pytest.mark.limit(240)
def test_git_works_as_on_the_host(lens):
    lens.box.write("work.sh", GIT_WORK)
    native_dir = lens.box.mkdir("outer/native")
    native = lens.box.run("sh", str(lens.box.path / "work.sh"), cwd=native_dir)
    through = lens.run("sh", str(lens.box.path / "work.sh"))
    assert native.returncode == 0 and native.stdout, str(native)
    assert through.returncode == 0 and through.stdout == native.stdout, f"{native}\n{through}"
    seen_by_host = lens.box.run("git", "-C", str(lens.root), "status", "--porcelain")
    assert seen_by_host.returncode == 0 and seen_by_host.stdout == "", str(seen_by_host)


SQLITE_WORK = """
set -eu
for mode in delete truncate persist wal; do
	sqlite3 db-$mode "pragma journal_mode=$mode; create table t(id integer primary key, v text);" >/dev/null
	sqlite3 db-$mode "begin; with recursive n(i) as (select 1 union all select i+1 from n where i<8000) insert into t(v) select hex(i) from n; commit;"
	for w in 1 2 3; do
		( for i in $(seq 12); do sqlite3 -cmd '.timeout 60000' db-$mode "insert into t(v) values('worker'); update t set v=v||'x' where id=$i;"; done ) &
	done
	wait
	sqlite3 db-$mode "delete from t where id%7=0; vacuum; pragma integrity_check; select count(*), sum(length(v)) from t;"
done
"""


@pytest.mark.limit(240)
def test_sqlite_works_as_on_the_host(lens):
    lens.box.write("work.sh", SQLITE_WORK)
    native = lens.box.run("sh", str(lens.box.path / "work.sh"), cwd=lens.box.mkdir("native"), timeout=110)
    through = lens.run("sh", str(lens.box.path / "work.sh"), timeout=110)
    assert native.returncode == 0 and native.stdout.count("ok\n") == 4, str(native)
    assert through.returncode == 0 and through.stdout == native.stdout, f"{native}\n{through}"
    for mode in ("delete", "truncate", "persist", "wal"):
        seen = lens.box.run("sqlite3", str(lens.root / f"db-{mode}"), "pragma integrity_check; select count(*) from t;")
        assert seen.stdout.startswith("ok\n"), str(seen)
