"""Leases: who holds one, and until when."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ringtrue.errors import LeaseHeldError
from ringtrue.store import Store
from tests.unit.ringtrue.kept import TTL, Clock


def test_a_held_lease_names_its_holder_since_when_and_until_when(store: Store, clock: Clock) -> None:
    store.acquire_lease("cycle", "host-a pid 7", TTL)
    clock.now += timedelta(minutes=1)
    with pytest.raises(LeaseHeldError) as caught:
        store.acquire_lease("cycle", "host-b pid 8", TTL)
    assert "host-a pid 7 runs a cycle here since 2026-03-01 12:00:00Z" in str(caught.value)
    assert "ends at 12:02:00Z" in str(caught.value)
    store.acquire_lease("export", "host-b pid 8", TTL)


def test_a_lease_that_ran_out_is_taken_over_and_its_old_holder_is_told(store: Store, clock: Clock) -> None:
    store.acquire_lease("cycle", "a", TTL)
    clock.now += TTL
    store.acquire_lease("cycle", "b", TTL)
    with pytest.raises(LeaseHeldError, match="taken over"):
        store.renew_lease("cycle", "a", TTL)
    store.release_lease("cycle", "a")
    with pytest.raises(LeaseHeldError, match="b runs a cycle"):
        store.acquire_lease("cycle", "a", TTL)


def test_a_renewed_lease_holds_and_a_released_one_is_free(store: Store, clock: Clock) -> None:
    store.acquire_lease("cycle", "a", TTL)
    clock.now += timedelta(minutes=1)
    store.renew_lease("cycle", "a", TTL)
    clock.now += timedelta(minutes=1, seconds=59)
    with pytest.raises(LeaseHeldError):
        store.acquire_lease("cycle", "b", TTL)
    store.release_lease("cycle", "a")
    store.acquire_lease("cycle", "b", TTL)
