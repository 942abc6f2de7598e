"""Adapters: foreign traces and foreign gold to ours. Pure.

`TraceInput` is the type of a trace field in a request model: pydantic validates the shape that `format` names, and
`read_trace` turns the validated record into a Trace. A format is one file of `service.intake.formats`, named as it is; a
format of gold, one of `service.intake.gold`. The names below but `FORMATS` are loaded when they are first used: a command
line that lists the formats reads none.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from service.intake import formats

if TYPE_CHECKING:
    from service.intake.reading import TraceInput, guess_format, read_gold, read_trace, require_format

__all__ = ["FORMATS", "TraceInput", "guess_format", "read_gold", "read_trace", "require_format"]

FORMATS = tuple(sorted(module.name for module in iter_modules(formats.__path__)))
"""The names of all formats."""


def __getattr__(name: str) -> Any:
    """A name of `service.intake.reading`."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("service.intake.reading"), name)
