"""The heap of a process that is callgrade's alone: what stays for good is not looked through for garbage again and again.

Of a call through litellm a third of the time went into that: its modules are half a million objects.
"""

from __future__ import annotations

import gc
from threading import Event

YOUNG = 10_000
"""Objects more than before at which the young ones are looked through; Python's own 700 is for small programs."""

_OURS = Event()


def own() -> None:
    """Says that this process is ours: what it has loaded stays. For one that serves or works, never for a library's user."""
    _OURS.set()
    gc.set_threshold(YOUNG, 20, 20)
    gc.collect()
    gc.freeze()


def settle() -> None:
    """What is there stays: something large was loaded. Does nothing in a process that belongs to somebody else.

    It is not looked through first: requests may be under way, and would wait for a fifth of a second.
    """
    if _OURS.is_set():
        gc.freeze()
