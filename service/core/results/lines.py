"""Lines of a text with their places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class Line(NamedTuple):
    """A line without its end, and the place where it starts."""

    start: int
    text: str

    @property
    def end(self) -> int:
        """The place behind its last character."""
        return self.start + len(self.text)


def iter_lines(text: str) -> Iterator[Line]:
    r"""The lines of a text, as `\n` or `\r\n` end them.

    >>> [line for line in iter_lines("a\r\nb")]
    [Line(start=0, text='a'), Line(start=3, text='b')]
    """
    at = 0
    for line in text.split("\n"):
        yield Line(at, line.removesuffix("\r"))
        at += len(line) + 1


def group_filled(lines: Iterable[Line]) -> Iterator[Sequence[Line]]:
    """Runs of lines that are not blank."""
    run: list[Line] = []
    for line in lines:
        if line.text.strip():
            run.append(line)
        elif run:
            yield run
            run = []
    if run:
        yield run
