"""Who is signed in to the pages, and the outcome of each item of a batch in a form that can be counted and listed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

TOLD = ("custom_id", "verdict", "stage", "finding", "tool", "stages", "cluster")


def upgrade() -> None:
    """Create the tables. Batches scored before have no rows in the second one."""
    op.create_table(
        "callgrade_sessions",
        sa.Column("hash", sa.Text, primary_key=True),
        sa.Column("key_id", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
    )
    op.create_index("callgrade_sessions_by_end", "callgrade_sessions", ["expires_at"])
    op.create_table(
        "callgrade_items",
        sa.Column("batch", sa.Text, sa.ForeignKey("callgrade_batches.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True),
        *[sa.Column(name, sa.Text, nullable=False) for name in TOLD],
        sa.Column("score", sa.Double),
    )
    op.create_index(
        "callgrade_items_by_verdict", "callgrade_items", ["batch", "verdict", "stages", "cluster", "position"]
    )
    broken = ["batch", "stage", "finding", "tool", "position"]
    op.create_index("callgrade_items_by_break", "callgrade_items", broken)


def downgrade() -> None:
    """Drop them."""
    op.drop_table("callgrade_items")
    op.drop_table("callgrade_sessions")
