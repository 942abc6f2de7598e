"""What a call returned against what it should have: as it is, or as the JSON that its text holds."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from service.core.critics import Match, OpenComparison, ValueCritic
from service.core.expectations.templates import Template, match_template
from service.core.models.light import light
from service.core.results.structure import read_value


@light
class InferredMatch(Match):
    """A comparison with structure that was inferred from a text: it decides nothing."""

    forms: tuple[str, ...] = ()


def match_result(wanted: Template, content: JsonValue) -> Match | OpenComparison:
    """The comparison of a result; where an object or array is wanted and a text given, the better one with what that spells."""
    match = match_template(wanted, content)
    if not isinstance(match, Match) or match.passed or not wants_structure(wanted):
        return match
    found = read_value(content)
    inner = match if found is None else match_template(wanted, found.value)
    if found is None or not isinstance(inner, Match):
        return inner
    if not found.exact:
        return InferredMatch(inner.value, inner.passed, inner.explanation, forms=found.forms)
    return inner if inner.value >= match.value else match


def wants_structure(wanted: Template) -> bool:
    """Whether an object or an array is expected."""
    return isinstance(wanted.value if isinstance(wanted, ValueCritic) else wanted, Mapping | list)
