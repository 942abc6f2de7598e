"""The fits that decide here: which there are, whether each applies, how it has held, and putting others in their place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from service.core.judging.fits import Fit
from service.engine import Engine
from service.errors import JobStateError
from service.fits.checks import FitCheck, read_checks
from service.fits.files import describe_state
from service.fits.live import LiveFits
from service.store.access.audit import Actor
from service.store.database import Database
from service.store.installed_fits import InstalledFit, InstalledFits
from service.store.times import format_rfc3339


@dataclass(frozen=True, slots=True)
class FitState:
    """A fit that is in place. Of one that came as a file of CALLGRADE_HOME `installed_at` is null."""

    id: str
    judge: str
    criterion: str
    model: str
    made: str | None
    """The day."""
    labels: int
    kappa: float | None
    threshold: float
    abstain: tuple[float, float] | None
    """From the first up to the second a human decides."""
    guarantee: float | None
    """The share of accepted verdicts that is promised to agree with humans."""
    state: str
    """`in use`, or why not."""
    origin: Literal["file", "installed"]
    calibration: str | None
    """The run that made it, where it was installed from one."""
    installed_at: str | None
    checks: int
    last_check: FitCheck | None
    """How it held when it was last checked."""


@dataclass(frozen=True, slots=True)
class FitStates:
    """The fits in place, by judge, criterion and model."""

    data: tuple[FitState, ...]


@dataclass(frozen=True, slots=True)
class FitInstallation:
    """What was put in place, and which verdicts stay open nevertheless."""

    data: tuple[FitState, ...]
    warnings: tuple[str, ...]


class FitDesk:
    """Over one store, the fits of one process and the folder of files. All of it waits, and so belongs into a thread."""

    def __init__(self, database: Database, engine: Engine, folder: Path) -> None:
        self._installed = InstalledFits(database)
        self._engine = engine
        self._folder = folder

    def list_states(self) -> FitStates:
        """Every fit in place."""
        self._look()
        installed = {one.fit.id: one for one in self._installed.list_in_place()}
        checks = read_checks(self._folder)
        fits = sorted(self._engine.fits, key=lambda fit: (fit.judge, fit.criterion, fit.model))
        return FitStates(
            tuple(
                [_build_state(fit, installed.get(fit.id), self._describe(fit), checks.get(fit.id, ())) for fit in fits]
            )
        )

    def _describe(self, fit: Fit) -> str:
        judges, judging = self._engine.registry.judges, self._engine.judging
        if judging is None:
            return describe_state(fit, judges)
        return describe_state(fit, judges, models=judging.judges.models, route=judging.judges.route)

    def install(self, fits: Sequence[Fit], *, calibration: str, by: Actor) -> FitInstallation:
        """Puts fits in place, each of an earlier one for the same judge and criterion, at once in every process."""
        self._installed.install(fits, calibration=calibration, by=by)
        names = {fit.id for fit in fits}
        states = tuple([one for one in self.list_states().data if one.id in names])
        return FitInstallation(states, tuple(self._engine.list_warnings()))

    def roll_back(self, name: str, *, by: Actor) -> None:
        """The fit before is in place again, if there was one. JobStateError for a file, UnknownItemError for no such fit."""
        in_place = {one.id: one for one in self.list_states().data}
        if name in in_place and in_place[name].origin == "file":
            raise JobStateError("the fit is a file of CALLGRADE_HOME/fits; whoever runs the service takes it away")
        self._installed.roll_back(name, by=by)
        self._look()

    def _look(self) -> None:
        if isinstance(self._engine.fits, LiveFits):
            self._engine.fits.look()


def read_fit_files(text: str) -> list[Fit]:
    """The fits of a calibration, as the store has them."""
    return [Fit.model_validate_json(json.dumps(one["fit"])) for one in json.loads(text)]


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
        abstain=fit.abstain,
        guarantee=None if fit.guarantee is None else fit.guarantee.share,
        state=state,
        origin="file" if installed is None else "installed",
        calibration=(installed.calibration or None) if installed else None,
        installed_at=format_rfc3339(installed.installed_at) if installed else None,
        checks=len(own),
        last_check=own[-1] if own else None,
    )
