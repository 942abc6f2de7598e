"""Read foreign traces into a Trace and foreign gold into an Expectation. Pure.

`TraceInput` is the type of a trace field in a request model: pydantic validates the shape that `format` names, and
`read_trace` turns the validated record into a Trace. Each trace format is one file in `service.intake.formats`, named
after the format; each gold format is one file in `service.intake.gold`. Every name below except `FORMATS` is loaded on
first use, so a command line that lists the formats imports no reader.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from service.intake import formats

if TYPE_CHECKING:
    from service.intake.reading import (
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

FORMATS = tuple(sorted(module.name for module in iter_modules(formats.__path__)))
"""The names of all formats."""


def __getattr__(name: str) -> Any:
    """Return a name of `service.intake.reading`, importing it on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("service.intake.reading"), name)
