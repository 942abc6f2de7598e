"""What of a judge's verdicts is accepted, so that a stated share of them agrees with humans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from service.calibration.figures import Measure, Resampling
from service.core.judging.fits import Guarantee
from service.stats.intervals import bootstrap
from service.stats.rates import RatePart
from service.stats.selective import SideItem, find_edge

LEVELS = (0.8, 0.85, 0.9, 0.95)
"""The shares that every report tells the coverage of."""


class AcceptedItem(NamedTuple):
    """An item, whether its verdict is accepted, and whether that is the label's."""

    group: str
    accepted: bool
    agrees: bool


def measure_shares(items: Sequence[AcceptedItem], resampling: Resampling) -> tuple[Measure, Measure]:
    """The share of items that is accepted, and the share of these that agrees, with intervals by groups where any are drawn."""
    accepted = [item for item in items if item.accepted]
    whole = [RatePart(item.group, float(item.accepted)) for item in items]
    return measure_share(whole, resampling), measure_share(
        [RatePart(item.group, float(item.agrees)) for item in accepted], resampling
    )


def measure_share(parts: Sequence[RatePart], resampling: Resampling) -> Measure:
    """The share of hits, with its interval by groups where any is drawn; undefined for no parts."""
    if not parts:
        return Measure(None)
    rate = sum(part.hits for part in parts) / len(parts)
    return Measure(rate, *bootstrap(parts)) if resampling.draws else Measure(rate)


class VerdictItem(NamedTuple):
    """A labelled item: the judge's raw value, learned from others, its verdict, and that of the label."""

    raw: float
    passed: bool
    label: bool
    group: str


def find_guarantee(items: Sequence[VerdictItem], share: float) -> Guarantee:
    """The widest sides on which verdicts agree with labels in at least `share` of cases.

    Passes and failures are tested each by themselves, each with half of the error: neither makes up for the other.
    """
    error = (1 - Guarantee(share=share).confidence) / 2
    passing = [SideItem(item.raw, item.label, item.group) for item in items if item.passed]
    failing = [SideItem(-item.raw, not item.label, item.group) for item in items if not item.passed]
    passes_from = find_edge(passing, share=share, error=error) if passing else None
    edge = find_edge(failing, share=share, error=error) if failing else None
    fails_to = None if edge is None else -edge + 0.0
    return Guarantee(share=share, passes_from=passes_from, fails_to=fails_to)
