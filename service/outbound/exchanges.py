"""The limits on an outbound exchange, and notes on those of one call to a model, taken where the bytes pass.

litellm reports faults in the provider's words. Our reports come from these notes, in our own words.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

CONNECT_S = 5.0
"""Default seconds to connect: a host that is there accepts in a fraction of a second."""


class Timeouts(NamedTuple):
    """Seconds, each from the start of the exchange: slowly arriving bytes extend none of them."""

    connect: float
    """Until there is a connection, including the resolution of its name."""
    first_byte: float
    """Until the head of the answer is complete."""
    total: float
    """Until the last byte of the answer."""

    @classmethod
    def within(cls, total: float, *, connect: float = CONNECT_S, first_byte: float | None = None) -> Timeouts:
        """Build timeouts, none of which exceeds the total.

        >>> Timeouts.within(60.0), Timeouts.within(2.0, first_byte=1.5)
        (Timeouts(connect=5.0, first_byte=60.0, total=60.0), Timeouts(connect=2.0, first_byte=1.5, total=2.0))
        """
        return cls(min(connect, total), min(total, total if first_byte is None else first_byte), total)


MAX_BYTES = 8 * 2**20
"""Default most bytes of an unpacked reply: 8,192 tokens with 20 alternatives each would take 16 MiB, a judge's usual 600 tokens
take 1."""


MAX_VALUES = 20_000
"""Most JSON values in a reply without logprobs; usual ones have some fifty. litellm takes 20 s for 8 MiB of short values."""

VALUES_PER_TOKEN = 400
"""JSON values that log-probabilities add per token: 21 alternatives, each with a text, a number and the bytes of the text."""


@dataclass(frozen=True, slots=True)
class ExchangeBounds:
    """The limits of each exchange of a call."""

    times: Timeouts = field(default_factory=lambda: Timeouts.within(60.0))
    max_bytes: int = MAX_BYTES
    """Limit of the body of an answer, both as received and unpacked."""
    max_values: int = MAX_VALUES
    """Most JSON values in it."""

    def with_logprobs(self, tokens: int) -> ExchangeBounds:
        """Return the bounds for a reply of so many tokens with log-probabilities and alternatives."""
        return replace(self, max_values=self.max_values + tokens * VALUES_PER_TOKEN)


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
"""Why an exchange passed no answer on."""


@dataclass(slots=True)
class ExchangeNotes:
    """What happened in the exchanges of one call; the details are those of the last one."""

    bounds: ExchangeBounds
    answers: int = 0
    """How many complete answers were passed on: a reply without one came by a way that nothing limits."""
    sent: bool = False
    """Whether any request may have reached the provider."""
    status: int | None = None
    """The HTTP status of the last answer, complete or not."""
    retry_after: str = ""
    refusal: bytes = b""
    """The beginning of an error answer: searched for codes that we know, and never repeated."""
    fault: Fault | None = None
    """Why the last exchange failed; None if it did not."""

    def begin(self) -> None:
        """Start the notes of the next exchange."""
        self.status, self.retry_after, self.refusal, self.fault = None, "", b"", None
