"""Push endpoints, and who was told of what."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "push_endpoints",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("device_id", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("p256dh", sa.LargeBinary),
        sa.Column("auth", sa.LargeBinary),
        sa.Column("secret", sa.LargeBinary),
    )
    op.create_table(
        "push_told",
        sa.Column("subject_id", sa.Text, primary_key=True),
        sa.Column("device_id", sa.Text, primary_key=True),
        sa.Column("topic", sa.Text, nullable=False),
    )


def downgrade() -> None:
    """Drop them."""
    for table in ("push_told", "push_endpoints"):
        op.drop_table(table)
