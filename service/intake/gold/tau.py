"""The gold of tau-bench's tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, JsonValue, model_validator

from service.core.expectations.expectation import Expectation
from service.core.models.kinds import FrozenModel, Several
from service.core.trace import ToolDef
from service.intake.gold.base import GoldForm, match_exactly, match_words


class TauGoldAction(FrozenModel):
    """A call of tau-bench's gold solution, or of tau2-bench's, which says `arguments` for `kwargs`: one of the two."""

    name: str = Field(min_length=1)
    kwargs: dict[str, Any] | None = None
    arguments: dict[str, Any] | None = None
    compare_args: Several[str] | None = None
    """The arguments that tau2-bench compares; absent: those that the call has."""
    action_id: str | None = None
    info: str | None = None
    requestor: Literal["assistant"] = "assistant"
    """Who was to act; what the simulated user was to do is not carried."""

    @model_validator(mode="after")
    def _has_arguments_once(self) -> Self:
        if (self.kwargs is None) == (self.arguments is None):
            raise ValueError("an action has its arguments in kwargs or in arguments")
        return self

    @property
    def given(self) -> Mapping[str, JsonValue]:
        """Its arguments."""
        return self.kwargs if self.kwargs is not None else self.arguments or {}


class TauGold(GoldForm):
    """A tau-bench task's gold. Calls beyond the gold ones are fine there: only the state at the end counts."""

    place: ClassVar[int] = 2
    format: Literal["tau"]
    actions: Several[TauGoldAction] | None = None
    outputs: Several[str] = ()
    state: Any = None

    def expect(self, tools: Iterable[ToolDef]) -> Expectation:  # noqa: ARG002
        """The calls with others beside them, the final state, and what is to be said."""
        calls = [{"tool": action.name, "args": match_exactly(action.given)} for action in self.actions or ()]
        expected: dict[str, object] = {
            "calls"
            if calls
            else "unordered": calls,  # without gold actions any call may be made, so long as nothing changes
            "allow_extra": True,
            "gold": self.model_dump(mode="json"),
        }
        if self.state is not None:
            expected["state"] = {"final": self.state}
        if self.outputs:
            expected["said"] = [match_words(output) for output in self.outputs]
        return Expectation.model_validate(expected)
