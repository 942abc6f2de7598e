"""Where a kept score broke, so that kept scores can be counted and listed like batch items."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

TOLD = ("stage", "finding", "tool", "stages", "cluster")


def upgrade() -> None:
    """Add the columns. For scores kept before, it is unknown where they broke."""
    for name in TOLD:
        op.add_column("callgrade_scores", sa.Column(name, sa.Text, nullable=False, server_default=""))
    counted = ["tenant", "verdict", "stages", "cluster", "id"]
    op.create_index("callgrade_scores_by_verdict", "callgrade_scores", counted)
    op.create_index("callgrade_scores_by_break", "callgrade_scores", ["tenant", "stage", "finding", "tool", "id"])


def downgrade() -> None:
    """Drop them."""
    for name in ("callgrade_scores_by_verdict", "callgrade_scores_by_break"):
        op.drop_index(name, "callgrade_scores")
    for name in TOLD:
        op.drop_column("callgrade_scores", name)
