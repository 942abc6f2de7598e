"""The files of calibration: labelled sets, predictions and reports, each error with its file and place."""

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

from service.calibration.importers.published import Errors, ImportedSet, Shape, import_labels
from service.calibration.labels import read_csv
from service.calibration.predictions import Prediction, read_predictions
from service.calibration.results import CalibrationReport, read_report
from service.core.models.validation import find_problems
from service.errors import InputError

T = TypeVar("T")

REPORT = "report.json"


@dataclass(frozen=True, slots=True)
class Sources:
    """The files of a run. Without predictions, those that stand beside the labels are taken."""

    labels: Path
    predictions: Sequence[Path] = ()
    shape: Shape | None = None
    errors: Errors = "contradictory"


def read_labelled(sources: Sources) -> ImportedSet:
    """The labelled set, with what judges are recorded to have said of it."""
    file, lines = sources.labels, lines_of(sources.labels, "--labels")
    if file.name.removesuffix(".gz").endswith(".csv"):
        return ImportedSet(read_in_file(file, lambda: read_csv("\n".join(lines), source=file.name)))
    return read_in_file(
        file, lambda: import_labels(lines, source=file.name, shape=sources.shape, errors=sources.errors)
    )


def read_predicted(files: Sequence[Path]) -> tuple[Prediction, ...]:
    """The predictions of all files."""
    found: list[Prediction] = []
    for file in files:
        with name_file(file):
            found += read_predictions(lines_of(file, "--predictions"))
    return tuple(found)


def read_run(path: Path) -> CalibrationReport:
    """The report of a run: `path` is its report.json or the folder that holds it."""
    file = path / REPORT if path.is_dir() else path
    text = "\n".join(lines_of(file, "REPORT"))
    try:
        return read_report(text)
    except ValidationError as error:
        first = find_problems(error, text)[0]
        raise InputError([first]).in_file(str(file)) from None


def read_in_file(file: Path, do: Callable[[], T]) -> T:
    """What `do` gives; its errors name the file."""
    with name_file(file):
        return do()


@contextmanager
def name_file(file: Path) -> Generator[None]:
    """Errors within name the file they are about."""
    try:
        yield
    except InputError as error:
        raise error.in_file(str(file)) from None


def lines_of(file: Path, option: str) -> list[str]:
    """The lines of a file in UTF-8, gzip-compressed or not; a usage error where it cannot be read."""
    try:
        data = file.read_bytes()
        return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8").split("\n")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "neither UTF-8 nor gzip"
        raise typer.BadParameter(f"{file}: {reason}", param_hint=option) from None
