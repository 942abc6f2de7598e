"""What tenants use in a day, over all processes: counted, and limited by reserving it before use."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import NamedTuple

import sqlalchemy as sa

from service.core.money import Cost, UsageAmount
from service.store.database import Database, build_from_row, insert_new
from service.store.tables import USAGE
from service.store.times import DAY_S

KEPT_DAYS = 31
"""Days before today whose usage is kept."""


@dataclass(frozen=True, slots=True)
class DayUsage:
    """What judges were asked for a tenant in a UTC day."""

    tenant: str
    day: str
    """As 2026-11-22."""
    questions: int
    """Requests to models: every vote, repair and retry is one."""
    cached: int
    """Answers that needed no request: from the cache, or shared with another question of the same moment."""
    tokens_in: int
    tokens_out: int
    cost_usd: float | None
    """Paid, as far as replies say; null where no price is known."""
    unpriced_calls: int
    """Requests without a known price, which `cost_usd` lacks."""
    uncertain_usd: float
    """The most that further calls may have cost: those without a bill, and those under way."""


class Caps(NamedTuple):
    """The most that a tenant may use in a day; None: unlimited."""

    questions: int | None = None
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class UsageReport:
    """The days with known usage, newest first, and the limits of a day; null: unlimited."""

    today: str
    max_questions: int | None
    max_usd: float | None
    data: tuple[DayUsage, ...]


COLUMNS = [one.name for one in fields(UsageAmount)]


class UsageStore:
    """The usage in a database. Every method blocks on the database, so call it in a thread."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def add(self, tenant: str, day: int, more: UsageAmount, caps: Caps) -> bool:
        """Add to a day; return False and add nothing if used and reserved amounts together would exceed a cap."""
        raised = sa.update(USAGE).where(USAGE.c.tenant == tenant, USAGE.c.day == day, *_match_caps(more, caps))
        values = {name: USAGE.c[name] + getattr(more, name) for name in COLUMNS}
        with self.database.begin() as connection:
            insert_new(connection, USAGE, {"tenant": tenant, "day": day})
            return connection.execute(raised.values(values)).rowcount > 0

    def fits(self, tenant: str, day: int, more: UsageAmount, caps: Caps) -> bool:
        """Whether `add` would add it, found by reading alone: for a database that cannot be written."""
        chosen = sa.select(USAGE.c.day).where(USAGE.c.tenant == tenant, USAGE.c.day == day)
        if self.database.read_row(chosen) is not None:
            return self.database.read_row(chosen.where(*_match_caps(more, caps))) is not None
        questions, usd = _sum_capped(more)
        return (caps.questions is None or questions <= caps.questions) and (caps.usd is None or usd <= caps.usd)

    def list_days(self, today: int, *, tenant: str | None = None, days: int = KEPT_DAYS) -> tuple[DayUsage, ...]:
        """List today and so many days before it, newest first: of one tenant, or of all."""
        chosen = sa.select(USAGE).where(USAGE.c.day >= today - days)
        if tenant is not None:
            chosen = chosen.where(USAGE.c.tenant == tenant)
        chosen = chosen.order_by(USAGE.c.day.desc(), USAGE.c.tenant)
        return tuple([_build_day_usage(row) for row in self.database.read_rows(chosen)])

    def forget_old(self, today: int) -> None:
        """Delete usage that is no longer reported."""
        self.database.change(sa.delete(USAGE).where(USAGE.c.day < today - KEPT_DAYS))


def format_day(day: int) -> str:
    """Format a day, counted from 1970, as people write it.

    >>> format_day(20_779)
    '2026-11-22'
    """
    return datetime.fromtimestamp(day * DAY_S, UTC).date().isoformat()


_QUESTIONS = USAGE.c.questions + USAGE.c.held_questions
_USD = USAGE.c.cost_usd + USAGE.c.uncertain_usd + USAGE.c.held_usd


def _sum_capped(more: UsageAmount) -> tuple[int, float]:
    """Return the questions and the dollars that caps limit."""
    return more.questions + more.held_questions, more.cost_usd + more.uncertain_usd + more.held_usd


def _match_caps(more: UsageAmount, caps: Caps) -> list[sa.ColumnElement[bool]]:
    """Return the conditions under which it may be added; what costs nothing is not limited in dollars."""
    questions, usd = _sum_capped(more)
    found = [] if caps.questions is None else [_QUESTIONS + questions <= caps.questions]
    return found if caps.usd is None or round(usd, 9) <= 0 else [*found, _USD + usd <= caps.usd]


def _build_day_usage(row: sa.RowMapping) -> DayUsage:
    return build_from_row(
        DayUsage,
        row,
        day=format_day(row["day"]),
        cost_usd=Cost(row["cost_usd"], row["unpriced"]).known_usd,
        unpriced_calls=row["unpriced"],
        uncertain_usd=max(0.0, row["uncertain_usd"] + row["held_usd"]),
    )
