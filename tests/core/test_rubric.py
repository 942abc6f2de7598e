"""Rubrics: what is refused and where, what an extension changes, what the hash covers, and rubrics/schema.json for editors."""

# ruff: noqa: E501 (a row of a table stays on its line)
from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from service import InputError, Registry, score
from service.core.rubric import STAGES, Rubric
from service.core.rubric_extension import build_rubric_schema
from service.errors import RubricError, UnknownRubricError
from service.reading.packaged_files import find_resource, read_yaml

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


REFUSED = [
    ("no criterion", rubric() | {"criteria": []}, "/rubric/criteria", ""),
    ("an id twice", rubric(DECIDE, SCHEMA | {"id": "a"}), "/rubric", "criterion ids are unique; twice: a"),
    ("an unknown check", rubric(DECIDE, SCHEMA | {"check": {"kind": "nope"}}), "/rubric/criteria/1/check", "no kind 'nope' is known; known: answer,"),
    ("no check", rubric({"id": "a", "stage": "decide"}), "/rubric/criteria/0/check", ""),
    ("an unknown stage", rubric(DECIDE | {"stage": "guess"}), "/rubric/criteria/0/stage", ""),
    ("an unknown matcher", rubric(DECIDE | {"check": {"kind": "arguments", "critics": {"/a/b": {"kind": "nope"}}}}),
     "/rubric/criteria/0/check/critics/~1a~1b", "no kind 'nope' is known; known: any_of,"),
    ("an unknown setting", rubric(DECIDE | {"check": {"kind": "schema", "format": True}}), "/rubric/criteria/0/check/format",
     "no field of that name is known here"),
    ("an unknown normalisation", rubric(DECIDE | {"check": {"kind": "equivalent", "normalise": ["trim"]}}),
     "/rubric/criteria/0/check/normalise/0", ""),
    ("a negative weight", rubric(DECIDE | {"weight": -1}), "/rubric/criteria/0/weight", ""),
    ("a weight whose sums overflow", rubric(DECIDE | {"weight": 1e308}, SCHEMA | {"weight": 1e308}), "/rubric/criteria/0/weight", ""),
    ("an endless weight of a published method", rubric({"id": "a", "stage": "select", "check": {"kind": "arcade", "tool_selection_weight": float("inf")}}),
     "/rubric/criteria/0/check/tool_selection_weight", ""),
    ("an unknown weight", rubric(DECIDE | {"weight": "huge"}), "/rubric/criteria/0/weight", ""),
    ("no weight at all", rubric(DECIDE | {"weight": 0}), "/rubric", "at least one criterion needs a weight above 0"),
    ("no weight in any stage", rubric(stages={"decide": 0}), "/rubric", "at least one criterion needs a weight above 0"),
    ("warn below fail", rubric(thresholds={"fail": 0.8, "warn": 0.7}), "/rubric",
     "warn (0.7) lies below fail (0.8); no score could ever warn"),
    ("warn below the usual fail", rubric(thresholds={"warn": 0.5}), "/rubric", "warn (0.5) lies below fail (0.8)"),
    ("a threshold over 1", rubric(thresholds={"warn": 1.1}), "/rubric/thresholds/warn", ""),
    ("an id with a space", rubric() | {"id": "my rubric"}, "/rubric/id", ""),
    ("an unknown judge", rubric(asks("nobody")), "/rubric", "no judge nobody; known: argument_plausibility, "),
    ("a scale of one label", rubric(judges=[JUDGE | {"scale": {"yes": 1.0}}]), "/rubric/judges/0/scale", ""),
    ("a scale over 1", rubric(judges=[JUDGE | {"scale": {"yes": 5, "no": 0}}]), "/rubric/judges/0/scale/yes", ""),
    ("an unknown rubric", "nope", "/rubric", "no rubric 'nope'; known: "),
    ("another version", "four_step@9", "/rubric", "no rubric 'four_step@9'; known: "),
    ("extends nothing known", {"extends": "nope"}, "/rubric", "no rubric 'nope'; known: "),
    ("without what is not there", {"extends": "four_step", "without": ["nope"]}, "/rubric/without", "four_step has no criterion nope"),
    ("without everything", {"extends": "bfcl_ast", "without": ["ast"]}, "/rubric", ""),
    ("an extension that asks an unknown judge", {"extends": "arcade", "criteria": [asks("nobody")]}, "/rubric", "no judge nobody"),
    ("an extension that warns below fail", {"extends": "arcade", "thresholds": {"fail": 0.9, "warn": 0.1}}, "/rubric",
     "warn (0.1) lies below fail (0.9)"),
    ("a judge twice", rubric(judges=[JUDGE, JUDGE]), "/rubric", "judge ids are unique; twice: "),
    ("an extension with an id twice", {"extends": "arcade", "criteria": [DECIDE, DECIDE]}, "/rubric/criteria", "ids are unique; twice: a"),
    ("an extension with a judge twice", {"extends": "arcade", "judges": [JUDGE, JUDGE]}, "/rubric/judges", "ids are unique; twice: "),
    ("an extension that leaves out what it adds", {"extends": "four_step", "without": ["schema"], "criteria": [SCHEMA | {"id": "schema"}]},
     "/rubric/criteria/0", "schema is left out by `without`"),
    ("an extension with a misspelt field", {"extends": "arcade", "compact": True}, "/rubric/compact",
     "no field of that name is known here"),
]  # fmt: skip


@pytest.mark.parametrize(("choice", "path", "message"), [case[1:] for case in REFUSED], ids=[c[0] for c in REFUSED])
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
    changed = registry.find(
        extension({"extends": "arcade", "compat": True, "thresholds": {"fail": 0.5}, "criteria": [SCHEMA]})
    )
    assert (changed.id, changed.version, changed.compat) == (base.id, base.version, True)
    assert (changed.thresholds.fail, changed.thresholds.warn) == (0.5, 0.9)
    assert [criterion.id for criterion in changed.criteria] == [*(c.id for c in base.criteria), "b"]
    assert (changed.fold_names, changed.extra_calls) == (base.fold_names, base.extra_calls)
    assert changed.digest != base.digest


def extension(written: dict[str, Any]) -> Any:
    from service.core.rubric_extension import Extension

    return Extension.model_validate(written)


def test_a_criterion_with_the_id_of_another_takes_its_place():
    registry = Registry()
    own = {"id": "schema", "stage": "arguments", "weight": 7, "check": {"kind": "schema", "formats": False}}
    changed = registry.find(extension({"extends": "four_step", "id": "mine", "criteria": [own], "without": ["order"]}))
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


@pytest.mark.parametrize(("written", "same"), [case[1:] for case in MOVED], ids=[case[0] for case in MOVED])
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
