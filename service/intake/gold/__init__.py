"""Read the gold of a benchmark as an expectation. One file per format; what a format is, and the matchers that formats share."""

from __future__ import annotations

import re
import sys
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import JsonValue, TypeAdapter

from service.core.expectations.expectation import Expectation
from service.core.models.discovery import import_all
from service.core.models.kinds import FrozenModel, list_kinds
from service.core.models.validation import validate
from service.core.trace import ToolDef
from service.intake.format import ByFormat


class GoldForm(FrozenModel):
    """Base class of all gold. A subclass names its `format` and lives in a file of its own."""

    @abstractmethod
    def expect(self, tools: Iterable[ToolDef]) -> Expectation:
        """Build the expectation. `tools`: the tools of the trace, named as the model saw them."""


def match_exactly(arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Match each argument by its exact value, even one that looks like a matcher."""
    return {name: {"kind": "exact", "value": value} for name, value in arguments.items()}


def match_words(output: str) -> dict[str, object]:
    """Match an output as a whole word or number within a text, ignoring case.

    A number matches with or without thousands separators, and with trailing zeros.

    >>> from service.core.critics import Pattern
    >>> five = Pattern.model_validate(match_words("5"))
    >>> [five.match(text).value for text in ("5.", "$5.00", "15", "5,000", "1.5")]
    [1.0, 1.0, 0.0, 0.0, 0.0]
    """
    plain = output.strip().replace(",", "")
    if _NUMBER.fullmatch(plain):
        whole, _, fraction = plain.partition(".")
        fraction = fraction.rstrip("0")
        number = f"{int(whole):,}".replace(",", ",?") + (rf"\.{fraction}0*" if fraction else r"(?:\.0+)?")
        return {"kind": "pattern", "pattern": _BEFORE_NUMBER + number + _AFTER_NUMBER, "search": True}
    before = r"(?:^|\W)" if _WORD.match(output[:1]) else ""
    after = r"(?:$|\W)" if _WORD.match(output[-1:]) else ""
    escaped = _SPECIAL.sub(r"\\\g<0>", output)
    return {"kind": "pattern", "pattern": f"(?i){before}{escaped}{after}", "search": True}


_NUMBER = re.compile(r"[0-9]{1,18}(\.[0-9]{1,9})?")
_WORD = re.compile(r"\w")
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$#&\-~]")
_BEFORE_NUMBER, _AFTER_NUMBER = r"(?:^|[^\w.,]|[^\d][.,])", r"(?:$|[^\w.,]|[.,](?:$|[^\d]))"


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
