"""The OpenAPI document is true: what it forbids is refused, what we take it allows, and answers look as it says, one operation
at a time and one after the other."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jsonschema_rs
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis.stateful import run_state_machine_as_test

from service.api.app import create_app
from service.api.routes.batches import EXAMPLE
from service.api.routes.labels import LABELLED_EXAMPLE as LABELLED
from service.settings import Settings
from service.store.access.keys import Keys
from tests.api.asgi_caller import Ask, jsonl
from tests.bulk import examples
from tests.faults.sandbox_server import Sandbox
from tests.stores import open_new_store
from tests.tables import named

if TYPE_CHECKING:  # a second, which every process of the tests would take that collects them
    import schemathesis

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
JSON = "application/json"
LINE, LABELLED_LINES = jsonl(EXAMPLE).decode(), jsonl(*LABELLED).decode()

CALLED = ("testserver",)
"""The name by which the client of these tests calls an application."""

CONFIG: dict[str, Any] = {
    # A NUL is refused by the parser of every body, which JSON Schema has no way to say.
    "generation": {"allow-x00": False},
    # No values out of our source: modules that are loaded meanwhile would change what is made up of the same example.
    "analysis": {"constants": {"enabled": False}},
    "checks": {
        # 413: a list longer than maxItems.
        "negative_data_rejection": {"expected-statuses": [400, 401, 404, 405, 409, 413, 415, 422]},
        # What fits its schema can still contradict itself, or name what nobody knows. 409: a batch is not in the state for it.
        # 410: what was made under an idempotency key was deleted.
        "positive_data_acceptance": {"expected-statuses": ["2xx", 400, 404, 409, 410, 422]},
        # An address that tries so many wrong keys is answered 429. The keys have tests of their own.
        "ignored_auth": {"enabled": False},
    },
}

EXAMPLES = {"POST /v1/score": 10, "GET /v1/rubrics/{rubric_id}": 20}
BATCH_EXAMPLES, OTHER_EXAMPLES = 5, 2
"""Examples of an operation on batches, and of any other."""

REFUSING = {
    *[
        f"GET /v1/batches{path}"
        for path in ("", "/{batch_id}/results", "/{batch_id}/items", "/{batch_id}/items/{index}")
    ],
    *["GET /v1/calibrations", "GET /v1/calibrations/{calibration_id}/report", "GET /v1/labels/disagreements"],
    *[f"POST /v1/{kind}/resume" for kind in ("batches/{batch_id}", "calibrations/{calibration_id}")],
    *["GET /v1/scores", "GET /v1/labels", "GET /v1/audit", "POST /v1/labels", "POST /v1/fits", "POST /v1/score"],
}
"""The operations that are also tried with what does not fit the document."""


def as_lines(_: Any, value: Any) -> bytes:
    """Lines are written by the test, for JSON Schema has no way to say what they are."""
    return str(value).encode("utf-8", "replace")


ENDING = """
CREATE TRIGGER ending AFTER INSERT ON callgrade_chunks WHEN NEW.kind = 'finish' BEGIN
  UPDATE callgrade_batches SET status = coalesce(ending, 'completed'), ended_at = created_at WHERE id = NEW.batch;
  DELETE FROM callgrade_chunks WHERE batch = NEW.batch AND kind = 'finish';
END
"""
"""A worker that ends batches at once."""


class Served(NamedTuple):
    app: FastAPI
    document: Any
    headers: dict[str, str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The application over a store, its document, and what lets somebody in."""
    import schemathesis

    database = open_new_store(tmp_path_factory.mktemp("store"))
    _, key = Keys(database).create(name="tester", tenant="tester", scopes=["admin"])
    with database.begin() as connection:
        connection.exec_driver_sql(ENDING)
    app = create_app(Settings(allowed_hosts=CALLED), database=database)
    headers = {"Authorization": f"Bearer {key}"}
    schemathesis.serializer("application/x-ndjson", "application/jsonl")(as_lines)
    yield Served(app, read_document(app, headers), headers)
    database.close()


def read_document(app: FastAPI, headers: dict[str, str]) -> Any:
    """The document of an application, for Schemathesis."""
    from schemathesis import openapi
    from schemathesis.config import SchemathesisConfig

    return openapi.from_asgi("/openapi.json", app, config=SchemathesisConfig.from_dict(CONFIG), headers=headers)


def list_checks() -> list[Any]:
    """All that Schemathesis looks at, but for keys: the setting above is not asked where checks are named."""
    from schemathesis.checks import CHECKS, load_all_checks

    load_all_checks()
    return [check for check in CHECKS.get_all() if check.__name__ != "ignored_auth"]


def few(number: int) -> settings:
    return settings(
        max_examples=examples(number),
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.whole
@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_operations_keep_to_the_document(served: Served, mode: str) -> None:
    from schemathesis import GenerationMode

    operations = [found.ok() for found in served.document.get_all_operations()]
    assert {found.label for found in operations} >= REFUSING | EXAMPLES.keys()
    checks = list_checks()

    def holds(case: schemathesis.Case) -> None:
        assume(mode == "positive" or case.media_type in (None, JSON))
        if case.media_type not in (None, JSON):
            case.body = LINE
        case.call_and_validate(checks=checks, headers=served.headers)

    for operation in operations:
        if mode == "positive" or operation.label in REFUSING:
            number = BATCH_EXAMPLES if "/batches" in operation.label else OTHER_EXAMPLES
            strategy = operation.as_strategy(generation_mode=GenerationMode(mode))
            few(EXAMPLES.get(operation.label, number))(given(case=strategy)(holds))()


@pytest.mark.parametrize(("path", "lines"), [("/v1/batches", LINE), ("/v1/calibrations", LABELLED_LINES)])
def test_what_one_operation_gives_another_one_takes(served: Served, path: str, lines: str) -> None:
    """Submitting what can be taken, then whatever the links lead to. (Events would not end here.)

    What must be refused is for other tests: here each case has the key, also one that was made to lack it.
    """
    from schemathesis import GenerationMode
    from schemathesis.specs.openapi.checks import negative_data_rejection

    statuses: set[tuple[str, int]] = set()
    machine = served.document.include(path_regex=f"^{path}").exclude(path_regex="/events$").as_state_machine()

    class Linked(machine):  # type: ignore[misc,valid-type]
        def get_call_kwargs(self, case: schemathesis.Case) -> dict[str, Any]:  # noqa: ARG002
            return {"headers": served.headers}

        def before_call(self, case: schemathesis.Case) -> None:
            if case.operation.label == f"POST {path}" and case.meta.generation.mode is GenerationMode.POSITIVE:
                case.media_type, case.body, case.query = "application/x-ndjson", lines, {}

        def validate_response(self, response: Any, case: schemathesis.Case, *_: Any, **how: Any) -> None:
            case.validate_response(response, excluded_checks=[negative_data_rejection], transport_kwargs=how)

        def after_call(self, response: Any, case: schemathesis.Case) -> None:
            statuses.add((case.operation.label.removeprefix("GET "), response.status_code))

    run_state_machine_as_test(
        Linked,
        settings=settings(
            max_examples=10,  # the store remembers what earlier examples did, which hypothesis takes for flaky in the long run
            stateful_step_count=8,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert (f"POST {path}", 202) in statuses
    followed = {label for label, status in statuses if f"{path}/{{" in label and status < 300}
    assert len(followed) > 1, statuses


# Requests that name a sandbox.


@pytest.fixture(scope="module")
def sandboxed() -> Iterator[tuple[FastAPI, str, list[Any]]]:
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
        yield create_app(ours), f"http://{host}/", given
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
    operation, checks = read_document(app, {})["/v1/score"]["POST"], list_checks()
    before, statuses, count = len(given_), list[int](), itertools.count()

    @few(10)
    @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    def holds(case: schemathesis.Case) -> None:
        case.body = _naming(case.body, url, next(count))
        statuses.append(case.call_and_validate(checks=checks).status_code)

    holds()
    assert 200 in statuses
    assert len(given_) > before


# What is taken and given in earnest fits the document: the other half of being exact.


def _requests() -> Iterator[tuple[str, dict[str, Any]]]:
    for case in json.loads((DATA / "api" / "requests.json").read_text("utf-8")):
        yield case["name"], case["request"]
    for case in json.loads((ROOT / "service" / "demo" / "cases.json").read_text("utf-8")):
        yield case["title"], case["request"]
    for record in json.loads((DATA / "traces" / "same_conversation.json").read_text("utf-8"))["forms"]:
        yield f"a trace in the form {record['format']}", {"trace": record}


@pytest.mark.parametrize("request_", named([*_requests()]))
def test_requests_and_reports_fit_their_schemas(ask: Ask, request_: dict[str, Any]) -> None:
    document = ask("GET", "/openapi.json").json
    operation = document["paths"]["/v1/score"]["post"]
    answer = ask("POST", "/v1/score", request_)
    assert answer.status == 200
    for part, value in ((operation["requestBody"], request_), (operation["responses"]["200"], answer.json)):
        schema = part["content"]["application/json"]["schema"] | {"components": document["components"]}
        assert not [str(error) for error in jsonschema_rs.Draft202012Validator(schema).iter_errors(value)]
