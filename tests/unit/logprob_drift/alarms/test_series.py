"""Top-k rows against an endpoint's own past."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logprob_drift.alarms.series import (
    RESOLUTION,
    NightCells,
    cells_of,
    merged,
    night_distances,
    prompt_distances,
    worst_distances,
)


def night(*rows: dict[int, float]) -> NightCells:
    return cells_of([(tuple(row), tuple(row.values())) for row in rows])


def honest(nights: int, seed: int, shift_from: int | None = None, shift: float = 0.0) -> list[NightCells]:
    generator = np.random.default_rng(seed)
    usual = -np.sort(generator.exponential(2.0, 20)) - 0.5
    direction = generator.normal(size=20)
    found = []
    for at in range(nights):
        moved = usual + (shift * direction if shift_from is not None and at >= shift_from else 0.0)
        moved = moved + 0.01 * generator.normal(size=20)
        rows = moved + 0.05 * generator.normal(size=(10, 20))
        found.append(cells_of([(range(20), row.tolist()) for row in rows]))
    return found


def test_a_token_missing_from_a_row_is_censored_at_the_kth_value() -> None:
    cells = night({1: -0.5, 2: -3.0}, {1: -0.5, 3: -5.0})

    assert cells.kth == -4.0
    assert dict(zip(cells.tokens.tolist(), cells.means.tolist(), strict=True)) == pytest.approx(
        {1: -0.5, 2: (-3.0 - 4.0) / 2, 3: (-5.0 - 4.0) / 2}
    )


def test_the_distance_is_the_mean_over_tokens_that_either_night_lists() -> None:
    base = night({1: -0.5, 2: -2.0})
    other = night({1: -0.7, 3: -2.0})

    found = prompt_distances([base, base, other], baseline=2)

    assert found == pytest.approx([0.0, 0.0, 0.2 / 3])


def test_a_token_below_the_kth_is_no_difference() -> None:
    first, second = night({1: -0.1, 2: -4.0}), night({1: -0.1, 3: -4.0})

    assert prompt_distances([first, first, second], baseline=2)[2] == pytest.approx(0.0)


def test_rows_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"rows of one length, not of \[1, 2\]"):
        night({1: -0.5, 2: -3.0}, {1: -0.5})
    with pytest.raises(ValueError, match="rows of length 2 beside rows of length 1"):
        merged(night({1: -0.5, 2: -3.0}), night({1: -0.5}))
    with pytest.raises(ValueError, match="rows of one length"):
        cells_of([])


@given(
    st.lists(
        st.dictionaries(st.integers(0, 8), st.floats(-9, -0.01), min_size=3, max_size=3),
        min_size=2,
        max_size=8,
    ),
    st.data(),
)
def test_a_night_read_in_parts_is_the_night_read_at_once(rows, data) -> None:
    ranked = [dict(sorted(row.items(), key=lambda entry: -entry[1])) for row in rows]
    cut = data.draw(st.integers(1, len(rows) - 1))

    whole, parts = night(*ranked), merged(night(*ranked[:cut]), night(*ranked[cut:]))

    assert parts.tokens.tolist() == whole.tokens.tolist()
    assert parts.means == pytest.approx(whole.means, abs=1e-4)
    assert parts.n == whole.n


def test_nights_after_the_baseline_lie_no_further_away_than_those_in_it() -> None:
    ratios = []
    for seed in range(40):
        found = prompt_distances(honest(28, seed), baseline=14)
        ratios.append(np.log(found[14:].mean() / found[:14].mean()))

    assert abs(np.mean(ratios)) < 0.05


def test_a_shift_raises_the_distance_from_its_night_on() -> None:
    found = night_distances({"x": honest(30, 4, shift_from=20, shift=0.3)}, baseline=14)

    assert found[20:].min() > 2 * found[:20].max()


def test_a_night_that_missed_some_prompts_is_comparable() -> None:
    quiet = honest(24, 1)
    loud = [
        cells_of(
            [(range(20), row.tolist()) for row in np.random.default_rng([7, at]).normal(-3, 1.0, (10, 20))]
        )
        for at in range(24)
    ]
    whole = night_distances({"quiet": quiet, "loud": loud}, baseline=14)
    missed = night_distances({"quiet": quiet, "loud": [*loud[:20], None, None, *loud[22:]]}, baseline=14)

    assert missed[20:22] == pytest.approx(whole[20:22], rel=0.5)
    assert missed[:20] == pytest.approx(whole[:20])


def test_a_night_without_any_prompt_of_the_baseline_is_not_measured() -> None:
    nights = [*honest(16, 2), None]

    assert np.isnan(night_distances({"x": nights}, baseline=14)[-1])
    assert np.isnan(night_distances({"x": [None, *nights[:1]]}, baseline=14)).all()


def test_constant_rows_have_the_least_distance_and_nothing_breaks() -> None:
    same = night({1: -0.5, 2: -3.0})

    assert night_distances({"x": [same] * 20}, baseline=14) == pytest.approx(np.full(20, RESOLUTION))


def test_one_prompt_among_many_that_is_off_shows_in_the_worst_and_hardly_in_the_mean() -> None:
    prompts = {f"p{seed}": honest(30, seed) for seed in range(8)}
    prompts["long"] = honest(30, 9, shift_from=20, shift=0.5)
    mean, worst = night_distances(prompts, baseline=14), worst_distances(prompts, baseline=14)

    assert worst[20:].min() > 3 * worst[:20].max()
    assert mean[20:].min() < 1.5 * mean[:20].max()


def test_the_worst_of_one_prompt_is_its_distance() -> None:
    nights = {"x": [*honest(20, 3), None]}

    assert worst_distances(nights, baseline=14) == pytest.approx(
        night_distances(nights, baseline=14), nan_ok=True
    )


def test_no_prompt_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one prompt"):
        night_distances({}, baseline=14)
