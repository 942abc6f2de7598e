"""A fit for tests, as plain as can be."""

from __future__ import annotations

from typing import Any

from service.core.judging.fits import Fit

FIELDS: dict[str, Any] = {
    "judge": "j",
    "judge_digest": "a" * 64,
    "model": "m",
    "criterion": "c",
    "method": "identity",
    "calibrator": {"kind": "identity"},
    "origin": "human",
    "labels": 100,
    "groups": 50,
    "enough": True,
    "domain": (0.0, 1.0),
    "threshold": 0.5,
    "statistics": {"auroc": {"value": 0.8, "low": 0.7, "high": 0.9}},
    "data": "b" * 64,
}


def make_fit(**changes: Any) -> Fit:
    """The fit with these fields changed."""
    return Fit.model_validate({**FIELDS, **changes})
