"""pydantic's complaints as problems with JSON pointers."""

from __future__ import annotations

from pydantic import JsonValue, ValidationError

from service.core.pointers import pointer_of_loc
from service.errors import Problem


def problems_of(error: ValidationError, document: JsonValue, *, below: str = "") -> list[Problem]:
    """Each complaint with its place in `document`; `below` is the pointer of the document itself."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [
        Problem(below + pointer_of_loc(one["loc"], document, missing=one["type"] == "missing"), _said(one["msg"]))
        for one in found
    ]


def _said(message: str) -> str:
    return message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
