"""Published methods over HTTP: the numbers of the tables, own and theirs, as the library gives them."""

from __future__ import annotations

import json

import pytest

from tests.api.asgi_caller import Ask
from tests.core.carried_cases import load


@pytest.mark.parametrize("compat", [True, False])
@pytest.mark.parametrize("kind", load("uipath_output"))
def test_what_an_agent_gave_back_over_http(ask: Ask, kind: str, compat: bool) -> None:
    for case in load("uipath_output")[kind]:
        check = {"kind": f"uipath_{kind}"} | case.get("check", {})
        criterion = {"id": kind, "stage": "integrate", "check": check}
        trace = {"format": "callgrade", "events": [{"user": "Please."}], "output": case["gave"]}
        rubric = {"extends": f"uipath_{kind}", "compat": compat, "criteria": [criterion]}
        body = {"rubric": rubric, "trace": trace, "expected": {"output": case["expected"]}}
        answer = ask("POST", "/v1/score", json.dumps(body).encode())
        ours = case.get("ours", case["upstream"])
        wanted = case["upstream"] if compat else ours
        assert (answer.status, answer.json["score"]) == (200, pytest.approx(wanted, abs=1e-9)), case["name"]


def test_arcades_rows_over_http(ask: Ask) -> None:
    call = {"call": {"name": "f", "arguments": {"n": 60}}}
    pattern = {"tool": "f", "args": {"n": {"kind": "numeric", "value": 50, "value_range": [0, 100]}}}
    body = {
        "rubric": {"extends": "arcade", "compat": True},
        "trace": {"format": "callgrade", "events": [{"user": "Please."}, call]},
        "expected": {"calls": [pattern]},
    }
    found = ask("POST", "/v1/score", json.dumps(body).encode()).json
    (outcome,) = [one["outcome"] for one in found["criteria"][0]["outcomes"]]
    assert outcome["raw"] == pytest.approx(0.95)
    assert [row["name"] for row in outcome["rows"]] == ["tool_selection", "n"]
