"""The fits at hand: calibrations of judges, one file of JSON for each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from pydantic import ValidationError

from service.core.calibrate import Fit
from service.core.invalid import problems_in
from service.errors import Problem, SettingsError


def read_fits(folders: Iterable[Path]) -> tuple[Fit, ...]:
    """Every fit of the folders that are there, in order of their names. SettingsError for a file that is none."""
    return tuple([_read(file) for folder in folders for file in sorted(folder.glob("*.json"))])


def _read(file: Path) -> Fit:
    text = file.read_bytes()
    try:
        return Fit.model_validate_json(text)
    except ValidationError as error:
        first = problems_in(error, text)[0]
        raise SettingsError([Problem(f"{file.name}: {first.path}".removesuffix(": "), first.message)]) from None


def file_name(fit: Fit) -> str:
    """The file of a fit: one for each judge and criterion, so that a new fit takes the place of the old one."""
    return f"{fit.fingerprint[:16]}.json"


def today() -> date:
    """The day in UTC."""
    return datetime.now(UTC).date()


class AgingFits(Collection[Fit]):
    """Fits that become stale with age while a process runs: each look at them is by the day it is taken on."""

    def __init__(self, fits: Iterable[Fit], *, max_age_days: int, today: Callable[[], date] = today) -> None:
        """`max_age_days`: how old a fit may be; 0: any age."""
        self._fits = tuple(fits)
        self._age = timedelta(days=max_age_days)
        self._today = today
        self._seen: tuple[date, tuple[Fit, ...]] | None = None

    def __iter__(self) -> Iterator[Fit]:
        return iter(self._at(self._today()))

    def __len__(self) -> int:
        return len(self._fits)

    def __contains__(self, fit: object) -> bool:
        return fit in self._at(self._today())

    def _at(self, day: date) -> tuple[Fit, ...]:
        seen = self._seen
        if seen is None or seen[0] != day:
            seen = self._seen = day, tuple([self._aged(fit, day) for fit in self._fits])
        return seen[1]

    def _aged(self, fit: Fit, day: date) -> Fit:
        if not self._age or fit.made is None or day - fit.made <= self._age:
            return fit
        return fit.model_copy(update={"stale": True})
