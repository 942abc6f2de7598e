"""Judges of the user's own in Python: `@callgrade.judge`, a function or class that answers a criterion's questions.

A registered judge is a model named `python/NAME`: it is asked, cached, calibrated and put into a jury under that name, as a
model behind litellm is. It answers its criterion wherever neither the rubric nor the request names models.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, TypeVar, cast

from service.core.judging.own_answers import Answer, BadAnswerError, judge_answers, list_claims, list_evidence
from service.core.judging.questions import Question
from service.core.judging.replies import Judgement
from service.errors import JudgeError

LOG = logging.getLogger("callgrade.judges")

F = TypeVar("F", bound=Callable[..., object])

PREFIX = "python/"
"""Begins the names of judges in Python, where a provider begins the names of models."""

OFFERED: Mapping[str, Callable[[Question], object]] = {
    "claims": list_claims,
    "evidence": list_evidence,
    "labels": lambda question: question.judge.menu,
    "parts": lambda question: {part.name: part.value for part in question.parts},
}
"""What a judge may look at, by the names of its parameters."""

DEADLINE_S = 60.0
"""Seconds after which an answer is a timeout. A plain function cannot be interrupted, and goes on in its thread."""


@dataclass(frozen=True)
class OwnJudge:
    """A registered function or class."""

    name: str
    criterion: str
    target: Callable[..., object]
    at_once: int
    digest: str
    """sha256 of its source code, which is part of the cache key: a changed function is asked again."""

    @cached_property
    def function(self) -> Callable[..., object]:
        """The function, or the one instance of the class, from the first question on."""
        return cast("Callable[..., object]", self.target()) if inspect.isclass(self.target) else self.target

    @property
    def cache_name(self) -> str:
        """The name under which its replies are cached."""
        return f"{self.name}#{self.digest}"

    def answers(self, criterion: str, judge: str) -> bool:
        """Whether it is registered for this criterion, or for the judge that the criterion asks."""
        return self.criterion in (criterion, judge)

    def call(self, question: Question) -> object:
        """Call it with the parameters that it declares."""
        return self.function(**{name: OFFERED[name](question) for name in _list_parameters(self.function)})


OWN_JUDGES: dict[str, OwnJudge] = {}
"""The registered judges, by `python/NAME`."""


def judge(criterion: str, *, name: str = "", at_once: int = 1) -> Callable[[F], F]:
    """Register a function or class as a judge of a criterion, such as `result_groundedness`.

    Its parameters (of a class: those of `__call__`; it is built without arguments, when the first question is asked) say
    what it looks at: `claims`, the sentences of the text to judge, or one line of JSON of the call or conversation to judge;
    `evidence`, what the tools returned, as `Evidence(pointer, value)`; `labels`, the labels it may give, best first; `parts`,
    everything that a model would be shown, by name. It returns one answer for each claim, or one for all: a label; a label
    with its probability in [0, 1]; or an `Answer`. It may be a coroutine function.

    `name`: its model name is `python/NAME`, by default that of the function. Fits apply to the name: give a judge that
    decides otherwise a new one. `at_once`: how many questions it is asked at the same time.

    Raises TypeError for other parameters, ValueError for `at_once` below 1.
    """
    if at_once < 1:
        raise ValueError(f"at_once is {at_once}; expected at least 1")

    def register(target: F) -> F:
        unknown = [one for one in _list_parameters(target) if one not in OFFERED]
        if unknown:
            raise TypeError(f"a judge takes {', '.join(OFFERED)}; not {', '.join(unknown)}")
        model = PREFIX + (name or target.__name__)
        OWN_JUDGES[model] = OwnJudge(model, criterion, target, at_once, _digest(target))
        return target

    return register


def find_own_judges(criterion: str, judge: str) -> tuple[str, ...]:
    """Return the name of the judge that answers where no model is named: the last one registered; else empty."""
    return tuple([one.name for one in OWN_JUDGES.values() if one.answers(criterion, judge)][-1:])


class OwnJudges:
    """Asks the registered judges, each within its own limit. One per event loop."""

    def __init__(self) -> None:
        self._limits: dict[str, asyncio.Semaphore] = {}

    async def reply(self, name: str, question: Question) -> Judgement:
        """Ask one judge. JudgeError if it is not registered, fails, takes too long, or answers with something else."""
        own = OWN_JUDGES.get(name)
        if own is None:
            known = ", ".join(sorted(OWN_JUDGES)) or "none"
            raise JudgeError("unknown_model", f"no judge {name} is registered here; known: {known}")
        if not own.answers(question.ask.criterion, question.judge.id):
            raise JudgeError("invalid_judgement", f"{name} answers only {own.criterion}")
        limit = self._limits.setdefault(name, asyncio.Semaphore(own.at_once))
        try:
            async with limit, asyncio.timeout(DEADLINE_S):
                result = await asyncio.to_thread(own.call, question)
                if inspect.isawaitable(result):
                    result = await result
        except TimeoutError:
            raise JudgeError("timeout", f"{name} gave no answer within {DEADLINE_S:g} seconds") from None
        except Exception as error:
            LOG.exception("the judge %s failed", name)
            raise JudgeError("provider_error", f"{name} failed: {type(error).__name__}: {error}") from None
        given = cast("list[object]", result) if isinstance(result, list) else [result]
        try:
            return judge_answers(question, [_read_answer(one) for one in given])
        except BadAnswerError as error:
            raise JudgeError("invalid_judgement", f"{name}: {error}") from None


def _read_answer(given: object) -> Answer:
    match given:
        case Answer():
            return given
        case str():
            return Answer(given)
        case (str() as label, int() | float() as probability):
            return Answer(label, float(probability))
        case _:
            raise BadAnswerError(
                f"returned {type(given).__name__}; expected a label, a label with its probability, or an Answer"
            )


def _list_parameters(target: Callable[..., Any]) -> list[str]:
    if inspect.isclass(target):
        return list(inspect.signature(target.__call__).parameters)[1:]
    return list(inspect.signature(target).parameters)


def _digest(target: Callable[..., object]) -> str:
    try:
        source = inspect.getsource(target)
    except (OSError, TypeError):  # typed at a prompt, or compiled
        source = f"{target.__module__}.{target.__qualname__}"
    return sha256(source.encode()).hexdigest()[:16]
