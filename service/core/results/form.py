"""What a form of results is: everything that the reader knows of its module."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import JsonValue


class Stretch(NamedTuple):
    """A stretch of a text, from `start` up to `end` (characters, from 0), and what it spells."""

    start: int
    end: int
    value: JsonValue


@dataclass(frozen=True, slots=True)
class Form:
    """A form in which a text has structure."""

    name: str
    exact: bool
    """Whether it is JSON found whole, so that what it says can prove; else it is inferred and can only make suspect."""
    rank: int
    """Forms of low rank look first; later ones see what these left."""
    find: Callable[[str], Iterable[Stretch]]
    """The stretches of a text that have this form, in order and apart. In time linear in the text; nothing raises."""
    anywhere: bool = False
    """Whether it is looked for in any text of a JSON result, not only in those that are its body."""
