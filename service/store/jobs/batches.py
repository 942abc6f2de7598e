"""Batches: jobs whose results are for whoever sent them."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from pydantic import TypeAdapter

from service.store.jobs.job import LEFT_OUT, Job, JobList, Rejected, read_head
from service.store.jobs.jobs import Jobs


@dataclass(frozen=True, slots=True)
class Batch(Job):
    """A batch. Times are RFC 3339 in UTC, null where there is none."""

    rejected: tuple[Rejected, ...]
    """The first thousand lines that were left out by `skip_invalid`."""


@dataclass(frozen=True, slots=True)
class BatchList(JobList[Batch]):
    """Batches, newest first. `next`: what to ask for as `after` to go on; null at the end."""

    data: tuple[Batch, ...]


BATCH: TypeAdapter[Batch] = TypeAdapter(Batch)
BATCH_LIST: TypeAdapter[JobList[Batch]] = TypeAdapter(BatchList)


class Batches(Jobs[Batch]):
    """The batches in a database."""

    kind, form, listed = "scores", BATCH, BatchList

    def build(self, row: sa.RowMapping) -> Batch:
        """The batch in a row of `select`."""
        return Batch(**read_head(row), rejected=LEFT_OUT.validate_json(row["rejected"]).lines)
