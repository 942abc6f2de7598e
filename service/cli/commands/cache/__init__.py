"""`callgrade cache`."""

from __future__ import annotations

from service.cli.command import CommandGroup

GROUP = CommandGroup(20, "Inspect, prune and clear the cache of judgements.")
