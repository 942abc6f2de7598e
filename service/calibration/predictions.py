"""Judges' answers about labelled items, recorded earlier or just now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import NamedTuple

from pydantic import Field, TypeAdapter

from service.calibration.labels import Key, LabelledSet, parse_lines, read_labels, read_models
from service.core.judging.fits.fit import Binding, Fit, join_models
from service.core.judging.fits.maps import Share
from service.core.judging.judges import PASSING_VALUE
from service.core.models.kinds import FrozenModel, Several
from service.errors import InputError

RECORDED = "recorded"
"""The judge name of predictions that give none."""


class AnswerId(NamedTuple):
    """Which answer about which item."""

    id: str
    criterion: str
    sample: int = 0
    judge: str = RECORDED


class MemberAnswer(FrozenModel):
    """The answer of one model of a jury: the mean of its votes on a question."""

    model: str
    raw: Share
    cost_usd: float | None = Field(default=None, ge=0)
    latency_ms: float | None = Field(default=None, ge=0)


class Prediction(FrozenModel):
    """One answer of a judge: its raw value in [0, 1], where 1 means all is well.

    For an item about which several questions are asked it is the criterion's result: the lowest value.
    """

    id: str = Field(min_length=1)
    criterion: str = Field(min_length=1)
    raw: Share
    threshold: Share = PASSING_VALUE
    """The judge's own threshold: the lowest raw value that passes."""
    judge: str = RECORDED
    judge_digest: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    """sha256 of the judge file. Absent: the sha256 of the judge's name, and a fit binds to no judge file."""
    model: str = "unknown"
    """The model's name as the provider gives it."""
    assembly: int = 1
    evidence: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """sha256 of how code gathered evidence for the judge; empty where it was shown none."""
    route: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """sha256 of the route to the model: its address and the form of replies; empty for the default route."""
    sample: int = Field(default=0, ge=0)
    """Which of several answers to the same question, from 0."""
    reason: str = ""
    """The judge's reason, in its own words."""
    cost_usd: float | None = Field(default=None, ge=0)
    """The cost in dollars of all votes together; None: unknown."""
    latency_ms: float | None = Field(default=None, ge=0)
    """The time it took, in milliseconds; None: unknown, for example because it came from a cache."""
    members: Several[MemberAnswer] = ()
    """For a jury, the answer of each of its models; `raw` is then their mean."""
    group: str | None = Field(default=None, min_length=1)
    """The payload or conversation of an item that has no label; a labelled item names its own."""

    @property
    def passed(self) -> bool:
        """Whether it passes by the judge's own threshold."""
        return self.raw >= self.threshold

    @property
    def answer_id(self) -> AnswerId:
        """Which answer this is."""
        return AnswerId(self.id, self.criterion, self.sample, self.judge)

    def weigh_by(self, fit: Fit) -> float:
        """Return the raw value that a fit's map takes: for a jury, weighted by the fit."""
        return fit.weigh(self.raw, {member.model: member.raw for member in self.members})

    @property
    def binding(self) -> Binding:
        """The exact judge that answered."""
        digest = self.judge_digest or sha256(self.judge.encode()).hexdigest()
        return Binding(self.judge, digest, self.model, self.assembly, self.evidence, self.route)


@dataclass(frozen=True, slots=True)
class JudgePredictions:
    """All answers of one judge on one criterion: for each item its values, by sample."""

    binding: Binding
    criterion: str
    raw: Mapping[Key, tuple[float, ...]]
    title: str = ""
    first: Mapping[Key, Prediction] = field(default_factory=dict[Key, Prediction])
    """The first answer on each item; none for a jury."""
    costs: Mapping[Key, float] = field(default_factory=dict[Key, float])
    """The cost of the first answers in dollars, where known."""
    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    """For a jury, the weight of each model."""
    threshold: float = PASSING_VALUE
    """The judge's own threshold."""

    @property
    def name(self) -> str:
        """The name it goes by in reports."""
        judge, model = self.binding.judge, self.binding.model
        if self.title:
            return self.title
        return model if judge == RECORDED else judge if model == "unknown" else f"{judge} ({model})"


_PREDICTION: TypeAdapter[Prediction] = TypeAdapter(Prediction)


def read_predictions(lines: Iterable[str]) -> tuple[Prediction, ...]:
    """Read predictions from JSON Lines; InputError names each line, the place in it and what was expected."""
    predictions = read_models(parse_lines(lines), _PREDICTION)
    seen: dict[tuple[object, ...], int] = {}
    for line, one in predictions:
        key = (one.id, one.criterion, one.binding, one.sample)
        if key in seen:
            raise InputError.at(f"line {line}", f"{one.id!r} has sample {one.sample} of this judge in line {seen[key]}")
        seen[key] = line
    return tuple([one for _, one in predictions])


class JudgedSet(NamedTuple):
    """A labelled set with the recorded predictions of judges."""

    labels: LabelledSet
    predictions: tuple[Prediction, ...] = ()


def read_judged_set(lines: Iterable[str], *, source: str = "labels") -> JudgedSet:
    """Read labelled items and the predictions among them, which are the lines with `raw`. InputError names each bad line."""
    items, predictions = list[str](), list[str]()
    for line in lines:
        predicts = False
        with suppress(InputError):  # reported when the line is read as an item
            predicts = '"raw"' in line and any("raw" in row for _, row in parse_lines([line]))
        items.append("" if predicts else line)  # blank lines keep the line numbers
        predictions.append(line if predicts else "")
    return JudgedSet(read_labels(items, source=source), read_predictions(predictions))


class JuryId(NamedTuple):
    """A judge that lists several models."""

    criterion: str
    binding: Binding
    """The judge with all of its models."""


def split_juries(predictions: Iterable[Prediction]) -> tuple[list[Prediction], frozenset[JuryId]]:
    """Split each jury's answer into those of its models, and return all answers and the juries they came from.

    An answer that a model gave both as a member and alone counts once.
    """
    answers: dict[tuple[AnswerId, Binding], Prediction] = {}
    juries: set[JuryId] = set()
    for one in predictions:
        if one.members:
            models = join_models([member.model for member in one.members])
            juries.add(JuryId(one.criterion, replace(one.binding, model=models)))
        for alone in [one.model_copy(update={**dict(member), "members": ()}) for member in one.members] or [one]:
            answers.setdefault((alone.answer_id, alone.binding), alone)
    return list(answers.values()), frozenset(juries)


def group_by_judge(predictions: Iterable[Prediction]) -> tuple[JudgePredictions, ...]:
    """Group the predictions by judge and criterion, sorted by name; the values of an item are in the order of their samples."""
    by_judge: dict[tuple[str, Binding], dict[Key, list[Prediction]]] = defaultdict(lambda: defaultdict(list))
    for one in sorted(predictions, key=lambda one: one.answer_id):
        by_judge[one.criterion, one.binding][one.id, one.criterion].append(one)
    recorded = [
        JudgePredictions(
            binding,
            criterion,
            {key: tuple([one.raw for one in said]) for key, said in answers.items()},
            first={key: said[0] for key, said in answers.items()},
            costs={key: cost for key, said in answers.items() if (cost := said[0].cost_usd) is not None},
            threshold=next(iter(answers.values()))[0].threshold,
        )
        for (criterion, binding), answers in by_judge.items()
    ]
    return tuple(sorted(recorded, key=lambda one: (one.criterion, one.name, one.binding.fingerprint)))
