"""A trace scored within a test, and the error of one that does not pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

from pydantic import JsonValue

from service.cli.context import read_settings
from service.cli.inputs import find_rubric, names_file, read_text
from service.core.report import JudgeMode, Report
from service.engine import Engine
from service.errors import InputError
from service.packaged_files import read_yaml
from service.reading.bare_traces import wrap_trace
from service.reporting.regression import may_abstain
from service.request import ScoreRequest, read_request
from service.testing.failures import TraceFailure, render_failure
from service.testing.loop_thread import LoopThread
from service.wiring import build_engine

TraceForm = Mapping[str, object] | Sequence[Mapping[str, object]]
"""A trace in its provider's own form, a list of messages, or a whole request (with a member `trace`)."""


@dataclass(frozen=True, repr=False)
class TraceChecker:
    """Scores traces and raises where one does not pass.

    `judges`: how judges are asked of checks that do not say. `observe` gets every report, before anything is raised.
    """

    engine: Engine
    loop: LoopThread
    judges: JudgeMode | None = None
    observe: Callable[[Report], object] = lambda _: None
    hint: Callable[[Report], str] = lambda _: ""
    """What to do about what is open, in a line; empty for nothing."""

    def check(
        self,
        trace: TraceForm,
        *,
        expected: Mapping[str, object] | str | Path | None = None,
        rubric: Mapping[str, object] | str | Path | None = None,
        judges: Literal["off"] | None = None,
        allow_abstain: bool = False,
    ) -> Report:
        """The report of a trace that passes or warns. TraceFailure, an AssertionError, for every other verdict.

        `expected`: an expectation, or the file of one. `rubric`: an id, a rubric, or the file of one. `judges`: `off` takes what
        code alone decides. `allow_abstain` lets an abstention pass, but for one that rests on a fault or on what could not be
        read. InputError where the trace or what is said of it cannot be used.
        """
        __tracebackhide__ = True
        report = self._score(self._read(trace, expected, rubric, judges))
        self.observe(report)
        if not _passes(report, allow_abstain=allow_abstain):
            raise TraceFailure(render_failure(report, self.hint(report)), report)
        return report

    def _read(
        self,
        trace: TraceForm,
        expected: Mapping[str, object] | str | Path | None,
        rubric: Mapping[str, object] | str | Path | None,
        judges: Literal["off"] | None,
    ) -> ScoreRequest:
        body = _build_request(trace)
        chosen = None if rubric is None else self._find_rubric(rubric)
        wish = _read_expected(expected)
        over = {"expected": wish, "rubric": chosen, "judges": self._choose_mode(body.get("judges"), judges)}
        return read_request(cast("JsonValue", {**body, **{k: v for k, v in over.items() if v is not None}}))

    def _choose_mode(self, said: object, asked: Literal["off"] | None) -> JudgeMode | None:
        """`off` where anybody says so; a request cannot have a judge asked that this run does not ask."""
        return "off" if "off" in (said, asked) else self.judges

    def _find_rubric(self, rubric: Mapping[str, object] | str | Path) -> object:
        if isinstance(rubric, Path) or (isinstance(rubric, str) and names_file(rubric)):
            return find_rubric(self.engine.registry, str(rubric)).model_dump(mode="json", exclude_unset=True)
        return rubric

    def _score(self, request: ScoreRequest) -> Report:
        if not self.engine.must_wait(request):
            return self.engine.answer(request)
        return self.loop.run(self.engine.answer_async(request))

    def close(self) -> None:
        """Lets go of connections and of the loop."""
        self.loop.run(self.engine.close())
        self.loop.close()


def _build_request(trace: TraceForm) -> dict[str, object]:
    """The request around a trace; what a bare one has beside its members, such as `expected`, goes into it.

    A `custom_id` names a case and is no part of the request.
    """
    if not isinstance(trace, Mapping):
        return {"trace": {"messages": list(trace)}}
    whole = isinstance(trace.get("trace"), Mapping)
    body = trace if whole else wrap_trace(cast("dict[str, JsonValue]", dict(trace)))
    return {name: value for name, value in body.items() if name != "custom_id"}


def _read_expected(expected: Mapping[str, object] | str | Path | None) -> object:
    if isinstance(expected, str | Path):
        given = read_yaml(read_text(Path(expected), "expected"), source=str(expected))
        if given is None:
            raise InputError.at("", f"{expected}: expected an object, not null")
        return given
    return expected


def _passes(report: Report, *, allow_abstain: bool) -> bool:
    if report.verdict == "abstain":
        return allow_abstain and may_abstain(report)
    return report.verdict in ("pass", "warn")


def build_checker() -> TraceChecker:
    """One by the settings of the environment, as the command line has it: a judge is asked where one is set."""
    return TraceChecker(build_engine(read_settings()), LoopThread())


def assert_passes(
    trace: TraceForm,
    *,
    expected: Mapping[str, object] | str | Path | None = None,
    rubric: Mapping[str, object] | str | Path | None = None,
    judges: Literal["off"] | None = None,
    allow_abstain: bool = False,
) -> Report:
    """The report of a trace that passes or warns; an AssertionError with its steps and findings for every other verdict.

    For unittest and plain scripts; arguments and errors as those of the fixture `callgrade` of pytest. A judge is asked where
    one is set up (`CALLGRADE_JUDGE_MODEL`).
    """
    __tracebackhide__ = True
    checker = build_checker()
    try:
        return checker.check(trace, expected=expected, rubric=rubric, judges=judges, allow_abstain=allow_abstain)
    finally:
        checker.close()


def watch(checker: TraceChecker, observe: Callable[[Report], object]) -> TraceChecker:
    """The same checker with somebody else who gets the reports."""
    return replace(checker, observe=observe)
