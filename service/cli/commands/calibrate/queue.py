"""`callgrade calibrate queue`: what waits for labels, and some of it for a human to label."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.command import command
from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.cli.rendering.console import console, plural, say
from service.errors import SettingsError

if TYPE_CHECKING:
    from service.calibration.importers.queued import QueuedItem
    from service.calibration.labels import Key


@command(8)
def calibrate_queue(
    file: Annotated[Path | None, typer.Option(help="The queue.  [default: CALLGRADE_LABEL_QUEUE]")] = None,
    done: Annotated[list[Path] | None, typer.Option(help="Labelled sets whose items do not wait any more.")] = None,
    criterion: Annotated[str | None, typer.Option(help="Of one criterion alone.")] = None,
    export: Annotated[int | None, typer.Option(min=1, help="Write so many, the most doubtful first.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where they are written, else standard output.")
    ] = None,
) -> int:
    """Show what waits for labels: items whose judged value lies where its fit says that a human should decide.

    Fill `labels` in, as [{"annotator": "ana", "label": "pass"}], and give the file to `callgrade calibrate run --labels`: what
    the judge said stands beside each item.
    """
    return show_queue(file, done=done or (), criterion=criterion, export=export, out=out)


def show_queue(
    file: Path | None = None,
    *,
    done: Sequence[Path] = (),
    criterion: str | None = None,
    export: int | None = None,
    out: Path | None = None,
) -> ExitCode:
    """How many items wait by criterion, or the `export` most doubtful of them as JSON Lines, to `out` or standard output.

    `file`: the queue; None: the one that is set. Items of `done`, labelled sets, do not wait. The queue stays as it is.
    """
    from service.calibration.importers.queued import list_waiting

    path = file or read_settings().label_queue
    if path is None:
        raise SettingsError.at("CALLGRADE_LABEL_QUEUE", "expected a file: none is set, and none is named")
    open_ones = [one for one in list_waiting(_read(path), _keys(done)) if criterion in (None, one.criterion)]
    if export is None:
        _tell(open_ones)
    else:
        _export(open_ones[:export], out)
    return ExitCode.PASSED


def _read(path: Path) -> list[QueuedItem]:
    from pydantic import TypeAdapter

    from service.calibration.importers.queued import QueuedItem
    from service.calibration.labels import parse_lines, read_models
    from service.cli.labelled import lines_of, read_in_file

    if not path.exists():  # nothing was appended yet
        return []
    lines, form = lines_of(path, "--file"), TypeAdapter[QueuedItem](QueuedItem)
    return read_in_file(path, lambda: [item for _, item in read_models(parse_lines(lines), form)])


def _keys(files: Sequence[Path]) -> set[Key]:
    from service.cli.labelled import Sources, read_labelled

    return {item.key for file in files for item in read_labelled(Sources(file)).labels.items}


def _tell(items: Sequence[QueuedItem]) -> None:
    from service.cli.rendering.documents import show
    from service.reporting.document import Section, Table

    counts = Counter((item.criterion, item.prediction.judge, item.prediction.model) for item in items)
    if not counts:
        say("nothing waits for labels")
        return
    rows = tuple([(*names, str(count)) for names, count in sorted(counts.items())])
    show(console(), [Section("Waiting for labels", (Table(("criterion", "judge", "model", "items"), rows),))])


def _export(items: Sequence[QueuedItem], out: Path | None) -> None:
    text = "".join([one.model_dump_json(exclude_unset=True) + "\n" for one in items])
    if out is None:
        sys.stdout.write(text)
        return
    try:
        out.write_text(text, "utf-8")
    except OSError as error:
        raise typer.BadParameter(f"{out}: {error.strerror}", param_hint="--out") from None
    say(f"wrote {plural(len(items), 'item')} to {out}; fill in `labels`, and fit them with `callgrade calibrate run`")
