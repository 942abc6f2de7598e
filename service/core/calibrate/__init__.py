"""From a judge's own value to the probability that a human would pass the item, and when that may be said.

A map is fitted elsewhere and applied here, without numpy. Every map is monotone and stays in [0, 1]. A fit is bound to the
very judge it was made for: another digest of its file, another model or another way to put the question is a mismatch.
"""

from service.core.calibrate.fits import (
    Applied,
    Binding,
    Fit,
    Method,
    Metric,
    Origin,
    Status,
    applied,
    calibrated,
)
from service.core.calibrate.maps import (
    Calibrated,
    Calibrator,
    Identity,
    Isotonic,
    Platt,
    Share,
    Temperature,
    VennAbers,
    log_odds,
    sigmoid,
)
from service.core.calibrate.snapshots import VERSION, unversioned

__all__ = [
    "VERSION",
    "Applied",
    "Binding",
    "Calibrated",
    "Calibrator",
    "Fit",
    "Identity",
    "Isotonic",
    "Method",
    "Metric",
    "Origin",
    "Platt",
    "Share",
    "Status",
    "Temperature",
    "VennAbers",
    "applied",
    "calibrated",
    "log_odds",
    "sigmoid",
    "unversioned",
]
