"""How fits have held up since they were made: a JSON Lines file with a line for each check.

There is one beside the installed fits, and one, with each item's agreement, in the folder of a run: the next checks need that.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import TypeVar

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
    """What has drifted, in words; empty where nothing has."""


class ItemizedCheck(FitCheck):
    """A check with the agreement of each item, so that later checks can be paired with it."""

    agreed: dict[str, bool]
    """For each item that was answered, whether judge and label agree."""


C = TypeVar("C", bound=FitCheck)


def append_checks(folder: Path, checks: Iterable[FitCheck]) -> None:
    """Append checks to the file in a folder. OSError where it cannot be written."""
    lines = "".join([f"{check.model_dump_json()}\n" for check in checks])
    if lines:
        with (folder / FILE).open("a", encoding="utf-8") as file:
            file.write(lines)


def read_checks(folder: Path, kind: type[C]) -> dict[str, list[C]]:
    """Read the checks of each fit, oldest first; skip a line that cannot be read."""
    found: dict[str, list[C]] = {}
    file = folder / FILE
    for line in file.read_text("utf-8").splitlines() if file.is_file() else ():
        try:
            check = kind.model_validate_json(line)
        except ValidationError:
            continue
        found.setdefault(check.fit, []).append(check)
    return found
