"""The tables of the manual name all there is, and nothing else."""

from __future__ import annotations

import re

from service import Registry
from service.api.app import create_app
from service.cli.commands.rubrics import count_questions
from service.cli.exits import ExitCode
from service.settings import list_settings
from service.store.access.callers import SCOPES
from tests.docs.pages import Page


def test_the_scopes_are_those_of_the_service():
    assert Page("docs/http.md").table_names("## Scopes and tenants") == set(SCOPES)


def test_the_settings_are_those_of_the_service():
    page = Page("docs/settings.md")
    for name, default, meaning in list_settings():
        assert f"| `{name}` | {f'`{default}`' if default else 'none'} | {meaning} |" in page.text
    assert page.table_names() == {name for name, _, _ in list_settings()}


def test_the_exit_codes_are_those_of_the_command_line():
    text = Page("docs/scoring.md").text
    signals = {ExitCode.INTERRUPTED, ExitCode.CLOSED}
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)} == set(ExitCode) - signals


def test_the_table_of_batches_names_all_its_routes():
    lines = [line.split("|")[1] for line in Page("docs/batches.md").text.splitlines() if line.startswith("| `")]
    rows = [re.findall(r"`(?:(GET|POST|DELETE) )?(/[^`]*)`", line) for line in lines]
    named = {(method or row[0][0], f"/v1/batches{path.rstrip('/')}") for row in rows for method, path in row}
    assert named == {route for route in routes() if route[1].startswith("/v1/batches")}


def test_the_table_of_routes_names_all_that_is_not_below_another():
    lines = [line.split("|")[1] for line in Page("docs/http.md").text.splitlines() if line.startswith("| `")]
    below = tuple(path for line in lines if "and below" in line for path in re.findall(r"(/v1/\w+)`", line))
    named = {route for line in lines if "and below" not in line for route in re.findall(r"`(GET|POST) (/[^`]*)`", line)}
    listed = {(method, path.replace("{rubric_id}", "{id}")) for method, path in routes() if not path.startswith(below)}
    assert {"/v1/batches", "/v1/calibrations"} <= {*below} <= {path for _, path in routes()}
    assert named == listed | {("GET", "/openapi.json"), ("GET", "/docs")}


def routes() -> set[tuple[str, str]]:
    """Every method and path of the service."""
    paths = create_app().openapi()["paths"]
    return {
        (method.upper(), path.replace("{batch_id}", "{id}")) for path, methods in paths.items() for method in methods
    }


def test_the_questions_of_rubrics_are_those_that_they_ask():
    rows = re.findall(
        r"^\| ([a-z_]+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", Page("docs/rubrics.md").text, re.MULTILINE
    )
    told = {name: tuple(map(int, counts)) for name, *counts in rows}
    assert told == {one.id: tuple(found) for one in Registry() if any(found := count_questions(one))}
