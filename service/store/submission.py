"""What becomes a batch: its options, and its items in chunks, as rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import JsonValue

from service.store.batch import LEFT_OUT, SkippedItems


class Chunk(NamedTuple):
    """Some items of a batch that are next to each other."""

    first: int
    """The position of the first in the batch, from 0."""
    size: int
    payload: bytes
    """The items, one JSON object a line, deflated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSubmission:
    """A batch that is to be made, without its items."""

    tenant: str
    fingerprint: str
    """What tells its content from another's: sha256 of the body and of the options."""
    key: str | None = None
    """The Idempotency-Key: of all submissions with it only the first makes a batch."""
    name: str = ""
    options: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """What its items have that do not say otherwise."""
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    budget_usd: float | None = None
    max_questions: int | None = None
    hours: float
    """Time from now to the deadline."""
    webhook: str | None = None
    left_out: SkippedItems = field(default_factory=SkippedItems)

    @property
    def serial(self) -> bool:
        """Whether its chunks are worked on one after the other: so what is limited is one sum, and holds."""
        return (self.budget_usd, self.max_questions) != (None, None)


def build_batch_values(submission: BatchSubmission, batch_id: str, created_at: float) -> dict[str, object]:
    """The row of a batch before its chunks are counted."""
    return {
        "id": batch_id,
        "tenant": submission.tenant,
        "name": submission.name,
        "status": "in_progress",
        "total": 0,
        "open_chunks": 0,
        "rejected": LEFT_OUT.dump_json(submission.left_out).decode(),
        "options": json.dumps(submission.options, separators=(",", ":")),
        "tags": json.dumps(dict(submission.tags), separators=(",", ":")),
        "budget_usd": submission.budget_usd,
        "max_questions": submission.max_questions,
        "serial": submission.serial,
        "webhook": submission.webhook,
        "created_at": created_at,
        "deadline_at": created_at + submission.hours * 3_600,
    }


def build_chunk_values(batch_id: str, number: int, chunk: Chunk) -> dict[str, object]:
    """The row of a chunk of which nothing is done."""
    zeros = ("attempt", "generation", "completed", "failed", "tokens_in", "tokens_out", "cache_hits")
    values: dict[str, object] = dict.fromkeys(zeros, 0)
    values |= {"cost_usd": 0.0, "uncertain_usd": 0.0, "done": False, "under_way": False}
    return values | {"batch": batch_id, "number": number, **chunk._asdict()}
