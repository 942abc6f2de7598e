"""What every command starts from: the settings of the environment."""

from __future__ import annotations

import os

from service.cli.console import warn
from service.io.settings import Settings

OURS = frozenset({"CALLGRADE_DEBUG"})
"""Variables that are read elsewhere."""


def read_settings() -> Settings:
    """The settings; SettingsError where one cannot be used. One that nobody knows is warned of: a misspelling most likely."""
    settings = Settings.from_env(os.environ)
    for name in settings.unknown:
        if name not in OURS:
            warn(f"{name} is no setting of callgrade")
    return settings
