"""The page of one trace as values, in the order in which a template shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from service.core.scores import Verdict
from service.web.trace.comparison import ExpectedCallView, StateRow
from service.web.trace.grounding import ValueView
from service.web.trace.marks import Mark
from service.web.trace.outcomes import OutcomeView
from service.web.trace.payloads import Payload


@dataclass(frozen=True, slots=True)
class ProblemView:
    """One thing that went wrong, and where the page shows it."""

    stage: str
    criterion: str
    where: str
    """`step 2, refund_order`, `turn 1`, or empty."""
    words: str
    to: str
    """The id of the part of the page; empty if no part shows it."""
    code: str = ""
    """The code of its finding; empty if no finding says it."""


@dataclass(frozen=True, slots=True)
class OpenView:
    """Why a criterion is open, and in how many places."""

    criterion: str
    stage: str
    reason: str
    cause: str
    decides: bool
    count: int
    places: tuple[tuple[str, str], ...]
    """The first places: words, and the id of the part of the page."""


@dataclass(frozen=True, slots=True)
class StageView:
    """One stage with its verdict."""

    name: str
    verdict: Verdict
    score: float | None
    """None if it was not measured, or too little of it was checked."""
    first_failing: bool


@dataclass(frozen=True, slots=True)
class TextView:
    """A text of the conversation."""

    kind: Literal["text"]
    anchor: str
    role: str
    text: Payload
    field: Mark | None
    """The mark of the whole text."""
    values: Sequence[ValueView]
    """Where its values come from."""
    problems: tuple[OutcomeView, ...]
    """The outcomes about this text."""


@dataclass(frozen=True, slots=True)
class StepView:
    """A call beside its result."""

    kind: Literal["step"]
    anchor: str
    number: int
    """Counted from 1."""
    tool: str
    brief: str
    """Its arguments on one line."""
    verdict: Verdict
    sign: Verdict
    """The verdict as a sign: `warn` for a right call whose result is an error."""
    problem: str
    """What is wrong with it, in a few words; empty if nothing is."""
    open: bool
    """Whether it starts unfolded."""
    unexpected: bool
    retry: int | None
    """For a failed try, the step that repeats it, counted from 1."""
    arguments: Payload | None
    """None: the trace does not contain them, or they are shown beside the expected ones."""
    arguments_mark: Mark | None
    """The mark of all arguments."""
    arguments_problem: str
    expected: ExpectedCallView | None
    origins: Sequence[ValueView]
    """Where its arguments come from."""
    result: Payload | None
    """None: not captured."""
    result_problem: str
    """Why it counts as an error, by the tool or by the result itself."""
    forms: tuple[str, ...]
    outcomes: tuple[OutcomeView, ...]
    others: tuple[str, ...]
    """The outcomes that passed, were not checked or do not apply, in words."""
    usage: str


@dataclass(frozen=True, slots=True)
class QuietSteps:
    """Many calls in a row without a problem, folded into one line."""

    kind: Literal["quiet"]
    steps: tuple[StepView, ...]


@dataclass(frozen=True, slots=True)
class TurnView:
    """A user's message and all that follows up to the next one. Turn 0 precedes the first message."""

    number: int
    events: tuple[TextView | StepView | QuietSteps, ...]


@dataclass(frozen=True, slots=True)
class StripView:
    """One step in the row of all steps."""

    to: str
    number: int
    sign: Verdict


@dataclass(frozen=True, slots=True)
class TraceView:
    """The whole page of one scored trace."""

    name: str
    prefix: str
    """Precedes every id; without its hyphen it is the id of the whole page."""
    verdict: Verdict
    verdict_words: str
    score_words: str
    rubric: str
    format: str
    problems: tuple[ProblemView, ...]
    more_problems: int
    first_failing: str
    """The id of the first failed step, else of another part that failed; empty if nothing did."""
    open: tuple[OpenView, ...]
    stages: tuple[StageView, ...]
    strip: tuple[StripView, ...]
    strip_left_out: int
    steps: int
    steps_left_out: int
    """Steps of a long trace that are not shown."""
    texts_left_out: int
    turns: tuple[TurnView, ...]
    missing: tuple[ExpectedCallView, ...]
    missing_left_out: int
    loose_outcomes: tuple[OutcomeView, ...]
    """Outcomes of turns and of the whole trace."""
    state: tuple[StateRow, ...]
    state_note: str
    expectation: Payload | None
    output: Payload | None
    tools: tuple[tuple[str, str], ...] | None
    """Name and description of the tools on offer; None: the trace does not say."""
    unread: tuple[tuple[str, str], ...]
    """Pointer and reason."""
    notes: tuple[str, ...]
    not_asked: tuple[str, ...]
    calibration: str
    provenance: tuple[tuple[str, str], ...]
    has_trace: bool
    """Whether the trace itself is available; else the page shows the report alone."""
