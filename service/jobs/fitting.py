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


async def fit(pending: PendingFit, *, command: Sequence[str] = (sys.executable, *PROGRAM)) -> FitOutcome:
    """Fit a judged calibration without blocking the event loop. Cancelling kills the process."""
    material = pending.material
    predictions = None if material.predictions is None else material.predictions.decode()
    job = {"name": pending.name, "labels": material.labels.decode(), "options": material.options}
    document = json.dumps({**job, "predictions": predictions, "results": pending.results}).encode()
    for _ in range(MAX_TRIES):
        process = Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE)  # noqa: S603, ASYNC220 (ours; starting is quick)
        try:
            output, errors = await asyncio.to_thread(process.communicate, document)
        except asyncio.CancelledError:
            process.kill()
            raise
        if process.returncode == 0:
            return FIT_OUTCOME.validate_json(output)
        last = errors.decode(errors="replace").strip()[-2_000:]
        LOG.error("a fit has failed", extra={"fields": {"code": process.returncode, "why": last}})
    return FitOutcome(problem="an internal error; it is in the log of the worker")
