"""`callgrade judge`: try out the configured judge."""

from __future__ import annotations

from service.cli import options
from service.cli.options import build_command_group, read_settings

commands = build_command_group("judge", "Try out the configured judge.")


@commands.command("check")
def check(plugin: options.Plugin = None, quiet: options.Quiet = False) -> int:
    """Ask the configured judge three questions with known answers, and say what to change.

    Tells within two seconds whether its server can be reached. Nothing is cached. The exit code is 0 if all replies can be used
    and are right, 2 if not, and 4 if the judge cannot be asked.
    """
    from service.cli.judge_check import try_judge

    return try_judge(read_settings(), plugin or (), quiet=quiet)
