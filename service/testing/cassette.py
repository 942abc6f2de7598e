"""Replies of judges in a file for version control: recorded once, replayed in every later run without a network.

JSON Lines: the first says which model judged, each other is a reply by the key of its question. Keys cover all that may change
a reply, but not the address of the provider, so that a cassette replays elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue, TypeAdapter, ValidationError

from service.core.judging.sensitive_values import SensitiveKind
from service.errors import InputError


@dataclass(frozen=True, slots=True)
class CassetteHead:
    """Who judged: the model, others that requests may name, what was masked, and the way to them (`build_route`)."""

    model: str
    models: tuple[str, ...] = ()
    mask: tuple[SensitiveKind, ...] = ()
    route: str = ""


@dataclass(frozen=True, slots=True)
class _ReplyLine:
    key: str
    reply: JsonValue


_HEAD: TypeAdapter[CassetteHead] = TypeAdapter(CassetteHead)
_LINE: TypeAdapter[_ReplyLine] = TypeAdapter(_ReplyLine)


@dataclass
class Cassette:
    """The rows at hand as a cache of judgements; `added` are those that came in this run, `missed` what it did not have."""

    head: CassetteHead
    rows: dict[str, str] = field(default_factory=dict[str, str])
    added: dict[str, str] = field(default_factory=dict[str, str])
    missed: int = 0

    async def get(self, key: str) -> str | None:
        """The text of a row; None is a miss."""
        text = self.added.get(key) or self.rows.get(key)
        self.missed += text is None
        return text

    async def set(self, key: str, text: str) -> None:
        """Keeps a row for `save_cassette`."""
        self.added[key] = text

    async def close(self) -> None:
        """Nothing to let go of."""


def read_cassette(path: Path) -> Cassette | None:
    """The cassette of a file; None where there is none. InputError, with the line, for what is none."""
    try:
        lines = path.read_text("utf-8").removesuffix("\n").split("\n")  # a reply may hold what ends a line elsewhere
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError.at("", f"{path} cannot be read: {error}") from None
    head, *rest = lines
    try:
        found = Cassette(_HEAD.validate_json(head))
    except ValidationError:
        raise InputError.at("", f'{path}:1: expected the head of a cassette, such as {{"model": "..."}}') from None
    for number, line in enumerate(rest, start=2):
        try:
            row = _LINE.validate_json(line)
        except ValidationError:
            raise InputError.at("", f'{path}:{number}: expected {{"key": ..., "reply": ...}}') from None
        text = json.dumps(row.reply)
        if found.rows.setdefault(row.key, text) != text:
            raise InputError.at("", f"{path}:{number}: another line has another reply to the same question; remove one")
    return found


def save_cassette(path: Path, head: CassetteHead, added: Mapping[str, str]) -> int:
    """Writes rows beside those that are there, in the order of their keys; how many there are then.

    Rows of another head go: no question would find them, or no fit would know them.
    """
    before = read_cassette(path)
    rows = {**(before.rows if before is not None and before.head == head else {}), **added}
    lines = [_HEAD.dump_json(head).decode()]
    lines += [
        json.dumps({"key": key, "reply": json.loads(text)}, ensure_ascii=False) for key, text in sorted(rows.items())
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return len(rows)
