# SPDX-License-Identifier: Apache-2.0
"""The workspace that every attack is made on, and the programs that attack."""
import os
import pathlib
import subprocess

import pytest

from arena import Arena

PROBES = pathlib.Path(__file__).resolve().parent / "probes"


@pytest.fixture
def arena(box, cordon):
    return Arena(box, cordon)


@pytest.fixture(scope="session")
def probes(base_dir):
    """Directory with the programs of probes/, built without sanitizers: they run inside."""
    target = base_dir / "probes"
    target.mkdir(mode=0o755)
    for source in sorted(PROBES.glob("*.c")):
        subprocess.run([os.environ.get("CC", "cc"), "-O1", "-static", "-pthread", "-o", str(target / source.stem), str(source)], check=True)
        (target / source.stem).chmod(0o755)
    return target
