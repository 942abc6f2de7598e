"""The texts that users see, each with its place: pages, templates, messages, help, the OpenAPI document, rubrics, the demo."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import typer.main
import yaml

from service.api.app import create_app
from service.cli.app import app
from tests.docs.pages import PAGES, ROOT

PROSE = ("SECURITY.md", "CHANGELOG.md", "calibration/README.md")
UNSEEN = re.compile(r"<(?:style|script)\b.*?</(?:style|script)>|\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}|<!--.*?-->", re.DOTALL)
TAG = re.compile(r"</?\w[^>]*>")
SAID = re.compile(r'(?:aria-label|title|alt|placeholder|data-label)="([^"]*)"')
CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)


class Text(NamedTuple):
    """A text and where it is: a file, with the line if there is one."""

    place: str
    text: str


def list_texts() -> list[Text]:
    """Every text that a user can meet. Code between backticks is left out of pages: its names are those of the code."""
    return [*_iter_pages(), *_iter_templates(), *_iter_messages(), *_iter_help(), *_iter_contract(), *_iter_data()]


def _iter_pages() -> Iterator[Text]:
    for path in [*PROSE, *(page.path for page in PAGES)]:
        text = CODE.sub(_blank, (ROOT / path).read_text("utf-8"))
        yield from (Text(f"{path}:{number}", part) for number, part in _iter_paragraphs(text))


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def _iter_paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """The paragraphs, each as one line: a phrase may go over the end of a line."""
    number = 1
    for part in re.split(r"(\n\s*\n|\n(?=\|))", text):
        if part.strip():
            yield number, " ".join(part.split())
        number += part.count("\n")


def _iter_templates() -> Iterator[Text]:
    for file in sorted((ROOT / "service").rglob("*.html")):
        text = TAG.sub(lambda tag: " ".join(SAID.findall(tag[0])), UNSEEN.sub(_blank, file.read_text("utf-8")))
        yield from (Text(f"{_name(file)}:{number}", part) for number, part in _iter_paragraphs(text))


def _iter_messages() -> Iterator[Text]:
    """String literals with a space, except docstrings: what those of users' surfaces say comes by another way."""
    for file in [ROOT / "callgrade.py", ROOT / "pytest_callgrade.py", *sorted((ROOT / "service").rglob("*.py"))]:
        tree = ast.parse(file.read_text("utf-8"))
        docstrings = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and id(node) not in docstrings and " " in str(node.value):
                yield Text(f"{_name(file)}:{node.lineno}", str(node.value))


def _iter_help() -> Iterator[Text]:
    yield from _iter_command("callgrade", typer.main.get_command(app))


def _iter_command(name: str, command: Any) -> Iterator[Text]:
    yield Text(f"{name} --help", command.help or "")
    for part, below in getattr(command, "commands", {}).items():
        yield from _iter_command(f"{name} {part}", below)


def _iter_contract() -> Iterator[Text]:
    yield from _iter_strings("openapi.json", create_app().openapi(), {"description", "summary"})


def _iter_strings(place: str, value: Any, keys: set[str] | None) -> Iterator[Text]:
    """The texts in JSON or YAML; `keys`: those of the members that are texts, None for all."""
    for key, below in list(value.items() if isinstance(value, dict) else enumerate(value)):
        if isinstance(below, str) and (keys is None or key in keys):
            yield Text(f"{place}/{key}", below)
        elif isinstance(below, dict | list):
            yield from _iter_strings(f"{place}/{key}", below, keys)


def _iter_data() -> Iterator[Text]:
    for file in sorted((ROOT / "rubrics").rglob("*.yaml")):
        yield from _iter_strings(_name(file), yaml.safe_load(file.read_text("utf-8")), None)
    cases = ROOT / "service" / "demo" / "cases.json"
    yield from _iter_strings(_name(cases), json.loads(cases.read_text("utf-8")), {"title"})


def _name(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()
