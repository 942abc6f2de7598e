"""The files in `tests/data/frozen`, and how what is so now differs from what they say."""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Json = Any

FOLDER = Path(__file__).parents[1] / "data" / "frozen"

DIGITS = 8
"""Hex digits of a sha256 that are kept where there are thousands."""

AGAIN = "If it is meant to: .venv/bin/python -m tests.frozen"


def digest(data: bytes, digits: int = DIGITS) -> str:
    """The first digits of the sha256."""
    return hashlib.sha256(data).hexdigest()[:digits]


def canonical(value: Json) -> bytes:
    """A value as JSON, the same for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def read_golden(name: str) -> Json:
    """A file of JSON."""
    return json.loads((FOLDER / name).read_text("utf-8"))


def write_golden(name: str, value: Json) -> None:
    """Writes one with a line for each thing, so that a change is read as one."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / name).write_text(_lines(value, 0) + "\n", "utf-8")


def _lines(value: Json, level: int) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if level == 2 or not isinstance(value, dict) or not value:
        return text
    rows = [f"{' ' * level} {json.dumps(k, ensure_ascii=False)}: {_lines(v, level + 1)}" for k, v in value.items()]
    return "{\n" + ",\n".join(rows) + "\n" + " " * level + "}"


def read_archive(name: str) -> dict[str, str]:
    """Texts by name, packed."""
    return json.loads(lzma.decompress((FOLDER / name).read_bytes()))


def write_archive(name: str, texts: Mapping[str, str]) -> None:
    """Packs them."""
    (FOLDER / name).write_bytes(lzma.compress(json.dumps(texts, ensure_ascii=False).encode()))


def differences(kept: Json, now: Json, pointer: str = "", *, most: int = 5) -> list[str]:
    """Where two values differ, by JSON pointer, in order; the first `most`."""
    if isinstance(kept, dict) and isinstance(now, dict):
        return _in_members(kept, now, pointer, most)
    if isinstance(kept, list) and isinstance(now, list) and len(kept) == len(now):
        inside = (differences(a, b, f"{pointer}/{n}") for n, (a, b) in enumerate(zip(kept, now, strict=True)))
        return [line for lines in inside for line in lines][:most]
    same = kept == now and type(kept) is type(now)
    return [] if same else [f"{pointer or '/'}: was {_short(kept)}, is {_short(now)}"]


def _in_members(kept: Json, now: Json, pointer: str, most: int) -> list[str]:
    found: list[str] = []
    for key in [*kept, *[key for key in now if key not in kept]]:
        place = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
        if key not in now:
            found.append(f"{place}: was {_short(kept[key])}, is gone")
        elif key not in kept:
            found.append(f"{place}: is new: {_short(now[key])}")
        else:
            found += differences(kept[key], now[key], place)
        if len(found) >= most:
            return found[:most]
    return found or ([] if list(kept) == list(now) else [f"{pointer or '/'}: the order of the members is another"])


def _short(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:119]}…"
