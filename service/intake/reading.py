"""Records of any format: their union, and the one reader of all."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Annotated, Any

from pydantic import JsonValue

from service.core.models.discovery import import_all
from service.core.trace import Trace
from service.intake import formats
from service.intake.build import Record
from service.intake.format import ByFormat, Format, Given


def _format_of(module: ModuleType) -> Format[Any]:
    entry: Format[Any] = module.FORMAT
    if module.__name__.rpartition(".")[2] != entry.name:
        raise TypeError(f"{module.__name__} holds the format {entry.name!r}: a file is named as its format")
    return entry


# Any: `format`, which pydantic has checked, says which shape each reader gets.
_ALL = sorted(map(_format_of, import_all(formats)), key=lambda entry: (entry.place, entry.name))
_BY_NAME: Mapping[str, Format[Any]] = {entry.name: entry for entry in _ALL}
_BY_RANK = sorted(_ALL, key=lambda entry: entry.rank)

TraceInput = Annotated[Record, ByFormat(*[entry.shape for entry in _ALL])]
"""A trace in any format, told by its `format`. An unknown one is a validation error that names those known."""


def read_trace(record: TraceInput) -> Trace:
    """The trace of a validated record; `raw` is the record itself.

    Raises InputError for what a shape cannot say (two tools of one name, a call of nothing), with JSON pointers relative to
    the record.
    """
    return _BY_NAME[record["format"]].read(record)


def read_gold(record: TraceInput) -> dict[str, JsonValue] | None:
    """The gold that a benchmark's record carries, as plain data for `expectation_of`; None where it carries none."""
    return _BY_NAME[record["format"]].gold(record)


def guess_format(record: Given) -> str | None:
    """The format a record seems to be in; None where its keys say nothing.

    A conversation of plain text and no tools reads the same as `openai` and as `anthropic`; it is called `openai`.
    """
    return next((entry.name for entry in _BY_RANK if entry.recognise(record)), None)
