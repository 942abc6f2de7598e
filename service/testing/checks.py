"""Score a trace within a test, and raise an error if it does not pass."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from pydantic import JsonValue

from service.cli.inputs import find_rubric, names_file, read_option_text
from service.cli.options import read_settings
from service.cli.screen import build_console
from service.cli.views import show_steps
from service.core.report import JudgeMode, Report
from service.engine import Engine
from service.errors import InputError
from service.reading.bare_traces import wrap_trace
from service.reading.packaged_files import read_yaml
from service.reading.request import ScoreRequest, check_request
from service.reporting.escaping import escape_unprintable
from service.reporting.regression import may_be_undecided
from service.reporting.statements import PASSING
from service.wiring import build_engine

WIDTH = 100
"""The width of the table of stages, in columns."""


class TraceFailure(AssertionError):  # noqa: N818 (a failed assertion, not an error)
    """A trace that does not pass. `report` is the full report; the message is a summary of it."""

    __module__ = "callgrade"

    def __init__(self, message: str, report: Report) -> None:
        self.report = report
        super().__init__(message)


def render_failure(report: Report, hint: str = "") -> str:
    """Render the message: verdict, stages with findings and their places and, at the end, what to do about open questions."""
    name, rubric = escape_unprintable(report.trace_id or "the trace"), f"{report.rubric.id}@{report.rubric.version}"
    buffer = io.StringIO()
    console = build_console(buffer, width=WIDTH, plain=True)
    show_steps(console, report, head=f"{name} does not pass {rubric}: ", places=True)
    lines = [line.rstrip() for line in buffer.getvalue().splitlines()]
    return "\n".join([*lines, hint] if hint else lines)


TraceForm = Mapping[str, object] | Sequence[Mapping[str, object]]
"""A trace in its provider's own format, a list of messages, or a complete request (with a field `trace`)."""

Document = Mapping[str, object] | str | Path


@dataclass(frozen=True, repr=False)
class TraceChecker:
    """Scores traces and raises an error for one that does not pass.

    `judges`: how judges are asked in checks that do not say. `observe` gets every report before an error is raised.
    """

    engine: Engine
    judges: JudgeMode | None = None
    observe: Callable[[Report], object] = lambda _: None
    hint: Callable[[Report], str] = lambda _: ""
    """Returns one line on what to do about open questions; empty for none."""

    def check(
        self,
        trace: TraceForm,
        *,
        expected: Document | None = None,
        rubric: Document | None = None,
        judges: Literal["off"] | None = None,
        allow_undecided: bool = False,
    ) -> Report:
        """Return the report of a trace that passes or warns; raise TraceFailure, an AssertionError, for every other verdict.

        `expected`: an expectation, or a file with one. `rubric`: an id, a rubric, or a file with one. `judges`: `off` uses only
        what code decides. `allow_undecided` accepts an undecided verdict, unless a fault or something unreadable is the reason.
        InputError if the trace or one of the arguments cannot be used.
        """
        __tracebackhide__ = True
        report = self.engine.score_blocking(self._read(trace, expected, rubric, judges))
        self.observe(report)
        if report.verdict not in PASSING and not (allow_undecided and may_be_undecided(report)):
            raise TraceFailure(render_failure(report, self.hint(report)), report)
        return report

    def _read(
        self, trace: TraceForm, expected: Document | None, rubric: Document | None, judges: Literal["off"] | None
    ) -> ScoreRequest:
        body = _build_request(trace)
        if isinstance(rubric, Path) or (isinstance(rubric, str) and names_file(rubric)):
            rubric = find_rubric(self.engine.registry, str(rubric)).model_dump(mode="json", exclude_unset=True)
        expectation: object = expected
        if isinstance(expected, str | Path):
            expectation = read_yaml(read_option_text(Path(expected), "expected"), source=str(expected))
            if expectation is None:
                raise InputError.at("", f"{expected}: expected an object, not null")
        mode = "off" if "off" in (body.get("judges"), judges) else self.judges  # a request cannot turn judges on
        overrides = {"expected": expectation, "rubric": rubric, "judges": mode}
        return check_request({**body, **{name: value for name, value in overrides.items() if value is not None}})

    def close(self) -> None:
        """Close the connections, in a thread: the test may run in an event loop itself."""
        with ThreadPoolExecutor(1) as thread:
            thread.submit(lambda: asyncio.run(self.engine.close())).result()


def _build_request(trace: TraceForm) -> dict[str, object]:
    """Build the request around a trace; request fields beside a bare trace, such as `expected`, go into it.

    A `custom_id` names a case and is not part of the request.
    """
    if not isinstance(trace, Mapping):
        return {"trace": {"messages": list(trace)}}
    whole = isinstance(trace.get("trace"), Mapping)
    body = trace if whole else wrap_trace(cast("dict[str, JsonValue]", dict(trace)))
    return {name: value for name, value in body.items() if name != "custom_id"}


def assert_passes(
    trace: TraceForm,
    *,
    expected: Document | None = None,
    rubric: Document | None = None,
    judges: Literal["off"] | None = None,
    allow_undecided: bool = False,
) -> Report:
    """Return the report of a trace that passes or warns; raise an AssertionError with its steps and findings otherwise.

    For unittest and plain scripts. Arguments and errors are those of the pytest fixture `callgrade`. A judge is asked if one
    is configured (`CALLGRADE_JUDGE_MODEL`).
    """
    __tracebackhide__ = True
    checker = TraceChecker(build_engine(read_settings()))
    try:
        return checker.check(trace, expected=expected, rubric=rubric, judges=judges, allow_undecided=allow_undecided)
    finally:
        checker.close()
