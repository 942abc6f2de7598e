"""One report for a reader: the steps of the contract in a table, the step that broke, and what was left to a judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from service.cli.console import number, plural, printable, share, verdict_text
from service.cli.results import Seen, said, seen
from service.core.outcome import Errored, Scored, Skipped
from service.core.report import NotAsked, Report
from service.core.rubric import Stage

MOST_NOTES = 6
"""How many findings of one step are shown."""

ONLY_WHERE_THEY_APPLY = ("sequence", "effect")


def show_steps(console: Console, report: Report) -> None:
    """Print the table of a report and what there is to say below it."""
    console.print(_table(report))
    console.print(_ending(report))
    for line in _beside(report):
        console.print(line)
    for line in _left_to_judge(report):
        console.print(line)


def _table(report: Report) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("step", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("what was found", overflow="fold")
    for stage in report.stages:
        if stage.verdict != "not_applicable" or stage.stage not in ONLY_WHERE_THEY_APPLY:
            outcomes = [one for one in seen(report) if one.stage == stage.stage]
            notes = Text("\n").join(_notes(outcomes, _left_in(stage.stage, report)))
            table.add_row(stage.stage, verdict_text(stage.verdict), number(stage.score), notes)
    return table


def _left_in(stage: Stage, report: Report) -> list[str]:
    """The criteria of a stage that a judge would decide, and none was asked."""
    of_stage = {criterion.id for criterion in report.criteria if criterion.stage == stage}
    return list(dict.fromkeys(left.criterion for left in report.not_asked if left.criterion in of_stage))


def _notes(outcomes: list[Seen], left: list[str]) -> list[Text]:
    """What is wrong; where nothing is, what was looked at; where nothing was, why. `left`: criteria that a judge would decide."""
    wrong = list(dict.fromkeys(_wrong(outcomes)))
    if wrong:
        more = [Text(f"and {len(wrong) - MOST_NOTES} more", style="dim")] if len(wrong) > MOST_NOTES else []
        return [*(Text(printable(note)) for note in wrong[:MOST_NOTES]), *more]
    fine = dict.fromkeys(one.criterion for one in outcomes if isinstance(one.outcome, Scored))
    if fine:
        return [Text(f"{', '.join(fine)}: nothing to object", style="dim")]
    if left:
        return [Text(f"{', '.join(left)}: nobody has looked, no judge was asked", style="dim")]
    reasons = dict.fromkeys(one.outcome.reason for one in outcomes if not isinstance(one.outcome, Scored))
    return [Text(printable("; ".join(reasons)), style="dim")]


def _wrong(outcomes: Iterable[Seen]) -> Iterator[str]:
    """Findings, what broke, and what a failed check left unscored."""
    for one in outcomes:
        outcome = one.outcome
        if isinstance(outcome, Errored):
            yield f"{one.criterion} could not be checked: {outcome.reason}"
            continue
        yield from map(said, outcome.findings)
        if isinstance(outcome, Skipped) and outcome.cause == "blocked":
            yield f"{one.criterion} counts as 0, {outcome.reason}"
        elif isinstance(outcome, Skipped) and outcome.cause != "not_applicable":
            yield f"{one.criterion} was not measured: {outcome.reason}"


def _ending(report: Report) -> Text:
    ending = Text("=> ").append(verdict_text(report.verdict))
    ending.append(f", score {number(report.score)}, coverage {share(report.coverage)}")
    if report.first_failing_stage:
        ending.append("; the step that broke: ").append(report.first_failing_stage, style="bold")
    return ending


def _beside(report: Report) -> Iterator[Text]:
    """What the calls came to that did not fail, and what the request overlooks."""
    done = report.executed
    if done is not None:
        rest = f"without the failed calls: {done.verdict}, score {number(done.score)}, {plural(done.steps, 'call')}"
        yield Text(rest, style="dim")
    for note in report.notes:
        yield Text(printable(f"note: {note.message} ({note.path})"), style="yellow")


def _left_to_judge(report: Report) -> Iterator[Text]:
    """One line for each reason why a judge was not asked."""
    for why, group in groupby(sorted(report.not_asked, key=_why), key=_why):
        counted = Counter((left.criterion, left.step is None) for left in group)
        what = ", ".join(name if whole else f"{name} ({plural(n, 'step')})" for (name, whole), n in counted.items())
        yield Text(printable(f"no judge was asked ({why}): {what}"), style="dim")


def _why(left: NotAsked) -> str:
    return left.why
