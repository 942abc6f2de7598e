"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("CALLGRADE_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real traces and labels; skips where it does not stand beside the project."""
    if not SHARED.is_dir():
        pytest.skip(f"no packaged data at {SHARED}; CALLGRADE_SHARED_DATA names another place")
    return SHARED


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a test that skips although what it needs is at hand has failed."""
    report = yield
    if report.skipped and os.environ.get("CI") and item.get_closest_marker("shared_data") and SHARED.is_dir():
        report.outcome = "failed"
        report.longrepr = f"skipped in CI although {SHARED} is at hand: {report.longrepr}"
    return report
