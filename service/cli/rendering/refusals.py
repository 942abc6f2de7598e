"""Print records that cannot be read or scored on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from service.cli.exits import describe_error
from service.cli.rendering.console import build_console, pluralize, say

if TYPE_CHECKING:
    from service.cli.inputs import Refusal

MAX_LISTED_REFUSALS = 20
"""How many refused records are listed one by one."""

MAX_REPEATED_CHARS = 60
"""The longest reason that is repeated in full; for a longer one, the first record that had it is named instead."""

MAX_REMEMBERED_REASONS = 100
"""How many reasons are remembered, because a file may contain any number of bad records."""


class RefusalPrinter:
    """Prints records and what is wrong with them on standard error; prints a long reason only once."""

    def __init__(self, label: str = "error") -> None:
        self._label = label
        self._first: dict[str, str] = {}
        """The record for which each long reason was printed."""

    def print(self, refusal: Refusal) -> None:
        """Print one record, identified by its line in the file."""
        where, reason = str(refusal.place), describe_error(refusal.error)
        first = self._first.get(reason, where)
        if len(reason) > MAX_REPEATED_CHARS and len(self._first) < MAX_REMEMBERED_REASONS:
            self._first.setdefault(reason, where)
        text = reason if first == where else f"the same as {first}"
        build_console(sys.stderr).print(f"{self._label}: {where}: {text}", soft_wrap=True)


def print_refusals(refused: Iterable[Refusal], label: str) -> None:
    """Print the first refused records and what is wrong with them, and how many more there are."""
    refusals = list(refused)
    printer = RefusalPrinter(label)
    for one in refusals[:MAX_LISTED_REFUSALS]:
        printer.print(one)
    if len(refusals) > MAX_LISTED_REFUSALS:
        say(f"... and {pluralize(len(refusals) - MAX_LISTED_REFUSALS, 'more record')}")
