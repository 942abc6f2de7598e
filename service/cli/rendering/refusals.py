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


def say_refusal(refusal: Refusal, label: str = "error") -> None:
    """The record and what is wrong with it, on standard error."""
    console(sys.stderr).print(f"{label}: {describe_error(refusal.error, where=str(refusal.place))}", soft_wrap=True)


def tell_refusals(refused: Iterable[Refusal], label: str) -> None:
    """The first of some records with what is wrong with them."""
    found = list(refused)
    for one in found[:REFUSALS_TOLD]:
        say_refusal(one, label)
    if len(found) > REFUSALS_TOLD:
        say(f"... and {plural(len(found) - REFUSALS_TOLD, 'more record')}")
