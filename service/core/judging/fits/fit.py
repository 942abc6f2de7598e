"""A fitted map with all that it is bound to, and what becomes of a raw value by it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from hashlib import sha256
from math import fsum
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field, model_validator

from service.core.judging.fits.guarantee import Guarantee
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


JOINT = "+"
"""What stands between the models of a jury."""


def join_models(names: Iterable[str]) -> str:
    """The models of a jury as one name: each once, in whatever order they were asked.

    >>> join_models(["b", "a", "b"])
    'a+b'
    """
    return JOINT.join(sorted(set(names)))


@dataclass(frozen=True, slots=True, order=True)
class Binding:
    """The very judge that spoke."""

    judge: str
    digest: str
    """sha256 of the judge file in canonical JSON."""
    model: str
    """As the provider names it. Of a jury: the names in order of the alphabet, with + between them."""
    assembly: int = 1
    """The version of how questions are put and replies are read."""
    evidence: str = ""
    """sha256 of how code looks before the judge, which is shown what that finds; empty where nothing is shown."""
    route: str = ""
    """sha256 of the way to the model (`build_route`); empty: as it is from the start."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", join_models(self.model.split(JOINT)))

    @property
    def models(self) -> tuple[str, ...]:
        """Each model, by name."""
        return tuple(self.model.split(JOINT))

    @property
    def fingerprint(self) -> str:
        """sha256 of all of it: 64 hex digits."""
        more = [self.evidence, self.route] if self.route else [self.evidence] if self.evidence else []
        return _hash_value([self.judge, self.digest, self.model, self.assembly, *more])


def build_route(*, api_base: str | None = None, mask: Iterable[str] = (), reply: str = "auto") -> str:
    """sha256 of the way to a model: its address, what is masked, and how it is made to reply with an object.

    Empty where nothing is set: the provider's own address, nothing masked, `auto`.

    >>> build_route(), build_route(mask=["secrets"]) == build_route(api_base="http://a/v1", mask=["secrets"])
    ('', False)
    """
    masked = sorted(set(mask))
    return _hash_value([api_base, masked, reply]) if api_base or masked or reply != "auto" else ""


MAX_WEIGHT_ERROR = 1e-6
"""How far the sum of a jury's weights may lie from 1."""


MOST_NAME = 256
"""Characters of the name of a judge or a criterion at most."""
MOST_MODELS = 2_000
"""Characters of the names of a jury's models at most."""
PLAIN = r"^[^\x00-\x1f\x7f]+$"
"""Names without control characters."""


class Metric(FrozenModel):
    """A figure on items that were not fitted, with its 95 % interval; None where it is undefined."""

    value: float | None
    low: float | None = None
    high: float | None = None


class Fit(FrozenModel):
    """A map with all that says what it is for and how good it is. Plain data: one file of JSON for each."""

    judge: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=MOST_NAME)
    judge_digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    model: str = Field(min_length=1, max_length=MOST_MODELS, pattern=PLAIN)
    assembly: int = 1
    evidence: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """sha256 of how code looks before the judge; empty where the judge is shown no evidence."""
    route: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """sha256 of the way to the model (`build_route`); empty: as it is from the start."""
    weights: dict[str, Share] = Field(default_factory=dict[str, Share])
    """Of a jury: how much the value of each model counts, summing to 1. Empty: all alike."""
    criterion: str = Field(min_length=1, max_length=MOST_NAME, pattern=PLAIN)
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
    """Calibrated values from the first up to (not including) the second are too uncertain: ask a human. With a guarantee
    there is none: what that does not accept is."""
    guarantee: Guarantee | None = None
    """What it promises of the verdicts that it accepts; None: nothing."""
    statistics: dict[str, Metric] = Field(default_factory=dict[str, Metric])
    """By name, on items scored while held out."""
    humans: dict[str, Metric] = Field(default_factory=dict[str, Metric])
    """The same figures for one human against another; empty where nobody labelled twice."""
    data: str = Field(pattern=r"^[0-9a-f]{64}$")
    """sha256 of the labelled set and the predictions, in whatever order they were."""
    seed: str = ""
    """What groups were dealt out with."""
    libraries: dict[str, str] = Field(default_factory=dict[str, str])
    notes: Several[str] = ()
    made: date | None = None
    """The day it was made, in UTC. None: nobody knows, and it does not age."""
    stale: bool = Field(default=False, exclude=True)
    """Whether it is too old to be applied: whoever reads it has a clock, and says so. It is not kept."""

    @model_validator(mode="after")
    def _weigh_each(self) -> Fit:
        if self.weights and join_models(self.weights) != join_models(self.model.split(JOINT)):
            raise ValueError(f"weights are of {join_models(self.weights)}, and the fit is of {self.model}")
        if self.weights and abs(fsum(self.weights.values()) - 1) > MAX_WEIGHT_ERROR:
            raise ValueError(f"weights sum to {fsum(self.weights.values()):g}, and not to 1")
        return self

    @model_validator(mode="after")
    def _in_order(self) -> Fit:
        for name, bounds in (("domain", self.domain), ("abstain", self.abstain)):
            if bounds is not None and bounds[0] > bounds[1]:
                raise ValueError(f"{name} goes from {bounds[0]:g} to {bounds[1]:g}: its first number is the lower one")
        return self

    @lazy
    def id(self) -> str:
        """The judge, the criterion and the start of the digest of all but the day and the versions of libraries."""
        left_out = {
            "libraries",
            "made",
            *[name for name in ("weights", "evidence", "route", "guarantee") if not getattr(self, name)],
        }
        kept = self.model_dump(mode="json", exclude=left_out)
        return f"{self.judge}/{self.criterion}/{_hash_value(kept)[:12]}"

    @lazy
    def binding(self) -> Binding:
        """The judge that it is for."""
        return Binding(self.judge, self.judge_digest, self.model, self.assembly, self.evidence, self.route)

    @property
    def fingerprint(self) -> str:
        """sha256 of the judge and the criterion: there is one place for the fit of each."""
        return _hash_value([self.binding.fingerprint, self.criterion])

    def weigh(self, raw: float, members: Mapping[str, float] = MappingProxyType({})) -> float:
        """The raw value in [0, 1] that its map takes: that of a jury by its weights, else the one given.

        `members`: the raw value of each model; one that is not there counts as the given one.
        """
        if not self.weights:
            return raw
        return min(1.0, fsum([weight * members.get(model, raw) for model, weight in self.weights.items()]))

    def is_unsure(self, raw: float, value: float) -> bool:
        """Whether a raw value in [0, 1], and what the map makes of it, leave the verdict to others."""
        if self.guarantee is not None:
            return not self.guarantee.accepts(raw)
        return self.abstain is not None and self.abstain[0] <= value < self.abstain[1]

    @property
    def usable(self) -> bool:
        """Whether a value may be called calibrated by it."""
        return self.enough and self.origin != "constructed"


@dataclass(frozen=True, slots=True)
class AppliedFit:
    """What became of a raw value: `value` is the calibrated one if `status` says so, else the raw one."""

    status: Status
    raw: float
    """The value in [0, 1] that the fit took: of a jury, by its weights."""
    value: float
    fit: str | None = None
    """The id of the fit that was applied, or of the one that could not be."""
    interval: tuple[float, float] | None = None
    threshold: float | None = None
    """The least value that passes; None where the judge's own holds."""
    abstain: bool = False
    """Whether the value lies where a human should be asked."""
    guarantee: Guarantee | None = None
    """What the fit promises of what it accepts."""


def calibrate_value(
    fits: Iterable[Fit],
    binding: Binding,
    criterion: str,
    raw: float,
    *,
    members: Mapping[str, float] = MappingProxyType({}),
    stratum: str | None = None,
) -> AppliedFit:
    """What the fits make of a judge's raw value in [0, 1]. Of several that match, the one with the most labels.

    That one alone, also where it does not apply: a calibration that lapses makes room for no other.

    `members`: of a jury, the raw value of each of the binding's models; a fit with weights weighs these. `stratum`: that of
    what was judged; None where it is not known.
    """
    own = [fit for fit in fits if fit.judge == binding.judge and fit.criterion == criterion]
    matching = [fit for fit in own if fit.binding == binding]
    if matching:
        best = max(matching, key=lambda fit: (fit.labels, fit.id))
        return apply_fit(best, best.weigh(raw, members), stratum=stratum)
    if not own:
        return AppliedFit("uncalibrated", raw, raw)
    earlier = [fit.id for fit in own if _is_snapshot(fit.binding, binding)]
    return (
        AppliedFit("stale", raw, raw, max(earlier))
        if earlier
        else AppliedFit("mismatched", raw, raw, max([fit.id for fit in own]))
    )


def _is_snapshot(one: Binding, other: Binding) -> bool:
    """Whether they differ in the snapshot of one model alone."""
    return replace(one, model="") == replace(other, model="") and strip_version(one.model) == strip_version(other.model)


def apply_fit(fit: Fit, raw: float, *, stratum: str | None = None) -> AppliedFit:
    """What a fit that matches makes of a raw value in [0, 1]."""
    if not fit.usable:
        return AppliedFit("uncalibrated", raw, raw, fit.id)
    if fit.stale:
        return AppliedFit("stale", raw, raw, fit.id)
    low, high = fit.domain
    strange = stratum is not None and bool(fit.strata) and stratum not in fit.strata
    if strange or not low - NOISE <= raw <= high + NOISE:
        return AppliedFit("out_of_domain", raw, raw, fit.id)
    value, interval = fit.calibrator.apply(raw)
    return AppliedFit(
        "calibrated", raw, value, fit.id, interval, fit.threshold, fit.is_unsure(raw, value), fit.guarantee
    )


def _hash_value(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return sha256(text.encode()).hexdigest()
