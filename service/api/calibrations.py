"""Calibrations over HTTP: labelled items are judged as a batch is, and what judges said is fitted at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.api.access import caller_of
from service.api.batch_store import NO_STORE, BatchStore
from service.api.batches import idempotency_key, read_resume
from service.api.body import read
from service.api.calibration_docs import LISTED, OPTIONS, SHOWN, one_of, reporting, submitting
from service.api.openapi import JSON, READING, gives
from service.api.queries import described, read_query
from service.api.routes import route
from service.api.uploads import form_of, is_packed, receive
from service.core.calibrate import Fit
from service.core.kinds import Frozen, Several
from service.errors import TooLargeError
from service.io.admission import Bounds, Receivers, Sent, too_large
from service.io.calibrations import MAX_BYTES, CalibrationRequest, Taking
from service.io.chunking import Cutter
from service.io.engine import Engine
from service.io.jsonbody import parse
from service.io.spool import Spool
from service.io.store.batches import Batches
from service.io.store.calibrations import CALIBRATION, CALIBRATION_LIST, Calibration, Calibrations

T = TypeVar("T")


class FitFile(Frozen):
    """A fit with the name of its file."""

    name: str
    fit: Fit


class Fits(Frozen):
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
        bounds: Bounds,
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
        self._taking = Taking(engine, bounds, receivers)

    def all(self) -> list[BaseRoute]:
        """The routes, each with what it takes and gives."""
        path, one, listed = "/v1/calibrations/{calibration_id}", one_of(), {"parameters": described(LISTED)}
        body, given = submitting(*READING, 410, 422, 429, 503)
        resume = {"requestBody": {"content": {JSON: {"schema": {"$ref": "#/components/schemas/ResumeRequest"}}}}}
        resumed = gives("Calibration", *READING, 404, 409, 422, 503)
        deleted = gives("Calibration", 404, 409, 503) | {204: {"description": "It is deleted"}}
        del deleted[200]
        return [
            route("POST", "/v1/calibrations", self.submit_calibration, given, body),
            route("GET", "/v1/calibrations", self.list_calibrations, gives("CalibrationList", 422, 503), listed),
            route("GET", path, self.show_calibration, gives("Calibration", 404, 503), one),
            route("DELETE", path, self.delete_calibration, deleted, one),
            route("GET", f"{path}/report", self.read_calibration_report, reporting(404, 409, 422, 503), one_of(SHOWN)),
            route("GET", f"{path}/fits", self.read_fits, gives("Fits", 404, 409, 503), one),
            route("POST", f"{path}/cancel", self.cancel_calibration, gives("Calibration", 404, 503), one),
            route("POST", f"{path}/resume", self.resume_calibration, resumed, one | resume),
        ]

    async def submit_calibration(self, request: Request) -> Response:
        """Submit labelled items, as JSON Lines (options in the query) or as one JSON document. Gzip is taken.

        Their judges are asked as those of a batch, unless there are recorded predictions; then maps are fitted.
        """
        kept, tenant = self._calibrations, caller_of(request).tenant
        key, form, packed = idempotency_key(request.headers), form_of(request.headers), is_packed(request.headers)
        options = read_query(request.query_params, OPTIONS)
        if key is None:  # one that was made before needs no room
            await self._threads.asked(request, lambda: kept.batches.check_room(tenant))
        with Spool(max_bytes=self._max_bytes[form], packed=packed) as spool, Cutter(size=self._bounds.chunk) as cutter:
            try:
                await receive(request, spool)
            except TooLargeError as error:
                raise too_large(error) if form == "document" else error from None
            sent = Sent(tenant=tenant, key=key, form=form, options=options, body=spool)
            made = await self._threads.at_length(request, lambda: self._taking.take(sent, kept, cutter))
        return Response(CALIBRATION.dump_json(made), 202, {"location": f"/v1/calibrations/{made.id}"}, JSON)

    async def list_calibrations(self, request: Request) -> Response:
        """List calibrations, newest first."""
        kept, tenant = self._calibrations, caller_of(request).tenant
        asked = cast("dict[str, Any]", {"limit": 20} | read_query(request.query_params, LISTED))
        found = await self._threads.asked(request, lambda: kept.page(tenant, **asked))
        return Response(CALIBRATION_LIST.dump_json(found), media_type=JSON)

    async def show_calibration(self, request: Request) -> Response:
        """Show one calibration."""
        return _shown(await self._of(request, self._calibrations.find))

    async def read_calibration_report(self, request: Request) -> Response:
        """Read the report of a completed calibration, as JSON, Markdown or one HTML page."""
        form = read_query(request.query_params, SHOWN).get("format", "json")
        report = await self._of(request, self._calibrations.report)
        if form == "json":
            return Response(report, media_type=JSON)
        written = await self._threads.at_length(request, lambda: _WRITTEN[str(form)](report))
        return Response(written, headers=SEALED, media_type=f"text/{form}")

    async def read_fits(self, request: Request) -> Response:
        """Read the fits of a completed calibration. Nothing here applies them: whoever runs the service does."""
        files = await self._of(request, self._calibrations.fits)
        return Response(f'{{"data":{files}}}', media_type=JSON)

    async def cancel_calibration(self, request: Request) -> Response:
        """Cancel a calibration: nothing is fitted. One that has ended stays as it is."""
        return _shown(await self._of(request, self._calibrations.cancel))

    async def resume_calibration(self, request: Request) -> Response:
        """Go on with a paused calibration, with another budget if one is given."""
        kept, body = self._calibrations, await read(request, self._bounds.limits)
        budget = read_resume(parse(body, self._bounds.limits) if body else {}).budget_usd
        return _shown(await self._of(request, lambda tenant, name: kept.resume(tenant, name, budget_usd=budget)))

    async def delete_calibration(self, request: Request) -> Response:
        """Delete a calibration that has ended, with its items, report and fits."""
        await self._of(request, self._calibrations.delete)
        return Response(status_code=204)

    @property
    def _calibrations(self) -> Calibrations:
        if self._kept is None:
            raise HTTPException(503, NO_STORE)
        return self._kept

    async def _of(self, request: Request, work: Callable[[str, str], T]) -> T:
        """What `work` makes of tenant and id of the calibration that a request names."""
        tenant, name = caller_of(request).tenant, request.path_params["calibration_id"]
        return await self._threads.asked(request, lambda: work(tenant, name))


def _shown(found: Calibration) -> Response:
    return Response(CALIBRATION.dump_json(found), media_type=JSON)


def _markdown(report: str) -> str:
    from service.calibrating.markdown import markdown  # noqa: PLC0415 (few ask for it, and it brings scipy)
    from service.calibrating.results import read_report  # noqa: PLC0415

    return markdown(read_report(report))


def _page(report: str) -> str:
    from service.calibrating.page import page  # noqa: PLC0415 (likewise)
    from service.calibrating.results import read_report  # noqa: PLC0415

    return page(read_report(report))


_WRITTEN: Mapping[str, Callable[[str], str]] = {"markdown": _markdown, "html": _page}
