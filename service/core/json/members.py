"""Read members of JSON that others wrote: whatever stands there, each reader returns the type that its name says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

JsonObject = Mapping[str, JsonValue]


def as_text(value: object) -> str | None:
    """Return the value if it is a non-empty text."""
    return value if isinstance(value, str) and value else None


def find_text(raw: JsonObject, *names: str) -> str | None:
    """Return the first of these members that is a non-empty text."""
    return next((value for name in names if isinstance(value := raw.get(name), str) and value), None)


def read_type(raw: JsonValue | JsonObject) -> str:
    """Return the member that names an object's type; "?" if it is no text, or if there is no such member or object.

    >>> read_type({"type": "text"}), read_type({"type": ["text"]}), read_type([]), read_type({})
    ('text', '?', '?', '?')
    """
    value = raw.get("type") if isinstance(raw, Mapping) else None
    return value if isinstance(value, str) else "?"


def find_object(raw: JsonObject, *names: str) -> dict[str, JsonValue]:
    """Return the first of these members that is an object; {} if none is."""
    for name in names:
        value = raw.get(name)
        if isinstance(value, dict):
            return value
    return {}


def list_elements(value: JsonValue) -> list[JsonValue]:
    """Return the items of a list; an empty list for any other value."""
    return value if isinstance(value, list) else []


def list_objects(value: JsonValue) -> Iterator[JsonObject]:
    """Iterate over the objects in a list."""
    return (item for item in list_elements(value) if isinstance(item, dict))
