"""The description of a form of results: everything that the reader knows about its module."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import JsonValue


class Stretch(NamedTuple):
    """A stretch of a text, from `start` up to `end` (characters, from 0), and the value that it spells."""

    start: int
    end: int
    value: JsonValue


@dataclass(frozen=True, slots=True)
class Form:
    """A form that structure takes in a text, such as a table."""

    name: str
    exact: bool
    """Whether it is JSON found whole, which can prove; other structure is inferred and can only raise a suspicion."""
    rank: int
    """Forms of low rank search first; later ones search only the rest."""
    find: Callable[[str], Iterable[Stretch]]
    """Returns the stretches of a text that have this form, in order, not overlapping. Takes time linear in the text; never
    raises."""
    anywhere: bool = False
    """Whether to search for it in any text of a JSON result, not only in the texts that are its body."""
