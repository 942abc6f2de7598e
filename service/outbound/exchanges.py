"""What one call of a model may take of the network, and what came of its exchanges: noted where the bytes pass.

litellm tells of faults in words that are the provider's. What is told of them here comes from these notes and is our own.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Literal

from service.outbound.timeouts import Timeouts

MAX_BYTES = 8 * 2**20
"""Bytes of a reply, unpacked, where nothing else is said: 8,192 tokens with 20 alternatives each would take 16 MiB, a
judge's usual 600 take 1."""


MAX_VALUES = 20_000
"""JSON values in a reply without log-probabilities; one has some fifty. litellm takes 20 s for 8 MiB of short ones."""

VALUES_A_TOKEN = 400
"""JSON values that log-probabilities add for each token: 21 alternatives with a text, a number and the bytes of the text."""


@dataclass(frozen=True, slots=True)
class ExchangeBounds:
    """What each exchange of a call may take."""

    times: Timeouts = field(default_factory=lambda: Timeouts.within(60.0))
    max_bytes: int = MAX_BYTES
    """Of the body of an answer, as it came and unpacked."""
    max_values: int = MAX_VALUES
    """JSON values in it."""

    def with_logprobs(self, tokens: int) -> ExchangeBounds:
        """The same for a reply of so many tokens with the log-probabilities of each and of its alternatives."""
        return replace(self, max_values=self.max_values + tokens * VALUES_A_TOKEN)


Fault = Literal[
    "no connection",
    "late connection",
    "refused address",
    "late head",
    "late body",
    "broken",
    "too long",
    "too many",
    "packed",
    "redirect",
]
"""Why an exchange gave no answer that was passed on."""


@dataclass(slots=True)
class ExchangeNotes:
    """What came of the exchanges of one call. Those of the last one stand."""

    bounds: ExchangeBounds
    answers: int = 0
    """How many whole answers were passed on: a reply without one came by a way that nobody bounds."""
    sent: bool = False
    """Whether any request may have reached the provider."""
    status: int | None = None
    """The HTTP status of the last answer, whole or not."""
    retry_after: str = ""
    refusal: bytes = b""
    """The beginning of an answer that was an error: looked at for codes that we know, and never repeated."""
    fault: Fault | None = None
    """Why the last exchange failed; None where it did not."""

    def begin(self) -> None:
        """The next exchange."""
        self.status, self.retry_after, self.refusal, self.fault = None, "", b"", None


_NOTES: ContextVar[ExchangeNotes | None] = ContextVar("callgrade_exchanges", default=None)


def get_notes() -> ExchangeNotes | None:
    """The notes of the call of ours that this code runs for; None where it runs for somebody else's."""
    return _NOTES.get()


@contextmanager
def note_exchanges(bounds: ExchangeBounds) -> Generator[ExchangeNotes]:
    """The notes of all exchanges that are made within, in tasks and threads that inherit this context too."""
    found = ExchangeNotes(bounds)
    token = _NOTES.set(found)
    try:
        yield found
    finally:
        _NOTES.reset(token)
