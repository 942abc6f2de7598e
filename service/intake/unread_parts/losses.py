"""What an exporter cut or hid in a call, a result or a text: it leaves open what it is of, and is never wrong."""

from __future__ import annotations

import re

from service.core.json.walk import list_leaves
from service.core.trace import ToolCall

_HIDDEN = re.compile(
    r"\s*(?:[<\[({*_#-]{1,3}\s*)?(?:redacted|filtered|masked|hidden|omitted|removed|scrubbed|elided|"
    r"content[ _]?(?:not[ _])?(?:captured|hidden|redacted|removed))"
    r"(?:[ _-]?(?:by \w+|content|value|data|pii))?(?:\s*[>\])}*_#-]{1,3})\s*",
    re.IGNORECASE,
)
_CUT = re.compile(
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
    return _CUT.search(text) is not None


def drop_lost_arguments(call: ToolCall) -> ToolCall:
    """Return the call without arguments that were cut or hidden: nobody knows what the model wrote.

    >>> drop_lost_arguments(ToolCall(None, "f", {"city": "[REDACTED]"})).captured
    False
    """
    if call.arguments is None:
        raw = call.raw
        lost = isinstance(raw, str) and (is_hidden(raw) or is_cut(raw) or _ELLIPSIS.search(raw) is not None)
    else:
        lost = bool(call.arguments) and any(
            isinstance(leaf.value, str) and (is_hidden(leaf.value) or is_cut(leaf.value))
            for leaf in list_leaves(dict(call.arguments), limit=200)
        )
    return ToolCall(call.id, call.name, None, captured=False, tool_id=call.tool_id) if lost else call


def is_lost(text: str) -> bool:
    """Whether a result or a reply was hidden, cut at its end, or is kept elsewhere.

    >>> is_lost("attachment://a1f9"), is_lost("https://example.com/a1f9")
    (True, False)
    """
    return is_hidden(text) or is_cut(text[-200:]) or _ELSEWHERE.fullmatch(text) is not None
