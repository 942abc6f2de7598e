"""`callgrade keys`."""

from __future__ import annotations

from service.cli.command import CommandGroup

GROUP = CommandGroup(30, "Make, rotate, list and revoke the keys that callers of the service need.")
