"""What may go wrong between a client and the service, and when to try again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import random

from service.errors import CallgradeError
from service.problems import ProblemDetails

PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""The statuses after which the same request may do better."""


class UnreachableError(CallgradeError):
    """No answer came, or only a part of one. `begun`: whether there was a connection."""

    retryable = True

    def __init__(self, message: str, *, begun: bool = True) -> None:
        self.begun = begun
        super().__init__(message)


class ForeignError(CallgradeError):
    """An answer that is none of callgrade's."""

    def __init__(self) -> None:
        super().__init__("the answer is none of callgrade's")


class RefusedError(CallgradeError):
    """An answer that says why not. `problem` is its document, `retry_after` the seconds that it asks to wait."""

    def __init__(self, problem: ProblemDetails, *, retry_after: float | None = None) -> None:
        self.problem = problem
        self.retryable = problem.status in PASSING or retry_after is not None
        self.retry_after = retry_after
        super().__init__(f"{problem.detail} ({problem.status})")


@dataclass(frozen=True, slots=True)
class Retries:
    """How often the same is asked, and how long is waited between: as the service says, else twice as long each time.

    `draw` gives a number from 0 to 1, so that clients that failed together do not come back together.
    """

    attempts: int = 4
    first_wait_s: float = 0.5
    longest_wait_s: float = 60.0
    draw: Callable[[], float] = random

    def find_wait(self, attempt: int, error: CallgradeError) -> float | None:
        """The seconds before the next attempt, after so many; None where there is none.

        >>> found = Retries(draw=lambda: 1.0).find_wait
        >>> found(1, UnreachableError("")), found(3, UnreachableError("")), found(4, UnreachableError(""))
        (0.5, 2.0, None)
        """
        if attempt >= self.attempts or not error.retryable:
            return None
        said: float | None = getattr(error, "retry_after", None)
        if said is not None:
            return said if said <= self.longest_wait_s else None
        longest = min(self.longest_wait_s, self.first_wait_s * 2 ** (attempt - 1))
        return longest * (0.5 + 0.5 * self.draw())


ONCE = Retries(attempts=1)
"""No second attempt."""
