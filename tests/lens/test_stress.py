# SPDX-License-Identifier: Apache-2.0
"""Work that nobody here wrote, on a lens with a full grant and on the host: the same answers (docs/lens.md lists the differences)."""
import re

import pytest

# All that stress-ng calls file system stressors and that an ordinary user can run, each checking its own results.
STRESSORS = """
    access chattr chdir chmod chown copy-file dentry dir dirdeep dirmany dnotify dup fallocate fcntl file-ioctl filename flock
    fpunch fsize fstat getdent handle hdd inode-flags inotify io iomix lease link locka lockf lockofd mknod open rename symlink
    sync-file touch utime verity xattr seek msync sendfile splice readahead aio
""".split()
# Extents are the host's business.
SKIPPED_ONLY_HERE = {"fiemap"}


def stress(name):
    return ["stress-ng", f"--{name}", "2", f"--{name}-ops", "100", "--timeout", "2", "--verify", "--temp-path", "."]


@pytest.mark.limit(300)
@pytest.mark.parametrize("group", range(6))
def test_file_system_stressors_end_as_on_the_host(lens, group):
    native_dir = lens.box.mkdir("native")
    for name in (STRESSORS + sorted(SKIPPED_ONLY_HERE))[group::6]:
        # In the same namespaces, so that only the file system differs.
        native = lens.run("env", "-C", str(native_dir), *stress(name))
        through = lens.run(*stress(name))
        said = {"native": native, "lens": through}
        skipped = {key: bool(re.search("skipp", done.stderr)) for key, done in said.items()}
        assert through.returncode == native.returncode, f"{native}\n{through}"
        assert skipped["lens"] == (skipped["native"] or name in SKIPPED_ONLY_HERE), f"{native}\n{through}"
    assert lens.names() == []


GIT_WORK = """
set -eu
export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z'
git init -q -b main .
mkdir -p src/deep
for i in $(seq 300); do echo "file $i" >src/f$i.txt; done
for i in $(seq 50); do seq $i >src/deep/n$i; done
ln -s ../src/f1.txt src/link
printf '#!/bin/sh\\necho hi\\n' >run; chmod +x run
git add -A; git commit -qm one
git checkout -qb side
for i in $(seq 100); do echo more >>src/f$i.txt; done
git mv src/deep src/moved; git rm -q src/f300.txt
git commit -qam two
git checkout -q main
echo main >>src/f250.txt; git commit -qam three
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
	sqlite3 db-$mode "begin; with recursive n(i) as (select 1 union all select i+1 from n where i<20000) insert into t(v) select hex(i) from n; commit;"
	for w in 1 2 3; do
		( for i in $(seq 25); do sqlite3 -cmd '.timeout 60000' db-$mode "insert into t(v) values('worker'); update t set v=v||'x' where id=$i;"; done ) &
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


RANDOM_WORK = """
import random
random.seed({seed})
model, size = bytearray(), 0
fd = os.open("f", os.O_RDWR | os.O_CREAT, 0o644)
other = os.open("f", os.O_RDWR)
LIMIT = 300000
def extend(n):
    if len(model) < n:
        model.extend(bytes(n - len(model)))
for step in range(1500):
    kind = random.choice(("write", "write", "read", "read", "truncate", "mapwrite", "mapread", "append", "reopen", "sync"))
    at, n = random.randrange(0, LIMIT), random.choice((1, 511, 4096, 5000, 65536))
    use = random.choice((fd, other))
    if kind == "write":
        data = random.randbytes(n); extend(at + n); model[at:at + n] = data; os.pwrite(use, data, at)
    elif kind == "read":
        got = os.pread(use, n, at)
        assert got == bytes(model[at:at + n]), (step, at, n, len(got))
    elif kind == "truncate":
        if at < len(model): del model[at:]
        else: extend(at)
        os.ftruncate(use, at)
    elif kind in ("mapwrite", "mapread") and len(model) > 8192:
        at = random.randrange(0, len(model) - 4096) // 4096 * 4096
        n = min(8192, len(model) - at)
        with mmap.mmap(use, n, offset=at) as area:
            if kind == "mapread":
                assert area[:] == bytes(model[at:at + n]), (step, at, n)
            else:
                data = random.randbytes(n // 2); area[:len(data)] = data; model[at:at + len(data)] = data
    elif kind == "append":
        with open("f", "ab") as stream:
            data = random.randbytes(n); stream.write(data); model.extend(data)
        if len(model) > 2 * LIMIT:
            os.ftruncate(fd, 1000); del model[1000:]
    elif kind == "reopen":
        os.close(other); other = os.open("f", os.O_RDWR)
    elif kind == "sync":
        os.fsync(use)
    assert os.fstat(use).st_size == len(model), (step, kind, os.fstat(use).st_size, len(model))
import hashlib
out["sum"] = hashlib.sha256(model).hexdigest()
"""


@pytest.mark.parametrize("seed", range(4))
def test_random_work_on_one_file_agrees_with_a_model(lens, seed):
    import hashlib

    out = lens.python(RANDOM_WORK.format(seed=seed))
    assert out["sum"] == hashlib.sha256((lens.root / "f").read_bytes()).hexdigest()


def test_many_processes_at_once(lens):
    """Creates, renames, links, lists and removes from eight processes; nothing is lost and nothing fails."""
    out = lens.python(
        """
        def work(me):
            for i in range(150):
                os.makedirs(f"d{i % 5}/w{me}", exist_ok=True)
                write(f"d{i % 5}/w{me}/f{i}", f"{me} {i}")
                os.rename(f"d{i % 5}/w{me}/f{i}", f"d{(i + 1) % 5}/moved-{me}-{i}") if os.path.isdir(f"d{(i + 1) % 5}") else None
                names(f"d{i % 5}")
            return 0
        for i in range(5):
            os.makedirs(f"d{i}", exist_ok=True)
        pids = []
        for me in range(8):
            pid = os.fork()
            if pid == 0:
                try:
                    work(me)
                except BaseException as error:
                    print(repr(error), file=sys.stderr)
                    os._exit(1)
                os._exit(0)
            pids.append(pid)
        out["status"] = [str(os.waitpid(pid, 0)[1]) for pid in pids]
        out["files"] = str(sum(len([n for n in names(f"d{i}") if n.startswith("moved")]) for i in range(5)))
        out["content"] = all(read(f"d{i}/" + n) == " ".join(n.split("-")[1:]) for i in range(5) for n in names(f"d{i}") if n.startswith("moved"))
        """
    )
    assert out == {"status": ["0"] * 8, "files": "1200", "content": True}
    assert sum(1 for p in lens.root.rglob("moved-*")) == 1200
