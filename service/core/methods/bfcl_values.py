"""Compare one argument with the values that BFCL's answer key accepts for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from pydantic import JsonValue

from service.errors import InputError

Accepted = Sequence[JsonValue]

TYPES: Mapping[str, type] = {
    "string": str,
    "integer": int,
    "float": float,
    "number": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "dict": dict,
    "object": dict,
    "any": str,
}
"""BFCL's type names, with JSON Schema's names for two of them. To BFCL, "any" means a string."""


def find_problem(
    value: JsonValue, accepted: Accepted, schema: Mapping[str, JsonValue]
) -> Literal["", "type_error", "value_error"]:
    """Return what is wrong with one argument: its type (by identity: True is not an integer), its value, or "" for nothing."""
    declared = _get_type(schema)
    inner = (
        _get_type(get_mapping(schema["items"]))
        if declared is list and isinstance(schema.get("items"), Mapping)
        else None
    )
    value = _widen(value, str(schema["type"]))
    key_type = _find_type(accepted)
    if type(value) is declared:
        if inner is not None and not any(_accepts_nested(value, option, inner) for option in accepted):
            return "type_error"
    elif key_type is None or type(value) is not key_type:
        return "type_error"
    if key_type not in (None, declared):  # the key holds a variable: its type counts instead of the declared one
        return "" if value in accepted else "value_error"
    return "" if _choose_comparison(declared, inner)(value, accepted) else "value_error"


def _get_type(schema: Mapping[str, JsonValue]) -> type:
    name = schema.get("type")
    if not isinstance(name, str) or name not in TYPES:
        raise InputError.at("/functions", f"{name!r} is not a type BFCL knows; it knows {', '.join(TYPES)}")
    return TYPES[name]


def _widen(value: JsonValue, declared: str) -> JsonValue:
    """Convert int to float where a float is declared, as Python does by itself, and a tuple to a list where one is declared."""
    if declared == "tuple" and isinstance(value, tuple):
        return list(value)  # pyright: ignore[reportUnknownArgumentType]
    if TYPES[declared] is not float or type(value) is not int:
        return value
    try:
        return float(value)
    except OverflowError:
        return value


def _find_type(accepted: Accepted) -> type | None:
    return next((type(option) for option in accepted if option != ""), None)


def _accepts_nested(value: JsonValue, option: JsonValue, inner: type) -> bool:
    """Check one level: each item has the declared type or that of the option's first item. An option that is no list accepts."""
    if not isinstance(option, list):
        return True
    return all(type(item) in (inner, _find_type(option)) for item in get_list(value))


def _choose_comparison(declared: type, inner: type | None) -> Callable[[JsonValue, Accepted], bool]:
    if declared is list:
        return _are_same_records if inner is dict else _is_same_list
    return {dict: _is_same_record, str: _is_same_text}.get(declared, _is_member)


def _is_member(value: JsonValue, accepted: Accepted) -> bool:
    return value in accepted


def standardise(text: str) -> str:
    """Return a text as BFCL compares it: without spaces and `,./-_*^`, in lower case, with one kind of quote.

    >>> standardise("2024-1-11") == standardise("2024-11-1"), standardise("A ,./-_*^'b'")
    (True, 'a"b"')
    """
    return re.sub(r"[ ,./\-_*^]", "", text).lower().replace("'", '"')


def _standardise_value(value: JsonValue) -> JsonValue:
    return standardise(value) if isinstance(value, str) else value


def _is_same_text(value: JsonValue, accepted: Accepted) -> bool:
    return _standardise_value(value) in [_standardise_value(option) for option in accepted if isinstance(option, str)]


def _is_same_list(value: JsonValue, accepted: Accepted) -> bool:
    """Compare whole lists in order. A text counts as the list of its characters, so the optional marker accepts []."""
    options = [
        [_standardise_value(item) for item in option] for option in accepted if isinstance(option, list | str | dict)
    ]
    return [_standardise_value(item) for item in get_list(value)] in options


def _are_same_records(value: JsonValue, accepted: Accepted) -> bool:
    """Compare lists of dicts, by length and in order; the optional marker accepts []."""
    records = get_list(value)
    return any(
        len(records) == len(option) and all(map(_fits, records, option))
        for option in accepted
        if isinstance(option, list | str | dict)
    )


def _is_same_record(value: JsonValue, accepted: Accepted) -> bool:
    return any(_fits(value, option) for option in accepted)


def _fits(value: JsonValue, option: JsonValue) -> bool:
    """Compare one dict with `{key: [accepted values]}`; a nested dict must be equal as it stands."""
    if not isinstance(value, Mapping) or not isinstance(option, Mapping):
        return False
    accepted = {key: [_standardise_value(item) for item in get_list(items)] for key, items in option.items()}
    return all(key in accepted and _standardise_value(item) in accepted[key] for key, item in value.items()) and all(
        key in value or "" in get_list(items) for key, items in option.items()
    )


def get_mapping(value: JsonValue) -> Mapping[str, JsonValue]:
    """Return the value if it is an object, else an empty object."""
    return value if isinstance(value, Mapping) else {}


def get_list(value: JsonValue) -> list[JsonValue]:
    """Return the value if it is an array, else an empty array."""
    return value if isinstance(value, list) else []
