"""Texts that say that a call failed."""

from __future__ import annotations

import re
from http import HTTPStatus

from service.core.trace import ToolFailure

MAX_CHARS = 4_000
"""Characters at the beginning and at the end of a text that are looked at."""

_PHRASES = {status.value: status.phrase.casefold() for status in HTTPStatus if status.value >= 400}
_HTTP = re.compile(r"HTTP/[0-9](?:\.[0-9])? {1,4}([45][0-9]{2})\b")
_CLIENT = re.compile(r"(?:HTTP ?Error:? {1,4}([45][0-9]{2})\b|([45][0-9]{2}) (?:Client|Server) Error: )")
_LINE = re.compile(r"(?:HTTP|Status|Error)?:? {0,4}([45][0-9]{2})[ :-]{1,4}([A-Za-z' -]{2,40})\.?")
_TRACE = re.compile(r"(?m)^Traceback \(most recent call last\):$")
_RAISED = re.compile(r"[A-Za-z_][\w.]{0,200}(?:: .*)?")
_STACK = re.compile(
    r"(?:Uncaught )?[A-Za-z_$][\w.$]{0,200}(?:Error|Exception)(?:: [^\n]{0,500})?\n\s{1,12}at |Exception in thread \""
    r"|panic: [^\n]{1,500}\n\s{0,12}goroutine "
)
_TOOLS = re.compile(
    r"An error occurred while running the tool\b|Error (?:executing|invoking|calling|running) tool\b|Error executing tool"
)
_ENDS = ("Please fix your mistakes.", "Fix the errors and try again.")
"""What the frameworks of agents put where a tool failed: the Agents SDK, MCP, smolagents; LangGraph, Pydantic AI."""
_LIKELY = re.compile(
    r"\W{0,3}(?:[A-Za-z_.]{0,60}(?:error|exception)|failed|failure|fatal)\W{0,2}:|error\b|\[(?:error|fatal)\]"
    r"|(?:failed|unable) to |could(?: not|n't) |cannot |can't |an (?:unexpected |internal )?error (?:has )?occurred"
    r"|something went wrong|internal server error|(?:permission|access) denied|unauthorized|forbidden\b|rate limit"
    r"|(?:the )?(?:request|operation|connection) (?:timed out|failed|was refused)|timed out|timeout\b",
    re.IGNORECASE,
)


def find_in_text(text: str, pointer: str) -> ToolFailure | None:
    """What in a text says that the call failed; None where nothing does.

    Certain: the line of an HTTP status, a traceback to the end of the text, the words of frameworks for a tool that raised.
    Likely: a text that begins as an error does, `Error: no such order`. A log may begin so too.
    """
    head, tail = text.strip()[:MAX_CHARS], text.rstrip()[-MAX_CHARS:]
    code = _find_status(head)
    if code is not None:
        return ToolFailure(True, f"the result is an HTTP status, {code}", pointer, code)
    if _is_traceback(head, tail):
        return ToolFailure(True, "the result is a traceback", pointer)
    if _TOOLS.match(head) or (tail.endswith(_ENDS) and _LIKELY.match(head)):
        return ToolFailure(True, "the result says that the tool raised an error", pointer)
    if _LIKELY.match(head):
        return ToolFailure(False, "the result begins as an error does", pointer)
    return None


def _find_status(head: str) -> int | None:
    match = _HTTP.match(head) or _CLIENT.match(head)
    if match is not None:
        return int(match[1] or match[2])
    line = _LINE.fullmatch(head)
    if line is None or _PHRASES.get(int(line[1])) != line[2].strip().casefold():
        return None
    return int(line[1])


def _is_traceback(head: str, tail: str) -> bool:
    if _STACK.match(head):
        return True
    if not _TRACE.search(head):
        return False
    last = tail.rpartition("\n")[2]
    return _TRACE.match(head) is not None or _RAISED.fullmatch(last) is not None
