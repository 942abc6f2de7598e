"""Kept scores, items to label, labels, and fits installed over HTTP."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    _make_scores()
    _make_items()
    _make_labels()
    op.create_table(
        "callgrade_fits",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        *[sa.Column(name, sa.Text, nullable=False) for name in ("fingerprint", "fit", "calibration", "who")],
        sa.Column("installed_at", sa.Double, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("callgrade_fits_in_place", "callgrade_fits", ["fingerprint", "id"])


def _make_scores() -> None:
    op.create_table(
        "callgrade_scores",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("rubric", sa.Text, nullable=False),
        sa.Column("verdict", sa.Text, nullable=False),
        sa.Column("score", sa.Double),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("request", sa.LargeBinary, nullable=False),
        sa.Column("report", sa.LargeBinary, nullable=False),
    )
    op.create_index("callgrade_scores_of_tenant", "callgrade_scores", ["tenant", "id"])


def _make_items() -> None:
    op.create_table(
        "callgrade_label_items",
        *[sa.Column(name, sa.Text, primary_key=True) for name in ("tenant", "item", "criterion")],
        sa.Column("stage", sa.Text, nullable=False),
        sa.Column("draw", sa.Text, nullable=False),
        sa.Column("waits", sa.Boolean, nullable=False),
        *[sa.Column(name, sa.Double) for name in ("raw", "value", "threshold")],
        sa.Column("passed", sa.Boolean),
        sa.Column("predictions", sa.Text),
        sa.Column("document", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("batch", sa.Text, sa.ForeignKey("callgrade_batches.id", ondelete="CASCADE")),
        sa.Column("position", sa.Integer),
        sa.Column("kept", sa.Text, sa.ForeignKey("callgrade_scores.id", ondelete="CASCADE")),
    )
    drawn = ["tenant", "criterion", "waits", "draw"]
    op.create_index("callgrade_label_items_drawn", "callgrade_label_items", drawn)
    valued = ["tenant", "criterion", "waits", "raw"]
    op.create_index("callgrade_label_items_by_value", "callgrade_label_items", valued)
    op.create_index("callgrade_label_items_of_batch", "callgrade_label_items", ["batch", "position"])
    op.create_index("callgrade_label_items_of_score", "callgrade_label_items", ["kept"])


def _make_labels() -> None:
    key = ["tenant", "item", "criterion"]
    op.create_table(
        "callgrade_labels",
        sa.Column("id", sa.Text, primary_key=True),
        *[sa.Column(name, sa.Text, nullable=False) for name in ("tenant", "annotator", "item", "criterion")],
        sa.Column("step", sa.Integer, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("value", sa.Double),
        sa.Column("failing_step", sa.Integer),
        sa.Column("claim", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("blind", sa.Boolean, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("decides", sa.Boolean, nullable=False),
        sa.Column("made_at", sa.Double, nullable=False),
        sa.ForeignKeyConstraint(key, [f"callgrade_label_items.{name}" for name in key], ondelete="CASCADE"),
    )
    once = ["tenant", "criterion", "item", "step", "annotator", "decides"]
    op.create_index("callgrade_labels_once", "callgrade_labels", once, unique=True)
    op.create_index("callgrade_labels_of_tenant", "callgrade_labels", ["tenant", "id"])
    op.create_table(
        "callgrade_label_reveals",
        *[sa.Column(name, sa.Text, primary_key=True) for name in (*key, "annotator")],
        sa.ForeignKeyConstraint(key, [f"callgrade_label_items.{name}" for name in key], ondelete="CASCADE"),
    )


def downgrade() -> None:
    """Drop them."""
    for name in ("label_reveals", "labels", "label_items", "scores", "fits"):
        op.drop_table(f"callgrade_{name}")
