"""Run the fit of a calibration in a process of its own: it takes up to a minute of a whole core."""

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

MAX_TRIES = 3
"""How often to start a fit whose process ends without an answer."""

FIT_OUTCOME: TypeAdapter[FitOutcome] = TypeAdapter(FitOutcome)

PROGRAM = ("-P", "-m", "service.jobs.fit_process")
"""Python's arguments for the fit process."""


async def fit(pending: PendingFit, *, command: Sequence[str] = ()) -> FitOutcome:
    """Fit a judged calibration without blocking the event loop. `command` replaces the default program."""
    job = await asyncio.to_thread(_dump_job, pending)
    for _ in range(MAX_TRIES):
        outcome = await _run(job, command or (sys.executable, *PROGRAM))
        if outcome is not None:
            return outcome
    return FitOutcome(problem="an internal error; it is in the log of the worker")


async def _run(job: bytes, command: Sequence[str]) -> FitOutcome | None:
    """Return what the process answers; None where it gives no answer. Cancelling kills the process."""
    process = Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE)  # noqa: S603, ASYNC220 (ours; starting is quick)
    try:
        output, errors = await asyncio.to_thread(process.communicate, job)
    except asyncio.CancelledError:
        process.kill()
        raise
    if process.returncode == 0:
        return FIT_OUTCOME.validate_json(output)
    last = errors.decode(errors="replace").strip()[-2_000:]
    LOG.error("a fit has failed", extra={"fields": {"code": process.returncode, "why": last}})
    return None


def _dump_job(pending: PendingFit) -> bytes:
    """Render all that the process needs as one JSON document."""
    material = pending.material
    predictions = None if material.predictions is None else material.predictions.decode()
    job = {"name": pending.name, "labels": material.labels.decode(), "options": material.options}
    return json.dumps({**job, "predictions": predictions, "results": pending.results}).encode()
