"""Errors of calls to models, with what limits and budgets must know about them, in our own words.

An explanation quotes neither litellm nor the provider. The status and the headers are those that the transport noted; litellm
invents a 500 for whatever it cannot name. Nothing here imports litellm: its errors are read by their shape, and only for what
the status does not say.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Collection, Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import cast

from service.core.judging.prompts import Usage
from service.errors import FaultCause, JudgeError
from service.outbound.exchanges import ExchangeNotes, Fault

MAX_RETRY_AFTER_S = 3_600.0
"""The most seconds that Retry-After can demand; more is read as this."""

MAX_PAUSE_S = 60.0
"""The default for the most seconds that a provider can make us wait."""


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
        sent: bool = True,
    ) -> None:
        super().__init__(cause, reason, retryable=retryable, retry_after=retry_after)
        self.status = status
        """The HTTP status of the provider's answer; None if there was no answer, or if it was 200."""
        self.usage = usage
        """What it took. None: nothing is billed. A usage without cost: a bill of unknown size may come."""
        self.pause_cut = pause_cut
        """Whether the provider asked for a longer pause than `retry_after`, our maximum: waiting that long is useless."""
        self.sent = sent
        """Whether anything may have reached the provider; if not, the call does not count."""


class NotSentError(JudgeError):
    """No request was made: the provider is down, the key is closed, or a pause is longer than the caller waits.

    `retry_after` gives the seconds until the next request may go out; until then, further calls fail the same way, at once.
    """


def is_rate_limit(error: JudgeError) -> bool:
    """Whether the provider asked for fewer requests."""
    return isinstance(error, CallError) and error.status == 429 and error.cause == "provider_error"


def closes_key(error: JudgeError) -> bool:
    """Whether further requests with the same key are useless: no quota is left, or the key is not accepted."""
    return error.cause in {"quota_exhausted", "unauthorized"}


def is_outage(error: JudgeError) -> bool:
    """Whether the error means that the provider is down. A refusal, or an error in the request, does not."""
    if isinstance(error, NotSentError) or is_rate_limit(error):
        return False
    return error.cause in {"timeout", "unreachable"} or (error.cause == "provider_error" and error.retryable)


# How a failure is explained.

NO_KEY = "no key is set for the provider (CALLGRADE_JUDGE_API_KEY or its own variable)"

_SCANNED_CHARS = 65_536
"""Characters of litellm's own error that are searched."""

_QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "insufficient_balance"})
_TRANSIENT_STATUSES = frozenset({408, 409, 425, 429})
_MISSING_KEY = re.compile(
    r"((litellm\.)?\w+: (\w+: )?(\w+Exception (\w+ )?- )?)?"
    r"(Missing credentials\. Please pass|Missing \w+ API key\. Set the|\w+_API_KEY is not set)"
)
"""How litellm and the providers' clients start the message about a missing key. Later parts of it may quote users."""

_FAULTS: Mapping[Fault, tuple[FaultCause, bool, str]] = {
    "no connection": ("unreachable", True, "the provider cannot be reached"),
    "late connection": ("unreachable", True, "no connection to the provider in {connect:g} s"),
    "refused address": ("provider_error", False, "the provider has an address that may not be connected to"),
    "late": ("timeout", True, "no whole reply in {total:g} s"),
    "broken": ("provider_error", True, "the connection broke off before the reply was whole"),
    "too long": ("provider_error", False, "the reply passes {most} bytes"),
    "too many": ("provider_error", False, "the reply holds more than {values} values"),
    "packed": ("provider_error", True, "the reply is compressed, which was not asked for"),
    "redirect": ("provider_error", False, "the provider answered {status}, and redirects are not followed"),
}
"""For each fault: the cause, whether a retry can help, and our words."""

_HINTS = {
    "model_not_found": "it knows no such model",
    "context_length_exceeded": "the question is too long for the model",
    "unsupported_parameter": "the model does not take what the request asks for",
    "unsupported_value": "the model does not take what the request asks for",
}
"""Our words for the codes of OpenAI's protocol that tell an operator what to do."""


_PARAM_WORDS: Mapping[str, tuple[str, ...]] = {
    "response_format": ("response_format", "json_schema", "grammar"),
    "tools": ("tools", "tool_choice"),
    **{
        name: (name,) for name in ("max_tokens", "max_completion_tokens", "temperature", "logprobs", "reasoning_effort")
    },
}
"""The parameters that a request can do without, and what an answer that refuses one contains."""


def find_refused_params(notes: ExchangeNotes, sent: Collection[str]) -> frozenset[str]:
    """Find the parameters, of those that were sent, that the answer to a request seems to refuse."""
    if notes.status not in (400, 422, 500, 501):
        return frozenset()
    text = notes.refusal.decode(errors="replace")
    return frozenset(name for name in sent if any(word in text for word in _PARAM_WORDS.get(name, ())))


def explain_failure(
    error: Exception,
    notes: ExchangeNotes,
    *,
    longest_pause: float = MAX_PAUSE_S,
    now: Callable[[], float] = time.time,
) -> CallError:
    """Explain an error of litellm by the notes on its exchanges. `now` is the wall clock, for dates in Retry-After."""
    if notes.fault is None:
        cause, retryable, reason = _explain_refusal(error, notes)
    else:
        cause, retryable, words = _FAULTS[notes.fault]
        bounds = notes.bounds
        limits = {"most": bounds.max_bytes, "values": bounds.max_values}
        reason = words.format(status=notes.status, connect=bounds.connect_s, total=bounds.total_s, **limits)
    status = notes.status if notes.status is not None and notes.status >= 300 else None
    lost = notes.sent and (cause == "timeout" or (retryable and status is None))  # it may have been billed
    pause = read_retry_after(notes.retry_after, now=now) if _is_transient(status) else None
    return CallError(
        cause,
        reason,
        status=status,
        usage=Usage() if lost else None,
        retryable=retryable,
        retry_after=None if pause is None else min(pause, longest_pause),
        pause_cut=pause is not None and pause > longest_pause,
        sent=notes.sent,
    )


def _explain_refusal(error: Exception, notes: ExchangeNotes) -> tuple[FaultCause, bool, str]:
    """Return the cause, whether a retry can help, and our words, for an answer that litellm turned into an error."""
    if (status := notes.status) is None:
        return _explain_unsent(error)
    body = getattr(error, "body", None)
    fields: Mapping[str, object] = cast("Mapping[str, object]", body) if isinstance(body, Mapping) else {}
    named_codes = {str(fields.get("code")), str(fields.get("type")), str(getattr(error, "code", None))}
    known = (*_QUOTA_CODES, *_HINTS)
    codes = [code for code in known if code in named_codes or f'"{code}"'.encode() in notes.refusal]
    bracketed = "" if status < 300 else f" ({status})"
    if type(error).__name__ == "ContentPolicyViolationError":
        return "filtered", False, f"the provider's filter stopped the question{bracketed}"
    if status == 401:
        return "unauthorized", False, "the provider does not accept the key (401)"
    if status == 402 or not _QUOTA_CODES.isdisjoint(codes):
        return "quota_exhausted", False, f"no quota is left with the provider{bracketed}"
    if status < 300:  # an error inside a 200, or a mistake of ours, which comes again
        return "provider_error", hasattr(error, "llm_provider"), "the provider's reply could not be read"
    named = f"{status} {HTTPStatus(status).phrase}" if status in set(HTTPStatus) else str(status)
    hint = next((f": {_HINTS[code]}" for code in codes if code in _HINTS), "")
    reason = f"the provider answered {named}{hint}"
    if status == 404 or "model_not_found" in codes:
        return "unknown_model", False, reason
    return "timeout" if status == 408 else "provider_error", _is_transient(status), reason


def _explain_unsent(error: Exception) -> tuple[FaultCause, bool, str]:
    """Do likewise where litellm raised an error without an answer."""
    invented = getattr(error, "status_code", None)
    if type(error).__name__ == "ContentPolicyViolationError":
        return "filtered", False, "the provider's filter stopped the question"
    if invented == 401 or _MISSING_KEY.match(str(error)[:_SCANNED_CHARS]):  # which it reports as a 500
        return "unauthorized", False, NO_KEY
    if invented in (400, 404):  # litellm knows no provider for such a name
        return "unknown_model", False, f"litellm knows no such model ({type(error).__name__})"
    retryable = isinstance(invented, int) and invented >= 500
    return "provider_error", retryable, f"the provider could not be asked ({type(error).__name__})"


def _is_transient(status: int | None) -> bool:
    return status is not None and (status in _TRANSIENT_STATUSES or status >= 500)


def read_retry_after(text: str, *, now: Callable[[], float] = time.time) -> float | None:
    """Read Retry-After in seconds (RFC 9110 10.2.3: seconds or an HTTP date); 0.0 if it is past, None if it says nothing.

    >>> read_retry_after("2"), read_retry_after("-5"), read_retry_after("1e99")
    (2.0, 0.0, 3600.0)
    >>> read_retry_after("Thu, 01 Jan 1970 00:01:10 GMT", now=lambda: 60.0)
    10.0
    >>> read_retry_after("soon"), read_retry_after("nan"), read_retry_after("")
    (None, None, None)
    """
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - now()
        except (ValueError, OverflowError, TypeError):
            return None
    return None if math.isnan(seconds) else min(max(seconds, 0.0), MAX_RETRY_AFTER_S)
