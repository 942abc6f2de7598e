"""The OpenAPI document is true: what it forbids is refused, what we take it allows, and answers look as it says."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings

from service.api.app import create_app
from service.settings import Settings
from service.store.database import Database
from tests.api.asgi_caller import Ask
from tests.bulk import examples
from tests.faults.sandbox_server import Sandbox
from tests.stores import open_new_store

if TYPE_CHECKING:  # a second, which every process of the tests would take that collects them
    import schemathesis

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"

CALLED = ("testserver",)
"""The name by which the client of these tests calls an application."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """Without a key, so that nobody is asked for one; who brings an Idempotency-Key is given an answer again."""
    database = open_new_store(tmp_path_factory.mktemp("store"))
    yield database
    database.close()


def serve(given: Settings, kept: Database) -> FastAPI:
    """The service over that store, with the document of one that asks for no key."""
    app = create_app(given, database=kept)
    app.openapi = create_app(given).openapi
    return app


CONFIG: dict[str, Any] = {
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


def read_document(app: FastAPI) -> Any:
    """The document of an application, for Schemathesis."""
    from schemathesis import openapi
    from schemathesis.config import SchemathesisConfig

    return openapi.from_asgi("/openapi.json", app, config=SchemathesisConfig.from_dict(CONFIG))


def list_checks() -> list[Any]:
    """All that Schemathesis looks at."""
    from schemathesis.checks import CHECKS, load_all_checks

    load_all_checks()
    return CHECKS.get_all()


@pytest.fixture(scope="module")
def operations(kept: Database) -> dict[str, Any]:
    """The operations of the service by their labels."""
    document = read_document(serve(Settings(allowed_hosts=CALLED), kept))
    return {found.ok().label: found.ok() for found in document.get_all_operations()}


EXAMPLES = {
    ("POST /v1/score", "positive"): 10,
    ("POST /v1/score", "negative"): 4,
    ("GET /v1/rubrics/{rubric_id}", "positive"): 20,
    ("GET /v1/rubrics", "positive"): 1,
    ("GET /livez", "positive"): 1,
    ("GET /readyz", "positive"): 1,
    ("GET /metrics", "positive"): 1,
}
"""How many requests `make test` makes up. (Any text names a rubric: nothing is negative.)"""


def test_every_operation_is_tried(operations: dict[str, Any]) -> None:
    stored = (
        "/v1/batches",
        "/v1/calibrations",
        "/v1/audit",
        "/v1/overview",
        "/v1/usage",
        "/v1/scores",
        "/v1/labels",
        "/v1/fits",
        "/v1/judges",
    )
    elsewhere = {label for label in operations if any(path in label for path in stored)}  # test_batch_contract.py
    assert {label for label, _ in EXAMPLES} == set(operations) - elsewhere


@pytest.mark.whole
@pytest.mark.parametrize(("label", "mode"), [pytest.param(*key, id=" ".join(key)) for key in EXAMPLES])
def test_operations_keep_to_the_document(operations: dict[str, Any], label: str, mode: str) -> None:
    from schemathesis import GenerationMode

    checks = list_checks()

    @settings(
        max_examples=examples(EXAMPLES[label, mode]),
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operations[label].as_strategy(generation_mode=GenerationMode(mode)))
    def holds(case: schemathesis.Case) -> None:
        case.call_and_validate(checks=checks)

    holds()


# Requests that name a sandbox.


@pytest.fixture(scope="module")
def sandboxed(kept: Database) -> Iterator[tuple[FastAPI, str, list[Any]]]:
    """An application that may ask the example server, the server's address, and the replies that it gave."""
    given: list[Any] = []

    class Recording(Sandbox):
        def log_request(self, *_: object) -> None:
            given.append(self.path)

    with ThreadingHTTPServer(("127.0.0.1", 0), Recording) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        host = f"127.0.0.1:{server.server_address[1]}"
        ours = Settings(sandbox_hosts=(host,), sandbox_allow_private=True, allowed_hosts=CALLED)
        yield serve(ours, kept), f"http://{host}/", given
        server.shutdown()
        thread.join()


def _naming(body: Any, url: str, rng: int) -> Any:
    """A made-up body whose requests name the sandbox; every other one wants invalid calls made too."""
    sandbox = {"url": url} | ({"run_invalid": True} if rng % 2 else {})
    return {**{k: v for k, v in body.items() if k not in ("judges", "rubric")}, "sandbox": sandbox}


@pytest.mark.whole
def test_requests_with_a_sandbox_keep_to_the_document(sandboxed: tuple[FastAPI, str, list[Any]]) -> None:
    from schemathesis import GenerationMode

    app, url, given_ = sandboxed
    operation, checks = read_document(app)["/v1/score"]["POST"], list_checks()
    before, statuses, count = len(given_), list[int](), itertools.count()

    @settings(
        max_examples=examples(10),
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    def holds(case: schemathesis.Case) -> None:
        case.body = _naming(case.body, url, next(count))
        statuses.append(case.call_and_validate(checks=checks).status_code)

    holds()
    assert 200 in statuses
    assert len(given_) > before


def _refund(cents: Any, url: str) -> dict[str, Any]:
    call = {"name": "refund_order", "arguments": {"order_id": "8821", "cents": cents}}
    state = {"initial": {"orders": {"8821": {"cents": 5400}}}}
    return {
        "trace": {"format": "callgrade", "events": [{"user": "Refund it."}, {"call": call}], "state": state},
        "expected": {"state": {"final": {"orders": {"8821": {"cents": 0}}}}},
        "sandbox": {"url": url},
    }


CLOSED_PORT = "http://127.0.0.1:9/"
KNOWN = [
    ("made", 5400, "", {"scored"}, False),
    ("failed", 9900, "", {"scored"}, True),
    ("nobody there", 5400, CLOSED_PORT, {"errored"}, False),
]


@pytest.mark.parametrize("known", [pytest.param(known[1:], id=known[0]) for known in KNOWN])
def test_reports_with_a_sandbox_fit_their_schemas(
    sandboxed: tuple[FastAPI, str, list[Any]],
    ask: Ask,
    document: dict[str, Any],
    known: tuple[int, str, set[str], bool],
) -> None:
    cents, elsewhere, kinds, executed = known
    host = (elsewhere or sandboxed[1]).removeprefix("http://").removesuffix("/")
    app = create_app(Settings(sandbox_hosts=(host,), sandbox_allow_private=True, allowed_hosts=CALLED))
    request = _refund(cents, elsewhere or sandboxed[1])
    answer = ask("POST", "/v1/score", json.dumps(request).encode(), app=app)
    assert answer.status == 200
    taken, given = find_schemas(document)
    assert not [str(error) for error in fits(document, taken).iter_errors(request)]
    assert not [str(error) for error in fits(document, given).iter_errors(answer.json)]
    state = next(criterion for criterion in answer.json["criteria"] if criterion["id"] == "state")
    assert {found["outcome"]["kind"] for found in state["outcomes"]} == kinds
    assert (answer.json["executed"] is not None) == executed


# What is taken and given in earnest fits the document: the other half of being exact.


@pytest.fixture(scope="module")
def document(ask: Ask) -> dict[str, Any]:
    return ask("GET", "/openapi.json").json


def find_schemas(document: dict[str, Any]) -> tuple[Any, Any]:
    """Find the schemas of the body of POST /v1/score and of its answer."""
    operation = document["paths"]["/v1/score"]["post"]
    parts = operation["requestBody"], operation["responses"]["200"]
    taken, given = (part["content"]["application/json"]["schema"] for part in parts)
    return taken, given


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
    taken, given = find_schemas(document)
    assert not [str(error) for error in fits(document, taken).iter_errors(request_)]
    answer = ask("POST", "/v1/score", json.dumps(request_).encode())
    assert answer.status == 200
    assert not [str(error) for error in fits(document, given).iter_errors(answer.json)]
