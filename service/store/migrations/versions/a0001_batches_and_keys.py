"""Batches with their chunks and results, submissions, workers and keys."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "callgrade_batches",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("ending", sa.Text),
        sa.Column("reason", sa.Text),
        sa.Column("resume_at", sa.Double),
        sa.Column("total", sa.Integer, nullable=False),
        sa.Column("open_chunks", sa.Integer, nullable=False),
        sa.Column("rejected", sa.Text, nullable=False),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("budget_usd", sa.Double),
        sa.Column("serial", sa.Boolean, nullable=False),
        sa.Column("webhook", sa.Text),
        sa.Column("webhook_status", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("deadline_at", sa.Double, nullable=False),
        sa.Column("ended_at", sa.Double),
    )
    op.create_index("callgrade_batches_of_tenant", "callgrade_batches", ["tenant", "created_at", "id"])
    op.create_index("callgrade_batches_open", "callgrade_batches", ["status", "deadline_at"])
    op.create_table(
        "callgrade_chunks",
        sa.Column("batch", sa.Text, sa.ForeignKey("callgrade_batches.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("first", sa.Integer, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("done", sa.Boolean, nullable=False),
        sa.Column("under_way", sa.Boolean, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("completed", sa.Integer, nullable=False),
        sa.Column("failed", sa.Integer, nullable=False),
        sa.Column("cost_usd", sa.Double, nullable=False),
        sa.Column("uncertain_usd", sa.Double, nullable=False),
        sa.Column("tokens_in", sa.BigInteger, nullable=False),
        sa.Column("tokens_out", sa.BigInteger, nullable=False),
        sa.Column("cache_hits", sa.BigInteger, nullable=False),
        sa.Column("payload", sa.LargeBinary),
    )
    op.create_table(
        "callgrade_results",
        sa.Column("batch", sa.Text, sa.ForeignKey("callgrade_batches.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True),
        sa.Column("ok", sa.Boolean, nullable=False),
        sa.Column("line", sa.Text, nullable=False),
    )
    op.create_table(
        "callgrade_submissions",
        sa.Column("tenant", sa.Text, primary_key=True),
        sa.Column("key_hash", sa.Text, primary_key=True),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("batch", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
    )
    op.create_table(
        "callgrade_workers",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("beat_at", sa.Double, nullable=False),
    )
    op.create_table(
        "callgrade_keys",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double),
        sa.Column("revoked_at", sa.Double),
    )


def downgrade() -> None:
    """Drop the tables."""
    for name in ("keys", "workers", "submissions", "results", "chunks", "batches"):
        op.drop_table(f"callgrade_{name}")
