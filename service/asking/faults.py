"""Errors of calls to models, with what the limits and the bill need to know of them."""

from __future__ import annotations

from service.core.judging.prompts import Usage
from service.errors import FaultCause, JudgeError


class CallError(JudgeError):
    """A request that was made and gave nothing usable."""

    def __init__(  # noqa: PLR0913 (each is told apart by somebody)
        self,
        cause: FaultCause,
        reason: str,
        *,
        status: int | None = None,
        usage: Usage | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        pause_cut: bool = False,
    ) -> None:
        super().__init__(cause, reason, retryable=retryable, retry_after=retry_after)
        self.status = status
        """The HTTP status of the provider's answer; None where none came, or where it was 200."""
        self.usage = usage
        """What it took. None: nothing is billed. A usage without cost: a bill may come, nobody knows of how much."""
        self.pause_cut = pause_cut
        """Whether the provider asked for a longer pause than `retry_after`, the longest we make: waiting for it is in vain."""


class NotSentError(JudgeError):
    """No request was made: the provider is down, the key is closed, or a pause outlasts the caller's patience.

    `retry_after` says in how many seconds the next one may be; until then further calls end the same way, at once.
    """


def is_rate_limit(error: JudgeError) -> bool:
    """Whether the provider asked for fewer requests."""
    return isinstance(error, CallError) and error.status == 429 and error.cause == "provider_error"


def closes_key(error: JudgeError) -> bool:
    """Whether more requests with the same key are in vain: no quota is left, or the key is not accepted."""
    return error.cause in {"quota_exhausted", "unauthorized"}


def wants_long_pause(error: JudgeError) -> bool:
    """Whether the provider asked to be left alone for longer than we wait: nobody need queue for the end of that."""
    return is_rate_limit(error) and isinstance(error, CallError) and error.pause_cut


def is_outage(error: JudgeError) -> bool:
    """Whether it speaks of a provider that is down. A refusal, or an error in the request, does not."""
    if isinstance(error, NotSentError) or is_rate_limit(error):
        return False
    return error.cause == "timeout" or (error.cause == "provider_error" and error.retryable)
