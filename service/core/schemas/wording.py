"""Describe violations in our own words: what was expected and what was found, short whatever the value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import jsonschema_rs as rs
from pydantic import JsonValue

from service.core.json.pointers import build_pointer, escape_token
from service.core.json.values import format_value

MAX_MESSAGE_CHARS = 300

Kind = rs.ValidationErrorKind


@dataclass(frozen=True, slots=True)
class Violation:
    """One way in which a value does not fit its schema.

    `keyword` is the JSON Schema keyword that failed ("false" for the schema `false`). `path` is a JSON pointer into the value:
    "" for all of it; for a missing or an unexpected property, the pointer of that property. `message` has at most 300
    characters.
    """

    keyword: str
    message: str
    path: str


def make_sort_key(violation: Violation) -> tuple[str, str, str]:
    """Return the sort key: by place, whatever the order of keys in the value."""
    return violation.path, violation.keyword, violation.message


def read_violations(error: rs.ValidationError) -> Iterator[Violation]:
    """Yield the violations that one error of jsonschema-rs reports: several if it names several properties."""
    at = build_pointer(*error.instance_path)
    match error.kind:
        case Kind.Required(name):
            yield Violation(_find_keyword(error), "required, and missing", f"{at}/{escape_token(name)}")
        case Kind.AdditionalProperties(names) | Kind.UnevaluatedProperties(names):
            keyword = _find_keyword(error)
            yield from (Violation(keyword, "not allowed here", f"{at}/{escape_token(name)}") for name in names)
        case Kind.FalseSchema() if error.schema_path and error.schema_path[-1] in _CLOSED:
            # If the schema declares no property at all, jsonschema-rs does not name the extra one.
            yield Violation(str(error.schema_path[-1]), "no property is allowed here", at)
        case _:
            yield Violation(_find_keyword(error), cut_message(_describe_error(error)), at)


def cut_message(message: str) -> str:
    """Cut a message to 300 characters.

    >>> len(cut_message("x" * 1000))
    300
    """
    return message if len(message) <= MAX_MESSAGE_CHARS else message[: MAX_MESSAGE_CHARS - 1] + "…"


_CLOSED = ("additionalProperties", "unevaluatedProperties")

_LIMITS = {
    "minimum": "a number of at least",
    "maximum": "a number of at most",
    "exclusiveMinimum": "a number above",
    "exclusiveMaximum": "a number below",
    "multipleOf": "a multiple of",
    "minLength": "a length of at least",
    "maxLength": "a length of at most",
    "minItems": "a number of items of at least",
    "maxItems": "a number of items of at most",
    "additionalItems": "a number of items of at most",
    "minProperties": "a number of properties of at least",
    "maxProperties": "a number of properties of at most",
    "format": "the format",
    "pattern": "text that matches",
    "contentEncoding": "text encoded in",
    "contentMediaType": "text of the media type",
    "const": "the value",
}


def _find_keyword(error: rs.ValidationError) -> str:
    name = error.kind.name
    if name == "falseSchema":
        return "false"
    last = error.schema_path[-1] if error.schema_path else name
    return last if last in ("dependentRequired", "dependencies", "minContains", "maxContains") else name


def _describe_error(error: rs.ValidationError) -> str:
    kind = error.kind
    found = format_value(error.instance)
    if kind.name in _LIMITS:
        return f"expected {_LIMITS[kind.name]} {format_value(kind.value)}, found {found}"
    match kind:
        case Kind.Type(types):
            return f"expected {' or '.join(types)}, found {found}"
        case Kind.Enum(options):
            return f"expected one of {format_value(options, 160)}, found {found}"
        case Kind.AnyOf(context) | Kind.OneOfNotValid(context):
            return f"fits none of {len(context)} alternatives: {_join_reasons(context)}"
        case Kind.OneOfMultipleValid():
            return f"expected to fit one alternative only, {found} fits several"
        case Kind.PropertyNames(inner):
            return f"the property name {format_value(inner.instance)}: {_describe_error(inner)}"
        case _:
            return _describe_plainly(error, found)


def _describe_plainly(error: rs.ValidationError, found: str) -> str:
    plain = {
        "falseSchema": f"nothing is allowed here, found {found}",
        "not": f"{found} is not allowed here",
        "uniqueItems": f"expected no item twice, found {found}",
        "contains": f"expected another number of items that match `contains`, found {found}",
        "unevaluatedItems": f"expected no further items, found {found}",
    }
    return plain.get(error.kind.name) or error.message


def _join_reasons(context: list[list[rs.ValidationError]]) -> str:
    found = ([each for error in errors for each in read_violations(error)] for errors in context[:4])
    firsts = (min(each, key=make_sort_key) for each in found if each)
    return "; ".join(f"{each.path} {each.message}".strip() for each in firsts)


def explain_unusable(error: rs.ValidationError) -> tuple[str, str]:
    """Explain why jsonschema-rs rejected a schema; return the explanation and the pointer into the schema."""
    at = build_pointer(*error.instance_path)
    if isinstance(error.kind, Kind.Format) and error.kind.format == "regex":
        why = "is no regular expression of the linear-time engine (no look-around, no back-references), or too large a one"
        return cut_message(f"{format_value(error.instance)} {why}"), at
    if error.kind.name in ("$ref", "referencing"):
        return cut_message(error.message), at
    return cut_message(f"not a schema: {_describe_error(error)}"), at


def find_surrogate(value: JsonValue) -> str:
    """Return the pointer of a string, or of the object with a key, that UTF-8 cannot encode; "" if there is none."""
    stack: list[tuple[JsonValue, str]] = [(value, "")]
    while stack:
        node, path = stack.pop()
        if isinstance(node, str) and not _is_encodable(node):
            return path
        if isinstance(node, dict):
            if not all(map(_is_encodable, node)):
                return path
            stack.extend((inner, f"{path}/{escape_token(name)}") for name, inner in node.items())
        elif isinstance(node, list):
            stack.extend((inner, f"{path}/{i}") for i, inner in enumerate(node))
    return ""


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
