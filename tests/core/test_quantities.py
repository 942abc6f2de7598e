"""Quantities in text: a table, and laws that hold for any text."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.evidence.reading.dates import is_same_day
from service.core.evidence.reading.numbers import read_number
from service.core.evidence.reading.quantities import (
    MAX_QUANTITIES,
    MAX_TEXT,
    find_quantities,
    list_significant_digits,
)
from service.core.evidence.reading.units import UNITS, convert_to_base
from service.packaged_files import read_yaml

FILE = Path(__file__).parents[1] / "data" / "evidence" / "quantities.yaml"
TABLE: Any = read_yaml(FILE.read_text("utf-8"), source=FILE.name)
PIECES = st.sampled_from(
    [*"0123456789.,-+$€%°/:@_# \n'aAmT", "May ", "1st", "one ", "hundred ", " pm", "USD", "GB", "\u202f"]
)
TEXTS = st.one_of(st.text(max_size=300), st.lists(PIECES, max_size=200).map("".join))


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: case["name"])
def test_case(case: dict[str, Any]):
    reference = case.get("reference")
    found = find_quantities(case["text"], date.fromisoformat(str(reference)) if reference else None)
    assert [[q.kind, str(q.value), q.unit] for q in found] == [[*want, ""][:3] for want in case["want"]]


@given(TEXTS)
def test_any_text_is_read_in_order_without_overlap(text: str):
    found = find_quantities(text, date(2024, 5, 15))
    assert all(text[q.start : q.end] == q.text for q in found)
    assert all(one.end <= two.start for one, two in pairwise(found))


@given(TEXTS)
def test_what_is_before_a_line_break_reads_as_it_does_alone(text: str):
    alone = find_quantities(text)
    assert find_quantities(f"{text}\n\n#") == alone


@given(st.decimals(min_value=0, max_value=10**9, places=2))
def test_a_number_is_read_in_every_locale(value: Decimal):
    english = f"{value:,.2f}"
    german = english.translate(str.maketrans(",.", ".,"))
    swiss, french = english.replace(",", "'"), german.replace(".", "\u202f")
    assert [value in read_number(text) for text in (english, german, swiss, french)] == [True] * 4


@given(st.integers(-(10**6), 10**6), st.integers(0, 4))
def test_money_is_found_whatever_stands_around_it(cents: int, around: int):
    before, after = [("", ""), ("(", ")"), ("is ", "."), ("**", "**"), ("\n", ", and")][around]
    value = Decimal(cents) / 100
    text = f"{before}{'-' if value < 0 else ''}${abs(value):,.2f}{after}"
    assert [(q.kind, q.value) for q in find_quantities(text)] == [("money", value)]


@given(st.dates(min_value=date(1900, 1, 1), max_value=date(2100, 12, 31)))
def test_a_date_is_the_same_day_however_written(day: date):
    written = [
        f"{day:%B} {day.day}, {day.year}",
        f"{day.day} {day:%b} {day.year}",
        day.isoformat(),
        f"{day:%B} {day.day}",
    ]
    assert all(is_same_day(str(q.value), day.isoformat()) for text in written for q in find_quantities(text))
    assert all(len(find_quantities(text)) == 1 for text in written)


@given(st.dates(), st.integers(2, 300))
def test_days_ahead_are_counted_from_the_reference(reference: date, days: int):
    found = find_quantities(f"in {days} days", reference)
    assert all((date.fromisoformat(str(q.value)) - reference).days == days for q in found if q.kind == "date")


def test_units_of_a_dimension_convert_into_one_another():
    assert convert_to_base(Decimal("37.78"), UNITS["°C"]) == pytest.approx(
        convert_to_base(Decimal(100), UNITS["°F"]), abs=Decimal("0.01")
    )
    assert convert_to_base(Decimal(1), UNITS["mi"]) == convert_to_base(Decimal("1609.344"), UNITS["meters"])


@pytest.mark.parametrize(
    "piece",
    ["1,", "a1-", "-", "one ", "$", "A", "1a@", "a.", "9", "a@a", "may 1", "#", "_1", "1 ", "May ", "in 5 ", "12:"],
)
def test_long_texts_are_read_up_to_a_cap(piece: str):
    """A pattern that went back over its text would not come to the end of these."""
    found = find_quantities(piece * (2 * MAX_TEXT // len(piece)), date(2024, 5, 15))
    assert len(found) <= MAX_QUANTITIES
    assert all(q.end <= MAX_TEXT for q in found)


@given(st.decimals(min_value=-(10**9), max_value=10**9, places=4), st.integers(-6, 6))
def test_shifting_the_point_keeps_the_digits(value: Decimal, shift: int):
    assert list_significant_digits(value.scaleb(shift)) == list_significant_digits(value)
