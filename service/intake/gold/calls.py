"""Expected calls by name and arguments, as test cases of DeepEval and ragas give them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field

from service.core.expectations.expectation import Expectation
from service.core.models.kinds import FrozenModel, Several
from service.core.trace import ToolDef
from service.intake.gold.base import GoldForm, match_exactly


class GoldCall(FrozenModel):
    """A call that should be made. Absent arguments: any will do."""

    name: str = Field(min_length=1)
    arguments: dict[str, Any] | None = None


class CallsGold(GoldForm):
    """Calls that should be made, in any order unless `ordered`."""

    format: Literal["calls"]
    calls: Several[GoldCall] = ()
    ordered: bool = False

    def expect(self, tools: Iterable[ToolDef]) -> Expectation:  # noqa: ARG002
        """Expect exactly these calls."""
        calls = [
            {"tool": call.name}
            if call.arguments is None
            else {"tool": call.name, "args": match_exactly(call.arguments)}
            for call in self.calls
        ]
        return Expectation.model_validate({"ordered" if self.ordered and calls else "calls": calls or "none"})
