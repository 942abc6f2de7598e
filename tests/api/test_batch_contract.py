"""What the OpenAPI document says of batches, calibrations and usage is true, one operation at a time and one after the other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis.stateful import run_state_machine_as_test

from service.api.app import create_app
from service.api.routes.batches import EXAMPLE
from service.api.routes.labels import LABELLED_EXAMPLE as LABELLED
from service.store.access.keys import Keys
from tests.api.test_contract import list_checks
from tests.bulk import examples
from tests.stores import open_new_store

if TYPE_CHECKING:  # as in test_contract.py
    import schemathesis

JSON = "application/json"
LINE = json.dumps(EXAMPLE) + "\n"
LABELLED_LINES = "".join(json.dumps(one) + "\n" for one in LABELLED)

CONFIG = {
    "generation": {"allow-x00": False},
    # No values out of our source: modules that are loaded meanwhile would change what is made up of the same example.
    "analysis": {"constants": {"enabled": False}},
    "checks": {
        "negative_data_rejection": {"expected-statuses": [400, 401, 404, 405, 409, 413, 415, 422]},
        # 400: an item can fit its schema and still contradict itself, or name what nobody knows. 409: a batch is not in the
        # state for it. 410: what was made under an idempotency key was deleted.
        "positive_data_acceptance": {"expected-statuses": ["2xx", 400, 404, 409, 410, 422]},
        # An address that tries so many wrong keys is answered 429. The keys have tests of their own.
        "ignored_auth": {"enabled": False},
    },
}

BATCH_EXAMPLES, OTHER_EXAMPLES = 5, 2
"""Examples of an operation on batches, and of any other."""

REFUSING = {
    *[
        f"GET /v1/batches{path}"
        for path in ("", "/{batch_id}/results", "/{batch_id}/items", "/{batch_id}/items/{index}")
    ],
    *["GET /v1/calibrations", "GET /v1/calibrations/{calibration_id}/report", "GET /v1/labels/disagreements"],
    *[f"POST /v1/{kind}/resume" for kind in ("batches/{batch_id}", "calibrations/{calibration_id}")],
    *["GET /v1/scores", "GET /v1/labels", "GET /v1/audit", "POST /v1/labels", "POST /v1/fits"],
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
    whole: Any
    headers: dict[str, str]

    @property
    def document(self) -> Any:
        return self.whole.include(
            path_regex="^/v1/(batches|calibrations|audit|overview|usage|scores|labels|fits|judges)"
        )


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The application over a store, its document, and what lets somebody in."""
    import schemathesis
    from schemathesis.config import SchemathesisConfig

    database = open_new_store(tmp_path_factory.mktemp("store"))
    _, key = Keys(database).create(name="tester", tenant="tester", scopes=["admin"])
    with database.begin() as connection:
        connection.exec_driver_sql(ENDING)
    app = create_app(database=database)
    headers = {"Authorization": f"Bearer {key}"}
    schemathesis.serializer("application/x-ndjson", "application/jsonl")(as_lines)
    config = SchemathesisConfig.from_dict(CONFIG)
    document = schemathesis.openapi.from_asgi("/openapi.json", app, config=config, headers=headers)
    yield Served(app, document, headers)
    database.close()


@pytest.mark.whole
@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_operations_keep_to_the_document(served: Served, mode: str) -> None:
    from schemathesis import GenerationMode

    operations = [found.ok() for found in served.document.get_all_operations()]
    assert {found.label for found in operations} >= REFUSING
    # The setting above is not asked here.
    checks = [check for check in list_checks() if check.__name__ != "ignored_auth"]

    def holds(case: schemathesis.Case) -> None:
        assume(mode == "positive" or case.media_type in (None, JSON))
        if case.media_type not in (None, JSON):
            case.body = LINE
        case.call_and_validate(checks=checks, headers=served.headers)

    for operation in operations:
        if mode == "positive" or operation.label in REFUSING:
            few = settings(
                max_examples=examples(BATCH_EXAMPLES if "/batches" in operation.label else OTHER_EXAMPLES),
                derandomize=True,
                database=None,
                deadline=None,
                phases=[Phase.explicit, Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            few(given(case=operation.as_strategy(generation_mode=GenerationMode(mode)))(holds))()


@pytest.mark.parametrize(("path", "lines"), [("/v1/batches", LINE), ("/v1/calibrations", LABELLED_LINES)])
def test_what_one_operation_gives_another_one_takes(served: Served, path: str, lines: str) -> None:
    """Submitting what can be taken, then whatever the links lead to. (Events would not end here.)

    What must be refused is for other tests: here each case has the key, also one that was made to lack it.
    """
    from schemathesis import GenerationMode
    from schemathesis.specs.openapi.checks import negative_data_rejection

    statuses: set[tuple[str, int]] = set()
    machine = served.whole.include(path_regex=f"^{path}").exclude(path_regex="/events$").as_state_machine()

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
