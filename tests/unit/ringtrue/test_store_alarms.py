"""Alarms, and the nights that can be compared."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from ringtrue.nightly_numbers import OF_CHATS, Reading
from ringtrue.records import Check, Severity, Stratum
from ringtrue.store import Store
from tests.unit.ringtrue.kept import FOUND, NOON, OBSERVED, RAISED, TTL, Clock


def test_an_alarm_is_replaced_when_it_is_closed_and_others_stay(store: Store, clock: Clock) -> None:
    other = replace(RAISED, stream="kl_mean@128")
    store.conclude("r1", [], [], [RAISED, other, replace(RAISED, endpoint="zeta")])
    closed = replace(RAISED, closed=NOON + TTL, by="ann", why="new kernels")
    store.conclude("r1", [], [], [closed])
    assert store.alarms("acme", Check.LOGPROBS) == (other, closed)
    assert store.alarms("acme", Check.CONTEXT) == ()


CURVE = Reading(("kl_mean", "k_min"), believed=True)
PARTS = Reading(("empty_answers",), believed=False)


def measure(
    store: Store, run: str, value: float, *, believed: bool = True, ids: Severity = Severity.INFO
) -> None:
    """Let a run measure acme, and conclude."""
    store.start_run(run, "b")
    curve = [replace(OBSERVED, metric="kl_mean", value=value, run=run), replace(OBSERVED, run=run)]
    empty = replace(OBSERVED, metric="empty_answers", value=value, run=run, context_length=None)
    store.add_observations([*curve, empty, replace(empty, value=0.9, stratum=Stratum.LIVE)])
    tokens = replace(FOUND, check=Check.TOKENS, severity=ids)
    logprobs = replace(FOUND, check=Check.LOGPROBS, value=value if believed else None)
    store.conclude(run, [tokens, logprobs], [])


def values(store: Store, reading: Reading, run: str, *, counts: bool = True) -> list[float]:
    nights = store.nights("acme", "b", reading, run=run, counts=counts, limit=90)
    return [value for night in nights for value, _ in night.numbers.values()]


def test_a_night_counts_for_the_curve_and_for_parts_each_by_its_own_conditions(
    store: Store, clock: Clock
) -> None:
    for run, options in (
        ("a", {}),
        ("b", {"believed": False}),
        ("c", {"ids": Severity.WARN}),
        ("d", {"believed": False}),
    ):
        measure(store, run, 0.25 if run == "a" else 0.5, **options)
        clock.now += timedelta(days=1)
    assert values(store, CURVE, "d") == [0.25, 0.5]
    assert values(store, CURVE, "d", counts=False) == [0.25]
    # What live traffic shows is not pooled with what probes ask.
    assert values(store, PARTS, "d") == [0.25, 0.5, 0.5]
    assert values(store, PARTS, "nobody") == []


def test_tonight_is_the_newest_of_its_night_and_what_began_later_is_left_out(
    store: Store, clock: Clock
) -> None:
    measure(store, "z", 0.1)
    measure(store, "a", 0.2)  # at the same moment
    assert values(store, PARTS, "a") == [0.2]
    clock.now += timedelta(days=30)
    measure(store, "later", 0.3)
    clock.now -= timedelta(days=29)
    measure(store, "now", 0.4)
    assert values(store, PARTS, "now") == [0.1, 0.4]


def test_alarms_of_all_checks_are_read_at_once(store: Store) -> None:
    other = replace(RAISED, check=Check.OUTPUT, stream="empty_answers")
    store.conclude("r1", [], [], [RAISED, other])
    assert set(store.alarms("acme")) == {RAISED, other}
    assert store.alarms("acme", Check.OUTPUT) == (other,)


def test_what_the_chats_of_a_night_say_does_not_leave_its_other_numbers_out(store: Store) -> None:
    measure(store, "a", 0.25)
    chats = replace(FOUND, check=Check.TOKENS, code=f"{OF_CHATS}tools", severity=Severity.WARN)
    store.conclude("a", [chats], [])
    measure(store, "b", 0.5, ids=Severity.WARN)
    store.conclude("b", [replace(chats, severity=Severity.INFO)], [])

    store.start_run("c", "b")
    assert values(store, PARTS, "c", counts=False) == [0.25]


def test_numbers_of_single_questions_are_read_by_their_label_whatever_the_basis(
    store: Store, clock: Clock
) -> None:
    ids = replace(OBSERVED, probe="prompts", metric="prompt_ids", unit="hash", context_length=None)
    for run, basis, value in (("a", "b", 1.0), ("b", "other", 2.0), ("c", "b", 2.0**52 - 1)):
        store.start_run(run, basis)
        mine = replace(ids, run=run, value=value, session="one_user.0a")
        store.add_observations(
            [mine, replace(mine, session=None), replace(mine, stratum=Stratum.LIVE, value=0.0)]
        )
        store.add_observations([replace(mine, endpoint="zeta"), replace(mine, metric="other")])
        clock.now += timedelta(days=1)

    read = store.labelled("acme", ["prompt_ids"], run="c", limit=2)

    assert [night.run for night in read] == ["b", "c"]
    assert read[-1].values == {("prompt_ids", "one_user.0a"): 2.0**52 - 1}
    assert store.labelled("acme", ["prompt_ids"], run="a", limit=9)[-1].run == "a"
    assert store.labelled("acme", ["nothing"], run="c", limit=9) == ()
