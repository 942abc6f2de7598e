"""Query parameters: the fields of a model, read one by one, refused by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, JsonValue, TypeAdapter
from pydantic.fields import FieldInfo
from starlette.datastructures import QueryParams

from service.core.models.kinds import read_descriptions
from service.errors import InputError, Problem

M = TypeVar("M", bound=BaseModel)

PAIRS = {"type": "string", "pattern": "^[^:,]+:[^,]*$", "example": "suite:nightly"}
"""How an object of texts is written: `key:value` pairs separated by commas; no part may contain a comma."""

LIST = {"type": "string", "example": "gpt-4o-mini,o3-mini"}
"""How a list of texts is written: separated by commas."""


class QueryParameter(NamedTuple):
    """One parameter. `read` raises ValueError for text that is not `expected`; `schema` says the same to OpenAPI."""

    read: Callable[[str], JsonValue]
    expected: str
    schema: Mapping[str, Any]
    description: str


@cache
def list_parameters(model: type[BaseModel]) -> Mapping[str, QueryParameter]:
    """List the parameters of a model's fields, in field order. A field without a plain type is read as text.

    Whole numbers and words are checked against their bounds here; whoever uses other values checks those.
    """
    texts = read_descriptions(model)
    return {name: _build_parameter(field, texts.get(name, "")) for name, field in model.model_fields.items()}


def _build_parameter(field: FieldInfo, text: str) -> QueryParameter:
    schema = _describe_value(field)
    shown_schema, description = schema, field.description or text
    if schema["type"] == "object":
        shown_schema, description = PAIRS, f"{description} Written key:value, with commas between."
    if schema["type"] == "array":
        shown_schema, description = LIST, f"{description} Written with commas between."
    return QueryParameter(*_choose_reader(schema), shown_schema, description)


def _describe_value(field: FieldInfo) -> dict[str, Any]:
    """Return the JSON Schema of a field's value, without null."""
    form: Any = field.annotation
    if get_origin(form) in (Union, UnionType):
        (form,) = (one for one in get_args(form) if one is not NoneType)
    bare = get_args(form)[0] if get_origin(form) is Annotated else form
    if get_origin(bare) in (Union, UnionType):
        return {"type": "string"}
    annotated: Any = Annotated[form, field]  # pyright: ignore[reportInvalidTypeForm] (known only at run time)
    schema = TypeAdapter[Any](annotated).json_schema()
    return {key: value for key, value in schema.items() if key not in ("default", "description")}


def _choose_reader(schema: Mapping[str, Any]) -> tuple[Callable[[str], JsonValue], str]:
    match schema:
        case {"enum": words}:
            return partial(_read_word, words=words), f"one of {', '.join(words)}"
        case {"type": "integer", "minimum": low, "maximum": high}:
            return partial(_read_whole, low=low, high=high), f"a whole number from {low} to {high}"
        case {"type": "number"}:
            return _read_number, "a number"
        case {"type": "boolean"}:
            return {"true": True, "false": False}.__getitem__, "true or false"
        case {"type": "object"}:
            return _read_pairs, "key:value with commas between, each key once"
        case {"type": "array"}:
            return _read_list, "texts with commas between"
        case _:
            return str, "text"


def _read_word(text: str, *, words: list[str]) -> str:
    return words[words.index(text)]


def _read_whole(text: str, *, low: int, high: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18 and low <= int(text) <= high):
        raise ValueError
    return int(text)


def _read_number(text: str) -> float:
    value = float(text)
    if not (text.isascii() and math.isfinite(value) and "_" not in text and text == text.strip()):
        raise ValueError
    return value


def _read_pairs(text: str) -> JsonValue:
    pairs = [part.partition(":") for part in text.split(",")]
    if not all(key and colon for key, colon, _ in pairs) or len({key for key, _, _ in pairs}) < len(pairs):
        raise ValueError
    return {key: value for key, _, value in pairs}


def _read_list(text: str) -> JsonValue:
    items = text.split(",")
    if not all(items):
        raise ValueError
    return list[JsonValue](items)


def read_query(query: QueryParams, model: type[M]) -> M:
    """Read the query into a model, without checking its other bounds; raises InputError as `read_given` does."""
    return model.model_construct(None, **read_given(query, model))


def read_given(query: QueryParams, model: type[BaseModel]) -> dict[str, JsonValue]:
    """Read the parameters that are given; InputError names each that is unknown, given twice or not as expected."""
    parameters = list_parameters(model)
    values: dict[str, JsonValue] = {}
    problems: list[Problem] = []
    for name, given in query.multi_items():
        try:
            values[name] = _read_parameter(parameters.get(name), given, is_repeated=name in values)
        except ValueError as error:
            problems.append(Problem("", f"query parameter {name[:100]}: {error}"))
    if problems:
        raise InputError(problems)
    return values


def _read_parameter(parameter: QueryParameter | None, text: str, *, is_repeated: bool) -> JsonValue:
    if parameter is None:
        raise ValueError("unknown here")
    if is_repeated:
        raise ValueError("given twice")
    try:
        if "\0" not in text:
            return parameter.read(text)
    except (ValueError, KeyError):
        pass
    raise ValueError(f"expected {parameter.expected}")


def describe_parameters(model: type[BaseModel]) -> list[dict[str, Any]]:
    """Describe the parameters for OpenAPI."""
    return [
        {"name": name, "in": "query", "required": False, "description": one.description, "schema": dict(one.schema)}
        for name, one in list_parameters(model).items()
    ]
