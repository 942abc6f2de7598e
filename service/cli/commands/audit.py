"""Show who changed what in the service's store, newest first."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from service.cli import options
from service.cli.options import read_settings
from service.cli.screen import print_table
from service.store.access.audit import Audit
from service.wiring import prepare_database


def main(
    limit: Annotated[int, Option(metavar="N", min=1, max=100_000, help="Maximum number of entries.")] = 100,
    output_format: options.TableOrJson = "table",
) -> None:
    """Show the audit log, newest first: who changed which keys, batches, calibrations and files, and when."""
    page = Audit(prepare_database(read_settings())).page(limit=limit)
    rows = [(one.at, one.who, one.origin or "-", one.act, one.tenant or "-", one.target or "-") for one in page.data]
    print_table(("at", "who", "from", "act", "tenant", "target"), rows, form=output_format, value=page)
