"""Which tools were called for which: F1 of each tool, the confusions, and those within a family."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple

from service.core.gates.names import find_near
from service.reporting.summary.samples import Sample, ToolPair
from service.stats.rates import Estimate, IntervalMethod, RatePart, estimate

Families = Mapping[str, Sequence[str]]
"""Tools that are easily confused, by family name."""


@dataclass(frozen=True, slots=True)
class ToolScore:
    """One tool. `support` counts the calls of it that were due, `called` those made that count, right or not."""

    tool: str
    support: int
    called: int
    right: int
    precision: Estimate
    recall: Estimate
    f1: Estimate


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often `called` was called where `expected` was due. No `expected`: a superfluous call; no `called`: a missing call."""

    expected: str | None
    called: str | None
    count: int
    family: str | None
    """The family that both belong to."""
    near_miss: bool
    """Whether both are of one family, or have similar names."""


@dataclass(frozen=True, slots=True)
class FamilyScore:
    """One family. `near_misses` counts calls of a tool of the family other than the one that was due."""

    family: str
    tools: tuple[str, ...]
    support: int
    right: int
    near_misses: int
    elsewhere: int
    """Due calls that were missing, or went to a tool outside the family."""


@dataclass(frozen=True, slots=True)
class Tools:
    """All tools that were due or called."""

    scores: tuple[ToolScore, ...]
    macro_f1: float | None
    """The unweighted mean of F1 over the tools."""
    confusions: tuple[Confusion, ...]
    """The most frequent first; right calls are counted in `scores`."""
    families: tuple[FamilyScore, ...]


def summarize_tools(samples: Iterable[Sample], families: Families, interval: IntervalMethod) -> Tools:
    """Summarize the tools of all cases whose expectation names any, and whose calls could all be read."""
    tool_pairs = [
        (sample.group, sample.tool_pairs) for sample in samples if sample.tool_pairs and sample.calls_are_known
    ]
    counts = Counter(one for _, pairs in tool_pairs for one in pairs)
    scores = tuple(_score_tool(tool, rows, interval) for tool, rows in sorted(_build_rows(tool_pairs).items()))
    f1_values = [one.f1.value for one in scores if one.f1.value is not None]
    return Tools(
        scores=scores,
        macro_f1=fsum(f1_values) / len(f1_values) if f1_values else None,
        confusions=_list_confusions(counts, families),
        families=tuple(_score_family(name, tuple(families[name]), counts) for name in sorted(families)),
    )


class _ToolRow(NamedTuple):
    """What one case adds to one tool: calls that were right, made and due."""

    group: str | None
    right: int
    called: int
    due: int


def _build_rows(cases: Iterable[tuple[str | None, tuple[ToolPair, ...]]]) -> dict[str, list[_ToolRow]]:
    rows: dict[str, list[_ToolRow]] = defaultdict(list)
    for group, pairs in cases:
        right = Counter(one.called for one in pairs if one.called == one.expected)
        called = Counter(one.called for one in pairs)
        due = Counter(one.expected for one in pairs)
        for tool in called | due:
            if tool is not None:
                rows[tool].append(_ToolRow(group, right[tool], called[tool], due[tool]))
    return rows


def _score_tool(tool: str, rows: Sequence[_ToolRow], interval: IntervalMethod) -> ToolScore:
    return ToolScore(
        tool=tool,
        support=sum(row.due for row in rows),
        called=sum(row.called for row in rows),
        right=sum(row.right for row in rows),
        precision=estimate((RatePart(row.group, row.right, row.called) for row in rows), interval),
        recall=estimate((RatePart(row.group, row.right, row.due) for row in rows), interval),
        f1=estimate((RatePart(row.group, 2 * row.right, row.called + row.due) for row in rows), interval),
    )


def _list_confusions(counts: Mapping[ToolPair, int], families: Families) -> tuple[Confusion, ...]:
    families_of_tool: dict[str | None, set[str]] = defaultdict(set)
    for name, tools in families.items():
        for tool in tools:
            families_of_tool[tool].add(name)
    wrong = [
        _build_confusion(one, count, families_of_tool) for one, count in counts.items() if one.expected != one.called
    ]
    return tuple(sorted(wrong, key=lambda one: (-one.count, one.expected or "", one.called or "")))


def _build_confusion(one: ToolPair, count: int, families_of_tool: Mapping[str | None, set[str]]) -> Confusion:
    family = min(
        families_of_tool.get(one.expected, set[str]()) & families_of_tool.get(one.called, set[str]()), default=None
    )
    close = one.expected is not None and one.called is not None and bool(find_near(one.expected, [one.called]))
    return Confusion(one.expected, one.called, count, family, family is not None or close)


def _score_family(name: str, tools: tuple[str, ...], counts: Mapping[ToolPair, int]) -> FamilyScore:
    due = {one: count for one, count in counts.items() if one.expected in tools}
    right = sum(count for one, count in due.items() if one.called == one.expected)
    support = sum(due.values())
    inside = sum(count for one, count in due.items() if one.called in tools)
    return FamilyScore(name, tools, support, right, inside - right, support - inside)
