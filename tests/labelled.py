"""Labelled answers whose truth is known."""

from __future__ import annotations

from typing import Any


def item(number: int, **more: Any) -> dict[str, Any]:
    """An answer about an amount, right two times of three, and mostly labelled so."""
    right = number % 3 > 0
    return {
        "id": f"i{number:03}",
        "criterion": "result_groundedness",
        "group": f"g{number // 2}",
        "payload": {"amount_cents": 5400},
        "answer": f"Order {number} cost ${54 if right else 77}.00.",
        "labels": [{"annotator": "ana", "label": right != (number % 7 == 0)}],
        **more,
    }
