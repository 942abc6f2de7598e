"""One report for a reader: the steps of the contract in a table, the step that broke, and what was left to a judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from service.cli.rendering.console import number, plural, share, verdict_text
from service.cli.rendering.results import CriterionOutcome, list_outcomes
from service.core.outcome import Errored, Scored, Skipped
from service.core.report import Report
from service.reporting.escaping import escape_unprintable
from service.reporting.findings import render_finding

MOST_NOTES = 6
"""How many findings of one step are shown."""

ONLY_WHERE_THEY_APPLY = ("sequence", "effect")


def show_steps(console: Console, report: Report) -> None:
    """Print the table of a report and what there is to say below it."""
    console.print(_build_table(report))
    console.print(_build_ending(report))
    for line in (*_list_open_lines(report), *_beside(report)):
        console.print(line)


def _build_table(report: Report) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("step", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("what was found", overflow="fold")
    for stage in report.stages:
        if stage.verdict != "not_applicable" or stage.stage not in ONLY_WHERE_THEY_APPLY:
            outcomes = [one for one in list_outcomes(report) if one.stage == stage.stage]
            table.add_row(
                stage.stage, verdict_text(stage.verdict), number(stage.score), Text("\n").join(_notes(outcomes))
            )
    return table


def _notes(outcomes: list[CriterionOutcome]) -> list[Text]:
    """What is wrong; where nothing is, what passed and what was not looked at; where nothing applies, why."""
    wrong = list(dict.fromkeys(_list_problems(outcomes)))
    if wrong:
        more = [Text(f"and {len(wrong) - MOST_NOTES} more", style="dim")] if len(wrong) > MOST_NOTES else []
        return [*(Text(escape_unprintable(note)) for note in wrong[:MOST_NOTES]), *more]
    fine = dict.fromkeys(one.criterion for one in outcomes if isinstance(one.outcome, Scored))
    silent = {reason: list(dict.fromkeys(names)) for reason, names in _silent(outcomes).items()}
    notes = [f"{', '.join(fine)}: passed"] if fine else []
    notes += [f"{', '.join(names)}: not looked at, {reason}" for reason, names in silent.items()]
    if not notes:
        reasons = dict.fromkeys(one.outcome.reason for one in outcomes if not isinstance(one.outcome, Scored))
        notes = ["; ".join(reasons)]
    return [Text(escape_unprintable(note), style="dim") for note in notes]


def _silent(outcomes: Iterable[CriterionOutcome]) -> dict[str, list[str]]:
    """The criteria that nobody looked at, by why."""
    found: dict[str, list[str]] = {}
    for criterion, _, _, outcome in outcomes:
        if isinstance(outcome, Skipped) and outcome.cause in ("not_asked", "out_of_scope"):
            found.setdefault(outcome.reason, []).append(criterion)
    return found


def _list_problems(outcomes: Iterable[CriterionOutcome]) -> Iterator[str]:
    """Findings, what broke, and what a failed check left unscored."""
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
    ending = Text("=> ").append(verdict_text(report.verdict))
    ending.append(f", score {number(report.score)}")
    if report.score_range is not None and report.score_range[0] != report.score_range[1]:
        low, high = report.score_range
        ending.append(f" (between {number(low)} and {number(high)})")
    ending.append(f", coverage {share(report.coverage)}")
    if report.first_failing_stage:
        ending.append("; the step that broke: ").append(report.first_failing_stage, style="bold")
    return ending


def _list_open_lines(report: Report) -> Iterator[Text]:
    """What is open and whether the verdict waits for it, what was left out, how far judges are calibrated."""
    waits: dict[str, list[str]] = {}
    for one in report.open:
        if one.decides:
            waits.setdefault(one.reason, []).append(one.criterion)
    for reason, names in waits.items():
        counted = [f"{name} ({count} times)" if count > 1 else name for name, count in Counter(names).items()]
        yield Text(escape_unprintable(f"the verdict waits for {', '.join(counted)}: {reason}"), style="magenta")
    others = [one.criterion for one in report.open if not one.decides]
    if others:
        yield Text(f"open, and changes no verdict: {', '.join(dict.fromkeys(others))}", style="dim")
    if report.verdict == "abstain" and not report.open:
        yield Text("too little was looked at for a verdict", style="magenta")
    if report.scope == "code":
        yield Text("judges are off: only what code decides was looked at", style="dim")
    for part in report.unread:
        yield Text(escape_unprintable(f"could not be read: {part.path}: {part.reason}"), style="yellow")
    yield from _calibration(report)


def _calibration(report: Report) -> Iterator[Text]:
    """One line: how many judged outcomes there are, and what their calibration says."""
    found = report.calibration
    if found.judged:
        parts = [
            f"{count} {what}"
            for count, what in (
                (found.calibrated, "calibrated"),
                (found.uncalibrated, "uncalibrated"),
                (found.withheld, "left open by their calibration"),
            )
            if count
        ]
        yield Text(f"{plural(found.judged, 'judged outcome')}: {', '.join(parts)}", style="dim")


def _beside(report: Report) -> Iterator[Text]:
    """What the calls came to that did not fail, and what the request overlooks."""
    done = report.executed
    if done is not None:
        rest = f"without the failed calls: {done.verdict}, score {number(done.score)}, {plural(done.steps, 'call')}"
        yield Text(rest, style="dim")
    for note in report.notes:
        yield Text(escape_unprintable(f"note: {note.message} ({note.path})"), style="yellow")
