"""What a calibration run found, as data: the report that JSON, Markdown and HTML show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import TypeAdapter

from service.calibration.diagnostics import Disagreement, LengthBias, Retest
from service.calibration.ensembles.jury_weights import Advantage
from service.calibration.figures import Figures, Measure
from service.calibration.fitting import CurvePoint
from service.core.judging.fits import Fit, Guarantee, Method, Origin
from service.stats.tallies import Bin

REPORT_VERSION = 3
UNDEFINED = Measure(None)


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
    first_error: Measure | None = None
    """As of the judge's report."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure over many splits: its 10th, 50th and 90th percentile."""

    splits: int
    low: float
    median: float
    high: float


@dataclass(frozen=True, slots=True)
class AbstentionBand:
    """The band of calibrated values in which a human is asked, and what such bands do to items they were not chosen on."""

    band: tuple[float, float]
    coverage: float
    """The share of held-out items that are decided."""
    accuracy: float | None
    """Among them."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What is accepted where a share of accepted verdicts is to agree with humans, and what became of that.

    `guarantee` is the one that is served; the figures are of held-out items under thresholds that have not seen them.
    """

    guarantee: Guarantee
    coverage: Measure
    """The share of items that is accepted. With nothing accepted there is no threshold that keeps the promise."""
    agreement: Measure
    """Among them."""
    n: int
    passing: Measure = UNDEFINED
    """The agreement of the passes among them: what is promised is that of all together."""
    failing: Measure = UNDEFINED
    """That of the failures."""


@dataclass(frozen=True, slots=True)
class CascadeStage:
    """A judge of a cascade: what comes to it, what it decides, and what it leaves."""

    judge: str
    reached: float
    """The share of all items that comes to it."""
    decided: float
    """The share of all items that it decides."""
    agreement: Measure
    """With labels, among what it decides."""
    guarantee: Guarantee | None
    """What is served."""
    cost_usd: float | None
    """What asking it of one item costs; None: nobody knows."""


@dataclass(frozen=True, slots=True)
class CascadeReport:
    """Judges one after the other, each asked only of what the one before leaves to it; the rest is for humans."""

    criterion: str
    share: float
    """Of accepted verdicts, that is to agree with labels."""
    stages: tuple[CascadeStage, ...]
    coverage: Measure
    """The share of all items that any stage decides."""
    agreement: Measure
    cost_usd: float | None
    """What an item costs on average, all stages together."""
    asked_for: bool
    """Whether its fits are written. Else it only shows what a cascade would do."""


@dataclass(frozen=True, slots=True)
class HeldOutItem:
    """A held-out item under the judge: what it can be compared by later."""

    id: str
    group: str
    label: bool
    raw: float
    value: float
    """The calibrated one, by a map that has not seen it."""
    passed: bool | None = None
    """By that map's own threshold; None in reports of before, whose judges had one threshold."""

    def passes_from(self, threshold: float) -> bool:
        """The verdict; by this threshold where none was kept."""
        return self.value >= threshold if self.passed is None else self.passed


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """One judge on one criterion. All figures are of held-out items: each scored once, by a map that has not seen it."""

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
    """Of the map that is served, as all that says what is served."""
    own_threshold: float
    own: Figures
    """Its raw value taken for a probability, with verdicts at its own threshold."""
    after: Figures
    """Its calibrated value, with verdicts at the threshold that was chosen on other items."""
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
    least_decided: float = 0.8
    """The least share of fitted items that a band had to leave decided."""
    promises: tuple[Promise, ...] = ()
    """By share, ascending."""
    guarantee: float | None = None
    """The share that its fit promises; None: nothing."""
    cost_usd: float | None = None
    """What an answer costs on average; None where it is not known of every item."""
    why: str = ""
    """Why its values may not be called calibrated; empty where they may."""
    first_error: Measure | None = None
    """Of items that are steps of runs: the share of runs of which it names the first wrong step, or none where there is none."""


@dataclass(frozen=True, slots=True)
class JuryMember:
    """One judge of a jury; what is not known is None."""

    name: str
    weight: float
    price: float | None
    """What an answer costs on average, in dollars."""
    latency_ms: float | None
    """The median time of an answer, in milliseconds."""
    agreement: float | None
    """The share of held-out items on which it says what the labels say."""
    gain: Measure
    """By how much the jury's Brier score is lower with it than without, the others weighed anew."""

    @property
    def pays(self) -> bool | None:
        """Whether the jury is better for having it; None where the interval holds both, or there is none."""
        if self.gain.low is None or self.gain.high is None:
            return None
        return True if self.gain.low > 0 else False if self.gain.high < 0 else None


@dataclass(frozen=True, slots=True)
class JuryReport:
    """Several judges as one, beside the best of them, on the same held-out items."""

    criterion: str
    weights: Mapping[str, float]
    best: str
    advantage: Advantage
    kept: bool | None
    """Whether it is worth its price; None where no intervals say so."""
    report: JudgeReport
    asked: bool = False
    """Whether a judge lists these models: then its fit is written in any case."""
    members: tuple[JuryMember, ...] = ()
    price: float | None = None
    """What an answer of all of them costs on average, in dollars; None where it is not known."""
    latency_ms: float | None = None
    """The median time until the last of them has answered, in milliseconds; None where it is not known."""
    agreement: float | None = None
    """The share of held-out items on which it says what the labels say."""
    unanimous: float | None = None
    """The share of them on which all members say the same."""


@dataclass(frozen=True, slots=True)
class StackReport:
    """Many recorded judges as one logistic sum, beside the best of them by kappa, on the same items, held out. Not served.

    The best judge by its own word (0.5 and more passes), the stack from a threshold that was chosen on other items.
    """

    criterion: str
    members: tuple[str, ...]
    best: str
    figures: Figures
    best_figures: Figures
    kappa: Measure
    """How much higher its kappa is."""
    first_error: Measure | None
    best_first_error: Measure | None
    first_error_gain: Measure | None
    """How much higher its share of runs with the right first wrong step is; None where items are no steps."""
    families: tuple[HeldOutSlice, ...]


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """A run from labels to fits."""

    version: int
    source: str
    seed: str
    share: float
    """The share of groups that each map of held-out items was fitted with."""
    draws: int
    labels: tuple[LabelFacts, ...]
    judges: tuple[JudgeReport, ...]
    juries: tuple[JuryReport, ...]
    remarks: tuple[str, ...]
    libraries: Mapping[str, str]
    folds: int = 0
    """Into how many parts groups were dealt, each held out once. 0: there was one split."""
    given: tuple[str, ...] = ()
    """The criteria whose items said themselves which are held out."""
    cascades: tuple[CascadeReport, ...] = ()
    stacks: tuple[StackReport, ...] = ()


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
