"""Know that the process is asked to stop while it still answers: an endless response would hold it up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def watch_stop_signals(stopping: threading.Event) -> Generator[None]:
    """Within the block, a stop signal sets the event and then does what it did before.

    Outside the main thread no signals arrive, and this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def note_signal(number: int, frame: FrameType | None) -> None:
        stopping.set()
        earlier = before[signal.Signals(number)]
        if callable(earlier):
            earlier(number, frame)

    for number in SIGNALS:
        signal.signal(number, note_signal)
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
