"""The store of batches as handlers reach it: in threads of its own, for it waits for the disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request

from service.api.access import caller_of, payer_of
from service.api.threads import Threads
from service.io.admission import PATIENCE
from service.io.store.batch import Batch
from service.io.store.batches import Batches
from service.io.store.database import insisting

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

    async def found(self, request: Request) -> Batch:
        """The batch that a request names. UnknownBatchError where it is not there, or another tenant's."""
        return await self.changed(request, self.batches.find)

    async def changed(self, request: Request, change: Callable[[str, str], T]) -> T:
        """What `change` makes of tenant and id of the batch that a request names."""
        tenant, name = caller_of(request).tenant, request.path_params["batch_id"]
        return await self.asked(request, lambda: change(tenant, name))

    async def asked(self, request: Request, work: Callable[[], T]) -> T:
        """What `work` gives; BusyError where the database stays out of reach."""
        return await self.once(request, lambda: insisting(work, give_up=PATIENCE))

    async def once(self, request: Request, work: Callable[[], T]) -> T:
        """What `work` gives. It cannot be done again."""
        return await self._short.run(payer_of(request.scope), work)

    async def at_length(self, request: Request, work: Callable[[], T]) -> T:
        """What `work` gives, which may take a while: of one tenant two of its kind go on at once."""
        return await self._long.run(payer_of(request.scope), work)
