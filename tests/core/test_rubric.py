"""Rubrics: what is refused and where, what an extension changes, what the hash covers, and rubrics/schema.json for editors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from service import InputError, Registry, score
from service.core.rubric import Rubric
from service.core.rubric_extension import Extension, build_rubric_schema
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


@pytest.mark.parametrize(("choice", "path", "message"), read_rows("rubrics/refused.yaml"))
def test_refused(choice, path, message):
    found = problems(choice)
    assert [said for place, said in found if place == path and message in said], found


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
