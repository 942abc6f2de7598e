"""One browser for all tests that drive it: to start one takes a second and more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.paged import browsing
from tests.web.hostile import build_hostile

expect.set_options(timeout=60_000)  # as long as a busy machine may take


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    build_hostile("")  # scores in an event loop of its own, of which there is none beside Playwright's
    with browsing() as found:
        yield found
