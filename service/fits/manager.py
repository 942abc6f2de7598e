"""The installed fits: list them, say whether each applies and how it has held up, install others, roll back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, ValidationError

from service.core.judging.fits.fit import Fit
from service.core.models.kinds import FrozenModel, Several
from service.engine import Engine
from service.errors import JobStateError
from service.fits.files import describe_state, refuse_useless
from service.fits.live import LiveFits
from service.store.access.audit import Actor
from service.store.database import Database
from service.store.installed_fits import InstalledFit, InstalledFits
from service.store.times import format_rfc3339


@dataclass(frozen=True, slots=True)
class FitState:
    """An installed fit. `installed_at` is null for one that is a file of CALLGRADE_HOME."""

    id: str
    judge: str
    criterion: str
    model: str
    made: str | None
    """The day it was made."""
    labels: int
    kappa: float | None
    threshold: float
    review_band: tuple[float, float] | None
    """A human decides from the first value up to, not including, the second."""
    guarantee: float | None
    """The share of accepted verdicts that it guarantees to agree with humans."""
    certified: bool
    """Whether the latest look at labels certified it (`callgrade calibrate certify`)."""
    state: str
    """`in use`, or why not."""
    origin: Literal["file", "installed"]
    calibration: str | None
    """The calibration run it was installed from, if any."""
    installed_at: str | None
    checks: int
    last_check: FitCheck | None
    """The result of its latest check."""


@dataclass(frozen=True, slots=True)
class FitStates:
    """The installed fits, sorted by judge, criterion and model."""

    data: tuple[FitState, ...]


@dataclass(frozen=True, slots=True)
class FitInstallation:
    """The fits just installed, and warnings: fits that were refused, and verdicts that stay open nevertheless."""

    data: tuple[FitState, ...]
    warnings: tuple[str, ...]


class FitManager:
    """Lists, installs and rolls back fits: over one store, the fits of one process and the folder of fit files.

    All methods block, so call them in a thread.
    """

    def __init__(self, database: Database, engine: Engine, folder: Path) -> None:
        self._installed = InstalledFits(database)
        self._engine = engine
        self._folder = folder

    def list_states(self) -> FitStates:
        """List every fit in place."""
        self._reload()
        installed = {one.fit.id: one for one in self._installed.list_in_place()}
        checks = read_checks(self._folder, FitCheck)
        fits = sorted(self._engine.fits, key=lambda fit: (fit.judge, fit.criterion, fit.model))
        return FitStates(
            tuple(
                [_build_state(fit, installed.get(fit.id), self._describe(fit), checks.get(fit.id, ())) for fit in fits]
            )
        )

    def _describe(self, fit: Fit) -> str:
        registry, judging = self._engine.registry, self._engine.judging
        known = registry.judges, registry.list_evidence()
        if judging is None:
            return describe_state(fit, *known)
        models = judging.judges.list_models(fit.criterion, fit.judge)
        return describe_state(fit, *known, models=models, route=judging.judges.route)

    def install(self, fits: Sequence[Fit], *, calibration: str, by: Actor) -> FitInstallation:
        """Install fits, each replacing an earlier one for the same judge and criterion, in every process within a second.

        The fit of a useless judge is refused: with a warning, or InputError where no other is left.
        """
        useful, refused = refuse_useless(fits)
        self._installed.install(useful, calibration=calibration, by=by)
        names = {fit.id for fit in useful}
        states = tuple([one for one in self.list_states().data if one.id in names])
        idle = [
            f"{fit.id} accepts no verdict, because no threshold promises {fit.guarantee.share:.0%}: a human decides everything"
            for fit in useful
            if fit.guarantee and not fit.guarantee.accepts_any
        ]
        return FitInstallation(states, (*refused, *idle, *self._engine.list_warnings()))

    def roll_back(self, name: str, *, by: Actor) -> None:
        """Put the previous fit back in place, if there was one.

        JobStateError for a fit file, UnknownItemError for an unknown fit.
        """
        in_place = {one.id: one for one in self.list_states().data}
        if name in in_place and in_place[name].origin == "file":
            raise JobStateError("the fit is a file of CALLGRADE_HOME/fits; whoever runs the service takes it away")
        self._installed.roll_back(name, by=by)
        self._reload()

    def _reload(self) -> None:
        if isinstance(self._engine.fits, LiveFits):
            self._engine.fits.reload()


def read_fit_files(text: str) -> list[Fit]:
    """Read the fits of a calibration, as the store keeps them."""
    return [Fit.model_validate_json(json.dumps(row["fit"])) for row in json.loads(text)]


def _build_state(fit: Fit, installed: InstalledFit | None, state: str, own: Sequence[FitCheck]) -> FitState:
    kappa = fit.statistics.get("kappa")
    return FitState(
        id=fit.id,
        judge=fit.judge,
        criterion=fit.criterion,
        model=fit.model,
        made=None if fit.made is None else fit.made.isoformat(),
        labels=fit.labels,
        kappa=None if kappa is None else kappa.value,
        threshold=fit.threshold,
        review_band=fit.review_band,
        guarantee=None if fit.guarantee is None else fit.guarantee.share,
        certified=fit.certified,
        state=state,
        origin="file" if installed is None else "installed",
        calibration=(installed.calibration or None) if installed else None,
        installed_at=format_rfc3339(installed.installed_at) if installed else None,
        checks=len(own),
        last_check=own[-1] if own else None,
    )


FILE = "checks.jsonl"


class FitCheck(FrozenModel):
    """The result of judging a pinned sample again."""

    fit: str
    """The id of the fit."""
    day: date
    items: int = Field(ge=0)
    kappa: float | None
    then: float | None
    """Kappa on the same items when the fit was made."""
    drifted: Several[str] = ()
    """What has drifted, in words; empty where nothing has."""


class ItemizedCheck(FitCheck):
    """A check with the agreement of each item, so that later checks can be paired with it."""

    agreed: dict[str, bool]
    """For each item that was answered, whether judge and label agree."""


C = TypeVar("C", bound=FitCheck)


def append_checks(folder: Path, checks: Iterable[FitCheck]) -> None:
    """Append checks to the file in a folder. OSError where it cannot be written."""
    lines = "".join([f"{check.model_dump_json()}\n" for check in checks])
    if lines:
        with (folder / FILE).open("a", encoding="utf-8") as file:
            file.write(lines)


def read_checks(folder: Path, kind: type[C]) -> dict[str, list[C]]:
    """Read the checks of each fit, oldest first; skip a line that cannot be read."""
    found: dict[str, list[C]] = {}
    file = folder / FILE
    for line in file.read_text("utf-8").splitlines() if file.is_file() else ():
        try:
            check = kind.model_validate_json(line)
        except ValidationError:
            continue
        found.setdefault(check.fit, []).append(check)
    return found
