"""Assertions on a summary, for continuous integration, in both dialects that are about.

Of cases: `argument_plausibility.score >= 0.85 for at least 85% of cases` (also `for_at_least`): the share of cases in which
it holds, both ends included. Of the set: `pass_rate >= 0.95`, `0.8 <= avg_score <= 1`, `p10_score > 50%`. `metrics` has the
names. What is open counts against an assertion and for it: it passes where it holds at its worse end, fails where it holds at
neither, and is undecided otherwise; with `of measured` behind it, only what was measured counts. Where no case counts, the
assertion is an error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, ValidationError

from service.core.models.kinds import FrozenModel, Several
from service.core.models.validation import list_problems
from service.core.rubric import STAGES, Stage
from service.errors import InputError, Problem
from service.reporting.metrics import NOTHING, MeasuredNumber, find_case_metric, find_metric
from service.reporting.plain_assertions import parse_usage_assertion
from service.reporting.summary.gate import AssertionResult, Gate, Status
from service.reporting.summary.samples import DERIVED, STAGE, Sample

NOISE = 1e-9
"""Numbers this close are the same: 0.7 + 0.1 is not less than 0.8."""

SHOWN = 20
"""How many failing cases one result names."""

COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": lambda a, b: a >= b - NOISE,
    "<=": lambda a, b: a <= b + NOISE,
    ">": lambda a, b: a > b + NOISE,
    "<": lambda a, b: a < b - NOISE,
    "==": lambda a, b: abs(a - b) <= NOISE,
    "!=": lambda a, b: abs(a - b) > NOISE,
}
_TURNED = {"<=": ">=", "<": ">"}

_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:\s*%)?"
_NAME = r"[A-Za-z_][\w^]*(?:\.[\w^][\w^-]*)*"
_ONE = re.compile(rf"(?P<name>{_NAME})\s*(?P<op>>=|<=|==|!=|>|<)\s*(?P<number>{_NUMBER})")
_RANGE = re.compile(rf"(?P<low>{_NUMBER})\s*(?P<from><=|<)\s*(?P<name>{_NAME})\s*(?P<to><=|<)\s*(?P<high>{_NUMBER})")
_MEASURED = re.compile(r"(?P<rest>.*\S)[\s_]+of[\s_]+measured", re.DOTALL)
_QUANTIFIED = re.compile(rf"(?P<rest>.*\S)\s+for[\s_]+at[\s_]+least\s+(?P<share>{_NUMBER})\s+of\s+cases", re.DOTALL)
_LONGEST = 500


@dataclass(frozen=True, slots=True)
class Bound:
    """A comparison with a number."""

    op: str
    number: float

    def holds(self, value: float) -> bool:
        """Whether a value is within the bound."""
        return COMPARISONS[self.op](value, self.number)


@dataclass(frozen=True, slots=True)
class Assertion:
    """What is asserted of a metric; `share` is the least share of cases in which it must hold, None: of the whole set."""

    text: str
    name: str
    bounds: tuple[Bound, ...]
    share: float | None
    of_measured: bool = False
    """Whether what is open does not count."""

    def holds(self, value: float) -> bool:
        """Whether a value is within all bounds."""
        return all(bound.holds(value) for bound in self.bounds)

    def holds_between(self, low: float, high: float) -> bool | None:
        """Whether every value from `low` to `high` is within all bounds; None where some are and others not."""
        found = {self.holds(value) for value in self._list_probes(low, high)}
        return None if len(found) > 1 else found.pop()

    def _list_probes(self, low: float, high: float) -> list[float]:
        """Values of which one is within the bounds if any is, and one without if any is: ends, bounds and what lies between."""
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
    """error: the gate fails. warn: it is told. skip: it is not looked at."""


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
    """The assertion that a text writes; InputError saying what is expected where it writes none.

    >>> (
    ...     parse_assertion("grounded.score >= 0.9 for_at_least 85% of cases").share,
    ...     parse_assertion("0.8 <= pass_rate < 95%").bounds,
    ... )
    (0.85, (Bound(op='>=', number=0.8), Bound(op='<', number=0.95)))
    >>> parse_assertion("pass_rate >= 0.9 of measured").of_measured
    True
    """
    whole = text.strip()
    measured = _MEASURED.fullmatch(whole) if len(text) <= _LONGEST else None
    rest = measured["rest"] if measured else whole
    quantified = _QUANTIFIED.fullmatch(rest) if len(text) <= _LONGEST else None
    name, bounds = _parse_comparison(quantified["rest"] if quantified else rest[: _LONGEST + 1])
    share = _parse_number(quantified["share"]) if quantified else None
    if share is not None and not 0 <= share <= 1:
        raise InputError.at(
            "", f"a share of cases is at most 100%, or 1; not {quantified['share'] if quantified else ''}"
        )
    return Assertion(whole, name, bounds, share, of_measured=measured is not None)


def judge_assertions(assertions: Iterable[str | Conditions], samples: Sequence[Sample]) -> Gate:
    """What comes of the assertions on at least one sample.

    InputError, with the position of each, for assertions that cannot be read or name a metric that nobody knows, and for
    none at all: a gate without assertions would let everything pass.
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
        raise InputError.at("/assertions", "no assertion is looked at; such a gate would let everything pass")
    broken = [one for one in results if one.status in ("failed", "error")]
    undecided = not broken and any(one.status == "undecided" for one in results)
    return Gate(not (broken or undecided), broken[0].broke_at if broken else None, tuple(results), undecided)


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
            Bound(_TURNED[found["from"]], _parse_number(found["low"])),
            Bound(found["to"], _parse_number(found["high"])),
        )
        return found["name"], (low, high)
    expected = "METRIC >= 0.9, 0.8 <= METRIC <= 1, METRIC.score >= 0.9 for at least 90% of cases, or p95 duration of TOOL <= 2 s"
    raise InputError.at("", f"not an assertion; expected {expected}")


def _parse_number(text: str) -> float:
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)


ListedAssertion = tuple[str, str, str | None, OnFail]


def _iter_assertions(assertions: Iterable[str | Conditions]) -> Iterable[ListedAssertion]:
    for n, given in enumerate(assertions):
        asserted = given if isinstance(given, str | Conditions) else _read_conditions(given, f"/assertions/{n}")
        if isinstance(asserted, str):
            yield f"/assertions/{n}", asserted, None, "error"
            continue
        if (asserted.template is None) == (asserted.over_all is None):
            raise InputError.at(f"/assertions/{n}", "conditions are about a template, or global: one of the two")
        for m, text in enumerate(asserted.conditions):
            yield f"/assertions/{n}/conditions/{m}", text, asserted.template, asserted.on_fail


def _read_conditions(given: object, path: str) -> Conditions:
    """Conditions that a caller wrote as a mapping. InputError for anything else, and says what is taken."""
    if not isinstance(given, Mapping):
        raise InputError.at(path, TAKEN)
    try:
        return Conditions.model_validate(dict(given))  # pyright: ignore[reportUnknownArgumentType]
    except ValidationError as error:
        problems = list_problems(error, given, below=path)  # pyright: ignore[reportArgumentType]
        raise InputError([*problems, Problem(path, TAKEN)]) from None


TAKEN = "an assertion is a text such as 'pass_rate >= 0.9', or {template or global, conditions: [text], on_fail}"


def _add_template(assertion: Assertion, template: str | None) -> Assertion:
    if template is None:
        return assertion
    return replace(assertion, text=f"{template}: {assertion.text}", name=f"{template}.{assertion.name}")


def _judge_assertion(assertion: Assertion, samples: Sequence[Sample], on_fail: OnFail) -> AssertionResult:
    found = _judge_set(assertion, samples) if assertion.share is None else _judge_cases(assertion, samples)
    if on_fail == "skip":
        return found.build_result(assertion, "skipped", "skipped, as asked")
    if found.measured.low is None:
        return found.build_result(assertion, "error", found.measured.why)
    if found.holds:
        return found.build_result(assertion, "passed", "")
    broken: Status = "undecided" if found.holds is None else "failed"
    return found.build_result(assertion, "warned" if on_fail == "warn" else broken, found.describe_failure(assertion))


@dataclass(frozen=True, slots=True)
class _AssertionOutcome:
    """What an assertion came to. `broken` are the cases that speak against it."""

    measured: MeasuredNumber
    holds: bool | None
    """None: that depends on what is open."""
    broken: tuple[Sample, ...]
    about: str | None

    def describe_failure(self, assertion: Assertion) -> str:
        """Why it failed, or is undecided, in words."""
        low, high, cases = self.measured.low, self.measured.high, self.measured.cases
        if low is None or high is None:
            return self.measured.why
        if assertion.share is not None:
            between = f"{low:.1%}" if low == high else f"{low:.1%} to {high:.1%}"
            return f"holds in {between} of {cases} cases; at least {assertion.share:.4g} is asked for"
        between = f"{low:.4g}" if low == high else f"between {low:.4g} and {high:.4g}, as what is open may turn out,"
        return f"{assertion.name} is {between} over {cases} cases"

    def build_result(self, assertion: Assertion, status: Status, message: str) -> AssertionResult:
        """The result to report."""
        shown = status in ("failed", "undecided", "warned")
        names = sorted(sample.report.trace_id or "(no id)" for sample in self.broken) if shown else []
        return AssertionResult(
            assertion=assertion.text,
            status=status,
            actual=self.measured.value,
            cases=self.measured.cases,
            unmeasured=self.measured.unmeasured,
            broke_at=_find_broken_stage(self.broken, self.about) if shown else None,
            failing=tuple(names[:SHOWN]),
            message=message,
            low=self.measured.low,
            high=self.measured.high,
        )


def _judge_cases(assertion: Assertion, samples: Sequence[Sample]) -> _AssertionOutcome:
    """The share of cases in which it holds, by what decides in each."""
    key = find_case_metric(assertion.name, samples)
    counting = [sample for sample in samples if key in sample.decided]
    held = [(sample, assertion.holds_between(*sample.decided[key])) for sample in counting]
    if assertion.of_measured:
        held = [(sample, holds) for sample, holds in held if sample.decided[key][0] == sample.decided[key][1]]
    left_out = sum(sample.is_left_out(key) for sample in samples)
    broken = tuple([sample for sample, holds in held if not holds])
    if len(held) < max(1, left_out):
        why = f"none of the {left_out} cases that it applies to could be measured" if left_out else NOTHING.why
        return _AssertionOutcome(MeasuredNumber(None, None, None, len(held), left_out, why), None, broken, key)
    certain, possible = (sum(holds in wanted for _, holds in held) / len(held) for wanted in ((True,), (True, None)))
    known = [holds for _, holds in held if holds is not None]
    value = sum(known) / len(known) if known else None
    unmeasured = left_out + sum(key not in sample.values for sample, _ in held)
    share = Assertion("", "", (Bound(">=", assertion.share or 0.0),), None)
    return _AssertionOutcome(
        MeasuredNumber(value, certain, possible, len(held), unmeasured),
        share.holds_between(certain, possible),
        broken,
        key,
    )


def _judge_set(assertion: Assertion, samples: Sequence[Sample]) -> _AssertionOutcome:
    about, over = find_metric(assertion.name, samples)
    found = over(samples)
    if assertion.of_measured:
        found = found._replace(low=found.value, high=found.value)
    holds = None if found.low is None or found.high is None else assertion.holds_between(found.low, found.high)
    return _AssertionOutcome(found, holds, _list_opposing(samples, about), about)


def _list_opposing(samples: Sequence[Sample], about: str | None) -> tuple[Sample, ...]:
    """The cases that did not pass; where all did, those that are not perfect."""
    if about is None or about == "score":
        return tuple(sample for sample in samples if sample.verdict_counts and not sample.passed)
    applying = [sample for sample in samples if sample.applies(about)]
    failed = tuple(sample for sample in applying if not sample.passes(about))
    return failed or tuple(sample for sample in applying if sample.values.get(about, 0.0) < 1)


def _find_broken_stage(broken: Iterable[Sample], about: str | None) -> Stage | None:
    """The stage at which most of the cases broke first; of two the earlier. Without cases, the stage it is about."""
    counts = Counter(stage for sample in broken if (stage := sample.find_break(about)))
    if counts:
        return max(STAGES, key=lambda stage: (counts[stage], -STAGES.index(stage)))
    if about is None or about in DERIVED:
        return DERIVED[about][0] if about else None
    return next((stage for stage in STAGES if STAGE + stage == about), None)
