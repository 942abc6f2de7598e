"""JSON pointers (RFC 6901)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue


def build_pointer(*parts: str | int) -> str:
    """Build the pointer that leads through `parts`.

    >>> build_pointer("steps", 0, "a/b~c")
    '/steps/0/a~1b~0c'
    """
    return "".join(f"/{escape_token(part)}" for part in parts)


def escape_token(part: str | int) -> str:
    """Escape one reference token."""
    return str(part).replace("~", "~0").replace("/", "~1")


def split_pointer(path: str) -> tuple[str, ...]:
    """Split a pointer into its unescaped tokens. Raises ValueError if it is not a pointer.

    >>> split_pointer("/a~1b/0")
    ('a/b', '0')
    """
    if path and not path.startswith("/"):
        raise ValueError(f"a JSON pointer is empty or starts with '/', not {path!r}")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:])


def build_loc_pointer(loc: Sequence[str | int], document: JsonValue, *, missing: bool = False) -> str:
    """Turn a pydantic error location into a pointer into `document`; `missing`: its last part is a key that is not there.

    Pydantic includes the chosen member of a union in the location; such a part leads nowhere in the document and is left out.

    >>> build_loc_pointer(("trace", "openai", "messages", 0), {"trace": {"format": "openai", "messages": [1]}})
    '/trace/messages/0'
    >>> build_loc_pointer(("trace", "openai", "messages"), {"trace": {"format": "openai"}}, missing=True)
    '/trace/messages'
    """
    found: list[str | int] = []
    here = document
    for part in loc:
        inside = _look_inside(here, part)
        if inside is not None:
            found.append(part)
            here = inside[0]
    return build_pointer(*found, loc[-1]) if missing else build_pointer(*found)


def _look_inside(here: JsonValue, part: str | int) -> tuple[JsonValue] | None:
    """Return the value at `part` of a container, in a tuple; None if there is none."""
    if isinstance(here, Mapping) and isinstance(part, str) and part in here:
        return (here[part],)
    if isinstance(here, list) and isinstance(part, int) and part < len(here):
        return (here[part],)
    return None
