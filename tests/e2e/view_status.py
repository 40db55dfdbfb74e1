# SPDX-License-Identifier: Apache-2.0
"""Random work in a repository. After each step git must say the same with what it remembers of earlier steps and with nothing remembered.

Runs inside a view; the argument is the seed. Prints how many answers were compared, and how many of them were different ones."""
import os
import random
import shutil
import subprocess
import sys

ROUNDS = 40
random.seed(int(sys.argv[1]))


def status(*options, **env):
    command = ["git", *options, "status", "--porcelain", "--ignored"]
    return subprocess.run(command, env=os.environ | env, capture_output=True, text=True, check=True).stdout


def tree():
    return [(top, dirs, files) for top, dirs, files in os.walk(".") if not top.startswith("./.git")]


def any_dir():
    return random.choice([top for top, _, _ in tree()])


def any_file():
    return random.choice([f"{top}/{name}" for top, _, files in tree() for name in files])


def fresh():
    return f"{any_dir()}/n{random.randrange(10**9)}"


def write(path):
    with open(path, "a", encoding="utf-8") as file:
        file.write("more\n")


def move_dir():
    dirs = [top for top, _, _ in tree() if top != "."]
    if dirs:
        source, target = random.choice(dirs), fresh()
        if not target.startswith(f"{source}/"):
            os.rename(source, target)


def remove_dir():
    dirs = [top for top, _, _ in tree() if top.count("/") > 1]
    if dirs:
        shutil.rmtree(random.choice(dirs))


STEPS = [
    lambda: write(fresh()), lambda: write(any_file()), lambda: os.remove(any_file()), lambda: os.mkdir(fresh()), move_dir, remove_dir,
    lambda: os.rename(any_file(), fresh()), lambda: os.symlink("nowhere", fresh()), lambda: write(".gitignore"),
    lambda: open(".gitignore", "a", encoding="utf-8").write(f"n{random.randrange(10)}*\n"),
    lambda: subprocess.run(["git", "add", "-A"], check=True),
    lambda: subprocess.run(["git", "commit", "-q", "--allow-empty", "-m", "x"], check=True),
    lambda: subprocess.run(["git", "stash", "-q", "-u"], capture_output=True, check=False),
    lambda: subprocess.run(["git", "checkout", "-q", "HEAD", "--", "."], capture_output=True, check=False),
]

seen = []
for _ in range(ROUNDS):
    random.choice(STEPS)()
    remembered = status()
    asked_again = status("-c", "core.untrackedCache=false", GIT_OPTIONAL_LOCKS="0")
    assert remembered == asked_again, (remembered, asked_again)
    seen.append(remembered)
print(len(seen), len(set(seen)), "UNTR" if b"UNTR" in open(".git/index", "rb").read() else "nothing remembered")
