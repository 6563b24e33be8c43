"""How Alembic reaches our database: through the connection `database.migrate` gives."""

from alembic import context

from sidestage.storage.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
