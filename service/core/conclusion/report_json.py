"""Write a report as JSON. Criterion scores that many reports share cache theirs: encoding them takes most of the time."""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

from pydantic import TypeAdapter
from pydantic_core import SchemaSerializer

from service.core.report import CriterionScore, Report, ReportOutcome

REPORT: TypeAdapter[Report] = TypeAdapter(Report)

_APART = {"criteria"}
_NEXT = b',"steps":'
"""The member after `criteria`. Texts escape their quotation marks, so this only matches a member of the report itself."""


def report_json(report: Report) -> bytes:
    """Write the report as JSON: the same bytes for the same report at every front door."""
    text = _build_serializer(Report).to_json(report, exclude=_APART)
    at = text.index(_NEXT)
    write = _build_serializer(CriterionScore).to_json
    parts = [one.cached_json or write(one) for one in report.criteria]
    return b'%b,"criteria":[%b]%b' % (text[:at], b",".join(parts), text[at:])


def cache_json(score: CriterionScore) -> CriterionScore:
    """Cache the JSON of a score that many reports share, and return the score."""
    score.cached_json = _build_serializer(CriterionScore).to_json(score)
    return score


@cache
def _build_serializer(kind: Any) -> SchemaSerializer:
    """Build the serializer of a type. Each kind of outcome gets its own, which encodes it wherever it appears."""
    for outcome in get_args(get_args(ReportOutcome)[0]):
        outcome.__pydantic_serializer__ = TypeAdapter(outcome).serializer
    return TypeAdapter(kind).serializer
