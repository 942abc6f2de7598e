"""Find where JSON documents start and end in bytes, without parsing them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

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


class ListPart(NamedTuple):
    """A piece of a list: an element without the blanks around it, what follows the list, or its missing end (None)."""

    line: int
    """Lines that end before it."""
    data: bytes | None
    element: bool = False


def split_elements(head: bytes, read: Callable[[int], bytes], most: int) -> Iterator[ListPart]:
    """Iterate over the elements of a JSON list, read piece by piece from where it starts, and then over its end.

    At most `most` bytes and a piece are held. Raises TooLargeError: an element is larger than that.
    """
    data, start, depth, several = head, head.index(b"[") + 1, 1, False
    at, line = start, head.count(b"\n", 0, start)
    while True:
        for token in _TOKEN.finditer(data, at):
            if token[0] == b'"':  # perhaps the piece ends within a string
                at = token.start()
                break
            at = token.end()
            depth += _DEPTH_CHANGES.get(token[0], 0)
            if depth == 0 or (depth == 1 and token[0] == b","):
                if depth or several or data[start : token.start()].strip():
                    yield _take_element(data[start : token.start()], line)
                line += data.count(b"\n", start, at)
                start, several = at, True
            if depth == 0:
                yield ListPart(line, data[at:])
                return
        if len(data) - start > most:
            raise TooLargeError.at("", f"an element of more than {most} bytes; what follows was not read")
        more = read(max(PIECE_BYTES, len(data) - start))
        if not more:
            rest = data[start:]
            yield from [_take_element(rest, line)] if rest.strip() else []
            yield ListPart(line + rest.rstrip().count(b"\n"), None)
            return
        data, start, at = data[start:] + more, 0, at - start


def _take_element(data: bytes, line: int) -> ListPart:
    element = data.lstrip()
    return ListPart(line + data.count(b"\n", 0, len(data) - len(element)), element.rstrip(), element=True)


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
    return [(end - len(data[begin:end].lstrip(SEPARATORS)), end) for begin, end in pieces]


SEPARATORS = b" \t\r\n\x1e"
"""What may stand between documents: white space, and the record separator of RFC 7464."""
