"""Assertions on a summary, for continuous integration.

On cases: `argument_plausibility.score >= 0.85 for at least 85% of cases` (also `for_at_least`) asserts the share of cases in
which the comparison holds; shares include their ends. On the set: `pass_rate >= 0.95`, `p10_score > 50%`, `p95 duration of
search <= 800 ms`. `metrics` lists the names. What is open counts against an assertion and for it: it passes where it holds at
its worse end, fails where it holds at neither, and is undecided otherwise. So does all that was not measured of a trace whose
coverage is below its rubric's minimum. With `of measured` appended, only what was measured counts. Where no case counts, it is
an error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from service.core.rubric import STAGES, Stage
from service.errors import InputError, Problem
from service.reporting.metrics import NOT_MEASURED, MeasuredNumber, find_case_metric, find_metric, parse_usage_metric
from service.reporting.summary import AssertionResult, Gate, Status
from service.reporting.summary.samples import CRITERION, DERIVED, STAGE, Sample

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

_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)"
_NAME = re.compile(r"[A-Za-z_][\w^]*(?:\.[\w^][\w^-]*)*")
_COMPARISON = re.compile(
    rf"(?P<name>[A-Za-z_][^<>=!]*?)\s*(?P<op>>=|<=|==|!=|>|<)\s*(?P<unit>\$?)(?P<number>{_NUMBER})\s*(?P<after>[A-Za-z$%]*)"
)
_MEASURED = re.compile(r"(?P<rest>.*\S)[\s_]+of[\s_]+measured", re.DOTALL)
_QUANTIFIED = re.compile(
    rf"(?P<rest>.*\S)\s+for[\s_]+at[\s_]+least\s+(?P<share>{_NUMBER})\s*(?P<unit>%?)\s+of\s+cases", re.DOTALL
)
_MAX_CHARS = 500
_EXPECTED = "METRIC >= 0.9, METRIC.score >= 0.9 for at least 90% of cases, or p95 duration of TOOL <= 2 s"


@dataclass(frozen=True, slots=True)
class Assertion:
    """What is asserted of a metric; `share` is the least share of cases in which it must hold, None for the whole set."""

    text: str
    name: str
    op: str
    number: float
    share: float | None = None
    of_measured: bool = False
    """Whether open cases are left out."""

    def holds(self, value: float) -> bool:
        """Whether the comparison holds for a value."""
        return COMPARISONS[self.op](value, self.number)

    def holds_between(self, low: float, high: float) -> bool | None:
        """Whether it holds for every value from `low` to `high`; None where it does for some and not for others."""
        inside = [self.number] if low < self.number < high else []
        answers = {self.holds(value) for value in (low, *inside, high)}
        return None if len(answers) > 1 else answers.pop()


def parse_assertion(text: str) -> Assertion:
    """Parse an assertion; InputError says what is expected where the text is none.

    >>> parse_assertion("result_groundedness.score >= 0.9 for_at_least 85% of cases").share
    0.85
    >>> (
    ...     parse_assertion("p95 duration of search <= 800 ms").number,
    ...     parse_assertion("pass_rate >= 90% of measured").number,
    ... )
    (0.8, 0.9)
    """
    whole = text.strip()
    if len(text) > _MAX_CHARS:
        raise InputError.at("", f"an assertion has at most {_MAX_CHARS} characters")
    measured = _MEASURED.fullmatch(whole)
    rest = measured["rest"] if measured else whole
    quantified = _QUANTIFIED.fullmatch(rest)
    found = _COMPARISON.fullmatch(quantified["rest"] if quantified else rest)
    usage = parse_usage_metric(found["name"]) if found else None
    if found is None or not (usage or _NAME.fullmatch(found["name"])):
        raise InputError.at("", f"not an assertion; expected {_EXPECTED}")
    units = usage.units if usage else {"": 1.0, "%": 0.01}
    unit = (found["after"] or found["unit"]).lower()
    if unit not in units:
        allowed = ", ".join(filter(None, units)) or "whole tokens"
        raise InputError.at("", f"{found['name']} is in {allowed}; not {unit or 'a bare number'}")
    share = float(quantified["share"]) / (100 if quantified["unit"] else 1) if quantified else None
    if share is not None and not 0 <= share <= 1:
        raise InputError.at("", f"a share of cases is at most 100%, or 1; not {share:g}")
    number = float(found["number"]) * units[unit]
    return Assertion(whole, found["name"], found["op"], number, share, of_measured=measured is not None)


def judge_assertions(assertions: Iterable[str], samples: Sequence[Sample]) -> Gate:
    """Judge the assertions on one or more samples.

    InputError, with the position of each, for assertions that cannot be read or that name an unknown metric, and for no
    assertions at all: a gate without assertions would let everything pass.
    """
    results: list[AssertionResult] = []
    problems: list[Problem] = []
    for n, text in enumerate(assertions):
        try:
            results.append(_judge(parse_assertion(text), samples))
        except InputError as error:
            problems += [Problem(f"/assertions/{n}", f"{text[:80]!r}: {one.message}") for one in error.problems]
    if problems:
        raise InputError(problems)
    if not results:
        raise InputError.at("/assertions", "nothing is asserted; such a gate would let everything pass")
    failed = [one for one in results if one.status in ("failed", "error")]
    undecided = not failed and any(one.status == "undecided" for one in results)
    return Gate(not (failed or undecided), failed[0].first_failing_stage if failed else None, tuple(results), undecided)


def _judge(assertion: Assertion, samples: Sequence[Sample]) -> AssertionResult:
    if assertion.share is None:
        about, over = find_metric(assertion.name, samples)
        measured, required = over(samples), assertion
        if assertion.of_measured:
            measured = measured._replace(low=measured.value, high=measured.value, cases=measured.measured)
        opposing = _list_opposing(samples, about)
    else:
        about = find_case_metric(assertion.name, samples)
        measured, opposing = _measure_share(assertion, samples, about)
        required = replace(assertion, op=">=", number=assertion.share)
    status, message = _compare(required, measured)
    opposing = opposing if status in ("failed", "undecided") else []
    names = sorted([sample.report.trace_id or "(no id)" for sample in opposing])
    return AssertionResult(
        assertion=assertion.text,
        status=status,
        actual=measured.value,
        cases=measured.cases,
        unmeasured=measured.unmeasured,
        first_failing_stage=_find_broken_stage(opposing, about) if status in ("failed", "undecided") else None,
        failing=tuple(names[:MAX_FAILING_SHOWN]),
        message=message,
        low=measured.low,
        high=measured.high,
    )


def _compare(required: Assertion, measured: MeasuredNumber) -> tuple[Status, str]:
    """Compare the number at both of its ends with what is required, and say why it does not hold."""
    low, high, cases = measured.low, measured.high, measured.cases
    if low is None or high is None:
        return "error", measured.why
    holds = required.holds_between(low, high)
    if holds:
        return "passed", ""
    if required.share is not None:
        between = f"{low:.1%}" if low == high else f"{low:.1%} to {high:.1%}"
        message = f"holds in {between} of {cases} cases; at least {required.share:.4g} is required"
    else:
        span = f"at least {low:.4g}" if high == inf else f"between {low:.4g} and {high:.4g}"
        between = f"{low:.4g}" if low == high else f"{span}, depending on what was not measured,"
        message = f"{required.name} is {between} over {cases} {measured.unit}{'s' * (cases != 1)}"
    return "undecided" if holds is None else "failed", message


def _measure_share(assertion: Assertion, samples: Sequence[Sample], key: str) -> tuple[MeasuredNumber, list[Sample]]:
    """Measure the share of cases in which it holds, by each case's own number; with the cases in which it may not."""
    counting = [(one, reading, reading.bounds) for one in samples if (reading := one.read(key)) and reading.bounds]
    if assertion.of_measured:
        counting = [found for found in counting if found[2][0] == found[2][1]]
    answers = [assertion.holds_between(*bounds) for _, _, bounds in counting]
    left_out = sum(sample.is_left_out(key) for sample in samples)
    opposing = [sample for (sample, _, _), holds in zip(counting, answers, strict=True) if not holds]
    if len(answers) < max(1, left_out):
        why = f"none of the {left_out} cases that it applies to could be measured" if left_out else NOT_MEASURED.why
        return MeasuredNumber(None, None, None, len(answers), left_out, why), opposing
    known = [holds for holds in answers if holds is not None]
    low, high = (sum(holds in accepted for holds in answers) / len(answers) for accepted in ((True,), (True, None)))
    unmeasured = left_out + sum(reading.value is None for _, reading, _ in counting)
    return MeasuredNumber(sum(known) / len(known) if known else None, low, high, len(answers), unmeasured), opposing


def _list_opposing(samples: Sequence[Sample], about: str | None) -> list[Sample]:
    """List the cases that did not pass; where all did, those that are not perfect."""
    if about is None or about == "score":
        return [sample for sample in samples if sample.is_applicable and not sample.passed]
    applying = [(sample, reading) for sample in samples if (reading := sample.read(about))]
    failed = [sample for sample, _ in applying if not sample.passes(about)]
    return failed or [sample for sample, reading in applying if (reading.value or 0.0) < 1]


def _find_broken_stage(broken: Iterable[Sample], about: str | None) -> Stage | None:
    """Find the stage at which most of the cases broke first, the earlier of two; else the stage that the metric is about."""
    own: dict[str, Stage | None] = {**DERIVED, **{STAGE + stage: stage for stage in STAGES}}
    counts: Counter[Stage] = Counter()
    for sample in broken:
        own.update({CRITERION + one.id: one.stage for one in sample.report.criteria})
        if stage := sample.report.first_failing_stage or own.get(about or ""):
            counts[stage] += 1
    if counts:
        return max(STAGES, key=lambda stage: (counts[stage], -STAGES.index(stage)))
    return own.get(about or "")
