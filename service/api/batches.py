"""Batches over HTTP: submitting, looking up, cancelling, resuming and deleting them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, cast

from pydantic import Field, JsonValue, TypeAdapter, ValidationError
from pydantic.json_schema import JsonSchemaMode
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.api.access import caller_of
from service.api.batch_docs import BOUND, LISTED, OPTIONS, SUMMED, line_by_line, one_of, submitting
from service.api.batch_reading import EVENTS, Reading
from service.api.batch_store import BatchStore
from service.api.body import read
from service.api.openapi import JSON, READING, gives
from service.api.queries import described, read_query
from service.api.routes import route
from service.api.uploads import form_of, is_packed, receive
from service.core.invalid import problems_of
from service.core.kinds import Frozen
from service.errors import InputError, TooLargeError
from service.io.admission import Admission, Bounds, Receivers, Sent, too_large
from service.io.chunking import Cutter
from service.io.engine import Engine
from service.io.items import wrapped
from service.io.jsonbody import parse
from service.io.quotes import QUOTE, quoted
from service.io.spool import Spool
from service.io.store.batch import BATCH, BATCH_LIST, Batch
from service.io.store.batches import Batches
from service.io.submissions import BatchItem, BatchRequest

KEY = re.compile(r"[ -~]{1,255}")


class ResumeRequest(Frozen):
    """How a paused batch goes on."""

    budget_usd: Annotated[float, Field(ge=0)] | None = None
    """Another budget for the whole batch. Absent: the one it has."""


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
        bounds: Bounds,
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
        self._admission = Admission(engine, bounds, receivers)
        self._reading = Reading(engine, bounds.limits, self._store)

    def all(self) -> list[BaseRoute]:
        """The routes, each with what it takes and gives."""
        return [*self._of_batches(), *self._of_outcomes()]

    def _of_batches(self) -> list[BaseRoute]:
        path, one, listed = "/v1/batches/{batch_id}", one_of(), {"parameters": described(LISTED)}
        body, given = submitting(*READING, 410, 422, 429, 503)
        resume = {"requestBody": {"content": {JSON: {"schema": {"$ref": "#/components/schemas/ResumeRequest"}}}}}
        deleted = gives("Batch", 404, 409, 503) | {204: {"description": "It is deleted"}}
        del deleted[200]
        resumed = gives("Batch", *READING, 404, 409, 422, 503)
        return [
            route("POST", "/v1/batches", self.submit_batch, given, body),
            route("GET", "/v1/batches", self.list_batches, gives("BatchList", 422, 503), listed),
            route("GET", path, self.show_batch, gives("Batch", 404, 503), one),
            route("DELETE", path, self.delete_batch, deleted, one),
            route("POST", f"{path}/cancel", self.cancel_batch, gives("Batch", 404, 503), one),
            route("POST", f"{path}/resume", self.resume_batch, resumed, one | resume),
        ]

    def _of_outcomes(self) -> list[BaseRoute]:
        path, reading = "/v1/batches/{batch_id}", self._reading
        events = {"type": "string", "description": "Events named `batch`, each with a `Batch` as data"}
        results = line_by_line("`report`, a `Report`", 404, 422, 503)
        errors = line_by_line("`error`, a `ProblemDetails`", 404, 422, 503)
        summary = gives("Summary", 404, 409, 422, 503)
        return [
            route("GET", f"{path}/results", reading.read_results, results, one_of(BOUND)),
            route("GET", f"{path}/errors", reading.read_errors, errors, one_of(BOUND)),
            route("GET", f"{path}/summary", reading.summarize_batch, summary, one_of(SUMMED)),
            route("GET", f"{path}/events", reading.watch_batch, gives(events, 404, 503, media=EVENTS), one_of()),
        ]

    async def submit_batch(self, request: Request) -> Response:
        """Submit a batch, as JSON Lines (an item a line, options in the query) or as one JSON document. Gzip is taken."""
        batches, tenant = self._store.batches, caller_of(request).tenant
        key, form, packed = idempotency_key(request.headers), form_of(request.headers), is_packed(request.headers)
        options = read_query(request.query_params, OPTIONS)
        if key is None and not options.get("dry_run"):  # one that was made before needs no room
            await self._store.asked(request, lambda: batches.check_room(tenant))
        with Spool(max_bytes=self._max_bytes[form], packed=packed) as spool, Cutter(size=self._bounds.chunk) as cutter:
            try:
                await receive(request, spool)
            except TooLargeError as error:
                raise too_large(error) if form == "document" else error from None
            sent = Sent(tenant=tenant, key=key, form=form, options=options, body=spool)
            batch = await self._store.at_length(request, lambda: self._admission.take(sent, batches, cutter))
            if batch is None:
                return await self._quote(cutter, tenant)
        return Response(BATCH.dump_json(batch), 202, {"location": f"/v1/batches/{batch.id}"}, JSON)

    async def list_batches(self, request: Request) -> Response:
        """List batches, newest first."""
        batches, tenant = self._store.batches, caller_of(request).tenant
        asked = cast("dict[str, Any]", {"limit": 20} | read_query(request.query_params, LISTED))
        found = await self._store.asked(request, lambda: batches.page(tenant, **asked))
        return Response(BATCH_LIST.dump_json(found), media_type=JSON)

    async def show_batch(self, request: Request) -> Response:
        """Show one batch."""
        return _shown(await self._store.found(request))

    async def cancel_batch(self, request: Request) -> Response:
        """Cancel a batch: items under way are finished, the others are never run. One that has ended stays as it is."""
        return _shown(await self._store.changed(request, self._store.batches.cancel))

    async def resume_batch(self, request: Request) -> Response:
        """Go on with a paused batch, with another budget if one is given."""
        batches = self._store.batches
        body = await read(request, self._bounds.limits)
        budget = read_resume(parse(body, self._bounds.limits) if body else {}).budget_usd
        return _shown(
            await self._store.changed(
                request, lambda tenant, batch_id: batches.resume(tenant, batch_id, budget_usd=budget)
            )
        )

    async def delete_batch(self, request: Request) -> Response:
        """Delete a batch that has ended, with its items and results."""
        await self._store.changed(request, self._store.batches.delete)
        return Response(status_code=204)

    async def _quote(self, cutter: Cutter, tenant: str) -> Response:
        limits = wrapped(self._bounds.limits)
        quote = await quoted(self._engine, cutter, limits=limits, tenant=tenant)
        return Response(QUOTE.dump_json(quote), media_type=JSON)


def _shown(batch: Batch) -> Response:
    return Response(BATCH.dump_json(batch), media_type=JSON)


def idempotency_key(headers: Headers) -> str | None:
    """The Idempotency-Key of a request, None where it has none; HTTPException 400 for what cannot be one."""
    key = headers.get("idempotency-key")
    if key is not None and not KEY.fullmatch(key):
        raise HTTPException(400, "Idempotency-Key: expected 1 to 255 characters of printable ASCII")
    return key


def read_resume(body: JsonValue) -> ResumeRequest:
    """The body of a resume; InputError by its pointers."""
    try:
        return RESUME.validate_python(body)
    except ValidationError as error:
        raise InputError(problems_of(error, body)) from None
