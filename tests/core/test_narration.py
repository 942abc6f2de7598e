"""What answers claim: tables, later turns, and laws that hold for any answer."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service import score
from service.core.evidence.evidenced import Suspicion
from service.core.evidence.facts.facts import MAX_FACTS
from service.core.evidence.narration.answers import narrate
from service.core.evidence.reading.quantities import MAX_TEXT
from service.core.outcome import Errored
from service.intake import read_trace
from service.packaged_files import read_yaml

FILE = Path(__file__).parents[1] / "data" / "evidence" / "narration.yaml"
TABLE: Any = read_yaml(FILE.read_text("utf-8"), source=FILE.name)
CASES = [
    pytest.param(group, answer, wanted, id=f"{group['class']}: {answer}"[:90])
    for group in TABLE["groups"]
    for answer, wanted in group["cases"]
]


HONEST: Any = read_yaml((FILE.parent / "honest.yaml").read_text("utf-8"), source="honest.yaml")


def events_of(result: Any, *answers: str, tool: str = "look") -> list[dict[str, Any]]:
    said = [event for answer in answers for event in ({"assistant": answer}, {"user": "And?"})]
    return [{"user": "Please."}, {"call": {"name": tool}, "result": result}, *said[:-1]]


def scored(events: list[dict[str, Any]], **check: Any) -> Any:
    rubric = {"id": "case", "criteria": [{"id": "it", "stage": "integrate", "check": {"kind": "narration", **check}}]}
    return score({"trace": {"format": "callgrade", "events": events}, "rubric": rubric, "judges": "off"})


def outcomes(report: Any) -> list[Any]:
    return [each.outcome for each in report.criteria[0].outcomes]


def told(outcome: Any) -> str:
    claims = getattr(outcome, "evidence", ())
    named = [claim for claim in claims if claim.verdict != "not_checkable"]
    return " ".join((claim.code or claim.verdict) + "?" * (claim.verdict == "suspected") for claim in named)


@pytest.mark.parametrize(("group", "answer"), [(group, text) for group in HONEST["groups"] for text in group["texts"]])
def test_what_is_true_is_not_contradicted(group: Any, answer: str):
    [_, *events] = events_of(group["result"], answer)
    found = outcomes(scored([{"user": group.get("asked", "Please.")}, *events]))
    claims = [claim.verdict for text in found for claim in getattr(text, "evidence", ())]
    assert "contradicted" not in claims
    assert not (group.get("quiet") and {"suspected", "unsupported"} & {*claims})


@pytest.mark.parametrize(("group", "answer", "wanted"), CASES)
def test_case(group: Any, answer: str, wanted: str):
    [_, *events] = events_of(group["result"], answer, tool=group.get("tool", "look"))
    [outcome] = outcomes(scored([{"user": group.get("asked", "Please.")}, *events]))
    assert told(outcome) == wanted
    contradicted = [word for word in wanted.split() if word not in ("supported", "unsupported") and word[-1] != "?"]
    if "?" in wanted and not contradicted:
        assert isinstance(outcome, Suspicion)
        assert (outcome.cause == "unread") == group.get("inferred", False)
        assert {claim.note for claim in outcome.evidence if claim.code} <= {one.message for one in outcome.findings}
    elif wanted:
        contradicted = {claim.note for claim in outcome.evidence if claim.verdict == "contradicted"}
        assert outcome.passed == (not contradicted)
        assert contradicted <= {finding.message for finding in outcome.findings}
    else:
        assert outcome.cause == "not_applicable"


ODD_VALUES = [0, 1e308, -1e308, 1e-308, 10**28, "99999999", "20270230", "20271231", "24:00", "9999-12-31T23:59:59Z"]
ODD_VALUES += ["0001-01-01", "1e400", True, None, "", "available", "99999999 days", "3 months", "100%", 0.5, [], {}]
ODD_FIELDS = ["temp_min", "temp_max", "price_usd", "at", "raised", "available", "hours", "share_pct", "total", "km"]
ODD_WORDS = (
    "In all|the total is|about|1e400|$0.00|-€5|0 %|24:00|20270304|in 9999999 days|on Sun.|of the|available items"
)
ODD_WORDS += (
    "|half of|1,000,000,000,000 km|5 lb|| a | b ||\n- |9999-12-31|12:00 pm|three of the|£5 pounds|12 months ago|²"
)
RECORDS = st.dictionaries(st.sampled_from(ODD_FIELDS), st.sampled_from(ODD_VALUES), max_size=6)


@given(RECORDS, st.lists(RECORDS, max_size=3), st.lists(st.sampled_from(ODD_WORDS.split("|")), max_size=30))
def test_no_value_is_too_odd_to_be_checked(record: Any, records: Any, words: list[str]):
    report = scored(events_of({**record, "rows": records}, " ".join([*words, "5."])))
    assert not [outcome for outcome in outcomes(report) if isinstance(outcome, Errored)]


def test_a_later_turn_that_contradicts_an_earlier_payload_is_found():
    report = scored(events_of({"balance_cents": 12400}, "Your balance is $124.", "As I said, your balance is $142."))
    assert [told(outcome) for outcome in outcomes(report)] == ["supported", "digit_flip"]
    assert [each.turn for each in report.criteria[0].outcomes] == [1, 2]
    assert [finding.path for finding in report.findings()] == ["/messages/4/text"]


def test_only_results_before_a_text_are_known_to_it():
    events = [
        {"user": "Hi"},
        {"assistant": "Your balance is $9."},
        *events_of({"balance": 5}, "Your balance is $5.")[1:],
    ]
    assert [told(outcome) for outcome in outcomes(scored(events))] == ["supported"]


def test_what_the_user_said_is_no_retelling_of_a_result():
    events = events_of({"balance": 5}, "Your balance is $9.")
    assert not outcomes(scored(events))[0].passed
    events[0] = {"user": "I have $9."}
    assert outcomes(scored(events))[0].cause == "not_applicable"


def test_a_failed_call_tells_no_facts():
    events = [
        {"user": "?"},
        {"call": {"name": "look"}, "result": {"balance": 5}, "is_error": True},
        {"assistant": "Balance: $9"},
    ]
    assert [outcome.cause for outcome in outcomes(scored(events))] == ["not_applicable"]


def test_unsupported_claims_may_be_made_to_fail():
    events = events_of({"balance": 5}, "Your balance is $5. We paid 1234.56 last year.")
    [noted], [failing] = outcomes(scored(events)), outcomes(scored(events, unsupported="fail"))
    assert (noted.cause, failing.passed) == ("not_asked", False)
    assert [finding.code for finding in failing.findings] == ["suspected_contradiction"]


@pytest.mark.parametrize(
    ("result", "answer"),
    [({"balance": 5}, "a" * (MAX_TEXT + 1)), ([{"a": n} for n in range(MAX_FACTS + 1)], "Balance: $9")],
)
def test_what_is_too_long_is_said_to_be(result: Any, answer: str):
    assert [outcome.cause for outcome in outcomes(scored(events_of(result, answer)))] == ["too_long"]


def test_a_text_that_is_a_table_is_read_as_one():
    table = "# unit: people\ndate,value\n2024-01-01,5.5\n2024-01-02,6.5\n2024-01-03,7.5\n"
    [outcome] = outcomes(scored(events_of({"csv": table}, "On January 2, 2024 the value was 7.5.")))
    assert told(outcome) == "swapped_entity?"


def test_columns_are_read_as_records():
    box = {"NAME": {"0": "Anna Lee", "1": "Bo Wong"}, "PTS": {"0": "31", "1": "12"}, "REB": {"0": "4", "1": "11"}}
    [outcome] = outcomes(scored(events_of({"box": box}, "Anna Lee had 31 points and 11 rebounds.")))
    assert told(outcome) == "supported swapped_entity"


KEY = st.sampled_from(["price", "order_id", "name", "seats", "date", "value", "amount_cents", "2", "is_paid"])
WORD = st.sampled_from(
    ["price", "is", "$", "12", "HAT12", "May 5", "seats:", "\n-", "not", "paid", "from", "to", "over", "3.5%"]
)
VALUE = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), WORD),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEY, inner, max_size=4)),
    max_leaves=12,
)


@given(VALUE, st.lists(WORD, max_size=20).map(" ".join))
def test_any_answer_to_any_result_has_its_verdicts_in_place(result: Any, answer: str):
    trace = read_trace({"format": "callgrade", "events": events_of(result, answer)})
    for narration in narrate(trace):
        for claim in narration.claims:
            assert answer[claim.start : claim.end].strip() == claim.text.strip() or claim.text in answer
            assert (claim.verdict in ("contradicted", "suspected")) == (claim.code is not None)


@given(st.integers(1, 10**7), st.integers(1, 10**7))
def test_an_amount_is_borne_out_if_it_is_the_one_held(held: int, said: int):
    [outcome] = outcomes(scored(events_of({"amount_cents": held}, f"The amount is ${Decimal(said) / 100:,.2f}.")))
    assert outcome.passed == (held == said)


@given(st.permutations(["price", "seats", "nights", "stops"]), st.randoms())
def test_the_order_of_keys_changes_nothing(names: list[str], random: Any):
    answer = "The price is $12, with 7 seats and 2 stops."
    plain = {"price": 12, "seats": 8, "nights": 3, "stops": 2}
    verdicts = [
        told(outcomes(scored(events_of(json.loads(json.dumps(result)), answer)))[0])
        for result in (plain, {name: plain[name] for name in names})
    ]
    assert verdicts[0] == verdicts[1] == "supported wrong_value supported"
