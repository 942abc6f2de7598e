"""Rubrics that extend another one, and what a rubric file may hold."""

from __future__ import annotations

from collections.abc import Set
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, JsonValue, TypeAdapter

from service.core.expectations.expectation import Expectation
from service.core.expectations.merging import merge_expectations
from service.core.judging.judges import Judge, JudgeCheck
from service.core.models.kinds import DEFERRED, FrozenModel, Several
from service.core.results.failures.patterns import Patterns
from service.core.rubric import Criterion, Rubric, Stage, Thresholds, change_rubric, limit_criteria, list_duplicates
from service.core.weights import Weight
from service.errors import RubricError


class Extension(FrozenModel):
    """Another rubric with changes: `{"extends": "arcade", "compat": true}`."""

    extends: str
    """The id of the rubric to extend."""
    id: str = Field(default="", pattern=r"^([a-z][a-z0-9_]*)?$")
    """Its own id. Absent: that of the base."""
    version: int | None = Field(default=None, ge=1)
    """Its own version. Absent: that of the base."""
    title: str | None = None
    description: str | None = None
    thresholds: Thresholds | None = None
    """Thresholds to change; the others stay."""
    stages: dict[Stage, Weight] | None = None
    """Stage weights to change; the others stay."""
    weights: dict[str, Weight] = Field(default_factory=dict[str, Weight])
    """New weights of criteria that otherwise stay the same, by id."""
    expected: Expectation | None = None
    """What is expected of every trace. It takes precedence over what the base expects."""
    verdict: Literal["score", "worst_stage"] | None = None
    fold_names: bool | None = None
    extra_calls: Literal["count", "allow"] | None = None
    failed_tries: Literal["fold", "count"] | None = None
    text_calls: Literal["open", "read", "fail"] | None = None
    compat: bool | None = None
    require_calibration: bool | None = None
    criteria: Annotated[Several[Criterion], BeforeValidator(limit_criteria)] = ()
    """Criteria to add; one with the id of an existing criterion replaces it."""
    without: Several[str] = ()
    """Ids of criteria to remove."""
    judges: Several[Judge] = ()
    errors: Patterns | None = None


_PLAIN = (
    "version",
    "title",
    "description",
    "verdict",
    "fold_names",
    "extra_calls",
    "failed_tries",
    "text_calls",
    "compat",
    "require_calibration",
    "errors",
)
"""The fields that an extension just replaces."""


def extend_rubric(base: Rubric, extension: Extension) -> Rubric:
    """Apply an extension to its base. Raises ValueError or RubricError for an unknown id in `without` or `weights`."""
    own = {criterion.id for criterion in base.criteria}
    unknown = sorted(set(extension.without) - own)
    if unknown:
        raise ValueError(f"{base.id} has no criterion {', '.join(unknown)}")
    unweighed = sorted(extension.weights.keys() - own - {criterion.id for criterion in extension.criteria})
    if unweighed:
        raise RubricError.at("/rubric/weights", f"{base.id} has no criterion {', '.join(unweighed)}")
    gone = frozenset(extension.without)
    _require_each_once(extension, gone)
    criteria = {one.id: one for one in (*base.criteria, *extension.criteria) if one.id not in gone}
    for name, one in criteria.items():
        changes: dict[str, object] = {"weight": extension.weights[name]} if name in extension.weights else {}
        if isinstance(one.check, JudgeCheck) and one.check.unless in gone:
            changes["check"] = one.check.model_copy(update={"unless": None})
        criteria[name] = one.model_copy(update=changes) if changes else one
    judges = {judge.id: judge for judge in (*base.judges, *extension.judges)}
    said = extension.thresholds
    thresholds = {} if said is None else {name: getattr(said, name) for name in said.model_fields_set}
    changed = {name: value for name in _PLAIN if (value := getattr(extension, name)) is not None}
    return change_rubric(
        base,
        **changed,
        thresholds=base.thresholds.model_copy(update=thresholds),
        stages=base.stages if extension.stages is None else {**(base.stages or {}), **extension.stages},
        expected=merge_expectations(extension.expected, base.expected),
        id=extension.id or base.id,
        criteria=tuple(criteria.values()),
        judges=tuple(judges.values()),
    )


def _require_each_once(extension: Extension, gone: Set[str]) -> None:
    """Raise RubricError if a criterion or judge of the extension would silently be dropped or replaced by another of its own."""
    for member, given in (("criteria", extension.criteria), ("judges", extension.judges)):
        twice = list_duplicates(one.id for one in given)
        if twice:
            raise RubricError.at(f"/rubric/{member}", f"ids are unique; twice: {', '.join(twice)}")
    for n, criterion in enumerate(extension.criteria):
        if criterion.id in gone:
            said = f"{criterion.id} is left out by `without`, which is for criteria that nothing takes the place of"
            raise RubricError.at(f"/rubric/criteria/{n}", said)


RUBRIC: TypeAdapter[Rubric | Extension] = TypeAdapter(Rubric | Extension, config=DEFERRED)
"""Validates a rubric file. Building it closes every union of kinds."""


def build_rubric_schema() -> dict[str, JsonValue]:
    """Build the JSON Schema of a rubric file, for editors."""
    described = RUBRIC.json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A callgrade rubric", **described}
