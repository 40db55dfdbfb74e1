# SPDX-License-Identifier: Apache-2.0
"""`cordon check-file --stdin` beside picomatch under Node, on one list of paths in a real tree."""
import pathlib
import random
import shutil
import time

from rows import Row, median, rate, run

FOLDERS = "lib,src"
FILES = 20000
REPEAT = 10  # the list is asked this often in one run, so that the start of a process does not count for much
ROUNDS = 11
HERE = pathlib.Path(__file__).resolve().parent


def make_tree(root):
    """A repository of real files: most of them in the workspace, some beside it, some reached through links."""
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    paths = []
    for i in range(FILES):
        top = ("lib", "src", "src", "docs", "libsecret")[i % 5]
        directory = root / top / f"part{i % 97}" / f"deep{i % 13}"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"file{i}.ts").touch()
        paths.append(f"{top}/part{i % 97}/deep{i % 13}/file{i}.ts")
    (root / "lib" / "docs").symlink_to("../docs")
    (root / "lib" / "same").symlink_to("../src")
    (root / "lib" / "passwd").symlink_to("/etc/passwd")
    return paths


def make_list(paths):
    """(path, whether it is inside): the files, and some through links, missing, climbing out and absolute."""
    asked = [(path, path.split("/")[0] in ("lib", "src")) for path in paths]
    for i, (path, inside) in enumerate(asked[:]):
        if i % 20 == 0:
            asked.append((path.replace("file", "missing"), inside))
        elif i % 20 == 1 and path.startswith("src/"):
            asked.append((path.replace("src/", "lib/same/", 1), True))
        elif i % 20 == 3 and path.startswith("docs/"):
            asked.append((f"lib/{path}", False))
        elif i % 200 == 7:
            asked += [("../outside/file", False), ("/etc/passwd", False), ("lib/passwd", False)]
    # Somebody who lists a tree asks directory by directory.
    random.Random(1).shuffle(asked)
    return sorted(asked, key=lambda pair: pair[0].rpartition("/")[0])


def count_inside(answers):
    return sum(1 for answer in answers.splitlines() if answer.startswith(b"inside "))


def rows(context):
    root = context.temp / "tree"
    asked = make_list(make_tree(root))
    text = "".join(f"{path}\n" for path, _ in asked).encode() * REPEAT
    expected = sum(inside for _, inside in asked) * REPEAT
    total = len(asked) * REPEAT
    node = context.node_modules(HERE)

    def ours():
        began = time.perf_counter()
        done = run([context.cordon, "check-file", "--stdin", "--root", str(root), FOLDERS], input=text)
        seconds = time.perf_counter() - began
        if count_inside(done.stdout) != expected:
            raise RuntimeError(f"check-file: {count_inside(done.stdout)} paths inside, not {expected}")
        return seconds

    def peer(how):
        done = run(["node", str(HERE / "picomatch.mjs"), str(node), str(root), FOLDERS, how], input=text)
        if how == "resolve" and count_inside(done.stdout) != expected:
            raise RuntimeError(f"picomatch: {count_inside(done.stdout)} paths inside, not {expected}")
        return float(done.stderr)

    times = {"cordon": [], "text": [], "resolve": []}
    for i in range(ROUNDS):
        times["cordon"].append(ours())
        times["text"].append(peer("text"))
        if i % 4 == 0:  # it takes seconds
            times["resolve"].append(peer("resolve"))
    speed = {name: total / median(values) for name, values in times.items()}
    shutil.rmtree(root)
    yield Row(
        "check-file --stdin, start and exit included",
        rate(speed["cordon"]),
        "",
        None,
        ">= 500 k/s",
        speed["cordon"] >= 500000,
    )
    yield Row(
        "  beside picomatch that resolves links",
        rate(speed["cordon"]),
        f"{rate(speed['resolve'])} without Node's start",
        speed["cordon"] / speed["resolve"],
    )
    yield Row(
        "  beside picomatch on the bare text",
        rate(speed["cordon"]),
        f"{rate(speed['text'])} and links not seen",
        speed["cordon"] / speed["text"],
    )
