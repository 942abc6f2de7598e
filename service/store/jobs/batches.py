"""Batches: jobs whose results are for their submitter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import sqlalchemy as sa
from pydantic import TypeAdapter

from service.store.jobs.job import SKIPPED_ITEMS, Job, JobList, Rejected, read_job
from service.store.jobs.jobs import Jobs


@dataclass(frozen=True, slots=True)
class Batch(Job):
    """A batch. Times are RFC 3339 in UTC, null where there is none."""

    rejected: tuple[Rejected, ...]
    """The first thousand lines that `skip_invalid` left out."""


BatchList: TypeAlias = JobList[Batch]

BATCH: TypeAdapter[Batch] = TypeAdapter(Batch)
BATCH_LIST: TypeAdapter[BatchList] = TypeAdapter(BatchList)


class Batches(Jobs[Batch]):
    """The batches in a database."""

    kind, adapter = "scores", BATCH

    def build(self, row: sa.RowMapping) -> Batch:
        """Build the batch from a row of `select`."""
        return read_job(Batch, row, rejected=SKIPPED_ITEMS.validate_json(row["rejected"]).lines)
