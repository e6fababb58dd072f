"""What the store keeps of runs, observations, findings and verdicts."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from ringtrue.alarm import Alarm
from ringtrue.errors import StoreError
from ringtrue.records import Check, Finding, Observation, State, Verdict
from ringtrue.store import RunStatus, Store
from ringtrue.tables import ALARM, FINDING, OBSERVATION, VERDICT
from tests.unit.ringtrue.kept import FINE, FOUND, NOON, OBSERVED, WORSE, Clock


def test_what_was_stored_comes_back_equal(store: Store) -> None:
    store.add_observations([OBSERVED])
    store.conclude("r1", [FOUND], [WORSE, FINE])

    assert store.observations("r1") == (OBSERVED,)
    assert store.findings("r1") == (replace(FOUND, evidence={"ids": [1, 2, 3]}),)
    assert store.current_verdicts() == (FINE, WORSE)


@pytest.mark.parametrize(
    ("record", "table"), [(Observation, OBSERVATION), (Finding, FINDING), (Verdict, VERDICT), (Alarm, ALARM)]
)
def test_every_field_of_a_record_has_a_column(record: type, table: object) -> None:
    assert {field.name for field in fields(record)} <= {column.name for column in table.columns}


def test_times_come_back_aware_and_in_utc_whatever_zone_they_were_given_in(store: Store) -> None:
    tokyo = NOON.astimezone(timezone(timedelta(hours=9)))
    store.conclude("r1", [], [replace(WORSE, since=tokyo)])

    (verdict,) = store.current_verdicts()
    assert verdict.since == NOON
    assert verdict.since.tzinfo is UTC


def test_a_time_without_a_zone_is_refused_and_nothing_of_its_batch_is_kept(store: Store) -> None:
    with pytest.raises(StoreError, match="a time without a time zone"):
        store.add_observations([OBSERVED, replace(OBSERVED, at=datetime(2026, 1, 1))])  # noqa: DTZ001 - the subject
    assert store.observations("r1") == ()


def test_the_newest_verdict_of_each_endpoint_and_check_is_current(store: Store, clock: Clock) -> None:
    other = replace(WORSE, endpoint="zeta")
    store.conclude("r1", [], [WORSE, FINE, other])
    clock.now += timedelta(days=1)
    store.finish_run("r1", RunStatus.OK)
    store.start_run("r2")
    healed = replace(WORSE, run="r2", verdict=State.OK, cause=None, alternatives=())
    store.conclude("r2", [], [healed])

    assert store.current_verdicts() == (FINE, healed, other)
    assert store.current_verdicts("zeta") == (other,)
    assert store.previous_verdicts() == {
        ("acme", Check.LOGPROBS): FINE,
        ("acme", Check.CONTEXT): healed,
        ("zeta", Check.CONTEXT): other,
    }


def test_a_run_left_open_by_a_crash_is_marked_failed_by_the_next(store: Store, clock: Clock) -> None:
    clock.now += timedelta(days=1)
    store.start_run("r2")
    store.finish_run("r2", RunStatus.INTERRUPTED, "Ctrl-C")

    newest, crashed = store.runs()
    assert (newest.id, newest.status, newest.reason, newest.ended) == (
        "r2",
        "interrupted",
        "Ctrl-C",
        clock.now,
    )
    assert (crashed.id, crashed.status, crashed.ended) == ("r1", "failed", clock.now)


def test_observations_of_a_run_nobody_started_are_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="FOREIGNKEY"):
        store.add_observations([replace(OBSERVED, run="nobody")])


def test_a_failed_conclusion_leaves_neither_its_findings_nor_its_verdicts(store: Store) -> None:
    with pytest.raises(StoreError):
        store.conclude("r1", [FOUND], [replace(WORSE, run="nobody")])
    assert store.findings("r1") == ()


def test_a_floor_is_kept_until_it_is_replaced(store: Store) -> None:
    assert store.floor_get("k") is None
    store.floor_put("k", {"p1": [[7, -0.1], [9, -2.5]]})
    assert store.floor_get("k") == {"p1": [[7, -0.1], [9, -2.5]]}
    store.floor_put("k", {"p2": []})
    assert store.floor_get("k") == {"p2": []}
