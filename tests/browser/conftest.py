"""One browser for all tests that drive it, each in a profile of its own: to start one takes a second and more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.driven import Browser, Tab, browsing, installed


@pytest.fixture(scope="package")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(installed(), tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture
def page(driven: Browser) -> Iterator[Tab]:
    with driven.open_tab() as found:
        yield found
