"""The routes of version 1."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from fastapi.routing import APIRoute
from pydantic import JsonValue, TypeAdapter
from pydantic.json_schema import JsonSchemaMode
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.api.access import caller_of
from service.api.metrics import Metrics
from service.api.openapi import JSON, READING, Responses, gives, takes
from service.api.presence import attended
from service.api.problems import PROBLEM, Place, ProblemDetails, details, details_of, places_of
from service.api.readiness import Readiness
from service.api.summaries import SUMMARY, SUMMARY_REQUEST, SUMMED, Summaries
from service.api.workroom import Workroom
from service.core.plan import Plan
from service.core.report import ENGINE, Report, RubricRef
from service.core.rubric import Rubric
from service.errors import InputError, JudgeDownError, RubricError, TooLargeError, UnknownRubricError
from service.io.engine import REPORT, Engine, report_json
from service.io.jsonbody import Limits
from service.io.shelf import read_rubric
from service.request import REQUEST, ScoreRequest, read_request

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


RUBRICS: TypeAdapter[tuple[RubricInfo, ...]] = TypeAdapter(tuple[RubricInfo, ...])
CHECK: TypeAdapter[RubricCheck] = TypeAdapter(RubricCheck)
HEALTH: TypeAdapter[Health] = TypeAdapter(Health)

TYPES: Mapping[str, tuple[JsonSchemaMode, TypeAdapter[Any]]] = {
    "ScoreRequest": ("validation", REQUEST),
    "Report": ("serialization", REPORT),
    "ManyReports": ("serialization", TypeAdapter(ManyReports)),
    "SummaryRequest": ("validation", SUMMARY_REQUEST),
    "Summary": ("serialization", SUMMARY),
    "Rubric": ("validation", TypeAdapter(Rubric)),
    "RubricList": ("serialization", RUBRICS),
    "RubricCheck": ("serialization", CHECK),
    "Health": ("serialization", HEALTH),
    "ProblemDetails": ("serialization", PROBLEM),
}
"""What the operations take and give, by the names they use for it. A rubric is given as it could be sent."""

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
NAMED = {
    "parameters": [
        {
            "name": "rubric_id",
            "in": "path",
            "required": True,
            "description": "`id` or `id@version`",
            "schema": {"type": "string"},
            "example": "four_step",
        }
    ]
}
RUBRIC_EXAMPLE = {"extends": "four_step", "id": "stricter", "thresholds": {"fail": 0.9, "warn": 0.95}}

Handler = Callable[[Request], Awaitable[Response]]

Line = tuple[bool, bytes]
"""Whether an item was scored, and its ManyItem as JSON: the report in the very bytes it has on its own."""


class Waiting(NamedTuple):
    """A request whose sandbox or judges must be waited for before it can be scored."""

    request: ScoreRequest
    plan: Plan | None
    """What code has decided; None where a sandbox comes first."""


class Routes:
    """The handlers over one engine."""

    def __init__(
        self, engine: Engine, limits: Limits, *, max_many: int, metrics: Metrics, readiness: Readiness
    ) -> None:
        self.engine = engine
        self.limits = limits
        self.max_many = max_many
        self.metrics = metrics
        self.readiness = readiness
        self.workroom = Workroom()
        self.summaries = Summaries(engine, limits, self.workroom)

    def all(self) -> list[BaseRoute]:
        """The routes, each with what it takes and gives."""
        many = {"type": "array", "items": {"$ref": "#/components/schemas/ScoreRequest"}, "maxItems": self.max_many}
        whole = (*READING, 422, 503)
        return [
            _post("/v1/score", self.score, takes("ScoreRequest", EXAMPLE), gives("Report", *whole)),
            _post("/v1/score/many", self.score_many, takes(many, [EXAMPLE]), gives("ManyReports", *whole)),
            _post("/v1/summaries", self.summaries.summarize, takes("SummaryRequest", SUMMED), gives("Summary", *whole)),
            _get("/v1/rubrics", self.list_rubrics, gives("RubricList", 503)),
            _get("/v1/rubrics/{rubric_id}", self.show_rubric, gives("Rubric", 404, 503), NAMED),
            _post(
                "/v1/rubrics/validate",
                self.validate_rubric,
                takes({}, RUBRIC_EXAMPLE),
                gives("RubricCheck", *READING, 503),
            ),
            _get("/livez", self.livez, gives("Health")),
            _get("/readyz", self.readyz, gives("Health", 503)),
            _get("/metrics", self.show_metrics, gives({"type": "string"}, media="text/plain")),
        ]

    async def score(self, request: Request) -> Response:
        """Score one trace: a verdict for each step, with findings and their places."""
        found = await self.workroom.handle(request, self.limits, self._begun)
        if isinstance(found, bytes):
            return Response(found, media_type=JSON)
        report = await attended(request, self._finished(found, caller_of(request).tenant))
        return Response(self._told(report), headers=judging_headers(report), media_type=JSON)

    async def score_many(self, request: Request) -> Response:
        """Score a list of traces. Results are in its order; an item that cannot be scored does not spoil the others."""
        lines = await self.workroom.handle(request, self.limits, self._scored_many)
        tenant = caller_of(request).tenant
        waiting = [self._ended(n, one, tenant) for n, one in enumerate(lines) if isinstance(one, Waiting)]
        late = iter(await attended(request, asyncio.gather(*waiting)) if waiting else [])
        return Response(_listed([next(late) if isinstance(one, Waiting) else one for one in lines]), media_type=JSON)

    async def list_rubrics(self, _: Request) -> Response:
        """List the rubrics at hand."""
        infos = tuple(RubricInfo(r.id, r.version, r.digest, r.title, r.description) for r in self.engine.shelf)
        return Response(RUBRICS.dump_json(infos), media_type=JSON)

    async def show_rubric(self, request: Request) -> Response:
        """Show one rubric whole, as it scores."""
        try:
            found = self.engine.shelf.find(request.path_params["rubric_id"])
        except UnknownRubricError as error:
            raise HTTPException(404, error.problems[0].message) from None
        return Response(found.model_dump_json(), media_type=JSON)

    async def validate_rubric(self, request: Request) -> Response:
        """Check a rubric: whether it can be used, and what is wrong where it cannot."""
        return Response(await self.workroom.handle(request, self.limits, self._checked), media_type=JSON)

    async def livez(self, _: Request) -> Response:
        """Tell that the process answers."""
        return Response(HEALTH.dump_json(Health("ok", ENGINE)), media_type=JSON)

    async def readyz(self, _: Request) -> Response:
        """Tell that requests can be sent here: what they need is loaded. A judge that is down does not stop the scoring."""
        await self.readiness.check()
        return Response(HEALTH.dump_json(Health("ok", ENGINE)), media_type=JSON)

    async def show_metrics(self, _: Request) -> Response:
        """Give metrics to Prometheus."""
        return await self.metrics.exposition()

    def _begun(self, body: JsonValue) -> bytes | Waiting:
        """The report, or a request that somebody must be waited for."""
        request = read_request(body)
        if not self.engine.waits(request):
            return self._told(self.engine.answer(request))
        return Waiting(request, self.engine.plan(request) if request.sandbox is None else None)

    async def _finished(self, waiting: Waiting, tenant: str) -> Report:
        if waiting.plan is None:
            return await self.engine.answer_async(waiting.request, tenant=tenant)
        return await self.engine.finish(waiting.request, waiting.plan, tenant=tenant)

    def _told(self, report: Report) -> bytes:
        self.metrics.count(report)
        return report_json(report)

    def _scored_many(self, body: JsonValue) -> list[Line | Waiting]:
        if not isinstance(body, list):
            raise InputError.at("", "expected a list of score requests")
        if len(body) > self.max_many:
            raise TooLargeError.at("", f"{len(body)} items in one list; at most {self.max_many}")
        return [self._item(index, item) for index, item in enumerate(body)]

    def _item(self, index: int, item: JsonValue) -> Line | Waiting:
        try:
            begun = self._begun(item)
            return begun if isinstance(begun, Waiting) else _reported(index, begun)
        except Exception as error:  # noqa: BLE001 (a fault of ours with one item does not spoil the others)
            return _unreported(index, error)

    async def _ended(self, index: int, waiting: Waiting, tenant: str) -> Line:
        try:
            return _reported(index, self._told(await self._finished(waiting, tenant)))
        except Exception as error:  # noqa: BLE001 (likewise)
            return _unreported(index, error)

    def _checked(self, body: JsonValue) -> bytes:
        try:
            rubric = self.engine.shelf.find(read_rubric(body))
        except RubricError as error:
            return CHECK.dump_json(RubricCheck(False, None, places_of(error)))
        return CHECK.dump_json(RubricCheck(True, RubricRef(rubric.id, rubric.version, rubric.digest), ()))


def judging_headers(report: Report) -> dict[str, str]:
    """What the judges of a report took, for callers who look at no body."""
    made = report.provenance
    counts = {"replies": made.replies, "cache-hits": made.cache_hits, "tokens-in": made.tokens_in}
    counts |= {"tokens-out": made.tokens_out, "cost-usd": made.cost_usd}
    return {f"x-callgrade-judge-{name}": str(count) for name, count in counts.items() if count is not None}


def _reported(index: int, report: bytes) -> Line:
    return True, b'{"index":%d,"report":%b,"error":null}' % (index, report)


def _unreported(index: int, error: Exception) -> Line:
    if isinstance(error, InputError | JudgeDownError):
        told = details_of(error)
    else:
        LOG.error("unhandled error in item %d", index, exc_info=error)
        told = details(500, "an error of ours; it is in the log")
    return False, b'{"index":%d,"report":null,"error":%b}' % (index, PROBLEM.dump_json(told))


def _listed(lines: list[Line]) -> bytes:
    good = sum(scored for scored, _ in lines)
    head = b'{"succeeded":%d,"failed":%d,"results":[' % (good, len(lines) - good)
    return head + b",".join(line for _, line in lines) + b"]}"


class Direct(APIRoute):
    """A route whose handler takes the request and gives the response. FastAPI describes it and has nothing to solve."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler itself."""
        return self.endpoint


def _post(path: str, handler: Handler, body: dict[str, Any], responses: Responses) -> Direct:
    return route("POST", path, handler, responses, body)


def _get(path: str, handler: Handler, responses: Responses, extra: dict[str, Any] | None = None) -> Direct:
    return route("GET", path, handler, responses, extra)


def route(method: str, path: str, handler: Handler, responses: Responses, extra: dict[str, Any] | None) -> Direct:
    """One operation, named for its handler; `extra` is what its description has besides."""
    return Direct(
        path,
        handler,
        methods=[method],
        operation_id=handler.__name__,
        response_class=Response,
        tags=[path.split("/")[2] if path.startswith("/v1/") else "service"],
        openapi_extra=extra,
        responses=responses,
    )
