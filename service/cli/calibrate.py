"""`callgrade calibrate`: from labels and recorded predictions to fits and a report, and the report again."""

from __future__ import annotations

import asyncio
import gzip
import sys
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import typer
from pydantic import ValidationError
from rich.table import Table
from rich.text import Text

from service.calibrating.importers import Errors, Imported, Shape, imported
from service.calibrating.labels import read_csv
from service.calibrating.markdown import markdown
from service.calibrating.options import Options
from service.calibrating.page import page
from service.calibrating.predictions import Prediction, read_predictions
from service.calibrating.rate import PassRate, pass_rates
from service.calibrating.results import CalibrationReport, JudgeReport, Run, as_json, read_report
from service.calibrating.run import calibrate
from service.calibrating.wording import shown
from service.cli.console import plural, printable, reading_console, say
from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.core.invalid import problems_of
from service.core.report import JudgeMode
from service.errors import InputError, Problem, SettingsError
from service.io.bootstrap import engine_of
from service.io.predicting import predictions_of
from service.stats.corrected import Corrected

T = TypeVar("T")

ReportFormat = Literal["table", "json", "markdown", "html"]
REPORT = "report.json"


@dataclass(frozen=True, slots=True)
class Sources:
    """The files of a run. Without predictions, those that stand beside the labels are taken."""

    labels: Path
    predictions: Sequence[Path] = ()
    shape: Shape | None = None
    errors: Errors = "contradictory"


def run_calibration(sources: Sources, out: Path, options: Options | None = None) -> ExitCode:
    """Fit and measure, and write report.json, report.md, report.html and fits/*.json into `out`.

    InputError, told with file and line, for labels and predictions that cannot be read. The same files give the same bytes.
    """
    found = _read_labels(sources)
    predictions = _read_predictions(sources.predictions) or found.predictions
    if not predictions:
        raise InputError.at(str(sources.labels), "no predictions; name a file of them with --predictions")
    run = _placed(sources.labels, lambda: calibrate(found.labels, predictions, options))
    _write(run, out)
    _overview(run.report)
    say(f"wrote {out / 'report.html'} and {plural(len(run.fits), 'fit')}")
    return ExitCode.PASSED


def judge_labels(labels: Path, out: Path, *, rubric: str = "four_step", judges: JudgeMode = "live") -> ExitCode:
    """Have the judges of a rubric answer the labelled items, and write the predictions as JSON Lines.

    Items that no judge answered are told and left out: the exit code is then 5. A file that exists is replaced at the end.
    """
    engine = engine_of(read_settings())
    if engine.judging is None:
        raise SettingsError.at("CALLGRADE_JUDGE_MODEL", "expected a model: none is set")
    found, chosen = _read_labels(Sources(labels)), engine.shelf.find(rubric)

    async def judged() -> tuple[list[Prediction], list[str]]:
        try:
            return await predictions_of(engine, found.labels.items, chosen, mode=judges)
        finally:
            await engine.close()

    made, missing = _placed(labels, lambda: asyncio.run(judged()))
    out.write_text("".join([one.model_dump_json() + "\n" for one in made]), "utf-8")
    for reason in missing:
        say(f"not judged: {printable(reason)}")
    say(f"wrote {plural(len(made), 'prediction')} to {out}")
    return ExitCode.DATA if missing else ExitCode.PASSED


def show_calibration(path: Path, *, output_format: ReportFormat = "table") -> ExitCode:
    """The report of a run once more: `path` is its report.json or the folder that holds it."""
    file = path / REPORT if path.is_dir() else path
    text = "\n".join(_lines(file, "REPORT"))
    try:
        report = read_report(text)
    except ValidationError as error:
        raise InputError([Problem(f"{file}: {p.path}", p.message) for p in problems_of(error, None)[:1]]) from None
    if output_format == "table":
        _overview(report)
    else:
        sys.stdout.write(_SHOWN[output_format](report))
    return ExitCode.PASSED


def show_rates(sources: Sources, *, output_format: Literal["table", "json"] = "table") -> ExitCode:
    """The pass rate of what was judged, corrected by the labels of a part of it, beside the labels' and the judge's own."""
    found = _read_labels(sources)
    predictions = _read_predictions(sources.predictions) or found.predictions
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


def _read_labels(sources: Sources) -> Imported:
    file, lines = sources.labels, _lines(sources.labels, "--labels")
    if file.name.removesuffix(".gz").endswith(".csv"):
        return Imported(_placed(file, lambda: read_csv("\n".join(lines), source=file.name)))
    return _placed(file, lambda: imported(lines, source=file.name, shape=sources.shape, errors=sources.errors))


def _read_predictions(files: Sequence[Path]) -> tuple[Prediction, ...]:
    found: list[Prediction] = []
    for file in files:
        with _in_file(file):
            found += read_predictions(_lines(file, "--predictions"))
    return tuple(found)


def _placed(file: Path, do: Callable[[], T]) -> T:
    with _in_file(file):
        return do()


@contextmanager
def _in_file(file: Path) -> Generator[None]:
    """Errors within name the file they are about."""
    try:
        yield
    except InputError as error:
        raise type(error)(Problem(f"{file}: {p.path}".removesuffix(": "), p.message) for p in error.problems) from None


def _lines(file: Path, option: str) -> list[str]:
    """The lines of a file in UTF-8, gzip-compressed or not; a usage error where it cannot be read."""
    try:
        data = file.read_bytes()
        return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8").split("\n")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "neither UTF-8 nor gzip"
        raise typer.BadParameter(f"{file}: {reason}", param_hint=option) from None


def _write(run: Run, out: Path) -> None:
    fits = out / "fits"
    try:
        fits.mkdir(parents=True, exist_ok=True)
        (out / REPORT).write_bytes(as_json(run.report))
        (out / "report.md").write_text(markdown(run.report), "utf-8")
        (out / "report.html").write_text(page(run.report), "utf-8")
        for fit in run.fits:
            (fits / f"{fit.fingerprint[:16]}.json").write_bytes(as_json(fit))
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
    for jury in report.juries:
        said = "kept" if jury.kept else "not kept"
        gain = shown(jury.advantage.brier)
        told = f"jury on {jury.criterion}: Brier lower than {jury.best}'s by {gain}: {said}"
        reading_console().print(_text(told), soft_wrap=True)
    for judge in judges:
        if judge.ece_over_splits:
            s = judge.ece_over_splits
            spread = f"median {s.median:.3f}, 10th percentile {s.low:.3f}, 90th {s.high:.3f}"
            said = f"{judge.name}: ECE over {s.splits} splits: {spread}"
            reading_console().print(_text(said), soft_wrap=True)
    for remark in report.remarks:
        say(remark)


def _map(judge: JudgeReport) -> str:
    return judge.method if judge.calibrated else f"{judge.method} (uncalibrated)"


def _cell(judge: JudgeReport, name: str) -> str:
    return shown(judge.after.of(name)).partition(" ")[0]


def _text(text: str) -> Text:
    return Text(printable(text))
