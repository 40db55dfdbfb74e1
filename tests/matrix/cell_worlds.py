# SPDX-License-Identifier: Apache-2.0
"""The world that the matrix attacks: a root with every kind of boundary, what lies around it, and how the host looks at all of it."""
import hashlib
import os
import pathlib
import shutil
import stat
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
SECRET = "S3CR3T-of-the-matrix"

# What stands in the root before a run: path to content; None is a directory.
FILES = {
    "AGENTS.md": "the prompt\n", "prot/file": "protected\n", "prot/sub/deep": "protected, deep\n", "conf/held.txt": "held\n",
    "conf/real.md": "behind a link\n", "secret.key": f"#!/bin/sh\necho {SECRET}\n", "deny/key": f"#!/bin/sh\necho {SECRET}\n",
    "deny/sub/key2": f"{SECRET}\n", "ro/file": "read only\n", "ro/sub/file": "read only\n", "mnt/under": "below the share\n",
    "cstate/config.yaml": f"# {SECRET}\n", ".git/HEAD": "ref: refs/heads/main\n",
    ".git/config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n", ".git/hooks/pre-commit": "#!/bin/sh\n", ".git/logs/HEAD": "",
    ".git/objects": None, ".git/refs/heads": None, ".git/info": None, "free": None, "scratch": None,
}  # fmt: skip
AROUND = {"outside/file": f"{SECRET}\n", "outside/dir/file": f"{SECRET}\n", "shared/file": "shared\n"}
EXECUTABLE = ("secret.key", "deny/key", ".git/hooks/pre-commit")
LINKS = {"link.md": "conf/real.md"}
# What the host makes while the run goes on, in directories where a boundary stands.
MADE_BY_HOST = {"conf/made-by-host.txt": "of the host\n", "conf/held.txt.lock": "of the host\n"}

PROTECT = ("AGENTS.md", "prot", "conf/held.txt", "link.md", "late.md", "latedir", "gone/deep/x.md", "conf/late.txt")
DENY = ("secret.key", "deny", "hidden.key")
FOLDERS = "scratch,free,conf,.git"

# Boundaries by kind.
BOUNDARIES = {
    "protected": ["AGENTS.md", "prot", "prot/file", "prot/sub/deep", "conf/held.txt", "link.md", "conf/real.md"],
    "pinned": ["conf", ".git"],
    "missing": ["late.md", "latedir", "latedir/x", "gone", "gone/deep", "gone/deep/x.md", "prot/new", "conf/late.txt"],
    "denied": ["secret.key", "deny", "deny/key", "deny/sub/key2", "hidden.key"],
    "read-only": ["ro", "ro/file", "ro/sub/new"],
    "share": ["mnt", "mnt/file", "mnt/new"],
    "control": ["cstate", "cstate/config.yaml", "cstate/state", "cstate/planted"],
    "temporary": ["AGENTS.md.lock", ".AGENTS.md.swp", "conf/held.txt~", "conf/held.txt.tmp1", ".git/config.lock"],
    "host's": ["conf/made-by-host.txt", "conf/held.txt.lock"],
    "git": [".git/config", ".git/hooks", ".git/hooks/pre-commit", ".git/hooks/planted", ".git/commondir"],
    "default": [".claude", ".mcp.json"],
    "outside": ["../outside", "../outside/file", "../outside/new"],
}  # fmt: skip
NO_LINKS = [".git/logs/planted", ".git/refs/heads/planted"]
PLACES = ["conf", "free", "scratch/made", ".git/refs"]  # a held directory, a free one, one of the run's own, one of git's
ALLOWED = [f"{kind}:{place}/allowed-{kind}" for place in PLACES for kind in "fnd"]
PINNED = {".", "conf", ".git", ".git/logs", ".git/refs", ".git/objects", ".git/info"}
FREE = ("scratch", "free", ".git/refs/heads")
CONTROL = "cstate"

MODES = {
    "plain": ["--rw", "**"],
    "strict": ["--workspace", FOLDERS, "--workspace-mode", "strict"],
    "permissive": ["--workspace", FOLDERS, "--workspace-mode", "permissive"],
    "view": ["--rw", "**", "--cow"],
    "lens": ["--rw", "**", "--lens", "always"],
    "session": [],
}
# Kinds that a mode has not: a project's settings know neither denials nor read-only paths; what a view shows of a git directory
# and of what the host makes meanwhile is its own copy; the lens judges by name and not by who made a file.
WITHOUT = {"session": {"denied", "read-only", "control"}, "view": {"git", "host's", "temporary", "control"}, "lens": {"host's"}}


def targets(mode):
    """The third table of the matrix: words for the attacker, the same in each world of a mode."""
    names = [name for kind, found in BOUNDARIES.items() if kind not in WITHOUT.get(mode, ()) for name in found]
    return [f"b:{name}" for name in names] + ([f"g:{name}" for name in NO_LINKS] if mode != "view" else []) + ALLOWED


def build_attacker(target):
    """Builds the attacker, which runs inside, without sanitizers."""
    sources = [str(path) for path in sorted(HERE.glob("*.c"))]
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-static", "-D_GNU_SOURCE", "-o", str(target), *sources], check=True)
    target.chmod(0o755)
    return target


def populate(top, around, attacker, box):
    """Writes the world: the root at `top`, what lies around it in the directory `around`."""
    for base, files in ((top, FILES), (around, AROUND)):
        for name, content in files.items():
            path = base / name
            (path if content is None else path.parent).mkdir(parents=True, exist_ok=True)
            if content is not None:
                path.write_text(content)
                path.chmod(0o755 if name in EXECUTABLE else 0o644)
    for name, to in LINKS.items():
        (top / name).symlink_to(to)
    for name in ("secret.key", "deny/key"):
        os.setxattr(top / name, "user.secret", SECRET.encode())
    for name in ("AGENTS.md", "prot/file", "ro/file", "conf/held.txt"):
        os.setxattr(top / name, "user.secret", b"no")
    (top / CONTROL).chmod(0o700)
    shutil.copyfile(attacker, top / "scratch/attacker")
    (top / "scratch/attacker").chmod(0o755)
    box.own(top, around)


def made_by_host(top, box):
    for name, content in MADE_BY_HOST.items():
        (top / name).write_text(content)
        box.own(top / name)


def look(path):
    """Everything about one name that an attack could change."""
    st = os.lstat(path)
    content = None
    if stat.S_ISREG(st.st_mode):
        with open(path, "rb") as file:
            content = hashlib.sha256(file.read()).hexdigest()
    elif stat.S_ISLNK(st.st_mode):
        content = os.readlink(path)
    attributes = tuple((name, os.getxattr(path, name, follow_symlinks=False)) for name in os.listxattr(path, follow_symlinks=False))
    links = st.st_nlink if not stat.S_ISDIR(st.st_mode) else 0
    # A link has no content that its times could tell of: whoever may name it may give it others.
    times = () if stat.S_ISLNK(st.st_mode) else (st.st_mtime_ns, st.st_ctime_ns)
    return (oct(st.st_mode), st.st_uid, st.st_gid, st.st_ino, links, times, content, attributes)


def is_free(name):
    """Whether the run may do as it likes with this name. With RESOLVE_IN_ROOT "../outside" is a new name in the root."""
    return name.startswith(tuple(f"{top}/" for top in (*FREE, "outside"))) or name == "outside" or pathlib.PurePath(name).name.startswith("allowed-")


def digest(top):
    """{name: all about it} of a tree, but for what a run may change. Of cordon's own state only what no run of it changes."""
    found = {}
    for base, directories, files in os.walk(top):
        for name in [*directories, *files]:
            path = os.path.join(base, name)
            short = os.path.relpath(path, top)
            if is_free(short):
                if name in directories:
                    directories.remove(name)
                continue
            if short in PINNED or short in FREE or short.startswith(f"{CONTROL}/state") or short == CONTROL:
                found[short] = (stat.S_IFMT(os.lstat(path).st_mode), os.lstat(path).st_ino)
            elif short in MADE_BY_HOST:
                # Landlock judges no modes, owners, times and attributes, and the agent has the user's id (docs/threat-model.md).
                mode, _, _, inode, links, _, content, _ = look(path)
                found[short] = (stat.S_IFMT(int(mode, 8)), inode, links, content)
            else:
                found[short] = look(path)
            if short == f"{CONTROL}/state":
                directories.remove(name)
    return found


def changes(before, after):
    """What differs, as lines."""
    lines = []
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            lines.append(f"{name} is gone")
        elif name not in before:
            lines.append(f"{name} is new: {after[name]}")
        elif before[name] != after[name]:
            lines.append(f"{name}: {before[name]} became {after[name]}")
    return lines
