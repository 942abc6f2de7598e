"""Batches over HTTP: submitting, looking up, cancelling, resuming and deleting them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, cast

from pydantic import Field, JsonValue, TypeAdapter, ValidationError
from pydantic.json_schema import JsonSchemaMode
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.api.access import find_actor, find_caller
from service.api.body import read_body
from service.api.idempotency import read_idempotency_key
from service.api.openapi import JSON, READING, gives
from service.api.queries import describe_parameters, read_query
from service.api.routes.batch_docs import (
    BOUND,
    LISTED,
    OPTIONS,
    SUMMED,
    describe_lines,
    describe_one,
    describe_submission,
)
from service.api.routes.batch_reading import EVENTS, BatchOutcomeRoutes
from service.api.routes.batch_store import BatchStore
from service.api.routes.scoring import build_route
from service.api.uploads import is_packed, read_form, receive
from service.core.models.invalid import list_problems
from service.core.models.kinds import FrozenModel
from service.engine import Engine
from service.errors import InputError, TooLargeError
from service.jobs.admission import BatchAdmission, BatchBounds, Receivers, Upload, explain_too_large
from service.jobs.chunking import Cutter
from service.jobs.items import widen_limits
from service.jobs.quotes import QUOTE, build_quote
from service.jobs.spool import Spool
from service.jobs.submissions import MAX_QUESTIONS_OF_ALL, BatchItem, BatchRequest
from service.store.batch import BATCH, BATCH_LIST, Batch
from service.store.batches import Batches
from service.strict_json import parse


class ResumeRequest(FrozenModel):
    """How a paused batch goes on."""

    budget_usd: Annotated[float, Field(ge=0)] | None = None
    """Another budget for the whole batch. Absent: the one it has."""
    max_questions: Annotated[int, Field(ge=0, le=MAX_QUESTIONS_OF_ALL)] | None = None
    """Another limit of requests to judges for the whole batch. Absent: the one it has."""


RESUME: TypeAdapter[ResumeRequest] = TypeAdapter(ResumeRequest)

TYPES: Mapping[str, tuple[JsonSchemaMode, TypeAdapter[Any]]] = {
    "BatchRequest": ("validation", TypeAdapter(BatchRequest)),
    "BatchItem": ("validation", TypeAdapter(BatchItem)),
    "ResumeRequest": ("validation", RESUME),
    "Batch": ("serialization", BATCH),
    "BatchList": ("serialization", BATCH_LIST),
    "Quote": ("serialization", QUOTE),
}


class BatchRoutes:
    """The handlers over one store of batches; where there is none, each of them answers 503."""

    def __init__(
        self,
        engine: Engine,
        bounds: BatchBounds,
        *,
        max_bytes: int,
        batches: Batches | None = None,
        receivers: Receivers | None = None,
    ) -> None:
        """`max_bytes` of JSON Lines, unpacked; a document is bounded like any other body. `receivers`: of webhooks."""
        self._engine = engine
        self._bounds = bounds
        self._max_bytes = {"lines": max_bytes, "document": min(max_bytes, bounds.limits.max_bytes)}
        self._store = BatchStore(batches)
        self._admission = BatchAdmission(engine, bounds, receivers)
        self._reading = BatchOutcomeRoutes(engine, bounds.limits, self._store)

    def all(self) -> list[BaseRoute]:
        """The routes, each with what it takes and gives."""
        return [*self._list_batch_routes(), *self._list_outcome_routes()]

    def _list_batch_routes(self) -> list[BaseRoute]:
        path, one, listed = "/v1/batches/{batch_id}", describe_one(), {"parameters": describe_parameters(LISTED)}
        body, given = describe_submission(*READING, 410, 422, 429, 503)
        resume = {"requestBody": {"content": {JSON: {"schema": {"$ref": "#/components/schemas/ResumeRequest"}}}}}
        deleted = gives("Batch", 404, 409, 503) | {204: {"description": "It is deleted"}}
        del deleted[200]
        resumed = gives("Batch", *READING, 404, 409, 422, 503)
        return [
            build_route("POST", "/v1/batches", "submit_batch", self.submit_batch, given, body),
            build_route("GET", "/v1/batches", "list_batches", self.list_batches, gives("BatchList", 422, 503), listed),
            build_route("GET", path, "show_batch", self.show_batch, gives("Batch", 404, 503), one),
            build_route("DELETE", path, "delete_batch", self.delete_batch, deleted, one),
            build_route("POST", f"{path}/cancel", "cancel_batch", self.cancel_batch, gives("Batch", 404, 503), one),
            build_route("POST", f"{path}/resume", "resume_batch", self.resume_batch, resumed, one | resume),
        ]

    def _list_outcome_routes(self) -> list[BaseRoute]:
        path, reading = "/v1/batches/{batch_id}", self._reading
        events = {"type": "string", "description": "Events named `batch`, each with a `Batch` as data"}
        results = describe_lines("`report`, a `Report`", 404, 422, 503)
        errors = describe_lines("`error`, a `ProblemDetails`", 404, 422, 503)
        summary = gives("Summary", 404, 409, 422, 503)
        return [
            build_route("GET", f"{path}/results", "read_results", reading.read_results, results, describe_one(BOUND)),
            build_route("GET", f"{path}/errors", "read_errors", reading.read_errors, errors, describe_one(BOUND)),
            build_route(
                "GET", f"{path}/summary", "summarize_batch", reading.summarize_batch, summary, describe_one(SUMMED)
            ),
            build_route(
                "GET",
                f"{path}/events",
                "watch_batch",
                reading.watch_batch,
                gives(events, 404, 503, media=EVENTS),
                describe_one(),
            ),
        ]

    async def submit_batch(self, request: Request) -> Response:
        """Submit a batch, as JSON Lines (an item a line, options in the query) or as one JSON document. Gzip is taken."""
        batches, tenant = self._store.batches, find_caller(request).tenant
        key, form, packed = (
            read_idempotency_key(request.headers),
            read_form(request.headers),
            is_packed(request.headers),
        )
        options = read_query(request.query_params, OPTIONS)
        if key is None and not options.get("dry_run"):  # one that was made before needs no room
            await self._store.run_insisting(request, lambda: batches.check_room(tenant))
        with Spool(max_bytes=self._max_bytes[form], packed=packed) as spool, Cutter(size=self._bounds.chunk) as cutter:
            try:
                await receive(request, spool)
            except TooLargeError as error:
                raise explain_too_large(error) if form == "document" else error from None
            sent = Upload(tenant=tenant, key=key, form=form, options=options, body=spool)
            batch = await self._store.run_long(request, lambda: self._admission.take(sent, batches, cutter))
            if batch is None:
                return await self._answer_quote(cutter, tenant)
        return Response(BATCH.dump_json(batch), 202, {"location": f"/v1/batches/{batch.id}"}, JSON)

    async def list_batches(self, request: Request) -> Response:
        """List batches, newest first."""
        batches, tenant = self._store.batches, find_caller(request).tenant
        asked = cast("dict[str, Any]", {"limit": 20} | read_query(request.query_params, LISTED))
        found = await self._store.run_insisting(request, lambda: batches.page(tenant, **asked))
        return Response(BATCH_LIST.dump_json(found), media_type=JSON)

    async def show_batch(self, request: Request) -> Response:
        """Show one batch."""
        return _render_batch(await self._store.find_batch(request))

    async def cancel_batch(self, request: Request) -> Response:
        """Cancel a batch: items under way are finished, the others are never run. One that has ended stays as it is."""
        cancel = partial(self._store.batches.cancel, by=find_actor(request))
        return _render_batch(await self._store.change(request, cancel))

    async def resume_batch(self, request: Request) -> Response:
        """Go on with a paused batch, with other limits where they are given."""
        batches = self._store.batches
        body = await read_body(request, self._bounds.limits)
        limits = read_resume(parse(body, self._bounds.limits) if body else {})
        self._bounds.admit_spending(limits)
        resume = partial(batches.resume, **limits.model_dump(), by=find_actor(request))
        return _render_batch(await self._store.change(request, resume))

    async def delete_batch(self, request: Request) -> Response:
        """Delete a batch that has ended, with its items and results."""
        await self._store.change(request, partial(self._store.batches.delete, by=find_actor(request)))
        return Response(status_code=204)

    async def _answer_quote(self, cutter: Cutter, tenant: str) -> Response:
        limits = widen_limits(self._bounds.limits)
        quote = await build_quote(self._engine, cutter, limits=limits, tenant=tenant)
        return Response(QUOTE.dump_json(quote), media_type=JSON)


def _render_batch(batch: Batch) -> Response:
    return Response(BATCH.dump_json(batch), media_type=JSON)


def read_resume(body: JsonValue) -> ResumeRequest:
    """The body of a resume; InputError by its pointers."""
    try:
        return RESUME.validate_python(body)
    except ValidationError as error:
        raise InputError(list_problems(error, body)) from None
