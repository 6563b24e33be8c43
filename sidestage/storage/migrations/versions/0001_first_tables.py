"""The first tables: single values, projects, tokens, terminals, the audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "single_values",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_table(
        "projects",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("host_id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("path", sa.Text, nullable=False, unique=True),
        sa.Column("device", sa.Text, nullable=False),
        sa.Column("inode", sa.Text, nullable=False),
        sa.Column("read_only", sa.Boolean, nullable=False),
        sa.Column("templates", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("secret_sha256", sa.LargeBinary, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("device_id", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("last_used_at", sa.BigInteger),
        sa.Column("expires_at", sa.BigInteger),
    )
    _create_terminals()
    _create_audit()


def _create_terminals() -> None:
    op.create_table(
        "terminals",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("host_id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("template", sa.Text, nullable=False),
        sa.Column("project_id", sa.Text),
        sa.Column("directory", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("starting", sa.Boolean, nullable=False),
        sa.Column("cols", sa.Integer, nullable=False),
        sa.Column("rows", sa.Integer, nullable=False),
        sa.Column("title", sa.Text),
        sa.Column("exit_status", sa.Integer),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("session_id", sa.Text),
        sa.Column("read_only", sa.Boolean, nullable=False),
        sa.Column("sandbox", sa.Text, nullable=False),
        sa.Column("end_reason", sa.Text),
    )
    op.create_table(
        "start_keys",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("input_sha256", sa.Text, nullable=False),
        sa.Column("terminal_id", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )


def _create_audit() -> None:
    op.create_table(
        "audit_entries",
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("address", sa.Text),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("target_id", sa.Text),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("code", sa.Text),
        sa.Column("message_id", sa.Text),
        sa.Column("detail", sa.Text),
        sa.Column("prev", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
    )
    for verb in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER audit_entries_no_{verb.lower()} "
            f"BEFORE {verb} ON audit_entries "
            "BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END"
        )


def downgrade() -> None:
    for name in (
        "audit_entries",
        "start_keys",
        "terminals",
        "tokens",
        "projects",
        "single_values",
    ):
        op.drop_table(name)
