"""Batches: jobs whose results are for their submitter."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from pydantic import TypeAdapter

from service.store.jobs.job import SKIPPED_ITEMS, Job, JobList, Rejected, read_job
from service.store.jobs.jobs import Jobs


@dataclass(frozen=True, slots=True)
class Batch(Job):
    """A batch. Times are RFC 3339 in UTC, null where there is none."""

    rejected: tuple[Rejected, ...]
    """The first thousand lines that `skip_invalid` left out."""


@dataclass(frozen=True, slots=True)
class BatchList(JobList[Batch]):
    """Batches, newest first. `next`: the `after` of the next page; null at the end."""

    data: tuple[Batch, ...]


BATCH: TypeAdapter[Batch] = TypeAdapter(Batch)
BATCH_LIST: TypeAdapter[JobList[Batch]] = TypeAdapter(BatchList)


class Batches(Jobs[Batch]):
    """The batches in a database."""

    kind, adapter, list_type = "scores", BATCH, BatchList

    def build(self, row: sa.RowMapping) -> Batch:
        """Build the batch from a row of `select`."""
        return read_job(Batch, row, rejected=SKIPPED_ITEMS.validate_json(row["rejected"]).lines)
