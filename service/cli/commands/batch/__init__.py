"""`callgrade batch`."""

from __future__ import annotations

from service.cli.command import CommandGroup

GROUP = CommandGroup(40, "Submit batches to a running service, watch them and fetch their results.")
