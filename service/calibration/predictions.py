"""What judges said of labelled items, recorded earlier or just now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import NamedTuple

from pydantic import Field, TypeAdapter

from service.calibration.labels import Key, parse_lines, read_models
from service.core.judging.fits import Binding, Fit, Share, join_models
from service.core.models.kinds import FrozenModel, Several
from service.errors import InputError

RECORDED = "recorded"
"""The judge of predictions that name none."""


class AnswerId(NamedTuple):
    """Which answer about which item."""

    id: str
    criterion: str
    sample: int = 0
    judge: str = RECORDED


class MemberAnswer(FrozenModel):
    """What one model of a jury said: all its votes on a question together."""

    model: str
    raw: Share
    cost_usd: float | None = Field(default=None, ge=0)
    latency_ms: float | None = Field(default=None, ge=0)


class Prediction(FrozenModel):
    """One answer of a judge: its own value in [0, 1], 1 where all is well.

    Of an item about which several questions are asked it is what the criterion comes to: the value of the worst.
    """

    id: str = Field(min_length=1)
    criterion: str = Field(min_length=1)
    raw: Share
    judge: str = RECORDED
    judge_digest: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    """sha256 of the judge file. Absent: that of the judge's name, and a fit binds to no judge file."""
    model: str = "unknown"
    """As the provider names it."""
    assembly: int = 1
    evidence: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """sha256 of how code looked before the judge was asked; empty where it was shown no evidence."""
    route: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """sha256 of the way to the model: its address, what was masked; empty: as it is from the start."""
    sample: int = Field(default=0, ge=0)
    """Which of several answers to the same question."""
    reason: str = ""
    """Why, in the judge's own words."""
    cost_usd: float | None = Field(default=None, ge=0)
    """What it cost in dollars, all votes together; None: nobody knows."""
    latency_ms: float | None = Field(default=None, ge=0)
    """How long it took, in milliseconds; None: nobody knows, say because it came from a cache."""
    members: Several[MemberAnswer] = ()
    """Of a jury, what each of its models said; `raw` is then their mean."""
    group: str | None = Field(default=None, min_length=1)
    """The payload or conversation of an item that has no label; a labelled one says so itself."""

    @property
    def said(self) -> AnswerId:
        """Which answer it is."""
        return AnswerId(self.id, self.criterion, self.sample, self.judge)

    def weigh_by(self, fit: Fit) -> float:
        """The raw value that the map of a fit takes: of a jury, by its weights."""
        return fit.weigh(self.raw, {member.model: member.raw for member in self.members})

    @property
    def binding(self) -> Binding:
        """The very judge that spoke."""
        digest = self.judge_digest or sha256(self.judge.encode()).hexdigest()
        return Binding(self.judge, digest, self.model, self.assembly, self.evidence, self.route)


@dataclass(frozen=True, slots=True)
class JudgePredictions:
    """All that one judge said about one criterion: item -> its values, by sample."""

    binding: Binding
    criterion: str
    raw: Mapping[Key, tuple[float, ...]]
    title: str = ""
    reasons: Mapping[Key, str] = field(default_factory=dict[Key, str])
    """Why it said what it said first, where it told."""
    groups: Mapping[Key, str] = field(default_factory=dict[Key, str])
    """Those of its items, where its predictions name them."""
    costs: Mapping[Key, float] = field(default_factory=dict[Key, float])
    """What its first answers cost in dollars, where that is known."""
    latencies: Mapping[Key, float] = field(default_factory=dict[Key, float])
    """How long they took in milliseconds, likewise."""
    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    """Of a jury, how much each model counts."""

    @property
    def name(self) -> str:
        """What a report calls it."""
        judge, model = self.binding.judge, self.binding.model
        if self.title:
            return self.title
        return model if judge == RECORDED else judge if model == "unknown" else f"{judge} ({model})"


_PREDICTION: TypeAdapter[Prediction] = TypeAdapter(Prediction)


def read_predictions(lines: Iterable[str]) -> tuple[Prediction, ...]:
    """The predictions of JSON Lines; InputError names each line, the place in it and what was expected."""
    found = read_models(parse_lines(lines), _PREDICTION)
    seen: dict[tuple[object, ...], int] = {}
    for line, one in found:
        key = (one.id, one.criterion, one.binding, one.sample)
        if key in seen:
            raise InputError.at(f"line {line}", f"{one.id!r} has sample {one.sample} of this judge in line {seen[key]}")
        seen[key] = line
    return tuple([one for _, one in found])


class JuryId(NamedTuple):
    """A judge that lists several models."""

    criterion: str
    binding: Binding
    """With all of its models."""


def split_juries(predictions: Iterable[Prediction]) -> tuple[list[Prediction], frozenset[JuryId]]:
    """Each answer of a jury as those of its models, beside all that one model said; and which juries there are.

    What a model said as a member and by itself too counts once.
    """
    found: dict[tuple[AnswerId, Binding], Prediction] = {}
    juries: set[JuryId] = set()
    for one in predictions:
        if one.members:
            models = join_models([member.model for member in one.members])
            juries.add(JuryId(one.criterion, replace(one.binding, model=models)))
        for alone in [one.model_copy(update={**dict(member), "members": ()}) for member in one.members] or [one]:
            found.setdefault((alone.said, alone.binding), alone)
    return list(found.values()), frozenset(juries)


def group_by_judge(predictions: Iterable[Prediction]) -> tuple[JudgePredictions, ...]:
    """The predictions of each judge and criterion, in the order of their names."""
    found: dict[tuple[str, Binding], list[Prediction]] = defaultdict(list)
    for one in sorted(predictions, key=lambda one: one.said):
        found[one.criterion, one.binding].append(one)
    recorded = [_build_recorded(criterion, binding, said) for (criterion, binding), said in found.items()]
    return tuple(sorted(recorded, key=lambda one: (one.criterion, one.name, one.binding.fingerprint)))


def _build_recorded(criterion: str, binding: Binding, said: Iterable[Prediction]) -> JudgePredictions:
    """One judge's predictions; those of an item are in the order of their samples."""
    raw: dict[Key, tuple[float, ...]] = {}
    reasons: dict[Key, str] = {}
    groups: dict[Key, str] = {}
    costs: dict[Key, float] = {}
    latencies: dict[Key, float] = {}
    for one in said:
        key = (one.id, one.criterion)
        raw[key] = (*raw.get(key, ()), one.raw)
        reasons.setdefault(key, one.reason)
        if one.group is not None:
            groups[key] = one.group
        if one.cost_usd is not None:
            costs.setdefault(key, one.cost_usd)
        if one.latency_ms is not None:
            latencies.setdefault(key, one.latency_ms)
    told = {key: reason for key, reason in reasons.items() if reason}
    return JudgePredictions(binding, criterion, raw, reasons=told, groups=groups, costs=costs, latencies=latencies)
