"""The items on which judge and labels disagree most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from service.calibration.bench import Bench

MAX_TEXT_CHARS = 400
"""The most characters of a text that a report shows."""
MAX_ANNOTATORS_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An item on which judge and labels disagree; its line in the labelled set leads to the whole of it."""

    id: str
    line: int
    label: bool
    labels: tuple[str, ...]
    """Each annotator's label, with their notes."""
    raw: float
    value: float
    answer: str
    """What the model said, where the item has no trace."""
    reason: str
    """The judge's reason in its own words; empty where none is recorded."""


def list_disagreements(bench: Bench, count: int) -> Iterator[Disagreement]:
    """Yield the held-out items with a wrong verdict, those first whose value lies furthest from the label."""
    wrong = [
        (abs(bench.values[item.key].value - item.passes), item) for item in bench.held_out if not bench.agrees(item)
    ]
    for _, item in sorted(wrong, key=lambda pair: (-pair[0], pair[1].id))[:count]:
        first, found = bench.recorded.first.get(item.key), bench.values[item.key]
        labels = [
            f"{one.annotator}: {'pass' if one.label else 'fail'}" + (f" ({shorten(one.note)})" if one.note else "")
            for one in item.labels[:MAX_ANNOTATORS_SHOWN]
        ]
        yield Disagreement(
            id=item.id,
            line=bench.labels.lines[item.key],
            label=item.passes,
            labels=tuple(labels),
            raw=found.raw,
            value=found.value,
            answer=shorten(item.answer or ""),
            reason=shorten(first.reason if first else ""),
        )


def shorten(text: str, limit: int = MAX_TEXT_CHARS) -> str:
    """Return the text, or its two ends with the number of characters left out between them.

    >>> shorten("abcdefghij", 4)
    'ab [6 characters] ij'
    """
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} [{len(text) - 2 * half} characters] {text[-half:]}"
