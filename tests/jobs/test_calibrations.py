"""A calibration whose worker is killed goes on, while it is judged and while it is fitted: no judged item is asked again."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from service.engine import Engine
from service.jobs.admission import JobAdmission, Upload
from service.jobs.calibrations import CalibrationDraft, CalibrationOptions
from service.jobs.chunking import Cutter
from service.jobs.spool import Spool
from service.jobs.submissions import JobBounds
from service.reading.strict_json import Limits
from service.registry import Registry
from service.store.jobs.calibrations import Calibrations
from service.wiring import build_demo_judging
from tests.faults.provider import Provider, serving
from tests.jobs.process import Service, service
from tests.labelled import item

IN_FLIGHT = 8
ITEMS, REPEATS = 120, 2


def submitted(run: Service, items: int = ITEMS, repeats: int = REPEATS) -> tuple[Calibrations, str]:
    kept = Calibrations(run.database)
    engine = Engine(Registry(), judging=build_demo_judging())
    bounds = JobBounds(limits=Limits(), chunk_items=50, max_items=10_000, default_hours=24)
    with Spool(max_bytes=2**20) as spool, Cutter(size=50) as cutter:
        spool.write("\n".join(json.dumps(item(n)) for n in range(items)).encode())
        spool.finish()
        options = CalibrationOptions(repeats=repeats, judges="fresh")
        sent = Upload(tenant="", key=None, options=options, body=spool)
        made = JobAdmission(CalibrationDraft, engine, bounds).admit(sent, kept, cutter)
        assert made is not None
        return kept, made.id


def fits_under_way(home: Path) -> list[int]:
    """The processes that fit for workers of this home."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and _fits(entry, home)]


def _fits(process: Path, home: Path) -> bool:
    try:
        called, environ = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
    except OSError:  # it has ended, or is another user's
        return False
    return b"service.jobs.fit_process" in called and f"CALLGRADE_HOME={home}".encode() in environ.split(b"\0")


@pytest.mark.chaos
def test_a_worker_that_is_killed_while_it_fits_leaves_the_fit_to_the_next(tmp_path: Path) -> None:
    provider = Provider()
    with serving(provider), service(f"sqlite:///{tmp_path}/store.db", tmp_path, provider) as run:
        kept, name = submitted(run, items=60, repeats=1)
        worker = run.start()
        run.until(lambda: bool(fits_under_way(tmp_path)))
        [fit] = fits_under_way(tmp_path)
        os.kill(fit, signal.SIGSTOP)  # so that it is still at it when its worker dies
        worker.kill()
        worker.wait()
        os.kill(fit, signal.SIGKILL)
        left = kept.find("", name)
        assert (left.status, left.request_counts.completed, left.fits) == ("finalizing", 60, 0)
        asked = len(provider.requests)
        run.start()
        run.until(lambda: kept.find("", name).ended_at is not None)
        found = kept.find("", name)
        assert (found.status, found.unanswered, found.fits) == ("completed", 0, 1), found
        assert len(provider.requests) == asked == 60
        [judge] = json.loads(kept.report("", name))["judges"]
        assert judge["missing"] == 0
        run.until(run.is_idle)
