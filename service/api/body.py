"""Read a body, bounded in size and time while it arrives: into memory, or a large one into a file, unpacked on the way."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from pydantic import TypeAdapter
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from service.core.models.validation import validate
from service.errors import InputError, TooLargeError
from service.jobs.spool import Spool
from service.reading.strict_json import Limits, parse_strictly

T = TypeVar("T")

PATIENCE_S = 30.0
"""Seconds until the first byte of a body, plus the time it may fall behind `MIN_BYTES_PER_S`."""

MIN_BYTES_PER_S = 32 * 2**10
"""Bytes a second that a sender must reach on average: one that drips would hold its place for hours."""


@asynccontextmanager
async def keep_pace(patience: float = PATIENCE_S) -> AsyncGenerator[Callable[[int], None]]:
    """Raise HTTPException 408 if a body comes too slowly; the function that this yields gets how many bytes have come."""
    start = asyncio.get_running_loop().time()
    limit = asyncio.timeout(patience)
    try:
        async with limit:
            yield lambda seen: limit.reschedule(start + patience + seen / MIN_BYTES_PER_S)
    except TimeoutError:
        if not limit.expired():
            raise
        detail = f"the body came more slowly than {MIN_BYTES_PER_S} bytes a second for {patience:g} seconds"
        raise HTTPException(408, detail) from None


async def read_body(request: Request, limits: Limits, *, patience: float = PATIENCE_S) -> bytes:
    """Read the whole body.

    TooLargeError if it exceeds the limit; HTTPException 415 if it is not declared as plain JSON, 408 if it comes too
    slowly; ClientDisconnect if the client leaves.
    """
    _refuse_media(request.headers)
    async with keep_pace(patience) as extend:
        if read_declared_length(request.headers) > limits.max_bytes:
            raise _build_too_large(limits)
        return await _receive(request, limits, extend)


async def read_json(request: Request, limits: Limits, form: TypeAdapter[T], *, default: bytes = b"") -> T:
    """Read the body into a value, with the one strict parser; `default` stands for an empty one.

    Raises what `read_body` raises, and InputError naming every wrong place.
    """
    return validate(form, parse_strictly(await read_body(request, limits) or default, limits))


def _refuse_media(headers: Headers) -> None:
    media = read_media_type(headers)
    if media is None and not is_expected(headers):
        return
    if media is None or (media != "application/json" and not media.endswith("+json")):
        raise HTTPException(415, "expected a body of type application/json", {"accept": "application/json"})
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise HTTPException(415, "expected a body without content-encoding", {"accept-encoding": "identity"})


def read_media_type(headers: Headers) -> str | None:
    """Read the declared media type, in lower case and without parameters; None if there is none."""
    content_type = headers.get("content-type")
    return None if content_type is None else content_type.partition(";")[0].strip().lower()


def is_expected(headers: Headers) -> bool:
    """Whether a body follows. Without a length or chunks there is none (RFC 9112)."""
    return "transfer-encoding" in headers or headers.get("content-length", "0").strip("0") != ""


def read_declared_length(headers: Headers) -> float:
    """Read the declared length; 0 if there is no sensible one."""
    text = headers.get("content-length", "")
    if not (text.isascii() and text.isdigit()):
        return 0
    return int(text) if len(text) < 19 else math.inf


async def _receive(request: Request, limits: Limits, extend: Callable[[int], None]) -> bytes:
    body, more = bytearray(), True
    while more:
        part, more = await read_part(request)
        body += part
        if more:
            extend(len(body))
        if len(body) > limits.max_bytes:
            raise _build_too_large(limits)
    return bytes(body)


async def read_part(request: Request) -> tuple[bytes, bool]:
    """Read the next part of the body, and whether more follow."""
    message = await request.receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message.get("body", b""), message.get("more_body", False)


def _build_too_large(limits: Limits) -> InputError:
    return TooLargeError.at("", f"the body passes {limits.max_bytes} bytes")


async def read_form_body(request: Request, max_bytes: int) -> bytes:
    """Read the body of a page's form, of at most `max_bytes` bytes.

    TooLargeError if it is larger; HTTPException 415 if it is no form, 408 if it comes too slowly.
    """
    if read_media_type(request.headers) != "application/x-www-form-urlencoded":
        raise HTTPException(415, "expected a form (application/x-www-form-urlencoded)")
    async with keep_pace() as extend:
        return await _receive(request, Limits(max_bytes=max_bytes), extend)


WRITE_BYTES = 256 * 2**10
"""Bytes that are gathered before they are written."""

LINES = ("application/x-ndjson", "application/jsonl")
ENCODINGS = {"identity": False, "gzip": True}


def refuse_other_than_lines(headers: Headers) -> None:
    """Raise HTTPException 415 if a body is not declared as JSON Lines."""
    if read_media_type(headers) not in LINES:
        accepted = ", ".join(LINES)
        raise HTTPException(415, f"expected a body of one of the types {accepted}", {"accept": accepted})


def is_packed(headers: Headers) -> bool:
    """Whether a body is gzipped; HTTPException 415 for another encoding."""
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ENCODINGS:
        detail = "expected a body without content-encoding, or gzip"
        raise HTTPException(415, detail, {"accept-encoding": "gzip, identity"})
    return ENCODINGS[encoding]


async def receive(request: Request, spool: Spool, *, patience: float = PATIENCE_S) -> None:
    """Fill a spool with the whole body.

    Raises what the spool raises, HTTPException 408 if the body comes too slowly, ClientDisconnect if the client leaves.
    """
    seen, more, waiting = 0, True, bytearray()
    async with keep_pace(patience) as extend:
        while more:
            part, more = await read_part(request)
            seen += len(part)
            extend(seen)
            waiting += part
            if len(waiting) >= WRITE_BYTES or not more:
                await asyncio.to_thread(spool.write, bytes(waiting))
                waiting.clear()
    await asyncio.to_thread(spool.finish)
