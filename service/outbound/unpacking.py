"""Read the body of an HTTP answer, piece by piece and never beyond its limit, however much its compression hides."""

from __future__ import annotations

import re
import zlib
from typing import Protocol

ENCODINGS = {"gzip": zlib.MAX_WBITS | 32, "x-gzip": zlib.MAX_WBITS | 32, "deflate": zlib.MAX_WBITS}
"""The encodings that we unpack, with zlib's parameter for each. Requests ask for `ACCEPTED` only."""

ACCEPTED = "gzip"


class _Unpacker(Protocol):
    """The part of zlib's objects that we use."""

    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class TooLongError(Exception):
    """The body exceeds its limit."""


class PackedError(Exception):
    """The body is compressed in a way that was not asked for, or is not what it claims to be."""


class AnswerBody:
    """The bytes of an answer: `add` the pieces as they come, `finish` returns the body.

    >>> body = AnswerBody("", most=10)
    >>> body.add(b"12345")
    >>> body.add(b"67890")
    >>> body.finish()
    b'1234567890'
    >>> body.add(b"1")
    Traceback (most recent call last):
    service.outbound.unpacking.TooLongError
    """

    def __init__(self, encoding: str, *, most: int) -> None:
        """`encoding`: the Content-Encoding header. Raises PackedError for one that we do not unpack."""
        name = encoding.strip().lower()
        plain = name in ("", "identity")
        if not plain and name not in ENCODINGS:
            raise PackedError
        self._unpack: _Unpacker | None = None if plain else zlib.decompressobj(ENCODINGS[name])
        self._most = most
        self._received = 0
        self._body = bytearray()

    def add(self, piece: bytes) -> None:
        """Add the next piece. Raises TooLongError or PackedError."""
        self._received += len(piece)
        if self._received > self._most:
            raise TooLongError
        self._body += piece if self._unpack is None else self._unpack_piece(self._unpack, piece)
        if len(self._body) > self._most:
            raise TooLongError

    def _unpack_piece(self, unpack: _Unpacker, piece: bytes) -> bytes:
        """Unpack a piece, up to one byte more than there is room for. Ignores what follows the end of the compressed data."""
        if unpack.eof:
            return b""
        try:
            return unpack.decompress(piece, self._most - len(self._body) + 1)
        except zlib.error:
            raise PackedError from None

    def finish(self) -> bytes:
        """Return the whole body. Raises PackedError if its end is missing."""
        if self._unpack is not None and self._received and not self._unpack.eof:
            raise PackedError
        return bytes(self._body)


_PARTS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[,\[{]', re.DOTALL)
"""The strings of a JSON text, and the starts of values. It never backtracks, so an unterminated text takes no extra time."""


def holds_more_values(body: bytes, most: int) -> bool:
    """Whether a JSON text has roughly more than `most` values, each of which takes some hundred times its bytes once parsed.

    Ignores the contents of strings. Accepts any text: in one that is not JSON it inspects as many parts.

    >>> holds_more_values(b'{"a": [1, 2, 3]}', 5), holds_more_values(b"[[],[],[],[]]", 2)
    (False, True)
    >>> holds_more_values(b'["' + b"," * 1_000_000 + b'"]', 2)
    False
    """
    if body.count(b",") + body.count(b"[") + body.count(b"{") <= most:
        return False
    return any(number >= 3 * most for number, _ in enumerate(_PARTS.finditer(body)))
