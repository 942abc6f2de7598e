"""Certify fits: exact lower bounds of the passes and failures that their verdicts recognise, on the labels a run held out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from hashlib import sha256
from math import ceil

import numpy as np

from service.calibration.figures import HeldOutItem
from service.calibration.predictions import JudgedSet
from service.calibration.results import JudgeReport
from service.core.judging.fits.certificate import Certificate, Recognised, spend_error
from service.stats.corrected import code_groups
from service.stats.selective import compute_lower_bounds, estimate_icc

MOST_NEEDED = 100_000


def digest_labels(judges: Sequence[JudgeReport]) -> list[str]:
    """Return 16 hex digits for each label that judges were held out on, whatever they said of it, in order."""
    rows = {(judge.criterion, one.id, one.group, one.label) for judge in judges for one in judge.items}
    return sorted([sha256(json.dumps(row).encode()).hexdigest()[:16] for row in rows])


def digest_set(judges: Sequence[JudgeReport]) -> str:
    """Return the sha256 of all labels that judges were held out on, which certificates name."""
    return sha256("".join(digest_labels(judges)).encode()).hexdigest()


def certify(judges: Sequence[JudgeReport], *, tpr: float, tnr: float, look: int, made: date) -> dict[str, Certificate]:
    """Certify the fits of judges, by id. `tpr`, `tnr`: the shares of passes and failures that they must recognise."""
    labels, error, next_error = digest_set(judges), spend_error(look), spend_error(look + 1) / len(judges)

    def bound(items: Sequence[HeldOutItem], floor: float, *, label: bool) -> Recognised:
        own = [one for one in items if one.label is label]
        return bound_recognised(own, floor, (error, error / len(judges)), next_error)

    found: dict[str, Certificate] = {}
    for one in judges:
        passes, failures = bound(one.items, tpr, label=True), bound(one.items, tnr, label=False)
        found[one.fit.id] = Certificate(
            passes=passes, failures=failures, labels=labels, look=look, judges=len(judges), made=made
        )
    return found


def judge_fresh(report: JudgeReport, fresh: JudgedSet) -> JudgeReport:
    """Return the report of a judge with the verdicts that its fit gives to labels it was not made from, in place of its own."""
    fit, seen = report.fit, {*report.only_fitted, *[one.id for one in report.items]}
    items = {one.key: one for one in fresh.labels.items if one.criterion == report.criterion and one.id not in seen}
    own = [one for one in fresh.predictions if one.sample == 0 and one.binding == fit.binding]
    verdicts = [(items[one.id, one.criterion], one.weigh_by(fit)) for one in own if (one.id, one.criterion) in items]
    rows = [
        HeldOutItem(item.id, item.group, item.passes, raw, fit.calibrator.apply(raw), fit.passes(raw))
        for item, raw in verdicts
    ]
    return replace(report, items=tuple(rows))


def bound_recognised(
    items: Sequence[HeldOutItem], floor: float, errors: tuple[float, float], next_error: float
) -> Recognised:
    """Bound the share of these labels that verdicts match, at both errors; where groups repeat, by the effective sample size.

    `next_error`: what the next look at these labels and more may spend, by which the labels needed are counted.
    """
    right = np.array([one.right for one in items], dtype=np.bool_)
    if not len(right):
        needed = count_needed(1.0, floor, next_error)
        return Recognised(labels=0, recognised=0, low=0.0, low_in_all=0.0, floor=floor, needed=needed)
    groups = code_groups([one.group for one in items])
    effect = 1 + (float((np.bincount(groups) ** 2).sum()) / len(right) - 1) * estimate_icc(right, groups)
    k, n = np.array([right.sum()]) / effect, np.array([len(right)]) / effect
    low, low_in_all = [float(compute_lower_bounds(k, n, error)[0]) for error in errors]
    needed = None if low_in_all >= floor else count_needed(float(right.mean()), floor, next_error)
    return Recognised(
        labels=len(right),
        recognised=int(right.sum()),
        low=low,
        low_in_all=low_in_all,
        floor=floor,
        needed=None if needed is None else max(len(right) + 1, ceil(needed * effect)),
    )


def count_needed(share: float, floor: float, error: float) -> int | None:
    """Count the labels at which the exact lower bound of this share first reaches the floor; None where none would.

    >>> count_needed(1.0, 0.9, 0.05), count_needed(0.95, 0.9, 0.05), count_needed(0.9, 0.9, 0.05)
    (29, 116, None)
    """
    if share <= floor:
        return None
    n = np.arange(1, MOST_NEEDED + 1, dtype=np.float64)
    enough = np.flatnonzero(compute_lower_bounds(np.floor(n * share + 1e-9), n, error) >= floor)
    return int(enough[0]) + 1 if len(enough) else None
