"""The routes that score: one trace or many, rubrics, probes and metrics."""

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

from service.api.access import find_tenant
from service.api.body import read_body
from service.api.fairness.workroom import Workroom
from service.api.metrics import ServiceMetrics
from service.api.operations import (
    JSON,
    TEXT,
    Answer,
    Operation,
    RequestBody,
)
from service.api.presence import await_while_connected
from service.api.readiness import Readiness
from service.api.score_keeping import ScoreKeeper
from service.asking.cache.guard import GuardedCache
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
from service.problems import PROBLEM, Place, ProblemDetails, build_details, describe_error, list_places
from service.reading.request import ScoreRequest, read_request
from service.reading.strict_json import Limits
from service.registry import read_rubric
from service.reporting.breaks import count_report
from service.scoring_process import LargeScorer, ProcessRefusal, draft_score
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
    """Whether a rubric can be used: `rubric` if it can, `errors` if it cannot."""

    valid: bool
    rubric: RubricRef | None
    errors: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class ManyItem:
    """One item of a list: its report, or what is wrong with it (pointers start at the item)."""

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
    """The health of the service."""

    status: Literal["ok"]
    engine: str
    warnings: tuple[str, ...] = ()
    """What costs more than it should, although requests are answered."""


class RubricList(RootModel[tuple[RubricInfo, ...]]):
    """The available rubrics."""


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
RUBRIC_EXAMPLE = {"extends": "four_step", "id": "stricter", "thresholds": {"fail": 0.9, "warn": 0.95}}


class WaitingRequest(NamedTuple):
    """A request that must wait for its sandbox or judges before it can be scored."""

    request: ScoreRequest
    plan: Plan | None
    """What code has decided; None if a sandbox comes first."""
    sent: JsonValue = None
    """The request as it came, if it is one of a list."""


class ScoredRequest(NamedTuple):
    """A report as JSON, and what is stored of it, if it is to be stored."""

    report: bytes
    kept: ScoreDraft | None


class ItemResult(NamedTuple):
    """One item of a list: its ManyItem as JSON, with the report in the same bytes as on its own, and what is stored of it."""

    scored: bool
    line: bytes
    kept: ScoreDraft | None = None


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
        keeper: ScoreKeeper,
        large_scorer: LargeScorer | None = None,
    ) -> None:
        """`large_scorer` scores large requests, so that they do not delay small ones; None: threads do."""
        self.engine = engine
        self.limits = limits
        self.max_many = max_many
        self.metrics = metrics
        self.readiness = readiness
        self.keeper = keeper
        self.large_scorer = large_scorer
        self.workroom = Workroom()

    def all(self) -> list[Operation]:
        """List the routes."""
        many = {"type": "array", "items": {"$ref": "#/components/schemas/ScoreRequest"}, "maxItems": self.max_many}
        one, several = RequestBody(ScoreRequest, EXAMPLE), RequestBody(many, [EXAMPLE])
        check, exposition = RequestBody({}, RUBRIC_EXAMPLE), [Answer({"text/plain": TEXT})]
        return [
            Operation("POST", "/v1/score", self.score, Report, 507, body=one),
            Operation("POST", "/v1/score/many", self.score_many, ManyReports, body=several),
            Operation("GET", "/v1/rubrics", self.list_rubrics, RubricList),
            Operation("GET", "/v1/rubrics/{rubric_id}", self.show_rubric, Rubric),
            Operation("POST", "/v1/rubrics/validate", self.validate_rubric, RubricCheck, body=check),
            Operation("GET", "/livez", self.livez, Health),
            Operation("GET", "/readyz", self.readyz, Health, 503),
            Operation("GET", "/metrics", self.show_metrics, exposition),
        ]

    async def score(self, request: Request) -> Response:
        """Score one trace: a verdict for each step, with findings and their places."""
        return await self.score_data(request, await read_body(request, self.limits))

    async def score_data(self, request: Request, data: bytes) -> Response:
        """Answer the body of POST /v1/score, wherever it came from."""
        handle_large = None if self.large_scorer is None else partial(self._score_large, self.large_scorer)
        result = await self.workroom.handle_data(request, data, self.limits, self._begin, handle_large)
        if isinstance(result, ScoredRequest):
            return Response(result.report, headers=await self.keeper.keep(request, result.kept, data), media_type=JSON)
        report = await await_while_connected(request, self._finish(result, find_tenant(request)))
        scored = self._record_report(result.request, report)
        headers = build_judging_headers(report) | await self.keeper.keep(request, scored.kept, data)
        return Response(scored.report, headers=headers, media_type=JSON)

    async def score_many(self, request: Request) -> Response:
        """Score a list of traces. Results are in its order; an item that cannot be scored does not affect the others."""
        begun = await self.workroom.handle(request, self.limits, self._begin_many)
        waiting = [self._finish_item(n, one, request) for n, one in enumerate(begun) if isinstance(one, WaitingRequest)]
        finished = iter(await await_while_connected(request, asyncio.gather(*waiting)) if waiting else [])
        results = [next(finished) if isinstance(one, WaitingRequest) else one for one in begun]
        for kept in [one.kept for one in results if one.kept is not None]:
            await self.keeper.keep(request, kept, kept.request)
        succeeded = sum(one.scored for one in results)
        head = b'{"succeeded":%d,"failed":%d,"results":[' % (succeeded, len(results) - succeeded)
        return Response(head + b",".join(one.line for one in results) + b"]}", media_type=JSON)

    async def list_rubrics(self, _: Request) -> RubricList:
        """List the available rubrics."""
        infos = [RubricInfo(r.id, r.version, r.digest, r.title, r.description) for r in self.engine.registry]
        return RubricList(tuple(infos))

    async def show_rubric(self, request: Request) -> Rubric:
        """Show one rubric whole, as it scores."""
        try:
            return self.engine.registry.find(request.path_params["rubric_id"])
        except UnknownRubricError as error:
            raise HTTPException(404, error.problems[0].message) from None

    async def validate_rubric(self, request: Request) -> RubricCheck:
        """Check whether a rubric can be used, and what is wrong if it cannot."""
        return await self.workroom.handle(request, self.limits, self._check_rubric)

    async def livez(self, _: Request) -> Health:
        """Say that the process answers."""
        return Health("ok", ENGINE)

    async def readyz(self, _: Request) -> Health:
        """Say that the process is ready: what requests need is loaded. A judge that is down does not stop scoring."""
        await self.readiness.check()
        judging = self.engine.judging
        trouble = judging.cache.trouble if judging and isinstance(judging.cache, GuardedCache) else None
        warning = f"the cache of judgements failed when last used ({trouble}); judges are asked again"
        return Health("ok", ENGINE, (warning,) if trouble else ())

    async def show_metrics(self, _: Request) -> Response:
        """Return metrics for Prometheus."""
        return await self.metrics.render_exposition()

    def _begin(self, body: JsonValue) -> ScoredRequest | WaitingRequest:
        """Score a request, or return it with its plan if it must wait for somebody."""
        request = read_request(body)
        self.keeper.should_keep(request.store)
        if not self.engine.must_wait(request):
            return self._record_report(request, self.engine.answer(request))
        return WaitingRequest(request, self.engine.plan(request) if request.sandbox is None else None)

    async def _finish(self, waiting: WaitingRequest, tenant: str) -> Report:
        if waiting.plan is None:
            return await self.engine.answer_async(waiting.request, tenant=tenant)
        return await self.engine.finish(waiting.request, waiting.plan, tenant=tenant)

    def _record_report(self, request: ScoreRequest, report: Report) -> ScoredRequest:
        """Count a report, write it once, and draft what is stored of it."""
        self.metrics.count(count_report(report))
        text = report_json(report)
        if not self.keeper.should_keep(request.store):
            return ScoredRequest(text, None)
        return ScoredRequest(text, draft_score(self.engine.registry.find(request.rubric), request, report, text))

    def _score_large(self, large_scorer: LargeScorer, data: bytes, limits: Limits) -> ScoredRequest | None:
        answer = large_scorer.score(data, limits)
        if isinstance(answer, ProcessRefusal):
            raise answer.error(answer.problems)
        if answer is None:
            return None
        kept = answer.kept if self.keeper.should_keep(answer.store) else None
        self.metrics.count(answer.tally)
        return ScoredRequest(answer.report, kept)

    def _begin_many(self, body: JsonValue) -> list[ItemResult | WaitingRequest]:
        if not isinstance(body, list):
            raise InputError.at("", "expected a list of score requests")
        if len(body) > self.max_many:
            raise TooLargeError.at("", f"{len(body)} items in one list; at most {self.max_many}")
        return [self._begin_item(index, item) for index, item in enumerate(body)]

    def _begin_item(self, index: int, item: JsonValue) -> ItemResult | WaitingRequest:
        try:
            begun = self._begin(item)
            return begun._replace(sent=item) if isinstance(begun, WaitingRequest) else _build_item(index, item, begun)
        except Exception as error:  # noqa: BLE001 (a bug of ours with one item must not affect the others)
            return _build_failed_item(index, error)

    async def _finish_item(self, index: int, waiting: WaitingRequest, request: Request) -> ItemResult:
        try:
            report = await self._finish(waiting, find_tenant(request))
            return _build_item(index, waiting.sent, self._record_report(waiting.request, report))
        except Exception as error:  # noqa: BLE001 (likewise)
            return _build_failed_item(index, error)

    def _check_rubric(self, body: JsonValue) -> RubricCheck:
        try:
            rubric = self.engine.registry.find(read_rubric(body))
        except RubricError as error:
            return RubricCheck(False, None, list_places(error))
        reference = RubricRef(rubric.id, rubric.version, rubric.digest, rubric.thresholds.min_coverage)
        return RubricCheck(True, reference, ())


def build_judging_headers(report: Report) -> dict[str, str]:
    """Build headers with what the judges of a report used, for clients that do not read the body."""
    provenance = report.provenance
    counts = {"replies": provenance.replies, "cache-hits": provenance.cache_hits, "tokens-in": provenance.tokens_in}
    counts |= {"tokens-out": provenance.tokens_out, "cost-usd": provenance.cost_usd}
    counts["unpriced-calls"] = provenance.unpriced_calls or None
    return {f"x-callgrade-judge-{name}": str(count) for name, count in counts.items() if count is not None}


def _build_item(index: int, sent: JsonValue, scored: ScoredRequest) -> ItemResult:
    kept = None if scored.kept is None else replace(scored.kept, request=json.dumps(sent).encode())
    return ItemResult(True, b'{"index":%d,"report":%b,"error":null}' % (index, scored.report), kept)


def _build_failed_item(index: int, error: Exception) -> ItemResult:
    if isinstance(error, InputError | JudgeDownError | AllowanceSpentError):
        problem = describe_error(error)
    else:
        LOG.error("unhandled error in item %d", index, exc_info=error)
        problem = build_details(500, "an internal error; it is in the log")
    return ItemResult(False, b'{"index":%d,"report":null,"error":%b}' % (index, PROBLEM.dump_json(problem)))
