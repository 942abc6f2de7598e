"""What values a text states, and where each comes from: tables, and laws that hold for any text and any result."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.grounding.derive import MAX_STEPS
from service.core.grounding.facts import Site
from service.core.grounding.fields import read_beside, read_field
from service.core.grounding.ground import ground_text
from service.core.grounding.history import History
from service.core.grounding.known import KnownFacts
from service.core.grounding.origins import Grounded
from service.core.grounding.reading.mentions import Reading
from service.core.grounding.reading.moments import Day, Time
from service.core.grounding.reading.values import MAX_MENTIONS, MAX_TEXT_CHARS, find_values
from service.core.grounding.store import MAX_FACTS, FactStore
from service.core.grounding.texts import GroundedText, ground_texts
from service.core.trace import Trace
from service.intake.reading import read_trace
from tests.tables import DATA, read_yaml

TABLES = read_yaml(DATA / "grounding" / "fields.yaml")

RESULT = "/steps/0/result/content"


def trace_of(case: dict[str, Any]) -> Trace:
    tool = {"name": "look", "description": case.get("tool", "Looks things up."), "parameters": {"type": "object"}}
    call = {"call": {"name": "look", "arguments": case.get("args", {})}, "result": case["result"]}
    events = [{"user": case.get("user", "Please.")}, call, {"assistant": case["text"]}]
    return read_trace({"format": "callgrade", "tools": [tool], "events": events})


def ground(case: dict[str, Any]) -> GroundedText:
    [text] = ground_texts(History(trace_of(case)))
    return text


# Readings


def render(reading: Reading) -> str:
    value = reading.value
    if isinstance(value, Day):
        return f"{value.year or '?'}-{value.month}-{value.day or '?'}"
    if isinstance(value, Time):
        return f"{value.seconds // 3600}:{value.seconds // 60 % 60:02}{'' if value.exact else '?'}"
    if isinstance(value, float):
        kind = reading.dimension if reading.kind == "number" else reading.kind
        return " ".join(filter(None, [f"{value:.10g}", kind, reading.currency]))
    return value


@pytest.mark.parametrize(("text", "want"), read_yaml(DATA / "grounding" / "readings.yaml")["rows"])
def test_values_are_read(text: str, want: dict[str, str]) -> None:
    found = {one.text: [render(reading) for reading in one.readings] for one in find_values(text)}
    assert {
        value: told for value, told in want.items() if not {*told.split(" or ")} <= {*found.get(value, [])}
    } == {}, found
    assert want or not found


PIECES = st.sampled_from(
    [*"0123456789.,-+$€%°/:@_#½² \n'aAmT", "May ", "1st", "one ", "hundred ", " pm", "USD", "GB", "\u202f", "in 9999999 days",
     "24:00", "9999-12-31", "0001-01-01T00:00:00+14:00", "20240230", "1e400", "1e308 ", "PT1H", "two and a half ", "Q3", "1,234",
     "32 °F", "0 degrees"]
)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=60).map("".join))
NAMES = st.sampled_from(
    ["price", "amount_cents", "id", "due", "ts", "temp_c", "2025-02-10", "currency", "unit", "a/b", "exponent"]
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=12,
)


@pytest.mark.parametrize("text", ["32 °F", "32 degrees", "0 °C", "-459.67 °F", "0 K", "0 %", "0 GB", "$0", "0 hours"])
def test_an_amount_that_is_zero_in_its_unit_has_an_origin(text: str) -> None:
    for result in ({"a": 31, "b": 0.0, "gate": 4}, {"a": 31}):
        assert ground({"text": f"At gate 4 it is {text} now.", "result": result}).values


@given(TEXTS)
def test_any_text_is_read_in_order_without_overlap(text: str) -> None:
    found = find_values(text)
    assert all(text[one.start : one.end] == one.text and one.readings for one in found)
    assert all(one.end <= other.start for one, other in pairwise(found))


LONG = [
    "1,", "a1-", "-", "one ", "$", "A", "1a@", "a.", "9", "a@a", "may 1", "#", "_1", "1 ", "May ", "5 h ", "12:", "1 in ",
]  # fmt: skip


@pytest.mark.parametrize("piece", LONG)
def test_long_texts_are_read_up_to_a_cap(piece: str) -> None:
    """A pattern that went back over its text would not come to the end of these."""
    found = find_values(piece * (2 * MAX_TEXT_CHARS // len(piece)))
    assert len(found) <= MAX_MENTIONS
    assert all(one.end <= MAX_TEXT_CHARS for one in found)


@given(st.integers(0, 10**9))
def test_a_number_is_read_in_every_locale(cents: int) -> None:
    english = f"{cents / 100:,.2f}"
    german = english.translate(str.maketrans(",.", ".,"))
    for text in (english, german, english.replace(",", "'"), german.replace(".", "\u202f")):
        assert cents / 100 in [reading.value for reading in find_values(f"is {text} in all")[0].readings]


@given(st.dates(min_value=date(1900, 1, 1), max_value=date(2100, 12, 31)))
def test_a_day_is_found_however_it_is_written(day: date) -> None:
    for text in (
        f"{day:%B} {day.day}, {day.year}",
        f"{day.day} {day:%b} {day.year}",
        f"{day:%d/%m/%Y}",
        f"{day:%Y%m%d}",
    ):
        [value] = ground({"result": {"due": day.isoformat()}, "text": f"It is due on {text} at last"}).values
        assert (value.origin, value.sources) == ("found", (f"{RESULT}/due",))


# Fields


@pytest.mark.parametrize(("name", "beside", "told", "want"), TABLES["fields"])
def test_a_field_names_its_unit(name: str, beside: Any, told: bool, want: str) -> None:
    field = read_field(name, read_beside(beside), minor_told=told)
    unit = field.unit
    parts = [] if unit is None else [unit.dimension, f"{unit.factor:.4g}", unit.currency, "minor" * field.minor]
    assert " ".join(filter(None, parts)) == want


# Origins


def show(one: Grounded) -> str:
    near = f"near {one.nearest[0].value}" if one.nearest and one.origin == "nowhere" else ""
    source = one.sources[0].removeprefix(RESULT) if one.sources else ""
    return " ".join(filter(None, [one.origin, one.how, source, near]))


@pytest.mark.parametrize("case", read_yaml(DATA / "grounding" / "origins.yaml")["cases"], ids=lambda case: case["name"])
def test_a_value_has_its_origin(case: dict[str, Any]) -> None:
    found = {one.value: show(one) for one in ground(case).values}
    assert {value: found.get(value) for value in case["want"]} == case["want"]


def test_the_nearest_are_three_of_its_kind_with_their_places() -> None:
    result = {"rows": [{"fee_cents": fee} for fee in (4180, 9120, 100, 77000)], "due": "2025-09-04"}
    [value] = ground({"result": result, "text": "The fee is $41.08 for you"}).values
    assert [(near.value, near.pointer) for near in value.nearest][:1] == [("4180", f"{RESULT}/rows/0/fee_cents")]
    assert len(value.nearest) == 3
    assert all("fee_cents" in near.pointer for near in value.nearest)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("You save 12.25 a month.", ["118.25", "130.5"]),  # derived
        ("Your plan lasts 21 days.", ["28"]),  # found, in another unit
        ("It costs 130.5 in all.", []),  # found as it is
    ],
)
def test_what_may_be_found_by_chance_is_shown_with_the_nearest_others(text: str, near: list[str]) -> None:
    result = {"old": 130.5, "new": 118.25, "age": 21, "lasts": 28}
    [value] = ground({"result": result, "text": text}).values
    assert [one.value for one in value.nearest if one.how is None] == near


@pytest.mark.parametrize("rows", [MAX_FACTS + 1, MAX_STEPS // 10])
def test_what_is_too_much_is_not_looked_for(rows: int) -> None:
    """Beyond the caps nothing is called `nowhere`: too many facts, or too many steps of a search."""
    store = FactStore()
    store.add_value([0.5 + n for n in range(rows)], Site(RESULT, "result"))
    known = KnownFacts(store)
    origins = [
        one.grounded.origin for one in ground_text("".join(f"{n}.371e9 and " for n in range(11, 40)), "/t", known)
    ]
    assert known.full == (rows > MAX_FACTS)
    assert origins[-1] == "not_looked_for"


@given(VALUES, TEXTS)
def test_any_result_and_text_have_origins_that_can_be_looked_up(result: Any, text: str) -> None:
    trace = trace_of({"result": result, "text": f"{text}.", "user": text})
    for grounded in ground_texts(History(trace)):
        for one in grounded.values:
            assert (trace.messages[2].text or "")[one.start : one.end] == one.value
            assert bool(one.sources) or one.origin in ("general", "nowhere", "not_looked_for")
            for pointer in [*one.sources, *[near.pointer for near in one.nearest]]:
                assert is_in(trace, pointer)


def is_in(trace: Trace, pointer: str) -> bool:
    """Whether a pointer leads to something; stretches of texts (`@4-20`) are taken as they are."""
    here: Any = {
        "messages": [{"text": message.text} for message in trace.messages],
        "tools": [asdict(tool) for tool in trace.tools or ()],
        "steps": [{"call": asdict(step.call), "result": step.result and asdict(step.result)} for step in trace.steps],
    }
    for token in pointer.split("/")[1:]:
        name, at, stretch = token.replace("~1", "/").replace("~0", "~").partition("@")
        here = here[int(name)] if isinstance(here, list) else here[name]
        if at:
            start, end = map(int, stretch.split("-"))
            return isinstance(here, str) and 0 <= start < end <= len(here)
    return True


@given(VALUES, VALUES, TEXTS)
def test_what_is_found_stays_found_whatever_else_is_held(result: Any, more: Any, text: str) -> None:
    before = ground({"result": [result], "text": f"a {text}"}).values
    after = [one for one in ground({"result": [result, more], "text": f"a {text}"}).values if one.origin == "found"]
    for one in before:
        if one.origin == "found":
            assert any(other.start <= one.start and one.end <= other.end for other in after)
