"""How results of a tool say that a call failed, in the words of a rubric or of the tool's own definition."""

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
    """What a result looks like that reports an error: all that is given here must hold. No pattern is an expression."""

    tool: str = ""
    """The tool whose results it is about; absent: every tool."""
    prefix: Words | None = None
    """How the text of the result begins, white space aside; capitals count."""
    contains: Words | None = None
    """What stands somewhere in the text of the result; capitals count."""
    pointer: Annotated[str, Field(max_length=500)] | None = None
    """A JSON pointer into the result: what stands there is neither null, false, 0 nor empty, or is `equals`."""
    equals: JsonValue = None
    """The value that stands at `pointer`, by typed equality."""
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
        """Whether a result looks so."""
        texts = [body.text for body in iter_bodies(content)] if self.prefix or self.contains else []
        if self.prefix is not None and not any(text.lstrip().startswith(self.prefix) for text in texts):
            return False
        if self.contains is not None and not any(self.contains in text for text in texts):
            return False
        return self.pointer is None or self._fits_at(content, split_pointer(self.pointer))

    def _fits_at(self, content: JsonValue, tokens: Sequence[str]) -> bool:
        here = content
        for token in tokens:
            if isinstance(here, dict) and token in here:
                here = here[token]
            elif isinstance(here, list) and token.isdecimal() and len(token) < 8 and int(token) < len(here):
                here = here[int(token)]
            else:
                return False
        return (
            equals(self.equals, here) if "equals" in self.model_fields_set else here not in (None, False, 0, "", [], {})
        )


Patterns = Annotated[Several[ErrorPattern], Field(max_length=MAX_PATTERNS)]
_PATTERNS: TypeAdapter[tuple[ErrorPattern, ...]] = TypeAdapter(Patterns, config=DEFERRED)


def read_patterns(annotations: Mapping[str, JsonValue]) -> tuple[ErrorPattern, ...]:
    """The patterns in a tool's annotations. Raises pydantic's ValidationError where they are none."""
    return _PATTERNS.validate_python(annotations[ANNOTATION]) if ANNOTATION in annotations else ()
