"""How many questions judges were asked for a batch, and how many are allowed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; on SQLite put a chunk's before its items, which take long to read through."""
    op.add_column("callgrade_batches", sa.Column("max_questions", sa.BigInteger))
    questions = sa.Column("questions", sa.BigInteger, nullable=False, server_default="0")
    if op.get_context().dialect.name != "sqlite":
        op.add_column("callgrade_chunks", questions)
        return
    with op.batch_alter_table("callgrade_chunks", recreate="always") as chunks:
        chunks.add_column(questions, insert_before="payload")


def downgrade() -> None:
    """Drop them."""
    op.drop_column("callgrade_chunks", "questions")
    op.drop_column("callgrade_batches", "max_questions")
