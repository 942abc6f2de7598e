"""Reading a request's body: bounded while it arrives, parsed once, by one parser."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import TypeVar

from pydantic import JsonValue
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from service.errors import InputError, TooLargeError
from service.io.jsonbody import Limits, parse

T = TypeVar("T")

OFF_LOOP = 16 * 1024
"""Bodies over this many bytes are worked on in a thread, so that one large trace does not stall the small ones."""

DISCARDED = 4
"""How many times the limit is read on of a body that passes it, and thrown away."""

PATIENCE = 60.0
"""Seconds in which a body must have arrived: a sender that stalls would hold its place for ever."""


async def handled(request: Request, limits: Limits, work: Callable[[JsonValue], T]) -> T:
    """What `work` makes of the parsed body. Raises what `read`, the parser and `work` raise."""
    data = await read(request, limits)
    if len(data) <= OFF_LOOP:
        return work(parse(data, limits))
    return await asyncio.to_thread(lambda: work(parse(data, limits)))


async def read(request: Request, limits: Limits, *, patience: float = PATIENCE) -> bytes:
    """The whole body.

    TooLargeError where it passes the limit; HTTPException 415 for what is not plain JSON, 408 where it does not arrive within
    `patience` seconds; ClientDisconnect where it never will.
    """
    _refuse_media(request.headers)
    try:
        async with asyncio.timeout(patience):
            if declared(request.headers) > limits.max_bytes:
                raise await _too_large(request, limits, 0)
            return await _received(request, limits)
    except TimeoutError:
        raise HTTPException(408, f"the body did not arrive within {patience:g} seconds") from None


def _refuse_media(headers: Headers) -> None:
    media = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if media != "application/json" and not media.endswith("+json"):
        raise HTTPException(415, "expected a body of type application/json", {"accept": "application/json"})
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise HTTPException(415, "expected a body without content-encoding", {"accept-encoding": "identity"})


def declared(headers: Headers) -> float:
    """The length that the sender announces; 0 where it announces none that makes sense."""
    text = headers.get("content-length", "")
    if not (text.isascii() and text.isdigit()):
        return 0
    return int(text) if len(text) < 19 else math.inf


async def _received(request: Request, limits: Limits) -> bytes:
    body, more = bytearray(), True
    while more:
        part, more = await next_part(request)
        body += part
        if len(body) > limits.max_bytes:
            raise await _too_large(request, limits, len(body), more=more)
    return bytes(body)


async def next_part(request: Request) -> tuple[bytes, bool]:
    """The next part of the body, and whether more follow."""
    message = await request.receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message.get("body", b""), message.get("more_body", False)


async def _too_large(request: Request, limits: Limits, seen: int, *, more: bool = True) -> InputError:
    """The error, once the sender has had its say: one that is cut off in the middle of sending never reads an answer.

    Not for one that waits to be asked, nor for ever.
    """
    more = more and "expect" not in request.headers
    while more and seen <= limits.max_bytes * DISCARDED:
        part, more = await next_part(request)
        seen += len(part)
    return TooLargeError.at("", f"the body passes {limits.max_bytes} bytes")
