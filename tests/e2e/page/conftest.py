# SPDX-License-Identifier: Apache-2.0
"""A person who is logged in to the page, by bytes or with a browser."""
import pytest

from browsing import Browser, Tab
from serving import Page


@pytest.fixture
def page(cordon):
    person = Page(cordon)
    yield person
    person.stop()


@pytest.fixture(scope="session")
def chromium(base_dir):
    browser = Browser(base_dir)
    yield browser
    browser.close()


@pytest.fixture
def tab(cordon, page, chromium):
    """`tab(**options)` is a browser's tab that is logged in; at the end nothing may have failed in it."""
    tabs = []

    def open(**options):
        link = cordon("open", "--no-browser").stdout.strip()
        tabs.append(Tab(chromium, link, **options))
        return tabs[-1]

    yield open
    for each in tabs:
        each.close()
