"""The audit log over HTTP, for keys with the scope admin: it covers every tenant."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import BaseRoute

from service.api.access import find_payer
from service.api.fairness.threads import Threads
from service.api.operations import Operation
from service.api.queries import read_query
from service.core.models.kinds import FrozenModel
from service.jobs.admission import DATABASE_PATIENCE_S
from service.store.access.audit import Act, Audit, AuditLog
from service.store.database import insist


class AuditPageQuery(FrozenModel):
    """Which entries to list."""

    limit: int = Field(default=100, ge=1, le=1_000)
    """Most entries in the answer; absent: 100"""
    after: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    """The id of an entry; only older ones are listed"""
    act: Act | None = None
    """The act of the entries to list"""


NO_STORE = "the audit log needs a database, and none is open here"


class AuditRoutes:
    """The handler over one store; without a store it answers 503."""

    def __init__(self, audit: Audit | None) -> None:
        self._audit = audit
        self._threads = Threads(1, name="audit")

    def all(self) -> list[BaseRoute]:
        """List the routes."""
        return [Operation("GET", "/v1/audit", self.read_audit, AuditLog, 422, 503, query=AuditPageQuery)]

    async def read_audit(self, request: Request) -> AuditLog:
        """Read the audit log, newest first: what somebody changed (keys, jobs, fits, labels), and files that changed."""
        audit = self._audit
        if audit is None:
            raise HTTPException(503, NO_STORE)
        query = read_query(request.query_params, AuditPageQuery).model_dump()
        return await self._threads.run(
            find_payer(request.scope), lambda: insist(lambda: audit.page(**query), give_up=DATABASE_PATIENCE_S)
        )
