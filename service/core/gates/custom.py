"""A check of the user's own: a Python function that rubrics name. `service.own_checks` registers and runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, cast

from pydantic import Field, JsonValue, TypeAdapter, ValidationError, model_validator

from service.core.case import Case, build_call_path
from service.core.checks import WHOLE, Check, Part, Subject, SubjectOutcome
from service.core.outcome import (
    PERFECT,
    Errored,
    Finding,
    OpenValue,
    Outcome,
    PartialOutcome,
    Scored,
    Skipped,
    build_failure,
)

Level = Literal["trace", "turn", "step"]
"""What one call of the function looks at."""

NOTHING = Skipped("not_applicable", "the check found nothing to look at")


class JudgeQuestion(NamedTuple):
    """What a check asks a judge instead of deciding it: whether a value fits these words."""

    words: str
    value: JsonValue
    path: str = ""
    """A JSON pointer into the trace; empty: the place that the check looks at."""


class CheckRun(NamedTuple):
    """What one call of a function came to."""

    result: object
    remark: str = ""
    """Something about the call itself that the report should say, such as that it was slow."""


class CheckFailedError(Exception):
    """A function raised, or took too long. The message is for the report."""


@dataclass(frozen=True, slots=True)
class OwnCheck:
    """A registered function. `run` calls it with keyword arguments and raises CheckFailedError where it fails."""

    name: str
    stage: str
    level: Level
    takes: frozenset[str]
    """The names of its parameters, among trace, step, turn, expectation and params."""
    form: TypeAdapter[Any] | None
    """Reads its params; None: it takes none."""
    threshold: float
    """The lowest number that passes."""
    waits: bool
    """Whether it is a coroutine function."""
    run: Callable[[Mapping[str, object]], CheckRun]

    def read_params(self, given: Mapping[str, JsonValue]) -> object:
        """Read the params that a rubric gives; ValueError if they do not fit."""
        if self.form is None:
            if given:
                raise ValueError(f"the check {self.name} takes no params")
            return None
        try:
            return self.form.validate_python(dict(given))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = "/".join(map(str, first["loc"]))
            raise ValueError(f"params of the check {self.name}: {place}: {first['msg']}") from None


OWN_CHECKS: dict[str, OwnCheck] = {}
"""The registered checks by name."""


class CustomGate(Check):
    """A function of the user's own, by the name under which it is registered in this process.

    It returns True or False; a number in [0, 1]; findings, none of which means passed; an outcome; a `JudgeQuestion`; or
    None where there is nothing to check. A function that raises leaves its outcome errored, which is open.
    """

    kind: Literal["custom"] = "custom"
    looks_at: ClassVar[frozenset[Part]] = frozenset({"call", "result", "text"})
    name: str
    params: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    """The params that the function declares."""

    @model_validator(mode="after")
    def _check_name(self) -> CustomGate:
        if self.name not in OWN_CHECKS:
            known = ", ".join(sorted(OWN_CHECKS)) or "none"
            raise ValueError(f"no check {self.name!r} is registered here; known: {known}")
        OWN_CHECKS[self.name].read_params(self.params)
        return self

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return an outcome for the trace, for each turn or for each step, as the function's parameters say."""
        check = OWN_CHECKS[self.name]
        offered = {"trace": case.trace, "expectation": case.expectation, "params": check.read_params(self.params)}
        for subject, path, place in _list_places(case, check.level):
            arguments = {name: value for name, value in {**offered, **place}.items() if name in check.takes}
            try:
                found = check.run(arguments)
                outcome = _read_result(check, found.result, path)
            except CheckFailedError as error:
                yield subject, Errored("check_failed", f"{self.name}: {error}")
                continue
            remarks = (Finding("slow_check", found.remark, path),) if found.remark else ()
            yield subject, outcome.add_findings(*remarks) if remarks and isinstance(outcome, Scored) else outcome


def _list_places(case: Case, level: Level) -> Iterator[tuple[Subject, str, dict[str, object]]]:
    """List what to look at: the subject of its outcome, its pointer, and the arguments that say which it is."""
    if level == "step":
        for step in case.trace.steps:
            yield case.subjects[step.index], build_call_path(step), {"step": step}
    elif level == "turn":
        for turn in range(1, case.trace.turns + 1):
            yield Subject(turn=turn), "", {"turn": turn}
    else:
        yield WHOLE, "", {}


def _read_result(check: OwnCheck, result: object, path: str) -> Outcome | PartialOutcome:
    """Turn what a function returned into an outcome; CheckFailedError for anything else."""
    if result is None:
        return NOTHING
    if isinstance(result, bool):
        return PERFECT if result else build_failure(0.0, Finding(check.name, "did not pass", path))
    if isinstance(result, int | float):
        if not 0.0 <= result <= 1.0:
            raise CheckFailedError(f"returned {result}; expected a number from 0 to 1")
        passed = result >= check.threshold
        findings = () if passed else (Finding(check.name, f"{result:.4g}, below {check.threshold:g}", path),)
        return Scored(float(result), passed, findings)
    if isinstance(result, JudgeQuestion):
        return PartialOutcome((OpenValue(result.words, result.value, result.path or path or "/answer"),))
    if isinstance(result, Scored | Skipped | Errored):
        return result
    many = cast("list[object]", result if isinstance(result, list) else [result])
    findings = [one for one in many if isinstance(one, Finding)]
    if len(findings) < len(many):
        kind = type(cast("object", result)).__name__
        raise CheckFailedError(f"returned {kind}; expected a bool, a number, findings, an outcome, a question or None")
    return build_failure(0.0, *findings) if findings else PERFECT
