"""What code says against a text: proofs and suspicions with their true look-alikes, as data, and texts that cannot be checked."""

from __future__ import annotations

from typing import Any

import pytest

from service import score
from service.core.grounding.history import History
from service.core.grounding.reading.values import MAX_TEXT_CHARS
from service.core.grounding.texts import MAX_MENTIONS_OF_ALL, GroundedText, ground_texts
from service.intake.reading import read_trace
from tests.benchmarks.grounding.measure import count_findings
from tests.benchmarks.grounding.rows import DATA, HELD_BACK, SEEN
from tests.core.reports import one_check
from tests.core.test_gates import called
from tests.tables import named, read_yaml

TABLE: Any = read_yaml(DATA / "findings.yaml")
CASES = [
    pytest.param(group, text, want, id=f"{group['form']}: {text}"[:100])
    for group in TABLE["groups"]
    for text, want in group["cases"]
]
RUBRIC = one_check("grounding")


def trace_of(*events: Any) -> dict[str, Any]:
    """A conversation: texts of user and assistant in turns, and calls."""
    return {"format": "callgrade", "tools": TABLE["tools"], "events": list(events)}


def ground(*events: Any) -> list[GroundedText]:
    return ground_texts(History(read_trace(trace_of(*events))))


def outcomes(*events: Any) -> list[Any]:
    report = score({"trace": trace_of(*events), "rubric": RUBRIC, "judges": "off"})
    return [each.outcome for each in report.criteria[0].outcomes]


@pytest.mark.parametrize(("group", "text", "want"), CASES)
def test_case(group: Any, text: str, want: list[str]) -> None:
    events = [{"user": group.get("user", "Please.")}, *[called(*one) for one in group["calls"]], {"assistant": text}]
    [found] = ground(*events)
    assert [one.code + "?" * (not one.proved) for one in found.findings] == want
    [outcome] = outcomes(*events)
    proved = any(not code.endswith("?") for code in want)
    assert (getattr(outcome, "passed", None) is False) == proved
    assert (getattr(outcome, "cause", None) == "not_asked") == bool(want and not proved)
    assert all(text[one.start : one.end] and one.message for one in found.findings)


ORDER = called("get_order", {"order_id": "K-9104"}, {"order_id": "K-9104", "amount_cents": 540000})
PICTURE = [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}]
UNCHECKED = [
    ("a result that is missing", {"call": {"name": "get_order", "arguments": {}}}, "not_captured"),
    ("a result that is a picture", called("get_order", {}, PICTURE), "unread"),
    ("a result that is cut off", called("get_order", {}, '{"amount_cents": 5400, "items": [{"na'), "unread"),
]


@pytest.mark.parametrize(("event", "cause"), named(UNCHECKED))
def test_a_text_after_a_result_that_could_not_be_read_is_open(event: Any, cause: str) -> None:
    [outcome] = outcomes({"user": "?"}, event, ORDER, {"assistant": "It came to $5,400.00, and 12 are left."})
    assert (outcome.cause, outcome.open) == (cause, True)


def test_a_value_found_nowhere_beside_results_that_are_all_empty_is_open() -> None:
    said = {"assistant": "It came to $54.00."}
    [empty], [held] = outcomes(called("f", {}, {"left": ""}), said), outcomes(called("f", {}, {"left": "7"}), said)
    assert (getattr(empty, "cause", None), getattr(held, "cause", None)) == ("unread", None)


def test_what_was_not_read_may_hold_what_stands_nowhere() -> None:
    """No scale slip is proved and no slip suspected beside a result that nobody read."""
    wrong = {"assistant": "It came to $54.00, reference K-9105."}
    [read] = ground({"user": "?"}, ORDER, wrong)
    [unread] = ground({"user": "?"}, ORDER, called("get_order", {}, PICTURE), wrong)
    assert {one.code for one in read.findings} == {"scale_slip", "suspected_slip"}
    assert unread.findings == ()


def test_texts_know_what_stands_before_them() -> None:
    found = ground(
        {"user": "Hi"},
        {"assistant": "I can look up your order."},
        {"user": "Order K-9104 please."},
        ORDER,
        {"assistant": "It came to $5,400.00."},
        {"user": "So $5,500?"},
        {"assistant": "No, $5,400, not $5,500; 17.25 more would be wrong."},
    )
    assert [(text.message, text.turn) for text in found] == [(4, 2), (6, 3)]
    assert [(one.value, one.origin) for one in found[1].values] == [
        ("$5,400", "found"),
        ("$5,500", "given"),
        ("17.25", "nowhere"),
    ]


def test_a_text_before_any_call_is_read_only_for_deeds() -> None:
    assert ground({"user": "Hi"}, {"assistant": "Your balance is $9.43."}) == []
    [text] = ground({"user": "Cancel K-9104"}, {"assistant": "I have cancelled order K-9104."})
    assert [(one.code, one.proved) for one in text.findings] == [("claimed_action_not_taken", True)]


def test_what_a_failed_call_returned_is_found_in_its_error() -> None:
    failed = called("get_order", {}, {"error": "no more than 17 orders"}, "failed")
    [text] = ground({"user": "?"}, failed, {"assistant": "There may be no more than 17 orders."})
    origins = [(one.value, one.origin, *one.sources) for one in text.values]
    assert ("17", "found", "/steps/0/result/content/error") in origins


@pytest.mark.parametrize(
    ("result", "answer"), [({"a": 5}, "a" * (MAX_TEXT_CHARS + 1)), (list(range(101_000)), "It is 9.")]
)
def test_what_is_too_long_is_said_to_be(result: Any, answer: str) -> None:
    [found] = outcomes({"user": "?"}, called("get_order", {}, result), {"assistant": answer})
    assert found.cause == "too_long"


def test_the_texts_of_a_trace_are_read_up_to_a_cap() -> None:
    many = {"assistant": "$5,400, " * 1_900}
    texts = ground({"user": "?"}, ORDER, *[many] * (MAX_MENTIONS_OF_ALL // 1_900 + 2))
    assert [bool(text.too_long) for text in texts][-1]
    assert not texts[0].too_long


def test_agents_are_told_apart() -> None:
    """What one agent tells another is a model's word: it is where a value stands, and no result holds it."""
    said = {"assistant": "Order K-9104 came to $777.00.", "agent": "clerk"}
    [first, second] = ground({"user": "?"}, ORDER, said, {"assistant": "It came to $777.00.", "agent": "front"})
    assert [one.origin for one in first.values if one.value == "$777.00"] == ["nowhere"]
    assert [(one.origin, one.sources) for one in second.values] == [("given", ("/messages/2/text",))]


# Texts that people wrote without knowing the code: counts, as data.

RATES: Any = read_yaml(DATA / "rates.yaml")
MOST = 0.02
"""The largest share of right texts that a suspicion may stand against, if it is to leave them open."""
NATURAL = ("right true", "right actions", "right spellings")
"""Right texts that nobody wrote to look wrong."""


def test_rates_are_those_of_the_sets() -> None:
    assert count_findings([SEEN, HELD_BACK]) == RATES, (
        "python -m tests.benchmarks.grounding --write counts again; look at what changed"
    )


@pytest.mark.parametrize("code", sorted(RATES["proved"]))
def test_no_right_text_is_proved_wrong(code: str) -> None:
    assert [kind for kind in RATES["proved"][code] if kind.startswith("right")] == []


@pytest.mark.parametrize("code", sorted(RATES["suspected"]))
def test_a_suspicion_that_opens_is_rare_in_right_texts(code: str) -> None:
    counts, texts = RATES["suspected"][code], RATES["of"]["texts"]
    assert all(counts.get(kind, 0) <= MOST * texts[kind] for kind in NATURAL)
