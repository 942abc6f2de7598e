"""The results of a calibration run as data: the report that JSON, Markdown and HTML show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from service.calibration.figures import Figures, HeldOutItem
from service.calibration.fitting import CurvePoint
from service.core.judging.fits.certificate import Guarantee
from service.core.judging.fits.fit import Fit, Origin
from service.core.judging.fits.usefulness import Use
from service.stats.rates import Measure
from service.stats.tallies import Bin

REPORT_VERSION = 6
UNDEFINED = Measure(None)


@dataclass(frozen=True, slots=True)
class LabelFacts:
    """Facts about the labelled items of one criterion. Alpha and the like are in `humans`."""

    criterion: str
    origin: Origin
    items: int
    groups: int
    annotators: int
    labels: int
    twice: int
    """Items that two or more annotators labelled."""
    passing: int
    humans: Figures | None
    """One human against another, on all items that people labelled twice."""


@dataclass(frozen=True, slots=True)
class ReviewBand:
    """The band of calibrated values in which a human decides, and the effect of such bands on items they were not chosen on."""

    band: tuple[float, float]
    coverage: float
    """The share of held-out items that are decided; `accuracy` is among these."""
    accuracy: float | None


@dataclass(frozen=True, slots=True)
class Retest:
    """Items that were asked more than once: how often two answers to the same question differ."""

    items: int
    flip_rate: Measure
    """The noise floor: the mean share of pairs of answers to an item whose verdicts differ. Its interval draws whole groups."""


@dataclass(frozen=True, slots=True)
class Promise:
    """Which verdicts are accepted so that a share of them agrees with humans, and how that turned out.

    `guarantee` is the one that is served; the figures are of held-out items under thresholds that have not seen them.
    """

    guarantee: Guarantee
    coverage: Measure
    """The share of items accepted; where nothing is accepted, no threshold keeps the promise."""
    agreement: Measure
    """The agreement among the accepted items; `passing` and `failing` are that of passes and of failures alone."""
    n: int
    passing: Measure = UNDEFINED
    failing: Measure = UNDEFINED


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An item on which judge and labels disagree; its line in the labelled set leads to the whole of it."""

    id: str
    line: int
    labels: tuple[str, ...]
    """Each annotator's label, with their notes."""
    raw: float
    value: float
    answer: str
    """What the model said, where the item has no trace."""
    reason: str
    """The judge's reason in its own words; empty where none is recorded."""


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """One judge on one criterion. All figures are of held-out items, each scored once by a map that has not seen it."""

    name: str
    fit: Fit
    """The fit with its bounds: which judge it is for, what it was fitted to, and whether that judge is useful."""
    why: str
    """Why its values may not be called calibrated; empty where they may."""
    missing: int
    """Labelled items that it gave no answer for."""
    own_threshold: float
    """The lowest raw value that passes without a fit: the judge's own."""
    own: Figures
    """Its raw value taken as a probability, which passes from `own_threshold` upwards."""
    after: Figures
    """Its calibrated value, with verdicts at a threshold chosen on other items."""
    humans: Figures | None
    """One human against another on the same items, where people labelled them twice."""
    table_before: tuple[Bin, ...]
    table_after: tuple[Bin, ...]
    curve: tuple[CurvePoint, ...]
    review_band: ReviewBand | None
    retest: Retest | None
    worst: tuple[Disagreement, ...]
    items: tuple[HeldOutItem, ...]
    only_fitted: tuple[str, ...] = ()
    """The ids of the items that were fitted and not held out."""
    promises: tuple[Promise, ...] = ()
    """By share, ascending; none for a judge that is not useful."""
    cost_usd: float | None = None
    """The mean cost of an answer; None unless it is known for every item."""

    @property
    def criterion(self) -> str:
        """The criterion that it decides."""
        return self.fit.criterion

    @property
    def use(self) -> Use:
        """Whether it tells passes from failures; if it is not useful, nothing is promised and its fit is not installed."""
        return "cannot tell" if self.fit.discrimination is None else self.fit.discrimination.use


@dataclass(frozen=True, slots=True)
class JuryMember:
    """One judge of a jury; None where a figure is unknown."""

    name: str
    weight: float
    cost_usd: float | None
    """The mean cost of an answer."""
    agreement: float | None
    """The share of held-out items on which it agrees with the labels."""


@dataclass(frozen=True, slots=True)
class JuryReport:
    """The models of a judge as one, against the best of them, on the same held-out items."""

    criterion: str
    best: str
    """The best of them, by AUROC."""
    gain: Measure
    """How much lower the jury's Brier score is than that of the best."""
    kept: bool | None
    """Whether it is worth its price; None where there are no intervals to tell."""
    report: JudgeReport
    asked: bool
    """Whether a judge lists these models: its fit is then written in any case."""
    members: tuple[JuryMember, ...]


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """A run from labels to fits."""

    version: int
    source: str
    seed: str
    folds: int
    """How many parts groups were dealt into, each held out once."""
    draws: int
    labels: tuple[LabelFacts, ...]
    judges: tuple[JudgeReport, ...]
    juries: tuple[JuryReport, ...]
    remarks: tuple[str, ...]
    libraries: Mapping[str, str]
    given: tuple[str, ...] = ()
    """The criteria whose items say themselves which are held out."""

    @property
    def all_judges(self) -> tuple[JudgeReport, ...]:
        """Its judges, then its juries."""
        return (*self.judges, *[jury.report for jury in self.juries])

    @property
    def fits(self) -> tuple[Fit, ...]:
        """The fits to install: those of its judges and of the juries that are kept."""
        fits = [*[one.fit for one in self.judges], *[jury.report.fit for jury in self.juries if jury.kept]]
        return tuple({fit.fingerprint: fit for fit in fits}.values())


_JSON: TypeAdapter[Any] = TypeAdapter(Any)
_REPORT: TypeAdapter[CalibrationReport] = TypeAdapter(CalibrationReport)


def render_report_json(value: object) -> bytes:
    """Render a report, fits or rates as JSON with a final newline; equal values give the same bytes."""
    return _JSON.dump_json(value, indent=1) + b"\n"


def parse_calibration_report(text: str | bytes) -> CalibrationReport:
    """Read a report from JSON; raises pydantic's ValidationError for anything else."""
    return _REPORT.validate_json(text)
