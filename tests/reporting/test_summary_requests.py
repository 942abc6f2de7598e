"""What to sum up, as a batch's summary and the pages ask for it: read, or refused with its places."""

from __future__ import annotations

import json
from typing import Any

import pytest

from service import report_json
from service.errors import InputError
from service.reporting.summaries import read_summary_request, summarize_request
from tests.reporting.report_sets import reports_of

BODY: list[Any] = [json.loads(report_json(report)) for report in reports_of()]


def test_what_a_later_version_adds_to_a_report_is_left_alone() -> None:
    later = {**BODY[0], "more": 1, "steps": [{**step, "more": 1} for step in BODY[0]["steps"]]}
    assert len(read_summary_request({"reports": [later]}).reports) == 1


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
    ({"reports": BODY, "more": 1}, ["/more"]),
]


@pytest.mark.parametrize(("body", "places"), REFUSED)
def test_what_cannot_be_summed_up_is_refused_with_its_places(body: Any, places: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        summarize_request(read_summary_request(body))
    assert [problem.path for problem in caught.value.problems] == places
