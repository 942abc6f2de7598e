"""What the operations on batches take and give, for those who read the URL and for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from service.api.openapi import JSON, Responses, gives
from service.api.queries import (
    QueryParameter,
    accept_choice,
    accept_flag,
    accept_number,
    accept_pairs,
    accept_text,
    accept_whole,
    describe_parameters,
)
from service.core.report import JudgeMode
from service.jobs.submissions import MAX_QUESTIONS_OF_ALL
from service.store.batch import STATUSES

MOST = 10_000_000
"""The largest number of items that a setting may allow for a batch."""

AT_ONCE = 100
"""Batches in one answer at most."""

OPTIONS: Mapping[str, QueryParameter] = {
    "name": accept_text("For people to know the batch by", maxLength=256),
    "rubric": accept_text("The id of a rubric, for the items that name none. Absent: four_step"),
    "judges": accept_choice("Whether judges are asked, for the items that do not say", get_args(JudgeMode)),
    "judge_model": accept_text("The model that judges, for the items that name none", minLength=1, maxLength=256),
    "on_judge_error": accept_choice("What a judge that gives no verdict does", ("partial", "error")),
    "tags": accept_pairs("Labels of the batch and of all its items: key:value, with commas between"),
    "budget_usd": accept_number("The most that the judges of all items may cost; the batch pauses there", minimum=0),
    "max_questions": accept_whole(
        "The most requests to the judges of all items; the batch pauses there", 0, MAX_QUESTIONS_OF_ALL
    ),
    "deadline_hours": accept_number("Time in which the batch must be done", exclusiveMinimum=0, maximum=8_760),
    "webhook": accept_text("Where the end of the batch is told", minLength=1, maxLength=2_048),
    "skip_invalid": accept_flag(
        "Whether items that cannot be scored are left out. If not, one of them refuses the batch"
    ),
    "dry_run": accept_flag("Whether only to tell what judges would be asked, and for how much"),
}
"""The options of a batch, as they stand in the query. A JSON document has them as fields; those go first."""

LISTED: Mapping[str, QueryParameter] = {
    "limit": accept_whole("Batches in the answer at most; absent: 20", 1, AT_ONCE),
    "after": accept_text("The id of a batch; those older than it are given", pattern="^batch_[0-9a-f]{32}$"),
    "status": accept_choice("The state of the batches that are given", STATUSES),
}

BOUND: Mapping[str, QueryParameter] = {
    "offset": accept_whole("The position of the item to begin with, from 0", 0, MOST),
    "limit": accept_whole(
        "How many items are looked at, from there on; each of them has a line here or there", 1, MOST
    ),
}

SUMMED: Mapping[str, QueryParameter] = {
    "by": accept_text(
        "Tags to slice by, with commas between. Absent: step, tool, difficulty and model, where items have them"
    ),
    "assertions": accept_text('What must hold, as in POST /v1/summaries: a JSON list such as ["pass_rate >= 0.95"]'),
    "labels": accept_text("What humans said of some of the reports, as in POST /v1/summaries: a JSON list"),
}

KEYED = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Of all submissions with the same key only the first makes a batch; the others are given that batch",
    "schema": {"type": "string", "pattern": "^[ -~]{1,255}$"},
}

NAMED = {
    "name": "batch_id",
    "in": "path",
    "required": True,
    "description": "The id of a batch",
    "schema": {"type": "string"},
    "example": "batch_019aa5b3c4d000112233445566778899",
}

EXAMPLE = {
    "items": [
        {
            "custom_id": "greeting",
            "trace": {"format": "openai", "messages": [{"role": "user", "content": "Hi"}]},
            "expected": {"calls": "none"},
        }
    ],
    "tags": {"suite": "nightly"},
}

_LINKED = (
    ("show_batch", "Look at it"),
    ("read_results", "Read its results"),
    ("read_errors", "Read its errors"),
    ("cancel_batch", "Cancel it"),
    ("resume_batch", "Resume it"),
    ("delete_batch", "Delete it"),
)
_LINKS = {
    operation: {
        "operationId": operation,
        "description": description,
        "parameters": {"path.batch_id": "$response.body#/id"},
    }
    for operation, description in _LINKED
}

_LINES = {"application/x-ndjson": "lines of `BatchItem`", "application/jsonl": "the same"}


def describe_submission(*statuses: int) -> tuple[dict[str, Any], Responses]:
    """What POST /v1/batches takes, and what it gives."""
    content: dict[str, Any] = {
        JSON: {"schema": {"$ref": "#/components/schemas/BatchRequest"}, "example": EXAMPLE},
    }
    for media, told in _LINES.items():
        content[media] = {"schema": {"type": "string", "description": f"{told}, one JSON object a line; gzip is taken"}}
    body = {
        "requestBody": {"required": True, "content": content},
        "parameters": [KEYED, *describe_parameters(OPTIONS)],
    }
    found = gives("Batch", *statuses, status=202) | gives("Quote")
    location = {"description": "The path of the batch", "schema": {"type": "string"}}
    found[202] |= {"description": "The batch was taken", "headers": {"Location": location}, "links": _LINKS}
    found[200] |= {"description": "What the batch would take; nothing was kept"}
    return body, found


def describe_one(parameters: Mapping[str, QueryParameter] | None = None) -> dict[str, Any]:
    """The parameters of an operation on one batch."""
    return {"parameters": [NAMED, *describe_parameters(parameters or {})]}


def describe_lines(told: str, *statuses: int) -> Responses:
    """What an operation gives that answers with lines: JSON objects with `custom_id`, `index` and what is `told`."""
    lines = {"type": "string", "description": f"A JSON object a line: `custom_id`, `index` (from 0) and {told}"}
    found = gives(lines, *statuses, media="application/x-ndjson")
    found[200]["headers"] = {
        "X-Callgrade-Next-Offset": {
            "description": "The offset to go on with: that of the first item which was not looked at",
            "schema": {"type": "integer"},
        },
        "X-Callgrade-Complete": {
            "description": "Whether nothing comes after it, now or later",
            "schema": {"type": "string", "enum": ["true", "false"]},
        },
    }
    return found
