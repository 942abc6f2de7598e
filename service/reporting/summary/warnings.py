"""What limits what the rates of a set can show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from service.reporting.summary.samples import Sample

MAX_TAG_VALUES = 200
"""A tag with more values is a name, not a slice."""
MIN_NO_CALL_SHARE = 0.1
"""With no call due in a smaller share of cases, over-calling can hardly show."""
MIN_CASES = 5
"""The fewest cases of a slice."""
MAX_NAMED = 20
"""How many slices a message names."""

WarningCode = Literal[
    "few_no_call",
    "few_cases",
    "mixed_rubrics",
    "mixed_scopes",
    "uncalibrated",
    "unread_calls",
    "unknown_tag",
    "too_many_values",
]


@dataclass(frozen=True, slots=True)
class SetWarning:
    """Something about the set that limits what its rates can show. `subjects`: the tags or slices that it is about."""

    code: WarningCode
    message: str
    subjects: tuple[str, ...] = ()


def find_warnings(samples: Sequence[Sample], rubrics: Sequence[str], tags: Iterable[str]) -> Iterator[SetWarning]:
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
    yield from _find_uncalibrated(samples)
    for tag in tags:
        values = Counter([one.report.tags[tag] for one in samples if tag in one.report.tags])
        few = [f"{tag}={value}" for value, count in sorted(values.items()) if count < MIN_CASES]
        if not values:
            yield SetWarning("unknown_tag", f"no case has a tag {tag}", (tag,))
        elif len(values) > MAX_TAG_VALUES:
            message = f"{tag} has {len(values)} values; with more than {MAX_TAG_VALUES} there are no slices by a tag"
            yield SetWarning("too_many_values", message, (tag,))
        elif few:
            more = f" and {len(few) - MAX_NAMED} more" if len(few) > MAX_NAMED else ""
            message = f"slices of fewer than {MIN_CASES} cases: {', '.join(few[:MAX_NAMED])}{more}"
            yield SetWarning("few_cases", message, tuple(few))
    deciding = [sample.report.decisions for sample in samples if sample.report.decisions]
    share = sum(any(one.expected == "no_call" for one in decisions) for decisions in deciding) / max(1, len(deciding))
    if deciding and share < MIN_NO_CALL_SHARE:
        message = f"{share:.1%} of expectations are of no call; over-calling shows only if {MIN_NO_CALL_SHARE:.0%} do"
        yield SetWarning("few_no_call", message)


def _find_uncalibrated(samples: Iterable[Sample]) -> Iterator[SetWarning]:
    counts = [sample.report.calibration for sample in samples]
    uncalibrated, calibrated = sum(one.uncalibrated for one in counts), sum(one.calibrated for one in counts)
    if uncalibrated:
        of = f"{uncalibrated} of {uncalibrated + calibrated} judged outcomes are uncalibrated"
        yield SetWarning("uncalibrated", f"{of}: no fit says how far their judge agrees with people")
