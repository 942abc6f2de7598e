"""Strata, and what to label next."""

from __future__ import annotations

from collections import Counter

from service.stats.sampling import Stratum, allocate_labels, compute_half_width, cut_strata_of_counts


def test_strata_never_part_equal_values() -> None:
    assert cut_strata_of_counts({0.1: 4, 0.5: 1, 0.9: 1}) == [(0.1, 0.1), (0.5, 0.9)]
    assert cut_strata_of_counts({0.3: 5}) == [(0.3, 0.3)]
    ranges = cut_strata_of_counts(Counter(n / 100 for n in range(100)))
    assert ranges == [(0.0, 0.24), (0.25, 0.49), (0.5, 0.74), (0.75, 0.99)]


def test_labels_go_where_they_tell_most() -> None:
    sure, unsure = Stratum(0, 0.1, 500, 20, 0), Stratum(0.4, 0.6, 500, 20, 10)
    more = allocate_labels([sure, unsure], 20)
    assert sum(more) == 20
    assert more[1] > 15
    assert compute_half_width([sure, unsure], more) < compute_half_width([sure, unsure], [10, 10])
    assert allocate_labels([Stratum(0, 0.1, 22, 20, 0), Stratum(0.4, 0.6, 21, 20, 10)], 20) == [2, 1]
    assert allocate_labels([sure, Stratum(0.2, 0.3, 10, 0, 0)], 1) == [0, 1]  # one without a label comes first
