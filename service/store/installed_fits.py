"""Fits installed over HTTP: each replaces the one before it for the same judge and criterion, which a rollback restores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from service.core.judging.fits.fit import Fit
from service.errors import UnknownItemError
from service.store.access.audit import Actor, record
from service.store.database import Database, build_from_row
from service.store.tables import FITS

_NEWEST = sa.select(sa.func.max(FITS.c.id)).group_by(FITS.c.fingerprint)


@dataclass(frozen=True, slots=True)
class InstalledFit:
    """A fit in the store."""

    id: int
    fit: Fit
    calibration: str
    """The run that made it; empty: it was uploaded."""
    installed_at: float


class InstalledFits:
    """The fits in a database. Every method blocks on the database, so call it in a thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read_version(self) -> tuple[int, int]:
        """Return a value that changes with every installation and every rollback."""
        with self._database.read() as connection:
            newest, count = connection.execute(sa.select(sa.func.max(FITS.c.id), sa.func.count())).one()
        return newest or 0, count

    def list_in_place(self) -> tuple[InstalledFit, ...]:
        """List the newest fit of each judge and criterion."""
        rows = self._database.read_rows(sa.select(FITS).where(FITS.c.id.in_(_NEWEST)).order_by(FITS.c.id))
        return tuple([_build_fit(row) for row in rows])

    def list_fits(self) -> Iterable[Fit]:
        """List the fits alone."""
        return [one.fit for one in self.list_in_place()]

    def install(self, fits: Sequence[Fit], *, calibration: str, by: Actor) -> None:
        """Install fits; leave those that are in place already."""
        with self._database.begin() as connection:
            for fit in fits:
                same = FITS.c.fingerprint == fit.fingerprint
                newest = sa.select(FITS).where(same).order_by(FITS.c.id.desc()).limit(1)
                row = connection.execute(newest).mappings().one_or_none()
                if row is not None and _build_fit(row).fit == fit:
                    continue
                own = {"fingerprint": fit.fingerprint, "fit": fit.model_dump_json(), "who": by.who}
                connection.execute(FITS.insert().values(**own, calibration=calibration))
                detail = {"calibration": calibration} if calibration else {}
                record(connection, by, "fit.install", target=fit.id, model=fit.model, **detail)

    def roll_back(self, name: str, *, by: Actor) -> None:
        """Remove the fit of that id, which restores the one before it. Raises UnknownItemError if it is not in place."""
        with self._database.begin() as connection:
            rows = connection.execute(sa.select(FITS).where(FITS.c.id.in_(_NEWEST))).mappings().all()
            found = next((row["id"] for row in rows if _build_fit(row).fit.id == name), None)
            if found is None:
                raise UnknownItemError("no fit of that id was installed here, or another has taken its place")
            connection.execute(FITS.delete().where(FITS.c.id == found))
            record(connection, by, "fit.rollback", target=name)


def _build_fit(row: sa.RowMapping) -> InstalledFit:
    return build_from_row(InstalledFit, row, fit=Fit.model_validate_json(row["fit"]))
