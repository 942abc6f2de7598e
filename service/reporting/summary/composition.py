"""The composition of a set of cases: a set without no-call cases cannot show over-calling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from service.core.outcome import Scored
from service.reporting.summary.samples import Sample

TOOL_TAG = "tool"
"""The tag that names the tool a case is about: a no-call case is a negative example of it."""

MAX_TAG_VALUES = 200
"""A tag with more values is a name, not a slice."""

RECOVERY = "recovery"
"""The criterion about calls whose tool reported an error."""

MIN_NO_CALL_SHARE = 0.1
"""The least share of cases in which no call is due; falling short of this or of what follows is a warning, not a failure."""
MIN_CASES = 5
"""The fewest examples of each tool in which a call of it is due, and cases of each slice."""
MAX_NAMED = 20
"""How many subjects a message names."""


@dataclass(frozen=True, slots=True)
class ToolExamples:
    """The cases of one tool.

    `positive`: a call of it is due. `no_call`: none is due, and it is on offer, or the case's tag `tool` names it.
    `recovery`: it was called and reported an error that the case is scored on.
    """

    tool: str
    positive: int
    no_call: int
    recovery: int


WarningCode = Literal[
    "few_no_call",
    "few_positive",
    "no_negative",
    "few_recovery",
    "few_cases",
    "mixed_rubrics",
    "mixed_scopes",
    "unread_calls",
    "unknown_tag",
    "too_many_values",
]


@dataclass(frozen=True, slots=True)
class SetWarning:
    """Something about the set that limits what its rates can show. `subjects`: the tools, tags or slices that it is about."""

    code: WarningCode
    message: str
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Composition:
    """How many cases expect a call, no call, both in different turns, or do not say."""

    call: int
    no_call: int
    mixed: int
    unsaid: int
    no_call_share: float
    """The share of all cases; mixed ones count."""
    tools: tuple[ToolExamples, ...]


def build_composition(samples: Sequence[Sample]) -> Composition:
    """Build the composition of one or more samples."""
    classes = Counter(_classify_sample(sample) for sample in samples)
    return Composition(
        call=classes["call"],
        no_call=classes["no_call"],
        mixed=classes["mixed"],
        unsaid=classes["unsaid"],
        no_call_share=(classes["no_call"] + classes["mixed"]) / len(samples),
        tools=_count_tools(samples),
    )


def find_warnings(
    samples: Sequence[Sample], composition: Composition, rubrics: Sequence[str], tags: Iterable[str]
) -> Iterator[SetWarning]:
    """Yield a warning for whatever limits what rates can show: what is mixed or unread, how it is tagged, what is too rare."""
    code = sum(sample.report.scope == "code" for sample in samples)
    full = sum(sample.report.scope == "full" and sample.report.provenance.judges != "off" for sample in samples)
    unread = sum(not sample.calls_are_known for sample in samples)
    if len(rubrics) > 1:
        yield SetWarning("mixed_rubrics", f"the reports are of several rubrics: {', '.join(rubrics)}")
    if code and full:
        message = f"{code} reports look at what code decides alone, {full} at all of the rubric"
        yield SetWarning("mixed_scopes", message)
    if unread:
        message = f"{unread} reports have calls that could not be read; no rate of tools or of decisions counts them"
        yield SetWarning("unread_calls", message)
    for tag in tags:
        values = Counter([one.report.tags[tag] for one in samples if tag in one.report.tags])
        few = [f"{tag}={value}" for value, count in sorted(values.items()) if count < MIN_CASES]
        if not values:
            yield SetWarning("unknown_tag", f"no case has a tag {tag}", (tag,))
        elif len(values) > MAX_TAG_VALUES:
            message = f"{tag} has {len(values)} values; with more than {MAX_TAG_VALUES} there are no slices by a tag"
            yield SetWarning("too_many_values", message, (tag,))
        else:
            yield from _warn_of("few_cases", f"slices of fewer than {MIN_CASES} cases", few)
    if composition.no_call_share < MIN_NO_CALL_SHARE:
        share = f"{composition.no_call_share:.1%}"
        message = f"no call is due in {share} of cases; at least {MIN_NO_CALL_SHARE:.0%} should show over-calling"
        yield SetWarning("few_no_call", message)
    if not any(tool.recovery for tool in composition.tools):
        message = "too few cases in which a tool reported a scored error; at least 1 should show recovery"
        yield SetWarning("few_recovery", message)
    few = [one.tool for one in composition.tools if one.positive < MIN_CASES]
    yield from _warn_of("few_positive", f"tools that fewer than {MIN_CASES} cases expect to be called", few)
    never = [one.tool for one in composition.tools if not one.no_call]
    yield from _warn_of("no_negative", "tools that no case offers without expecting a call", never)


def _warn_of(code: WarningCode, what: str, subjects: Sequence[str]) -> Iterator[SetWarning]:
    """Yield one warning for all subjects, if there are any; its message names the first ones."""
    if subjects:
        more = f" and {len(subjects) - MAX_NAMED} more" if len(subjects) > MAX_NAMED else ""
        yield SetWarning(code, f"{what}: {', '.join(subjects[:MAX_NAMED])}{more}", tuple(subjects))


def _classify_sample(sample: Sample) -> str:
    expected = {decision.expected for decision in sample.report.decisions}
    if len(expected) > 1:
        return "mixed"
    return expected.pop() if expected else "unsaid"


def _count_tools(samples: Sequence[Sample]) -> tuple[ToolExamples, ...]:
    positive, negative, recovery = Counter[str](), Counter[str](), Counter[str]()
    for sample in samples:
        report = sample.report
        positive.update({one.expected for one in sample.tool_pairs or () if one.expected is not None})
        recovery.update({step.tool for step in report.steps if isinstance(step.outcomes.get(RECOVERY), Scored)})
        if _classify_sample(sample) in ("no_call", "mixed"):
            about = report.tags.get(TOOL_TAG)
            negative.update({*(report.offered or ()), *([about] if about else [])})
    known = sorted({*positive, *negative, *recovery})
    return tuple([ToolExamples(tool, positive[tool], negative[tool], recovery[tool]) for tool in known])
