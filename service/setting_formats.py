"""Parse the text of an environment variable into the value of a setting."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar, get_args
from urllib.parse import urlsplit

from service.core.judging.sensitive_values import SensitiveKind
from service.core.report import JudgeMode

T = TypeVar("T")
W = TypeVar("W", bound=str)


@dataclass(frozen=True, slots=True)
class SettingFormat(Generic[T]):
    """How text becomes a value. `read` raises ValueError for text that is not `expected`."""

    read: Callable[[str], T]
    expected: str


def build_whole(low: int, high: int) -> SettingFormat[int]:
    """Build the format of a whole number within bounds."""

    def read(text: str) -> int:
        # int() alone would take " 8000", "8_000" and digits of any script.
        if not (text.isascii() and text.isdigit() and len(text) <= 18 and low <= int(text) <= high):
            raise ValueError
        return int(text)

    return SettingFormat(read, f"a whole number from {low} to {high}")


def _build_choice(words: tuple[W, ...]) -> SettingFormat[W]:
    def read(text: str) -> W:
        return words[[word.lower() for word in words].index(text.lower())]

    return SettingFormat(read, f"one of {', '.join(words)}")


def _allow_none(form: SettingFormat[T]) -> SettingFormat[T | None]:
    return SettingFormat(lambda text: form.read(text) if text else None, form.expected)


def _parse_dollars(text: str) -> float | None:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", text, re.ASCII):
        raise ValueError
    return float(text) or None


def _parse_host(text: str) -> str:
    if any(map(str.isspace, text)):
        raise ValueError
    return text


def _parse_path(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:  # no home folder is known
        raise ValueError from error


def _parse_paths(text: str) -> tuple[Path, ...]:
    return tuple(_parse_path(part) for part in text.split(os.pathsep) if part)


def _parse_flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"


_AUTHORITY = re.compile(r"(?:\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::[0-9]{1,5})?")


def _parse_authorities(text: str) -> tuple[str, ...]:
    authorities = tuple(part.strip().lower() for part in text.split(",") if part.strip())
    if not all(_AUTHORITY.fullmatch(one) for one in authorities):
        raise ValueError
    return authorities


_STORES = {"redis": "host", "rediss": "host", "unix": "path"}
"""The part that a URL of each scheme must have."""


def _parse_store(text: str) -> str:
    parts = urlsplit(text)  # it and `port` raise ValueError for a bad URL
    needed = {"host": parts.hostname, "path": parts.path.strip("/")}
    if text and (parts.port == 0 or parts.fragment or not needed.get(_STORES.get(parts.scheme, ""))):
        raise ValueError
    return text


_DATABASES = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgresql+psycopg": "postgresql+psycopg"}
"""SQLAlchemy's name for each accepted scheme."""


def _parse_database(text: str) -> str:
    scheme, colon, rest = text.partition("://")
    if not text:
        return ""
    if not colon or scheme not in _DATABASES or not rest.strip("/"):
        raise ValueError
    parts = urlsplit(f"x://{rest}")
    if parts.netloc.count("@") > 1 or parts.port == 0:  # `port` raises ValueError for a bad port
        raise ValueError
    return f"{_DATABASES[scheme]}://{rest}"


ReplyForm = Literal["auto", "schema", "tool", "text"]
REPLY_FORMS: tuple[ReplyForm, ...] = get_args(ReplyForm)
SENSITIVE_KINDS: tuple[SensitiveKind, ...] = get_args(SensitiveKind)
JUDGE_MODES: tuple[JudgeMode, ...] = get_args(JudgeMode)
MASK: SettingFormat[SensitiveKind] = _build_choice(SENSITIVE_KINDS)
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def _parse_masks(text: str) -> tuple[SensitiveKind, ...]:
    return tuple([MASK.read(name) for name in _split_names(text)])


def _split_names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


AUTHORITIES = SettingFormat(_parse_authorities, "hosts with or without a port, with commas between them")
DOLLARS = SettingFormat(_parse_dollars, "an amount such as 20 or 0.5, in US dollars; 0: no limit")
FLAG = SettingFormat(_parse_flag, "true or false")
JUDGES: SettingFormat[JudgeMode | None] = _allow_none(_build_choice(JUDGE_MODES))
HOST = SettingFormat(_parse_host, "a host name or an address")
WORD = SettingFormat(_parse_host, "text without spaces")
LEVEL = _build_choice(LEVELS)
MASKS = SettingFormat(_parse_masks, f"some of {', '.join(SENSITIVE_KINDS)}, with commas between them")
NAMES = SettingFormat(_split_names, "names with commas between them")
REPLY: SettingFormat[ReplyForm] = _build_choice(REPLY_FORMS)
PATH = SettingFormat(_parse_path, "a path; ~ is the home folder")
DATABASE = SettingFormat(_parse_database, "postgresql://user@host:port/name or sqlite:///path")
STORE = SettingFormat(_parse_store, "redis://host:port/number, rediss:// for TLS or unix:// for a socket")
PATHS = SettingFormat(_parse_paths, f"paths, with {os.pathsep!r} between them")
