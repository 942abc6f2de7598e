"""What operators read over HTTP: the audit log, and what judges were asked for each tenant, day by day."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import Field
from starlette.requests import Request

from service.api.access import find_caller
from service.api.contract import QueryModel, build_router
from service.api.store_access import StoreAccess
from service.asking.budget.days import Days
from service.store.access.audit import Act, Audit, AuditLog
from service.store.access.usage import UsageReport, format_day


class AuditPageQuery(QueryModel):
    """Which entries to list."""

    limit: int = Field(default=100, ge=1, le=1_000)
    """Most entries in the answer; absent: 100"""
    after: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    """The id of an entry; only older ones are listed"""
    act: Act | None = None
    """The act of the entries to list"""


class AuditRoutes(StoreAccess[Audit]):
    """The audit log, for keys with the scope admin: it covers every tenant."""

    def __init__(self, audit: Audit | None) -> None:
        super().__init__(audit, "the audit log needs", threads=1)
        self.router = build_router("audit")
        self.router.get("/v1/audit")(self.read_audit)

    async def read_audit(self, request: Request, query: Annotated[AuditPageQuery, Query()]) -> AuditLog:
        """Read the audit log, newest first: what somebody changed (keys, jobs, fits, labels), and files that changed."""
        audit = self.find_store()
        return await self.run(request, lambda: audit.page(**query.model_dump()))


class UsageRoutes(StoreAccess[Days]):
    """The days of tenants."""

    def __init__(self, days: Days | None) -> None:
        super().__init__(days, "usage is counted in", threads=2)
        self.router = build_router("usage")
        self.router.get("/v1/usage")(self.show_usage)

    async def show_usage(self, request: Request) -> UsageReport:
        """Show what judges were asked today and in the 31 days before: for the caller's tenant, or for all to an admin."""
        days, caller = self.find_store(), find_caller(request)
        await days.flush()
        today, tenant = days.today, None if caller.may("admin") else caller.tenant
        days_used = await self.run(request, lambda: days.store.list_days(today, tenant=tenant))
        return UsageReport(format_day(today), days.caps.questions, days.caps.usd, days_used)
