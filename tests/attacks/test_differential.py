# SPDX-License-Identifier: Apache-2.0
"""The engine and the kernel give the same answers: random policies with fences, random trees, and every kind of question.

What the engine says comes from `cordon check` with the options of the run; what the kernel says comes from a program inside, and for
everything that changes something from the host as well. One sandbox answers all questions about one policy.
"""
import json
import pathlib
import random

import pytest

PROBE = pathlib.Path(__file__).parent / "probes" / "differential.py"
QUESTIONS = 10_000  # of each kind of enforcement
PARTS = 5  # tests that share them
POLICIES = 10  # of each part
DIRS = ["", "lib", "lib/a", "lib/a/b", "lib/vendor", "src", "src/a", "src/deep/er", "docs", "libs", "sec", "sec/ret"]
STEMS = ["a", "b", "key", "x.y", "sec"]
ENDS = ["", ".ts", ".txt", ".ts.txt"]
PATTERNS = ["**/*.ts", "lib/**/*.ts", "src/*", "lib/*", "**/key*", "sec*", "*", "**", "**/a*", "{lib,docs}/**", "src/{a,deep}/**/*.{ts,txt}",
            "lib/?", "**/a/**", "[l-s]*/**", "**/[!a]*.txt", "lib/a/*", "**/*.ts.txt"]  # fmt: skip


class Case:
    """One policy, the tree it is for, and questions about it."""

    def __init__(self, chance, by_name):
        self.chance = chance
        self.by_name = by_name
        self.files = sorted({self.name() for _ in range(170)})
        self.literals = set()
        self.options = ["--no-default-protect", "--workspace-mode", chance.choice(["strict"] * 4 + ["permissive"])]
        self.options += ["--lens", "always" if by_name else "never"]
        # Some have the whole root to begin with, so that not everything is refused.
        self.options += chance.choice([[], ["--rw", "."], ["--ro", ".", "--rw", "lib"], ["--rw", "lib", "--rw", "src"]])
        for _ in range(chance.randrange(4)):
            option = chance.choice(["--rw", "--ro", "--deny"])
            self.options += [option, self.pattern(option == "--rw")]
        for _ in range(chance.randrange(3)):
            self.options += ["--protect", self.literal(False)]
        for _ in range(chance.choice([0, 0, 1, 1, 2])):
            self.options += ["--within", ",".join(self.pattern(True) for _ in range(chance.randrange(2, 6)))]
        if chance.random() < 0.1:
            self.options.append("--read-only")
        self.questions = self.ask()

    def name(self):
        stem, end = self.chance.choice(STEMS), self.chance.choice(ENDS)
        return f"{self.chance.choice(DIRS)}/{stem}{self.chance.randrange(100)}{end}".lstrip("/")

    def literal(self, must_exist):
        kind = self.chance.random()
        if kind < 0.6:
            found = self.chance.choice(DIRS[1:])
        elif kind < 0.8 or must_exist:
            found = self.chance.choice(self.files)
        else:
            found = self.name()
        self.literals.add(found)
        return found

    def pattern(self, must_exist):
        if self.by_name and self.chance.random() < 0.7:
            return self.chance.choice(PATTERNS)
        return self.literal(must_exist)

    def ask(self):
        """No path is asked about twice where an earlier answer could change a later one."""
        fresh = iter(dict.fromkeys(name for name in (self.name() for _ in range(3000)) if name not in self.files))
        missing = [path for path in sorted(self.literals) if path not in self.files and path not in DIRS]
        # A name that is held in its place by a mount of its own can't be taken away, whatever may be written there.
        free = [path for path in self.files if self.by_name or path not in self.literals]
        self.chance.shuffle(free)
        deleted, renamed = free[:35], free[35:70]
        kept = [path for path in self.files if path not in deleted and path not in renamed]
        questions = [("read", path, None) for path in self.chance.choices(self.files, k=50)]
        questions += [("write", path, None) for path in self.chance.choices(kept, k=50)]
        questions += [("create", path, None) for path in [*missing, *(next(fresh) for _ in range(45 - len(missing)))]]
        questions += [("rename", path, target) for path, target in zip(renamed, fresh)]
        questions += [("delete", path, None) for path in deleted]
        return [q for q in questions if q[2] not in missing]


def engine(cordon, repo, case):
    """{(op, path): whether the engine lets it through}"""
    paths = sorted({path for _, path, other in case.questions for path in (path, other) if path})
    options = [word for i, word in enumerate(case.options) if word != "--lens" and (i == 0 or case.options[i - 1] != "--lens")]
    said = {}
    for op in ("read", "write"):
        result = cordon("check", *options, "--op", op, "--stdin", cwd=repo, input="".join(f"{path}\n" for path in paths))
        for line in result.stdout.splitlines():
            verdict, path = line.split(maxsplit=1)
            said[op, path] = verdict != "deny"
    assert {path for _, path in said} == set(paths), result
    return said


def expected(case, said, kind, path, other):
    if kind == "read":
        return said["read", path]
    return said["write", path] and (kind != "rename" or said["write", other])


def differences(box, cordon, case, number):
    repo = box.mkdir(f"repo-{number}")
    for path in DIRS:
        (repo / path).mkdir(parents=True, exist_ok=True)
    for path in case.files:
        (repo / path).write_text("content\n")
    box.own(repo)
    said = engine(cordon, repo, case)
    result = cordon("run", *case.options, "--", "/usr/bin/python3", "-I", "-S", "-B", "-c", PROBE.read_text(), cwd=repo, input=json.dumps(case.questions))
    assert result.returncode == 0, (case.options, str(result)[-2000:])
    wrong = []
    for (kind, path, other), got in zip(case.questions, json.loads(result.stdout), strict=True):
        may = expected(case, said, kind, path, other)
        there = (repo / path).exists()
        if got == "EXDEV" and kind == "rename" and may and not case.by_name and there:
            continue  # from one mount to another, as between two file systems: programs copy
        on_host = {
            "read": may,
            "write": (repo / path).read_text() == "CHANGED\n" if kind == "write" else None,
            "create": there,
            "rename": bool(other) and not there and (repo / other).exists(),
            "delete": not there,
        }[kind]
        if (got == "done") != may or on_host != may:
            wrong.append(f"{kind} {path} {other or ''}: {got}, on the host {on_host}, not {may}; {' '.join(case.options)}")
    return len(case.questions), [expected(case, said, *q) for q in case.questions], wrong


@pytest.mark.limit(300)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("by_name", [False, True], ids=["mounts", "lens"])
def test_engine_and_kernel_agree(box, cordon, by_name, part):
    chance = random.Random(f"{by_name} {part}")
    asked, answers, wrong = 0, [], []
    for number in range(POLICIES):
        n, said, found = differences(box, cordon, Case(chance, by_name), number)
        asked += n
        answers += said
        wrong += found
    assert not wrong, f"{len(wrong)} of {asked}:\n" + "\n".join(wrong[:20])
    assert asked >= QUESTIONS // PARTS and 0.1 < sum(answers) / len(answers) < 0.9, sum(answers)
