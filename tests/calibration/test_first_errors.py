"""Steps of runs: the first wrong one."""

from __future__ import annotations

import pytest

from service.calibration.report.held_out import names_first_error


@pytest.mark.parametrize(
    ("said", "labels", "named"),
    [
        ("++-", "++-", True),
        ("+-+", "++-", False),
        ("+++", "+++", True),
        ("++-", "+++", False),
        ("+++", "++-", False),
        ("+--", "+-+", True),
    ],
)
def test_the_first_wrong_step(said: str, labels: str, named: bool) -> None:
    assert names_first_error([one == "+" for one in said], [one == "+" for one in labels]) is named
