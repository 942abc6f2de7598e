"""Parameters in the query of a URL: read one by one, refused by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from pydantic import JsonValue
from starlette.datastructures import QueryParams

from service.errors import InputError, Problem


class QueryParameter(NamedTuple):
    """One parameter. `read` raises ValueError for text that is not `expected`; `schema` says the same to OpenAPI."""

    read: Callable[[str], JsonValue]
    expected: str
    schema: Mapping[str, Any]
    description: str


def accept_text(description: str, **schema: Any) -> QueryParameter:
    """Any text; whether it is good is found out later."""
    return QueryParameter(str, "text", {"type": "string", **schema}, description)


def accept_choice(description: str, options: Iterable[str]) -> QueryParameter:
    """One of some words."""
    words = list(options)

    def read(given: str) -> JsonValue:
        return words[words.index(given)]

    return QueryParameter(read, f"one of {', '.join(words)}", {"type": "string", "enum": words}, description)


def accept_whole(description: str, low: int, high: int) -> QueryParameter:
    """A whole number."""

    def read(given: str) -> JsonValue:
        if not (given.isascii() and given.isdigit() and len(given) <= 18 and low <= int(given) <= high):
            raise ValueError
        return int(given)

    schema = {"type": "integer", "minimum": low, "maximum": high}
    return QueryParameter(read, f"a whole number from {low} to {high}", schema, description)


def accept_number(description: str, **schema: Any) -> QueryParameter:
    """A number; whether it is in range is found out later."""

    def read(given: str) -> JsonValue:
        value = float(given)
        if not (given.isascii() and math.isfinite(value) and "_" not in given and given == given.strip()):
            raise ValueError
        return value

    return QueryParameter(read, "a number", {"type": "number", **schema}, description)


def accept_flag(description: str) -> QueryParameter:
    """True or false."""

    def read(given: str) -> JsonValue:
        return {"true": True, "false": False}[given]

    return QueryParameter(read, "true or false", {"type": "boolean"}, description)


def accept_pairs(description: str) -> QueryParameter:
    """`key:value` with commas between; a comma cannot be part of one."""

    def read(given: str) -> JsonValue:
        found = [part.partition(":") for part in given.split(",")]
        if not all(key and colon for key, colon, _ in found) or len({key for key, _, _ in found}) < len(found):
            raise ValueError
        return {key: value for key, _, value in found}

    schema = {"type": "string", "pattern": "^[^:,]+:[^,]*$", "example": "suite:nightly"}
    return QueryParameter(read, "key:value with commas between, each key once", schema, description)


def read_query(query: QueryParams, parameters: Mapping[str, QueryParameter]) -> dict[str, JsonValue]:
    """The parameters that are given; InputError names every one that is unknown, given twice or not as expected."""
    found: dict[str, JsonValue] = {}
    problems: list[Problem] = []
    for name, given in query.multi_items():
        try:
            found[name] = _read_parameter(parameters.get(name), given, again=name in found)
        except ValueError as error:
            problems.append(Problem("", f"query parameter {name[:100]}: {error}"))
    if problems:
        raise InputError(problems)
    return found


def _read_parameter(parameter: QueryParameter | None, given: str, *, again: bool) -> JsonValue:
    if parameter is None:
        raise ValueError("unknown here")
    if again:
        raise ValueError("given twice")
    try:
        if "\0" not in given:
            return parameter.read(given)
    except (ValueError, KeyError):
        pass
    raise ValueError(f"expected {parameter.expected}")


def describe_parameters(parameters: Mapping[str, QueryParameter]) -> list[dict[str, Any]]:
    """The parameters as OpenAPI describes them."""
    return [
        {"name": name, "in": "query", "required": False, "description": one.description, "schema": dict(one.schema)}
        for name, one in parameters.items()
    ]
