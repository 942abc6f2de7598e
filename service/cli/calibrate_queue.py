"""`callgrade calibrate queue`: what waits for labels, and some of it for a human to label."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import typer
from pydantic import TypeAdapter

from service.calibrating.labels import Key, parsed, read_models
from service.calibrating.queued import Queued, waiting
from service.cli.console import console, plural, say
from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.cli.labelled import Sources, lines_of, placed, read_labelled
from service.cli.sections import Section, show
from service.errors import SettingsError

QUEUED: TypeAdapter[Queued] = TypeAdapter(Queued)


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
    path = file or read_settings().label_queue
    if path is None:
        raise SettingsError.at("CALLGRADE_LABEL_QUEUE", "expected a file: none is set, and none is named")
    items: list[Queued] = []
    if path.exists():  # nothing was appended yet
        lines = lines_of(path, "--file")
        items = placed(path, lambda: [item for _, item in read_models(parsed(lines), QUEUED)])
    open_ones = [one for one in waiting(items, _keys(done)) if criterion in (None, one.criterion)]
    if export is None:
        _tell(open_ones)
    else:
        _export(open_ones[:export], out)
    return ExitCode.PASSED


def _keys(files: Sequence[Path]) -> set[Key]:
    return {item.key for file in files for item in read_labelled(Sources(file)).labels.items}


def _tell(items: Sequence[Queued]) -> None:
    counts = Counter((item.criterion, item.prediction.judge, item.prediction.model) for item in items)
    if not counts:
        say("nothing waits for labels")
        return
    rows = tuple([(*names, str(count)) for names, count in sorted(counts.items())])
    show(console(), [Section("Waiting for labels", ("criterion", "judge", "model", "items"), rows)])


def _export(items: Sequence[Queued], out: Path | None) -> None:
    text = "".join([one.model_dump_json(exclude_unset=True) + "\n" for one in items])
    if out is None:
        sys.stdout.write(text)
        return
    try:
        out.write_text(text, "utf-8")
    except OSError as error:
        raise typer.BadParameter(f"{out}: {error.strerror}", param_hint="--out") from None
    say(f"wrote {plural(len(items), 'item')} to {out}; fill in `labels`, and fit them with `callgrade calibrate run`")
