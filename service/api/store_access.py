"""Access to what the database holds, in threads, because it waits for the disk."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Generic, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request

from service.api.access import find_payer, find_tenant
from service.api.fairness import Threads
from service.jobs.admission import DATABASE_PATIENCE_S
from service.store.database import insist
from service.store.jobs.jobs import J, Jobs

S = TypeVar("S")
T = TypeVar("T")


class StoreAccess(Generic[S]):
    """A store, and threads in which each tenant gets its turn; without a store, HTTPException 503."""

    def __init__(self, store: S | None, purpose: str, *, threads: int = 4) -> None:
        """`purpose`: the beginning of the answer without a store, such as "labels need"."""
        self._store = store
        self._purpose = purpose
        self._threads = Threads(threads, name="store")

    def find_store(self) -> S:
        """Return the store; HTTPException 503 if there is none."""
        if self._store is None:
            raise HTTPException(503, f"{self._purpose} a database, and none is open here")
        return self._store

    async def ask(self, request: Request, work: Callable[[S, str], T]) -> T:
        """Run `work` with the store and the tenant of a request, as `run` does."""
        store, tenant = self.find_store(), find_tenant(request)
        return await self.run(request, lambda: work(store, tenant))

    async def run(self, request: Request, work: Callable[[], T]) -> T:
        """Run `work`, retrying while the database is out of reach; BusyError if it stays so."""
        return await self.run_once(request, lambda: insist(work, give_up=DATABASE_PATIENCE_S))

    async def run_once(self, request: Request, work: Callable[[], T]) -> T:
        """Run `work` without retrying it."""
        return await self._threads.run(find_payer(request.scope), work)

    async def stream(self, request: Request, pages: Iterator[bytes]) -> AsyncGenerator[bytes]:
        """Yield what an iterator yields that reads the store."""
        while (page := await self.run_once(request, lambda: next(pages, None))) is not None:
            yield page


class JobStore(StoreAccess[Jobs[J]], Generic[J]):
    """Jobs, with threads separate from those that score: a large upload must not take those."""

    def __init__(self, jobs: Jobs[J] | None) -> None:
        super().__init__(jobs, "batches need", threads=8)
        self._long = Threads(4, name="submissions")

    @property
    def jobs(self) -> Jobs[J]:
        """The jobs; HTTPException 503 if there is no store."""
        return self.find_store()

    async def find(self, request: Request, job_id: str) -> J:
        """Find a job; UnknownJobError if there is none, or it is another tenant's."""
        return await self.change(request, job_id, self.jobs.find)

    async def change(self, request: Request, job_id: str, change: Callable[[str, str], T]) -> T:
        """Call `change` with the tenant of a request and the id of a job, and return its result."""
        tenant = find_tenant(request)
        return await self.run(request, lambda: change(tenant, job_id))

    async def run_long(self, request: Request, work: Callable[[], T]) -> T:
        """Run `work` that may take long: two of one tenant run at once."""
        return await self._long.run(find_payer(request.scope), work)
