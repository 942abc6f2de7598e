"""Judges and their questions, as data. A judge never calls a model: `plan` lists the questions, the shell gets them answered."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any, Literal, NamedTuple, cast

from pydantic import Field, JsonValue, TypeAdapter, model_validator

from service.core.case import Case
from service.core.checks import WHOLE, Check, Part, Subject, SubjectOutcome, build_subject
from service.core.grounding.origins import Grounded
from service.core.judging.fits.certificate import GuaranteedShare
from service.core.judging.fits.maps import Share
from service.core.judging.focus import PartName, list_texts
from service.core.judging.grades import CANNOT_TELL, ClaimRule, Scale
from service.core.models.kinds import FrozenModel, Several
from service.core.models.light import lazy
from service.core.outcome import Finding, Outcome, Skipped, build_failure
from service.core.trace import Step, is_hollow
from service.core.unread_parts import build_missing_result
from service.core.work_limits import MAX_JURY

Level = Literal["step", "turn", "trace"]
Required = Literal["arguments", "result", "answer"]


MAX_VOTES = 15
"""Most votes of one model on one question."""

MAX_REPLY_TOKENS = 16_384

WORDS = "natural_language"
"""The id of the judge that decides criteria written in natural language by a matcher."""


Effort = Literal["none", "minimal", "low", "medium", "high"]
ThinkingTokens = Annotated[int, Field(ge=1024, le=65_536)]
Reasoning = Effort | ThinkingTokens
"""How much a model reasons before it replies: one of the providers' effort levels, or a number of tokens."""


PASSING_VALUE = 0.75
"""The lowest value that passes where a judge does not say another."""


class ExampleClaim(FrozenModel):
    """One claim of a right answer."""

    quote: str
    reason: str = ""
    path: str | None = None
    """The pointer to the value that proves or refutes it; a judge sees the number of that value."""
    label: str


class Example(FrozenModel):
    """A case with its right answer, shown to the judge before the question."""

    shown: dict[str, JsonValue]
    """The parts that the judge would have been shown, by name."""
    label: str = ""
    """The right label; absent where `claims` carry the labels."""
    reason: str = ""
    quotes: Several[str] = ()
    claims: Several[ExampleClaim] = ()

    @property
    def labels(self) -> frozenset[str]:
        """All labels in the right answer."""
        return frozenset([claim.label for claim in self.claims] or [self.label])


class Judge(FrozenModel):
    """A question for a language model, read from one YAML file."""

    id: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    version: int = Field(default=1, ge=1)
    level: Level
    """What one question is about."""
    shows: Several[PartName] = ()
    """The parts that the model is shown, in this order. Absent: those that its level usually needs."""
    requires: Several[Required] = ()
    """What the trace must contain for the question to make sense."""
    question: str = Field(min_length=1)
    scale: Scale
    """Label -> value in [0, 1], or {value, means}. Besides `cannot_tell`, the only answers a judge may give."""
    threshold: Share = PASSING_VALUE
    """The lowest value that passes."""
    claims: ClaimRule = "none"
    """Whether the judge labels the text claim by claim, each with the place that proves it. The value is then that of the
    worst claim, or the mean of all claims."""
    votes: int = Field(default=1, ge=1, le=MAX_VOTES)
    """How often each model is asked."""
    most_votes: int | None = Field(default=None, ge=2, le=MAX_VOTES)
    """How often each model is asked if the first votes disagree or one of them cannot tell. Absent: no further votes."""
    models: Several[str] = Field(default=(), max_length=MAX_JURY)
    """The models to ask, by their names in litellm; several make a jury. Absent: the configured model."""
    combine: Literal["mean", "majority"] = "mean"
    """How to combine several votes: the mean of their values, or the most frequent label (on a tie, the lower one)."""
    max_tokens: int | None = Field(default=None, ge=16, le=MAX_REPLY_TOKENS)
    """Token limit of the reply, reasoning not included. Absent: by the length of the text to judge."""
    reasoning: Reasoning | dict[str, Reasoning] | None = None
    """How much the models reason before they reply: none, minimal, low, medium, high, or a number of tokens; one setting for
    all models, or one per model. Absent: the model's default."""
    max_chars: int = Field(default=24_000, ge=200, le=400_000)
    """Most characters shown of each part. A longer part is cut in the middle, and the report says so."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0
    """Sampling temperature. null: the model's default, for models that take none."""
    logprobs: bool = False
    """Whether the value is the expectation over the labels' probabilities (as in G-Eval), where the model returns them. For
    a judge with claims, they only shade the value that fits take as input."""
    examples: Several[Example] = ()
    """Cases with their right answers, unrelated to what will be judged."""

    @model_validator(mode="after")
    def _consistent(self) -> Judge:
        if CANNOT_TELL in self.scale:
            raise ValueError(f"{CANNOT_TELL} is always one of the labels and has no value; leave it out of the scale")
        unknown = sorted({label for example in self.examples for label in example.labels} - set(self.menu))
        if unknown:
            raise ValueError(f"an example is labelled {', '.join(map(repr, unknown))}, which the scale lacks")
        if any(example.claims for example in self.examples) and self.claims == "none":
            raise ValueError("an example has claims; this judge gives one label for the whole")
        if self.most_votes is not None and self.most_votes <= self.votes:
            raise ValueError(f"most_votes is {self.most_votes}, and {self.votes} are asked anyway")
        return self

    @property
    def menu(self) -> tuple[str, ...]:
        """All labels it may give, best first, with `cannot_tell` last."""
        return (*self.scale, CANNOT_TELL)

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest value of a label."""
        values = [label.value for label in self.scale.values()]
        return min(values), max(values)

    @property
    def samples(self) -> int:
        """The most times each model may be asked."""
        return max(self.votes, self.most_votes or 0)

    @property
    def part_names(self) -> tuple[PartName, ...]:
        """The parts that the model is shown."""
        return self.shows or _USUAL[self.level]

    @property
    def looks_at(self) -> frozenset[Part]:
        """The parts of a trace it looks at: the calls, and whatever it requires."""
        named: dict[Required, Part] = {"arguments": "call", "result": "result", "answer": "text"}
        return frozenset({"call", *[named[part] for part in self.requires]})

    @lazy
    def digest(self) -> str:
        """sha256 of the file's canonical JSON without `models`: 64 hex digits."""
        kept = self.model_dump(mode="json", exclude={"models"})
        text = json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return sha256(text.encode()).hexdigest()

    @lazy
    def tasks(self) -> dict[tuple[str, ...], str]:
        """Cache of the text that begins every prompt, by order of the labels; the prompt builder fills it."""
        return {}


_USUAL: dict[Level, tuple[PartName, ...]] = {
    "step": ("conversation", "tool", "call", "result"),
    "turn": ("conversation", "tools", "turn"),
    "trace": ("conversation", "tools"),
}


MAX_SHOWN = 60
"""The most values that a judge is shown with their origins."""
_PLAIN: TypeAdapter[Any] = TypeAdapter(tuple[Any, ...])


class Ask(NamedTuple):
    """One question to a judge about one step, one turn or (both None) the whole trace."""

    criterion: str
    judge: Judge
    step: int | None = None
    tool: str | None = None
    turn: int | None = None
    place: str = ""
    """The pointer to the value in question; empty unless it is about one value."""
    words: str = ""
    """The criterion that this value is judged by."""
    value: JsonValue = None
    grounding: tuple[Grounded, ...] | None = None
    """What code found, for the judge to see, and for the report where no judge is asked; None: it did not look."""
    findings: tuple[Finding, ...] = ()
    """What code found against it."""
    veto: float | None = None
    """The highest score that these findings allow; None: any."""
    gap: Skipped | None = None
    """Why code could not look at everything in question: the outcome, left open, if no judge is asked."""
    guarantee: float | None = None
    """The share of agreement that a fit must guarantee for what it accepts; None: no guarantee needed."""
    evidence_digest: str = ""
    """sha256 of how code gathers evidence before the judge; empty if it does not."""

    @property
    def key(self) -> str:
        """The id of the question within one plan. It includes the words: several questions may be about one value."""
        at = "" if self.step is None else str(self.step)
        by_turn = f"turn/{self.turn}" if self.step is None and self.turn is not None else at
        at_value = f"#{self.place}?{self.words}" if self.place else ""
        return f"{self.criterion}/{by_turn}{at_value}"

    @property
    def evidence(self) -> JsonValue:
        """What a judge is shown of what code found, rendered anew: what stands nowhere first, and 60 values at most."""
        if self.grounding is None:
            return None
        every = sorted(self.grounding, key=lambda one: one.origin not in ("nowhere", "not_looked_for"))
        entries = cast("list[dict[str, JsonValue]]", _PLAIN.dump_python(tuple(every[:MAX_SHOWN]), mode="json"))
        return [
            {name: value for name, value in entry.items() if value not in (None, []) and name not in ("start", "end")}
            for entry in entries
        ]

    @property
    def part_names(self) -> tuple[PartName, ...]:
        """The parts that the model is shown: the judge's, and the evidence if there is any."""
        names = self.judge.part_names
        return names if self.grounding is None or "evidence" in names else (*names, "evidence")


class JudgeCheck(Check):
    """A criterion that a judge decides. The judge is not asked where the trace lacks what it requires."""

    kind: Literal["judge"] = "judge"
    judge: str
    """The id of the judge."""
    unless: str | None = None
    """The id of another criterion: where code has scored that one, the judge is not asked."""
    guarantee: GuaranteedShare | None = None
    """The share of accepted verdicts that must agree with humans: a verdict counts only if the judge's fit guarantees that
    much and accepts it. Absent: no guarantee needed."""

    @lazy
    def evidence_digest(self) -> str:
        """sha256 of how code gathers the evidence that the judge is shown, to which a fit is bound. Empty: no evidence."""
        return ""

    def look(self, case: Case) -> Iterable[SubjectOutcome]:  # noqa: ARG002
        """Return nothing: code decides none of it."""
        return ()

    def find_parts(self, judges: Mapping[str, Judge]) -> frozenset[Part]:
        """Return the parts of a trace that its judge looks at."""
        return judges[self.judge].looks_at

    def build_asks(
        self,
        case: Case,
        *,
        criterion: str,
        judges: Mapping[str, Judge],
        answered: Collection[Subject] = (),  # noqa: ARG002 (subclasses use it)
    ) -> Iterable[tuple[Subject, Ask | Outcome]]:
        """Return one question for each step, for each turn or for the trace, or why there is none.

        `answered`: the subjects that are decided already, so that subclasses can skip work on them.
        """
        judge = judges[self.judge]
        steps: Sequence[Step | None] = case.trace.steps if judge.level == "step" else ()
        subjects: Sequence[Subject] = [WHOLE]
        if judge.level == "step":
            subjects = case.subjects
        elif judge.level == "turn":
            subjects = [build_subject(None, turn) for turn in case.active_turns]
        if not subjects:
            return [(WHOLE, _NOTHING[judge.level])]
        compares = {"result", "answer"} <= set(judge.requires)
        asked: list[tuple[Subject, Ask | Outcome]] = []
        for subject, step in zip(subjects, steps or [None] * len(subjects), strict=True):
            reasons = (_LACKING[part](case, subject) for part in judge.requires)
            unasked = next((why for why in reasons if why is not None), None)
            about = criterion, judge, subject.step, step and step.call.name, subject.turn
            gap = _find_missing_before_text(case, subject) if compares else None
            ask = Ask(*about, gap=gap, guarantee=self.guarantee, evidence_digest=self.evidence_digest)
            asked.append((subject, unasked or ask))
        return asked


def is_answered(subject: Subject, answered: Collection[Subject]) -> bool:
    """Whether the subject, its turn or the whole trace is decided already."""
    return subject in answered or WHOLE in answered or build_subject(None, subject.turn) in answered


_NOTHING: dict[Level, Skipped] = {
    "step": Skipped("not_applicable", "no call was made"),
    "turn": Skipped("not_applicable", "the model did nothing"),
}


def _find_first(case: Case, subject: Subject, part: Required, *, there: bool) -> Step | None:
    """Return the first call that has (or lacks) this part: the subject's own step, or any call up to the end of its turn.

    The search runs once per trace, not once per turn.
    """
    steps = case.trace.steps

    def is_so(step: Step) -> bool:
        return ((step.call.arguments if part == "arguments" else step.result) is not None) is there

    if subject.step is not None:
        own = steps[subject.step]
        return own if is_so(own) else None
    first = case.once(("first call", part, there), lambda: next((step for step in steps if is_so(step)), None))
    return first if first is not None and (subject.turn is None or first.turn <= subject.turn) else None


def _check_result(case: Case, subject: Subject) -> Skipped | None:
    steps = case.trace.steps
    if not steps or (subject.turn is not None and subject.step is None and steps[0].turn > subject.turn):
        return NO_TOOL
    if _find_first(case, subject, "result", there=True) is not None:
        return None
    return _find_missing_before_text(case, subject) or NO_RESULT


def _find_missing_before_text(case: Case, subject: Subject) -> Skipped | None:
    """Return the gap if a text follows a call whose result the trace lacks: there is nothing to compare the text with."""
    missing = _find_first(case, subject, "result", there=False)
    if missing is None or subject.step is not None:
        return None
    spoken = [n for n, one in case.find_messages(subject.turn) if one.role == "assistant" and one.text]
    return build_missing_result(f"/steps/{missing.index}/result") if spoken and missing.message < spoken[-1] else None


def _check_answer(case: Case, subject: Subject) -> Outcome | None:
    """Return the outcome for a missing text, or for one so hollow that it would only mislead a judge; else None."""
    texts = list_texts(case.trace, subject.turn)
    if not texts:
        return NO_ANSWER if subject.turn is None else NO_TEXT
    if all(is_hollow(text) for _, text in texts):
        place, text = texts[-1]
        return build_failure(0.0, Finding("hollow_answer", f"{text.strip()!r} says nothing", place))
    return None


NO_ARGUMENTS = Skipped("not_captured", "the trace has no arguments that can be read")
NO_TOOL = Skipped("not_applicable", "no tool was called")
NO_RESULT = Skipped("not_captured", "the trace has no result")
NO_ANSWER = Skipped("not_captured", "the trace has no answer")
NO_TEXT = Skipped("not_captured", "the turn has no text")
_LACKING: dict[Required, Callable[[Case, Subject], Outcome | None]] = {
    "arguments": lambda case, subject: NO_ARGUMENTS if _find_first(case, subject, "arguments", there=False) else None,
    "result": _check_result,
    "answer": _check_answer,
}
"""Why a question that requires this part cannot or need not be asked; None if it should be."""
