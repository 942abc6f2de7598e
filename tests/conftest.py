"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("CALLGRADE_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real traces and labels; skips where it does not stand beside the project."""
    if not SHARED.is_dir():
        pytest.skip(f"no packaged data at {SHARED}; CALLGRADE_SHARED_DATA names another place")
    return SHARED
