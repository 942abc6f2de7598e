"""Write a report as JSON. Scores that many reports share cache theirs: encoding them takes most of the time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar, get_args

from pydantic import TypeAdapter
from pydantic_core import SchemaSerializer

from service.core.models.light import HasCachedJson
from service.core.report import Report, ReportOutcome

REPORT: TypeAdapter[Report] = TypeAdapter(Report)

_APART = {"stages", "criteria"}
_NEXT = b',"steps":'
"""The member after these. Texts escape their quotation marks, so this only matches a member of the report itself."""


def report_json(report: Report) -> bytes:
    """Write the report as JSON: the same bytes for the same report at every front door."""
    text = _build_serializer(Report).to_json(report, exclude=_APART)
    at = text.index(_NEXT)
    stages, criteria = _write_scores(report.stages), _write_scores(report.criteria)
    return b'%b,"stages":[%b],"criteria":[%b]%b' % (text[:at], stages, criteria, text[at:])


def _write_scores(scores: Sequence[HasCachedJson]) -> bytes:
    return b",".join([one.cached_json or _build_serializer(type(one)).to_json(one) for one in scores])


Score = TypeVar("Score", bound=HasCachedJson)


def cache_json(score: Score) -> Score:
    """Cache the JSON of a score that many reports share, and return the score."""
    score.cached_json = _build_serializer(type(score)).to_json(score)
    return score


@cache
def _build_serializer(kind: Any) -> SchemaSerializer:
    """Build the serializer of a type. Each kind of outcome gets its own, which encodes it wherever it appears."""
    for outcome in get_args(get_args(ReportOutcome)[0]):
        outcome.__pydantic_serializer__ = TypeAdapter(outcome).serializer
    return TypeAdapter(kind).serializer
