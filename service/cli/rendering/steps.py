"""Show one report: the steps of the contract in a table, the step that broke, and what is open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from service.cli.rendering.console import pluralize, render_number, render_share, render_verdict
from service.cli.rendering.results import CriterionOutcome, list_outcomes
from service.core.outcome import Errored, Scored, Skipped
from service.core.report import Report
from service.reporting.escaping import escape_unprintable
from service.reporting.findings import render_finding

MAX_NOTES = 6
"""How many notes of one step are shown."""

OPTIONAL_STAGES = ("sequence", "effect")


def show_steps(console: Console, report: Report) -> None:
    """Print a report as a table, with its verdict and remarks below."""
    console.print(_build_table(report))
    console.print(_build_ending(report))
    for line in (*_list_open_lines(report), *_list_notes_below(report)):
        console.print(line)


def _build_table(report: Report) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("step", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("what was found", overflow="fold")
    for stage in report.stages:
        if stage.verdict != "not_applicable" or stage.stage not in OPTIONAL_STAGES:
            outcomes = [one for one in list_outcomes(report) if one.stage == stage.stage]
            table.add_row(
                stage.stage,
                render_verdict(stage.verdict),
                render_number(stage.score),
                Text("\n").join(_list_notes(outcomes)),
            )
    return table


def _list_notes(outcomes: list[CriterionOutcome]) -> list[Text]:
    """List what is wrong; if nothing is, what passed and what was not checked; if nothing applies, why."""
    wrong = list(dict.fromkeys(_list_problems(outcomes)))
    if wrong:
        more = [Text(f"and {len(wrong) - MAX_NOTES} more", style="dim")] if len(wrong) > MAX_NOTES else []
        return [*(Text(escape_unprintable(note)) for note in wrong[:MAX_NOTES]), *more]
    fine = dict.fromkeys(one.criterion for one in outcomes if isinstance(one.outcome, Scored))
    unchecked = {reason: list(dict.fromkeys(names)) for reason, names in _group_unchecked(outcomes).items()}
    notes = [f"{', '.join(fine)}: passed"] if fine else []
    notes += [f"{', '.join(names)}: not looked at, {reason}" for reason, names in unchecked.items()]
    if not notes:
        reasons = dict.fromkeys(one.outcome.reason for one in outcomes if not isinstance(one.outcome, Scored))
        notes = ["; ".join(reasons)]
    return [Text(escape_unprintable(note), style="dim") for note in notes]


def _group_unchecked(outcomes: Iterable[CriterionOutcome]) -> dict[str, list[str]]:
    """Group the criteria that were not checked by reason."""
    criteria: dict[str, list[str]] = {}
    for criterion, _, _, outcome in outcomes:
        if isinstance(outcome, Skipped) and outcome.cause in ("not_asked", "out_of_scope"):
            criteria.setdefault(outcome.reason, []).append(criterion)
    return criteria


def _list_problems(outcomes: Iterable[CriterionOutcome]) -> Iterator[str]:
    """Yield findings, errors, and what a failed check blocked."""
    for one in outcomes:
        outcome = one.outcome
        if isinstance(outcome, Errored):
            yield f"{one.criterion} could not be checked: {outcome.reason}"
            continue
        yield from map(render_finding, outcome.findings)
        if isinstance(outcome, Skipped) and outcome.cause == "blocked":
            yield f"{one.criterion} counts as 0, {outcome.reason}"
        elif isinstance(outcome, Skipped) and outcome.cause not in ("not_applicable", "not_asked", "out_of_scope"):
            yield f"{one.criterion} was not measured: {outcome.reason}"


def _build_ending(report: Report) -> Text:
    ending = Text("=> ").append(render_verdict(report.verdict))
    ending.append(f", score {render_number(report.score)}")
    if report.score_range is not None and report.score_range[0] != report.score_range[1]:
        low, high = report.score_range
        ending.append(f" (between {render_number(low)} and {render_number(high)})")
    ending.append(f", coverage {render_share(report.coverage)}")
    if report.first_failing_stage:
        ending.append("; the step that broke: ").append(report.first_failing_stage, style="bold")
    return ending


def _list_open_lines(report: Report) -> Iterator[Text]:
    """Yield what is open and whether the verdict waits for it, what could not be read, and how far judges are calibrated."""
    waits: dict[str, list[str]] = {}
    for one in report.open:
        if one.decides:
            waits.setdefault(one.reason, []).append(one.criterion)
    for reason, names in waits.items():
        criteria = [f"{name} ({count} times)" if count > 1 else name for name, count in Counter(names).items()]
        yield Text(escape_unprintable(f"the verdict waits for {', '.join(criteria)}: {reason}"), style="magenta")
    others = [one.criterion for one in report.open if not one.decides]
    if others:
        yield Text(f"open, without effect on the verdict: {', '.join(dict.fromkeys(others))}", style="dim")
    if report.verdict == "undecided" and not report.open:
        yield Text("too little was looked at for a verdict", style="magenta")
    if report.scope == "code":
        yield Text("judges are off: only what code decides was looked at", style="dim")
    for part in report.unread:
        yield Text(escape_unprintable(f"could not be read: {part.path}: {part.reason}"), style="yellow")
    yield from _list_calibration_lines(report)


def _list_calibration_lines(report: Report) -> Iterator[Text]:
    """Yield a line with the number of judged outcomes and how many of them are calibrated."""
    calibration = report.calibration
    if calibration.judged:
        parts = [
            f"{count} {what}"
            for count, what in (
                (calibration.calibrated, "calibrated"),
                (calibration.uncalibrated, "uncalibrated"),
                (calibration.withheld, "left open by their calibration"),
            )
            if count
        ]
        yield Text(f"{pluralize(calibration.judged, 'judged outcome')}: {', '.join(parts)}", style="dim")


def _list_notes_below(report: Report) -> Iterator[Text]:
    """Yield the verdict without the failed calls, and notes about what the request overlooks."""
    executed = report.executed
    if executed is not None:
        counts = f"score {render_number(executed.score)}, {pluralize(executed.steps, 'call')}"
        yield Text(f"without the failed calls: {executed.verdict}, {counts}", style="dim")
    for note in report.notes:
        yield Text(escape_unprintable(f"note: {note.message} ({note.path})"), style="yellow")
