"""A worker whose clock is set: back by two hours on SIGUSR1, forward by two hours on SIGUSR2."""

from __future__ import annotations

import runpy
import signal
import time

HOURS = {signal.SIGUSR1: -2, signal.SIGUSR2: 2}

if __name__ == "__main__":
    real, shifts = time.time, [0.0]

    def shifted() -> float:
        return real() + sum(shifts)

    def set_clock(number: int, _: object) -> None:
        shifts.append(HOURS[signal.Signals(number)] * 3_600.0)

    for one in HOURS:
        signal.signal(one, set_clock)
    time.time = shifted

    runpy.run_module("tests.jobs.plain", run_name="__main__")
