"""The label queue: a file that items are appended to whose judged value lies in the band of a fit, for humans to label.

Several processes may append to it. Each item is in it once, by the digest of trace and criterion. It is never in the way:
scoring does not wait for it, and where it cannot be written there is one warning.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from threading import BoundedSemaphore
from typing import IO, Any, cast

from pydantic import JsonValue

from service.calibration.importers.queued import QueuedItem
from service.calibration.predictions import AnswerId
from service.calibration.report_predictions import build_prediction, list_judged
from service.core.judging.votes import JudgedScore
from service.core.judging.withheld import WithheldJudgement
from service.core.report import Report
from service.core.rubric import Rubric
from service.request import ScoreRequest

LOG = logging.getLogger("callgrade.labels")

MOST = 1_000
"""Reports that may wait for the disk; those beyond are left out."""


class LabelQueue:
    """One file. Safe to share between threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="labels")
        self._room = BoundedSemaphore(MOST)
        self._warned = False
        self._known: set[str] = set()
        self._read = (0, 0)
        """The file that was read (its inode), and how far."""

    def offer(self, request: ScoreRequest, report: Report, rubric: Rubric) -> None:
        """Takes the items of a report that a human should look at. Returns at once, and raises nothing."""
        if request.sandbox is not None or not any(
            _iter_asks(report)
        ):  # what a sandbox did is not in the trace that was sent
            return
        if not self._room.acquire(blocking=False):
            self._warn("the disk is too slow")
            return
        try:
            self._thread.submit(self._take_items, request, report, rubric)
        except RuntimeError:  # it was closed
            self._room.release()

    def close(self) -> None:
        """Waits until what was offered is written."""
        self._thread.shutdown()

    def _take_items(self, request: ScoreRequest, report: Report, rubric: Rubric) -> None:
        try:
            self._append(list_queued(request, report, rubric))
        except Exception as error:  # noqa: BLE001 (whatever it is, it is no fault of the report's)
            self._warn(f"{type(error).__name__}: {error}")
        finally:
            self._room.release()

    def _append(self, items: Sequence[QueuedItem]) -> None:
        with open(self._path, "a+b", opener=_open_private) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._read_appended(file)
            for item in items:
                if item.id not in self._known:
                    file.write(item.model_dump_json(exclude_defaults=True, exclude={"labels"})[:-1].encode())
                    file.write(b',"labels":[]}\n')
                    self._known.add(item.id)
            file.flush()
            self._read = (self._read[0], file.seek(0, os.SEEK_END))

    def _read_appended(self, file: IO[bytes]) -> None:
        """Learns what others have appended. A last line that was cut off is taken away: nobody is writing it."""
        inode, size = os.fstat(file.fileno()).st_ino, file.seek(0, os.SEEK_END)
        if self._read[0] != inode or self._read[1] > size:
            self._known, self._read = set(), (inode, 0)
        file.seek(self._read[1])
        data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            file.truncate(self._read[1] + len(whole))
            file.seek(0, os.SEEK_END)
        self._known |= {name for line in whole.splitlines() if (name := _read_id(line))}

    def _warn(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            LOG.warning("the label queue cannot be written", extra={"fields": {"why": why}})


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)  # traces are nobody else's to read


def _read_id(line: bytes) -> str | None:
    try:
        found = json.loads(line)
    except ValueError:  # somebody's own line; it is told when it is fitted
        return None
    return cast("dict[str, Any]", found).get("id") if isinstance(found, dict) else None


def _iter_asks(report: Report) -> Iterator[bool]:
    for criterion in report.criteria:
        for outcome in list_judged(report, criterion.id):
            yield outcome.calibration.ask_a_human


def list_queued(request: ScoreRequest, report: Report, rubric: Rubric) -> tuple[QueuedItem, ...]:
    """The items of a report that a human should look at.

    An item is a trace under a criterion; of several questions about it the one with the lowest value stands for it, as where
    labelled items are judged.
    """
    found: list[QueuedItem] = []
    for criterion in report.criteria:
        outcomes = list_judged(report, criterion.id)
        worst = min(outcomes, key=lambda one: one.raw, default=None)
        if worst is not None and worst.calibration.ask_a_human:
            found.append(_build_queued(request, report, rubric, (criterion.id, criterion.stage), worst))
    return tuple(found)


def _build_queued(
    request: ScoreRequest,
    report: Report,
    rubric: Rubric,
    criterion: tuple[str, str],
    worst: JudgedScore | WithheldJudgement,
) -> QueuedItem:
    trace = cast("dict[str, JsonValue]", request.trace)
    name = _compute_digest([trace, criterion[0]])
    tags = request.tags
    return QueuedItem.model_validate(
        {
            "id": name,
            "criterion": criterion[0],
            "step": criterion[1],
            "trace": trace,
            "source": "queue",
            "group": tags.get("group") or report.trace_id or name,
            "stratum": tags.get("stratum", ""),
            "prediction": build_prediction(AnswerId(name, criterion[0]), worst, rubric),
            "value": worst.value if isinstance(worst, JudgedScore) else worst.estimate,
            "threshold": worst.calibration.threshold,
        }
    )


def _compute_digest(value: JsonValue) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return sha256(text.encode()).hexdigest()[:32]
