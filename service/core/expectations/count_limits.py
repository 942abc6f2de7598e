"""Limits on how often a tool is called, as users write them: `"<=2"`, or 3."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Annotated, NamedTuple

from pydantic import AfterValidator

COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
_COUNT = re.compile(r"\s*(==|!=|<=|>=|=|<|>)?\s*([0-9]{1,6})\s*")


class Limit(NamedTuple):
    """A limit on the number of calls: an operator and a number."""

    op: str
    number: int

    def holds(self, made: int) -> bool:
        """Whether this many calls satisfy the limit."""
        return COMPARISONS[self.op](made, self.number)

    def __str__(self) -> str:
        return f"{self.op} {self.number}"


def parse_limit(count: str | int) -> Limit:
    """Parse a limit: `"<=2"`, or 3 for exactly three. Raises ValueError for anything else.

    >>> parse_limit(" <= 2"), parse_limit(3)
    (Limit(op='<=', number=2), Limit(op='=', number=3))
    """
    found = _COUNT.fullmatch(str(count))
    if found is None or isinstance(count, bool):
        raise ValueError(f"expected an operator ({', '.join(COMPARISONS)}) and a whole number, such as '<=2'")
    return Limit(found[1] or "=", int(found[2]))


Count = Annotated[str | int, AfterValidator(lambda count: parse_limit(count) and count)]
