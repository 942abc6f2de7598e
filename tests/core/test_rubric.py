"""Rubrics: what is refused and where, what an extension changes, what the hash covers, and rubrics/schema.json for editors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from service import InputError, Registry, score
from service.core.rubric import STAGES, Rubric
from service.core.rubric_extension import Extension, build_rubric_schema
from service.errors import RubricError, UnknownRubricError
from service.reading.packaged_files import find_resource, read_yaml
from tests.tables import named, read_rows

DECIDE = {"id": "a", "stage": "decide", "check": {"kind": "decide"}}
SCHEMA = {"id": "b", "stage": "arguments", "check": {"kind": "schema"}}
JUDGE = {"id": "polite", "level": "trace", "question": "Is the answer polite?", "scale": {"yes": 1.0, "no": 0.0}}


def rubric(*criteria: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"id": "mine", "criteria": list(criteria or (DECIDE,)), **fields}


def problems(choice: Any) -> list[tuple[str, str]]:
    """What is wrong with a request for this rubric."""
    with pytest.raises(InputError) as caught:
        score({"trace": {"format": "callgrade", "events": []}, "rubric": choice})
    return [(problem.path, problem.message) for problem in caught.value.problems]


def asks(judge: str) -> dict[str, Any]:
    return {"id": "asked", "stage": "integrate", "check": {"kind": "judge", "judge": judge}}


@pytest.mark.parametrize(("choice", "path", "message"), read_rows("rubrics/refused.yaml"))
def test_refused(choice, path, message):
    found = problems(choice)
    assert [said for place, said in found if place == path and message in said], found


def test_an_unknown_rubric_is_an_error_of_its_own():
    with pytest.raises(UnknownRubricError):
        Registry().find("nope")
    with pytest.raises(RubricError) as caught:
        Registry().find(Rubric.model_validate(rubric(asks("nobody"))))
    assert not isinstance(caught.value, UnknownRubricError)


def test_a_rubric_may_bring_its_judge():
    found = Registry().complete(Rubric.model_validate(rubric(asks("polite"), judges=[JUDGE])))
    assert set(found.judges_by_id) == {"polite", "natural_language"}


def test_an_extension_changes_what_it_names_and_nothing_else():
    registry = Registry()
    base = registry.find("arcade")
    written = {"extends": "arcade", "compat": True, "thresholds": {"fail": 0.5}, "criteria": [SCHEMA]}
    changed = registry.find(Extension.model_validate(written))
    assert (changed.id, changed.version, changed.compat) == (base.id, base.version, True)
    assert (changed.thresholds.fail, changed.thresholds.warn) == (0.5, 0.9)
    assert [criterion.id for criterion in changed.criteria] == [*(c.id for c in base.criteria), "b"]
    assert (changed.fold_names, changed.extra_calls) == (base.fold_names, base.extra_calls)
    assert changed.digest != base.digest


def test_a_criterion_with_the_id_of_another_takes_its_place():
    registry = Registry()
    own = {"id": "schema", "stage": "arguments", "weight": 7, "check": {"kind": "schema", "formats": False}}
    written = {"extends": "four_step", "id": "mine", "criteria": [own], "without": ["order"]}
    changed = registry.find(Extension.model_validate(written))
    assert changed.id == "mine"
    assert [c.id for c in changed.criteria] == [c.id for c in registry.find("four_step").criteria if c.id != "order"]
    assert next(c.weight for c in changed.criteria if c.id == "schema") == 7


PLAIN = Rubric.model_validate(rubric(DECIDE, SCHEMA))
MOVED: list[tuple[str, dict[str, Any], bool]] = [
    ("the order of criteria", rubric(SCHEMA, DECIDE), True),
    ("what is a default anyway", rubric(DECIDE | {"weight": 1.0}, SCHEMA, compat=False), True),
    ("a weight", rubric(DECIDE | {"weight": 2}, SCHEMA), False),
    ("a setting of a check", rubric(DECIDE, SCHEMA | {"check": {"kind": "schema", "formats": False}}), False),
    ("a threshold", rubric(DECIDE, SCHEMA, thresholds={"fail": 0.7}), False),
    ("the version", rubric(DECIDE, SCHEMA, version=2), False),
    ("a judge", rubric(DECIDE, SCHEMA, judges=[JUDGE]), False),
]


@pytest.mark.parametrize(("written", "same"), named(MOVED))
def test_what_the_hash_covers(written, same):
    assert (Rubric.model_validate(written).digest == PLAIN.digest) is same


def test_compat_without_a_method_is_refused_and_never_silent():
    with pytest.raises(InputError, match="no criterion here carries one"):
        score({"rubric": {"extends": "three_layer", "compat": True}, "trace": {"format": "callgrade", "events": []}})


def test_criteria_stand_in_the_order_of_the_contract():
    written = [{"id": f"c{n}", "stage": stage, "check": {"kind": "decide"}} for n, stage in enumerate(reversed(STAGES))]
    compiled = Rubric.model_validate(rubric(*written)).compiled_criteria
    assert [criterion.stage for criterion in compiled] == list(STAGES)


@pytest.mark.parametrize(
    ("check", "aggregate", "worst"),
    [("schema", None, True), ("schema", "mean", False), ("arguments", None, False), ("arguments", "min", True)],
)
def test_how_a_criterion_folds_its_outcomes(check, aggregate, worst):
    written = {"id": "a", "stage": "arguments", "check": {"kind": check}, "aggregate": aggregate}
    assert Rubric.model_validate(rubric(written)).compiled_criteria[0].takes_minimum is worst


RUBRICS = sorted(find_resource("rubrics").glob("*.yaml"))


@pytest.fixture(scope="module")
def validator() -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(build_rubric_schema())


@pytest.mark.parametrize("file", RUBRICS, ids=lambda file: file.stem)
def test_the_packaged_rubrics_fit_it(validator: jsonschema_rs.Draft202012Validator, file: Path):
    document = read_yaml(file.read_text("utf-8"), source=file.name)
    assert [error.message for error in validator.iter_errors(document)] == []


@pytest.mark.parametrize(
    "wrong", [{}, {"id": "x"}, {"id": "x", "criteria": []}, {"id": "x", "criteria": [{"id": "a"}]}]
)
def test_it_refuses_what_is_no_rubric(validator, wrong):
    assert not validator.is_valid(wrong)
