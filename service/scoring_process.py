"""Large requests are scored in a process of their own: `python -m service.scoring_process`.

A request of megabytes takes seconds of one core. In a thread it would keep the event loop waiting all the while, for both
share one interpreter; and one that took a process down would take down all that is under way in it. What code makes of a
request does not depend on where it is made. Requests that wait for judges or sandboxes come back as they went.
"""

from __future__ import annotations

import logging
import os
import pickle
import resource
import signal
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from subprocess import PIPE, Popen, TimeoutExpired
from threading import Lock
from typing import BinaryIO, NamedTuple, Protocol, cast

from service.engine import Engine, report_json
from service.errors import InputError, Problem
from service.reading.strict_json import Limits, parse
from service.reporting.counts import ReportCounts, count_report
from service.request import read_request
from service.score_drafts import draft_score
from service.store.labelling.drafts import LabelItem, ScoreDraft

LOG = logging.getLogger("callgrade.apart")

LARGE_BYTES = 256 * 1024
"""Bytes of a request from which on it is scored apart."""
MAX_CPU_S = 300
"""Seconds of processor time that one request may take. The counted budget ends it long before."""
MAX_MEMORY_BYTES = 4 * 2**30
ENDING_S = 1.0
"""Seconds for a process to end by itself, once nobody asks it any more."""
MEMORY_EXIT = 70
"""What the process ends with where a request takes more."""
NICE = 5
"""How far the process stands back for the one that answers."""
COMMAND = (sys.executable, "-P", "-m", "service.scoring_process")
_SIZE = struct.Struct(">Q")


@dataclass(frozen=True, slots=True)
class ApartReport:
    """A report as JSON, with what is counted of it."""

    report: bytes
    tally: ReportCounts
    kept: ScoreDraft
    """What is kept of it, where it is to be, but for the request."""
    store: bool | None
    """Whether the request says that it is to be."""

    @property
    def labelled(self) -> Sequence[LabelItem]:
        """What of it may be labelled."""
        return self.kept.items


@dataclass(frozen=True, slots=True)
class ApartRefusal:
    """A request that cannot be scored: the class of the error, and its problems."""

    error: type[InputError]
    problems: tuple[Problem, ...]


ApartAnswer = ApartReport | ApartRefusal | None
"""None: somebody must be waited for, or something of ours failed; then whoever asks does it himself, and sees."""


class ApartJob(NamedTuple):
    """A request, or (`key`) what holds it as the member of that name."""

    data: bytes
    limits: Limits
    key: str | None


class TakenDownError(Exception):
    """The process ended in the middle of a request."""


class ApartScorer(Protocol):
    """Scores large requests somewhere else."""

    def score(self, data: bytes, limits: Limits, *, key: str | None = None) -> ApartAnswer:
        """The answer to a request; `key`: it is the member of that name. For a thread: it waits. Raises TakenDownError."""
        ...


class ScoringProcess:
    """A process beside this one, which is begun when it is first needed and ends with it. One request at a time."""

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self._command = command
        self._lock = Lock()
        self._process: Popen[bytes] | None = None

    def score(self, data: bytes, limits: Limits, *, key: str | None = None) -> ApartAnswer:
        """The answer; it waits until earlier requests have theirs. Raises TakenDownError."""
        with self._lock:
            process = self._start()
            stdin, stdout = cast("BinaryIO", process.stdin), cast("BinaryIO", process.stdout)
            try:
                _write(stdin, ApartJob(data, limits, key))
                return cast("ApartAnswer", _read(stdout))
            except (OSError, EOFError):
                self._process, code = None, _end(process)
        LOG.error("a large request took its process down", extra={"fields": {"code": code, "bytes": len(data)}})
        raise TakenDownError(f"the process that scored it ended with {code}")

    def close(self) -> None:
        """Ends the process, whatever it is at."""
        process, self._process = self._process, None
        if process is not None:
            _end(process)

    def _start(self) -> Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = Popen(self._command, stdin=PIPE, stdout=PIPE)  # noqa: S603 (ours)
        return self._process


def _end(process: Popen[bytes]) -> int:
    """Ends a process, if it has not ended; what it ended with."""
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):  # what was not written is of no use any more
            cast("BinaryIO", pipe).close()
    try:
        return process.wait(ENDING_S)
    except TimeoutExpired:
        process.kill()
        return process.wait()


def answer_apart(engine: Engine, data: bytes, limits: Limits, key: str | None = None) -> ApartAnswer:
    """What code makes of a request, where nobody must be waited for."""
    try:
        body = parse(data, limits)
        request = read_request(body[key] if key is not None and isinstance(body, dict) else body)
        if engine.waits(request):
            return None
        report = engine.answer(request)
    except InputError as error:
        return ApartRefusal(type(error), error.problems)
    except MemoryError:
        os._exit(MEMORY_EXIT)
    except Exception:  # noqa: BLE001 (whoever asked meets it again, where it is logged)
        return None
    kept = draft_score(engine.registry.find(request.rubric), request, report, report_json(report))
    return ApartReport(kept.report, count_report(report), kept, request.store)


def _write(file: BinaryIO, value: object) -> None:
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    file.write(_SIZE.pack(len(data)) + data)
    file.flush()


def _read(file: BinaryIO) -> object:
    """What the other process has written, both being ours. EOFError where it has ended."""
    head = file.read(_SIZE.size)
    if len(head) < _SIZE.size:
        raise EOFError
    data = file.read(_SIZE.unpack(head)[0])
    return pickle.loads(data)  # noqa: S301 (from our own process, by a pipe that nobody else has)


def serve() -> None:
    """Answers requests from standard input until that ends."""
    from service.settings import Settings  # noqa: PLC0415
    from service.wiring import build_engine  # noqa: PLC0415 (it imports what imports this)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever began it ends it
    os.nice(NICE)
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anybody prints is no answer
    engine = build_engine(Settings.from_env(os.environ))
    while True:
        try:
            job = cast("ApartJob", _read(sys.stdin.buffer))
        except EOFError:
            return
        _allow(MAX_CPU_S)
        _write(out, answer_apart(engine, job.data, job.limits, job.key))


def _allow(seconds: int) -> None:
    """Lets this process have so many more seconds of processor time."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + seconds, resource.RLIM_INFINITY))


if __name__ == "__main__":
    import_module("service.scoring_process").serve()  # whose classes are those that the other process knows
