"""The composition root: what is built from settings, once, for every front door."""

from __future__ import annotations

from pathlib import Path

from service.io.engine import Engine
from service.io.jsonbody import Limits
from service.io.settings import Settings
from service.io.shelf import Shelf


def engine_of(settings: Settings) -> Engine:
    """The engine with the packaged rubrics and the user's; RubricError where one of them cannot be used."""
    return Engine(Shelf(rubric_folders(settings)))


def rubric_folders(settings: Settings) -> tuple[Path, ...]:
    """The user's folders of rubrics: `rubrics` in their home folder first, then those named."""
    own = settings.home / "rubrics"
    return (*([own] if own.is_dir() else []), *settings.rubric_dirs)


def limits_of(settings: Settings) -> Limits:
    """The limits of a request body, or of one record of a file."""
    return Limits(
        max_bytes=settings.max_body_bytes,
        max_depth=settings.max_depth,
        max_digits=settings.max_digits,
        max_string=settings.max_string,
        max_items=settings.max_items,
    )
