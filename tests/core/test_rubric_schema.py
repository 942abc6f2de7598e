"""rubrics/schema.json, for editors: fresh, and true of the rubrics that come along."""

from __future__ import annotations

from pathlib import Path

import jsonschema_rs
import pytest

from service.core.rubric_extension import build_rubric_schema
from service.reading.packaged_files import find_resource, read_yaml

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
