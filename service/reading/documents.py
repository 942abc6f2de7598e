"""Find where JSON documents start and end in bytes, without parsing them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from service.errors import TooLargeError

PIECE_BYTES = 64 * 2**10

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["\[\]{},]', re.DOTALL)
"""The structural tokens of JSON text: strings, brackets and commas; a lone quote is a string without an end."""
_DEPTH_CHANGES = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}


def is_whole(line: bytes) -> bool:
    """Whether a line looks like a complete object: it starts with a brace, and every bracket is closed."""
    return line.lstrip().startswith(b"{") and count_open(line) == 0


def count_open(text: bytes) -> int | None:
    """Count the brackets that a piece of JSON opens and does not close; None if it ends within a string."""
    depth = 0
    for token in _TOKEN.finditer(text):
        if token[0] == b'"':
            return None
        depth += _DEPTH_CHANGES.get(token[0], 0)
    return depth


def continues(before: bytes, line: bytes) -> bool:
    """Whether JSON that was broken into lines may go on from one line to the next."""
    return before.rstrip().endswith((b"{", b"[", b",", b":")) or line.lstrip().startswith((b"}", b"]", b",", b":"))


class Elements:
    """The elements of a JSON list, read piece by piece from where it starts.

    `end` is what was read beyond the list, None if the list is not closed. At most `most` bytes and a piece are held.

    Raises TooLargeError: an element is larger than that.
    """

    def __init__(self, head: bytes, read: Callable[[int], bytes], most: int) -> None:
        self._data = head
        self._read = read
        self._most = most
        self._counted = 0
        self.line = 0
        """Lines that end before the element that was yielded last, or before the end."""
        self.end: bytes | None = None

    def __iter__(self) -> Iterator[bytes]:
        start = at = self._data.index(b"[") + 1
        depth, several = 1, False
        while True:
            for token in _TOKEN.finditer(self._data, at):
                if token[0] == b'"':  # perhaps the piece ends within a string
                    at = token.start()
                    break
                at = token.end()
                depth += _DEPTH_CHANGES.get(token[0], 0)
                if depth == 0:
                    if several or self._data[start : token.start()].strip():
                        yield self._take(start, token.start())
                    self._count_lines(at)
                    self.end = self._data[at:]
                    return
                if depth == 1 and token[0] == b",":
                    yield self._take(start, token.start())
                    start, several = at, True
            if not self._read_more(start):
                if self._data[start:].strip():
                    yield self._take(start, len(self._data))
                self._count_lines(len(self._data.rstrip()))
                return
            start, at = 0, at - start

    def _read_more(self, start: int) -> bool:
        """Drop what stands before `start`, and append the next piece; false if there is none."""
        if len(self._data) - start > self._most:
            raise TooLargeError.at("", f"an element of more than {self._most} bytes; what follows was not read")
        more = self._read(max(PIECE_BYTES, len(self._data) - start))
        if more:
            self._count_lines(start)
            self._data, self._counted = self._data[start:] + more, 0
        return bool(more)

    def _take(self, start: int, end: int) -> bytes:
        """Return an element without the blanks around it."""
        piece = self._data[start:end]
        element = piece.lstrip()
        self._count_lines(end - len(element))
        return element.rstrip()

    def _count_lines(self, end: int) -> None:
        self.line += self._data.count(b"\n", self._counted, end)
        self._counted = end


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
