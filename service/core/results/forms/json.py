"""A text that is a JSON object or array as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from service.core.json.parsing import parse_or_none
from service.core.results.form import Form, Stretch


def find(text: str) -> Iterator[Stretch]:
    """Return the whole text, apart from white space around it. A bare number or string is not structure."""
    value = parse_or_none(text) if text.lstrip().startswith(("{", "[")) else None
    if value is not None:
        yield Stretch(0, len(text), value)


FORM = Form("json", exact=True, rank=0, find=find, anywhere=True)
