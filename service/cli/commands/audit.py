"""`callgrade audit`: show the audit log."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from service.cli.command import command
from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.cli.rendering.console import build_console, print_table


@command(80)
def audit(
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=100_000, help="Maximum number of entries.")] = 100,
    output_format: Annotated[Literal["table", "json"], typer.Option("--format", "-f", help="Output format.")] = "table",
) -> int:
    """Show the audit log, newest first: who changed which keys, batches, calibrations and files, and when."""
    from service.store.access.audit import AUDIT_LOG, Audit
    from service.wiring import prepare_database

    page = Audit(prepare_database(read_settings())).page(limit=limit)
    if output_format == "json":
        build_console().print(AUDIT_LOG.dump_json(page).decode(), soft_wrap=True)
        return ExitCode.PASSED
    rows = [(one.at, one.who, one.origin or "-", one.act, one.tenant or "-", one.target or "-") for one in page.data]
    print_table(("at", "who", "from", "act", "tenant", "target"), rows)
    return ExitCode.PASSED
