"""Read the files of calibration: labelled sets, predictions and reports. Errors name the file and the place."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import typer
from pydantic import ValidationError

from service.calibration.labels import read_csv
from service.calibration.predictions import JudgedSet, Prediction, read_judged_set, read_predictions
from service.calibration.results import CalibrationReport, read_report
from service.core.models.validation import find_problems
from service.errors import InputError

T = TypeVar("T")

REPORT = "report.json"


@dataclass(frozen=True, slots=True)
class Sources:
    """The input files of a run. Without `predictions`, those inside the labelled set are used."""

    labels: Path
    predictions: Sequence[Path] = ()


def read_labelled(sources: Sources) -> JudgedSet:
    """Read the labelled set, with any judge predictions it contains."""
    file, lines = sources.labels, read_lines(sources.labels, "--labels")
    if file.name.removesuffix(".gz").endswith(".csv"):
        return JudgedSet(read_in_file(file, lambda: read_csv("\n".join(lines), source=file.name)))
    return read_in_file(file, lambda: read_judged_set(lines, source=file.name))


def read_prediction_files(files: Sequence[Path]) -> tuple[Prediction, ...]:
    """Read the predictions of all files."""
    found: list[Prediction] = []
    for file in files:
        with naming_file(file):
            found += read_predictions(read_lines(file, "--predictions"))
    return tuple(found)


def read_run(path: Path) -> CalibrationReport:
    """Read the report of a run: `path` is its report.json or the folder that holds it."""
    file = path / REPORT if path.is_dir() else path
    text = "\n".join(read_lines(file, "REPORT"))
    try:
        return read_report(text)
    except ValidationError as error:
        first = find_problems(error, text)[0]
        raise InputError([first]).in_file(str(file)) from None


def read_in_file(file: Path, do: Callable[[], T]) -> T:
    """Call `do` and return its result; an InputError from it names the file."""
    with naming_file(file):
        return do()


@contextmanager
def naming_file(file: Path) -> Generator[None]:
    """Make an InputError raised in the block name the file."""
    try:
        yield
    except InputError as error:
        raise error.in_file(str(file)) from None


def read_lines(file: Path, option: str) -> list[str]:
    """Read the lines of a UTF-8 file, gzipped or not; a usage error if it cannot be read."""
    try:
        data = file.read_bytes()
        return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8").split("\n")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "neither UTF-8 nor gzip"
        raise typer.BadParameter(f"{file}: {reason}", param_hint=option) from None
