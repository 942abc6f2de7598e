"""Gold that is the names of the tools to call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from service.core.expectations.expectation import Expectation
from service.core.models.kinds import Several
from service.core.trace import ToolDef
from service.intake.gold import GoldForm


class NamesGold(GoldForm):
    """The tools, each of them called once."""

    format: Literal["names"]
    tools: Several[str]

    def expect(self, tools: Iterable[ToolDef]) -> Expectation:  # noqa: ARG002
        """A call of each tool."""
        return Expectation.model_validate({"calls": [{"tool": name} for name in self.tools]})
