"""The fits at hand: calibrations of judges, one JSON file each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from pydantic import ValidationError

from service.core.judging.fit_warnings import find_fit_state, list_juries
from service.core.judging.fits.fit import Fit
from service.core.judging.judges import Judge
from service.core.models.validation import find_problems
from service.errors import InputError, Problem, SettingsError


def read_fits(folders: Iterable[Path]) -> tuple[Fit, ...]:
    """Read every fit in the folders that exist, in order of file names.

    SettingsError for a file that holds no fit, and for two fits of the very same judge and criterion: callgrade must not
    choose which one decides.
    """
    fits: dict[str, tuple[Path, Fit]] = {}
    for file in [file for folder in folders for file in sorted(folder.glob("*.json"))]:
        fit = _read_fit(file)
        first, _ = fits.setdefault(fit.fingerprint, (file, fit))
        if first is not file:
            raise SettingsError.at(
                file.name, f"a fit of {fit.judge} on {fit.criterion} for {fit.model}, as {first.name} is"
            )
    return tuple([fit for _, fit in fits.values()])


def _read_fit(file: Path) -> Fit:
    text = file.read_bytes()
    try:
        return Fit.model_validate_json(text)
    except ValidationError as error:
        first = find_problems(error, text)[0]
        raise SettingsError([Problem(f"{file.name}: {first.path}".removesuffix(": "), first.message)]) from None


def refuse_useless(fits: Sequence[Fit]) -> tuple[list[Fit], list[str]]:
    """Return the fits that may be installed, and why each of the others is not; InputError where none may be.

    `service.core.judging.fits.usefulness` has the rule. Nothing overrides it.
    """
    refused = [Problem(fit.id, f"not installed, because its judge is {why}") for fit in fits if (why := fit.refusal)]
    if refused and len(refused) == len(fits):
        raise InputError(refused)
    return [fit for fit in fits if not fit.refusal], [f"{one.path}: {one.message}" for one in refused]


def build_file_name(fit: Fit) -> str:
    """Return the file name of a fit. It depends on judge and criterion alone, so that a new fit replaces the old one."""
    return f"{fit.fingerprint[:16]}.json"


Evidence = Mapping[tuple[str, str], Collection[str]]


def describe_state(
    fit: Fit, judges: Mapping[str, Judge], evidence: Evidence, *, models: Sequence[str] = (), route: str | None = None
) -> str:
    """Say whether a fit decides, or why not. Judges that requests bring in their own rubrics are not known here.

    `evidence`: by judge and criterion, digests of what code shows the judge. `models`: the models that may answer where a judge
    names none; `route`: the route to them. Without these, no judge answers here.
    """
    judge = judges.get(fit.judge)
    if judge is None:
        return "no such judge, packaged or yours"
    shown = evidence.get((fit.judge, fit.criterion), ())
    return find_fit_state(fit, judge, list_juries(judge, models) if models else (), shown, route)[1]


def get_today() -> date:
    """Return today's date in UTC."""
    return datetime.now(UTC).date()


class AgingFits(Collection[Fit]):
    """Fits that grow stale with age while a process runs: each access judges their age by the current day."""

    def __init__(self, fits: Iterable[Fit], *, max_age_days: int, today: Callable[[], date] = get_today) -> None:
        """Hold `fits`; one older than `max_age_days` is stale (0: no limit)."""
        self._fits = tuple(fits)
        self._age = timedelta(days=max_age_days)
        self._today = today
        self._seen: tuple[date, tuple[Fit, ...]] | None = None

    def __iter__(self) -> Iterator[Fit]:
        return iter(self._age_fits(self._today()))

    def __len__(self) -> int:
        return len(self._fits)

    def __contains__(self, fit: object) -> bool:
        return fit in self._age_fits(self._today())

    def _age_fits(self, day: date) -> tuple[Fit, ...]:
        seen = self._seen
        if seen is None or seen[0] != day:
            limit = self._age or timedelta.max
            pairs = [(fit, fit.made is not None and day - fit.made > limit) for fit in self._fits]
            seen = self._seen = (
                day,
                tuple([fit.model_copy(update={"stale": True}) if old else fit for fit, old in pairs]),
            )
        return seen[1]
