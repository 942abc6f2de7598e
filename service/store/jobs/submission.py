"""What becomes a job: its options, its items in chunks, and of a calibration what it is fitted to, as rows."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import JsonValue

from service.store.jobs.job import LEFT_OUT, SkippedItems

LEVEL = 3
"""Of deflating: 6 takes four times as long for a thirtieth less."""


class Chunk(NamedTuple):
    """Some items of a batch that are next to each other."""

    first: int
    """The position of the first in the batch, from 0."""
    size: int
    payload: bytes
    """The items, one JSON object a line, deflated."""


@dataclass(frozen=True, slots=True)
class Material:
    """What is calibrated with: kept when it is submitted, and read again when all is judged."""

    items: int
    """Labelled items."""
    labels: bytes
    """The labelled items, one JSON object a line, in the order in which they are judged."""
    predictions: bytes | None
    """Recorded predictions, likewise; None where judges are asked."""
    options: Mapping[str, JsonValue]
    """How it is judged and fitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSubmission:
    """A job that is to be made, without its items."""

    tenant: str
    fingerprint: str
    """What tells its content from another's: sha256 of the body and of the options."""
    key: str | None = None
    """The Idempotency-Key: of all submissions with it only the first makes a job."""
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
    material: Material | None = None
    """Of a calibration."""

    @property
    def serial(self) -> bool:
        """Whether its chunks are worked on one after the other: so what is limited is one sum, and holds."""
        return (self.budget_usd, self.max_questions) != (None, None)


def build_job_values(submission: JobSubmission, job_id: str, created_at: float) -> dict[str, object]:
    """The row of a job before its chunks are counted."""
    return {
        "id": job_id,
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


def build_chunk_values(job_id: str, number: int, chunk: Chunk) -> dict[str, object]:
    """The row of a chunk of which nothing is done."""
    zeros = ("attempt", "generation", "completed", "failed", "tokens_in", "tokens_out", "cache_hits")
    values: dict[str, object] = dict.fromkeys(zeros, 0)
    values |= {"cost_usd": 0.0, "uncertain_usd": 0.0, "done": False, "under_way": False}
    return values | {"batch": job_id, "number": number, **chunk._asdict()}


def build_material_values(material: Material, job_id: str) -> dict[str, object]:
    """The row of a calibration of which nothing is fitted."""
    return {
        "batch": job_id,
        "items": material.items,
        "options": json.dumps(material.options, separators=(",", ":")),
        "labels": zlib.compress(material.labels, LEVEL),
        "predictions": None if material.predictions is None else zlib.compress(material.predictions, LEVEL),
    }
