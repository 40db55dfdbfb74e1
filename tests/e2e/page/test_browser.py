# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: for people who do not see it, in the dark, on a narrow screen, by keyboard, and without script."""
import re

import pytest

from worlds import World


@pytest.fixture
def world(box, cordon):
    return World(box, cordon)


def paths(world):
    """Every page, with a thing on it."""
    return {
        "home": "/",
        "changes": "/changes",
        "view": f"/changes/{world.view}",
    }


def test_every_page_is_accessible_in_light_and_dark_and_fits_a_narrow_screen(world, tab):
    """Pictures are kept for people to look at."""
    for scheme, width in (("light", 1280), ("dark", 360)):
        person = tab(colorScheme=scheme, viewport={"width": width, "height": 900})
        for name, path in paths(world).items():
            person.goto(path)
            person.picture(f"{name}-{scheme}")
            assert person.axe() == [], (name, scheme)
            assert not person.overflows(), (name, width)
