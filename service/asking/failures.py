"""What went wrong with a call, as a CallError in our own words: none of litellm's, and none of the provider's.

The status and the headers are those that the transport noted; litellm invents a 500 for whatever it cannot name. Nothing here
imports litellm: its errors are read by their shape, and only for what the status does not say.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import cast

from service.asking.faults import CallError
from service.core.judging.prompts import Usage
from service.errors import FaultCause
from service.outbound.exchanges import ExchangeNotes, Fault

LONGEST_WAIT = 3_600.0
"""Seconds that Retry-After can say; more is read as this."""

LONGEST_PAUSE = 60.0
"""Seconds for which a provider can have us wait, where nothing else is said."""

_SCANNED = 65_536
"""Characters of litellm's own error that are looked at."""

_QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "insufficient_balance"})
_PASSING = frozenset({408, 409, 425, 429})
_KEYLESS = re.compile(
    r"(litellm\.)?\w+: (\w+: )?(\w+Exception (\w+ )?- )?"
    r"(Missing credentials\. Please pass|Missing \w+ API key\. Set the|\w+_API_KEY is not set)"
)
"""How litellm and the providers' own clients begin to say it. Further on in a message may stand what somebody wrote."""

_FAULTS: Mapping[Fault, tuple[FaultCause, bool, str]] = {
    "no connection": ("unreachable", True, "the provider cannot be reached"),
    "late connection": ("timeout", True, "no connection to the provider in {connect:g} s"),
    "refused address": ("provider_error", False, "the provider stands at an address that may not be connected to"),
    "late head": ("timeout", True, "no reply began in {first_byte:g} s"),
    "late body": ("timeout", True, "no whole reply in {total:g} s"),
    "broken": ("provider_error", True, "the connection broke off before the reply was whole"),
    "too long": ("provider_error", False, "the reply passes {most} bytes"),
    "too many": ("provider_error", False, "the reply holds more than {values} values"),
    "packed": ("provider_error", True, "the reply is packed in a way that cannot be read"),
    "redirect": ("provider_error", False, "the provider answered {status}, and redirects are not followed"),
}
"""The cause, whether another try can help, and our words."""

_HINTS = {
    "model_not_found": "it knows no such model",
    "context_length_exceeded": "the question is too long for the model",
    "unsupported_parameter": "the model does not take what the request asks for",
    "unsupported_value": "the model does not take what the request asks for",
}
"""What we say of the codes of OpenAI's protocol that tell an operator what to do."""


def explain_failure(
    error: Exception,
    found: ExchangeNotes,
    *,
    longest_pause: float = LONGEST_PAUSE,
    now: Callable[[], float] = time.time,
) -> CallError:
    """What litellm raised, with what was noted of its exchanges. `now` is the time of day, for dates in Retry-After."""
    cause, retryable, reason = _explain_fault(found) or _explain_refusal(error, found)
    status = found.status if found.status is not None and found.status >= 300 else None
    lost = found.sent and (cause == "timeout" or (retryable and status is None))  # it may have been billed
    asked = read_retry_after({"retry-after": found.retry_after}, now=now) if _is_passing(status) else None
    return CallError(
        cause,
        reason,
        status=status,
        usage=Usage() if lost else None,
        retryable=retryable,
        retry_after=None if asked is None else min(asked, longest_pause),
        pause_cut=asked is not None and asked > longest_pause,
    )


def _explain_fault(found: ExchangeNotes) -> tuple[FaultCause, bool, str] | None:
    if found.fault is None:
        return None
    cause, retryable, words = _FAULTS[found.fault]
    times = found.bounds.times._asdict()
    return (
        cause,
        retryable,
        words.format(most=found.bounds.max_bytes, values=found.bounds.max_values, status=found.status, **times),
    )


def _explain_refusal(error: Exception, found: ExchangeNotes) -> tuple[FaultCause, bool, str]:
    """The cause, whether trying again can help, and our words, for an answer that litellm made an error of."""
    status = found.status
    if type(error).__name__ == "ContentPolicyViolationError":
        return "filtered", False, f"the provider's filter stopped the question{_bracket_status(status)}"
    if status == 401 or (status is None and _lacks_key(error)):
        words = "no key is set for the provider" if status is None else "the provider does not accept the key (401)"
        return "unauthorized", False, words
    if status == 402 or (status is not None and _QUOTA_CODES & set(_find_codes(error, found))):
        return "quota_exhausted", False, f"no quota is left with the provider{_bracket_status(status)}"
    if status is None:
        invented = getattr(error, "status_code", None)
        if invented in (400, 404):  # litellm knows no provider for such a name
            return "unknown_model", False, f"litellm knows no such model ({type(error).__name__})"
        again = isinstance(invented, int) and invented >= 500
        return "provider_error", again, f"nothing could be asked of the provider ({type(error).__name__})"
    if status < 300:  # an error inside a 200, or a mistake of ours, which comes again
        return "provider_error", hasattr(error, "llm_provider"), "the provider's reply could not be read"
    if status == 404 or "model_not_found" in _find_codes(error, found):
        return "unknown_model", False, _describe_answer(status, error, found)
    return "timeout" if status == 408 else "provider_error", _is_passing(status), _describe_answer(status, error, found)


def _describe_answer(status: int, error: Exception, found: ExchangeNotes) -> str:
    hint = next((_HINTS[code] for code in _find_codes(error, found) if code in _HINTS), "")
    return f"the provider answered {_name_status(status)}" + (f": {hint}" if hint else "")


def _name_status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _bracket_status(status: int | None) -> str:
    return "" if status is None or status < 300 else f" ({status})"


def _is_passing(status: int | None) -> bool:
    return status is not None and (status in _PASSING or status >= 500)


def _lacks_key(error: Exception) -> bool:
    """Whether no request was made for want of a key, which litellm calls a 500."""
    return getattr(error, "status_code", None) == 401 or _KEYLESS.match(str(error)[:_SCANNED]) is not None


def _find_codes(error: Exception, found: ExchangeNotes) -> Iterator[str]:
    """The codes that we know, in the answer or in what litellm made of it."""
    body = getattr(error, "body", None)
    fields: Mapping[str, object] = cast("Mapping[str, object]", body) if isinstance(body, Mapping) else {}
    told = {*map(str, map(fields.get, ("code", "type"))), str(getattr(error, "code", None))}
    yield from (code for code in (*_QUOTA_CODES, *_HINTS) if code in told or f'"{code}"'.encode() in found.refusal)


def read_retry_after(headers: Mapping[str, str], *, now: Callable[[], float] = time.time) -> float | None:
    """Seconds from Retry-After (RFC 9110 10.2.3: seconds or an HTTP date); 0.0 for what is past, None where it tells nothing.

    >>> (
    ...     read_retry_after({"retry-after": "2"}),
    ...     read_retry_after({"retry-after": "-5"}),
    ...     read_retry_after({"retry-after": "1e99"}),
    ... )
    (2.0, 0.0, 3600.0)
    >>> read_retry_after({"retry-after": "Thu, 01 Jan 1970 00:01:10 GMT"}, now=lambda: 60.0)
    10.0
    >>> read_retry_after({"retry-after": "soon"}), read_retry_after({"retry-after": "nan"}), read_retry_after({})
    (None, None, None)
    """
    text = headers.get("retry-after", "").strip()
    seconds = _parse_number(text)
    if seconds is None:
        seconds = _parse_date(text, now)
    return None if seconds is None else min(max(seconds, 0.0), LONGEST_WAIT)


def _parse_number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return None if math.isnan(found) else found


def _parse_date(text: str, now: Callable[[], float]) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp() - now()
    except (ValueError, OverflowError, TypeError):
        return None
