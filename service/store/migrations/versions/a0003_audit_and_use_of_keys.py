"""The acts of admins, when a key was last used, and which key replaced it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table, and add the columns."""
    op.add_column("callgrade_keys", sa.Column("used_at", sa.Double))
    op.add_column("callgrade_keys", sa.Column("replaced_by", sa.Text))
    op.create_table(
        "callgrade_audit",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("act", sa.Text, nullable=False),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("callgrade_audit_at", "callgrade_audit", ["at"])


def downgrade() -> None:
    """Drop the table and the columns."""
    op.drop_table("callgrade_audit")
    op.drop_column("callgrade_keys", "replaced_by")
    op.drop_column("callgrade_keys", "used_at")
