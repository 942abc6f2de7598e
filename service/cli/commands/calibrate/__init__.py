"""`callgrade calibrate`."""

from __future__ import annotations

from service.cli.command import CommandGroup

GROUP = CommandGroup(50, "Fit judges to human labels, and show how well they agree.")
