# SPDX-License-Identifier: Apache-2.0
"""The network of a run with a list of hosts: what its start costs, connections and bytes beside slirp4netns and pasta, and idle ones."""
import os
import pathlib
import select
import shutil
import signal
import subprocess
import time

from rows import Row, median, microseconds, run
from run_start import children, medians, make_root

ROUNDS = 300
START_BAR = 1000
CONNECT_BAR = 60
RELAY_BAR = 8.0
IDLE = 1000
IDLE_BAR = 8 << 20
PORT = 45321
CONNECTS = 1000
MEGABYTES = 1000
TURNS = 3
PEER_LIMIT = 60


def start_row(context, root):
    command = [context.cordon, "run", "--root", str(root), "--net"]
    us = medians(context, {"none": [*command, "none", "--", "/bin/true"], "list": [*command, "a.example.com", "--", "/bin/true"]}, ROUNDS)
    more = us["list"] - us["none"]
    yield Row("start with a list, more than with --net none", microseconds(more), f"{microseconds(us['none'])} with none", us["list"] / us["none"],
              "<= 1.00 ms", more <= START_BAR)


def inside(context, root):
    """The command line up to the program; the root has a copy of that."""
    return [context.cordon, "run", "--root", str(root), "--net", f"localhost:{PORT}", "--"]


def kill_session(leader):
    """Kills what is left of a session that we began; pasta moves its processes to process groups of their own."""
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[3]) == leader:
                os.kill(int(stat.parent.name), signal.SIGKILL)
        except (OSError, ValueError):
            pass


def in_cordon(context, root, words):
    return run([*inside(context, root), *words]).stdout.split()


def in_slirp(context, words):
    """A network namespace with slirp4netns; the host's loopback has the address 10.0.2.2 there."""
    holder = subprocess.Popen(["unshare", "-Urn", "sh", "-c", 'echo ready; read go; exec "$@"', "sh", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    read, write = os.pipe()
    slirp = None
    try:
        if not holder.stdout.readline():
            raise RuntimeError("no namespaces for it")
        slirp = subprocess.Popen(["slirp4netns", "--configure", "--mtu=65520", f"--ready-fd={write}", str(holder.pid), "tap0"], pass_fds=[write],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        os.close(write)
        write = -1
        if not select.select([read], [], [], PEER_LIMIT)[0] or not os.read(read, 1):
            slirp.kill()
            raise RuntimeError(slirp.communicate()[1].decode(errors="replace").strip())
        return holder.communicate(b"go\n", timeout=PEER_LIMIT)[0].split()
    finally:
        holder.kill()
        holder.wait()
        for fd in (read, write):
            if fd >= 0:
                os.close(fd)
        if slirp:
            slirp.kill()
            slirp.wait()


# As root pasta becomes the user nobody, fails to map its ids and hangs. As that user it needs a /dev/net/tun that it may open.
AS_NOBODY = ["unshare", "-m", "sh", "-ec", 'mount -t tmpfs none "$0"; mknod "$0/tun" c 10 200; chmod 666 "$0/tun"; mount --bind "$0/tun" /dev/net/tun\n'
             'exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"']


def in_pasta(context, words):
    """Pasta forwards the port of the namespace's loopback to the host's, which it does without a TCP stack of its own."""
    out = context.temp / "pasta"
    device = context.temp / "tun"
    device.mkdir(exist_ok=True)
    command = ["pasta", "--config-net", "-f", "-T", str(PORT), "-t", "none", "-u", "none", "-U", "none", "--", *words]
    with out.open("wb") as stream:  # no pipe: it leaves processes that would keep it open
        pasta = subprocess.Popen([*([*AS_NOBODY, str(device)] if os.getuid() == 0 else []), *command], stdin=subprocess.DEVNULL, stdout=stream,
                                 stderr=stream, start_new_session=True, cwd="/")
    try:
        if pasta.wait(PEER_LIMIT) != 0:
            raise RuntimeError(out.read_text(errors="replace").strip())
    finally:
        kill_session(pasta.pid)
        pasta.wait()
    return out.read_text().splitlines()[-1].split()


def peers(context, root):
    return {"cordon": lambda words: in_cordon(context, root, words), "bare": lambda words: run(words).stdout.split(),
            "slirp4netns": lambda words: in_slirp(context, [word if word != "127.0.0.1" else "10.0.2.2" for word in words]),
            "pasta": lambda words: in_pasta(context, words)}


def measure(ways, words):
    """Medians by way, measured in turns; for a peer that does not run here, why."""
    found = {name: [] for name in ways}
    failed = {}
    for _ in range(TURNS):
        for name, way in ways.items():
            if name in failed:
                continue
            try:
                found[name].append([float(value) for value in way(words)])
                if not found[name][-1]:
                    raise RuntimeError("it said nothing")
            except FileNotFoundError:
                failed[name] = "not installed"
            except subprocess.TimeoutExpired:
                failed[name] = f"takes longer than {PEER_LIMIT} s"
            except (RuntimeError, OSError, ValueError) as error:
                failed[name] = f"does not run here: {(str(error).splitlines() or ['?'])[-1]}"
            if name in failed and name in ("cordon", "bare"):
                raise RuntimeError(f"{name}: {failed[name]}")
    medians_of = {name: [median(values) for values in zip(*rounds)] for name, rounds in found.items() if name not in failed}
    return medians_of, failed


def traffic_rows(context, root, program):
    ways = peers(context, root)
    found, failed = measure(ways, [program, "connect", "127.0.0.1", str(PORT), str(CONNECTS)])
    ours = found["cordon"]
    yield Row("connect", microseconds(ours[0]), f"{microseconds(found['bare'][0])} bare loopback", ours[0] / found["bare"][0],
              f"<= {CONNECT_BAR} us", ours[0] <= CONNECT_BAR)
    for name, value in found.items():
        if name != "cordon":
            yield Row("  connect and the first byte back", microseconds(ours[1]), f"{microseconds(value[1])} {name}", ours[1] / value[1])
    for name, why in failed.items():
        yield Row("  connect and the first byte back", microseconds(ours[1]), f"{name} {why}")
    found, failed = measure(ways, [program, "get", "127.0.0.1", str(PORT), str(MEGABYTES)])
    ours = found["cordon"]
    for name, value in found.items():
        if name != "cordon":
            bar = name == "bare"
            yield Row("relay" if bar else "  relay", f"{ours[0]:.1f} Gbit/s", f"{value[0]:.1f} {name}", ours[0] / value[0], f">= {RELAY_BAR:.0f} Gbit/s" if bar else "",
                      ours[0] >= RELAY_BAR if bar else None)
    for name, why in failed.items():
        yield Row("  relay", f"{ours[0]:.1f} Gbit/s", f"{name} {why}")


def anonymous(pid):
    rows = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(row.split()[1]) * 1024 for row in rows if row.startswith("Anonymous"))


def helper_of(supervisor):
    """It starts with the first connection, which does not wait for it."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for pid in children(supervisor):
            if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "cordon-net":
                return pid
        time.sleep(0.05)
    raise RuntimeError("cordon-net was not started")


def settled(pid):
    """The memory of the helper when it does not change any more: it may be busy with what was accepted."""
    last = -1
    while (now := anonymous(pid)) != last:
        last = now
        time.sleep(0.5)
    return now


def idle_row(context, root, program):
    """What so many idle connections cost cordon-net, beyond what it costs with one."""
    sizes = []
    for n in (1, IDLE):  # the first one starts it
        holder = subprocess.Popen([*inside(context, root), program, "idle", "127.0.0.1", str(PORT), str(n)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        if holder.stdout.readline() != b"ready\n":
            raise RuntimeError("the connections were not made")
        sizes.append(settled(helper_of(holder.pid)))
        holder.communicate(timeout=60)
    more = sizes[1] - sizes[0]
    yield Row(f"{IDLE:,} idle connections", f"{sizes[1] / 1024:.0f} KiB", f"{sizes[0] / 1024:.0f} KiB with one", None, "< 8 MiB", more < IDLE_BAR)


def rows(context):
    root = context.temp / "net"
    make_root(root, 10)
    context.temp.chmod(0o755)  # pasta runs as another user
    program = str(shutil.copy(context.program("net_bench"), root))
    yield from start_row(context, root)
    server = subprocess.Popen([program, "serve", str(PORT)], stdout=subprocess.PIPE)
    try:
        server.stdout.readline()
        yield from traffic_rows(context, root, program)
        yield from idle_row(context, root, program)
    finally:
        server.kill()
        server.wait()
