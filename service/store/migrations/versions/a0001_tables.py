"""The tables of the first release. Until then a change of `service.store.tables` changes them too."""

from __future__ import annotations

from alembic import op

from service.store.tables import METADATA

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    METADATA.create_all(op.get_bind())


def downgrade() -> None:
    """Drop them."""
    METADATA.drop_all(op.get_bind())
