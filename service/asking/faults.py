"""Errors of calls to models, with what limits and budgets must know about them."""

from __future__ import annotations

from service.core.judging.prompts import Usage
from service.errors import FaultCause, JudgeError


class CallError(JudgeError):
    """A request that was made and returned nothing usable."""

    def __init__(  # noqa: PLR0913 (each one is needed by some handler)
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
        """The HTTP status of the provider's answer; None if there was no answer, or if it was 200."""
        self.usage = usage
        """What it took. None: nothing is billed. A usage without cost: a bill of unknown size may come."""
        self.pause_cut = pause_cut
        """Whether the provider asked for a longer pause than `retry_after`, our maximum: waiting that long is useless."""


class NotSentError(JudgeError):
    """No request was made: the provider is down, the key is closed, or a pause is longer than the caller waits.

    `retry_after` gives the seconds until the next request may go out; until then, further calls fail the same way, at once.
    """


def is_rate_limit(error: JudgeError) -> bool:
    """Whether the provider asked for fewer requests."""
    return isinstance(error, CallError) and error.status == 429 and error.cause == "provider_error"


def is_overload(error: JudgeError) -> bool:
    """Whether the provider had more requests than it can take: too many a minute, or all its slots in use."""
    return isinstance(error, CallError) and (error.status == 503 or is_rate_limit(error))


def closes_key(error: JudgeError) -> bool:
    """Whether further requests with the same key are useless: no quota is left, or the key is not accepted."""
    return error.cause in {"quota_exhausted", "unauthorized"}


def wants_long_pause(error: JudgeError) -> bool:
    """Whether the provider asked for a longer pause than we wait: nobody need queue for the end of it."""
    return is_rate_limit(error) and isinstance(error, CallError) and error.pause_cut


def is_outage(error: JudgeError) -> bool:
    """Whether the error means that the provider is down. A refusal, or an error in the request, does not."""
    if isinstance(error, NotSentError) or is_rate_limit(error):
        return False
    return error.cause == "timeout" or (error.cause == "provider_error" and error.retryable)
