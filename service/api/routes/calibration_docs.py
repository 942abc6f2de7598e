"""What the operations on calibrations take and give, for those who read the URL and for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from service.api.openapi import JSON, Responses, gives
from service.api.queries import QueryParameter, accept_choice, accept_text, accept_whole, describe_parameters
from service.api.routes.batch_docs import AT_ONCE, KEYED
from service.api.routes.batch_docs import OPTIONS as OF_BATCHES
from service.core.judging.fits import Method
from service.store.batch import STATUSES

SHARED = ("name", "rubric", "judges", "judge_model", "tags", "budget_usd", "max_questions", "deadline_hours", "webhook")

OPTIONS: Mapping[str, QueryParameter] = {
    **{name: OF_BATCHES[name] for name in SHARED},
    "repeats": accept_whole("How many answers each item is to have; absent: 1", 1, 10),
    "method": accept_choice("The map from a judge's value to a probability; absent: auto", ("auto", *get_args(Method))),
    "seed": accept_text("What the split into fitted and held-out items is made with", maxLength=256),
}
"""The options of a calibration, as they stand in the query. A JSON document has them as fields; those go first."""

LISTED: Mapping[str, QueryParameter] = {
    "limit": accept_whole("Calibrations in the answer at most; absent: 20", 1, AT_ONCE),
    "after": accept_text(
        "The id of a calibration; those older than it are given", pattern="^calibration_[0-9a-f]{32}$"
    ),
    "status": accept_choice("The state of the calibrations that are given", STATUSES),
}

SHOWN: Mapping[str, QueryParameter] = {
    "format": accept_choice("How the report is written; absent: json", ("json", "markdown", "html")),
}

NAMED = {
    "name": "calibration_id",
    "in": "path",
    "required": True,
    "description": "The id of a calibration",
    "schema": {"type": "string"},
    "example": "calibration_019aa5b3c4d000112233445566778899",
}

EXAMPLE = {
    "items": [
        {
            "id": "refund-1",
            "criterion": "grounded",
            "group": "refund-1",
            "payload": {"amount_cents": 5400},
            "answer": "Refunded $54.00.",
            "labels": [{"annotator": "ana", "label": True}],
        }
    ],
    "predictions": [{"id": "refund-1", "criterion": "grounded", "raw": 1.0}],
}

_LINKED = (
    ("show_calibration", "Look at it"),
    ("read_calibration_report", "Read its report"),
    ("read_fits", "Read its fits"),
    ("cancel_calibration", "Cancel it"),
    ("resume_calibration", "Resume it"),
    ("delete_calibration", "Delete it"),
)
_LINKS = {
    operation: {
        "operationId": operation,
        "description": description,
        "parameters": {"path.calibration_id": "$response.body#/id"},
    }
    for operation, description in _LINKED
}

_LINES = {
    "application/x-ndjson": "lines of `LabelledItem`, and of `Prediction` (those with `raw`)",
    "application/jsonl": "the same",
}

REPORTED: dict[str, Any] = {
    "type": "object",
    "required": ["version", "source", "seed", "share", "draws", "labels", "judges", "juries", "remarks", "libraries"],
    "description": "What `callgrade calibrate run` writes as report.json",
}


def describe_submission(*statuses: int) -> tuple[dict[str, Any], Responses]:
    """What POST /v1/calibrations takes, and what it gives."""
    content: dict[str, Any] = {
        JSON: {"schema": {"$ref": "#/components/schemas/CalibrationRequest"}, "example": EXAMPLE},
    }
    for media, told in _LINES.items():
        content[media] = {"schema": {"type": "string", "description": f"{told}, one JSON object a line; gzip is taken"}}
    body = {
        "requestBody": {"required": True, "content": content},
        "parameters": [KEYED, *describe_parameters(OPTIONS)],
    }
    found = gives("Calibration", *statuses, status=202)
    location = {"description": "The path of the calibration", "schema": {"type": "string"}}
    found[202] |= {"description": "It was taken", "headers": {"Location": location}, "links": _LINKS}
    return body, found


def describe_report(*statuses: int) -> Responses:
    """What the report is given as."""
    found = gives(REPORTED, *statuses)
    found[200]["content"] |= {media: {"schema": {"type": "string"}} for media in ("text/markdown", "text/html")}
    return found


def describe_one(parameters: Mapping[str, QueryParameter] | None = None) -> dict[str, Any]:
    """The parameters of an operation on one calibration."""
    return {"parameters": [NAMED, *describe_parameters(parameters or {})]}
