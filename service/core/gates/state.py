"""The state of the world afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from pydantic import JsonValue

from service.core.case import Case
from service.core.checks import WHOLE, Aspect, Check, Part, SubjectOutcome
from service.core.expectations.expectation import StateExpectation
from service.core.expectations.state_changes import patch_state
from service.core.json.differences import DiffOptions, JsonChange, Places, Progress, compare, diff
from service.core.json.values import format_value
from service.core.outcome import PERFECT, Errored, Finding, Outcome, Scored, Skipped
from service.core.trace import State

MOST_TOLD = 3
"""So many changes are named that were made in place of a wanted one."""
UNTOUCHED = StateExpectation(changes=())


NO_STATE_EXPECTED = Skipped("not_applicable", "no state was expected")


class StateGate(Check):
    """The observed final state against the wanted one, by JSON pointer: changes made, missing, wrong and unexpected.

    Value: wanted changes made, over those wanted and those nobody wanted (`mode: exact`: 1.0 only if all is as wanted). The
    findings say which path: `state_missing`, `state_wrong`, `state_unexpected`; `null_agent` gives the score of doing
    nothing at all, so that a pass that anyone would get is seen. Without an initial state only equality can be said.
    `unchanged: true` wants nothing to change, whatever the expectation.
    """

    kind: Literal["state"] = "state"
    looks_at: ClassVar[frozenset[Part]] = frozenset()
    reads: ClassVar[frozenset[Aspect]] = frozenset({"state"})
    mode: Literal["proportional", "exact"] = "proportional"
    unchanged: bool = False

    def aspects(self) -> frozenset[Aspect]:
        """None, where nothing may change whatever was expected."""
        return frozenset() if self.unchanged else self.reads

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """One outcome for the trace."""
        return [(WHOLE, self._compare_states(case))]

    def _compare_states(self, case: Case) -> Outcome:
        wanted = UNTOUCHED if self.unchanged else (case.expectation.state if case.expectation else None)
        if wanted is None:
            return NO_STATE_EXPECTED
        state = case.trace.state or State()
        needs_initial = wanted.changes is not None
        gone = [
            name for name in ("initial", "final") if name not in state.captured and (name == "final" or needs_initial)
        ]
        if gone and state.fault is not None:
            return Errored("sandbox", state.fault)
        if gone:
            return Skipped("not_captured", f"the trace has no {' and no '.join(gone)} state")
        return self._score(state, wanted)

    def _score(self, state: State, wanted: StateExpectation) -> Outcome:
        view = DiffOptions(ignore=wanted.ignore, keys=wanted.keys)
        known = "initial" in state.captured
        initial = state.initial if known else state.final
        due = wanted.final if wanted.changes is None else patch_state(initial, wanted.changes)
        progress = compare(initial, due, state.final, view)
        notes = [self._score_null_agent(initial, due, view)] if known else []
        if progress.passed:
            return PERFECT.add_findings(*notes)
        return Scored(
            self._compute_value(progress), False, (*_build_findings(progress, diff(initial, state.final, view)), *notes)
        )

    def _score_null_agent(self, initial: JsonValue, due: JsonValue, view: DiffOptions) -> Finding:
        idle = self._compute_value(compare(initial, due, initial, view))
        return Finding("null_agent", f"doing nothing scores {idle:.4g}", "/state/initial")

    def _compute_value(self, progress: Progress) -> float:
        return progress.value if self.mode == "proportional" else float(progress.passed)


def _build_findings(progress: Progress, done: Iterable[JsonChange]) -> Iterable[Finding]:
    places = Places(done)
    for change in progress.missing:
        yield _build_finding("state_missing", f"should have been {_describe_change(change)} and was not", change)
    for change in progress.wrong:
        made = places.find_touching(change.path, MOST_TOLD)
        told = "; ".join(f"{one.path or 'the state'} was {_describe_change(one)}" for one in made)
        yield _build_finding("state_wrong", f"should have been {_describe_change(change)}, but {told}", change)
    for change in progress.unexpected:
        yield _build_finding("state_unexpected", f"was {_describe_change(change)}, which nobody asked for", change)


def _build_finding(code: str, message: str, change: JsonChange) -> Finding:
    return Finding(code, f"{change.path or 'the state'} {message}", f"/state/final{change.path}")


def _describe_change(change: JsonChange) -> str:
    if change.op == "remove":
        return "removed"
    if change.op == "add":
        return f"added as {format_value(change.after)}"
    return f"changed from {format_value(change.before)} to {format_value(change.after)}"
