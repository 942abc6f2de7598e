"""Worked examples that a judge is shown before the question, and the rendering of values in a prompt."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from service.core.models.kinds import FrozenModel, Several


class ExampleClaim(FrozenModel):
    """One claim of a right answer."""

    quote: str
    reason: str = ""
    path: str | None = None
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


def render_examples(examples: Iterable[Example], *, claims: bool) -> Iterator[str]:
    """Yield two lines per example, what is shown and the reply without its token, under a heading; nothing without examples.

    `claims`: whether the judge labels claims.
    """
    listed = list(examples)
    if not listed:
        return
    yield "Examples, each of another matter, with the reply but for its token:"
    for example in listed:
        yield f"- shown: {render_plain(dict(example.shown), sort_keys=True)}"
        yield f"  reply: {render_plain(_build_reply(example, claims=claims))}"
    yield ""


def _build_reply(example: Example, *, claims: bool) -> dict[str, JsonValue]:
    """Build the reply in the shape that the judge asks for; an example without claims keeps its one label."""
    if claims and example.claims:
        return {
            "claims": [
                {"quote": one.quote, "reason": one.reason, "path": one.path, "label": one.label}
                for one in example.claims
            ]
        }
    if claims:
        return {"label": example.label, "reason": example.reason}
    return {"reason": example.reason, "quotes": list(example.quotes), "label": example.label}
