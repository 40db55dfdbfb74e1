# SPDX-License-Identifier: Apache-2.0
"""Random work and many processes through a lens with a full grant."""
import pytest

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
