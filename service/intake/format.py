"""What a format of traces is: everything that the rest of intake knows of its module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar, Union, get_args, get_type_hints

from pydantic import Field, GetCoreSchemaHandler, JsonValue
from pydantic_core import CoreSchema

from service.core.trace import Trace
from service.intake.build import Record

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
    read: Callable[[R], Trace]
    """The trace of a validated record."""
    recognise: Callable[[Given], bool]
    """Whether a record that names no format looks like one of this."""
    rank: int
    """The first format that recognises a record has it: those of low rank are asked first, so it is the lower the more a
    record must have."""
    gold: Callable[[R], dict[str, JsonValue] | None] = _no_gold
    """The gold that a record carries, as plain data in one of the formats of gold; None where it carries none."""
    place: int = LAST
    """Where it stands in schemas and in messages that name all formats."""

    @property
    def name(self) -> str:
        """The literal value of the shape's `format`."""
        return get_args(get_type_hints(self.shape)["format"])[0]


class ByFormat:
    """Marks an annotation as the union of these shapes, told apart by `format`."""

    def __init__(self, *shapes: type) -> None:
        self.shapes = shapes

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        union: Any = Union[self.shapes]  # noqa: UP007 (the members are known only here)
        return handler.generate_schema(Annotated[union, Field(discriminator="format")])
