"""Summaries over HTTP."""

from __future__ import annotations

from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import Response

from service.api.fairness.workroom import Workroom
from service.api.operations import JSON, Operation, RequestBody
from service.engine import Engine
from service.reading.strict_json import Limits
from service.reporting.summaries import (
    SummaryRequest,
    read_summary_request,
    render_json,
    summarize_request,
)
from service.reporting.summary import Summary

_WHOLE = {"verdict": "pass", "score": 1.0, "coverage": 1.0, "score_range": [1.0, 1.0], "full_range": [1.0, 1.0]}
_COUNTS = {"replies": 0, "cache_hits": 0, "questions_saved": 0, "tokens_in": None, "tokens_out": None, "cost_usd": None}
_JUDGES = {"engine": "2", "judges": "off", "judge_model": None, "stand_in": False, **_COUNTS}
_EMPTY: dict[str, list[str]] = {name: [] for name in ("failing", "criteria", "steps", "missing", "not_asked")}
_REPORT = {
    "trace_id": "refund-1",
    "rubric": {"id": "four_step", "version": 1, "hash": "0" * 64, "min_coverage": 0.5},
    **_WHOLE,
    **_EMPTY,
    "all_passed": True,
    "first_failing_stage": None,
    "stages": [{"stage": "decide", **_WHOLE}],
    "decisions": [{"turn": None, "expected": "no_call", "made": False}],
    "offered": ["refund_order"],
    "tags": {"step": "decide"},
    "provenance": {**_JUDGES, "calibrators": "uncalibrated"},
}
EXAMPLE = {"reports": [_REPORT], "assertions": ["pass_rate >= 0.95"]}
"""A body that can be sent."""


class SummaryRoutes:
    """The handler over one engine's rubrics."""

    def __init__(self, engine: Engine, limits: Limits, workroom: Workroom) -> None:
        self.find_rubric = engine.registry.find
        self.limits = limits
        self.workroom = workroom

    def build_operation(self) -> Operation:
        """Build the route."""
        body = RequestBody(SummaryRequest, EXAMPLE)
        return Operation("POST", "/v1/summaries", self.summarize, Summary, body=body)

    async def summarize(self, request: Request) -> Response:
        """Summarize reports: rates with intervals, each tool, pass^k, the composition of the set, and a gate on them."""
        return Response(await self.workroom.handle(request, self.limits, self._summarize), media_type=JSON)

    def _summarize(self, body: JsonValue) -> bytes:
        return render_json(summarize_request(read_summary_request(body), self.find_rubric))
