"""What a judge is asked, as data. A judge never calls a model: `plan` lists the questions, the shell answers them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from hashlib import sha256
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, JsonValue, model_validator

from service.core.case import Case
from service.core.checks import WHOLE, Check, Part, Subject, SubjectOutcome, build_subject
from service.core.hollow_answers import is_hollow
from service.core.judging.examples import Example
from service.core.judging.fits.guarantee import GuaranteedShare
from service.core.judging.fits.maps import Share
from service.core.judging.focus import Focus, PartName, list_texts
from service.core.judging.grades import CANNOT_TELL, ClaimRule
from service.core.judging.scales import Scale
from service.core.models.kinds import FrozenModel, Several
from service.core.models.lazy import lazy
from service.core.outcome import Finding, Outcome, Skipped, build_failure
from service.core.trace import Step
from service.core.unread_parts import build_missing_result
from service.core.work_limits import MAX_JURY

Level = Literal["step", "turn", "trace"]
Required = Literal["arguments", "result", "answer"]


MAX_VOTES = 15
"""Answers of one model to one question."""

MAX_REPLY_TOKENS = 16_384

MAX_CASCADE = 4
"""Judges that may be asked after the first."""

WORDS = "natural_language"
"""The judge that is asked where a matcher gives a criterion in words."""


Effort = Literal["none", "minimal", "low", "medium", "high"]
ThinkingTokens = Annotated[int, Field(ge=1024, le=65_536)]
Reasoning = Effort | ThinkingTokens
"""How much a model reasons before it replies: in the words that providers have for it, or the tokens it may take."""


class Judge(FrozenModel):
    """A question for a language model, one YAML file."""

    id: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    version: int = Field(default=1, ge=1)
    level: Level
    """What one question is about."""
    shows: Several[PartName] = ()
    """What the model is shown, in this order. Absent: what its level usually needs."""
    requires: Several[Required] = ()
    """What must be captured for the question to make sense."""
    question: str = Field(min_length=1)
    scale: Scale
    """Label -> value in [0, 1], or {value, means}; the only answers a judge may give."""
    threshold: Share = 0.75
    """The least value that passes."""
    claims: ClaimRule = "none"
    """Whether the text is judged claim by claim, each with a label and the place that proves it: then the value is that
    of the worst claim, or the mean of all."""
    votes: int = Field(default=1, ge=1, le=MAX_VOTES)
    """How often each model is asked."""
    most_votes: int | None = Field(default=None, ge=2, le=MAX_VOTES)
    """How often each model is asked where the first votes do not agree, or one cannot tell. Absent: no more often."""
    models: Several[str] = Field(default=(), max_length=MAX_JURY)
    """The models that are asked, as litellm names them; several make a jury. Absent: the one that is set up."""
    combine: Literal["mean", "majority"] = "mean"
    """How several answers become one: the mean of their values, or the label most of them gave (of two the lower)."""
    max_tokens: int | None = Field(default=None, ge=16, le=MAX_REPLY_TOKENS)
    """The longest reply, without what the model thinks before it. Absent: by the length of the text that is judged."""
    reasoning: Reasoning | dict[str, Reasoning] | None = None
    """How much the models reason before they reply: none, minimal, low, medium, high, or tokens to think in; one for all,
    or by model. Absent: as much as they do by themselves."""
    max_chars: int = Field(default=24_000, ge=200, le=400_000)
    """The most that is shown of each part, in characters. What is longer is cut in the middle, and the report says so."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0
    """null: the model's own, for models that take none."""
    logprobs: bool = False
    """Whether the value is the expected one over the labels' probabilities (as in G-Eval), where the model tells them. Of
    claims they only shade the value that fits take."""
    examples: Several[Example] = ()
    """Cases with their right answers, of other matters than those that are judged."""

    @model_validator(mode="after")
    def _consistent(self) -> Judge:
        if CANNOT_TELL in self.scale:
            raise ValueError(f"{CANNOT_TELL} is on every menu and has no value; leave it out of the scale")
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
        """All that it may answer, best first; that it cannot tell, last."""
        return (*self.scale, CANNOT_TELL)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the most that a label is worth."""
        values = [label.value for label in self.scale.values()]
        return min(values), max(values)

    @property
    def samples(self) -> int:
        """How often a model is asked at most."""
        return max(self.votes, self.most_votes or 0)

    def find_reasoning(self, model: str) -> Reasoning | None:
        """How much a model is to reason; None: as much as it does by itself."""
        return self.reasoning.get(model) if isinstance(self.reasoning, dict) else self.reasoning

    @property
    def part_names(self) -> tuple[PartName, ...]:
        """What the model is shown."""
        return self.shows or _USUAL[self.level]

    @property
    def looks_at(self) -> frozenset[Part]:
        """What of a trace it looks at: the calls, and what it requires."""
        named: dict[Required, Part] = {"arguments": "call", "result": "result", "answer": "text"}
        return frozenset({"call", *[named[part] for part in self.requires]})

    @lazy
    def digest(self) -> str:
        """sha256 of the canonical JSON of the file, but for whom it asks: 64 hex digits."""
        kept = self.model_dump(mode="json", exclude={"models"})
        text = json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return sha256(text.encode()).hexdigest()

    @lazy
    def tasks(self) -> dict[tuple[str, ...], str]:
        """What every prompt of this judge begins with, by the order of its labels: filled by who renders it."""
        return {}


_USUAL: dict[Level, tuple[PartName, ...]] = {
    "step": ("conversation", "tool", "call", "result"),
    "turn": ("conversation", "tools", "turn"),
    "trace": ("conversation", "tools"),
}


class Ask(NamedTuple):
    """One question to a judge, about one step, one turn, or (both None) the whole trace."""

    criterion: str
    judge: Judge
    step: int | None = None
    tool: str | None = None
    turn: int | None = None
    place: str = ""
    """The pointer to the one value it is about, where it is about one."""
    words: str = ""
    """What is asked of that value."""
    value: JsonValue = None
    evidence: JsonValue = None
    """What code has found of it, for the judge to see."""
    findings: tuple[Finding, ...] = ()
    """What code has against it."""
    veto: float | None = None
    """The highest score that this leaves; None: any."""
    gap: Skipped | None = None
    """Why code could not look at all that it is about: what is left, and open, where no judge is asked."""
    then: tuple[Judge, ...] = ()
    """Who is asked where this judge's fit leaves the verdict open, in order."""
    guarantee: float | None = None
    """The share that a fit must promise of what it accepts; None: none need."""
    rank: int = 0
    """Which judge of a cascade is asked, from 0."""
    evidence_digest: str = ""
    """sha256 of how code looks before the judge; empty where it does not."""

    @property
    def key(self) -> str:
        """What the reply is filed under within one plan. Of one value several things may be asked, in other words."""
        at = "" if self.step is None else str(self.step)
        by_turn = f"turn/{self.turn}" if self.step is None and self.turn is not None else at
        at_value = f"#{self.place}?{self.words}" if self.place else ""
        return f"{self.criterion}/{by_turn}{at_value}" + (f"@{self.rank}" if self.rank else "")

    @property
    def next_ask(self) -> Ask | None:
        """The same question to the next judge; None after the last."""
        return self._replace(judge=self.then[0], then=self.then[1:], rank=self.rank + 1) if self.then else None

    @property
    def chain(self) -> tuple[Ask, ...]:
        """The question to each judge that may be asked it."""
        return (self, *(self.next_ask.chain if self.next_ask else ()))

    @property
    def focus(self) -> Focus:
        """Where it looks."""
        return Focus(self.step, self.turn, self.words, self.value, self.evidence)

    @property
    def part_names(self) -> tuple[PartName, ...]:
        """What the model is shown: what the judge names, and the evidence where there is some."""
        names = self.judge.part_names
        return names if self.evidence is None or "evidence" in names else (*names, "evidence")


class JudgeCheck(Check):
    """A criterion that a judge decides. Nothing is asked where the trace lacks what the judge requires."""

    kind: Literal["judge"] = "judge"
    judge: str
    """The id of the judge."""
    unless: str | None = None
    """The id of another criterion: where code has given it a score, there is nothing left to ask."""
    then: Several[str] = Field(default=(), max_length=MAX_CASCADE)
    """The ids of judges of the same level that are asked, in order, where the fit of the one before leaves the verdict open."""
    guarantee: GuaranteedShare | None = None
    """The share of accepted verdicts that is to agree with humans: one counts only where the judge's fit promises as much and
    accepts it. Absent: nothing need be promised."""

    @lazy
    def evidence_digest(self) -> str:
        """sha256 of how code looks before the judge: what it finds is shown, so a fit is bound to it. Empty: it does not."""
        return ""

    def look(self, case: Case) -> Iterable[SubjectOutcome]:  # noqa: ARG002
        """Nothing: code decides none of it."""
        return ()

    @property
    def judge_ids(self) -> frozenset[str]:
        """All judges that it may ask."""
        return frozenset({self.judge, *self.then})

    def find_parts(self, judges: Mapping[str, Judge]) -> frozenset[Part]:
        """What of a trace it looks at."""
        return judges[self.judge].looks_at

    def build_asks(
        self,
        case: Case,
        *,
        criterion: str,
        judges: Mapping[str, Judge],
        answered: Collection[Subject] = (),  # noqa: ARG002 (for those who do more than ask)
    ) -> Iterable[tuple[Subject, Ask | Outcome]]:
        """One question for each step, for each turn or for the trace, or why there is none.

        `answered`: of what has been decided already, so that nothing need be worked out.
        """
        judge = judges[self.judge]
        asked = _BY_LEVEL[judge.level](case, criterion, judge, self.evidence_digest) or [(WHOLE, _NOTHING[judge.level])]
        if not self.then and self.guarantee is None:
            return asked
        then = tuple([judges[name] for name in self.then])
        return [
            (at, one._replace(then=then, guarantee=self.guarantee) if isinstance(one, Ask) else one)
            for at, one in asked
        ]


def is_answered(subject: Subject, answered: Collection[Subject]) -> bool:
    """Whether something was decided of it, of its turn or of the whole."""
    return subject in answered or WHOLE in answered or build_subject(None, subject.turn) in answered


def _ask_once(case: Case, criterion: str, judge: Judge, evidence_digest: str) -> list[tuple[Subject, Ask | Outcome]]:
    unasked = _explain_unasked(judge, case, WHOLE)
    return [
        (WHOLE, unasked or Ask(criterion, judge, gap=_find_gap(judge, case, WHOLE), evidence_digest=evidence_digest))
    ]


def _ask_by_step(case: Case, criterion: str, judge: Judge, evidence_digest: str) -> list[tuple[Subject, Ask | Outcome]]:
    return [
        (
            subject,
            _explain_unasked(judge, case, subject)
            or Ask(criterion, judge, step.index, step.call.name, step.turn, evidence_digest=evidence_digest),
        )
        for step, subject in zip(case.trace.steps, case.subjects, strict=True)
    ]


def _ask_by_turn(case: Case, criterion: str, judge: Judge, evidence_digest: str) -> list[tuple[Subject, Ask | Outcome]]:
    return [
        (
            subject,
            _explain_unasked(judge, case, subject)
            or Ask(criterion, judge, turn=turn, gap=_find_gap(judge, case, subject), evidence_digest=evidence_digest),
        )
        for turn in case.active_turns
        for subject in [build_subject(None, turn)]
    ]


_BY_LEVEL = {"step": _ask_by_step, "turn": _ask_by_turn, "trace": _ask_once}
_NOTHING: dict[Level, Skipped] = {
    "step": Skipped("not_applicable", "no call was made"),
    "turn": Skipped("not_applicable", "the model did nothing"),
}


def _explain_unasked(judge: Judge, case: Case, subject: Subject) -> Outcome | None:
    """Why the question cannot be asked, or need not be: None where it can."""
    for part in judge.requires:
        reason = _LACKING[part](case, subject)
        if reason is not None:
            return reason
    return None


def _find_first(case: Case, subject: Subject, is_so: Callable[[Step], bool]) -> Step | None:
    """The first call for which something is so: among the subject's own, or among all up to the end of its turn.

    It is looked for once in a trace, not once for each turn.
    """
    steps = case.trace.steps
    if subject.step is not None:
        own = steps[subject.step]
        return own if is_so(own) else None
    first = case.once(is_so, lambda: ([step for step in steps if is_so(step)] or [None])[0])
    return first if first is not None and (subject.turn is None or first.turn <= subject.turn) else None


def _lacks_arguments(step: Step) -> bool:
    return step.call.arguments is None


def _lacks_result(step: Step) -> bool:
    return step.result is None


def _has_result(step: Step) -> bool:
    return step.result is not None


def _check_arguments(case: Case, subject: Subject) -> Skipped | None:
    if _find_first(case, subject, _lacks_arguments) is None:
        return None
    return NO_ARGUMENTS


def _check_result(case: Case, subject: Subject) -> Skipped | None:
    steps = case.trace.steps
    if not steps or (subject.turn is not None and subject.step is None and steps[0].turn > subject.turn):
        return NO_TOOL
    if _find_first(case, subject, _has_result) is not None:
        return None
    return _find_missing_before_text(case, subject) or NO_RESULT


def _find_gap(judge: Judge, case: Case, subject: Subject) -> Skipped | None:
    """The call without a result that a text follows, if the judge holds texts against results."""
    return (
        _find_missing_before_text(case, subject) if "result" in judge.requires and "answer" in judge.requires else None
    )


def _find_missing_before_text(case: Case, subject: Subject) -> Skipped | None:
    """Where a text follows a call whose result the trace does not tell: there is nothing to hold the text against."""
    missing = _find_first(case, subject, _lacks_result)
    if missing is None or subject.step is not None:
        return None
    spoken = [n for n, one in case.find_messages(subject.turn) if one.role == "assistant" and one.text]
    return build_missing_result(f"/steps/{missing.index}/result") if spoken and missing.message < spoken[-1] else None


def _check_answer(case: Case, subject: Subject) -> Outcome | None:
    """No text, or one so hollow that a judge would only be led astray by it."""
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
_LACKING = {"arguments": _check_arguments, "result": _check_result, "answer": _check_answer}
