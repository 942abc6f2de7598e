"""Several lines, each of which is a JSON object (NDJSON)."""

from __future__ import annotations

from collections.abc import Sequence

from service.core.results.form import Form, Stretch
from service.core.results.forms import json_in_text


def find(text: str) -> Sequence[Stretch]:
    """Find the objects, if there are two or more and each has a line of its own."""
    if "\n" not in text:
        return ()
    found = list(json_in_text.find(text))
    return found if len(found) > 1 and all(_is_line(text, one) for one in found) else ()


def _is_line(text: str, one: Stretch) -> bool:
    before = text[text.rfind("\n", 0, one.start) + 1 : one.start]
    after = text[one.end : one.end + MAX_BLANKS].partition("\n")[0]
    return not before.strip() and not after.strip() and "\n" not in text[one.start : one.end]


MAX_BLANKS = 200
"""Characters after an object in which the end of its line is searched for."""

FORM = Form("json_lines", exact=True, rank=20, find=find)
