"""Alarms of series, who accepted them, and what a run's numbers can be compared with."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the table of alarms; runs and findings of before keep empty new columns."""
    op.add_column("run", sa.Column("basis", sa.String()))
    op.add_column("finding", sa.Column("since", sa.DateTime(timezone=True)))
    op.create_table(
        "alarm",
        sa.Column("run", sa.String(), nullable=False),
        sa.Column("endpoint", sa.String(), nullable=False),
        sa.Column("check", sa.String(), nullable=False),
        sa.Column("stream", sa.String(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("raised", sa.DateTime(timezone=True), nullable=False),
        sa.Column("evidence", sa.Float(), nullable=False),
        sa.Column("threshold", sa.Float(), nullable=False),
        sa.Column("level", sa.Float(), nullable=False),
        sa.Column("spread", sa.Float(), nullable=False),
        sa.Column("closed", sa.DateTime(timezone=True)),
        sa.Column("until", sa.DateTime(timezone=True)),
        sa.Column("by", sa.String()),
        sa.Column("why", sa.String()),
        sa.ForeignKeyConstraint(["run"], ["run.id"], name="fk_alarm_run"),
        sa.PrimaryKeyConstraint("run", "endpoint", "check", "stream", name="pk_alarm"),
    )
    op.create_index("ix_alarm_endpoint_check", "alarm", ["endpoint", "check"])
