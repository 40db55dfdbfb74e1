# SPDX-License-Identifier: Apache-2.0
"""A day's work, reported without one false line. The same work runs plain, strict and through the lens; what was refused to it is read
from the system calls themselves, by strace from the host, and the reports from the audit log. The two lists must be equal."""
import collections
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

import pytest

from support import node_packages

HERE = pathlib.Path(__file__).resolve().parent
pytestmark = pytest.mark.limit(600)

REFUSALS = {"EACCES", "EROFS", "EPERM", "EBUSY"}
GIT = "git -c user.name=day -c user.email=day@example.org -c init.defaultBranch=main -c protocol.file.allow=always"

# Each step is a function of the shell; a step that fails ends the day.
WORK = {
    "git": f"""
        git() {{ command {GIT} "$@"; }}
        git clone -q origin.git clone
        cd clone
        echo more >>a.txt; git add a.txt; git commit -qm more
        git checkout -q -b side HEAD~1; echo side >b.txt; git add b.txt; git commit -qm side
        git rebase -q main; git checkout -q main; git merge -q side; git status --short; git gc -q; git log --oneline | wc -l
        git push -q origin main
    """,
    "npm": """
        cd js
        npm install --offline --no-audit --no-fund --loglevel=error ./tiny-1.0.0.tgz >/dev/null
        node -e 'require("tiny")()'
    """,
    "jest": """
        cd js
        node "$JEST/node_modules/jest/bin/jest.js" --silent 2>/dev/null
        node --test test/ >/dev/null
    """,
    "venv": """
        /usr/bin/python3 -m venv --without-pip venv
        venv/bin/python -c 'import sys; print(sys.prefix)'
    """,
    "build": """
        make -s -C c && c/program && touch c/part.c && make -s -C c && make -s -C c clean
    """,
    "vim": """
        vim() { "$(command -v vim.tiny || command -v vim.basic || echo /usr/bin/vim)" "$@"; }
        cp notes.txt edited.txt
        vim -Nu NONE -es -c '%s/one/two/' -c 'wq' edited.txt </dev/null
        grep -q two edited.txt
        vim -Nu NONE -es -c 'set backup writebackup swapfile' -c '%s/two/three/' -c 'wq' edited.txt </dev/null
        grep -q three edited.txt
    """,
    "sed": """
        sed -i s/three/four/ edited.txt 2>/dev/null || { cp notes.txt edited.txt; sed -i s/one/four/ edited.txt; }
        perl -pi -e 's/four/five/' edited.txt
        grep -q five edited.txt
    """,
}

# Ten violations, each a call that is refused once: what reports call it, where, and the call.
PLANTED = """
import os
def attempt(call, *args):
    try: call(*args)
    except OSError: return
    raise SystemExit(f"was let through: {args}")
opened = lambda path, flags: os.close(os.open(path, flags))
attempt(opened, "kept/config", os.O_WRONLY)
attempt(os.unlink, "kept/config")
attempt(os.rename, "kept/config", "kept/other")
attempt(os.rename, "notes.txt", "kept/config")
attempt(os.mkdir, "never")
attempt(os.symlink, "x", "never")
attempt(opened, ".git/hooks/pre-commit", os.O_WRONLY | os.O_CREAT)
attempt(opened, ".git/config", os.O_WRONLY)
attempt(os.unlink, ".git/config")
attempt(opened, "never", os.O_WRONLY | os.O_CREAT)
"""
N_PLANTED = 10

RUNS = {
    "plain": (),
    "strict": ("--workspace", ".", "--workspace-mode", "strict"),
    "lens": ("--lens", "always"),
    "lens by name": ("--rw", "**", "--deny", "**/*.secret"),
}
PROTECT = ("--protect", "kept/config", "--protect", "never")


def pack(box, target, files):
    """As `npm pack` does, which takes as long as all the rest of the morning."""
    with tarfile.open(target, "w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text), 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))
    box.own(target)


@pytest.fixture
def project(box):
    """What a developer has in the morning, and a place for the day."""
    top = box.mkdir("project")
    for name, text in {
        "notes.txt": "one\n", "kept/config": "kept\n", "top.secret": "s\n",
        "c/part.c": "int part(void) { return 42; }\n", "c/main.c": "int part(void);\nint main(void) { return part() != 42; }\n",
        "c/Makefile": "program: part.o main.o\n\t$(CC) -o $@ part.o main.o\n%.o: %.c\n\t$(CC) -O1 -c -o $@ $<\nclean:\n\trm -f *.o program\n",
        "js/package.json": '{"name": "day", "version": "1.0.0", "private": true}\n',
        "js/jest.config.js": "module.exports = {testMatch: ['**/*.jest.js'], coverageDirectory: 'coverage', collectCoverage: true};\n",
        "js/sum.js": "module.exports = (a, b) => a + b;\n",
        "js/sum.jest.js": "const sum = require('./sum');\ntest('two', () => expect(sum(1, 1)).toBe(2));\n",
        "js/test/a.test.js": 'const test = require("node:test"); const assert = require("node:assert");\n'
                             'test("two", () => assert.strictEqual(1 + 1, 2));\n',
    }.items():
        box.write(f"project/{name}", text)
    pack(box, top / "js/tiny-1.0.0.tgz", {
        "package/package.json": '{"name": "tiny", "version": "1.0.0", "main": "index.js"}\n', "package/index.js": "module.exports = () => 1;\n",
    })
    made = box.run("sh", "-ec", f"""
        {GIT} init -q seed; cd seed; echo a >a.txt; {GIT} add a.txt; {GIT} commit -qm first; echo b >>a.txt; {GIT} commit -qam second; cd ..
        {GIT} clone -q --bare seed origin.git; rm -rf seed; cp -a origin.git ../origin.git; {GIT} init -q .
    """, cwd=top)
    assert made.returncode == 0, made
    return top


# Not of our own processes (the hand, the supervisor), which act for the work.
CALL = re.compile(r"^\d+<(?!cordon)[^>]*> +(?:<\.\.\. )?(\w+)\((.*)\) += -1 (E\w+)")
PATH = re.compile(r'(AT_FDCWD<([^>]*)>|\d+<([^>]*)>), "((?:[^"\\]|\\.)*)"')


def refusals(trace, root):
    """(operation, path below the root) of every refused call that is an access, in the words of docs/watch.md."""
    found = collections.Counter()
    for line in trace.read_text(errors="replace").splitlines():
        call = CALL.match(line)
        if not call or call.group(3) not in REFUSALS:
            continue
        name, args = call.group(1), call.group(2)
        paths = [os.path.normpath(os.path.join(one[1] or one[2], one[3])) for one in PATH.findall(args)]
        if not paths:
            # The older calls do not say where they start; the day is spent below the root.
            texts = re.findall(r'"((?:[^"\\]|\\.)*)"', args)[1 if name == "symlink" else 0:]
            paths = [text if text.startswith("/") else f"{root}/{text}" for text in texts]
        op = operation(name, args)
        if op and paths and paths[0].startswith(str(root)):
            found[op, tuple(os.path.relpath(path, root) for path in paths)] += 1
    return found


def operation(name, args):
    if name in ("open", "openat", "openat2", "creat"):
        if "O_PATH" in args or ("O_DIRECTORY" in args and "O_TMPFILE" not in args):
            return None
        return "write" if name == "creat" or re.search("O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", args) else "read"
    kinds = {"mkdir": "create", "mknod": "create", "symlink": "create", "link": "create", "bind": "create", "unlink": "delete", "rmdir": "delete",
             "rename": "rename", "execve": "execute", "truncate": "write", "chmod": "write", "fchmod": "write", "chown": "write",
             "fchown": "write", "lchown": "write", "utime": "write", "utimens": "write", "setxattr": "write", "lsetxattr": "write"}
    return kinds.get(re.sub(r"(at2?|at)$", "", name))


def reports(box, root):
    found = []
    for record in map(json.loads, (box.state / "state/audit/audit.jsonl").read_text().splitlines()):
        if record["event"] == "violation":
            assert record.get("path"), record
            count = (record.get("detail") or {}).get("count", 1)
            found += [(record["op"], os.path.relpath(record["path"], root))] * (count - 1 if count > 1 else 1)
        assert record["event"] not in ("protected_created", "protected_lost"), record
    return found


def differences(seen, told):
    """Refusals without a report and reports without a refusal. An open that may create is told as what it would have done, and a call with
    two names by the one that was refused."""
    untold, left = [], list(told)
    for (op, paths), count in seen.items():
        for _ in range(count):
            match = next((one for one in left if any(f"/{one[1]}".endswith(f"/{path}") for path in paths) and (one[0] == op or {one[0], op} <= {"write", "create"})), None)
            if match:
                left.remove(match)
            else:
                untold.append((op, paths))
    return untold, left


def spend(box, cordon, project, options, script, mark):
    """Runs a script in a sandbox; what its processes were refused, and what was told."""
    trace = box.path / f"trace-{mark}"
    words = [cordon.path, "run", *PROTECT, *options, "--no-summary", "--", "sh", "-ec", script]
    plain = box.run(*words, cwd=project, timeout=300)
    first = plain, reports(box, project)
    shutil.rmtree(box.state / "state/audit")
    restore(project)
    result = box.run("strace", "-f", "-y", "-Y", "-qq", "-s", "4096", "-e", "trace=%file,bind,fchmod", "-e", "status=failed", "-o", str(trace), *words,
                     cwd=project, timeout=300)
    return first, (result, refusals(trace, project), reports(box, project))


def restore(project):
    """The morning again."""
    for name in ("origin.git", "clone", "venv", "js/node_modules", "js/package-lock.json", "js/coverage", "edited.txt", "c/program"):
        path = project / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    subprocess.run(["cp", "-a", project.parent / "origin.git", project / "origin.git"], check=True)
    (project / "js/package.json").write_text('{"name": "day", "version": "1.0.0", "private": true}\n')


@pytest.mark.long
@pytest.mark.parametrize("step", WORK)
@pytest.mark.parametrize("run", RUNS)
def test_a_days_work_is_reported_without_one_false_line(box, cordon, base_dir, project, run, step):
    options = RUNS[run]
    if step == "jest":
        jest = node_packages(HERE / "day", base_dir, "day-node")
        options += ("--share", f"{jest}:ro", "--env", f"JEST={jest}")
    (plain, told), (traced, seen, told_traced) = spend(box, cordon, project, options, WORK[step], step)
    assert plain.returncode == 0 and traced.returncode == 0, (plain, traced)
    assert differences(seen, told_traced) == ([], []), (seen, told_traced)
    assert told == [] and "BLOCKED" not in plain.stderr and "WARNING" not in plain.stderr, plain
    assert not seen, seen


@pytest.mark.parametrize("run", RUNS)
def test_ten_planted_violations_are_ten_reports(box, cordon, project, run):
    box.write("project/planted.py", PLANTED)
    script = "(" + WORK["build"] + ")\n/usr/bin/python3 -I -S -B planted.py\n(" + WORK["vim"] + ")"
    (plain, told), (traced, seen, told_traced) = spend(box, cordon, project, RUNS[run], script, "planted")
    assert plain.returncode == 0 and traced.returncode == 0, (plain, traced)
    assert sum(seen.values()) == N_PLANTED, seen
    assert differences(seen, told_traced) == ([], []), (seen, told_traced)
    assert len(told) == N_PLANTED and plain.stderr.count("BLOCKED") + plain.stderr.count("times:") <= N_PLANTED, (told, plain.stderr)
    assert (project / "kept/config").read_text() == "kept\n" and not (project / "never").exists()


def test_the_tools_of_the_day_are_there():
    tools = "/usr/local/bin:/usr/bin:/bin"
    assert shutil.which("vim.tiny", path=tools) or shutil.which("vim", path=tools), "vim is missing: scripts/setup test"
    for tool in ("git", "npm", "node", "make", "cc", "strace", "perl"):
        assert shutil.which(tool, path=tools), f"{tool} is missing: scripts/setup test"
    assert subprocess.run(["/usr/bin/python3", "-c", "import venv"], check=False).returncode == 0
