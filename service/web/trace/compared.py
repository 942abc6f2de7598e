"""Expected calls beside actual ones, argument by argument; and the state beside the one expected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, cast

from pydantic import BaseModel, JsonValue

from service.core.expectations.expectation import CallPattern, Expectation, StateExpectation
from service.core.expectations.state_changes import patch_state
from service.core.expectations.templates import BoundMatcher
from service.core.json.differences import DiffOptions, JsonChange, StateProgress, compare, diff
from service.core.json.pointers import escape_token
from service.core.json.values import equals
from service.core.outcome import Errored, Finding
from service.core.report import StepVerdict
from service.core.trace import State, Step
from service.errors import InputError
from service.web.trace.links import Links, RootMarks
from service.web.trace.marks import spell_unseen
from service.web.trace.payloads import Payload, PayloadChoices, build_cell

RowStatus = Literal["same", "close", "differs", "missing", "extra", "extra_ok", "open", "free"]

ROW_WORDS: Mapping[RowStatus, str] = {
    "same": "as expected",
    "close": "close enough",
    "differs": "differs",
    "missing": "missing",
    "extra": "not expected",
    "extra_ok": "not looked at",
    "open": "for a judge",
    "free": "left out, which is fine",
}
BY_CODE: Mapping[str, RowStatus] = {
    "wrong_argument": "differs",
    "missing_argument": "missing",
    "extra_argument": "extra",
    "close_match": "close",
}


@dataclass(frozen=True, slots=True)
class ArgumentRow:
    """One argument of a call beside what was expected of it."""

    name: str
    status: RowStatus
    words: str
    expected: Payload | None
    """None: nothing was expected of it."""
    actual: Payload | None
    """None: the call does not have it."""
    note: str = ""
    weight: str = ""
    """How much it counts, where the expectation says."""
    matcher: str = ""
    """The kind of matcher that compares; empty: by typed equality."""


@dataclass(frozen=True, slots=True)
class ExpectedCallView:
    """An expected call, for one that was made or for none."""

    path: str
    """Its pointer in the expectation."""
    tool: str
    reason: str
    rows: tuple[ArgumentRow, ...]
    free: bool
    """Whether it leaves the arguments free."""


@dataclass(frozen=True, slots=True)
class StateRow:
    """One place of the state."""

    path: str
    status: Literal["made", "missing", "wrong", "unexpected", "changed"]
    words: str
    before: Payload | None
    after: Payload | None
    expected: Payload | None


def list_patterns(expectation: Expectation | None) -> dict[str, CallPattern]:
    """The expected calls by their pointers."""
    if expectation is None:
        return {}
    return {
        path: pattern
        for section in expectation.list_sections().sections
        for wanted in section.expected_calls
        for path, pattern in wanted.options
    }


def spell_template(value: object) -> JsonValue:
    """What is expected as JSON: a matcher as the object that names it."""
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
    """Sets expected calls beside actual ones."""

    patterns: Mapping[str, CallPattern]
    links: Links
    choices: PayloadChoices

    def compare(self, step: Step, verdict: StepVerdict) -> ExpectedCallView | None:
        """The expected call that a step stands for; None where it stands for none."""
        pattern = self.patterns.get(verdict.expected or "")
        if pattern is None:
            return None
        if pattern.args is None or step.call.arguments is None:
            return self._build(verdict.expected or "", pattern, ())
        notes = _list_argument_findings(verdict)
        judged = _is_open(verdict)
        names = [*pattern.args, *[name for name in step.call.arguments if name not in pattern.args]]
        rows = [self._compare_argument(name, pattern, step, notes.get(name), open_=judged) for name in names]
        return self._build(verdict.expected or "", pattern, tuple(rows))

    def build_missing(self, path: str, tool: str) -> ExpectedCallView:
        """An expected call that was not made."""
        pattern = self.patterns.get(path)
        if pattern is None:
            return ExpectedCallView(path, tool, "", (), True)
        rows = [
            ArgumentRow(spell_unseen(name), "missing", "", payload, None, matcher=matcher)
            for name, value in (pattern.args or {}).items()
            for matcher, payload in [self._show_wanted(value)]
        ]
        return self._build(path, pattern, tuple(rows))

    def _build(self, path: str, pattern: CallPattern, rows: tuple[ArgumentRow, ...]) -> ExpectedCallView:
        return ExpectedCallView(
            path, spell_unseen(pattern.tool), spell_unseen(pattern.reason or ""), rows, pattern.args is None
        )

    def _compare_argument(
        self, name: str, pattern: CallPattern, step: Step, finding: Finding | None, *, open_: bool
    ) -> ArgumentRow:
        wanted, given = pattern.args or {}, step.call.arguments or {}
        status = _find_status(name, wanted, given, finding, open_=open_)
        token = escape_token(name)
        root = f"/steps/{step.index}/call/arguments"
        marks = _narrow(self.links.find_marks(root), f"/{token}")
        matcher, expected = self._show_wanted(wanted[name]) if name in wanted else ("", None)
        actual = self._show(given[name], f"{root}/{token}", marks) if name in given else None
        return ArgumentRow(
            name=spell_unseen(name),
            status=status,
            words=ROW_WORDS[status],
            expected=expected,
            actual=actual,
            note="" if finding is None else _shorten_note(finding, name),
            weight="" if name not in pattern.weights else str(pattern.weights[name]),
            matcher=matcher,
        )

    def _show_wanted(self, wanted: object) -> tuple[str, Payload]:
        """The kind of a matcher and what it compares with; no kind for a value."""
        value = spell_template(wanted)
        if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
            return "", self._show(value, "", None)
        rest = {name: item for name, item in value.items() if name != "kind"}
        return str(value["kind"]), self._show(rest["value"] if rest.keys() == {"value"} else rest, "", None)

    def _show(self, value: JsonValue, path: str, marks: RootMarks | None) -> Payload:
        return build_cell(value, path, marks, self.choices)


def _shorten_note(finding: Finding, name: str) -> str:
    """What a finding says beyond what stands beside it.

    >>> _shorten_note(Finding("wrong_argument", "n: expected 5, got 4 (off by 1)", ""), "n")
    'off by 1'
    """
    note = spell_unseen(finding.message).removeprefix(f"{spell_unseen(name)}: ")
    if note.startswith("expected ") and ", got " in note:
        return note[:-1].rpartition(" (")[2] if note.endswith(")") else ""
    return "" if note in ("missing", "not expected") else note


def _find_status(
    name: str,
    wanted: Mapping[str, object],
    given: Mapping[str, JsonValue],
    finding: Finding | None,
    *,
    open_: bool,
) -> RowStatus:
    if finding is not None:
        return BY_CODE[finding.code]
    if name not in wanted:
        return "extra_ok"
    if name not in given:
        return "free"
    template = spell_template(wanted[name])
    if equals(template, given[name]):
        return "same"
    return "open" if open_ and "natural_language" in str(template) else "same"


def _list_argument_findings(verdict: StepVerdict) -> dict[str, Finding]:
    """The findings on single arguments, by name: what is wrong goes before what is close."""
    root = f"/steps/{verdict.index}/call/arguments/"
    found: dict[str, Finding] = {}
    for outcome in verdict.outcomes.values():
        for finding in () if isinstance(outcome, Errored) else outcome.findings:
            if finding.code in BY_CODE and finding.path.startswith(root):
                name = finding.path.removeprefix(root).replace("~1", "/").replace("~0", "~")
                if name not in found or found[name].code == "close_match":
                    found[name] = finding
    return found


def _is_open(verdict: StepVerdict) -> bool:
    """Whether something of the arguments is left to a judge, or was judged."""
    outcome = verdict.outcomes.get("arguments")
    return outcome is not None and outcome.kind != "scored"


def _narrow(marks: RootMarks | None, below: str) -> RootMarks | None:
    """The marks of one member, from there on."""
    if marks is None:
        return None
    cut = len(below)
    leaves = {path[cut:]: mark for path, mark in marks.leaves.items() if path == below or path.startswith(f"{below}/")}
    spans = {path[cut:]: found for path, found in marks.spans.items() if path == below or path.startswith(f"{below}/")}
    return RootMarks(spans, leaves) if leaves or spans else None


class StateComparer(NamedTuple):
    """Sets the state afterwards beside the one before, and the one expected."""

    state: State
    wanted: StateExpectation | None
    choices: PayloadChoices

    def list_rows(self) -> Iterator[StateRow]:
        """What was changed, and what should have been; nothing where the state was not captured."""
        state, wanted = self.state, self.wanted
        if "final" not in state.captured:
            return
        if wanted is None:
            if "initial" in state.captured:
                yield from [self._build("changed", one, None) for one in diff(state.initial, state.final)]
            return
        view = DiffOptions(ignore=wanted.ignore, keys=wanted.keys)
        initial = state.initial if "initial" in state.captured else state.final
        try:
            due = wanted.final if wanted.changes is None else patch_state(initial, wanted.changes)
        except InputError:  # told by the report
            return
        yield from self._list_compared(compare(initial, due, state.final, view), diff(initial, state.final, view))

    def _list_compared(self, found: StateProgress, done: tuple[JsonChange, ...]) -> Iterator[StateRow]:
        made_at = {change.path: change for change in done}
        for change in found.missing:
            yield self._build("missing", JsonChange("replace", change.path, change.before, change.before), change)
        for change in found.wrong:
            yield from self._list_wrong(made_at.get(change.path, change), change)
        for change in found.unexpected:
            yield self._build("unexpected", change, None)
        for change in found.made:
            yield self._build("made", change, change)

    def _list_wrong(self, made: JsonChange, due: JsonChange) -> Iterator[StateRow]:
        """A change that should have been another: of objects and lists the members that differ."""
        if not (isinstance(made.after, dict | list) and type(made.after) is type(due.after)):
            yield self._build("wrong", made, due)
            return
        for inner in diff(due.after, made.after):
            path = f"{due.path}{inner.path}"
            gone, unwanted = inner.op == "remove", inner.op == "add"
            wanted = None if unwanted else JsonChange("add", path, None, inner.before)
            row = self._build("wrong", JsonChange("add", path, None, inner.after), wanted)
            yield replace(row, after=None) if gone else row

    def _build(self, status: str, change: JsonChange, due: JsonChange | None) -> StateRow:
        def show(value: JsonValue) -> Payload:
            return build_cell(value, f"/state/final{change.path}", None, self.choices)

        still = due.op if due is not None and status == "missing" else ""
        return StateRow(
            path=spell_unseen(change.path) or "(the whole)",
            status=status,  # pyright: ignore[reportArgumentType] (those that `list_rows` names)
            words=STATE_WORDS[status],
            before=None if "add" in (change.op, still) else show(change.before),
            after=None if change.op == "remove" or still == "add" else show(change.after),
            expected=None if due is None or due.op == "remove" else show(due.after),
        )


STATE_WORDS: Mapping[str, str] = {
    "made": "as expected",
    "missing": "should have changed, and did not",
    "wrong": "changed to something else",
    "unexpected": "changed, which nobody asked for",
    "changed": "changed",
}
