"""The adoption policy."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "adoption",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column("excluded", sa.Text, nullable=False),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("adoption")
