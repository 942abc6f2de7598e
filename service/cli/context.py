"""What every command starts from: the settings of the environment, and the rubrics and limits they give."""

from __future__ import annotations

import os
from pathlib import Path

from service.cli.console import warn
from service.io.engine import Engine
from service.io.jsonbody import Limits
from service.io.settings import Settings
from service.io.shelf import Shelf

OURS = frozenset({"CALLGRADE_DEBUG"})
"""Variables that are read elsewhere."""


def read_settings() -> Settings:
    """The settings; SettingsError where one cannot be used. One that nobody knows is warned of: a misspelling most likely."""
    settings = Settings.from_env(os.environ)
    for name in settings.unknown:
        if name not in OURS:
            warn(f"{name} is no setting of callgrade")
    return settings


def rubric_folders(settings: Settings) -> tuple[Path, ...]:
    """The user's folders of rubrics: `rubrics` in their home folder first, then those named."""
    own = settings.home / "rubrics"
    return (*([own] if own.is_dir() else []), *settings.rubric_dirs)


def engine_of(settings: Settings) -> Engine:
    """The engine with the packaged rubrics and the user's; RubricError where one of them cannot be used."""
    return Engine(Shelf(rubric_folders(settings)))


def limits_of(settings: Settings) -> Limits:
    """The limits of one record: those of a request body."""
    return Limits(
        max_bytes=settings.max_body_bytes,
        max_depth=settings.max_depth,
        max_digits=settings.max_digits,
        max_string=settings.max_string,
        max_items=settings.max_items,
    )
