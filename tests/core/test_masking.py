"""Stand-ins for secrets, identifiers and contacts: a table of what is and is not masked, and laws for any trace."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.judging.masking import build_masks
from service.core.judging.sensitive_values import SensitiveKind, iter_leaves
from service.core.trace import Message, Step, ToolCall, ToolDef, ToolResult, Trace
from tests.bulk import examples, share

ALL: frozenset[SensitiveKind] = frozenset({"secrets", "identifiers", "contacts"})


def trace(user: str = "", arguments: Any = None, result: Any = None, answer: str = "") -> Trace:
    return Trace(
        id="t",
        format="callgrade",
        tools=(ToolDef("get_order", "Finds an order", {"properties": {"order_id": {"type": "string"}}}),),
        messages=(Message("user", user, 1), Message("assistant", answer, 1)),
        steps=(Step(0, 1, ToolCall("1", "get_order", arguments or {}), ToolResult(result), 1),),
        answer=answer,
        turns=1,
    )


def shape(value: Any) -> str:
    """A text as JSON with all digits and letters alike."""
    text = json.dumps(value, ensure_ascii=False)
    return re.sub("[a-z]", "a", re.sub("[A-Z]", "A", re.sub("[0-9]", "0", text)))


KEY = "sk-abcdefghij1234567890XYZ"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
MASKED = [
    ("identifiers", "8821-A", {"order_id": "8821-A"}),
    ("identifiers", "8821-A", {"order": {"id": "8821-A"}}),
    ("identifiers", "ZFA04Y", {"reservation_code": "ZFA04Y"}),
    ("identifiers", "XKJQWE", {"reservation_id": "XKJQWE"}),
    ("identifiers", "mia_li_3668", {"userId": "mia_li_3668"}),
    ("identifiers", "W77-12", {"order_ids": ["W77-12"]}),
    ("identifiers", 88214, {"order_number": 88214}),
    ("identifiers", 123456789, {"account": 123456789}),
    ("identifiers", "7d444840-9dc0-11d1-b245-5ffdce74fad2", "it is 7d444840-9dc0-11d1-b245-5ffdce74fad2."),
    ("identifiers", "A-5512", "my order number is A-5512, please"),
    ("identifiers", "88214", "Refund order #88214 now"),
    ("identifiers", "B7-991", '{"order_id": "B7-991", "n": 2}'),
    ("secrets", "hunter2!", {"password": "hunter2!"}),
    ("secrets", "tr0ub4dor&3", "my password is tr0ub4dor&3"),
    ("secrets", KEY, f"use {KEY} for it"),
    ("secrets", "AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    ("secrets", "ghp_abcdefghijklmnopqrst0123456789", "ghp_abcdefghijklmnopqrst0123456789"),
    ("secrets", "abc123def456ghi7", "Authorization: Bearer abc123def456ghi7"),
    ("secrets", JWT, f"token {JWT}"),
    ("secrets", "qwertyuiopasdfgh", {"client_secret": "qwertyuiopasdfgh"}),
    ("secrets", "zxcvbnm12", {"apiKey": "zxcvbnm12"}),
    ("secrets", 4711, {"pin": 4711}),
    ("secrets", "MIIEvQIBADANBgkqhk", "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhk\n-----END PRIVATE KEY-----"),
    ("secrets", "4111 1111 1111 1111", "card 4111 1111 1111 1111 please"),
    ("secrets", "DE89 3704 0044 0532 0130 00", "to DE89 3704 0044 0532 0130 00 today"),
    ("contacts", "jane.doe@example.com", "write to jane.doe@example.com."),
    ("contacts", "+49 30 901820", "call +49 30 901820 now"),
    ("contacts", "(555) 123-4567", "call (555) 123-4567 now"),
    ("contacts", "5551234567", {"phone": "5551234567"}),
]


@pytest.mark.parametrize(("sort", "value", "result"), MASKED, ids=[f"{s} {v}"[:50] for s, v, _ in MASKED])
def test_it_is_masked(sort: SensitiveKind, value: Any, result: Any):
    masks = build_masks(trace(result=result), frozenset({sort}))
    hidden = masks.mask(result)
    assert masks
    assert str(value) not in json.dumps(hidden)
    assert shape(hidden) == shape(result)
    assert masks.unmask(json.dumps(hidden)) == json.dumps(result)
    others: frozenset[SensitiveKind] = ALL - {sort}
    assert build_masks(trace(result=result), others).mask(result) == result


KEPT = [
    {"amount": 5400, "currency": "USD"},
    {"amount_cents": 540012},
    {"created_at": "2026-05-01", "date": 20260501},
    {"id": "2026-05-01"},
    {"id": 7, "number": 12},
    {"year": 2024, "case_number": "2024"},
    {"status_code": 40412, "country_code": "DE12", "zip_code": "90210"},
    {"error_code": "E10012"},
    {"name": "Jane Doe", "city": "Los Angeles"},
    {"quantity": 1200, "price": 99.95},
    {"id": True, "order_id": None},
    {"order_id": 1234.5},
    {"id": "find the order of the day"},
    {"code": "JFK"},
    {"tool": "get_order", "user_id": "get_order"},
    {"password_required": True, "token_count": 5},
    "The order costs $5400.00, or 5,400 dollars, from 2026-05-01 10:30 on.",
    "Flight time is 10:45; 300 passengers, 12.5 %, order 5 of 1200.",
    "Your password is required. The secret is out.",
    "4111 1111 1111 1112 has no valid check digit",
    "DE00 3704 0044 0532 0130 00 is none",
    "a@b, user@, @name",
]


@pytest.mark.parametrize("result", KEPT, ids=lambda result: str(result)[:50])
def test_it_is_not_masked(result: Any):
    assert build_masks(trace(result=result), ALL).mask(result) == result


SAME = [
    ("HAT-069", "your flight HAT 069 leaves", True),
    ("HAT-069", "your flight hat069.", True),
    ("HAT-069", "(HAT-069)", True),
    ("HAT-069", r'{"text": "to\nHAT-069\tnow"}', True),
    ("HAT-069", "CHAT-069", False),
    ("HAT-069", "HAT-0691", False),
    ("HAT-069", "what 069", False),
    ("88214", "order 88214, please", True),
    ("88214", "order #88214.", True),
    ("88214", "/orders/88214?x", True),
    ("88214", "order_id=88214", True),
    ("88214", "item W-88214-B", False),
    ("88214", "it costs $88214", False),
    ("88214", "88214.50 in all", False),
    ("88214", "88214 cents", False),
    ("88214", "1,88214", False),
    ("88214", "882145", False),
    ("88214", "8 8214", False),
]


@pytest.mark.parametrize(("value", "text", "same"), SAME)
def test_the_same_value_is_the_same_stand_in(value: str, text: str, same: bool):
    """In prose with other separators or in other case, but not within something longer, and not as an amount."""
    masks = build_masks(trace(arguments={"flight_number": value}, answer=text), ALL)
    assert (masks.mask(text) != text) is same
    assert masks.unmask(str(masks.mask(text))) == text
    letters = re.sub(r"[\W_]", "", str(masks.mask(value))).lower()
    assert (letters in re.sub(r"[ -]", "", str(masks.mask(text))).lower()) is same


def test_a_number_and_its_text_stay_the_same_value():
    masks = build_masks(trace(arguments={"order_id": "88214"}, result={"order": {"id": 88214}}), ALL)
    hidden: Any = masks.mask({"order_id": "88214", "order": {"id": 88214}})
    assert hidden["order_id"] == str(hidden["order"]["id"]) != "88214"


def test_a_number_that_is_also_an_amount_stays():
    """Nothing tells them apart in the answer, and an amount must not change."""
    seen = {"order_id": 5400, "refunded": 5400}
    assert not build_masks(trace(result=seen), ALL)


def test_a_value_that_is_also_a_key_stays():
    seen = {"cards": {"card_1234": {"id": "card_1234"}}}
    assert build_masks(trace(result=seen), ALL).mask(seen) == seen


def test_what_receipts_show_stays():
    masks = build_masks(trace(user="4111-1111-1111-1111, jane@shop.example.com"), ALL)
    card, mail = str(masks.mask("4111-1111-1111-1111, jane@shop.example.com")).split(", ")
    assert card.endswith("-1111")
    assert card[:14] != "4111-1111-1111"
    assert mail.endswith(".com")
    assert re.fullmatch(r"[a-z]{4}@[a-z]{4}\.[a-z]{7}\.com", mail)


def test_the_stand_in_is_the_same_in_every_process():
    """It is part of a cache key: a change here makes caches of masked questions worthless."""
    masks = build_masks(trace(arguments={"order_id": "8821-A"}), ALL)
    assert masks.mask("8821-A") == "7872-O"


CLUMPS = ["8", "1 ", "a_", "4111 ", "a@", "a.", "sk-", "eyJ", "order ", '"id": "A1', "+1 ", "DE12 "]


@pytest.mark.whole
@pytest.mark.parametrize("clump", share(CLUMPS, one_in=3))
def test_a_text_made_to_be_slow_is_read_in_full(clump: str):
    text = clump * (50_000 // len(clump)) + " A-5512"
    masks = build_masks(trace(user=text, arguments={"order_id": "A-5512"}), ALL)
    hidden = masks.mask(text)
    assert "A-5512" not in str(hidden)
    assert masks.unmask(str(hidden)) == text


# Laws.

CODES = st.from_regex(r"[A-Z]{1,3}-?[0-9]{2,5}", fullmatch=True) | st.from_regex(r"[1-9][0-9]{3}", fullmatch=True)
MAILS = st.from_regex(r"[a-z]{1,3}@[a-z]{1,2}\.io", fullmatch=True)
VALUES = CODES | MAILS | st.sampled_from(["4111 1111 1111 1111", "+49 30 901820", "hunter2!", KEY])
WORDS = st.sampled_from(["order", "is", "A", "88", "of", "$", "-", "io", "HAT", "12 cents", "\n", ",", "é7", "ß"])
PROSE = st.lists(WORDS | VALUES, max_size=8).map(" ".join) | st.lists(WORDS | VALUES, max_size=5).map("-".join)
NUMBERS = st.integers(0, 99_999) | st.floats(-9, 9) | st.booleans() | st.none()
KEYS = st.sampled_from(["id", "order_id", "code", "amount", "password", "email", "note"])
OBJECTS = st.recursive(
    st.dictionaries(KEYS, VALUES | NUMBERS | PROSE, max_size=4),
    lambda inner: st.dictionaries(KEYS, inner | st.lists(inner, max_size=3), max_size=3),
    max_leaves=6,
)
TRACES = st.builds(trace, user=PROSE, arguments=OBJECTS, result=OBJECTS | st.lists(OBJECTS, max_size=3), answer=PROSE)


def texts(one: Trace) -> list[str]:
    return [leaf.text for leaf in iter_leaves(one)]


@given(TRACES)
@settings(max_examples=examples(60))
def test_what_was_hidden_can_be_shown(one: Trace):
    masks = build_masks(one, ALL)
    for text in texts(one):
        assert masks.unmask(str(masks.mask(text))) == text


@given(TRACES)
def test_two_values_share_no_stand_in_and_none_stands_in_the_trace(one: Trace):
    masks = build_masks(one, ALL)
    cores, others = set(masks.forward.entries), {entry.other for entry in masks.forward.entries.values()}
    assert len(others) == len(cores)
    assert not cores & others
    assert all(masks.unmask(text) == text for text in texts(one))


@given(TRACES)
def test_the_shape_stays(one: Trace):
    masks = build_masks(one, ALL)
    for value in [*texts(one), dict(one.steps[0].call.arguments or {}), one.steps[0].result.content]:  # type: ignore[union-attr]
        hidden = masks.mask(value)
        assert shape(hidden) == shape(value)
        assert type(hidden) is type(value)


def backwards(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: backwards(item) for key, item in reversed(value.items())}
    return [backwards(item) for item in value] if isinstance(value, list) else value


@given(OBJECTS, OBJECTS, PROSE)
def test_the_order_of_keys_changes_nothing(arguments: Any, result: Any, answer: str):
    one = build_masks(trace(arguments=arguments, result=result, answer=answer), ALL)
    other = build_masks(trace(arguments=backwards(arguments), result=backwards(result), answer=answer), ALL)
    assert one == other


@pytest.mark.parametrize("step", [3, 7, 11])
def test_many_short_numbers_still_differ_in_any_order(step: int):
    """Where stand-ins run into one another, who gives way does not depend on who came first."""
    rows: Any = {f"k{n}": {"order_id": str(2101 + n * step)} for n in range(500)}
    masks = build_masks(trace(result=rows), ALL)
    hidden: Any = masks.mask(rows)
    assert len({row["order_id"] for row in hidden.values()}) == 500
    assert len(masks.forward.entries) > 400
    assert masks == build_masks(trace(result=backwards(rows)), ALL)
    assert all(masks.unmask(hidden[key]["order_id"]) == row["order_id"] for key, row in rows.items())
