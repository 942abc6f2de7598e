"""Find where JSON documents start and end in bytes, without parsing them."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["\[\]{},]', re.DOTALL)
"""The structural tokens of JSON text: strings, brackets and commas; a lone quote is a string without an end."""
_DEPTH_CHANGES = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}


def is_whole(line: bytes) -> bool:
    """Whether a line looks like a complete object: it starts with a brace, and every bracket is closed."""
    if not line.lstrip().startswith(b"{"):
        return False
    depth = 0
    for token in _TOKEN.finditer(line):
        if token[0] == b'"':
            return False
        depth += _DEPTH_CHANGES.get(token[0], 0)
    return depth == 0


class Elements:
    """Yields where each element of a JSON list starts and ends. `end` is the position after the list; None if not closed."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.end: int | None = None

    def __iter__(self) -> Iterator[tuple[int, int]]:
        start = self._data.index(b"[") + 1
        depth, several = 0, False
        for token in _TOKEN.finditer(self._data):
            if token[0] == b'"':
                break
            depth += _DEPTH_CHANGES.get(token[0], 0)
            if depth == 0:
                self.end = token.end()
                if several or self._data[start : token.start()].strip():
                    yield start, token.start()
                return
            if depth == 1 and token[0] == b",":
                yield start, token.start()
                start, several = token.end(), True
        if self._data[start:].strip():
            yield start, len(self._data)


def split_documents(data: bytes) -> list[tuple[int, int]]:
    """Return where each of several documents starts and ends that follow one another; what is no bracket is a piece too.

    >>> data = b'{"a": 1} {"b": "}"}\\x1e[2]'
    >>> [data[start:end].strip() for start, end in split_documents(data)]
    [b'{"a": 1}', b'{"b": "}"}', b'[2]']
    """
    pieces: list[tuple[int, int]] = []
    start = depth = 0
    for token in _TOKEN.finditer(data):
        if token[0] == b'"':
            break
        depth += _DEPTH_CHANGES.get(token[0], 0)
        if depth == 0 and token[0] in (b"}", b"]"):
            pieces.append((start, token.end()))
            start = token.end()
    if data[start:].strip(SEPARATORS):
        pieces.append((start, len(data)))
    return [(begin + _count_blank(data[begin:end]), end) for begin, end in pieces]


def _count_blank(piece: bytes) -> int:
    return len(piece) - len(piece.lstrip(SEPARATORS))


SEPARATORS = b" \t\r\n\x1e"
"""What may stand between documents: white space, and the record separator of RFC 7464."""
