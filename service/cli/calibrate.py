"""`callgrade calibrate`: from labels and recorded predictions to fits and a report, and the report again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import typer
from rich.table import Table
from rich.text import Text

from service.calibrating.markdown import markdown
from service.calibrating.options import Options
from service.calibrating.page import page
from service.calibrating.rate import PassRate, pass_rates
from service.calibrating.results import CalibrationReport, JudgeReport, Run, as_json
from service.calibrating.run import calibrate
from service.calibrating.wording import shown
from service.cli.console import plural, printable, reading_console, say
from service.cli.exits import ExitCode
from service.cli.labelled import REPORT, Sources, placed, read_labelled, read_predicted, read_run
from service.errors import InputError
from service.io.fits import file_name
from service.stats.corrected import Corrected

ReportFormat = Literal["table", "json", "markdown", "html"]


def run_calibration(sources: Sources, out: Path, options: Options | None = None) -> ExitCode:
    """Fit and measure, and write report.json, report.md, report.html and fits/*.json into `out`.

    InputError, told with file and line, for labels and predictions that cannot be read. The same files give the same bytes.
    """
    found = read_labelled(sources)
    predictions = read_predicted(sources.predictions) or found.predictions
    if not predictions:
        raise InputError.at(str(sources.labels), "no predictions; name a file of them with --predictions")
    write_run(placed(sources.labels, lambda: calibrate(found.labels, predictions, options)), out)
    return ExitCode.PASSED


def write_run(run: Run, out: Path) -> None:
    """Writes report and fits into a folder, and shows what they say."""
    _write(run, out)
    _overview(run.report)
    say(f"wrote {out / 'report.html'} and {plural(len(run.fits), 'fit')}")


def show_calibration(path: Path, *, output_format: ReportFormat = "table") -> ExitCode:
    """The report of a run once more: `path` is its report.json or the folder that holds it."""
    report = read_run(path)
    if output_format == "table":
        _overview(report)
    else:
        sys.stdout.write(_SHOWN[output_format](report))
    return ExitCode.PASSED


def show_rates(sources: Sources, *, output_format: Literal["table", "json"] = "table") -> ExitCode:
    """The pass rate of what was judged, corrected by the labels of a part of it, beside the labels' and the judge's own."""
    found = read_labelled(sources)
    predictions = read_predicted(sources.predictions) or found.predictions
    rates = pass_rates(found.labels, predictions)
    if not rates:
        raise InputError.at(str(sources.labels), "no predictions; name a file of them with --predictions")
    if output_format == "json":
        sys.stdout.write(as_json(rates).decode())
        return ExitCode.PASSED
    for rate in rates:
        for line in _told(rate):
            reading_console().print(_text(line), soft_wrap=True)
    return ExitCode.PASSED


def _told(rate: PassRate) -> Iterator[str]:
    yield f"{rate.judge} on {rate.criterion}: {rate.labelled} labelled items, {rate.unlabelled} without a label"
    yield f"  corrected   {_interval(rate.corrected)}, the judge trusted with a weight of {rate.corrected.trust:.2f}"
    yield f"  labels only {_interval(rate.humans)}"
    yield f"  judge only  {rate.naive:.3f}, uncorrected"
    more = rate.corrected.more_labels
    yield f"  {'no number of' if more is None else more} more labels would halve the interval"
    yield f"  label next, at random: {', '.join(rate.label_next)}"


def _interval(found: Corrected) -> str:
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


_SHOWN: dict[ReportFormat, Callable[[CalibrationReport], str]] = {
    "json": lambda report: as_json(report).decode(),
    "markdown": markdown,
    "html": page,
}


def _write(run: Run, out: Path) -> None:
    fits = out / "fits"
    try:
        fits.mkdir(parents=True, exist_ok=True)
        (out / REPORT).write_bytes(as_json(run.report))
        (out / "report.md").write_text(markdown(run.report), "utf-8")
        (out / "report.html").write_text(page(run.report), "utf-8")
        for fit in run.fits:
            (fits / file_name(fit)).write_bytes(as_json(fit))
    except OSError as error:
        raise typer.BadParameter(f"{out}: {error.strerror}", param_hint="--out") from None


COLUMNS = {"kappa": "kappa", "balanced_accuracy": "bal. acc.", "auroc": "AUROC", "brier": "Brier", "ece": "ECE"}


def _overview(report: CalibrationReport) -> None:
    """A line for each judge, the figure of humans beneath."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("judge", "criterion", "map", *COLUMNS.values()):
        table.add_column(name, overflow="fold")
    judges = [*report.judges, *[jury.report for jury in report.juries]]
    for judge in judges:
        table.add_row(
            *map(_text, (judge.name, judge.criterion, _map(judge))), *[_cell(judge, name) for name in COLUMNS]
        )
    for judge in {judge.criterion: judge for judge in judges if judge.humans}.values():
        humans = judge.humans
        cells = [shown(humans.of(name)).partition(" ")[0] if humans else "-" for name in COLUMNS]
        table.add_row("human beside human", _text(judge.criterion), "", *cells, style="dim")
    reading_console().print(table)
    for line in _remarks(report, judges):
        reading_console().print(_text(line), soft_wrap=True)
    for remark in report.remarks:
        say(remark)


def _remarks(report: CalibrationReport, judges: Sequence[JudgeReport]) -> Iterator[str]:
    for jury in report.juries:
        said = "kept" if jury.kept else "not kept"
        yield f"jury on {jury.criterion}: Brier lower than {jury.best}'s by {shown(jury.advantage.brier)}: {said}"
    for judge in judges:
        if judge.ece_over_splits:
            s = judge.ece_over_splits
            spread = f"median {s.median:.3f}, 10th percentile {s.low:.3f}, 90th {s.high:.3f}"
            yield f"{judge.name}: ECE over {s.splits} splits: {spread}"
        if judge.retest:
            share = shown(judge.retest.flip_rate)
            yield f"{judge.name}: two answers to one question differ in their verdict for a share of {share} of items"


def _map(judge: JudgeReport) -> str:
    return judge.method if judge.calibrated else f"{judge.method} (uncalibrated)"


def _cell(judge: JudgeReport, name: str) -> str:
    return shown(judge.after.of(name)).partition(" ")[0]


def _text(text: str) -> Text:
    return Text(printable(text))
