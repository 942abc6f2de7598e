"""pydantic's complaints as problems with JSON pointers."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails, from_json

from service.core.json.pointers import build_loc_pointer
from service.errors import Problem

PLAIN = {
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
}
"""pydantic speaks of tuples and instances to people who wrote JSON; these are its words in theirs."""


def list_problems(error: ValidationError, document: JsonValue, *, below: str = "") -> list[Problem]:
    """Each complaint with its place in `document`. `below` is the pointer of the document itself."""
    found = error.errors(include_url=False, include_input=False)
    return [
        Problem(below + build_loc_pointer(one["loc"], document, missing=one["type"] == "missing"), _describe_error(one))
        for one in found
    ]


def find_problems(error: ValidationError, text: str | bytes) -> list[Problem]:
    """Each complaint about JSON text with its place in it; of text that is no JSON, one without a place."""
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
    if error["type"] in PLAIN:
        return PLAIN[error["type"]]
    return error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")


def _describe_tag_error(context: Mapping[str, str]) -> str:
    """What is wrong with the field that picks one of several forms."""
    field = context.get("discriminator", "'kind'").strip("'")
    if "tag" not in context:
        return f"expected a {field}"
    return f"no {field} {context['tag']!r} is known; known: {context['expected_tags'].replace(chr(39), '')}"
