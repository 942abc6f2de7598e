"""Settings: read once from the environment, at the edge, and handed down as a value."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Generic, TypeVar, cast

from service.errors import Problem, SettingsError

PREFIX = "CALLGRADE_"
READ_ELSEWHERE = frozenset({"CALLGRADE_DEBUG"})  # the command line's, wanted even where the settings are bad

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Format(Generic[T]):
    """How the text of a variable becomes a value. `read` raises ValueError for text that is not `expected`."""

    read: Callable[[str], T]
    expected: str


def _whole(low: int, high: int) -> Format[int]:
    def read(text: str) -> int:
        # int() alone would take " 8000", "8_000" and digits of any script.
        if not (text.isascii() and text.isdigit() and len(text) <= 18 and low <= int(text) <= high):
            raise ValueError
        return int(text)

    return Format(read, f"a whole number from {low} to {high}")


def _host(text: str) -> str:
    if any(map(str.isspace, text)):
        raise ValueError
    return text


def _path(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:  # no home folder is known
        raise ValueError from error


def _paths(text: str) -> tuple[Path, ...]:
    return tuple(_path(part) for part in text.split(os.pathsep) if part)


LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def _level(text: str) -> str:
    if text.upper() not in LEVELS:
        raise ValueError
    return text.upper()


HOST = Format(_host, "a host name or an address")
LEVEL = Format(_level, f"one of {', '.join(LEVELS)}")
PATH = Format(_path, "a path; ~ is the home folder")
PATHS = Format(_paths, f"paths, with {os.pathsep!r} between them")


def _setting(default: str, form: Format[T], meaning: str) -> T:
    """A field with its format and its meaning. The default is text too: a row of the table shows what one would set."""
    metadata = {"default": default, "format": form, "meaning": meaning}
    return field(default_factory=lambda: form.read(default), metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting. `Settings()` holds the defaults; a field `x_y` is read from the variable `CALLGRADE_X_Y`.

    `Settings()` raises ValueError where `~` means nothing, for want of a home folder; `from_env` names the variable.
    """

    host: str = _setting("127.0.0.1", HOST, "Address to listen on.")
    port: int = _setting("8000", _whole(1, 65_535), "Port to listen on.")
    max_body_bytes: int = _setting("4194304", _whole(1_024, 2**30), "Largest request body, in bytes.")
    max_depth: int = _setting("64", _whole(1, 64), "Deepest nesting of JSON in a body.")
    max_digits: int = _setting("64", _whole(1, 64), "Most digits of an integer in a body.")
    max_string: int = _setting("1000000", _whole(1, 2**30), "Longest string in a body, in characters.")
    max_items: int = _setting("200000", _whole(1, 2**30), "Most JSON values in a body.")
    max_many: int = _setting("1000", _whole(1, 100_000), "Most items in one request to /v1/score/many.")
    max_concurrency: int = _setting(
        "100", _whole(1, 100_000), "Requests worked on at once; more are answered with 503."
    )
    graceful_seconds: int = _setting(
        "20", _whole(0, 3_600), "Time for running requests to end at shutdown, in seconds."
    )
    log_level: str = _setting("INFO", LEVEL, f"Least severe log record written: {', '.join(LEVELS)}.")
    home: Path = _setting("~/.callgrade", PATH, "Folder of the user's own rubrics, fits, cache and store.")  # noqa: RUF009 (it is field())
    rubric_dirs: tuple[Path, ...] = _setting("", PATHS, "More folders to look for rubrics in, separated as in PATH.")
    unknown: tuple[str, ...] = ()
    """Variables with our prefix that no setting has: most likely misspelt, so worth a warning."""

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Settings:
        """The settings that `environ` gives. A variable that is absent or empty leaves the default.

        Raises SettingsError naming every variable that cannot be used and what was expected of it.
        """
        values: dict[str, object] = {}
        problems: list[Problem] = []
        for row in _rows():
            text = environ.get(row.variable) or row.default
            try:
                values[row.name] = row.form.read(text)
            except ValueError:
                problems.append(Problem(row.variable, f"expected {row.form.expected}, not {text!r}"))
        if problems:
            raise SettingsError(problems)
        return cls(**values, unknown=_unknown(environ))  # pyright: ignore[reportArgumentType] (each was read by its own format)


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    default: str
    form: Format[object]
    meaning: str

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()


def _rows() -> list[_Row]:
    return [
        _Row(
            name=one.name,
            default=cast("str", one.metadata["default"]),
            form=cast("Format[object]", one.metadata["format"]),
            meaning=cast("str", one.metadata["meaning"]),
        )
        for one in fields(Settings)
        if one.metadata
    ]


def _unknown(environ: Mapping[str, str]) -> tuple[str, ...]:
    known = READ_ELSEWHERE | {row.variable for row in _rows()}
    return tuple(sorted(name for name in environ if name.startswith(PREFIX) and name not in known))


def settings_table() -> list[tuple[str, str, str]]:
    """(variable, default, meaning) of every setting, in the order of the fields. An empty default is ""."""
    return [(row.variable, row.default, row.meaning) for row in _rows()]
