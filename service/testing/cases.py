"""Read test cases from a file: JSON Lines, JSON or YAML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.cli.options import read_settings
from service.errors import InputError
from service.reading.packaged_files import read_yaml
from service.reading.trace_files import BadRecord, scan_records
from service.wiring import build_limits

NAME_FIELDS = ("custom_id", "id", "name")
"""The fields that may name a case, in order of preference."""


class FileCase(NamedTuple):
    """A case, and its name in test ids."""

    name: str
    value: dict[str, JsonValue]


def read_cases(path: Path) -> list[FileCase]:
    """Read the cases of a file. InputError if one is not an object or cannot be read, or if there is none."""
    values = list(_read_yaml_cases(path) if path.suffix in (".yaml", ".yml") else _read_json_cases(path))
    if not values:
        raise InputError.at("", f"{path} has no cases, so the test would check nothing")
    return [FileCase(_name_case(value) or f"case{n}", value) for n, value in enumerate(values)]


def _read_yaml_cases(path: Path) -> Iterable[dict[str, JsonValue]]:
    try:
        document = read_yaml(path.read_text("utf-8"), source=str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError.at("", f"{path} cannot be read: {error}") from None
    if isinstance(document, dict) and document.keys() == {"cases"}:
        document = document["cases"]
    if not isinstance(document, list):
        raise InputError.at("", f"{path}: expected a list of cases, or {{cases: [...]}}")
    for n, case in enumerate(document):
        if not isinstance(case, dict):
            raise InputError.at(f"{path}: /{n}", "expected an object")
        yield case


def _read_json_cases(path: Path) -> Iterable[dict[str, JsonValue]]:
    for record in scan_records(path, limits=build_limits(read_settings())):
        if isinstance(record, BadRecord):
            raise record.error.below(f"{record.place}{record.place.pointer}: ")
        yield record.value


def _name_case(value: Mapping[str, JsonValue]) -> str | None:
    trace = value.get("trace")
    places = [value, cast("Mapping[str, JsonValue]", trace)] if isinstance(trace, dict) else [value]
    return next((str(place[name]) for place in places for name in NAME_FIELDS if place.get(name)), None)
