"""Find where the arguments of a call come from: locate every leaf, or report that it comes from nowhere.

Whatever cannot be proved wrong stays open: free text, choices the model may make, small numbers.
"""

from __future__ import annotations

import re
from decimal import Decimal
from math import isfinite
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.core.evidence.actions.verbs import only_reads
from service.core.evidence.provenance.amounts import locate_number
from service.core.evidence.provenance.days import locate_date, locate_time
from service.core.evidence.provenance.identifiers import is_identifier, locate_identifier
from service.core.evidence.provenance.located import LeafOrigin, leave_open, locate_at, locate_in_schema, suspect
from service.core.evidence.provenance.parameters import CallParameter, find_parameter
from service.core.evidence.provenance.sources import SourceIndex
from service.core.evidence.reading.quantities import Quantity, find_quantities
from service.core.evidence.reading.words import split_tokens, split_words
from service.core.json.leaves import Leaf, list_leaves
from service.core.json.values import format_value
from service.core.trace import Step, ToolDef

MAX_ARGUMENTS = 500
"""How many leaves of one call are located."""
MAX_WORDS = 12
"""A longer text is free text: the model wrote it."""
MAX_PIECES = 4
"""Most words of a text that may have been given separately."""
_CODE = re.compile(r"[A-Z]{2,5}")
_DAY_CHARS = len("2024-05-20")
_OF_PEOPLE = split_words("first last given family full middle")
_SUM = re.compile(r"[-+*/(). 0-9]{3,200}")
_NUMBER = re.compile(r"\d{1,30}(?:\.\d{1,30})?")


class _Call(NamedTuple):
    """What all leaves of a call share."""

    step: Step
    tool: ToolDef | None
    sources: SourceIndex
    one_date: bool

    @property
    def before(self) -> int:
        return self.step.message


def locate_arguments(step: Step, tool: ToolDef | None, sources: SourceIndex) -> list[LeafOrigin]:
    """Return the origin of each leaf of a call's arguments, at most 500; [] if they are not an object."""
    arguments = step.call.arguments
    if arguments is None:
        return []
    leaves = list_leaves(cast("JsonValue", dict(arguments)), f"/steps/{step.index}/call/arguments", MAX_ARGUMENTS)
    dates = {str(day.value) for leaf in leaves if (day := _read_date(leaf)) is not None}
    call = _Call(step, tool, sources, len(dates) == 1)
    return [_suspect_other(leaf, _locate(leaf, call), call) for leaf in leaves]


def _suspect_other(leaf: Leaf, origin: LeafOrigin, call: _Call) -> LeafOrigin:
    """Suspect an open leaf: a day, code or amount where results give another by that name, or a person's name.

    Anything else is returned as found.
    """
    if origin.status != "open" or isinstance(leaf.value, bool | None) or leaf.value == "":
        return origin
    parameter, text = find_parameter(call.tool, leaf.keys), format_value(leaf.value)
    if "name" in parameter.words and _OF_PEOPLE & set(parameter.words):
        return suspect(leaf.pointer, f"nobody gave the name {text}")
    # A search may try any day.
    is_day = _is_day(leaf) and not only_reads(call.step.call.name, call.tool)
    is_code = isinstance(leaf.value, str) and _CODE.fullmatch(leaf.value)
    is_amount = parameter.is_amount and not isinstance(leaf.value, str)
    other = call.sources.find_field(leaf.key, call.before) if is_day or is_code or is_amount else None
    if other is None:
        return origin
    return suspect(leaf.pointer, f"nobody gave {text}, where results give {other.text.strip()!r} by that name", other)


def _is_day(leaf: Leaf) -> bool:
    return _read_date(leaf) is not None and len(str(leaf.value)) <= _DAY_CHARS


def _read_date(leaf: Leaf) -> Quantity | None:
    whole = _read_whole(leaf.value) if isinstance(leaf.value, str) else None
    return whole if whole is not None and whole.kind == "date" else None


def _read_whole(text: str) -> Quantity | None:
    """Read a text that is one quantity and nothing else."""
    if len(text) > 64:
        return None
    found = find_quantities(text.strip())
    return found[0] if len(found) == 1 and found[0].text == text.strip() else None


def _locate(leaf: Leaf, call: _Call) -> LeafOrigin:
    parameter = find_parameter(call.tool, leaf.keys)
    value = leaf.value
    if value is None or isinstance(value, bool):
        given = parameter.gives(value)
        return locate_in_schema(leaf.pointer, given) if given else leave_open(leaf.pointer, "a truth value or null")
    if isinstance(value, str):
        return _locate_text(leaf.pointer, value, parameter, call)
    return _locate_number(leaf.pointer, value, parameter, call)


def _locate_number(path: str, value: float, parameter: CallParameter, call: _Call) -> LeafOrigin:
    if not isfinite(value):
        return leave_open(path, "no finite number")
    text = repr(value)
    given = parameter.gives(value)
    if given:
        return locate_in_schema(path, given)
    if is_identifier(text, parameter, call.step.call.name) and len(text) > 3:
        return locate_identifier(path, text, parameter, call.sources, call.before)
    return locate_number(path, Decimal(text), parameter, call.sources, call.before)


def _locate_text(path: str, text: str, parameter: CallParameter, call: _Call) -> LeafOrigin:
    quantity = _read_whole(text)
    if quantity is not None and quantity.kind == "date":
        return locate_date(path, quantity, parameter, call.sources, call.before, alone=call.one_date)
    if is_identifier(text, parameter, call.step.call.name):
        return locate_identifier(path, text, parameter, call.sources, call.before)
    place = call.sources.find(text, call.before) if len(text) < 1_000 else None
    if place is not None:
        return locate_at(path, place)
    given = parameter.gives(text)
    if given:
        return locate_in_schema(path, given)
    if quantity is not None and quantity.kind == "time":
        return locate_time(path, quantity, call.sources, call.before)
    if quantity is not None and quantity.number is not None:
        return locate_number(path, quantity.number, parameter, call.sources, call.before)
    pieces = _locate_pieces(path, text, call)
    if pieces is not None:
        return pieces
    return leave_open(path, "free text" if text.count(" ") >= MAX_WORDS else "a text that nobody gave word for word")


def _locate_pieces(path: str, text: str, call: _Call) -> LeafOrigin | None:
    """Locate a text of which every piece was given: names from their parts (`Mia Li`), sums (`152 + 103`)."""
    if _SUM.fullmatch(text):
        found = [call.sources.find_mentions(value, call.before) for value in map(Decimal, _NUMBER.findall(text))]
        return locate_at(path, found[0][0].place, "expression") if found and all(found) else None
    words = split_tokens(text)
    if not 2 <= len(words) <= MAX_PIECES:
        return None
    places = [call.sources.find(word, call.before) for word in words]
    return locate_at(path, places[0], "concatenation") if places[0] is not None and all(places) else None
