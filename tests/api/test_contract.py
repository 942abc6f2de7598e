"""The OpenAPI document is true: what it forbids is refused, what we take it allows, and answers look as it says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.config import SchemathesisConfig

from service.api.app import create_app
from tests.api.asgi_caller import Ask

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"

APP = create_app()

load_all_checks()

CONFIG = SchemathesisConfig.from_dict(
    {
        # A NUL is refused by the parser of every body, which JSON Schema has no way to say.
        "generation": {"allow-x00": False},
        "checks": {
            # 413: a list longer than maxItems.
            "negative_data_rejection": {"expected-statuses": [400, 404, 405, 413, 415, 422]},
            # 422: a trace can fit its schema and still contradict itself, name a rubric that nobody knows, or ask for a judge
            # where none is set. It is never 400 or 413: what fits the schema is JSON we can read.
            "positive_data_acceptance": {"expected-statuses": ["2xx", 404, 422]},
        },
    }
)
DOCUMENT = schemathesis.openapi.from_asgi("/openapi.json", APP, config=CONFIG)
OPERATIONS = {found.ok().label: found.ok() for found in DOCUMENT.get_all_operations()}

TAKES_ANYTHING = {
    "POST /v1/score/many": "an item that is wrong does not spoil the others, and is answered 200 with its error",
    "POST /v1/rubrics/validate": "what is no rubric is answered 200 with what is wrong",
}
"""Where data that does not fit is no failure of the request, and why."""

EXAMPLES = {
    ("POST /v1/score", GenerationMode.POSITIVE): 50,
    ("POST /v1/score", GenerationMode.NEGATIVE): 50,
    ("POST /v1/score/many", GenerationMode.POSITIVE): 25,
    ("POST /v1/score/many", GenerationMode.NEGATIVE): 15,
    ("POST /v1/rubrics/validate", GenerationMode.POSITIVE): 50,
    ("POST /v1/summaries", GenerationMode.POSITIVE): 40,
    ("POST /v1/summaries", GenerationMode.NEGATIVE): 30,
    ("GET /v1/rubrics/{rubric_id}", GenerationMode.POSITIVE): 50,
    ("GET /v1/rubrics", GenerationMode.POSITIVE): 1,
    ("GET /livez", GenerationMode.POSITIVE): 1,
    ("GET /readyz", GenerationMode.POSITIVE): 1,
    ("GET /metrics", GenerationMode.POSITIVE): 1,
}
"""How many requests are made up for an operation. (Any JSON fits validate and any text names a rubric: nothing is negative.)"""


def test_every_operation_is_tried() -> None:
    assert {label for label, _ in EXAMPLES} == set(OPERATIONS)


@pytest.mark.parametrize(("label", "mode"), [pytest.param(*key, id=f"{key[0]} {key[1].value}") for key in EXAMPLES])
def test_operations_keep_to_the_document(label: str, mode: GenerationMode) -> None:
    checks = CHECKS.get_all()
    if label in TAKES_ANYTHING:
        checks = [check for check in checks if check.__name__ != "negative_data_rejection"]

    @settings(
        max_examples=EXAMPLES[label, mode],
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=OPERATIONS[label].as_strategy(generation_mode=mode))
    def holds(case: schemathesis.Case) -> None:
        case.call_and_validate(checks=checks)

    holds()


# What is taken and given in earnest fits the document: the other half of being exact.


@pytest.fixture(scope="module")
def document(ask: Ask) -> dict[str, Any]:
    return ask("GET", "/openapi.json").json


def fits(document: dict[str, Any], schema: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator({**schema, "components": document["components"]})


def _requests() -> Iterator[tuple[str, dict[str, Any]]]:
    for case in json.loads((DATA / "api" / "requests.json").read_text("utf-8")):
        yield case["name"], case["request"]
    for case in json.loads((ROOT / "service" / "demo" / "cases.json").read_text("utf-8")):
        yield case["title"], case["request"]
    for record in json.loads((DATA / "traces" / "same_conversation.json").read_text("utf-8"))["forms"]:
        yield f"a trace in the form {record['format']}", {"trace": record}


REQUESTS = [pytest.param(request, id=name) for name, request in _requests()]


@pytest.mark.parametrize("request_", REQUESTS)
def test_requests_and_reports_fit_their_schemas(ask: Ask, document: dict[str, Any], request_: dict[str, Any]) -> None:
    operation = document["paths"]["/v1/score"]["post"]
    taken = operation["requestBody"]["content"]["application/json"]["schema"]
    given = operation["responses"]["200"]["content"]["application/json"]["schema"]
    assert not [str(error) for error in fits(document, taken).iter_errors(request_)]
    answer = ask("POST", "/v1/score", json.dumps(request_).encode())
    assert answer.status == 200
    assert not [str(error) for error in fits(document, given).iter_errors(answer.json)]


@pytest.mark.parametrize("path", ["/v1/score", "/v1/score/many", "/v1/rubrics/validate"])
def test_the_examples_in_the_document_work(ask: Ask, document: dict[str, Any], path: str) -> None:
    content = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]
    assert fits(document, content["schema"]).is_valid(content["example"])
    answer = ask("POST", path, json.dumps(content["example"]).encode())
    assert answer.status == 200
    assert answer.json.get("failed", 0) == 0
    assert answer.json.get("valid", True) is True


def test_every_reference_leads_somewhere_and_every_schema_is_referred_to(document: dict[str, Any]) -> None:
    referred = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))
    assert referred == set(document["components"]["schemas"])


def test_every_problem_is_told_as_one(document: dict[str, Any]) -> None:
    for item in document["paths"].values():
        for operation in item.values():
            problems = {status: told for status, told in operation["responses"].items() if status != "200"}
            assert "500" in problems
            for told in problems.values():
                schema = {"$ref": "#/components/schemas/ProblemDetails"}
                assert told["content"] == {"application/problem+json": {"schema": schema}}


def test_a_body_goes_with_what_can_be_wrong_with_bodies(document: dict[str, Any]) -> None:
    for path, item in document["paths"].items():
        for operation in item.values():
            assert ("requestBody" in operation) is ({"400", "408", "413", "415"} <= operation["responses"].keys()), path


def test_every_kind_of_critic_and_check_is_in_the_document(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    told = {s["properties"]["kind"]["const"] for s in schemas.values() if "kind" in s.get("properties", {})}
    assert {"exact", "range", "numeric", "natural_language"} & told >= {"exact", "range", "numeric"}
    assert {"schema", "order", "arguments", "judge"} <= told
    assert {"scored", "skipped", "errored"} <= told
