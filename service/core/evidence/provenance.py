"""Where the arguments of a call come from: every leaf is located, or said to come from nowhere.

What nobody can prove wrong stays open: free text, defaults, choices the model may make, small numbers.
"""

from __future__ import annotations

import re
from decimal import Decimal
from math import isfinite
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.core.evidence.amounts import locate_number
from service.core.evidence.days import locate_date, locate_time
from service.core.evidence.identifiers import is_identifier, locate_identifier
from service.core.evidence.leaves import Leaf, leaves_of
from service.core.evidence.located import Located, at_place, in_schema, left_open
from service.core.evidence.parameters import Parameter, parameter_of
from service.core.evidence.quantities import Quantity, find_quantities
from service.core.evidence.sources import Sources
from service.core.evidence.words import tokens
from service.core.trace import Step, ToolDef

MAX_ARGUMENTS = 500
"""Leaves of one call that are located."""
MAX_WORDS = 12
"""A longer text is free: the model wrote it."""


MAX_PIECES = 4
"""Words of a text that may have been given apart."""
_SUM = re.compile(r"[-+*/(). 0-9]{3,200}")
_NUMBER = re.compile(r"\d{1,30}(?:\.\d{1,30})?")


class _Call(NamedTuple):
    """What all leaves of a call share."""

    step: Step
    tool: ToolDef | None
    sources: Sources
    one_date: bool

    @property
    def before(self) -> int:
        return self.step.message


def locate_arguments(step: Step, tool: ToolDef | None, sources: Sources) -> list[Located]:
    """The origin of each leaf of a call's arguments, at most 500; [] where they are no object."""
    arguments = step.call.arguments
    if arguments is None:
        return []
    leaves = leaves_of(cast("JsonValue", dict(arguments)), f"/steps/{step.index}/call/arguments", MAX_ARGUMENTS)
    dates = {str(day.value) for leaf in leaves if (day := _date(leaf)) is not None}
    call = _Call(step, tool, sources, len(dates) == 1)
    return [_locate(leaf, call) for leaf in leaves]


def _date(leaf: Leaf) -> Quantity | None:
    whole = _whole(leaf.value) if isinstance(leaf.value, str) else None
    return whole if whole is not None and whole.kind == "date" else None


def _whole(text: str) -> Quantity | None:
    """The quantity that a text is, if it is one and nothing else."""
    if len(text) > 64:
        return None
    found = find_quantities(text.strip())
    return found[0] if len(found) == 1 and found[0].text == text.strip() else None


def _locate(leaf: Leaf, call: _Call) -> Located:
    parameter = parameter_of(call.tool, leaf.keys)
    value = leaf.value
    if value is None or isinstance(value, bool):
        given = parameter.gives(value)
        return in_schema(leaf.pointer, given) if given else left_open(leaf.pointer, "a truth value or null")
    if isinstance(value, str):
        return _locate_text(leaf.pointer, value, parameter, call)
    return _locate_number(leaf.pointer, value, parameter, call)


def _locate_number(path: str, value: float, parameter: Parameter, call: _Call) -> Located:
    if not isfinite(value):
        return left_open(path, "no finite number")
    text = repr(value)
    given = parameter.gives(value)
    if given:
        return in_schema(path, given)
    if is_identifier(text, parameter, call.step.call.name) and len(text) > 3:
        return locate_identifier(path, text, call.sources, call.before)
    return locate_number(path, Decimal(text), parameter, call.sources, call.before)


def _locate_text(path: str, text: str, parameter: Parameter, call: _Call) -> Located:
    quantity = _whole(text)
    if quantity is not None and quantity.kind == "date":
        return locate_date(path, quantity, call.sources, call.before, alone=call.one_date)
    if is_identifier(text, parameter, call.step.call.name):
        return locate_identifier(path, text, call.sources, call.before)
    place = call.sources.find(text, call.before) if len(text) < 1_000 else None
    if place is not None:
        return at_place(path, place)
    given = parameter.gives(text)
    if given:
        return in_schema(path, given)
    if quantity is not None and quantity.kind == "time":
        return locate_time(path, quantity, call.sources, call.before)
    if quantity is not None and quantity.number is not None:
        return locate_number(path, quantity.number, parameter, call.sources, call.before)
    pieces = _put_together(path, text, call)
    if pieces is not None:
        return pieces
    return left_open(path, "free text" if text.count(" ") >= MAX_WORDS else "a text that nobody gave word for word")


def _put_together(path: str, text: str, call: _Call) -> Located | None:
    """Names from their parts (`Mia Li`), sums from their numbers (`152 + 103`): every piece was given."""
    if _SUM.fullmatch(text):
        found = [call.sources.mentions(value, call.before) for value in map(Decimal, _NUMBER.findall(text))]
        return at_place(path, found[0][0].place, "expression") if found and all(found) else None
    words = tokens(text)
    if not 2 <= len(words) <= MAX_PIECES:
        return None
    places = [call.sources.find(word, call.before) for word in words]
    return at_place(path, places[0], "concatenation") if places[0] is not None and all(places) else None
