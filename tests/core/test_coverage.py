"""Which sentences of a text claims quote nothing of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.judging.quoting import list_left_out

TEXT = "It cost $54.00. It came at 5 p.m. on Monday. Dr. A. Lee signed (at 9.30). Anything else?"
PARTS = ["It cost $54.00.", "It came at 5 p.m. on Monday.", "Dr. A. Lee signed (at 9.30).", "Anything else?"]

CASES: list[tuple[str, list[str], list[str], list[str]]] = [
    ("nothing", [TEXT], [], PARTS),
    ("each", [TEXT], PARTS, []),
    ("a part of each", [TEXT], ["$54.00", "at 5  p.m.", "signed (at 9.30", "else"], []),
    ("without their numbers", [TEXT], ["It cost", "on Monday", "Lee signed", "Any"], PARTS),
    ("a letter or two of each", ["Paid it. Sent it."], ["P", "en"], ["Paid it.", "Sent it."]),
    ("one word of many", ["The pier is open today."], ["The"], ["The pier is open today."]),
    ("two words of many", ["The pier is open today."], ["pier is"], []),
    ("a digit of a number", ["It cost $54.00."], ["$5"], ["It cost $54.00."]),
    ("a list", ["1. Paid $5\n2. Sent"], ["Paid $5", "Sent"], []),
    ("the whole", [TEXT], [TEXT], []),
    ("over the end of one", [TEXT], ["$54.00. It came"], PARTS[1:]),
    ("one of four", [TEXT], [PARTS[0]], PARTS[1:]),
    ("of something else", [TEXT], ["amount_cents"], PARTS),
    ("in quotes", [TEXT], ['"$54.00"'], PARTS[1:]),
    ("lines", ["# Head\n- one\n- two\n\n---\n"], ["one"], ["# Head", "- two"]),
    ("over lines", ["one thing\nand another"], ["thing and another"], []),
    ("a list mark alone", ["0)"], [], []),
    ("two texts", ["Paid.", "Sent."], ["Paid"], ["Sent."]),
    ("as JSON tells it", ['He said "caf\u00e9". Bye.'], ['said \\"caf\\u00e9\\"'], ["Bye."]),
    ("said twice, quoted once", ["Paid. Sent. Paid."], ["Paid."], ["Sent."]),
    ("the same words in two sentences", ["High of 2 C today. Low of 2 C there."], ["2 C"], ["Low of 2 C there."]),
    ("and quoted twice", ["High of 2 C today. Low of 2 C there."], ["2 C", "2 C"], []),
    ("another script", ["\u4ed8\u4e86\u6b3e\u3002\u5df2\u5bc4\u51fa\u3002"], ["\u4ed8\u4e86"],
     ["\u5df2\u5bc4\u51fa\u3002"]),
]  # fmt: skip


@pytest.mark.parametrize(("texts", "quotes", "left"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_is_left_out(texts: list[str], quotes: list[str], left: list[str]) -> None:
    assert list(list_left_out(texts, quotes)) == left


def test_a_text_of_nothing_but_short_words_takes_no_time_for_each_pair_of_them() -> None:
    assert list_left_out(["A. " * 100_000], ["A."]) == ()
    assert len(list_left_out(["no. " * 100_000], [])) == 1


@given(st.text(max_size=80), st.lists(st.text(max_size=9), max_size=4))
def test_who_quotes_what_was_left_out_leaves_nothing_out(text: str, quotes: list[str]) -> None:
    left = list_left_out([text], quotes)
    assert list_left_out([text], [*quotes, *left]) == ()
