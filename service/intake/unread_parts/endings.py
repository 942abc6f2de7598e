"""How replies ended, and what was cut or hidden in them: of what is not whole nobody knows what else it would have held."""

from __future__ import annotations

import re
from typing import NamedTuple

from service.core.json.members import JsonObject
from service.core.json.walk import list_leaves
from service.core.trace import ToolCall, UnreadKind
from service.intake.texts import to_snake

_CALLING = re.compile(r"(?:tool|function)s?_?(?:calls?|use)$|^requires_action$")
"""Endings of replies that call tools."""
FAILED = re.compile(
    "abort|cancel|error|fail|malformed|insufficient|unexpected_tool_call|too_many_tool_calls|missing_thought_signature"
)
"""Endings, in lower case, of replies that failed on the way: nobody knows what they would have held."""
_CUT = re.compile(
    r"length|max_?\w*_?(?:tokens|turns|steps|iterations)|token_?limit|context_?window|truncat|cut_?off|incomplete|partial|"
    r"filter|safety|blocklist|blocked|guardrail|prohibited|recitation|spii|sensitive|refus|moderation|^language$|redact|"
    rf"{FAILED.pattern}|time_?d?_?out|timeout|interrupt|expired|overload|disconnect|"
    r"pause|pending|in_?progress|queued|waiting|running|streaming|unfinished"
)
"""Endings of replies that were cut by a limit, withheld by a filter, broke off, or are not yet whole."""

ENDINGS = ("finish_reason", "finishReason", "stop_reason", "stopReason", "done_reason")
"""Members that say how a reply ended."""


EMPTY = "nothing"
"""The ending of a reply that is empty, whatever it says of its end."""


class Ending(NamedTuple):
    """How a reply ended, and the pointer to the member that says so."""

    reason: str
    path: str


def list_missing(reason: str, *, called: bool) -> tuple[UnreadKind, ...]:
    """List what a reply with this ending may lack. `called`: whether it has a call.

    >>> list_missing("FinishReason.SAFETY", called=False), list_missing("tool_calls", called=False)
    (('call', 'text'), ('call',))
    >>> (
    ...     list_missing("stop", called=False),
    ...     list_missing("max_tokens", called=True),
    ...     list_missing("tool_use", called=True),
    ... )
    ((), ('call', 'text'), ())
    """
    name = to_snake(reason.rpartition(".")[2])
    if name == EMPTY or _CUT.search(name):
        return ("call", "text")
    return ("call",) if _CALLING.search(name) and not called else ()


def find_ending(raw: JsonObject, path: str) -> Ending | None:
    """Return the ending that an object states: an error, else the first member that names a reason; None if it states none."""
    if raw.get("error"):
        return Ending("error", f"{path}/error")
    return next((Ending(value, f"{path}/{name}") for name in ENDINGS if isinstance(value := raw.get(name), str)), None)


_HIDDEN = re.compile(
    r"\s*(?:[<\[({*_#-]{1,3}\s*)?(?:redacted|filtered|masked|hidden|omitted|removed|scrubbed|elided|"
    r"content[ _]?(?:not[ _])?(?:captured|hidden|redacted|removed))"
    r"(?:[ _-]?(?:by \w+|content|value|data|pii))?(?:\s*[>\])}*_#-]{1,3})\s*",
    re.IGNORECASE,
)
_CUT_TEXT = re.compile(
    r"\.{3}\s*\(?\w*truncated|…\s*[\[(<]?\w*truncated|[<\[(]\w*\s*truncated\b[^<>\[\]()\n]{0,60}[>\])]"
    r"|[\[(<]\.{0,3}…?\s*\d[\d,]*\s*(?:more\s+)?(?:chars|characters|bytes|tokens|lines)\s+(?:truncated|omitted|skipped|removed|more)"
    r"|truncated due to|_truncated skipped \d+",
    re.IGNORECASE,
)
_SIGNS = (
    *("trunc", "redact", "filter", "mask", "hidden", "omitted", "removed", "scrubbed", "elided", "skipped", "captured"),
    *("...", "…", "more "),
)
_ELSEWHERE = re.compile(r"\s*(?:attachment|artifact|blob|ref)://\S+\s*")
_ELLIPSIS = re.compile(r"(?:\.\.\.|…)[\"'\s\])}]*\Z")


def may_be_lost(text: str) -> bool:
    """Whether a text has what every sign of a loss has: a cheap test that rejects most texts."""
    return any(map(text.lower().__contains__, _SIGNS))


def is_hidden(text: str) -> bool:
    """Whether a text stands in place of one that was hidden.

    >>> is_hidden("<redacted>"), is_hidden("__REDACTED__"), is_hidden("[Filtered]"), is_hidden("Removed.")
    (True, True, True, False)
    """
    return len(text) < 60 and _HIDDEN.fullmatch(text) is not None


def is_cut(text: str) -> bool:
    """Whether an exporter says that it cut a text.

    >>> (
    ...     is_cut("Oslo ...[truncated 512 chars]"),
    ...     is_cut("<truncated due to size exceeding limit>"),
    ...     is_cut("truncated cones"),
    ... )
    (True, True, False)
    """
    return _CUT_TEXT.search(text) is not None


ARGUMENTS_CUT = "the arguments were cut"


def drop_lost_arguments(call: ToolCall) -> ToolCall:
    """Return the call without arguments that were cut or hidden: nobody knows what the model wrote.

    >>> [
    ...     (call.captured, call.problem)
    ...     for city in ("[REDACTED]", "Os...[truncated]")
    ...     for call in [drop_lost_arguments(ToolCall(None, "f", {"city": city}))]
    ... ]
    [(False, None), (False, 'the arguments were cut')]
    """
    texts = [call.raw] if call.arguments is None else []
    if call.arguments:
        texts = [leaf.value for leaf in list_leaves(dict(call.arguments), limit=200)]
    texts = [text for text in texts if isinstance(text, str)]
    cut = any(map(is_cut, texts)) or (call.arguments is None and any(map(_ELLIPSIS.search, texts)))
    if not cut and not any(map(is_hidden, texts)):
        return call
    problem = ARGUMENTS_CUT if cut else None
    return ToolCall(call.id, call.name, None, problem=problem, captured=False, tool_id=call.tool_id)


def is_lost(text: str) -> bool:
    """Whether a result or a reply was hidden, cut at its end, or is kept elsewhere.

    >>> is_lost("attachment://a1f9"), is_lost("https://example.com/a1f9")
    (True, False)
    """
    return is_hidden(text) or is_cut(text[-200:]) or _ELSEWHERE.fullmatch(text) is not None
