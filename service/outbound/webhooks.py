"""Webhooks: notify a receiver, signed by the Standard Webhooks convention (standardwebhooks.com, v1).

A delivery is one POST with three headers: `webhook-id`, the same in every try, so that a receiver can detect duplicates;
`webhook-timestamp`, the time of this try, in Unix seconds; `webhook-signature`, `v1,` and the base64 of the HMAC-SHA256 of
`<id>.<timestamp>.<body>`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import time
from collections.abc import Callable, Iterable, Mapping

from service.errors import InputError, WebhookError
from service.outbound.http import AddressError, NoAnswerError, Outbound, Resolver, Target, resolve_host

BASE64_PREFIX = "whsec_"
"""The prefix of a secret in base64."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,255}")
"""No dot, as it separates the id from the rest of what is signed."""


def read_secret(secret: str) -> bytes:
    """Decode the key of a secret: base64 after `whsec_`, otherwise the text itself. Raises ValueError if it is neither.

    >>> read_secret("whsec_c2VjcmV0"), read_secret("secret")
    (b'secret', b'secret')
    """
    try:
        key = (
            base64.b64decode(secret[len(BASE64_PREFIX) :], validate=True)
            if secret.startswith(BASE64_PREFIX)
            else secret.encode()
        )
    except (binascii.Error, ValueError):  # neither of these quotes the secret
        key = b""
    if not key:
        raise ValueError("expected text, or whsec_ and base64")
    return key


def signature(secret: str, id: str, timestamp: str, body: bytes) -> str:  # noqa: A002 (the convention's name)
    """Return the signature of one delivery, as the header holds it."""
    digest = hmac.digest(read_secret(secret), f"{id}.{timestamp}.".encode() + body, hashlib.sha256)
    return f"v1,{base64.b64encode(digest).decode()}"


def verify(
    secret: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    tolerance: float = 300.0,
    now: Callable[[], float] = time.time,
) -> None:
    """Verify a delivery, as a receiver must before believing it. Needs only the standard library.

    `body` is the bytes as received: parsed and rendered again, they may differ. Raises ValueError if a header is missing, the
    timestamp is more than `tolerance` seconds from `now` (an old delivery, sent again by somebody else), or no signature is
    valid. In a header with several signatures, as while a secret is being changed, one valid signature is enough.

    >>> secret, body = "whsec_c2VjcmV0", b'{"type": "batch.completed"}'
    >>> headers = {
    ...     "Webhook-Id": "batch_7",
    ...     "Webhook-Timestamp": "1700000000",
    ...     "Webhook-Signature": "v1,KYvdB+R13f7nVuUJu0CwmM2qfgutju2VYkb9jFdLGcY=",
    ... }
    >>> verify(secret, headers, body, now=lambda: 1700000060)
    >>> verify(secret, headers, b'{"type": "batch.failed"}', now=lambda: 1700000060)
    Traceback (most recent call last):
    ValueError: the signature does not fit
    >>> verify(secret, headers, body, now=lambda: 1700000301)
    Traceback (most recent call last):
    ValueError: the timestamp is 301 s away
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    id, timestamp, signatures = (lowered.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))  # noqa: A001
    if not (id and signatures and timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 16):
        raise ValueError("expected the headers webhook-id, webhook-timestamp (Unix seconds) and webhook-signature")
    away = abs(now() - int(timestamp))
    if away > tolerance:
        raise ValueError(f"the timestamp is {away:.0f} s away")
    expected = signature(secret, id, timestamp, body).encode()
    if not any(hmac.compare_digest(expected, one.encode()) for one in signatures.split(" ")):
        raise ValueError("the signature does not fit")


class Webhooks:
    """The receivers that requests may name: `hosts` as host (with its scheme's default port) or host:port.

    `timeout` in seconds for one try. Raises ValueError for a secret that starts like base64 and is not.
    """

    def __init__(
        self,
        hosts: Iterable[str],
        *,
        secret: str,
        allow_private: bool = False,
        timeout: float = 10.0,
        resolve: Resolver = resolve_host,
        now: Callable[[], float] = time.time,
    ) -> None:
        if secret:
            read_secret(secret)
        hosts = tuple(hosts)
        self._missing = "" if hosts and secret else "no webhook host" if not hosts else "no webhook secret"
        self._secret = secret
        self._now = now
        self._outbound = Outbound(hosts, allow_private=allow_private, timeout=timeout, max_bytes=0, resolve=resolve)

    def admit(self, url: str) -> Target:
        """Return the target of a URL. Raises InputError at /webhook if it is not allowed, or if webhooks are not set up."""
        if self._missing:
            raise InputError.at("/webhook", f"webhooks are off here: {self._missing} is set")
        return self._outbound.admit(url, place="/webhook")

    async def deliver(self, url: str, *, id: str, body: bytes) -> None:  # noqa: A002 (the convention's name)
        """Make one try. The receiver has accepted the notice if it answers 2xx, whatever the body of its answer.

        `id` is at most 255 letters, digits, `_` and `-`; raises ValueError for another. Raises WebhookError, retryable if
        another try may help: no answer, 429, 5xx; not after another status, a redirect, an address that may not be connected
        to, or a URL that is no longer allowed.
        """
        if not _ID.fullmatch(id):
            raise ValueError("expected an id of letters, digits, _ and -")
        try:
            target = self.admit(url)
        except InputError as error:
            raise WebhookError(error.problems[0].message, retryable=False) from None
        timestamp = str(int(self._now()))
        signed = signature(self._secret, id, timestamp, body)
        headers = {"webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signed}
        try:
            answer = await self._outbound.exchange(target, body, headers)
        except AddressError as error:
            raise WebhookError(str(error), retryable=False) from None
        except NoAnswerError as error:
            raise WebhookError(f"the receiver did not answer: {error}", retryable=True) from None
        if not 200 <= answer.status < 300:
            retryable = answer.status == 429 or answer.status >= 500
            raise WebhookError(f"the receiver {answer.status_text}", retryable=retryable)
