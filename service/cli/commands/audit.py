"""`callgrade audit`: show the audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.command import command
from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.cli.rendering.console import build_console
from service.reporting.escaping import escape_unprintable

if TYPE_CHECKING:
    from service.store.access.audit import AuditEntry

COLUMNS = ("at", "who", "from", "act", "tenant", "target")


@command(80)
def audit(
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=100_000, help="Maximum number of entries.")] = 100,
    output_format: Annotated[Literal["table", "json"], typer.Option("--format", "-f", help="Output format.")] = "table",
) -> int:
    """Show the audit log, newest first: who changed which keys, batches, calibrations and files, and when."""
    from rich.table import Table
    from rich.text import Text

    from service.store.access.audit import AUDIT_LOG, Audit
    from service.wiring import prepare_database

    page = Audit(prepare_database(read_settings())).page(limit=limit)
    if output_format == "json":
        build_console().print(AUDIT_LOG.dump_json(page).decode(), soft_wrap=True)
        return ExitCode.PASSED
    table = Table(*COLUMNS, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for entry in page.data:
        table.add_row(*[Text(escape_unprintable(cell), overflow="fold") for cell in _build_row(entry)])
    build_console().print(table)
    return ExitCode.PASSED


def _build_row(entry: AuditEntry) -> tuple[str, ...]:
    return entry.at, entry.who, entry.origin or "-", entry.act, entry.tenant or "-", entry.target or "-"
