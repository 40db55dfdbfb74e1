# SPDX-License-Identifier: Apache-2.0
"""Fixtures of all tests: the built executable, run as root and as an ordinary user, in directories of their own."""
import itertools
import os
import shutil
import signal
import threading

import pytest

from internet import Internet, Machine
from support import PATIENCE, Box, Cordon, Leftovers, become_subreaper, built_executable, callers, remove_tree, world_traversable_base

TEST_LIMIT = 120
NO_SKIPS = os.environ.get("CORDON_NO_SKIPS") == "1"
counter = itertools.count()


def pytest_configure(config):
    become_subreaper()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """No test hangs: each has a time limit of its own."""
    if threading.current_thread() is not threading.main_thread():
        # On a loaded machine a worker of xdist may run its tests in a second thread, where no signal can be handled. The limit of the stage holds.
        yield
        return
    marker = item.get_closest_marker("limit")
    seconds = (marker.args[0] if marker else TEST_LIMIT) * PATIENCE

    def expired(signum, frame):
        raise TimeoutError(f"the test took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, expired)
    signal.alarm(seconds)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def refuse_skip(report):
    """With CORDON_NO_SKIPS=1 a skip is a failure."""
    if NO_SKIPS and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: {reason} (CORDON_NO_SKIPS=1 makes this a failure)"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    refuse_skip(outcome.get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    outcome = yield
    refuse_skip(outcome.get_result())


@pytest.fixture(scope="session")
def base_dir():
    """A directory that every user can reach, for this session."""
    base = world_traversable_base()
    yield base
    remove_tree(base)


@pytest.fixture(scope="session")
def bin_dir(base_dir):
    """The executables, where every user can reach them: the build tree may lie in a private directory."""
    built = built_executable()
    target = base_dir / "bin"
    target.mkdir(mode=0o755)
    for name in ("cordon", "cordon-lens", "cordon-job", "cordon-serve", "cordon-net"):
        source = built if name == "cordon" else built.with_name(name)
        if source.exists():
            shutil.copyfile(source, target / name)
            (target / name).chmod(0o755)
    profiles = built.with_name("profiles")
    if profiles.is_dir():
        shutil.copytree(profiles, target / "profiles")
    return target


@pytest.fixture(params=["root", "user"])
def who(request):
    """Each test that asks for it runs as root and as an ordinary user."""
    caller = callers().get(request.param)
    if not caller:
        pytest.skip("the tests run as an ordinary user, who cannot play root")
    return caller


@pytest.fixture
def box(base_dir, bin_dir, who):
    """A directory of the caller, removed afterwards with every process that a test left."""
    made = Box(base_dir / f"{next(counter)}-{who.name}", who, bin_dir)
    yield made
    made.close()


@pytest.fixture
def cordon(box):
    """`cordon(*args, cwd=, env=, input=, timeout=)` gives stdout, stderr and returncode."""
    return Cordon(box)


@pytest.fixture(scope="session")
def internet(base_dir):
    """An Internet made of network namespaces (internet.py)."""
    if os.getuid() != 0:
        pytest.skip("the tests run as an ordinary user, who cannot make an Internet")
    with Internet(base_dir / "internet") as world:
        yield world


@pytest.fixture
def machine(internet, base_dir, bin_dir, who):
    """A box of the caller on the machine of that Internet, of which nothing was seen yet."""
    internet.mark()
    made = Machine(internet, base_dir / f"{next(counter)}-{who.name}", who, bin_dir)
    yield made
    made.close()


@pytest.fixture
def online(machine):
    """Like `cordon`, on the machine of the Internet."""
    return Cordon(machine)


@pytest.fixture
def leftovers(box):
    """`leftovers.assert_none()`: no process, mount, cgroup or temporary file remains."""
    return Leftovers(box)
