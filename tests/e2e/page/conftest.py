# SPDX-License-Identifier: Apache-2.0
"""A person who is logged in to the page."""
import pytest

from serving import Page


@pytest.fixture
def page(cordon):
    person = Page(cordon)
    yield person
    person.stop()
