"""The first store: runs, what they measured and concluded, noise floors, leases."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create every table."""
    op.create_table(
        "floor",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("top_k", sa.JSON(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_floor"),
    )
    op.create_table(
        "lease",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("acquired", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_lease"),
    )
    op.create_table(
        "run",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("started", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended", sa.DateTime(timezone=True)),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("reason", sa.String()),
        sa.PrimaryKeyConstraint("id", name="pk_run"),
    )
    op.create_table(
        "finding",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run", sa.String(), nullable=False),
        sa.Column("endpoint", sa.String(), nullable=False),
        sa.Column("check", sa.String(), nullable=False),
        sa.Column("code", sa.String(), nullable=False),
        sa.Column("severity", sa.String(), nullable=False),
        sa.Column("party", sa.String(), nullable=False),
        sa.Column("cause", sa.String(), nullable=False),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column("alternatives", sa.JSON(), nullable=False),
        sa.Column("effect", sa.Float()),
        sa.Column("unit", sa.String()),
        sa.Column("interval", sa.JSON(none_as_null=True)),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("detectable_effect", sa.Float()),
        sa.Column("onset", sa.Integer()),
        sa.Column("metric", sa.String()),
        sa.Column("value", sa.Float()),
        sa.Column("measured", sa.Boolean(), nullable=False),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["run.id"], name="fk_finding_run"),
        sa.PrimaryKeyConstraint("id", name="pk_finding"),
    )
    op.create_index("ix_finding_endpoint_check", "finding", ["endpoint", "check"])
    op.create_index("ix_finding_run", "finding", ["run"])
    op.create_table(
        "observation",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run", sa.String(), nullable=False),
        sa.Column("endpoint", sa.String(), nullable=False),
        sa.Column("probe", sa.String(), nullable=False),
        sa.Column("metric", sa.String(), nullable=False),
        sa.Column("value", sa.Float(), nullable=False),
        sa.Column("unit", sa.String(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("context_length", sa.Integer()),
        sa.Column("stratum", sa.String(), nullable=False),
        sa.Column("session", sa.String()),
        sa.ForeignKeyConstraint(["run"], ["run.id"], name="fk_observation_run"),
        sa.PrimaryKeyConstraint("id", name="pk_observation"),
    )
    op.create_index("ix_observation_endpoint_metric_at", "observation", ["endpoint", "metric", "at"])
    op.create_index("ix_observation_run", "observation", ["run"])
    op.create_table(
        "verdict",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run", sa.String(), nullable=False),
        sa.Column("endpoint", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("check", sa.String(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("cause", sa.String()),
        sa.Column("alternatives", sa.JSON(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True)),
        sa.Column("metric", sa.String()),
        sa.Column("value", sa.Float()),
        sa.Column("unit", sa.String()),
        sa.Column("interval", sa.JSON(none_as_null=True)),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("detectable_effect", sa.Float()),
        sa.Column("onset", sa.Integer()),
        sa.ForeignKeyConstraint(["run"], ["run.id"], name="fk_verdict_run"),
        sa.PrimaryKeyConstraint("id", name="pk_verdict"),
    )
    op.create_index("ix_verdict_endpoint_check_id", "verdict", ["endpoint", "check", "id"])
    op.create_index("ix_verdict_run", "verdict", ["run"])
