"""How much of what repeats itself is gone through: a fixed share in `make test`, all of it in `make chaos`.

A test that takes a share is marked `whole`, so that `make chaos` finds it; a property test is so by itself.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

WHOLE = "CALLGRADE_TEST_WHOLE" in os.environ


def share(rows: Sequence[T], *, one_in: int) -> Sequence[T]:
    """One row in so many, the first among them; all rows in `make chaos`."""
    return rows if WHOLE else rows[::one_in]


def examples(number: int) -> int:
    """How many examples a property is tried on: 20 times as many as it is worth, in `make test` half as many."""
    return 20 * number if WHOLE else (number + 1) // 2
