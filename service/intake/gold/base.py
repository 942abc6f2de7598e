"""What a format of gold is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar

from pydantic import JsonValue

from service.core.expectation import Expectation
from service.core.models.kinds import FrozenModel
from service.core.trace import ToolDef
from service.intake.format import LAST


class GoldForm(FrozenModel):
    """The base of all gold. A subclass names its `format` and lives in one file."""

    place: ClassVar[int] = LAST
    """Where it stands in schemas and in messages that name all formats."""

    @abstractmethod
    def expect(self, tools: Iterable[ToolDef]) -> Expectation:
        """The expectation that it amounts to; `tools` are those of the trace, named as the model saw them."""


def match_exactly(arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Arguments of gold, none of which is a matcher, whatever it looks like."""
    return {name: {"kind": "exact", "value": value} for name, value in arguments.items()}
