"""One report for a reader: the steps of the contract in a table, the step that broke, and what was left to a judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from service.cli.console import number, printable, share, verdict_text
from service.core.outcome import Errored, Outcome, Scored, Skipped
from service.core.plan import NotAsked, Plan
from service.core.report import Report, StageScore

MOST_NOTES = 6
"""How many findings of one step are shown."""


def show_steps(console: Console, report: Report, plan: Plan, *, indent: int = 0) -> None:
    """Print the table of a report and what there is to say below it. `plan` is the one the report concludes."""
    for part in (_table(report, plan), _ending(report), *_left_to_judge(report)):
        console.print(Padding(part, (0, 0, 0, indent)))


def _table(report: Report, plan: Plan) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("step")
    table.add_column("verdict")
    table.add_column("score", justify="right")
    table.add_column("what was found", overflow="fold")
    for stage in report.stages:
        if stage.stage in ("sequence", "effect") and stage.verdict == "not_applicable":
            continue
        notes = Text("\n").join(_notes(stage, report, plan))
        table.add_row(stage.stage, verdict_text(stage.verdict), number(stage.score), notes)
    return table


def _notes(stage: StageScore, report: Report, plan: Plan) -> list[Text]:
    criteria = [criterion.id for criterion in plan.rubric.by_stage if criterion.stage == stage.stage]
    outcomes = [(name, outcome) for name in criteria for outcome in outcomes_of(name, report)]
    found = list(dict.fromkeys(_troubles(outcome for _, outcome in outcomes)))
    if found:
        more = [Text(f"and {len(found) - MOST_NOTES} more", style="dim")] if len(found) > MOST_NOTES else []
        return [*(Text(printable(note)) for note in found[:MOST_NOTES]), *more]
    passed = list(dict.fromkeys(name for name, outcome in outcomes if isinstance(outcome, Scored)))
    if passed:
        return [Text(f"{', '.join(passed)}: nothing to object", style="dim")]
    reasons = dict.fromkeys(outcome.reason for _, outcome in outcomes if not isinstance(outcome, Scored))
    return [Text(printable("; ".join(reasons)), style="dim")]


def _troubles(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """What is wrong, in words: findings, what broke, and what a failed check left unscored."""
    for outcome in outcomes:
        if isinstance(outcome, Errored):
            yield f"could not be checked: {outcome.reason}"
            continue
        yield from (finding.message for finding in outcome.findings)
        if isinstance(outcome, Skipped) and outcome.cause == "blocked":
            yield f"not scored, {outcome.reason}: counts as 0"
        elif isinstance(outcome, Skipped) and outcome.cause != "not_applicable":
            yield f"not measured: {outcome.reason}"


def outcomes_of(criterion: str, report: Report) -> Iterator[Outcome]:
    """Every outcome of one criterion: what belongs to no step first."""
    for scored in report.criteria:
        if scored.id == criterion:
            yield from (elsewhere.outcome for elsewhere in scored.outcomes)
    yield from (step.outcomes[criterion] for step in report.steps if criterion in step.outcomes)


def _ending(report: Report) -> Text:
    ending = Text("=> ").append(verdict_text(report.verdict))
    ending.append(f", score {number(report.score)}, coverage {share(report.coverage)}")
    if report.first_failing_stage:
        ending.append("; the step that broke: ").append(report.first_failing_stage, style="bold")
    return ending


def _left_to_judge(report: Report) -> Iterator[Text]:
    """One line for each reason why a judge was not asked."""
    for why, group in groupby(sorted(report.not_asked, key=_why), key=_why):
        yield Text(printable(f"   no judge was asked ({why}): {', '.join(map(_about, group))}"), style="dim")


def _why(left: NotAsked) -> str:
    return left.why


def _about(left: NotAsked) -> str:
    return left.criterion if left.step is None else f"{left.criterion} of step {left.step}"
