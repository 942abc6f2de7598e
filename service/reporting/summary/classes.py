"""Precision, recall and F1: of the decisions to call or not to call, and of each tool; and which tools were confused."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple

from service.core.call_decisions import CallClass
from service.core.gates.tool_name import find_near
from service.reporting.summary.samples import Sample, ToolPair
from service.stats.intervals import choose_interval
from service.stats.rates import Estimate, RatePart, estimate


@dataclass(frozen=True, slots=True)
class ClassScore:
    """One class of decisions, or one tool: how often it was due, how often it was made, and how often both."""

    name: str
    due: int
    made: int
    right: int
    precision: Estimate
    """right / made"""
    recall: Estimate
    """right / due"""
    f1: Estimate


@dataclass(frozen=True, slots=True)
class Decisions:
    """Both classes; `accuracy` is the share of all decisions that were right."""

    call: ClassScore
    no_call: ClassScore
    accuracy: Estimate


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often `called` was called where `expected` was due. No `expected`: a superfluous call; no `called`: a missing call."""

    expected: str | None
    called: str | None
    count: int
    near_miss: bool
    """Whether both have similar names."""


@dataclass(frozen=True, slots=True)
class Tools:
    """All tools that were due or called."""

    scores: tuple[ClassScore, ...]
    macro_f1: float | None
    """The unweighted mean of F1 over the tools."""
    confusions: tuple[Confusion, ...]
    """The most frequent first; right calls are counted in `scores`."""


class ClassCounts(NamedTuple):
    """What one case adds to one class."""

    group: str | None
    right: int
    made: int
    due: int


MEASURES: Mapping[str, Callable[[ClassCounts], RatePart]] = {
    "precision": lambda case: RatePart(case.group, case.right, case.made),
    "recall": lambda case: RatePart(case.group, case.right, case.due),
    "f1": lambda case: RatePart(case.group, 2 * case.right, case.made + case.due),
}


def summarize_decisions(samples: Iterable[Sample]) -> Decisions:
    """Score both classes over all decisions, turns included, of the cases whose calls could all be read."""
    known = [sample for sample in samples if sample.calls_are_known]
    call, no_call = (_score_class(label, count_decisions(known, label)) for label in ("call", "no_call"))
    return Decisions(call, no_call, estimate(list_decision_parts(known), choose_interval))


def count_decisions(samples: Iterable[Sample], label: CallClass) -> list[ClassCounts]:
    """Count the decisions of each case about one class."""
    return [
        ClassCounts(
            sample.group,
            sum(one.expected == label and one.right for one in sample.report.decisions),
            sum(one.made == (label == "call") for one in sample.report.decisions),
            sum(one.expected == label for one in sample.report.decisions),
        )
        for sample in samples
    ]


def list_decision_parts(samples: Iterable[Sample]) -> list[RatePart]:
    """List what each case adds to the share of right decisions."""
    decisions = [(sample.group, sample.report.decisions) for sample in samples]
    return [RatePart(group, sum(one.right for one in made), len(made)) for group, made in decisions]


def summarize_tools(samples: Iterable[Sample]) -> Tools:
    """Summarize the tools of all cases whose expectation names any, and whose calls could all be read."""
    cases = [(one.group, one.tool_pairs) for one in samples if one.tool_pairs and one.calls_are_known]
    by_tool: dict[str, list[ClassCounts]] = defaultdict(list)
    for group, pairs in cases:
        right = Counter(one.called for one in pairs if one.called == one.expected)
        made, due = Counter(one.called for one in pairs), Counter(one.expected for one in pairs)
        for tool in made | due:
            if tool is not None:
                by_tool[tool].append(ClassCounts(group, right[tool], made[tool], due[tool]))
    scores = tuple([_score_class(tool, counts) for tool, counts in sorted(by_tool.items())])
    f1_values = [one.f1.value for one in scores if one.f1.value is not None]
    macro_f1 = fsum(f1_values) / len(f1_values) if f1_values else None
    return Tools(scores, macro_f1, _list_confusions(Counter(one for _, pairs in cases for one in pairs)))


def _score_class(name: str, cases: Sequence[ClassCounts]) -> ClassScore:
    return ClassScore(
        name,
        due=sum(case.due for case in cases),
        made=sum(case.made for case in cases),
        right=sum(case.right for case in cases),
        **{measure: estimate(map(read, cases), choose_interval) for measure, read in MEASURES.items()},
    )


def _list_confusions(counts: Mapping[ToolPair, int]) -> tuple[Confusion, ...]:
    found: list[Confusion] = []
    for (expected, called), count in counts.items():
        if expected != called:
            close = expected is not None and called is not None and bool(find_near(expected, [called]))
            found.append(Confusion(expected, called, count, close))
    return tuple(sorted(found, key=lambda one: (-one.count, one.expected or "", one.called or "")))
