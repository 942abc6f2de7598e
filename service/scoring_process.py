"""Score large requests in a process of their own: `python -m service.scoring_process`.

A request of megabytes takes one core several seconds. In a thread it would block the event loop all the while, because
both share one interpreter; and a request that crashes its process would take down everything running there. What code
makes of a request is the same in any process. A request that must wait for judges or sandboxes is handed back unscored.
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

from service.calibration.labelling import list_label_items
from service.core.report import Report
from service.core.rubric import Rubric
from service.engine import Engine, report_json
from service.errors import InputError, Problem
from service.reading.request import ScoreRequest, read_request
from service.reading.strict_json import Limits, parse_strictly
from service.reporting.breaks import ReportCounts, count_report, describe_break
from service.store.labelling.drafts import ScoreDraft

LOG = logging.getLogger("callgrade.apart")

LARGE_BYTES = 256 * 1024
"""Size of a request, in bytes, from which it is scored in the other process."""
MAX_CPU_S = 300
"""Processor time, in seconds, that one request may take. The counted work budget ends it long before."""
MAX_MEMORY_BYTES = 4 * 2**30
EXIT_TIMEOUT_S = 1.0
"""Seconds for the process to exit by itself once its pipes are closed."""
MEMORY_EXIT = 70
"""Exit code if a request takes more memory than `MAX_MEMORY_BYTES`."""
NICE = 5
"""How far the process yields the processor to the one that answers requests."""
COMMAND = (sys.executable, "-P", "-m", "service.scoring_process")
_SIZE = struct.Struct(">Q")


@dataclass(frozen=True, slots=True)
class ProcessReport:
    """A report as JSON, with its counts and what may be stored of it."""

    report: bytes
    tally: ReportCounts
    kept: ScoreDraft
    """What is stored of it, if it is to be stored, except the request."""
    store: bool | None
    """Whether the request asks to be stored; None: it does not say."""


@dataclass(frozen=True, slots=True)
class ProcessRefusal:
    """The error of a request that cannot be scored: its class and its problems."""

    error: type[InputError]
    problems: tuple[Problem, ...]


ProcessAnswer = ProcessReport | ProcessRefusal | None
"""None: the request must wait for somebody, or our code failed; the caller then scores it itself, and meets the error."""


class ProcessJob(NamedTuple):
    """A request; with `key`, the request is the member of that name."""

    data: bytes
    limits: Limits
    key: str | None


class ScoringProcessError(Exception):
    """The process died while it scored a request."""


class LargeScorer(Protocol):
    """Scores large requests somewhere else."""

    def score(self, data: bytes, limits: Limits, *, key: str | None = None) -> ProcessAnswer:
        """Score a request; `key`: the request is the member of that name. Blocks. Raises ScoringProcessError."""
        ...


class ScoringProcess:
    """A child process that starts on first use and ends with its parent. It scores one request at a time."""

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self._command = command
        self._lock = Lock()
        self._process: Popen[bytes] | None = None

    def score(self, data: bytes, limits: Limits, *, key: str | None = None) -> ProcessAnswer:
        """Score a request; blocks until earlier requests have their answers. Raises ScoringProcessError."""
        with self._lock:
            process = self._start()
            stdin, stdout = cast("BinaryIO", process.stdin), cast("BinaryIO", process.stdout)
            try:
                _write(stdin, ProcessJob(data, limits, key))
                return cast("ProcessAnswer", _read(stdout))
            except (OSError, EOFError):
                self._process, code = None, _end(process)
        LOG.error("a large request crashed its process", extra={"fields": {"code": code, "bytes": len(data)}})
        raise ScoringProcessError(f"the process that scored it ended with {code}")

    def close(self) -> None:
        """End the process, whatever it is doing."""
        process, self._process = self._process, None
        if process is not None:
            _end(process)

    def _start(self) -> Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = Popen(self._command, stdin=PIPE, stdout=PIPE)  # noqa: S603 (ours)
            with suppress(OSError):  # it has ended already
                os.setpriority(os.PRIO_PROCESS, self._process.pid, NICE)  # before it loads anything
        return self._process


def _end(process: Popen[bytes]) -> int:
    """End a process unless it has ended; return its exit code."""
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):  # unwritten data no longer matters
            cast("BinaryIO", pipe).close()
    try:
        return process.wait(EXIT_TIMEOUT_S)
    except TimeoutExpired:
        process.kill()
        return process.wait()


def answer_job(engine: Engine, data: bytes, limits: Limits, key: str | None = None) -> ProcessAnswer:
    """Score a request with code alone, if it need not wait for anybody."""
    try:
        body = parse_strictly(data, limits)
        request = read_request(body[key] if key is not None and isinstance(body, dict) else body)
        if engine.must_wait(request):
            return None
        report = engine.answer(request)
    except InputError as error:
        return ProcessRefusal(type(error), error.problems)
    except MemoryError:
        os._exit(MEMORY_EXIT)
    except Exception:  # noqa: BLE001 (the caller meets the error again, and logs it)
        return None
    kept = draft_score(engine.registry.find(request.rubric), request, report, report_json(report))
    return ProcessReport(kept.report, count_report(report), kept, request.store)


def draft_score(rubric: Rubric, request: ScoreRequest, report: Report, text: bytes) -> ScoreDraft:
    """Build what is stored of a score, except the request as it came. `text`: the report as JSON."""
    used, broken = report.rubric, describe_break(report)
    breaks = {name: getattr(broken, name) for name in ("stage", "finding", "tool", "stages")}
    breaks["cluster"] = report.tags.get("group", "")
    name, items = f"{used.id}@{used.version}", list_label_items(report, rubric)
    return ScoreDraft(name, report.verdict, broken.score, request.tags, b"", text, items, breaks)


def _write(file: BinaryIO, value: object) -> None:
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    file.write(_SIZE.pack(len(data)) + data)
    file.flush()


def _read(file: BinaryIO) -> object:
    """Read what our other process has written. EOFError if it has ended."""
    head = file.read(_SIZE.size)
    if len(head) < _SIZE.size:
        raise EOFError
    data = file.read(_SIZE.unpack(head)[0])
    return pickle.loads(data)  # noqa: S301 (from our own process, over a private pipe)


def serve() -> None:
    """Answer requests from standard input until it ends."""
    from service.settings import Settings  # noqa: PLC0415
    from service.wiring import build_engine  # noqa: PLC0415 (circular import)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # keep stray prints out of the answers
    engine = build_engine(Settings.from_env(os.environ))
    while True:
        try:
            job = cast("ProcessJob", _read(sys.stdin.buffer))
        except EOFError:
            return
        _extend_cpu_limit(MAX_CPU_S)
        _write(out, answer_job(engine, job.data, job.limits, job.key))


def _extend_cpu_limit(seconds: int) -> None:
    """Allow this process that many more seconds of processor time."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + seconds, resource.RLIM_INFINITY))


if __name__ == "__main__":
    import_module("service.scoring_process").serve()  # so that pickled classes have the module name the parent knows
