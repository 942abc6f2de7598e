"""What a trace format is: all that the rest of intake knows about a format's module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar, Union, cast, get_args, get_type_hints

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, JsonValue
from pydantic_core import CoreSchema, core_schema

from service.core.json.members import JsonObject
from service.core.trace import Trace
from service.intake.build import Record
from service.intake.wrapping import WrapperContents

R = TypeVar("R", bound=Record)


LAST_PLACE = 1_000
"""The place of a format that does not set one."""


def _read_no_gold(record: Record) -> None:
    """Return None: most formats carry no gold."""


@dataclass(frozen=True, slots=True)
class Format(Generic[R]):
    """A trace format, as its module declares it."""

    shape: type[R]
    """A TypedDict whose `format` is a literal: the format's name."""
    read: Callable[[R], Trace | WrapperContents]
    """Reads a validated record. A format that wraps a conversation of another format returns what it wraps."""
    recognise: Callable[[JsonObject], bool]
    """Whether a record without `format` looks like this format."""
    rank: int
    """Order of guessing, lowest first: the first format that recognises a record wins, so a format that demands more
    of a record has a lower rank.
    """
    hint: str
    """The members that `recognise` looks for, in words."""
    gold: Callable[[R], dict[str, JsonValue] | None] = _read_no_gold
    """Reads the gold that a record carries, as plain data in a gold format; returns None if it carries none."""
    place: int = LAST_PLACE
    """Position in schemas and in messages that list all formats."""

    @property
    def summary(self) -> str:
        """One line that says what the format is."""
        return (self.shape.__doc__ or "").partition("\n")[0]

    @property
    def name(self) -> str:
        """The format's name: the literal value of the shape's `format`."""
        return get_args(get_type_hints(self.shape)["format"])[0]


class ByFormat:
    """Annotates a type as the union of these shapes, discriminated by `format`."""

    def __init__(self, *shapes: type, guess: Callable[[JsonObject], str] | None = None) -> None:
        """Keep the shapes and the guess.

        `guess` names the format of a record without one and raises ValueError if none fits. None: `format` is
        required.
        """
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

    def _name_format(self, raw: Any) -> Any:
        if self.guess is None or not isinstance(raw, dict) or "format" in raw:
            return raw  # pyright: ignore[reportUnknownVariableType] (it is checked next)
        record = cast("dict[str, JsonValue]", raw)
        return {"format": self.guess(record), **record}
