"""Forms are read as the library reads them, and many signs cost no more than their length."""

from __future__ import annotations

from urllib.parse import parse_qsl, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.web.forms import MAX_FIELDS, parse_form

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(TEXTS, TEXTS), st.sampled_from(["", "=&+ ~%\r\n\t", "abc"]))
def test_fields_come_back_as_they_were(fields: dict[str, str], safe: str) -> None:
    kept = safe.translate(str.maketrans("", "", "=&+%"))
    sent = "&".join(f"{quote_plus(k, safe=kept)}={quote_plus(v, safe=kept)}" for k, v in fields.items())
    assert parse_form(sent.encode()) == dict(parse_qsl(sent, keep_blank_values=True)) == fields


@given(st.text("a=&+%3D6\n é"))
def test_what_is_read_is_what_the_library_reads(text: str) -> None:
    try:
        found = parse_form(text.encode())
    except ValueError:
        return
    assert found == dict(parse_qsl(text, keep_blank_values=True, errors="strict"))


def test_fields_are_counted() -> None:
    assert len(parse_form(b"&".join(b"a%d" % n for n in range(MAX_FIELDS)))) == MAX_FIELDS
    with pytest.raises(ValueError, match="at most"):
        parse_form(b"&" * MAX_FIELDS)
