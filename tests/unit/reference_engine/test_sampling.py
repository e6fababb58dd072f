import numpy as np

from reference_engine.sampling import Sampler

ROW = np.log(np.array([0.5, 0.3, 0.15, 0.05], dtype=np.float32))


def _draws(sampler: Sampler, n: int = 4_000) -> np.ndarray:
    return np.bincount([sampler.draw(ROW) for _ in range(n)], minlength=4) / n


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
