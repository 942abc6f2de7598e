"""The store of batches as handlers reach it: in threads of its own, for it waits for the disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request

from service.api.access import find_caller, find_payer
from service.api.fairness.threads import Threads
from service.jobs.admission import PATIENCE
from service.store.batch import Batch
from service.store.batches import Batches
from service.store.database import insist

T = TypeVar("T")

NO_STORE = "batches need a database, and none is open here"


class BatchStore:
    """Batches and the threads that work on them, apart from those that score: a large upload must not take these."""

    def __init__(self, batches: Batches | None) -> None:
        self._batches = batches
        self._short = Threads(8, name="batches")
        self._long = Threads(4, name="submissions")

    @property
    def batches(self) -> Batches:
        """The batches; HTTPException 503 where there is no store."""
        if self._batches is None:
            raise HTTPException(503, NO_STORE)
        return self._batches

    async def find_batch(self, request: Request) -> Batch:
        """The batch that a request names. UnknownBatchError where it is not there, or another tenant's."""
        return await self.change(request, self.batches.find)

    async def change(self, request: Request, change: Callable[[str, str], T]) -> T:
        """What `change` makes of tenant and id of the batch that a request names."""
        tenant, name = find_caller(request).tenant, request.path_params["batch_id"]
        return await self.run_insisting(request, lambda: change(tenant, name))

    async def run_insisting(self, request: Request, work: Callable[[], T]) -> T:
        """What `work` gives; BusyError where the database stays out of reach."""
        return await self.run_once(request, lambda: insist(work, give_up=PATIENCE))

    async def run_once(self, request: Request, work: Callable[[], T]) -> T:
        """What `work` gives. It cannot be done again."""
        return await self._short.run(find_payer(request.scope), work)

    async def run_long(self, request: Request, work: Callable[[], T]) -> T:
        """What `work` gives, which may take a while: of one tenant two of its kind go on at once."""
        return await self._long.run(find_payer(request.scope), work)
