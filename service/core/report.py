"""The report that `conclude` makes of a plan and its replies. The dataclasses are the wire format; `report_json` writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from functools import cache
from operator import not_
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import Field, SerializeAsAny, TypeAdapter
from pydantic_core import SchemaSerializer

from service.core.call_decisions import Decision
from service.core.grounding.origins import GroundedScore, GroundedSkip
from service.core.judging.judged_outcomes import JudgedScore, MixedScore, OpenJudgement, UnsureJudgement
from service.core.models.light import HasCachedJson, light
from service.core.outcome import Errored, Finding, MethodScore, Scored, Skipped
from service.core.rubric import Stage
from service.core.scores import TOLERANCE, Range, Verdict
from service.core.trace import ResourceUsage, UnreadKind

JudgeMode = Literal["off", "cached", "live", "fresh"]
"""How the caller wants judges asked."""


AppliedJudgeMode = JudgeMode | Literal["none"]
"""How judges were asked; `none` if the caller did not say and no judge is set up."""

ReportScope = Literal["code", "full"]
"""code: the caller turned judges off, and a judged criterion applied. full: everything the rubric looks at."""

STAND_IN = "callgrade/stand-in"
"""The model name of the stand-in: rules that answer the bundled cases in place of a model."""

ENGINE = "12"
"""The engine version. Raise it whenever the same plan and replies may give another report."""


@light
class RubricRef:
    """The rubric that scored the trace; `hash` is the sha256 of its canonical JSON."""

    id: str
    version: int
    hash: str
    min_coverage: float
    """Below this coverage a score counts as not measured."""


@light
class StageScore(HasCachedJson):
    """The score of one stage. `score` is None if nothing was measured, `coverage` None if nothing applied."""

    stage: Stage
    verdict: Verdict
    score: float | None
    coverage: float | None
    score_range: Range | None = None
    """The score with every open outcome at 0 and at 1."""
    full_range: Range | None = None
    """The same with what was left out at 0 and at 1 too."""


ReportOutcome = SerializeAsAny[
    Scored
    | Skipped
    | JudgedScore
    | MixedScore
    | GroundedScore
    | MethodScore
    | OpenJudgement
    | UnsureJudgement
    | GroundedSkip
    | Errored
]
"""An outcome on the wire, with all fields of its kind. The usual kinds come first: they are tried in this order."""


@light
class LooseOutcome:
    """An outcome that belongs to no step: it is about a turn, an expected call that was not made, or the whole trace."""

    turn: int | None
    expected: str | None
    """The pointer to the expected call."""
    outcome: ReportOutcome


@light
class CriterionScore(HasCachedJson):
    """One criterion over the whole trace. `value` is None if it was not measured or did not apply."""

    id: str
    stage: Stage
    weight: float
    value: float | None
    outcomes: tuple[LooseOutcome, ...]
    score_range: Range | None = None
    """The value with every open outcome at 0 and at 1."""
    full_range: Range | None = None
    """The same with what was left out at 0 and at 1 too."""
    coverage: float | None = None
    """The share of its outcomes that was measured; None if it does not apply."""


@light
class StepVerdict:
    """The verdict on one call. `matched` is the position of the expected call it matches, `expected` the pointer to that call."""

    index: int
    turn: int
    tool: str
    verdict: Verdict
    score: float | None
    matched: int | None
    expected: str | None
    expected_tool: str | None
    """The tool of that expected call, spelt as in the actual call if the rubric treats both names as the same."""
    unexpected: bool
    """Whether it counts as an unexpected call."""
    retry: int | None
    """For a failed try: the index of the step that repeats it and worked. Both are one expected call."""
    outcomes: dict[str, ReportOutcome]
    result_forms: tuple[str, ...] = ()
    """The forms its result was read in: `json`, `json_in_text`, `key_values`, `text` and so on; empty without a result."""
    usage: ResourceUsage | None = None
    """The resources it took; null if the trace does not say."""
    agent: str | None = None
    """The agent that called; null if the trace has one agent or does not say."""


@light
class MissingCall:
    """A required call that was not made: its pointer in the expectation and its tool (the first, if there are alternatives)."""

    expected: str
    tool: str


@light
class NotAsked:
    """A question that no judge was asked, why, and roughly what it would have taken; None if not estimated."""

    criterion: str
    judge: str
    step: int | None
    turn: int | None
    why: str
    tokens: int | None = None
    cost_usd: float | None = None


@light
class OpenOutcome:
    """An undecided outcome: its step, turn or expected call (all None: the trace), and why it is open."""

    criterion: str
    stage: Stage
    step: int | None
    turn: int | None
    expected: str | None
    """The pointer to the expected call."""
    kind: Literal["skipped", "errored"]
    """errored: a fault. skipped: no fault."""
    cause: str
    reason: str
    decides: bool
    """Whether the verdict depends on the open outcomes of this criterion."""


@light
class UnreadPart:
    """A part of the trace that could not be read, with its pointer."""

    kind: UnreadKind
    """What it is or may be. `other`: as far as one can see nothing that is scored, so it leaves no outcome open."""
    path: str
    reason: str


@light
class CalibrationCounts:
    """How many judged outcomes of a trace are calibrated by human labels."""

    judged: int
    """Outcomes that a judge answered, including those that do not count and stay open."""
    calibrated: int
    """Those whose probability and threshold come from a fit."""
    uncalibrated: int
    """Those with the judge's own value, as there is no fit for it."""
    left_open: int
    """Those left open: their fit does not apply, or it leaves them to a human."""
    certified: Annotated[int, Field(exclude_if=not_)] = 0
    """Those whose fit is certified. Absent: none."""

    @property
    def uncertified(self) -> int:
        """How many judged outcomes decide by a fit that is not certified, or by none."""
        return self.calibrated + self.uncalibrated - self.certified


NOT_JUDGED = CalibrationCounts(0, 0, 0, 0)


@light
class AskEstimate:
    """What a question would take at most: tokens in and out, and their price in US dollars (None if unknown)."""

    tokens: int
    cost_usd: float | None


@light
class Provenance:
    """What produced the report. Tokens: what all replies took when made, also cached ones and those of no use; None: unknown."""

    engine: str
    judges: AppliedJudgeMode
    judge_model: str | None
    """The models that answered, as their providers name them, separated by commas; None if none did."""
    stand_in: bool
    """Whether rules stood in for a model, so that judged outcomes mean nothing."""
    replies: int
    """How many judge replies went into the report."""
    cache_hits: int
    questions_saved: int
    """How many questions code answered, so that no judge was needed."""
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    """The cost of this report in US dollars, as far as prices are known; None if none is, or no judge was asked."""
    unpriced_calls: int = 0
    """Calls without a known price, which `cost_usd` lacks."""
    _: KW_ONLY
    calibrators: tuple[str, ...] | Literal["uncalibrated"]


@light
class ExecutedScore:
    """The score of the same trace without the calls that failed or were not made, with judges off: it scores what succeeded."""

    verdict: Verdict
    score: float | None
    coverage: float | None
    steps: int
    """How many calls did not fail."""


@light
class Report:
    """The report on a trace: a score, its coverage, and a verdict for every stage and step."""

    _: KW_ONLY
    trace_id: str | None
    format: str = ""
    """The format in which the trace was read, given or guessed. Empty in reports from before engine 4."""
    rubric: RubricRef
    scope: ReportScope = "full"
    verdict: Verdict
    score: float | None
    """The weighted mean over the measured outcomes; a judged outcome counts 1 if it passed and 0 if not."""
    score_range: Range | None = None
    """The score with every open outcome at 0 and at 1: no answer to an open question leads outside it."""
    full_range: Range | None = None
    """The same with what was left out at 0 and at 1 too: so it counts in a gate if coverage is below the rubric's minimum."""
    coverage: float | None
    all_passed: bool
    first_failing_stage: Stage | None
    failing: tuple[str, ...]
    """The criteria with an outcome that did not pass."""
    open: tuple[OpenOutcome, ...] = ()
    """The undecided outcomes, in the order of the criteria."""
    stages: tuple[StageScore, ...]
    criteria: tuple[CriterionScore, ...]
    steps: tuple[StepVerdict, ...]
    missing: tuple[MissingCall, ...]
    decisions: tuple[Decision, ...]
    """Whether a call was expected and made, in the trace and in each turn that the expectation covers."""
    offered: tuple[str, ...] | None
    """The names of the tools on offer; None if the trace does not say."""
    not_asked: tuple[NotAsked, ...]
    unread: tuple[UnreadPart, ...] = ()
    """The parts of the trace that could not be read. Outcomes that depend on them are open."""
    calibration: CalibrationCounts = NOT_JUDGED
    tags: dict[str, str]
    provenance: Provenance
    executed: ExecutedScore | None = None
    """If a call failed or was not made: the score without such calls, beside the score of all attempts."""
    usage: ResourceUsage | None = None
    """The resources the whole trace took; null if it does not say."""
    notes: tuple[Finding, ...] = ()
    """Likely oversights in the request (an expectation that no criterion reads, a tool that is not on offer), errors that
    only the text of a result reports, and text in the trace that seems to address a judge."""

    @property
    def is_measured(self) -> bool:
        """Whether coverage reaches the rubric's minimum: below it, the score is no figure to show or to gate on."""
        return self.coverage is not None and self.coverage >= self.rubric.min_coverage - TOLERANCE

    @property
    def gate_range(self) -> Range | None:
        """The range in which the score counts for gates; None if there is none."""
        return self.score_range if self.is_measured else self.full_range

    def findings(self) -> list[Finding]:
        """Return every finding once, those of no step first, then in the order of the steps."""
        loose = [o.outcome for c in self.criteria for o in c.outcomes]
        outcomes = [*loose, *(o for step in self.steps for o in step.outcomes.values())]
        return list(dict.fromkeys(f for o in outcomes if not isinstance(o, Errored) for f in o.findings))


REPORT: TypeAdapter[Report] = TypeAdapter(Report)

_APART = {"stages", "criteria"}
_NEXT = b',"steps":'
"""The member after these. Texts escape their quotation marks, so this only matches a member of the report itself."""


def report_json(report: Report) -> bytes:
    """Write the report as JSON: the same bytes for the same report at every front door."""
    text = _build_serializer(Report).to_json(report, exclude=_APART)
    at = text.index(_NEXT)
    stages, criteria = _write_scores(report.stages), _write_scores(report.criteria)
    return b'%b,"stages":[%b],"criteria":[%b]%b' % (text[:at], stages, criteria, text[at:])


def _write_scores(scores: Sequence[HasCachedJson]) -> bytes:
    return b",".join([one.cached_json or _build_serializer(type(one)).to_json(one) for one in scores])


Score = TypeVar("Score", bound=HasCachedJson)


def cache_json(score: Score) -> Score:
    """Cache the JSON of a score that many reports share, and return the score."""
    score.cached_json = _build_serializer(type(score)).to_json(score)
    return score


@cache
def _build_serializer(kind: Any) -> SchemaSerializer:
    """Build the serializer of a type. Each kind of outcome gets its own, which encodes it wherever it appears."""
    for outcome in get_args(get_args(ReportOutcome)[0]):
        outcome.__pydantic_serializer__ = TypeAdapter(outcome).serializer
    return TypeAdapter(kind).serializer
