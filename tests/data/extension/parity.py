"""Whether two numbers are both even or both odd."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from service.core.critics.base import MATCHED, Match, ValueCritic, build_mismatch


class Parity(ValueCritic):
    """Both even, or both odd.

    >>> Parity().compare(3, 5).value, Parity().compare(3, 4).value, Parity().compare(True, 1).value
    (1.0, 0.0, 0.0)
    """

    kind: Literal["parity"] = "parity"

    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match:
        """1 or 0."""
        if type(actual) is int and type(expected) is int and actual % 2 == expected % 2:  # a boolean is no number
            return MATCHED
        return build_mismatch(actual, expected)
