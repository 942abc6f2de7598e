"""Jobs over HTTP, batches and calibrations: submit, list, show, cancel, pause, resume, retry and delete them."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from inspect import getdoc
from typing import Annotated, Any, Generic

from pydantic import Field, TypeAdapter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from service.api.access import find_actor, find_payer, find_tenant
from service.api.body import is_packed, read_body, receive, refuse_other_than_lines
from service.api.fairness.upload_disk import UploadDisk
from service.api.operations import (
    JSON,
    TEXT,
    Answer,
    Handler,
    Operation,
    RequestBody,
)
from service.api.queries import read_given, read_query
from service.api.store_access import JobStore
from service.core.models.kinds import FrozenModel
from service.core.models.validation import validate
from service.engine import Engine
from service.jobs.admission import Draft, JobAdmission, JobBounds, Upload
from service.jobs.chunking import Cutter
from service.jobs.items import widen_limits
from service.jobs.quotes import QUOTE, build_quote
from service.jobs.spool import Spool
from service.jobs.submissions import MAX_QUESTION_LIMIT, RunOptions
from service.outbound.webhooks import Webhooks
from service.reading.strict_json import parse_strictly
from service.store.jobs.job import JobList, Status
from service.store.jobs.jobs import J, Jobs

_KEY = re.compile(r"[ -~]{1,255}")
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Of all submissions with the same key, only the first makes a job; the others get that job",
    "schema": TEXT | {"pattern": f"^{_KEY.pattern}$"},
}


class JobPageQuery(FrozenModel):
    """Which jobs to list."""

    limit: int = Field(default=20, ge=1, le=100)
    """Most jobs in the answer; absent: 20"""
    after: str | None = None
    """The id of a job; only older ones are listed"""
    status: Status | None = None
    """The state of the jobs to list"""


class ResumeRequest(FrozenModel):
    """How a paused batch goes on."""

    budget_usd: Annotated[float, Field(ge=0)] | None = None
    """A new budget for the whole batch, in US dollars. Absent: the one it has."""
    max_questions: Annotated[int, Field(ge=0, le=MAX_QUESTION_LIMIT)] | None = None
    """A new limit of requests to judges for the whole batch. Absent: the one it has."""


RESUME: TypeAdapter[ResumeRequest] = TypeAdapter(ResumeRequest)


class JobRoutes(ABC, Generic[J]):
    """The handlers over the jobs of one kind; without a store each of them answers 503."""

    noun: str
    plural: str
    """The name of one job and of several in paths, ids of operations and descriptions."""
    record: type[J]
    listed: type[JobList[J]]
    draft: type[Draft]
    options: type[RunOptions]
    """What the query of a submission may hold."""
    page: type[JobPageQuery]
    body: RequestBody
    quote_answers: Sequence[Answer] = ()
    """What a submission may answer instead of a job."""
    max_job_bytes: float = math.inf
    """Largest body, unpacked, whatever the settings say."""

    def __init__(
        self,
        engine: Engine,
        bounds: JobBounds,
        *,
        max_bytes: int,
        disk: UploadDisk,
        jobs: Jobs[J] | None = None,
        receivers: Webhooks | None = None,
    ) -> None:
        """`max_bytes` of JSON Lines, unpacked. `disk`: where uploads wait. `receivers`: of webhooks."""
        self._engine = engine
        self._bounds = bounds
        self._disk = disk
        self._max_bytes = int(min(max_bytes, self.max_job_bytes))
        self._admission = JobAdmission(self.draft, engine, bounds, receivers)
        self.store = JobStore(jobs, parameter=f"{self.noun}_id")

    def all(self) -> list[Operation]:
        """List the routes."""
        deleted, resumed = [Answer({}, 204, "It is deleted")], RequestBody(ResumeRequest, required=False)
        on_one = [
            self.build("GET", "/{job_id}", self.show_job, self.record),
            self.build("DELETE", "/{job_id}", self.delete_job, deleted, 409),
            self.build("POST", "/{job_id}/cancel", self.cancel_job, self.record),
            self.build("POST", "/{job_id}/pause", self.pause_job, self.record, 409),
            self.build("POST", "/{job_id}/retry", self.retry_job, self.record, 409, 429),
            self.build("POST", "/{job_id}/resume", self.resume_job, self.record, 409, body=resumed),
            *self.list_own(),
        ]
        job_id = {f"path.{self.noun}_id": "$response.body#/id"}
        links = {one.name: {"operationId": one.name, "description": one.description} for one in on_one}
        more = {
            "headers": {"Location": {"description": "Its path", "schema": TEXT}},
            "links": {name: {**link, "parameters": job_id} for name, link in links.items()},
        }
        accepted = [Answer({JSON: self.record}, 202, "The job was accepted", more), *self.quote_answers]
        submission: dict[str, Any] = {"body": self.body, "query": self.options, "headers": [IDEMPOTENCY_KEY]}
        return [
            self.build("POST", "", self.submit_job, accepted, 410, 429, **submission),
            self.build("GET", "", self.list_jobs, self.listed, query=self.page),
            *on_one,
        ]

    @abstractmethod
    def list_own(self) -> list[Operation]:
        """List the routes that only this kind has."""

    def build(self, method: str, path: str, handler: Handler, answers: Any, *errors: int, **more: Any) -> Operation:
        """Build an operation. What all kinds share says "job"; path, name and description get the kind's own word."""
        named = (path, handler.__name__, getdoc(handler) or "")
        path, name, description = [one.replace("jobs", self.plural).replace("job", self.noun) for one in named]
        errors = errors if method == "GET" else (*errors, 507)
        path = f"/v1/{self.plural}{path}"
        return Operation(method, path, handler, answers, *errors, name=name, description=description, **more)

    async def submit_job(self, request: Request) -> Response:
        """Submit a job as JSON Lines: an item a line, options in the query. Gzip is accepted."""
        jobs, tenant, headers = self.store.jobs, find_tenant(request), request.headers
        refuse_other_than_lines(headers)
        key, packed = headers.get("idempotency-key"), is_packed(headers)
        if key is not None and not _KEY.fullmatch(key):
            raise HTTPException(400, "Idempotency-Key: expected 1 to 255 characters of printable ASCII")
        options = read_given(request.query_params, self.options)
        if key is None and not options.get("dry_run"):  # a job that exists already needs no room
            await self.store.run(request, lambda: jobs.check_room(tenant))
        with (
            self._disk.hold(find_payer(request.scope)) as take,
            Spool(max_bytes=self._max_bytes, packed=packed, take=take) as spool,
            Cutter(size=self._bounds.chunk_items, take=take) as cutter,
        ):
            await receive(request, spool)
            upload = Upload(tenant=tenant, key=key, options=options, body=spool)
            job = await self.store.run_long(request, lambda: self._admission.admit(upload, jobs, cutter))
            if job is None:
                limits = widen_limits(self._bounds.limits)
                quote = await build_quote(self._engine, cutter, limits=limits, tenant=tenant)
                return Response(QUOTE.dump_json(quote), media_type=JSON)
        return Response(jobs.adapter.dump_json(job), 202, {"location": f"/v1/{self.plural}/{job.id}"}, JSON)

    async def list_jobs(self, request: Request) -> JobList[J]:
        """List jobs, newest first."""
        jobs, tenant = self.store.jobs, find_tenant(request)
        query = read_query(request.query_params, self.page).model_dump()
        return await self.store.run(request, lambda: jobs.page(tenant, **query))

    async def show_job(self, request: Request) -> J:
        """Show one job."""
        return await self.store.find(request)

    async def cancel_job(self, request: Request) -> J:
        """Cancel a job: items that are running finish, the others are never run. One that has ended stays as it is."""
        return await self.store.change(request, partial(self.store.jobs.cancel, by=find_actor(request)))

    async def pause_job(self, request: Request) -> J:
        """Pause a job until it is resumed: items that are running finish. One that waits for a budget stays as it is."""
        return await self.store.change(request, partial(self.store.jobs.pause, by=find_actor(request)))

    async def retry_job(self, request: Request) -> J:
        """Run the failed items of a completed or failed job again, except those that took down their workers."""
        return await self.store.change(request, partial(self.store.jobs.retry, by=find_actor(request)))

    async def resume_job(self, request: Request) -> J:
        """Resume a paused job, with new limits if they are given."""
        jobs, body = self.store.jobs, await read_body(request, self._bounds.limits)
        limits = validate(RESUME, parse_strictly(body, self._bounds.limits) if body else {})
        self._bounds.admit_spending(limits.budget_usd, limits.max_questions)
        return await self.store.change(request, partial(jobs.resume, **limits.model_dump(), by=find_actor(request)))

    async def delete_job(self, request: Request) -> Response:
        """Delete an ended job and all its results."""
        await self.store.change(request, partial(self.store.jobs.delete, by=find_actor(request)))
        return Response(status_code=204)
