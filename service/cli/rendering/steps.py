"""Show one report: its stages in a table, where it failed, and what is open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from service.cli.rendering.console import STYLES, pluralize, render_verdict
from service.core.outcome import Skipped
from service.core.report import Report, StageScore
from service.reporting.escaping import escape_unprintable
from service.reporting.numbers import render_number
from service.reporting.statements import (
    OutcomeStatement,
    describe_calibration,
    describe_open,
    describe_result,
    fold_states,
    is_measured,
    list_gaps,
    list_reasons,
    list_remarks,
    list_statements,
)

MAX_NOTES = 6
"""How many notes of one stage are shown."""

MAX_PLACES = 20
"""How many, if each is shown with its pointer."""

OPTIONAL_STAGES = ("sequence", "effect")


def show_steps(console: Console, report: Report, *, head: str = "=> ", places: bool = False) -> None:
    """Print a report: after `head` verdict and score, why it failed if it did, its stages, and what is open.

    `places`: show findings with their pointers.
    """
    console.print(Text(escape_unprintable(head)).append(describe_result(report), STYLES[report.verdict]))
    statements = list_statements(report)
    rows = [(stage, _list_notes(stage, statements, places=places)) for stage in report.stages]
    reason = escape_unprintable(list_reasons(report)[0].words) if report.verdict == "fail" else ""
    if not next((notes[0].plain for _, notes in rows if notes), "").startswith(reason):
        console.print(Text(reason))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("stage", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("what was found", overflow="fold")
    for stage, notes in rows:
        if stage.verdict != "not_applicable" or stage.stage not in OPTIONAL_STAGES:
            score = stage.score if is_measured(report, stage) else None
            table.add_row(stage.stage, render_verdict(stage.verdict), render_number(score), Text("\n").join(notes))
    console.print()
    console.print(table)
    for line in _list_lines_below(report):
        console.print(line)


def _list_notes(stage: StageScore, statements: Sequence[OutcomeStatement], *, places: bool) -> list[Text]:
    """List what was found and what has no score; what passed only beside that; if nothing applies, why."""
    own = [one for one in statements if one.stage == stage.stage]
    if stage.verdict == "not_applicable":
        reasons = dict.fromkeys(one.outcome.reason for one in own if isinstance(one.outcome, Skipped))
        return [Text(escape_unprintable("; ".join(reasons)), style="dim")]
    found = list_remarks(one for one in own if one.state != "absent")
    shown = found[: MAX_PLACES if places else MAX_NOTES]
    notes = [f"{words} ({path})" if places and path else words for words, path in shown]
    notes += [f"and {len(found) - len(shown)} more"] if len(found) > len(shown) else []
    gaps = list_gaps((one.criterion, one.explain_gap()) for one in own if one.state in ("blocked", "open", "unchecked"))
    passed = [name for name, state in fold_states(own).items() if state == "passed"]
    if gaps and passed and stage.verdict != "fail":
        gaps.append(f"{', '.join(passed)}: passed")
    texts = [Text(escape_unprintable(note)) for note in notes]
    return texts + [Text(escape_unprintable(note), style="dim") for note in gaps]


def _list_lines_below(report: Report) -> Iterator[Text]:
    """Yield what the verdict waits for, what else is open, what could not be read, and notes on the request."""
    yield from [
        Text(line, style="magenta" if report.verdict == "undecided" else "dim") for line in describe_open(report)
    ]
    for part in report.unread:
        yield Text(escape_unprintable(f"could not be read: {part.path}: {part.reason}"), style="yellow")
    if calibration := describe_calibration(report):
        yield Text(calibration, style="dim")
    executed = report.executed
    if executed is not None:
        counts = f"{executed.verdict} ({pluralize(executed.steps, 'call')})"
        yield Text(f"counting only calls that ran: {counts}", style="dim")
    for note in report.notes:
        yield Text(escape_unprintable(f"note: {note.message} ({note.path})"), style="yellow")
