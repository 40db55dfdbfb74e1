# SPDX-License-Identifier: Apache-2.0
"""The workspace that every attack is made on, and the programs that attack."""
import os
import pathlib
import shutil

import pytest

from arena import Arena, build_probes


@pytest.fixture
def arena(box, cordon):
    made = Arena(box, cordon)
    yield made
    made.close()


@pytest.fixture(scope="session")
def probes(base_dir):
    """Directory with the programs of probes/, built without sanitizers: they run inside. $CORDON_PROBES has them where a compiler takes long."""
    target = base_dir / "probes"
    target.mkdir(mode=0o755)
    built = os.environ.get("CORDON_PROBES")
    if not built:
        build_probes(target)
    else:
        for path in pathlib.Path(built).iterdir():
            shutil.copy(path, target)
    return target
