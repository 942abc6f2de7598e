"""The composition of a set of cases, against targets: a set without no-call cases cannot show over-calling."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from service.core.models.kinds import FrozenModel
from service.core.outcome import Scored
from service.reporting.summary.samples import Sample

Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]

SHOWN_TAGS = ("step", "difficulty")
"""Tags whose shares are always shown."""

TOOL_TAG = "tool"
"""The tag that names the tool a case is about: a no-call case is a negative example of it."""

MAX_TAG_VALUES = 200
"""A tag with more values is a name, not a slice."""

RECOVERY = "recovery"
"""The criterion about calls whose tool reported an error."""


class ToolTarget(FrozenModel):
    """The fewest examples of each kind that a tool should have."""

    positive: Count = 5
    no_call: Count = 1
    recovery: Count = 0


class ToolOverride(FrozenModel):
    """The same for one tool; what is absent is as for every tool."""

    positive: Count | None = None
    no_call: Count | None = None
    recovery: Count | None = None


class Targets(FrozenModel):
    """What a set should consist of. Falling short is a warning, not a failure."""

    no_call: Share = 0.1
    """The least share of cases in which no call is due."""
    per_tool: ToolTarget = ToolTarget()
    tools: dict[str, ToolOverride] = Field(default_factory=dict[str, ToolOverride])
    """Other counts for single tools; a tool named here is expected in the set."""
    recovery: Count = 1
    """The fewest cases in which a tool reported an error that the case is scored on."""
    per_value: Count = 5
    """The fewest cases with each value of the tags `step` and `difficulty`."""
    sandboxed: Count = 3
    """This many of the tools called most should be called in cases that show the resulting state."""
    shares: dict[str, dict[str, Share]] = Field(default_factory=dict[str, dict[str, float]])
    """The least share of cases with a value of a tag: tag -> value -> share."""


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


@dataclass(frozen=True, slots=True)
class TagShare:
    """How many cases have a value of a tag; `value` None: have no such tag."""

    tag: str
    value: str | None
    cases: int
    share: float


WarningCode = Literal[
    "few_no_call",
    "few_positive",
    "no_negative",
    "few_recovery",
    "few_cases",
    "no_sandbox",
    "small_share",
    "mixed_rubrics",
    "mixed_scopes",
    "old_engine",
    "unread_calls",
    "unknown_tag",
    "too_many_values",
]


@dataclass(frozen=True, slots=True)
class SetWarning:
    """Something about the set that limits what its rates can show. `subject` is the tool or `tag=value`, if it is about one."""

    code: WarningCode
    message: str
    subject: str | None


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
    shares: tuple[TagShare, ...]
    unseen: tuple[str, ...] = ()
    """Those of the tools called most for which no case shows the resulting state."""


def build_composition(samples: Sequence[Sample], targets: Targets) -> Composition:
    """Build the composition of one or more samples."""
    classes = Counter(_classify_sample(sample) for sample in samples)
    return Composition(
        call=classes["call"],
        no_call=classes["no_call"],
        mixed=classes["mixed"],
        unsaid=classes["unsaid"],
        no_call_share=(classes["no_call"] + classes["mixed"]) / len(samples),
        tools=_count_tools(samples, targets),
        shares=tuple(
            share for tag in sorted({*SHOWN_TAGS, *targets.shares}) for share in _compute_shares(samples, tag)
        ),
        unseen=_find_unseen(samples, targets.sandboxed),
    )


def find_warnings(composition: Composition, targets: Targets) -> Iterator[SetWarning]:
    """Yield a warning for each target that the set misses."""
    if composition.no_call_share < targets.no_call:
        share = f"{composition.no_call_share:.1%}"
        message = f"no call is due in {share} of cases; at least {targets.no_call:.0%} should show over-calling"
        yield SetWarning("few_no_call", message, None)
    if sum(tool.recovery for tool in composition.tools) < targets.recovery:
        message = (
            f"too few cases in which a tool reported a scored error; at least {targets.recovery} should show recovery"
        )
        yield SetWarning("few_recovery", message, None)
    for tool in composition.tools:
        yield from _find_tool_warnings(tool, targets)
    yield from _find_share_warnings(composition, targets)
    for tool in composition.unseen:
        message = f"{tool} is among the {targets.sandboxed} tools called most; no case shows the state after it: set a sandbox"
        yield SetWarning("no_sandbox", message, tool)


def _find_share_warnings(composition: Composition, targets: Targets) -> Iterator[SetWarning]:
    for share in composition.shares:
        if share.tag in SHOWN_TAGS and share.value is not None and share.cases < targets.per_value:
            message = f"{share.tag}={share.value}: cases: {share.cases}; its rates need at least {targets.per_value}"
            yield SetWarning("few_cases", message, f"{share.tag}={share.value}")
    for tag, target in sorted(targets.shares.items()):
        measured = {share.value: share.share for share in composition.shares if share.tag == tag}
        for value, least in sorted(target.items()):
            if measured.get(value, 0.0) < least:
                message = f"{tag}={value} in {measured.get(value, 0.0):.1%} of cases; the target is {least:.0%}"
                yield SetWarning("small_share", message, f"{tag}={value}")


def _classify_sample(sample: Sample) -> str:
    expected = {decision.expected for decision in sample.report.decisions}
    if len(expected) > 1:
        return "mixed"
    return expected.pop() if expected else "unsaid"


def _count_tools(samples: Sequence[Sample], targets: Targets) -> tuple[ToolExamples, ...]:
    positive, negative, recovery = Counter[str](), Counter[str](), Counter[str]()
    for sample in samples:
        positive.update({one.expected for one in sample.tool_pairs or () if one.expected is not None})
        negative.update(_list_not_due(sample))
        recovery.update(_list_recovered(sample))
    known = {*positive, *negative, *recovery, *targets.tools}
    return tuple(ToolExamples(tool, positive[tool], negative[tool], recovery[tool]) for tool in sorted(known))


def _list_not_due(sample: Sample) -> set[str]:
    """List the tools that a case shows should not be called."""
    if _classify_sample(sample) not in ("no_call", "mixed"):
        return set()
    about = sample.report.tags.get(TOOL_TAG)
    return {*(sample.report.offered or ()), *([about] if about else [])}


def _find_unseen(samples: Sequence[Sample], limit: int) -> tuple[str, ...]:
    """Find those of the tools called most for which no case shows the resulting state."""
    calls, seen = Counter[str](), set[str]()
    for sample in samples:
        tools = [step.tool for step in sample.report.steps]
        calls.update(tools)
        seen |= set(tools) if _tells_state(sample) else set[str]()
    busiest = sorted(calls, key=lambda tool: (-calls[tool], tool))[:limit]
    return tuple([tool for tool in busiest if tool not in seen])


def _tells_state(sample: Sample) -> bool:
    measured = {criterion.id for criterion in sample.report.criteria if criterion.value is not None}
    return sample.report.executed is not None or bool(measured & STATE_CRITERIA)


STATE_CRITERIA = frozenset({"state", "exec"})
"""The criteria about the state."""


def _list_recovered(sample: Sample) -> set[str]:
    return {step.tool for step in sample.report.steps if isinstance(step.outcomes.get(RECOVERY), Scored)}


def _compute_shares(samples: Sequence[Sample], tag: str) -> Iterator[TagShare]:
    counts = Counter(sample.report.tags.get(tag) for sample in samples)
    if set(counts) == {None}:
        return
    for value in sorted(counts, key=lambda value: (value is None, value or "")):
        yield TagShare(tag, value, counts[value], counts[value] / len(samples))


def _find_tool_warnings(tool: ToolExamples, targets: Targets) -> Iterator[SetWarning]:
    target = _find_target(tool.tool, targets)
    if tool.positive < target.positive:
        message = f"{tool.tool}: positive examples: {tool.positive}; its rates need at least {target.positive}"
        yield SetWarning("few_positive", message, tool.tool)
    if tool.no_call < target.no_call:
        message = f"{tool.tool}: negative examples (on offer, and no call due): {tool.no_call}; the target is {target.no_call}"
        yield SetWarning("no_negative", message, tool.tool)
    if tool.recovery < target.recovery:
        message = f"{tool.tool}: recovery examples: {tool.recovery}; the target is {target.recovery}"
        yield SetWarning("few_recovery", message, tool.tool)


def _find_target(tool: str, targets: Targets) -> ToolTarget:
    own: Mapping[str, int] = targets.tools[tool].model_dump(exclude_none=True) if tool in targets.tools else {}
    return targets.per_tool.model_copy(update=own)


def warn_mixed_rubrics(names: Iterable[str]) -> Iterator[SetWarning]:
    """Warn where reports of several rubrics are summarized together."""
    rubrics = sorted(set(names))
    if len(rubrics) > 1:
        yield SetWarning("mixed_rubrics", f"the reports are of several rubrics: {', '.join(rubrics)}", None)


def warn_mixed_scopes(samples: Sequence[Sample]) -> Iterator[SetWarning]:
    """Warn where reports leave out what only judges can say, or say nothing about what is open."""
    code = sum(sample.report.scope == "code" for sample in samples)
    full = sum(sample.report.scope == "full" and sample.report.provenance.judges != "off" for sample in samples)
    if code and full:
        message = f"{code} reports look at what code decides alone, {full} at all of the rubric"
        yield SetWarning("mixed_scopes", message, None)
    old = sum(sample.report.provenance.engine in OLD_ENGINES for sample in samples)
    if old:
        message = f"{old} reports are of an engine before 3, whose pass may rest on what was never looked at; score them again"
        yield SetWarning("old_engine", message, None)


def warn_unread_calls(samples: Iterable[Sample]) -> Iterator[SetWarning]:
    """Warn where calls could not be read."""
    count = sum(not sample.calls_are_known for sample in samples)
    if count:
        message = f"{count} reports have calls that could not be read; no rate of tools or of decisions counts them"
        yield SetWarning("unread_calls", message, None)


OLD_ENGINES = frozenset({"1", "2"})
"""Engines whose verdicts counted open outcomes as passed."""


def warn_unsliced(samples: Iterable[Sample], tags: Iterable[str]) -> Iterator[SetWarning]:
    """Warn for each tag that no case has, or that has too many values to slice by."""
    values: dict[str, set[str]] = defaultdict(set)
    for sample in samples:
        for tag, value in sample.report.tags.items():
            values[tag].add(value)
    for tag in dict.fromkeys(tags):
        if tag not in values:
            yield SetWarning("unknown_tag", f"no case has a tag {tag}", tag)
        elif len(values[tag]) > MAX_TAG_VALUES:
            message = (
                f"{tag} has {len(values[tag])} values; with more than {MAX_TAG_VALUES} there are no slices by a tag"
            )
            yield SetWarning("too_many_values", message, tag)
