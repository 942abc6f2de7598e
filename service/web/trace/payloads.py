"""Texts and JSON values as they are shown: in pieces that light up, large ones folded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pydantic import JsonValue
from pydantic_core import to_json

from service.core.json.pointers import escape_token
from service.web.trace.links import RootMarks
from service.web.trace.marks import Mark, TextPiece, cut_pieces, spell_unseen

FOLD_CHARS = 16_000
"""Characters from which on a payload is folded."""
HEAD_CHARS = 2_000
"""Characters of a folded payload that a page shows; the rest is a download."""
AROUND_CHARS = 160
"""Characters around a mark that are shown of what is cut."""
MAX_QUOTED_CHARS = 200
"""Characters of a text in a table up to which it stands in quotes."""
MAX_DEPTH = 200
"""Levels of a value that are set out one below the other."""
LINE_CHARS = 80
"""Characters of a list or object up to which it stands on one line."""
MAX_JOINED_CHARS = 256 * 2**10
"""Characters of a value up to which what is short in it is joined to one line."""


@dataclass(frozen=True, slots=True)
class Payload:
    """A text or a JSON value."""

    path: str
    """Its pointer in the trace."""
    pieces: tuple[TextPiece, ...]
    size: int
    """Characters of the whole."""
    folded: bool = False
    cut: bool = False
    """Whether only its first characters are in `pieces`."""
    whole: Mark | None = None
    """The mark of all of it."""

    @property
    def plain(self) -> str | None:
        """The text, where no part of it has a mark; None: `pieces` have."""
        return self.pieces[0].text if len(self.pieces) == 1 and self.pieces[0].mark is None else None


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
        pieces = cut_pieces(value, () if marks is None else marks.spans.get("", ())) or (TextPiece(""),)
    elif marks is None:
        pieces = (TextPiece(_spell(value, 0)),)
    else:
        pieces = tuple(_write(value, marks))
    size = sum([len(piece.text) for piece in pieces])
    if size > choices.fold and choices.head is not None:
        return Payload(path, tuple(_take_head(pieces, choices.head)), size, folded=True, cut=True, whole=whole)
    return Payload(path, pieces, size, folded=size > choices.fold, whole=whole)


def build_cell(value: JsonValue, path: str, marks: RootMarks | None, choices: PayloadChoices) -> Payload:
    """The payload of a value that stands in a table: a short text is in quotes, for "1" is not 1. The mark of all is in it."""
    found = build_payload(value, path, marks, choices)
    pieces = found.pieces
    if isinstance(value, str) and len(value) <= MAX_QUOTED_CHARS and "\n" not in value:
        pieces = (TextPiece('"'), *pieces, TextPiece('"'))
    if found.whole is not None:
        plain = all(piece.mark is None for piece in pieces)
        text = "".join([piece.text for piece in pieces])
        pieces = (TextPiece(text, found.whole),) if plain else (TextPiece("", found.whole), *pieces)
    return replace(found, pieces=pieces)


def spell_payload(value: JsonValue) -> str:
    """The whole of a value as it is downloaded: a text as it is, all else as JSON."""
    return value if isinstance(value, str) else set_out(value)


def _take_head(pieces: tuple[TextPiece, ...], most: int) -> Iterator[TextPiece]:
    """The first characters, and of what follows the marked pieces with a little around them."""
    for n, piece in enumerate(pieces):
        if most > 0:
            yield TextPiece(piece.text[:most], piece.mark)
        elif piece.mark is not None:
            yield TextPiece(f"\n…{pieces[n - 1].text[-AROUND_CHARS:] if pieces[n - 1].mark is None else ''}")
            yield TextPiece(piece.text[:HEAD_CHARS], piece.mark)
            yield from [TextPiece(after.text[:AROUND_CHARS]) for after in pieces[n + 1 : n + 2] if after.mark is None]
        most -= len(piece.text)


def _write(value: JsonValue, marks: RootMarks) -> Iterator[TextPiece]:
    """A JSON value set out over lines; neighbours without a mark are one piece."""
    found: dict[str, list[Mark]] = {}
    for path, mark in marks.leaves.items():
        found.setdefault(path, []).append(mark)
    for path, spans in marks.spans.items():  # in a text inside JSON the whole text stands for a stretch of it
        found.setdefault(path, []).extend([span.mark for span in spans])
    found.pop("", None)  # the mark of all of it stands beside it
    held: list[str] = []
    for piece in _Writer(found, frozenset(_list_above(found))).write(value, "", 0):
        if piece.mark is None:
            held.append(piece.text)
            continue
        yield TextPiece("".join(held))
        yield piece
        held = []
    yield TextPiece("".join(held))


def _list_above(leaves: Iterable[str]) -> Iterator[str]:
    for path in leaves:
        for n, character in enumerate(path):
            if character == "/":
                yield path[:n]


def set_out(value: JsonValue) -> str:
    r"""JSON over several lines. A lone surrogate, which is no character, is an escape in it.

    >>> set_out({"a": [1.0, "\ud800"]})
    '{\n  "a": [\n    1.0,\n    "\\ud800"\n  ]\n}'
    """
    try:
        return to_json(value, indent=2, inf_nan_mode="constants").decode()
    except (ValueError, TypeError):  # a lone surrogate, or deeper than it goes
        return json.dumps(value, ensure_ascii=True, indent=2)


def lay_out(value: JsonValue) -> str:
    r"""JSON as it is read: over several lines, and what is short in it on one.

    >>> print(lay_out({"order": {"id": 7, "state": "paid"}, "text": "x" * 100})[:40])
    {
      "order": {"id": 7, "state": "paid"},
    """
    text = set_out(value)
    if "\n" not in text or len(text) > MAX_JOINED_CHARS:
        return text
    kept: list[list[str]] = [[]]
    for line in text.split("\n"):
        if line.endswith(("[", "{")):
            kept.append([line])
        elif line.endswith(("]", "}", "],", "},")) and line.lstrip(" ").startswith(("]", "}")):
            own = kept.pop()
            kept[-1].extend(_join([*own, line]))
        else:
            kept[-1].append(line)
    return "\n".join(kept[0])


def _join(lines: list[str]) -> list[str]:
    """The lines of a list or object; one where they are short. One that holds what was not joined is longer still."""
    if len(lines) > LINE_CHARS:
        return lines
    first, *inside, last = lines
    rest = " ".join([one.lstrip(" ") for one in inside]) + last.lstrip(" ")
    return lines if len(rest) > LINE_CHARS else [first + rest]


class _Writer(NamedTuple):
    leaves: Mapping[str, Sequence[Mark]]
    above: frozenset[str]
    """The pointers of what holds a value with a mark."""

    def write(self, value: JsonValue, path: str, depth: int) -> Iterator[TextPiece]:
        marks = self.leaves.get(path, ())
        if path not in self.above or not isinstance(value, dict | list) or depth > MAX_DEPTH:
            yield from [TextPiece("", mark) for mark in marks[1:]]
            yield TextPiece(_spell(value, depth), marks[0] if marks else None)
            return
        yield from [TextPiece("", mark) for mark in marks]
        pad = "\n" + "  " * (depth + 1)
        if isinstance(value, dict):
            members = [(f"{_spell(key, 0)}: ", escape_token(key), item) for key, item in value.items()]
        else:
            members = [("", str(n), item) for n, item in enumerate(value)]
        before = "{" if isinstance(value, dict) else "["
        for key, token, item in members:
            yield TextPiece(f"{before}{pad}{key}")
            yield from self.write(item, f"{path}/{token}", depth + 1)
            before = ","
        yield TextPiece(f"\n{'  ' * depth}{'}' if isinstance(value, dict) else ']'}")


def _spell(value: JsonValue, depth: int) -> str:
    text = lay_out(value)
    return spell_unseen(text.replace("\n", "\n" + "  " * depth) if depth else text)
