"""Find what in an object reports that the call failed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from http import HTTPStatus

from pydantic import JsonValue

from service.core.json.pointers import escape_token
from service.core.trace import ToolFailure

PHRASES = {status.value: status.phrase.casefold() for status in HTTPStatus if status.value >= 400}
"""HTTP's names for its failures, by status."""

_FLAGS = frozenset({"iserror", "is_error"})
"""MCP's own error flag, which holds whatever else the object has."""
_ERRORS = frozenset({"error", "error_message", "errormessage"})
_REPORTS = frozenset({"errors", "exception", "traceback", "stacktrace"})
"""Names of members that may be an error of the call, or what a linter, a test or a log was asked for."""
_STATUSES = frozenset({"status", "status_code", "statuscode", "http_status", "httpstatus", "http_code"})
_TEXTS = frozenset({"message", "msg", "detail", "details", "reason", "title", "error_description", "description"})
_METADATA = frozenset({
    "code", "success", "ok", "type", "instance", "timestamp", "path", "request_id", "requestid", "trace_id", "traceid",
    "jsonrpc", "hint", "help", "documentation_url", "doc_url", "error_code", "errorcode", "error_type", "retry_after",
    "retryable", "iserror", "is_error", "tool", "tool_call_id", "stack", "meta", "_meta",
})  # fmt: skip
_ENVELOPE = _ERRORS | _REPORTS | _STATUSES | _TEXTS | _METADATA
"""Names of members that accompany an error and are not data."""
_WITHIN_ERROR = _ENVELOPE | {"id", "name", "data", "param", "status", "field", "line", "stack"}
"""Names of the members of an error that is an object."""
_CODES = ("code", "error_code", "errorCode", "status", "status_code", "statusCode")
_WORD = re.compile(r"[^\W\d_]{3}")
_EMPTY = re.compile(r"(?:none|null|nil|nan|false|n/?a|ok|okay|success(?:ful)?|passed)", re.IGNORECASE)
_DENIAL = re.compile(
    r"\b(?:no|zero|0|without(?: any)?|keine?|ohne|aucune?|sans|sin|ning[uú]n|nenhum|sem|nessun|senza|geen)(?:[ ]\w{1,20}){0,2}?"
    r"[ ](?:error|erreur|errore|erro|fehler|fout|problem|issue|failure|fault|exception|warning|violation)\w{0,3}\b"
    r"(?P<end>[ ](?:found|detected|reported|occurred|gefunden|trouv\w{1,3}|encontrad\w{1,2}|trovat\w|gevonden))?",
    re.IGNORECASE,
)
"""`no errors found`, in several languages. `No such order` is not a denial."""
_SUCCESS_WORDS = frozenset(
    {"ok", "okay", "success", "successful", "succeeded", "completed", "complete", "done", "passed", "valid"}
)
_FAILURE_WORDS = frozenset({"error", "failed", "failure", "fail"})


def find_in_object(value: Mapping[str, JsonValue], pointer: str) -> Iterator[ToolFailure]:
    """Yield each member that reports that the call failed, with its pointer in the object at `pointer`.

    These are certain: MCP's `isError`, and an `error` in words or an HTTP status in an object without data in which no other
    member reports success. These are only likely, since they may be the answer that was asked for: `success: false`, a list of
    `errors`, an error beside data, one that has only a code. A number alone is no failure: `{"error": 0.02}` is a measurement.
    """
    beside = " beside data" if has_data(value) else ""
    undisputed = not beside and not any(_reports_success(name.casefold(), member) for name, member in value.items())
    for name in value:
        failure = _find_in_member(value, name)
        if failure is not None:
            certain = failure.certain and (undisputed or name.casefold() in _FLAGS)
            reason = failure.reason + beside
            yield replace(failure, certain=certain, reason=reason, path=f"{pointer}/{escape_token(name)}")


def _find_in_member(value: Mapping[str, JsonValue], name: str) -> ToolFailure | None:
    """Return the failure that one member reports, as if it were alone."""
    key, member = name.casefold(), value[name]
    code = read_status(member)
    if key in _FLAGS and member is True:
        return ToolFailure(True, f"{name} is true", "")
    if key in _ERRORS and (member is True or _says_something(member)):
        return ToolFailure(member is True or _is_error(member), f"the result has {name}", "")
    if key in _ERRORS and (_is_coded(member) or (code is not None and not has_data(value))):
        return ToolFailure(False, f"the result has {name}", "")
    if key in _REPORTS and (member is True or _says_something(member)):
        graphql = key == "errors" and "data" in value and value["data"] is None
        return ToolFailure(graphql, f"the result has {name}", "")
    if key in ("success", "ok") and member is False:
        return ToolFailure(False, f"{name} is false", "")
    return _find_code_in_member(value, name, code)


def _find_code_in_member(value: Mapping[str, JsonValue], name: str, code: int | None) -> ToolFailure | None:
    key, member = name.casefold(), value[name]
    if key in _STATUSES and code is not None:
        return ToolFailure(True, f"{name} is {code}", "")
    if key == "code" and code is not None and (messages := _list_messages(value)):
        return ToolFailure(PHRASES[code] in messages, f"{name} is {code}, with a message", "")
    if key == "status" and isinstance(member, str) and member.casefold() in _FAILURE_WORDS:
        return ToolFailure(False, f"{name} is {member.casefold()}", "")
    if key in ("exit_code", "exitcode", "returncode") and isinstance(member, int) and member:
        return ToolFailure(False, f"{name} is not 0", "")
    return None


def is_flagged(failure: ToolFailure) -> bool:
    """Whether MCP's error flag reports the failure."""
    return failure.path.rpartition("/")[2].casefold() in _FLAGS


def has_data(value: Mapping[str, JsonValue], but: Collection[str] = ()) -> bool:
    """Whether an object has members, other than `but`, that may be data; one with MCP's error flag has none."""
    if any(value[name] is True for name in value if name.casefold() in _FLAGS):
        return False
    known = _ENVELOPE | {"id"} if "jsonrpc" in value else _ENVELOPE
    members = [member for name, member in value.items() if name.casefold() not in known and name not in but]
    return any(member is False or member not in (None, "", 0, [], {}) for member in members)


def _reports_success(key: str, member: JsonValue) -> bool:
    """Whether a member reports success: `success: true`, `status: ok`, `status: 200` and the like."""
    if key in ("success", "ok"):
        return member is True
    if key in _FLAGS:
        return member is False
    if isinstance(member, str):
        return key in _STATUSES | {"code", "message"} and member.strip().casefold() in _SUCCESS_WORDS
    return key in _STATUSES and isinstance(member, int) and 100 <= member < 400


def _says_something(member: JsonValue) -> bool:
    if isinstance(member, str):
        bare = member.strip(" \t\r\n.!-()[]\"'")
        return bool(_WORD.search(bare)) and not _EMPTY.fullmatch(bare) and not _DENIAL.fullmatch(bare)
    if isinstance(member, list):
        return any(map(_says_something, member))
    inner = member.values() if isinstance(member, dict) else ()
    return any(_is_word(one) or (isinstance(one, list) and any(map(_is_word, one))) for one in inner)


def _is_error(member: JsonValue) -> bool:
    """Whether a member is certainly an error: a text that neither counts nor denies errors, or an object of error members."""
    if isinstance(member, str):
        counts = member.lstrip("+-~± ")[:1].isdigit() and read_status(member) is None
        return not counts and not _DENIAL.search(member)
    return isinstance(member, dict) and all(name.casefold() in _WITHIN_ERROR for name in member)


def _is_coded(member: JsonValue) -> bool:
    """Whether a member is an object of error members with a code, which need not be a word."""
    return isinstance(member, dict) and _is_error(member) and any(member.get(name) for name in _CODES)


def _is_word(member: JsonValue) -> bool:
    return isinstance(member, str) and _says_something(member)


def _list_messages(value: Mapping[str, JsonValue]) -> list[str]:
    """List the messages beside a code. A title alone does not count: books have titles too."""
    texts = [value[name] for name in value if name.casefold() in _TEXTS - {"title", "description"}]
    return [text.strip(" .!").casefold() for text in texts if isinstance(text, str) and _is_word(text)]


def read_status(value: JsonValue) -> int | None:
    """Read a value that is the HTTP status of a failure (400 and above); None where it is none.

    >>> read_status(503), read_status("404"), read_status("404 Not Found"), read_status(200), read_status(True)
    (503, 404, 404, None, None)
    """
    if isinstance(value, str) and re.fullmatch(r"\s{0,9}[45]\d\d(?:\s[A-Za-z' -]{2,40})?\s{0,9}", value, re.ASCII):
        value = int(value.strip()[:3])
    return value if isinstance(value, int) and not isinstance(value, bool) and value in PHRASES else None
