"""Assertions on a summary, for continuous integration, in the two dialects in use.

On cases: `argument_plausibility.score >= 0.85 for at least 85% of cases` (also `for_at_least`) asserts the share of cases in
which the comparison holds; shares include their ends. On the set: `pass_rate >= 0.95`, `0.8 <= avg_score <= 1`, `p10_score >
50%`. `metrics` lists the names. What is open counts against an assertion and for it: it passes where it holds at its worse
end, fails where it holds at neither, and is undecided otherwise. So does all that was not measured of a trace whose coverage is
below its rubric's minimum. With `of measured` appended, only what was measured counts. Where no case counts, it is an error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, ValidationError

from service.core.models.kinds import FrozenModel, Several
from service.core.models.validation import list_problems
from service.core.rubric import STAGES, Stage
from service.errors import InputError, Problem
from service.reporting.metrics import NOT_MEASURED, MeasuredNumber, find_case_metric, find_metric
from service.reporting.plain_assertions import parse_usage_assertion
from service.reporting.summary.gate import AssertionResult, Gate, Status
from service.reporting.summary.samples import DERIVED, STAGE, Sample

TOLERANCE = 1e-9
"""Numbers this close count as equal: 0.7 + 0.1 is not less than 0.8."""

MAX_FAILING_SHOWN = 20
"""How many failing cases one result names."""

COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": lambda a, b: a >= b - TOLERANCE,
    "<=": lambda a, b: a <= b + TOLERANCE,
    ">": lambda a, b: a > b + TOLERANCE,
    "<": lambda a, b: a < b - TOLERANCE,
    "==": lambda a, b: abs(a - b) <= TOLERANCE,
    "!=": lambda a, b: abs(a - b) > TOLERANCE,
}
_MIRRORED = {"<=": ">=", "<": ">"}

_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:\s*%)?"
_NAME = r"[A-Za-z_][\w^]*(?:\.[\w^][\w^-]*)*"
_ONE = re.compile(rf"(?P<name>{_NAME})\s*(?P<op>>=|<=|==|!=|>|<)\s*(?P<number>{_NUMBER})")
_RANGE = re.compile(rf"(?P<low>{_NUMBER})\s*(?P<from><=|<)\s*(?P<name>{_NAME})\s*(?P<to><=|<)\s*(?P<high>{_NUMBER})")
_MEASURED = re.compile(r"(?P<rest>.*\S)[\s_]+of[\s_]+measured", re.DOTALL)
_QUANTIFIED = re.compile(rf"(?P<rest>.*\S)\s+for[\s_]+at[\s_]+least\s+(?P<share>{_NUMBER})\s+of\s+cases", re.DOTALL)
_MAX_CHARS = 500


@dataclass(frozen=True, slots=True)
class Bound:
    """A comparison with a number."""

    op: str
    number: float

    def holds(self, value: float) -> bool:
        """Whether a value satisfies the bound."""
        return COMPARISONS[self.op](value, self.number)


@dataclass(frozen=True, slots=True)
class Assertion:
    """What is asserted of a metric; `share` is the least share of cases in which it must hold, None for the whole set."""

    text: str
    name: str
    bounds: tuple[Bound, ...]
    share: float | None
    of_measured: bool = False
    """Whether open cases are left out."""

    def holds(self, value: float) -> bool:
        """Whether a value satisfies all bounds."""
        return all(bound.holds(value) for bound in self.bounds)

    def holds_between(self, low: float, high: float) -> bool | None:
        """Whether every value from `low` to `high` satisfies all bounds; None where some do and others do not."""
        answers = {self.holds(value) for value in self._list_probes(low, high)}
        return None if len(answers) > 1 else answers.pop()

    def _list_probes(self, low: float, high: float) -> list[float]:
        """List ends, bounds and midpoints: one satisfies the bounds if any value does, and one violates them if any does."""
        inside = [bound.number for bound in self.bounds if low < bound.number < high]
        corners = sorted({low, high, *inside})
        return [*corners, *[(one + other) / 2 for one, other in pairwise(corners)]]


class Conditions(FrozenModel):
    """Conditions on one metric (`template`) or on whole cases (`global`), in the form of `fi run`."""

    template: str | None = None
    """The metric that the conditions are about: `pass_rate` is then its pass rate."""
    over_all: Literal[True] | None = Field(default=None, alias="global")
    """The conditions are about whole cases."""
    conditions: Several[str] = Field(min_length=1)
    on_fail: Literal["error", "warn", "skip"] = "error"
    """error: the gate fails. warn: the failure is only reported. skip: the condition is not evaluated."""


def _find_form(value: object) -> str:
    return "text" if isinstance(value, str) else "conditions"


AssertionForm = Annotated[
    Annotated[str, Tag("text")] | Annotated[Conditions, Tag("conditions")], Discriminator(_find_form)
]
"""An assertion as text, or several in the form of `fi run`."""


class GateFile(FrozenModel):
    """A file of assertions."""

    assertions: Several[AssertionForm] = Field(min_length=1)


OnFail = Literal["error", "warn", "skip"]


def parse_assertion(text: str) -> Assertion:
    """Parse an assertion; InputError says what is expected where the text is none.

    >>> (
    ...     parse_assertion("result_groundedness.score >= 0.9 for_at_least 85% of cases").share,
    ...     parse_assertion("0.8 <= pass_rate < 95%").bounds,
    ... )
    (0.85, (Bound(op='>=', number=0.8), Bound(op='<', number=0.95)))
    >>> parse_assertion("pass_rate >= 0.9 of measured").of_measured
    True
    """
    whole = text.strip()
    measured = _MEASURED.fullmatch(whole) if len(text) <= _MAX_CHARS else None
    rest = measured["rest"] if measured else whole
    quantified = _QUANTIFIED.fullmatch(rest) if len(text) <= _MAX_CHARS else None
    name, bounds = _parse_comparison(quantified["rest"] if quantified else rest[: _MAX_CHARS + 1])
    share = _parse_number(quantified["share"]) if quantified else None
    if share is not None and not 0 <= share <= 1:
        raise InputError.at(
            "", f"a share of cases is at most 100%, or 1; not {quantified['share'] if quantified else ''}"
        )
    return Assertion(whole, name, bounds, share, of_measured=measured is not None)


def judge_assertions(assertions: Iterable[str | Conditions], samples: Sequence[Sample]) -> Gate:
    """Judge the assertions on one or more samples.

    InputError, with the position of each, for assertions that cannot be read or that name an unknown metric, and for no
    assertions at all: a gate without assertions would let everything pass.
    """
    results: list[AssertionResult] = []
    problems: list[Problem] = []
    for path, text, template, on_fail in _iter_assertions(assertions):
        try:
            results.append(_judge_assertion(_add_template(parse_assertion(text), template), samples, on_fail))
        except InputError as error:
            problems += [Problem(path, f"{text[:80]!r}: {problem.message}") for problem in error.problems]
    if problems:
        raise InputError(problems)
    if all(one.status == "skipped" for one in results):
        raise InputError.at("/assertions", "every assertion is skipped; such a gate would let everything pass")
    failed = [one for one in results if one.status in ("failed", "error")]
    undecided = not failed and any(one.status == "undecided" for one in results)
    return Gate(not (failed or undecided), failed[0].broke_at if failed else None, tuple(results), undecided)


def _parse_comparison(text: str) -> tuple[str, tuple[Bound, ...]]:
    try:
        usage = parse_usage_assertion(text)
    except ValueError as error:
        raise InputError.at("", str(error)) from None
    if usage is not None:
        return usage.name, (Bound(usage.op, usage.number),)
    if found := _ONE.fullmatch(text):
        return found["name"], (Bound(found["op"], _parse_number(found["number"])),)
    if found := _RANGE.fullmatch(text):
        low, high = (
            Bound(_MIRRORED[found["from"]], _parse_number(found["low"])),
            Bound(found["to"], _parse_number(found["high"])),
        )
        return found["name"], (low, high)
    expected = "METRIC >= 0.9, 0.8 <= METRIC <= 1, METRIC.score >= 0.9 for at least 90% of cases, or p95 duration of TOOL <= 2 s"
    raise InputError.at("", f"not an assertion; expected {expected}")


def _parse_number(text: str) -> float:
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)


ListedAssertion = tuple[str, str, str | None, OnFail]


def _iter_assertions(assertions: Iterable[str | Conditions]) -> Iterable[ListedAssertion]:
    for n, item in enumerate(assertions):
        assertion = item if isinstance(item, str | Conditions) else _read_conditions(item, f"/assertions/{n}")
        if isinstance(assertion, str):
            yield f"/assertions/{n}", assertion, None, "error"
            continue
        if (assertion.template is None) == (assertion.over_all is None):
            raise InputError.at(f"/assertions/{n}", "conditions are about a template, or global: one of the two")
        for m, text in enumerate(assertion.conditions):
            yield f"/assertions/{n}/conditions/{m}", text, assertion.template, assertion.on_fail


def _read_conditions(given: object, path: str) -> Conditions:
    """Read conditions that a caller wrote as a mapping. InputError for anything else says what is accepted."""
    if not isinstance(given, Mapping):
        raise InputError.at(path, EXPECTED_FORM)
    try:
        return Conditions.model_validate(dict(given))  # pyright: ignore[reportUnknownArgumentType]
    except ValidationError as error:
        problems = list_problems(error, given, below=path)  # pyright: ignore[reportArgumentType]
        raise InputError([*problems, Problem(path, EXPECTED_FORM)]) from None


EXPECTED_FORM = (
    "an assertion is a text such as 'pass_rate >= 0.9', or {template or global, conditions: [text], on_fail}"
)


def _add_template(assertion: Assertion, template: str | None) -> Assertion:
    if template is None:
        return assertion
    return replace(assertion, text=f"{template}: {assertion.text}", name=f"{template}.{assertion.name}")


def _judge_assertion(assertion: Assertion, samples: Sequence[Sample], on_fail: OnFail) -> AssertionResult:
    outcome = _judge_set(assertion, samples) if assertion.share is None else _judge_cases(assertion, samples)
    if on_fail == "skip":
        return outcome.build_result(assertion, "skipped", "skipped, as requested")
    if outcome.measured.low is None:
        return outcome.build_result(assertion, "error", outcome.measured.why)
    if outcome.holds:
        return outcome.build_result(assertion, "passed", "")
    failure_status: Status = "undecided" if outcome.holds is None else "failed"
    return outcome.build_result(
        assertion, "warned" if on_fail == "warn" else failure_status, outcome.describe_failure(assertion)
    )


@dataclass(frozen=True, slots=True)
class _AssertionOutcome:
    """The outcome of an assertion. `broken` are the cases that speak against it."""

    measured: MeasuredNumber
    holds: bool | None
    """None where it depends on what is open."""
    broken: tuple[Sample, ...]
    about: str | None

    def describe_failure(self, assertion: Assertion) -> str:
        """Say why it failed or is undecided."""
        low, high, cases = self.measured.low, self.measured.high, self.measured.cases
        if low is None or high is None:
            return self.measured.why
        if assertion.share is not None:
            between = f"{low:.1%}" if low == high else f"{low:.1%} to {high:.1%}"
            return f"holds in {between} of {cases} cases; at least {assertion.share:.4g} is required"
        span = f"at least {low:.4g}" if high == inf else f"between {low:.4g} and {high:.4g}"
        between = f"{low:.4g}" if low == high else f"{span}, depending on what was not measured,"
        return f"{assertion.name} is {between} over {cases} cases"

    def build_result(self, assertion: Assertion, status: Status, message: str) -> AssertionResult:
        """Build the result to report."""
        shown = status in ("failed", "undecided", "warned")
        names = sorted(sample.report.trace_id or "(no id)" for sample in self.broken) if shown else []
        return AssertionResult(
            assertion=assertion.text,
            status=status,
            actual=self.measured.value,
            cases=self.measured.cases,
            unmeasured=self.measured.unmeasured,
            broke_at=_find_broken_stage(self.broken, self.about) if shown else None,
            failing=tuple(names[:MAX_FAILING_SHOWN]),
            message=message,
            low=self.measured.low,
            high=self.measured.high,
        )


def _judge_cases(assertion: Assertion, samples: Sequence[Sample]) -> _AssertionOutcome:
    """Judge the share of cases in which the assertion holds, by each case's own number."""
    key = find_case_metric(assertion.name, samples)
    counting = [sample for sample in samples if key in sample.bounds]
    if assertion.of_measured:
        counting = [sample for sample in counting if sample.bounds[key][0] == sample.bounds[key][1]]
    results = [(sample, assertion.holds_between(*sample.bounds[key])) for sample in counting]
    left_out = sum(sample.is_left_out(key) for sample in samples)
    opposing = tuple([sample for sample, holds in results if not holds])
    if len(results) < max(1, left_out):
        why = f"none of the {left_out} cases that it applies to could be measured" if left_out else NOT_MEASURED.why
        return _AssertionOutcome(MeasuredNumber(None, None, None, len(results), left_out, why), None, opposing, key)
    low, high = (sum(holds in accepted for _, holds in results) / len(results) for accepted in ((True,), (True, None)))
    known = [holds for _, holds in results if holds is not None]
    value = sum(known) / len(known) if known else None
    unmeasured = left_out + sum(key not in sample.values for sample, _ in results)
    share = Assertion("", "", (Bound(">=", assertion.share or 0.0),), None)
    return _AssertionOutcome(
        MeasuredNumber(value, low, high, len(results), unmeasured),
        share.holds_between(low, high),
        opposing,
        key,
    )


def _judge_set(assertion: Assertion, samples: Sequence[Sample]) -> _AssertionOutcome:
    about, over = find_metric(assertion.name, samples)
    measured = over(samples)
    if assertion.of_measured:
        measured = measured._replace(low=measured.value, high=measured.value)
    holds = (
        None if measured.low is None or measured.high is None else assertion.holds_between(measured.low, measured.high)
    )
    return _AssertionOutcome(measured, holds, _list_opposing(samples, about), about)


def _list_opposing(samples: Sequence[Sample], about: str | None) -> tuple[Sample, ...]:
    """List the cases that did not pass; where all did, those that are not perfect."""
    if about is None or about == "score":
        return tuple(sample for sample in samples if sample.is_applicable and not sample.passed)
    applying = [sample for sample in samples if sample.applies(about)]
    failed = tuple(sample for sample in applying if not sample.passes(about))
    return failed or tuple(sample for sample in applying if sample.values.get(about, 0.0) < 1)


def _find_broken_stage(broken: Iterable[Sample], about: str | None) -> Stage | None:
    """Find the stage at which most of the cases broke first, the earlier of two.

    Without cases, it is the stage that the metric is about.
    """
    counts = Counter(stage for sample in broken if (stage := sample.find_break(about)))
    if counts:
        return max(STAGES, key=lambda stage: (counts[stage], -STAGES.index(stage)))
    if about is None or about in DERIVED:
        return DERIVED[about][0] if about else None
    return next((stage for stage in STAGES if STAGE + stage == about), None)
