"""What should have happened: the calls, their arguments and what the model then says. Written by users, so pydantic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from service.core.kinds import Frozen, Several
from service.core.shapes import Template, require_values
from service.core.weights import Weight

ExtraArguments = Literal["count", "allow", "forbid"]
"""What an argument that the expectation does not list does: lowers the score, nothing, or zeroes the call."""


class CallPattern(Frozen):
    """A call that should have been made."""

    tool: str = Field(min_length=1)
    """The tool's name."""
    args: dict[str, Template] | None = None
    """Expected arguments by name: a value, or a matcher (an object with `kind`), at any depth. Absent: any arguments;
    `{}`: none."""
    weights: dict[str, Weight] = Field(default_factory=dict[str, Weight])
    """How much each argument counts, by name; 1 where nothing is said, 0 leaves it out."""
    reason: str | None = None
    """Why, for the reader of a report."""

    @field_validator("args")
    @classmethod
    def _compare_with_something(cls, args: dict[str, Template] | None) -> dict[str, Template] | None:
        for name, value in (args or {}).items():
            if not isinstance(value, str | int | float):
                require_values(value, name)
        return args


def _calls_form(value: object) -> str:
    return "word" if isinstance(value, str) else "patterns"


Calls = Annotated[
    Annotated[Literal["none", "some"], Tag("word")] | Annotated[Several[CallPattern], Tag("patterns")],
    Discriminator(_calls_form),
]


class Expectation(Frozen):
    """What a trace is held against. At least one field must say something."""

    calls: Calls | None = None
    """`none`, `some` (any call), or the calls that should have been made, in any order; `[]` is `none`."""
    ordered: Several[CallPattern] = ()
    """Calls that should have been made in this order."""
    unordered: Several[CallPattern] = ()
    """Calls that should have been made, in any order, beside those of `ordered`."""
    allow_extra: bool | None = None
    """Whether calls beyond the expected ones are fine. Absent: as the rubric says."""
    answer: Template | None = None
    """What the final text must be: a text, or a matcher."""
    gold: dict[str, Any] | None = None
    """The same in another system's own shape, for a rubric that carries that system's method."""

    @field_validator("answer")
    @classmethod
    def _compare_with_something(cls, answer: Template | None) -> Template | None:
        require_values(answer, "answer")
        return answer

    @model_validator(mode="after")
    def _say_something(self) -> Expectation:
        if not self.model_fields_set - {"allow_extra", "gold"}:
            raise ValueError("an expectation says what should have happened: calls, ordered, unordered or answer")
        if self.calls is not None and not isinstance(self.calls, str) and (self.ordered or self.unordered):
            raise ValueError("calls are given as `calls`, or as `ordered` and `unordered`, not both")
        return self

    @property
    def says_calls(self) -> bool:
        """Whether anything is said about calls at all."""
        return self.calls is not None or bool(self.ordered or self.unordered)

    @property
    def no_calls(self) -> bool:
        """Whether the right thing is to call nothing."""
        return self.calls in ("none", ())

    def patterns(self) -> Iterator[tuple[str, CallPattern]]:
        """Every call that should have been made with the pointer of its place, in the order of writing."""
        for name, group in (("calls", self.calls), ("ordered", self.ordered), ("unordered", self.unordered)):
            for n, pattern in enumerate(group if isinstance(group, tuple) else ()):
                yield f"/expected/{name}/{n}", pattern
