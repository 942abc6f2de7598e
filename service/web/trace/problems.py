"""What failed, what is open, and where the page shows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from service.core.report import OpenOutcome, Report, StepVerdict
from service.reporting.statements import OutcomeStatement, explain_gap, explain_low_score
from service.web.trace.marks import escape_invisible
from service.web.trace.places import PageParts
from service.web.trace.view import OpenView, ProblemView

MAX_PLACES = 12
"""Most places of one open criterion that are named."""
MAX_WORDS_CHARS = 300


def list_shown_problems(
    report: Report, statements: Sequence[OutcomeStatement], parts: PageParts
) -> tuple[ProblemView, ...]:
    """List what did not pass, what failed first before the rest; each once, whatever criteria say it.

    What counts as 0 only because something before it failed is left out, unless it says more than that.
    """
    problems = {(one.words, one.to): one for one in reversed(list(_iter_problems(report, statements, parts)))}
    return tuple(problems.values())[::-1]


def _iter_problems(report: Report, statements: Iterable[OutcomeStatement], parts: PageParts) -> Iterator[ProblemView]:
    for words in explain_low_score(report, statements):
        yield ProblemView(report.first_failing_stage or "", "score", "", words, "")
    for one in statements:
        for remark in one.list_remarks() if one.state in ("failed", "blocked") else ():
            to = parts.find_anchor(remark.path) if remark.path else ""
            yield ProblemView(one.stage, one.criterion, describe_where(one), clip_line(remark.words), to)


def describe_where(one: OutcomeStatement) -> str:
    """Describe what an outcome is about; empty for the whole trace."""
    if one.step is not None:
        return f"step {one.step + 1}, {escape_invisible(one.tool)}"
    return "an expected call" if one.expected is not None else "" if one.turn is None else f"turn {one.turn}"


def describe_problem(verdict: StepVerdict, statements: Iterable[OutcomeStatement], error: str) -> str:
    """Describe what is wrong with a step, in a few words. `error`: why its result is an error."""
    found = [
        clip_line(remark.words if remark else one.explain_gap())
        for one in statements
        if one.state in ("failed", "blocked")
        for remark in one.list_remarks()[:1] or [None]
    ]
    return found[0] if found else "not expected" if verdict.unexpected else error


def find_first_failing(report: Report, problems: tuple[ProblemView, ...], parts: PageParts) -> str:
    """Return the id of the part that shows what failed first, else of the first step that failed; empty if nothing did."""
    places = [one.to for one in problems if one.to] if report.verdict == "fail" else []
    places += [parts.find_anchor(f"/steps/{step.index}") for step in report.steps if step.verdict == "fail"]
    return places[0] if places else ""


def list_open_views(report: Report, parts: PageParts) -> tuple[OpenView, ...]:
    """List what is open, by criterion and reason; what the verdict waits for comes first."""
    groups: dict[tuple[str, str, bool], list[OpenOutcome]] = {}
    for one in report.open:
        groups.setdefault((one.criterion, explain_gap(one), one.decides), []).append(one)
    views = [
        OpenView(
            criterion=criterion,
            stage=members[0].stage,
            reason=clip_line(reason),
            decides=decides,
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


def clip_line(words: str) -> str:
    """Cut words that are too long, and make them safe to show."""
    return escape_invisible(words if len(words) <= MAX_WORDS_CHARS else f"{words[:MAX_WORDS_CHARS]}…")
