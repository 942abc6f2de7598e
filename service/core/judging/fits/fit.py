"""Fitted maps with everything they are bound to, and how to apply them to raw values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date
from hashlib import sha256
from math import fsum
from operator import not_
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, model_validator

from service.core.judging.fits.certificate import Certificate, Guarantee
from service.core.judging.fits.maps import NOISE, Calibrator, Share
from service.core.judging.fits.usefulness import Discrimination, Metric
from service.core.models.kinds import FrozenModel, Several, TaggedUnion
from service.core.models.light import lazy, light

Origin = Literal["human", "gold", "weak", "constructed"]
"""Where labels come from. human: people who looked at the item. gold: right answers known in advance. weak: thumbs and
corrections of users. constructed: cases written to show something. Only the first measure agreement with humans."""
Method = Literal["identity", "platt", "isotonic"]
Status = Literal["calibrated", "stale", "mismatched", "out_of_domain", "uncalibrated"]
"""calibrated: a fit for exactly this judge gave the value. stale: the fit is too old, or was made with another snapshot of
the model. mismatched: the only fits are for another version of the judge, another model or another way to it. out_of_domain: the
fit does not cover the raw value or the stratum. uncalibrated: there is no fit, or it rests on too few labels or on constructed
ones, or its judge is not useful. All but the first leave the judge's own value unchanged."""
JOINT = "+"
"""Separates the models of a jury in one name."""


def join_models(names: Iterable[str]) -> str:
    """Join the models of a jury into one name, each once and in alphabetical order.

    >>> join_models(["b", "a", "b"])
    'a+b'
    """
    return JOINT.join(sorted(set(names)))


@dataclass(frozen=True, slots=True, order=True)
class Binding:
    """The exact judge that answered, to which a fit is bound."""

    judge: str
    digest: str
    """sha256 of the judge file in canonical JSON."""
    model: str
    """The model by the provider's name; for a jury, the names in alphabetical order, joined by +."""
    assembly: int = 1
    """The version of prompts and reply reading (`questions.ASSEMBLY`)."""
    evidence: str = ""
    """sha256 of how code gathers the evidence that the judge is shown; empty if it is shown none."""
    route: str = ""
    """sha256 of the route to the model (`build_route`); empty: the default route."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", join_models(self.model.split(JOINT)))

    @property
    def models(self) -> tuple[str, ...]:
        """The name of each model."""
        return tuple(self.model.split(JOINT))

    @property
    def fields(self) -> dict[str, Any]:
        """The same as fields of a fit."""
        return {"judge_digest" if name == "digest" else name: value for name, value in asdict(self).items()}

    @property
    def fingerprint(self) -> str:
        """sha256 of the whole binding: 64 hex digits."""
        more = [self.evidence, self.route] if self.route else [self.evidence] if self.evidence else []
        return _hash_value([self.judge, self.digest, self.model, self.assembly, *more])


def build_route(*, api_base: str | None = None, reply: str = "auto") -> str:
    """Return the sha256 of the route to a model: its address, and how it is made to reply with an object.

    Empty for the default route: the provider's own address, `auto`.

    >>> build_route(), build_route(reply="text") == build_route(api_base="http://a/v1", reply="text")
    ('', False)
    """
    return _hash_value([api_base, reply]) if api_base or reply != "auto" else ""


MAX_WEIGHT_ERROR = 1e-6
"""The largest allowed difference between 1 and the sum of a jury's weights."""
MOST_NAME = 256
"""Most characters in the name of a judge or a criterion."""
MOST_MODELS = 2_000
"""Most characters in the joined names of a jury's models."""
PLAIN = r"^[^\x00-\x1f\x7f]+$"
"""Matches names without control characters."""


class Fit(FrozenModel):
    """A map, with what it is for and how good it is. Plain data, one JSON file per fit."""

    judge: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=MOST_NAME)
    judge_digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    model: str = Field(min_length=1, max_length=MOST_MODELS, pattern=PLAIN)
    assembly: int = 1
    evidence: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """sha256 of how code gathers the evidence that the judge is shown; empty if it is shown none."""
    route: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """sha256 of the route to the model (`build_route`); empty: the default route."""
    weights: dict[str, Share] = Field(default_factory=dict[str, Share])
    """For a jury, the weight of each model's value; they sum to 1. Empty: all models count alike."""
    criterion: str = Field(min_length=1, max_length=MOST_NAME, pattern=PLAIN)
    method: Method
    """The method that was requested or chosen; equals the kind of `calibrator`."""
    calibrator: Annotated[Calibrator, TaggedUnion()]
    origin: Origin
    labels: int = Field(ge=0)
    """The number of labelled items that the map was fitted to."""
    groups: int = Field(ge=0)
    enough: bool
    """Whether labels and groups suffice to call the result calibrated."""
    domain: Annotated[tuple[Share, Share], Field(strict=False)]
    """The lowest and the highest raw value among the fitted items."""
    strata: Several[str] = ()
    """The strata of the fitted items, in order; empty if any item had none."""
    threshold: Share
    """The lowest calibrated value that passes, chosen on the fitted items."""
    review_band: Annotated[tuple[Share, Share], Field(strict=False)] | None = None
    """Calibrated values from the first up to (not including) the second are too uncertain: ask a human. Absent with a
    guarantee, which leaves to others whatever it does not accept."""
    guarantee: Guarantee | None = None
    """What the fit guarantees about the verdicts it accepts; None: nothing."""
    discrimination: Discrimination | None = None
    """Whether its judge tells passes from failures; None: it was not tested, and the fit does not apply."""
    certificates: Several[Certificate] = Field(default=(), exclude_if=not_)
    """Each look at labels that was to certify it, in order; the last one counts."""
    statistics: dict[str, Metric] = Field(default_factory=dict[str, Metric])
    """Statistics by name, on items scored while held out."""
    humans: dict[str, Metric] = Field(default_factory=dict[str, Metric])
    """The same statistics for one human against another; empty if no item was labelled twice."""
    data: str = Field(pattern=r"^[0-9a-f]{64}$")
    """sha256 of the labelled set and the predictions, independent of their order."""
    seed: str = ""
    """The seed that dealt groups into folds."""
    libraries: dict[str, str] = Field(default_factory=dict[str, str])
    notes: Several[str] = ()
    made: Annotated[date, Field(strict=False)] | None = None
    """The day it was made, in UTC. None: unknown, and the fit never becomes stale by age."""
    stale: bool = Field(default=False, exclude=True)
    """Whether it is too old to apply. The reader of the file, which has a clock, sets it; it is never stored."""

    @model_validator(mode="after")
    def _check_whole(self) -> Fit:
        if self.weights and join_models(self.weights) != join_models(self.model.split(JOINT)):
            raise ValueError(f"weights are of {join_models(self.weights)}, and the fit is of {self.model}")
        if self.weights and abs(fsum(self.weights.values()) - 1) > MAX_WEIGHT_ERROR:
            raise ValueError(f"weights sum to {fsum(self.weights.values()):g}, and not to 1")
        if self.guarantee is not None and self.refusal:
            raise ValueError(f"a fit that is not useful guarantees nothing, and its judge is {self.refusal}")
        for name, bounds in (("domain", self.domain), ("review_band", self.review_band)):
            if bounds is not None and bounds[0] > bounds[1]:
                raise ValueError(f"{name} goes from {bounds[0]:g} to {bounds[1]:g}: its first number is the lower one")
        return self

    @lazy
    def id(self) -> str:
        """The judge, the criterion, and 12 hex digits of the digest of all but the day, library versions and certificates."""
        optional = ("weights", "evidence", "route", "guarantee", "discrimination")
        empty = [name for name in optional if not getattr(self, name)]
        kept = self.model_dump(mode="json", exclude={"libraries", "made", "certificates", *empty})
        return f"{self.judge}/{self.criterion}/{_hash_value(kept)[:12]}"

    @lazy
    def binding(self) -> Binding:
        """The exact judge that the fit is for."""
        return Binding(self.judge, self.judge_digest, self.model, self.assembly, self.evidence, self.route)

    @property
    def fingerprint(self) -> str:
        """sha256 of the judge and the criterion: at most one fit is in place for each."""
        return _hash_value([self.binding.fingerprint, self.criterion])

    def weigh(self, raw: float, members: Mapping[str, float] = MappingProxyType({})) -> float:
        """Return the raw value in [0, 1] that the map takes: weighted over a jury's models if there are weights, else `raw`.

        `members`: the raw value of each model; a missing one counts as `raw`.
        """
        if not self.weights:
            return raw
        return min(1.0, fsum([weight * members.get(model, raw) for model, weight in self.weights.items()]))

    def passes(self, raw: float) -> bool:
        """Whether the calibrated value of a raw one, as the map takes it, reaches the threshold."""
        return self.calibrator.apply(raw) >= self.threshold

    def is_unsure(self, raw: float, value: float) -> bool:
        """Whether a raw value in [0, 1] and its calibrated `value` leave the verdict to others."""
        if self.guarantee is not None:
            return not self.guarantee.accepts(raw)
        return self.review_band is not None and self.review_band[0] <= value < self.review_band[1]

    @property
    def usable(self) -> bool:
        """Whether the fit may call a value calibrated."""
        return self.enough and self.origin not in ("constructed", "weak")

    @property
    def certified(self) -> bool:
        """Whether its judge is useful, and the last look at labels certified it."""
        return not self.refusal and bool(self.certificates) and self.certificates[-1].certified

    @property
    def refusal(self) -> str:
        """Why its judge is not useful, so that the fit is neither installed nor applied; empty where it is."""
        if self.discrimination is None:
            return "cannot tell: it was never tested against chance; run the calibration again"
        return "" if self.discrimination.use == "useful" else self.discrimination.explain()


@light
class JudgeCalibration:
    """Whether the value is a measured probability that a human would pass the item (`Status`), and by which fit."""

    status: Status
    fit: str | None = None
    """The id of the fit that applied, or of the one that could not."""
    threshold: float | None = None
    """The lowest passing value, chosen with the fit; None where the judge's own threshold applies."""
    needs_human: bool = False
    """Whether the fit leaves this value to a human."""
    guarantee: Guarantee | None = None
    """What the fit guarantees about the verdicts it accepts."""
    certified: Annotated[bool, Field(exclude_if=not_)] = False
    """Whether the fit is certified to recognise passes and failures. Absent: it is not."""


class AppliedFit(NamedTuple):
    """The result of applying fits to a raw value: `value` is calibrated if the status says so, else it is the raw value."""

    raw: float
    """The value in [0, 1] that the fit took as input; for a jury, weighted."""
    value: float
    calibration: JudgeCalibration


def calibrate_value(
    fits: Iterable[Fit],
    binding: Binding,
    criterion: str,
    raw: float,
    *,
    members: Mapping[str, float] = MappingProxyType({}),
    stratum: str | None = None,
) -> AppliedFit:
    """Apply the fits to a judge's raw value in [0, 1]. Of several that match, only the one with the most labels counts.

    No other takes its place if it does not apply: a lapsed calibration makes room for no other.

    `members`: for a jury, the raw value of each model in the binding, for fits with weights. `stratum`: the stratum of the
    item; None if unknown.
    """
    own = [fit for fit in fits if fit.judge == binding.judge and fit.criterion == criterion]
    matching = [fit for fit in own if fit.binding == binding]
    if matching:
        best = max(matching, key=lambda fit: (fit.labels, fit.id))
        return apply_fit(best, best.weigh(raw, members), stratum=stratum)
    nameless, model = replace(binding, model=""), strip_version(binding.model)
    earlier = [
        fit.id for fit in own if replace(fit.binding, model="") == nameless and strip_version(fit.model) == model
    ]  # they differ only in the snapshots of their models
    status: Status = "stale" if earlier else "mismatched" if own else "uncalibrated"
    return AppliedFit(raw, raw, JudgeCalibration(status, max(earlier or [fit.id for fit in own], default=None)))


def apply_fit(fit: Fit, raw: float, *, stratum: str | None = None) -> AppliedFit:
    """Apply a matching fit to a raw value in [0, 1]."""
    low, high = fit.domain
    strange = stratum is not None and bool(fit.strata) and stratum not in fit.strata
    status: Status = "calibrated"
    if not fit.usable or fit.refusal:
        status = "uncalibrated"
    elif fit.stale:
        status = "stale"
    elif strange or not low - NOISE <= raw <= high + NOISE:
        status = "out_of_domain"
    if status != "calibrated":
        return AppliedFit(raw, raw, JudgeCalibration(status, fit.id))
    value = fit.calibrator.apply(raw)
    unsure = fit.is_unsure(raw, value)
    found = JudgeCalibration(status, fit.id, fit.threshold, unsure, fit.guarantee, fit.certified)
    return AppliedFit(raw, value, found)


VERSION = re.compile(r"[-:@](\d{3,8}|\d{4}-\d\d-\d\d|latest)")
"""A suffix of a model's name that is a version, not a size."""

_LAST = re.compile(VERSION.pattern + r"\Z")


def strip_version(model: str) -> str:
    """Return the model's name without provider and version; for a jury, the joined names of its members.

    >>> strip_version("openai/GPT-5-mini-2026-08-07"), strip_version("a-0613+b:latest"), strip_version("qwen3:8b")
    ('gpt-5-mini', 'a+b', 'qwen3:8b')
    """
    return "+".join(sorted(_LAST.sub("", one.rpartition("/")[2].casefold()) for one in model.split("+")))


def _hash_value(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return sha256(text.encode()).hexdigest()
