"""No secret is left in a text, in whatever form it came."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.logs.redaction import MARK, MIN_SECRET_CHARS, Redactor, name_error_kind

SECRET = 'pa ss/wörd+"x"\\é%'

FORMS = {
    "plain": SECRET,
    "url": quote(SECRET),
    "url, slash too": quote(SECRET, safe=""),
    "url, small letters": quote(SECRET, safe="").replace("%C3", "%c3"),
    "form": quote_plus(SECRET),
    "json": json.dumps({"key": SECRET}),
    "json, not ascii": json.dumps({"key": SECRET}, ensure_ascii=False),
    "repr": repr({"key": SECRET}),
    "repr of bytes": repr(SECRET.encode()),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_of_a_secret_is_replaced(form: str) -> None:
    said = Redactor([SECRET])(f"before {form} after")
    assert MARK in said
    assert said.startswith("before ")
    assert said.endswith(" after")
    assert all(piece not in said for piece in ("ss/w", "pa ss", "pa%20ss", "pa+ss", "x\\", "rd%2"))


SHAPES = [
    ("Authorization: Bearer abc.DEF-123_x=", "abc.DEF"),
    ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
    ("Incorrect API key provided: sk-proj-0123456789abcdef", "0123456789"),
    ("GET https://host/v1?alt=json&key=AbCdEf12 HTTP/1.1", "AbCdEf12"),
    ("https://host/v1?api_key=AbCdEf12", "AbCdEf12"),
    ("{'x-api-key': 'AbCdEf12'}", "AbCdEf12"),
    ('"api_key": "AbCdEf12"', "AbCdEf12"),
    ("ghp_0123456789abcdefABCDEF", "0123456789"),
    ("AIzaSyA0123456789abcdefABCDEF", "0123456789"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "eyJzdWIi"),
]


@pytest.mark.parametrize(("text", "secret"), SHAPES)
def test_known_shapes_are_replaced_though_nobody_configured_them(text: str, secret: str) -> None:
    assert secret not in Redactor()(text)


@pytest.mark.parametrize(
    "text", ["the task is done", "a key: value pair", "risk-averse and desk-bound people", "monkey=3"]
)
def test_plain_words_are_left_alone(text: str) -> None:
    assert Redactor(["", "x", "none"])(text) == text


def test_secrets_come_from_variables_by_their_names() -> None:
    environ = {
        "OPENAI_API_KEY": "first-secret",
        "HF_TOKEN": "second-secret",
        "db_secret": "third-secret",
        "PATH": "/usr/bin",
    }
    redact = Redactor.from_env(environ, ["fourth-secret"])
    said = redact("first-secret second-secret third-secret fourth-secret /usr/bin")
    assert said == f"{MARK} {MARK} {MARK} {MARK} /usr/bin"


def test_a_longer_secret_goes_before_one_it_starts_with() -> None:
    assert Redactor(["secret-1", "secret-1234"])("secret-1234") == MARK


def test_no_secret_is_in_the_repr() -> None:
    redact = Redactor([SECRET])
    assert repr(redact) == "Redactor(1 secrets)"
    assert SECRET not in str(redact)


SECRETS = (
    st.text("ABC019/+%&='\"\\\n é", min_size=MIN_SECRET_CHARS)
    .map(str.strip)
    .filter(lambda s: len(s) >= MIN_SECRET_CHARS)
)
AROUND = st.text("abc xyz")


@given(SECRETS, AROUND, AROUND)
def test_no_secret_survives(secret: str, before: str, after: str) -> None:
    forms = [secret, quote(secret, safe=""), json.dumps(secret)[1:-1], repr(secret)[1:-1]]
    for form in forms:
        assert form not in Redactor([secret])(f"{before}{form}{after}")


def test_of_an_error_whose_text_may_not_be_told_its_kind_is() -> None:
    async def late() -> None:
        async with asyncio.timeout(0):
            await asyncio.sleep(60)

    with pytest.raises(TimeoutError) as caught:
        asyncio.run(late())
    assert name_error_kind(caught.value) == "TimeoutError"  # and not what it was raised from
    wrapped = RuntimeError("redis://:canary@h")
    wrapped.__cause__ = ConnectionError()
    assert name_error_kind(wrapped) == "ConnectionError"
