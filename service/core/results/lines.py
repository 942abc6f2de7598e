"""Split a text into lines with their positions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class Line(NamedTuple):
    """A line without its line break, and the position where it starts."""

    start: int
    text: str

    @property
    def end(self) -> int:
        """The position after its last character."""
        return self.start + len(self.text)


def iter_lines(text: str) -> Iterator[Line]:
    r"""Yield the lines of a text, which end in `\n` or `\r\n`.

    >>> [line for line in iter_lines("a\r\nb")]
    [Line(start=0, text='a'), Line(start=3, text='b')]
    """
    start = 0
    for line in text.split("\n"):
        yield Line(start, line.removesuffix("\r"))
        start += len(line) + 1


def group_filled(lines: Iterable[Line]) -> Iterator[Sequence[Line]]:
    """Yield the runs of lines that are not blank."""
    run: list[Line] = []
    for line in lines:
        if line.text.strip():
            run.append(line)
        elif run:
            yield run
            run = []
    if run:
        yield run
