"""Run by alembic: apply the changes over the given connection."""

from __future__ import annotations

from alembic import context

from service.store.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table="callgrade_schema",
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
