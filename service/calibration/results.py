"""What a calibration run found, as data: the report that JSON, Markdown and HTML show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import TypeAdapter

from service.calibration.diagnostics import Disagreement, LengthBias, Retest
from service.calibration.figures import Figures
from service.calibration.fitting import CurvePoint
from service.calibration.jury import Advantage
from service.core.judging.fits import Fit, Method, Origin
from service.stats.tallies import Bin

REPORT_VERSION = 2


@dataclass(frozen=True, slots=True)
class LabelFacts:
    """What the labelled items of one criterion are. `alpha` and the like are in `humans`."""

    criterion: str
    origin: Origin
    """constructed where any item is, else gold where any is."""
    items: int
    groups: int
    annotators: int
    labels: int
    twice: int
    """Items that two or more annotators labelled."""
    passing: int
    """Items that pass by the word of most annotators."""
    humans: Figures | None
    """One human beside another on all items that people labelled twice."""


@dataclass(frozen=True, slots=True)
class HistogramBar:
    """How many held-out items have a calibrated value from `low` up to `high`, by label."""

    low: float
    high: float
    passing: int
    failing: int


@dataclass(frozen=True, slots=True)
class HeldOutSlice:
    """The held-out items that share a step or tool family, under the same map and threshold."""

    by: Literal["step", "family"]
    name: str
    figures: Figures
    humans: Figures | None


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure over many splits: its 10th, 50th and 90th percentile."""

    splits: int
    low: float
    median: float
    high: float


@dataclass(frozen=True, slots=True)
class AbstentionBand:
    """The band of calibrated values in which a human is asked, chosen on the fitted items, and what it does to the others."""

    band: tuple[float, float]
    coverage: float
    """The share of held-out items that are decided."""
    accuracy: float | None
    """Among them."""


@dataclass(frozen=True, slots=True)
class HeldOutItem:
    """A held-out item under the judge: what it can be compared by later."""

    id: str
    group: str
    label: bool
    raw: float
    value: float
    """The calibrated one."""


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """One judge on one criterion. All figures are of held-out items, scored once."""

    name: str
    criterion: str
    origin: Origin
    judge: str
    judge_digest: str
    model: str
    fit_id: str
    calibrated: bool
    """Whether the labels were enough, and of a kind, to call its values calibrated."""
    method: Method
    fitted: int
    held_out: int
    fitted_groups: int
    held_out_groups: int
    missing: int
    """Labelled items that it said nothing about."""
    threshold: float
    own_threshold: float
    own: Figures
    """Its raw value taken for a probability, with verdicts at its own threshold."""
    after: Figures
    """Its calibrated value, with verdicts at the threshold that was chosen on the fitted items."""
    humans: Figures | None
    """One human beside another on the same items, where people labelled them twice."""
    where_humans_agree: Figures | None
    """Its calibrated value on the items that two or more people labelled alike."""
    slices: tuple[HeldOutSlice, ...]
    table_before: tuple[Bin, ...]
    table_after: tuple[Bin, ...]
    histogram: tuple[HistogramBar, ...]
    curve: tuple[CurvePoint, ...]
    abstaining: AbstentionBand | None
    retest: Retest | None
    length: LengthBias | None
    worst: tuple[Disagreement, ...]
    ece_by_chance: float | None
    """The ECE that its calibrated values would show by chance alone, were they exactly right."""
    ece_over_splits: Spread | None
    items: tuple[HeldOutItem, ...]


@dataclass(frozen=True, slots=True)
class JuryReport:
    """Several judges as one, beside the best of them: chosen on the fitted items, compared on the others."""

    criterion: str
    weights: Mapping[str, float]
    best: str
    advantage: Advantage
    kept: bool
    report: JudgeReport


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """A run from labels to fits."""

    version: int
    source: str
    seed: str
    share: float
    draws: int
    labels: tuple[LabelFacts, ...]
    judges: tuple[JudgeReport, ...]
    juries: tuple[JuryReport, ...]
    remarks: tuple[str, ...]
    libraries: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CalibrationRun:
    """A report with the fits it made."""

    report: CalibrationReport
    fits: tuple[Fit, ...]


_JSON: TypeAdapter[Any] = TypeAdapter(Any)
_REPORT: TypeAdapter[CalibrationReport] = TypeAdapter(CalibrationReport)


def render_json(value: object) -> bytes:
    """A report, fits or rates as JSON with a last newline: the same bytes for the same one."""
    return _JSON.dump_json(value, indent=1) + b"\n"


def read_report(text: str | bytes) -> CalibrationReport:
    """The report that JSON holds; pydantic's ValidationError where it holds none."""
    return _REPORT.validate_json(text)
