"""What a rubric expects of every trace, arguments that do not matter, and extensions that change one number."""

from __future__ import annotations

from typing import Any

import pytest

from service import Report, score

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
