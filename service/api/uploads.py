"""Receiving a body that may be large: it goes to a file while it arrives, and is unpacked on the way."""

from __future__ import annotations

import asyncio
from typing import Literal

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request

from service.api.body import PATIENCE, Pace, read_media_type, read_part
from service.errors import BusyError, InputError
from service.jobs.spool import Spool

STEP = 256 * 2**10
"""Bytes that are gathered before they are written."""

DISCARDED = 16 * 2**20
"""Bytes that are read on, and thrown away, of a body that is refused: who is cut off while sending never reads why."""

Form = Literal["document", "lines"]

FORMS: dict[str, Form] = {
    "application/json": "document",
    "application/x-ndjson": "lines",
    "application/jsonl": "lines",
}
ENCODINGS = {"identity": False, "gzip": True}


def read_form(headers: Headers) -> Form:
    """Whether a body is one JSON document or JSON Lines; HTTPException 415 where it is not said to be either."""
    media = read_media_type(headers)
    if media not in FORMS:
        taken = ", ".join(FORMS)
        raise HTTPException(415, f"expected a body of one of the types {taken}", {"accept": taken})
    return FORMS[media]


def is_packed(headers: Headers) -> bool:
    """Whether a body is gzip; HTTPException 415 for another encoding."""
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ENCODINGS:
        told = "expected a body without content-encoding, or gzip"
        raise HTTPException(415, told, {"accept-encoding": "gzip, identity"})
    return ENCODINGS[encoding]


async def receive(request: Request, spool: Spool, *, patience: float = PATIENCE) -> None:
    """Fills a spool with the whole body.

    Raises what the spool raises, HTTPException 408 where the body comes too slowly, ClientDisconnect where it never will.
    """
    seen, more, waiting = 0, True, bytearray()
    async with Pace(patience) as pace:
        while more:
            part, more = await read_part(request)
            seen += len(part)
            pace.extend(seen)
            waiting += part
            if len(waiting) >= STEP or not more:
                await _write(request, spool, bytes(waiting), more=more)
                waiting.clear()
    await asyncio.to_thread(spool.finish)


async def _write(request: Request, spool: Spool, data: bytes, *, more: bool) -> None:
    try:
        await asyncio.to_thread(spool.write, data)
    except (InputError, BusyError):
        discarded = 0
        while more and "expect" not in request.headers and discarded <= DISCARDED:
            part, more = await read_part(request)
            discarded += len(part)
        raise
