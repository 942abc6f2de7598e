"""Name errors whose texts may hold a password."""

from __future__ import annotations

from asyncio import CancelledError


def name_error_kind(error: Exception) -> str:
    """Name the kind of an error, or of its cause, if its text may contain an address with a password.

    >>> name_error_kind(TimeoutError())
    'TimeoutError'
    """
    cause = error.__cause__
    return type(error if cause is None or isinstance(cause, CancelledError) else cause).__name__
