"""Compare the final state of the world with the expected one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from service.core.case import Case
from service.core.checks import WHOLE, Aspect, Check, Part, SubjectOutcome
from service.core.expectations.state_changes import StateExpectation, patch_state
from service.core.json.differences import ChangeIndex, DiffOptions, JsonChange, StateProgress, compare, diff
from service.core.json.values import format_value
from service.core.outcome import PERFECT, Errored, Finding, Outcome, Scored, Skipped
from service.core.trace import State

MAX_NAMED_CHANGES = 3
"""At most this many changes are named that were made in place of an expected one."""
NO_CHANGES = StateExpectation(changes=())


NO_STATE_EXPECTED = Skipped("not_applicable", "no state was expected")


class StateGate(Check):
    """Compare the observed final state with the expected one, by JSON pointer: changes made, missing, wrong and unexpected.

    Value: the expected changes that were made, over all expected and all unexpected changes (`mode: exact`: 1.0 only if the
    state is exactly as expected). The findings name the path: `state_missing`, `state_wrong`, `state_unexpected`.
    `null_agent` gives the score of doing nothing at all, so that a pass which anyone would get shows as one. Without an
    initial state, only equality can be checked. `unchanged: true` expects nothing to change, whatever the expectation says.
    """

    kind: Literal["state"] = "state"
    looks_at: ClassVar[frozenset[Part]] = frozenset()
    reads: ClassVar[frozenset[Aspect]] = frozenset({"state"})
    mode: Literal["proportional", "exact"] = "proportional"
    unchanged: bool = False

    def aspects(self) -> frozenset[Aspect]:
        """Return the aspects it reads: none where nothing may change, whatever the expectation says."""
        return frozenset() if self.unchanged else self.reads

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for the trace."""
        return [(WHOLE, self.compare_states(case))]

    def compare_states(self, case: Case) -> Outcome:
        """Compare the states that the trace records with the expected ones."""
        expectation = NO_CHANGES if self.unchanged else (case.expectation.state if case.expectation else None)
        if expectation is None:
            return NO_STATE_EXPECTED
        state = case.trace.state or State()
        needed = ("initial", "final") if expectation.changes is not None else ("final",)
        absent = [name for name in needed if name not in state.captured]
        if absent and state.fault is not None:
            return Errored("sandbox", state.fault)
        if absent:
            return Skipped("not_captured", f"the trace has no {' and no '.join(absent)} state")
        return self._score(state, expectation)

    def _score(self, state: State, expectation: StateExpectation) -> Outcome:
        options = DiffOptions(ignore=expectation.ignore, keys=expectation.keys)
        has_initial = "initial" in state.captured
        initial = state.initial if has_initial else state.final
        expected = expectation.final if expectation.changes is None else patch_state(initial, expectation.changes)
        progress = compare(initial, expected, state.final, options)
        notes: list[Finding] = []
        if has_initial:
            value = self._compute_value(compare(initial, expected, initial, options))
            notes = [Finding("null_agent", f"doing nothing scores {value:.4g}", "/state/initial")]
        if progress.passed:
            return PERFECT.add_findings(*notes)
        findings = _build_findings(progress, diff(initial, state.final, options))
        return Scored(self._compute_value(progress), False, (*findings, *notes))

    def _compute_value(self, progress: StateProgress) -> float:
        return progress.value if self.mode == "proportional" else float(progress.passed)


def _build_findings(progress: StateProgress, changes: Iterable[JsonChange]) -> Iterable[Finding]:
    places = ChangeIndex(changes)
    for change in progress.missing:
        yield _build_finding("state_missing", f"should have been {_describe_change(change)} and was not", change)
    for change in progress.wrong:
        made = places.find_touching(change.path, MAX_NAMED_CHANGES)
        text = "; ".join(f"{one.path or 'the state'} was {_describe_change(one)}" for one in made)
        yield _build_finding("state_wrong", f"should have been {_describe_change(change)}, but {text}", change)
    for change in progress.unexpected:
        yield _build_finding("state_unexpected", f"was {_describe_change(change)}, which was not expected", change)


def _build_finding(code: str, message: str, change: JsonChange) -> Finding:
    return Finding(code, f"{change.path or 'the state'} {message}", f"/state/final{change.path}")


def _describe_change(change: JsonChange) -> str:
    if change.op == "remove":
        return "removed"
    if change.op == "add":
        return f"added as {format_value(change.after)}"
    return f"changed from {format_value(change.before)} to {format_value(change.after)}"
