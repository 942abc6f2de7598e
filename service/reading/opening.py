"""Open files as they are: compressed, in archives and folders, at URLs, in any encoding that they declare.

What is opened is UTF-8, however it was stored. Compression and byte order marks are recognized by
content. Any other encoding must be named: a guess could turn one text into another, and nobody would see it.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import importlib
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from typing_extensions import Buffer, override

HEAD_BYTES = 4_096
"""How many bytes are examined to tell what a file is."""
_CHUNK_CHARS = 64 * 2**10
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte order marks and what they declare; the longer ones first where one starts like another."""
_ZIP = b"PK\x03\x04"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZIP_ZSTD = 93
"""How Inspect packs its logs, which `zipfile` knows from Python 3.14 on."""
DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, UnicodeError, NotImplementedError)
"""What reading damaged data raises."""


OpenFile = tuple[str, "io.BufferedReader[Any]"]
"""A file that is open for reading, after the name for its places."""


def explain_damage(error: BaseException) -> str:
    """Say why data cannot be read."""
    if isinstance(error, EOFError):
        return "the compressed data ends too early; everything before that was read"
    if isinstance(error, (zlib.error, gzip.BadGzipFile, lzma.LZMAError, zipfile.BadZipFile)):
        return f"the compressed data is damaged ({error}); everything before that was read"
    if isinstance(error, NotImplementedError):
        return f"packed in a way that this Python cannot unpack ({error}); pack it anew with deflate"
    if isinstance(error, UnicodeError):
        return f"not in the encoding that was named, or UTF-8: {error}; name it with --encoding"
    return f"cannot be read: {getattr(error, 'strerror', None) or error}"


_URL = re.compile(r"^([a-z][a-z0-9+.-]+):/+(?=[^/])")


def list_files(source: Path | str) -> Iterator[Path | str]:
    """Iterate over the files of a folder and those below it, in order, without hidden ones; anything else is one file.

    What is stored at a URL may be a folder too, or a pattern; over HTTP it is one file.
    """
    if _URL.match(str(source)):
        yield from _list_stored(restore_url(source))
        return
    folder = Path(source)
    if not folder.is_dir():
        yield source
        return
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts):
            yield path


def restore_url(source: Path | str) -> str:
    """Restore a URL that came as a path, in which two slashes are one; anything else stays as it is."""
    return _URL.sub(lambda found: f"{found[1]}://{'/' if found[1] == 'file' else ''}", str(source))


def _list_stored(url: str) -> list[str]:
    if url.startswith("http"):
        return [url]
    try:
        files, path = load_module("fsspec", "to read URLs").url_to_fs(url)
        found: list[str] = sorted(files.glob(path) if "*" in path else files.find(path))
    except (*DAMAGED, ImportError, ValueError):  # opening it says why
        return [url]
    return [files.unstrip_protocol(one) for one in found if "/." not in one.removeprefix(path)] or [url]


@contextmanager
def open_files(source: Path | str | BinaryIO, name: str, encoding: str | None = None) -> Generator[Iterator[OpenFile]]:
    """Open a file, a stream or a URL, unpacked and decoded; a ZIP archive is the files in it.

    `encoding`: that of text without a byte order mark; None: UTF-8. A stream that is passed in stays open. Raises what is in
    `DAMAGED`; LookupError for an unknown encoding.
    """
    with ExitStack() as stack:
        stream = open_stored(source, stack)
        if stream.peek(4)[:4] == _ZIP:
            seekable = cast("BinaryIO", stream) if stream.seekable() else io.BytesIO(stream.read())
            archive = stack.enter_context(zipfile.ZipFile(seekable))
            yield _list_members(archive, name, encoding, stack)
        else:
            yield iter([(name, _decode(_unpack(stream), encoding))])


def open_stored(source: Path | str | BinaryIO, stack: ExitStack) -> io.BufferedReader[Any]:
    """Open a file, a stream or a URL as it is stored."""
    if isinstance(source, str) and "://" in source:
        opened = stack.enter_context(load_module("fsspec", "to read URLs").open(source, "rb"))
        return io.BufferedReader(opened)
    if isinstance(source, (str, Path)):
        return stack.enter_context(Path(source).open("rb"))
    if isinstance(source, io.BufferedReader):
        return cast("io.BufferedReader[Any]", source)
    # A buffer makes any stream peekable; it must be detached, or it would close the stream.
    buffer = io.BufferedReader(cast("io.RawIOBase", source))
    stack.callback(buffer.detach)
    return buffer


def load_module(module: str, purpose: str) -> Any:
    """Import a package that may be absent. OSError says what it is for and how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise OSError(f"{module} is needed {purpose}: pip install {module.partition('.')[0]}") from None


def _list_members(archive: zipfile.ZipFile, name: str, encoding: str | None, stack: ExitStack) -> Iterator[OpenFile]:
    members = sorted(archive.infolist(), key=lambda one: one.filename)
    if "header.json" in archive.namelist():  # a log of Inspect: its samples are the records
        members = [member for member in members if member.filename.startswith("samples/")]
    for member in members:
        if not member.is_dir() and not Path(member.filename).name.startswith("."):
            if member.compress_type == _ZIP_ZSTD:  # its bytes are taken as they are, for `_unpack`
                member.compress_type, member.file_size = zipfile.ZIP_STORED, member.compress_size
                del member.CRC
            stream = io.BufferedReader(cast("io.RawIOBase", stack.enter_context(archive.open(member))))
            yield f"{name}/{member.filename}", _decode(_unpack(stream), encoding)


def _unpack(stream: io.BufferedReader[Any]) -> io.BufferedReader[Any]:
    """Return the stream, unpacked if it starts like compressed data."""
    head = stream.peek(6)
    if head.startswith(b"\x1f\x8b"):
        return io.BufferedReader(gzip.GzipFile(fileobj=stream, mode="rb"))
    if head.startswith(b"BZh"):
        return io.BufferedReader(cast("Any", bz2.BZ2File(stream)))
    if head.startswith(b"\xfd7zXZ\x00"):
        return io.BufferedReader(cast("Any", lzma.LZMAFile(stream)))
    if head.startswith(_ZSTD):
        return io.BufferedReader(load_module("zstandard", "to unpack zstd").ZstdDecompressor().stream_reader(stream))
    return stream


def _decode(stream: io.BufferedReader[Any], encoding: str | None) -> io.BufferedReader[Any]:
    """Return the stream in UTF-8, if it is text in another encoding."""
    try:
        head = stream.peek(HEAD_BYTES)[:HEAD_BYTES]
    except DAMAGED:
        return stream  # reading it will say so
    declared = next((name for mark, name in _MARKS.items() if head.startswith(mark)), None) or encoding
    if declared is None:
        return stream
    codecs.lookup(declared)
    return io.BufferedReader(_Recoded(stream, declared))


class _Recoded(io.RawIOBase):
    """A text in UTF-8 with `\\n` at the end of each line."""

    def __init__(self, stream: io.BufferedReader[Any], encoding: str) -> None:
        self._text = io.TextIOWrapper(stream, encoding, errors="strict", newline=None)
        self._rest = b""

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer)
        self._rest = self._rest or self._text.read(_CHUNK_CHARS).encode()
        part, self._rest = self._rest[: len(view)], self._rest[len(view) :]
        view[: len(part)] = part
        return len(part)

    @override
    def close(self) -> None:
        if not self.closed:
            self._text.detach()
        super().close()
