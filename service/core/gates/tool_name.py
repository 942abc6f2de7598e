"""Step 2 of the contract: is it the right tool?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from service.core.checks import WHOLE, Case, Check, Seen, Subject, at_step, call_path
from service.core.expect import CallPattern
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.gates.names import near
from service.core.outcome import PERFECT, Finding, Scored, Skipped, failed
from service.core.trace import Step


class ToolNameGate(Check):
    """Function-name match over the optimal alignment: each expected call and each call too many counts once, 1.0 or 0.0.

    Names are compared exactly, or with case folded and `-`, `_`, `.` as one where the rubric folds names. Findings:
    `wrong_tool` (with the near miss in the catalogue, if there is one), `missing_call`, `extra_call`, `extra_read`.
    """

    kind: Literal["tool_name"] = "tool_name"

    def look(self, case: Case) -> Iterable[Seen]:
        """One outcome for each pair, each missing call, and each extra one that is not free."""
        expected = case.expectation
        if expected is None or not expected.says_calls or expected.calls == "some":
            yield WHOLE, NOTHING_EXPECTED
            return
        if not case.patterns and not case.trace.steps:
            yield WHOLE, Skipped("not_applicable", "no call was due and none was made")
        for i, j in case.alignment.pairs:
            step = case.trace.steps[j]
            yield at_step(step), named(case, case.patterns[i][1], step)
        yield from unmatched(case)


def named(case: Case, pattern: CallPattern, step: Step) -> Scored:
    """Whether the call of this step is of the expected tool."""
    if case.same_name(pattern.tool, step.call.name):
        return PERFECT
    message = f"expected {pattern.tool}, called {step.call.name}"
    close = near(pattern.tool, [step.call.name])
    if close:
        message += ", a near miss"
    return failed(0.0, Finding("wrong_tool", message, f"{call_path(step)}/name"))


def unmatched(case: Case) -> Iterable[Seen]:
    """Missing and extra calls, for every check that scores the alignment."""
    for i in case.alignment.missing:
        yield missing(case, i)
    for j in case.alignment.extra:
        step = case.trace.steps[j]
        outcome = case.unexpected(step)
        if outcome is not None:
            yield at_step(step), outcome


def missing(case: Case, expected: int) -> Seen:
    """The outcome of an expected call that was not made."""
    path, pattern = case.patterns[expected]
    finding = Finding("missing_call", f"{pattern.tool} was expected and not called", path)
    return Subject(expected=expected), failed(0.0, finding)
