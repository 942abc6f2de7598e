"""Reading a request's body: bounded while it arrives, parsed once, by one parser."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from pydantic import JsonValue
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from service.errors import InputError, TooLargeError
from service.io.jsonbody import Limits, parse

T = TypeVar("T")

OFF_LOOP = 16 * 1024
"""Bodies over this many bytes are worked on in a thread, so that one large trace does not stall the small ones."""

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

    TooLargeError as soon as it is known to pass the limit; HTTPException 415 for what is not plain JSON, 408 where it does
    not arrive within `patience` seconds; ClientDisconnect where it never will.
    """
    _refuse_early(request, limits)
    try:
        async with asyncio.timeout(patience):
            return await _received(request, limits)
    except TimeoutError:
        raise HTTPException(408, f"the body did not arrive within {patience:g} seconds") from None


def _refuse_early(request: Request, limits: Limits) -> None:
    """What the headers alone rule out, before the sender goes to the trouble."""
    headers = request.headers
    media = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if media != "application/json" and not media.endswith("+json"):
        raise HTTPException(415, "expected a body of type application/json", {"accept": "application/json"})
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise HTTPException(415, "expected a body without content-encoding", {"accept-encoding": "identity"})
    declared = headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > 18 or int(declared) > limits.max_bytes):
        raise _too_large(limits)


async def _received(request: Request, limits: Limits) -> bytes:
    body, more = bytearray(), True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > limits.max_bytes:
            raise _too_large(limits)
    return bytes(body)


def _too_large(limits: Limits) -> InputError:
    return TooLargeError.at("", f"the body passes {limits.max_bytes} bytes")
