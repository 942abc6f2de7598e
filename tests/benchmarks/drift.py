"""(q): the nightly test for drift: false alarms in 100 nights, and how soon a fall is found, for judges that vary by chance.

One recorded baseline and the same 200 items for all nights of a stream. A judge that changes a share of its replies by chance
gives another verdict than the night before on so many items: each item has a usual verdict, and every reply, the recorded one
too, is the other one with the same chance. A fall turns the usual verdict of items on which it was right.
"""

from __future__ import annotations

import random
from collections import deque
from math import sqrt
from typing import NamedTuple

from service.calibration.drift import MARGIN, NIGHTS, PairedItem, measure_fall

ITEMS, RIGHT = 200, 0.85
CHANGES = (0.0, 0.05, 0.15)
FALL = 0.10


class Stream(NamedTuple):
    """How a judge behaves: the share of replies that it changes, and from which night on agreement lies lower."""

    changes: float
    nights: int = 100
    fall: float = 0.0
    start: int = 0

    def find_alarm(self, rng: random.Random) -> int | None:
        """The first night with an alarm, from 0."""
        other = (1 - sqrt(1 - 2 * self.changes)) / 2
        usual = [rng.random() < RIGHT for _ in range(ITEMS)]
        then = [one != (rng.random() < other) for one in usual]
        turned = self.fall * ITEMS / (1 - 2 * other)
        count = int(turned) + (rng.random() < turned % 1)
        lost = set(rng.sample([at for at, one in enumerate(usual) if one], count))
        latest = deque[list[bool]](maxlen=NIGHTS)
        for night in range(self.nights):
            now = usual if night < self.start else [one and at not in lost for at, one in enumerate(usual)]
            latest.append([one != (rng.random() < other) for one in now])
            items = [PairedItem(*one) for one in zip(then, zip(*latest, strict=True), strict=True)]
            if measure_fall(items).drifted and night >= self.start:
                return night
        return None


def count_alarms(stream: Stream, streams: int, *, seed: int = 1) -> float:
    """The share of streams with an alarm."""
    rng = random.Random(seed)
    return sum(stream.find_alarm(rng) is not None for _ in range(streams)) / streams


def measure(streams: int = 500) -> None:
    """Prints a row for each judge."""
    print(
        f"(q) drift, {streams} streams of {ITEMS} items: alarms in 100 nights, and falls of {FALL} found in {NIGHTS} nights"
    )
    print(f"    {'changes':>8} {'no fall':>8} {f'fall {MARGIN}':>10} {'found, night 1':>15} {'found, night 51':>16}")
    for changes in CHANGES:
        rates = [
            count_alarms(Stream(changes, *more), streams)
            for more in ((), (100, MARGIN), (NIGHTS, FALL), (50 + NIGHTS, FALL, 50))
        ]
        print("    {:8.0%} {:8.1%} {:10.1%} {:15.1%} {:16.1%}".format(changes, *rates))
