"""The answer keys of the Berkeley Function-Calling Leaderboard."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Literal, cast

from service.core.expectation import Expectation
from service.core.methods.bfcl_number import Answer, Doc, convert
from service.core.models.kinds import Several
from service.core.trace import ToolDef
from service.intake.gold.base import GoldForm


class BfclGold(GoldForm):
    """A BFCL answer key. `possible_answer` null: no function fits, and nothing should be called."""

    place: ClassVar[int] = 1
    format: Literal["bfcl"]
    category: str | None = None
    possible_answer: Several[dict[str, Any]] | None

    def expect(self, tools: Iterable[ToolDef]) -> Expectation:
        """The calls of the key as patterns of matchers, or none."""
        plain = {"format": "bfcl", "category": self.category, "possible_answer": self.possible_answer}
        if self.possible_answer is None:
            return Expectation.model_validate({"calls": "none", "gold": plain})
        answers = cast("list[Answer]", list(self.possible_answer))
        docs = [cast("Doc", {"name": tool.name, "parameters": tool.parameters}) for tool in tools]
        patterns = convert(answers, docs)
        return Expectation.model_validate({"calls": patterns, "gold": plain})
