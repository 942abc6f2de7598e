"""Measure whether a judge tells held-out passes from failures; `service.core.judging.fits.usefulness` has the rule."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from service.calibration.bench import Bench
from service.calibration.figures import FigureRow, Resampling, compute_judge_figures, read_metrics
from service.core.judging.fits.usefulness import Discrimination
from service.stats.corrected import code_groups
from service.stats.intervals import DRAWS, SEED
from service.stats.tallies import Floats


def measure_discrimination(bench: Bench) -> Discrimination:
    """Measure a judge on its held-out items. Draws and seed are fixed: no option of a run makes a judge useful."""
    items = bench.held_out
    labels, groups = [item.passes for item in items], [item.group for item in items]
    raw = [bench.values[item.key].raw for item in items]
    verdicts = [bench.values[item.key].passed for item in items]
    rows = [FigureRow(one[0], "", *one[1:]) for one in zip(groups, raw, labels, verdicts, strict=True)]
    metrics = read_metrics(compute_judge_figures(rows, Resampling()).measures)
    p_value = compute_ranking_p(raw, labels, groups)
    found = Discrimination.model_construct(
        use="cannot tell",
        passing=sum(labels),
        failing=len(labels) - sum(labels),
        groups=len(set(groups)),
        auroc=metrics["auroc"],
        balanced_accuracy=metrics["balanced_accuracy"],
        kappa=metrics["kappa"],
        p_value=None if p_value is None else round(p_value, 6),
    )
    return found.model_copy(update={"use": found.judge_use()})


def compute_ranking_p(
    scores: Sequence[float], labels: Sequence[bool], groups: Sequence[str], *, count: int = DRAWS, seed: int = SEED
) -> float | None:
    """Compute the one-sided p-value of an AUROC as high if labels had nothing to do with scores; None for labels of one kind.

    Each draw shuffles the groups and lays their labels end to end over the items: labels of a group stay neighbours, and groups
    of equal size are permuted exactly. The observed order is one draw (Phipson and Smyth 2010, SAGMB 9:39).
    """
    if len(set(labels)) < 2:
        return None
    codes = code_groups(groups)
    order = np.argsort(codes, kind="stable")
    codes, passes = codes[order], np.asarray(labels, dtype=np.float64)[order]
    _, level, sizes = np.unique(np.asarray(scores, dtype=np.float64), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(sizes) - sizes / 2)[level][order]  # AUROC grows with the sum of the passes' middle ranks
    observed, rng, reached = float(ranks @ passes), np.random.default_rng(seed), 1
    for _ in range(count):
        keys: Floats = rng.random(len(set(groups)))
        shuffled = np.argsort(keys[codes], kind="stable")
        reached += float(ranks @ passes[shuffled]) >= observed
    return reached / (count + 1)
