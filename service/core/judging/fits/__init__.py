"""Map a judge's raw value to the probability that a human would pass the item, where a fit allows it.

Maps are fitted elsewhere and applied here, without numpy. Every map is monotone and stays in [0, 1]. A fit is bound to
exactly the judge it was made for: another digest of its file, another model or another version of the prompt is a mismatch.
"""

from service.core.judging.fits.fit import (
    VERSION,
    AppliedFit,
    Binding,
    Fit,
    Method,
    Origin,
    Status,
    apply_fit,
    build_route,
    calibrate_value,
    join_models,
    strip_version,
)
from service.core.judging.fits.guarantee import Guarantee, GuaranteedShare
from service.core.judging.fits.maps import (
    Calibrator,
    Identity,
    Isotonic,
    Platt,
    Share,
    sigmoid,
)
from service.core.judging.fits.usefulness import Discrimination, Metric

__all__ = [
    "VERSION",
    "AppliedFit",
    "Binding",
    "Calibrator",
    "Discrimination",
    "Fit",
    "Guarantee",
    "GuaranteedShare",
    "Identity",
    "Isotonic",
    "Method",
    "Metric",
    "Origin",
    "Platt",
    "Share",
    "Status",
    "apply_fit",
    "build_route",
    "calibrate_value",
    "join_models",
    "sigmoid",
    "strip_version",
]
