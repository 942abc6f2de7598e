"""A fitted map with all that it is bound to, and what becomes of a raw value by it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from hashlib import sha256
from typing import Annotated, Literal

from pydantic import Field

from service.core.judging.fits.maps import NOISE, Calibrator, Share
from service.core.judging.fits.snapshots import strip_version
from service.core.models.kinds import FrozenModel, Several, TaggedUnion
from service.core.models.lazy import lazy

Origin = Literal["human", "gold", "constructed"]
"""Where labels come from: people who looked at the item, right answers that were known beforehand, or a case that was
written to show something. Only the first are human agreement."""
Method = Literal["identity", "platt", "isotonic", "temperature", "venn_abers"]
Status = Literal["calibrated", "stale", "mismatched", "out_of_domain", "uncalibrated"]
"""calibrated: the value is that of a fit for this very judge. stale: its fit is too old, or was made with another snapshot of
the model. mismatched: there are only fits for another version of it or another model. out_of_domain: its raw value or its
stratum is none that was fitted. uncalibrated: there is no fit, or it rests on too few labels or on constructed ones. All but
the first leave the raw value as it is."""


@dataclass(frozen=True, slots=True)
class Binding:
    """The very judge that spoke."""

    judge: str
    digest: str
    """sha256 of the judge file in canonical JSON."""
    model: str
    """As the provider names it. Of a jury: the names in order, with + between them."""
    assembly: int = 1
    """The version of how questions are put and replies are read."""

    @property
    def fingerprint(self) -> str:
        """sha256 of all of it: 64 hex digits."""
        return _hash_value([self.judge, self.digest, self.model, self.assembly])


class Metric(FrozenModel):
    """A figure on items that were not fitted, with its 95 % interval; None where it is undefined."""

    value: float | None
    low: float | None = None
    high: float | None = None


class Fit(FrozenModel):
    """A map with all that says what it is for and how good it is. Plain data: one file of JSON for each."""

    judge: str
    judge_digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    model: str
    assembly: int = 1
    criterion: str
    method: Method
    """The method that was asked for or chosen; it is the kind of `calibrator`."""
    calibrator: Annotated[Calibrator, TaggedUnion()]
    origin: Origin
    labels: int = Field(ge=0)
    """Labelled items that the map was fitted to."""
    groups: int = Field(ge=0)
    enough: bool
    """Whether they are enough to call the result calibrated."""
    domain: Annotated[tuple[Share, Share], Field(strict=False)]
    """The lowest and highest raw value that was fitted."""
    strata: Several[str] = ()
    """The strata of the fitted items, in order; empty where an item had none."""
    threshold: Share
    """The least calibrated value that passes, chosen on the fitted items."""
    abstain: Annotated[tuple[Share, Share], Field(strict=False)] | None = None
    """Calibrated values from the first up to (not including) the second are too uncertain: ask a human."""
    statistics: dict[str, Metric] = Field(default_factory=dict[str, Metric])
    """On the held-out items, by name."""
    humans: dict[str, Metric] = Field(default_factory=dict[str, Metric])
    """The same figures for one human against another; empty where nobody labelled twice."""
    data: str = Field(pattern=r"^[0-9a-f]{64}$")
    """sha256 of the labelled set and the predictions, in whatever order they were."""
    seed: str = ""
    """What the split into fitted and held-out items was made with."""
    libraries: dict[str, str] = Field(default_factory=dict[str, str])
    notes: Several[str] = ()
    made: date | None = None
    """The day it was made, in UTC. None: nobody knows, and it does not age."""
    stale: bool = Field(default=False, exclude=True)
    """Whether it is too old to be applied: whoever reads it has a clock, and says so. It is not kept."""

    @lazy
    def id(self) -> str:
        """The judge, the criterion and the start of the digest of all but the day and the versions of libraries."""
        kept = self.model_dump(mode="json", exclude={"libraries", "made"})
        return f"{self.judge}/{self.criterion}/{_hash_value(kept)[:12]}"

    @lazy
    def binding(self) -> Binding:
        """The judge that it is for."""
        return Binding(self.judge, self.judge_digest, self.model, self.assembly)

    @property
    def fingerprint(self) -> str:
        """sha256 of the judge and the criterion: there is one place for the fit of each."""
        return _hash_value([self.binding.fingerprint, self.criterion])

    @property
    def usable(self) -> bool:
        """Whether a value may be called calibrated by it."""
        return self.enough and self.origin != "constructed"


@dataclass(frozen=True, slots=True)
class AppliedFit:
    """What became of a raw value: `value` is the calibrated one if `status` says so, else the raw one."""

    status: Status
    value: float
    fit: str | None = None
    """The id of the fit that was applied, or of the one that could not be."""
    interval: tuple[float, float] | None = None
    threshold: float | None = None
    """The least value that passes; None where the judge's own holds."""
    abstain: bool = False
    """Whether the value lies where a human should be asked."""


def calibrate_value(
    fits: Iterable[Fit], binding: Binding, criterion: str, raw: float, *, stratum: str | None = None
) -> AppliedFit:
    """What the fits make of a judge's raw value in [0, 1]. Of several that match, the one with the most labels.

    That one alone, also where it does not apply: a calibration that lapses makes room for no other.

    `stratum`: that of what was judged; None where it is not known.
    """
    own = [fit for fit in fits if fit.judge == binding.judge and fit.criterion == criterion]
    matching = [fit for fit in own if fit.binding == binding]
    if matching:
        best = max(matching, key=lambda fit: (fit.labels, fit.id))
        return apply_fit(best, raw, stratum=stratum)
    if not own:
        return AppliedFit("uncalibrated", raw)
    earlier = [fit.id for fit in own if _is_snapshot(fit.binding, binding)]
    return (
        AppliedFit("stale", raw, max(earlier))
        if earlier
        else AppliedFit("mismatched", raw, max([fit.id for fit in own]))
    )


def _is_snapshot(one: Binding, other: Binding) -> bool:
    """Whether they differ in the snapshot of one model alone."""
    return replace(one, model="") == replace(other, model="") and strip_version(one.model) == strip_version(other.model)


def apply_fit(fit: Fit, raw: float, *, stratum: str | None = None) -> AppliedFit:
    """What a fit that matches makes of a raw value in [0, 1]."""
    if not fit.usable:
        return AppliedFit("uncalibrated", raw, fit.id)
    if fit.stale:
        return AppliedFit("stale", raw, fit.id)
    low, high = fit.domain
    strange = stratum is not None and bool(fit.strata) and stratum not in fit.strata
    if strange or not low - NOISE <= raw <= high + NOISE:
        return AppliedFit("out_of_domain", raw, fit.id)
    value, interval = fit.calibrator.apply(raw)
    unsure = fit.abstain is not None and fit.abstain[0] <= value < fit.abstain[1]
    return AppliedFit("calibrated", value, fit.id, interval, fit.threshold, unsure)


def _hash_value(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return sha256(text.encode()).hexdigest()
