import numpy as np
import pytest
from scipy.stats import chisquare

from reference_engine.sampling import Sampler

ROW = np.log(np.array([0.5, 0.3, 0.15, 0.05], dtype=np.float32))


def _counts(sampler: Sampler, n: int = 4_000) -> np.ndarray:
    return np.bincount([sampler.draw(ROW) for _ in range(n)], minlength=4)


def _draws(sampler: Sampler, n: int = 4_000) -> np.ndarray:
    return _counts(sampler, n) / n


def test_temperature_zero_takes_the_most_likely_token():
    assert Sampler(0.0, 1.0, seed=1).draw(ROW) == 0


def test_temperature_zero_takes_the_lowest_id_of_equals():
    assert Sampler(0.0, 1.0, seed=1).draw(np.zeros(4, dtype=np.float32)) == 0


def test_equal_seeds_draw_equal_tokens():
    first, second = Sampler(1.0, 0.9, seed=3), Sampler(1.0, 0.9, seed=3)
    assert [first.draw(ROW) for _ in range(50)] == [second.draw(ROW) for _ in range(50)]


def test_temperature_one_draws_in_proportion_to_probability():
    assert np.allclose(_draws(Sampler(1.0, 1.0, seed=5)), [0.5, 0.3, 0.15, 0.05], atol=0.03)


def test_temperature_flattens_the_distribution():
    expected = np.sqrt([0.5, 0.3, 0.15, 0.05])
    assert np.allclose(_draws(Sampler(2.0, 1.0, seed=5)), expected / expected.sum(), atol=0.03)


def test_top_p_draws_only_from_the_smallest_set_that_reaches_it():
    assert np.allclose(_draws(Sampler(1.0, 0.7, seed=5)), [0.625, 0.375, 0, 0], atol=0.03)


def test_the_tiniest_top_p_leaves_the_most_likely_token():
    assert _draws(Sampler(1.0, 1e-9, seed=5), n=50)[0] == 1


@pytest.mark.parametrize(
    ("limits", "law"),
    [
        ({"top_k": 2}, [0.625, 0.375, 0, 0]),
        ({"top_k": 9}, [0.5, 0.3, 0.15, 0.05]),
        ({"skip_first": True}, [0, 0.6, 0.3, 0.1]),
        ({"skip_first": True, "top_k": 2}, [0, 2 / 3, 1 / 3, 0]),
    ],
)
def test_limits_renormalise_what_they_leave(limits, law):
    drawn = _counts(Sampler(1.0, 1.0, seed=5, **limits))
    law = np.array(law)
    assert drawn[law == 0].sum() == 0
    expected = drawn.sum() * law[law > 0]
    assert chisquare(drawn[law > 0], expected).pvalue > 0.01


def test_top_p_counts_in_what_top_k_left():
    # Of 0.5 and 0.3 the first alone holds 0.625.
    assert _counts(Sampler(1.0, 0.6, seed=5, top_k=2), n=50)[0] == 50


def test_a_token_is_skipped_even_where_the_rest_is_next_to_impossible():
    row = np.array([0.0, -800.0, -900.0], dtype=np.float32)
    assert Sampler(0.01, 1.0, seed=5, skip_first=True).draw(row) == 1


def test_at_temperature_zero_nothing_is_skipped():
    assert Sampler(0.0, 1.0, seed=1, skip_first=True).draw(ROW) == 0
