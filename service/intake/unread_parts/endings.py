"""How replies ended. Of one that was cut, withheld or broken off nobody knows what else it would have held."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from service.core.json.members import JsonObject
from service.core.trace import UnreadKind

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
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", reason.rpartition(".")[2]).lower().replace("-", "_").replace(" ", "_")
    if name == EMPTY or _CUT.search(name):
        return ("call", "text")
    return ("call",) if _CALLING.search(name) and not called else ()


def list_endings(raw: JsonObject, path: str) -> Iterator[Ending]:
    """Iterate over the ending that an object states: an error first, else the first member that names a reason.

    One at most.
    """
    if raw.get("error"):
        yield Ending("error", f"{path}/error")
        return
    reasons = ((name, raw.get(name)) for name in ENDINGS)
    yield from [Ending(value, f"{path}/{name}") for name, value in reasons if isinstance(value, str)][:1]
