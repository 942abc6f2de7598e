"""A rubric: which criteria, what each weighs, when a score fails. Data, versioned and hashed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Literal, cast

from pydantic import BeforeValidator, Field, JsonValue, field_serializer, model_validator

from service.core import gates, judging, methods
from service.core.case import Matching
from service.core.checks import Aggregate, Aspect, Check
from service.core.expectations.expectation import Expectation
from service.core.gates.arguments import ArgumentsGate
from service.core.judging.judges import WORDS, Judge, JudgeCheck
from service.core.models.discovery import import_all
from service.core.models.kinds import FrozenModel, Several, Some, TaggedUnion, list_kinds
from service.core.models.lazy import lazy
from service.core.outcome import Finding
from service.core.results.failures.patterns import Patterns
from service.core.weights import Weight, read_weight
from service.core.work_limits import MAX_CRITERIA, MAX_JUDGES

Stage = Literal["decide", "select", "arguments", "integrate", "sequence", "effect"]
STAGES: tuple[Stage, ...] = ("decide", "select", "arguments", "integrate", "sequence", "effect")
"""The four steps of the contract, then sequence and effect. A blocking check blocks later stages."""

for _package in (gates, methods, judging):
    import_all(_package)

CHECKS = list_kinds(Check)
"""The checks a rubric can name, by kind: those of the gates, of the published methods, and the two that ask judges."""

Share = Annotated[float, Field(ge=0, le=1)]


class Thresholds(FrozenModel):
    """When a score fails or warns, and how much must have been measured to say so."""

    fail: Share = 0.8
    """A score below this fails."""
    warn: Share = 0.9
    """A score from `fail` up to this warns."""
    min_coverage: Share = 0.5
    """With less of the applicable weight measured the verdict is `abstain`."""

    def require_order(self) -> None:
        """Raises ValueError where no score could ever warn."""
        if self.warn < self.fail:
            raise ValueError(f"thresholds: warn ({self.warn}) lies below fail ({self.fail}); no score could ever warn")


class Criterion(FrozenModel):
    """One thing that is scored."""

    id: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    stage: Stage
    check: Annotated[Check, TaggedUnion()]
    weight: Weight = 1.0
    """How much it counts within its stage; 0 keeps it out of the score (it may still block and fail)."""
    blocking: bool = False
    """Whether failing makes the verdict `fail` and leaves what comes later unscored, counted as 0."""
    must_pass: bool = False
    """Whether one outcome that does not pass makes the verdict `fail`, however little it weighs, and too little measured
    of it `abstain`."""
    aggregate: Aggregate | None = None
    """How its outcomes become one value: their mean or their minimum. Absent: as the check has it."""


@dataclass(frozen=True, slots=True, eq=False)
class CompiledCriterion:
    """A criterion as scoring uses it: what is worked out once for a rubric instead of once for a trace. Equal to itself alone."""

    id: str
    stage: Stage
    rank: int
    """The place of its stage in the contract."""
    weight: float
    blocking: bool
    must_pass: bool
    requires_outcome: bool
    """Whether it was asked for by name that it pass, so that not knowing is not enough."""
    takes_minimum: bool
    """Whether the minimum of its outcomes is its value, not their mean."""
    check: Check
    reads: frozenset[Aspect]
    """What of an expectation its check reads."""
    judged: bool

    @classmethod
    def of(cls, criterion: Criterion) -> CompiledCriterion:
        """A criterion as a rubric has it, compiled."""
        check = criterion.check
        return cls(
            id=criterion.id,
            stage=criterion.stage,
            rank=STAGES.index(criterion.stage),
            weight=read_weight(criterion.weight),
            blocking=criterion.blocking,
            must_pass=criterion.must_pass or criterion.blocking,
            requires_outcome=criterion.must_pass,
            takes_minimum=(criterion.aggregate or type(check).default_aggregate) == "min",
            check=check,
            reads=check.aspects(),
            judged=isinstance(check, JudgeCheck),
        )


def limit_criteria(given: object) -> object:
    """Refuses more criteria than a rubric may have before any is read."""
    many = len(cast("list[object]", given)) if isinstance(given, list | tuple) else 0
    if many > MAX_CRITERIA:
        raise ValueError(f"{many} criteria; at most {MAX_CRITERIA} are taken")
    return cast("object", given)


class Rubric(FrozenModel):
    """Criteria with weights and thresholds."""

    id: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    version: int = Field(default=1, ge=1)
    title: str = ""
    description: str = ""
    criteria: Annotated[Some[Criterion], BeforeValidator(limit_criteria)]
    thresholds: Thresholds = Thresholds()
    stages: dict[Stage, Weight] | None = None
    """Weight of each stage in the trace's score (a stage that is not named weighs 1). Absent: the criteria of all stages
    are weighed against each other directly."""
    verdict: Literal["score", "worst_stage"] = "score"
    """What the verdict of a trace or step rests on: its score alone, or also its stages, of which the worst decides. (A
    contract broken at one step is broken, however well the others went.)"""
    fold_names: bool = False
    """Whether tool names are compared without case and with `-`, `_`, `.` as one."""
    extra_calls: Literal["count", "allow"] = "count"
    """What an unexpected call does where the expectation does not say: counts as 0, or nothing."""
    compat: bool = False
    """Whether checks that carry a published system's method give that system's own number, bugs included."""
    require_calibration: bool = False
    """Whether a judge's value counts only where it is calibrated for that very judge. Where it is not, it is left out as if it
    could not be measured, so that coverage falls, and the report says why."""
    judges: Several[Judge] = ()
    """Judges that this rubric brings with it."""
    errors: Patterns = ()
    """How results say that a call failed where their format has no mark for it, and how they do not."""
    expected: Expectation | None = None
    """What is expected of every trace, beside what is expected of it alone, whose word goes first."""
    families: dict[str, Several[str]] = Field(default_factory=dict[str, tuple[str, ...]])
    """Tools that are easily taken for one another, by a name for each such family: a summary counts these near misses."""

    @field_serializer("expected")
    def _write_what_was_said(self, expected: Expectation | None) -> dict[str, JsonValue] | None:
        return expected and expected.model_dump(mode="json", exclude_unset=True)

    @model_validator(mode="after")
    def _consistent(self) -> Rubric:
        if len(self.judges) > MAX_JUDGES:
            raise ValueError(f"{len(self.judges)} judges; at most {MAX_JUDGES} come with a rubric")
        ids = [criterion.id for criterion in self.criteria]
        for of, given in (("criterion", ids), ("judge", [judge.id for judge in self.judges])):
            twice = list_duplicates(given)
            if twice:
                raise ValueError(f"{of} ids are unique; twice: {', '.join(twice)}")
        named = {c.check.unless for c in self.criteria if isinstance(c.check, JudgeCheck) and c.check.unless}
        if named - set(ids):
            raise ValueError(f"`unless` names no criterion: {', '.join(sorted(named - set(ids)))}")
        if not self.compat:  # a published system may have them the other way round
            self.thresholds.require_order()
        if self.compat and not any(c.check.has_own_number for c in self.criteria):
            raise ValueError("`compat` asks for a published system's own number, and no criterion here carries one")
        stages = self.stages or {}
        if not any(read_weight(c.weight) and read_weight(stages.get(c.stage, 1.0)) for c in self.criteria):
            raise ValueError("at least one criterion needs a weight above 0, in a stage with a weight above 0")
        return self

    @lazy
    def compiled_criteria(self) -> tuple[CompiledCriterion, ...]:
        """The criteria in the order of their stages, then ids: their order of writing means nothing."""
        return tuple(
            sorted(map(CompiledCriterion.of, self.criteria), key=lambda criterion: (criterion.rank, criterion.id))
        )

    @lazy
    def fold_cache(self) -> dict[object, object]:
        """What its criteria came to before, by what each of them did: kept by whoever folds them, and bounded there."""
        return {}

    @lazy
    def has_idle_checks(self) -> bool:
        """Whether any of its checks has nothing to look at where an expectation does not speak of it."""
        return any(one.check.idle_outcome is not None for one in self.compiled_criteria)

    @lazy
    def plan_cache(self) -> dict[object, object]:
        """How its criteria divide, by what an expectation says beside the calls: kept by whoever plans."""
        return {}

    @lazy
    def unused_judges(self) -> tuple[Finding, ...]:
        """The judges it brings that no criterion asks, each as an oversight."""
        said = f"no criterion of {self.id} asks the judge"
        idle = [(n, one.id) for n, one in enumerate(self.judges) if one.id not in {*self.judge_ids, WORDS}]
        return tuple([Finding("unused_judge", f"{said} {name}", f"/rubric/judges/{n}") for n, name in idle])

    @lazy
    def stage_weights(self) -> dict[Stage, float]:
        """The weight of every stage."""
        return {stage: read_weight((self.stages or {}).get(stage, 1.0)) for stage in STAGES}

    @lazy
    def digest(self) -> str:
        """sha256 of the canonical JSON of everything in the rubric that scores: 64 hex digits."""
        written = self.model_dump(mode="json")
        del written["families"]  # they say how reports are summed up, never what is in one
        if not self.require_calibration:  # as it was before there was such a thing
            del written["require_calibration"]
        if not self.errors:  # likewise
            del written["errors"]
        if self.expected is None:  # likewise
            del written["expected"]
        written["criteria"] = sorted(written["criteria"], key=lambda criterion: criterion["id"])
        text = json.dumps(written, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return sha256(text.encode()).hexdigest()

    @lazy
    def matching(self) -> Matching:
        """How calls are paired: the first check that compares arguments decides between calls of one tool."""
        scorers = [c.check for c in self.compiled_criteria if type(c.check).score_pair is not Check.score_pair]
        return Matching(
            fold_names=self.fold_names,
            arguments=scorers[0] if scorers else ArgumentsGate(),
            extra_calls=self.extra_calls,
            compat=self.compat,
            fail_threshold=self.thresholds.fail,
            warn_threshold=self.thresholds.warn,
        )

    @lazy
    def judges_by_id(self) -> dict[str, Judge]:
        """The judges it brings, by id."""
        return {judge.id: judge for judge in self.judges}

    @lazy
    def reads(self) -> frozenset[Aspect]:
        """What of an expectation those of its criteria look at that count for anything."""
        counted = [c for c in self.criteria if read_weight(c.weight) or c.blocking or c.must_pass]
        return frozenset(aspect for criterion in counted for aspect in criterion.check.aspects())

    @lazy
    def judge_ids(self) -> frozenset[str]:
        """The judges its criteria ask."""
        return frozenset[str]().union(*[c.check.judge_ids for c in self.criteria if isinstance(c.check, JudgeCheck)])


def list_duplicates(ids: Iterable[str]) -> list[str]:
    """Return the ids given more than once, sorted."""
    return sorted([name for name, times in Counter(ids).items() if times > 1])


def add_judges(rubric: Rubric, known: Mapping[str, Judge]) -> Rubric:
    """The rubric with the judges it asks and does not bring, and the one that matchers in words need.

    Raises ValueError for a judge that nobody knows.
    """
    wanted = rubric.judge_ids - rubric.judges_by_id.keys()
    unknown = sorted(wanted - known.keys())
    if unknown:
        raise ValueError(f"no judge {', '.join(unknown)}; known: {', '.join(sorted(known)) or 'none'}")
    wanted |= {WORDS} & known.keys() - rubric.judges_by_id.keys()
    complete = change_rubric(rubric, judges=(*rubric.judges, *(known[name] for name in sorted(wanted))))
    for one in complete.criteria:
        if isinstance(one.check, JudgeCheck):
            _require_one_level(one.id, one.check, complete.judges_by_id)
    return complete


def _require_one_level(criterion: str, check: JudgeCheck, judges: Mapping[str, Judge]) -> None:
    """Raises ValueError where the judges of a cascade are asked of different things."""
    first = judges[check.judge].level
    strange = [name for name in check.then if judges[name].level != first]
    if strange:
        level = judges[strange[0]].level
        raise ValueError(f"{criterion}: {check.judge} is asked of a {first}, and {strange[0]}, after it, of a {level}")


def change_rubric(rubric: Rubric, **fields: object) -> Rubric:
    """A new rubric with other fields. (A pydantic copy would take the cached properties along.)"""
    same = {name: getattr(rubric, name) for name in Rubric.model_fields}
    return Rubric.model_validate({**same, **fields})
