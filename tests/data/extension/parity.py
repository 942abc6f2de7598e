"""Whether two numbers are both even or both odd."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from service.core.critics.base import MATCHED, Match, ValueCritic, build_mismatch


class Parity(ValueCritic):
    """Both even, or both odd."""

    kind: Literal["parity"] = "parity"

    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match:
        """1 or 0."""
        if isinstance(actual, int) and isinstance(expected, int) and actual % 2 == expected % 2:
            return MATCHED
        return build_mismatch(actual, expected)
