"""What a judge is asked, as data. A judge never calls a model: `plan` lists the questions, the shell answers them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from hashlib import sha256
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, model_validator

from service.core.budget import MAX_JURY
from service.core.case import Case
from service.core.checks import WHOLE, Check, Part, Subject
from service.core.hollow import is_hollow
from service.core.judging.focus import Focus, View, list_texts
from service.core.models.kinds import FrozenModel, Several
from service.core.models.lazy import lazy
from service.core.outcome import Finding, Outcome, Skipped, build_failure
from service.core.trace import Step
from service.core.unread import build_missing_result

Level = Literal["step", "turn", "trace"]
Required = Literal["arguments", "result", "answer"]
Share = Annotated[float, Field(ge=0, le=1)]


WORDS = "natural_language"
"""The judge that is asked where a matcher gives a criterion in words."""


class Label(FrozenModel):
    """One answer a judge may give."""

    value: Share
    """What it is worth."""
    means: str = ""
    """When to give it: the anchor of the scale."""


def _read_label(given: object) -> object:
    return {"value": given} if isinstance(given, int | float) and not isinstance(given, bool) else given


def _name_labels(given: object) -> object:
    """YAML reads the labels 0 to 5 as numbers."""
    if not isinstance(given, dict):
        return given
    return {str(key) if type(key) is int else key: value for key, value in given.items()}  # pyright: ignore


def _sort_best_first(labels: dict[str, Label]) -> dict[str, Label]:
    """The order in which labels are put to a model; the order in the file means nothing."""
    return dict(sorted(labels.items(), key=lambda item: (-item[1].value, item[0])))


Scale = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=64)], Annotated[Label, BeforeValidator(_read_label)]],
    BeforeValidator(_name_labels),
    Field(min_length=2, max_length=20),
    AfterValidator(_sort_best_first),
]


class Example(FrozenModel):
    """A case with its right answer, shown to the judge before the question."""

    shown: dict[str, JsonValue]
    """What would have been shown, by part."""
    label: str
    reason: str = ""


class Judge(FrozenModel):
    """A question for a language model, one YAML file."""

    id: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    version: int = Field(default=1, ge=1)
    level: Level
    """What one question is about."""
    shows: Several[View] = ()
    """What the model is shown, in this order. Absent: what its level usually needs."""
    requires: Several[Required] = ()
    """What must be captured for the question to make sense."""
    question: str = Field(min_length=1)
    scale: Scale
    """Label -> value in [0, 1], or {value, means}; the only answers a judge may give."""
    threshold: Share = 0.75
    """The least value that passes."""
    claims: Literal["none", "worst", "mean"] = "none"
    """Whether the text is judged claim by claim, each with a label and the place that proves it: then the value is that
    of the worst claim, or the mean of all."""
    votes: int = Field(default=1, ge=1, le=15)
    """How often each model is asked."""
    models: Several[str] = Field(default=(), max_length=MAX_JURY)
    """The models that are asked, as litellm names them; several make a jury. Absent: the one that is set up."""
    combine: Literal["mean", "majority"] = "mean"
    """How several answers become one: the mean of their values, or the label most of them gave (of two the lower)."""
    max_tokens: int = Field(default=600, ge=16, le=8192)
    """The longest reply."""
    max_chars: int = Field(default=24_000, ge=200, le=400_000)
    """The most that is shown of each part, in characters. What is longer is cut in the middle, and the report says so."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0
    """null: the model's own, for models that take none."""
    logprobs: bool = False
    """Whether the value is the expected one over the labels' probabilities (as in G-Eval), where the model tells them."""
    examples: Several[Example] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Judge:
        unknown = sorted({example.label for example in self.examples} - self.scale.keys())
        if unknown:
            raise ValueError(f"an example is labelled {', '.join(unknown)}, which the scale lacks")
        if self.logprobs and self.claims != "none":
            raise ValueError("logprobs needs one label for the whole; this judge labels claims")
        return self

    @property
    def views(self) -> tuple[View, ...]:
        """What the model is shown."""
        return self.shows or _USUAL[self.level]

    @property
    def looks_at(self) -> frozenset[Part]:
        """What of a trace it looks at: the calls, and what it requires."""
        named: dict[Required, Part] = {"arguments": "call", "result": "result", "answer": "text"}
        return frozenset({"call", *[named[part] for part in self.requires]})

    @lazy
    def digest(self) -> str:
        """sha256 of the canonical JSON of the whole file: 64 hex digits."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return sha256(text.encode()).hexdigest()


_USUAL: dict[Level, tuple[View, ...]] = {
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

    @property
    def key(self) -> str:
        """What the reply is filed under within one plan. Of one value several things may be asked, in other words."""
        at = "" if self.step is None else str(self.step)
        by_turn = f"turn/{self.turn}" if self.step is None and self.turn is not None else at
        return f"{self.criterion}/{by_turn}" + (f"#{self.place}?{self.words}" if self.place else "")

    @property
    def scene(self) -> Focus:
        """Where it looks."""
        return Focus(self.step, self.turn, self.words, self.value, self.evidence)

    @property
    def views(self) -> tuple[View, ...]:
        """What the model is shown: what the judge names, and the evidence where there is some."""
        views = self.judge.views
        return views if self.evidence is None or "evidence" in views else (*views, "evidence")


class JudgeCheck(Check):
    """A criterion that a judge decides. Nothing is asked where the trace lacks what the judge requires."""

    kind: Literal["judge"] = "judge"
    judge: str
    """The id of the judge."""
    unless: str | None = None
    """The id of another criterion: where code has given it a score, there is nothing left to ask."""

    def parts(self, judges: Mapping[str, Judge]) -> frozenset[Part]:
        """What of a trace it looks at."""
        return judges[self.judge].looks_at

    def asks(
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
        if judge.level == "trace":
            return [
                (
                    WHOLE,
                    _explain_unasked(judge, case, WHOLE) or Ask(criterion, judge, gap=_find_gap(judge, case, WHOLE)),
                )
            ]
        return list(_BY_LEVEL[judge.level](case, criterion, judge)) or [(WHOLE, _NOTHING[judge.level])]


def is_answered(subject: Subject, answered: Collection[Subject]) -> bool:
    """Whether something was decided of it, of its turn or of the whole."""
    return subject in answered or WHOLE in answered or Subject(turn=subject.turn) in answered


def _ask_by_step(case: Case, criterion: str, judge: Judge) -> Iterable[tuple[Subject, Ask | Outcome]]:
    for step in case.trace.steps:
        subject = case.subjects[step.index]
        yield (
            subject,
            _explain_unasked(judge, case, subject) or Ask(criterion, judge, step.index, step.call.name, step.turn),
        )


def _ask_by_turn(case: Case, criterion: str, judge: Judge) -> Iterable[tuple[Subject, Ask | Outcome]]:
    acted = {step.turn for step in case.trace.steps}
    spoke = {message.turn for message in case.trace.messages if message.role == "assistant" and message.text}
    for turn in sorted(acted | spoke):
        subject = Subject(turn=turn)
        yield (
            subject,
            _explain_unasked(judge, case, subject)
            or Ask(criterion, judge, turn=turn, gap=_find_gap(judge, case, subject)),
        )


_BY_LEVEL = {"step": _ask_by_step, "turn": _ask_by_turn}
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
    first = case.once(is_so, lambda: next((step for step in steps if is_so(step)), None))
    return first if first is not None and (subject.turn is None or first.turn <= subject.turn) else None


def _lacks_arguments(step: Step) -> bool:
    return step.call.arguments is None


def _lacks_result(step: Step) -> bool:
    return step.result is None


def _has_result(step: Step) -> bool:
    return step.result is not None


def _is_any(_: Step) -> bool:
    return True


def _check_arguments(case: Case, subject: Subject) -> Skipped | None:
    if _find_first(case, subject, _lacks_arguments) is None:
        return None
    return Skipped("not_captured", "the trace has no arguments that can be read")


def _check_result(case: Case, subject: Subject) -> Skipped | None:
    if _find_first(case, subject, _is_any) is None:
        return Skipped("not_applicable", "no tool was called")
    if _find_first(case, subject, _has_result) is not None:
        return None
    return _find_missing_before_text(case, subject) or Skipped("not_captured", "the trace has no result")


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
        return Skipped("not_captured", "the trace has no answer" if subject.turn is None else "the turn has no text")
    if all(is_hollow(text) for _, text in texts):
        place, text = texts[-1]
        return build_failure(0.0, Finding("hollow_answer", f"{text.strip()!r} says nothing", place))
    return None


_LACKING = {"arguments": _check_arguments, "result": _check_result, "answer": _check_answer}
