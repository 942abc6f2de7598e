"""A worker of a later version of callgrade, which has changed the tables by then."""

from __future__ import annotations

import runpy
import shutil
import tempfile
from pathlib import Path

from alembic.config import Config
from alembic.script import ScriptDirectory

from service.store import database

CHANGE = '''"""What a later version adds."""

import sqlalchemy as sa
from alembic import op

revision = "later"
down_revision = "{head}"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("callgrade_batches", sa.Column("later", sa.Text))
    op.add_column("callgrade_chunks", sa.Column("later", sa.Integer, nullable=False, server_default="0"))
    op.create_table("callgrade_later", sa.Column("id", sa.Text, primary_key=True))
'''


def later(folder: Path) -> Path:
    """Migrations in a folder: ours, and one more."""
    shutil.copytree(database.MIGRATIONS, folder)
    config = Config()
    config.set_main_option("script_location", str(folder))
    config.set_main_option("path_separator", "os")
    head = ScriptDirectory.from_config(config).get_current_head()
    (folder / "versions" / "later.py").write_text(CHANGE.format(head=head))
    return folder


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        database.MIGRATIONS = later(Path(home) / "migrations")
        runpy.run_module("tests.jobs.plain", run_name="__main__")
