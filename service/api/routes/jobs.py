"""Jobs over HTTP, batches and calibrations: submit, list, show, cancel, pause, resume, retry and delete them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from inspect import getdoc
from types import MappingProxyType
from typing import Annotated, Any, Generic

from fastapi import Header, Query
from fastapi.routing import APIRoute
from pydantic import Field, TypeAdapter
from starlette.requests import Request
from starlette.responses import Response

from service.api.access import find_actor, find_payer, find_tenant
from service.api.body import is_packed, read_json, receive, refuse_other_than_lines
from service.api.contract import (
    BODY_PROBLEMS,
    JSON,
    JobId,
    QueryModel,
    build_router,
    describe_json,
    describe_problems,
)
from service.api.fairness import UploadDisk
from service.api.store_access import JobStore
from service.core.models.kinds import FrozenModel
from service.engine import Engine
from service.jobs.admission import Draft, JobAdmission, Upload
from service.jobs.chunking import Cutter
from service.jobs.items import widen_limits
from service.jobs.quotes import QUOTE, build_quote
from service.jobs.spool import Spool
from service.jobs.submissions import MAX_QUESTION_LIMIT, JobBounds, RunOptions
from service.outbound.webhooks import Webhooks
from service.store.jobs.job import JobList, Status
from service.store.jobs.jobs import J, Jobs

IdempotencyKey = Annotated[
    str | None,
    Header(
        pattern="^[ -~]{1,255}$",
        description="Of all submissions with the same key, only the first makes a job; the others get that job",
    ),
]


class JobPageQuery(QueryModel):
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


class JobRoutes(Generic[J]):
    """The handlers over the jobs of one kind; without a store each of them answers 503."""

    noun: str
    plural: str
    """The name of one job and of several in paths, ids of operations and descriptions."""
    record: type[J]
    listed: type[JobList[J]]
    draft: type[Draft]
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
        self.bounds = bounds
        self._disk = disk
        self._max_bytes = int(min(max_bytes, self.max_job_bytes))
        self._admission = JobAdmission(self.draft, engine, bounds, receivers)
        self.store = JobStore(jobs)
        self.router = build_router(self.plural, 404, 409, 507)
        self._add("GET", "", self.list_jobs, response_model=self.listed)
        self._add("GET", "/{job_id}", self.show_job)
        self._add("DELETE", "/{job_id}", self.delete_job, response_model=None, status_code=204)
        self._add("POST", "/{job_id}/cancel", self.cancel_job)
        self._add("POST", "/{job_id}/pause", self.pause_job)
        self._add("POST", "/{job_id}/retry", self.retry_job)
        body = describe_json(ResumeRequest, required=False)
        self._add("POST", "/{job_id}/resume", self.resume_job, responses=BODY_PROBLEMS, openapi_extra=body)

    def _add(self, method: str, path: str, handler: Callable[..., Any], **options: Any) -> None:
        """Add a route. What both kinds share says "job"; path, id and description get the kind's own word."""
        path, name, description = (
            text.replace("jobs", self.plural).replace("job", self.noun)
            for text in (f"/v1/jobs{path}", handler.__name__, getdoc(handler) or "")
        )
        options = {"response_model": self.record, "name": name, "description": description, **options}
        self.router.add_api_route(path, handler, methods=[method], **options)

    def add_submission(
        self,
        handler: Callable[..., Any],
        body: dict[str, Any],
        responses: Mapping[int | str, Any] = MappingProxyType({}),
    ) -> None:
        """Add the route that makes a job, once all others are there: its answer links to those of one job."""
        one = f"{self.noun}_id"
        links = {
            route.name: {"operationId": route.name, "parameters": {f"path.{one}": "$response.body#/id"}}
            for route in self.router.routes
            if isinstance(route, APIRoute) and one in route.param_convertors
        }
        headers = {"Location": {"description": "Its path", "schema": {"type": "string"}}}
        accepted = {"description": "The job was accepted", "headers": headers, "links": links, "model": self.record}
        more = {202: accepted, **describe_problems(410), **BODY_PROBLEMS, **responses}
        self.router.post(f"/v1/{self.plural}", status_code=202, responses=more, openapi_extra=body)(handler)

    async def submit(self, request: Request, options: RunOptions, key: str | None) -> Response:
        """Submit a job as JSON Lines: an item a line. Gzip is accepted."""
        jobs, tenant, headers = self.store.jobs, find_tenant(request), request.headers
        refuse_other_than_lines(headers)
        packed = is_packed(headers)
        if key is None and not getattr(options, "dry_run", False):  # a job that exists already needs no room
            await self.store.run(request, lambda: jobs.check_room(tenant))
        with (
            self._disk.hold(find_payer(request.scope)) as take,
            Spool(max_bytes=self._max_bytes, packed=packed, take=take) as spool,
            Cutter(size=self.bounds.chunk_items, take=take) as cutter,
        ):
            await receive(request, spool)
            upload = Upload(tenant=tenant, key=key, options=options, body=spool)
            job = await self.store.run_long(request, lambda: self._admission.admit(upload, jobs, cutter))
            if job is None:
                limits = widen_limits(self.bounds.limits)
                quote = await build_quote(self._engine, cutter, limits=limits, tenant=tenant)
                return Response(QUOTE.dump_json(quote), media_type=JSON)
        return Response(jobs.adapter.dump_json(job), 202, {"location": f"/v1/{self.plural}/{job.id}"}, JSON)

    async def list_jobs(self, request: Request, query: Annotated[JobPageQuery, Query()]) -> JobList[J]:
        """List jobs, newest first."""
        jobs, tenant = self.store.jobs, find_tenant(request)
        return await self.store.run(request, lambda: jobs.page(tenant, **query.model_dump()))

    async def show_job(self, request: Request, job_id: JobId) -> J:
        """Show one job."""
        return await self.store.find(request, job_id)

    async def cancel_job(self, request: Request, job_id: JobId) -> J:
        """Cancel a job: items that are running finish, the others are never run. One that has ended stays as it is."""
        return await self.store.change(request, job_id, partial(self.store.jobs.cancel, by=find_actor(request)))

    async def pause_job(self, request: Request, job_id: JobId) -> J:
        """Pause a job until it is resumed: items that are running finish. One that waits for a budget stays as it is."""
        return await self.store.change(request, job_id, partial(self.store.jobs.pause, by=find_actor(request)))

    async def retry_job(self, request: Request, job_id: JobId) -> J:
        """Run the failed items of a completed or failed job again, except those that took down their workers."""
        return await self.store.change(request, job_id, partial(self.store.jobs.retry, by=find_actor(request)))

    async def resume_job(self, request: Request, job_id: JobId) -> J:
        """Resume a paused job, with new limits if they are given."""
        jobs, limits = self.store.jobs, await read_json(request, self.bounds.limits, RESUME, default=b"{}")
        self.bounds.admit_spending(limits.budget_usd, limits.max_questions)
        resume = partial(jobs.resume, **limits.model_dump(), by=find_actor(request))
        return await self.store.change(request, job_id, resume)

    async def delete_job(self, request: Request, job_id: JobId) -> None:
        """Delete an ended job and all its results."""
        await self.store.change(request, job_id, partial(self.store.jobs.delete, by=find_actor(request)))
