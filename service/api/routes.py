"""The routes of version 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import JsonValue, TypeAdapter

from service.api.body import handled
from service.api.metrics import Metrics
from service.api.problems import MEDIA_TYPE, Place, ProblemDetails, details_of
from service.core.report import ENGINE, Report, RubricRef
from service.core.rubric import Rubric
from service.errors import InputError, RubricError, TooLargeError
from service.io.engine import Engine, report_json
from service.io.jsonbody import Limits
from service.io.shelf import read_rubric


@dataclass(frozen=True, slots=True)
class RubricInfo:
    """A rubric in the list."""

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


RUBRICS: TypeAdapter[list[RubricInfo]] = TypeAdapter(list[RubricInfo])
CHECK: TypeAdapter[RubricCheck] = TypeAdapter(RubricCheck)
PROBLEM: TypeAdapter[ProblemDetails] = TypeAdapter(ProblemDetails)

JSON = "application/json"
UNREADABLE: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}}
    for status, text in {
        400: "The body is not the JSON we accept",
        413: "A limit on size was passed",
        415: "The body is not JSON",
        422: "The request cannot be scored; every place is named",
        503: "Too much under way; see Retry-After",
    }.items()
}


def _body(schema: str | dict[str, Any]) -> dict[str, Any]:
    found = {"$ref": f"#/components/schemas/{schema}"} if isinstance(schema, str) else schema
    return {"requestBody": {"required": True, "content": {JSON: {"schema": found}}}}


class Routes:
    """The handlers over one engine."""

    def __init__(self, engine: Engine, limits: Limits, *, max_many: int, metrics: Metrics) -> None:
        self.engine = engine
        self.limits = limits
        self.max_many = max_many
        self.metrics = metrics

    def router(self) -> APIRouter:
        """The routes, each with what it takes and gives."""
        router = APIRouter()
        many = {"type": "array", "items": {"$ref": "#/components/schemas/ScoreRequest"}, "maxItems": self.max_many}
        given: dict[str, Any] = {"response_model": None, "tags": ["scoring"]}
        router.post("/v1/score", openapi_extra=_body("ScoreRequest"), responses=_gives(Report), **given)(self.score)
        router.post("/v1/score/many", openapi_extra=_body(many), responses=_gives(ManyReports), **given)(self.score_many)
        given["tags"] = ["rubrics"]
        router.get("/v1/rubrics", responses={200: {"model": list[RubricInfo]}}, **given)(self.rubrics)
        found = {200: {"model": Rubric}, 404: UNREADABLE[422] | {"description": "No such rubric"}}
        router.get("/v1/rubrics/{rubric_id}", responses=found, **given)(self.rubric)
        check = {200: {"model": RubricCheck}, **{s: UNREADABLE[s] for s in (400, 413, 415, 503)}}
        router.post("/v1/rubrics/validate", openapi_extra=_body({"type": "object"}), responses=check, **given)(self.check)
        given["tags"] = ["service"]
        router.get("/livez", responses={200: {"model": Health}}, **given)(self.health)
        router.get("/readyz", responses={200: {"model": Health}}, **given)(self.health)
        router.get("/metrics", responses={200: {"content": {"text/plain": {}}}}, **given)(self.exposition)
        return router

    async def score(self, request: Request) -> Response:
        """Score one trace: a verdict for each step, with findings and their places."""
        return Response(await handled(request, self.limits, self._scored), media_type=JSON)

    async def score_many(self, request: Request) -> Response:
        """Score a list of traces: results in its order; an item that cannot be scored does not spoil the others."""
        return Response(await handled(request, self.limits, self._scored_many), media_type=JSON)

    async def rubrics(self) -> Response:
        """The rubrics at hand."""
        infos = [RubricInfo(r.id, r.version, r.digest, r.title, r.description) for r in self.engine.shelf]
        return Response(RUBRICS.dump_json(infos), media_type=JSON)

    async def rubric(self, rubric_id: str) -> Response:
        """One rubric, whole, as it scores. `id` or `id@version`."""
        return Response(self.engine.shelf.find(rubric_id).model_dump_json(), media_type=JSON)

    async def check(self, request: Request) -> Response:
        """Whether a rubric can be used, and what is wrong where it cannot."""
        return Response(await handled(request, self.limits, self._checked), media_type=JSON)

    async def health(self) -> Response:
        """Whether the process answers. No dependency is asked: judges being down does not make the service unready."""
        return Response(b'{"status":"ok","engine":"%b"}' % ENGINE.encode(), media_type=JSON)

    async def exposition(self) -> Response:
        """Metrics for Prometheus."""
        return self.metrics.exposition()

    def _scored(self, body: JsonValue) -> bytes:
        report = self.engine.score(body)
        self.metrics.count(report)
        return report_json(report)

    def _scored_many(self, body: JsonValue) -> bytes:
        if not isinstance(body, list):
            raise InputError.at("", "expected a list of score requests")
        if len(body) > self.max_many:
            raise TooLargeError.at("", f"{len(body)} items in one list; at most {self.max_many}")
        results = [self._item(index, item) for index, item in enumerate(body)]
        failed = sum(ok is False for ok, _ in results)
        head = b'{"succeeded":%d,"failed":%d,"results":[' % (len(results) - failed, failed)
        return head + b",".join(line for _, line in results) + b"]}"

    def _item(self, index: int, item: JsonValue) -> tuple[bool, bytes]:
        try:
            report = self._scored(item)
        except InputError as error:
            return False, b'{"index":%d,"report":null,"error":%b}' % (index, PROBLEM.dump_json(details_of(error)))
        return True, b'{"index":%d,"report":%b,"error":null}' % (index, report)

    def _checked(self, body: JsonValue) -> bytes:
        try:
            rubric = self.engine.shelf.find(read_rubric(body))
        except RubricError as error:
            return CHECK.dump_json(RubricCheck(False, None, details_of(error).errors))
        return CHECK.dump_json(RubricCheck(True, RubricRef(rubric.id, rubric.version, rubric.digest), ()))


def _gives(model: Any) -> dict[int | str, dict[str, Any]]:
    return {200: {"model": model}, **UNREADABLE}

