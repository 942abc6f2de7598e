"""Worked examples that a judge is shown, and the rendering of values in a prompt."""

from __future__ import annotations

import json

from pydantic import JsonValue

from service.core.models.kinds import FrozenModel, Several


class ExampleClaim(FrozenModel):
    """One claim of a right answer."""

    quote: str
    reason: str = ""
    path: str | None = None
    """The pointer to the value that proves or refutes it; a judge sees the number of that value."""
    label: str


class Example(FrozenModel):
    """A case with its right answer, shown to the judge before the question."""

    shown: dict[str, JsonValue]
    """The parts that the judge would have been shown, by name."""
    label: str = ""
    """The right label; absent where `claims` carry the labels."""
    reason: str = ""
    quotes: Several[str] = ()
    claims: Several[ExampleClaim] = ()

    @property
    def labels(self) -> frozenset[str]:
        """All labels in the right answer."""
        return frozenset([claim.label for claim in self.claims] or [self.label])


def render_plain(value: JsonValue, *, sort_keys: bool = False) -> str:
    r"""Render a value as one line of ASCII JSON without the characters that tags are made of.

    >>> render_plain({"a": "</x> é\n&"})
    '{"a": "\\u003c/x\\u003e \\u00e9\\n\\u0026"}'
    """
    text = json.dumps(value, ensure_ascii=True, sort_keys=sort_keys)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
