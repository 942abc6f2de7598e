"""Plots of a judge in SVG: where points in [0, 1] x [0, 1] are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

SIDE = 200
"""Length of a plot's side, from 0 to 1, in SVG units."""
MIN_ITEMS = 5
"""Labelled items needed to draw plots."""


class Point(Protocol):
    """A point in [0, 1] x [0, 1]."""

    @property
    def x(self) -> float:
        """The position to the right."""
        ...

    @property
    def y(self) -> float:
        """The position upwards."""
        ...

    @property
    def items(self) -> int:
        """The number of items behind the point."""
        ...


class PlotPoint(NamedTuple):
    """A point, and where it is drawn."""

    x: float
    y: float
    items: int

    @property
    def left(self) -> float:
        """The distance from the left, in SVG units."""
        return round(30 + SIDE * self.x, 1)

    @property
    def top(self) -> float:
        """The distance from the top, in SVG units."""
        return round(10 + SIDE * (1 - self.y), 1)


class Plots(NamedTuple):
    """The two plots of a judge."""

    reliability: tuple[PlotPoint, ...]
    coverage: tuple[PlotPoint, ...]

    @property
    def path(self) -> str:
        """The coverage curve as an SVG path."""
        return " ".join(f"{'L' if at else 'M'}{one.left} {one.top}" for at, one in enumerate(self.coverage))


def build_plots(reliability: Sequence[Point], coverage: Sequence[Point]) -> Plots:
    """Build the plots of these points; the curve runs from left to right."""
    dots, curve = [tuple([PlotPoint(one.x, one.y, one.items) for one in points]) for points in (reliability, coverage)]
    return Plots(dots, tuple(sorted(curve, key=lambda one: one.x)))
