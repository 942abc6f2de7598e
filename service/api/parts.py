"""The parts of an application that its pages show: one of each, so that a page reads what an operation reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.api.key_cache import KeyCache
from service.api.routes.batches import BatchRoutes
from service.api.routes.calibrations import CalibrationRoutes
from service.api.routes.fits import FitRoutes
from service.api.routes.judges import JudgeRoutes
from service.api.routes.labels import LabelRoutes
from service.api.routes.overview import OverviewRoutes
from service.api.routes.scores import KeptScoreRoutes
from service.api.routes.scoring import ScoringRoutes
from service.engine import Engine
from service.settings import Settings

if TYPE_CHECKING:
    from service.store.database import Database


@dataclass(frozen=True, slots=True)
class ApiParts:
    """What `create_app` has built; it stands in `app.state.parts`. `database` and those after the routes are None together."""

    settings: Settings
    engine: Engine
    database: Database | None
    scoring: ScoringRoutes
    batches: BatchRoutes
    calibrations: CalibrationRoutes
    overview: OverviewRoutes
    callers: KeyCache | None
    sessions: KeyCache | None
    labels: LabelRoutes
    fits: FitRoutes
    scores: KeptScoreRoutes
    judges: JudgeRoutes
