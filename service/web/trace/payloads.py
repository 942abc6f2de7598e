"""Texts and JSON values as they are shown: in pieces that light up, large ones folded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pydantic import JsonValue
from pydantic_core import to_json

from service.core.json.pointers import escape_token
from service.web.trace.grounding import RootMarks
from service.web.trace.marks import Mark, TextPiece, cut_pieces, escape_invisible

FOLD_CHARS = 16_000
"""Size, in characters, from which a payload is folded."""
MAX_QUOTED_CHARS = 200
"""Longest text, in characters, that a table shows in quotes."""
MAX_DEPTH = 200
"""Most levels of a value that are laid out one below the other."""
LINE_CHARS = 80
"""Longest list or object, in characters, that stays on one line."""
MAX_JOINED_CHARS = 256 * 2**10
"""Largest value, in characters, with its short parts joined to one line."""


@dataclass(frozen=True, slots=True)
class Payload:
    """A text or a JSON value."""

    pieces: tuple[TextPiece, ...]
    size: int
    """Characters of the whole."""
    folded: bool = False
    whole: Mark | None = None
    """The mark of the whole."""

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join([piece.text for piece in self.pieces])

    @property
    def plain(self) -> str | None:
        """The text, if no part of it has a mark; None: use `pieces`."""
        return self.pieces[0].text if len(self.pieces) == 1 and self.pieces[0].mark is None else None


def build_payload(value: JsonValue, marks: RootMarks | None) -> Payload:
    """Build the payload of a value, with the marks below it."""
    whole = marks.leaves.get("") if marks is not None else None
    if isinstance(value, str):
        pieces = cut_pieces(value, () if marks is None else marks.spans.get("", ())) or (TextPiece(""),)
    elif marks is None:
        pieces = (TextPiece(_spell(value, 0)),)
    else:
        pieces = tuple(_write(value, marks))
    size = sum([len(piece.text) for piece in pieces])
    return Payload(pieces, size, folded=size > FOLD_CHARS, whole=whole)


def build_cell(value: JsonValue, marks: RootMarks | None) -> Payload:
    """Build the payload of a table cell: a short text is in quotes, because "1" is not 1. It contains the whole's mark."""
    payload = build_payload(value, marks)
    pieces = payload.pieces
    if isinstance(value, str) and len(value) <= MAX_QUOTED_CHARS and "\n" not in value:
        pieces = (TextPiece('"'), *pieces, TextPiece('"'))
    if payload.whole is not None:
        payload, is_plain = replace(payload, pieces=pieces), all(piece.mark is None for piece in pieces)
        pieces = (TextPiece(payload.text, payload.whole),) if is_plain else (TextPiece("", payload.whole), *pieces)
    return replace(payload, pieces=pieces)


def _write(value: JsonValue, marks: RootMarks) -> Iterator[TextPiece]:
    """Lay out a JSON value over lines; neighbours without a mark become one piece."""
    marks_by_path: dict[str, list[Mark]] = {}
    for path, mark in marks.leaves.items():
        marks_by_path.setdefault(path, []).append(mark)
    for path, spans in marks.spans.items():  # inside JSON, a text is marked as a whole
        marks_by_path.setdefault(path, []).extend([span.mark for span in spans])
    marks_by_path.pop("", None)  # the mark of the whole is shown beside it
    unmarked: list[str] = []
    for piece in _Writer(marks_by_path, frozenset(_list_above(marks_by_path))).write(value, "", 0):
        if piece.mark is None:
            unmarked.append(piece.text)
            continue
        yield TextPiece("".join(unmarked))
        yield piece
        unmarked = []
    yield TextPiece("".join(unmarked))


def _list_above(leaves: Iterable[str]) -> Iterator[str]:
    for path in leaves:
        for n, character in enumerate(path):
            if character == "/":
                yield path[:n]


def format_json(value: JsonValue) -> str:
    r"""Format JSON over several lines. A lone surrogate, which is no character, is escaped.

    >>> format_json({"a": [1.0, "\ud800"]})
    '{\n  "a": [\n    1.0,\n    "\\ud800"\n  ]\n}'
    """
    try:
        return to_json(value, indent=2, inf_nan_mode="constants").decode()
    except (ValueError, TypeError):  # a lone surrogate, or too deep for it
        return json.dumps(value, ensure_ascii=True, indent=2)


def format_compact(value: JsonValue) -> str:
    r"""Format JSON for reading: over several lines, with short lists and objects on one line.

    >>> print(format_compact({"order": {"id": 7, "state": "paid"}, "text": "x" * 100})[:40])
    {
      "order": {"id": 7, "state": "paid"},
    """
    text = format_json(value)
    if "\n" not in text or len(text) > MAX_JOINED_CHARS:
        return text
    open_blocks: list[list[str]] = [[]]
    for line in text.split("\n"):
        if line.endswith(("[", "{")):
            open_blocks.append([line])
        elif line.endswith(("]", "}", "],", "},")) and line.lstrip(" ").startswith(("]", "}")):
            block = open_blocks.pop()
            open_blocks[-1].extend(_join([*block, line]))
        else:
            open_blocks[-1].append(line)
    return "\n".join(open_blocks[0])


def _join(lines: list[str]) -> list[str]:
    """Join the lines of a list or object if they are short. A block with an unjoined part is too long itself."""
    if len(lines) > LINE_CHARS:
        return lines
    first, *inside, last = lines
    rest = " ".join([one.lstrip(" ") for one in inside]) + last.lstrip(" ")
    return lines if len(rest) > LINE_CHARS else [first + rest]


class _Writer(NamedTuple):
    leaves: Mapping[str, Sequence[Mark]]
    above: frozenset[str]
    """The pointers of containers that hold a value with a mark."""

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
    text = format_compact(value)
    return escape_invisible(text.replace("\n", "\n" + "  " * depth) if depth else text)
