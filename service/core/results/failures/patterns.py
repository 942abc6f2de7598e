"""Patterns by which a rubric, or a tool's own definition, recognises results that report an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field, JsonValue, TypeAdapter, model_validator

from service.core.json.pointers import split_pointer
from service.core.json.values import equals
from service.core.models.kinds import DEFERRED, FrozenModel, Several
from service.core.results.structure import iter_bodies

MAX_PATTERNS = 50
ANNOTATION = "errorPatterns"
"""The member of a tool's annotations that holds its own patterns."""

Words = Annotated[str, Field(min_length=1, max_length=200)]


class ErrorPattern(FrozenModel):
    """What a result that reports an error looks like: everything given here must hold. No part is a regular expression."""

    tool: str = ""
    """The tool whose results the pattern is for; absent: every tool."""
    prefix: Words | None = None
    """How the text of the result begins, apart from white space; case matters."""
    contains: Words | None = None
    """A part of the text of the result; case matters."""
    pointer: Annotated[str, Field(max_length=500)] | None = None
    """A JSON pointer into the result: the value there is neither null, false, 0 nor empty, or it is `equals`."""
    equals: JsonValue = None
    """The value at `pointer`, by typed equality."""
    error: bool = True
    """false: such a result reports no error, whatever it looks like."""

    @model_validator(mode="after")
    def _consistent(self) -> ErrorPattern:
        if self.prefix is None and self.contains is None and self.pointer is None:
            raise ValueError("a pattern has at least one of prefix, contains and pointer")
        if "equals" in self.model_fields_set and self.pointer is None:
            raise ValueError("`equals` goes with a `pointer`")
        split_pointer(self.pointer or "")
        return self

    def fits(self, content: JsonValue) -> bool:
        """Whether a result fits the pattern."""
        texts = [body.text for body in iter_bodies(content)] if self.prefix or self.contains else []
        if self.prefix is not None and not any(text.lstrip().startswith(self.prefix) for text in texts):
            return False
        if self.contains is not None and not any(self.contains in text for text in texts):
            return False
        return self.pointer is None or self._fits_at(content, split_pointer(self.pointer))

    def _fits_at(self, content: JsonValue, tokens: Sequence[str]) -> bool:
        value = content
        for token in tokens:
            if isinstance(value, dict) and token in value:
                value = value[token]
            elif isinstance(value, list) and token.isdecimal() and len(token) < 8 and int(token) < len(value):
                value = value[int(token)]
            else:
                return False
        if "equals" in self.model_fields_set:
            return equals(self.equals, value)
        return value not in (None, False, 0, "", [], {})


Patterns = Annotated[Several[ErrorPattern], Field(max_length=MAX_PATTERNS)]
_PATTERNS: TypeAdapter[tuple[ErrorPattern, ...]] = TypeAdapter(Patterns, config=DEFERRED)


def read_patterns(annotations: Mapping[str, JsonValue]) -> tuple[ErrorPattern, ...]:
    """Read the patterns in a tool's annotations. Raises pydantic's ValidationError for anything that is not a pattern."""
    return _PATTERNS.validate_python(annotations[ANNOTATION]) if ANNOTATION in annotations else ()
