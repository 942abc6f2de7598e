"""The parts of an application that its pages use: one of each, so that pages and operations read the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.api.key_cache import KeyCache
from service.api.routes.batches import BatchRoutes
from service.api.routes.calibrations import CalibrationRoutes
from service.api.routes.fits import FitRoutes
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
    """What `create_app` built, in `app.state.parts`. `database`, `keys` and `sessions` are all None or none of them is."""

    settings: Settings
    engine: Engine
    database: Database | None
    scoring: ScoringRoutes
    batches: BatchRoutes
    calibrations: CalibrationRoutes
    overview: OverviewRoutes
    keys: KeyCache | None
    sessions: KeyCache | None
    labels: LabelRoutes
    fits: FitRoutes
    scores: KeptScoreRoutes
