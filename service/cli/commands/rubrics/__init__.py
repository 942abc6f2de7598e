"""`callgrade rubrics`."""

from __future__ import annotations

from service.cli.command import CommandGroup

GROUP = CommandGroup(10, "List, show and check rubrics.")
