"""What a rubric expects of every trace, arguments that do not matter, and extensions that change one number."""

from __future__ import annotations

from typing import Any

import pytest

from service import InputError, Report, score
from service.core.expectations.expectation import Expectation
from service.core.expectations.merging import merge_expectations
from service.registry import Registry, read_rubric

CALL = {"tool": "pay", "args": {"to": "Ann"}}
MADE = {"to": "Ann", "request_id": "f3c1-77"}


def report(
    rubric: dict[str, Any] | None = None, expected: dict[str, Any] | None = None, *made: dict[str, Any], **more: Any
) -> Report:
    """The report of a trace that pays, by code alone."""
    calls = [{"call": {"name": "pay", "arguments": one}} for one in made or [MADE]]
    trace = {"format": "callgrade", "events": [{"user": "Pay Ann."}, *calls], **more}
    request: dict[str, Any] = {"trace": trace, "judges": "off"}
    if rubric is not None:
        request["rubric"] = {"extends": "four_step", **rubric}
    return score(request if expected is None else {**request, "expected": expected})


def failing(found: Report) -> tuple[str, ...]:
    return found.failing


@pytest.mark.parametrize(
    ("standing", "expected", "wrong"),
    [
        ({"disallowed": [{"tool": "pay"}]}, None, ("disallowed",)),
        ({"disallowed": [{"tool": "pay"}]}, {"calls": [CALL], "disallowed": [{"tool": "x"}]}, ("disallowed",)),
        ({"disallowed": ["p*"]}, {"allowed": ["pay"]}, ("disallowed",)),
        ({"allowed": ["get_*"]}, {"calls": [CALL]}, ("disallowed",)),
        ({"allowed": ["get_*"]}, {"allowed": ["pay"]}, ("disallowed",)),
        ({"allowed": ["pay"]}, {"allowed": ["get_*"]}, ("disallowed",)),
        ({"allowed": ["p*"]}, {"allowed": ["pay"]}, ()),
        ({"counts": {"pay": "0"}}, None, ("count",)),
        ({"counts": {"pay": "0"}}, {"counts": {"pay": "1"}}, ()),
        ({"counts": {"pay": "0"}}, {"counts": {"tell": "0"}}, ("count",)),
        ({"calls": "none"}, None, ("decide",)),
        ({"calls": "none"}, {"calls": [{"tool": "pay"}]}, ()),
        ({"calls": "none"}, {"counts": {"pay": "1"}}, ("decide",)),
        ({"turns": [{"turn": 1, "calls": "none"}]}, {"turns": [{"turn": 1, "calls": "some"}]}, ()),
    ],
)
def test_the_traces_own_word_goes_first_and_bans_add_up(
    standing: dict[str, Any], expected: dict[str, Any] | None, wrong: tuple[str, ...]
):
    found = report({"expected": standing}, expected)
    assert failing(found) == wrong
    assert found.rubric.hash != report().rubric.hash


def test_a_message_must_hold_for_both():
    both = merge_expectations(Expectation(said="a"), Expectation(said=["b", "c"]))
    assert both is not None
    assert both.said == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("own", "standing", "output"),
    [
        ({}, {"output": None}, True),
        ({"output": None}, {"output": 1}, True),
        ({"gold": None}, {"gold": {"x": 1}}, False),
    ],
)
def test_null_says_something_of_an_output_alone(own: dict[str, Any], standing: dict[str, Any], output: bool):
    words = {"answer": "paid", "state": {"changes": []}, "allow_extra": False, **standing}
    silent = {"calls": "some", "answer": None, "state": None, "allow_extra": None, **own}
    both = merge_expectations(Expectation.model_validate(silent), Expectation.model_validate(words))
    assert both is not None
    assert (both.answer, both.allow_extra, both.gold) == ("paid", False, standing.get("gold"))
    assert both.state is not None
    assert (both.says_output, both.output) == (output, None)


IGNORED = [["request_id"], ["*_id"], ["pay.request_*"]]


@pytest.mark.parametrize("names", IGNORED)
@pytest.mark.parametrize("rubric", ["four_step", "three_layer", "uipath_tool_call_args"])
def test_an_argument_that_does_not_matter_changes_nothing(names: list[str], rubric: str):
    listed = {"calls": [{"tool": "pay", "args": {**MADE, "request_id": "another"}}]}
    for expected in ({"calls": [CALL]}, listed):
        base = {
            "trace": {
                "format": "callgrade",
                "events": [{"user": "Pay Ann."}, {"call": {"name": "pay", "arguments": MADE}}],
            }
        }
        found = score({**base, "judges": "off", "rubric": rubric, "expected": {**expected, "ignore_args": names}})
        assert failing(found) == ()
        assert failing(score({**base, "judges": "off", "rubric": rubric, "expected": listed})) != ()


def find(extension: dict[str, Any], registry: Registry = Registry()) -> Any:  # noqa: B008 (the packaged rubrics never change)
    return registry.find(read_rubric({"extends": "four_step", **extension}))


def test_an_extension_changes_one_number():
    found, base = (
        find({"weights": {"argument_plausibility": 5}, "thresholds": {"warn": 0.95}, "stages": {"decide": 2}}),
        find({}),
    )
    changed = {
        one.id: (one.weight, other.weight)
        for one, other in zip(found.criteria, base.criteria, strict=True)
        if one != other
    }
    assert changed == {"argument_plausibility": (5, 2)}
    assert (found.thresholds.fail, found.thresholds.warn) == (base.thresholds.fail, 0.95)
    assert found.stages == {**base.stages, "decide": 2}


def test_a_weight_of_no_criterion_is_an_error():
    with pytest.raises(InputError) as error:
        find({"weights": {"groundedness": 1}})
    assert error.value.problems[0].path == "/rubric/weights"


def test_the_digest_of_a_rubric_that_expects_nothing_is_the_old_one_and_any_other_reads_back():
    standing = find({"expected": {"state": {"changes": []}, "ignore_args": ["a"]}})
    again = read_rubric(standing.model_dump(mode="json"))
    assert again.digest == standing.digest != find({}).digest


def test_it_may_come_from_nowhere():
    made, tools = {"to": "Ann", "order_id": "ORD-118822"}, [{"name": "pay"}]
    plain = report({}, None, made, tools=tools)
    assert [one.code for one in plain.findings()] == ["identifier_from_nowhere"]
    found = report({"expected": {"ignore_args": ["order_id"]}}, None, made, tools=tools)
    assert found.findings() == []
