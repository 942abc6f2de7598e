"""What the form of a page sends, to its fields: in time and memory that grow with its length alone, whatever stands in it."""

from __future__ import annotations

import asyncio
import re
from binascii import a2b_qp
from collections.abc import Mapping

from starlette.exceptions import HTTPException
from starlette.requests import Request

from service.api.body import read_form_body

MAX_PUBLIC_BYTES = 64 * 2**10
"""Of a form that anybody may send."""

MAX_SIGNED_BYTES = 256 * 2**10
"""Of one that needs a session: a note of 10,000 characters has up to 120,000 bytes in a form."""

MAX_FIELDS = 200
READ_AT_ONCE_BYTES = 64 * 2**10
"""A longer form is read in a thread."""

_BROKEN = re.compile(rb"%(?![0-9A-Fa-f]{2})")


async def read_fields(request: Request, most: int) -> Mapping[str, str]:
    """The fields of a form of at most `most` bytes, the last of those of one name.

    TooLargeError where it is larger; HTTPException 400 where it cannot be read, 408 where it comes too slowly, 415 for what is no
    form.
    """
    data = await read_form_body(request, most)
    try:
        return parse_form(data) if len(data) <= READ_AT_ONCE_BYTES else await asyncio.to_thread(parse_form, data)
    except ValueError as error:
        raise HTTPException(400, f"the form cannot be read: {error}") from None


def parse_form(data: bytes) -> dict[str, str]:
    """The fields of a form; ValueError where it is malformed, not UTF-8 or of more than MAX_FIELDS fields.

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
    """Read as quoted-printable, which is the same with another sign: the library's own way makes an object of each sign."""
    return a2b_qp(text.replace(b"+", b" ").replace(b"=", b"%3D").replace(b"%", b"=")).decode()
