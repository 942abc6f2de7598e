"""Calibrations: batches of labelled items, and what is fitted to the judges' answers about them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Give batches a kind, and create the table."""
    op.add_column("callgrade_batches", sa.Column("kind", sa.Text, nullable=False, server_default="scores"))
    op.create_table(
        "callgrade_calibrations",
        sa.Column("batch", sa.Text, sa.ForeignKey("callgrade_batches.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("items", sa.Integer, nullable=False),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("unanswered", sa.Integer),
        sa.Column("reasons", sa.Text),
        sa.Column("fits", sa.Text),
        sa.Column("report", sa.Text),
        sa.Column("labels", sa.LargeBinary, nullable=False),
        sa.Column("predictions", sa.LargeBinary),
    )


def downgrade() -> None:
    """Drop the table and the column."""
    op.drop_table("callgrade_calibrations")
    op.drop_column("callgrade_batches", "kind")
