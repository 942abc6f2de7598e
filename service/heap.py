"""Keep the garbage collector from scanning, again and again, the objects that a process of ours keeps for good.

Scanning took a third of the time of a call through litellm, whose modules are half a million objects.
"""

from __future__ import annotations

import gc
from threading import Event

YOUNG_OBJECTS = 10_000
"""New objects that trigger a young collection; Python's default of 700 is for small programs."""

_OURS = Event()


def claim_process() -> None:
    """Mark this process as ours and freeze what it has loaded.

    For a server or a worker, never for a process that uses callgrade as a library.
    """
    _OURS.set()
    gc.set_threshold(YOUNG_OBJECTS, 20, 20)
    gc.collect()
    gc.freeze()


def freeze_loaded() -> None:
    """Freeze what is there, after something large was loaded. Does nothing in a process that is not ours.

    It does not collect first: requests may be running, and would wait a fifth of a second.
    """
    if _OURS.is_set():
        gc.freeze()
