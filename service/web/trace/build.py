"""Turn a scored request into what a person reads. Pure, and linear in the size of the trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from pydantic import JsonValue

from service.core.expectations.expectation import Expectation
from service.core.expectations.merging import leave_out_arguments
from service.core.json.values import format_value
from service.core.outcome import Errored
from service.core.report import Report, StepVerdict
from service.core.scores import Verdict
from service.core.trace import State, Step, Trace
from service.reporting.statements import (
    OutcomeStatement,
    describe_calibration,
    describe_score,
    describe_verdict,
    is_measured,
    list_statements,
)
from service.web.trace.comparison import BY_CODE, CallComparer, StateComparer, StateRow, list_patterns
from service.web.trace.grounding import Links, list_values
from service.web.trace.marks import escape_invisible
from service.web.trace.outcomes import OutcomeView, build_outcome, split_outcomes
from service.web.trace.payloads import Payload, build_payload
from service.web.trace.places import (
    MAX_SHOWN,
    QUIET,
    PageParts,
    VisibleParts,
    choose_visible,
    find_step,
    has_final_state,
)
from service.web.trace.problems import (
    describe_problem,
    describe_where,
    find_first_failing,
    list_open_views,
    list_shown_problems,
)
from service.web.trace.provenance import describe_usage, list_provenance, list_tools
from service.web.trace.view import QuietSteps, StageView, StepView, StripView, TextView, TraceView, TurnView

MAX_STRIP = 300
"""Most steps in the row of all; of a longer trace the row has those that did not pass."""
MAX_PROBLEMS = 12
MIN_FOLDED = 12
"""Calls in a row without a problem that are folded into one line."""
MAX_STEPS = 10_000_000
MAX_BRIEF_CHARS = 100


class ScoredTrace(NamedTuple):
    """The source of a page. Without a trace the page shows only the report."""

    report: Report
    trace: Trace | None = None
    expectation: Expectation | None = None
    expected: JsonValue = None
    """The expectation as it was sent."""
    name: str = ""
    """The name of the trace on the page; empty: its own id."""


def build_trace_view(scored: ScoredTrace, *, prefix: str = "") -> TraceView:
    """Build the page of one scored trace.

    `prefix` precedes every id, so that several traces can share a page; use letters, digits and hyphens.
    """
    values = [] if scored.trace is None else list_values(scored.report)
    against = [find_step(path, MAX_STEPS) for one, sign in values if sign == "wrong" for path in one.sources]
    refuting = frozenset([number - 1 for number in against if number])
    errors = _list_errors(scored)
    visible = choose_visible(scored.report, scored.trace, refuting | errors.keys())
    links = Links(scored.trace, prefix, visible)
    for one, sign in values:
        links.add(one, sign)
    statements = list_statements(scored.report)
    return _Builder(scored, prefix, links, refuting, errors, visible, statements).build()


def _list_errors(scored: ScoredTrace) -> dict[int, str]:
    """Say of each step whose result is an error, or may be one, why: by its source, or as the report noted."""
    steps = () if scored.trace is None else scored.trace.steps
    errors = {
        one.index: "the tool reported an error" for one in steps if one.result is not None and one.result.is_error
    }
    kinds = {"error_in_result": "an error", "likely_error": "perhaps an error"}
    noted = [(find_step(note.path, MAX_STEPS), note) for note in scored.report.notes if note.code in kinds]
    return errors | {step - 1: f"{kinds[note.code]}: {note.message}" for step, note in noted if step}


class _Builder(NamedTuple):
    scored: ScoredTrace
    prefix: str
    links: Links
    refuting: frozenset[int]
    """The steps with results or arguments that contradict what was said."""
    errors: Mapping[int, str]
    """The steps whose results are errors, and why."""
    visible: VisibleParts
    statements: Sequence[OutcomeStatement]

    def build(self) -> TraceView:
        report, trace = self.scored.report, self.scored.trace
        output = None if trace is None else trace.output
        parts = self._list_parts()
        problems = list_shown_problems(report, self.statements, parts)
        first = find_first_failing(report, problems, parts)
        expectation = None if trace is None else leave_out_arguments(self.scored.expectation, trace)
        comparer = CallComparer(list_patterns(expectation), self.links)
        steps = self._build_steps(comparer, first, {one.to: one.words for one in reversed(problems)})
        state, loose, strip = tuple[StateRow, ...](), self._group_loose(parts), self._build_strip()
        expected_state = None if self.scored.expectation is None else self.scored.expectation.state
        if trace is not None and (trace.state is not None or expected_state is not None):
            state = tuple(StateComparer(trace.state or State(), expected_state).list_rows())
        scores = {one.stage: one.score for one in report.stages if is_measured(report, one)}
        return TraceView(
            name=escape_invisible(self.scored.name or report.trace_id or "trace"),
            prefix=self.prefix,
            verdict=report.verdict,
            verdict_words=describe_verdict(report),
            score_words=describe_score(report),
            rubric=f"{report.rubric.id}@{report.rubric.version}",
            format=report.format,
            problems=problems[:MAX_PROBLEMS],
            more_problems=max(0, len(problems) - MAX_PROBLEMS),
            first_failing=first,
            open=list_open_views(report, parts),
            stages=tuple(
                [
                    StageView(one.stage, one.verdict, scores.get(one.stage), one.stage == report.first_failing_stage)
                    for one in report.stages
                ]
            ),
            strip=strip,
            strip_left_out=len(report.steps) - len(strip),
            steps=len(report.steps),
            steps_left_out=len(report.steps) - len(steps),
            texts_left_out=sum(bool(one.text) for one in trace.messages) - len(self.visible.texts) if trace else 0,
            turns=self._build_turns(steps, loose),
            missing=tuple([comparer.build_missing(one.expected, one.tool) for one in report.missing[:MAX_SHOWN]]),
            missing_left_out=max(0, len(report.missing) - MAX_SHOWN),
            loose_outcomes=tuple(_list_loud(loose.get(None, ()))),
            state=state,
            state_note="nothing differs" if not state and trace is not None and has_final_state(trace) else "",
            expectation=None if self.scored.expected is None else self._show(self.scored.expected, "/expected"),
            output=self._show(output.content, "/output/content") if output is not None and output.captured else None,
            tools=list_tools(trace, report),
            unread=tuple([(escape_invisible(part.path), escape_invisible(part.reason)) for part in report.unread]),
            notes=tuple([escape_invisible(f"{note.message} ({note.path})") for note in report.notes]),
            not_asked=tuple(dict.fromkeys([f"{one.criterion} ({one.judge}): {one.why}" for one in report.not_asked])),
            calibration=describe_calibration(report),
            provenance=tuple(list_provenance(report)),
            has_trace=trace is not None,
        )

    def _list_parts(self) -> PageParts:
        report, trace = self.scored.report, self.scored.trace
        texts = () if trace is None else [trace.messages[n].turn for n in self.visible.texts]
        steps = (report if trace is None else trace).steps
        return PageParts(
            prefix=self.prefix,
            steps=len(report.steps),
            visible=self.visible,
            turns=frozenset([*texts, *[step.turn for step in steps if step.index in self.visible.steps]]),
            missing=frozenset([one.expected for one in report.missing]),
            trace=trace,
            expected=self.scored.expected is not None,
        )

    def _show(self, value: JsonValue, path: str) -> Payload:
        return build_payload(value, self.links.marks.get(path))

    def _build_steps(self, comparer: CallComparer, first: str, problems: Mapping[str, str]) -> Mapping[int, StepView]:
        """Build the visible steps, by their position in the report. `problems`: what leads to a part, by its id."""
        trace_steps = () if self.scored.trace is None else self.scored.trace.steps
        of_steps: dict[int, list[OutcomeStatement]] = {}
        for one in self.statements:
            if one.step in self.visible.steps:
                of_steps.setdefault(one.step, []).append(one)
        return {
            n: self._build_step(
                verdict,
                trace_steps[n] if n < len(trace_steps) else None,
                comparer,
                of_steps.get(verdict.index, []),
                first,
                problems,
            )
            for n, verdict in enumerate(self.scored.report.steps)
            if verdict.index in self.visible.steps
        }

    def _build_step(
        self,
        verdict: StepVerdict,
        step: Step | None,
        comparer: CallComparer,
        statements: Sequence[OutcomeStatement],
        first: str,
        problems: Mapping[str, str],
    ) -> StepView:
        anchor = f"{self.prefix}step-{verdict.index}"
        root = f"/steps/{verdict.index}"
        expected = None if step is None else comparer.compare(step, verdict)
        already_said = BY_CODE if expected is not None and expected.rows else ()
        loud, others = split_outcomes(statements, already_said)
        error = escape_invisible(self.errors.get(verdict.index, ""))
        result = None if step is None else step.result
        marks = self.links.marks.get(f"{root}/call/arguments")
        return StepView(
            kind="step",
            anchor=anchor,
            number=verdict.index + 1,
            tool=escape_invisible(verdict.tool),
            brief="" if step is None else _describe_briefly(step),
            sign=_find_sign(verdict, error),
            verdict=verdict.verdict,
            problem=describe_problem(verdict, statements, error) or problems.get(anchor, ""),
            open=anchor == first or verdict.index in self.refuting,
            unexpected=verdict.unexpected,
            retry=None if verdict.retry is None else verdict.retry + 1,
            arguments=self._build_arguments(step) if expected is None or not expected.rows else None,
            arguments_mark=marks.leaves.get("") if marks is not None else None,
            arguments_problem="" if step is None else _describe_arguments(step),
            expected=expected,
            origins=self.links.values.get(f"{root}/call/arguments", ()),
            result=None if result is None else self._show(result.content, f"{root}/result/content"),
            result_problem="the trace has no result of this call" if step is not None and result is None else error,
            forms=verdict.result_forms,
            outcomes=loud,
            others=others,
            usage=describe_usage(verdict.usage),
        )

    def _build_arguments(self, step: Step | None) -> Payload | None:
        if step is None or not step.call.captured:
            return None
        value = step.call.raw if step.call.arguments is None else dict(step.call.arguments)
        return self._show(value, f"/steps/{step.index}/call/arguments")

    def _build_turns(
        self, steps: Mapping[int, StepView], loose: Mapping[int | None, Sequence[OutcomeView]]
    ) -> tuple[TurnView, ...]:
        """Build the turns in order, each with its texts and calls as they came."""
        events: dict[int, list[TextView | StepView]] = {}
        for turn, event in self._iter_events(steps, loose):
            events.setdefault(turn, []).append(event)
        return tuple([TurnView(turn, tuple(_fold_quiet(events[turn]))) for turn in sorted(events)])

    def _iter_events(
        self, steps: Mapping[int, StepView], loose: Mapping[int | None, Sequence[OutcomeView]]
    ) -> Iterator[tuple[int, TextView | StepView]]:
        trace = self.scored.trace
        if trace is None:
            yield from [(self.scored.report.steps[n].turn, view) for n, view in steps.items()]
            return
        visible_steps = [(trace.steps[n], view) for n, view in steps.items() if n < len(trace.steps)]
        waiting = sorted(visible_steps, key=lambda pair: (pair[0].message, pair[0].index))
        at = 0
        for n, message in enumerate(trace.messages):
            if n in self.visible.texts:
                yield message.turn, self._build_text(n, message.role, message.text, loose.get(n, ()))
            while at < len(waiting) and waiting[at][0].message <= n:
                yield waiting[at][0].turn, waiting[at][1]
                at += 1
        yield from [(step.turn, view) for step, view in waiting[at:]]

    def _build_text(self, number: int, role: str, text: str, outcomes: Sequence[OutcomeView]) -> TextView:
        path = f"/messages/{number}/text"
        payload = self._show(text, path)
        return TextView(
            kind="text",
            anchor=f"{self.prefix}text-{number}",
            role=role,
            text=payload,
            field=payload.whole,
            values=self.links.values.get(path, ()),
            problems=tuple(_list_loud(outcomes)),
        )

    def _group_loose(self, parts: PageParts) -> Mapping[int | None, list[OutcomeView]]:
        """Group the outcomes that belong to no step: by the message that shows them, None for those without one."""
        grouped: dict[int | None, list[OutcomeView]] = {}
        last = self._find_last_texts()
        for one in self.statements:
            if one.step is None:
                place = self._find_message(one, parts, last)
                where = (describe_where(one) or "the whole trace") if place is None else ""
                grouped.setdefault(place, []).append(build_outcome(one, where))
        return grouped

    def _find_last_texts(self) -> Mapping[int, int]:
        """Map each turn to the last message with a text of the assistant."""
        messages = () if self.scored.trace is None else self.scored.trace.messages
        return {one.turn: n for n, one in enumerate(messages) if one.role == "assistant" and n in self.visible.texts}

    def _find_message(self, one: OutcomeStatement, parts: PageParts, last: Mapping[int, int]) -> int | None:
        """Find the message that an outcome is about: that of its first finding, else the assistant's last in its turn."""
        outcome = one.outcome
        if one.state in ("unchecked", "absent"):
            return None
        path = "" if isinstance(outcome, Errored) or not outcome.findings else outcome.findings[0].path
        number = parts.find_message(path) if path else None
        if number is not None:
            return number
        return last.get(one.turn) if one.turn is not None and one.stage == "integrate" else None

    def _build_strip(self) -> tuple[StripView, ...]:
        steps = self.scored.report.steps
        if len(steps) > MAX_STRIP:
            loud = [one for one in steps if one.verdict not in QUIET or one.index in self.errors]
            steps = [one for one in loud if one.index in self.visible.steps][:MAX_STRIP]
        return tuple(
            [
                StripView(
                    f"{self.prefix}step-{one.index}", one.index + 1, _find_sign(one, self.errors.get(one.index, ""))
                )
                for one in steps
            ]
        )


def _fold_quiet(events: Sequence[TextView | StepView]) -> Iterator[TextView | StepView | QuietSteps]:
    """Fold long rows of calls without a problem."""
    for quiet, row in groupby(
        events, lambda one: isinstance(one, StepView) and one.verdict in QUIET and not (one.open or one.problem)
    ):
        row_events = list(row)
        steps = [one for one in row_events if isinstance(one, StepView)]
        if quiet and len(steps) >= MIN_FOLDED:
            yield QuietSteps("quiet", tuple(steps))
        else:
            yield from row_events


def _list_loud(outcomes: Sequence[OutcomeView]) -> Sequence[OutcomeView]:
    """List outcomes that failed, were blocked, are open, or were judged."""
    return [one for one in outcomes if one.sign in ("fail", "blocked", "open") or one.judges]


def _find_sign(verdict: StepVerdict, error: str) -> Verdict:
    """Find the sign of a step: a call whose result is an error gets no tick, even if it was the right call."""
    return "warn" if error and verdict.verdict == "pass" else verdict.verdict


def _describe_briefly(step: Step) -> str:
    if step.call.arguments is None:
        return "arguments that are not an object" if step.call.captured else "arguments not captured"
    text = ", ".join([f"{name}: {format_value(value, 40)}" for name, value in list(step.call.arguments.items())[:6]])
    return escape_invisible(text if len(text) <= MAX_BRIEF_CHARS else f"{text[:MAX_BRIEF_CHARS]}…").replace("\n", " ")


def _describe_arguments(step: Step) -> str:
    if not step.call.captured:
        return "the trace does not contain the arguments"
    return escape_invisible(step.call.problem or "") if step.call.arguments is None else ""
