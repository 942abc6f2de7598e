"""Texts and JSON values as they are shown: in pieces that light up, large ones folded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.pointers import escape_token
from service.web.trace.links import RootMarks
from service.web.trace.marks import Mark, Piece, cut_pieces, spell_unseen

FOLD_CHARS = 16_000
"""Characters from which on a payload is folded."""
HEAD_CHARS = 2_000
"""Characters of a folded payload that a page shows; the rest is a download."""
MAX_QUOTED_CHARS = 200
"""Characters of a text in a table up to which it stands in quotes."""
MAX_DEPTH = 200
"""Levels of a value that are set out one below the other."""


@dataclass(frozen=True, slots=True)
class Payload:
    """A text or a JSON value."""

    path: str
    """Its pointer in the trace."""
    pieces: tuple[Piece, ...]
    size: int
    """Characters of the whole."""
    folded: bool = False
    cut: bool = False
    """Whether only its first characters are in `pieces`."""
    whole: Mark | None = None
    """The mark of all of it."""


class PayloadChoices(NamedTuple):
    """How large payloads are treated: cut where the whole can be had elsewhere, else complete."""

    fold: int = FOLD_CHARS
    head: int | None = HEAD_CHARS
    """Characters shown of a folded one; None: all."""


CUT = PayloadChoices()
"""For a page that can link to the rest."""

COMPLETE = PayloadChoices(head=None)
"""For a page that has no server behind it."""


def build_payload(value: JsonValue, path: str, marks: RootMarks | None, choices: PayloadChoices) -> Payload:
    """The payload of a value at a pointer, with the marks below it."""
    whole = marks.leaves.get("") if marks is not None else None
    if isinstance(value, str):
        return _build_text(value, path, marks, whole, choices)
    pieces = tuple(_write(value, marks))
    size = sum([len(piece.text) for piece in pieces])
    folded = size > choices.fold
    if folded and choices.head is not None:
        return Payload(path, _take_head(pieces, choices.head), size, folded=True, cut=True, whole=whole)
    return Payload(path, pieces, size, folded=folded, whole=whole)


def build_cell(value: JsonValue, path: str, marks: RootMarks | None, choices: PayloadChoices) -> Payload:
    """The payload of a value that stands in a table: a short text is in quotes, for "1" is not 1."""
    if not isinstance(value, str) or len(value) > MAX_QUOTED_CHARS or "\n" in value:
        return build_payload(value, path, marks, choices)
    spans = () if marks is None else marks.spans.get("", ())
    inside = cut_pieces(json.dumps(value, ensure_ascii=False)[1:-1], ()) if '"' in value or "\\" in value else None
    whole = marks.leaves.get("") if marks is not None else None
    pieces = (Piece('"'), *(inside or cut_pieces(value, spans)), Piece('"'))
    if whole is not None:
        pieces = (Piece("".join([piece.text for piece in pieces]), whole),)
    return Payload(path, pieces, len(value), whole=whole)


def spell_payload(value: JsonValue) -> str:
    """The whole of a value as it is downloaded: a text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _build_text(text: str, path: str, marks: RootMarks | None, whole: Mark | None, choices: PayloadChoices) -> Payload:
    folded = len(text) > choices.fold
    cut = folded and choices.head is not None
    spans = marks.spans.get("", ()) if marks is not None else ()
    return Payload(path, cut_pieces(text, spans, choices.head if cut else None), len(text), folded, cut, whole)


def _take_head(pieces: tuple[Piece, ...], most: int) -> tuple[Piece, ...]:
    kept: list[Piece] = []
    for piece in pieces:
        kept.append(Piece(piece.text[:most], piece.mark))
        most -= len(piece.text)
        if most <= 0:
            break
    return tuple(kept)


def _write(value: JsonValue, marks: RootMarks | None) -> Iterator[Piece]:
    """A JSON value set out over lines; neighbours without a mark are one piece."""
    leaves = {} if marks is None else {path: mark for path, mark in marks.leaves.items() if path}
    spans = {} if marks is None else {path: found for path, found in marks.spans.items() if path}
    for path, found in spans.items():  # in a text inside JSON the whole text stands for a stretch of it
        leaves.setdefault(path, found[0].mark)
    writer = _Writer(leaves, frozenset(_list_above(leaves)))
    held: list[str] = []
    for piece in writer.write(value, "", 0):
        if piece.mark is None:
            held.append(piece.text)
            continue
        yield Piece("".join(held))
        yield piece
        held = []
    yield Piece("".join(held))


def _list_above(leaves: Mapping[str, Mark]) -> Iterator[str]:
    for path in leaves:
        for n, character in enumerate(path):
            if character == "/":
                yield path[:n]


class _Writer(NamedTuple):
    leaves: Mapping[str, Mark]
    above: frozenset[str]
    """The pointers of what holds a value with a mark."""

    def write(self, value: JsonValue, path: str, depth: int) -> Iterator[Piece]:
        mark = self.leaves.get(path)
        if mark is not None or path not in self.above or not isinstance(value, dict | list) or depth > MAX_DEPTH:
            yield Piece(_spell(value, depth), mark)
            return
        pad = "\n" + "  " * (depth + 1)
        if isinstance(value, dict):
            members = [(f"{_spell(key, 0)}: ", escape_token(key), item) for key, item in value.items()]
        else:
            members = [("", str(n), item) for n, item in enumerate(value)]
        before = "{" if isinstance(value, dict) else "["
        for key, token, item in members:
            yield Piece(f"{before}{pad}{key}")
            yield from self.write(item, f"{path}/{token}", depth + 1)
            before = ","
        yield Piece(f"\n{'  ' * depth}{'}' if isinstance(value, dict) else ']'}")


def _spell(value: JsonValue, depth: int) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, indent=2)
    except RecursionError:
        text = json.dumps(str(type(value).__name__))
    return spell_unseen(text.replace("\n", "\n" + "  " * depth) if depth else text)
