"""Assertions on a summary, for continuous integration, in both dialects that are about.

Of cases: `argument_plausibility.score >= 0.85 for at least 85% of cases` (also `for_at_least`): the share of cases in which
it holds, both ends included. Of the set: `pass_rate >= 0.95`, `0.8 <= avg_score <= 1`, `p10_score > 50%`. `metrics` has the
names. A case that could not be measured counts, and does not hold. Where no case counts, the assertion is an error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from service.core.kinds import Frozen, Several
from service.core.metrics import NOTHING, Measured, case_metric, metric
from service.core.rubric import STAGES, Stage
from service.core.summary.gate import AssertionResult, Gate, Status
from service.core.summary.samples import DERIVED, STAGE, Sample
from service.errors import InputError, Problem

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

_NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)(?:\s*%)?"
_NAME = r"[A-Za-z_][\w^]*(?:\.[\w^]+)*"
_ONE = re.compile(rf"(?P<name>{_NAME})\s*(?P<op>>=|<=|==|!=|>|<)\s*(?P<number>{_NUMBER})")
_RANGE = re.compile(rf"(?P<low>{_NUMBER})\s*(?P<from><=|<)\s*(?P<name>{_NAME})\s*(?P<to><=|<)\s*(?P<high>{_NUMBER})")
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

    def holds(self, value: float) -> bool:
        """Whether a value is within all bounds."""
        return all(bound.holds(value) for bound in self.bounds)


class Conditions(Frozen):
    """Conditions on one metric (`template`) or on whole cases (`global`), in the form of `fi run`."""

    template: str | None = None
    """The metric that the conditions are about: `pass_rate` is then its pass rate."""
    over_all: Literal[True] | None = Field(default=None, alias="global")
    """The conditions are about whole cases."""
    conditions: Several[str] = Field(min_length=1)
    on_fail: Literal["error", "warn", "skip"] = "error"
    """error: the gate fails. warn: it is told. skip: it is not looked at."""


def _form(value: object) -> str:
    return "text" if isinstance(value, str) else "conditions"


Asserted = Annotated[Annotated[str, Tag("text")] | Annotated[Conditions, Tag("conditions")], Discriminator(_form)]
"""An assertion as text, or several in the form of `fi run`."""


class GateFile(Frozen):
    """A file of assertions."""

    assertions: Several[Asserted] = Field(min_length=1)


OnFail = Literal["error", "warn", "skip"]


def parse(text: str) -> Assertion:
    """The assertion that a text writes; InputError saying what is expected where it writes none.

    >>> parse("grounded.score >= 0.9 for_at_least 85% of cases").share, parse("0.8 <= pass_rate < 95%").bounds
    (0.85, (Bound(op='>=', number=0.8), Bound(op='<', number=0.95)))
    """
    quantified = _QUANTIFIED.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    name, bounds = _comparison(quantified["rest"] if quantified else text.strip()[: _LONGEST + 1])
    share = _number(quantified["share"]) if quantified else None
    if share is not None and not 0 <= share <= 1:
        raise InputError.at(
            "", f"a share of cases is at most 100%, or 1; not {quantified['share'] if quantified else ''}"
        )
    return Assertion(text.strip(), name, bounds, share)


def judge(assertions: Iterable[str | Conditions], samples: Sequence[Sample]) -> Gate:
    """What comes of the assertions on at least one sample.

    InputError, with the position of each, for assertions that cannot be read or name a metric that nobody knows, and for
    none at all: a gate without assertions would let everything pass.
    """
    results: list[AssertionResult] = []
    problems: list[Problem] = []
    for path, text, template, on_fail in _listed(assertions):
        try:
            results.append(_judged(_with_template(parse(text), template), samples, on_fail))
        except InputError as error:
            problems += [Problem(path, f"{text[:80]!r}: {problem.message}") for problem in error.problems]
    if problems:
        raise InputError(problems)
    if all(one.status == "skipped" for one in results):
        raise InputError.at("/assertions", "no assertion is looked at; such a gate would let everything pass")
    broken = [one for one in results if one.status in ("failed", "error")]
    return Gate(not broken, broken[0].broke_at if broken else None, tuple(results))


def _comparison(text: str) -> tuple[str, tuple[Bound, ...]]:
    if found := _ONE.fullmatch(text):
        return found["name"], (Bound(found["op"], _number(found["number"])),)
    if found := _RANGE.fullmatch(text):
        low, high = Bound(_TURNED[found["from"]], _number(found["low"])), Bound(found["to"], _number(found["high"]))
        return found["name"], (low, high)
    expected = "METRIC >= 0.9, 0.8 <= METRIC <= 1, or METRIC.score >= 0.9 for at least 90% of cases"
    raise InputError.at("", f"not an assertion; expected {expected}")


def _number(text: str) -> float:
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)


Listed = tuple[str, str, str | None, OnFail]


def _listed(assertions: Iterable[str | Conditions]) -> Iterable[Listed]:
    for n, asserted in enumerate(assertions):
        if isinstance(asserted, str):
            yield f"/assertions/{n}", asserted, None, "error"
            continue
        if (asserted.template is None) == (asserted.over_all is None):
            raise InputError.at(f"/assertions/{n}", "conditions are about a template, or global: one of the two")
        for m, text in enumerate(asserted.conditions):
            yield f"/assertions/{n}/conditions/{m}", text, asserted.template, asserted.on_fail


def _with_template(assertion: Assertion, template: str | None) -> Assertion:
    if template is None:
        return assertion
    return Assertion(f"{template}: {assertion.text}", f"{template}.{assertion.name}", assertion.bounds, assertion.share)


def _judged(assertion: Assertion, samples: Sequence[Sample], on_fail: OnFail) -> AssertionResult:
    found = _of_set(assertion, samples) if assertion.share is None else _of_cases(assertion, samples)
    if on_fail == "skip":
        return found.result(assertion, "skipped", "skipped, as asked")
    if found.measured.value is None:
        return found.result(assertion, "error", found.measured.why)
    if found.holds:
        return found.result(assertion, "passed", "")
    return found.result(assertion, "warned" if on_fail == "warn" else "failed", found.told(assertion))


@dataclass(frozen=True, slots=True)
class _Found:
    """What an assertion came to. `broken` are the cases that speak against it."""

    measured: Measured
    holds: bool
    broken: tuple[Sample, ...]
    about: str | None

    def told(self, assertion: Assertion) -> str:
        """Why it failed, in words."""
        value, cases, *_ = self.measured
        if assertion.share is not None:
            return f"holds in {value:.1%} of {cases} cases; at least {assertion.share:.4g} is asked for"
        return f"{assertion.name} is {value:.4g} over {cases} cases"

    def result(self, assertion: Assertion, status: Status, message: str) -> AssertionResult:
        """The result to report."""
        shown = status in ("failed", "warned")
        names = sorted(sample.report.trace_id or "(no id)" for sample in self.broken) if shown else []
        return AssertionResult(
            assertion=assertion.text,
            status=status,
            actual=self.measured.value,
            cases=self.measured.cases,
            unmeasured=self.measured.unmeasured,
            broke_at=_broke_at(self.broken, self.about) if shown else None,
            failing=tuple(names[:SHOWN]),
            message=message,
        )


def _of_cases(assertion: Assertion, samples: Sequence[Sample]) -> _Found:
    key = case_metric(assertion.name, samples)
    counting = [sample for sample in samples if sample.applies(key)]
    broken = tuple(s for s in counting if key not in s.values or not assertion.holds(s.values[key]))
    unmeasured = sum(key in sample.unmeasured for sample in counting)
    if unmeasured == len(counting):
        why = f"none of the {unmeasured} cases that it applies to could be measured" if unmeasured else NOTHING.why
        return _Found(Measured(None, len(counting), unmeasured, why), False, broken, key)
    share = 1 - len(broken) / len(counting)
    holds = COMPARISONS[">="](share, assertion.share or 0.0)
    return _Found(Measured(share, len(counting), unmeasured), holds, broken, key)


def _of_set(assertion: Assertion, samples: Sequence[Sample]) -> _Found:
    about, over = metric(assertion.name, samples)
    measured = over(samples)
    holds = measured.value is not None and assertion.holds(measured.value)
    return _Found(measured, holds, _speaking_against(samples, about), about)


def _speaking_against(samples: Sequence[Sample], about: str | None) -> tuple[Sample, ...]:
    """The cases that did not pass; where all did, those that are not perfect."""
    if about is None or about == "score":
        return tuple(sample for sample in samples if sample.verdict_counts and not sample.passed)
    applying = [sample for sample in samples if sample.applies(about)]
    failed = tuple(sample for sample in applying if not sample.passes(about))
    return failed or tuple(sample for sample in applying if sample.values[about] < 1)


def _broke_at(broken: Iterable[Sample], about: str | None) -> Stage | None:
    """The stage at which most of the cases broke first; of two the earlier. Without cases, the stage it is about."""
    counts = Counter(stage for sample in broken if (stage := sample.broke_at(about)))
    if counts:
        return max(STAGES, key=lambda stage: (counts[stage], -STAGES.index(stage)))
    if about is None or about in DERIVED:
        return DERIVED[about][0] if about else None
    return next((stage for stage in STAGES if STAGE + stage == about), None)
