"""What differs where a model runs on a server of the user's own: nobody bills it, and it may be slow."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from service.core.judging.prompts import Prompt

TOKENS_IN_PER_S = 50.0
"""Prompt tokens that a slow machine reads in a second: two processor cores, a small model."""

TOKENS_OUT_PER_S = 10.0
"""Tokens that it writes in a second, likewise."""

MAX_SECONDS = 1_800.0
"""The longest that one reply may take."""

FIRST_IN_FLIGHT = 4
"""Concurrent requests to begin with: most local servers have as many slots or fewer."""

_CHARS_PER_TOKEN = 3.0


def is_local(address: str | None) -> bool:
    """Whether an address is that of this machine or of a private network, as far as its text says: no name is resolved.

    >>> [
    ...     is_local(one)
    ...     for one in ("http://localhost:11434/v1", "http://10.0.0.5/v1", "http://[::1]:8000", "http://vllm:8000")
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


def find_deadline(prompt: Prompt, *, least: float, in_flight: int, thinking: int) -> float:
    """Return the seconds that a slow machine may take for a reply, with room to think and a share of it for each request.

    `least`: the seconds that every reply gets.
    """
    tokens_in = sum(len(turn.text) for turn in prompt.turns) / _CHARS_PER_TOKEN
    seconds = tokens_in / TOKENS_IN_PER_S + (prompt.max_tokens + thinking) / TOKENS_OUT_PER_S
    return max(least, min(MAX_SECONDS, seconds * max(1, in_flight)))
