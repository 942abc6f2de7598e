"""How fits have held since they were made: a line for each check of a fit that is in place, in a file beside the fits."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from pathlib import Path

from pydantic import Field, ValidationError

from service.core.models.kinds import FrozenModel, Several

FILE = "checks.jsonl"


class FitCheck(FrozenModel):
    """What a pinned sample, judged again, came to."""

    fit: str
    """Its id."""
    day: date
    items: int = Field(ge=0)
    kappa: float | None
    then: float | None
    """On the same items, when it was made."""
    drifted: Several[str] = ()
    """The figures that fell out of the interval they had, and to which side."""


def note_checks(folder: Path, checks: Iterable[FitCheck]) -> None:
    """Appends to the file in the folder of fits. OSError where it cannot be written."""
    lines = "".join([f"{one.model_dump_json()}\n" for one in checks])
    if lines:
        with (folder / FILE).open("a", encoding="utf-8") as file:
            file.write(lines)


def read_checks(folder: Path) -> dict[str, list[FitCheck]]:
    """The checks of each fit, first to last; a line that cannot be read is left out."""
    found: dict[str, list[FitCheck]] = {}
    file = folder / FILE
    for line in file.read_text("utf-8").splitlines() if file.is_file() else ():
        try:
            one = FitCheck.model_validate_json(line)
        except ValidationError:
            continue
        found.setdefault(one.fit, []).append(one)
    return found
