"""What can go wrong between a client and the service, and when to try again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import random

from service.errors import CallgradeError
from service.problems import ProblemDetails

TRANSIENT_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504, 507})
"""Statuses after which the same request may succeed."""


class UnreachableError(CallgradeError):
    """No answer came, or only a part of one. `connected`: whether there was a connection."""

    retryable = True

    def __init__(self, message: str, *, connected: bool = True) -> None:
        self.connected = connected
        super().__init__(message)


class ForeignError(CallgradeError):
    """The answer does not come from callgrade."""

    def __init__(self) -> None:
        super().__init__("the answer does not come from callgrade")


class RefusedError(CallgradeError):
    """The service refused. `problem` is its problem document, `retry_after` the seconds it asks to wait."""

    def __init__(self, problem: ProblemDetails, *, retry_after: float | None = None) -> None:
        self.problem = problem
        self.retryable = problem.status in TRANSIENT_STATUSES or retry_after is not None
        self.retry_after = retry_after
        super().__init__(f"{problem.detail} ({problem.status})")


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a call is tried, and the wait between: as the service says, else twice as long each time.

    `draw` returns a number from 0 to 1, so that clients that failed together do not come back together.
    """

    attempts: int = 4
    first_wait_s: float = 0.5
    longest_wait_s: float = 60.0
    draw: Callable[[], float] = random

    def find_wait(self, attempt: int, error: CallgradeError) -> float | None:
        """Return the seconds before the next attempt, after `attempt` of them; None if there is no next one.

        >>> find_wait = Retries(draw=lambda: 1.0).find_wait
        >>> find_wait(1, UnreachableError("")), find_wait(3, UnreachableError("")), find_wait(4, UnreachableError(""))
        (0.5, 2.0, None)
        """
        if attempt >= self.attempts or not error.retryable:
            return None
        retry_after: float | None = getattr(error, "retry_after", None)
        if retry_after is not None:
            return retry_after if retry_after <= self.longest_wait_s else None
        longest = min(self.longest_wait_s, self.first_wait_s * 2 ** (attempt - 1))
        return longest * (0.5 + 0.5 * self.draw())
