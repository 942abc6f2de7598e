"""Find what a span stands within. Spans as read form no circle, so every climb ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

from service.intake.spans.otlp import Span

T = TypeVar("T")


class Enclosing(Generic[T]):
    """Finds the innermost of some chosen spans around a span, for all spans together in linear time.

    `chosen`: what stands for each, by span id.
    """

    def __init__(self, spans: Iterable[Span], chosen: Mapping[str, T]) -> None:
        self._parents = {span.id: span.parent for span in spans if span.id}
        self._chosen = chosen
        self._found: dict[str | None, T | None] = {}

    def find(self, span: Span) -> T | None:
        """Return what stands for the innermost chosen span around this one."""
        path: list[str | None] = []
        here = span.parent
        while here is not None and here not in self._chosen and here not in self._found:
            path.append(here)
            here = self._parents.get(here)
        found = self._chosen.get(here or "", self._found.get(here))
        self._found.update(dict.fromkeys(path, found))
        return found
