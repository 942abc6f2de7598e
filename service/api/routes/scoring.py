"""The routes of version 1."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple

from pydantic import JsonValue, RootModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.api.access import find_caller
from service.api.body import read_body
from service.api.fairness.workroom import Workroom
from service.api.idempotency import IdempotentAnswers, read_idempotency_key
from service.api.metrics import ServiceMetrics
from service.api.operations import JSON, TEXT, Answer, Operation, RequestBody, describe_key, describe_named
from service.api.presence import await_attended
from service.api.problems import PROBLEM, Place, ProblemDetails, build_details, describe_error, list_places
from service.api.readiness import Readiness
from service.api.routes.summaries import SummaryRoutes
from service.api.score_keeping import ScoreKeeper
from service.core.plan import Plan
from service.core.report import ENGINE, Report, RubricRef
from service.core.rubric import Rubric
from service.engine import Engine, report_json
from service.errors import (
    AllowanceSpentError,
    InputError,
    JudgeDownError,
    RubricError,
    TooLargeError,
    UnknownRubricError,
)
from service.reading.strict_json import Limits
from service.registry import read_rubric
from service.reporting.counts import count_report
from service.request import ScoreRequest, read_request
from service.score_drafts import draft_score
from service.scoring_process import ApartRefusal, ApartScorer
from service.store.labelling.drafts import ScoreDraft

LOG = logging.getLogger("callgrade.api")


@dataclass(frozen=True, slots=True)
class RubricInfo:
    """A rubric in the list. `hash` is the sha256 of its canonical JSON, as in a report."""

    id: str
    version: int
    hash: str
    title: str
    description: str


@dataclass(frozen=True, slots=True)
class RubricCheck:
    """Whether a rubric can be used: `rubric` where it can, `errors` where not."""

    valid: bool
    rubric: RubricRef | None
    errors: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class ManyItem:
    """One item of a list: its report, or what is wrong with it (its pointers start at the item)."""

    index: int
    report: Report | None
    error: ProblemDetails | None


@dataclass(frozen=True, slots=True)
class ManyReports:
    """The results of a list, in its order."""

    succeeded: int
    failed: int
    results: tuple[ManyItem, ...]


@dataclass(frozen=True, slots=True)
class Health:
    """The service's word on itself."""

    status: Literal["ok"]
    engine: str


class RubricList(RootModel[tuple[RubricInfo, ...]]):
    """The rubrics at hand."""


EXAMPLE = {
    "trace": {
        "format": "openai",
        "tools": [{"type": "function", "function": {"name": "refund_order", "parameters": {"type": "object"}}}],
        "messages": [
            {"role": "user", "content": "Refund order 8821, please."},
            {
                "role": "assistant",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "refund_order", "arguments": '{"order_id": "8821"}'},
                    }
                ],
            },
        ],
    },
    "expected": {"calls": [{"tool": "refund_order", "args": {"order_id": "8821"}}]},
}
KEYED = describe_key(
    "Of all requests with the same key only the first is worked on; the others are given its answer, for a day"
)
NAMED = describe_named("rubric_id", "`id` or `id@version`", "four_step")
RUBRIC_EXAMPLE = {"extends": "four_step", "id": "stricter", "thresholds": {"fail": 0.9, "warn": 0.95}}

Line = tuple[bool, bytes]
"""Whether an item was scored, and its ManyItem as JSON: the report in the very bytes it has on its own."""


class WaitingRequest(NamedTuple):
    """A request whose sandbox or judges must be waited for before it can be scored."""

    request: ScoreRequest
    plan: Plan | None
    """What code has decided; None where a sandbox comes first."""
    sent: JsonValue = None
    """The request as it came, where it is one of a list."""


class ScoredRequest(NamedTuple):
    """A report as JSON, and what is kept of it, if it is to be."""

    report: bytes
    kept: ScoreDraft | None


class ScoredLine(NamedTuple):
    """The line of an item that nobody waits for, and what is kept of it, if it is to be."""

    line: Line
    kept: ScoreDraft | None


class ScoringRoutes:
    """The handlers over one engine."""

    def __init__(  # noqa: PLR0913 (one for each part)
        self,
        engine: Engine,
        limits: Limits,
        *,
        max_many: int,
        metrics: ServiceMetrics,
        readiness: Readiness,
        repeats: IdempotentAnswers,
        keeper: ScoreKeeper | None = None,
        apart: ApartScorer | None = None,
    ) -> None:
        """`keeper` keeps scores; None: nobody does.

        `apart` scores large requests, so that they stall no small ones; None: threads do.
        """
        self.engine = engine
        self.limits = limits
        self.max_many = max_many
        self.metrics = metrics
        self.readiness = readiness
        self.repeats = repeats
        self.keeper = keeper or ScoreKeeper(None)
        self.apart = apart
        self.workroom = Workroom()
        self.summaries = SummaryRoutes(engine, limits, self.workroom)

    def all(self) -> list[BaseRoute]:
        """The routes, each with what it takes and gives."""
        many = {"type": "array", "items": {"$ref": "#/components/schemas/ScoreRequest"}, "maxItems": self.max_many}
        one, several = RequestBody(ScoreRequest, EXAMPLE), RequestBody(many, [EXAMPLE])
        exposition = [Answer({"text/plain": TEXT})]
        check = RequestBody({}, RUBRIC_EXAMPLE)
        return [
            Operation("POST", "/v1/score", self.score, Report, 409, 422, 503, takes=one, parameters=[KEYED]),
            Operation("POST", "/v1/score/many", self.score_many, ManyReports, 422, 503, takes=several),
            self.summaries.build_operation(),
            Operation("GET", "/v1/rubrics", self.list_rubrics, RubricList, 503),
            Operation("GET", "/v1/rubrics/{rubric_id}", self.show_rubric, Rubric, 404, 503, parameters=[NAMED]),
            Operation("POST", "/v1/rubrics/validate", self.validate_rubric, RubricCheck, 503, takes=check),
            Operation("GET", "/livez", self.livez, Health),
            Operation("GET", "/readyz", self.readyz, Health, 503),
            Operation("GET", "/metrics", self.show_metrics, exposition),
        ]

    async def score(self, request: Request) -> Response:
        """Score one trace: a verdict for each step, with findings and their places."""
        key, data = read_idempotency_key(request.headers), await read_body(request, self.limits)
        if key is None:
            return await self.score_data(request, data)
        return await self.repeats.run_once(request, key, data, lambda: self.score_data(request, data))

    async def score_data(self, request: Request, data: bytes) -> Response:
        """The answer to the body of POST /v1/score, wherever it came from."""
        apart = None if self.apart is None else partial(self._score_apart, self.apart)
        found = await self.workroom.make(request, data, self.limits, self._begin, apart)
        if isinstance(found, ScoredRequest):
            return Response(found.report, headers=await self.keeper.keep(request, found.kept, data), media_type=JSON)
        report = await await_attended(request, self._finish(found, find_caller(request).tenant))
        told = self._tell_report(found.request, report)
        headers = build_judging_headers(report) | await self.keeper.keep(request, told.kept, data)
        return Response(told.report, headers=headers, media_type=JSON)

    async def score_many(self, request: Request) -> Response:
        """Score a list of traces. Results are in its order; an item that cannot be scored does not spoil the others."""
        lines = await self.workroom.handle(request, self.limits, self._begin_many)
        waiting = [self._finish_item(n, one, request) for n, one in enumerate(lines) if isinstance(one, WaitingRequest)]
        late = iter(await await_attended(request, asyncio.gather(*waiting)) if waiting else [])
        for one in lines:
            if isinstance(one, ScoredLine) and one.kept is not None:
                await self.keeper.keep(request, one.kept, one.kept.request)
        return Response(
            _join_lines([next(late) if isinstance(one, WaitingRequest) else one.line for one in lines]),
            media_type=JSON,
        )

    async def list_rubrics(self, _: Request) -> RubricList:
        """List the rubrics at hand."""
        infos = [RubricInfo(r.id, r.version, r.digest, r.title, r.description) for r in self.engine.registry]
        return RubricList(tuple(infos))

    async def show_rubric(self, request: Request) -> Rubric:
        """Show one rubric whole, as it scores."""
        try:
            return self.engine.registry.find(request.path_params["rubric_id"])
        except UnknownRubricError as error:
            raise HTTPException(404, error.problems[0].message) from None

    async def validate_rubric(self, request: Request) -> RubricCheck:
        """Check a rubric: whether it can be used, and what is wrong where it cannot."""
        return await self.workroom.handle(request, self.limits, self._check_rubric)

    async def livez(self, _: Request) -> Health:
        """Tell that the process answers."""
        return Health("ok", ENGINE)

    async def readyz(self, _: Request) -> Health:
        """Tell that requests can be sent here: what they need is loaded. A judge that is down does not stop the scoring."""
        await self.readiness.check()
        return Health("ok", ENGINE)

    async def show_metrics(self, _: Request) -> Response:
        """Give metrics to Prometheus."""
        return await self.metrics.render_exposition()

    def _begin(self, body: JsonValue) -> ScoredRequest | WaitingRequest:
        """The report, or a request that somebody must be waited for."""
        request = read_request(body)
        self.keeper.wants(request)
        if not self.engine.waits(request):
            return self._tell_report(request, self.engine.answer(request))
        return WaitingRequest(request, self.engine.plan(request) if request.sandbox is None else None)

    async def _finish(self, waiting: WaitingRequest, tenant: str) -> Report:
        if waiting.plan is None:
            return await self.engine.answer_async(waiting.request, tenant=tenant)
        return await self.engine.finish(waiting.request, waiting.plan, tenant=tenant)

    def _tell_report(self, request: ScoreRequest, report: Report) -> ScoredRequest:
        """The report as it is answered and kept, written once, and counted."""
        self.metrics.count(count_report(report))
        text = report_json(report)
        if not self.keeper.wants(request):
            return ScoredRequest(text, None)
        return ScoredRequest(text, draft_score(self.engine.registry.find(request.rubric), request, report, text))

    def _score_apart(self, apart: ApartScorer, data: bytes, limits: Limits) -> ScoredRequest | None:
        answer = apart.score(data, limits)
        if isinstance(answer, ApartRefusal):
            raise answer.error(answer.problems)
        if answer is None:
            return None
        kept = answer.kept if self.keeper.is_wanted(answer.store) else None
        self.metrics.count(answer.tally)
        return ScoredRequest(answer.report, kept)

    def _begin_many(self, body: JsonValue) -> list[ScoredLine | WaitingRequest]:
        if not isinstance(body, list):
            raise InputError.at("", "expected a list of score requests")
        if len(body) > self.max_many:
            raise TooLargeError.at("", f"{len(body)} items in one list; at most {self.max_many}")
        return [self._begin_item(index, item) for index, item in enumerate(body)]

    def _begin_item(self, index: int, item: JsonValue) -> ScoredLine | WaitingRequest:
        try:
            begun = self._begin(item)
            if isinstance(begun, WaitingRequest):
                return begun._replace(sent=item)
            kept = None if begun.kept is None else replace(begun.kept, request=json.dumps(item).encode())
            return ScoredLine(_render_item_report(index, begun.report), kept)
        except Exception as error:  # noqa: BLE001 (a fault of ours with one item does not spoil the others)
            return ScoredLine(_render_item_error(index, error), None)

    async def _finish_item(self, index: int, waiting: WaitingRequest, request: Request) -> Line:
        try:
            report = await self._finish(waiting, find_caller(request).tenant)
            told = self._tell_report(waiting.request, report)
            await self.keeper.keep(request, told.kept, json.dumps(waiting.sent).encode())
            return _render_item_report(index, told.report)
        except Exception as error:  # noqa: BLE001 (likewise)
            return _render_item_error(index, error)

    def _check_rubric(self, body: JsonValue) -> RubricCheck:
        try:
            rubric = self.engine.registry.find(read_rubric(body))
        except RubricError as error:
            return RubricCheck(False, None, list_places(error))
        return RubricCheck(True, RubricRef(rubric.id, rubric.version, rubric.digest), ())


def build_judging_headers(report: Report) -> dict[str, str]:
    """What the judges of a report took, for callers who look at no body."""
    made = report.provenance
    counts = {"replies": made.replies, "cache-hits": made.cache_hits, "tokens-in": made.tokens_in}
    counts |= {"tokens-out": made.tokens_out, "cost-usd": made.cost_usd}
    return {f"x-callgrade-judge-{name}": str(count) for name, count in counts.items() if count is not None}


def _render_item_report(index: int, report: bytes) -> Line:
    return True, b'{"index":%d,"report":%b,"error":null}' % (index, report)


def _render_item_error(index: int, error: Exception) -> Line:
    if isinstance(error, InputError | JudgeDownError | AllowanceSpentError):
        told = describe_error(error)
    else:
        LOG.error("unhandled error in item %d", index, exc_info=error)
        told = build_details(500, "an error of ours; it is in the log")
    return False, b'{"index":%d,"report":null,"error":%b}' % (index, PROBLEM.dump_json(told))


def _join_lines(lines: list[Line]) -> bytes:
    good = sum(scored for scored, _ in lines)
    head = b'{"succeeded":%d,"failed":%d,"results":[' % (good, len(lines) - good)
    return head + b",".join(line for _, line in lines) + b"]}"
