# SPDX-License-Identifier: Apache-2.0
"""The workspace that every attack is made on."""
import pytest

from arena import Arena


@pytest.fixture
def arena(box, cordon):
    return Arena(box, cordon)
