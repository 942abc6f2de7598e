"""The report: what conclude makes of a plan and its replies. The dataclasses are the wire format."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Literal

from pydantic import SerializeAsAny

from service.core.call_decisions import Decision
from service.core.evidence.evidenced import EvidencedScore, Suspicion
from service.core.judging.judged_outcomes import JudgedScore, MixedScore, UnsureJudgement
from service.core.judging.withholding import WithheldJudgement
from service.core.models.light import HasCachedJson, light
from service.core.outcome import Errored, Finding, MethodScore, Scored, Skipped
from service.core.rubric import Stage
from service.core.scores import Range, Verdict
from service.core.trace import ResourceUsage, UnreadKind

JudgeMode = Literal["off", "cached", "live", "fresh"]
"""How a caller wants judges asked."""


AppliedJudgeMode = JudgeMode | Literal["none"]
"""How they were: `none` where nobody said, and no judge is set up."""

ReportScope = Literal["code", "full"]
"""code: the caller said that no judge is asked, and a judge's criterion applied. full: all that the rubric looks at."""

STAND_IN = "callgrade/stand-in"
"""The name of the model that is none: rules that answer the bundled cases."""

ENGINE = "7"
"""Raised whenever the same plan and replies may give another report."""


@light
class RubricRef:
    """Which rubric scored: `hash` is the sha256 of its canonical JSON."""

    id: str
    version: int
    hash: str


@light
class StageScore:
    """One stage. `score` is None where nothing was measured, `coverage` None where nothing applied."""

    stage: Stage
    verdict: Verdict
    score: float | None
    coverage: float | None
    score_range: Range | None = None
    """The score with all that is open at 0 and at 1."""
    decided: float | None = None
    """The score with 1 for what a judge passed and 0 for what it did not: what the verdict rests on."""
    decided_range: Range | None = None


ReportOutcome = SerializeAsAny[
    Scored
    | Skipped
    | JudgedScore
    | MixedScore
    | EvidencedScore
    | MethodScore
    | WithheldJudgement
    | UnsureJudgement
    | Suspicion
    | Errored
]
"""An outcome on the wire, with all that its kind has to tell: the usual ones first, as they are looked for in this order."""


@light
class LooseOutcome:
    """An outcome that belongs to no step: of a turn, of an expected call that was not made, or of the whole trace."""

    turn: int | None
    expected: str | None
    """The pointer of the expected call."""
    outcome: ReportOutcome


@light
class CriterionScore(HasCachedJson):
    """One criterion over the whole trace. `value` is None where it was not measured or did not apply."""

    id: str
    stage: Stage
    weight: float
    value: float | None
    outcomes: tuple[LooseOutcome, ...]
    score_range: Range | None = None
    """The value with all that is open at 0 and at 1."""
    decided: float | None = None
    """The value with 1 for what a judge passed and 0 for what it did not: what a verdict rests on."""
    decided_range: Range | None = None


@light
class StepVerdict:
    """One call. `matched` is the position of the expected call it stands for, `expected` that call's pointer."""

    index: int
    turn: int
    tool: str
    verdict: Verdict
    score: float | None
    matched: int | None
    expected: str | None
    expected_tool: str | None
    """The tool of that expected call, spelt as called where the rubric takes both names for one."""
    unexpected: bool
    """Whether it is a call too many."""
    outcomes: dict[str, ReportOutcome]
    result_forms: tuple[str, ...] = ()
    """In which forms its result was read: `json`, `json_in_text`, `key_values`, `text` and so on; none where it has none."""
    usage: ResourceUsage | None = None
    """What it took; null where the trace does not say."""


@light
class MissingCall:
    """A required call that was not made: its pointer in the expectation, and its tool (of alternatives the first)."""

    expected: str
    tool: str


@light
class NotAsked:
    """A question that was not put to a judge, why, and about what it would have taken. None: not worked out."""

    criterion: str
    judge: str
    step: int | None
    turn: int | None
    why: str
    tokens: int | None = None
    cost_usd: float | None = None


@light
class OpenOutcome:
    """An outcome that nobody has decided: at what step, turn or expected call (all None: the trace), and why."""

    criterion: str
    stage: Stage
    step: int | None
    turn: int | None
    expected: str | None
    """The pointer of the expected call."""
    kind: Literal["skipped", "errored"]
    """errored: something broke. skipped: nobody's fault."""
    cause: str
    reason: str
    decides: bool
    """Whether what is open of this criterion keeps the verdict from being another."""


@light
class UnreadPart:
    """A part of the trace that could not be read, by its pointer."""

    kind: UnreadKind
    """What it is or may be. `other`: nothing that is scored, as far as one can tell, so nothing is open because of it."""
    path: str
    reason: str


@light
class CalibrationCounts:
    """How far the judged outcomes of a trace rest on human labels, each a count."""

    judged: int
    """Outcomes that a judge answered, those that do not count included."""
    calibrated: int
    """Of them those whose probability and threshold are a fit's."""
    uncalibrated: int
    """Those taken at the judge's own word, for there is no fit for it."""
    withheld: int
    """Those left open: their fit does not apply, or leaves them to a human."""


NOT_JUDGED = CalibrationCounts(0, 0, 0, 0)


@light
class AskEstimate:
    """What asking would take: tokens both ways at most, and their price, None where it is not known."""

    tokens: int
    cost_usd: float | None


@light
class Provenance:
    """What produced the report. Tokens are those the replies took when they were made, cached ones too; unknown is None."""

    engine: str
    judges: AppliedJudgeMode
    judge_model: str | None
    """The models that answered, as their providers name them, with commas between; None where none did."""
    stand_in: bool
    """Whether rules stood in for a model, so that what was judged means nothing."""
    replies: int
    """How many of a judge's replies went into the report."""
    cache_hits: int
    questions_saved: int
    """How many questions code answered, so that no judge was needed."""
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    """What was paid for this report, in US dollars; None where a price is not known, or nobody was asked."""
    calibrators: tuple[str, ...] | Literal["uncalibrated"]


@light
class ExecutedScore:
    """The same trace without the calls that failed or were not made, judges left out: what the calls came to, not the tries."""

    verdict: Verdict
    score: float | None
    coverage: float | None
    steps: int
    """How many calls did not fail."""


@light
class Report:
    """The answer: a score, its coverage, and a verdict for every stage and step."""

    _: KW_ONLY
    trace_id: str | None
    format: str = ""
    """The format in which the trace was read: as it says, else as was guessed. Empty in reports of before engine 4."""
    rubric: RubricRef
    scope: ReportScope = "full"
    verdict: Verdict
    score: float | None
    """The weighted estimate over what was measured."""
    score_range: Range | None = None
    """The score with all that is open at 0 and at 1: no answer to an open question leads out of it."""
    decided: float | None = None
    """The score with 1 for what a judge passed and 0 for what it did not: what the verdict rests on."""
    decided_range: Range | None = None
    """The same with all that is open at 0 and at 1."""
    coverage: float | None
    all_passed: bool
    first_failing_stage: Stage | None
    failing: tuple[str, ...]
    """The criteria with an outcome that did not pass."""
    open: tuple[OpenOutcome, ...] = ()
    """What nobody has decided, in the order of the criteria."""
    stages: tuple[StageScore, ...]
    criteria: tuple[CriterionScore, ...]
    steps: tuple[StepVerdict, ...]
    missing: tuple[MissingCall, ...]
    decisions: tuple[Decision, ...]
    """Whether a call was due and made: in the trace and in each turn of which the expectation tells."""
    offered: tuple[str, ...] | None
    """The names of the tools on offer; None where the trace does not tell."""
    not_asked: tuple[NotAsked, ...]
    unread: tuple[UnreadPart, ...] = ()
    """The parts of the trace that could not be read: what rests on them is open."""
    calibration: CalibrationCounts = NOT_JUDGED
    tags: dict[str, str]
    provenance: Provenance
    executed: ExecutedScore | None = None
    """Where a call failed or was not made: the score without such calls, beside that of all that was attempted."""
    usage: ResourceUsage | None = None
    """What the whole trace took; null where it does not say."""
    notes: tuple[Finding, ...] = ()
    """What the request seems to have overlooked (an expectation that no criterion reads, a tool that is not on offer),
    errors that results report and their source does not, and what in the trace looks as if it spoke to a judge."""

    def findings(self) -> list[Finding]:
        """Every finding once, in the order of the trace: what belongs to no step first."""
        loose = [o.outcome for c in self.criteria for o in c.outcomes]
        outcomes = [*loose, *(o for step in self.steps for o in step.outcomes.values())]
        return list(dict.fromkeys(f for o in outcomes if not isinstance(o, Errored) for f in o.findings))
