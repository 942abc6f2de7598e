"""What a report says: of each outcome, criterion and score, and of the verdict. All views take it from here, so none says more.

Statements come in the order in which a reader needs them: the first failing stage, then what failed at others, what failed only
because of that, what is open, what was not checked, and what passed.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from service.core.conclusion.judge_answers import NO_JUDGE
from service.core.grounding.origins import GroundedScore, GroundedSkip
from service.core.judging.judged_outcomes import JudgedScore, MixedScore
from service.core.outcome import Errored, Finding, OpenPart, Outcome, PartlyOpenScore, Scored, Skipped
from service.core.report import OpenOutcome, Report, ReportOutcome, StageScore
from service.core.rubric import STAGES, Stage
from service.core.scores import TOLERANCE
from service.reporting.numbers import render_number, render_share

OutcomeState = Literal["failed", "blocked", "open", "unchecked", "passed", "absent"]
"""What became of an outcome, in the order of telling. blocked: not checked because an earlier check failed, and counts as 0.
open: an answer could still change it. unchecked: left out of the score. absent: there was nothing to check."""

_RANKS: dict[OutcomeState, int] = {"failed": 0, "blocked": 1, "open": 2, "unchecked": 3, "passed": 4, "absent": 5}
PASSING = ("pass", "warn")
"""Verdicts that pass. `undecided` does not: silence is never a pass."""
NEEDS_JUDGE = "needs a judge"
NOTHING_WRONG = "null_agent"
"""The code of a finding that compares, and reports nothing wrong."""
_STEP = re.compile(r"/steps/(\d{1,9})(?:/|$)")


class Remark(NamedTuple):
    """Something to say: a finding with its code and the pointer to what it is about, or words without either."""

    words: str
    path: str = ""
    code: str = ""

    @property
    def text(self) -> str:
        """The words after the code, which `callgrade explain` looks up."""
        return f"{self.code}: {self.words}" if self.code else self.words


class OutcomeStatement(NamedTuple):
    """One outcome of a report. `step`, `turn` and `expected` say what it is about; all None: the whole trace."""

    criterion: str
    stage: Stage
    step: int | None
    turn: int | None
    expected: str | None
    tool: str
    """The tool of the call, or of the missing call; empty if it is about neither."""
    state: OutcomeState
    outcome: ReportOutcome

    def list_remarks(self, *, said: Container[str] = ()) -> list[Remark]:
        """List what its check found. `said`: codes of findings to leave out. Why it has no score is `explain_gap`."""
        outcome = self.outcome
        reason = "" if isinstance(outcome, Scored) else outcome.reason
        findings = () if isinstance(outcome, Errored) else outcome.findings
        findings = [one for one in findings if one.code != NOTHING_WRONG and one.message != reason]
        remarks = [Remark(render_finding(one), one.path, one.code) for one in findings if one.code not in said]
        if self.state == "failed" and isinstance(outcome, Scored) and not findings:
            remarks.append(Remark(f"{self.criterion} did not pass ({render_number(outcome.value)})"))
        parts = outcome.open_parts if isinstance(outcome, PartlyOpenScore) else ()
        gaps = [f"{self.criterion}: {explain_gap(one)}" for one in parts]
        return [*remarks, *[Remark(gap) for gap in gaps]]

    def explain_gap(self) -> str:
        """Explain why it has no score of its own; empty if it has."""
        return "" if isinstance(self.outcome, Scored) else explain_gap(self.outcome, self.state)


def find_state(outcome: Outcome) -> OutcomeState:
    """Find what became of an outcome."""
    if isinstance(outcome, Scored):
        return "passed" if outcome.passed else "failed"
    if isinstance(outcome, Errored) or outcome.open:
        return "open"
    if outcome.cause == "blocked":
        return "blocked"
    return "absent" if outcome.cause == "not_applicable" else "unchecked"


def list_statements(report: Report) -> list[OutcomeStatement]:
    """List every outcome of a report in the order of telling: the first failing stage before all others."""
    first = report.first_failing_stage
    return sorted(
        _iter_statements(report),
        key=lambda one: (one.stage != first, _RANKS[one.state], STAGES.index(one.stage), _find_step(one)),
    )


def _iter_statements(report: Report) -> Iterator[OutcomeStatement]:
    missing = {one.expected: one.tool for one in report.missing}
    for criterion in report.criteria:
        name, stage = criterion.id, criterion.stage
        for step in report.steps:
            outcome = step.outcomes.get(name)
            if outcome is not None:
                yield OutcomeStatement(name, stage, step.index, None, None, step.tool, find_state(outcome), outcome)
        for one in criterion.outcomes:
            tool = missing.get(one.expected or "", "")
            state, outcome = find_state(one.outcome), one.outcome
            yield OutcomeStatement(name, stage, None, one.turn, one.expected, tool, state, outcome)


def _find_step(one: OutcomeStatement) -> float:
    """Find the step that it is about, or that its first finding leads to."""
    findings = () if one.step is not None or isinstance(one.outcome, Errored) else one.outcome.findings
    step = find_step_index(findings[0].path) if findings else one.step
    return float("inf") if step is None else step


def find_step_index(path: str) -> int | None:
    """Find the index of the step that a pointer leads into; None if it leads elsewhere."""
    match = _STEP.match(path)
    return None if match is None else int(match[1])


def list_remarks(statements: Iterable[OutcomeStatement]) -> list[Remark]:
    """List what the checks found, each once, in the same order."""
    remarks: dict[tuple[str, str], Remark] = {}
    for remark in (remark for one in statements for remark in one.list_remarks()):
        remarks.setdefault((remark.words, remark.path), remark)
    return list(remarks.values())


def render_remark(remark: Remark, report: Report) -> str:
    """Render a remark with its pointer, after the number and tool of the step if it leads into one."""
    step = find_step_index(remark.path)
    tool = "" if step is None or step >= len(report.steps) else f"step {step + 1}, {report.steps[step].tool}: "
    where = f"{tool}{remark.path}"
    return f"{remark.text} ({where})" if where else remark.text


def fold_states(statements: Iterable[OutcomeStatement]) -> dict[str, OutcomeState]:
    """Fold the states of each criterion: it passed only if every outcome passed, apart from those with nothing to check."""
    folded: dict[str, OutcomeState] = {}
    for one in statements:
        folded[one.criterion] = min(folded.get(one.criterion, "absent"), one.state, key=lambda state: _RANKS[state])
    return folded


def list_gaps(gaps: Iterable[tuple[str, str]]) -> list[str]:
    """Say what is missing in a line for each reason, from pairs of criterion and reason.

    >>> list_gaps([("a", "needs a judge"), ("b", "needs a judge"), ("a", "not checked: too long")])
    ['a, b: need a judge', 'a: not checked: too long']
    """
    criteria: dict[str, dict[str, None]] = {}
    for criterion, reason in gaps:
        criteria.setdefault(reason, {})[criterion] = None
    lines: list[str] = []
    for reason, names in criteria.items():
        words = reason.replace("needs ", "need ", 1) if len(names) > 1 and reason.startswith("needs ") else reason
        lines.append(f"{', '.join(names)}: {words}")
    return lines


def explain_gap(one: Errored | Skipped | OpenOutcome | OpenPart, state: OutcomeState = "open") -> str:
    """Explain why something has no score, after the name of its criterion and a colon."""
    if one.kind == "errored":
        return f"could not be checked: {one.reason}"
    if one.reason == NO_JUDGE:
        return NEEDS_JUDGE
    if state == "blocked":
        return f"not checked because {one.reason.removeprefix('blocked by ')} failed (counts 0)"
    return f"undecided: {one.reason}" if state == "open" else f"not checked ({one.reason})"


def list_waits(report: Report) -> list[str]:
    """Say in a line for each reason which criteria an undecided verdict waits for."""
    if report.verdict != "undecided":
        return []
    waits = list_gaps((one.criterion, explain_gap(one)) for one in report.open if one.decides)
    return waits or [f"too little was checked: the rubric asks for at least {render_share(report.rubric.min_coverage)}"]


def list_reasons(report: Report) -> list[Remark]:
    """List why a report is no plain pass, first what failed first; for one that passes, what its checks noted."""
    statements = list_statements(report)
    first = [*list_waits(report), *explain_low_score(report, statements)]
    return [*[Remark(words) for words in first], *list_remarks(statements)]


def explain_low_score(report: Report, statements: Iterable[OutcomeStatement]) -> list[str]:
    """Say that the score is too low, if the verdict is fail and no outcome of the first failing stage says why."""
    stage = report.first_failing_stage
    explained = any(one.state == "failed" and stage in (one.stage, None) for one in statements)
    return [f"the score of {stage or 'the trace'} is too low"] if report.verdict == "fail" and not explained else []


def is_measured(report: Report, stage: StageScore) -> bool:
    """Whether enough of a stage was checked for its score to mean something."""
    return stage.coverage is not None and stage.coverage >= report.rubric.min_coverage - TOLERANCE


def read_score(report: Report) -> float | None:
    """Read the score to show: None where less was checked than the rubric asks for."""
    return report.score if report.is_measured else None


def describe_score(report: Report) -> str:
    """Describe the score with its range and how much was checked; empty if nothing applied."""
    if report.coverage is None:
        return ""
    low, high = report.gate_range or (0.0, 1.0)
    between = f"between {render_number(low)} and {render_number(high)}"
    if not report.is_measured:
        return f"score {between}"
    figure = f"score {render_number(report.score)}" + (f" ({between})" if low != high else "")
    return f"{figure}, coverage {render_share(report.coverage)}"


def describe_verdict(report: Report) -> str:
    """Describe the verdict in a few words, with how little was checked if that was too little."""
    stage, passing = report.first_failing_stage, {"pass": "passed", "warn": "passed with a warning"}
    if report.verdict == "not_applicable":
        return "not applicable: the rubric has no criterion for this trace"
    failed = f"failed at {stage}" if stage else "failed: the score is too low"
    words = {"fail": failed, "undecided": "undecided", **passing}[report.verdict]
    words += " by code alone" if report.verdict in passing and report.scope == "code" else ""
    return words if report.is_measured else f"{words} ({render_share(report.coverage)} checked)"


def describe_result(report: Report) -> str:
    """Describe verdict and score."""
    return ", ".join(filter(None, [describe_verdict(report), describe_score(report)]))


def describe_open(report: Report) -> list[str]:
    """Say which open questions the verdict needs and which not, or what else leaves it undecided."""
    lines: list[str] = []
    for needed in (True, False):
        names = [one.criterion for one in report.open if one.decides is needed]
        count = "1 open question" if len(names) == 1 else f"{len(names)} open questions"
        words = "needed for the verdict" if needed else "not needed for the verdict"
        lines += [f"{count}, {words}: {', '.join(dict.fromkeys(names))}"] if names else []
    lines = lines if any(one.decides for one in report.open) else [*list_waits(report), *lines]
    return lines + describe_unfound(report)


MAX_UNFOUND = 3
"""Values that a view lists of those that are in no result."""


def describe_unfound(report: Report) -> list[str]:
    """Name the values of the answer that no result holds, where no judge looks at them: nothing else says so."""
    if report.scope != "code":
        return []
    outcomes = [each.outcome for one in report.criteria for each in one.outcomes]
    found = [value for one in outcomes if isinstance(one, GroundedScore | GroundedSkip) for value in one.grounding]
    unfound = [one for one in found if one.origin == "nowhere" and one.code is None]
    if not unfound:
        return []
    shown = [f"{one.value} (nearest: {one.nearest[0].value})" if one.nearest else f"{one.value}" for one in unfound]
    more = [f"and {len(unfound) - MAX_UNFOUND} more"] if len(unfound) > MAX_UNFOUND else []
    what, values = "a value" if len(unfound) == 1 else "values", ", ".join([*shown[:MAX_UNFOUND], *more])
    return [f"the answer has {what} that no result holds, and no judge checked it: {values}"]


def describe_calibration(report: Report) -> str:
    """Describe how many judged outcomes are calibrated; empty if nothing was judged."""
    counts = report.calibration
    parts = [(counts.calibrated, "calibrated against human labels"), (counts.uncalibrated, "uncalibrated")]
    parts.append((counts.left_open, "left open by their calibration"))
    kinds = [f"{count} {what}" for count, what in parts if count]
    what = "1 judged outcome" if counts.judged == 1 else f"{counts.judged} judged outcomes"
    return f"{what}: {', '.join(kinds)}" if counts.judged else ""


def list_uncertified(report: Report) -> list[str]:
    """List the criteria in which a judge decided something whose fit was not certified; `judges` where the report names none."""
    if not report.calibration.uncertified:
        return []
    of_steps = [(name, outcome) for step in report.steps for name, outcome in step.outcomes.items()]
    others = [(criterion.id, one.outcome) for criterion in report.criteria for one in criterion.outcomes]
    found = [*of_steps, *others]
    alone = {name for name, one in found if isinstance(one, JudgedScore) and not one.calibration.certified}
    mixed = {name for name, one in found if isinstance(one, MixedScore) and one.certified < len(one.calibrations)}
    return sorted(alone | mixed) or ["judges"]


def describe_uncertified(counts: Mapping[str, int]) -> str:
    """Say in how many traces each criterion was decided without a certificate, and what to do."""
    each = ", ".join(f"{name} ({count} trace{'' if count == 1 else 's'})" for name, count in sorted(counts.items()))
    advice = "certify the fit of each (callgrade calibrate certify RUN, then install RUN again) and score again"
    return f"not certified: {each}; {advice}, or pass --judges off"


def render_finding(finding: Finding) -> str:
    """Return a finding's message, prefixed with its argument unless the message begins with it.

    >>> render_finding(Finding("schema_required", "required, and missing", "/steps/0/call/arguments/order_id"))
    'order_id: required, and missing'
    """
    _, _, argument = finding.path.partition("/call/arguments/")
    return finding.message if finding.message.startswith(argument) else f"{argument}: {finding.message}"
