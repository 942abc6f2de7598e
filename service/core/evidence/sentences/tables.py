"""Read the Markdown tables of an answer: which column head belongs to which cell."""

from __future__ import annotations

import re
from collections.abc import Mapping

_RULE = re.compile(r"\|?[\s:|-]*-[\s:|-]*\|?")
MAX_ROWS = 400


def find_heads(text: str) -> dict[int, list[str]]:
    """Return the column heads for each table row, by the offset where the row begins; rows above the rule have none.

    >>> find_heads("| Flight | Price |\\n|---|---|\\n| HAT1 | $5 |")
    {29: ['Flight', 'Price']}
    """
    found: dict[int, list[str]] = {}
    heads: list[str] = []
    before, at = "", 0
    for line in text.splitlines(keepends=True) if "|" in text else ():
        stripped = line.strip()
        if not stripped.startswith("|"):
            heads = []
        elif _RULE.fullmatch(stripped):
            heads = split_cells(before)
        elif heads and len(found) < MAX_ROWS:
            found[at] = heads
        before, at = stripped, at + len(line)
    return found


def stands_over_rule(text: str, end: int) -> bool:
    r"""Whether the line that ends at `end` is the head of a table.

    >>> stands_over_rule("| Cost |\n|---|", 8), stands_over_rule("| 5 |\n| 6 |", 5)
    (True, False)
    """
    stop = text.find("\n", end + 1)
    line = text[end + 1 : stop if stop > end else len(text)].strip()
    return "|" in line and _RULE.fullmatch(line) is not None


def split_cells(row: str) -> list[str]:
    """Return the cells of a row, without emphasis marks."""
    return [cell.strip(" *_`") for cell in row.strip().strip("|").split("|")]


def find_head(text: str, line: int, at: int, heads: Mapping[int, list[str]]) -> str | None:
    """Return the column head for the offset `at`, whose line begins at `line`; None outside tables."""
    row = heads.get(line)
    column = text.count("|", line, at) - 1 if row is not None else -1
    return row[column] if row is not None and 0 <= column < len(row) else None
