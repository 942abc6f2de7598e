"""Access to a store of jobs, in threads of its own, because it waits for the disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request

from service.api.access import find_caller, find_payer
from service.api.fairness.threads import Threads
from service.jobs.admission import DATABASE_PATIENCE_S
from service.store.database import insist
from service.store.jobs.jobs import J, Jobs

T = TypeVar("T")


class JobStore(Generic[J]):
    """Jobs, and threads for them, separate from those that score: a large upload must not take those."""

    def __init__(self, jobs: Jobs[J] | None, *, parameter: str) -> None:
        """`parameter`: the path parameter with the id of a job."""
        self._jobs = jobs
        self._parameter = parameter
        self._short = Threads(8, name="batches")
        self._long = Threads(4, name="submissions")

    @property
    def jobs(self) -> Jobs[J]:
        """The jobs; HTTPException 503 if there is no store."""
        if self._jobs is None:
            raise HTTPException(503, "batches need a database, and none is open here")
        return self._jobs

    async def find(self, request: Request) -> J:
        """Find the job that a request names; UnknownJobError if there is none, or it is another tenant's."""
        return await self.change(request, self.jobs.find)

    async def change(self, request: Request, change: Callable[[str, str], T]) -> T:
        """Call `change` with tenant and id of the job that a request names, and return its result."""
        tenant, name = find_caller(request).tenant, request.path_params[self._parameter]
        return await self.run_insisting(request, lambda: change(tenant, name))

    async def run_insisting(self, request: Request, work: Callable[[], T]) -> T:
        """Run `work`, retrying while the database is out of reach; BusyError if it stays so."""
        return await self.run_once(request, lambda: insist(work, give_up=DATABASE_PATIENCE_S))

    async def run_once(self, request: Request, work: Callable[[], T]) -> T:
        """Run `work` without retrying it."""
        return await self._short.run(find_payer(request.scope), work)

    async def run_long(self, request: Request, work: Callable[[], T]) -> T:
        """Run `work` that may take long: two of one tenant run at once."""
        return await self._long.run(find_payer(request.scope), work)
