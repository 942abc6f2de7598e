"""What every command starts from: the settings of the environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from service.cli.rendering.console import warn

if TYPE_CHECKING:
    from service.settings import Settings


def read_settings() -> Settings:
    """The settings; SettingsError where one cannot be used. One that nobody knows is warned of: a misspelling most likely."""
    from service.settings import Settings  # noqa: PLC0415 (every command imports this module)

    settings = Settings.from_env(os.environ)
    for name in settings.unknown:
        warn(f"{name} is no setting of callgrade")
    return settings
