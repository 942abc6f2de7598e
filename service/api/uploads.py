"""Receive a body that may be large: write it to a file as it arrives, unpacked on the way."""

from __future__ import annotations

import asyncio
from typing import Literal

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request

from service.api.body import PATIENCE_S, Pace, read_media_type, read_part
from service.jobs.spool import Spool

WRITE_BYTES = 256 * 2**10
"""Bytes that are gathered before they are written."""

Form = Literal["document", "lines"]

FORMS: dict[str, Form] = {
    "application/json": "document",
    "application/x-ndjson": "lines",
    "application/jsonl": "lines",
}
ENCODINGS = {"identity": False, "gzip": True}


def read_form(headers: Headers) -> Form:
    """Return whether a body is one JSON document or JSON Lines; HTTPException 415 if it is declared as neither."""
    media = read_media_type(headers)
    if media not in FORMS:
        accepted = ", ".join(FORMS)
        raise HTTPException(415, f"expected a body of one of the types {accepted}", {"accept": accepted})
    return FORMS[media]


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
    async with Pace(patience) as pace:
        while more:
            part, more = await read_part(request)
            seen += len(part)
            pace.extend(seen)
            waiting += part
            if len(waiting) >= WRITE_BYTES or not more:
                await asyncio.to_thread(spool.write, bytes(waiting))
                waiting.clear()
    await asyncio.to_thread(spool.finish)
