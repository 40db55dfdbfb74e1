# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: without script, in the dark, on a narrow screen, by keyboard, and for people who do not see it."""
import re

import pytest

PAGES = ["/"]


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_accessible_and_fits(tab, path):
    for scheme in ("light", "dark"):
        person = tab(colorScheme=scheme)
        person.goto(path)
        assert person.axe() == [], (path, scheme)
        person.picture(f"{re.sub(r'[^a-z]+', '-', path).strip('-') or 'home'}-{scheme}")
    narrow = tab(viewport={"width": 360, "height": 800})
    narrow.goto(path)
    assert not narrow.overflows()
    narrow.picture(f"{re.sub(r'[^a-z]+', '-', path).strip('-') or 'home'}-narrow")
