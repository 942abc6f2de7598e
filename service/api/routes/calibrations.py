"""Calibrations over HTTP: labelled items are judged as a batch is, and what judges said is fitted at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.api.access import find_actor, find_caller
from service.api.body import read_body
from service.api.idempotency import read_idempotency_key
from service.api.openapi import JSON, READING, gives
from service.api.queries import describe_parameters, read_query
from service.api.routes.batch_store import NO_STORE, BatchStore
from service.api.routes.batches import read_resume
from service.api.routes.calibration_docs import (
    LISTED,
    OPTIONS,
    SHOWN,
    describe_one,
    describe_report,
    describe_submission,
)
from service.api.routes.scoring import build_route
from service.api.uploads import is_packed, read_form, receive
from service.core.judging.fits import Fit
from service.core.models.kinds import FrozenModel, Several
from service.engine import Engine
from service.errors import TooLargeError
from service.jobs.admission import BatchBounds, Receivers, Upload, explain_too_large
from service.jobs.calibrations import MAX_BYTES, CalibrationAdmission, CalibrationRequest
from service.jobs.chunking import Cutter
from service.jobs.spool import Spool
from service.store.batches import Batches
from service.store.calibrations import CALIBRATION, CALIBRATION_LIST, Calibration, Calibrations
from service.strict_json import parse

T = TypeVar("T")


class FitFile(FrozenModel):
    """A fit with the name of its file."""

    name: str
    fit: Fit


class Fits(FrozenModel):
    """The fits of a calibration. They are applied where an operator puts them into `fits` in CALLGRADE_HOME."""

    data: Several[FitFile]


TYPES: Mapping[str, tuple[JsonSchemaMode, TypeAdapter[Any]]] = {
    "CalibrationRequest": ("validation", TypeAdapter(CalibrationRequest)),
    "Calibration": ("serialization", CALIBRATION),
    "CalibrationList": ("serialization", CALIBRATION_LIST),
    "Fits": ("validation", TypeAdapter(Fits)),
}

SEALED = {"content-security-policy": "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'"}
"""A report quotes what models and people wrote: whatever that is, nothing of it runs."""


class CalibrationRoutes:
    """The handlers over one store; where there is none, each of them answers 503."""

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
        self._bounds = bounds
        most = min(max_bytes, MAX_BYTES)
        self._max_bytes = {"lines": most, "document": min(most, bounds.limits.max_bytes)}
        self._threads = BatchStore(batches)
        self._kept = None if batches is None else Calibrations(batches.of_kind("calibration"))
        self._taking = CalibrationAdmission(engine, bounds, receivers)

    def all(self) -> list[BaseRoute]:
        """The routes, each with what it takes and gives."""
        path, one, listed = (
            "/v1/calibrations/{calibration_id}",
            describe_one(),
            {"parameters": describe_parameters(LISTED)},
        )
        body, given = describe_submission(*READING, 410, 422, 429, 503)
        resume = {"requestBody": {"content": {JSON: {"schema": {"$ref": "#/components/schemas/ResumeRequest"}}}}}
        resumed = gives("Calibration", *READING, 404, 409, 422, 503)
        deleted = gives("Calibration", 404, 409, 503) | {204: {"description": "It is deleted"}}
        del deleted[200]
        return [
            build_route("POST", "/v1/calibrations", "submit_calibration", self.submit_calibration, given, body),
            build_route(
                "GET",
                "/v1/calibrations",
                "list_calibrations",
                self.list_calibrations,
                gives("CalibrationList", 422, 503),
                listed,
            ),
            build_route("GET", path, "show_calibration", self.show_calibration, gives("Calibration", 404, 503), one),
            build_route("DELETE", path, "delete_calibration", self.delete_calibration, deleted, one),
            build_route(
                "GET",
                f"{path}/report",
                "read_calibration_report",
                self.read_calibration_report,
                describe_report(404, 409, 422, 503),
                describe_one(SHOWN),
            ),
            build_route("GET", f"{path}/fits", "read_fits", self.read_fits, gives("Fits", 404, 409, 503), one),
            build_route(
                "POST",
                f"{path}/cancel",
                "cancel_calibration",
                self.cancel_calibration,
                gives("Calibration", 404, 503),
                one,
            ),
            build_route("POST", f"{path}/resume", "resume_calibration", self.resume_calibration, resumed, one | resume),
        ]

    async def submit_calibration(self, request: Request) -> Response:
        """Submit labelled items, as JSON Lines (options in the query) or as one JSON document. Gzip is taken.

        Their judges are asked as those of a batch, unless there are recorded predictions; then maps are fitted.
        """
        kept, tenant = self._calibrations, find_caller(request).tenant
        key, form, packed = (
            read_idempotency_key(request.headers),
            read_form(request.headers),
            is_packed(request.headers),
        )
        options = read_query(request.query_params, OPTIONS)
        if key is None:  # one that was made before needs no room
            await self._threads.run_insisting(request, lambda: kept.batches.check_room(tenant))
        with Spool(max_bytes=self._max_bytes[form], packed=packed) as spool, Cutter(size=self._bounds.chunk) as cutter:
            try:
                await receive(request, spool)
            except TooLargeError as error:
                raise explain_too_large(error) if form == "document" else error from None
            sent = Upload(tenant=tenant, key=key, form=form, options=options, body=spool)
            made = await self._threads.run_long(request, lambda: self._taking.take(sent, kept, cutter))
        return Response(CALIBRATION.dump_json(made), 202, {"location": f"/v1/calibrations/{made.id}"}, JSON)

    async def list_calibrations(self, request: Request) -> Response:
        """List calibrations, newest first."""
        kept, tenant = self._calibrations, find_caller(request).tenant
        asked = cast("dict[str, Any]", {"limit": 20} | read_query(request.query_params, LISTED))
        found = await self._threads.run_insisting(request, lambda: kept.page(tenant, **asked))
        return Response(CALIBRATION_LIST.dump_json(found), media_type=JSON)

    async def show_calibration(self, request: Request) -> Response:
        """Show one calibration."""
        return _render_calibration(await self._run_on_named(request, self._calibrations.find))

    async def read_calibration_report(self, request: Request) -> Response:
        """Read the report of a completed calibration, as JSON, Markdown or one HTML page."""
        form = read_query(request.query_params, SHOWN).get("format", "json")
        report = await self._run_on_named(request, self._calibrations.report)
        if form == "json":
            return Response(report, media_type=JSON)
        written = await self._threads.run_long(request, lambda: _WRITTEN[str(form)](report))
        return Response(written, headers=SEALED, media_type=f"text/{form}")

    async def read_fits(self, request: Request) -> Response:
        """Read the fits of a completed calibration. Nothing here applies them: whoever runs the service does."""
        files = await self._run_on_named(request, self._calibrations.fits)
        return Response(f'{{"data":{files}}}', media_type=JSON)

    async def cancel_calibration(self, request: Request) -> Response:
        """Cancel a calibration: nothing is fitted. One that has ended stays as it is."""
        return _render_calibration(
            await self._run_on_named(request, partial(self._calibrations.cancel, by=find_actor(request)))
        )

    async def resume_calibration(self, request: Request) -> Response:
        """Go on with a paused calibration, with another budget if one is given."""
        kept, body = self._calibrations, await read_body(request, self._bounds.limits)
        limits = read_resume(parse(body, self._bounds.limits) if body else {})
        self._bounds.admit_spending(limits)
        return _render_calibration(
            await self._run_on_named(request, partial(kept.resume, **limits.model_dump(), by=find_actor(request)))
        )

    async def delete_calibration(self, request: Request) -> Response:
        """Delete a calibration that has ended, with its items, report and fits."""
        await self._run_on_named(request, partial(self._calibrations.delete, by=find_actor(request)))
        return Response(status_code=204)

    @property
    def _calibrations(self) -> Calibrations:
        if self._kept is None:
            raise HTTPException(503, NO_STORE)
        return self._kept

    async def _run_on_named(self, request: Request, work: Callable[[str, str], T]) -> T:
        """What `work` makes of tenant and id of the calibration that a request names."""
        tenant, name = find_caller(request).tenant, request.path_params["calibration_id"]
        return await self._threads.run_insisting(request, lambda: work(tenant, name))


def _render_calibration(found: Calibration) -> Response:
    return Response(CALIBRATION.dump_json(found), media_type=JSON)


def _render_markdown(report: str) -> str:
    from service.calibration.report.rendering import render_report_markdown  # noqa: PLC0415 (few ask for it, and it brings scipy)
    from service.calibration.results import read_report  # noqa: PLC0415

    return render_report_markdown(read_report(report))


def _render_page(report: str) -> str:
    from service.calibration.report.rendering import render_report_page  # noqa: PLC0415 (likewise)
    from service.calibration.results import read_report  # noqa: PLC0415

    return render_report_page(read_report(report))


_WRITTEN: Mapping[str, Callable[[str], str]] = {"markdown": _render_markdown, "html": _render_page}
