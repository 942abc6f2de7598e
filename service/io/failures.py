"""What litellm raises, as a CallError. Nothing here imports litellm: its errors are read by their shape."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import cast

from service.core.prompts import Usage
from service.errors import FaultCause
from service.io.faults import CallError
from service.io.redaction import Redactor, cut

LONGEST_WAIT = 3_600.0
"""Seconds that a provider can make us wait by Retry-After; more is read as this."""

_SCANNED = 65_536
"""Characters of an error that are looked at; a gateway may send a whole page."""

_QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "insufficient_balance"})
_PASSING = frozenset({408, 409, 425, 429})
_KEYLESS = re.compile(
    r"(litellm\.)?\w+: (\w+: )?(\w+Exception (\w+ )?- )?"
    r"(Missing credentials\. Please pass|Missing \w+ API key\. Set the|\w+_API_KEY is not set)"
)
"""How litellm and the providers' own clients begin to say it. Further on in a message may stand what somebody wrote."""


def failure(error: Exception, redact: Redactor, *, now: Callable[[], float] = time.time) -> CallError:
    """What litellm raised, as a CallError. `now` is the time of day, for dates in Retry-After."""
    told = getattr(error, "status_code", None)
    status = told if isinstance(told, int) else None
    cause, retryable = _cause(error, status)
    answered = status is not None and (status != 500 or _came_as_status(error))
    lost = cause == "timeout" or (retryable and not answered)  # it may have been answered, and billed
    return CallError(
        cause,
        cut(redact(str(error)[:_SCANNED])) or type(error).__name__,
        status=status if answered else None,
        usage=Usage() if lost else None,
        retryable=retryable,
        retry_after=retry_after(_headers(error), now=now) if status in _PASSING or _is_theirs(status) else None,
    )


def _cause(error: Exception, status: int | None) -> tuple[FaultCause, bool]:
    """The cause, and whether trying again can help."""
    name = type(error).__name__
    if name == "Timeout" or status == 408:
        return "timeout", True
    if name == "ContentPolicyViolationError":
        return "filtered", False
    if status == 401 or _lacks_key(error):
        return "unauthorized", False
    if status == 402 or _QUOTA_CODES & set(_codes(error)):
        return "quota_exhausted", False
    if status is None:  # an error inside a 200, or a mistake of ours, which comes again
        return "provider_error", hasattr(error, "llm_provider")
    return "provider_error", status in _PASSING or _is_theirs(status)


def _lacks_key(error: Exception) -> bool:
    """Whether no request was made for want of a key, which litellm calls a 500."""
    return not _came_as_status(error) and _KEYLESS.match(str(error)) is not None


def _is_theirs(status: int | None) -> bool:
    return status is not None and status >= 500


def _codes(error: Exception) -> Iterator[str]:
    fields = _fields(error, "body")
    yield from (str(fields.get(key)) for key in ("code", "type"))
    yield str(getattr(error, "code", None))
    yield from (known for known in _QUOTA_CODES if known in str(error)[:_SCANNED])


def _came_as_status(error: BaseException) -> bool:
    """Whether a 500 is the provider's: litellm calls a lost connection, or a body it cannot read, by that number too.

    The client's own error for a status is then among those that led to this one.
    """
    link: BaseException | None = error
    while link is not None:
        if type(link).__name__ == "HTTPStatusError":
            return True
        link = link.__cause__ or link.__context__
    return False


def _headers(error: Exception) -> Mapping[str, str]:
    """The provider's headers, which litellm keeps beside the response; that one has its own."""
    kept = _fields(error, "litellm_response_headers")
    return {name.lower().removeprefix("llm_provider-"): str(value) for name, value in kept.items()}


def _fields(error: Exception, name: str) -> Mapping[str, object]:
    found = getattr(error, name, None)
    return cast("Mapping[str, object]", found) if isinstance(found, Mapping) else {}


def retry_after(headers: Mapping[str, str], *, now: Callable[[], float] = time.time) -> float | None:
    """Seconds from Retry-After (RFC 9110 10.2.3: seconds or an HTTP date); 0.0 for what is past, None where it tells nothing.

    >>> retry_after({"retry-after": "2"}), retry_after({"retry-after": "-5"}), retry_after({"retry-after": "1e99"})
    (2.0, 0.0, 3600.0)
    >>> retry_after({"retry-after": "Thu, 01 Jan 1970 00:01:10 GMT"}, now=lambda: 60.0)
    10.0
    >>> retry_after({"retry-after": "soon"}), retry_after({"retry-after": "nan"}), retry_after({})
    (None, None, None)
    """
    text = headers.get("retry-after", "").strip()
    seconds = _number(text)
    if seconds is None:
        seconds = _date(text, now)
    return None if seconds is None else min(max(seconds, 0.0), LONGEST_WAIT)


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return None if math.isnan(found) else found


def _date(text: str, now: Callable[[], float]) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp() - now()
    except (ValueError, OverflowError, TypeError):
        return None
