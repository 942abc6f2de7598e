"""The tables of the manual name all there is, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pkgutil import resolve_name
from typing import Any

import pytest
import typer.main

import callgrade
from service.api.app import create_app
from service.cli.app import app
from service.problem_types import PAGE, TYPES
from service.settings import READ_ELSEWHERE, list_settings
from service.store.access.keys import SCOPES
from tests.docs.generated import PARTS, list_parts, metrics, write_part
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


@cache
def routes() -> set[tuple[str, str]]:
    """Every method and path of the service."""
    paths = create_app().openapi()["paths"]
    return {
        (method.upper(), path.replace("{batch_id}", "{id}")) for path, methods in paths.items() for method in methods
    }


MANUAL = [page for page in PAGES if page.path != "CONTRIBUTING.md"]
FOREIGN = {"--data-binary", "--callgrade-record", "--junit-xml", "--publish", "--volume"}
"""Options of curl, pytest and docker."""


@pytest.mark.parametrize("page", MANUAL, ids=lambda page: page.path)
def test_options_settings_and_routes_on_a_page_are_there(page: Page):
    settings = {one for one, _, _ in list_settings()}
    assert set(re.findall(r"(?<![\w-])--[a-z][\w-]+", page.text)) <= all_options() | FOREIGN
    assert set(re.findall(r"CALLGRADE_[A-Z_]*[A-Z](?![A-Z_*])", page.text)) <= settings | READ_ELSEWHERE
    named = re.findall(r"`(GET|POST|DELETE) (/v1/[^\s`?]*)", page.text)
    assert {(method, re.sub(r"\{\w+\}", "{}", path)) for method, path in named} <= {
        (method, re.sub(r"\{\w+\}", "{}", path)) for method, path in routes()
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_names_of_the_api_and_metrics_on_a_page_are_there(page: Page):
    exported = set(re.findall(r"(?<![\w./-])callgrade\.([A-Za-z_]\w*)", page.text)) - {"py", "yml", "plugins"}
    assert exported <= set(callgrade.__all__)
    assert set(re.findall(r"`([A-Z][a-z]+Error)`", page.text)) <= set(callgrade.__all__)
    for path in re.findall(r"`(service\.[\w.]*\w)`", page.text):
        assert resolve_name(path)
    counted = set(re.findall(r"`(callgrade_(?:batch|today_|store_|worker|judge_|http_)\w*)", page.text))
    assert counted <= set(re.findall(r"^\| `(\w+)`", metrics(), re.MULTILINE))


@cache
def all_options() -> frozenset[str]:
    return frozenset(list_options(typer.main.get_command(app)))


def list_options(command: Any) -> Iterator[str]:
    """The options of a command and of those below it."""
    yield "--version"
    for option in command.params:
        yield from (*option.opts, *option.secondary_opts)
    for below in getattr(command, "commands", {}).values():
        yield from list_options(below)
