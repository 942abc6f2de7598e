"""The report as JSON. Scores that many reports share keep theirs: making it takes longer than all else there is to do."""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

from pydantic import TypeAdapter
from pydantic_core import SchemaSerializer

from service.core.report import CriterionScore, Report, ReportOutcome

REPORT: TypeAdapter[Report] = TypeAdapter(Report)

_APART = {"criteria"}
_NEXT = b',"steps":'
"""The member after them. Quotation marks in texts are escaped, so this is nothing but a member of the report itself."""


def report_json(report: Report) -> bytes:
    """The report as JSON: the same bytes for the same report, whoever asks."""
    text = _build_serializer(Report).to_json(report, exclude=_APART)
    at = text.index(_NEXT)
    write = _build_serializer(CriterionScore).to_json
    parts = [one.cached_json or write(one) for one in report.criteria]
    return b'%b,"criteria":[%b]%b' % (text[:at], b",".join(parts), text[at:])


def cache_json(score: CriterionScore) -> CriterionScore:
    """The score, which keeps its JSON from now on: for one that many reports share."""
    score.cached_json = _build_serializer(CriterionScore).to_json(score)
    return score


@cache
def _build_serializer(kind: Any) -> SchemaSerializer:
    """What encodes a type. Each kind of outcome gets its own, by which it is encoded wherever it stands."""
    for outcome in get_args(get_args(ReportOutcome)[0]):
        outcome.__pydantic_serializer__ = TypeAdapter(outcome).serializer
    return TypeAdapter(kind).serializer
