"""Steps of runs: the first wrong one."""

from __future__ import annotations

import pytest

from service.calibration.diagnostics import JudgedStep, score_first_errors


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
    steps = [
        JudgedStep("r", at, "g", one == "+", other == "+")
        for at, (one, other) in enumerate(zip(said, labels, strict=True))
    ]
    assert score_first_errors(reversed(steps)) == [("g", named)]
