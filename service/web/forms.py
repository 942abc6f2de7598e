"""Read the form of a page, in time and memory that grow only with its length, whatever it contains."""

from __future__ import annotations

import asyncio
import re
from binascii import a2b_qp
from collections.abc import Mapping

from starlette.exceptions import HTTPException
from starlette.requests import Request

from service.api.body import read_form_body

MAX_PUBLIC_BYTES = 64 * 2**10
"""Largest form that anybody may send."""

MAX_SIGNED_BYTES = 256 * 2**10
"""Largest form that needs a session: a note of 10,000 characters has up to 120,000 bytes in a form."""

MAX_FIELDS = 200
MAX_INLINE_BYTES = 64 * 2**10
"""A longer form is parsed in a thread."""

_BROKEN = re.compile(rb"%(?![0-9A-Fa-f]{2})")


async def read_fields(request: Request, max_bytes: int) -> Mapping[str, str]:
    """Read the fields of a form of at most `max_bytes` bytes; the last field of a name counts.

    TooLargeError if it is larger; HTTPException 400 if it is malformed, 408 if it comes too slowly, 415 if it is no
    form.
    """
    data = await read_form_body(request, max_bytes)
    try:
        return parse_form(data) if len(data) <= MAX_INLINE_BYTES else await asyncio.to_thread(parse_form, data)
    except ValueError as error:
        raise HTTPException(400, f"the form cannot be read: {error}") from None


def parse_form(data: bytes) -> dict[str, str]:
    """Parse the fields of a form; ValueError if it is malformed, not UTF-8 or has more than MAX_FIELDS fields.

    >>> parse_form(b"key=%C3%A9+=%2B&empty=&key=last%3D")
    {'key': 'last=', 'empty': ''}
    """
    if data.count(b"&") >= MAX_FIELDS:
        raise ValueError(f"expected at most {MAX_FIELDS} fields")
    if _BROKEN.search(data):
        raise ValueError("expected two hexadecimal digits after each %")
    fields = [one.partition(b"=") for one in data.split(b"&") if one]
    try:
        return {_decode(name): _decode(value) for name, _, value in fields}
    except UnicodeDecodeError:
        raise ValueError("expected UTF-8") from None


def _decode(text: bytes) -> str:
    """Decode as quoted-printable, which is the same with another sign: urllib makes an object of every escape."""
    return a2b_qp(text.replace(b"+", b" ").replace(b"=", b"%3D").replace(b"%", b"=")).decode()
