"""Reading a request's body: bounded while it arrives, parsed once, by one parser."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from pydantic import JsonValue
from starlette.exceptions import HTTPException
from starlette.requests import Request

from service.errors import TooLargeError
from service.io.jsonbody import Limits, parse

T = TypeVar("T")

OFF_LOOP = 64 * 1024
"""Bodies over this many bytes are worked on in a thread, so that one large trace does not stall the small ones."""


async def read(request: Request, limits: Limits) -> bytes:
    """The whole body. TooLargeError as soon as it is known to pass the limit; 415 for what is not JSON."""
    media = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if media != "application/json" and not media.endswith("+json"):
        raise HTTPException(415, f"expected application/json, not {media}")
    declared = request.headers.get("content-length", "0")
    _bounded(int(declared) if declared.isdecimal() else 0, limits)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        _bounded(len(body), limits)
    return bytes(body)


def _bounded(size: int, limits: Limits) -> None:
    if size > limits.max_bytes:
        raise TooLargeError.at("", f"the body passes {limits.max_bytes} bytes")


async def handled(request: Request, limits: Limits, work: Callable[[JsonValue], T]) -> T:
    """What `work` makes of the parsed body."""
    data = await read(request, limits)
    if len(data) <= OFF_LOOP:
        return work(parse(data, limits))
    return await asyncio.to_thread(lambda: work(parse(data, limits)))
