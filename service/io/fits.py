"""The fits at hand: calibrations of judges, one file of JSON for each."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from service.core.calibrate import Fit
from service.core.invalid import problems_of
from service.errors import Problem, SettingsError


def read_fits(folders: Iterable[Path]) -> tuple[Fit, ...]:
    """Every fit of the folders that are there, in order of their names. SettingsError for a file that is none."""
    return tuple([_read(file) for folder in folders for file in sorted(folder.glob("*.json"))])


def _read(file: Path) -> Fit:
    try:
        return Fit.model_validate_json(file.read_bytes())
    except ValidationError as error:
        first = problems_of(error, None)[0]
        raise SettingsError([Problem(f"{file.name}: {first.path}", first.message)]) from None
