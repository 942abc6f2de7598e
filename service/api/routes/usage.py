"""Usage over HTTP: what judges were asked for each tenant, day by day."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import BaseRoute

from service.api.access import find_caller, find_payer
from service.api.fairness.threads import Threads
from service.api.operations import Operation
from service.asking.budget.days import Days
from service.jobs.admission import DATABASE_PATIENCE_S
from service.store.access.usage import UsageReport, format_day
from service.store.database import insist


class UsageRoutes:
    """The handler over the days of tenants; None: nothing is counted, and it answers 503."""

    def __init__(self, days: Days | None) -> None:
        self._days = days
        self._threads = Threads(2, name="usage")

    def all(self) -> list[BaseRoute]:
        """List the routes."""
        return [Operation("GET", "/v1/usage", self.show_usage, UsageReport, 503)]

    async def show_usage(self, request: Request) -> UsageReport:
        """Show what judges were asked today and in the 31 days before: for the caller's tenant, or for all to an admin."""
        days, caller = self._days, find_caller(request)
        if days is None:
            raise HTTPException(503, "usage is counted in a database, and none is open here")
        await days.flush()
        today, tenant = days.today, None if caller.may("admin") else caller.tenant
        days_used = await self._threads.run(
            find_payer(request.scope),
            lambda: insist(lambda: days.store.list_days(today, tenant=tenant), give_up=DATABASE_PATIENCE_S),
        )
        return UsageReport(format_day(today), days.caps.questions, days.caps.usd, days_used)
