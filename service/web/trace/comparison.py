"""Expected calls beside actual ones, argument by argument; and the final state beside the expected one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, cast

from pydantic import BaseModel, JsonValue

from service.core.expectations.expectation import CallPattern, Expectation
from service.core.expectations.merging import IGNORED
from service.core.expectations.state_changes import StateExpectation, patch_state
from service.core.expectations.templates import BoundMatcher, is_optional
from service.core.json.differences import DiffOptions, JsonChange, StateProgress, compare, diff
from service.core.json.pointers import escape_token
from service.core.json.values import equals
from service.core.outcome import Errored, Finding, MethodScore
from service.core.report import StepVerdict
from service.core.trace import State, Step
from service.core.weights import read_weight
from service.errors import InputError
from service.reporting.statements import OutcomeState, find_state
from service.web.trace.grounding import Links, RootMarks
from service.web.trace.marks import escape_invisible
from service.web.trace.payloads import Payload, build_cell

RowStatus = Literal["same", "close", "differs", "missing", "extra", "open", "optional", "ignored", "quiet"]

ROW_WORDS: Mapping[RowStatus, str] = {
    "same": "as expected",
    "close": "close enough",
    "differs": "differs",
    "missing": "missing",
    "extra": "not expected",
    "open": "undecided",
    "optional": "optional",
    "ignored": "not expected",
    "quiet": "not compared",
}
BY_CODE: Mapping[str, RowStatus] = {
    "wrong_argument": "differs",
    "missing_argument": "missing",
    "extra_argument": "extra",
    "close_match": "close",
}


@dataclass(frozen=True, slots=True)
class ArgumentRow:
    """One argument of a call beside its expectation."""

    name: str
    status: RowStatus
    words: str
    expected: Payload | None
    """None: nothing was expected."""
    actual: Payload | None
    """None: the call does not have it."""
    note: str = ""
    weight: str = ""
    """How much it counts, if the expectation says."""
    matcher: str = ""
    """The kind of matcher that compares; empty: typed equality."""


@dataclass(frozen=True, slots=True)
class ExpectedCallView:
    """An expected call: beside the one that was made, or missing."""

    tool: str
    reason: str
    rows: tuple[ArgumentRow, ...]
    free: bool
    """Whether any arguments will do."""


@dataclass(frozen=True, slots=True)
class StateRow:
    """One place in the state."""

    path: str
    status: Literal["made", "missing", "wrong", "unexpected", "changed"]
    words: str
    before: Payload | None
    after: Payload | None
    expected: Payload | None


def list_patterns(expectation: Expectation | None) -> dict[str, CallPattern]:
    """Map the expected calls by their pointers."""
    if expectation is None:
        return {}
    return {
        path: pattern
        for section in expectation.list_sections().sections
        for expected_call in section.expected_calls
        for path, pattern in expected_call.options
    }


def spell_template(value: object) -> JsonValue:
    """Spell an expectation as JSON: a matcher as the object that names it."""
    if isinstance(value, BoundMatcher):
        value = value.critic
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True)
    if isinstance(value, Mapping):
        return {str(key): spell_template(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [spell_template(item) for item in cast("Sequence[object]", value)]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


class CallComparer(NamedTuple):
    """Compares expected calls with actual ones."""

    patterns: Mapping[str, CallPattern]
    links: Links

    def compare(self, step: Step, verdict: StepVerdict) -> ExpectedCallView | None:
        """Compare a step with its expected call; None if it is paired with none."""
        pattern = self.patterns.get(verdict.expected or "")
        if pattern is None:
            return None
        if pattern.args is None or step.call.arguments is None:
            return _build(pattern, ())
        notes = _list_argument_findings(verdict)
        compared = _find_comparison(verdict)
        names = [*pattern.args, *[name for name in step.call.arguments if name not in pattern.args]]
        rows = [self._compare_argument(name, pattern, step, notes.get(name), compared) for name in names]
        return _build(pattern, tuple(sorted(rows, key=lambda row: row.status not in ("differs", "missing", "extra"))))

    def build_missing(self, path: str, tool: str) -> ExpectedCallView:
        """Build the view of an expected call that was not made."""
        pattern = self.patterns.get(path)
        if pattern is None:
            return ExpectedCallView(escape_invisible(tool), "", (), True)
        rows = [
            ArgumentRow(escape_invisible(name), "missing", "", payload, None, matcher=matcher)
            for name, value in (pattern.args or {}).items()
            for matcher, payload in [self._show_expected(value)]
        ]
        return _build(pattern, tuple(rows))

    def _compare_argument(
        self, name: str, pattern: CallPattern, step: Step, finding: Finding | None, compared: OutcomeState | None
    ) -> ArgumentRow:
        expected_args, actual_args = pattern.args or {}, step.call.arguments or {}
        status = _find_status(name, pattern, actual_args, finding, compared)
        token = escape_token(name)
        root = f"/steps/{step.index}/call/arguments"
        marks = _narrow(self.links.marks.get(root), f"/{token}")
        matcher, expected = self._show_expected(expected_args[name]) if name in expected_args else ("", None)
        actual = build_cell(actual_args[name], marks) if name in actual_args else None
        return ArgumentRow(
            name=escape_invisible(name),
            status=status,
            words="no finding" if status == "quiet" and compared is None else ROW_WORDS[status],
            expected=expected,
            actual=actual,
            note="" if finding is None else _shorten_note(finding, name),
            weight="" if name not in pattern.weights else str(pattern.weights[name]),
            matcher=matcher,
        )

    def _show_expected(self, expected: object) -> tuple[str, Payload]:
        """Return the kind of a matcher and what it compares with; an empty kind for a plain value."""
        value = spell_template(expected)
        if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
            return "", build_cell(value, None)
        rest = {name: item for name, item in value.items() if name != "kind"}
        return str(value["kind"]), build_cell(rest["value"] if rest.keys() == {"value"} else rest, None)


def _build(pattern: CallPattern, rows: tuple[ArgumentRow, ...]) -> ExpectedCallView:
    reason = escape_invisible(pattern.reason or "")
    return ExpectedCallView(escape_invisible(pattern.tool), reason, rows, pattern.args is None)


def _shorten_note(finding: Finding, name: str) -> str:
    """Cut from a finding what the row shows already.

    >>> _shorten_note(Finding("wrong_argument", "n: expected 5, got 4 (off by 1)", ""), "n")
    'off by 1'
    """
    note = escape_invisible(finding.message).removeprefix(f"{escape_invisible(name)}: ")
    if note.startswith("expected ") and ", got " in note:
        return note[:-1].rpartition(" (")[2] if note.endswith(")") else ""
    return "" if note in ("missing", "not expected") else note


def _find_status(
    name: str,
    pattern: CallPattern,
    actual: Mapping[str, JsonValue],
    finding: Finding | None,
    compared: OutcomeState | None,
) -> RowStatus:
    """Find what the report says of an argument: that a value fits its matcher only if a check that compared them passed it."""
    if finding is not None:
        return BY_CODE[finding.code]
    args = pattern.args or {}
    if name not in args:
        return "quiet"
    template = spell_template(args[name])
    if template == spell_template(IGNORED):
        return "ignored"
    if name not in actual:
        return "optional" if is_optional(args[name]) else "quiet"
    if equals(template, actual[name]):
        return "same"
    if compared == "open":
        return "open"
    counts = compared in ("passed", "failed") and read_weight(pattern.weights.get(name, 1.0)) > 0
    return "same" if counts else "quiet"


def _list_argument_findings(verdict: StepVerdict) -> dict[str, Finding]:
    """Map the findings on single arguments by name: wrong ones take precedence over close ones."""
    root = f"/steps/{verdict.index}/call/arguments/"
    findings: dict[str, Finding] = {}
    for outcome in verdict.outcomes.values():
        for finding in () if isinstance(outcome, Errored) else outcome.findings:
            if finding.code in BY_CODE and finding.path.startswith(root):
                name = finding.path.removeprefix(root).replace("~1", "/").replace("~0", "~")
                if name not in findings or findings[name].code == "close_match":
                    findings[name] = finding
    return findings


def _find_comparison(verdict: StepVerdict) -> OutcomeState | None:
    """Find what became of the comparison of arguments; None if the report does not say which check compares them."""
    named = [one for name, one in verdict.outcomes.items() if name == "arguments" or isinstance(one, MethodScore)]
    return find_state(named[0]) if named else None


def _narrow(marks: RootMarks | None, below: str) -> RootMarks | None:
    """Return the marks of one member, with pointers relative to it."""
    if marks is None:
        return None
    cut = len(below)
    leaves = {path[cut:]: mark for path, mark in marks.leaves.items() if path == below or path.startswith(f"{below}/")}
    spans = {path[cut:]: found for path, found in marks.spans.items() if path == below or path.startswith(f"{below}/")}
    return RootMarks(spans, leaves) if leaves or spans else None


class StateComparer(NamedTuple):
    """Compares the final state with the initial and the expected one."""

    state: State
    expected: StateExpectation | None

    def list_rows(self) -> Iterator[StateRow]:
        """Yield what changed, and what should have; nothing if the state was not captured."""
        state, expected = self.state, self.expected
        if "final" not in state.captured:
            return
        if expected is None:
            if "initial" in state.captured:
                yield from [self._build("changed", one, None) for one in diff(state.initial, state.final)]
            return
        view = DiffOptions(ignore=expected.ignore, keys=expected.keys)
        initial = state.initial if "initial" in state.captured else state.final
        try:
            due = expected.final if expected.changes is None else patch_state(initial, expected.changes)
        except InputError:  # the report says so
            return
        yield from self._list_compared(compare(initial, due, state.final, view), diff(initial, state.final, view))

    def _list_compared(self, progress: StateProgress, changes: tuple[JsonChange, ...]) -> Iterator[StateRow]:
        made_at = {change.path: change for change in changes}
        for change in progress.missing:
            yield self._build("missing", JsonChange("replace", change.path, change.before, change.before), change)
        for change in progress.wrong:
            yield from self._list_wrong(made_at.get(change.path, change), change)
        for change in progress.unexpected:
            yield self._build("unexpected", change, None)
        for change in progress.made:
            yield self._build("made", change, change)

    def _list_wrong(self, made: JsonChange, due: JsonChange) -> Iterator[StateRow]:
        """Yield a change that should have been another: of objects and lists, the members that differ."""
        if not (isinstance(made.after, dict | list) and type(made.after) is type(due.after)):
            yield self._build("wrong", made, due)
            return
        for inner in diff(due.after, made.after):
            path = f"{due.path}{inner.path}"
            is_removed, is_extra = inner.op == "remove", inner.op == "add"
            expected = None if is_extra else JsonChange("add", path, None, inner.before)
            row = self._build("wrong", JsonChange("add", path, None, inner.after), expected)
            yield replace(row, after=None) if is_removed else row

    def _build(self, status: str, change: JsonChange, due: JsonChange | None) -> StateRow:
        still = due.op if due is not None and status == "missing" else ""
        return StateRow(
            path=escape_invisible(change.path) or "(the whole)",
            status=status,  # pyright: ignore[reportArgumentType] (one of the names in `list_rows`)
            words=STATE_WORDS[status],
            before=None if "add" in (change.op, still) else build_cell(change.before, None),
            after=None if change.op == "remove" or still == "add" else build_cell(change.after, None),
            expected=None if due is None or due.op == "remove" else build_cell(due.after, None),
        )


STATE_WORDS: Mapping[str, str] = {
    "made": "as expected",
    "missing": "should have changed, and did not",
    "wrong": "changed to something else",
    "unexpected": "changed, but should not have",
    "changed": "changed",
}
