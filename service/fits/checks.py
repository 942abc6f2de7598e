"""How fits have held up since they were made: a JSON Lines file beside the fits, with a line for each check."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from pathlib import Path

from pydantic import Field, ValidationError

from service.core.models.kinds import FrozenModel, Several

FILE = "checks.jsonl"


class FitCheck(FrozenModel):
    """The result of judging a pinned sample again."""

    fit: str
    """The id of the fit."""
    day: date
    items: int = Field(ge=0)
    kappa: float | None
    then: float | None
    """Kappa on the same items when the fit was made."""
    drifted: Several[str] = ()
    """The figures that fell outside their earlier interval, and on which side."""


def append_checks(folder: Path, checks: Iterable[FitCheck]) -> None:
    """Append checks to the file in the folder of fits. OSError where it cannot be written."""
    lines = "".join([f"{check.model_dump_json()}\n" for check in checks])
    if lines:
        with (folder / FILE).open("a", encoding="utf-8") as file:
            file.write(lines)


def read_checks(folder: Path) -> dict[str, list[FitCheck]]:
    """Read the checks of each fit, oldest first; skip a line that cannot be read."""
    found: dict[str, list[FitCheck]] = {}
    file = folder / FILE
    for line in file.read_text("utf-8").splitlines() if file.is_file() else ():
        try:
            check = FitCheck.model_validate_json(line)
        except ValidationError:
            continue
        found.setdefault(check.fit, []).append(check)
    return found
