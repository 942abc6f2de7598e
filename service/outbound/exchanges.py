"""The limits on an exchange with a provider, and notes on those of one call to a model, taken where the bytes pass.

litellm reports faults in the provider's words. Our reports come from these notes, in our own words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

CONNECT_S = 5.0
"""Most seconds to connect: a host that is there accepts in a fraction of a second."""

MAX_BYTES = 8 * 2**20
"""Default most bytes of a reply: 8,192 tokens with 20 alternatives each would take 16 MiB, a judge's usual 600 tokens take 1."""

MAX_VALUES = 20_000
"""Most JSON values in a reply without logprobs; usual ones have some fifty. litellm takes 20 s for 8 MiB of short values."""

VALUES_PER_TOKEN = 400
"""JSON values that log-probabilities add per token: 21 alternatives, each with a text, a number and the bytes of the text."""


@dataclass(frozen=True, slots=True)
class ExchangeBounds:
    """The limits of each exchange of a call. Seconds count from its start: slowly arriving bytes extend none of them."""

    total_s: float = 60.0
    """Until the last byte of the answer."""
    connect_s: float = CONNECT_S
    """Until there is a connection, including the resolution of its name."""
    max_bytes: int = MAX_BYTES
    max_values: int = MAX_VALUES
    """Most JSON values in the body of an answer."""

    def with_logprobs(self, tokens: int) -> ExchangeBounds:
        """Return the bounds for a reply of so many tokens with log-probabilities and alternatives."""
        return replace(self, max_values=self.max_values + tokens * VALUES_PER_TOKEN)


Fault = Literal[
    "no connection",
    "late connection",
    "refused address",
    "late",
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


_PARTS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[,\[{]', re.DOTALL)
"""The strings of a JSON text, and the starts of values. It never backtracks, so an unterminated text takes no extra time."""


def holds_more_values(body: bytes, most: int) -> bool:
    """Whether a JSON text has roughly more than `most` values, each of which takes some hundred times its bytes once parsed.

    Ignores the contents of strings. Accepts any text: in one that is not JSON it inspects as many parts.

    >>> holds_more_values(b'{"a": [1, 2, 3]}', 5), holds_more_values(b"[[],[],[],[]]", 2)
    (False, True)
    >>> holds_more_values(b'["' + b"," * 1_000_000 + b'"]', 2)
    False
    """
    if body.count(b",") + body.count(b"[") + body.count(b"{") <= most:
        return False
    return any(number >= 3 * most for number, _ in enumerate(_PARTS.finditer(body)))
