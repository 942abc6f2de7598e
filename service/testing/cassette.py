"""Judge replies in a file for version control: recorded once, replayed without a network in every later run.

The file is JSON Lines. The first line says which model judged; each other line is a reply with the key of its question. Keys
cover all that may change a reply, except the provider's address, so that a cassette can be replayed elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue, TypeAdapter, ValidationError

from service.asking.cache.guard import Cache
from service.errors import InputError


@dataclass(frozen=True, slots=True)
class CassetteHead:
    """Who judged: the model, other models that requests may name, and the route to them (`build_route`)."""

    model: str
    models: tuple[str, ...] = ()
    route: str = ""


@dataclass(frozen=True, slots=True)
class _ReplyLine:
    key: str
    reply: JsonValue


_HEAD: TypeAdapter[CassetteHead] = TypeAdapter(CassetteHead)
_LINE: TypeAdapter[_ReplyLine] = TypeAdapter(_ReplyLine)


@dataclass
class Cassette(Cache):
    """A cassette as a cache of judgements. `added` holds the rows of this run; `missed` counts keys that were not found."""

    head: CassetteHead
    rows: dict[str, str] = field(default_factory=dict[str, str])
    added: dict[str, str] = field(default_factory=dict[str, str])
    missed: int = 0

    async def get(self, key: str) -> str | None:
        """Return the text of a row; None is a miss."""
        text = self.added.get(key) or self.rows.get(key)
        self.missed += text is None
        return text

    def set(self, key: str, text: str) -> None:
        """Keep a row for `save_cassette`."""
        self.added[key] = text


def read_cassette(path: Path) -> Cassette | None:
    """Read a cassette; None if the file does not exist. InputError, with the line, if it is not a cassette."""
    try:  # splitlines() would split at characters in replies
        head, *rest = path.read_text("utf-8").removesuffix("\n").split("\n")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError.at("", f"{path} cannot be read: {error}") from None
    try:
        cassette = Cassette(_HEAD.validate_json(head))
    except ValidationError:
        message = f'{path}:1: expected the first line of a cassette, such as {{"model": "..."}}'
        raise InputError.at("", message) from None
    for number, line in enumerate(rest, start=2):
        try:
            row = _LINE.validate_json(line)
        except ValidationError:
            raise InputError.at("", f'{path}:{number}: expected {{"key": ..., "reply": ...}}') from None
        text = json.dumps(row.reply)
        if cassette.rows.setdefault(row.key, text) != text:
            message = f"{path}:{number}: another line has a different reply to the same question; remove one"
            raise InputError.at("", message)
    return cassette


def save_cassette(path: Path, head: CassetteHead, added: Mapping[str, str]) -> int:
    """Add rows to a cassette, sorted by key; return how many rows it has then.

    Existing rows with a different head are dropped: no question would find them, or no fit would match them.
    """
    before = read_cassette(path)
    rows = {**(before.rows if before is not None and before.head == head else {}), **added}
    lines = [_HEAD.dump_json(head).decode()]
    for key, text in sorted(rows.items()):
        lines.append(json.dumps({"key": key, "reply": json.loads(text)}, ensure_ascii=False))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return len(rows)
