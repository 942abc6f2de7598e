"""What the commands of `callgrade calibrate` share: their files, asking judges, and comparing two. Errors name file and place."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

from pydantic import ValidationError
from typer import Argument, Option

from service.asking.judging import Judges
from service.calibration.labels import LabelledItem, read_csv
from service.calibration.predictions import JudgedSet, Prediction, read_judged_set, read_predictions
from service.calibration.report.rendering import render_report_markdown, render_report_page
from service.calibration.report.usefulness import build_usefulness
from service.calibration.report_predictions import UnansweredItem
from service.calibration.results import CalibrationReport, parse_calibration_report, render_report_json
from service.cli.exits import describe_absence
from service.cli.inputs import read_option_text
from service.cli.options import read_settings, writing
from service.cli.progress import ProgressLine, describe_judging
from service.cli.screen import pluralize, say, show
from service.core.judging.prompts import Usage
from service.core.models.validation import find_problems
from service.core.money import NOTHING, Cost
from service.engine import Engine
from service.errors import NO_JUDGE_MODEL, InputError, SettingsError
from service.fits.files import build_file_name
from service.labelling.predictions import AskSettings, collect_predictions
from service.own_checks import load_plugins
from service.wiring import build_engine

REPORT = "report.json"

Labels = Annotated[Path, Option(metavar="FILE", help="The labelled set: JSON Lines (also gzipped) or CSV.")]
Predictions = Annotated[list[Path] | None, Option(metavar="FILE", help="Judges' answers. [default: those with labels]")]
Run = Annotated[Path, Argument(metavar="RUN", help="The report.json of a run, or its folder.")]
JudgeOfRun = Annotated[str | None, Option("--judge", metavar="NAME", help="One judge of the run. [default: all]")]
JudgedRubric = Annotated[str, Option("--rubric", "-r", metavar="ID", help="Rubric whose judges are asked.")]
Draws = Annotated[int, Option(metavar="N", min=0, max=100_000, help="Draws for each interval; 0 for none.")]


def read_labelled(file: Path) -> JudgedSet:
    """Read the labelled set, with any judge predictions it contains."""
    text = read_option_text(file, "--labels")
    with naming_file(file):
        if file.name.removesuffix(".gz").endswith(".csv"):
            return JudgedSet(read_csv(text, source=file.name))
        return read_judged_set(text.split("\n"), source=file.name)


def read_prediction_files(files: Sequence[Path]) -> tuple[Prediction, ...]:
    """Read the predictions of all files."""
    found: list[Prediction] = []
    for file in files:
        with naming_file(file):
            found += read_predictions(read_option_text(file, "--predictions").split("\n"))
    return tuple(found)


def read_run(path: Path) -> CalibrationReport:
    """Read the report of a run: `path` is its report.json or the folder that holds it."""
    file = path / REPORT if path.is_dir() else path
    text = read_option_text(file, "RUN")
    try:
        return parse_calibration_report(text)
    except ValidationError as error:
        raise InputError([find_problems(error, text)[0]]).in_file(str(file)) from None


@contextmanager
def naming_file(file: Path) -> Generator[None]:
    """Make an InputError raised in the block name the file; that of a setting names the setting."""
    try:
        yield
    except SettingsError:
        raise
    except InputError as error:
        raise error.in_file(str(file)) from None


def find_folder(run: Path) -> Path:
    """Return the folder of a run from that or from its report."""
    return run if run.is_dir() else run.parent


# What a run writes.


def write_run(report: CalibrationReport, out: Path) -> None:
    """Write the report and the fits into a folder, and show whether each judge may be used."""
    with writing(out, "--out"):
        earlier = set[str]()  # the fits of an earlier run: installing this one would install them too
        with suppress(FileNotFoundError, ValueError):
            earlier = {build_file_name(fit) for fit in parse_calibration_report((out / REPORT).read_bytes()).fits}
        write_report(report, out)
        for name in earlier - {build_file_name(fit) for fit in report.fits}:
            (out / "fits" / name).unlink(missing_ok=True)
    show([build_usefulness(report)])
    for remark in report.remarks:
        say(remark)
    say(f"wrote {out / 'report.html'}, which has all figures, and {pluralize(len(report.fits), 'fit')}")


def write_report(report: CalibrationReport, out: Path) -> None:
    """Write the report in its three forms, and its fits; OSError where the folder cannot be written."""
    (out / "fits").mkdir(parents=True, exist_ok=True)
    (out / REPORT).write_bytes(render_report_json(report))
    (out / "report.md").write_text(render_report_markdown(report), "utf-8")
    (out / "report.html").write_text(render_report_page(report), "utf-8")
    for fit in report.fits:
        (out / "fits" / build_file_name(fit)).write_bytes(render_report_json(fit))


# Asking judges.


def build_judging_engine(plugins: Sequence[Path] | None) -> tuple[Engine, Judges]:
    """Build the engine, with judges of the user's own, and return it with its judges; SettingsError if no model is set."""
    load_plugins(plugins)
    engine = build_engine(read_settings())
    if engine.judging is None:
        raise SettingsError.at("CALLGRADE_JUDGE_MODEL", NO_JUDGE_MODEL)
    return engine, engine.judging.judges


async def collect_answers(
    engine: Engine, items: Sequence[LabelledItem], asking: AskSettings, model: str, *, quiet: bool = False
) -> list[Prediction | UnansweredItem]:
    """Collect all answers. SettingsError as soon as it shows that the judge is absent: nothing is answered before its fault."""
    found: list[Prediction | UnansweredItem] = []
    cost, asked, undecided = NOTHING, 0, 0

    def note(model: str, seconds: float, usage: Usage | None) -> None:  # noqa: ARG001 (an observer)
        nonlocal cost, asked
        cost, asked = cost + (NOTHING if usage is None else Cost.of(usage.cost_usd)), asked + 1

    if engine.judging is not None:
        engine.judging.observers.append(note)
    try:
        with ProgressLine("question", len(asking.list_questions(items)), quiet=quiet) as line:
            async for one in collect_predictions(engine, items, asking):
                answered = any(isinstance(other, Prediction) for other in found)
                if isinstance(one, UnansweredItem) and one.shared_cause is not None and not answered:
                    problem = describe_absence(model, one.shared_cause)
                    raise SettingsError.at("CALLGRADE_JUDGE_MODEL", f"{problem}; then run the same command again")
                found.append(one)
                undecided += isinstance(one, UnansweredItem) and not one.nothing_to_ask
                line.update(len(found), *describe_judging(undecided, cost, asked=asked > 0))
    finally:
        await engine.close()
    return found
