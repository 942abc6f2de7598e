"""Gold of tau-bench tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from service.core.expectations.expectation import Expectation
from service.core.models.kinds import FrozenModel, Several
from service.core.trace import ToolDef
from service.intake.gold import GoldForm, match_exactly, match_words


class TauGoldAction(FrozenModel):
    """A call of the gold solution, in `kwargs` (tau-bench) or `arguments` (tau2-bench): exactly one of the two."""

    name: str = Field(min_length=1)
    kwargs: dict[str, Any] | None = None
    arguments: dict[str, Any] | None = None
    compare_args: Several[str] | None = None
    """Arguments that tau2-bench compares; absent: those of the call."""
    action_id: str | None = None
    info: str | None = None
    requestor: Literal["assistant"] = "assistant"
    """Who should act. Actions of the simulated user are not supported."""

    @model_validator(mode="after")
    def _has_arguments_once(self) -> Self:
        if (self.kwargs is None) == (self.arguments is None):
            raise ValueError("an action needs its arguments in kwargs or in arguments")
        return self


class TauGold(GoldForm):
    """The gold of a tau-bench task. Extra calls are fine: only the final state counts."""

    format: Literal["tau"]
    actions: Several[TauGoldAction] | None = None
    outputs: Several[str] = ()
    state: Any = None

    def expect(self, tools: Iterable[ToolDef]) -> Expectation:  # noqa: ARG002
        """Expect the calls, others beside them, the final state, and the outputs in what was said."""
        given = [(one.name, one.kwargs or one.arguments or {}) for one in self.actions or ()]
        calls = [{"tool": name, "args": match_exactly(arguments)} for name, arguments in given]
        # Without gold actions any call is allowed as long as nothing changes.
        expected: dict[str, object] = {"calls" if calls else "unordered": calls, "allow_extra": True}
        expected["gold"] = self.model_dump(mode="json")
        if self.state is not None:
            expected["state"] = {"final": self.state}
        if self.outputs:
            expected["said"] = [match_words(output) for output in self.outputs]
        return Expectation.model_validate(expected)
