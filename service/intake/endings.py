"""How replies ended.

A reply that failed, was withheld or broke off may lack calls or text, and a model is not held to those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pydantic import JsonValue

from service.core.trace import UnreadKind
from service.intake.accounting import clip
from service.intake.build import Transcript

Given = Mapping[str, JsonValue]

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


def account_reply(transcript: Transcript, given: Given, path: str) -> None:
    """Report what the latest reply lacks, if the object at `path` says how it ended."""
    for ending in list_endings(given, path):
        called = transcript.is_calling() or transcript.has_lost_call()
        account_ending(transcript, ending, said=transcript.has_spoken(), called=called)


def account_ending(transcript: Transcript, ending: Ending, *, said: bool, called: bool) -> None:
    """Report what a reply with this ending lacks. `said`, `called`: whether the reply has text or a call."""
    lost = list_lost(ending.reason, said=said, called=called)
    what = f"a reply that ended with {clip(ending.reason)!r}"
    if "text" in lost:
        lose_reply(transcript, ending.path, what)
    elif lost:
        transcript.lose("call", ending.path, f"a call in {what}")


def list_lost(reason: str, *, said: bool, called: bool) -> tuple[UnreadKind, ...]:
    """List what a reply with this ending may lack.

    >>> list_lost("FinishReason.SAFETY", said=False, called=False), list_lost("tool_calls", said=True, called=False)
    (('call', 'text'), ('call',))
    >>> list_lost("stop", said=False, called=False), list_lost("content_filter", said=True, called=False)
    ((), ())
    """
    name = reason.lower().rpartition(".")[2]  # clients write enums with their names
    if name in FAILED or (name in WITHHELD and not said and not called):
        return ("call", "text")
    return ("call",) if name in CALLING and not called else ()


def lose_reply(transcript: Transcript, path: str, what: str) -> None:
    """Report a missing reply: nobody knows what the model would have called or said."""
    transcript.lose("call", path, f"a call in {what}")
    transcript.lose("text", path, what)


def list_endings(given: Given, path: str) -> Iterator[Ending]:
    """Iterate over the ending that an object states: an error first, else the first member that names a reason.

    One at most.
    """
    if given.get("error"):
        yield Ending("error", f"{path}/error")
        return
    told = ((name, given.get(name)) for name in ENDINGS)
    yield from [Ending(value, f"{path}/{name}") for name, value in told if isinstance(value, str)][:1]
