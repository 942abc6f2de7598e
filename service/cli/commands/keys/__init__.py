"""`callgrade keys`."""

from __future__ import annotations

from service.cli.command import CommandGroup

GROUP = CommandGroup(30, "Create, rotate, list and revoke API keys of the service.")
