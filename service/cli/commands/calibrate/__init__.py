"""`callgrade calibrate`."""

from __future__ import annotations

from service.cli.command import command_group

command_group(__name__, 150, "Fit judges to human labels, and show how well they agree.")
