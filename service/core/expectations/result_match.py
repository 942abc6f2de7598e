"""Compare what a call returned with the expected result: as it is, or as the JSON in its text."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from service.core.critics import Match, OpenComparison, ValueCritic
from service.core.expectations.templates import Template, match_template
from service.core.models.light import light
from service.core.results.structure import read_value


@light
class InferredMatch(Match):
    """A comparison with structure inferred from a text, in these forms. It proves nothing."""

    forms: tuple[str, ...] = ()


def match_result(template: Template, content: JsonValue) -> Match | OpenComparison:
    """Compare a result with a template. If that expects a container and the result is text, also try the JSON in it."""
    match = match_template(template, content)
    wanted = template.value if isinstance(template, ValueCritic) else template
    if not isinstance(match, Match) or match.passed or not isinstance(wanted, Mapping | list):
        return match
    found = read_value(content)
    inner = match if found is None else match_template(template, found.value)
    if found is None or not isinstance(inner, Match):
        return inner
    if not found.exact:
        return InferredMatch(inner.value, inner.passed, inner.explanation, forms=found.forms)
    return inner if inner.value >= match.value else match
