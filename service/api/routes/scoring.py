"""The routes that score: one trace, rubrics, probes and metrics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal, NamedTuple, TypeVar

from fastapi import Path
from pydantic import RootModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

from service.api.access import find_payer, find_tenant
from service.api.body import read_body
from service.api.contract import BODY_PROBLEMS, JSON, build_router, describe_json
from service.api.fairness import Threads
from service.api.metrics import ServiceMetrics
from service.api.readiness import Readiness
from service.api.routes.scores import KeptScoreRoutes
from service.asking.cache.guard import GuardedCache
from service.core.plan import Plan
from service.core.report import ENGINE, Report
from service.core.rubric import Rubric
from service.engine import Engine, report_json
from service.errors import JudgeDownError, UnknownRubricError
from service.reading.request import ScoreRequest, read_request
from service.reading.strict_json import Limits, parse_strictly
from service.reporting.breaks import count_report
from service.scoring_process import LARGE_BYTES, LargeScorer, ProcessRefusal, draft_score
from service.store.labelling.drafts import ScoreDraft

LOG = logging.getLogger("callgrade.api")

T = TypeVar("T")

OFF_LOOP_BYTES = 16 * 1024
"""Bodies over this size are processed in a thread, so that one large trace does not delay the small ones."""

THREAD_COUNT = 4
"""They share one interpreter: more of them would finish nothing sooner, and slow the event loop."""


@dataclass(frozen=True, slots=True)
class RubricInfo:
    """A rubric in the list. `hash` is the sha256 of its canonical JSON, as in a report."""

    id: str
    version: int
    hash: str
    title: str
    description: str


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


class WaitingRequest(NamedTuple):
    """A request that must wait for its sandbox or judges before it can be scored."""

    request: ScoreRequest
    plan: Plan | None
    """What code has decided; None if a sandbox comes first."""


class ScoredRequest(NamedTuple):
    """A report as JSON, and what is stored of it, if it is to be stored."""

    report: bytes
    kept: ScoreDraft | None


class ScoringRoutes:
    """The handlers over one engine."""

    def __init__(
        self,
        engine: Engine,
        limits: Limits,
        *,
        metrics: ServiceMetrics,
        readiness: Readiness,
        keeper: KeptScoreRoutes,
        large_scorer: LargeScorer | None = None,
    ) -> None:
        """`large_scorer` scores large requests, so that they do not delay small ones; None: threads do."""
        self.engine = engine
        self.limits = limits
        self.metrics = metrics
        self.readiness = readiness
        self.keeper = keeper
        self.large_scorer = large_scorer
        self._threads = Threads(THREAD_COUNT, name="scoring")
        self.router, self.probes = router, probes = build_router("score", 404, 507), build_router("service")
        body = describe_json(ScoreRequest, EXAMPLE)
        router.post("/v1/score", response_model=Report, responses=BODY_PROBLEMS, openapi_extra=body)(self.score)
        router.get("/v1/rubrics")(self.list_rubrics)
        router.get("/v1/rubrics/{rubric_id}")(self.show_rubric)
        probes.get("/livez", openapi_extra={"security": []})(self.livez)
        probes.get("/readyz", openapi_extra={"security": []})(self.readyz)
        probes.get("/metrics", response_class=PlainTextResponse)(self.show_metrics)

    async def score(self, request: Request) -> Response:
        """Score one trace: a verdict for each step, with findings and their places."""
        return await self.score_data(request, await read_body(request, self.limits))

    async def score_data(self, request: Request, data: bytes) -> Response:
        """Answer the body of POST /v1/score, wherever it came from."""
        if len(data) > OFF_LOOP_BYTES:
            work = self._threads.run(find_payer(request.scope), partial(self._begin, data))
            result = await await_while_connected(request, work)
        else:
            result = self._begin(data)
        if isinstance(result, ScoredRequest):
            return Response(result.report, headers=await self.keeper.keep(request, result.kept, data), media_type=JSON)
        report = await await_while_connected(request, self._finish(result, find_tenant(request)))
        scored = self._record_report(result.request, report)
        headers = build_judging_headers(report) | await self.keeper.keep(request, scored.kept, data)
        return Response(scored.report, headers=headers, media_type=JSON)

    async def list_rubrics(self) -> RubricList:
        """List the available rubrics."""
        infos = [RubricInfo(r.id, r.version, r.digest, r.title, r.description) for r in self.engine.registry]
        return RubricList(tuple(infos))

    async def show_rubric(
        self, rubric_id: Annotated[str, Path(description="`id` or `id@version`", examples=["four_step"])]
    ) -> Rubric:
        """Show one rubric whole, as it scores."""
        try:
            return self.engine.registry.find(rubric_id)
        except UnknownRubricError as error:
            raise HTTPException(404, error.problems[0].message) from None

    async def livez(self) -> Health:
        """Say that the process answers."""
        return Health("ok", ENGINE)

    async def readyz(self) -> Health:
        """Say that the process is ready: what requests need is loaded. A judge that is down does not stop scoring."""
        await self.readiness.check()
        judging = self.engine.judging
        trouble = judging.cache.trouble if judging and isinstance(judging.cache, GuardedCache) else None
        warning = f"the cache of judgements failed when last used ({trouble}); judges are asked again"
        return Health("ok", ENGINE, (warning,) if trouble else ())

    async def show_metrics(self) -> Response:
        """Return metrics for Prometheus."""
        return await self.metrics.render_exposition()

    def _begin(self, data: bytes) -> ScoredRequest | WaitingRequest:
        """Score a body, or return its request with its plan if it must wait for somebody."""
        if self.large_scorer is not None and len(data) >= LARGE_BYTES:
            scored = self._score_large(self.large_scorer, data)
            if scored is not None:
                return scored
        request = read_request(parse_strictly(data, self.limits))
        self.keeper.should_keep(request.store)
        if not self.engine.must_wait(request):
            return self._record_report(request, self.engine.answer(request))
        return WaitingRequest(request, self.engine.plan(request) if request.sandbox is None else None)

    async def _finish(self, waiting: WaitingRequest, tenant: str) -> Report:
        try:
            if waiting.plan is None:
                return await self.engine.answer_async(waiting.request, tenant=tenant)
            return await self.engine.finish(waiting.request, waiting.plan, tenant=tenant)
        except JudgeDownError as error:
            self.metrics.count_refusal(error.cause)
            raise

    def _record_report(self, request: ScoreRequest, report: Report) -> ScoredRequest:
        """Count a report, write it once, and draft what is stored of it."""
        self.metrics.count(count_report(report))
        text = report_json(report)
        if not self.keeper.should_keep(request.store):
            return ScoredRequest(text, None)
        return ScoredRequest(text, draft_score(self.engine.registry.find(request.rubric), request, report, text))

    def _score_large(self, large_scorer: LargeScorer, data: bytes) -> ScoredRequest | None:
        answer = large_scorer.score(data, self.limits)
        if isinstance(answer, ProcessRefusal):
            raise answer.error(answer.problems)
        if answer is None:
            return None
        kept = answer.kept if self.keeper.should_keep(answer.store) else None
        self.metrics.count(answer.tally)
        return ScoredRequest(answer.report, kept)


def build_judging_headers(report: Report) -> dict[str, str]:
    """Build headers with what the judges of a report used, for clients that do not read the body."""
    provenance = report.provenance
    counts = {"replies": provenance.replies, "cache-hits": provenance.cache_hits, "tokens-in": provenance.tokens_in}
    counts |= {"tokens-out": provenance.tokens_out, "cost-usd": provenance.cost_usd}
    counts["unpriced-calls"] = provenance.unpriced_calls or None
    return {f"x-callgrade-judge-{name}": str(count) for name, count in counts.items() if count is not None}


async def await_while_connected(request: Request, work: Awaitable[T]) -> T:
    """Await `work`; raise ClientDisconnect if the client leaves first, and cancel the work.

    Only for a request with its body already read: this consumes what comes next on the connection.
    """
    limit = asyncio.timeout(None)
    try:
        async with limit:
            watcher = asyncio.create_task(_expire(request, limit))
            try:
                return await work
            finally:
                watcher.cancel()
    except TimeoutError:
        if limit.expired():
            raise ClientDisconnect from None
        raise


async def _expire(request: Request, limit: asyncio.Timeout) -> None:
    """Let the time limit of the work expire as soon as the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    limit.reschedule(asyncio.get_running_loop().time())
