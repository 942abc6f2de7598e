"""Validate documents: pydantic's errors become problems with JSON pointers, which suggest the name that was meant."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import TypeVar, cast

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, from_json

from service.core.json.pointers import build_loc_pointer, escape_token, split_pointer
from service.core.json.values import name_type
from service.core.models.kinds import FrozenModel, list_subclasses
from service.errors import InputError, Problem

T = TypeVar("T")

MESSAGES = {
    "tuple_type": "expected an array",
    "list_type": "expected an array",
    "dict_type": "expected an object",
    "model_type": "expected an object",
    "model_attributes_type": "expected an object",
    "string_type": "expected a string",
    "int_type": "expected a whole number",
    "float_type": "expected a number",
    "bool_type": "expected true or false",
    "missing": "required, and missing",
    "literal_error": "expected {expected}",
    "enum": "expected {expected}",
    "greater_than": "expected more than {gt}",
    "greater_than_equal": "expected at least {ge}",
    "less_than": "expected less than {lt}",
    "less_than_equal": "expected at most {le}",
    "string_too_short": "expected at least {min_length} characters",
    "string_too_long": "expected at most {max_length} characters",
    "too_short": "expected at least {min_length} of them",
    "too_long": "expected at most {max_length} of them",
    "string_pattern_mismatch": "expected a string like {pattern}",
    "finite_number": "expected a finite number",
    "int_from_float": "expected a whole number",
    "int_parsing": "expected a whole number",
    "float_parsing": "expected a number",
    "bool_parsing": "expected true or false",
}
"""Messages by pydantic's error type, for people who wrote JSON: pydantic's own speak of tuples and instances."""

_CONTAINERS = frozenset({"tuple_type", "list_type", "dict_type", "model_type", "model_attributes_type"})

MAX_HINTED_MEMBERS = 20
"""The most unknown members in a document for which similar names are suggested."""


def validate(form: TypeAdapter[T], document: object, *, below: str = "") -> T:
    """Validate a parsed document. Raises InputError naming every wrong place; `below` is the pointer to the document itself."""
    try:
        return form.validate_python(document)
    except ValidationError as error:
        raise InputError(list_problems(error, cast("JsonValue", document), below=below)) from None


def list_problems(error: ValidationError, document: JsonValue, *, below: str = "") -> list[Problem]:
    """List each error with its place in `document`. `below` is the pointer to the document itself."""
    found = error.errors(include_url=False)
    unknown = {build_loc_pointer(one["loc"], document) for one in found if one["type"] == "extra_forbidden"}
    problems: list[Problem] = []
    for one in found:
        path = build_loc_pointer(one["loc"], document, missing=one["type"] == "missing")
        hint = _suggest(path, document, unknown) if path in unknown and len(unknown) <= MAX_HINTED_MEMBERS else ""
        problems.append(Problem(below + path, _describe_error(one) + hint))
    return problems


def _suggest(path: str, document: JsonValue, unknown: Collection[str]) -> str:
    """Suggest what an unknown member may mean, judging by its siblings; empty if nothing is similar."""
    *parents, name = split_pointer(path)
    here: JsonValue = document
    for part in parents:
        here = here[int(part)] if isinstance(here, list) else here[part] if isinstance(here, dict) else None
    above = path.rpartition("/")[0]
    siblings = [key for key in here if f"{above}/{escape_token(key)}" not in unknown] if isinstance(here, dict) else []
    meant = suggest_name(name, siblings)
    return "" if meant is None else f"; did you mean {meant!r}?"


def find_problems(error: ValidationError, text: str | bytes) -> list[Problem]:
    """List each error about a JSON text with its place in it, or without a place if the text is not JSON."""
    try:
        document: JsonValue = from_json(text)
    except ValueError:
        document = None
    return list_problems(error, document)


def _describe_error(error: ErrorDetails) -> str:
    if error["type"] == "extra_forbidden":
        return "no field of that name is known here"
    if error["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return _describe_tag_error(error.get("ctx", {}))
    if error["type"] in MESSAGES:
        message = MESSAGES[error["type"]].format_map(error.get("ctx", {}))
        return message + (f", not {name_type(error['input'])}" if error["type"] in _CONTAINERS else "")
    return error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")


def _describe_tag_error(context: Mapping[str, str]) -> str:
    """Describe an error in the field that selects one of several forms."""
    field = context.get("discriminator", "'kind'").strip("'")
    if "tag" not in context:
        return f"expected a {field}"
    return f"no {field} {context['tag']!r} is known; known: {context['expected_tags'].replace(chr(39), '')}"


SYNONYMS = {
    **dict.fromkeys(("name", "function"), "tool"),
    **dict.fromkeys(("arguments", "parameters", "input"), "args"),
    **dict.fromkeys(
        ("never", "forbid", "forbidden", "forbidden_tools", "ban", "banned", "deny", "denied"), "disallowed"
    ),
    **dict.fromkeys(("denylist", "blacklist", "prohibited", "not_allowed", "disallowed_tools"), "disallowed"),
    **dict.fromkeys(("allow", "only", "allowed_tools", "allowlist", "whitelist", "permitted"), "allowed"),
    **dict.fromkeys(("expected_calls", "tool_calls", "required", "must_call"), "calls"),
    **dict.fromkeys(("except", "unless", "excluding"), "but"),
}
"""Other names for our fields."""

MAX_HINTED_NAME_CHARS = 40
"""The longest name, in characters, that gets a suggestion."""


def suggest_name(name: str, siblings: Collection[str]) -> str | None:
    """Return the field that was probably meant, among models that have the fields beside it; None if none is similar.

    >>> import service.core.expectations.expectation
    >>> suggest_name("arguements", ["tool"]), suggest_name("arguments", ["tool"]), suggest_name("colour", ["tool"])
    ('args', 'args', None)
    >>> suggest_name("tool", []) == "tool"  # it was just refused there
    False
    """
    if len(name) > MAX_HINTED_NAME_CHARS:
        return None
    here = _list_fields(frozenset(siblings))
    fields = here - {*siblings, name}
    near = get_close_matches(name, [*fields, *SYNONYMS], n=3, cutoff=0.75)
    meant = next((one for found in near if (one := SYNONYMS.get(found, found)) in fields), None)
    if meant is None and "expected" in here:
        inner = SYNONYMS.get(name, name)
        return f"expected.{inner}" if inner in _list_fields(frozenset({"calls"})) else None
    return meant


@lru_cache(maxsize=256)
def _list_fields(siblings: frozenset[str]) -> frozenset[str]:
    """Return the fields of all models that have these."""
    models = [set(cls.model_fields) for cls in list_subclasses(FrozenModel) if siblings <= cls.model_fields.keys()]
    return frozenset(set[str]().union(*models))
