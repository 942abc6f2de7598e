"""A fit for tests, as plain as can be."""

from __future__ import annotations

from typing import Any

from service.core.judging.fits.fit import Fit
from service.core.judging.fits.usefulness import Discrimination
from service.core.judging.judges import Ask
from service.core.judging.questions import ASSEMBLY

TOLD = {"use": "useful", "passing": 60, "failing": 40, "groups": 50, "p_value": 0.001}
USES: dict[str, dict[str, Any]] = {
    use: {
        **TOLD,
        "use": use,
        "auroc": dict(zip(("low", "value", "high"), auroc, strict=True)),
        "balanced_accuracy": dict(zip(("low", "value", "high"), balanced, strict=True)),
        "kappa": dict(zip(("low", "value", "high"), [2 * end - 1 for end in balanced], strict=True)),
    }
    for use, auroc, balanced in (
        ("useful", (0.7, 0.8, 0.9), (0.65, 0.75, 0.85)),
        ("useless", (0.4, 0.5, 0.6), (0.4, 0.5, 0.6)),
        ("inverted", (0.2, 0.29, 0.38), (0.4, 0.5, 0.6)),
        ("cannot tell", (0.45, 0.6, 0.75), (0.45, 0.6, 0.75)),
    )
}

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
    "discrimination": USES["useful"],
    "data": "b" * 64,
}


def make_fit(**changes: Any) -> Fit:
    """The fit with these fields changed."""
    return Fit.model_validate({**FIELDS, **changes})


def make_fit_of(ask: Ask, **changes: Any) -> Fit:
    """A fit of the very question that changes no value, with these fields changed."""
    judge = ask.judge
    bound = {"judge": judge.id, "judge_digest": judge.digest, "model": "+".join(judge.models or ("m",))}
    bound |= {"criterion": ask.criterion, "evidence": ask.evidence_digest}
    return make_fit(**{**bound, "assembly": ASSEMBLY, "threshold": judge.threshold, **changes})


def make_discrimination(use: str, *, verdict: str | None = None, **changes: Any) -> Discrimination:
    """What was measured of a judge of this use, with these figures changed, and perhaps the verdict."""
    return Discrimination.model_validate({**USES[use], **changes, "use": verdict or use})
