# SPDX-License-Identifier: Apache-2.0
"""Many tenants: whether creating and listing cost the same per item however many there are, through one MCP server and through
the command line; and what it costs to hold many sessions at once. The store lies in memory where there is a place for that: the
question is how the work grows, not how fast a disk is."""
import ctypes
import json
import os
import pathlib
import subprocess
import tempfile
import time

from rows import Row, microseconds, run
from run_start import children, private_memory

PROJECTS = 1000
WORKSPACES = 10000
PART = 1000  # the first and the last so many are compared
LIST_ROUNDS = 5
GETS = 300
PAGE = 1000
SETTLED = 1.2  # seconds after which the server knows that the order will stay; see src/store/list.c
GROWTH_BAR = 1.5
SESSIONS = 200
MEMORY_BAR = 1 << 20
PR_SET_CHILD_SUBREAPER = 36
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


class Server:
    """`cordon mcp`, asked one thing at a time."""

    def __init__(self, context, env):
        self.process = subprocess.Popen([context.cordon, "mcp", "--approved"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)

    def tool(self, name, /, **arguments):
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments, "_meta": META}}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        result = json.loads(self.process.stdout.readline())["result"]
        if result.get("isError"):
            raise RuntimeError(result["content"][0]["text"])
        return result["structuredContent"]

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


def timed(function, /, *arguments, **more):
    """(microseconds, the result)"""
    began = time.perf_counter()
    result = function(*arguments, **more)
    return (time.perf_counter() - began) * 1e6, result


def typical(times):
    """The lower quartile: what the machine does besides makes things slower, never faster."""
    return sorted(times)[len(times) // 4]


def growth(what, before, after, unit="each"):
    ratio = after / before
    return Row(what, f"{microseconds(after)} {unit}", f"{microseconds(before)} at the beginning", ratio, f"<= {GROWTH_BAR} x", ratio <= GROWTH_BAR)


def list_all(server, tool, key, **arguments):
    """Everything, page by page."""
    found = []
    while True:
        page = server.tool(tool, limit=PAGE, offset=len(found), **arguments)
        found += page[key]
        if len(found) >= page["total"] or not page[key]:
            return found


def listing(server, tool, key, count, **arguments):
    """Microseconds per item of a whole listing, once what was created has settled."""
    times = []
    time.sleep(SETTLED)
    for _ in range(LIST_ROUNDS):
        took, found = timed(list_all, server, tool, key, **arguments)
        if len(found) != count or len({item["id"] for item in found}) != count:
            raise RuntimeError(f"{tool} gave {len(found)} of {count}")
        times.append(took / count)
    return typical(times)


def command_line(context, env, *arguments):
    """Microseconds of one command, of several runs."""
    return typical([timed(run, [context.cordon, *arguments], env=env)[0] for _ in range(LIST_ROUNDS)])


def projects(context, env):
    server = Server(context, env)
    times = []
    few = None
    for number in range(PROJECTS):
        took, _ = timed(server.tool, "project_create", name=f"p{number}", init_git=False)
        times.append(took)
        if number + 1 == PROJECTS // 10:
            few = listing(server, "project_list", "projects", number + 1)
            few_shown = command_line(context, env, "project", "list", "--json") / (number + 1)
    tenth = PROJECTS // 10
    yield growth(f"create a project, the last of {PROJECTS}", typical(times[:tenth]), typical(times[-tenth:]))
    yield growth(f"list {PROJECTS} projects (and {tenth}), each", few, listing(server, "project_list", "projects", PROJECTS))
    shown = command_line(context, env, "project", "list", "--json") / PROJECTS
    yield growth(f"cordon project list, {PROJECTS} (and {tenth}), each", few_shown, shown)
    server.close()


def workspaces(context, env):
    server = Server(context, env)
    project = server.tool("project_create", name="many", init_git=False)["id"]
    times = []
    few = few_get = None
    for number in range(1, WORKSPACES):  # the default one is there already
        took, made = timed(server.tool, "workspace_create", project_id=project)
        times.append(took)
        if number + 1 == PART:
            few = listing(server, "workspace_list", "workspaces", PART, project_id=project)
            few_get = typical([timed(server.tool, "workspace_get", project_id=project, workspace_id=made["id"])[0] for _ in range(GETS)])
    yield growth(f"create a workspace, the last of {WORKSPACES}", typical(times[:PART]), typical(times[-PART:]))
    many = listing(server, "workspace_list", "workspaces", WORKSPACES, project_id=project)
    yield growth(f"list {WORKSPACES} workspaces (and {PART}), each", few, many)
    many_get = typical([timed(server.tool, "workspace_get", project_id=project, workspace_id=made["id"])[0] for _ in range(GETS)])
    yield growth(f"get one workspace of {WORKSPACES} (and {PART})", few_get, many_get)
    server.close()


def below(pid):
    """All live processes below one, with their names."""
    found = {}
    for child in children(pid):
        try:
            found[child] = pathlib.Path(f"/proc/{child}/comm").read_text().strip()
            found.update(below(child))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def mounts():
    return len(pathlib.Path("/proc/self/mountinfo").read_text().splitlines())


def reap():
    """Takes leave of supervisors that have ended, who were left to us."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return


def wait_until(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: not after {seconds} s")
        time.sleep(0.1)


def sessions(context, env):
    """Many sessions held at once, each in a workspace of its own; then all stopped, and nothing may be left of them."""
    # Supervisors outlive who started them; here they become children of this process, so that they can be counted.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    mounted = mounts()
    server = Server(context, env)
    # Not the server: it is ended at the end, by itself.
    ours = lambda: {pid: name for pid, name in below(os.getpid()).items() if pid != server.process.pid}  # noqa: E731
    made = server.tool("project_create", name="held", workspace_isolation=True, network="none", init_git=False, limits={"max_sessions": SESSIONS})
    start = {"project_id": made["id"], "create_workspace": True, "new_session": True, "command": ["/bin/sleep", "600"]}
    times, ids = [], []
    for number in range(SESSIONS):
        took, session = timed(server.tool, "session_start", workspace_id=f"w{number}", **start)
        times.append(took)
        ids.append(session["session_id"])
    active = server.tool("session_list", status="active", limit=PAGE)["total"]
    running = list(ours().values()).count("sleep")
    if active != SESSIONS or running != SESSIONS:
        raise RuntimeError(f"{active} sessions are active, {running} agents run")
    yield growth(f"start a session, the last of {SESSIONS} held", typical(times[: SESSIONS // 10]), typical(times[-SESSIONS // 10 :]))
    helpers = [pid for pid, name in ours().items() if name != "sleep"]
    held = sum(private_memory(pid) for pid in helpers) / SESSIONS
    text = f"{held / 1024:.0f} KiB private"
    yield Row(f"a held session, of {SESSIONS}", text, f"{len(helpers) / SESSIONS:.1f} processes", held / MEMORY_BAR, "<= 1 MiB", held <= MEMORY_BAR)
    took, _ = timed(lambda: [server.tool("session_stop", session_id=session, grace_seconds=0) for session in ids])
    yield Row(f"stop a session, of {SESSIONS}", f"{microseconds(took / SESSIONS)} each")
    wait_until(lambda: reap() or not ours(), "processes of sessions remain")
    left = server.tool("session_list", status="active")["total"]
    server.close()
    new = mounts() - mounted
    yield Row(f"left of {SESSIONS} sessions", f"{left} active", f"{new} mounts, no process", None, "nothing", left == 0 and new == 0)


def rows(context):
    shared = pathlib.Path("/dev/shm")
    place = shared if os.access(shared, os.W_OK) else context.temp
    with tempfile.TemporaryDirectory(prefix="cordon-bench-store-", dir=place) as temp:
        for part in (projects, workspaces, sessions):
            home = pathlib.Path(temp) / part.__name__
            home.mkdir(mode=0o700)
            yield from part(context, {**os.environ, "CORDON_HOME": str(home)})
