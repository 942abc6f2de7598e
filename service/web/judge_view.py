"""Plots of a judge in SVG: where points in [0, 1] x [0, 1] are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

SIDE = 200
"""Units of a plot from 0 to 1."""
FEWEST = 5
"""Labelled items from which on plots are drawn."""


class Point(Protocol):
    """A point in [0, 1] x [0, 1]."""

    @property
    def x(self) -> float:
        """To the right."""
        ...

    @property
    def y(self) -> float:
        """Upwards."""
        ...

    @property
    def items(self) -> int:
        """Of how many items it is."""
        ...


class PlotPoint(NamedTuple):
    """A point, and where it is drawn."""

    x: float
    y: float
    items: int

    @property
    def left(self) -> float:
        """From the left."""
        return round(30 + SIDE * self.x, 1)

    @property
    def top(self) -> float:
        """From above."""
        return round(10 + SIDE * (1 - self.y), 1)


class Plots(NamedTuple):
    """The two plots of a judge."""

    reliability: tuple[PlotPoint, ...]
    coverage: tuple[PlotPoint, ...]

    @property
    def path(self) -> str:
        """The curve of coverage, as SVG draws it."""
        return " ".join(f"{'L' if at else 'M'}{one.left} {one.top}" for at, one in enumerate(self.coverage))


def build_plots(reliability: Sequence[Point], coverage: Sequence[Point]) -> Plots:
    """The plots of these points, those of the curve from left to right."""
    dots, curve = [tuple([PlotPoint(one.x, one.y, one.items) for one in points]) for points in (reliability, coverage)]
    return Plots(dots, tuple(sorted(curve, key=lambda one: one.x)))
