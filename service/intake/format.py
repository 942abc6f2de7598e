"""What a format of traces is: everything that the rest of intake knows of its module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar, Union, cast, get_args, get_type_hints

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, JsonValue
from pydantic_core import CoreSchema, core_schema

from service.core.trace import Trace
from service.intake.build import Record
from service.intake.wrapping import Wrapped

R = TypeVar("R", bound=Record)

Given = Mapping[str, JsonValue]
"""A record that nobody has checked."""

LAST = 1_000
"""The place of what does not say where it stands in lists."""


def _no_gold(record: Record) -> None:
    """What most formats carry."""


@dataclass(frozen=True, slots=True)
class Format(Generic[R]):
    """A format of traces, as its module has it."""

    shape: type[R]
    """A TypedDict, whose `format` is the format's name alone."""
    read: Callable[[R], Trace | Wrapped]
    """The trace of a validated record; of one that wraps a conversation of another format, what it wraps."""
    recognise: Callable[[Given], bool]
    """Whether a record that names no format looks like one of this."""
    rank: int
    """The first format that recognises a record has it: those of low rank are asked first, so it is the lower the more a
    record must have."""
    marks: str
    """What tells it, in words: the members that `recognise` looks for."""
    gold: Callable[[R], dict[str, JsonValue] | None] = _no_gold
    """The gold that a record carries, as plain data in one of the formats of gold; None where it carries none."""
    place: int = LAST
    """Where it stands in schemas and in messages that name all formats."""

    @property
    def summary(self) -> str:
        """What it is, in a line."""
        return (self.shape.__doc__ or "").partition("\n")[0]

    @property
    def name(self) -> str:
        """The literal value of the shape's `format`."""
        return get_args(get_type_hints(self.shape)["format"])[0]


class ByFormat:
    """Marks an annotation as the union of these shapes, told apart by `format`."""

    def __init__(self, *shapes: type, guess: Callable[[Given], str] | None = None) -> None:
        """`guess` names the format where it is left out, and raises ValueError where none fits. None: it must be there."""
        self.shapes = shapes
        self.guess = guess

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        union: Any = Union[self.shapes]  # noqa: UP007 (the members are known only here)
        schema = handler.generate_schema(Annotated[union, Field(discriminator="format")])
        return core_schema.no_info_before_validator_function(self._name_format, schema) if self.guess else schema

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        if self.guess is None:
            return handler(schema)
        nameless = {
            "title": "Guessed",
            "type": "object",
            "not": {"required": ["format"]},
            "description": "A trace that names no format: it is guessed from its members, and the report says which it is.",
        }
        return {"anyOf": [handler(schema), nameless]}

    def _name_format(self, given: Any) -> Any:
        if self.guess is None or not isinstance(given, dict) or "format" in given:
            return given  # pyright: ignore[reportUnknownVariableType] (it is checked next)
        record = cast("dict[str, JsonValue]", given)
        return {"format": self.guess(record), **record}
