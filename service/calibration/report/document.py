"""What a report is made of, for Markdown and HTML alike: sections with sentences, tables and links between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from service.calibration.results import JudgeReport


class Link(NamedTuple):
    """A text that leads to a section of the same report."""

    text: str
    to: str


Cell = str | Link


@dataclass(frozen=True, slots=True)
class ReportTable:
    """Rows of text beneath a head."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    parts: bool = False
    """Whether the rows are the parts of one thing, with texts as they were written."""


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A heading with what stands below it. `judge` names the judge whose plots belong here."""

    title: str
    level: int
    text: tuple[str, ...] = ()
    tables: tuple[ReportTable, ...] = ()
    judge: JudgeReport | None = field(default=None)
    anchor: str = ""
    """What links lead to it by: small letters, digits and hyphens."""
