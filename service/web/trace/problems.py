"""What broke, what is open, and where the page shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from service.core.outcome import Errored, Scored, Skipped
from service.core.report import OpenOutcome, Report, ReportOutcome, StepVerdict
from service.core.scores import Verdict
from service.reporting.findings import render_finding
from service.web.trace.marks import escape_invisible
from service.web.trace.outcomes import find_sign
from service.web.trace.places import PageParts
from service.web.trace.view import OpenView, ProblemView

MAX_PLACES = 12
"""Most places of one open criterion that are named."""
MAX_WORDS_CHARS = 300
NO_PROBLEM = "null_agent"
"""The code of a finding that compares, and reports nothing wrong."""

_VERDICT_SENTENCES: Mapping[Verdict, str] = {
    "pass": "It passed: nothing that is open could change that.",
    "warn": "It passed, with a score between warn and pass.",
    "not_applicable": "Nothing that the rubric looks at applies to it.",
}


def describe_verdict(report: Report) -> str:
    """Describe the verdict in a sentence."""
    if report.verdict == "fail":
        return f"It failed{f', first at {report.first_failing_stage}' if report.first_failing_stage else ''}."
    if report.verdict == "undecided":
        is_waiting = any(one.decides for one in report.open)
        reason = "the verdict waits for what is open" if is_waiting else "too little was checked for a verdict"
        return f"It is undecided: {reason}."
    return _VERDICT_SENTENCES[report.verdict]


def list_problems(report: Report, parts: PageParts) -> tuple[ProblemView, ...]:
    """List what did not pass, in the order of the contract, then of the trace; each once, whatever criteria say it.

    What counts as 0 only because something before it failed is left out, unless it says more than that.
    """
    ranks = {stage.stage: n for n, stage in enumerate(report.stages)}
    problems = sorted(
        _iter_problems(report, parts), key=lambda one: (one[0], ranks.get(one[1].stage, len(ranks)))
    )  # stable: steps stay in order
    return tuple({(one.words, one.to): one for _, one in reversed(problems)}.values())[::-1]


def _iter_problems(report: Report, parts: PageParts) -> Iterator[tuple[bool, ProblemView]]:
    """Yield each problem, and whether it only follows from another."""
    for criterion in report.criteria:
        for loose in criterion.outcomes:
            where = f"turn {loose.turn}" if loose.turn is not None else ""
            yield from _list_outcome_problems(criterion.stage, criterion.id, loose.outcome, where, parts)
    stages = {criterion.id: criterion.stage for criterion in report.criteria}
    for step in report.steps:
        failed = [(name, outcome) for name, outcome in step.outcomes.items() if find_sign(outcome) == "fail"]
        where = f"step {step.index + 1}, {escape_invisible(step.tool)}" if failed else ""
        for name, outcome in failed:
            yield from _list_outcome_problems(stages.get(name, ""), name, outcome, where, parts)


def _list_outcome_problems(
    stage: str, criterion: str, outcome: ReportOutcome, where: str, parts: PageParts
) -> Iterator[tuple[bool, ProblemView]]:
    if find_sign(outcome) != "fail" or isinstance(outcome, Errored):
        return
    messages = [(render_finding(finding), finding.path) for finding in outcome.findings if finding.code != NO_PROBLEM]
    if isinstance(outcome, Scored):
        messages = messages or [(f"{criterion} did not pass", "")]
    for words, path in messages:
        problem = ProblemView(stage, criterion, where, _clip(words), parts.find_anchor(path) if path else "")
        yield isinstance(outcome, Skipped), problem


def describe_problem(verdict: StepVerdict) -> str:
    """Describe what is wrong with a step, in a few words."""
    for name, outcome in verdict.outcomes.items():
        if isinstance(outcome, Scored) and not outcome.passed:
            return _clip(render_finding(outcome.findings[0]) if outcome.findings else f"{name} did not pass")
    if verdict.unexpected:
        return "a call too many"
    for outcome in verdict.outcomes.values():
        if isinstance(outcome, Skipped) and outcome.cause == "blocked":
            return _clip(render_finding(outcome.findings[0]) if outcome.findings else outcome.reason)
    return ""


def find_first_failing(report: Report, problems: tuple[ProblemView, ...], parts: PageParts) -> str:
    """Return the id of the first failed step; without one, of the first other place that shows a problem."""
    for step in report.steps:
        if step.verdict == "fail":
            return parts.find_anchor(f"/steps/{step.index}")
    return next((one.to for one in problems if one.to), "") if report.verdict == "fail" else ""


def list_open_views(report: Report, parts: PageParts) -> tuple[OpenView, ...]:
    """List what is open, by criterion and reason; what the verdict waits for comes first."""
    groups: dict[tuple[str, str, bool], list[OpenOutcome]] = {}
    for one in report.open:
        groups.setdefault((one.criterion, one.reason, one.decides), []).append(one)
    views = [
        OpenView(
            criterion=criterion,
            stage=members[0].stage,
            reason=_clip(reason),
            decides=decides,
            fault=members[0].kind == "errored",
            count=len(members),
            places=tuple([_build_place(one, parts) for one in members[:MAX_PLACES]]),
        )
        for (criterion, reason, decides), members in groups.items()
    ]
    return tuple(sorted(views, key=lambda one: not one.decides))


def _build_place(one: OpenOutcome, parts: PageParts) -> tuple[str, str]:
    if one.step is not None:
        return f"step {one.step + 1}", parts.find_anchor(f"/steps/{one.step}")
    if one.expected is not None:
        return "an expected call", parts.find_anchor(one.expected)
    return ("the whole trace", "") if one.turn is None else (f"turn {one.turn}", parts.find_turn(one.turn))


def _clip(words: str) -> str:
    return escape_invisible(words if len(words) <= MAX_WORDS_CHARS else f"{words[:MAX_WORDS_CHARS]}…")
