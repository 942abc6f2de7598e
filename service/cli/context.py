"""Every command starts here: it reads the settings from the environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from service.cli.rendering.console import warn

if TYPE_CHECKING:
    from service.settings import Settings


def read_settings() -> Settings:
    """Read the settings and warn about unknown names, which are most likely misspelt. SettingsError for one that is invalid."""
    from service.settings import Settings  # noqa: PLC0415 (every command imports this module)

    settings = Settings.from_env(os.environ)
    for name in settings.unknown:
        warn(f"{name} is not a callgrade setting")
    return settings
