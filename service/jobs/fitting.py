"""Having fitted what judges said of labelled items, in a process of its own: it takes up to a minute of a whole core."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from subprocess import PIPE, Popen

from pydantic import TypeAdapter

from service.store.jobs.calibrations import FitOutcome, PendingFit

LOG = logging.getLogger("callgrade.batches")

TRIES = 3
"""How often a fit is begun whose process ends without a word."""

FITTED: TypeAdapter[FitOutcome] = TypeAdapter(FitOutcome)

PROGRAM = ("-P", "-m", "service.jobs.fitted")
"""What Python is told to run."""


async def fit(due: PendingFit, *, command: Sequence[str] = ()) -> FitOutcome:
    """What becomes of a calibration that is judged. The event loop is not held up. `command`: run in the place of ours."""
    job = await asyncio.to_thread(_dump_job, due)
    for _ in range(TRIES):
        made = await _run(job, command or (sys.executable, *PROGRAM))
        if made is not None:
            return made
    return FitOutcome(problem="an internal error; it is in the log of the worker")


async def _run(job: bytes, command: Sequence[str]) -> FitOutcome | None:
    """What the process gives; None where it gives nothing. It does not outlive its waiting."""
    process = Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE)  # noqa: S603, ASYNC220 (ours; starting is quick)
    try:
        out, told = await asyncio.to_thread(process.communicate, job)
    except asyncio.CancelledError:
        process.kill()
        raise
    if process.returncode == 0:
        return FITTED.validate_json(out)
    last = told.decode(errors="replace").strip()[-2_000:]
    LOG.error("a fit has failed", extra={"fields": {"code": process.returncode, "why": last}})
    return None


def _dump_job(due: PendingFit) -> bytes:
    """All that the process needs, as one JSON document."""
    material = due.material
    predictions = None if material.predictions is None else material.predictions.decode()
    job = {"name": due.name, "labels": material.labels.decode(), "options": material.options}
    return json.dumps({**job, "predictions": predictions, "results": due.results}).encode()
