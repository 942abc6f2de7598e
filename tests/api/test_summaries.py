"""POST /v1/summaries."""

from __future__ import annotations

import json
from typing import Any

import pytest

from service import report_json
from service.reporting.summaries import render_json, summarize_reports
from service.reporting.summary import SummaryOptions
from tests.api.asgi_caller import Ask
from tests.reporting.report_sets import reports_of, trials

REPORTS = reports_of()
BODY: list[Any] = [json.loads(report_json(report)) for report in REPORTS]


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def test_a_summary_is_that_of_the_library(ask: Ask) -> None:
    families = {"money": ["refund", "void"]}
    asserted = ["pass_rate >= 0.95", "decide.call.recall >= 0.8"]
    answer = ask("POST", "/v1/summaries", encoded({"reports": BODY, "families": families, "assertions": asserted}))
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.body == render_json(summarize_reports(REPORTS, SummaryOptions(families=families), asserted))
    assert [one["status"] for one in answer.json["gate"]["results"]] == ["failed", "passed"]
    assert answer.json["gate"]["broke_at"] == "decide"


def test_slices_and_pass_k(ask: Ask) -> None:
    repeated = [json.loads(report_json(one)) for one in trials("a", [True, True, False, False])]
    found = ask("POST", "/v1/summaries", encoded({"reports": repeated, "pass_k": [2], "by": ["trial"]})).json
    assert found["gate"] is None
    assert found["repeats"]["tasks"] == [{"task": "a", "trials": 4, "successes": 2, "open": 0}]
    assert found["repeats"]["pass_k"][0]["rate"]["value"] == pytest.approx(1 / 6)
    assert [one["value"] for one in found["slices"]] == ["0", "1", "2", "3"]


def test_what_a_later_version_adds_to_a_report_is_left_alone(ask: Ask) -> None:
    later = [{**BODY[0], "more": 1, "steps": [{**step, "more": 1} for step in BODY[0]["steps"]]}]
    assert ask("POST", "/v1/summaries", encoded({"reports": later})).status == 200


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in BODY[0].items() if key != name}


REFUSED: list[tuple[Any, list[str]]] = [
    ({}, ["/reports"]),
    ([], [""]),
    ({"reports": []}, ["/reports"]),
    ({"reports": [1]}, ["/reports/0"]),
    ({"reports": [BODY[0], without("verdict"), without("steps")]}, ["/reports/1/verdict", "/reports/2/steps"]),
    ({"reports": [{**BODY[0], "score": 7}]}, ["/reports/0/score"]),
    ({"reports": [{**BODY[0], "verdict": "fine"}]}, ["/reports/0/verdict"]),
    ({"reports": BODY, "assertions": []}, ["/assertions"]),
    ({"reports": BODY, "assertions": ["pass_rate > 0", "pas_rate > 0", "?"]}, ["/assertions/1", "/assertions/2"]),
    ({"reports": BODY, "pass_k": [2]}, ["/pass_k"]),
    ({"reports": BODY, "pass_k": [0]}, ["/pass_k/0"]),
    ({"reports": BODY, "families": {"money": "refund"}}, ["/families/money"]),
    ({"reports": BODY, "more": 1}, ["/more"]),
]


@pytest.mark.parametrize(("body", "places"), REFUSED)
def test_what_cannot_be_summed_up_is_refused_with_its_places(ask: Ask, body: Any, places: list[str]) -> None:
    answer = ask("POST", "/v1/summaries", encoded(body))
    assert answer.status == 422
    assert [place["pointer"] for place in answer.problem["errors"]] == places
