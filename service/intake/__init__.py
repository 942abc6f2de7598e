"""Adapters: foreign traces and foreign gold to ours. Pure.

`TraceInput` is the type of a trace field in a request model: pydantic validates the shape that `format` names, and
`read_trace` turns the validated record into a Trace. Each format is one module with a shape and a function `read`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import Field, JsonValue

from service.core.trace import Trace
from service.intake import anthropic, bfcl, callgrade, openai, openai_responses, spans, tau
from service.intake.guess import guess_format

__all__ = ["FORMATS", "TraceInput", "guess_format", "read_gold", "read_trace"]

TraceInput = Annotated[
    openai.OpenAITrace
    | openai_responses.ResponsesTrace
    | anthropic.AnthropicTrace
    | spans.SpansTrace
    | bfcl.BfclTrace
    | tau.TauTrace
    | callgrade.CallgradeTrace,
    Field(discriminator="format"),
]
"""A trace in any format, told by its `format`. An unknown one is a validation error that names those known."""

# Any: `format`, which pydantic has checked, says which shape each reader gets.
_READERS: Mapping[str, Callable[[Any], Trace]] = {
    "openai": openai.read,
    "openai_responses": openai_responses.read,
    "anthropic": anthropic.read,
    "spans": spans.read,
    "bfcl": bfcl.read,
    "tau": tau.read,
    "callgrade": callgrade.read,
}

FORMATS = tuple(_READERS)


def read_trace(record: TraceInput) -> Trace:
    """The trace of a validated record; `raw` is the record itself.

    Raises InputError for what a shape cannot say (two tools of one name, a call of nothing), with JSON pointers relative to
    the record.
    """
    return _READERS[record["format"]](record)


def read_gold(record: TraceInput) -> dict[str, JsonValue] | None:
    """The gold that a benchmark's record carries, as plain data for the expectation's adapter; None for other formats.

    `{"format": "bfcl", "category", "possible_answer"}` or `{"format": "tau", "actions", "outputs", "state"}`.
    """
    if record["format"] == "bfcl":
        return bfcl.read_gold(record)
    return tau.read_gold(record) if record["format"] == "tau" else None
