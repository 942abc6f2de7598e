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

from service.api.access import find_actor, find_caller, find_payer
from service.api.body import read_body
from service.api.fairness.upload_disk import UploadDisk
from service.api.operations import (
    JSON,
    TEXT,
    Answer,
    Handler,
    Operation,
    RequestBody,
    describe_path_parameter,
)
from service.api.queries import read_given, read_query
from service.api.routes.job_store import JobStore
from service.api.uploads import is_packed, read_form, receive
from service.core.models.kinds import FrozenModel
from service.core.models.validation import validate
from service.engine import Engine
from service.errors import TooLargeError
from service.jobs.admission import Draft, JobAdmission, JobBounds, Upload, WebhookPolicy, explain_too_large
from service.jobs.chunking import Cutter
from service.jobs.items import widen_limits
from service.jobs.quotes import QUOTE, build_quote
from service.jobs.spool import Spool
from service.jobs.submissions import MAX_QUESTION_LIMIT, RunOptions
from service.reading.strict_json import parse
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
    """What the query of a submission may hold. A JSON document has the same fields, which take precedence."""
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
        receivers: WebhookPolicy | None = None,
    ) -> None:
        """`max_bytes` of JSON Lines, unpacked; a document is bounded like any other body.

        `disk`: where uploads wait. `receivers`: of webhooks.
        """
        self._engine = engine
        self._bounds = bounds
        self._disk = disk
        largest = int(min(max_bytes, self.max_job_bytes))
        self._max_bytes = {"lines": largest, "document": min(largest, bounds.limits.max_bytes)}
        self._admission = JobAdmission(self.draft, engine, bounds, receivers)
        self.store = JobStore(jobs, parameter=f"{self.noun}_id")

    def all(self) -> list[Operation]:
        """List the routes."""
        resume_body = RequestBody(ResumeRequest, required=False)
        operations = [
            self.build_job_operation("GET", "", self.show_job, self.record),
            self.build_job_operation("DELETE", "", self.delete_job, [Answer({}, 204, "It is deleted")], 409),
            self.build_job_operation("POST", "/cancel", self.cancel_job, self.record),
            self.build_job_operation("POST", "/pause", self.pause_job, self.record, 409),
            self.build_job_operation("POST", "/retry", self.retry_job, self.record, 409, 429),
            self.build_job_operation("POST", "/resume", self.resume_job, self.record, 409, 422, body=resume_body),
            *self.list_own(),
        ]
        accepted = [
            Answer({JSON: self.record}, 202, "The job was accepted", self._describe_accepted(operations)),
            *self.quote_answers,
        ]
        submission: dict[str, Any] = {"body": self.body, "query": self.options, "parameters": [IDEMPOTENCY_KEY]}
        return [
            self._build("POST", "", self.submit_job, accepted, 410, 422, 429, 503, 507, **submission),
            self._build("GET", "", self.list_jobs, self.listed, 422, 503, query=self.page),
            *operations,
        ]

    @abstractmethod
    def list_own(self) -> list[Operation]:
        """List the routes that only this kind has."""

    def build_job_operation(
        self, method: str, path: str, handler: Handler, answers: Any, *errors: int, **more: Any
    ) -> Operation:
        """Build an operation on the job that its path names."""
        example = f"{self.noun}_019aa5b3c4d000112233445566778899"
        job_id = describe_path_parameter(f"{self.noun}_id", f"The id of a {self.noun}", example)
        path = f"/{{{self.noun}_id}}{path}"
        errors = errors if method == "GET" else (*errors, 507)
        return self._build(
            method, path, handler, answers, 404, 503, *errors, parameters=[job_id, *more.pop("parameters", ())], **more
        )

    def _build(self, method: str, path: str, handler: Handler, answers: Any, *errors: int, **more: Any) -> Operation:
        """Build an operation. Handlers that all kinds share say "job"; name and description get the kind's own word."""
        name, description = map(self._name_kind, (handler.__name__, getdoc(handler) or ""))
        path = f"/v1/{self.plural}{path}"
        return Operation(method, path, handler, answers, *errors, name=name, description=description, **more)

    def _name_kind(self, text: str) -> str:
        return text.replace("jobs", self.plural).replace("job", self.noun)

    def _describe_accepted(self, operations: Sequence[Operation]) -> dict[str, Any]:
        """Describe where an accepted job is found, and what can be done with it."""
        parameters = {f"path.{self.noun}_id": "$response.body#/id"}
        links = {
            one.name: {"operationId": one.name, "description": one.description, "parameters": parameters}
            for one in operations
        }
        return {"headers": {"Location": {"description": "Its path", "schema": TEXT}}, "links": links}

    async def submit_job(self, request: Request) -> Response:
        """Submit a job, as JSON Lines (an item a line, options in the query) or as one JSON document. Gzip is accepted."""
        jobs, tenant, headers = self.store.jobs, find_caller(request).tenant, request.headers
        key, form, packed = headers.get("idempotency-key"), read_form(headers), is_packed(headers)
        if key is not None and not _KEY.fullmatch(key):
            raise HTTPException(400, "Idempotency-Key: expected 1 to 255 characters of printable ASCII")
        options = read_given(request.query_params, self.options)
        if key is None and not options.get("dry_run"):  # a job that exists already needs no room
            await self.store.run_insisting(request, lambda: jobs.check_room(tenant))
        with (
            self._disk.hold(find_payer(request.scope)) as take,
            Spool(max_bytes=self._max_bytes[form], packed=packed, take=take) as spool,
            Cutter(size=self._bounds.chunk_items, take=take) as cutter,
        ):
            try:
                await receive(request, spool)
            except TooLargeError as error:
                raise explain_too_large(error) if form == "document" else error from None
            upload = Upload(tenant=tenant, key=key, form=form, options=options, body=spool)
            job = await self.store.run_long(request, lambda: self._admission.admit(upload, jobs, cutter))
            if job is None:
                limits = widen_limits(self._bounds.limits)
                quote = await build_quote(self._engine, cutter, limits=limits, tenant=tenant)
                return Response(QUOTE.dump_json(quote), media_type=JSON)
        return Response(jobs.adapter.dump_json(job), 202, {"location": f"/v1/{self.plural}/{job.id}"}, JSON)

    async def list_jobs(self, request: Request) -> JobList[J]:
        """List jobs, newest first."""
        jobs, tenant = self.store.jobs, find_caller(request).tenant
        query = read_query(request.query_params, self.page).model_dump()
        return await self.store.run_insisting(request, lambda: jobs.page(tenant, **query))

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
        limits = validate(RESUME, parse(body, self._bounds.limits) if body else {})
        self._bounds.admit_spending(limits)
        return await self.store.change(request, partial(jobs.resume, **limits.model_dump(), by=find_actor(request)))

    async def delete_job(self, request: Request) -> Response:
        """Delete an ended job and all its results."""
        await self.store.change(request, partial(self.store.jobs.delete, by=find_actor(request)))
        return Response(status_code=204)
