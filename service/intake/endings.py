"""How replies ended.

A reply that failed, was withheld or broke off may lack calls or text, and a model is not held to those.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from service.core.json.members import JsonObject
from service.core.trace import UnreadKind
from service.intake.build import Transcript
from service.intake.unread import clip

FAILED = frozenset(
    {
        "abort",
        "aborted",
        "cancelled",
        "error",
        "failed",
        "insufficient_system_resource",
        "malformed_function_call",
        "malformed_model_output",
        "malformed_response",
        "malformed_tool_use",
        "missing_thought_signature",
        "network_error",
        "too_many_tool_calls",
        "unexpected_tool_call",
    }
)
"""Endings of replies that failed on the way: nobody knows what they would have held."""
WITHHELD = frozenset(
    {
        "blocklist",
        "content_filter",
        "content_filtered",
        "guardrail_intervened",
        "image_safety",
        "language",
        "prohibited_content",
        "recitation",
        "safety",
        "spii",
    }
)
"""Endings of replies that their provider withheld, provided that they are empty: some providers also use them for
refusals in words.
"""
CALLING = frozenset({"tool_calls", "tool_call", "function_call", "tool_use"})
"""Endings of replies that call tools."""

ENDINGS = ("finish_reason", "finishReason", "stop_reason", "stopReason")
"""Members that say how a reply ended."""


class Ending(NamedTuple):
    """How a reply ended, and the pointer to the member that says so."""

    reason: str
    path: str


def note_reply_ending(transcript: Transcript, raw: JsonObject, path: str) -> None:
    """Report what the latest reply lacks, if the object at `path` says how it ended."""
    for ending in list_endings(raw, path):
        called = transcript.is_calling() or transcript.has_unread_call()
        note_ending(transcript, ending, said=transcript.has_spoken(), called=called)


def note_ending(transcript: Transcript, ending: Ending, *, said: bool, called: bool) -> None:
    """Report what a reply with this ending lacks. `said`, `called`: whether the reply has text or a call."""
    missing = list_missing(ending.reason, said=said, called=called)
    what = f"a reply that ended with {clip(ending.reason)!r}"
    if "text" in missing:
        note_missing_reply(transcript, ending.path, what)
    elif missing:
        transcript.note_unread("call", ending.path, f"a call in {what}")


def list_missing(reason: str, *, said: bool, called: bool) -> tuple[UnreadKind, ...]:
    """List what a reply with this ending may lack.

    >>> (
    ...     list_missing("FinishReason.SAFETY", said=False, called=False),
    ...     list_missing("tool_calls", said=True, called=False),
    ... )
    (('call', 'text'), ('call',))
    >>> list_missing("stop", said=False, called=False), list_missing("content_filter", said=True, called=False)
    ((), ())
    """
    name = reason.lower().rpartition(".")[2]  # clients write enums with their names
    if name in FAILED or (name in WITHHELD and not said and not called):
        return ("call", "text")
    return ("call",) if name in CALLING and not called else ()


def note_missing_reply(transcript: Transcript, path: str, what: str) -> None:
    """Report a missing reply: nobody knows what the model would have called or said."""
    transcript.note_unread("call", path, f"a call in {what}")
    transcript.note_unread("text", path, what)


def list_endings(raw: JsonObject, path: str) -> Iterator[Ending]:
    """Iterate over the ending that an object states: an error first, else the first member that names a reason.

    One at most.
    """
    if raw.get("error"):
        yield Ending("error", f"{path}/error")
        return
    reasons = ((name, raw.get(name)) for name in ENDINGS)
    yield from [Ending(value, f"{path}/{name}") for name, value in reasons if isinstance(value, str)][:1]
