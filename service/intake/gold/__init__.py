"""Read the gold of a benchmark as an expectation. One file per format."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import JsonValue, TypeAdapter

from service.core.expectations.expectation import Expectation
from service.core.models.discovery import import_all
from service.core.models.kinds import list_kinds
from service.core.models.validation import validate
from service.core.trace import ToolDef
from service.intake.format import ByFormat
from service.intake.gold.base import GoldForm

import_all(sys.modules[__name__])

Gold = Annotated[GoldForm, ByFormat(*[form for _, form in sorted(list_kinds(GoldForm, "format").items())])]
"""Gold in any format, discriminated by `format`."""

GOLD: TypeAdapter[GoldForm] = TypeAdapter(Gold)


def build_expectation(gold: GoldForm | Mapping[str, JsonValue], tools: Iterable[ToolDef]) -> Expectation:
    """Build the expectation that a benchmark's gold amounts to.

    `tools`: the tools of the trace, named as the model saw them.

    Raises InputError below `/expected` for malformed gold.
    """
    form = validate(GOLD, dict(gold), below="/expected") if isinstance(gold, Mapping) else gold
    return form.expect(tools)
