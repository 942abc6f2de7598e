"""Signals to a process that waits."""

from __future__ import annotations

import asyncio
import signal
import threading
import time

from service.cli.scoring import wake_by_signals


def test_a_signal_that_comes_to_another_thread_is_heard_where_nothing_else_happens():
    late: list[bool] = []
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        heard = loop.create_future()
        before = signal.signal(signal.SIGUSR1, lambda *_: heard.set_result(None))
        sender = threading.Thread(target=_signal_itself)
        try:
            with wake_by_signals(loop):
                loop.call_later(10, late.append, True)
                loop.call_soon(sender.start)
                loop.run_until_complete(heard)
        finally:
            sender.join()
            signal.signal(signal.SIGUSR1, before)
    assert not late
    assert signal.set_wakeup_fd(-1) == -1


def _signal_itself() -> None:
    time.sleep(0.2)  # until the loop waits
    signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
