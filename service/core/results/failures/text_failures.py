"""Find what in a text reports that the call failed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from service.core.results.failures.json_failures import PHRASES
from service.core.trace import ToolFailure

MAX_HEAD_CHARS = 4_000
"""Characters at the beginning of a text that are searched."""
MAX_TRACEBACK_CHARS = 40_000

_STATUS_LINE = re.compile(r"HTTP/[0-9](?:\.[0-9])? {1,4}([45][0-9]{2})(?: {1,4}([A-Za-z' -]{0,40}))?\r?")
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,60}:[ \t].{0,1000}")
_CLIENT = re.compile(r"([45][0-9]{2}) (?:Client|Server) Error: [^\n]{0,80} for url: \S{1,2000}")
_LINE = re.compile(r"(?:HTTP Error|HTTP|Status|Error)?:? {0,4}([45][0-9]{2})[ :-]{1,4}([A-Za-z' -]{2,40})\.?")
_PYTHON = re.compile(r"Traceback \(most recent call last\):")
_CHAIN = re.compile(
    r"(?:During handling of the above exception, another exception occurred|The above exception was the direct cause of the"
    r" following exception):"
)
_RAISED = re.compile(r"[A-Za-z_][\w.]{0,200}(?:: .*)?")
_THROWN = re.compile(
    r"(?:Uncaught |Exception in thread \"[^\"\n]{0,100}\" )?[A-Za-z_$][\w.$]{0,200}(?:Error|Exception)(?:: .*)?"
)
_FRAME = re.compile(r"\s{1,12}at .|Caused by: |\s{1,12}(?:Suppressed: |\.\.\. \d)")
_AGENTS_SDK = "An error occurred while running the tool. Please try again. Error: "
_LANGGRAPH = ("Error: ", "\n Please fix your mistakes.")
_MCP = re.compile(r"Error executing tool ([^\s:]{1,200}): ")
"""What agent frameworks return for a tool that raised an error."""
_TRACE = re.compile(r"(?m)^Traceback \(most recent call last\):$")
_LIKELY = re.compile(
    r"\W{0,3}(?:[A-Za-z_.]{0,60}(?:error|exception)|failed|failure|fatal)\W{0,2}:|error\b|\[(?:error|fatal)\]"
    r"|(?:failed|unable) to |could(?: not|n't) |cannot |can't |an (?:unexpected |internal )?error (?:has )?occurred"
    r"|something went wrong|internal server error|(?:permission|access) denied|unauthorized|forbidden\b|rate limit"
    r"|(?:the )?(?:request|operation|connection) (?:timed out|failed|was refused)|timed out|timeout\b",
    re.IGNORECASE,
)


def find_in_text(text: str, pointer: str, *, tool: str = "") -> ToolFailure | None:
    """Find what in a text reports that the call failed; None where nothing does.

    These are certain, if they are the whole text: an HTTP status or a response with its headers, a traceback, a framework's
    words for a tool that raised. These are only likely, since a log or a manual may look the same: a text that begins like an
    error (`Error: no such order`), or one that contains a traceback.
    """
    bare = text.strip()
    head = bare[:MAX_HEAD_CHARS]
    code = _find_status(bare)
    if code is not None:
        return ToolFailure(True, f"the result is an HTTP status, {code}", pointer)
    if _is_traceback(bare):
        return ToolFailure(True, "the result is a traceback", pointer)
    mcp, langgraph = _MCP.match(bare), bare.startswith(_LANGGRAPH[0]) and bare.endswith(_LANGGRAPH[1])
    raised = mcp[1] == tool if mcp else langgraph or bare.startswith(_AGENTS_SDK)
    if raised:
        return ToolFailure(True, "the result says that the tool raised an error", pointer)
    if _LIKELY.match(head) or _STATUS_LINE.match(head):
        return ToolFailure(False, "the result begins as an error does", pointer)
    if _TRACE.search(head):
        return ToolFailure(False, "the result has a traceback", pointer)
    return None


def _find_status(text: str) -> int | None:
    """Return the status of a text that is a response with its headers, a client's message, or a status with its name."""
    first, _, rest = text.partition("\n")
    line = _STATUS_LINE.fullmatch(first)
    if line is not None:
        has_phrase = (line[2] or "").strip().casefold() in ("", PHRASES.get(int(line[1])))
        return int(line[1]) if (has_phrase and not rest) or _has_headers(rest) else None
    if len(text) > MAX_HEAD_CHARS:
        return None
    client = _CLIENT.fullmatch(text)
    line = client or _LINE.fullmatch(text)
    if line is None or (client is None and PHRASES.get(int(line[1])) != line[2].strip().casefold()):
        return None
    return int(line[1])


def _has_headers(text: str) -> bool:
    """Whether a text begins with lines of headers, up to a blank line or the end."""
    head = text.replace("\r\n", "\n")[:MAX_HEAD_CHARS].partition("\n\n")[0].strip("\n")
    return bool(head) and all(_HEADER.fullmatch(line) for line in head.split("\n"))


def _is_traceback(text: str) -> bool:
    """Whether a text is a traceback of Python, JavaScript or Java and nothing else."""
    if len(text) > MAX_TRACEBACK_CHARS:
        return False
    lines = text.replace("\r\n", "\n").split("\n")
    if _THROWN.fullmatch(lines[0]) and lines[1:]:
        return all(map(_FRAME.match, lines[1:]))
    return bool(_PYTHON.fullmatch(lines[0])) and _is_python_traceback(lines)


def _is_python_traceback(lines: Sequence[str]) -> bool:
    """Whether frames are indented below each heading, then comes the exception; other lines only chain two tracebacks."""
    flat = [line for line in lines if line and not line[0].isspace()]
    heads, raised = flat[::3], flat[1::3]
    return (
        len(flat) % 3 == 2
        and all(map(_PYTHON.fullmatch, heads))
        and all(map(_RAISED.fullmatch, raised))
        and all(map(_CHAIN.fullmatch, flat[2::3]))
        and not lines[-1][:1].isspace()
    )
