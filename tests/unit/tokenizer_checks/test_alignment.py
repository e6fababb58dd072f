from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenizer_checks.alignment import Change, Run, align, replaced, shared_head

IDS = st.lists(st.integers(0, 3), max_size=40)
ANY_IDS = st.lists(st.integers(), max_size=20)


@given(IDS, IDS)
def test_replacing_every_run_gives_the_used_ids(expected: list[int], used: list[int]) -> None:
    assert replaced(expected, used, align(expected, used)) == tuple(used)


@given(ANY_IDS, ANY_IDS)
def test_any_integers_can_be_aligned(expected: list[int], used: list[int]) -> None:
    assert replaced(expected, used, align(expected, used)) == tuple(used)


@given(IDS)
def test_equal_ids_have_no_run(ids: list[int]) -> None:
    assert align(ids, list(ids)) == ()


@given(IDS, IDS)
def test_the_first_run_begins_at_the_first_difference(expected: list[int], used: list[int]) -> None:
    runs = align(expected, used)

    if expected != used:
        assert runs[0].start == runs[0].used_start == shared_head(expected, used)


@given(IDS, IDS)
def test_runs_are_in_order_not_empty_and_apart(expected: list[int], used: list[int]) -> None:
    runs = align(expected, used)

    assert all(run.missing or run.added for run in runs)
    for run, following in pairwise(runs):
        assert run.stop < following.start
        assert following.start - run.stop == following.used_start - run.used_stop


def _edits(expected: list[int], used: list[int]) -> int:
    row = list(range(len(used) + 1))
    for i, a in enumerate(expected, 1):
        above, row[0] = row[0], i
        for j, b in enumerate(used, 1):
            above, row[j] = row[j], above if a == b else 1 + min(row[j], row[j - 1])
    return row[-1]


@given(st.lists(st.integers(0, 3), max_size=8), st.lists(st.integers(0, 3), max_size=8))
def test_short_lists_get_a_shortest_script(expected: list[int], used: list[int]) -> None:
    runs = align(expected, used)

    assert sum(run.missing + run.added for run in runs) == _edits(expected, used)


@pytest.mark.parametrize(
    ("used", "change"),
    [([1, 3], Change.MISSING), ([1, 2, 9, 3], Change.ADDED), ([1, 9, 3], Change.REPLACED)],
)
def test_a_run_says_what_happened(used: list[int], change: Change) -> None:
    (run,) = align([1, 2, 3], used)

    assert run.change is change


def test_a_run_between_far_apart_changes_is_kept() -> None:
    expected = list(range(20_000))
    used = [*expected[:5], *expected[9:15_000], -1, *expected[15_000:]]

    assert align(expected, used) == (Run(5, 9, 5, 5), Run(15_000, 15_000, 14_996, 14_997))


def test_lists_that_differ_almost_everywhere_stay_held_together_by_what_they_share() -> None:
    expected = np.random.default_rng(3).integers(50_000, size=30_000).tolist()
    # Every fifth token is split in two, as another pre-tokenizer would.
    used = [part for at, i in enumerate(expected) for part in ((60_000, 60_001) if at % 5 == 0 else (i,))]

    runs = align(expected, used)

    assert replaced(expected, used, runs) == tuple(used)
    assert sum(run.missing for run in runs) < 1.2 * 6_000


def test_nothing_in_common_is_one_replaced_run() -> None:
    assert align([1] * 5_000, [2] * 4_000) == (Run(0, 5_000, 0, 4_000),)
