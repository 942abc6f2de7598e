"""The page of one trace as values: what a template shows, in the order in which it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from service.core.scores import Verdict
from service.web.trace.compared import ExpectedCallView, StateRow
from service.web.trace.links import ClaimView
from service.web.trace.marks import Mark
from service.web.trace.outcomes import OutcomeView
from service.web.trace.payloads import Payload


@dataclass(frozen=True, slots=True)
class ProblemView:
    """One thing that went wrong, and where it is seen."""

    stage: str
    criterion: str
    where: str
    """`step 2, refund_order`, `turn 1`, or empty."""
    words: str
    to: str
    """The id of the part of the page; empty where none shows it."""


@dataclass(frozen=True, slots=True)
class OpenView:
    """Why something is open, of one criterion, and in how many places."""

    criterion: str
    stage: str
    reason: str
    decides: bool
    fault: bool
    """Whether something broke, rather than that nobody has looked."""
    count: int
    places: tuple[tuple[str, str], ...]
    """The first of them: words, and the id of the part of the page."""


@dataclass(frozen=True, slots=True)
class StageView:
    """One stage with its verdict."""

    name: str
    verdict: Verdict
    score: float | None
    coverage: float | None
    first_failing: bool


@dataclass(frozen=True, slots=True)
class TextView:
    """A text of the conversation."""

    kind: Literal["text"]
    anchor: str
    role: str
    text: Payload
    field: Mark | None
    """The mark of all of it."""
    claims: Sequence[ClaimView]
    """Those that code could look at."""
    unchecked: int
    """How many it could not."""
    problems: tuple[OutcomeView, ...]
    """What was found of it."""


@dataclass(frozen=True, slots=True)
class StepView:
    """A call beside its result."""

    kind: Literal["step"]
    anchor: str
    number: int
    """From 1."""
    tool: str
    brief: str
    """Its arguments on one line."""
    verdict: Verdict
    score: float | None
    problem: str
    """What is wrong with it, in a few words; empty where nothing is."""
    open: bool
    """Whether it is shown opened."""
    unexpected: bool
    arguments: Payload | None
    """None: the trace does not tell them, or they stand beside those expected."""
    arguments_mark: Mark | None
    """The mark of all of them."""
    arguments_problem: str
    expected: ExpectedCallView | None
    origins: Sequence[ClaimView]
    """Where its arguments come from."""
    result: Payload | None
    """None: not captured."""
    result_problem: str
    """That it is an error, as the tool or the result says."""
    forms: tuple[str, ...]
    outcomes: tuple[OutcomeView, ...]
    passed: tuple[str, ...]
    silent: tuple[str, ...]
    usage: str


@dataclass(frozen=True, slots=True)
class QuietSteps:
    """Many calls in a row of which there is nothing to say: they are folded into one line."""

    kind: Literal["quiet"]
    steps: tuple[StepView, ...]


@dataclass(frozen=True, slots=True)
class TurnView:
    """A user's message and all that follows up to the next one. 0 is what precedes the first."""

    number: int
    events: tuple[TextView | StepView | QuietSteps, ...]


@dataclass(frozen=True, slots=True)
class StripView:
    """One step in the row of all."""

    to: str
    number: int
    tool: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class TraceView:
    """All of one scored trace."""

    name: str
    prefix: str
    """What goes before every id; the id of the whole without its hyphen."""
    verdict: Verdict
    says: str
    """The verdict in a sentence."""
    score: float | None
    score_range: tuple[float, float] | None
    """None where it is the score alone."""
    coverage: float | None
    rubric: str
    scope: str
    format: str
    problems: tuple[ProblemView, ...]
    more_problems: int
    first_failing: str
    """The id of the first step that failed; of what else did, where no step has; empty where nothing has."""
    open: tuple[OpenView, ...]
    stages: tuple[StageView, ...]
    strip: tuple[StripView, ...]
    strip_left_out: int
    steps: int
    steps_left_out: int
    """Of a long trace: those that are not shown."""
    texts_left_out: int
    turns: tuple[TurnView, ...]
    missing: tuple[ExpectedCallView, ...]
    missing_left_out: int
    elsewhere: tuple[OutcomeView, ...]
    """What was found of the trace or of turns."""
    state: tuple[StateRow, ...]
    state_says: str
    expectation: Payload | None
    output: Payload | None
    tools: tuple[tuple[str, str], ...] | None
    """Name and description of those on offer; None: the trace does not tell."""
    unread: tuple[tuple[str, str], ...]
    """Pointer and reason."""
    notes: tuple[str, ...]
    not_asked: tuple[str, ...]
    calibration: str
    provenance: tuple[tuple[str, str], ...]
    has_trace: bool
    """Whether the trace itself is at hand; else there is the report alone."""
