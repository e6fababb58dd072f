"""Runs the migrations on the connection that ``ringtrue.database`` hands over.

Alembic executes this file for each upgrade; nothing imports it.
"""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    # SQLite's DDL is transactional as well: an upgrade happens whole or not at all.
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
