"""What differs where a model runs on a server of the user's own: nobody bills it, and it may be slow."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

LOCAL_DEADLINE_S = 1_800
"""Seconds for one reply: two processor cores read 50 tokens of a prompt in a second, and write ten."""

HOSTED_DEADLINE_S = 60
"""Seconds for one reply of a hosted model."""

FIRST_IN_FLIGHT = 4
"""Concurrent requests to begin with: most local servers have as many slots or fewer."""


def is_local(address: str | None) -> bool:
    """Whether an address is that of this machine or of a private network, as far as its text says: no name is resolved.

    >>> [
    ...     is_local(one)
    ...     for one in ("http://localhost:11434/v1", "http://10.0.0.5/v1", "http://[::1]:8000", "http://vllm")
    ... ]
    [True, True, True, True]
    >>> [
    ...     is_local(one)
    ...     for one in ("https://api.openai.com/v1", "http://8.8.8.8/v1", "http://localhost.example.org", None)
    ... ]
    [False, False, False, False]
    """
    try:
        host = (urlsplit(address or "").hostname or "").rstrip(".")
    except ValueError:
        return False
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return bool(host) and ("." not in host or host.endswith((".localhost", ".local", ".internal", ".lan")))
    return found.is_loopback or found.is_private


def choose_deadline(address: str | None, seconds: int) -> int:
    """Return the seconds for one reply: those that are set, or, with 0, those that suit the server."""
    return seconds or (LOCAL_DEADLINE_S if is_local(address) else HOSTED_DEADLINE_S)
