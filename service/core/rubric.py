"""A rubric: its criteria, their weights, and when a score fails. Data, versioned and hashed."""

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
from service.core.gates.custom import OWN_CHECKS, CustomGate
from service.core.judging.judges import WORDS, Judge, JudgeCheck
from service.core.models.discovery import import_all
from service.core.models.kinds import FrozenModel, Several, Some, TaggedUnion, list_kinds
from service.core.models.light import lazy
from service.core.outcome import Finding
from service.core.results.failures.patterns import Patterns
from service.core.weights import Weight, read_weight
from service.core.work_limits import MAX_CRITERIA, MAX_JUDGES

Stage = Literal["decide", "select", "arguments", "integrate", "sequence", "effect"]
STAGES: tuple[Stage, ...] = ("decide", "select", "arguments", "integrate", "sequence", "effect")
"""The four steps of the tool-use contract, then sequence and effect. A blocking check blocks later stages."""

for _package in (gates, methods, judging):
    import_all(_package)

CHECKS = list_kinds(Check)
"""The checks a rubric can name, by kind: gates, published methods, and the two that ask judges."""

Share = Annotated[float, Field(ge=0, le=1)]


class Thresholds(FrozenModel):
    """When a score fails or warns, and how much must be measured for a verdict."""

    fail: Share = 0.8
    """A score below this fails."""
    warn: Share = 0.9
    """A score from `fail` up to this warns."""
    min_coverage: Share = 0.5
    """If less of the applicable weight is measured, the verdict is `undecided`."""


class Criterion(FrozenModel):
    """One thing that is scored."""

    id: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    stage: Stage
    check: Annotated[Check, TaggedUnion()]
    weight: Weight = 1.0
    """How much it counts within its stage. 0 keeps it out of the score, though it may still block and fail."""
    blocking: bool = False
    """Whether a failure makes the verdict `fail` and blocks later checks, which then count as 0."""
    must_pass: bool = False
    """Whether a single outcome that does not pass makes the verdict `fail`, whatever its weight; one that is open may make it
    `undecided`."""
    aggregate: Aggregate | None = None
    """How its outcomes become one value: by mean or minimum. Absent: the default of the check."""


@dataclass(frozen=True, slots=True, eq=False)
class CompiledCriterion:
    """A criterion as scoring uses it, with all that depends on the rubric alone. Equal only to itself."""

    id: str
    stage: Stage
    rank: int
    """The position of its stage in `STAGES`."""
    weight: float
    blocking: bool
    must_pass: bool
    requires_outcome: bool
    """Whether the rubric says `must_pass` itself, so that outcomes left out count as open."""
    takes_minimum: bool
    """Whether its value is the minimum of its outcomes rather than their mean."""
    check: Check
    reads: frozenset[Aspect]
    """The aspects of an expectation that its check reads."""
    judged: bool

    @classmethod
    def of(cls, criterion: Criterion) -> CompiledCriterion:
        """Compile a criterion of a rubric."""
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
    """Refuse too many criteria before any is validated."""
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
    """The weight of each stage in the trace's score; a stage that is not named weighs 1. Absent: all criteria are weighed against
    each other directly."""
    verdict: Literal["score", "worst_stage"] = "score"
    """What the verdict of a trace or step depends on: its score alone, or also its stages, the worst of which decides. (A
    trace that fails at one stage fails, however well the others went.)"""
    fold_names: bool = False
    """Whether to ignore case in tool names and to treat `-`, `_` and `.` alike."""
    extra_calls: Literal["count", "allow"] = "count"
    """What an unexpected call does if the expectation does not say: `count` as 0, or `allow` it."""
    failed_tries: Literal["fold", "count"] = "fold"
    """A failed call that a later one repeats with success: `fold` takes both as one expected call, `count` counts each."""
    text_calls: Literal["open", "read", "fail"] = "open"
    """What a call is that a model wrote into its text, where its server's parser missed it: `open`, an unread call; `read`, a
    call, if it is closed, unambiguous and names a tool on offer; `fail`, a failure of the stage `decide` in its turn."""
    compat: bool = False
    """Whether checks that implement a published method give that system's own number, bugs included."""
    require_calibration: bool = False
    """Whether a judge's value counts only if a fit for that very judge applies. Otherwise it is left open, coverage falls, and
    the report says why."""
    judges: Several[Judge] = ()
    """Judges that come with this rubric."""
    errors: Patterns = ()
    """Patterns of results that report a failed call, or that only seem to, in formats without an error flag."""
    expected: Expectation | None = None
    """What is expected of every trace. A trace's own expectation takes precedence."""

    @field_serializer("expected")
    def _serialize_given_fields(self, expected: Expectation | None) -> dict[str, JsonValue] | None:
        return expected and expected.model_dump(mode="json", exclude_unset=True)

    @model_validator(mode="after")
    def _check_consistency(self) -> Rubric:
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
        warn, fail = self.thresholds.warn, self.thresholds.fail
        if warn < fail and not self.compat:  # a published system may order them the other way round
            raise ValueError(f"thresholds: warn ({warn}) lies below fail ({fail}); no score could ever warn")
        if self.compat and not any(c.check.has_own_number for c in self.criteria):
            raise ValueError("`compat` asks for a published system's own number, and no criterion here carries one")
        stages = self.stages or {}
        if not any(read_weight(c.weight) and read_weight(stages.get(c.stage, 1.0)) for c in self.criteria):
            raise ValueError("at least one criterion needs a weight above 0, in a stage with a weight above 0")
        return self

    @lazy
    def compiled_criteria(self) -> tuple[CompiledCriterion, ...]:
        """The criteria ordered by stage, then id: their order in the file means nothing."""
        return tuple(sorted(map(CompiledCriterion.of, self.criteria), key=lambda one: (one.rank, one.id)))

    @lazy
    def fold_cache(self) -> dict[object, object]:
        """A cache of folded results, filled and bounded by `service.core.scores`."""
        return {}

    @lazy
    def has_idle_checks(self) -> bool:
        """Whether any of its checks is idle when an expectation does not specify what it reads."""
        return any(one.check.idle_outcome is not None for one in self.compiled_criteria)

    @lazy
    def waits(self) -> bool:
        """Whether any of its checks is a coroutine of the user's own, which must not run on an event loop."""
        return any(isinstance(one.check, CustomGate) and OWN_CHECKS[one.check.name].waits for one in self.criteria)

    @lazy
    def plan_cache(self) -> dict[object, object]:
        """A cache of how its criteria divide by what an expectation says, filled by `service.core.plan`."""
        return {}

    @lazy
    def unused_judges(self) -> tuple[Finding, ...]:
        """A finding for each of its judges that no criterion asks."""
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
        for name in ("require_calibration", "errors", "expected"):  # which rubrics had not from the beginning
            if not getattr(self, name):
                del written[name]
        written["criteria"] = sorted(written["criteria"], key=lambda criterion: criterion["id"])
        text = json.dumps(written, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return sha256(text.encode()).hexdigest()

    @lazy
    def matching(self) -> Matching:
        """The rules for pairing calls. The first check that compares arguments decides between calls of one tool."""
        scorers = [c.check for c in self.compiled_criteria if type(c.check).score_pair is not Check.score_pair]
        return Matching(
            fold_names=self.fold_names,
            arguments=scorers[0] if scorers else ArgumentsGate(),
            extra_calls=self.extra_calls,
            failed_tries=self.failed_tries,
            compat=self.compat,
            fail_threshold=self.thresholds.fail,
            warn_threshold=self.thresholds.warn,
        )

    @lazy
    def judges_by_id(self) -> dict[str, Judge]:
        """The judges that come with it, by id."""
        return {judge.id: judge for judge in self.judges}

    @lazy
    def reads(self) -> frozenset[Aspect]:
        """The aspects of an expectation read by criteria that have a weight, block or must pass."""
        counted = [c for c in self.criteria if read_weight(c.weight) or c.blocking or c.must_pass]
        return frozenset(aspect for criterion in counted for aspect in criterion.check.aspects())

    @lazy
    def judge_ids(self) -> frozenset[str]:
        """The ids of the judges its criteria ask."""
        return frozenset[str]().union(*[{c.check.judge} for c in self.criteria if isinstance(c.check, JudgeCheck)])


def list_duplicates(ids: Iterable[str]) -> list[str]:
    """Return the ids given more than once, sorted."""
    return sorted([name for name, times in Counter(ids).items() if times > 1])


def add_judges(rubric: Rubric, known: Mapping[str, Judge]) -> Rubric:
    """Add the judges that the rubric asks but does not bring, and the one for matchers in words.

    Raises ValueError for an unknown judge.
    """
    missing = rubric.judge_ids - rubric.judges_by_id.keys()
    unknown = sorted(missing - known.keys())
    if unknown:
        raise ValueError(f"no judge {', '.join(unknown)}; known: {', '.join(sorted(known)) or 'none'}")
    missing |= {WORDS} & known.keys() - rubric.judges_by_id.keys()
    return change_rubric(rubric, judges=(*rubric.judges, *(known[name] for name in sorted(missing))))


def change_rubric(rubric: Rubric, **fields: object) -> Rubric:
    """Return a new rubric with other fields. (A pydantic copy would copy the cached properties too.)"""
    same = {name: getattr(rubric, name) for name in Rubric.model_fields}
    return Rubric.model_validate({**same, **fields})
