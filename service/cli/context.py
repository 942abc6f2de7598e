"""What every command starts from: the settings of the environment."""

from __future__ import annotations

import os

from service.cli.console import warn
from service.io.settings import Settings


def read_settings() -> Settings:
    """The settings; SettingsError where one cannot be used. One that nobody knows is warned of: a misspelling most likely."""
    settings = Settings.from_env(os.environ)
    for name in settings.unknown:
        warn(f"{name} is no setting of callgrade")
    return settings
