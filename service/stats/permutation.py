"""A permutation test of whether scores rank passes above failures, which keeps the labels of a group together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from service.stats.corrected import code_groups
from service.stats.intervals import DRAWS, SEED
from service.stats.tallies import Floats


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
