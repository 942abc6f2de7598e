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

EXAMPLES = {
    ("POST /v1/batches", "positive"): 6,
    ("GET /v1/batches", "positive"): 5,
    ("GET /v1/batches", "negative"): 5,
    ("GET /v1/batches/{batch_id}", "positive"): 5,
    ("DELETE /v1/batches/{batch_id}", "positive"): 5,
    ("POST /v1/batches/{batch_id}/cancel", "positive"): 5,
    ("POST /v1/batches/{batch_id}/pause", "positive"): 5,
    ("POST /v1/batches/{batch_id}/retry", "positive"): 5,
    ("POST /v1/batches/{batch_id}/resume", "positive"): 5,
    ("POST /v1/batches/{batch_id}/resume", "negative"): 5,
    ("GET /v1/batches/{batch_id}/results", "positive"): 5,
    ("GET /v1/batches/{batch_id}/results", "negative"): 5,
    ("GET /v1/batches/{batch_id}/errors", "positive"): 5,
    ("GET /v1/batches/{batch_id}/summary", "positive"): 5,
    ("GET /v1/batches/{batch_id}/events", "positive"): 5,
    ("GET /v1/batches/{batch_id}/breakdown", "positive"): 3,
    ("GET /v1/batches/{batch_id}/items", "positive"): 5,
    ("GET /v1/batches/{batch_id}/items", "negative"): 5,
    ("GET /v1/batches/{batch_id}/items/{index}", "positive"): 5,
    ("GET /v1/batches/{batch_id}/items/{index}", "negative"): 5,
    ("GET /v1/overview", "positive"): 1,
    ("GET /v1/usage", "positive"): 1,
    ("POST /v1/calibrations", "positive"): 4,
    ("GET /v1/calibrations", "positive"): 2,
    ("GET /v1/calibrations", "negative"): 2,
    ("GET /v1/calibrations/{calibration_id}", "positive"): 2,
    ("DELETE /v1/calibrations/{calibration_id}", "positive"): 2,
    ("GET /v1/calibrations/{calibration_id}/report", "positive"): 2,
    ("GET /v1/calibrations/{calibration_id}/report", "negative"): 2,
    ("GET /v1/calibrations/{calibration_id}/fits", "positive"): 2,
    ("POST /v1/calibrations/{calibration_id}/cancel", "positive"): 2,
    ("POST /v1/calibrations/{calibration_id}/pause", "positive"): 2,
    ("POST /v1/calibrations/{calibration_id}/retry", "positive"): 2,
    ("POST /v1/calibrations/{calibration_id}/resume", "positive"): 2,
    ("POST /v1/calibrations/{calibration_id}/resume", "negative"): 2,
    ("GET /v1/scores", "positive"): 2,
    ("GET /v1/scores", "negative"): 2,
    ("GET /v1/scores/{score_id}", "positive"): 2,
    ("DELETE /v1/scores/{score_id}", "positive"): 2,
    ("POST /v1/labels", "positive"): 2,
    ("POST /v1/labels", "negative"): 2,
    ("GET /v1/labels", "positive"): 2,
    ("GET /v1/labels", "negative"): 2,
    ("DELETE /v1/labels/{label_id}", "positive"): 2,
    ("GET /v1/labels/next", "positive"): 2,
    ("GET /v1/labels/agreement", "positive"): 2,
    ("GET /v1/labels/disagreements", "positive"): 2,
    ("GET /v1/labels/disagreements", "negative"): 2,
    ("GET /v1/labels/export", "positive"): 2,
    ("POST /v1/labels/import", "positive"): 2,
    ("GET /v1/fits", "positive"): 2,
    ("GET /v1/judges", "positive"): 2,
    ("GET /v1/scores/breakdown", "positive"): 2,
    ("POST /v1/fits", "positive"): 2,
    ("POST /v1/fits", "negative"): 2,
    ("DELETE /v1/fits/{fit_id}", "positive"): 2,
    ("GET /v1/audit", "positive"): 2,
    ("GET /v1/audit", "negative"): 2,
}


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


def test_every_operation_is_tried(served: Served) -> None:
    assert {label for label, _ in EXAMPLES} == {found.ok().label for found in served.document.get_all_operations()}


@pytest.mark.whole
@pytest.mark.parametrize(("label", "mode"), [pytest.param(*key, id=" ".join(key)) for key in EXAMPLES])
def test_operations_keep_to_the_document(served: Served, label: str, mode: str) -> None:
    from schemathesis import GenerationMode

    method, path = label.split()
    operation = served.document[path][method]
    # The setting above is not asked here.
    checks = [check for check in list_checks() if check.__name__ != "ignored_auth"]

    @settings(
        max_examples=examples(EXAMPLES[label, mode]),
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=GenerationMode(mode)))
    def holds(case: schemathesis.Case) -> None:
        assume(mode == "positive" or case.media_type in (None, JSON))
        if case.media_type not in (None, JSON):
            case.body = LINE
        case.call_and_validate(checks=checks, headers=served.headers)

    holds()


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
