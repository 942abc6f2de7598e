"""Daily usage of tenants; stored answers under an Idempotency-Key; items that bring their worker down."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables, and add the columns that count deaths under a chunk."""
    counts = ("questions", "held_questions", "cached", "tokens_in", "tokens_out")
    dollars = ("cost_usd", "uncertain_usd", "held_usd")
    op.create_table(
        "callgrade_usage",
        sa.Column("tenant", sa.Text, primary_key=True),
        sa.Column("day", sa.Integer, primary_key=True),
        *[sa.Column(name, sa.BigInteger, nullable=False) for name in counts],
        *[sa.Column(name, sa.Double, nullable=False) for name in dollars],
    )
    op.create_table(
        "callgrade_answers",
        sa.Column("tenant", sa.Text, primary_key=True),
        sa.Column("key_hash", sa.Text, primary_key=True),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("claim", sa.Text, nullable=False),
        sa.Column("claimed_at", sa.Double, nullable=False),
        sa.Column("headers", sa.Text),
        sa.Column("body", sa.LargeBinary),
    )
    op.create_index("callgrade_answers_by_age", "callgrade_answers", ["tenant", "claimed_at"])
    op.add_column("callgrade_chunks", sa.Column("deaths", sa.Integer, nullable=False, server_default="0"))
    op.add_column("callgrade_chunks", sa.Column("quarantined", sa.Integer, nullable=False, server_default="0"))
    some = sa.text("quarantined > 0")
    op.create_index(
        "callgrade_chunks_quarantined", "callgrade_chunks", ["quarantined"], sqlite_where=some, postgresql_where=some
    )
    op.add_column("callgrade_chunks", sa.Column("suspects", sa.Text, nullable=False, server_default="{}"))


def downgrade() -> None:
    """Drop them."""
    op.drop_table("callgrade_answers")
    op.drop_table("callgrade_usage")
    op.drop_index("callgrade_chunks_quarantined", "callgrade_chunks")
    for name in ("deaths", "quarantined", "suspects"):
        op.drop_column("callgrade_chunks", name)
