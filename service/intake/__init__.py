"""Read foreign traces into a Trace and foreign gold into an Expectation. Pure.

`TraceInput` is the type of a trace field in a request model: pydantic validates the shape that `format` names, and
`read_trace` turns the validated record into a Trace. Trace formats stand in `service.intake.formats`, a file for each family;
each gold format is one file in `service.intake.gold`. Every name below is loaded on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from service.intake.reading import (
        FORMATS,
        TraceInput,
        guess_format,
        list_guesses,
        name_session,
        read_gold,
        read_trace,
        require_format,
        split_record,
    )

__all__ = [
    "FORMATS",
    "TraceInput",
    "guess_format",
    "list_guesses",
    "name_session",
    "read_gold",
    "read_trace",
    "require_format",
    "split_record",
]


def __getattr__(name: str) -> Any:
    """Return a name of `service.intake.reading`, importing it on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("service.intake.reading"), name)
