"""The tables of the manual name all there is, and nothing else."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from service.api.app import create_app
from service.errors import FaultCause
from service.problem_types import PAGE, TYPES
from service.store.access.callers import SCOPES
from tests.docs.generated import PARTS, list_parts, write_part
from tests.docs.pages import PAGES, Page

GENERATED = [pytest.param(page, *part, id=f"{page.path}-{part[0]}") for page in PAGES for part in list_parts(page)]


def test_the_scopes_are_those_of_the_service():
    assert Page("docs/service.md").table_names("## Scopes and tenants") == set(SCOPES)


@pytest.mark.parametrize(("page", "part", "text"), GENERATED)
def test_generated_parts_are_current(page: Page, part: str, text: str):
    assert text == write_part(part), "run: python -m tests.docs.generated"


def test_each_generated_part_is_on_one_page():
    assert sorted(case.values[1] for case in GENERATED) == sorted(PARTS)


def test_the_type_of_each_problem_leads_to_its_section():
    headings = re.findall(r"^### (.+)$", Page("docs/errors.md").text, re.MULTILINE)
    found = {f"#{heading.lower().replace(' ', '-')}" for heading in headings}
    assert {one.uri.removeprefix(PAGE) for one in TYPES} == found
    assert len({one.uri for one in TYPES}) == len(TYPES)


def test_each_cause_of_a_judge_without_an_answer_is_explained():
    assert Page("docs/errors.md").table_names("## Judges that gave no answer") == set(get_args(FaultCause))


def test_the_table_of_batches_names_all_its_routes():
    lines = [line.split("|")[1] for line in Page("docs/batches.md").text.splitlines() if line.startswith("| `")]
    rows = [re.findall(r"`(?:(GET|POST|DELETE) )?(/[^`]*)`", line) for line in lines]
    named = {(method or row[0][0], f"/v1/batches{path.rstrip('/')}") for row in rows for method, path in row}
    assert named == {route for route in routes() if route[1].startswith("/v1/batches")}


def routes() -> set[tuple[str, str]]:
    """Every method and path of the service."""
    paths = create_app().openapi()["paths"]
    return {
        (method.upper(), path.replace("{batch_id}", "{id}")) for path, methods in paths.items() for method in methods
    }
