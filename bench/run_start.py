# SPDX-License-Identifier: Apache-2.0
"""Starting a sandbox: `cordon run` beside bubblewrap with the same mounts, crun and a bare fork and exec; what a held run
costs in memory; and whether the size of the tree matters."""
import json
import os
import pathlib
import shutil
import subprocess
import time

from rows import Row, microseconds, run

ROUNDS = 300
TREE_ROUNDS = 200
TREES = (10, 10000, 1000000)
COMMAND = "/bin/true"
BWRAP_BAR = 0.7
TREE_BAR = 1.10
MEMORY_BAR = 1 << 20


def make_root(root, files):
    """A repository with so many files, a thousand to a directory."""
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (root / ".git" / "config").write_text("[core]\n\tbare = false\n")
    for start in range(0, files, 1000):
        directory = root / f"d{start // 1000}"
        directory.mkdir()
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        for i in range(start, min(start + 1000, files)):
            os.close(os.open(f"f{i}", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=fd))
        os.close(fd)


def plan(context, root):
    done = run([context.cordon, "run", "--root", str(root), "--net", "none", "--dry-run", "--json", "--", COMMAND])
    return json.loads(done.stdout)


def bwrap_arguments(made):
    """The plan's mounts in bubblewrap's words. Small files that the plan writes are left out, to bubblewrap's favour."""
    arguments = ["bwrap", "--unshare-all", "--die-with-parent", "--clearenv"]
    for step in made["steps"]:
        kind, path = step["step"], step["path"]
        if kind == "directory":
            arguments += ["--dir", path]
        elif kind == "link":
            arguments += ["--symlink", step["target"], path]
        elif kind == "bind":
            option = "--dev-bind" if step.get("device") else "--ro-bind" if step["read_only"] else "--bind"
            arguments += [option, step["source"], path]
        elif kind == "pin":
            arguments += ["--bind", f"{made['root']}/{step['source']}", path]
        elif kind in ("private", "mask"):
            arguments += ["--tmpfs", path]
        elif kind == "proc":
            arguments += ["--proc", path]
    for variable in made["env"]:
        arguments += ["--setenv", *variable.split("=", 1)]
    return arguments + ["--chdir", made["cwd"], *made["argv"]]


def bwrap_everyday(root):
    """What people write down for an agent: the system read-only, the workspace, private /tmp, /proc and /dev."""
    arguments = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib64"):
        if os.path.islink(f"/{name}"):
            arguments += ["--symlink", os.readlink(f"/{name}"), f"/{name}"]
    for name in ("/etc/passwd", "/etc/group", "/etc/resolv.conf", "/etc/ssl"):
        arguments += ["--ro-bind-try", name, name]
    return arguments + ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", str(root), str(root), "--chdir", str(root), COMMAND]


def crun_bundle(context, made):
    """A bundle for crun with the plan's binds; None where crun is not installed."""
    if not shutil.which("crun"):
        return None
    bundle = context.temp / "bundle"
    (bundle / "rootfs").mkdir(parents=True)
    run(["crun", "spec"], cwd=bundle)
    config = json.loads((bundle / "config.json").read_text())
    config["process"].update(terminal=False, args=made["argv"], cwd="/", env=made["env"])
    config["root"] = {"path": "rootfs", "readonly": False}
    for step in made["steps"]:
        if step["step"] == "link":
            link = bundle / "rootfs" / step["path"].lstrip("/")
            if link.parent == bundle / "rootfs":
                link.symlink_to(step["target"])
        elif step["step"] == "bind" and not step.get("device"):
            options = ["bind", "ro" if step["read_only"] else "rw"]
            config["mounts"].append(
                {"destination": step["path"], "type": "bind", "source": step["source"], "options": options}
            )
    (bundle / "config.json").write_text(json.dumps(config))
    return ["crun", "--cgroup-manager=disabled", f"--root={context.temp}/crun", "run", f"--bundle={bundle}", "cordon-bench"]


# crun refuses a host with both versions of cgroups, so it sees only the second, in a mount namespace.
ONE_CGROUP_VERSION = ["unshare", "-m", "sh", "-c", 'mount -t cgroup2 none /sys/fs/cgroup && exec "$@"', "sh"]


def figures(context, commands, rounds, wrapper=(), first=False):
    """What spawn_bench says of each command, by name, measured in turns: microseconds, to the end or to the first byte, and processor time."""
    words = []
    for name, command in commands.items():
        words += [";"] * bool(words) + [name, *command]
    done = run([*wrapper, context.program("spawn_bench"), *["-f"] * first, str(rounds), *words])
    found = {}
    for row in done.stdout.decode().splitlines():
        name, median, tenth, _ninetieth, _multiple, least, processor = row.split("\t")
        found[name] = {"median": float(median), "tenth": float(tenth), "least": float(least), "cpu": float(processor)}
    return found


def medians(context, commands, rounds, wrapper=()):
    """Median microseconds by name."""
    return {name: found["median"] for name, found in figures(context, commands, rounds, wrapper).items()}


def works(command):
    return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0


def private_memory(pid):
    """Bytes that only this process has, from smaps_rollup."""
    rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(row.split()[1]) * 1024 for row in rollup if row.startswith("Private_"))


def children(pid):
    return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def held_memory(context, root):
    """Private bytes of the supervisor and of init while an agent sleeps."""
    holder = subprocess.Popen(
        [context.cordon, "run", "--root", str(root), "--net", "none", "--", "/bin/sleep", "60"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 10
        while True:
            helpers, agents = [holder.pid], []
            for pid in helpers:
                for child in children(pid):
                    name = pathlib.Path(f"/proc/{child}/comm").read_text().strip()
                    (agents if name == "sleep" else helpers).append(child)
            if agents:
                break
            if time.monotonic() > deadline or holder.poll() is not None:
                raise RuntimeError("the held run did not start")
            time.sleep(0.02)
        time.sleep(0.3)
        return sum(private_memory(pid) for pid in helpers), len(helpers)
    finally:
        holder.terminate()
        holder.wait(20)


def start_rows(context, root):
    made = plan(context, root)
    ours = [context.cordon, "run", "--root", str(root), "--net", "none", "--", COMMAND]
    peers = {"cordon": ours, "bwrap": bwrap_arguments(made), "everyday": bwrap_everyday(root), "fork": [COMMAND]}
    us = medians(context, peers, ROUNDS)
    ratio = us["cordon"] / us["bwrap"]
    yield Row(
        "cordon run --net none -- true",
        microseconds(us["cordon"]),
        f"{microseconds(us['bwrap'])} bubblewrap, same mounts",
        ratio,
        f"<= {BWRAP_BAR}",
        ratio <= BWRAP_BAR,
    )
    yield Row("  beside bubblewrap as people call it", microseconds(us["cordon"]), microseconds(us["everyday"]), us["cordon"] / us["everyday"])
    yield Row("  beside a bare fork and exec", microseconds(us["cordon"]), microseconds(us["fork"]), us["cordon"] / us["fork"])
    yield crun_row(context, made, ours)


def crun_row(context, made, ours):
    crun = crun_bundle(context, made)
    if not crun:
        return Row("  beside crun", "", "not installed")
    wrapper = [] if works(crun) else ONE_CGROUP_VERSION
    if wrapper and not works([*wrapper, *crun]):
        return Row("  beside crun", "", "does not run here")
    us = medians(context, {"cordon": ours, "crun": crun}, ROUNDS // 3, wrapper)
    return Row("  beside crun", microseconds(us["cordon"]), microseconds(us["crun"]), us["cordon"] / us["crun"])


def tree_rows(context):
    roots = {files: context.temp / f"files{files}" for files in TREES}
    for files, root in roots.items():
        make_root(root, files)
    us = medians(
        context,
        {
            str(files): [context.cordon, "run", "--root", str(root), "--net", "none", "--", COMMAND]
            for files, root in roots.items()
        },
        TREE_ROUNDS,
    )
    base = us[str(TREES[0])]
    for files in TREES[1:]:
        value = us[str(files)]
        yield Row(
            f"start with {files:,} files in the root",
            microseconds(value),
            f"{microseconds(base)} with {TREES[0]} files",
            value / base,
            f"<= {TREE_BAR}",
            value / base <= TREE_BAR,
        )
    for root in roots.values():
        shutil.rmtree(root)


def rows(context):
    if "run" not in context.commands():
        yield Row("cordon run", "not built")
        return
    os.environ["CORDON_HOME"] = str(context.temp / "state")
    root = context.temp / "root"
    make_root(root, 10)
    yield from start_rows(context, root)
    if os.getuid() == 0:
        held, processes = held_memory(context, root)
        yield Row(
            f"private memory of a held run, {processes} processes", f"{held / 1024:.0f} KiB", bar="<= 1024 KiB", ok=held <= MEMORY_BAR
        )
    else:
        # Init is not dumpable, so that its memory is nobody's business but root's.
        yield Row("private memory of a held run", "only root can see it")
    yield from tree_rows(context)
