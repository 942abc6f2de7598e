"""Objects that say that a call failed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from service.core.json.pointers import escape_token
from service.core.trace import ToolFailure

_ERRORS = frozenset({"error", "errors", "exception", "error_message", "errormessage", "traceback", "stacktrace"})
_CODES = frozenset({"status", "status_code", "statuscode", "http_status", "httpstatus", "http_code"})
_TEXTS = frozenset({"message", "msg", "detail", "details", "reason", "title", "error_description", "description"})
_ASIDE = frozenset({
    "code", "success", "ok", "type", "instance", "timestamp", "path", "request_id", "requestid", "trace_id", "traceid",
    "jsonrpc", "hint", "help", "documentation_url", "doc_url", "error_code", "errorcode", "error_type", "retry_after",
    "retryable", "iserror", "is_error", "tool", "tool_call_id", "stack", "meta", "_meta",
})  # fmt: skip
_BESIDE = _ERRORS | _CODES | _TEXTS | _ASIDE
"""Names of what stands beside an error and is no data."""
_WORD = re.compile(r"[^\W\d_]{3}")
_NOTHING = frozenset({"none", "null", "nil", "no error", "no errors", "false", "success", "n/a"})
_FAILED = frozenset({"error", "failed", "failure", "fail"})


def find_in_object(value: Mapping[str, JsonValue], pointer: str) -> Iterator[ToolFailure]:
    """What says that the call failed, each with the place in the object at `pointer`.

    Certain is a member whose sole meaning is failure where no data stands beside it. Members of that name with data beside
    them are likely, numbers alone are none: `{"error": 0.02}` is a measurement.
    """
    bare = not any(map(_is_data, _list_others(value)))
    for name, member in value.items():
        key, at = name.casefold(), f"{pointer}/{escape_token(name)}"
        if key in ("iserror", "is_error") and member is True:
            yield ToolFailure(True, f"{name} is true", at)
        elif key in _ERRORS and (member is True or _says_something(member)):
            yield ToolFailure(bare, f"the result has {name}" + ("" if bare else " beside data"), at, _find_code(value))
        elif key in ("success", "ok") and member is False:
            yield ToolFailure(bare, f"{name} is false" + ("" if bare else " beside data"), at, _find_code(value))
        else:
            yield from _find_status(value, name, at, bare=bare)


def _list_others(value: Mapping[str, JsonValue]) -> list[JsonValue]:
    """The members that may be data."""
    known = _BESIDE | {"id"} if "jsonrpc" in value else _BESIDE
    mcp = any(value.get(name) is True for name in ("isError", "is_error"))
    return [] if mcp else [member for name, member in value.items() if name.casefold() not in known]


def _is_data(member: JsonValue) -> bool:
    return member not in (None, "", 0, False, [], {})


def _says_something(member: JsonValue) -> bool:
    """Whether an error is told in words."""
    if isinstance(member, str):
        return bool(_WORD.search(member)) and member.strip().casefold() not in _NOTHING
    inner = member.values() if isinstance(member, dict) else member if isinstance(member, list) else ()
    return any(_says_something(one) if isinstance(member, list) else _is_word(one) for one in inner)


def _is_word(member: JsonValue) -> bool:
    return isinstance(member, str) and _says_something(member)


def _find_status(value: Mapping[str, JsonValue], name: str, at: str, *, bare: bool) -> Iterator[ToolFailure]:
    key, member = name.casefold(), value[name]
    code = read_status(member)
    if key in _CODES and code is not None:
        yield ToolFailure(bare, f"{name} is {code}" + ("" if bare else " beside data"), at, code)
    elif key == "code" and code is not None and bare and any(map(_is_word, _list_texts(value))):
        yield ToolFailure(True, f"{name} is {code}, with a message", at, code)
    elif key == "status" and isinstance(member, str) and member.casefold() in _FAILED and bare:
        yield ToolFailure(False, f"{name} is {member.casefold()}", at)
    elif key in ("exit_code", "exitcode", "returncode") and isinstance(member, int) and member:
        yield ToolFailure(False, f"{name} is not 0", at)


def _list_texts(value: Mapping[str, JsonValue]) -> list[JsonValue]:
    return [member for name, member in value.items() if name.casefold() in _TEXTS]


def _find_code(value: Mapping[str, JsonValue]) -> int | None:
    """The HTTP status that stands in an object or in its error."""
    inner = [member for name, member in value.items() if name.casefold() == "error" and isinstance(member, dict)]
    found = [
        read_status(member)
        for part in (value, *inner)
        for name, member in part.items()
        if name.casefold() in _CODES or name.casefold() == "code"
    ]
    return next((code for code in found if code is not None), None)


def read_status(value: JsonValue) -> int | None:
    """The HTTP status of a failure, 400 to 599, that a value is; None where it is none.

    >>> read_status(503), read_status("404"), read_status("404 Not Found"), read_status(200), read_status(True)
    (503, 404, 404, None, None)
    """
    if isinstance(value, str) and re.fullmatch(r"[45]\d\d(?: [A-Za-z' -]{2,40})?", value):
        return int(value[:3])
    return value if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600 else None
