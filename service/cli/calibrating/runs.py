"""Write the result of a calibration into a folder, and show it on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import typer
from rich.table import Table
from rich.text import Text

from service.calibration.report.rendering import render_report_markdown, render_report_page
from service.calibration.report.usefulness import HEAD, build_row, describe_cascade, describe_use
from service.calibration.report.wording import show_measure
from service.calibration.results import CalibrationReport, CalibrationRun, JudgeReport, read_report, render_json
from service.cli.labelled import REPORT
from service.cli.rendering.console import build_reading_console, pluralize, say
from service.errors import SettingsError
from service.fits.files import build_file_name, read_fits
from service.reporting.escaping import escape_unprintable

ReportFormat = Literal["table", "json", "markdown", "html"]


def write_run(run: CalibrationRun, out: Path) -> None:
    """Write the report and the fits into a folder, and show an overview."""
    _write(run, out)
    show_overview(run.report)
    say(f"wrote {out / 'report.html'} and {pluralize(len(run.fits), 'fit')}")


def _write(run: CalibrationRun, out: Path) -> None:
    fits = out / "fits"
    try:
        fits.mkdir(parents=True, exist_ok=True)
        earlier = _list_earlier(out)
        (out / REPORT).write_bytes(render_json(run.report))
        (out / "report.md").write_text(render_report_markdown(run.report), "utf-8")
        (out / "report.html").write_text(render_report_page(run.report), "utf-8")
        for fit in run.fits:
            (fits / build_file_name(fit)).write_bytes(render_json(fit))
        for name in earlier - {
            build_file_name(fit) for fit in run.fits
        }:  # else installing this run would install them too
            (fits / name).unlink(missing_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"{out}: {error.strerror}", param_hint="--out") from None


def _list_earlier(out: Path) -> set[str]:
    """List the fit files that an earlier run wrote into this folder, according to its report."""
    try:
        written = {judge.fit_id for judge in read_report((out / REPORT).read_bytes()).all_judges}
        return {build_file_name(fit) for fit in read_fits([out / "fits"]) if fit.id in written}
    except (FileNotFoundError, ValueError, SettingsError):
        return set()


COLUMNS = {"kappa": "kappa", "balanced_accuracy": "bal. acc.", "auroc": "AUROC", "brier": "Brier", "ece": "ECE"}


def show_overview(report: CalibrationReport) -> None:
    """Print the report: how useful each judge is, a row of figures for each judge, and the humans' figures below."""
    _show_usefulness(report)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("judge", "criterion", "map", *COLUMNS.values()):
        table.add_column(name, overflow="fold")
    judges = report.all_judges
    for judge in judges:
        table.add_row(
            *map(_escape, (judge.name, judge.criterion, _render_method(judge))),
            *[_render_figure(judge, name) for name in COLUMNS],
        )
    for judge in {judge.criterion: judge for judge in judges if judge.humans}.values():
        humans = judge.humans
        cells = [show_measure(humans.of(name)).partition(" ")[0] if humans else "-" for name in COLUMNS]
        table.add_row("human beside human", _escape(judge.criterion), "", *cells, style="dim")
    build_reading_console().print(table)
    for line in _list_remarks(report, judges):
        build_reading_console().print(_escape(line), soft_wrap=True)
    for remark in report.remarks:
        say(remark)


def _show_usefulness(report: CalibrationReport) -> None:
    """Print the first table: whether each judge may be used, for what, and at what cost."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for at, name in enumerate(HEAD):
        table.add_column(name, overflow="fold", justify="left" if at < 2 else "right", no_wrap=at > 1)
    judges = report.all_judges
    for judge in judges:
        table.add_row(*map(_escape, build_row(judge)))
    build_reading_console().print(table)
    for judge in judges if len(judges) <= MAX_DESCRIBED_JUDGES else ():
        build_reading_console().print(_escape(f"{judge.name}: {describe_use(judge)}"))
    for cascade in report.cascades:
        build_reading_console().print(_escape(describe_cascade(cascade)))
    build_reading_console().print(
        "85%, 90%: share decided without people when this much must agree with them; none: no threshold\n", style="dim"
    )


MAX_DESCRIBED_JUDGES = 3
"""Up to this many judges get a sentence each on a terminal; for more, see the report pages."""


def _list_remarks(report: CalibrationReport, judges: Sequence[JudgeReport]) -> Iterator[str]:
    for jury in report.juries:
        decision = {True: "kept", False: "not kept", None: "not decided, because no intervals were drawn"}[jury.kept]
        yield f"jury on {jury.criterion}: Brier lower than {jury.best}'s by {show_measure(jury.gain)}: {decision}"
    for judge in judges:
        if judge.retest:
            share = show_measure(judge.retest.flip_rate)
            yield f"{judge.name}: two answers to one question disagree on the verdict for a share of {share} of items"


def _render_method(judge: JudgeReport) -> str:
    return judge.method if judge.calibrated else f"{judge.method} (uncalibrated)"


def _render_figure(judge: JudgeReport, name: str) -> str:
    return show_measure(judge.after.of(name)).partition(" ")[0]


def _escape(text: str) -> Text:
    return Text(escape_unprintable(text))
