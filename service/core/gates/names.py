"""Tool names that are easily taken for one another."""

from __future__ import annotations

from collections.abc import Iterable

from rapidfuzz.distance import JaroWinkler

from service.core.case import folded


def near(name: str, others: Iterable[str], *, least: float = 0.8) -> list[str]:
    """The names close to `name`, closest first: Jaro-Winkler similarity of at least `least`, or a word in common.

    >>> near("refund_order", ["void_charge", "refund_orders", "cancel_order"])
    ['refund_orders', 'cancel_order']
    """
    words = _words(name)
    scored = [(JaroWinkler.similarity(folded(name), folded(other)), other) for other in others if other != name]
    return [other for score, other in sorted(scored, key=_closest) if score >= least or words & _words(other)]


def _closest(scored: tuple[float, str]) -> tuple[float, str]:
    return (-scored[0], scored[1])


def _words(name: str) -> set[str]:
    return {word for word in folded(name).split("_") if len(word) > 3}
