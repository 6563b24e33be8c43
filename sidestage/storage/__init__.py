"""The database: tables, queries, migrations. Rows stay inside, values leave."""
