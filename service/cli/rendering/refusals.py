"""Records that cannot be read or scored, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from service.cli.exits import describe_error
from service.cli.rendering.console import console, plural, say

if TYPE_CHECKING:
    from service.cli.inputs import Refusal

REFUSALS_TOLD = 20
"""How many refused records are told one by one on standard error."""

SHORT = 60
"""Characters of a reason that is said again; of a longer one the record that had it first is named."""

REMEMBERED = 100
"""Reasons that are remembered at most: a file may hold any number of bad records."""


class RefusalTeller:
    """Says records and what is wrong with them on standard error, a long reason once."""

    def __init__(self, label: str = "error") -> None:
        self._label = label
        self._first: dict[str, str] = {}
        """The record that each long reason was said of."""

    def say(self, refusal: Refusal) -> None:
        """One record. Its line in the file tells it from others."""
        where, why = str(refusal.place), describe_error(refusal.error)
        first = self._first.get(why, where)
        if len(why) > SHORT and len(self._first) < REMEMBERED:
            self._first.setdefault(why, where)
        told = why if first == where else f"the same as {first}"
        console(sys.stderr).print(f"{self._label}: {where}: {told}", soft_wrap=True)


def tell_refusals(refused: Iterable[Refusal], label: str) -> None:
    """The first of some records with what is wrong with them."""
    found = list(refused)
    teller = RefusalTeller(label)
    for one in found[:REFUSALS_TOLD]:
        teller.say(one)
    if len(found) > REFUSALS_TOLD:
        say(f"... and {plural(len(found) - REFUSALS_TOLD, 'more record')}")
