"""What is submitted: a job's options, its items in chunks, and what a calibration is fitted to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import JsonValue

from service.store.jobs.job import SkippedItems

DEFLATE_LEVEL = 3
"""Deflate level: 6 takes four times as long and saves a thirtieth."""


class Chunk(NamedTuple):
    """A run of consecutive items of a batch."""

    first: int
    """The position of the first item in the batch, from 0."""
    size: int
    payload: bytes
    """The items, one JSON object per line, deflated."""
    waits: bool = True
    """Whether any item asks judges or runs in a sandbox."""


@dataclass(frozen=True, slots=True)
class Material:
    """What a calibration is fitted to: stored on submission, and read when all items are judged."""

    items: int
    """How many labelled items there are."""
    labels: bytes
    """The labelled items, one JSON object per line, in the order in which they are judged."""
    predictions: bytes | None
    """Recorded predictions, one JSON object per line; None where judges are asked."""
    options: Mapping[str, JsonValue]
    """How the items are judged and fitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSubmission:
    """A job to be made, without its items."""

    tenant: str
    fingerprint: str
    """Identifies its content: sha256 of the body and the options."""
    key: str | None = None
    """The Idempotency-Key: of all submissions with it, only the first makes a job."""
    name: str = ""
    options: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """The defaults of its items."""
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    budget_usd: float | None = None
    max_questions: int | None = None
    hours: float
    """Hours from now to the deadline."""
    webhook: str | None = None
    skipped_items: SkippedItems = field(default_factory=SkippedItems)
    material: Material | None = None
    """Only for a calibration."""
